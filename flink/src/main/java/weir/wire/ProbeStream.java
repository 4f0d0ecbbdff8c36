package weir.wire;

import java.io.Closeable;
import java.io.DataInputStream;
import java.io.IOException;
import java.io.InputStream;

/** Reads a probe stream: its head, then message after message. */
public final class ProbeStream implements Closeable {
    private final DataInputStream in;
    private final byte[] head;

    /** Reads the head. */
    public ProbeStream(InputStream from) throws IOException, Unreadable {
        in = new DataInputStream(from);
        byte[] begin = bytes(8);
        if (begin == null) {
            throw new Unreadable("the stream breaks off in its head");
        }
        ByteReader reader = new ByteReader(begin);
        reader.bytes(4, "the head");
        long len = reader.u32("the head");
        if (len > ProbeHead.BYTES_MAX) {
            throw new Unreadable("this is no probe stream, or its head is too long");
        }
        byte[] json = bytes((int) len);
        if (json == null) {
            throw new Unreadable("the stream breaks off in its head");
        }
        head = new byte[8 + json.length];
        System.arraycopy(begin, 0, head, 0, 8);
        System.arraycopy(json, 0, head, 8, json.length);
    }

    /** The bytes of the head. */
    public byte[] headBytes() {
        return head;
    }

    public ProbeHead head() throws Unreadable {
        return ProbeHead.read(new ByteReader(head));
    }

    /** The bytes of the next message; {@code null} at the end. */
    public byte[] next() throws IOException, Unreadable {
        byte[] len = bytes(4);
        if (len == null) {
            return null;
        }
        long n = new ByteReader(len).u32("the length of a message");
        if (n > Message.BYTES_MAX) {
            throw new Unreadable("a message of the stream can't have " + n + " bytes");
        }
        byte[] message = bytes((int) n);
        if (message == null) {
            throw new Unreadable("the stream breaks off in a message");
        }
        return message;
    }

    /** So many bytes; {@code null} where the stream ends before the first or among them. */
    private byte[] bytes(int n) throws IOException, Unreadable {
        byte[] all = in.readNBytes(n);
        if (all.length == n) {
            return all;
        }
        if (all.length > 0) {
            throw new Unreadable("the stream breaks off");
        }
        return null;
    }

    @Override
    public void close() throws IOException {
        in.close();
    }
}
