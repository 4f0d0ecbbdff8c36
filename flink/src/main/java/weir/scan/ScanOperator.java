package weir.scan;

import java.io.DataInputStream;
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
import weir.plan.NodePlan;
import weir.plan.ScanPlan;
import weir.rows.ByteChunks;
import weir.rows.Cells;
import weir.rows.WaitingRows;

/**
 * Folds rows into states, in one task: which key makes room for another is known of all keys
 * together. Rows wait for the watermark, and are taken in the order of Weir.
 */
public final class ScanOperator extends AbstractStreamOperator<Row>
        implements OneInputStreamOperator<Row, Row> {
    private static final long serialVersionUID = 1L;

    private final ScanPlan plan;

    private transient KeyStates keys;
    private transient WaitingRows waiting;
    private transient ListState<byte[]> state;

    public ScanOperator(ScanPlan plan) {
        this.plan = plan;
    }

    @Override
    public void initializeState(StateInitializationContext context) throws Exception {
        super.initializeState(context);
        keys = new KeyStates(plan);
        waiting = new WaitingRows();
        state = context.getOperatorStateStore().getListState(new ListStateDescriptor<>("scan",
                PrimitiveArrayTypeInfo.BYTE_PRIMITIVE_ARRAY_TYPE_INFO));
        ByteChunks.read(state.get(), this::read);
    }

    /** Reads an entry of a checkpoint: a key, or a row that waits. */
    private void read(DataInputStream in) throws IOException {
        if (in.readBoolean()) {
            waiting.read(in);
        } else {
            keys.read(in);
        }
    }

    @Override
    public void open() throws Exception {
        super.open();
        getMetricGroup().gauge("weir_evicted", () -> keys.evicted());
        getMetricGroup().gauge("weir_keys", () -> keys.size());
    }

    @Override
    public void processElement(StreamRecord<Row> element) {
        Object[] cells = Cells.of(element.getValue());
        // Rows bear their time twice.
        cells[plan.input + 1] = null;
        waiting.add(element.getTimestamp(), cells);
    }

    @Override
    public void processWatermark(Watermark mark) throws Exception {
        waiting.take(mark.getTimestamp(), this::fold);
        super.processWatermark(mark);
    }

    /** Cells are those of columns, then the key, nothing, and the order. */
    private void fold(long ms, Object[] cells) {
        byte[] key = (byte[]) cells[plan.input];
        Object[] states = keys.take(key, NodePlan.start(ms, plan.everyNs), cells);
        Row row = new Row(states.length + 1);
        for (int i = 0; i < states.length; i++) {
            row.setField(i, states[i]);
        }
        row.setField(states.length, cells[cells.length - 1]);
        output.collect(new StreamRecord<>(row, ms));
    }

    @Override
    public void snapshotState(StateSnapshotContext context) throws Exception {
        super.snapshotState(context);
        ByteChunks out = new ByteChunks();
        keys.write(out);
        waiting.write(out);
        state.update(out.done());
    }
}
