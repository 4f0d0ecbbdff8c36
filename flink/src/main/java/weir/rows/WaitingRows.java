package weir.rows;

import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * Rows that wait for the watermark. They come out in the order of time, then of their last cell,
 * {@code $order}, which is that of Weir.
 */
public final class WaitingRows {
    private static final Comparator<Object[]> ORDER = Comparator.comparing(
            row -> (byte[]) row[row.length - 1], Comparator.nullsFirst(Arrays::compareUnsigned));

    /** What takes rows. */
    public interface Taker {
        void take(long time, Object[] cells) throws Exception;
    }

    private final TreeMap<Long, List<Object[]>> byTime = new TreeMap<>();

    public void add(long time, Object[] cells) {
        byTime.computeIfAbsent(time, none -> new ArrayList<>()).add(cells);
    }

    /** Hands out the rows of times up to this one. */
    public void take(long through, Taker taker) throws Exception {
        for (Map.Entry<Long, List<Object[]>> first = byTime.firstEntry();
                first != null && first.getKey() <= through; first = byTime.firstEntry()) {
            byTime.pollFirstEntry();
            first.getValue().sort(ORDER);
            for (Object[] cells : first.getValue()) {
                taker.take(first.getKey(), cells);
            }
        }
    }

    /** Writes each row as an entry of its own, after {@code true}, for a checkpoint. */
    public void write(ByteChunks out) throws IOException {
        for (Map.Entry<Long, List<Object[]>> rows : byTime.entrySet()) {
            for (Object[] cells : rows.getValue()) {
                DataOutputStream entry = out.entry();
                entry.writeBoolean(true);
                entry.writeLong(rows.getKey());
                Cells.write(cells, entry);
            }
        }
    }

    /** Reads what stands after {@code true}. */
    public void read(DataInputStream in) throws IOException {
        long time = in.readLong();
        add(time, Cells.readAll(in));
    }
}
