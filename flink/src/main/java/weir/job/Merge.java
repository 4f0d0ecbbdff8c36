package weir.job;

import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.TreeMap;
import org.apache.flink.api.common.state.ListState;
import org.apache.flink.api.common.state.ListStateDescriptor;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.metrics.Counter;
import org.apache.flink.runtime.state.StateInitializationContext;
import org.apache.flink.runtime.state.StateSnapshotContext;
import org.apache.flink.runtime.state.VoidNamespace;
import org.apache.flink.runtime.state.VoidNamespaceSerializer;
import org.apache.flink.streaming.api.operators.AbstractStreamOperator;
import org.apache.flink.streaming.api.operators.InternalTimer;
import org.apache.flink.streaming.api.operators.InternalTimerService;
import org.apache.flink.streaming.api.operators.OneInputStreamOperator;
import org.apache.flink.streaming.api.operators.Triggerable;
import org.apache.flink.streaming.api.watermark.Watermark;
import org.apache.flink.streaming.runtime.streamrecord.StreamRecord;
import org.apache.flink.types.Row;
import org.apache.flink.util.OutputTag;
import weir.merge.Partial;
import weir.merge.RowMaker;
import weir.plan.JobPlan;
import weir.plan.NodePlan;
import weir.wire.Part;

/**
 * Merges the groups of one node by window and key, and makes rows of them when the watermark has
 * passed the end of their window. How far windows are closed is in checkpoints: after a restore a
 * group of a closed window is late, and makes no second row.
 */
public final class Merge extends AbstractStreamOperator<Row>
        implements OneInputStreamOperator<Partial, Row>, Triggerable<String, VoidNamespace> {
    private static final long serialVersionUID = 1L;
    private static final long NS_PER_MS = 1_000_000;
    /** Windows of which late groups are counted before they are told of. */
    private static final int LATE_WINDOWS_MAX = 1024;

    private final JobPlan plan;
    private final int number;
    private final OutputTag<String> events;

    private transient NodePlan node;
    private transient RowMaker maker;
    private transient ValueState<Partial> state;
    private transient InternalTimerService<VoidNamespace> timers;
    private transient ListState<Long> marks;
    private transient long closedThrough;
    /** By start of a window, how many groups of it were late and were not told of yet. */
    private transient TreeMap<Long, Long> lateGroups;
    private transient Counter late;
    private transient Counter rows;
    private transient Counter undefined;

    public Merge(JobPlan plan, int number, OutputTag<String> events) {
        this.plan = plan;
        this.number = number;
        this.events = events;
    }

    /** The window and the key of a group, as what it is spread by. */
    static String key(Partial group) {
        byte[] key = group.key.all();
        byte[] all = new byte[8 + key.length];
        for (int i = 0; i < 8; i++) {
            all[i] = (byte) (group.start >>> 56 - 8 * i);
        }
        System.arraycopy(key, 0, all, 8, key.length);
        return new String(all, StandardCharsets.ISO_8859_1);
    }

    @Override
    public void initializeState(StateInitializationContext context) throws Exception {
        super.initializeState(context);
        marks = context.getOperatorStateStore()
                .getUnionListState(new ListStateDescriptor<>("closed-through", Types.LONG));
        closedThrough = Long.MIN_VALUE;
        for (long mark : marks.get()) {
            closedThrough = Math.max(closedThrough, mark);
        }
    }

    @Override
    public void open() throws Exception {
        super.open();
        node = plan.nodes.get(number);
        maker = new RowMaker(node);
        lateGroups = new TreeMap<>();
        late = getMetricGroup().counter("weir_late");
        rows = getMetricGroup().counter("weir_rows");
        undefined = getMetricGroup().counter("weir_undefined");
        state = getRuntimeContext()
                .getState(new ValueStateDescriptor<>("group", new PartialSerializer(plan)));
        timers = getInternalTimerService("windows", VoidNamespaceSerializer.INSTANCE, this);
    }

    /** The watermark in milliseconds at which a window closes. */
    static long closesAt(NodePlan node, long start) {
        long end = node.closesAt(start);
        return end == Long.MAX_VALUE ? end : -Math.floorDiv(-end, NS_PER_MS);
    }

    @Override
    public void processElement(StreamRecord<Partial> element) throws Exception {
        Partial group = element.getValue();
        long end = closesAt(node, group.start);
        if (end <= closedThrough) {
            late.inc(group.groups);
            lateGroups.merge(group.start, group.groups, Long::sum);
            if (lateGroups.size() >= LATE_WINDOWS_MAX) {
                tellLate();
            }
            return;
        }
        Partial held = state.value();
        if (held == null) {
            state.update(group);
            timers.registerEventTimeTimer(VoidNamespace.INSTANCE, end);
        } else {
            held.merge(group);
            state.update(held);
        }
    }

    /** Says how many groups of which windows were late. */
    private void tellLate() {
        lateGroups.forEach((start, groups) -> output.collect(events, new StreamRecord<>(
                "{\"event\":\"late\",\"node\":" + (number + 1) + ",\"window_ns\":" + start
                        + ",\"groups\":" + groups + "}")));
        lateGroups.clear();
    }

    @Override
    public void prepareSnapshotPreBarrier(long checkpoint) {
        tellLate();
    }

    @Override
    public void finish() throws Exception {
        tellLate();
        super.finish();
    }

    @Override
    public void onEventTime(InternalTimer<String, VoidNamespace> timer) throws Exception {
        Partial group = state.value();
        if (group == null) {
            return;
        }
        state.clear();
        long before = maker.undefined();
        Object[] values = maker.row(group);
        Row row = new Row(values.length + 1);
        for (int i = 0; i < values.length; i++) {
            row.setField(i, values[i]);
        }
        row.setField(values.length, group.key.all());
        rows.inc();
        undefined.inc(maker.undefined() - before);
        output.collect(new StreamRecord<>(row, Math.floorDiv(group.start, NS_PER_MS)));
    }

    @Override
    public void onProcessingTime(InternalTimer<String, VoidNamespace> timer) {
        throw new IllegalStateException("nothing here goes by a clock");
    }

    /** Windows close; rows that come later start no earlier than what is said to be complete. */
    @Override
    public void processWatermark(Watermark mark) throws Exception {
        if (getTimeServiceManager().isPresent()) {
            getTimeServiceManager().get().advanceWatermark(mark);
        }
        long ms = mark.getTimestamp();
        closedThrough = Math.max(closedThrough, ms);
        long out = ms;
        if (ms != Long.MAX_VALUE && ms != Long.MIN_VALUE) {
            long next = node.downstream(NodePlan.nanoseconds(ms));
            out = next == Long.MIN_VALUE ? next : Math.floorDiv(next, NS_PER_MS) - 1;
        }
        output.emitWatermark(new Watermark(out));
    }

    @Override
    public void snapshotState(StateSnapshotContext context) throws Exception {
        super.snapshotState(context);
        marks.update(List.of(closedThrough));
    }

    /** How a column of this type is in rows of Flink. */
    static TypeInformation<?> type(Part.Type type) {
        switch (type) {
            case BOOL:
                return Types.BOOLEAN;
            case FLOAT:
                return Types.DOUBLE;
            case STRING:
                return Types.STRING;
            case BYTES:
            case IP:
                return Types.PRIMITIVE_ARRAY(Types.BYTE);
            default:
                return Types.LONG;
        }
    }
}
