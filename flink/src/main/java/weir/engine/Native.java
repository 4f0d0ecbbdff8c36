package weir.engine;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.Locale;

/**
 * The engine of Weir, by a library of the jar ({@code crates/native}). A call that fails there is
 * an {@link IllegalStateException} here, and its handle is closed.
 */
final class Native {
    static {
        load();
    }

    private Native() {}

    /**
     * A merge, by its number: of a job as {@code weir cluster submit} writes it, over probes by
     * line; {@code copies} asks for lines of COPY, not of JSON. It goes on from a state, unless
     * that is {@code null}.
     */
    static native long open(String job, String probes, boolean bounded, boolean copies,
            byte[] state);

    /** Takes a record. Counts since the job began: repeated, missing, refused, late. */
    static native long[] take(long handle, byte[] record, Lines to);

    /** Ends the input. */
    static native long[] finish(long handle, Lines to);

    /** All that it holds. */
    static native byte[] save(long handle);

    /** How far probes are: a line for each, its name, a tab, and JSON. */
    static native byte[] progress(long handle);

    /** Lets it go; one that is gone is no error. */
    static native void close(long handle);

    /**
     * Loads the library for this machine. Each class loader takes a copy of its own, since a
     * library is loaded by one at a time.
     */
    private static void load() {
        String machine = System.getProperty("os.name").toLowerCase(Locale.ROOT) + "-"
                + switch (System.getProperty("os.arch")) {
                    case "amd64", "x86_64" -> "x86_64";
                    case "arm64", "aarch64" -> "aarch64";
                    default -> System.getProperty("os.arch");
                };
        String place = "/native/" + machine + "/libweir_native.so";
        try (InputStream library = Native.class.getResourceAsStream(place)) {
            if (library == null) {
                throw new UnsatisfiedLinkError("the jar of the job has no engine for " + machine
                        + ", the machine of this task manager: build the jar on such a machine"
                        + " (cluster/flink.sh jar), which has " + place + " then");
            }
            Path copy = Files.createTempFile("weir-native-", ".so");
            try {
                Files.copy(library, copy, StandardCopyOption.REPLACE_EXISTING);
                System.load(copy.toString());
            } finally {
                // The loaded library stays there without its name.
                Files.deleteIfExists(copy);
            }
        } catch (IOException e) {
            throw new UnsatisfiedLinkError("the engine can't be copied out of the jar of the job: "
                    + e);
        }
    }
}
