package weir.rows;

import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import org.apache.flink.types.Row;

/** Cells as they lie in checkpoints: what they are, then the value. */
public final class Cells {
    private Cells() {}

    /** The cells of a row. */
    public static Object[] of(Row row) {
        Object[] cells = new Object[row.getArity()];
        for (int i = 0; i < cells.length; i++) {
            cells[i] = row.getField(i);
        }
        return cells;
    }

    public static void write(Object[] cells, DataOutputStream out) throws IOException {
        out.writeInt(cells.length);
        for (Object cell : cells) {
            write(cell, out);
        }
    }

    private static void write(Object cell, DataOutputStream out) throws IOException {
        if (cell == null) {
            out.writeByte(0);
        } else if (cell instanceof Long) {
            out.writeByte(1);
            out.writeLong((Long) cell);
        } else if (cell instanceof Double) {
            out.writeByte(2);
            out.writeLong(Double.doubleToRawLongBits((Double) cell));
        } else if (cell instanceof Boolean) {
            out.writeByte(3);
            out.writeBoolean((Boolean) cell);
        } else if (cell instanceof String) {
            out.writeByte(4);
            bytes(((String) cell).getBytes(StandardCharsets.UTF_8), out);
        } else {
            out.writeByte(5);
            bytes((byte[]) cell, out);
        }
    }

    private static void bytes(byte[] bytes, DataOutputStream out) throws IOException {
        out.writeInt(bytes.length);
        out.write(bytes);
    }

    public static Object[] readAll(DataInputStream in) throws IOException {
        Object[] cells = new Object[in.readInt()];
        for (int i = 0; i < cells.length; i++) {
            cells[i] = read(in);
        }
        return cells;
    }

    private static Object read(DataInputStream in) throws IOException {
        int kind = in.readByte();
        switch (kind) {
            case 0:
                return null;
            case 1:
                return in.readLong();
            case 2:
                return Double.longBitsToDouble(in.readLong());
            case 3:
                return in.readBoolean();
            case 4:
                return new String(in.readNBytes(in.readInt()), StandardCharsets.UTF_8);
            case 5:
                return in.readNBytes(in.readInt());
            default:
                throw new IOException("a cell of kind " + kind);
        }
    }
}
