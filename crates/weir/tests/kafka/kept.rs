//! Records that wait in memory when a run ends, or is killed, are on disk for the next run.

use crate::broker::{Broker, ends, rows, run, weir};
use crate::lives::{HOSTS, QUERY, Steady, wait_for_windows};
use crate::over_wires::text;
use crate::partitions::sorted;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Child, Stdio};

/// A run that is fed by its standard input, and keeps in a folder what waits.
fn fed(way: &[&str], kept: &Path) -> Child {
    let kept = ["--kafka-spill", kept.to_str().expect("a plain path")];
    let mut command = weir(&[&["run", "-r", "-"][..], way, &kept].concat());
    command.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts")
}

fn feed(run: &mut Child, bytes: &[u8]) {
    run.stdin.as_mut().expect("a pipe").write_all(bytes).expect("it reads");
}

/// Bytes that wait in a folder.
pub(crate) fn waiting(kept: &Path) -> u64 {
    let files = fs::read_dir(kept).expect("a folder").flatten();
    let spilled = files.filter(|f| f.path().extension().is_some_and(|name| name == "spill"));
    spilled.filter_map(|file| Some(file.metadata().ok()?.len())).sum()
}

/// The broker goes in the midst of a run and is not back at its end. Two of four runs have next
/// to no memory, so that most waits on disk already, and what is in memory belongs before that.
pub(crate) fn what_waits_at_the_end_is_sent_by_the_next_run(broker: &Broker) {
    let folder = tempfile::tempdir().expect("a folder");
    let config = folder.path().join("config");
    fs::write(&config, "queue.buffering.max.messages=3").expect("writes");
    let config = ["--kafka-config", config.to_str().expect("a plain path")];
    let steady = Steady::new();
    let topics =
        ["drained", "drained-small", "packets", "packets-small"].map(|t| broker.address(t));
    let way = |n: usize| {
        let way: &[&str] = match n / 2 {
            0 => &["-e", QUERY, "--probe", "a", "--publish"],
            _ => &["-e", "packets | pass", "-w"],
        };
        let more = if n % 2 == 1 { &config[..] } else { &[] };
        [way, &[&topics[n]], more].concat()
    };
    let kept: [_; 4] = std::array::from_fn(|n| folder.path().join(format!("kept{n}")));
    kept.iter().for_each(|folder| fs::create_dir(folder).expect("makes"));
    let mut runs: [_; 4] = std::array::from_fn(|n| fed(&way(n), &kept[n]));
    runs.iter_mut().for_each(|run| feed(run, &steady.first));
    topics[..2].iter().for_each(|topic| wait_for_windows(topic, "a", 15));
    broker.kill();
    for run in &mut runs {
        feed(run, &steady.second);
        drop(run.stdin.take());
    }
    for (n, run) in runs.into_iter().enumerate() {
        let ended = ends(run, &["run"]);
        let said = text(&ended.stderr);
        assert_eq!(ended.status.code(), Some(1), "{n}: {said}");
        assert!(said.contains("records that waited in memory wait on disk"), "{n}: {said}");
        assert!(said.contains("no record is lost, but "), "{n}: {said}");
        assert!(waiting(&kept[n]) > 1000, "{n}: {said}");
    }
    broker.up();
    // The next run has no packets of its own.
    for (n, kept) in kept.iter().enumerate() {
        let mut next = fed(&way(n), kept);
        feed(&mut next, steady.header());
        drop(next.stdin.take());
        let ended = ends(next, &["run"]);
        let said = text(&ended.stderr);
        assert_eq!((ended.status.code(), waiting(kept)), (Some(0), 0), "{n}: {said}");
        assert!(said.contains("bytes wait on disk that an earlier run has left"), "{n}: {said}");
    }
    for topic in &topics[..2] {
        let merge = ["merge", "-e", QUERY, "--from", topic, "--until", "end", "-o", "json"];
        assert_eq!(rows(&merge), steady.rows(), "{topic}");
    }
    let by_host = "packets | summarize n = count() by conn every 1s";
    let one = rows(&["run", "-e", by_host, "-r", &steady.path(), "-o", "json", "-q"]);
    for topic in &topics[2..] {
        let host = ["run", "-e", by_host, "-i", topic, "--group", "g", "--until", "end", "-o"];
        let host = run(&[&host[..], &["json"]].concat());
        let said = text(&host.stderr);
        assert_eq!(host.status.code(), Some(0), "{said}");
        assert!(said.contains("committed  4000 packets"), "{said}");
        assert!(sorted(text(&host.stdout)) == sorted(&one), "{said}");
    }
}

/// The process that carries the records of a killed run has the folder for a moment. The next run,
/// which starts at once, waits for it, and no record is lost on the way.
pub(crate) fn the_next_run_waits_for_that_of_a_killed_one(broker: &Broker) {
    let folder = tempfile::tempdir().expect("a folder");
    let (topic, steady) = (broker.address("at-once"), Steady::new());
    let way = ["-e", QUERY, "--publish", &topic, "--probe", "a", "-q"];
    let frames = [&steady.first[24..], &steady.second].concat();
    // Ten seconds of packets each, of which a killed run leaves eight windows: seven for each run
    // are more than those before this one have left.
    for (frames, n) in frames.chunks(frames.len() / 4).zip(1..) {
        let mut killed = fed(&way, folder.path());
        feed(&mut killed, steady.header());
        feed(&mut killed, frames);
        wait_for_windows(&topic, "a", 7 * n);
        killed.kill().expect("it runs");
        killed.wait().expect("it ends");
    }
    let mut last = fed(&way, folder.path());
    feed(&mut last, steady.header());
    drop(last.stdin.take());
    let ended = ends(last, &way);
    assert!(ended.status.success(), "{}", text(&ended.stderr));
    let merge = ["merge", "-e", QUERY, "--from", &topic, "--until", "end", "-o", "json"];
    let merged = run(&merge);
    let said = text(&merged.stderr);
    assert!(said.contains("in 5 lives, of which 4 broke off"), "{said}");
    let windows = text(&merged.stdout).lines().count() as u64 / HOSTS;
    assert!((24..=40).contains(&windows), "{windows} windows: {said}");
}
