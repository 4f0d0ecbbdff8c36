package weir.state;

import java.util.HashSet;
import java.util.Set;
import weir.wire.ByteReader;
import weir.wire.ByteWriter;
import weir.wire.Bytes;
import weir.wire.Part;
import weir.wire.Unreadable;

/** Different values. */
public final class ValuesState extends State {
    private final Set<Bytes> values;

    ValuesState() {
        this(new HashSet<>());
    }

    private ValuesState(Set<Bytes> values) {
        this.values = values;
    }

    static ValuesState take(Column column, ByteReader from, String what) throws Unreadable {
        ValuesState state = new ValuesState();
        Bytes before = null;
        long n = from.u32(what);
        for (long i = 0; i < n; i++) {
            before = next(column, from, before, what);
            state.values.add(before);
        }
        return state;
    }

    /** The next value, which is above the one before. */
    static Bytes next(Column column, ByteReader from, Bytes before, String what)
            throws Unreadable {
        int place = from.place();
        for (Part.Type type : column.types) {
            Part.read(type, from, what);
        }
        Bytes value = new Bytes(from.since(place));
        if (before != null && before.compareTo(value) >= 0) {
            throw new Unreadable("values of " + what + " do not rise");
        }
        return value;
    }

    Set<Bytes> values() {
        return values;
    }

    /** How many there are. */
    public long size() {
        return values.size();
    }

    @Override
    public void merge(State other) {
        values.addAll(((ValuesState) other).values);
    }

    @Override
    public ValuesState copy() {
        return new ValuesState(new HashSet<>(values));
    }

    @Override
    public void write(ByteWriter out) {
        out.u32(values.size());
        values.stream().sorted().forEach(value -> out.bytes(value.all()));
    }
}
