package weir.bench;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.time.Duration;
import org.apache.flink.api.common.JobExecutionResult;
import org.apache.flink.api.common.accumulators.LongCounter;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.AggregateFunction;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.functions.RichMapFunction;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.api.java.tuple.Tuple3;
import org.apache.flink.connector.kafka.source.KafkaSource;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.connector.kafka.source.reader.deserializer.KafkaRecordDeserializationSchema;
import org.apache.flink.kafka.shaded.org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import org.apache.flink.streaming.api.functions.windowing.ProcessWindowFunction;
import org.apache.flink.streaming.api.windowing.assigners.TumblingEventTimeWindows;
import org.apache.flink.streaming.api.windowing.windows.TimeWindow;
import org.apache.flink.util.Collector;

/**
 * {@code PacketCounts HOST:PORT TOPIC}: packets per source and second of a topic of packet records
 * (docs/records.md), by Flink alone. It reads the topic up to its present end, and prints how many
 * packets and rows there were, and the milliseconds that the job took. Rows are counted and
 * discarded. Only IPv4 over Ethernet without tags is counted, which all of the trace is.
 */
public final class PacketCounts {
    private PacketCounts() {}

    public static void main(String[] args) throws Exception {
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        env.getConfig().enableObjectReuse();
        KafkaSource<Tuple2<Integer, Long>> source = KafkaSource.<Tuple2<Integer, Long>>builder()
                .setBootstrapServers(args[0]).setTopics(args[1])
                .setStartingOffsets(OffsetsInitializer.earliest())
                .setBounded(OffsetsInitializer.latest())
                .setDeserializer(new Packets())
                .build();
        // A partition has its packets in the order of their times.
        WatermarkStrategy<Tuple2<Integer, Long>> times =
                WatermarkStrategy.<Tuple2<Integer, Long>>forMonotonousTimestamps()
                        .withTimestampAssigner((packet, before) -> packet.f1);
        env.fromSource(source, times, "packets")
                .keyBy(packet -> packet.f0, Types.INT)
                .window(TumblingEventTimeWindows.of(Duration.ofSeconds(1)))
                .aggregate(new Count(), new Rows())
                .returns(Types.TUPLE(Types.LONG, Types.INT, Types.LONG))
                .map(new Totals())
                .returns(Types.TUPLE(Types.LONG, Types.INT, Types.LONG))
                .sinkTo(new DiscardingSink<>());
        JobExecutionResult result = env.execute("packets per source");
        System.out.println("packets=" + result.getAccumulatorResult("packets")
                + " rows=" + result.getAccumulatorResult("rows")
                + " ms=" + result.getNetRuntime());
    }

    /** The source address and the time in milliseconds of each packet of a record. */
    private static final class Packets
            implements KafkaRecordDeserializationSchema<Tuple2<Integer, Long>> {
        private static final long serialVersionUID = 1L;
        private static final int FRONT = 48;
        private static final int GAP = 24;
        private static final int ENTRY = 20;
        private static final int ETHERNET_TYPE = 12;
        private static final int IPV4_SOURCE = 26;
        private static final short IPV4 = 0x0800;

        @Override
        public void deserialize(
                ConsumerRecord<byte[], byte[]> record, Collector<Tuple2<Integer, Long>> out) {
            ByteBuffer head = ByteBuffer.wrap(record.value()).order(ByteOrder.LITTLE_ENDIAN);
            ByteBuffer frames = ByteBuffer.wrap(record.value());
            int interfaces = Short.toUnsignedInt(head.getShort(40));
            int gaps = Short.toUnsignedInt(head.getShort(42));
            int packets = head.getInt(44);
            int entry = FRONT;
            for (int i = 0; i < interfaces; i++) {
                entry += 1 + Byte.toUnsignedInt(head.get(entry));
            }
            entry += gaps * GAP;
            int frame = entry + packets * ENTRY;
            Tuple2<Integer, Long> packet = new Tuple2<>();
            for (int i = 0; i < packets; i++, entry += ENTRY) {
                int length = head.getInt(entry + 12);
                if (length >= IPV4_SOURCE + 4 && frames.getShort(frame + ETHERNET_TYPE) == IPV4) {
                    packet.f0 = frames.getInt(frame + IPV4_SOURCE);
                    packet.f1 = Math.floorDiv(head.getLong(entry), 1_000_000L);
                    out.collect(packet);
                }
                frame += length;
            }
        }

        @Override
        public TypeInformation<Tuple2<Integer, Long>> getProducedType() {
            return Types.TUPLE(Types.INT, Types.LONG);
        }
    }

    private static final class Count
            implements AggregateFunction<Tuple2<Integer, Long>, Long, Long> {
        private static final long serialVersionUID = 1L;

        @Override
        public Long createAccumulator() {
            return 0L;
        }

        @Override
        public Long add(Tuple2<Integer, Long> packet, Long count) {
            return count + 1;
        }

        @Override
        public Long getResult(Long count) {
            return count;
        }

        @Override
        public Long merge(Long a, Long b) {
            return a + b;
        }
    }

    private static final class Rows
            extends ProcessWindowFunction<Long, Tuple3<Long, Integer, Long>, Integer, TimeWindow> {
        private static final long serialVersionUID = 1L;

        @Override
        public void process(Integer source, Context context, Iterable<Long> counts,
                Collector<Tuple3<Long, Integer, Long>> out) {
            out.collect(Tuple3.of(context.window().getStart(), source, counts.iterator().next()));
        }
    }

    /** Counts what comes out, so that a wrong answer shows. */
    private static final class Totals
            extends RichMapFunction<Tuple3<Long, Integer, Long>, Tuple3<Long, Integer, Long>> {
        private static final long serialVersionUID = 1L;
        private final LongCounter packets = new LongCounter();
        private final LongCounter rows = new LongCounter();

        @Override
        public void open(OpenContext context) {
            getRuntimeContext().addAccumulator("packets", packets);
            getRuntimeContext().addAccumulator("rows", rows);
        }

        @Override
        public Tuple3<Long, Integer, Long> map(Tuple3<Long, Integer, Long> row) {
            packets.add(row.f2);
            rows.add(1L);
            return row;
        }
    }
}
