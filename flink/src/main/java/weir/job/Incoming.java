package weir.job;

import java.nio.ByteBuffer;
import org.apache.flink.api.common.typeinfo.PrimitiveArrayTypeInfo;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.connector.kafka.source.reader.deserializer.KafkaRecordDeserializationSchema;
import org.apache.flink.kafka.shaded.org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.flink.kafka.shaded.org.apache.kafka.common.header.Header;
import org.apache.flink.util.Collector;

/**
 * Records of the topic of partial results as the engine reads them: the key (the name of the probe)
 * and headers, each after its length in four bytes (all ones where it is not there), and the value.
 */
public final class Incoming implements KafkaRecordDeserializationSchema<byte[]> {
    private static final long serialVersionUID = 1L;

    /** The header of a record that says that nothing waits for its probe any more. */
    public static final String RETIRE = "weir-retire";
    private static final String[] HEADERS = {"weir-epoch", "weir-part", "weir-end", RETIRE};
    private static final byte[] NOTHING = {};

    @Override
    public void deserialize(ConsumerRecord<byte[], byte[]> record, Collector<byte[]> out) {
        out.collect(packed(record));
    }

    /** The bytes of a record. */
    public static byte[] packed(ConsumerRecord<byte[], byte[]> record) {
        byte[][] fields = new byte[1 + HEADERS.length][];
        fields[0] = record.key();
        int bytes = 4 * fields.length;
        for (int i = 0; i < HEADERS.length; i++) {
            Header header = record.headers().lastHeader(HEADERS[i]);
            fields[i + 1] = header == null ? null
                    : header.value() == null ? NOTHING : header.value();
        }
        for (byte[] field : fields) {
            bytes += field == null ? 0 : field.length;
        }
        byte[] value = record.value() == null ? NOTHING : record.value();
        ByteBuffer all = ByteBuffer.allocate(bytes + value.length);
        for (byte[] field : fields) {
            all.putInt(field == null ? -1 : field.length).put(field == null ? NOTHING : field);
        }
        return all.put(value).array();
    }

    @Override
    public TypeInformation<byte[]> getProducedType() {
        return PrimitiveArrayTypeInfo.BYTE_PRIMITIVE_ARRAY_TYPE_INFO;
    }
}
