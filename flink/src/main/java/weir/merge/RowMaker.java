package weir.merge;

import java.nio.charset.StandardCharsets;
import weir.plan.NodePlan;
import weir.plan.NodePlan.ResultPlan;
import weir.rows.Finish;
import weir.wire.ByteReader;
import weir.wire.Part;
import weir.wire.Unreadable;

/** Makes rows of merged groups. */
public final class RowMaker {
    private final NodePlan node;
    private final Finish finish = new Finish();

    public RowMaker(NodePlan node) {
        this.node = node;
    }

    /** The row of a group: {@code ts} if there are windows, its key, its results. */
    public Object[] row(Partial group) {
        Object[] row = new Object[node.columns.size()];
        int at = 0;
        if (node.overNs > 0) {
            row[at++] = group.start;
        }
        ByteReader key = new ByteReader(group.key.all());
        try {
            for (Part.Type type : node.keys) {
                Object part = Part.read(type, key, "a key");
                boolean text = part != null && type == Part.Type.STRING;
                row[at++] = text ? new String((byte[]) part, StandardCharsets.UTF_8) : part;
            }
        } catch (Unreadable e) {
            throw new IllegalStateException("keys are checked when they come", e);
        }
        for (ResultPlan result : node.results) {
            row[at++] = finish.value(result, group.states[result.state]);
        }
        return row;
    }

    /** How many results were outside their type. */
    public long undefined() {
        return finish.undefined();
    }
}
