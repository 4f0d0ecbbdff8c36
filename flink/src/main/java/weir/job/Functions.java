package weir.job;

import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.time.LocalDateTime;
import java.time.ZoneOffset;
import org.apache.flink.table.annotation.DataTypeHint;
import org.apache.flink.table.annotation.InputGroup;
import org.apache.flink.table.api.TableEnvironment;
import org.apache.flink.table.functions.AggregateFunction;
import org.apache.flink.table.functions.ScalarFunction;
import weir.wire.ByteWriter;
import weir.wire.Part;

/**
 * What queries compute, as functions for SQL: SQL's own arithmetic wraps or throws. As in Weir, an
 * absent operand makes the result absent, and so does a result outside its type, a division by
 * zero, or a shift by less than 0 or more than 63.
 */
public final class Functions {
    private Functions() {}

    /** Makes all of them known, under the names that {@code weir cluster sql} writes. */
    static void register(TableEnvironment tables) {
        tables.createTemporarySystemFunction("weir_add", Add.class);
        tables.createTemporarySystemFunction("weir_sub", Sub.class);
        tables.createTemporarySystemFunction("weir_mul", Mul.class);
        tables.createTemporarySystemFunction("weir_div", Div.class);
        tables.createTemporarySystemFunction("weir_ratio", Ratio.class);
        tables.createTemporarySystemFunction("weir_rem", Rem.class);
        tables.createTemporarySystemFunction("weir_neg", Neg.class);
        tables.createTemporarySystemFunction("weir_bit_and", BitAnd.class);
        tables.createTemporarySystemFunction("weir_bit_or", BitOr.class);
        tables.createTemporarySystemFunction("weir_bit_xor", BitXor.class);
        tables.createTemporarySystemFunction("weir_bit_not", BitNot.class);
        tables.createTemporarySystemFunction("weir_shl", Shl.class);
        tables.createTemporarySystemFunction("weir_shr", Shr.class);
        tables.createTemporarySystemFunction("weir_abs", Abs.class);
        tables.createTemporarySystemFunction("weir_min_of", MinOf.class);
        tables.createTemporarySystemFunction("weir_max_of", MaxOf.class);
        tables.createTemporarySystemFunction("weir_int", ToInt.class);
        tables.createTemporarySystemFunction("weir_seconds", Seconds.class);
        tables.createTemporarySystemFunction("weir_order", Ordered.class);
        tables.createTemporarySystemFunction("weir_hex", Hex.class);
        tables.createTemporarySystemFunction("weir_in_net", InNet.class);
        tables.createTemporarySystemFunction("weir_is_ipv4", IsIpv4.class);
        tables.createTemporarySystemFunction("weir_key", Key.class);
        tables.createTemporarySystemFunction("weir_ns", Ns.class);
        tables.createTemporarySystemFunction("weir_seq_diff", SeqDiff.class);
        tables.createTemporarySystemFunction("weir_sqrt", Curves.Sqrt.class);
        tables.createTemporarySystemFunction("weir_exp", Curves.Exp.class);
        tables.createTemporarySystemFunction("weir_ln", Curves.Ln.class);
        tables.createTemporarySystemFunction("weir_log2", Curves.Log2.class);
        tables.createTemporarySystemFunction("weir_log10", Curves.Log10.class);
        tables.createTemporarySystemFunction("weir_community_id", CommunityId.class);
        tables.createTemporarySystemFunction("weir_min_float", FloatExtremes.Min.class);
        tables.createTemporarySystemFunction("weir_max_float", FloatExtremes.Max.class);
        tables.createTemporarySystemFunction("weir_sum", Sum.class);
        tables.createTemporarySystemFunction("weir_avg", Avg.class);
        tables.createTemporarySystemFunction("weir_avg_duration", AvgDuration.class);
        tables.createTemporarySystemFunction("weir_any", Any.class);
        tables.createTemporarySystemFunction("weir_all", All.class);
    }

    static Double finite(double x) {
        return Double.isFinite(x) ? x : null;
    }

    /** {@code a + b}. */
    public static class Add extends ScalarFunction {
        public Long eval(Long a, Long b) {
            if (a == null || b == null) {
                return null;
            }
            long sum = a + b;
            return ((a ^ sum) & (b ^ sum)) < 0 ? null : (Long) sum;
        }

        public Double eval(Double a, Double b) {
            return a == null || b == null ? null : finite(a + b);
        }
    }

    /** {@code a - b}. */
    public static class Sub extends ScalarFunction {
        public Long eval(Long a, Long b) {
            if (a == null || b == null) {
                return null;
            }
            long rest = a - b;
            return ((a ^ b) & (a ^ rest)) < 0 ? null : (Long) rest;
        }

        public Double eval(Double a, Double b) {
            return a == null || b == null ? null : finite(a - b);
        }
    }

    /** {@code a * b}. */
    public static class Mul extends ScalarFunction {
        public Long eval(Long a, Long b) {
            if (a == null || b == null) {
                return null;
            }
            long low = a * b;
            return Math.multiplyHigh(a, b) == low >> 63 ? (Long) low : null;
        }

        public Double eval(Double a, Double b) {
            return a == null || b == null ? null : finite(a * b);
        }
    }

    /** {@code a / b}, of integers towards zero. */
    public static class Div extends ScalarFunction {
        public Long eval(Long a, Long b) {
            boolean outside = a == null || b == null || b == 0 || a == Long.MIN_VALUE && b == -1;
            return outside ? null : (Long) (a / b);
        }

        public Double eval(Double a, Double b) {
            return a == null || b == null ? null : finite(a / b);
        }
    }

    /** One duration by another, as a float. */
    public static class Ratio extends ScalarFunction {
        public Double eval(Long a, Long b) {
            return a == null || b == null ? null : finite((double) a / (double) b);
        }
    }

    /** {@code a % b}, with the sign of {@code a}. */
    public static class Rem extends ScalarFunction {
        public Long eval(Long a, Long b) {
            return a == null || b == null || b == 0 ? null : (Long) (b == -1 ? 0 : a % b);
        }
    }

    /** How far a sequence number of 32 bits is ahead of another. */
    public static class SeqDiff extends ScalarFunction {
        public Long eval(Long a, Long b) {
            return a == null || b == null ? null : (Long) (long) (int) (a - b);
        }
    }

    /** {@code -a}. */
    public static class Neg extends ScalarFunction {
        public Long eval(Long a) {
            return a == null || a == Long.MIN_VALUE ? null : (Long) (-a);
        }

        public Double eval(Double a) {
            return a == null ? null : (Double) (-a);
        }
    }

    /** {@code a & b}. */
    public static class BitAnd extends ScalarFunction {
        public Long eval(Long a, Long b) {
            return a == null || b == null ? null : (Long) (a & b);
        }
    }

    /** {@code a | b}. */
    public static class BitOr extends ScalarFunction {
        public Long eval(Long a, Long b) {
            return a == null || b == null ? null : (Long) (a | b);
        }
    }

    /** {@code a ^ b}. */
    public static class BitXor extends ScalarFunction {
        public Long eval(Long a, Long b) {
            return a == null || b == null ? null : (Long) (a ^ b);
        }
    }

    /** {@code ~a}. */
    public static class BitNot extends ScalarFunction {
        public Long eval(Long a) {
            return a == null ? null : (Long) (~a);
        }
    }

    /** {@code a << b}. */
    public static class Shl extends ScalarFunction {
        public Long eval(Long a, Long b) {
            return a == null || b == null || b < 0 || b > 63 ? null : (Long) (a << b);
        }
    }

    /** {@code a >> b}, which keeps the sign. */
    public static class Shr extends ScalarFunction {
        public Long eval(Long a, Long b) {
            return a == null || b == null || b < 0 || b > 63 ? null : (Long) (a >> b);
        }
    }

    /** The size of a number. */
    public static class Abs extends ScalarFunction {
        public Long eval(Long a) {
            return a == null || a == Long.MIN_VALUE ? null : (Long) Math.abs(a);
        }

        public Double eval(Double a) {
            return a == null ? null : (Double) Math.abs(a);
        }
    }

    /** The smaller one; floats by IEEE total order. */
    public static class MinOf extends ScalarFunction {
        public Long eval(Long a, Long b) {
            return a == null || b == null ? null : (Long) Math.min(a, b);
        }

        public Double eval(Double a, Double b) {
            return a == null || b == null ? null : total(a) <= total(b) ? a : b;
        }
    }

    /** The larger one; floats by IEEE total order. */
    public static class MaxOf extends ScalarFunction {
        public Long eval(Long a, Long b) {
            return a == null || b == null ? null : (Long) Math.max(a, b);
        }

        public Double eval(Double a, Double b) {
            return a == null || b == null ? null : total(a) >= total(b) ? a : b;
        }
    }

    /** A float as an integer, towards zero. */
    public static class ToInt extends ScalarFunction {
        public Long eval(Double a) {
            boolean fits = a != null && a >= -0x1p63 && a < 0x1p63;
            return fits ? (Long) (long) (double) a : null;
        }
    }

    /** A duration in seconds. */
    public static class Seconds extends ScalarFunction {
        public Double eval(Long ns) {
            return ns == null ? null : (Double) (ns / 1e9);
        }
    }

    private static long total(double a) {
        return Part.ordered(Double.doubleToRawLongBits(a)) ^ Long.MIN_VALUE;
    }

    /** Something of which SQL's order is that of Weir: IEEE total order, and that of bytes. */
    public static class Ordered extends ScalarFunction {
        public Long eval(Double a) {
            return a == null ? null : (Long) total(a);
        }

        public byte[] eval(String a) {
            return a == null ? null : a.getBytes(StandardCharsets.UTF_8);
        }
    }

    /** Bytes as hexadecimal digits: SQL counts no different bytes. */
    public static class Hex extends ScalarFunction {
        public String eval(@DataTypeHint("BYTES") byte[] bytes) {
            return bytes == null ? null : java.util.HexFormat.of().formatHex(bytes);
        }
    }

    /** Whether an address is of a network, whose length counts in 128 bits. */
    public static class InNet extends ScalarFunction {
        public Boolean eval(
                @DataTypeHint("BYTES") byte[] address,
                @DataTypeHint("BYTES") byte[] net,
                Integer len) {
            if (address == null || address.length != 16) {
                return null;
            }
            for (int i = 0; i < 16; i++) {
                int bits = Math.max(0, Math.min(8, len - 8 * i));
                int mask = 0xff00 >> bits & 0xff;
                if (((address[i] ^ net[i]) & mask) != 0) {
                    return false;
                }
            }
            return true;
        }
    }

    /** Whether an address is one of IPv4. */
    public static class IsIpv4 extends ScalarFunction {
        public Boolean eval(@DataTypeHint("BYTES") byte[] address) {
            if (address == null) {
                return false;
            }
            for (int i = 0; i < 12; i++) {
                if (address[i] != (i < 10 ? 0 : (byte) 0xff)) {
                    return false;
                }
            }
            return true;
        }
    }

    /** The bytes of a key: their order is that of rows. */
    public static class Key extends ScalarFunction {
        public byte[] eval(@DataTypeHint(inputGroup = InputGroup.ANY) Object... parts) {
            ByteWriter out = new ByteWriter();
            for (Object part : parts) {
                out.u8(part == null ? 0 : 1);
                if (part instanceof Boolean) {
                    out.u8((Boolean) part ? 1 : 0);
                } else if (part instanceof String) {
                    Part.writeText(((String) part).getBytes(StandardCharsets.UTF_8), out);
                } else if (part instanceof byte[]) {
                    Part.writeText((byte[]) part, out);
                } else if (part instanceof Double) {
                    out.i64(Long.reverseBytes(
                            Part.ordered(Double.doubleToRawLongBits((Double) part))));
                } else if (part instanceof Number) {
                    long word = ((Number) part).longValue();
                    out.i64(Long.reverseBytes(word ^ Long.MIN_VALUE));
                }
            }
            return out.done();
        }
    }

    /** The start of a window in nanoseconds since 1970. */
    public static class Ns extends ScalarFunction {
        public Long eval(LocalDateTime at) {
            long seconds = at.toEpochSecond(ZoneOffset.UTC);
            return seconds * 1_000_000_000L + at.getNano();
        }
    }

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
