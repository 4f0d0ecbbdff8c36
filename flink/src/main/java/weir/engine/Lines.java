package weir.engine;

import java.nio.ByteBuffer;

/** Takes what a merge puts out. */
@FunctionalInterface
public interface Lines {
    /** The number of the output of events; rows have that of their pipeline, from 0. */
    int EVENTS = 0xffff;

    /**
     * Takes lines: of each the number of its output in two bytes, then its key and the line, each
     * after its length in four bytes.
     */
    void take(byte[] lines);

    /** Takes one of them; the key is empty where there is none. */
    @FunctionalInterface
    interface One {
        void take(int output, byte[] key, byte[] line);
    }

    /** The same for who wants one after the other. */
    static Lines each(One to) {
        return lines -> {
            ByteBuffer rest = ByteBuffer.wrap(lines);
            while (rest.hasRemaining()) {
                int output = Short.toUnsignedInt(rest.getShort());
                byte[] key = new byte[rest.getInt()];
                rest.get(key);
                byte[] line = new byte[rest.getInt()];
                rest.get(line);
                to.take(output, key, line);
            }
        };
    }
}
