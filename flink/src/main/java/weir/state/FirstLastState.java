package weir.state;

import java.util.Arrays;
import weir.wire.ByteReader;
import weir.wire.ByteWriter;
import weir.wire.Part;
import weir.wire.Unreadable;

/** The value of the first or the last row. */
public final class FirstLastState extends State {
    private final Column column;
    /** The value as in a key; {@code null}: there was no row. */
    private byte[] value;
    private long time;
    private long number;

    FirstLastState(Column column, byte[] value, long time, long number) {
        this.column = column;
        this.value = value;
        this.time = time;
        this.number = number;
    }

    static FirstLastState take(Column column, ByteReader from, String what) throws Unreadable {
        int place = from.place();
        Object value = Part.read(column.types.get(0), from, what);
        if (value == null) {
            return new FirstLastState(column, null, 0, 0);
        }
        byte[] bytes = from.since(place);
        long time = from.i64(what);
        long number = from.i64(what);
        if (number == -1) {
            throw new Unreadable("a row of " + what + " can't have the largest number");
        }
        return new FirstLastState(column, bytes, time, number);
    }

    /** The value, or {@code null}. */
    public Object value() {
        return valueOf(column.types.get(0), value);
    }

    static Object valueOf(Part.Type type, byte[] written) {
        try {
            return written == null ? null : Part.read(type, new ByteReader(written), "a state");
        } catch (Unreadable e) {
            throw new IllegalStateException("it was read before", e);
        }
    }

    @Override
    public void merge(State other) {
        FirstLastState theirs = (FirstLastState) other;
        if (theirs.value == null || value != null && !theirs.wins(this)) {
            return;
        }
        value = theirs.value;
        time = theirs.time;
        number = theirs.number;
    }

    private boolean wins(FirstLastState held) {
        int order = Long.compareUnsigned(time, held.time);
        order = order != 0 ? order : Long.compareUnsigned(number, held.number);
        if (order != 0) {
            return order < 0 == (column.kind == FIRST);
        }
        return compareWords(column.types.get(0), value, held.value) < 0;
    }

    /** Which of two values is the smaller one: numbers by their bits without a sign, as in Weir. */
    private static int compareWords(Part.Type type, byte[] a, byte[] b) {
        switch (type) {
            case INT:
            case TIME:
            case DURATION:
                return Long.compareUnsigned((Long) valueOf(type, a), (Long) valueOf(type, b));
            case FLOAT:
                return Long.compareUnsigned(
                        Double.doubleToRawLongBits((Double) valueOf(type, a)),
                        Double.doubleToRawLongBits((Double) valueOf(type, b)));
            default:
                return Arrays.compareUnsigned(a, b);
        }
    }

    @Override
    public FirstLastState copy() {
        return new FirstLastState(column, value, time, number);
    }

    @Override
    public void write(ByteWriter out) {
        if (value == null) {
            out.u8(0);
            return;
        }
        out.bytes(value);
        out.i64(time);
        out.i64(number);
    }
}
