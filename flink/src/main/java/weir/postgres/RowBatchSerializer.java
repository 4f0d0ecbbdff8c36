package weir.postgres;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.util.Map;
import java.util.TreeMap;
import java.util.UUID;
import org.apache.flink.core.io.SimpleVersionedSerializer;

/** Batches as they lie in checkpoints. */
final class RowBatchSerializer implements SimpleVersionedSerializer<RowBatch> {
    private static final int VERSION = 1;

    @Override
    public int getVersion() {
        return VERSION;
    }

    @Override
    public byte[] serialize(RowBatch batch) throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        DataOutputStream out = new DataOutputStream(bytes);
        out.writeLong(batch.writer().getMostSignificantBits());
        out.writeLong(batch.writer().getLeastSignificantBits());
        out.writeLong(batch.number());
        out.writeInt(batch.rows().size());
        for (Map.Entry<String, byte[]> rows : batch.rows().entrySet()) {
            out.writeUTF(rows.getKey());
            out.writeInt(rows.getValue().length);
            out.write(rows.getValue());
        }
        return bytes.toByteArray();
    }

    @Override
    public RowBatch deserialize(int version, byte[] bytes) throws IOException {
        if (version != VERSION) {
            throw new IOException("batches of rows of version " + version + " can't be read");
        }
        DataInputStream in = new DataInputStream(new ByteArrayInputStream(bytes));
        UUID writer = new UUID(in.readLong(), in.readLong());
        long number = in.readLong();
        Map<String, byte[]> rows = new TreeMap<>();
        for (int tables = in.readInt(); tables > 0; tables--) {
            String table = in.readUTF();
            rows.put(table, in.readNBytes(in.readInt()));
        }
        return new RowBatch(writer, number, rows);
    }
}
