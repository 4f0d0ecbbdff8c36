package weir.state;

import java.util.List;
import weir.wire.Part;

/** A column of states: its kind, and the types of the values that it holds. */
public final class Column {
    /** The number of the kind, as docs/partials.md lists them. */
    public final int kind;
    /** Of a tuple those of its parts; of {@code min_by} that of {@code x}, then of {@code y}. */
    public final List<Part.Type> types;

    public Column(int kind, List<Part.Type> types) {
        this.kind = kind;
        this.types = List.copyOf(types);
    }
}
