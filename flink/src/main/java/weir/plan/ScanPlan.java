package weir.plan;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.List;

/** A {@code scan}: rows of each key are folded, in their order, into states. */
public final class ScanPlan implements Serializable {
    private static final long serialVersionUID = 1L;

    /** What makes the rows: their columns, then their key, their time, and their order. */
    public final String sql;
    /** How many columns rows have before it. */
    public final int input;
    /** The columns of rows after it. */
    public final List<ColumnPlan> columns;
    /** The length of the windows that rows come in; 0: they have no time. */
    public final long everyNs;
    /** After how long without a row a key is forgotten. */
    public final long idleNs;
    public final long maxKeys;
    public final List<StatePlan> states = new ArrayList<>();

    /**
     * A state: the column that shows it, and expressions as JSON: its first value, which sees the
     * columns of a row, and its next one, which sees all states after these.
     */
    public record StatePlan(int column, String init, String update) implements Serializable {}

    ScanPlan(String sql, JsonNode scan) {
        this.sql = sql;
        input = scan.path("input").asInt();
        columns = ColumnPlan.list(scan.path("columns"));
        everyNs = NodePlan.number(scan, "every_ns");
        idleNs = NodePlan.number(scan, "idle_ns");
        maxKeys = NodePlan.number(scan, "max_keys");
        for (JsonNode state : scan.path("states")) {
            states.add(new StatePlan(state.path("column").asInt(),
                    state.path("init").toString(), state.path("update").toString()));
        }
        boolean fits = input <= columns.size()
                && states.stream().allMatch(state -> state.column < columns.size());
        if (!fits || maxKeys <= 0) {
            throw new IllegalArgumentException("a scan of the job plan has other columns");
        }
    }
}
