package weir.rows;

import java.math.BigDecimal;
import java.math.MathContext;
import java.math.RoundingMode;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Locale;
import weir.plan.ColumnPlan;
import weir.wire.Part;

/** Values as text: as Weir writes them. */
public final class Text {
    private static final long NS_PER_S = 1_000_000_000L;

    private Text() {}

    /** A row as a line of JSON, without its end. {@code output}: its output, if shown. */
    public static String json(List<ColumnPlan> columns, Object[] row, String output) {
        StringBuilder out = new StringBuilder("{");
        if (output != null) {
            string(out, "_pipeline");
            out.append(':');
            string(out, output);
        }
        for (int i = 0; i < row.length; i++) {
            if (i > 0 || output != null) {
                out.append(',');
            }
            string(out, columns.get(i).name);
            out.append(':');
            cell(out, columns.get(i).type, row[i]);
        }
        return out.append('}').toString();
    }

    private static void cell(StringBuilder out, Part.Type type, Object value) {
        if (value == null) {
            out.append("null");
            return;
        }
        switch (type) {
            case FLOAT: {
                double x = (Double) value;
                out.append(Double.isFinite(x) ? shortest(x) : "null");
                return;
            }
            case BOOL:
            case INT:
                out.append(value);
                return;
            case DURATION:
                out.append(seconds((Long) value));
                return;
            case STRING:
                string(out, text(value));
                return;
            case BYTES:
                out.append('"').append(hex((byte[]) value)).append('"');
                return;
            default:
                out.append('"').append(of(type, value)).append('"');
        }
    }

    /** A value that is there, as a query would write it: what {@code frequent} shows. */
    public static String of(Part.Type type, Object value) {
        switch (type) {
            case FLOAT:
                return shortest((Double) value);
            case STRING:
                return text(value);
            case BYTES:
                return "0x" + hex((byte[]) value);
            case IP:
                return address((byte[]) value);
            case MAC:
                return mac((Long) value);
            case TIME:
                return time((Long) value);
            case DURATION:
                return duration((Long) value);
            default:
                return String.valueOf(value);
        }
    }

    private static String text(Object value) {
        return value instanceof byte[]
                ? new String((byte[]) value, StandardCharsets.UTF_8)
                : (String) value;
    }

    /** Appends a text in quotes, as serde_json does. */
    public static void string(StringBuilder out, String text) {
        out.append('"');
        for (int i = 0; i < text.length(); i++) {
            char c = text.charAt(i);
            switch (c) {
                case '"': out.append("\\\""); break;
                case '\\': out.append("\\\\"); break;
                case '\b': out.append("\\b"); break;
                case '\f': out.append("\\f"); break;
                case '\n': out.append("\\n"); break;
                case '\r': out.append("\\r"); break;
                case '\t': out.append("\\t"); break;
                default:
                    out.append(c < ' ' ? String.format("\\u%04x", (int) c) : String.valueOf(c));
            }
        }
        out.append('"');
    }

    /** The shortest decimal that reads back as the same float, as Rust's {@code Debug} has it. */
    public static String shortest(double x) {
        if (Double.isNaN(x)) {
            return "NaN";
        }
        if (Double.isInfinite(x)) {
            return x < 0 ? "-inf" : "inf";
        }
        String sign = Double.doubleToRawLongBits(x) < 0 ? "-" : "";
        double size = Math.abs(x);
        if (size == 0) {
            return sign + "0.0";
        }
        BigDecimal digits = shortestDigits(size);
        if (size >= 1e16 || size < 1e-4) {
            String unscaled = digits.unscaledValue().toString();
            String fraction = unscaled.length() > 1 ? "." + unscaled.substring(1) : "";
            int exponent = digits.precision() - digits.scale() - 1;
            return sign + unscaled.charAt(0) + fraction + "e" + exponent;
        }
        String plain = digits.toPlainString();
        return sign + (plain.contains(".") ? plain : plain + ".0");
    }

    /** Between two decimals that are as near, Rust takes the larger one. */
    private static BigDecimal shortestDigits(double size) {
        BigDecimal exact = new BigDecimal(size);
        for (int digits = 1; digits < 17; digits++) {
            BigDecimal rounded = exact.round(new MathContext(digits, RoundingMode.HALF_UP));
            if (rounded.doubleValue() == size) {
                return stripped(rounded);
            }
        }
        return stripped(exact.round(new MathContext(17, RoundingMode.HALF_UP)));
    }

    private static BigDecimal stripped(BigDecimal number) {
        return number.stripTrailingZeros();
    }

    private static String hex(byte[] bytes) {
        return java.util.HexFormat.of().formatHex(bytes);
    }

    /** A link address given in 48 bits. */
    public static String mac(long bits) {
        StringBuilder out = new StringBuilder();
        for (int shift = 40; shift >= 0; shift -= 8) {
            out.append(shift < 40 ? ":" : "").append(String.format("%02x", bits >> shift & 0xff));
        }
        return out.toString();
    }

    /** An address of 16 bytes: IPv4 where it is mapped, else as RFC 5952 says. */
    public static String address(byte[] bytes) {
        boolean v4 = true;
        for (int i = 0; i < 12; i++) {
            v4 &= bytes[i] == (i < 10 ? 0 : (byte) 0xff);
        }
        if (v4) {
            return (bytes[12] & 0xff) + "." + (bytes[13] & 0xff) + "." + (bytes[14] & 0xff) + "."
                    + (bytes[15] & 0xff);
        }
        int[] groups = new int[8];
        int best = 0;
        int most = 0;
        int run = 0;
        for (int i = 0; i < 8; i++) {
            groups[i] = (bytes[2 * i] & 0xff) << 8 | bytes[2 * i + 1] & 0xff;
            run = groups[i] == 0 ? run + 1 : 0;
            if (run > most) {
                most = run;
                best = i + 1 - run;
            }
        }
        StringBuilder out = new StringBuilder();
        for (int i = 0; i < 8; i++) {
            if (most >= 2 && i == best) {
                out.append("::");
                i += most - 1;
                continue;
            }
            if (out.length() > 0 && out.charAt(out.length() - 1) != ':') {
                out.append(':');
            }
            out.append(Integer.toHexString(groups[i]));
        }
        return out.toString();
    }

    /** A time in nanoseconds since 1970, with as many decimals as it takes, by threes. */
    public static String time(long ns) {
        long s = Math.floorDiv(ns, NS_PER_S);
        long frac = Math.floorMod(ns, NS_PER_S);
        java.time.LocalDateTime at =
                java.time.LocalDateTime.ofEpochSecond(s, 0, java.time.ZoneOffset.UTC);
        String date = String.format(Locale.ROOT, "%04d-%02d-%02dT%02d:%02d:%02d", at.getYear(),
                at.getMonthValue(), at.getDayOfMonth(), at.getHour(), at.getMinute(),
                at.getSecond());
        if (frac == 0) {
            return date + "Z";
        }
        String digits = String.format(Locale.ROOT, "%09d", frac);
        int shown = frac % 1_000_000 == 0 ? 3 : frac % 1_000 == 0 ? 6 : 9;
        return date + "." + digits.substring(0, shown) + "Z";
    }

    /** Nanoseconds as seconds, with as many decimals as it takes to be exact. */
    public static String seconds(long ns) {
        BigDecimal seconds = BigDecimal.valueOf(ns, 9);
        return seconds.signum() == 0 ? "0" : seconds.stripTrailingZeros().toPlainString();
    }

    /** A duration as a query writes it: a whole number of the largest unit that divides it. */
    public static String duration(long ns) {
        if (ns == 0) {
            return "0s";
        }
        String[] units = {"d", "h", "m", "s", "ms", "us"};
        long[] sizes = {
            86_400 * NS_PER_S, 3600 * NS_PER_S, 60 * NS_PER_S, NS_PER_S, 1_000_000, 1000
        };
        for (int i = 0; i < units.length; i++) {
            if (ns % sizes[i] == 0) {
                return ns / sizes[i] + units[i];
            }
        }
        return ns + "ns";
    }
}
