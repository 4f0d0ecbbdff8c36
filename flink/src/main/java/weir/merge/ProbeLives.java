package weir.merge;

import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import weir.plan.NodePlan;
import weir.wire.Message;
import weir.wire.Message.LossNews;

/**
 * What has come of one probe: which messages of which life, and how far its time is. Each start
 * of a probe begins a life, whose messages are numbered from 0.
 */
public final class ProbeLives {
    /** The lives that are remembered. Messages of earlier ones count as repeated. */
    public static final int LIVES = 16;
    /** Stands for the frames that passed while no life saw any, as in Weir. */
    private static final long UNSEEN_FRAMES = 1L << 48;

    /** Bits for what is true of it, in checkpoints. */
    private static final long WHOLE = 1;
    private static final long RESUMES = 2;
    private static final long BROKE_OFF = 4;
    private static final long TOLD = 8;

    /** What windows wait for. */
    public enum Standing {
        /** They wait for the probe. */
        OPEN,
        /** Its input ended, so that nothing waits for it. */
        ENDED,
        /** Somebody said that nothing is to wait for it until it sends again. */
        RETIRED
    }

    /** By life the number of its next message, both without a sign. */
    private final TreeMap<Long, Long> next = new TreeMap<>(Long::compareUnsigned);
    private Standing standing = Standing.OPEN;
    /** Whether its input came to its end, by its own word. */
    private boolean whole;
    /** Whether each life does again what the one before it left undone. */
    private boolean resumes;
    /** Whether the life before broke off or messages are missing, and since when nobody saw anything. */
    private boolean brokeOff;
    /** Whether it was said that nobody saw anything since then, without an end. */
    private boolean told;
    private long unseenSince = Long.MIN_VALUE;
    /** How much later than its packets its watermark is, and whether it is the first of a life. */
    private long latenessNs;
    private boolean first;
    private long closed = Long.MIN_VALUE;
    /** When the last of its windows closes. */
    private long last = Long.MIN_VALUE;
    private long missing;

    /**
     * Whether a message is new. If it is, messages before it that did not come will not come: they
     * are counted as missing.
     */
    public boolean take(Message message) {
        Long expected = next.get(message.epoch);
        if (expected == null) {
            boolean full = next.size() >= LIVES;
            if (full && Long.compareUnsigned(message.epoch, next.firstKey()) < 0) {
                return false;
            }
            expected = 0L;
            if (next.isEmpty() || Long.compareUnsigned(message.epoch, next.lastKey()) > 0) {
                if (!brokeOff) {
                    brokeOff = !next.isEmpty() && !whole && !resumes;
                    unseenSince = closed;
                }
                closed = Long.MIN_VALUE;
                standing = Standing.OPEN;
                whole = false;
            }
        }
        if (Long.compareUnsigned(message.number, expected) < 0) {
            return false;
        }
        missing = sum(missing, message.number - expected);
        next.put(message.epoch, message.number == -1 ? -1 : message.number + 1);
        if (next.size() > LIVES) {
            next.pollFirstEntry();
        }
        if (message.epoch == next.lastKey()) {
            if (message.number != expected) {
                lack();
            }
            follow(message);
        }
        return true;
    }

    /** Nobody knows what it saw since it last said how far it is. */
    private void lack() {
        if (!brokeOff) {
            brokeOff = true;
            unseenSince = closed == Long.MIN_VALUE ? unseenSince : closed;
        }
    }

    /** Does what a message of the latest life says. */
    private void follow(Message message) {
        if (standing == Standing.RETIRED) {
            standing = Standing.OPEN;
        }
        switch (message.kind) {
            case CLOSED:
                first = closed == Long.MIN_VALUE;
                closed = Math.max(closed, message.time);
                break;
            case END:
                standing = Standing.ENDED;
                whole = message.inputEnded();
                break;
            default:
        }
    }

    /** Says whether each life does again what the one before it left undone. */
    public void resumes(boolean does) {
        resumes = does;
    }

    /** Says how long windows of this probe wait for packets that come out of order. */
    public void lateness(long ns) {
        latenessNs = ns;
    }

    /** Takes the end of a life after which windows wait for the next one. */
    public void goesOn(Message end) {
        long expected = next.getOrDefault(end.epoch, 0L);
        if (end.number != expected) {
            missing = sum(missing, end.number - expected);
            lack();
        }
        whole = end.inputEnded();
    }

    /**
     * What nobody saw, after this message: between a life that broke off and the next, or around
     * messages that are missing, up to where the probe says how far it is, or without an end where
     * it ends; {@code null} if there is nothing.
     */
    public LossNews unseen(Message message) {
        if (message.kind == Message.Kind.END && message.epoch == next.lastKey()) {
            return unseenAtEnd();
        }
        if (!brokeOff || message.kind != Message.Kind.CLOSED || closed == Long.MIN_VALUE) {
            return null;
        }
        boolean wasTold = told;
        brokeOff = false;
        told = false;
        // Of a life, as far as its first packets.
        long until = NodePlan.add(closed, first ? latenessNs - 1 : -1);
        if (wasTold) {
            return gap(until, 0);
        }
        return unseenSince > until ? null : gap(until, UNSEEN_FRAMES);
    }

    /** What nobody sees from now on, where the probe has ended or nothing waits for it. */
    public LossNews unseenAtEnd() {
        if (!next.isEmpty() && !whole && !resumes) {
            lack();
        }
        if (!brokeOff || told) {
            return null;
        }
        told = true;
        return gap(Long.MAX_VALUE, UNSEEN_FRAMES);
    }

    private LossNews gap(long until, long frames) {
        return new LossNews(
                List.of(new LossNews.Gap(unseenSince, unseenSince, until, frames)), List.of());
    }

    /** Says that nothing is to wait for this probe until it sends again. */
    public void retire() {
        standing = Standing.RETIRED;
    }

    /** Says that a window of this probe closes at this watermark. */
    public void closesAt(long watermark) {
        last = Math.max(last, watermark);
    }

    /** Whether windows wait for it. */
    public boolean isWaitedFor() {
        return standing == Standing.OPEN;
    }

    public Standing standing() {
        return standing;
    }

    /** All windows that close at or before this watermark have come from it. */
    public long closed() {
        return closed;
    }

    /** The watermark at which all that has come of it is out. */
    public long last() {
        return Math.max(last, closed);
    }

    /** How many messages did not come. */
    public long missing() {
        return missing;
    }

    /** For a checkpoint: the lives with the numbers of their next messages. */
    public Map<Long, Long> lives() {
        return next;
    }

    /** From a checkpoint. */
    public static ProbeLives restored(Map<Long, Long> lives, Standing standing, long[] times) {
        ProbeLives all = new ProbeLives();
        all.next.putAll(lives);
        all.standing = standing;
        all.closed = times[0];
        all.last = times[1];
        all.missing = times[2];
        all.unseenSince = times[3];
        all.latenessNs = times[5];
        all.whole = (times[4] & WHOLE) != 0;
        all.resumes = (times[4] & RESUMES) != 0;
        all.brokeOff = (times[4] & BROKE_OFF) != 0;
        all.told = (times[4] & TOLD) != 0;
        return all;
    }

    /** For a checkpoint: what {@link #restored} takes beside lives and standing. */
    public long[] times() {
        long flags = (whole ? WHOLE : 0) | (resumes ? RESUMES : 0) | (brokeOff ? BROKE_OFF : 0)
                | (told ? TOLD : 0);
        return new long[] {closed, last, missing, unseenSince, flags, latenessNs};
    }

    /** The watermark that all probes have come to; {@code Long.MIN_VALUE} before that. */
    public static long least(Iterable<ProbeLives> probes) {
        long least = Long.MAX_VALUE;
        long last = Long.MIN_VALUE;
        boolean waits = false;
        for (ProbeLives probe : probes) {
            last = Math.max(last, probe.last());
            if (probe.isWaitedFor()) {
                waits = true;
                least = Math.min(least, probe.closed());
            }
        }
        return waits ? least : last;
    }

    /** A sum that sticks at the top. */
    private static long sum(long a, long b) {
        return b < 0 || a + b < 0 ? Long.MAX_VALUE : a + b;
    }
}
