package weir.job;

import java.nio.charset.StandardCharsets;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.MapFunction;
import org.apache.flink.api.common.typeinfo.PrimitiveArrayTypeInfo;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.api.java.tuple.Tuple3;
import org.apache.flink.connector.base.DeliveryGuarantee;
import org.apache.flink.connector.kafka.sink.KafkaRecordSerializationSchema;
import org.apache.flink.connector.kafka.sink.KafkaSink;
import org.apache.flink.connector.kafka.source.KafkaSource;
import org.apache.flink.connector.kafka.source.KafkaSourceBuilder;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.kafka.shaded.org.apache.kafka.clients.admin.AdminClient;
import org.apache.flink.kafka.shaded.org.apache.kafka.clients.admin.NewTopic;
import org.apache.flink.kafka.shaded.org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.datastream.SingleOutputStreamOperator;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.table.api.Schema;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;
import org.apache.flink.types.Row;
import org.apache.flink.util.OutputTag;
import weir.alert.AlertOperator;
import weir.functions.Functions;
import weir.join.JoinOperator;
import weir.merge.Partial;
import weir.plan.ColumnPlan;
import weir.plan.JobPlan;
import weir.plan.JobPlan.OutputPlan;
import weir.plan.JobPlan.StepPlan;
import weir.plan.JoinPlan;
import weir.plan.NodePlan;
import weir.postgres.PostgresSink;
import weir.postgres.Tables;
import weir.rows.Text;
import weir.scan.ScanOperator;
import weir.wire.Part;

/**
 * The upper levels of a query: partial results of probes in, by a topic of Kafka; rows out, into
 * another one or into tables, exactly once. What comes after the merge is SQL.
 */
public final class Job {
    private static final OutputTag<String> EVENTS = new OutputTag<>("events", Types.STRING);
    private static final TypeInformation<Tuple2<String, byte[]>> LINES = Types.TUPLE(Types.STRING,
            PrimitiveArrayTypeInfo.BYTE_PRIMITIVE_ARRAY_TYPE_INFO);

    private final JobOptions options;
    private final JobPlan plan;

    private Job(JobOptions options) {
        this.options = options;
        this.plan = options.plan;
    }

    public static void main(String[] args) throws Exception {
        JobOptions options = new JobOptions(args);
        createTopics(options);
        createTables(options);
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        env.enableCheckpointing(options.checkpointMs);
        env.getConfig().enableObjectReuse();
        new Job(options).build(env);
        env.executeAsync(options.name);
    }

    /** A topic that is missing would fail the job only after a minute. */
    private static void createTopics(JobOptions options) throws Exception {
        try (AdminClient admin = AdminClient.create(java.util.Map.of(
                "bootstrap.servers", options.kafka, "default.api.timeout.ms", "20000",
                "request.timeout.ms", "10000"))) {
            Set<String> there = admin.listTopics().names().get();
            Stream<String> rows = Stream.of(options.to).filter(to -> options.database == null);
            List<NewTopic> missing =
                    Stream.concat(rows, Stream.of(options.topic, options.lateTopic()))
                    .filter(topic -> !there.contains(topic))
                    .map(topic -> new NewTopic(topic, Optional.empty(), Optional.empty()))
                    .collect(Collectors.toList());
            admin.createTopics(missing).all().get();
        }
    }

    private static void createTables(JobOptions options) throws SQLException {
        if (options.database == null) {
            return;
        }
        for (OutputPlan output : options.plan.outputs) {
            Tables.make(options.database, options.table(output.name), output.columns);
        }
    }

    private void build(StreamExecutionEnvironment env) {
        KafkaSourceBuilder<Tuple3<String, byte[], String>> source =
                KafkaSource.<Tuple3<String, byte[], String>>builder()
                        .setBootstrapServers(options.kafka).setTopics(options.topic)
                        .setProperty("isolation.level", "read_committed")
                        .setProperty("partition.discovery.interval.ms", "10000")
                        .setGroupId("weir-" + options.to)
                        .setStartingOffsets(OffsetsInitializer.earliest())
                        .setDeserializer(new Incoming());
        if (options.bounded) {
            source.setBounded(OffsetsInitializer.latest());
        }
        List<OutputTag<Partial>> tags = new ArrayList<>();
        List<OutputTag<WindowShare>> shares = new ArrayList<>();
        for (NodePlan node : plan.nodes) {
            tags.add(new OutputTag<>("node" + node.number, new PartialInfo(plan)));
            shares.add(new OutputTag<>("shares" + node.number, Types.POJO(WindowShare.class)));
        }
        SingleOutputStreamOperator<String> front = env
                .fromSource(source.build(), WatermarkStrategy.noWatermarks(), "partial results")
                .uid("source")
                .keyBy(record -> record.f0)
                .transform("front", Types.STRING, new Front(plan, options.probes, options.bounded, tags, shares))
                .uid("front")
                .setParallelism(1).setMaxParallelism(1);
        DataStream<String> events = front;
        List<DataStream<Row>> merged = new ArrayList<>();
        for (NodePlan node : plan.nodes) {
            SingleOutputStreamOperator<Row> rows = front
                    .getSideOutput(tags.get(node.number))
                    .keyBy(Merge::key)
                    .transform("merge " + (node.number + 1), rowTypeWithKey(node.columns),
                            new Merge(plan, node.number, EVENTS))
                    .uid("merge-" + node.number);
            merged.add(node.completeness().isEmpty() ? rows : rows
                    .connect(front.getSideOutput(shares.get(node.number)).broadcast())
                    .transform("completeness " + (node.number + 1), rowTypeWithKey(node.columns),
                            new Complete(plan, node.number, rowTypeWithKey(node.columns)))
                    .uid("completeness-" + node.number));
            events = events.union(rows.getSideOutput(EVENTS));
        }
        DataStream<Tuple2<String, byte[]>> lines = lines(env, merged);
        String late = options.lateTopic();
        DataStream<Tuple2<String, byte[]>> told =
                events.map(text -> line(late, text)).returns(LINES).name("events");
        if (options.database == null) {
            lines.union(told).sinkTo(sink()).name("rows to " + options.to).uid("sink");
        } else {
            lines.sinkTo(new PostgresSink(options.database)).name("rows to " + options.to)
                    .uid("tables");
            told.sinkTo(sink()).name("events to " + late).uid("sink");
        }
    }

    private static Tuple2<String, byte[]> line(String topic, String text) {
        return Tuple2.of(topic, text.getBytes(StandardCharsets.UTF_8));
    }

    /** The lines of all outputs. */
    private DataStream<Tuple2<String, byte[]>> lines(
            StreamExecutionEnvironment env, List<DataStream<Row>> merged) {
        boolean needsSql = plan.outputs.stream().anyMatch(output -> output.sql != null);
        StreamTableEnvironment tables = needsSql ? tables(env, merged) : null;
        DataStream<Tuple2<String, byte[]>> all = null;
        for (OutputPlan output : plan.outputs) {
            DataStream<Row> rows = output.sql == null
                    ? merged.get(output.node)
                    : tables.toDataStream(tables.sqlQuery(output.sql));
            if (output.alert != null) {
                String of = output.name == null ? "" : " of " + output.name;
                rows = rows.transform("alerts" + of, rowType(output.columns),
                        new AlertOperator(output.alert)).uid("alerts" + of)
                        .setParallelism(1).setMaxParallelism(1);
            }
            List<ColumnPlan> columns = output.columns;
            String name = output.name;
            DataStream<Tuple2<String, byte[]>> lines = rows.map(line(columns, name))
                    .returns(LINES).name("lines" + (name == null ? "" : " of " + name));
            all = all == null ? lines : all.union(lines);
        }
        return all;
    }

    /** How a row of an output becomes a line: of JSON for a topic, or of a table. */
    private MapFunction<Row, Tuple2<String, byte[]>> line(List<ColumnPlan> columns, String name) {
        int n = columns.size();
        if (options.database == null) {
            String topic = options.to;
            return row -> line(topic, Text.json(columns, values(row, n), name));
        }
        String table = Tables.target(options.table(name), columns);
        return row -> Tuple2.of(table, Tables.line(columns, values(row, n)));
    }

    private static Object[] values(Row row, int n) {
        Object[] values = new Object[n];
        for (int i = 0; i < n; i++) {
            values[i] = row.getField(i);
        }
        return values;
    }

    /** Tables of the merged rows, and the views over them. */
    private StreamTableEnvironment tables(
            StreamExecutionEnvironment env, List<DataStream<Row>> merged) {
        StreamTableEnvironment tables = StreamTableEnvironment.create(env);
        tables.getConfig().set("table.local-time-zone", "UTC");
        Functions.register(tables);
        for (NodePlan node : plan.nodes) {
            String name = "node" + (node.number + 1);
            createView(tables, name, merged.get(node.number), node.columns);
        }
        for (StepPlan step : plan.steps) {
            if (step.scan != null) {
                createView(tables, step.name, folded(tables, step), step.scan.columns);
            } else if (step.join != null) {
                createView(tables, step.name, joined(tables, step), step.join.columns);
            } else {
                tables.executeSql(step.sql);
            }
        }
        return tables;
    }

    private static DataStream<Row> folded(StreamTableEnvironment tables, StepPlan step) {
        return tables.toDataStream(tables.sqlQuery(step.scan.sql))
                .transform("scan " + step.name, rowTypeWithKey(step.scan.columns),
                        new ScanOperator(step.scan))
                .uid("scan-" + step.name)
                .setParallelism(1).setMaxParallelism(1);
    }

    private static DataStream<Row> joined(StreamTableEnvironment tables, StepPlan step) {
        JoinPlan join = step.join;
        int left = join.left;
        int right = join.right;
        return tables.toDataStream(tables.sqlQuery(join.leftSql))
                .keyBy(row -> JoinOperator.key(row, left), Types.STRING)
                .connect(tables.toDataStream(tables.sqlQuery(join.rightSql))
                        .keyBy(row -> JoinOperator.key(row, right), Types.STRING))
                .transform("join " + step.name, rowTypeWithKey(join.columns),
                        new JoinOperator(join))
                .uid("join-" + step.name);
    }

    /** Makes a view of rows with these columns, which bear their order after them. */
    private static void createView(StreamTableEnvironment tables, String name,
            DataStream<Row> rows, List<ColumnPlan> columns) {
        Schema schema = Schema.newBuilder()
                .columnByMetadata("rowtime", "TIMESTAMP_LTZ(3)")
                .watermark("rowtime", "SOURCE_WATERMARK()").build();
        tables.createTemporaryView(name + "_raw", tables.fromDataStream(rows, schema));
        StringBuilder named = new StringBuilder();
        for (int i = 0; i < columns.size(); i++) {
            String column = columns.get(i).name.replace("`", "``");
            named.append("f").append(i).append(" AS `").append(column).append("`, ");
        }
        tables.executeSql("CREATE TEMPORARY VIEW " + name + " AS SELECT " + named + "f"
                + columns.size() + " AS `$order`, rowtime AS `$rowtime` FROM " + name + "_raw");
    }

    /** Columns {@code f0, f1, …}, then the key, which is the order of rows. */
    private static TypeInformation<Row> rowTypeWithKey(List<ColumnPlan> columns) {
        List<ColumnPlan> all = new ArrayList<>(columns);
        all.add(new ColumnPlan("key", Part.Type.BYTES));
        return rowType(all);
    }

    /** Columns {@code f0, f1, …}. */
    private static TypeInformation<Row> rowType(List<ColumnPlan> columns) {
        List<TypeInformation<?>> types = new ArrayList<>();
        columns.forEach(column -> types.add(Merge.type(column.type)));
        String[] names = new String[types.size()];
        for (int i = 0; i < names.length; i++) {
            names[i] = "f" + i;
        }
        return Types.ROW_NAMED(names, types.toArray(new TypeInformation<?>[0]));
    }

    private KafkaSink<Tuple2<String, byte[]>> sink() {
        KafkaRecordSerializationSchema<Tuple2<String, byte[]>> records =
                (line, context, at) -> new ProducerRecord<>(line.f0, line.f1);
        return KafkaSink.<Tuple2<String, byte[]>>builder()
                .setBootstrapServers(options.kafka)
                .setDeliveryGuarantee(DeliveryGuarantee.EXACTLY_ONCE)
                .setTransactionalIdPrefix("weir-" + options.to)
                .setProperty("transaction.timeout.ms", "300000")
                .setRecordSerializer(records)
                .build();
    }
}
