package weir.job;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import org.apache.flink.configuration.Configuration;
import weir.postgres.Database;

/** The arguments of a job. */
final class JobOptions {
    static final String USAGE = "usage: weir.job.Job --job JSON | --job-file FILE"
            + " --kafka HOST:PORT --topic TOPIC --probes NAME,NAME --to TOPIC [--name NAME]"
            + " [--database jdbc:postgresql://HOST/NAME] [--checkpoint-ms N] [--bounded true]"
            + " [--append true] [--create-topics true] [--kafka-properties JSON]";

    /** The text that {@code weir cluster submit} writes of queries. */
    final String job;
    final String kafka;
    final String topic;
    final List<String> probes;
    /** The topic that rows go to; with a database, the table. */
    final String to;
    /** Where rows go instead of a topic; null: there is none. */
    final Database database;
    final String name;
    final long checkpointMs;
    /** Whether the topic is read up to its present end, and all windows close then. */
    final boolean bounded;
    /** Whether rows may go to where rows are. */
    final boolean append;
    /** Whether topics that the job writes are made. */
    final boolean createTopics;
    /** Settings of the clients of Kafka beside the address. */
    final Properties client = new Properties();

    JobOptions(String[] args) throws java.io.IOException {
        Map<String, String> given = new HashMap<>();
        Set<String> known = Set.of("--job", "--job-file", "--kafka", "--topic", "--probes",
                "--to", "--database", "--name", "--checkpoint-ms", "--bounded", "--append",
                "--create-topics", "--kafka-properties");
        for (int i = 0; i < args.length; i += 2) {
            if (!known.contains(args[i]) || i + 1 == args.length) {
                throw new IllegalArgumentException("`" + args[i]
                        + "` is no option, or has no value; " + USAGE);
            }
            given.put(args[i], args[i + 1]);
        }
        job = given.containsKey("--job-file")
                ? Files.readString(Path.of(given.get("--job-file")))
                : needed(given, "--job");
        kafka = needed(given, "--kafka");
        topic = needed(given, "--topic");
        to = needed(given, "--to");
        String url = given.get("--database");
        database = url == null ? null : new Database(url);
        String[] names = needed(given, "--probes").split(",");
        probes = List.copyOf(new LinkedHashSet<>(Arrays.asList(names)));
        name = given.getOrDefault("--name", to);
        checkpointMs = Long.parseLong(given.getOrDefault("--checkpoint-ms", "2000"));
        bounded = Boolean.parseBoolean(given.getOrDefault("--bounded", "false"));
        append = Boolean.parseBoolean(given.get("--append"));
        createTopics = Boolean.parseBoolean(given.get("--create-topics"));
        JsonNode properties = new ObjectMapper()
                .readTree(given.getOrDefault("--kafka-properties", "{}"));
        properties.fields().forEachRemaining(
                one -> client.setProperty(one.getKey(), one.getValue().asText()));
        if (probes.stream().anyMatch(String::isEmpty)) {
            throw new IllegalArgumentException("a probe in --probes has no name");
        }
        boolean isSame = database == null && topic.equals(to);
        if (isSame || topic.equals(lateTopic())) {
            throw new IllegalArgumentException("rows can't go to the topic of partial results");
        }
    }

    /** Where groups that came late, and what was refused, are told of. */
    String lateTopic() {
        return to + "-events";
    }

    /** The table of an output, which has a name where there are several. */
    String table(String output) {
        return output == null ? to : to + "_" + output;
    }

    /** The name of the job at Kafka: of its group and its transactions. */
    String id() {
        // No topic has a colon in its name.
        return "weir-" + to + (name.equals(to) ? "" : ":" + name);
    }

    /** The options that everybody sees who sees the job: no secrets. */
    Configuration shown() {
        Map<String, String> all = new HashMap<>(Map.of("weir.kafka", kafka, "weir.topic", topic,
                "weir.to", to, "weir.probes", String.join(",", probes)));
        if (database != null) {
            all.put("weir.database", database.toString());
        }
        return Configuration.fromMap(all);
    }

    /** Why rows do not go to a place. */
    static String hasRows(String place) {
        return place + " has rows, and a job that begins puts out those of all partial results"
                + " again: choose another --to, go on from a savepoint (--from-savepoint), or let"
                + " them come again (--append)";
    }

    private static String needed(Map<String, String> given, String option) {
        String value = given.get(option);
        if (value == null || value.isEmpty()) {
            throw new IllegalArgumentException(option + " is missing; " + USAGE);
        }
        return value;
    }
}
