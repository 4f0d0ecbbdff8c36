package weir.job;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.concurrent.ExecutionException;
import org.apache.flink.kafka.shaded.org.apache.kafka.clients.admin.AdminClient;
import org.apache.flink.kafka.shaded.org.apache.kafka.clients.admin.NewTopic;
import org.apache.flink.kafka.shaded.org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.flink.kafka.shaded.org.apache.kafka.clients.admin.TopicDescription;
import org.apache.flink.kafka.shaded.org.apache.kafka.common.TopicPartition;
import org.apache.flink.kafka.shaded.org.apache.kafka.common.errors.UnknownTopicOrPartitionException;

/** The topics of a job, which have to be there before it starts: a name that is wrong makes none. */
final class Topics {
    private final AdminClient admin;
    private final JobOptions options;

    private Topics(AdminClient admin, JobOptions options) {
        this.admin = admin;
        this.options = options;
    }

    /** Fails where one is absent, or rows would go to one that has rows. */
    static void check(JobOptions options) throws Exception {
        Properties settings = new Properties();
        settings.putAll(options.client);
        settings.put("bootstrap.servers", options.kafka);
        settings.put("default.api.timeout.ms", "20000");
        settings.put("request.timeout.ms", "10000");
        try (AdminClient admin = AdminClient.create(settings)) {
            Topics topics = new Topics(admin, options);
            topics.describe(options.topic).orElseThrow(
                    () -> topics.absent(options.topic, "--topic", "make it"));
            if (options.database == null) {
                topics.own(options.to, "--to").ifPresent(topics::refuseRows);
            }
            topics.own(options.lateTopic(), "its events");
        }
    }

    /** A topic that the job writes: it is there, or the job may make it. */
    private Optional<TopicDescription> own(String name, String role) throws Exception {
        Optional<TopicDescription> there = describe(name);
        if (there.isEmpty() && !options.createTopics) {
            throw absent(name, role, "make it, or let the job make it (--create-topics)");
        }
        if (there.isEmpty()) {
            NewTopic topic = new NewTopic(name, Optional.empty(), Optional.empty());
            admin.createTopics(List.of(topic)).all().get();
        }
        return there;
    }

    private IllegalArgumentException absent(String name, String role, String remedy) {
        return new IllegalArgumentException("there is no topic `" + name + "` at " + options.kafka
                + " (" + role + "): " + remedy);
    }

    private Optional<TopicDescription> describe(String name) throws Exception {
        try {
            return Optional.of(admin.describeTopics(List.of(name)).topicNameValues().get(name).get());
        } catch (ExecutionException e) {
            if (e.getCause() instanceof UnknownTopicOrPartitionException) {
                return Optional.empty();
            }
            throw e;
        }
    }

    /** A job that begins reads all partial results again, and would put their rows out again. */
    private void refuseRows(TopicDescription topic) {
        if (!options.append && hasRecords(topic)) {
            throw new IllegalArgumentException(JobOptions.hasRows("topic `" + topic.name() + "`"));
        }
    }

    private boolean hasRecords(TopicDescription topic) {
        List<TopicPartition> all = new ArrayList<>();
        topic.partitions().forEach(one -> all.add(new TopicPartition(topic.name(), one.partition())));
        Map<TopicPartition, Long> first = offsets(all, OffsetSpec.earliest());
        Map<TopicPartition, Long> next = offsets(all, OffsetSpec.latest());
        return all.stream().anyMatch(one -> next.get(one) > first.get(one));
    }

    private Map<TopicPartition, Long> offsets(List<TopicPartition> all, OffsetSpec which) {
        Map<TopicPartition, OffsetSpec> asked = new HashMap<>();
        all.forEach(one -> asked.put(one, which));
        Map<TopicPartition, Long> found = new HashMap<>();
        try {
            admin.listOffsets(asked).all().get().forEach((one, at) -> found.put(one, at.offset()));
        } catch (InterruptedException | ExecutionException e) {
            throw new IllegalStateException("topic " + options.to + " does not say whether it has"
                    + " rows: " + e.getMessage(), e);
        }
        return found;
    }
}
