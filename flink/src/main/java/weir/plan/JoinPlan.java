package weir.plan;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.List;

/** A {@code join}: beside each left row stand the right ones that it meets. */
public final class JoinPlan implements Serializable {
    private static final long serialVersionUID = 1L;

    /** What comes out. */
    public enum Kind {
        /** Every pair. */
        INNER,
        /** Also once each left row that met none. */
        LEFT,
        /** Just the left rows that met none. */
        ANTI
    }

    /**
     * What makes the rows of both sides: their columns, then the key that they meet by, their
     * time, and their order.
     */
    public final String leftSql;
    public final String rightSql;
    public final Kind kind;
    /** How many columns left and right rows have. */
    public final int left;
    public final int right;
    public final List<BesidePlan> beside = new ArrayList<>();
    /** The columns of rows that come out: those of a left row, then those beside it. */
    public final List<ColumnPlan> columns;
    /** The length of the windows that rows come in; 0: they have no time. */
    public final long everyNs;
    /** From when to when after a left row its partners come. */
    public final long fromNs;
    public final long toNs;

    /** A column of a right row, and, as JSON, what stands there where there is none. */
    public record BesidePlan(int from, String absent) implements Serializable {}

    JoinPlan(String leftSql, String rightSql, JsonNode join) {
        this.leftSql = leftSql;
        this.rightSql = rightSql;
        kind = Kind.valueOf(NodePlan.text(join, "kind").toUpperCase(java.util.Locale.ROOT));
        left = join.path("left").asInt();
        right = join.path("right").asInt();
        for (JsonNode column : join.path("beside")) {
            beside.add(new BesidePlan(column.path("from").asInt(),
                    column.path("default").toString()));
        }
        columns = ColumnPlan.list(join.path("columns"));
        everyNs = NodePlan.number(join, "every_ns");
        fromNs = NodePlan.number(join, "from_ns");
        toNs = NodePlan.number(join, "to_ns");
        boolean fits = left + beside.size() == columns.size()
                && beside.stream().allMatch(column -> column.from < right) && fromNs <= toNs;
        if (!fits) {
            throw new IllegalArgumentException("a join of the job plan has other columns");
        }
    }

    /** How long left rows wait for right ones after them. */
    public long waitNs() {
        return Math.max(toNs, 0);
    }
}
