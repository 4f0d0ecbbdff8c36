package weir.functions;

import java.math.BigInteger;
import org.apache.flink.table.functions.AggregateFunction;

/** Aggregates over integers and bools, which SQL's own would let overflow or leave out. */
public final class Aggregates {
    private Aggregates() {}

    /** A sum of integers, and how many there were: a number that does not overflow. */
    public static class Total {
        public byte[] sum = {0};
        public long n;

        BigInteger value() {
            return new BigInteger(sum);
        }

        void add(Long x) {
            if (x != null) {
                sum = value().add(BigInteger.valueOf(x)).toByteArray();
                n++;
            }
        }

        void add(Iterable<Total> others) {
            for (Total other : others) {
                sum = value().add(other.value()).toByteArray();
                n += other.n;
            }
        }
    }

    /** The sum, absent over nothing and outside 64 bits. */
    public static class Sum extends AggregateFunction<Long, Total> {
        @Override
        public Total createAccumulator() {
            return new Total();
        }

        public void accumulate(Total total, Long x) {
            total.add(x);
        }

        public void merge(Total total, Iterable<Total> others) {
            total.add(others);
        }

        @Override
        public Long getValue(Total total) {
            boolean fits = total.n > 0 && total.value().bitLength() <= 63;
            return fits ? (Long) total.value().longValue() : null;
        }
    }

    /** The mean as a float. */
    public static class Avg extends AggregateFunction<Double, Total> {
        @Override
        public Total createAccumulator() {
            return new Total();
        }

        public void accumulate(Total total, Long x) {
            total.add(x);
        }

        public void merge(Total total, Iterable<Total> others) {
            total.add(others);
        }

        @Override
        public Double getValue(Total total) {
            return total.n == 0 ? null : (Double) (total.value().doubleValue() / (double) total.n);
        }
    }

    /** The mean of durations, towards zero. */
    public static class AvgDuration extends AggregateFunction<Long, Total> {
        @Override
        public Total createAccumulator() {
            return new Total();
        }

        public void accumulate(Total total, Long x) {
            total.add(x);
        }

        public void merge(Total total, Iterable<Total> others) {
            total.add(others);
        }

        @Override
        public Long getValue(Total total) {
            return total.n == 0
                    ? null
                    : (Long) total.value().divide(BigInteger.valueOf(total.n)).longValue();
        }
    }

    /** Which of the two bools came. */
    public static class Truths {
        public boolean yes;
        public boolean no;

        void add(Boolean x) {
            yes |= x != null && x;
            no |= x != null && !x;
        }

        void add(Iterable<Truths> others) {
            for (Truths other : others) {
                yes |= other.yes;
                no |= other.no;
            }
        }
    }

    /** Whether any value is true. */
    public static class Any extends AggregateFunction<Boolean, Truths> {
        @Override
        public Truths createAccumulator() {
            return new Truths();
        }

        public void accumulate(Truths truths, Boolean x) {
            truths.add(x);
        }

        public void merge(Truths truths, Iterable<Truths> others) {
            truths.add(others);
        }

        @Override
        public Boolean getValue(Truths truths) {
            return truths.yes || truths.no ? (Boolean) truths.yes : null;
        }
    }

    /** Whether all values are true. */
    public static class All extends AggregateFunction<Boolean, Truths> {
        @Override
        public Truths createAccumulator() {
            return new Truths();
        }

        public void accumulate(Truths truths, Boolean x) {
            truths.add(x);
        }

        public void merge(Truths truths, Iterable<Truths> others) {
            truths.add(others);
        }

        @Override
        public Boolean getValue(Truths truths) {
            return truths.yes || truths.no ? (Boolean) !truths.no : null;
        }
    }
}
