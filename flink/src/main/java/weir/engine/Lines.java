package weir.engine;

/** Takes what a merge puts out. */
@FunctionalInterface
public interface Lines {
    /** The number of the output of events; rows have that of their pipeline, from 0. */
    int EVENTS = 0xffff;

    /**
     * Takes lines: of each the number of its output in two bytes, its length in four, and its
     * bytes.
     */
    void take(byte[] lines);
}
