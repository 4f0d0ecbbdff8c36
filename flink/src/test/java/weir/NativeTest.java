package weir;

import java.util.List;
import java.util.Random;
import weir.engine.Tier;

/**
 * {@code NativeTest JOB}: what goes wrong in the engine is an exception, and the machine lives on.
 * Prints how many checks passed.
 */
public final class NativeTest {
    private static int passed;

    public static void main(String[] args) throws Exception {
        String job = java.nio.file.Files.readString(java.nio.file.Path.of(args[0]));
        fails("expected", () -> new Tier("no job", List.of("a"), false, false, null));
        fails("version 3", () -> new Tier("{\"version\":3,\"plan\":\"\"}", List.of("a"), false,
                false, null));
        fails("1 to", () -> new Tier(job, List.of(), false, false, null));
        fails("can't be read", () -> new Tier(job, List.of("a"), false, false, new byte[9]));
        fails("breaks off", () -> {
            try (Tier tier = new Tier(job, List.of("a"), false, false, null)) {
                tier.take(new byte[] {0, 0, 1}, lines -> { });
            }
        });
        // An exception that Java throws goes through.
        try (Tier tier = new Tier(job, List.of("a"), false, false, null)) {
            byte[] stranger = new byte[20];
            for (int i = 4; i < 20; i++) {
                stranger[i] = -1;
            }
            fails("not today", () -> tier.take(stranger, lines -> {
                throw new IllegalArgumentException("not today");
            }));
            fails("there is no merge", () -> tier.save());
        }
        // Hostile bytes, as records and as a state.
        Random random = new Random(7);
        Tier tier = new Tier(job, List.of("a"), false, false, null);
        byte[] state = tier.save();
        for (int round = 0; round < 20_000; round++) {
            byte[] record = new byte[random.nextInt(200)];
            random.nextBytes(record);
            for (int i = 0; i < Math.min(record.length, 20); i++) {
                record[i] = (byte) (i % 4 == 3 ? random.nextInt(3) : 0);
            }
            try {
                tier.take(record, lines -> { });
            } catch (IllegalStateException e) {
                tier = new Tier(job, List.of("a"), false, false, null);
            }
            byte[] damaged = state.clone();
            damaged[random.nextInt(damaged.length)] ^= (byte) (1 << random.nextInt(8));
            try {
                new Tier(job, List.of("a"), false, false, damaged).close();
            } catch (IllegalStateException e) {
                passed++;
            }
        }
        // A closed one may be closed again, and is no longer there.
        tier.close();
        tier.close();
        Tier closed = tier;
        fails("there is no merge", () -> closed.save());
        System.out.println(passed + " checks passed");
    }

    private static void fails(String why, Runnable what) {
        try {
            what.run();
        } catch (RuntimeException e) {
            if (e.getMessage().contains(why)) {
                passed++;
                return;
            }
            throw new AssertionError(e.getMessage() + ", not " + why, e);
        }
        throw new AssertionError("this does not fail: " + why);
    }
}
