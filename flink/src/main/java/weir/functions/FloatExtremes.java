package weir.functions;

import org.apache.flink.table.functions.AggregateFunction;

/** The least and the greatest of floats by IEEE total order; SQL's own know no order of zeros. */
public final class FloatExtremes {
    private FloatExtremes() {}

    /** The most extreme so far. */
    public static class Extreme {
        public Double value;
    }

    /** Both. */
    public abstract static class Both extends AggregateFunction<Double, Extreme> {
        /** 1 where the greater is the more extreme, -1 where the smaller is. */
        abstract int direction();

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
            if (value != null && (extreme.value == null
                    || Double.compare(value, extreme.value) * direction() > 0)) {
                extreme.value = value;
            }
        }

        /** Takes in what others took. */
        public void merge(Extreme extreme, Iterable<Extreme> others) {
            others.forEach(other -> accumulate(extreme, other.value));
        }
    }

    /** {@code min}. */
    public static class Min extends Both {
        @Override
        int direction() {
            return -1;
        }
    }

    /** {@code max}. */
    public static class Max extends Both {
        @Override
        int direction() {
            return 1;
        }
    }
}
