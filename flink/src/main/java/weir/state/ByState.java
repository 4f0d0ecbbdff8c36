package weir.state;

import java.util.Arrays;
import weir.wire.ByteReader;
import weir.wire.ByteWriter;
import weir.wire.Part;
import weir.wire.Unreadable;

/** The value of the row with the least or the greatest other value: {@code min_by, max_by}. */
public final class ByState extends State {
    private final Column column;
    /** What the row is chosen by, as in a key; {@code null}: there was no row. */
    private byte[] by;
    private byte[] value;

    ByState(Column column, byte[] by, byte[] value) {
        this.column = column;
        this.by = by;
        this.value = value;
    }

    static ByState take(Column column, ByteReader from, String what) throws Unreadable {
        int place = from.place();
        if (Part.read(column.types.get(1), from, what) == null) {
            return new ByState(column, null, null);
        }
        byte[] by = from.since(place);
        place = from.place();
        if (Part.read(column.types.get(0), from, what) == null) {
            throw new Unreadable("a row of " + what + " has no value");
        }
        return new ByState(column, by, from.since(place));
    }

    /** The value, or {@code null}. */
    public Object value() {
        return FirstLastState.valueOf(column.types.get(0), value);
    }

    @Override
    public void merge(State other) {
        ByState theirs = (ByState) other;
        if (theirs.by == null) {
            return;
        }
        if (by != null) {
            int order = Arrays.compareUnsigned(theirs.by, by);
            order = column.kind == GREATEST_BY ? -order : order;
            order = order != 0 ? order : Arrays.compareUnsigned(theirs.value, value);
            if (order >= 0) {
                return;
            }
        }
        by = theirs.by;
        value = theirs.value;
    }

    @Override
    public ByState copy() {
        return new ByState(column, by, value);
    }

    @Override
    public void write(ByteWriter out) {
        if (by == null) {
            out.u8(0);
            return;
        }
        out.bytes(by);
        out.bytes(value);
    }
}
