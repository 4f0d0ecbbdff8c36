package weir;

import java.util.List;
import java.util.Map;
import org.apache.flink.kafka.shaded.org.apache.kafka.clients.admin.AdminClient;
import org.apache.flink.kafka.shaded.org.apache.kafka.clients.admin.NewTopic;

/** {@code MakeTopic HOST:PORT TOPIC PARTITIONS}: makes a topic that is not there. */
public final class MakeTopic {
    public static void main(String[] args) throws Exception {
        try (AdminClient admin = AdminClient.create(Map.of("bootstrap.servers", args[0]))) {
            NewTopic topic = new NewTopic(args[1], Integer.parseInt(args[2]), (short) 1);
            admin.createTopics(List.of(topic)).all().get();
        }
    }

    private MakeTopic() {}
}
