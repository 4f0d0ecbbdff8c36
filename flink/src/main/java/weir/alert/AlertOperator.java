package weir.alert;

import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
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
import weir.rows.ByteChunks;
import weir.rows.Cells;
import weir.rows.WaitingRows;

/**
 * Makes alerts of rows, in one task: what fires is known of all keys together. Rows wait for the
 * watermark, and are taken in the order of their times and keys, as Weir takes them.
 */
public final class AlertOperator extends AbstractStreamOperator<Row>
        implements OneInputStreamOperator<Row, Row> {
    private static final long serialVersionUID = 1L;

    private final AlertPlan plan;

    private transient Alerts alerts;
    private transient WaitingRows waiting;
    private transient long reached;
    private transient ListState<byte[]> state;

    public AlertOperator(AlertPlan plan) {
        this.plan = plan;
    }

    @Override
    public void initializeState(StateInitializationContext context) throws Exception {
        super.initializeState(context);
        alerts = new Alerts(plan, this::emit);
        waiting = new WaitingRows();
        reached = Long.MIN_VALUE;
        state = context.getOperatorStateStore().getListState(new ListStateDescriptor<>("alerts",
                PrimitiveArrayTypeInfo.BYTE_PRIMITIVE_ARRAY_TYPE_INFO));
        ByteChunks.read(state.get(), this::read);
    }

    /** Reads an entry of a checkpoint: what fires, or a row that waits. */
    private void read(DataInputStream in) throws IOException {
        if (in.readBoolean()) {
            waiting.read(in);
        } else {
            reached = in.readLong();
            alerts.read(in);
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
        Object[] cells = Cells.of(element.getValue());
        Long ts = (Long) cells[plan.ts];
        waiting.add(ts == null ? Long.MIN_VALUE : ts, cells);
    }

    @Override
    public void processWatermark(Watermark mark) throws Exception {
        boolean isEnd = mark.equals(Watermark.MAX_WATERMARK);
        long next = isEnd ? Long.MAX_VALUE : next(mark.getTimestamp());
        long through = isEnd ? next : Math.max(next, Long.MIN_VALUE + 1) - 1;
        waiting.take(through, (time, cells) -> alerts.take(cells, reached));
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
        return NodePlan.add(NodePlan.nanoseconds(after), -plan.lagNs);
    }

    @Override
    public void snapshotState(StateSnapshotContext context) throws Exception {
        super.snapshotState(context);
        ByteChunks out = new ByteChunks();
        DataOutputStream entry = out.entry();
        entry.writeBoolean(false);
        entry.writeLong(reached);
        alerts.write(entry);
        waiting.write(out);
        state.update(out.done());
    }
}
