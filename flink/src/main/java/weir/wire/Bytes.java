package weir.wire;

import java.util.Arrays;

/** Bytes as a key: equal where all are, in the order of unsigned bytes. */
public final class Bytes implements Comparable<Bytes> {
    private final byte[] all;
    private final int hash;

    public Bytes(byte[] all) {
        this.all = all;
        this.hash = Arrays.hashCode(all);
    }

    public byte[] all() {
        return all;
    }

    @Override
    public int compareTo(Bytes other) {
        return Arrays.compareUnsigned(all, other.all);
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof Bytes && Arrays.equals(all, ((Bytes) other).all);
    }

    @Override
    public int hashCode() {
        return hash;
    }
}
