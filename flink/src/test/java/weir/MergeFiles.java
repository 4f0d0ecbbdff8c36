package weir;

import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.flink.kafka.shaded.org.apache.kafka.clients.consumer.ConsumerRecord;
import weir.engine.Lines;
import weir.engine.Tier;
import weir.job.Incoming;

/**
 * {@code MergeFiles [--restore N] JOB STREAM...}: what a job makes of streams in files, without
 * Flink; rows to standard output, events to standard error. With {@code --restore}, the merge is
 * saved, dropped and made anew after each N records.
 */
public final class MergeFiles {
    /** Where a message has its kind, and the kind that says how far a probe is. */
    private static final int KIND_AT = 57;
    private static final byte CLOSED = 4;

    private final String job;
    private final List<String> probes;
    private final int restoreEach;
    private Tier tier;
    private int records;

    private MergeFiles(String job, List<String> probes, int restoreEach) {
        this.job = job;
        this.probes = probes;
        this.restoreEach = restoreEach;
        tier = new Tier(job, probes, true, false, null);
    }

    public static void main(String[] args) throws Exception {
        int restores = args[0].equals("--restore") ? 2 : 0;
        String job = Files.readString(Path.of(args[restores]));
        List<ProbeFile> streams = new ArrayList<>();
        for (int i = restores + 1; i < args.length; i++) {
            streams.add(ProbeFile.read(args[i]));
        }
        // The earliest life of a probe first, as it is in a topic.
        streams.sort((a, b) -> Long.compareUnsigned(a.epoch(), b.epoch()));
        List<String> probes = streams.stream().map(ProbeFile::probe).distinct().toList();
        MergeFiles merge = new MergeFiles(job, probes, restores == 0 ? 0 : Integer.parseInt(args[1]));
        merge.all(streams);
        merge.tier.finish(Lines.each(MergeFiles::print));
        merge.tier.close();
    }

    /** Takes what the slowest probes have first, as {@code weir merge} does. */
    private void all(List<ProbeFile> streams) {
        Map<String, ArrayDeque<ProbeFile>> lives = new LinkedHashMap<>();
        Map<String, Long> closed = new HashMap<>();
        for (ProbeFile stream : streams) {
            lives.computeIfAbsent(stream.probe(), of -> new ArrayDeque<>()).add(stream);
            closed.putIfAbsent(stream.probe(), Long.MIN_VALUE);
            if (lives.get(stream.probe()).size() == 1) {
                record(stream, stream.head());
            }
        }
        while (!lives.isEmpty()) {
            String probe = Collections.min(lives.keySet(), Comparator.comparing(closed::get));
            ProbeFile stream = lives.get(probe).peek();
            if (stream.messages().isEmpty()) {
                lives.get(probe).poll();
                if (lives.get(probe).isEmpty()) {
                    lives.remove(probe);
                } else {
                    record(lives.get(probe).peek(), lives.get(probe).peek().head());
                    closed.put(probe, Long.MIN_VALUE);
                }
                continue;
            }
            byte[] message = stream.messages().remove(0);
            if (message[KIND_AT] == CLOSED) {
                closed.put(probe, ByteBuffer.wrap(message).order(ByteOrder.LITTLE_ENDIAN)
                        .getLong(KIND_AT + 1));
            }
            record(stream, message);
        }
    }

    private void record(ProbeFile stream, byte[] value) {
        ConsumerRecord<byte[], byte[]> record = new ConsumerRecord<>("partials", 0, records,
                stream.probe().getBytes(StandardCharsets.UTF_8), value);
        byte[] epoch = Long.toUnsignedString(stream.epoch()).getBytes(StandardCharsets.UTF_8);
        record.headers().add("weir-epoch", epoch);
        tier.take(Incoming.packed(record), Lines.each(MergeFiles::print));
        records++;
        if (restoreEach > 0 && records % restoreEach == 0) {
            byte[] state = tier.save();
            tier.close();
            tier = new Tier(job, probes, true, false, state);
        }
    }

    private static void print(int output, byte[] key, byte[] line) {
        PrintStream to = output == Lines.EVENTS ? System.err : System.out;
        to.println(new String(line, StandardCharsets.UTF_8));
    }
}
