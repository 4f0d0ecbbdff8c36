package weir.wire;

import java.io.ByteArrayOutputStream;

/**
 * Parts of keys and values of tuples: how each type is written. {@code memcmp} over these bytes is
 * the order of rows.
 */
public final class Part {
    private Part() {}

    /** Types of values, with the names that plans use. */
    public enum Type {
        BOOL, INT, FLOAT, STRING, BYTES, IP, MAC, TIME, DURATION;

        /** The type of this name. */
        public static Type of(String name) {
            for (Type type : values()) {
                if (type.name().equalsIgnoreCase(name)) {
                    return type;
                }
            }
            throw new IllegalArgumentException("no column has the type `" + name + "`");
        }
    }

    /**
     * Reads one part: {@code null} where it is absent, else a Boolean, a Long, a Double, the bytes
     * of a text as they are, or the 16 bytes of an address.
     */
    public static Object read(Type type, ByteReader from, String what) throws Unreadable {
        int there = from.u8(what);
        if (there == 0) {
            return null;
        }
        if (there != 1) {
            throw new Unreadable("a part of " + what + " can't begin with " + there);
        }
        return present(type, from, what);
    }

    /** Reads what stands after the first byte of a part that is there. */
    public static Object present(Type type, ByteReader from, String what) throws Unreadable {
        switch (type) {
            case BOOL: {
                int value = from.u8(what);
                if (value > 1) {
                    throw new Unreadable("a bool of " + what + " can't be " + value);
                }
                return value == 1;
            }
            case INT:
            case TIME:
            case DURATION:
                return from.bigEndian(8, what) ^ Long.MIN_VALUE;
            case FLOAT:
                return Double.longBitsToDouble(unordered(from.bigEndian(8, what)));
            case MAC:
                return from.bigEndian(6, what);
            case IP:
                return from.bytes(16, what);
            default:
                return text(from, what);
        }
    }

    private static byte[] text(ByteReader from, String what) throws Unreadable {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        while (true) {
            int b = from.u8(what);
            if (b == 0) {
                int next = from.u8(what);
                if (next == 0) {
                    return out.toByteArray();
                }
                if (next != 0xff) {
                    throw new Unreadable("a text of " + what + " has " + next + " after a zero");
                }
            }
            out.write(b);
        }
    }

    /** Writes a text as in a key, without the byte that says that it is there. */
    public static void writeText(byte[] text, ByteWriter out) {
        for (byte b : text) {
            out.u8(b);
            if (b == 0) {
                out.u8(0xff);
            }
        }
        out.u8(0);
        out.u8(0);
    }

    /** The bits of a float as a number of the same order, without a sign. */
    public static long ordered(long bits) {
        return bits ^ (bits >> 63 | Long.MIN_VALUE);
    }

    /** The bits that {@link #ordered} made a number of. */
    public static long unordered(long n) {
        return n ^ (~n >> 63 | Long.MIN_VALUE);
    }
}
