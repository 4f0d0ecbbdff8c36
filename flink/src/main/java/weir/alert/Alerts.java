package weir.alert;

import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import weir.plan.AlertPlan;
import weir.plan.AlertPlan.Key;
import weir.plan.AlertPlan.Piece;
import weir.plan.ColumnPlan;
import weir.rows.Cells;
import weir.rows.Short;
import weir.rows.Text;
import weir.wire.Part;

/**
 * Tells of keys when they begin to fire, and when they have ended, as docs/alerts.md has it. Rows
 * come in the order of their times.
 */
final class Alerts {
    /** Columns before those of the evidence. */
    private static final int COLUMNS = 17;
    /** The most bytes of a text. */
    private static final int TEXT_MAX = 4096;

    private final AlertPlan plan;
    private final Consumer<Object[]> sink;
    /** By the text of the key; the one that was asserted longest ago comes first. */
    private final Map<String, Firing> firing = new LinkedHashMap<>();
    private long tick = Long.MIN_VALUE;
    private long evicted;

    Alerts(AlertPlan plan, Consumer<Object[]> sink) {
        this.plan = plan;
        this.sink = sink;
    }

    /** Keys that had to make room. */
    long evicted() {
        return evicted;
    }

    /** Takes a row in, which came at this time: its own, or the watermark if that is later. */
    void take(Object[] row, long watermark) {
        Evidence seen = evidence(row);
        long came = seen.ts() == null ? watermark : Math.max(seen.ts(), watermark);
        String key = key(seen.cells());
        Firing known = firing.remove(key);
        if (known != null && came > plan.until(known.at)) {
            put(known, known.peak, known.peak.value(), "end");
            known = null;
        }
        if (known == null) {
            begin(key, seen, came);
            return;
        }
        firing.put(key, known);
        known.at = Math.max(known.at, came);
        known.last = later(known.last, seen.ts());
        known.rows++;
        known.least = least(known.least, seen.completeness());
        boolean exceeds = seen.exceeds(known.peak, plan);
        if (plan.repeatNs >= 0 && since(known.putAt, came) >= plan.repeatNs) {
            known.putAt = came;
            put(known, seen, exceeds ? seen.value() : known.peak.value(), "ongoing");
        }
        if (exceeds) {
            known.peak = seen;
        }
    }

    private void begin(String key, Evidence seen, long came) {
        if (firing.size() >= plan.maxKeys) {
            Iterator<Firing> all = firing.values().iterator();
            Firing oldest = all.next();
            all.remove();
            put(oldest, oldest.peak, oldest.peak.value(), "end");
            evicted++;
        }
        Firing begun = Firing.begun(seen, came);
        firing.put(key, begun);
        put(begun, seen, seen.value(), "start");
    }

    /** Puts out the keys that have ended at this watermark. */
    void watermark(long watermark) {
        long now = plan.tick(watermark);
        if (now <= tick) {
            return;
        }
        tick = now;
        List<Map.Entry<String, Firing>> ended = new ArrayList<>();
        Iterator<Map.Entry<String, Firing>> all = firing.entrySet().iterator();
        while (all.hasNext()) {
            Map.Entry<String, Firing> next = all.next();
            if (plan.until(next.getValue().at) >= now) {
                break;
            }
            ended.add(next);
            all.remove();
        }
        ended.sort(Comparator.<Map.Entry<String, Firing>>comparingLong(
                one -> plan.until(one.getValue().at)).thenComparing(Map.Entry::getKey));
        ended.forEach(one -> end(one.getValue(), "end"));
    }

    /** Puts out the keys that still fire: the input has ended. */
    void finish() {
        firing.values().forEach(open -> end(open, "open"));
        firing.clear();
    }

    private void end(Firing one, String state) {
        put(one, one.peak, one.peak.value(), state);
    }

    private Evidence evidence(Object[] row) {
        int next = plan.input.size();
        StringBuilder message = new StringBuilder();
        for (Piece piece : plan.text) {
            message.append(piece.text() != null ? piece.text() : said(piece.type(), row[next++]));
        }
        boolean compared = plan.field != null;
        String text = message.toString();
        Object[] cells = new Object[plan.input.size()];
        System.arraycopy(row, 0, cells, 0, cells.length);
        return new Evidence((Long) row[plan.ts], isLong(text) ? null : text,
                compared ? (Double) row[next] : null, compared ? (Double) row[next + 1] : null,
                plan.completeness < 0 ? null : (Double) row[plan.completeness],
                plan.hasCommunity ? (String) row[next + (compared ? 2 : 0)] : null, cells);
    }

    private static String said(Part.Type type, Object value) {
        String text = value == null ? "absent" : Short.of(type, value);
        return isLong(text) ? "absent" : text;
    }

    private static boolean isLong(String text) {
        return text.length() > TEXT_MAX / 3
                && text.getBytes(StandardCharsets.UTF_8).length > TEXT_MAX;
    }

    /** The key as text: one form for each key. */
    private String key(Object[] cells) {
        StringBuilder out = new StringBuilder();
        for (Key key : plan.keys) {
            ColumnPlan column = plan.input.get(key.column());
            Object cell = cells[key.column()];
            out.append(out.length() > 0 ? " " : "").append(key.name()).append('=');
            if (cell == null) {
                out.append("absent");
            } else if (column.type == Part.Type.STRING) {
                quote(Text.of(column.type, cell), out);
            } else {
                out.append(Text.of(column.type, cell));
            }
        }
        return out.toString();
    }

    /** Writes a text as it is, or in quotes where it could be taken for something else. */
    static void quote(String text, StringBuilder out) {
        boolean odd = text.codePoints().anyMatch(c -> isSpace(c) || Character.isISOControl(c)
                || c == '"' || c == '\\' || c == '#');
        if (!text.isEmpty() && !text.equals("absent") && !odd) {
            out.append(text);
            return;
        }
        out.append('"');
        text.codePoints().forEach(c -> {
            switch (c) {
                case '"': out.append("\\\""); break;
                case '\\': out.append("\\\\"); break;
                case '\n': out.append("\\n"); break;
                case '\r': out.append("\\r"); break;
                case '\t': out.append("\\t"); break;
                default:
                    if (Character.isISOControl(c)) {
                        out.append("\\u{").append(Integer.toHexString(c)).append('}');
                    } else {
                        out.appendCodePoint(c);
                    }
            }
        });
        out.append('"');
    }

    /** White space as Unicode has it. */
    private static boolean isSpace(int c) {
        return c == ' ' || c >= 9 && c <= 13 || c == 0x85 || c == 0xa0 || c == 0x1680
                || c >= 0x2000 && c <= 0x200a || c == 0x2028 || c == 0x2029 || c == 0x202f
                || c == 0x205f || c == 0x3000;
    }

    private void put(Firing one, Evidence seen, Double peak, String state) {
        Object[] row = new Object[COLUMNS + plan.input.size() - 1];
        String key = key(seen.cells());
        StringBuilder suppress = new StringBuilder();
        quote(plan.rule, suppress);
        suppress.append(plan.keys.isEmpty() ? "" : " " + key);
        boolean ends = state.equals("end") || state.equals("open");
        Object[] own = {
            ends ? one.last : seen.ts(), plan.rule, state, plan.severity, seen.message(),
            plan.keys.isEmpty() ? null : key, plan.field, seen.value(), seen.threshold(), peak,
            one.first, one.last, one.rows, plan.overNs > 0 ? plan.overNs : null, one.least,
            seen.community(), suppress.toString(),
        };
        System.arraycopy(own, 0, row, 0, COLUMNS);
        int at = COLUMNS;
        for (int i = 0; i < plan.input.size(); i++) {
            if (i != plan.ts) {
                row[at++] = seen.cells()[i];
            }
        }
        sink.accept(row);
    }

    private static long since(long before, long now) {
        long since = now - before;
        return since < 0 ? Long.MAX_VALUE : since;
    }

    private static Long later(Long a, Long b) {
        return a == null || b != null && b > a ? b : a;
    }

    private static Double least(Double a, Double b) {
        return a == null || b != null && Double.compare(b, a) < 0 ? b : a;
    }

    /** For a checkpoint. */
    void write(DataOutputStream out) throws IOException {
        out.writeLong(tick);
        out.writeInt(firing.size());
        for (Map.Entry<String, Firing> entry : firing.entrySet()) {
            Firing one = entry.getValue();
            Evidence peak = one.peak;
            Object[] all = {
                entry.getKey(), one.at, one.putAt, one.first, one.last, one.rows, one.least,
                peak.ts(), peak.message(), peak.value(), peak.threshold(), peak.completeness(),
                peak.community(),
            };
            Cells.write(all, out);
            Cells.write(peak.cells(), out);
        }
    }

    /** From a checkpoint. */
    void read(DataInputStream in) throws IOException {
        tick = in.readLong();
        for (int n = in.readInt(); n > 0; n--) {
            Object[] all = Cells.readAll(in);
            Evidence peak = new Evidence((Long) all[7], (String) all[8], (Double) all[9],
                    (Double) all[10], (Double) all[11], (String) all[12], Cells.readAll(in));
            Firing one = Firing.begun(peak, (Long) all[1]);
            one.putAt = (Long) all[2];
            one.first = (Long) all[3];
            one.last = (Long) all[4];
            one.rows = (Long) all[5];
            one.least = (Double) all[6];
            firing.put((String) all[0], one);
        }
    }
}
