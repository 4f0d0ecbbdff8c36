package weir.job;

import org.apache.flink.table.functions.AggregateFunction;

/** The least and the greatest of floats by IEEE total order; SQL's own know no order of zeros. */
public final class FloatExtremes {
    private FloatExtremes() {}

    /** The most extreme so far. */
    public static class Extreme {
        public Double value;
    }

    /** {@code min}. */
    public static class Min extends AggregateFunction<Double, Extreme> {
        @Override
        public Extreme createAccumulator() {
            return new Extreme();
        }

        @Override
        public Double getValue(Extreme extreme) {
            return extreme.value;
        }

        /** Takes a value in. */
        public void accumulate(Extreme extreme, Double value) {
            boolean none = extreme.value == null;
            if (value != null && (none || Double.compare(value, extreme.value) < 0)) {
                extreme.value = value;
            }
        }

        /** Takes in what others took. */
        public void merge(Extreme extreme, Iterable<Extreme> others) {
            others.forEach(other -> accumulate(extreme, other.value));
        }
    }

    /** {@code max}. */
    public static class Max extends AggregateFunction<Double, Extreme> {
        @Override
        public Extreme createAccumulator() {
            return new Extreme();
        }

        @Override
        public Double getValue(Extreme extreme) {
            return extreme.value;
        }

        /** Takes a value in. */
        public void accumulate(Extreme extreme, Double value) {
            boolean none = extreme.value == null;
            if (value != null && (none || Double.compare(value, extreme.value) > 0)) {
                extreme.value = value;
            }
        }

        /** Takes in what others took. */
        public void merge(Extreme extreme, Iterable<Extreme> others) {
            others.forEach(other -> accumulate(extreme, other.value));
        }
    }
}
