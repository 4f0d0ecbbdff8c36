package weir.wire;

import java.util.Arrays;

/** Writes bytes, little-endian. */
public final class ByteWriter {
    private byte[] bytes = new byte[64];
    private int len;

    public void u8(int value) {
        room(1);
        bytes[len++] = (byte) value;
    }

    public void u32(long value) {
        for (int i = 0; i < 4; i++) {
            u8((int) (value >>> 8 * i));
        }
    }

    public void i64(long value) {
        room(8);
        for (int i = 0; i < 8; i++) {
            bytes[len++] = (byte) (value >>> 8 * i);
        }
    }

    public void bytes(byte[] more) {
        room(more.length);
        System.arraycopy(more, 0, bytes, len, more.length);
        len += more.length;
    }

    public byte[] done() {
        return Arrays.copyOf(bytes, len);
    }

    private void room(int n) {
        if (bytes.length - len < n) {
            bytes = Arrays.copyOf(bytes, Math.max(bytes.length * 2, len + n));
        }
    }
}
