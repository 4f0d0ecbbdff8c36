package weir.wire;

import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * A message of partial results, version 1, as docs/partials.md has it. Reading is total: any bytes
 * are a message or {@link Unreadable}.
 */
public final class Message {
    /** The most bytes that a message has: what readers of streams take. */
    public static final int BYTES_MAX = 268_435_456;

    /** The kinds of bodies, by their numbers. */
    public enum Kind {
        WINDOW(1), LOSSES(2), COUNTS(3), CLOSED(4), END(5), CLOCK(6);

        final int number;

        Kind(int number) {
            this.number = number;
        }
    }

    private static final int MAGIC = 4;
    private static final HexFormat HEX = HexFormat.of();

    /** Fingerprint of the computation: 32 hexadecimal digits, the highest first. */
    public final String fingerprint;
    /** The node in ten hexadecimal digits; ten {@code f} for all nodes. */
    public final String node;
    /** The number of the probe: 32 hexadecimal digits, the highest first. */
    public final String probe;
    /** Which life of the probe, 64 bits without a sign. */
    public final long epoch;
    /** The number in that life, 64 bits without a sign. */
    public final long number;
    public final Kind kind;
    /** Of a window, its start in nanoseconds; of {@code closed} the watermark. */
    public final long time;
    /** Of {@code end}: 1 the input ended, 2 the source failed. */
    public final int reason;
    /** Of a window: its groups, not yet read. */
    public final WindowGroups groups;
    /** Of losses: what was lost and seen since the last such message. */
    public final LossNews losses;
    /** Of counts: how many since the last such message, by name. */
    public final Map<String, Long> counts;

    /** All nodes. */
    public static final String ALL = "ffffffffff";

    private Message(ByteReader from) throws Unreadable {
        byte[] magic = from.bytes(MAGIC, "its first four bytes");
        String begins = new String(magic, StandardCharsets.ISO_8859_1);
        if (!begins.equals("WPR2")) {
            throw new Unreadable(begins.startsWith("WPR")
                    ? "the message has version `" + printable(begins)
                            + "` of the format, and this job reads `WPR2`"
                    : "this is no message of partial results: it begins with `"
                            + printable(begins) + "`, not `WPR2`");
        }
        fingerprint = u128(from);
        node = HEX.formatHex(from.bytes(5, "its head"));
        probe = u128(from);
        epoch = from.i64("its head");
        number = from.i64("its head");
        kind = kind(from.u8("its head"));
        time = switch (kind) {
            case WINDOW -> from.i64("the groups of a window");
            case CLOSED -> from.i64("its watermark");
            default -> 0;
        };
        groups = kind == Kind.WINDOW ? new WindowGroups(from) : null;
        losses = kind == Kind.LOSSES ? losses(from) : null;
        counts = kind == Kind.COUNTS ? counts(from) : Map.of();
        reason = kind == Kind.END ? from.u8("its reason") : 0;
        if (kind == Kind.CLOCK) {
            // Nothing that a job computes depends on where the clock of a probe stands at its end.
            from.i64("its times");
            int times = from.u8("its times");
            if (times > 3) {
                throw new Unreadable("the number of times of the message can't be " + times);
            }
            from.bytes(8 * times, "its times");
        }
        if (kind == Kind.END && reason != 1 && reason != 2) {
            throw new Unreadable("the reason of the message can't be " + reason);
        }
        from.end("the message");
    }

    /** Whether it says that the input ended, not that its source failed. */
    public boolean inputEnded() {
        return reason == 1;
    }

    /** Whether bytes begin as a message does, of whatever version. */
    public static boolean isMessage(byte[] bytes) {
        return bytes.length >= 3 && bytes[0] == 'W' && bytes[1] == 'P' && bytes[2] == 'R';
    }

    /** Reads a message. */
    public static Message read(byte[] bytes) throws Unreadable {
        if (bytes.length > BYTES_MAX) {
            throw new Unreadable("the message has " + bytes.length + " bytes; at most " + BYTES_MAX
                    + " are read");
        }
        return new Message(new ByteReader(bytes));
    }

    private static Kind kind(int number) throws Unreadable {
        for (Kind kind : Kind.values()) {
            if (kind.number == number) {
                return kind;
            }
        }
        throw new Unreadable("the kind of the message can't be " + number);
    }

    private static String u128(ByteReader from) throws Unreadable {
        byte[] low = from.bytes(16, "its head");
        byte[] high = new byte[16];
        for (int i = 0; i < 16; i++) {
            high[i] = low[15 - i];
        }
        return HEX.formatHex(high);
    }

    private static LossNews losses(ByteReader from) throws Unreadable {
        String what = "its losses";
        List<LossNews.Gap> gaps = new ArrayList<>();
        for (long n = from.u32(what); n > 0; n--) {
            gaps.add(new LossNews.Gap(
                    from.i64(what), from.i64(what), from.i64(what), from.i64(what)));
        }
        List<LossNews.Pane> panes = new ArrayList<>();
        for (long n = from.u32(what); n > 0; n--) {
            panes.add(new LossNews.Pane(from.i64(what), from.i64(what)));
        }
        return new LossNews(gaps, panes);
    }

    private static Map<String, Long> counts(ByteReader from) throws Unreadable {
        Map<String, Long> counts = new LinkedHashMap<>();
        int n = from.u16("its counts");
        for (int i = 0; i < n; i++) {
            byte[] name = from.bytes(from.u8("its counts"), "its counts");
            try {
                ByteBuffer bytes = ByteBuffer.wrap(name);
                String text = StandardCharsets.UTF_8.newDecoder().decode(bytes).toString();
                counts.merge(text, from.i64("its counts"), Message::add);
            } catch (CharacterCodingException e) {
                throw new Unreadable("a name of the message is no UTF-8");
            }
        }
        return counts;
    }

    /** A sum without a sign that sticks at the top. */
    private static long add(long a, long b) {
        return Long.compareUnsigned(a + b, a) < 0 ? -1L : a + b;
    }

    static String printable(String text) {
        StringBuilder out = new StringBuilder();
        for (char c : text.toCharArray()) {
            boolean plain = c >= ' ' && c <= '~';
            out.append(plain ? String.valueOf(c) : String.format("\\x%02x", (int) c));
        }
        return out.toString();
    }

    /** What a probe reports of its losses. Numbers of frames have no sign. */
    public record LossNews(List<Gap> gaps, List<Pane> panes) {
        /** Frames that were lost between two times, found when the watermark was here. */
        public record Gap(long at, long since, long until, long frames) {}

        /** Frames that came in a pane. */
        public record Pane(long start, long frames) {}
    }

    /** The groups of a window as they came: keys, and of each column its kind and its bytes. */
    public static final class WindowGroups {
        private final List<byte[]> keys = new ArrayList<>();
        private final List<Integer> kinds = new ArrayList<>();
        private final List<ByteReader> columns = new ArrayList<>();

        private WindowGroups(ByteReader from) throws Unreadable {
            String what = "the groups of a window";
            long n = from.u32(what);
            // Each end takes four bytes, so that a large number breaks off before it costs memory.
            ByteReader ends = from.slice(4 * n, what);
            long before = 0;
            long[] all = new long[(int) n];
            for (int i = 0; i < n; i++) {
                all[i] = ends.u32(what);
                if (all[i] < before) {
                    throw new Unreadable("the end of a key of the message can't be " + all[i]);
                }
                before = all[i];
            }
            before = 0;
            for (long end : all) {
                keys.add(from.bytes(end - before, what));
                before = end;
            }
            int columns = from.u16(what);
            for (int i = 0; i < columns; i++) {
                kinds.add(from.u8(what));
                this.columns.add(from.slice(from.i64(what), what));
            }
        }

        public List<byte[]> keys() {
            return keys;
        }

        public int columns() {
            return columns.size();
        }

        public int kind(int column) {
            return kinds.get(column);
        }

        /** The states of a column; they are read once. */
        public ByteReader column(int column) {
            return columns.get(column);
        }
    }
}
