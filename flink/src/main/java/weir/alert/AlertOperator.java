package weir.alert;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import org.apache.flink.api.common.state.ListState;
import org.apache.flink.api.common.state.ListStateDescriptor;
import org.apache.flink.api.common.typeinfo.PrimitiveArrayTypeInfo;
import org.apache.flink.runtime.state.StateInitializationContext;
import org.apache.flink.runtime.state.StateSnapshotContext;
import org.apache.flink.streaming.api.operators.AbstractStreamOperator;
import org.apache.flink.streaming.api.operators.OneInputStreamOperator;
import org.apache.flink.streaming.api.watermark.Watermark;
import org.apache.flink.streaming.runtime.streamrecord.StreamRecord;
import org.apache.flink.types.Row;
import weir.plan.AlertPlan;
import weir.plan.NodePlan;

/**
 * Makes alerts of rows, in one task: what fires is known of all keys together. Rows wait for the
 * watermark, and are taken in the order of their times and keys, as Weir takes them.
 */
public final class AlertOperator extends AbstractStreamOperator<Row>
        implements OneInputStreamOperator<Row, Row> {
    private static final long serialVersionUID = 1L;
    private static final long NS_PER_MS = 1_000_000;

    private final AlertPlan plan;

    private transient Alerts alerts;
    private transient List<Object[]> waiting;
    private transient long reached;
    private transient ListState<byte[]> state;

    public AlertOperator(AlertPlan plan) {
        this.plan = plan;
    }

    @Override
    public void initializeState(StateInitializationContext context) throws Exception {
        super.initializeState(context);
        alerts = new Alerts(plan, this::emit);
        waiting = new ArrayList<>();
        reached = Long.MIN_VALUE;
        state = context.getOperatorStateStore().getListState(new ListStateDescriptor<>("alerts",
                PrimitiveArrayTypeInfo.BYTE_PRIMITIVE_ARRAY_TYPE_INFO));
        for (byte[] written : state.get()) {
            DataInputStream in = new DataInputStream(new ByteArrayInputStream(written));
            reached = in.readLong();
            alerts.read(in);
            for (int n = in.readInt(); n > 0; n--) {
                waiting.add(Cells.readAll(in));
            }
        }
    }

    @Override
    public void open() throws Exception {
        super.open();
        getMetricGroup().gauge("weir_evicted", () -> alerts.evicted());
    }

    private void emit(Object[] cells) {
        output.collect(new StreamRecord<>(Row.of(cells)));
    }

    @Override
    public void processElement(StreamRecord<Row> element) {
        Row row = element.getValue();
        Object[] cells = new Object[row.getArity()];
        for (int i = 0; i < cells.length; i++) {
            cells[i] = row.getField(i);
        }
        waiting.add(cells);
    }

    @Override
    public void processWatermark(Watermark mark) throws Exception {
        boolean isEnd = mark.equals(Watermark.MAX_WATERMARK);
        long next = isEnd ? Long.MAX_VALUE : next(mark.getTimestamp());
        take(next, isEnd);
        if (isEnd) {
            alerts.finish();
        } else {
            alerts.watermark(next);
        }
        reached = Math.max(reached, next);
        super.processWatermark(mark);
    }

    /** The least time that rows after this watermark have, in nanoseconds. */
    private long next(long ms) {
        long after = ms == Long.MIN_VALUE ? ms : ms + 1;
        long ns = after > Long.MAX_VALUE / NS_PER_MS ? Long.MAX_VALUE
                : after < Long.MIN_VALUE / NS_PER_MS ? Long.MIN_VALUE : after * NS_PER_MS;
        return NodePlan.add(ns, -plan.lagNs);
    }

    /** Takes the rows before this time, all at the end of the input. */
    private void take(long before, boolean isEnd) {
        List<Object[]> ready = new ArrayList<>();
        List<Object[]> later = new ArrayList<>();
        for (Object[] row : waiting) {
            Long ts = (Long) row[plan.ts];
            (isEnd || ts == null || ts < before ? ready : later).add(row);
        }
        waiting = later;
        ready.sort(Comparator.<Object[], Long>comparing(row -> (Long) row[plan.ts],
                Comparator.nullsFirst(Comparator.naturalOrder()))
                .thenComparing(row -> (byte[]) row[row.length - 1],
                        Comparator.nullsFirst(Arrays::compareUnsigned)));
        ready.forEach(row -> alerts.take(row, reached));
    }

    @Override
    public void snapshotState(StateSnapshotContext context) throws Exception {
        super.snapshotState(context);
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        DataOutputStream out = new DataOutputStream(bytes);
        out.writeLong(reached);
        alerts.write(out);
        out.writeInt(waiting.size());
        for (Object[] row : waiting) {
            Cells.write(row, out);
        }
        state.update(List.of(bytes.toByteArray()));
    }
}
