package weir.postgres;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.util.Collection;
import java.util.Map;
import org.apache.flink.api.connector.sink2.Committer;
import org.postgresql.PGConnection;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Writes the rows of checkpoints that are complete. */
final class RowCommitter implements Committer<RowBatch> {
    private static final Logger LOG = LoggerFactory.getLogger(RowCommitter.class);

    /** How long a database may be away before the job starts again from its last checkpoint. */
    private static final long PATIENCE_NS = 300_000_000_000L;
    private static final long PAUSE_MS = 500;

    /** A batch may be handed over again while it is in a checkpoint that is kept: a few. */
    private static final long NAMES_KEPT = 1000;

    private final Database database;
    private Connection connection;

    RowCommitter(Database database) {
        this.database = database;
    }

    @Override
    public void commit(Collection<CommitRequest<RowBatch>> requests)
            throws IOException, InterruptedException {
        for (CommitRequest<RowBatch> request : requests) {
            commit(request.getCommittable());
        }
    }

    private void commit(RowBatch batch) throws IOException, InterruptedException {
        long end = System.nanoTime() + PATIENCE_NS;
        while (true) {
            try {
                write(batch);
                return;
            } catch (SQLException e) {
                disconnect();
                if (!isAway(e) || System.nanoTime() > end) {
                    throw new IOException("writing rows to " + database + ": " + e.getMessage(), e);
                }
                LOG.warn("{} is away; its rows wait: {}", database, e.getMessage());
                Thread.sleep(PAUSE_MS);
            }
        }
    }

    /** Whether the database can't be reached now, or can't do anything: the classes of states. */
    private static boolean isAway(SQLException e) {
        String state = e.getSQLState();
        return state == null || state.startsWith("08") || state.startsWith("53")
                || state.startsWith("57P") || state.equals("40001") || state.equals("40P01");
    }

    private void write(RowBatch batch) throws SQLException, IOException {
        if (connection == null) {
            connection = database.connect();
            connection.setAutoCommit(false);
        }
        if (isNew(batch)) {
            for (Map.Entry<String, byte[]> rows : batch.rows().entrySet()) {
                copy(rows.getKey(), rows.getValue());
            }
            forget(batch);
        }
        connection.commit();
    }

    /** Notes the batch down; false: it was there before. */
    private boolean isNew(RowBatch batch) throws SQLException {
        try (PreparedStatement note = connection.prepareStatement("INSERT INTO " + Table.BATCHES
                + " (writer, number) VALUES (?, ?) ON CONFLICT DO NOTHING")) {
            note.setObject(1, batch.writer());
            note.setLong(2, batch.number());
            return note.executeUpdate() == 1;
        }
    }

    /** Removes names of batches that nobody has any more. */
    private void forget(RowBatch batch) throws SQLException {
        try (PreparedStatement remove = connection.prepareStatement("DELETE FROM "
                + Table.BATCHES + " WHERE writer = ? AND number < ?")) {
            remove.setObject(1, batch.writer());
            remove.setLong(2, batch.number() - NAMES_KEPT);
            remove.executeUpdate();
        }
    }

    /** The table comes with its columns. */
    private void copy(String table, byte[] rows) throws SQLException, IOException {
        PGConnection postgres = connection.unwrap(PGConnection.class);
        postgres.getCopyAPI().copyIn("COPY " + table + " FROM STDIN",
                new ByteArrayInputStream(rows));
    }

    private void disconnect() {
        if (connection == null) {
            return;
        }
        try {
            connection.close();
        } catch (SQLException e) {
            LOG.debug("a connection that was lost: {}", e.getMessage());
        }
        connection = null;
    }

    @Override
    public void close() {
        disconnect();
    }
}
