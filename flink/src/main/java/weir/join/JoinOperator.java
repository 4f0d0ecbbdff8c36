package weir.join;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.apache.flink.api.common.state.ListState;
import org.apache.flink.api.common.state.ListStateDescriptor;
import org.apache.flink.api.common.typeinfo.PrimitiveArrayTypeInfo;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.runtime.state.VoidNamespace;
import org.apache.flink.runtime.state.VoidNamespaceSerializer;
import org.apache.flink.streaming.api.operators.AbstractStreamOperator;
import org.apache.flink.streaming.api.operators.InternalTimer;
import org.apache.flink.streaming.api.operators.InternalTimerService;
import org.apache.flink.streaming.api.operators.Triggerable;
import org.apache.flink.streaming.api.operators.TwoInputStreamOperator;
import org.apache.flink.streaming.api.watermark.Watermark;
import org.apache.flink.streaming.runtime.streamrecord.StreamRecord;
import org.apache.flink.types.Row;
import weir.functions.Expression;
import weir.functions.Functions;
import weir.plan.JoinPlan;
import weir.plan.JoinPlan.BesidePlan;
import weir.plan.JoinPlan.Kind;
import weir.plan.NodePlan;
import weir.rows.Cells;

/**
 * Lets rows of equal keys meet. A left row comes out when the watermark says that no further right
 * row can meet it. SQL's own join of windows makes rows that no further window takes.
 */
public final class JoinOperator extends AbstractStreamOperator<Row>
        implements TwoInputStreamOperator<Row, Row, Row>, Triggerable<String, VoidNamespace> {
    private static final long serialVersionUID = 1L;
    private static final long NS_PER_MS = 1_000_000;
    /** Rows that wait: the time of each, and its cells. */
    private static final TypeInformation<Tuple2<Long, byte[]>> WAITING =
            Types.TUPLE(Types.LONG, PrimitiveArrayTypeInfo.BYTE_PRIMITIVE_ARRAY_TYPE_INFO);

    /** A right row. */
    private record Partner(long time, Object[] cells) {}

    private final JoinPlan plan;

    private transient Object[] absent;
    private transient Functions.Key order;
    private transient ListState<Tuple2<Long, byte[]>> left;
    private transient ListState<Tuple2<Long, byte[]>> right;
    private transient InternalTimerService<VoidNamespace> timers;

    public JoinOperator(JoinPlan plan) {
        this.plan = plan;
    }

    /** What a row with so many columns meets others by. */
    public static String key(Row row, int columns) {
        return new String((byte[]) row.getField(columns), StandardCharsets.ISO_8859_1);
    }

    @Override
    public void open() throws Exception {
        super.open();
        absent = plan.beside.stream().map(BesidePlan::absent)
                .map(json -> Expression.read(json).value(null)).toArray();
        order = new Functions.Key();
        left = getRuntimeContext().getListState(new ListStateDescriptor<>("left", WAITING));
        right = getRuntimeContext().getListState(new ListStateDescriptor<>("right", WAITING));
        timers = getInternalTimerService("partners", VoidNamespaceSerializer.INSTANCE, this);
    }

    @Override
    public void processElement1(StreamRecord<Row> element) throws Exception {
        add(element, plan.left, left, 0);
    }

    @Override
    public void processElement2(StreamRecord<Row> element) throws Exception {
        // The last left row that it meets is so much later.
        add(element, plan.right, right, -plan.fromNs);
    }

    private void add(StreamRecord<Row> element, int columns, ListState<Tuple2<Long, byte[]>> side,
            long afterNs) throws Exception {
        Object[] cells = Cells.of(element.getValue());
        // Rows bear their time twice, and their key is that of the state.
        cells[columns] = null;
        cells[columns + 1] = null;
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        Cells.write(cells, new DataOutputStream(bytes));
        long time = NodePlan.start(element.getTimestamp(), plan.everyNs);
        side.add(Tuple2.of(time, bytes.toByteArray()));
        timers.registerEventTimeTimer(VoidNamespace.INSTANCE, closes(NodePlan.add(time, afterNs)));
    }

    private static Object[] cells(Tuple2<Long, byte[]> row) throws IOException {
        return Cells.readAll(new DataInputStream(new ByteArrayInputStream(row.f1)));
    }

    /** The last millisecond of the window that starts then. */
    private long lastMs(long start) {
        return Math.floorDiv(NodePlan.add(start, plan.everyNs), NS_PER_MS) - 1;
    }

    /** The watermark in milliseconds at which a left row of this time comes out. */
    private long closes(long time) {
        return plan.everyNs == 0 ? Long.MAX_VALUE : NodePlan.add(lastMs(time), waitMs());
    }

    private long waitMs() {
        return -Math.floorDiv(-plan.waitNs(), NS_PER_MS);
    }

    @Override
    public void onEventTime(InternalTimer<String, VoidNamespace> timer) throws Exception {
        List<Partner> partners = new ArrayList<>();
        List<Tuple2<Long, byte[]>> kept = new ArrayList<>();
        for (Tuple2<Long, byte[]> row : right.get()) {
            partners.add(new Partner(row.f0, cells(row)));
            if (closes(NodePlan.add(row.f0, -plan.fromNs)) > timer.getTimestamp()) {
                kept.add(row);
            }
        }
        List<Tuple2<Long, byte[]>> later = new ArrayList<>();
        for (Tuple2<Long, byte[]> row : left.get()) {
            if (closes(row.f0) > timer.getTimestamp()) {
                later.add(row);
            } else {
                meet(row.f0, cells(row), partners);
            }
        }
        left.update(later);
        right.update(kept);
    }

    /** Puts out what a left row becomes. */
    private void meet(long time, Object[] cells, List<Partner> partners) {
        Object place = cells[cells.length - 1];
        boolean met = false;
        for (Partner partner : partners) {
            long apart = partner.time - time;
            if (apart < plan.fromNs || apart > plan.toNs) {
                continue;
            }
            met = true;
            if (plan.kind == Kind.ANTI) {
                return;
            }
            Object[] theirs = partner.cells;
            Object[] beside = plan.beside.stream().map(column -> theirs[column.from()]).toArray();
            Object last = theirs[theirs.length - 1];
            put(time, cells, beside, order.eval(place, partner.time, last));
        }
        if (!met && plan.kind != Kind.INNER) {
            put(time, cells, absent, order.eval(place));
        }
    }

    private void put(long time, Object[] cells, Object[] beside, byte[] place) {
        Row row = new Row(plan.columns.size() + 1);
        for (int i = 0; i < plan.left; i++) {
            row.setField(i, cells[i]);
        }
        for (int i = 0; i < beside.length; i++) {
            row.setField(plan.left + i, beside[i]);
        }
        row.setField(plan.columns.size(), place);
        output.collect(new StreamRecord<>(row, plan.everyNs == 0 ? 0 : lastMs(time)));
    }

    @Override
    public void onProcessingTime(InternalTimer<String, VoidNamespace> timer) {
        throw new IllegalStateException("nothing here goes by a clock");
    }

    /** Left rows come out late by as long as they wait. */
    @Override
    public void processWatermark(Watermark mark) throws Exception {
        if (getTimeServiceManager().isPresent()) {
            getTimeServiceManager().get().advanceWatermark(mark);
        }
        long ms = mark.getTimestamp();
        boolean isEnd = ms == Long.MAX_VALUE || ms < Long.MIN_VALUE + waitMs();
        output.emitWatermark(isEnd ? mark : new Watermark(ms - waitMs()));
    }
}
