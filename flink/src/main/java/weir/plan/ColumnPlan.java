package weir.plan;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.List;
import weir.wire.Part;

/** A column of rows: its name and its type. */
public final class ColumnPlan implements Serializable {
    private static final long serialVersionUID = 1L;

    public final String name;
    public final Part.Type type;

    public ColumnPlan(String name, Part.Type type) {
        this.name = name;
        this.type = type;
    }

    static List<ColumnPlan> list(JsonNode columns) {
        List<ColumnPlan> all = new ArrayList<>();
        for (JsonNode column : columns) {
            Part.Type type = Part.Type.of(NodePlan.text(column, "type"));
            all.add(new ColumnPlan(NodePlan.text(column, "name"), type));
        }
        return all;
    }
}
