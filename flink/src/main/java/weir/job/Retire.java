package weir.job;

import java.nio.charset.StandardCharsets;
import java.util.Properties;
import org.apache.flink.kafka.shaded.org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.flink.kafka.shaded.org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.flink.kafka.shaded.org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * {@code Retire HOST:PORT TOPIC PROBE}: says that a probe which is gone without a word is not to be
 * waited for, until it sends again.
 */
public final class Retire {
    private Retire() {}

    public static void main(String[] args) throws Exception {
        if (args.length != 3) {
            System.err.println("usage: weir.job.Retire HOST:PORT TOPIC PROBE");
            System.exit(2);
        }
        Properties settings = new Properties();
        settings.put("bootstrap.servers", args[0]);
        settings.put("delivery.timeout.ms", "30000");
        settings.put("request.timeout.ms", "10000");
        settings.put("max.block.ms", "20000");
        byte[] key = args[2].getBytes(StandardCharsets.UTF_8);
        ProducerRecord<byte[], byte[]> record = new ProducerRecord<>(args[1], key, new byte[0]);
        record.headers().add(Incoming.RETIRE, new byte[] {'1'});
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(settings,
                new ByteArraySerializer(), new ByteArraySerializer())) {
            producer.send(record).get();
        }
    }
}
