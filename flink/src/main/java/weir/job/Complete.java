package weir.job;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.TreeMap;
import org.apache.flink.api.common.state.ListState;
import org.apache.flink.api.common.state.ListStateDescriptor;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.runtime.state.StateInitializationContext;
import org.apache.flink.runtime.state.StateSnapshotContext;
import org.apache.flink.streaming.api.operators.AbstractStreamOperator;
import org.apache.flink.streaming.api.operators.TwoInputStreamOperator;
import org.apache.flink.streaming.api.watermark.Watermark;
import org.apache.flink.streaming.runtime.streamrecord.StreamRecord;
import org.apache.flink.types.Row;
import weir.plan.JobPlan;
import weir.plan.NodePlan;

/**
 * Says in the rows of a node how much of their windows was seen. {@link Front} says of a window
 * before it closes it whether that is less than all, to all tasks of this operator, and a row waits
 * until its window is closed on that way, too.
 */
public final class Complete extends AbstractStreamOperator<Row>
        implements TwoInputStreamOperator<Row, WindowShare, Row> {
    private static final long serialVersionUID = 1L;

    private final JobPlan plan;
    private final int number;
    private final TypeInformation<Row> type;

    private transient NodePlan node;
    private transient List<Integer> columns;
    private transient Deque<StreamRecord<Row>> waiting;
    private transient TreeMap<Long, Double> shares;
    /** How far windows are closed, by the word of the front. */
    private transient long closedThrough;
    /** What comes after the rows that wait. */
    private transient Watermark after;
    private transient ListState<Row> waitingState;
    private transient ListState<WindowShare> sharesState;

    public Complete(JobPlan plan, int number, TypeInformation<Row> type) {
        this.plan = plan;
        this.number = number;
        this.type = type;
    }

    @Override
    public void initializeState(StateInitializationContext context) throws Exception {
        super.initializeState(context);
        node = plan.nodes.get(number);
        columns = node.completeness();
        waiting = new ArrayDeque<>();
        shares = new TreeMap<>();
        closedThrough = Long.MIN_VALUE;
        waitingState = context.getOperatorStateStore()
                .getListState(new ListStateDescriptor<>("waiting", type));
        for (Row row : waitingState.get()) {
            waiting.add(new StreamRecord<>(row, Math.floorDiv(start(row), 1_000_000)));
        }
        sharesState = context.getOperatorStateStore().getUnionListState(
                new ListStateDescriptor<>("shares", Types.POJO(WindowShare.class)));
        for (WindowShare one : sharesState.get()) {
            shares.put(one.start, one.share);
        }
    }

    private long start(Row row) {
        return node.overNs > 0 ? (Long) row.getField(0) : 0;
    }

    @Override
    public void processElement1(StreamRecord<Row> row) {
        // What comes is used again for the next row.
        waiting.add(new StreamRecord<>(row.getValue(), row.getTimestamp()));
        release();
    }

    @Override
    public void processElement2(StreamRecord<WindowShare> share) {
        shares.put(share.getValue().start, share.getValue().share);
    }

    private void release() {
        while (!waiting.isEmpty()) {
            StreamRecord<Row> row = waiting.peek();
            long start = start(row.getValue());
            if (Merge.closesAt(node, start) > closedThrough) {
                return;
            }
            waiting.poll();
            Double share = shares.get(start);
            if (share != null) {
                columns.forEach(column -> row.getValue().setField(column, share));
            }
            output.collect(row);
        }
        if (after != null) {
            output.emitWatermark(after);
            after = null;
        }
    }

    @Override
    public void processWatermark1(Watermark mark) {
        after = mark;
        release();
        // Rows of windows before this one have come.
        long through = NodePlan.nanoseconds(mark.getTimestamp());
        if (waiting.isEmpty()) {
            shares.headMap(through).clear();
        }
    }

    @Override
    public void processWatermark2(Watermark mark) {
        closedThrough = Math.max(closedThrough, mark.getTimestamp());
        release();
    }

    @Override
    public void snapshotState(StateSnapshotContext context) throws Exception {
        super.snapshotState(context);
        List<Row> rows = new ArrayList<>();
        waiting.forEach(row -> rows.add(row.getValue()));
        waitingState.update(rows);
        List<WindowShare> all = new ArrayList<>();
        shares.forEach((start, share) -> all.add(new WindowShare(start, share)));
        sharesState.update(all);
    }
}
