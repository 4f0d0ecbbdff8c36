package weir.plan;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.List;
import weir.wire.Part;

/** The {@code alert} at the end of an output. */
public final class AlertPlan implements Serializable {
    private static final long serialVersionUID = 1L;

    public final String rule;
    public final String severity;
    /** What it says, piece by piece. */
    public final List<Piece> text = new ArrayList<>();
    /** The name of what was compared; {@code null}: nothing was. */
    public final String field;
    /** Whether larger values are further from the threshold. */
    public final boolean peakIsMost;
    /** Whether rows say the community id of their connection. */
    public final boolean hasCommunity;
    public final List<Key> keys = new ArrayList<>();
    /** The column that says when a row was. */
    public final int ts;
    /** The column that says how much of a window was seen; -1: there is none. */
    public final int completeness;
    public final long overNs;
    private final long holdNs;
    /** After how long a key is told of again; -1: never. */
    public final long repeatNs;
    public final long maxKeys;
    private final long tickNs;
    /** How far watermarks are ahead of the rows that come after them. */
    public final long lagNs;
    /**
     * The columns of rows. After them come values of the text, value and threshold, the community
     * id, and the order.
     */
    public final List<ColumnPlan> input;

    /** A piece of the text: as it stands, or the next value, of this type. */
    public record Piece(String text, Part.Type type) implements Serializable {}

    /** A column that tells one alert from another, by the name that it has in the key. */
    public record Key(String name, int column) implements Serializable {}

    AlertPlan(JsonNode alert) {
        rule = NodePlan.text(alert, "rule");
        severity = NodePlan.text(alert, "severity");
        for (JsonNode piece : alert.path("text")) {
            text.add(piece.has("text")
                    ? new Piece(piece.get("text").asText(), null)
                    : new Piece(null, Part.Type.of(NodePlan.text(piece, "type"))));
        }
        JsonNode compared = alert.path("compared");
        field = compared.isObject() ? NodePlan.text(compared, "field") : null;
        peakIsMost = compared.path("peak").asText().equals("most");
        hasCommunity = alert.path("community").asBoolean();
        for (JsonNode key : alert.path("keys")) {
            keys.add(new Key(NodePlan.text(key, "name"), key.path("column").asInt()));
        }
        ts = alert.path("ts").asInt();
        completeness = alert.path("completeness").asInt(-1);
        overNs = NodePlan.number(alert, "over_ns");
        holdNs = NodePlan.number(alert, "hold_ns");
        repeatNs = alert.path("repeat_ns").isTextual() ? NodePlan.number(alert, "repeat_ns") : -1;
        maxKeys = NodePlan.number(alert, "max_keys");
        tickNs = NodePlan.number(alert, "tick_ns");
        lagNs = NodePlan.number(alert, "lag_ns");
        input = ColumnPlan.list(alert.path("input"));
        boolean fits = ts < input.size() && completeness < input.size()
                && keys.stream().allMatch(key -> key.column < input.size());
        if (!fits || tickNs <= 0) {
            throw new IllegalArgumentException("an alert of the job plan has other columns");
        }
    }

    /** The last time at which a key still fires that had a row at this time. */
    public long until(long time) {
        return NodePlan.add(NodePlan.add(time, holdNs), overNs);
    }

    /** The latest tick that is not after this time. */
    public long tick(long time) {
        long into = Math.floorMod(time, tickNs);
        return time < Long.MIN_VALUE + into ? Long.MIN_VALUE : time - into;
    }
}
