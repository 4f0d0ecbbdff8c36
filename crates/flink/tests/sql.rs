//! The SQL of whole queries.

use weir_engine::functions::Functions;
use weir_flink::{FlinkJob, Unsupported};
use weir_lang::Query;
use weir_plan::physical::Physical;

fn job(text: &str) -> Result<FlinkJob, Unsupported> {
    let functions = Functions::default();
    let options = weir_lang::Options {
        params: &[],
        program: "test",
        signatures: functions.signatures(),
        ..weir_lang::Options::default()
    };
    let compiled = weir_lang::compile(&Query { name: "test.weir", text }, &options);
    let program = compiled.expect("the query compiles").program;
    FlinkJob::new(&Physical::new(&program, &[]), &functions)
}

fn sql(text: &str) -> String {
    job(text).expect("it runs on Flink").sql()
}

#[test]
fn a_query_that_ends_with_its_groups_needs_no_sql() {
    let text = sql("packets | summarize n = count(), d = distinct(ip.dst) by ip.src every 1s");
    insta::assert_snapshot!(text);
}

#[test]
fn stages_after_the_merge_are_views() {
    let text = sql("packets | summarize bytes = sum(len), n = count() by ip.src every 1s \
         | extend mean = float(bytes) / n, twice = bytes * 2 \
         | where n > 9 and not (ip.src in {10.0.0.0/8, ::1} or mean == 1.5) \
         | project ts, host = ip.src, mean, kind = if(n > 99, \"it's many\", \"few\") \
         | rename source = host");
    insta::assert_snapshot!(text);
}

#[test]
fn windows_are_summed_and_ranked() {
    let text = sql("packets | summarize bytes = sum(len) by ip.src every 250ms \
         | summarize total = sum(bytes), most = max(bytes), n = count() where bytes > 99 \
           by ip.src every 1s \
         | top 3 by total / n, most asc");
    insta::assert_snapshot!(text);
}

#[test]
fn a_job_is_json() {
    let text = "packets | summarize n = count(), q = quantile(tcp.seq, 0.9), m = median(tcp.seq), \
        d = distinct((ip.dst, dport)) by ip.src over 3s every 2s lateness 1s";
    insta::assert_snapshot!(job(text).expect("it runs on Flink").to_json());
}

#[test]
fn an_alert_is_an_operator_over_sql() {
    let text = "packets | summarize n = count(), mean = avg(len), completeness() by conn every 1s \
        | where n > 9 \
        | alert \"{conn.a_ip} sends {n} packets of {mean}\" severity high hold 5s repeat 1m max 100";
    let job = job(text).expect("it runs on Flink");
    insta::assert_snapshot!(job.sql());
    insta::assert_snapshot!(job.to_json());
    let more = sql_fault(&format!("{text} | where alert.state == \"end\""));
    assert!(more.contains("`where` over alerts"), "{more}");
}

#[test]
fn rows_that_meet_and_rows_that_are_folded_come_out_of_operators() {
    let text = "let a = packets | summarize n = count() by ip.src every 1s\n\
        let total = a | summarize all = sum(n), hosts = distinct(ip.src, 9) every 1s\n\
        a | join left total by ts default all = 1 | union a \
        | top 2 by n per ip.src | where n > 0";
    let joined = job(text).expect("it runs on Flink");
    insta::assert_snapshot!(joined.sql());
    let text = "packets | summarize n = count() by ip.src every 1s \
        | scan seen = 0, odd = false by ip.src idle 5s max 9 => (seen + n, n % 2 == 1 or n in 3..4) \
        | scan all = 0 => all + 1";
    let scanned = job(text).expect("it runs on Flink");
    insta::assert_snapshot!(scanned.sql());
    insta::assert_snapshot!(scanned.to_json());
}

fn sql_fault(text: &str) -> String {
    job(text).expect_err("it does not run on Flink").to_string()
}
