package weir.state;

import java.util.Arrays;
import weir.wire.ByteReader;
import weir.wire.ByteWriter;
import weir.wire.Part;
import weir.wire.Unreadable;

/** The least or the greatest text. */
public final class TextState extends State {
    private final Column column;
    /** {@code null}: there was none. */
    private byte[] text;

    TextState(Column column, byte[] text) {
        this.column = column;
        this.text = text;
    }

    static TextState take(Column column, ByteReader from, String what) throws Unreadable {
        return new TextState(column, (byte[]) Part.read(Part.Type.BYTES, from, what));
    }

    /** The bytes of the text, or {@code null}. */
    public byte[] text() {
        return text;
    }

    @Override
    public void merge(State other) {
        byte[] theirs = ((TextState) other).text;
        if (theirs == null) {
            return;
        }
        int order = text == null ? 0 : Arrays.compareUnsigned(theirs, text);
        if (text == null || (column.kind == GREATEST_TEXT ? order > 0 : order < 0)) {
            text = theirs;
        }
    }

    @Override
    public TextState copy() {
        return new TextState(column, text);
    }

    @Override
    public void write(ByteWriter out) {
        out.u8(text == null ? 0 : 1);
        if (text != null) {
            Part.writeText(text, out);
        }
    }
}
