package weir.merge;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import weir.plan.JobPlan;
import weir.plan.NodePlan;
import weir.wire.Bytes;
import weir.wire.Message;
import weir.wire.Message.LossNews;
import weir.wire.Unreadable;

/**
 * Merges the messages of several probes in one process: what the job does on a cluster, without
 * one. Rows of a window come out once all probes that are waited for have closed it, in the order
 * of windows and keys.
 */
public final class Merger {
    /** Where rows go. */
    public interface RowSink {
        /** Takes a row of a node. */
        void row(NodePlan node, Object[] row);
    }

    private final JobPlan plan;
    private final Map<String, ProbeLives> probes = new LinkedHashMap<>();
    private final List<TreeMap<Long, TreeMap<Bytes, Partial>>> windows = new ArrayList<>();
    private final List<RowMaker> makers = new ArrayList<>();
    /** By node what each probe has lost. */
    private final List<Map<String, Losses>> losses = new ArrayList<>();
    private long closed = Long.MIN_VALUE;
    private long late;
    private long repeated;

    /** A merge that waits for these probes, by the numbers in their messages. */
    public Merger(JobPlan plan, Iterable<String> probes) {
        this.plan = plan;
        probes.forEach(probe -> this.probes.put(probe, new ProbeLives()));
        for (NodePlan node : plan.nodes) {
            windows.add(new TreeMap<>());
            makers.add(new RowMaker(node));
            losses.add(new LinkedHashMap<>());
        }
    }

    /** How far a probe is. */
    public ProbeLives probe(String number) {
        return probes.get(number);
    }

    /** Groups that came after the rows of their window were out, and were left out. */
    public long late() {
        return late;
    }

    /** Messages that came again. */
    public long repeated() {
        return repeated;
    }

    /** Messages that did not come. */
    public long missing() {
        return probes.values().stream().mapToLong(ProbeLives::missing).sum();
    }

    /** Results that were outside their type. */
    public long undefined() {
        return makers.stream().mapToLong(RowMaker::undefined).sum();
    }

    /** Takes a message; rows of windows that close go to the sink. */
    public void take(Message message, RowSink sink) throws Unreadable {
        List<Partial> groups = groups(plan, message);
        ProbeLives probe = probes.get(message.probe);
        if (probe == null) {
            throw new Unreadable("no probe with the number " + message.probe + " is waited for");
        }
        if (!probe.take(message)) {
            repeated++;
            return;
        }
        if (message.losses != null) {
            losses.get(plan.node(message.node, message.fingerprint).number)
                    .computeIfAbsent(message.probe, of -> new Losses()).take(message.losses);
        }
        lose(message.probe, probe.unseen(message));
        for (Partial group : groups) {
            hold(probe, group);
        }
        close(sink);
    }

    /** The groups of a message of this plan; it is refused if it is for another one. */
    public static List<Partial> groups(JobPlan plan, Message message) throws Unreadable {
        if (message.node.equals(Message.ALL)) {
            boolean fits = message.fingerprint.equals(plan.fingerprint)
                    && message.kind != Message.Kind.WINDOW && message.kind != Message.Kind.LOSSES;
            if (fits) {
                return List.of();
            }
        }
        NodePlan node = plan.node(message.node, message.fingerprint);
        boolean fits = message.kind == Message.Kind.WINDOW || message.kind == Message.Kind.LOSSES;
        if (node == null || !fits) {
            throw new Unreadable("the message is for node " + message.node + " with fingerprint "
                    + message.fingerprint + ", which this plan does not have: probes and job must "
                    + "run the same query");
        }
        return message.kind == Message.Kind.LOSSES
                ? List.of()
                : Partial.read(node, message.time, message.groups);
    }

    private void hold(ProbeLives probe, Partial group) {
        NodePlan node = plan.nodes.get(group.node);
        for (long start : node.windows(group.start)) {
            long end = node.closesAt(start);
            if (end <= closed) {
                // A pane is late once, however many of its windows are out.
                late += start == node.windows(group.start).get(0) ? group.groups : 0;
                continue;
            }
            if (end < Long.MAX_VALUE) {
                probe.closesAt(end);
            }
            TreeMap<Bytes, Partial> keys =
                    windows.get(group.node).computeIfAbsent(start, at -> new TreeMap<>());
            Partial held = keys.get(group.key);
            if (held == null) {
                keys.put(group.key, node.slides() ? group.copy(start) : group);
            } else {
                held.merge(group);
            }
        }
    }

    /** Takes in what nobody saw of a probe. */
    private void lose(String probe, LossNews unseen) {
        for (NodePlan node : unseen == null ? List.<NodePlan>of() : plan.nodes) {
            losses.get(node.number).computeIfAbsent(probe, none -> new Losses())
                    .takeUnseen(unseen, node.latenessNs);
        }
    }

    /** Says that nothing waits for a probe until it sends again. */
    public void retire(String number, RowSink sink) {
        probes.get(number).retire();
        lose(number, probes.get(number).unseenAtEnd());
        close(sink);
    }

    private void close(RowSink sink) {
        closed = Math.max(closed, ProbeLives.least(probes.values()));
        plan.nodes.forEach(node -> emit(node, closed, sink));
    }

    private void emit(NodePlan node, long watermark, RowSink sink) {
        TreeMap<Long, TreeMap<Bytes, Partial>> open = windows.get(node.number);
        while (!open.isEmpty() && (watermark == Long.MAX_VALUE
                || node.closesAt(open.firstKey()) <= watermark)) {
            open.pollFirstEntry().getValue().values()
                    .forEach(group -> sink.row(node, row(node, group)));
        }
    }

    private Object[] row(NodePlan node, Partial group) {
        Object[] row = makers.get(node.number).row(group);
        for (int column : node.completeness()) {
            row[column] = Losses.share(node, group.start, losses.get(node.number).values());
        }
        return row;
    }

    /** Puts out all there is. */
    public void finish(RowSink sink) {
        for (NodePlan node : plan.nodes) {
            boolean lone = node.overNs == 0 && node.keys.isEmpty();
            if (lone && windows.get(node.number).isEmpty()) {
                sink.row(node, row(node, Partial.fresh(node)));
            }
            emit(node, Long.MAX_VALUE, sink);
        }
    }
}
