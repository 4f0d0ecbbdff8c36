package weir.job;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import org.apache.flink.api.common.typeinfo.PrimitiveArrayTypeInfo;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.tuple.Tuple3;
import org.apache.flink.connector.kafka.source.reader.deserializer.KafkaRecordDeserializationSchema;
import org.apache.flink.kafka.shaded.org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.flink.kafka.shaded.org.apache.kafka.common.header.Header;
import org.apache.flink.util.Collector;

/**
 * Records of the topic of partial results: the name of the probe (the key), the bytes, and the word
 * beside them: {@code retire}, {@code 2/3} of a part of a message, or nothing.
 */
public final class Incoming
        implements KafkaRecordDeserializationSchema<Tuple3<String, byte[], String>> {
    private static final long serialVersionUID = 1L;

    /** The header of a part of a message: which, and of how many. */
    public static final String PART = "weir-part";
    /** The header of a record that says that nothing waits for its probe any more. */
    public static final String RETIRE = "weir-retire";
    /** The word of such a record. */
    static final String RETIRED = "retire";

    @Override
    public void deserialize(
            ConsumerRecord<byte[], byte[]> record, Collector<Tuple3<String, byte[], String>> out)
            throws IOException {
        String probe = text(record.key());
        byte[] value = record.value() == null ? new byte[0] : record.value();
        Header part = record.headers().lastHeader(PART);
        String word = record.headers().lastHeader(RETIRE) != null
                ? RETIRED
                : part == null ? "" : text(part.value());
        out.collect(Tuple3.of(probe, value, word));
    }

    private static String text(byte[] bytes) {
        return bytes == null ? "" : new String(bytes, StandardCharsets.UTF_8);
    }

    @Override
    public TypeInformation<Tuple3<String, byte[], String>> getProducedType() {
        return Types.TUPLE(Types.STRING, PrimitiveArrayTypeInfo.BYTE_PRIMITIVE_ARRAY_TYPE_INFO,
                Types.STRING);
    }
}
