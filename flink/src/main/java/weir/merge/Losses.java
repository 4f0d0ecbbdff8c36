package weir.merge;

import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.NavigableSet;
import java.util.TreeSet;
import weir.plan.NodePlan;
import weir.state.WordsState;
import weir.wire.Message.LossNews;

/**
 * What one probe has lost, and which frames it saw, as far as one node asks: what
 * {@code completeness()} is made of. Numbers of frames have no sign. A gap counts for every window
 * that it touches, so that completeness is at least what is said.
 */
public final class Losses {
    /** Gaps and panes that are kept, as in Weir. */
    private static final int MOST = 1 << 16;
    /** The end of a gap that has none yet. */
    private static final long OPEN = Long.MAX_VALUE;

    /** A gap; {@code upto} are the frames lost in this and in all before. */
    private static final class Gap {
        final long since;
        long until;
        long upto;

        Gap(long since, long until, long upto) {
            this.since = since;
            this.until = until;
            this.upto = upto;
        }
    }

    /** A pane in which frames came; {@code upto} are the frames of this and of all before. */
    private static final class Pane {
        final long start;
        long upto;

        Pane(long start, long upto) {
            this.start = start;
            this.upto = upto;
        }
    }

    private List<Gap> gaps = new ArrayList<>();
    private final List<Pane> panes = new ArrayList<>();
    private long forgotten;
    private long lost;
    private long seen;

    /** Takes in that nobody saw a span, of which this node closes windows so much later. */
    public void takeUnseen(LossNews news, long latenessNs) {
        for (LossNews.Gap gap : news.gaps()) {
            long since = NodePlan.add(gap.since(), -latenessNs);
            lose(since, since, gap.until(), gap.frames());
        }
    }

    /** Takes what the probe reports. */
    public void take(LossNews news) {
        news.gaps().forEach(gap -> lose(gap.at(), gap.since(), gap.until(), gap.frames()));
        news.panes().forEach(pane -> {
            seen = sum(seen, pane.frames());
            see(pane.start(), pane.frames());
        });
    }

    private void lose(long watermark, long from, long to, long frames) {
        if (to < OPEN) {
            end(to, watermark);
        }
        if (frames == 0) {
            return;
        }
        lost = sum(lost, frames);
        long since = Math.max(from, watermark);
        long until = to;
        if (!gaps.isEmpty()) {
            Gap last = gaps.get(gaps.size() - 1);
            since = Math.max(since, last.since);
            until = Math.max(until, last.until);
        }
        if (gaps.size() >= MOST) {
            halve();
        }
        gaps.add(new Gap(since, Math.max(until, since), lost));
    }

    /** Ends the gaps that were open: at the watermark or after it. */
    private void end(long to, long watermark) {
        int open = firstGap(gap -> gap.until == OPEN);
        if (open == gaps.size()) {
            return;
        }
        long before = open == 0 ? Long.MIN_VALUE : gaps.get(open - 1).until;
        long since = gaps.get(gaps.size() - 1).since;
        long until = Math.max(Math.max(to, watermark), Math.max(since, before));
        gaps.subList(open, gaps.size()).forEach(gap -> gap.until = until);
    }

    /** Takes gaps two by two as one. */
    private void halve() {
        List<Gap> half = new ArrayList<>();
        for (int i = 0; i < gaps.size(); i += 2) {
            Gap last = gaps.get(Math.min(i + 1, gaps.size() - 1));
            half.add(new Gap(gaps.get(i).since, last.until, last.upto));
        }
        gaps = half;
    }

    private void see(long start, long frames) {
        if (frames == 0) {
            return;
        }
        int at = firstPane(start);
        if (at == panes.size() || panes.get(at).start != start) {
            panes.add(at, new Pane(start, at == 0 ? forgotten : panes.get(at - 1).upto));
        }
        panes.subList(at, panes.size()).forEach(pane -> pane.upto = sum(pane.upto, frames));
        if (panes.size() > MOST) {
            forgotten = panes.remove(0).upto;
        }
    }

    /** The first gap of which this holds, as it does of all after it. */
    private int firstGap(java.util.function.Predicate<Gap> holds) {
        int low = 0;
        for (int high = gaps.size(); low < high;) {
            int middle = (low + high) >>> 1;
            if (holds.test(gaps.get(middle))) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        return low;
    }

    /** The first pane that starts here or later. */
    private int firstPane(long start) {
        int low = 0;
        for (int high = panes.size(); low < high;) {
            int middle = (low + high) >>> 1;
            if (panes.get(middle).start >= start) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        return low;
    }

    /** Frames of the gaps that touch the window from here on. */
    private long lostIn(long start, long over) {
        int from = firstGap(gap -> gap.until >= start);
        int to = firstGap(gap -> gap.since >= start && gap.since - start >= over
                || gap.since >= start && gap.since - start < 0);
        long before = from == 0 ? 0 : gaps.get(from - 1).upto;
        long upto = to == 0 ? 0 : gaps.get(to - 1).upto;
        return Long.compareUnsigned(upto, before) > 0 ? upto - before : 0;
    }

    /** Frames of the panes of the window from here on. */
    private long seenIn(long start, long over) {
        long end = start + over;
        int to = end < start ? panes.size() : firstPane(end);
        int from = firstPane(start);
        long before = from == 0 ? forgotten : panes.get(from - 1).upto;
        long upto = to == 0 ? forgotten : panes.get(to - 1).upto;
        return Long.compareUnsigned(upto, before) > 0 ? upto - before : 0;
    }

    /** The share of the frames of a window that was seen; without windows, of the whole input. */
    public static double share(NodePlan node, long start, Iterable<Losses> probes) {
        long seen = 0;
        long lost = 0;
        for (Losses probe : probes) {
            boolean whole = node.overNs == 0;
            lost = sum(lost, whole ? probe.lost : probe.lostIn(start, node.overNs));
            seen = sum(seen, whole ? probe.seen : probe.seenIn(start, node.overNs));
        }
        if (lost == 0) {
            return 1;
        }
        double all = WordsState.count(seen) + WordsState.count(lost);
        return WordsState.count(seen) / all;
    }

    /** Whether anything was lost. */
    public boolean any() {
        return !gaps.isEmpty();
    }

    /** The windows in which frames came and which close after one watermark, up to another. */
    public NavigableSet<Long> windows(NodePlan node, long after, long upto) {
        NavigableSet<Long> starts = new TreeSet<>();
        for (Pane pane : panes.subList(firstPane(before(node, after)), panes.size())) {
            if (pane.start > upto) {
                break;
            }
            for (long start : node.windows(pane.start)) {
                long closes = node.closesAt(start);
                if (closes > after && closes <= upto) {
                    starts.add(start);
                }
            }
        }
        return starts;
    }

    /** No window that closes after this watermark has panes before this time. */
    private static long before(NodePlan node, long watermark) {
        return NodePlan.add(NodePlan.add(watermark, -node.latenessNs), -node.overNs);
    }

    /** For a checkpoint. */
    public void write(DataOutputStream out) throws IOException {
        out.writeLong(forgotten);
        out.writeLong(lost);
        out.writeLong(seen);
        out.writeInt(gaps.size());
        for (Gap gap : gaps) {
            out.writeLong(gap.since);
            out.writeLong(gap.until);
            out.writeLong(gap.upto);
        }
        out.writeInt(panes.size());
        for (Pane pane : panes) {
            out.writeLong(pane.start);
            out.writeLong(pane.upto);
        }
    }

    /** From a checkpoint. */
    public static Losses read(DataInputStream in) throws IOException {
        Losses losses = new Losses();
        losses.forgotten = in.readLong();
        losses.lost = in.readLong();
        losses.seen = in.readLong();
        for (int n = in.readInt(); n > 0; n--) {
            losses.gaps.add(new Gap(in.readLong(), in.readLong(), in.readLong()));
        }
        for (int n = in.readInt(); n > 0; n--) {
            losses.panes.add(new Pane(in.readLong(), in.readLong()));
        }
        return losses;
    }

    /** A sum without a sign that sticks at the top. */
    private static long sum(long a, long b) {
        return Long.compareUnsigned(a + b, a) < 0 ? -1 : a + b;
    }
}
