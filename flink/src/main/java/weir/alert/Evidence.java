package weir.alert;

import weir.plan.AlertPlan;

/** What a row of an alert says. Cells are as in rows of Flink; absent ones are {@code null}. */
record Evidence(Long ts, String message, Double value, Double threshold, Double completeness,
        String community, Object[] cells) {
    /** Whether its value is further from the threshold than that of another row. */
    boolean exceeds(Evidence other, AlertPlan plan) {
        if (plan.field == null || value == null || other.value == null) {
            return plan.field != null && value != null;
        }
        int order = Double.compare(value, other.value);
        return plan.peakIsMost ? order > 0 : order < 0;
    }
}
