package weir.postgres;

import org.apache.flink.api.connector.sink2.Committer;
import org.apache.flink.api.connector.sink2.CommitterInitContext;
import org.apache.flink.api.connector.sink2.CommittingSinkWriter;
import org.apache.flink.api.connector.sink2.Sink;
import org.apache.flink.api.connector.sink2.SupportsCommitter;
import org.apache.flink.api.connector.sink2.WriterInitContext;
import org.apache.flink.api.java.tuple.Tuple3;
import org.apache.flink.core.io.SimpleVersionedSerializer;

/**
 * Rows into tables of PostgreSQL, exactly once: a table, no key, and a line of {@code COPY}. The
 * rows of a checkpoint lie in that checkpoint, and are written in one transaction once it is
 * complete, together with the name of their batch; a batch whose name is there is not written
 * again. So nothing has to be prepared at the server, as two-phase commit would ask for.
 */
public final class PostgresSink
        implements Sink<Tuple3<String, byte[], byte[]>>, SupportsCommitter<RowBatch> {
    private static final long serialVersionUID = 1L;

    private final Database database;

    public PostgresSink(Database database) {
        this.database = database;
    }

    @Override
    public CommittingSinkWriter<Tuple3<String, byte[], byte[]>, RowBatch> createWriter(
            WriterInitContext context) {
        return new RowWriter();
    }

    @Override
    public Committer<RowBatch> createCommitter(CommitterInitContext context) {
        return new RowCommitter(database);
    }

    @Override
    public SimpleVersionedSerializer<RowBatch> getCommittableSerializer() {
        return new RowBatchSerializer();
    }
}
