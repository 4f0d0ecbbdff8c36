package weir.scan;

import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.Map;
import weir.functions.Expression;
import weir.plan.ScanPlan;
import weir.plan.ScanPlan.StatePlan;
import weir.rows.ByteChunks;
import weir.rows.Cells;

/** What a scan remembers of keys. Rows come in the order of time. */
final class KeyStates {
    /** The states of a key after its last row, and the time of that row. */
    private record Memory(Object[] states, long last) {}

    private final ScanPlan plan;
    private final Expression[] inits;
    private final Expression[] updates;
    /** The key that had no row for longest comes first. */
    private final Map<ByteBuffer, Memory> keys = new LinkedHashMap<>();
    private long evicted;

    KeyStates(ScanPlan plan) {
        this.plan = plan;
        inits = plan.states.stream().map(StatePlan::init).map(Expression::read)
                .toArray(Expression[]::new);
        updates = plan.states.stream().map(StatePlan::update).map(Expression::read)
                .toArray(Expression[]::new);
    }

    /** Keys that had to make room, idle ones aside. */
    long evicted() {
        return evicted;
    }

    int size() {
        return keys.size();
    }

    /** Folds a row into the states of its key, and gives its cells with the states after it. */
    Object[] take(byte[] key, long time, Object[] row) {
        forget(time);
        ByteBuffer name = ByteBuffer.wrap(key);
        Memory known = keys.remove(name);
        if (known == null && keys.size() >= plan.maxKeys) {
            Iterator<ByteBuffer> oldest = keys.keySet().iterator();
            oldest.next();
            oldest.remove();
            evicted++;
        }
        int n = inits.length;
        Object[] seen = Arrays.copyOf(row, plan.input + n);
        Arrays.fill(seen, plan.input, seen.length, null);
        Object[] before = known == null ? values(inits, seen) : known.states;
        System.arraycopy(before, 0, seen, plan.input, n);
        Object[] states = values(updates, seen);
        keys.put(name, new Memory(states, time));
        Object[] out = Arrays.copyOf(row, plan.columns.size());
        Arrays.fill(out, plan.input, out.length, null);
        for (int i = 0; i < n; i++) {
            out[plan.states.get(i).column()] = states[i];
        }
        return out;
    }

    private static Object[] values(Expression[] expressions, Object[] cells) {
        Object[] values = new Object[expressions.length];
        for (int i = 0; i < values.length; i++) {
            values[i] = expressions[i].value(cells);
        }
        return values;
    }

    /** Forgets the keys that are idle by now. */
    private void forget(long now) {
        if (plan.everyNs == 0) {
            return;
        }
        Iterator<Memory> oldest = keys.values().iterator();
        while (oldest.hasNext()) {
            long since = now - oldest.next().last;
            // A difference that overflows is longer than any.
            if (since >= 0 && since < plan.idleNs) {
                return;
            }
            oldest.remove();
        }
    }

    /** Writes each key as an entry of its own, after {@code false}. */
    void write(ByteChunks out) throws IOException {
        for (Map.Entry<ByteBuffer, Memory> one : keys.entrySet()) {
            DataOutputStream entry = out.entry();
            entry.writeBoolean(false);
            entry.writeLong(one.getValue().last);
            Cells.write(new Object[] {one.getKey().array()}, entry);
            Cells.write(one.getValue().states, entry);
        }
    }

    /** Reads what stands after {@code false}. */
    void read(DataInputStream in) throws IOException {
        long last = in.readLong();
        byte[] key = (byte[]) Cells.readAll(in)[0];
        keys.put(ByteBuffer.wrap(key), new Memory(Cells.readAll(in), last));
    }
}
