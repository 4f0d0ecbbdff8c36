package weir.plan;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** What a job computes: what {@code weir cluster plan} prints, read. */
public final class JobPlan implements Serializable {
    private static final long serialVersionUID = 1L;
    /** The version of the format that is read. */
    public static final int VERSION = 3;

    private static final ObjectMapper JSON = new ObjectMapper();

    /** The text that it was read from. */
    public final String json;
    /** The fingerprint for all nodes, 32 hexadecimal digits. */
    public final String fingerprint;
    /** How long after its last window the windows of further stages may stay open. */
    public final long closingNs;
    public final List<NodePlan> nodes = new ArrayList<>();
    public final List<OutputPlan> outputs = new ArrayList<>();
    /** What makes rows of those of the nodes, each a view, in the order of dependence. */
    public final List<StepPlan> steps = new ArrayList<>();
    private final Map<String, Integer> byTarget = new HashMap<>();

    private JobPlan(String json, JsonNode plan) {
        this.json = json;
        int version = plan.path("version").asInt();
        if (version != VERSION) {
            throw new IllegalArgumentException("this is a job plan of format version "
                    + plan.path("version") + "; only version " + VERSION + " can be read");
        }
        fingerprint = NodePlan.text(plan, "fingerprint");
        closingNs = NodePlan.number(plan, "closing_ns");
        for (JsonNode node : plan.path("nodes")) {
            NodePlan read = new NodePlan(nodes.size(), node);
            byTarget.put(read.target + read.fingerprint, nodes.size());
            nodes.add(read);
        }
        plan.path("steps").forEach(step -> steps.add(new StepPlan(step)));
        plan.path("outputs").forEach(output -> outputs.add(new OutputPlan(output)));
        if (nodes.isEmpty() || outputs.isEmpty()) {
            throw new IllegalArgumentException("the job plan has no nodes or no outputs");
        }
    }

    /** Reads a plan. */
    public static JobPlan read(String json) {
        try {
            return new JobPlan(json, JSON.readTree(json));
        } catch (JsonProcessingException e) {
            throw new IllegalArgumentException(
                    "the job plan is no JSON: " + e.getOriginalMessage());
        }
    }

    /** The node that a message of this target and fingerprint is for; {@code null}: none here. */
    public NodePlan node(String target, String fingerprint) {
        Integer found = byTarget.get(target + fingerprint);
        return found == null ? null : nodes.get(found);
    }

    /** A view: a statement of SQL makes it, or its rows come out of a scan or a join. */
    public static final class StepPlan implements Serializable {
        private static final long serialVersionUID = 1L;
        /** The statement; {@code null}: it is something else. */
        public final String sql;
        /** The name of the rows of a scan or a join. */
        public final String name;
        /** {@code null}: it is something else, as with the join. */
        public final ScanPlan scan;
        public final JoinPlan join;

        StepPlan(JsonNode step) {
            String text = NodePlan.text(step, "sql");
            scan = step.has("scan") ? new ScanPlan(text, step.get("scan")) : null;
            join = step.has("join")
                    ? new JoinPlan(text, NodePlan.text(step, "right"), step.get("join")) : null;
            boolean isView = scan == null && join == null;
            sql = isView ? text : null;
            name = isView ? null : NodePlan.text(step, "name");
        }
    }

    /** Rows that the job puts out. */
    public static final class OutputPlan implements Serializable {
        private static final long serialVersionUID = 1L;
        /** Its name where there are several. */
        public final String name;
        /** The node whose rows it is as they are; -1: the query makes it. */
        public final int node;
        /** A query in SQL; {@code null} where it is the rows of a node. */
        public final String sql;
        /** What makes alerts of its rows; {@code null}: nothing does. */
        public final AlertPlan alert;
        public final List<ColumnPlan> columns;

        OutputPlan(JsonNode output) {
            name = output.path("name").isTextual() ? output.get("name").asText() : null;
            node = output.path("node").asInt(-1);
            sql = output.path("sql").isTextual() ? output.get("sql").asText() : null;
            columns = ColumnPlan.list(output.path("columns"));
            alert = output.path("alert").isObject() ? new AlertPlan(output.get("alert")) : null;
            if (node < 0 && sql == null) {
                throw new IllegalArgumentException("an output of the job plan has no source");
            }
        }
    }
}
