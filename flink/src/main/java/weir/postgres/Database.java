package weir.postgres;

import java.io.Serializable;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.Properties;

/** A database, by its URL. */
public final class Database implements Serializable {
    private static final long serialVersionUID = 1L;
    private static final String SCHEME = "jdbc:postgresql:";

    private final String url;

    public Database(String url) {
        if (!url.startsWith(SCHEME)) {
            throw new IllegalArgumentException(
                    "a database is " + SCHEME + "//HOST/DATABASE, not " + url);
        }
        if (url.matches("(?i).*[?&](ssl)?password=.*")) {
            throw new IllegalArgumentException("whoever sees the job sees the URL of its database: "
                    + "put the password into ~/.pgpass of the user that Flink runs as");
        }
        this.url = url;
    }

    /** A connection without transactions. Settings of the URL go before those set here. */
    Connection connect() throws SQLException {
        Properties settings = new Properties();
        settings.setProperty("ApplicationName", "weir");
        settings.setProperty("connectTimeout", "10");
        settings.setProperty("socketTimeout", "120");
        settings.setProperty("tcpKeepAlive", "true");
        Connection connection = new org.postgresql.Driver().connect(url, settings);
        if (connection == null) {
            throw new SQLException("no URL of a database: " + url);
        }
        return connection;
    }

    @Override
    public String toString() {
        return url;
    }
}
