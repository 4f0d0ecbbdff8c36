package weir.postgres;

import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.List;
import java.util.stream.Collectors;
import weir.plan.ColumnPlan;
import weir.rows.Text;
import weir.wire.Part;

/** Tables of rows: their columns, and rows as lines of {@code COPY}. */
public final class Tables {
    /** The table of the batches that are in the database. */
    static final String BATCHES = "weir_batches";
    /** Bytes of a name: PostgreSQL cuts longer ones, so that two of them may become one. */
    private static final int NAME_MAX = 63;

    private Tables() {}

    /**
     * Makes the table of rows, and that of batches, unless they are there; checks the columns of
     * one that is there.
     */
    public static void make(Database database, String table, List<ColumnPlan> columns)
            throws SQLException {
        if (table.equals(BATCHES)) {
            throw new SQLException("table " + table + " has the batches that are in the database;"
                    + " rows go to another");
        }
        if (table.getBytes(StandardCharsets.UTF_8).length > NAME_MAX) {
            throw new SQLException("PostgreSQL cuts names of more than " + NAME_MAX
                    + " bytes, as that of table " + table + " is");
        }
        String all = columns.stream().map(column -> quoted(column.name) + " " + type(column.type))
                .collect(Collectors.joining(", "));
        try (Connection connection = database.connect();
                Statement statement = connection.createStatement()) {
            statement.execute("CREATE TABLE IF NOT EXISTS " + BATCHES
                    + " (writer uuid, number bigint, PRIMARY KEY (writer, number))");
            statement.execute("CREATE TABLE IF NOT EXISTS " + quoted(table) + " (" + all + ")");
            try (ResultSet none = statement.executeQuery("SELECT " + names(columns) + " FROM "
                    + quoted(table) + " LIMIT 0")) {
                check(table, columns, none.getMetaData());
            }
        } catch (SQLException e) {
            // Flink shows the innermost cause alone, so this one names the database.
            throw new SQLException(database + ": " + e.getMessage(), e.getSQLState());
        }
    }

    private static void check(String table, List<ColumnPlan> columns, ResultSetMetaData there)
            throws SQLException {
        for (int i = 0; i < columns.size(); i++) {
            String found = there.getColumnTypeName(i + 1);
            String type = type(columns.get(i).type);
            if (!found.equals(type)) {
                throw new SQLException("column " + columns.get(i).name + " of table " + table
                        + " is " + found + ", and rows have " + type + " there");
            }
        }
    }

    /** A table with the columns that rows have, as {@code COPY} names it. */
    public static String target(String table, List<ColumnPlan> columns) {
        return quoted(table) + " (" + names(columns) + ")";
    }

    private static String names(List<ColumnPlan> columns) {
        return columns.stream().map(column -> quoted(column.name)).collect(Collectors.joining(", "));
    }

    private static String quoted(String name) {
        return "\"" + name.replace("\"", "\"\"") + "\"";
    }

    /** The type that PostgreSQL has for one of ours, by the name that it gives it back by. */
    private static String type(Part.Type type) {
        switch (type) {
            case BOOL:
                return "bool";
            case INT:
                return "int8";
            case FLOAT:
                return "float8";
            case TIME:
                return "timestamptz";
            case DURATION:
                return "numeric";
            case IP:
                return "inet";
            case MAC:
                return "macaddr";
            case BYTES:
                return "bytea";
            default:
                return "text";
        }
    }

    /** A row as a line of {@code COPY} in its text format, with its end. */
    public static byte[] line(List<ColumnPlan> columns, Object[] row) {
        StringBuilder out = new StringBuilder();
        for (int i = 0; i < row.length; i++) {
            cell(out.append(i > 0 ? "\t" : ""), columns.get(i).type, row[i]);
        }
        return out.append('\n').toString().getBytes(StandardCharsets.UTF_8);
    }

    private static void cell(StringBuilder out, Part.Type type, Object value) {
        if (value == null) {
            out.append("\\N");
            return;
        }
        switch (type) {
            case DURATION:
                out.append(Text.seconds((Long) value));
                return;
            case BYTES:
                // COPY takes the first backslash away, and the type reads the second.
                out.append("\\\\x").append(Text.of(type, value).substring(2));
                return;
            case STRING:
                escaped(out, Text.of(type, value));
                return;
            default:
                out.append(Text.of(type, value));
        }
    }

    private static void escaped(StringBuilder out, String text) {
        for (int i = 0; i < text.length(); i++) {
            char c = text.charAt(i);
            switch (c) {
                case '\\': out.append("\\\\"); break;
                case '\t': out.append("\\t"); break;
                case '\n': out.append("\\n"); break;
                case '\r': out.append("\\r"); break;
                // A text of PostgreSQL can't have it.
                case '\0': out.append('\ufffd'); break;
                default: out.append(c);
            }
        }
    }
}
