package weir.functions;

import java.nio.charset.StandardCharsets;
import java.time.LocalDateTime;
import java.time.ZoneOffset;
import java.util.Map;
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

    /** Those of values, by the names that {@code weir cluster sql} writes. */
    private static final Map<String, Class<? extends ScalarFunction>> SCALARS = Map.ofEntries(
            Map.entry("weir_add", Add.class),
            Map.entry("weir_sub", Sub.class),
            Map.entry("weir_mul", Mul.class),
            Map.entry("weir_div", Div.class),
            Map.entry("weir_ratio", Ratio.class),
            Map.entry("weir_rem", Rem.class),
            Map.entry("weir_neg", Neg.class),
            Map.entry("weir_bit_and", BitAnd.class),
            Map.entry("weir_bit_or", BitOr.class),
            Map.entry("weir_bit_xor", BitXor.class),
            Map.entry("weir_bit_not", BitNot.class),
            Map.entry("weir_shl", Shl.class),
            Map.entry("weir_shr", Shr.class),
            Map.entry("weir_abs", Abs.class),
            Map.entry("weir_min_of", MinOf.class),
            Map.entry("weir_max_of", MaxOf.class),
            Map.entry("weir_int", ToInt.class),
            Map.entry("weir_seconds", Seconds.class),
            Map.entry("weir_order", Ordered.class),
            Map.entry("weir_hex", Hex.class),
            Map.entry("weir_in_net", InNet.class),
            Map.entry("weir_is_ipv4", IsIpv4.class),
            Map.entry("weir_key", Key.class),
            Map.entry("weir_ns", Ns.class),
            Map.entry("weir_seq_diff", SeqDiff.class),
            Map.entry("weir_seq_add", SeqAdd.class),
            Map.entry("weir_sqrt", Curves.Sqrt.class),
            Map.entry("weir_exp", Curves.Exp.class),
            Map.entry("weir_ln", Curves.Ln.class),
            Map.entry("weir_log2", Curves.Log2.class),
            Map.entry("weir_log10", Curves.Log10.class),
            Map.entry("weir_pow", Curves.Pow.class),
            Map.entry("weir_community_id", CommunityId.class),
            Map.entry("weir_prefix", Prefix.class));

    /** Those of the rows of a group. */
    private static final Map<String, Class<? extends AggregateFunction<?, ?>>> AGGREGATES =
            Map.of(
                    "weir_min_float", FloatExtremes.Min.class,
                    "weir_max_float", FloatExtremes.Max.class,
                    "weir_sum", Aggregates.Sum.class,
                    "weir_avg", Aggregates.Avg.class,
                    "weir_avg_duration", Aggregates.AvgDuration.class,
                    "weir_distinct_up_to", DistinctUpTo.class,
                    "weir_any", Aggregates.Any.class,
                    "weir_all", Aggregates.All.class);

    /** Makes all of them known to SQL. */
    public static void register(TableEnvironment tables) {
        SCALARS.forEach(tables::createTemporarySystemFunction);
        AGGREGATES.forEach(tables::createTemporarySystemFunction);
    }

    /** The function of values of this name. */
    public static ScalarFunction scalar(String name) {
        Class<? extends ScalarFunction> found = SCALARS.get(name);
        if (found == null) {
            throw new IllegalArgumentException("there is no function `" + name + "`");
        }
        try {
            return found.getDeclaredConstructor().newInstance();
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException(e);
        }
    }

    /** A float of a query: a finite number, whose zero has no sign. */
    static Double finite(double x) {
        return Double.isFinite(x) ? x + 0.0 : null;
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

    /** The sequence number of 32 bits that is so much after another. */
    public static class SeqAdd extends ScalarFunction {
        public Long eval(Long a, Long b) {
            return a == null || b == null ? null : (Long) Integer.toUnsignedLong((int) (a + b));
        }
    }

    /** {@code -a}. */
    public static class Neg extends ScalarFunction {
        public Long eval(Long a) {
            return a == null || a == Long.MIN_VALUE ? null : (Long) (-a);
        }

        public Double eval(Double a) {
            return a == null ? null : finite(-a);
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
            if (a == null || b == null || b < 0 || b > 63) {
                return null;
            }
            long shifted = a << b;
            return shifted >> b == a ? (Long) shifted : null;
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

    /** A float as an integer, towards zero; a bool as 0 or 1. */
    public static class ToInt extends ScalarFunction {
        public Long eval(Boolean a) {
            return a == null ? null : (Long) (a ? 1L : 0L);
        }

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
            // A network of IPv6 holds no IPv4 address, though these stand among its numbers.
            if (len < 96 && isIpv4(address)) {
                return false;
            }
            for (int i = 0; i < 16; i++) {
                if (((address[i] ^ net[i]) & mask(i, len)) != 0) {
                    return false;
                }
            }
            return true;
        }
    }

    /** The bits of a byte of an address that belong to a network of this length. */
    private static int mask(int at, int len) {
        int bits = Math.max(0, Math.min(8, len - 8 * at));
        return 0xff00 >> bits & 0xff;
    }

    /** Whether an address is one of IPv4. */
    public static class IsIpv4 extends ScalarFunction {
        public Boolean eval(@DataTypeHint("BYTES") byte[] address) {
            return address != null && isIpv4(address);
        }
    }

    private static boolean isIpv4(byte[] address) {
        for (int i = 0; i < 12; i++) {
            if (address[i] != (i < 10 ? 0 : (byte) 0xff)) {
                return false;
            }
        }
        return true;
    }

    /** The network of an address, of the length for its version. */
    public static class Prefix extends ScalarFunction {
        public @DataTypeHint("BYTES") byte[] eval(
                @DataTypeHint("BYTES") byte[] address, Integer v4, Integer v6) {
            if (address == null) {
                return null;
            }
            int len = isIpv4(address) ? 96 + Math.min(v4, 32) : v6;
            byte[] net = address.clone();
            for (int i = 0; i < 16; i++) {
                net[i] &= (byte) mask(i, len);
            }
            return net;
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
}
