package weir;

import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Random;
import org.apache.datasketches.hll.HllSketch;
import org.apache.datasketches.hll.TgtHllType;
import weir.merge.Merger;
import weir.merge.Partial;
import weir.merge.ProbeLives;
import weir.plan.JobPlan;
import weir.plan.NodePlan;
import weir.rows.Text;
import weir.state.Column;
import weir.state.State;
import weir.wire.ByteReader;
import weir.wire.ByteWriter;
import weir.wire.Message;
import weir.wire.Part;
import weir.wire.ProbeHead;
import weir.wire.Unreadable;

/**
 * {@code WireTest DOCS PLAN}: reads the messages of docs/partials.md, and many that differ from
 * them a little; the plan is that of the query there.
 */
public final class WireTest {
    private static int checks;

    public static void main(String[] args) throws Exception {
        List<byte[]> messages = messages(Files.readString(Path.of(args[0])));
        JobPlan plan = JobPlan.read(Files.readString(Path.of(args[1])));
        check(5, messages.size());
        example(messages, plan);
        merged(messages, plan);
        mutated(messages, plan);
        heads();
        states();
        lives(messages);
        windows(plan.nodes.get(0));
        texts();
        System.out.println(checks + " checks passed");
    }

    private static void check(Object expected, Object found) {
        checks++;
        if (!String.valueOf(expected).equals(String.valueOf(found))) {
            throw new AssertionError("expected " + expected + ", found " + found);
        }
    }

    /** The hexadecimal blocks: each is a message. */
    private static List<byte[]> messages(String docs) {
        List<byte[]> all = new ArrayList<>();
        String[] blocks = docs.split("```hex\n");
        for (String block : Arrays.asList(blocks).subList(1, blocks.length)) {
            StringBuilder digits = new StringBuilder();
            for (String line : block.substring(0, block.indexOf("```")).split("\n")) {
                digits.append(line.split("\\|")[0].replace(" ", ""));
            }
            all.add(HexFormat.of().parseHex(digits));
        }
        return all;
    }

    private static void example(List<byte[]> messages, JobPlan plan) throws Unreadable {
        Message counts = Message.read(messages.get(0));
        check("{received=31, processed=31}", counts.counts);
        check(2, counts.epoch);
        check(plan.fingerprint, counts.fingerprint);
        check(Message.Kind.CLOSED, Message.read(messages.get(1)).kind);
        Message window = Message.read(messages.get(2));
        check(2, window.number);
        check("2026-11-21T05:00:00Z", Text.time(window.time));
        check(2, Merger.groups(plan, Message.read(messages.get(2))).size());
        check(Message.Kind.CLOCK, Message.read(messages.get(3)).kind);
        check(1, Message.read(messages.get(4)).reason);
    }

    private static void merged(List<byte[]> messages, JobPlan plan) throws Unreadable {
        String probe = Message.read(messages.get(0)).probe;
        Merger merger = new Merger(plan, List.of(probe));
        List<String> rows = new ArrayList<>();
        Merger.RowSink sink = (node, row) -> rows.add(Text.json(node.columns, row, null));
        for (int round = 0; round < 2; round++) {
            for (byte[] message : messages) {
                merger.take(Message.read(message), sink);
            }
        }
        merger.finish(sink);
        check(5, merger.repeated());
        check("[{\"ts\":\"2026-11-21T05:00:00Z\",\"ip.src\":\"192.0.2.1\",\"packets\":4,"
                + "\"ports\":1},"
                + " {\"ts\":\"2026-11-21T05:00:00Z\",\"ip.src\":\"192.0.2.66\",\"packets\":4,"
                + "\"ports\":1}]", rows);
    }

    /** Any bytes are a message, or unreadable; groups that can be read can be written and read. */
    private static void mutated(List<byte[]> messages, JobPlan plan) throws Unreadable {
        Random random = new Random(7);
        int[] outcomes = new int[2];
        for (int i = 0; i < 200_000; i++) {
            byte[] bytes = messages.get(random.nextInt(messages.size())).clone();
            int changes = 1 + random.nextInt(3);
            for (int c = 0; c < changes; c++) {
                bytes = mutated(bytes, random);
            }
            try {
                Message message = Message.read(bytes);
                for (Partial group : Merger.groups(plan, message)) {
                    again(plan.nodes.get(group.node), group);
                }
                outcomes[0]++;
            } catch (Unreadable e) {
                outcomes[1]++;
            }
        }
        check(true, outcomes[0] > 1000 && outcomes[1] > 1000);
        check("the message has version `WPR3` of the format, and this job reads `WPR2`",
                fault("WPR3".getBytes(StandardCharsets.US_ASCII)));
        check("the message breaks off in its first four bytes", fault(new byte[0]));
        byte[] other = messages.get(2).clone();
        other[4] ^= 1;
        try {
            Merger.groups(plan, Message.read(other));
            throw new AssertionError("a message of another query was taken");
        } catch (Unreadable e) {
            check(true, e.getMessage().contains("run the same query"));
        }
    }

    private static byte[] mutated(byte[] bytes, Random random) {
        int[] edges = {0, 1, 2, 0x7f, 0x80, 0xfe, 0xff};
        int at = random.nextInt(Math.max(1, bytes.length));
        switch (random.nextInt(4)) {
            case 0:
                return Arrays.copyOf(bytes, at);
            case 1: {
                byte[] longer = Arrays.copyOf(bytes, bytes.length + 1 + random.nextInt(9));
                longer[bytes.length] = (byte) random.nextInt();
                return longer;
            }
            case 2:
                if (bytes.length > 0) {
                    bytes[at] = (byte) edges[random.nextInt(edges.length)];
                }
                return bytes;
            default:
                if (bytes.length > 0) {
                    bytes[at] ^= 1 << random.nextInt(8);
                }
                return bytes;
        }
    }

    private static void again(NodePlan node, Partial group) throws Unreadable {
        for (int i = 0; i < group.states.length; i++) {
            ByteWriter first = new ByteWriter();
            group.states[i].write(first);
            ByteReader from = new ByteReader(first.done());
            State read = State.read(node.states().get(i), from, "a state");
            from.end("a state");
            ByteWriter second = new ByteWriter();
            read.write(second);
            if (!Arrays.equals(first.done(), second.done())) {
                throw new AssertionError("a state changed when it was written and read");
            }
        }
    }

    /** Any bytes are a state, or unreadable, of each kind; sketches are changed a little, too. */
    private static void states() throws Unreadable {
        Random random = new Random(9);
        int read = 0;
        for (int kind = 1; kind < 30; kind++) {
            if (!State.isKnown(kind)) {
                continue;
            }
            Column column = new Column(kind, List.of(Part.Type.INT, Part.Type.STRING));
            for (int i = 0; i < 5_000; i++) {
                byte[] bytes = new byte[random.nextInt(120)];
                for (int at = 0; at < bytes.length; at++) {
                    bytes[at] = (byte) (random.nextInt(3) == 0 ? random.nextInt() : at % 5 / 4);
                }
                read += again(column, bytes);
            }
        }
        check(true, read > 1000);
        Column column = new Column(State.SKETCH, List.of(Part.Type.INT));
        read = 0;
        for (int size : new int[] {0, 1, 7, 8, 100, 400, 5_000}) {
            HllSketch sketch = new HllSketch(12, TgtHllType.HLL_8);
            for (long i = 0; i < size; i++) {
                sketch.update(i);
            }
            byte[] bytes = sketch.toCompactByteArray();
            for (int i = 0; i < 3_000; i++) {
                byte[] changed = i == 0 ? bytes : mutated(bytes.clone(), random);
                ByteWriter out = new ByteWriter();
                out.u32(changed.length);
                out.bytes(changed);
                read += again(column, out.done());
            }
        }
        check(true, read >= 7);
    }

    /** 1 if bytes are a state, which then can be written and read again. */
    private static int again(Column column, byte[] bytes) throws Unreadable {
        State state;
        try {
            state = State.read(column, new ByteReader(bytes), "a state");
        } catch (Unreadable e) {
            return 0;
        }
        State.fresh(column).merge(state);
        state.merge(state.copy());
        ByteWriter out = new ByteWriter();
        state.write(out);
        State.read(column, new ByteReader(out.done()), "a state");
        return 1;
    }

    private static String fault(byte[] bytes) {
        try {
            Message.read(bytes);
            return "none";
        } catch (Unreadable e) {
            return e.getMessage();
        }
    }

    private static byte[] head(String json) {
        ByteWriter out = new ByteWriter();
        out.bytes("WPS1".getBytes(StandardCharsets.US_ASCII));
        out.u32(json.length());
        out.bytes(json.getBytes(StandardCharsets.US_ASCII));
        return out.done();
    }

    private static void heads() throws Unreadable {
        String json = "{\"probe\":\"north\",\"epoch\":18446744073709551615,\"weir\":\"1\","
                + "\"fingerprint\":\"00\",\"rules\":{\"headers\":\"outer\",\"fragments\":true,"
                + "\"lateness_ns\":0},\"more\":[1]}";
        byte[] good = head(json);
        ProbeHead head = ProbeHead.read(new ByteReader(good));
        check("north -1 false", head.probe + " " + head.epoch + " " + head.isUnsynchronised);
        for (String error : new String[] {"0", "18446744073709551615", "null"}) {
            String clock = "\"clock\":{\"max_error_us\":" + error + "},\"more\"";
            byte[] bytes = head(json.replace("\"more\"", clock));
            boolean isUnsynchronised = ProbeHead.read(new ByteReader(bytes)).isUnsynchronised;
            check(error.equals("null"), isUnsynchronised);
        }
        check("6c62272e07bb014262b821756295c58d", ProbeHead.numberOf(""));
        Random random = new Random(8);
        int unreadable = 0;
        for (int i = 0; i < 50_000; i++) {
            try {
                ProbeHead.read(new ByteReader(mutated(mutated(good.clone(), random), random)));
            } catch (Unreadable e) {
                unreadable++;
            }
        }
        check(true, unreadable > 1000);
    }

    /** Repeats are dropped, what is missing is counted, a new life begins anew. */
    private static void lives(List<byte[]> messages) throws Unreadable {
        ProbeLives probe = new ProbeLives();
        check(true, probe.take(Message.read(messages.get(0))));
        check(false, probe.take(Message.read(messages.get(0))));
        check(true, probe.take(Message.read(messages.get(4))));
        check("3 false", probe.missing() + " " + probe.isWaitedFor());
        check(false, probe.take(Message.read(messages.get(1))));
        byte[] later = messages.get(1).clone();
        later[41]++;
        check(true, probe.take(Message.read(later)));
        check(true, probe.isWaitedFor());
        probe.retire();
        check(false, probe.isWaitedFor());
        check(Long.MIN_VALUE, ProbeLives.least(List.of(new ProbeLives(), probe)));
        check(probe.closed(), ProbeLives.least(List.of(probe)));
    }

    private static void windows(NodePlan hour) {
        long start = 3_600_000_000_000L;
        check("[" + start + "]", hour.windows(start));
        check(2 * start, hour.closesAt(start));
        check(start, hour.downstream(start + 1));
        check(0, hour.downstream(start - 1));
        check(-start, hour.downstream(-1));
        check(Long.MAX_VALUE, hour.closesAt(Long.MAX_VALUE - 1));
    }

    private static void texts() {
        check("0.1 1.0 1e16 1.5e-5 0.0001 123456.789 5e-324 1.7976931348623157e308 -0.0",
                String.join(" ", Text.shortest(0.1), Text.shortest(1), Text.shortest(1e16),
                        Text.shortest(1.5e-5), Text.shortest(1e-4), Text.shortest(123456.789),
                        Text.shortest(Double.MIN_VALUE), Text.shortest(Double.MAX_VALUE),
                        Text.shortest(-0.0)));
        check("1970-01-01T00:00:00.001Z 1969-12-31T23:59:59.999999999Z",
                Text.time(1_000_000) + " " + Text.time(-1));
        check("0 -1.5 0.000000001", Text.seconds(0) + " " + Text.seconds(-1_500_000_000L) + " "
                + Text.seconds(1));
        check("1500ms 2h 0s", Text.duration(1_500_000_000L) + " " + Text.duration(7200_000_000_000L)
                + " " + Text.duration(0));
        check("2001:db8::1 ::1 1:0:0:2::3 10.0.0.1", String.join(" ",
                address("20010db8", "00000001"), address("00000000", "00000001"),
                Text.address(HexFormat.of().parseHex("00010000000000020000000000000003")),
                Text.address(HexFormat.of().parseHex("00000000000000000000ffff0a000001"))));
        StringBuilder out = new StringBuilder();
        Text.string(out, "a\"\\\n\u0001é");
        check("\"a\\\"\\\\\\n\\u0001é\"", out);
    }

    private static String address(String first, String last) {
        return Text.address(HexFormat.of().parseHex(first + "0".repeat(16) + last));
    }
}
