package weir.postgres;

import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.List;
import java.util.stream.Collectors;

/** A table of rows. */
public record Table(String name, List<Column> columns) {
    /** The table of the batches that are in the database. */
    static final String BATCHES = "weir_batches";
    /** Bytes of a name: PostgreSQL cuts longer ones, so that two of them may become one. */
    private static final int NAME_MAX = 63;

    /** A column, and its type as PostgreSQL names it. */
    public record Column(String name, String type) {}

    /**
     * Makes it, and the table of batches, unless they are there; checks the columns of one that is
     * there.
     */
    public void make(Database database) throws SQLException {
        if (name.equals(BATCHES)) {
            throw new SQLException("table " + name + " has the batches that are in the database;"
                    + " rows go to another");
        }
        if (name.getBytes(StandardCharsets.UTF_8).length > NAME_MAX) {
            throw new SQLException("PostgreSQL cuts names of more than " + NAME_MAX
                    + " bytes, as that of table " + name + " is");
        }
        String all = columns.stream().map(column -> quoted(column.name) + " " + column.type)
                .collect(Collectors.joining(", "));
        try (Connection connection = database.connect();
                Statement statement = connection.createStatement()) {
            statement.execute("CREATE TABLE IF NOT EXISTS " + BATCHES
                    + " (writer uuid, number bigint, PRIMARY KEY (writer, number))");
            statement.execute("CREATE TABLE IF NOT EXISTS " + quoted(name) + " (" + all + ")");
            try (ResultSet none = statement.executeQuery("SELECT " + names() + " FROM "
                    + quoted(name) + " LIMIT 0")) {
                check(none.getMetaData());
            }
        } catch (SQLException e) {
            // Flink shows the innermost cause alone, so this one names the database.
            throw new SQLException(database + ": " + e.getMessage(), e.getSQLState());
        }
    }

    /** Whether it has any row. */
    public boolean hasRows(Database database) throws SQLException {
        try (Connection connection = database.connect();
                Statement statement = connection.createStatement();
                ResultSet one = statement.executeQuery(
                        "SELECT 1 FROM " + quoted(name) + " LIMIT 1")) {
            return one.next();
        }
    }

    private void check(ResultSetMetaData there) throws SQLException {
        for (int i = 0; i < columns.size(); i++) {
            String found = there.getColumnTypeName(i + 1);
            Column column = columns.get(i);
            if (!found.equals(column.type)) {
                throw new SQLException("column " + column.name + " of table " + name
                        + " is " + found + ", and rows have " + column.type + " there");
            }
        }
    }

    /** The table with the columns that rows have, as {@code COPY} names it. */
    public String target() {
        return quoted(name) + " (" + names() + ")";
    }

    private String names() {
        return columns.stream().map(column -> quoted(column.name)).collect(Collectors.joining(", "));
    }

    private static String quoted(String name) {
        return "\"" + name.replace("\"", "\"\"") + "\"";
    }
}
