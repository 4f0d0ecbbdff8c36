//! Probes and merges by way of Kafka, by the commands that users have and with a broker that runs:
//! nothing is lost, nothing counts twice, and what can't be had is refused in words that help.

/// The message of a program that was built without Kafka.
#[test]
#[cfg(not(feature = "kafka"))]
fn a_program_without_kafka_says_how_to_get_one() {
    let capture = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/mixed.pcap");
    let address = "kafka://127.0.0.1:1/t";
    for args in [
        &["run", "flows", "-r", capture, "--publish", address][..],
        &["merge", "flows", "--from", address, "--probes", "a"],
    ] {
        let mut weir = std::process::Command::new(env!("CARGO_BIN_EXE_weir"));
        let output = weir.args(args).output().expect("the binary runs");
        let said = String::from_utf8(output.stderr).expect("text");
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("built without Kafka"), "{said}");
        assert!(said.contains("cargo install --path crates/weir --features kafka"), "{said}");
    }
}

#[cfg(feature = "kafka")]
#[path = "kafka/broker.rs"]
mod broker;
#[cfg(feature = "kafka")]
mod common;
#[cfg(feature = "kafka")]
#[path = "kafka/faults.rs"]
mod faults;
#[cfg(feature = "kafka")]
#[path = "kafka/kept.rs"]
mod kept;
#[cfg(feature = "kafka")]
#[path = "kafka/lives.rs"]
mod lives;
#[cfg(feature = "kafka")]
#[path = "common/over_wires.rs"]
mod over_wires;
#[cfg(feature = "kafka")]
#[path = "kafka/partitions.rs"]
mod partitions;
#[cfg(feature = "kafka")]
#[path = "kafka/results.rs"]
mod results;
#[cfg(feature = "kafka")]
#[path = "../../capture/tests/wires/mod.rs"]
mod wires;

/// A step of a test.
#[cfg(feature = "kafka")]
type Step = (&'static str, fn(&broker::Broker));

/// Does steps with one broker, one after the other: it takes longer to start than most of them. Each
/// is named as it begins, so that one that hangs is known.
#[cfg(feature = "kafka")]
fn with_broker(test: &str, topics: &[broker::Topic], steps: &[Step]) {
    use std::io::Write as _;
    if !broker::fetched(test) {
        return;
    }
    let Some(broker) = broker::Broker::start(test, topics) else { return };
    for (name, step) in steps {
        let _ = writeln!(std::io::stderr().lock(), "{test}: {name}");
        step(&broker);
    }
}

/// The names of functions beside them.
#[cfg(feature = "kafka")]
macro_rules! steps {
    ($($step:path),* $(,)?) => { &[$((stringify!($step), $step as fn(&broker::Broker))),*] };
}

#[test]
#[cfg(feature = "kafka")]
fn packets_and_rows_by_kafka() {
    const TOPICS: &[broker::Topic] = &[
        ("shared", "4", &[]),
        ("by-source", "3", &[]),
        ("by-source-rows", "2", &[]),
        ("plain-rows", "1", &[]),
        ("crash", "3", &[]),
        ("crash-rows", "2", &[]),
        ("moves", "4", &[]),
        ("moves-rows", "1", &[]),
        ("secure", "2", &[]),
        ("once", "4", &[]),
        ("partials", "2", &[]),
        ("lies", "1", &[]),
        ("headless", "1", &[]),
        ("grown", "1", &[]),
        ("kept", "2", &[]),
    ];
    let steps = steps![
        partitions::hosts_give_the_rows_of_one_run,
        partitions::what_partitions_cannot_do_is_refused,
        partitions::packets_are_spread_by_the_key_of_a_query,
        partitions::records_that_lie_are_left_out,
        partitions::records_at_the_start_of_a_run_are_missed,
        partitions::partitions_may_be_added,
        partitions::hosts_publish_partial_results,
        partitions::hosts_join_and_leave,
        partitions::nothing_is_lost_or_counts_twice,
        partitions::brokers_are_reached_by_tls_and_sasl,
        partitions::packets_wait_on_disk_for_a_broker,
    ];
    with_broker("packets_and_rows_by_kafka", TOPICS, steps);
}

#[test]
#[cfg(feature = "kafka")]
fn probes_and_merges_by_kafka() {
    const NAME: &str = "probes_and_merges_by_kafka";
    const TOPICS: &[broker::Topic] = &[
        ("halves", "8", &[]),
        ("together", "1", &[]),
        ("again", "2", &[]),
        ("long", "1", &[]),
        ("refused", "2", &[]),
        ("damaged", "1", &[]),
        ("small", "1", &["max.message.bytes=1000"]),
        ("killed", "2", &[]),
        ("dead", "2", &[]),
        ("away", "2", &[]),
        ("spill", "2", &[]),
        ("live", "4", &[]),
    ];
    // With wires of their own where that can be.
    let has_wires = wires::namespace(NAME);
    let steps: &[Step] = steps![
        results::two_probes_give_the_rows_of_one_run,
        results::records_that_come_again_count_once,
        results::long_messages_travel_in_parts,
        faults::what_cannot_be_is_refused_in_words,
        faults::records_that_are_none_are_named,
        faults::a_broker_that_refuses_ends_the_run,
        lives::a_killed_probe_goes_on_in_its_next_life,
        lives::a_dead_probe_is_retired_by_word,
        lives::a_broker_that_is_away_loses_nothing,
        lives::records_wait_on_disk_for_a_broker,
        lives::lives_come_while_a_merge_runs,
    ];
    let wired = usize::from(!has_wires);
    with_broker(NAME, TOPICS, &steps[..steps.len() - wired]);
}

/// With a broker of its own, since it is away for half a minute at a time.
#[test]
#[cfg(feature = "kafka")]
fn what_waits_when_a_run_ends_is_kept() {
    const TOPICS: &[broker::Topic] = &[
        ("drained", "2", &[]),
        ("drained-small", "1", &[]),
        ("packets", "2", &[]),
        ("packets-small", "1", &[]),
        ("at-once", "1", &[]),
    ];
    let steps = steps![
        kept::the_next_run_waits_for_that_of_a_killed_one,
        kept::what_waits_at_the_end_is_sent_by_the_next_run,
    ];
    with_broker("what_waits_when_a_run_ends_is_kept", TOPICS, steps);
}
