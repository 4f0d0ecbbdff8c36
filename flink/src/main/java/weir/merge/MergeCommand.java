package weir.merge;

import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.FileDescriptor;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import weir.plan.JobPlan;
import weir.plan.NodePlan;
import weir.rows.Text;
import weir.wire.Message;
import weir.wire.ProbeHead;
import weir.wire.ProbeStream;
import weir.wire.Unreadable;

/**
 * {@code MergeCommand PLAN STREAM...}: merges probe streams, and prints the rows of each node of
 * the plan as lines of JSON. With several nodes, {@code _pipeline} is their number.
 */
public final class MergeCommand {
    private final JobPlan plan;
    private final PrintStream out;
    /** By number of a probe its streams, the earliest life first. */
    private final Map<String, List<Life>> lanes = new TreeMap<>();
    private boolean broken;

    private static final class Life {
        final String name;
        final ProbeStream stream;
        final ProbeHead head;

        Life(String name, ProbeStream stream, ProbeHead head) {
            this.name = name;
            this.stream = stream;
            this.head = head;
        }
    }

    private MergeCommand(JobPlan plan, PrintStream out) {
        this.plan = plan;
        this.out = out;
    }

    public static void main(String[] args) throws IOException {
        if (args.length < 2) {
            System.err.println("usage: MergeCommand PLAN STREAM...");
            System.exit(2);
        }
        PrintStream out = new PrintStream(
                new BufferedOutputStream(new FileOutputStream(FileDescriptor.out), 1 << 16), false,
                StandardCharsets.UTF_8);
        MergeCommand command;
        try {
            JobPlan plan = JobPlan.read(Files.readString(Path.of(args[0])));
            command = new MergeCommand(plan, out);
            for (String name : List.of(args).subList(1, args.length)) {
                command.open(name);
            }
            command.checkRules();
        } catch (IllegalArgumentException | Unreadable | IOException e) {
            System.err.println("error: " + e.getMessage());
            System.exit(2);
            return;
        }
        command.run();
        out.flush();
        System.exit(command.broken ? 1 : 0);
    }

    private void open(String name) throws IOException, Unreadable {
        try {
            ProbeStream stream =
                    new ProbeStream(new BufferedInputStream(new FileInputStream(name), 1 << 16));
            ProbeHead head = stream.head();
            if (!head.fingerprint.equals(plan.fingerprint)) {
                throw new Unreadable("its probe runs another query: its fingerprint is "
                        + head.fingerprint + ", that of the plan " + plan.fingerprint);
            }
            lanes.computeIfAbsent(ProbeHead.numberOf(head.probe), probe -> new ArrayList<>())
                    .add(new Life(name, stream, head));
        } catch (Unreadable e) {
            throw new Unreadable(name + ": " + e.getMessage());
        }
    }

    private void checkRules() throws Unreadable {
        Life first = null;
        for (List<Life> lives : lanes.values()) {
            lives.sort(Comparator.comparing(life -> life.head.epoch, Long::compareUnsigned));
            for (Life life : lives) {
                first = first == null ? life : first;
                if (!first.head.rules.equals(life.head.rules)) {
                    throw new Unreadable(first.name + " and " + life.name
                            + " read packets in different ways: " + first.head.rules + "; "
                            + life.head.rules);
                }
            }
        }
    }

    private void run() throws IOException {
        Merger merger = new Merger(plan, List.copyOf(lanes.keySet()));
        Merger.RowSink sink = (node, row) -> print(node, row);
        while (!lanes.isEmpty()) {
            String slowest = lanes.keySet().stream()
                    .min(Comparator.comparing(probe -> merger.probe(probe).closed())).orElseThrow();
            List<Life> lives = lanes.get(slowest);
            Life life = lives.get(0);
            merger.probe(slowest).resumes(life.head.resumes);
            merger.probe(slowest).lateness(life.head.latenessNs);
            try {
                byte[] bytes = life.stream.next();
                if (bytes != null) {
                    Message message = Message.read(bytes);
                    // The probe goes on in its next life: windows wait for that, too.
                    if (message.kind != Message.Kind.END || lives.size() == 1) {
                        merger.take(message, sink);
                    } else {
                        merger.probe(slowest).goesOn(message);
                    }
                    continue;
                }
            } catch (Unreadable e) {
                broken = true;
                System.err.println("error: " + life.name + ": " + e.getMessage());
            }
            life.stream.close();
            lives.remove(0);
            if (lives.isEmpty()) {
                lanes.remove(slowest);
                merger.retire(slowest, sink);
            }
        }
        merger.finish(sink);
        System.err.printf("late groups: %d; repeated messages: %d; missing messages: %d; "
                + "undefined results: %d%n", merger.late(), merger.repeated(), merger.missing(),
                merger.undefined());
    }

    private void print(NodePlan node, Object[] row) {
        String name = plan.nodes.size() > 1 ? String.valueOf(node.number + 1) : null;
        out.println(Text.json(node.columns, row, name));
    }
}
