package weir.job;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.util.Map;
import java.util.TreeMap;
import weir.merge.Losses;
import weir.merge.ProbeLives;
import weir.wire.Message;
import weir.wire.Unreadable;

/** What a job knows of one probe, and the parts of a message that have come of it. */
final class ProbeProgress {
    ProbeLives lives = new ProbeLives();
    /** The latest life that a head or a message named. */
    long epoch;
    /** Whether the latest life is refused: nothing more of it is taken. */
    boolean refused;
    /** How its latest life that was not refused reads packets; {@code null} before there is one. */
    String rules;
    /** By the number of a node, what was lost; of those whose rows say so. */
    final Map<Integer, Losses> losses = new TreeMap<>();
    private ByteArrayOutputStream parts = new ByteArrayOutputStream();
    private int part;
    private int partsAll;

    /**
     * Takes a record in, of which {@code word} says which part of a message it is. Returns the
     * bytes of a whole message or head; {@code null} while parts are missing.
     */
    byte[] whole(byte[] value, String word) throws Unreadable {
        if (word.isEmpty()) {
            // A message that broke off before is missing, as its number says.
            forgetParts();
            return value;
        }
        int slash = word.indexOf('/');
        int number = number(word, 0, slash);
        int all = number(word, slash + 1, word.length());
        if (slash < 1 || number < 1 || number > all) {
            throw new Unreadable("`weir-part` of a record can't be `" + word + "`");
        }
        if (number == 1) {
            forgetParts();
            partsAll = all;
        } else if (number <= part && all == partsAll) {
            return null;
        } else if (number != part + 1 || all != partsAll) {
            forgetParts();
            return null;
        }
        if (parts.size() + (long) value.length > Message.BYTES_MAX) {
            forgetParts();
            throw new Unreadable(
                    "a message in parts has more than " + Message.BYTES_MAX + " bytes");
        }
        parts.writeBytes(value);
        part = number;
        if (part < partsAll) {
            return null;
        }
        byte[] message = parts.toByteArray();
        forgetParts();
        return message;
    }

    private void forgetParts() {
        parts = new ByteArrayOutputStream();
        part = 0;
        partsAll = 0;
    }

    private static int number(String text, int from, int to) {
        try {
            return from < 0 || to <= from ? 0 : Integer.parseInt(text, from, to, 10);
        } catch (NumberFormatException e) {
            return 0;
        }
    }

    /** For a checkpoint. */
    byte[] written() throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        DataOutputStream out = new DataOutputStream(bytes);
        out.writeLong(epoch);
        out.writeBoolean(refused);
        out.writeUTF(lives.standing().name());
        for (long time : lives.times()) {
            out.writeLong(time);
        }
        out.writeInt(lives.lives().size());
        for (Map.Entry<Long, Long> life : lives.lives().entrySet()) {
            out.writeLong(life.getKey());
            out.writeLong(life.getValue());
        }
        out.writeInt(losses.size());
        for (Map.Entry<Integer, Losses> of : losses.entrySet()) {
            out.writeInt(of.getKey());
            of.getValue().write(out);
        }
        out.writeInt(part);
        out.writeInt(partsAll);
        out.writeInt(parts.size());
        out.write(parts.toByteArray());
        out.writeBoolean(rules != null);
        if (rules != null) {
            out.writeUTF(rules);
        }
        return bytes.toByteArray();
    }

    /** From a checkpoint. */
    static ProbeProgress read(byte[] written) throws IOException {
        DataInputStream in = new DataInputStream(new ByteArrayInputStream(written));
        ProbeProgress probe = new ProbeProgress();
        probe.epoch = in.readLong();
        probe.refused = in.readBoolean();
        ProbeLives.Standing standing = ProbeLives.Standing.valueOf(in.readUTF());
        long[] times = new long[probe.lives.times().length];
        for (int i = 0; i < times.length; i++) {
            times[i] = in.readLong();
        }
        Map<Long, Long> lives = new TreeMap<>(Long::compareUnsigned);
        int n = in.readInt();
        for (int i = 0; i < n; i++) {
            lives.put(in.readLong(), in.readLong());
        }
        probe.lives = ProbeLives.restored(lives, standing, times);
        for (int nodes = in.readInt(); nodes > 0; nodes--) {
            probe.losses.put(in.readInt(), Losses.read(in));
        }
        probe.part = in.readInt();
        probe.partsAll = in.readInt();
        probe.parts.writeBytes(in.readNBytes(in.readInt()));
        probe.rules = in.readBoolean() ? in.readUTF() : null;
        return probe;
    }
}
