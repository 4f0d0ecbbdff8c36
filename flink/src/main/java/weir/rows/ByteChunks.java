package weir.rows;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;

/**
 * Entries in arrays of some megabytes, as a checkpoint takes them: one array for everything could
 * not be longer than two gigabytes.
 */
public final class ByteChunks {
    private static final int CHUNK_BYTES = 4 << 20;

    /** What reads an entry. */
    public interface Reader {
        void read(DataInputStream in) throws IOException;
    }

    private final List<byte[]> chunks = new ArrayList<>();
    private ByteArrayOutputStream bytes;
    private DataOutputStream out;

    /** Where the next entry is written to; an entry is never cut. */
    public DataOutputStream entry() throws IOException {
        if (bytes != null && bytes.size() >= CHUNK_BYTES) {
            chunks.add(bytes.toByteArray());
            bytes = null;
        }
        if (bytes == null) {
            bytes = new ByteArrayOutputStream();
            out = new DataOutputStream(bytes);
            out.writeInt(chunks.size());
        }
        return out;
    }

    /** All that was written. */
    public List<byte[]> done() {
        if (bytes != null) {
            chunks.add(bytes.toByteArray());
            bytes = null;
        }
        return chunks;
    }

    /** Reads all entries in the order in which they were written. */
    public static void read(Iterable<byte[]> chunks, Reader reader) throws IOException {
        List<byte[]> sorted = new ArrayList<>();
        chunks.forEach(sorted::add);
        sorted.sort(Comparator.comparing(ByteChunks::number));
        for (byte[] chunk : sorted) {
            DataInputStream in = new DataInputStream(new ByteArrayInputStream(chunk));
            in.readInt();
            while (in.available() > 0) {
                reader.read(in);
            }
        }
    }

    private static int number(byte[] chunk) {
        try {
            return new DataInputStream(new ByteArrayInputStream(chunk)).readInt();
        } catch (IOException e) {
            throw new IllegalStateException("a chunk of state has no number", e);
        }
    }
}
