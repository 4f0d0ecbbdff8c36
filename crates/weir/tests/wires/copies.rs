//! Packets that the kernel copies to several interfaces, in XDP: each output gets what it gets from
//! workers, and the ledgers are the same.

use crate::capture;
use crate::common::workplace;
use crate::flapping::{all_received, received};
use crate::functions::start;
use crate::in_kernel::{IN_KERNEL, count};
use crate::over_wires::until;
use crate::space::{Space, Stream, Tap};
use std::path::Path;
use std::process::Command;
use weir_packet::craft::Frame;
use weir_packet::source::LinkType;

/// By which drivers hand frames to each other, and by which the network stack does.
const MODES: [(&str, &str); 2] = [("on", "native"), ("off", "generic")];

/// Interfaces, and their other ends.
const WIRES: [(&str, &str); 4] = [("eth0", "h0"), ("eth1", "h1"), ("eth2", "h2"), ("eth3", "h3")];

/// A namespace with all wires; `None` after saying what is missing.
fn wired(test: &str, gro: &'static str) -> Option<Space> {
    let space = Space::new(test)?;
    for (one, other) in WIRES {
        space.ip(&format!("link add {one} type veth peer name {other}"));
        space.ip(&format!("link set {one} up"));
        space.ip(&format!("link set {other} up"));
        let set = move || Command::new("ethtool").args(["-K", other, "gro", gro]).status();
        match space.run(set) {
            Ok(status) => assert!(status.success(), "ethtool"),
            Err(_) => {
                crate::common::skip(test, "ethtool is not installed");
                return None;
            }
        }
    }
    Some(space)
}

/// Frames of some protocols, ports and lengths.
fn frames(n: u16) -> Vec<Vec<u8>> {
    let frame = |i: u16| {
        let payload = vec![7; usize::from(i) * 37 % 900];
        let ip = Frame::ethernet().ipv4([10, 0, (i >> 8) as u8, i as u8], [192, 0, 2, 1]);
        match i % 5 {
            0 => ip.tcp(1000, 80).payload(&payload).bytes(),
            n => ip.udp(1000 + i, 52 + n).payload(&payload).bytes(),
        }
    };
    (0..n).map(frame).collect()
}

/// Sends frames from the other end of a wire.
fn send(space: &Space, folder: &Path, by: &str, frames: &[Vec<u8>]) {
    std::fs::write(folder.join("sent.pcap"), capture(LinkType::ETHERNET, frames)).expect("writes");
    let ledger = space.weir(folder, &["run", "-e", "packets | pass", "-r", "sent.pcap", "-w", by]);
    assert_eq!(count(&ledger, "passed"), frames.len() as u64, "{ledger}");
}

/// The lines of a ledger about packets that left, and how many left how.
fn ends(ledger: &str) -> Vec<String> {
    let words = ["sent", "refused", "dropped", "passed", "doubtful"];
    let of_ends = |line: &&str| words.iter().any(|word| line.starts_with(word));
    let squeezed = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    ledger.lines().filter(of_ends).map(squeezed).collect()
}

/// Waits until a run has received and finished so many packets, by its ledger of each second.
fn finished(run: &Stream, n: usize) {
    run.wait_for_report(&format!("received   {n} packets"), 1);
}

/// Waits long enough for the run to look at its outputs.
fn pause() {
    let mut tries = 0;
    until("a moment has passed", || {
        tries += 1;
        tries > 15
    });
}

/// The output of a run: the frames that come to each other end, and its ledger.
fn handed_out(
    test: &str,
    space: &Space,
    folder: &Path,
    args: &[&str],
    sent: &[(&str, &[Vec<u8>])],
) -> Option<(Vec<Vec<Vec<u8>>>, String)> {
    let run = start(space, &[args, &["--stats", "1"]].concat());
    let taps: Vec<Tap> = WIRES
        .iter()
        .map(|(_, other)| Tap::start(test, space, other, folder))
        .collect::<Option<_>>()?;
    for (by, frames) in sent {
        send(space, folder, by, frames);
    }
    finished(&run, sent.iter().map(|(_, frames)| frames.len()).sum());
    let ledger = run.interrupt();
    let out = |name: &str| {
        let to = format!(" to {name}, ");
        let line = ledger.lines().rfind(|line| line.starts_with("sent") && line.contains(&to));
        line.map_or(0, |line| count(line, "sent") as usize)
    };
    // No more come than the ledger says: all have left when it is written.
    let got = WIRES.iter().zip(&taps).map(|((one, _), tap)| tap.frames(out(one))).collect();
    Some((got, ledger))
}

/// Programs that copy packets of `eth0`, some with a tag or shortened.
const COPYING: [&str; 5] = [
    "packets | broadcast to (\"eth1\", \"eth2\", \"eth3\")",
    "packets | mirror \"eth3\" | where udp | mirror \"eth1\" \
     | branch when udp.dport == 53 -> drop else -> forward \"eth2\"",
    "packets | where udp | branch when udp.dport == 53 -> broadcast to (\"eth1\", \"eth2\") \
     when udp.dport == 54 -> mirror \"eth3\" | forward \"eth1\" else -> drop
     packets | where tcp or udp.dport == 55 | forward \"eth3\"",
    "packets | branch when udp.dport == 53 -> tag 7 | broadcast to (\"eth1\", \"eth2\") \
     when tcp -> tag 4094 | forward \"eth3\" else -> broadcast to (\"eth1\", \"eth3\")",
    "packets | branch when udp.dport == 53 -> trim 64 | tag 7 | broadcast to (\"eth1\", \"eth2\") \
     when tcp -> trim 97 | forward \"eth3\" else -> trim 100 | broadcast to (\"eth1\", \"eth3\")",
];

#[test]
fn copies_of_the_kernel_are_those_of_workers() {
    let test = "wires::copies::copies_of_the_kernel_are_those_of_workers";
    let sent = frames(500);
    for (gro, mode) in MODES {
        let Some(space) = wired(test, gro) else { return };
        for program in COPYING {
            let folder = workplace();
            let run = ["run", "-e", program, "-i", "eth0"];
            let ways = [&[&run[..], &["-Q", "in"]].concat(), &[&run[..], &IN_KERNEL].concat()];
            let all =
                ways.map(|args| handed_out(test, &space, folder.path(), args, &[("h0", &sent)]));
            let [Some((want, said)), Some((got, ledger))] = all else { return };
            let named = format!("{mode}, {program}: {said}{ledger}");
            assert!(ledger.contains(&format!(", {mode}")), "{named}");
            assert!(want[1..].iter().all(|frames| frames.len() > 90), "{named}");
            assert!(got == want, "{named}");
            assert_eq!(ends(&ledger), ends(&said), "{named}");
            assert_eq!(count(&ledger, "acted"), sent.len() as u64, "{named}");
            assert_eq!(count(&ledger, "processed"), 0, "{named}");
        }
    }
}

/// A place for the program is taken, or refused where an output could not get its frames.
#[test]
fn programs_run_in_the_mode_that_was_asked_for() {
    let test = "wires::copies::programs_run_in_the_mode_that_was_asked_for";
    let folder = workplace();
    let run = ["run", "-e", COPYING[0], "-i", "eth0", "--xdp-mode"];
    for (gro, mode) in [("on", "native"), ("on", "generic"), ("off", "generic")] {
        let Some(space) = wired(test, gro) else { return };
        let run = start(&space, &[&run[..], &[mode], &IN_KERNEL].concat());
        run.wait_for_report(&format!(", {mode}"), 1);
        run.interrupt();
    }
    for (gro, mode, why) in [
        ("off", "native", "eth1: its driver takes no frames of other drivers"),
        ("on", "card", "loading the XDP program onto the card"),
    ] {
        let Some(space) = wired(test, gro) else { return };
        let refused = space.attempt(folder.path(), &[&run[..], &[mode], &IN_KERNEL].concat());
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(refused.status.code() == Some(1) && said.contains(why), "{mode}: {said}");
    }
}

/// A copy leaves, and the packet is counted: both in the kernel.
#[test]
fn packets_are_mirrored_and_counted_in_the_kernel() {
    let test = "wires::copies::packets_are_mirrored_and_counted_in_the_kernel";
    let sent = frames(300);
    let program = "packets | mirror \"eth1\" | where udp | mirror \"eth2\" \
                   | summarize n = count(), bytes = sum(len) by udp.dport";
    let Some(space) = wired(test, "on") else { return };
    let folder = workplace();
    let rows = folder.path().join("rows");
    let rows = rows.to_str().expect("a plain path");
    let run = ["run", "-e", program, "-i", "eth0", "-o", "csv", "--out-dir", rows];
    let all = [&["-Q", "in"][..], &IN_KERNEL].map(|how| {
        let args = [&run[..], how].concat();
        let handed = handed_out(test, &space, folder.path(), &args, &[("h0", &sent)]);
        let files = std::fs::read_dir(rows).expect("a folder").flatten();
        let read = |file: std::fs::DirEntry| std::fs::read_to_string(file.path()).expect("text");
        let found: String = files.map(read).collect();
        std::fs::remove_dir_all(rows).expect("it goes");
        handed.map(|handed| (handed, found))
    });
    let [Some(((want, said), rows)), Some(((got, ledger), in_kernel))] = all else { return };
    let named = format!("{said}{rows}{ledger}{in_kernel}");
    assert!(
        ledger.contains("runs 4 stages of pipeline 1, hands packets out, and counts"),
        "{named}"
    );
    assert!(rows.lines().count() == 5 && in_kernel == rows, "{named}");
    assert_eq!(got[1..3].iter().map(Vec::len).collect::<Vec<_>>(), [300, 240], "{named}");
    assert!(got == want, "{named}");
    assert_eq!((count(&ledger, "acted"), count(&ledger, "processed")), (300, 0), "{named}");
}

/// A frame goes to all interfaces but the one that it came by, which refuses it.
#[test]
fn a_hub_is_wholly_in_the_kernel() {
    let test = "wires::copies::a_hub_is_wholly_in_the_kernel";
    let (some, more) = (frames(200), frames(300));
    let hub = "packets | broadcast to (\"eth0\", \"eth1\", \"eth2\")";
    for (gro, mode) in MODES {
        let Some(space) = wired(test, gro) else { return };
        let folder = workplace();
        let run = ["run", "-e", hub, "-i", "eth0", "-i", "eth1", "-i", "eth2"];
        let ways = [&[&run[..], &["-Q", "in"]].concat(), &[&run[..], &IN_KERNEL].concat()];
        let all = ways.map(|args| {
            handed_out(test, &space, folder.path(), args, &[("h0", &some), ("h1", &more)])
        });
        let [Some((want, said)), Some((got, ledger))] = all else { return };
        let named = format!("{mode}: {said}{ledger}");
        assert_eq!(want[..3].iter().map(Vec::len).collect::<Vec<_>>(), [300, 200, 500], "{named}");
        assert!(got == want, "{named}");
        assert_eq!(ends(&ledger), ends(&said), "{named}");
        let refused = "refused 200 by eth0: 200 that came by it".to_owned();
        assert!(ends(&ledger).contains(&refused), "{named}");
        assert_eq!((count(&ledger, "acted"), count(&ledger, "processed")), (500, 0), "{named}");
    }
}

/// Where one output is down, and one takes no long packets, the others get theirs, and what is
/// refused is counted by reason. Once the output is back, the kernel copies what all outputs take.
#[test]
fn an_output_that_takes_nothing_keeps_no_copy_from_others() {
    let test = "wires::copies::an_output_that_takes_nothing_keeps_no_copy_from_others";
    let sent = frames(200);
    let short = sent.iter().filter(|frame| frame.len() <= 600 + 14).count();
    assert!(short > 50 && short < 150, "{short}");
    for (gro, mode) in MODES {
        let Some(space) = wired(test, gro) else { return };
        space.ip("link set eth3 mtu 600");
        let run = ["run", "-e", COPYING[0], "-i", "eth0"];
        let ways = [&[&run[..], &["-Q", "in"]].concat(), &[&run[..], &IN_KERNEL].concat()];
        for away in [true, false] {
            space.ip(if away { "link set eth2 down" } else { "link set eth2 up" });
            let folder = workplace();
            let all =
                ways.map(|args| handed_out(test, &space, folder.path(), args, &[("h0", &sent)]));
            let [Some((want, said)), Some((got, ledger))] = all else { return };
            let named = format!("{mode}, away: {away}: {said}{ledger}");
            let there = if away { 0 } else { sent.len() };
            let lens = [sent.len(), there, short];
            assert_eq!(want[1..].iter().map(Vec::len).collect::<Vec<_>>(), lens, "{named}");
            assert_eq!(ends(&ledger), ends(&said), "{named}");
            assert_eq!(count(&ledger, "acted"), if away { 0 } else { short as u64 }, "{named}");
            // Packets that go up may leave after later packets that do not.
            let sorted = |mut all: Vec<Vec<Vec<u8>>>| {
                all.iter_mut().for_each(|frames| frames.sort());
                all
            };
            assert!(sorted(got) == sorted(want), "{named}");
        }
    }
}

/// Copies by the kernel while an output flaps: those that an output may have lost, since it or one
/// that got the same packets was down, are called doubtful.
#[test]
fn copies_that_a_flapping_output_may_have_cost_others_are_counted() {
    let test = "wires::copies::copies_that_a_flapping_output_may_have_cost_others_are_counted";
    for (gro, mode) in MODES {
        let Some(space) = wired(test, gro) else { return };
        let folder = workplace();
        let program = "packets | broadcast to (\"eth1\", \"eth2\")";
        let run = ["run", "-e", program, "-i", "eth0"];
        let run = start(&space, &[&run[..], &IN_KERNEL, &["--stats", "1"]].concat());
        run.wait_for_report(&format!(", {mode}"), 1);
        let before = ["h1", "h2"].map(|name| received(&space, name));
        let sent = frames(2000);
        let mut all = 0;
        std::thread::scope(|scope| {
            let sender = scope.spawn(|| {
                for _ in 0..15 {
                    send(&space, folder.path(), "h0", &sent);
                    all += sent.len();
                }
            });
            while !sender.is_finished() {
                for to in ["down", "up"] {
                    pause();
                    space.ip(&format!("link set eth1 {to}"));
                }
            }
        });
        finished(&run, all);
        let ledger = run.interrupt();
        for (name, other, before) in [("eth1", "h1", before[0]), ("eth2", "h2", before[1])] {
            let of = |word: &str, to: &str| {
                let found = |line: &&str| line.starts_with(word) && line.contains(to);
                ledger.lines().rfind(found).map_or(0, |line| count(line, word))
            };
            let handed = of("sent", &format!(" to {name}, "));
            let doubtful = of("doubtful", &format!(" to {name}, "));
            let refused = of("refused", &format!(" by {name}: "));
            let arrived = all_received(&space, other) - before;
            let named = format!("{mode}, {name}: {arrived} arrived: {ledger}");
            assert_eq!(handed + refused, all as u64, "{named}");
            assert!(arrived <= handed && handed <= arrived + doubtful, "{named}");
            // A driver leaves out the output that is down alone.
            let may_doubt = name == "eth1" || mode == "generic";
            assert!(doubtful < handed && (may_doubt || doubtful == 0), "{named}");
        }
        assert!(count(&ledger, "acted") > 1000, "{ledger}");
    }
}
