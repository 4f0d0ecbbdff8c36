//! Several programs over one capture: each gives the rows that it gives alone, with any number of
//! workers, and the naive model gives the same of all together.

mod common;

use assert_cmd::Command;
use common::{
    ReadingOptions, all_fixtures, answer, detectors, fixtures, map_at_once, naive_answer, program,
    queries, root, text,
};
use insta::assert_snapshot;
use std::path::{Path, PathBuf};
use weir_engine::functions::Functions;
use weir_plan::together::join;
use weir_plan::{Program, Value, print};

/// Three network functions whose state depends on the order of packets, keyed by the 5-tuple, by
/// source, destination and protocol, and by ports only.
const APPLICATIONS: [(&str, &str); 3] = [
    (
        "position",
        "packets | where ip | scan position = 0 by flow => position + 1
         | project number, flow, position",
    ),
    (
        "volume",
        "packets | where ip
         | scan bytes = 0, last = ts by ip.src, ip.dst, ip.proto => (bytes + len, ts)
         | project number, ip.src, ip.dst, bytes",
    ),
    (
        "ports",
        "packets | where exists(sport) | scan gap = 0s, last = ts by sport, dport => (ts - last, ts)
         | project number, sport, dport, gap",
    ),
];

fn compiled(texts: &[(&str, &str)]) -> Vec<(String, Program)> {
    let one =
        |(name, text): &(&str, &str)| ((*name).to_owned(), program(text, &Functions::default()));
    texts.iter().map(one).collect()
}

fn printed(program: &Program) -> usize {
    program.pipelines.iter().filter(|p| p.printed).count()
}

/// Rows of a run by output.
type Rows = Vec<(usize, Vec<Value>)>;

/// The rows of `n` outputs, from the output `first` on; that one gets the number 0.
fn outputs(rows: &Rows, first: usize, n: usize) -> Rows {
    let mine = rows.iter().filter(|(output, _)| (first..first + n).contains(output));
    mine.map(|(output, row)| (output - first, row.clone())).collect()
}

/// Of how many programs without a row over a capture one is run alone.
const ALONE_EVERY: usize = 8;

fn check_all(programs: &[(String, Program)], captures: Vec<PathBuf>) {
    let numbered: Vec<_> = captures.into_iter().enumerate().collect();
    map_at_once(&numbered, |(turn, capture)| check(programs, capture, *turn));
}

/// Each program that has rows is run alone, too; of the others, each when its turn comes.
fn check(programs: &[(String, Program)], capture: &Path, turn: usize) {
    let joined = join(programs.to_vec()).expect("few pipelines");
    let want = naive_answer(&joined, capture, ReadingOptions::default());
    for workers in [1, 2, 4] {
        let got = answer(&joined, capture, workers);
        let what = format!("{}, {workers} workers", capture.display());
        assert!(got.rows == want.rows, "{what}");
        assert_eq!((got.ledger, got.error), (want.ledger.clone(), want.error.clone()), "{what}");
    }
    let mut first = 0;
    for (n, (name, program)) in programs.iter().enumerate() {
        let mine = outputs(&want.rows, first, printed(program));
        if !mine.is_empty() || (n + turn).is_multiple_of(ALONE_EVERY) {
            let alone = answer(program, capture, 1).rows;
            assert!(mine == alone, "{name} over {}", capture.display());
        }
        first += printed(program);
    }
}

#[test]
fn the_three_applications_of_the_network_function_paper() {
    let programs = compiled(&APPLICATIONS);
    check_all(&programs, fixtures());
    // In another order they are the same clusters.
    let [a, b, c] = &programs[..] else { unreachable!("three applications") };
    check(&[c.clone(), b.clone(), a.clone()], &root().join("fixtures/mixed.pcap"), 0);
}

#[test]
fn their_plan_says_why() {
    let joined = join(compiled(&APPLICATIONS)).expect("few pipelines");
    assert_snapshot!(print::explain(&joined, 4), @r"
    workers: 4; no one key fits all pipelines, so 2 clusters of them get all packets, each spread in its own way
    largest common key: none

    exchange 1: packets for pipelines 1 (position), 2 (volume), spread by ip.src, ip.dst, ip.proto
      why: stages that need their rows in order have ip.src, ip.dst, ip.proto in common, so packets are spread by it
    exchange 2: packets for pipeline 3 (ports), spread by sport, dport
      why: stages that need their rows in order have sport, dport in common, so packets are spread by it

    worker level: on each worker, over its share of the packets
      asked once per batch: ip, for pipelines 1 (position), 2 (volume)
      pipeline 1 (position): from exchange 1 to exchange 3
        why here: all packets of a key are on one worker
        where ip
          reads: ip
        scan position = 0 by ip.src, sport, ip.dst, dport, ip.proto idle 1h max 16777216 => position + 1
          reads: ip.src, sport, ip.dst, dport, ip.proto
          columns: position int
          state: position per ip.src, sport, ip.dst, dport, ip.proto, for 1h after its last row; at most 16777216 keys, evicting and counting beyond
        project number, ip.src, sport, ip.dst, dport, ip.proto, position
          reads: number, ip.src, sport, ip.dst, dport, ip.proto
          columns: number int, ip.src ip, sport int, ip.dst ip, dport int, ip.proto int, position int
      pipeline 2 (volume): from exchange 1 to exchange 4
        why here: all packets of a key are on one worker
        where ip
          reads: ip
        scan bytes = 0, last = ts by ip.src, ip.dst, ip.proto idle 1h max 16777216 => (bytes + len, ts)
          reads: ip.src, ip.dst, ip.proto, len, ts
          columns: bytes int, last time
          state: bytes, last per ip.src, ip.dst, ip.proto, for 1h after its last row; at most 16777216 keys, evicting and counting beyond
        project number, ip.src, ip.dst, bytes
          reads: number, ip.src, ip.dst
          columns: number int, ip.src ip, ip.dst ip, bytes int
      pipeline 3 (ports): from exchange 2 to exchange 5
        why here: all packets of a key are on one worker
        where exists(sport)
          reads: sport
        scan gap = 0s, last = ts by sport, dport idle 1h max 16777216 => (ts - last, ts)
          reads: sport, dport, ts
          columns: gap duration, last time
          state: gap, last per sport, dport, for 1h after its last row; at most 16777216 keys, evicting and counting beyond
        project number, sport, dport, gap
          reads: number, sport, dport
          columns: number int, sport int, dport int, gap duration

    exchange 3: rows of pipeline 1 (position), by packet number
      why: rows of all workers are merged by packet number
      needs: all packets of one flow at one producer
    exchange 4: rows of pipeline 2 (volume), by packet number
      why: rows of all workers are merged by packet number
      needs: all packets of one ip.src, ip.dst, ip.proto at one producer
    exchange 5: rows of pipeline 3 (ports), by packet number
      why: rows of all workers are merged by packet number
      needs: all packets of one sport, dport at one producer

    machine level: once, over what the workers hand over
      pipeline 1 (position): from exchange 3 to output
      pipeline 2 (volume): from exchange 4 to output
      pipeline 3 (ports): from exchange 5 to output
    ");
}

#[test]
fn the_library_at_once() {
    let programs = named(queries());
    check_all(&programs, fixtures());
}

#[test]
fn all_detectors_at_once() {
    let programs = named(detectors());
    check_all(&programs, all_fixtures());
}

/// Queries as programs under the names of their files.
fn named(paths: Vec<PathBuf>) -> Vec<(String, Program)> {
    let one = |path: PathBuf| {
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        (name, program(&text(&path), &Functions::default()))
    };
    paths.into_iter().map(one).collect()
}

/// Groups that two programs begin with are made once, also where both go on from there; bounds
/// take one worker, and nothing else does.
#[test]
fn what_programs_share_and_what_they_do_not() {
    let programs = compiled(&[
        ("all", "packets | where ip | summarize bytes = sum(len) by hosts every 1s"),
        (
            "top",
            "packets | where ip | summarize bytes = sum(len) by hosts every 1s | top 1 by bytes",
        ),
        ("few", "packets | summarize n = count() by ip.src max 3"),
        ("fewer", "packets | summarize n = count() by dport every 1s max 2 | top 1 by n"),
        ("same", "packets | summarize n = count() by ip.src max 3 | where n > 1"),
        ("limit", "packets | where tcp | project number | limit 3"),
    ]);
    let joined = join(programs.clone()).expect("few pipelines");
    assert_eq!(joined.pipelines.len(), programs.len(), "nothing is made for nobody");
    let explained = print::explain(&joined, 4);
    assert!(explained.contains("pipeline 2 (top): from pipeline 1 (all) to output"), "{explained}");
    assert!(
        explained
            .contains("packets for pipeline 4 (fewer), all to one worker\n  why: a `max` that"),
        "{explained}"
    );
    check_all(&programs, fixtures());
}

#[test]
fn explain_and_run_take_the_same_words() {
    let weir = |args: &[&str]| {
        let output =
            Command::cargo_bin("weir").expect("built").current_dir(root()).args(args).output();
        let output = output.expect("it runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text")
    };
    let plan = weir(&["explain", "knock", "queries/flow_tracker.weir", "-j", "2"]);
    assert!(
        plan.starts_with("program knock: port_knocking.weir\nprogram flow_tracker: "),
        "{plan}"
    );
    assert!(plan.contains("pipeline 1 (knock): from exchange 1 to exchange"), "{plan}");
    let both = ["run", "knock", "queries/flow_tracker.weir", "-r", "fixtures/knock.pcap"];
    let rows = weir(&[&both[..], &["-o", "json", "-j", "2"]].concat());
    let of = |program: &str| {
        let key = format!("{{\"_pipeline\":\"{program}\",");
        let mine = rows.lines().filter_map(|line| line.strip_prefix(&key));
        mine.map(|line| format!("{{{line}\n")).collect::<String>()
    };
    let alone = |query: &str| weir(&["run", query, "-r", "fixtures/knock.pcap", "-o", "json"]);
    assert_eq!(of("knock"), alone("knock"));
    assert_eq!(of("flow_tracker"), alone("tracker"));
    assert!(!of("knock").is_empty() && !of("flow_tracker").is_empty());
}
