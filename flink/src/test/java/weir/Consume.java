package weir;

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.Properties;
import org.apache.flink.kafka.shaded.org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.flink.kafka.shaded.org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.flink.kafka.shaded.org.apache.kafka.common.TopicPartition;
import org.apache.flink.kafka.shaded.org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * {@code Consume HOST:PORT TOPIC LINES SECONDS [keys]}: prints what is committed in a topic, until there
 * are so many lines, and then for two seconds more; or until the time is over.
 */
public final class Consume {
    public static void main(String[] args) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", args[0]);
        settings.put("isolation.level", "read_committed");
        settings.put("auto.offset.reset", "earliest");
        int wanted = Integer.parseInt(args[2]);
        long end = System.nanoTime() + Long.parseLong(args[3]) * 1_000_000_000L;
        int lines = 0;
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings,
                new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            List<TopicPartition> all = consumer.partitionsFor(args[1]).stream()
                    .map(part -> new TopicPartition(part.topic(), part.partition())).toList();
            consumer.assign(all);
            consumer.seekToBeginning(all);
            boolean waited = false;
            while (System.nanoTime() < end) {
                Duration wait = Duration.ofMillis(200);
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(wait)) {
                    String key = record.key() == null ? "-"
                            : new String(record.key(), StandardCharsets.UTF_8);
                    System.out.println((args.length > 4 ? key + " " : "")
                            + new String(record.value(), StandardCharsets.UTF_8));
                    lines++;
                }
                if (lines >= wanted && !waited) {
                    waited = true;
                    end = Math.min(end, System.nanoTime() + 2_000_000_000L);
                }
            }
        }
        if (lines < wanted) {
            throw new IllegalStateException("only " + lines + " lines");
        }
    }
}
