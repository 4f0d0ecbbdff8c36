//! Where a job reads and writes: topics that are absent, that have rows, that other jobs write, and
//! that take TLS and SASL alone.

use crate::common::{root, workplace};
use crate::{ANY, Cluster, fixture, place, printed, publish, sorted, text};
use std::fs;
use std::path::Path;
use std::process::Output;

pub(crate) const QUERY: &str = "packets | summarize n = count() by ip.src every 1s";

const KAFKA: [&str; 2] = ["--kafka", "127.0.0.1:19592"];

/// A submit that fails says why.
fn refused(output: &Output, whys: &[&str]) {
    let errors = text(&output.stderr);
    assert!(!output.status.success(), "it was taken: {whys:?}");
    assert!(whys.iter().all(|why| errors.contains(why)), "{errors}");
}

/// The number of a job that was taken.
fn taken(output: &Output) -> String {
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout).trim().to_owned()
}

/// A name that is wrong is an error, and makes no topic.
pub(crate) fn topics_are_there_before_a_job(cluster: &Cluster) {
    let submit = |names: &[&str]| cluster.try_plain(&[&KAFKA[..], names].concat());
    let wrong = ["--topic", "partails", "--to", "there", "--create-topics"];
    refused(&submit(&wrong), &["there is no topic `partails`", "(--topic)"]);
    cluster.topic("partials");
    let names = ["--topic", "partials", "--to", "there"];
    refused(&submit(&names), &["there is no topic `there`", "(--to)", "--create-topics"]);
    cluster.topic("there");
    refused(&submit(&names), &["there is no topic `there-events`"]);
    cluster.topic("there-events");
    let job = taken(&submit(&names));
    cluster.ask(&["cancel", &job]);
    // None of these errors has made a topic.
    refused(&submit(&wrong), &["there is no topic `partails`"]);
}

fn two_probes(folder: &Path) -> ([String; 2], String) {
    let [a, b] = publish(folder, QUERY, &fixture("syn_flood.pcap"), ANY);
    let rows = printed(&["merge", "-q", "-e", QUERY, "--from", &a, "--from", &b, "-o", "json"]);
    assert!(!rows.is_empty());
    ([a, b], rows)
}

/// A second job over the same topic would put all rows out again.
pub(crate) fn rows_do_not_come_twice(cluster: &Cluster) {
    let folder = workplace();
    let ([a, b], rows) = two_probes(folder.path());
    let lines = rows.lines().count();
    cluster.topic("once");
    cluster.produce("once", &[&a, &b]);
    let job = cluster.submit(QUERY, "once", "once-rows", &[]);
    cluster.consume("once-rows", lines);
    let submit = |more: &[&str]| cluster.try_submit(QUERY, "once", "once-rows", more);
    refused(&submit(&[]), &[&job, "puts its rows there", "--append"]);
    refused(&submit(&["--append"]), &[&job, "the same name", "--name"]);
    let savepoint = cluster.ask(&["savepoint", "--cancel", &job]);
    refused(&submit(&[]), &["topic `once-rows` has rows", "--append"]);
    // One that goes on puts out nothing again, and needs no option.
    let job = taken(&submit(&["--from-savepoint", savepoint.trim()]));
    assert_eq!(sorted(&cluster.consume("once-rows", lines)), sorted(&rows));
    // One that is told to puts them out again, beside the job that goes on.
    let second = taken(&submit(&["--append", "--name", "second"]));
    assert_eq!(cluster.consume("once-rows", 2 * lines).lines().count(), 2 * lines);
    cluster.ask(&["cancel", &job]);
    cluster.ask(&["cancel", &second]);
}

/// Source, sink and the look at topics speak TLS, and log in; a secret is shown nowhere.
pub(crate) fn a_job_speaks_tls_and_sasl(cluster: &Cluster) {
    let folder = workplace();
    let ([a, b], rows) = two_probes(folder.path());
    cluster.topic("secure");
    cluster.produce("secure", &[&a, &b]);
    let ca = root().join("target/cluster/test-kafka/tls/ca.pem");
    let config = |name: &str, login: &str| {
        let file = place(folder.path(), name);
        let text = format!(
            "security.protocol=sasl_ssl\nssl.ca.location={}\nsasl.username=probe\n{login}\n",
            ca.display()
        );
        fs::write(&file, text).expect("a file");
        file
    };
    let submit = |to: &str, config: &str| {
        let names = ["--kafka", "127.0.0.1:19594", "--topic", "secure", "--to", to];
        let more = ["--create-topics", "--checkpoint-ms", "500", "--kafka-config", config];
        cluster.try_plain(&[&names[..], &more].concat())
    };
    let wrong = config("wrong", "sasl.mechanism=PLAIN\nsasl.password=none");
    refused(&submit("secure-no", &wrong), &["Authentication failed"]);
    let logins = [
        ("plain", "sasl.mechanism=PLAIN\nsasl.password=plain-secret"),
        ("scram", "sasl.mechanism=SCRAM-SHA-512\nsasl.password=scram-secret"),
    ];
    for (name, login) in logins {
        let (to, secret) = (format!("secure-{name}"), format!("{name}-secret"));
        let job = taken(&submit(&to, &config(name, login)));
        let found = cluster.consume(&to, rows.lines().count());
        assert_eq!(sorted(&found), sorted(&rows), "{name}");
        shows_no_secret(&job, &secret);
        cluster.ask(&["cancel", &job]);
    }
}

/// Neither Flink's answers about a job nor its logs have a secret.
fn shows_no_secret(job: &str, secret: &str) {
    let ask = |path: &str| {
        let url = format!("http://127.0.0.1:18581{path}");
        let asked = std::process::Command::new("python3")
            .args(["-c", "import sys, urllib.request as r; print(r.urlopen(sys.argv[1]).read())"])
            .arg(&url)
            .output()
            .expect("python3 runs: the scripts need it");
        assert!(asked.status.success(), "{url}: {}", text(&asked.stderr));
        text(&asked.stdout).to_owned()
    };
    let about = |part: &str| ask(&format!("/jobs/{job}{part}"));
    let config = about("/config");
    assert!(config.contains("weir.probes"), "{config}");
    let parts = ["", "/plan", "/jobmanager/config", "/exceptions", "/accumulators"];
    let all = parts.map(about).concat() + &config + &ask("/jobmanager/config");
    assert!(!all.contains(secret), "{all}");
    for log in ["jobmanager.log", "taskmanager1.log"] {
        let log = root().join("target/cluster/test-flink").join(log);
        assert!(!fs::read_to_string(&log).expect("a log").contains(secret), "{}", log.display());
    }
}
