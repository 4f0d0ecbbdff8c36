package weir.job;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.flink.api.common.accumulators.LongCounter;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.PrimitiveArrayTypeInfo;
import org.apache.flink.api.java.tuple.Tuple3;
import org.apache.flink.metrics.Counter;
import org.apache.flink.runtime.state.KeyGroupRangeAssignment;
import org.apache.flink.streaming.api.operators.AbstractStreamOperator;
import org.apache.flink.streaming.api.operators.OneInputStreamOperator;
import org.apache.flink.streaming.api.watermark.Watermark;
import org.apache.flink.streaming.runtime.streamrecord.StreamRecord;
import org.apache.flink.streaming.runtime.watermarkstatus.WatermarkStatus;
import org.apache.flink.util.OutputTag;
import weir.merge.Losses;
import weir.merge.Merger;
import weir.merge.Partial;
import weir.merge.ProbeLives;
import weir.plan.JobPlan;
import weir.plan.NodePlan;
import weir.rows.Text;
import weir.wire.ByteReader;
import weir.wire.Message;
import weir.wire.Message.LossNews;
import weir.wire.ProbeHead;
import weir.wire.Unreadable;

/**
 * Takes the records of all probes, keyed by their names, in one task: drops what comes again, puts parts together,
 * merges groups of one window and key until the watermark moves or a checkpoint begins, and says
 * how far event time is: as far as the slowest of its probes, and never by a clock.
 */
public final class Front extends AbstractStreamOperator<String>
        implements OneInputStreamOperator<Tuple3<String, byte[], String>, String> {
    private static final long serialVersionUID = 1L;

    /** Groups that are held before they are handed on, whatever the watermark. */
    static final int GROUPS_MAX = 65_536;
    /** Names of strangers that are told apart; of further ones only records are counted. */
    private static final int STRANGERS_MAX = 1024;
    private static final long NS_PER_MS = 1_000_000;

    private final JobPlan plan;
    private final List<String> roster;
    /** Whether the end of the topic is the end of the input, which closes all windows. */
    private final boolean bounded;
    private final List<OutputTag<Partial>> tags;
    private final List<OutputTag<WindowShare>> shares;

    private transient Map<String, ProbeProgress> probes;
    private transient Map<Long, Map<String, Partial>> held;
    private transient int heldGroups;
    private transient ValueState<byte[]> state;
    private transient Set<String> strangers;
    private transient long announced;
    private transient Counter repeated;
    private transient Counter missing;
    /** The same as an accumulator, which can be read once the job has finished. */
    private transient LongCounter allMissing;
    private transient Counter refused;

    /** Groups go to {@code tags} by the numbers of their nodes, and what was seen to {@code shares}. */
    public Front(JobPlan plan, List<String> roster, boolean bounded,
            List<OutputTag<Partial>> tags, List<OutputTag<WindowShare>> shares) {
        this.plan = plan;
        this.roster = new ArrayList<>(roster);
        this.bounded = bounded;
        this.tags = new ArrayList<>(tags);
        this.shares = new ArrayList<>(shares);
    }

    @Override
    public void open() throws Exception {
        super.open();
        repeated = getMetricGroup().counter("weir_repeated");
        missing = getMetricGroup().counter("weir_missing");
        allMissing = new LongCounter();
        getRuntimeContext().addAccumulator("weir_missing", allMissing);
        refused = getMetricGroup().counter("weir_refused");
        probes = new LinkedHashMap<>();
        held = new TreeMap<>();
        strangers = new TreeSet<>();
        announced = Long.MIN_VALUE;
        state = getRuntimeContext().getState(new ValueStateDescriptor<>("probe",
                PrimitiveArrayTypeInfo.BYTE_PRIMITIVE_ARRAY_TYPE_INFO));
        int most = getRuntimeContext().getTaskInfo().getMaxNumberOfParallelSubtasks();
        int all = getRuntimeContext().getTaskInfo().getNumberOfParallelSubtasks();
        int mine = getRuntimeContext().getTaskInfo().getIndexOfThisSubtask();
        for (String probe : roster) {
            if (KeyGroupRangeAssignment.assignKeyToParallelOperator(probe, most, all) == mine) {
                setCurrentKey(probe);
                byte[] written = state.value();
                boolean known = written != null;
                probes.put(probe, known ? ProbeProgress.read(written) : new ProbeProgress());
                allMissing.add(probes.get(probe).lives.missing());
            }
        }
        // Watermarks are not in checkpoints: whoever comes after this one is told once it runs.
        long now = getProcessingTimeService().getCurrentProcessingTime();
        getProcessingTimeService().registerTimer(now + 1, at -> announce());
    }

    @Override
    public void processElement(StreamRecord<Tuple3<String, byte[], String>> element)
            throws Exception {
        Tuple3<String, byte[], String> record = element.getValue();
        ProbeProgress probe = probes.get(record.f0);
        if (probe == null) {
            strange(record.f0, "it is not among the probes of the job, which "
                    + String.join(", ", roster) + " are");
            return;
        }
        if (record.f2.equals(Incoming.RETIRED)) {
            probe.lives.retire();
            lose(probe, probe.lives.unseenAtEnd());
            announce();
            return;
        }
        try {
            byte[] whole = probe.whole(record.f1, record.f2);
            if (whole != null && ProbeHead.isHead(whole)) {
                head(record.f0, probe, whole);
            } else if (whole != null && Message.isMessage(whole)) {
                message(record.f0, probe, whole);
            } else if (whole != null) {
                strange(record.f0, "a record of it has nothing to do with Weir");
            }
        } catch (Unreadable e) {
            refuse(record.f0, probe, e.getMessage());
        }
    }

    private void head(String name, ProbeProgress probe, byte[] bytes) throws Unreadable {
        ProbeHead head = ProbeHead.read(new ByteReader(bytes));
        if (Long.compareUnsigned(head.epoch, probe.epoch) < 0) {
            // What is known comes again.
            if (!probe.lives.lives().containsKey(head.epoch)) {
                LOG.warn("a run of probe {} began, by its clock, before the run before it: nothing"
                        + " waits for its windows. Set that clock, and start the probe again",
                        name);
            }
            return;
        }
        if (Long.compareUnsigned(head.epoch, probe.epoch) > 0) {
            probe.epoch = head.epoch;
            probe.refused = false;
            if (head.isUnsynchronised) {
                LOG.warn("the clock of probe {} is not synchronised, as the kernel there says: its"
                        + " packets count in the windows of that clock", name);
            }
        }
        if (!head.probe.equals(name)) {
            throw new Unreadable("the head of the stream is of probe `" + head.probe + "`");
        }
        probe.lives.resumes(head.resumes);
        probe.lives.lateness(head.latenessNs);
        if (!head.fingerprint.equals(plan.fingerprint)) {
            throw new Unreadable("it runs another query: its fingerprint is " + head.fingerprint
                    + ", that of the job " + plan.fingerprint);
        }
        for (Map.Entry<String, ProbeProgress> other : probes.entrySet()) {
            String rules = other.getValue().rules;
            // A run that has ended, or was refused, counts with none that begins now.
            boolean counts = other.getValue() != probe && rules != null
                    && !other.getValue().refused && other.getValue().lives.isWaitedFor();
            if (counts && !rules.equals(head.rules)) {
                throw new Unreadable("it reads packets in another way than probe "
                        + other.getKey() + ": " + head.rules + ", not " + rules);
            }
        }
        probe.rules = head.rules;
    }

    private void message(String name, ProbeProgress probe, byte[] bytes) throws Unreadable {
        Message message = Message.read(bytes);
        if (!message.probe.equals(ProbeHead.numberOf(name))) {
            throw new Unreadable("a message is of a probe with another name");
        }
        if (Long.compareUnsigned(message.epoch, probe.epoch) > 0) {
            probe.epoch = message.epoch;
            probe.refused = false;
        }
        if (probe.refused && message.epoch == probe.epoch) {
            refused.inc();
            return;
        }
        List<Partial> groups = Merger.groups(plan, message);
        long before = probe.lives.missing();
        if (!probe.lives.take(message)) {
            repeated.inc();
            return;
        }
        lacks(name, probe.lives.missing() - before);
        if (message.losses != null) {
            NodePlan node = plan.node(message.node, message.fingerprint);
            probe.losses.computeIfAbsent(node.number, of -> new Losses()).take(message.losses);
        }
        lose(probe, probe.lives.unseen(message));
        for (Partial group : groups) {
            hold(probe, group);
        }
        if (heldGroups >= GROUPS_MAX) {
            flush();
        }
        if (groups.isEmpty()) {
            announce();
        }
    }

    /** Takes in what nobody saw of a probe. */
    private void lose(ProbeProgress probe, LossNews unseen) {
        if (unseen != null) {
            plan.nodes.stream().filter(node -> !node.completeness().isEmpty()).forEach(node ->
                    probe.losses.computeIfAbsent(node.number, of -> new Losses())
                            .takeUnseen(unseen, node.latenessNs));
        }
    }

    /** Counts messages that will not come, and says so. */
    private void lacks(String probe, long messages) {
        if (messages == 0) {
            return;
        }
        missing.inc(messages);
        allMissing.add(messages);
        StringBuilder out = new StringBuilder("{\"event\":\"missing\",\"probe\":");
        Text.string(out, probe);
        output.collect(new StreamRecord<>(
                out.append(",\"messages\":").append(messages).append('}').toString()));
        LOG.warn("{} messages of probe {} are missing: nobody knows what it saw", messages, probe);
    }

    /** Merges a group with those that wait of its windows and its key. */
    private void hold(ProbeProgress probe, Partial group) {
        NodePlan node = plan.nodes.get(group.node);
        for (long start : node.windows(group.start)) {
            long end = node.closesAt(start);
            if (end < Long.MAX_VALUE) {
                probe.lives.closesAt(end);
            }
            String key = group.node + " "
                    + new String(group.key.all(), StandardCharsets.ISO_8859_1);
            Map<String, Partial> keys = held.computeIfAbsent(start, at -> new TreeMap<>());
            Partial waiting = keys.get(key);
            if (waiting != null) {
                waiting.merge(group);
                continue;
            }
            keys.put(key, node.slides() ? group.copy(start) : group);
            heldGroups++;
        }
    }

    /** Hands on what is held. */
    private void flush() {
        for (Map<String, Partial> keys : held.values()) {
            for (Partial group : keys.values()) {
                output.collect(tags.get(group.node), new StreamRecord<>(group));
            }
        }
        held.clear();
        heldGroups = 0;
    }

    /** Says of windows that close now how much of them was seen, where that is not all. */
    private void share(long ms) {
        long after = NodePlan.nanoseconds(announced);
        for (NodePlan node : plan.nodes) {
            List<Losses> losses = new ArrayList<>();
            Set<Long> starts = new TreeSet<>();
            for (ProbeProgress probe : probes.values()) {
                Losses of = probe.losses.get(node.number);
                if (of != null) {
                    losses.add(of);
                }
            }
            // A gap of one probe is one of the windows of all.
            boolean any = losses.stream().anyMatch(Losses::any);
            for (Losses of : any ? losses : List.<Losses>of()) {
                starts.addAll(of.windows(node, after, NodePlan.nanoseconds(ms)));
            }
            for (long start : starts) {
                double share = Losses.share(node, start, losses);
                if (share < 1) {
                    output.collect(shares.get(node.number),
                            new StreamRecord<>(new WindowShare(start, share)));
                }
            }
        }
    }

    /** Says how far event time is, if it is further than before. */
    private void announce() {
        List<ProbeLives> lives = new ArrayList<>();
        probes.values().forEach(probe -> lives.add(probe.lives));
        boolean waits = lives.stream().anyMatch(ProbeLives::isWaitedFor);
        long least = ProbeLives.least(lives);
        if (!waits && bounded) {
            // Those windows that were closed before the input ended: its end closes the others.
            least = lives.stream().mapToLong(ProbeLives::closed).max().orElse(Long.MIN_VALUE);
        } else if (!waits && least > Long.MIN_VALUE) {
            // The input has ended: the windows of further stages close, too.
            least = NodePlan.add(least, plan.closingNs);
        }
        long ms = least == Long.MIN_VALUE ? least : Math.floorDiv(least, NS_PER_MS);
        if (ms > announced) {
            share(ms);
            announced = ms;
            flush();
            output.emitWatermark(new Watermark(ms));
        }
        if (!waits) {
            flush();
        }
    }

    /** Takes nothing more of this life of a probe: nothing waits for it until its next one. */
    private void refuse(String name, ProbeProgress probe, String why) {
        refused.inc();
        probe.refused = true;
        probe.lives.retire();
        lose(probe, probe.lives.unseenAtEnd());
        event(name, why);
        announce();
    }

    /** Leaves a record out, and says so once for each name. */
    private void strange(String name, String why) {
        refused.inc();
        if (strangers.size() < STRANGERS_MAX && strangers.add(name)) {
            event(name, why);
        }
    }

    private void event(String probe, String why) {
        StringBuilder out = new StringBuilder("{\"event\":\"refused\",\"probe\":");
        Text.string(out, probe);
        Text.string(out.append(",\"why\":"), why);
        output.collect(new StreamRecord<>(out.append('}').toString()));
        LOG.warn("refused: probe {}: {}", probe, why);
    }

    @Override
    public void prepareSnapshotPreBarrier(long checkpoint) throws Exception {
        flush();
        for (Map.Entry<String, ProbeProgress> probe : probes.entrySet()) {
            setCurrentKey(probe.getKey());
            state.update(probe.getValue().written());
        }
    }

    /** Time is that of probes: only the end of a bounded input passes. */
    @Override
    public void processWatermark(Watermark mark) throws Exception {
        if (Objects.equals(mark, Watermark.MAX_WATERMARK)) {
            probes.values().forEach(probe -> lose(probe, probe.lives.unseenAtEnd()));
            share(Long.MAX_VALUE);
            flush();
            output.emitWatermark(mark);
        }
    }

    /**
     * Whether a source is idle says nothing of probes. This task is never idle itself: a task that
     * takes rows from here on two ways would go on by the first that wakes, and find the rows of
     * the other late.
     */
    @Override
    public void processWatermarkStatus(WatermarkStatus status) {
        // Nothing follows from it.
    }
}
