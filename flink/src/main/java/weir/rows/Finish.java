package weir.rows;

import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import weir.plan.NodePlan.ResultPlan;
import weir.state.ByState;
import weir.state.CountsState;
import weir.state.FirstLastState;
import weir.state.NoState;
import weir.state.SketchState;
import weir.state.State;
import weir.state.TextState;
import weir.state.ValuesState;
import weir.state.WordsState;
import weir.wire.ByteReader;
import weir.wire.Bytes;
import weir.wire.Part;
import weir.wire.Unreadable;

/**
 * Makes the value of an aggregate of its state, with the rounding of Weir. A result outside its
 * type is absent and counted.
 */
public final class Finish {
    /** The longest text of {@code frequent} and {@code histogram}, in bytes. */
    private static final int TEXT_MAX = 4096;

    private static final BigInteger BILLION = BigInteger.valueOf(1_000_000_000);
    private static final BigInteger U128_MAX =
            BigInteger.ONE.shiftLeft(128).subtract(BigInteger.ONE);
    private static final BigInteger U256 = BigInteger.ONE.shiftLeft(256);

    private long undefined;

    /** How many results were outside their type. */
    public long undefined() {
        return undefined;
    }

    /** The value: {@code null} where it is absent; texts as strings. */
    public Object value(ResultPlan result, State state) {
        Object value = raw(result, state);
        boolean text = value instanceof byte[] && result.type == Part.Type.STRING;
        return text ? new String((byte[]) value, StandardCharsets.UTF_8) : value;
    }

    private Object raw(ResultPlan result, State state) {
        if (state instanceof WordsState) {
            return words(result, (WordsState) state);
        }
        if (state instanceof TextState) {
            return ((TextState) state).text();
        }
        if (state instanceof FirstLastState) {
            return ((FirstLastState) state).value();
        }
        if (state instanceof ByState) {
            return ((ByState) state).value();
        }
        if (state instanceof NoState) {
            // Nothing was lost, unless whoever puts the row out knows better.
            return 1.0;
        }
        if (state instanceof ValuesState) {
            return ((ValuesState) state).size();
        }
        if (state instanceof SketchState) {
            SketchState sketch = (SketchState) state;
            return result.function.equals("distinct_up_to")
                    ? sketch.upTo(result.number)
                    : (Object) sketch.estimate();
        }
        return counted(result, (CountsState) state);
    }

    private Object words(ResultPlan result, WordsState s) {
        switch (result.function) {
            case "count":
            case "late":
                return s.word(0);
            case "sum":
                return sum(result, s);
            case "avg":
                return average(result, s);
            case "rate_window_ns":
                return perSecond(s.wide(0), result.number);
            case "min":
            case "max":
                return extreme(result, s);
            case "any":
                return s.word(0) == 0 ? null : (Object) ((s.word(0) & 2) != 0);
            case "all":
                return s.word(0) == 0 ? null : (Object) ((s.word(0) & 1) == 0);
            case "bit_or":
                return s.word(1) == 0 ? null : (Object) s.word(0);
            case "variance":
            case "stddev":
                return spread(result, s);
            default:
                throw new IllegalArgumentException("`" + result.function + "` is not known here");
        }
    }

    private Object sum(ResultPlan result, WordsState s) {
        if (s.kind() == State.FLOAT_SEEN) {
            return s.word(1) == 0 ? null : finite(Double.longBitsToDouble(s.word(0)));
        }
        if (s.kind() == State.WIDE_SEEN) {
            BigInteger sum = s.wide(0);
            return s.word(2) == 0 ? null : sum.bitLength() > 63 ? outside() : sum.longValue();
        }
        if (s.kind() == State.ADD_SEEN && s.word(1) == 0) {
            return null;
        }
        return s.word(0) < 0 ? outside() : s.word(0);
    }

    private Object average(ResultPlan result, WordsState s) {
        if (s.kind() == State.FLOAT_COUNT) {
            double mean = Double.longBitsToDouble(s.word(0)) / WordsState.count(s.word(1));
            return s.word(1) == 0 ? null : finite(mean);
        }
        if (s.word(2) == 0) {
            return null;
        }
        BigInteger sum = s.wide(0);
        if (result.type == Part.Type.DURATION) {
            return sum.divide(WordsState.unsigned(s.word(2))).longValue();
        }
        return sum.doubleValue() / WordsState.count(s.word(2));
    }

    /** A sum over a window as so much a second: the nearest float. */
    static double perSecond(BigInteger sum, long windowNs) {
        BigInteger billionths = sum.abs().multiply(BILLION).min(U128_MAX);
        int shift = Math.min(128 - billionths.bitLength(), 127);
        BigInteger[] quotient =
                billionths.shiftLeft(shift).divideAndRemainder(BigInteger.valueOf(windowNs));
        BigInteger rounded = quotient[1].signum() == 0 ? quotient[0] : quotient[0].setBit(0);
        double size = rounded.doubleValue() / BigInteger.ONE.shiftLeft(shift).doubleValue();
        return sum.signum() < 0 ? -size : size;
    }

    private Object extreme(ResultPlan result, WordsState s) {
        boolean max = result.function.equals("max");
        if (s.kind() == State.LEAST_PAIR) {
            if (s.word(2) == 0) {
                return null;
            }
            byte[] address = new byte[16];
            for (int i = 0; i < 16; i++) {
                long word = max ? ~s.word(i / 8) : s.word(i / 8);
                address[i] = (byte) (word >>> 56 - 8 * (i % 8));
            }
            return address;
        }
        // No packet has the time that all bits are.
        boolean untimed = s.kind() == State.LEAST && result.type == Part.Type.TIME && s.word(0) == -1;
        if (s.kind() == State.LEAST_SEEN && s.word(1) == 0 || untimed) {
            return null;
        }
        return number(result.type, max ? ~s.word(0) : s.word(0));
    }

    /** The value that has these bits in a key. */
    private static Object number(Part.Type type, long ordered) {
        switch (type) {
            case FLOAT:
                return Double.longBitsToDouble(Part.unordered(ordered));
            case MAC:
                return ordered;
            default:
                return ordered ^ Long.MIN_VALUE;
        }
    }

    private Object spread(ResultPlan result, WordsState s) {
        long n = s.word(0);
        if (n == 0 || n == 1) {
            return null;
        }
        double variance;
        if (s.kind() == State.SPREAD_FLOAT) {
            variance = Double.longBitsToDouble(s.word(2)) / WordsState.count(n - 1);
        } else {
            BigInteger sum = s.wide(1);
            BigInteger apart = WordsState.unsigned(n).multiply(s.wider(3)).subtract(sum.pow(2));
            variance = apart.mod(U256).doubleValue();
            variance = variance / WordsState.count(n) / WordsState.count(n - 1);
        }
        if (result.function.equals("variance")) {
            return finite(variance);
        }
        double root = Math.sqrt(variance);
        if (result.type == Part.Type.DURATION) {
            return root < 0x1p63 ? (Object) (long) root : outside();
        }
        return finite(root);
    }

    private Object counted(ResultPlan result, CountsState s) {
        if (result.function.equals("distinct")) {
            // Values that are counted anyway are not kept a second time.
            return (long) s.counts().size();
        }
        if (s.counts().isEmpty()) {
            return null;
        }
        switch (result.function) {
            case "entropy":
                return entropy(s);
            case "frequent":
                return frequent(s, result.number);
            case "histogram":
                return frequent(s, 0);
            case "quantile_millionths":
                return quantile(result, s);
            case "mad":
                return deviation(result, s);
            default:
                throw new IllegalArgumentException("`" + result.function + "` is not known here");
        }
    }

    private static double entropy(CountsState s) {
        long[] counts = s.counts().values().stream().mapToLong(Long::longValue).toArray();
        long total = 0;
        List<Long> all = new ArrayList<>();
        for (long count : counts) {
            total = plus(total, count);
            all.add(count);
        }
        all.sort(Long::compareUnsigned);
        double n = WordsState.count(total);
        double sum = 0;
        for (long count : all) {
            double c = WordsState.count(count);
            sum += c / n * Log2.of(n / c);
        }
        return sum;
    }

    private Object frequent(CountsState s, long most) {
        List<Map.Entry<Bytes, Long>> all = new ArrayList<>(s.counts().entrySet());
        Comparator<Map.Entry<Bytes, Long>> byValue = Map.Entry.comparingByKey();
        Comparator<Map.Entry<Bytes, Long>> byCount =
                (a, b) -> Long.compareUnsigned(b.getValue(), a.getValue());
        all.sort(most > 0 ? byCount.thenComparing(byValue) : byValue);
        StringBuilder text = new StringBuilder();
        int bytes = 0;
        for (Map.Entry<Bytes, Long> entry : all.subList(0, most(all.size(), most))) {
            String blank = text.length() == 0 ? "" : " ";
            Part.Type type = s.column().types.get(0);
            String shown = blank + Text.of(type, value(type, entry.getKey())) + "="
                    + Long.toUnsignedString(entry.getValue());
            bytes += shown.getBytes(StandardCharsets.UTF_8).length;
            if (bytes > TEXT_MAX) {
                return outside();
            }
            text.append(shown);
        }
        return text.toString();
    }

    private static int most(int size, long most) {
        return most > 0 ? (int) Math.min(size, most) : size;
    }

    private static Object value(Part.Type type, Bytes written) {
        try {
            return Part.read(type, new ByteReader(written.all()), "a value");
        } catch (Unreadable e) {
            throw new IllegalStateException("it was read before", e);
        }
    }

    /** Numbers with how often each came, as in a key, ascending. */
    private static List<long[]> ordered(CountsState s) {
        List<long[]> all = new ArrayList<>();
        s.counts().forEach((value, times) -> all.add(new long[] {word(value), times}));
        all.sort((a, b) -> Long.compareUnsigned(a[0], b[0]));
        return all;
    }

    /** The eight bytes of a number after the byte that says that it is there. */
    private static long word(Bytes written) {
        long word = 0;
        for (int i = 1; i < written.all().length; i++) {
            word = word << 8 | written.all()[i] & 0xff;
        }
        return word;
    }

    private static Object quantile(ResultPlan result, CountsState s) {
        List<long[]> all = ordered(s);
        long n = 0;
        for (long[] one : all) {
            n = plus(n, one[1]);
        }
        BigInteger[] rank = WordsState.unsigned(n).multiply(BigInteger.valueOf(result.number))
                .divideAndRemainder(BigInteger.valueOf(1_000_000));
        long wanted = rank[0].longValue() + (rank[1].signum() > 0 ? 1 : 0);
        wanted = wanted == 0 ? 1 : Long.compareUnsigned(wanted, n) > 0 ? n : wanted;
        long found = at(all, wanted);
        if (s.isRounded()) {
            found = wanted == 1 ? s.least()
                    : wanted == n ? s.most()
                    : least(greatest(found, s.least()), s.most());
        }
        return number(result.type, found);
    }

    /** The value at a rank, from 1. */
    private static long at(List<long[]> rising, long rank) {
        long left = rank;
        for (long[] one : rising) {
            if (Long.compareUnsigned(left, one[1]) <= 0) {
                return one[0];
            }
            left -= one[1];
        }
        return rising.get(rising.size() - 1)[0];
    }

    private static Object deviation(ResultPlan result, CountsState s) {
        List<long[]> all = ordered(s);
        Object median = number(result.type, middle(all));
        for (long[] one : all) {
            Object value = number(result.type, one[0]);
            one[0] = result.type == Part.Type.FLOAT
                    ? Double.doubleToRawLongBits(Math.abs((Double) value - (Double) median))
                    : distance((Long) value, (Long) median);
        }
        all.sort((a, b) -> Long.compareUnsigned(a[0], b[0]));
        long distance = middle(all);
        return result.type == Part.Type.FLOAT
                ? (Object) Double.longBitsToDouble(distance)
                : (Object) distance;
    }

    private static long distance(long a, long b) {
        return a >= b ? a - b : b - a;
    }

    /** The value in the middle, of two the smaller. */
    private static long middle(List<long[]> rising) {
        long n = 0;
        for (long[] one : rising) {
            n = plus(n, one[1]);
        }
        return at(rising, Long.divideUnsigned(n, 2) + Long.remainderUnsigned(n, 2));
    }

    private static long plus(long a, long b) {
        return Long.compareUnsigned(a + b, a) < 0 ? -1L : a + b;
    }

    private static long least(long a, long b) {
        return Long.compareUnsigned(a, b) <= 0 ? a : b;
    }

    private static long greatest(long a, long b) {
        return Long.compareUnsigned(a, b) >= 0 ? a : b;
    }

    private Object finite(double value) {
        // The zero of a query has no sign.
        return Double.isFinite(value) ? (Object) (value + 0.0) : outside();
    }

    private Object outside() {
        undefined++;
        return null;
    }
}
