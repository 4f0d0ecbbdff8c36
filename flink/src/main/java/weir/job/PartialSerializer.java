package weir.job;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import org.apache.flink.api.common.typeutils.TypeSerializer;
import org.apache.flink.api.common.typeutils.TypeSerializerSchemaCompatibility;
import org.apache.flink.api.common.typeutils.TypeSerializerSnapshot;
import org.apache.flink.core.memory.DataInputView;
import org.apache.flink.core.memory.DataOutputView;
import weir.merge.Partial;
import weir.plan.JobPlan;
import weir.state.Column;
import weir.state.State;
import weir.wire.ByteReader;
import weir.wire.ByteWriter;
import weir.wire.Bytes;
import weir.wire.Unreadable;

/** Writes groups: their states as messages have them. */
public final class PartialSerializer extends TypeSerializer<Partial> {
    private static final long serialVersionUID = 1L;

    private final JobPlan plan;

    public PartialSerializer(JobPlan plan) {
        this.plan = plan;
    }

    @Override
    public void serialize(Partial group, DataOutputView to) throws IOException {
        ByteWriter states = new ByteWriter();
        for (State state : group.states) {
            state.write(states);
        }
        to.writeInt(group.node);
        to.writeLong(group.start);
        to.writeLong(group.groups);
        bytes(group.key.all(), to);
        bytes(states.done(), to);
    }

    @Override
    public Partial deserialize(DataInputView from) throws IOException {
        int node = from.readInt();
        long start = from.readLong();
        long groups = from.readLong();
        Bytes key = new Bytes(bytes(from));
        ByteReader written = new ByteReader(bytes(from));
        List<Column> columns = plan.nodes.get(node).states();
        State[] states = new State[columns.size()];
        try {
            for (int i = 0; i < states.length; i++) {
                states[i] = State.read(columns.get(i), written, "a state");
            }
        } catch (Unreadable e) {
            throw new IOException("groups of a checkpoint or of another task are damaged", e);
        }
        return new Partial(node, start, key, states, groups);
    }

    private static void bytes(byte[] bytes, DataOutputView to) throws IOException {
        to.writeInt(bytes.length);
        to.write(bytes);
    }

    private static byte[] bytes(DataInputView from) throws IOException {
        byte[] bytes = new byte[from.readInt()];
        from.readFully(bytes);
        return bytes;
    }

    @Override
    public boolean isImmutableType() {
        return false;
    }

    @Override
    public TypeSerializer<Partial> duplicate() {
        return this;
    }

    @Override
    public Partial createInstance() {
        return new Partial(0, 0, new Bytes(new byte[0]), new State[0], 0);
    }

    @Override
    public Partial copy(Partial from) {
        return from.copy(from.start);
    }

    @Override
    public Partial copy(Partial from, Partial reuse) {
        return copy(from);
    }

    @Override
    public int getLength() {
        return -1;
    }

    @Override
    public Partial deserialize(Partial reuse, DataInputView from) throws IOException {
        return deserialize(from);
    }

    @Override
    public void copy(DataInputView from, DataOutputView to) throws IOException {
        serialize(deserialize(from), to);
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof PartialSerializer
                && ((PartialSerializer) other).plan.json.equals(plan.json);
    }

    @Override
    public int hashCode() {
        return plan.json.hashCode();
    }

    @Override
    public TypeSerializerSnapshot<Partial> snapshotConfiguration() {
        return new Snapshot(plan);
    }

    /** What a checkpoint keeps of it: the plan. A job goes on only with the plan that it had. */
    public static final class Snapshot implements TypeSerializerSnapshot<Partial> {
        private JobPlan plan;

        /** For Flink, which reads the rest. */
        public Snapshot() {}

        Snapshot(JobPlan plan) {
            this.plan = plan;
        }

        @Override
        public int getCurrentVersion() {
            return 1;
        }

        @Override
        public void writeSnapshot(DataOutputView to) throws IOException {
            bytes(plan.json.getBytes(StandardCharsets.UTF_8), to);
        }

        @Override
        public void readSnapshot(int version, DataInputView from, ClassLoader loader)
                throws IOException {
            plan = JobPlan.read(new String(bytes(from), StandardCharsets.UTF_8));
        }

        @Override
        public TypeSerializer<Partial> restoreSerializer() {
            return new PartialSerializer(plan);
        }

        @Override
        public TypeSerializerSchemaCompatibility<Partial> resolveSchemaCompatibility(
                TypeSerializerSnapshot<Partial> before) {
            boolean same = ((Snapshot) before).plan.fingerprint.equals(plan.fingerprint);
            return same
                    ? TypeSerializerSchemaCompatibility.compatibleAsIs()
                    : TypeSerializerSchemaCompatibility.incompatible();
        }
    }
}
