package weir.postgres;

import java.io.ByteArrayOutputStream;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.UUID;
import org.apache.flink.api.connector.sink2.CommittingSinkWriter;
import org.apache.flink.api.java.tuple.Tuple3;

/** Holds the rows of a checkpoint until it begins. */
final class RowWriter implements CommittingSinkWriter<Tuple3<String, byte[], byte[]>, RowBatch> {
    /** A task that starts again is another writer: what it takes it puts into other batches. */
    private final UUID writer = UUID.randomUUID();
    private final Map<String, ByteArrayOutputStream> open = new TreeMap<>();
    private long number;

    @Override
    public void write(Tuple3<String, byte[], byte[]> row, Context context) {
        open.computeIfAbsent(row.f0, table -> new ByteArrayOutputStream()).writeBytes(row.f2);
    }

    @Override
    public void flush(boolean isLast) {
        // Rows go out with the checkpoint that they are in.
    }

    @Override
    public Collection<RowBatch> prepareCommit() {
        if (open.isEmpty()) {
            return List.of();
        }
        Map<String, byte[]> rows = new TreeMap<>();
        open.forEach((table, bytes) -> rows.put(table, bytes.toByteArray()));
        open.clear();
        return List.of(new RowBatch(writer, number++, rows));
    }

    @Override
    public void close() {}
}
