//! The clocks of probes, as `weir merge` knows them: by what their kernels say, and by when their
//! windows come.

use crate::over_wires::{LONG, signal};
use crate::wires::{namespace, veth};
use crate::{Folder, SHARES, edit_head, fixture, publish, text, weir};
use std::fs::{self, OpenOptions};
use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::process::{Child, ChildStdout, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

const QUERY: &str = "packets | summarize n = count() every 200ms";

/// How much later the messages of the second probe come.
const DELAY: Duration = Duration::from_millis(1500);

/// Of captures there is no clock, so a member is added to their heads.
#[test]
fn clocks_that_may_differ_too_much_are_refused() {
    let folder = Folder::new();
    let (query, capture) = ("source_counts", &fixture("mixed.pcap"));
    let files = ["a.wps", "b.wps"].map(|name| folder.path(name));
    let merge = |clocks: [&str; 2], more: &[&str]| {
        for ((file, share), clock) in files.iter().zip(SHARES).zip(clocks) {
            publish(query, capture, file, share);
            if !clock.is_empty() {
                let with = format!("\"clock\":{{\"max_error_us\":{clock}}},\"epoch\":");
                let bytes = fs::read(file).expect("the stream");
                fs::write(file, edit_head(bytes, "\"epoch\":", &with)).expect("writes");
            }
        }
        let args = ["merge", query, "--from", &files[0], "--from", &files[1], "-o", "json"];
        let output = weir(&[&args[..], more].concat()).output().expect("the binary runs");
        (output.status.code(), text(&output.stderr).to_owned())
    };
    let most = |duration| ["--max-skew", duration];
    let (status, told) = merge(["600000", "500000"], &most("1s"));
    assert_eq!(status, Some(2), "{told}");
    let expected = "--max-skew: ";
    assert!(told.contains(expected) && told.contains("b.wps: the clock of its probe"), "{told}");
    assert!(told.contains("off by up to 500ms") && told.contains("a.wps by up to 600ms"), "{told}");
    let (status, told) = merge(["600000", "500000"], &most("1100ms"));
    assert_eq!(status, Some(0), "{told}");
    let (status, told) = merge(["5", "null"], &most("1h"));
    assert_eq!(status, Some(2), "{told}");
    assert!(told.contains("b.wps: the clock of its probe is not synchronised"), "{told}");
    let (status, told) = merge(["5", "null"], &[]);
    assert_eq!(status, Some(0), "{told}");
    let warning = "b.wps are not synchronised, as the kernels there say: packets count";
    assert!(told.contains("the clocks of the probes of") && told.contains(warning), "{told}");
    // Two streams of one probe have one clock.
    let output = ["--from", &files[0], "--from", &files[0], "--max-skew", "1s", "-o", "json"];
    publish(query, capture, &files[0], SHARES[0]);
    let with = "\"clock\":{\"max_error_us\":900000},\"epoch\":";
    let bytes = fs::read(&files[0]).expect("the stream");
    fs::write(&files[0], edit_head(bytes, "\"epoch\":", with)).expect("writes");
    let output = weir(&[&["merge", query][..], &output].concat()).output().expect("it runs");
    let told = text(&output.stderr);
    assert!(output.status.success() && !told.contains("clock"), "{told}");
    for (clocks, more) in [(["", "null"], &[][..]), (["5", "null"], &["-q"]), (["5", "5"], &[])] {
        let (status, told) = merge(clocks, more);
        assert!(status == Some(0) && !told.contains("clock"), "{clocks:?}: {told}");
    }
}

/// The stream of a probe as it comes by another way: later, from a machine whose clock is kept.
fn relay(from: ChildStdout, pipe: String, delay: Duration) {
    let (to, chunks) = mpsc::channel::<(Instant, Vec<u8>)>();
    thread::spawn(move || {
        let mut from = from;
        let mut head = vec![0; 8];
        from.read_exact(&mut head).expect("a head");
        let len = u32::from_le_bytes(head[4..].try_into().expect("four bytes"));
        head.resize(8 + len as usize, 0);
        from.read_exact(&mut head[8..]).expect("a head");
        let error = |kept: &str| format!("\"max_error_us\":{kept}");
        let is_kept = !text(&head[8..]).contains(&error("null"));
        let head = if is_kept { head } else { edit_head(head, &error("null"), &error("1000")) };
        let mut chunk = head;
        while !chunk.is_empty() && to.send((now(), chunk)).is_ok() {
            chunk = vec![0; 1 << 16];
            let n = from.read(&mut chunk).unwrap_or(0);
            chunk.truncate(n);
        }
    });
    thread::spawn(move || {
        let mut to = OpenOptions::new().write(true).open(pipe).expect("the pipe");
        for (came, chunk) in chunks {
            while let Some(left) = (came + delay).checked_duration_since(now()) {
                thread::park_timeout(left.max(Duration::from_millis(1)));
            }
            if to.write_all(&chunk).is_err() {
                return;
            }
        }
    });
}

#[expect(clippy::disallowed_methods, reason = "messages are held back for a while")]
fn now() -> Instant {
    Instant::now()
}

/// A process that is killed when this is dropped.
struct Running(Child);

impl Running {
    fn signal(&self, name: &str) {
        signal(self.0.id(), name);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

#[test]
fn a_probe_whose_windows_come_late_is_told_of() {
    if !namespace("a_probe_whose_windows_come_late_is_told_of") {
        return;
    }
    let folder = Folder::new();
    let pipes = ["north", "south"].map(|name| folder.fifo(name));
    let merge = ["merge", "-e", QUERY, "-o", "json", "--max-skew", "1s"];
    let from = ["--from", &pipes[0], "--from", &pipes[1]];
    let mut merging = weir(&[&merge[..], &from].concat());
    let merging = merging.stdout(Stdio::null()).stderr(Stdio::piped());
    let mut merging = Running(merging.spawn().expect("it starts"));
    let probes = [("n0", "n1", Duration::ZERO), ("s0", "s1", DELAY)].into_iter().zip(&pipes);
    let probes = probes.map(|((one, other, delay), pipe)| {
        veth(one, other);
        let run = ["run", "-e", QUERY, "-i", other, "--lateness", "100ms"];
        let mut probe = weir(&[&run[..], &["--publish", "-", "--probe", other]].concat());
        let probe = probe.stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let mut probe = Running(probe.expect("it starts"));
        relay(probe.0.stdout.take().expect("a pipe"), pipe.clone(), delay);
        probe
    });
    let probes: Vec<Running> = probes.collect();
    let (to, said) = mpsc::channel();
    let stderr = BufReader::new(merging.0.stderr.take().expect("a pipe"));
    thread::spawn(move || stderr.lines().map_while(Result::ok).try_for_each(|l| to.send(l)));
    let wait_for = |what: &str| loop {
        let line = said.recv_timeout(LONG).unwrap_or_else(|e| panic!("{what}: {e}"));
        if line.contains(what) {
            break line;
        }
    };
    let told = wait_for("(--max-skew)");
    let late = "the windows of probe s1 come ";
    assert!(told.contains(late) && told.contains(" s after those of probe n1: "), "{told}");
    merging.signal("-USR1");
    let told = wait_for("probe s1: windows that end until");
    assert!(told.contains(" s after those of probe n1"), "{told}");
    probes.iter().for_each(|probe| probe.signal("-INT"));
    let status = merging.0.wait().expect("it ends");
    assert_eq!(status.code(), Some(1), "{:?}", said.try_iter().collect::<Vec<_>>());
}
