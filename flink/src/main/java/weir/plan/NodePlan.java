package weir.plan;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.List;
import weir.state.Column;
import weir.state.State;
import weir.wire.Part;

/** A {@code summarize} whose groups come from probes: its windows, its keys, its states. */
public final class NodePlan implements Serializable {
    private static final long NS_PER_MS = 1_000_000;

    private static final long serialVersionUID = 2L;

    /** Its position in the plan. */
    public final int number;
    /** How messages name it: ten hexadecimal digits. */
    public final String target;
    public final String fingerprint;
    /** Length of a window in nanoseconds; 0: the whole input is one. */
    public final long overNs;
    /** From the start of one window to that of the next. */
    public final long everyNs;
    /** Length of a pane: the longest stretch within which no window starts or ends. */
    public final long paneNs;
    public final long latenessNs;
    public final List<Part.Type> keys = new ArrayList<>();
    public final List<ResultPlan> results = new ArrayList<>();
    /** The columns of its rows: {@code ts} if there are windows, keys, results. */
    public final List<ColumnPlan> columns;
    private final List<ColumnForm> states = new ArrayList<>();
    private transient List<Column> read;

    NodePlan(int number, JsonNode node) {
        this.number = number;
        target = text(node, "node");
        fingerprint = text(node, "fingerprint");
        overNs = number(node, "over_ns");
        everyNs = number(node, "every_ns");
        paneNs = number(node, "pane_ns");
        latenessNs = number(node, "lateness_ns");
        if (overNs < 0 || overNs > 0 && (everyNs <= 0 || paneNs <= 0 || latenessNs < 0)) {
            throw new IllegalArgumentException("a node of the job plan has windows of no length");
        }
        node.path("keys").forEach(key -> keys.add(Part.Type.of(key.asText())));
        for (JsonNode column : node.path("states")) {
            List<Part.Type> types = new ArrayList<>();
            column.path("types").forEach(type -> types.add(Part.Type.of(type.asText())));
            int kind = column.path("kind").asInt();
            if (!State.isKnown(kind)) {
                throw new IllegalArgumentException("states of kind " + kind
                        + " are not merged by this job; docs/partials.md says what they are");
            }
            states.add(new ColumnForm(kind, types));
        }
        node.path("results").forEach(result -> results.add(new ResultPlan(result)));
        columns = ColumnPlan.list(node.path("columns"));
        int first = overNs > 0 ? 1 : 0;
        if (columns.size() != first + keys.size() + results.size()) {
            throw new IllegalArgumentException("a node of the job plan has other columns than "
                    + "keys and results");
        }
        for (ResultPlan result : results) {
            if (result.state < 0 || result.state >= states.size()) {
                throw new IllegalArgumentException("a result of the job plan has no state");
            }
        }
    }

    /** The columns of states, in the order of messages. */
    public List<Column> states() {
        if (read == null) {
            List<Column> all = new ArrayList<>();
            states.forEach(form -> all.add(new Column(form.kind, form.types)));
            read = all;
        }
        return read;
    }

    /** The columns of its rows that say how much of a window was seen. */
    public List<Integer> completeness() {
        List<Integer> all = new ArrayList<>();
        for (int i = 0; i < results.size(); i++) {
            if (results.get(i).function.equals("completeness")) {
                all.add(columns.size() - results.size() + i);
            }
        }
        return all;
    }

    /** Whether windows overlap, so that panes travel. */
    public boolean slides() {
        return paneNs != overNs;
    }

    /** Whether groups may start at this time. */
    public boolean isStart(long start) {
        return overNs == 0 ? start == 0 : Math.floorMod(start, paneNs) == 0;
    }

    /** The starts of the windows that hold the pane from this time on. */
    public List<Long> windows(long pane) {
        if (overNs == 0 || !slides()) {
            return List.of(pane);
        }
        List<Long> all = new ArrayList<>();
        long into = Math.floorMod(pane, everyNs);
        if (pane < Long.MIN_VALUE + into) {
            return List.of(Long.MIN_VALUE);
        }
        long last = pane - into;
        // Sums could leave 64 bits at the ends of time; this difference stays small.
        for (long start = last; start <= last && pane - start < overNs; start -= everyNs) {
            all.add(0, start);
        }
        return all;
    }

    /** The watermark at which the window from this time on is complete. */
    public long closesAt(long start) {
        return overNs == 0 ? Long.MAX_VALUE : add(add(start, overNs), latenessNs);
    }

    /** No row that comes after this watermark is of a window that starts before this time. */
    public long downstream(long watermark) {
        if (overNs == 0 || watermark == Long.MIN_VALUE) {
            return Long.MIN_VALUE;
        }
        long closed = add(watermark, -latenessNs);
        long pane = add(closed, -Math.floorMod(closed, paneNs));
        long before = add(pane, -overNs);
        return add(add(before, -Math.floorMod(before, everyNs)), everyNs);
    }

    /**
     * The start of the window in which a row of this time of Flink's stands, in nanoseconds: its
     * time in Weir. Windows of no length have none, which is 0.
     */
    public static long start(long ms, long everyNs) {
        return everyNs == 0 ? 0 : Math.floorDiv(nanoseconds(ms), everyNs) * everyNs;
    }

    /** A time in milliseconds in nanoseconds, which stays within 64 bits. */
    public static long nanoseconds(long ms) {
        return ms > Long.MAX_VALUE / NS_PER_MS ? Long.MAX_VALUE
                : ms < Long.MIN_VALUE / NS_PER_MS ? Long.MIN_VALUE : ms * NS_PER_MS;
    }

    /** A sum that stays within 64 bits. */
    public static long add(long a, long b) {
        long sum = a + b;
        if (((a ^ sum) & (b ^ sum)) < 0) {
            return b < 0 ? Long.MIN_VALUE : Long.MAX_VALUE;
        }
        return sum;
    }

    static String text(JsonNode node, String member) {
        JsonNode found = node.path(member);
        if (!found.isTextual()) {
            throw new IllegalArgumentException("a member of the job plan lacks `" + member + "`");
        }
        return found.asText();
    }

    static long number(JsonNode node, String member) {
        try {
            return Long.parseLong(text(node, member));
        } catch (NumberFormatException e) {
            throw new IllegalArgumentException("`" + member + "` of the job plan is no number");
        }
    }

    /** The form of a column of states, as it travels with a job. */
    private static final class ColumnForm implements Serializable {
        private static final long serialVersionUID = 1L;
    private static final long NS_PER_MS = 1_000_000;
        final int kind;
        final List<Part.Type> types;

        ColumnForm(int kind, List<Part.Type> types) {
            this.kind = kind;
            this.types = types;
        }
    }

    /** A result of a group: the state that it is read from, and how. */
    public static final class ResultPlan implements Serializable {
        private static final long serialVersionUID = 1L;
        public final int state;
        /** The name of the aggregate in plans. */
        public final String function;
        /** The number in the name: of a quantile in millionths, of a window in nanoseconds. */
        public final long number;
        public final Part.Type type;

        ResultPlan(JsonNode result) {
            state = result.path("state").asInt(-1);
            function = text(result, "function");
            number = Long.parseLong(result.path("number").asText("0"));
            type = Part.Type.of(text(result, "type"));
        }
    }
}
