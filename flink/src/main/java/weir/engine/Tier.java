package weir.engine;

import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

/** The merge of a job, and all stages above it. The thread that makes it calls it. */
public final class Tier implements AutoCloseable {
    private final long handle;

    /** One that goes on from a state, or begins where that is {@code null}. */
    public Tier(String job, List<String> probes, boolean bounded, boolean copies, byte[] state) {
        handle = Native.open(job, String.join("\n", probes), bounded, copies, state);
    }

    /** Counts of what became of records and groups since the job began. */
    public record Counts(long repeated, long missing, long refused, long late) {
        static Counts of(long[] all) {
            return new Counts(all[0], all[1], all[2], all[3]);
        }
    }

    /** Takes a record. */
    public Counts take(byte[] record, Lines to) {
        return Counts.of(Native.take(handle, record, to));
    }

    /** Ends the input: all windows close. Nothing is taken after that. */
    public Counts finish(Lines to) {
        return Counts.of(Native.finish(handle, to));
    }

    /** All that it holds. */
    public byte[] save() {
        return Native.save(handle);
    }

    /** How far probes are, as JSON by their names. */
    public Map<String, String> progress() {
        return new String(Native.progress(handle), StandardCharsets.UTF_8).lines()
                .map(line -> line.split("\t", 2))
                .collect(Collectors.toMap(line -> line[0], line -> line[1]));
    }

    @Override
    public void close() {
        Native.close(handle);
    }
}
