//! Rows of a job in PostgreSQL, by `cluster/postgres.sh`: each of them once, whoever is killed.

use crate::common::{root, workplace};
use crate::over_wires::until;
use crate::{ANY, Cluster, TWO, fixture, printed, publish, script, text};
use std::fs;
use std::process::Command;
use std::time::Duration;

/// A server on a port of its own.
struct Postgres {
    settings: [(&'static str, String); 2],
    url: String,
}

impl Postgres {
    fn start(test: &str) -> Option<Postgres> {
        let home = root().join("target/cluster/test-postgres").display().to_string();
        let settings = [("POSTGRES_PORT", "15932".to_owned()), ("POSTGRES_HOME", home.clone())];
        let mut postgres = Postgres { settings, url: String::new() };
        // Remains of an earlier test that was ended with violence.
        postgres.run("down");
        let _ = fs::remove_dir_all(&home);
        postgres.url = script(test, "postgres.sh", &["up"], &postgres.settings)?;
        Some(postgres)
    }

    fn run(&self, what: &str) {
        let mut command = Command::new(root().join("cluster/postgres.sh"));
        let settings = self.settings.iter().map(|(key, value)| (key, value));
        let _ = command.arg(what).envs(settings).output();
    }

    fn sql(&self, text: &str) -> String {
        script("tables", "postgres.sh", &["sql", text], &self.settings).expect("it runs")
    }

    /// Waits until a table has so many rows.
    fn wait_for(&self, table: &str, count: usize) {
        let count_of = format!("SELECT count(*) FROM \"{table}\"");
        until(&format!("{table} has {count} rows"), || {
            self.sql(&count_of).parse().is_ok_and(|found: usize| found >= count)
        });
    }

    /// Checks that a table has just the rows that Weir writes as JSON, each of them once.
    fn has_just(&self, table: &str, rows: &str) {
        self.wait_for(table, rows.lines().count());
        // Rows that came twice have had the time to come.
        pause(Duration::from_secs(2));
        let lines = rows.lines().map(|row| format!("($row${row}$row$)"));
        let lines: Vec<String> = lines.collect();
        let differ = format!(
            "WITH expected AS (SELECT (jsonb_populate_record(NULL::\"{table}\", line::jsonb)).* \
             FROM (VALUES {}) all_lines(line)) \
             (SELECT 'missing', e.* FROM (TABLE expected EXCEPT ALL TABLE \"{table}\") e) UNION ALL \
             (SELECT 'too many', t.* FROM (TABLE \"{table}\" EXCEPT ALL TABLE expected) t)",
            lines.join(",")
        );
        assert_eq!(self.sql(&differ), "", "{table}");
    }
}

#[expect(clippy::disallowed_methods, reason = "a table does not say when rows come")]
fn pause(time: Duration) {
    std::thread::sleep(time);
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.run("down");
    }
}

/// A column of each type; the texts have what `COPY` would take for something else.
const TYPES: &str = "packets | where ip | summarize n = count(), bytes = sum(len), mean = avg(len), \
    syn = any(tcp.syn), who = first(ip.dst), mac = min(eth.src), name = max(dns.qname), \
    none = sum(tcp.dport) where len > 100000, last = max(ts) \
    by ip.src, begin = payload[0:9] every 1s \
    | extend rest = last - ts, text = if(n > 1, \"\\ta\\\\N\\n\\\"c\\\"\", \"d\")";

pub(crate) fn rows_go_into_tables_once(cluster: &Cluster) {
    let Some(postgres) = Postgres::start("rows_go_into_tables_once") else { return };
    values_of_all_types_arrive(cluster, &postgres);
    each_output_has_a_table(cluster, &postgres);
    nothing_is_lost_or_twice(cluster, &postgres);
    what_cannot_be_is_refused(cluster, &postgres);
}

/// Lets two probes see a capture; their streams, and the rows of both together.
fn two_probes(folder: &std::path::Path, query: &str, capture: &str) -> ([String; 2], String) {
    let [a, b] = publish(folder, query, &fixture(capture), ANY);
    let rows = printed(&["merge", "-q", "-e", query, "--from", &a, "--from", &b, "-o", "json"]);
    assert!(!rows.is_empty(), "{query}");
    ([a, b], rows)
}

fn values_of_all_types_arrive(cluster: &Cluster, postgres: &Postgres) {
    let folder = workplace();
    let ([a, b], rows) = two_probes(folder.path(), TYPES, "mixed.pcap");
    cluster.topic("types-of");
    cluster.produce("types-of", &[&a, &b]);
    let job = cluster.submit(TYPES, "types-of", "types", &["--database", &postgres.url]);
    // Bytes are hexadecimal digits in JSON; PostgreSQL wants a sign before them.
    postgres.has_just("types", &rows.replace("\"begin\":\"", "\"begin\":\"\\\\x"));
    cluster.ask(&["cancel", &job]);
}

fn each_output_has_a_table(cluster: &Cluster, postgres: &Postgres) {
    let folder = workplace();
    let ([a, b], rows) = two_probes(folder.path(), TWO, "dns.pcap");
    cluster.topic("two-of");
    cluster.produce("two-of", &[&a, &b]);
    let job = cluster.submit(TWO, "two-of", "two", &["--database", &postgres.url]);
    for output in ["1", "2"] {
        let start = format!("{{\"_pipeline\":\"{output}\"");
        let of_output: Vec<&str> = rows.lines().filter(|row| row.starts_with(&start)).collect();
        assert!(!of_output.is_empty(), "{rows}");
        postgres.has_just(&format!("two_{output}"), &of_output.join("\n"));
    }
    cluster.ask(&["cancel", &job]);
}

/// A task manager is killed, then the database, among windows.
fn nothing_is_lost_or_twice(cluster: &Cluster, postgres: &Postgres) {
    const QUERY: &str = "packets | summarize n = count(), bytes = sum(len) by ip.src every 1s";
    let folder = workplace();
    let ([a, b], rows) = two_probes(folder.path(), QUERY, "syn_flood.pcap");
    cluster.topic("killed-of");
    let to = ["--database", &postgres.url];
    let job = cluster.submit(QUERY, "killed-of", "killed", &to);
    cluster.produce("killed-of", &["--to", "7", &a, "--to", "5", &b]);
    postgres.wait_for("killed", 1);
    // Its last checkpoint, from which the job goes on, has rows that were just written.
    cluster.flink(&["kill", "1"]);
    cluster.flink(&["up"]);
    cluster.produce("killed-of", &["--from", "3", "--to", "10", &a]);
    postgres.run("kill");
    cluster.produce("killed-of", &["--from", "3", &a, &b]);
    postgres.run("up");
    postgres.has_just("killed", &rows);
    cluster.ask(&["cancel", &job]);
}

fn what_cannot_be_is_refused(cluster: &Cluster, postgres: &Postgres) {
    const QUERY: &str = "packets | summarize n = count() by ip.src every 1s";
    let refused = |to: &str, url: &str, why: &str| {
        let output = cluster.try_submit(QUERY, "types-of", to, &["--database", url]);
        let errors = text(&output.stderr);
        assert!(!output.status.success() && errors.contains(why), "{errors}");
    };
    postgres.sql("CREATE TABLE other (ts timestamptz, \"ip.src\" inet, n text)");
    refused("other", &postgres.url, "column n of table other is text, and rows have int8 there");
    postgres.sql("CREATE TABLE fewer (ts timestamptz, n int8)");
    refused("fewer", &postgres.url, "column \"ip.src\" does not exist");
    refused("weir_batches", &postgres.url, "table weir_batches has the batches");
    refused("types", &postgres.url, "table `types` has rows");
    let long = "x".repeat(64);
    refused(&long, &postgres.url, "PostgreSQL cuts names of more than 63 bytes");
    refused("none", "jdbc:postgresql://127.0.0.1:1/weir?user=weir", "Connection to 127.0.0.1:1");
}
