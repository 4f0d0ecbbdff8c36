package weir.job;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Collectors;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.typeinfo.PrimitiveArrayTypeInfo;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.tuple.Tuple3;
import org.apache.flink.connector.base.DeliveryGuarantee;
import org.apache.flink.connector.kafka.sink.KafkaRecordSerializationSchema;
import org.apache.flink.connector.kafka.sink.KafkaSink;
import org.apache.flink.connector.kafka.source.KafkaSource;
import org.apache.flink.connector.kafka.source.KafkaSourceBuilder;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.kafka.shaded.org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import weir.postgres.PostgresSink;
import weir.postgres.Table;

/**
 * The upper levels of a query: partial results of probes in, by a topic of Kafka; rows out, into
 * another one or into tables, exactly once. The engine of Weir computes.
 */
public final class Job {
    /** A topic or table, a key (empty where there is none), and a line. */
    private static final TypeInformation<Tuple3<String, byte[], byte[]>> LINES = Types.TUPLE(
            Types.STRING, PrimitiveArrayTypeInfo.BYTE_PRIMITIVE_ARRAY_TYPE_INFO,
            PrimitiveArrayTypeInfo.BYTE_PRIMITIVE_ARRAY_TYPE_INFO);

    private Job() {}

    public static void main(String[] args) throws Exception {
        JobOptions options = new JobOptions(args);
        List<Table> tables = tables(options);
        Topics.check(options);
        if (options.database != null) {
            for (Table table : tables) {
                table.make(options.database);
                if (!options.append && table.hasRows(options.database)) {
                    throw new IllegalArgumentException(
                            JobOptions.hasRows("table `" + table.name() + "`"));
                }
            }
        }
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        env.enableCheckpointing(options.checkpointMs);
        env.getConfig().enableObjectReuse();
        env.getConfig().setGlobalJobParameters(options.shown());
        build(env, options, tables);
        env.executeAsync(options.name);
    }

    /** The tables of all outputs, whether there is a database or not. */
    private static List<Table> tables(JobOptions options) throws Exception {
        List<Table> all = new ArrayList<>();
        for (JsonNode output : new ObjectMapper().readTree(options.job).path("outputs")) {
            List<Table.Column> columns = new ArrayList<>();
            output.path("columns").forEach(column -> columns.add(new Table.Column(
                    column.path("name").asText(), column.path("type").asText())));
            all.add(new Table(options.table(output.path("name").asText(null)), columns));
        }
        return all;
    }

    private static void build(StreamExecutionEnvironment env, JobOptions options,
            List<Table> tables) {
        KafkaSourceBuilder<byte[]> source = KafkaSource.<byte[]>builder()
                .setProperties(options.client)
                .setBootstrapServers(options.kafka).setTopics(options.topic)
                .setProperty("isolation.level", "read_committed")
                .setProperty("partition.discovery.interval.ms", "10000")
                .setGroupId(options.id())
                .setStartingOffsets(OffsetsInitializer.earliest())
                .setDeserializer(new Incoming());
        if (options.bounded) {
            source.setBounded(OffsetsInitializer.latest());
        }
        boolean copies = options.database != null;
        List<String> targets = tables.stream()
                .map(table -> copies ? table.target() : options.to).collect(Collectors.toList());
        String events = options.lateTopic();
        DataStream<Tuple3<String, byte[], byte[]>> lines = env
                .fromSource(source.build(), WatermarkStrategy.noWatermarks(), "partial results")
                .uid("source")
                // Windows close for all probes at once.
                .keyBy(record -> 0, Types.INT)
                .process(new MergeFunction(options, targets), LINES)
                .name("merge").uid("merge")
                .setParallelism(1).setMaxParallelism(1);
        if (copies) {
            lines.filter(line -> !line.f0.equals(events))
                    .sinkTo(new PostgresSink(options.database)).name("rows to " + options.to)
                    .uid("tables");
            lines.filter(line -> line.f0.equals(events))
                    .sinkTo(sink(options)).name("events to " + events).uid("sink");
        } else {
            lines.sinkTo(sink(options)).name("rows to " + options.to).uid("sink");
        }
    }

    private static KafkaSink<Tuple3<String, byte[], byte[]>> sink(JobOptions options) {
        KafkaRecordSerializationSchema<Tuple3<String, byte[], byte[]>> records =
                (line, context, at) -> new ProducerRecord<>(line.f0,
                        line.f1.length == 0 ? null : line.f1, line.f2);
        return KafkaSink.<Tuple3<String, byte[], byte[]>>builder()
                .setKafkaProducerConfig(options.client)
                .setBootstrapServers(options.kafka)
                .setDeliveryGuarantee(DeliveryGuarantee.EXACTLY_ONCE)
                .setTransactionalIdPrefix(options.id())
                .setProperty("transaction.timeout.ms", "300000")
                .setRecordSerializer(records)
                .build();
    }
}
