package weir.job;

import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.apache.flink.api.common.accumulators.LongCounter;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.state.ListState;
import org.apache.flink.api.common.state.ListStateDescriptor;
import org.apache.flink.api.common.typeinfo.PrimitiveArrayTypeInfo;
import org.apache.flink.api.java.tuple.Tuple3;
import org.apache.flink.metrics.Counter;
import org.apache.flink.runtime.state.FunctionInitializationContext;
import org.apache.flink.runtime.state.FunctionSnapshotContext;
import org.apache.flink.streaming.api.checkpoint.CheckpointedFunction;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.util.Collector;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import weir.engine.Lines;
import weir.engine.Tier;

/**
 * Merges the records of all probes in one task, by the engine of {@code weir merge}, with all
 * stages above the merge. Its state in a checkpoint is the engine's own bytes.
 */
final class MergeFunction extends KeyedProcessFunction<Integer, byte[], Tuple3<String, byte[], byte[]>>
        implements CheckpointedFunction {
    private static final long serialVersionUID = 1L;
    private static final Logger LOG = LoggerFactory.getLogger(MergeFunction.class);

    /** How often probes are asked for, at most. */
    private static final long PROGRESS_NS = 1_000_000_000L;

    /** A state lies in a checkpoint in pieces of so many bytes. */
    private static final int PIECE_BYTES = 16 << 20;

    private final String job;
    private final List<String> probes;
    private final boolean bounded;
    private final boolean copies;
    /** Where lines go, by the numbers of outputs: topics or tables. */
    private final List<String> targets;
    private final String events;

    private transient Tier tier;
    private transient byte[] restored;
    private transient ListState<byte[]> state;
    private transient long stateBytes;
    private transient boolean waitsForEnd;
    private transient Counts counts;
    /** How far probes are, for threads that read metrics, and when that was asked. */
    private transient volatile Map<String, String> progress;
    private transient long askedNs;

    MergeFunction(JobOptions options, List<String> targets) {
        this.job = options.job;
        this.probes = new ArrayList<>(options.probes);
        this.bounded = options.bounded;
        this.copies = options.database != null;
        this.targets = new ArrayList<>(targets);
        this.events = options.lateTopic();
    }

    @Override
    public void initializeState(FunctionInitializationContext context) throws Exception {
        state = context.getOperatorStateStore().getListState(new ListStateDescriptor<>("merge",
                PrimitiveArrayTypeInfo.BYTE_PRIMITIVE_ARRAY_TYPE_INFO));
        if (context.isRestored()) {
            ByteArrayOutputStream all = new ByteArrayOutputStream();
            for (byte[] piece : state.get()) {
                all.writeBytes(piece);
            }
            restored = all.size() == 0 ? null : all.toByteArray();
        }
    }

    @Override
    public void open(OpenContext context) {
        counts = new Counts();
        getRuntimeContext().getMetricGroup().gauge("weir_state_bytes", () -> stateBytes);
        tier = new Tier(job, probes, bounded, copies, restored);
        restored = null;
        lookAtProbes();
        for (String probe : probes) {
            getRuntimeContext().getMetricGroup().addGroup("probe", probe)
                    .gauge("weir_probe", () -> progress.getOrDefault(probe, ""));
        }
    }

    private void lookAtProbes() {
        progress = tier.progress();
        askedNs = System.nanoTime();
    }

    @Override
    public void processElement(byte[] record, Context context,
            Collector<Tuple3<String, byte[], byte[]>> out) {
        if (!waitsForEnd) {
            // The end of a bounded input is the last time that there is.
            context.timerService().registerEventTimeTimer(Long.MAX_VALUE);
            waitsForEnd = true;
        }
        counts.are(tier.take(record, to(out)));
        if (System.nanoTime() - askedNs > PROGRESS_NS) {
            lookAtProbes();
        }
    }

    @Override
    public void onTimer(long time, OnTimerContext context,
            Collector<Tuple3<String, byte[], byte[]>> out) {
        if (bounded) {
            counts.are(tier.finish(to(out)));
        }
    }

    private Lines to(Collector<Tuple3<String, byte[], byte[]>> out) {
        return Lines.each((output, key, line) -> {
            if (output == Lines.EVENTS) {
                LOG.warn("{}", new String(line, StandardCharsets.UTF_8));
            }
            String target = output == Lines.EVENTS ? events : targets.get(output);
            out.collect(Tuple3.of(target, key, line));
        });
    }

    @Override
    public void snapshotState(FunctionSnapshotContext context) throws Exception {
        // With each checkpoint, so that the last records are not left out when no more come.
        lookAtProbes();
        byte[] all = tier.save();
        stateBytes = all.length;
        List<byte[]> pieces = new ArrayList<>();
        for (int at = 0; at < all.length; at += PIECE_BYTES) {
            pieces.add(Arrays.copyOfRange(all, at, Math.min(all.length, at + PIECE_BYTES)));
        }
        state.update(pieces);
    }

    @Override
    public void close() {
        if (tier != null) {
            tier.close();
        }
    }

    /** Counts of the engine as those of Flink. */
    private final class Counts {
        private final Counter repeated = counter("weir_repeated");
        private final Counter missing = counter("weir_missing");
        private final Counter refused = counter("weir_refused");
        private final Counter late = counter("weir_late");
        /** The same as an accumulator, which can be read once the job has finished. */
        private final LongCounter allMissing = new LongCounter();

        Counts() {
            getRuntimeContext().addAccumulator("weir_missing", allMissing);
        }

        private Counter counter(String name) {
            return getRuntimeContext().getMetricGroup().counter(name);
        }

        void are(Tier.Counts now) {
            repeated.inc(now.repeated() - repeated.getCount());
            refused.inc(now.refused() - refused.getCount());
            late.inc(now.late() - late.getCount());
            missing.inc(now.missing() - missing.getCount());
            allMissing.add(now.missing() - allMissing.getLocalValuePrimitive());
        }
    }
}
