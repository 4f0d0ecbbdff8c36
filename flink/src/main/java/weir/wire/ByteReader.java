package weir.wire;

import java.util.Arrays;

/**
 * Reads bytes from the front, little-endian. Nothing is read beyond the end: whoever asks for more
 * gets {@link Unreadable}, with the name of what breaks off.
 */
public final class ByteReader {
    private final byte[] bytes;
    private final int end;
    private int at;

    public ByteReader(byte[] bytes) {
        this(bytes, 0, bytes.length);
    }

    private ByteReader(byte[] bytes, int at, int end) {
        this.bytes = bytes;
        this.at = at;
        this.end = end;
    }

    /** How many bytes are left. */
    public int remaining() {
        return end - at;
    }

    /** Where the next byte is: a place for {@link #since}. */
    public int place() {
        return at;
    }

    /** The bytes from a place up to here. */
    public byte[] since(int place) {
        return Arrays.copyOfRange(bytes, place, at);
    }

    /** A reader of the next {@code n} bytes, which this one goes past. */
    public ByteReader slice(long n, String what) throws Unreadable {
        need(n, what);
        int from = at;
        at += (int) n;
        return new ByteReader(bytes, from, at);
    }

    /** The next {@code n} bytes. */
    public byte[] bytes(long n, String what) throws Unreadable {
        need(n, what);
        int from = at;
        at += (int) n;
        return Arrays.copyOfRange(bytes, from, at);
    }

    public int u8(String what) throws Unreadable {
        need(1, what);
        return bytes[at++] & 0xff;
    }

    public int u16(String what) throws Unreadable {
        return u8(what) | u8(what) << 8;
    }

    /** 32 bits without a sign. */
    public long u32(String what) throws Unreadable {
        return u16(what) | (long) u16(what) << 16;
    }

    /** 64 bits; with or without a sign is the caller's to know. */
    public long i64(String what) throws Unreadable {
        need(8, what);
        long word = 0;
        for (int i = 7; i >= 0; i--) {
            word = word << 8 | bytes[at + i] & 0xff;
        }
        at += 8;
        return word;
    }

    /** 64 bits whose first byte is the highest, as in keys. */
    public long bigEndian(int n, String what) throws Unreadable {
        need(n, what);
        long word = 0;
        for (int i = 0; i < n; i++) {
            word = word << 8 | bytes[at++] & 0xff;
        }
        return word;
    }

    /** Says that all has been read. */
    public void end(String what) throws Unreadable {
        if (at < end) {
            throw new Unreadable(what + " goes on for " + (end - at) + " bytes after its end");
        }
    }

    private void need(long n, String what) throws Unreadable {
        if (n < 0 || n > end - at) {
            throw new Unreadable("the message breaks off in " + what);
        }
    }
}
