package weir.state;

import weir.wire.ByteReader;
import weir.wire.ByteWriter;
import weir.wire.Unreadable;

/**
 * The state of an aggregate for one group. Merging is associative and commutative (sums of floats:
 * up to rounding, which is why their packets are at one probe), and writing a state and reading it
 * again changes nothing.
 */
public abstract class State {
    /** The numbers of the kinds, as docs/partials.md lists them. */
    public static final int ADD = 1;
    public static final int ADD_SEEN = 2;
    public static final int WIDE = 3;
    public static final int WIDE_SEEN = 4;
    public static final int WIDE_COUNT = 5;
    public static final int FLOAT_SEEN = 6;
    public static final int FLOAT_COUNT = 7;
    public static final int LEAST = 8;
    public static final int LEAST_SEEN = 9;
    public static final int LEAST_PAIR = 10;
    public static final int OR = 11;
    public static final int OR_SEEN = 12;
    public static final int SPREAD = 13;
    public static final int SPREAD_FLOAT = 14;
    public static final int LEAST_TEXT = 15;
    public static final int GREATEST_TEXT = 16;
    public static final int FIRST = 17;
    public static final int LAST = 18;
    public static final int VALUES = 19;
    public static final int VALUES_OR_SKETCH = 20;
    public static final int SKETCH = 21;
    public static final int COUNTS = 22;
    public static final int ROUNDED_COUNTS = 23;
    public static final int NOTHING = 26;
    public static final int LEAST_BY = 28;
    public static final int GREATEST_BY = 29;

    /** Takes another state of the same column in; the other is not changed. */
    public abstract void merge(State other);

    /** A state that shares nothing with this one that either may change. */
    public abstract State copy();

    /** Writes the state as a message has it. */
    public abstract void write(ByteWriter out);

    /** Whether states of this kind are read and merged here. */
    public static boolean isKnown(int kind) {
        return kind >= ADD && kind <= ROUNDED_COUNTS || kind == NOTHING || kind == LEAST_BY
                || kind == GREATEST_BY;
    }

    /** Reads the state of one group. */
    public static State read(Column column, ByteReader from, String what) throws Unreadable {
        switch (column.kind) {
            case LEAST_TEXT:
            case GREATEST_TEXT:
                return TextState.take(column, from, what);
            case FIRST:
            case LAST:
                return FirstLastState.take(column, from, what);
            case VALUES:
                return ValuesState.take(column, from, what);
            case VALUES_OR_SKETCH:
            case SKETCH:
                return SketchState.take(column, from, what);
            case COUNTS:
            case ROUNDED_COUNTS:
                return CountsState.take(column, from, what);
            case NOTHING:
                return new NoState();
            case LEAST_BY:
            case GREATEST_BY:
                return ByState.take(column, from, what);
            default:
                return WordsState.take(column, from, what);
        }
    }

    /** The state of a group without rows. */
    public static State fresh(Column column) {
        switch (column.kind) {
            case LEAST_TEXT:
            case GREATEST_TEXT:
                return new TextState(column, null);
            case FIRST:
            case LAST:
                return new FirstLastState(column, null, 0, 0);
            case VALUES:
                return new ValuesState();
            case VALUES_OR_SKETCH:
            case SKETCH:
                return new SketchState(column);
            case COUNTS:
            case ROUNDED_COUNTS:
                return new CountsState(column);
            case NOTHING:
                return new NoState();
            case LEAST_BY:
            case GREATEST_BY:
                return new ByState(column, null, null);
            default:
                return WordsState.none(column.kind);
        }
    }

    /** A sum without a sign that sticks at the top. */
    static long saturating(long a, long b) {
        long sum = a + b;
        return Long.compareUnsigned(sum, a) < 0 ? -1L : sum;
    }
}
