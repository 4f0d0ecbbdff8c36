package weir;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Properties;
import org.apache.flink.kafka.shaded.org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.flink.kafka.shaded.org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.flink.kafka.shaded.org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * {@code Produce HOST:PORT TOPIC [--retire PROBE | --part-bytes N | --from N | --to N] STREAM...}:
 * puts probe streams into a topic as a probe does. {@code --from} and {@code --to} leave out
 * messages by their position, {@code --part-bytes} cuts messages into records of so many bytes.
 */
public final class Produce {
    private final KafkaProducer<byte[], byte[]> producer;
    private final String topic;
    private int partBytes = 900_000;
    private int from;
    private int to = Integer.MAX_VALUE;

    private Produce(String kafka, String topic) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", kafka);
        settings.put("enable.idempotence", "true");
        settings.put("max.request.size", "2000000");
        ByteArraySerializer bytes = new ByteArraySerializer();
        producer = new KafkaProducer<>(settings, bytes, bytes);
        this.topic = topic;
    }

    public static void main(String[] args) throws Exception {
        Produce all = new Produce(args[0], args[1]);
        for (int i = 2; i < args.length; i++) {
            switch (args[i]) {
                case "--retire" -> all.retire(args[++i]);
                case "--part-bytes" -> all.partBytes = Integer.parseInt(args[++i]);
                case "--from" -> all.from = Integer.parseInt(args[++i]);
                case "--to" -> all.to = Integer.parseInt(args[++i]);
                case "--garbage" -> all.send(bytes(args[++i]), bytes("WPR2 and no more"), 0, "");
                default -> all.stream(args[i]);
            }
        }
        all.producer.flush();
        all.producer.close();
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    private void retire(String probe) {
        ProducerRecord<byte[], byte[]> record =
                new ProducerRecord<>(topic, bytes(probe), new byte[0]);
        record.headers().add("weir-retire", bytes("1"));
        producer.send(record);
    }

    private void stream(String file) throws Exception {
        ProbeFile stream = ProbeFile.read(file);
        byte[] key = bytes(stream.probe());
        send(key, stream.head(), stream.epoch(), "");
        for (int at = from; at < Math.min(to, stream.messages().size()); at++) {
            byte[] message = stream.messages().get(at);
            int parts = (message.length + partBytes - 1) / partBytes;
            for (int part = 1; part <= parts; part++) {
                int begin = (part - 1) * partBytes;
                int end = Math.min(message.length, begin + partBytes);
                String word = parts == 1 ? "" : part + "/" + parts;
                send(key, Arrays.copyOfRange(message, begin, end), stream.epoch(), word);
            }
        }
    }

    private void send(byte[] key, byte[] value, long epoch, String part) {
        ProducerRecord<byte[], byte[]> record = new ProducerRecord<>(topic, key, value);
        record.headers().add("weir-epoch", bytes(Long.toUnsignedString(epoch)));
        if (!part.isEmpty()) {
            record.headers().add("weir-part", bytes(part));
        }
        producer.send(record);
    }
}
