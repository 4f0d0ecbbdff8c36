package weir.merge;

import java.util.ArrayList;
import java.util.List;
import weir.plan.NodePlan;
import weir.state.Column;
import weir.state.State;
import weir.wire.ByteReader;
import weir.wire.Bytes;
import weir.wire.Message.WindowGroups;
import weir.wire.Part;
import weir.wire.Unreadable;

/** The states of a group of one window, of one probe or of several that were merged. */
public final class Partial {
    /** The position of the node in the plan. */
    public final int node;
    /** Where the window starts. */
    public final long start;
    public final Bytes key;
    public final State[] states;
    /** How many groups of messages were merged into it. */
    public long groups;

    public Partial(int node, long start, Bytes key, State[] states, long groups) {
        this.node = node;
        this.start = start;
        this.key = key;
        this.states = states;
        this.groups = groups;
    }

    /** Takes another one of the same window and key in, which is not changed. */
    public void merge(Partial other) {
        for (int i = 0; i < states.length; i++) {
            states[i].merge(other.states[i]);
        }
        groups += other.groups;
    }

    /** One that shares no states with this one, in a window from this time on. */
    public Partial copy(long start) {
        State[] copied = new State[states.length];
        for (int i = 0; i < states.length; i++) {
            copied[i] = states[i].copy();
        }
        return new Partial(node, start, key, copied, groups);
    }

    /** Reads all groups of a message: nothing is taken unless all can be read. */
    public static List<Partial> read(NodePlan node, long start, WindowGroups groups)
            throws Unreadable {
        if (!node.isStart(start)) {
            throw new Unreadable("no window of the node starts at " + start
                    + " ns, as the message says");
        }
        List<Column> columns = node.states();
        if (groups.columns() != columns.size()) {
            throw new Unreadable("there are " + groups.columns() + " columns of states, and the "
                    + "node has " + columns.size());
        }
        List<byte[]> keys = groups.keys();
        List<Partial> all = new ArrayList<>(keys.size());
        Bytes before = null;
        for (byte[] written : keys) {
            Bytes key = new Bytes(written);
            checkKey(node, written);
            if (before != null && before.compareTo(key) >= 0) {
                throw new Unreadable("the key of group " + all.size()
                        + " is not above that of the group before");
            }
            before = key;
            all.add(new Partial(node.number, start, key, new State[columns.size()], 1));
        }
        for (int c = 0; c < columns.size(); c++) {
            Column column = columns.get(c);
            if (groups.kind(c) != column.kind) {
                throw new Unreadable("column " + c + " is of kind " + groups.kind(c)
                        + ", and the node has " + column.kind + " there");
            }
            ByteReader from = groups.column(c);
            for (Partial one : all) {
                one.states[c] = State.read(column, from, "column " + c);
            }
            from.end("column " + c);
        }
        return all;
    }

    private static void checkKey(NodePlan node, byte[] key) throws Unreadable {
        ByteReader from = new ByteReader(key);
        for (Part.Type type : node.keys) {
            Part.read(type, from, "a key");
        }
        from.end("a key");
    }

    /** The state of a summary of the whole input over no rows. */
    public static Partial fresh(NodePlan node) {
        State[] states = node.states().stream().map(State::fresh).toArray(State[]::new);
        return new Partial(node.number, 0, new Bytes(new byte[0]), states, 0);
    }
}
