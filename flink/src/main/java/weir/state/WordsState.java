package weir.state;

import java.math.BigInteger;
import weir.wire.ByteReader;
import weir.wire.ByteWriter;
import weir.wire.Unreadable;

/** A state of a fixed number of words of 64 bits: sums, extremes, bits, spreads. */
public final class WordsState extends State {
    private final int kind;
    private final long[] words;

    private WordsState(int kind, long[] words) {
        this.kind = kind;
        this.words = words;
    }

    static int words(int kind) {
        switch (kind) {
            case ADD:
            case LEAST:
            case OR:
                return 1;
            case ADD_SEEN:
            case WIDE:
            case FLOAT_SEEN:
            case FLOAT_COUNT:
            case LEAST_SEEN:
            case OR_SEEN:
                return 2;
            case WIDE_SEEN:
            case WIDE_COUNT:
            case LEAST_PAIR:
            case SPREAD_FLOAT:
                return 3;
            case SPREAD:
                return 6;
            default:
                throw new IllegalArgumentException("states of kind " + kind + " are no words");
        }
    }

    static WordsState none(int kind) {
        long[] words = new long[words(kind)];
        if (kind == LEAST || kind == LEAST_SEEN || kind == LEAST_PAIR) {
            words[0] = -1;
        }
        if (kind == LEAST_PAIR) {
            words[1] = -1;
        }
        return new WordsState(kind, words);
    }

    static WordsState take(Column column, ByteReader from, String what) throws Unreadable {
        // Taken into a fresh state, since 0.0 and -0.0 add up to 0.0.
        WordsState state = none(column.kind);
        long[] words = new long[state.words.length];
        for (int i = 0; i < words.length; i++) {
            words[i] = from.i64(what);
        }
        state.merge(new WordsState(column.kind, words));
        return state;
    }

    /** The number of its kind. */
    public int kind() {
        return kind;
    }

    /** Word number {@code i}. */
    public long word(int i) {
        return words[i];
    }

    /** Two words as a number with a sign, the lower one first. */
    public BigInteger wide(int low) {
        return BigInteger.valueOf(words[low + 1]).shiftLeft(64).or(unsigned(words[low]));
    }

    /** Three words as a number without a sign, the lowest first. */
    public BigInteger wider(int low) {
        return unsigned(words[low + 2]).shiftLeft(128).or(unsigned(words[low + 1]).shiftLeft(64))
                .or(unsigned(words[low]));
    }

    /** A word as a number without a sign. */
    public static BigInteger unsigned(long word) {
        BigInteger low = BigInteger.valueOf(word & Long.MAX_VALUE);
        return word < 0 ? low.setBit(63) : low;
    }

    @Override
    public void merge(State other) {
        long[] from = ((WordsState) other).words;
        switch (kind) {
            case ADD:
                words[0] = saturating(words[0], from[0]);
                break;
            case ADD_SEEN:
                words[0] = saturating(words[0], from[0]);
                words[1] |= from[1];
                break;
            case WIDE:
                addWide(0, from, 2);
                break;
            case WIDE_SEEN:
                addWide(0, from, 2);
                words[2] |= from[2];
                break;
            case WIDE_COUNT:
                addWide(0, from, 2);
                words[2] = saturating(words[2], from[2]);
                break;
            case FLOAT_SEEN:
                addFloat(from[0]);
                words[1] |= from[1];
                break;
            case FLOAT_COUNT:
                addFloat(from[0]);
                words[1] = saturating(words[1], from[1]);
                break;
            case LEAST:
                words[0] = least(words[0], from[0]);
                break;
            case LEAST_SEEN:
                words[0] = least(words[0], from[0]);
                words[1] |= from[1];
                break;
            case LEAST_PAIR:
                leastPair(from);
                break;
            case OR:
                words[0] |= from[0];
                break;
            case OR_SEEN:
                words[0] |= from[0];
                words[1] |= from[1];
                break;
            case SPREAD:
                words[0] = saturating(words[0], from[0]);
                addWide(1, from, 2);
                addWide(3, from, 3);
                break;
            default:
                mergeSpread(from);
        }
    }

    /** Adds numbers of so many words, which wrap. */
    private void addWide(int at, long[] from, int n) {
        long carry = 0;
        for (int i = at; i < at + n; i++) {
            long sum = words[i] + from[i];
            long next = Long.compareUnsigned(sum, words[i]) < 0 ? 1 : 0;
            long all = sum + carry;
            next += Long.compareUnsigned(all, sum) < 0 ? 1 : 0;
            words[i] = all;
            carry = next;
        }
    }

    private void addFloat(long bits) {
        double sum = Double.longBitsToDouble(words[0]) + Double.longBitsToDouble(bits);
        words[0] = Double.doubleToRawLongBits(sum);
    }

    private static long least(long a, long b) {
        return Long.compareUnsigned(a, b) <= 0 ? a : b;
    }

    private void leastPair(long[] from) {
        int high = Long.compareUnsigned(from[0], words[0]);
        if (high < 0 || high == 0 && Long.compareUnsigned(from[1], words[1]) < 0) {
            words[0] = from[0];
            words[1] = from[1];
        }
        words[2] |= from[2];
    }

    /** Chan, Golub and LeVeque (1979). */
    private void mergeSpread(long[] from) {
        if (words[0] == 0 || from[0] == 0) {
            if (words[0] == 0) {
                System.arraycopy(from, 0, words, 0, 3);
            }
            return;
        }
        double mine = count(words[0]);
        double theirs = count(from[0]);
        long n = saturating(words[0], from[0]);
        double mean = Double.longBitsToDouble(words[1]);
        double share = theirs / count(n);
        double apart = Double.longBitsToDouble(from[1]) - mean;
        double spread = Double.longBitsToDouble(words[2]);
        spread += Double.longBitsToDouble(from[2]) + apart * apart * share * mine;
        words[0] = n;
        words[1] = Double.doubleToRawLongBits(mean + apart * share);
        words[2] = Double.doubleToRawLongBits(spread);
    }

    /** A count without a sign as the nearest float. */
    public static double count(long n) {
        return n >= 0 ? (double) n : unsigned(n).doubleValue();
    }

    @Override
    public WordsState copy() {
        return new WordsState(kind, words.clone());
    }

    @Override
    public void write(ByteWriter out) {
        for (long word : words) {
            out.i64(word);
        }
    }
}
