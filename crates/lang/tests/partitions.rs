//! Which queries hosts can share that have a partition of the packets each, and how far back they
//! have to read to go on where another one stopped.

use weir_lang::{Options, Query, compile};
use weir_packet::fields::{by_name, key_by_name};
use weir_plan::Program;
use weir_plan::keys::{FieldSet, KeyField};
use weir_plan::partitions::{reach_back, rows_by_partition};

const SECOND: i64 = 1_000_000_000;

fn program(text: &str) -> Program {
    let query = Query { name: "q.weir", text };
    match compile(&query, &Options::default()) {
        Ok(compiled) => compiled.program,
        Err(all) => panic!("{text}: {all:?}"),
    }
}

fn key(name: &str) -> FieldSet {
    match key_by_name(name) {
        Some(key) => key.fields.iter().map(|&field| field.into()).collect(),
        None => by_name(name).map(KeyField::from).into_iter().collect(),
    }
}

#[track_caller]
fn fits(text: &str, by: &str) {
    rows_by_partition(&program(text), &key(by)).expect(text);
}

#[track_caller]
fn fits_not(text: &str, by: &str, why: &str) {
    let fault = rows_by_partition(&program(text), &key(by)).expect_err(text);
    assert!(fault.contains(why), "{text}: {fault}");
}

#[test]
fn what_groups_by_the_key_or_finer_fits() {
    let by_flow = "packets | summarize n = count() by flow every 1s";
    for by in ["conn", "hosts", "ip.src", "ip.dst"] {
        fits(by_flow, by);
    }
    fits("packets | where tcp.syn | project ip.src, dport", "conn");
    fits("packets | summarize n = count() by ip.src every 1s", "ip.src");
    fits("packets | summarize n = count() by ip.src, dport every 1s | where n > 5", "ip.src");
    fits("packets | summarize n = count() by hosts", "hosts");
    let twice = "packets | summarize n = count() by ip.src, ip.dst every 1s \
                 | summarize m = max(n) by ip.src every 10s";
    fits(twice, "ip.src");
    fits_not(twice, "hosts", "`summarize` keeps packets with equal ip.src together");
}

#[test]
fn what_needs_several_partitions_is_named() {
    let totals = "packets | summarize n = count() every 1s";
    fits_not(totals, "conn", "pipeline 1: `summarize` has no key that is a packet field");
    let sources = "packets | summarize n = count() by ip.src every 1s";
    fits_not(sources, "conn", "together, and packets are spread by conn");
    fits_not(sources, "ip.dst", "together, and packets are spread by ip.dst");
    fits_not("packets | summarize n = count() by flow every 1s | top 3 by n", "conn", "`top`");
    fits_not("packets | project ip.src | limit 5", "conn", "`limit`");
    fits_not("packets | where tcp.syn | pass", "conn", "hands packets out");
}

#[test]
fn windows_bound_what_is_read_again() {
    let reach = |text: &str| reach_back(&program(text));
    assert_eq!(reach("packets | where tcp.syn | project ip.src"), Some(0));
    let one = reach("packets | summarize n = count() by flow every 10s").expect("a bound");
    assert!((10 * SECOND..20 * SECOND).contains(&one), "{one}");
    let two = "packets | summarize n = count() by ip.src, ip.dst every 1s \
               | summarize m = max(n) by ip.src every 10s";
    assert!(reach(two).expect("a bound") >= 11 * SECOND);
    assert_eq!(reach("packets | summarize n = count() by flow"), None);
}
