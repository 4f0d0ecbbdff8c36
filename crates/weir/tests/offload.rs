//! Runs of which the kernel does a part: the rows are those of a run over a file, whatever goes
//! over the wire, and every packet is accounted for.

#![cfg(target_os = "linux")]

mod common;
#[path = "common/over_wires.rs"]
mod over_wires;
#[path = "../../capture/tests/wires/mod.rs"]
mod wires;

use common::{files, root};
use over_wires::{Run, capture_of, sendable, text, until, weir};
use weir_capture::ebpf::Program;
use weir_packet::craft::Frame;
use wires::{Sender, ip, namespace, veth};

/// Frames of a capture that are sent.
const FRAMES_MAX: usize = 3000;

/// Queries without time whose beginnings the kernel can run: what they answer over a wire is what
/// they answer over a file.
const QUERIES: [&str; 6] = [
    "packets | where udp and dport < 1024 | summarize n = count(), bytes = sum(len) by ip.src, \
     ip.dst, sport, dport",
    "packets | where tcp.syn and not tcp.ack | summarize n = count() by ip.dst, tcp.dport",
    "packets | where vlan.id > 0 or ip.proto == 1 or arp | summarize n = count(), b = sum(len) by \
     eth.src, vlan.id, ip.proto",
    "packets | where ip.src in {10.0.0.0/8, 192.168.0.0/16, fe80::/10} \
     | summarize n = count(), flags = bit_or(tcp.flags) by ip.src",
    "packets | where len > 100 and (tcp or udp.dport == 53) | summarize n = count() by ip.ttl, tcp",
    "packets | where tcp | summarize n = count() by tcp.flags
     packets | where udp | where dport == 53 or sport == 53 | summarize n = count() by dns.qname",
];

/// The counts of a ledger.
#[derive(PartialEq, Eq, Debug)]
struct Counts {
    received: u64,
    filtered: u64,
    counted: u64,
    up: u64,
    processed: u64,
    /// Of those that went up, those for whose groups the kernel had no room.
    full: u64,
}

impl Counts {
    fn of(said: &str) -> Counts {
        let line = |name: &str, has: &str| {
            let line = said.lines().find(|line| line.starts_with(name) && line.contains(has));
            line.unwrap_or_default()
        };
        let first = |line: &str| {
            line.split_whitespace().nth(1).and_then(|n| n.trim_matches(':').parse().ok())
        };
        let filtered = line("filtered ", "in the kernel");
        let up = filtered.split("it handed ").nth(1).and_then(|rest| rest.split(' ').next());
        let full = filtered.split(", ").find(|part| part.contains("it had no room for"));
        Counts {
            full: full.and_then(|part| part.split(' ').next()?.parse().ok()).unwrap_or_default(),
            received: first(line("received ", "")).unwrap_or_default(),
            filtered: first(filtered).unwrap_or_default(),
            counted: first(line("counted ", "in the kernel")).unwrap_or_default(),
            up: up.and_then(|n| n.parse().ok()).unwrap_or_default(),
            processed: first(line("processed ", "")).unwrap_or_default(),
        }
    }

    /// Every one of these packets was received and finished by one level.
    fn account_for(&self, packets: usize) -> bool {
        let packets = packets as u64;
        self.received == packets
            && self.filtered + self.counted + self.up == packets
            && self.processed == self.up
    }
}

fn udp(host: u8, port: u16) -> Vec<u8> {
    Frame::ethernet().ipv4([10, 0, 0, host], [192, 0, 2, 1]).udp(9, port).payload(&[1; 40]).bytes()
}

/// Sends frames to runs with and without a part in the kernel, and compares their rows with those
/// of a run over a file. Returns what the kernel did.
fn replay(name: &str, frames: &[Vec<u8>], query: &str, more: &[&str]) -> Counts {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("sent.pcap");
    std::fs::write(&path, capture_of(frames)).expect("writes");
    let (path, rows) = (path.to_str().expect("a plain path"), folder.path().join("rows"));
    let rows = rows.to_str().expect("a plain path");
    let common = ["run", "-e", query, "-o", "csv", "--out-dir", rows];
    let want = weir(&[&common[..], &["-r", path]].concat());
    assert_eq!(want.status.code(), Some(0), "{}", text(&want.stderr));
    let want = outputs(rows);

    let live = ["-i", "v1", "--offload", "require"];
    let run = Run::start(&[&common[..], &live, more].concat());
    let hook = match more {
        ["--capture", "tcx", ..] => "tcx",
        ["--capture", "xdp", ..] => "XDP",
        _ => "socket filter",
    };
    assert!(run.has_said(&format!("v1: the kernel ({hook}) runs ")), "{:?}", run.said);
    let sender = Sender::new("v0");
    frames.iter().for_each(|f| sender.send(f));
    let (_, said) = run.interrupt();
    assert_eq!(outputs(rows), want, "{name}, {query}: {said}");
    let counts = Counts::of(&said);
    assert!(counts.account_for(frames.len()), "{name}, {query}, {}: {said}", frames.len());
    counts
}

/// The files of a folder by name, which go.
fn outputs(folder: &str) -> Vec<(String, String)> {
    let found = std::fs::read_dir(folder).expect("a folder").map(|file| file.expect("a file"));
    let mut all: Vec<(String, String)> = found
        .map(|file| {
            let rows = std::fs::read_to_string(file.path()).expect("text");
            (file.file_name().to_string_lossy().into_owned(), rows)
        })
        .collect();
    std::fs::remove_dir_all(folder).expect("it goes");
    all.sort();
    all
}

#[test]
fn rows_are_those_without_a_kernel_level() {
    if !namespace("rows_are_those_without_a_kernel_level") {
        return;
    }
    veth("v0", "v1");
    ip("link set v0 mtu 65535");
    ip("link set v1 mtu 65535");
    let (mut replayed, mut finished) = (0, 0);
    for (i, capture) in files("fixtures", &[".pcap", ".pcapng"]).iter().enumerate() {
        let frames = sendable(capture, FRAMES_MAX);
        if frames.is_empty() {
            continue;
        }
        let name = capture.display().to_string();
        let counts = replay(&name, &frames, QUERIES[i % QUERIES.len()], &["-Q", "in"]);
        replayed += 1;
        finished += counts.filtered + counts.counted;
    }
    assert!(replayed > 10 && finished > 100, "{replayed} captures, {finished} packets finished");
    let mixed = sendable(&root().join("fixtures/mixed.pcap"), FRAMES_MAX);
    for query in QUERIES {
        let all = [["-j", "2"], ["--rings", "4"], ["--headers", "inner"]];
        let all = all.iter().map(|more| &more[..]);
        for more in all.chain([&["--immediate-mode"][..], &["--fragments"]]) {
            replay("mixed.pcap", &mixed, query, &[&["-Q", "in"], more].concat());
        }
    }
}

/// The hooks before packet sockets give the same rows.
#[test]
fn rows_are_the_same_at_every_hook() {
    if !namespace("rows_are_the_same_at_every_hook") {
        return;
    }
    veth("v0", "v1");
    let mut mixed = sendable(&root().join("fixtures/mixed.pcap"), FRAMES_MAX);
    mixed.retain(|frame| frame.len() <= 1514);
    let mut finished = 0;
    for query in QUERIES {
        for more in [&["-Q", "in"][..], &["-Q", "in", "-j", "2"]] {
            let more = [&["--capture", "tcx"], more].concat();
            finished += replay("mixed.pcap", &mixed, query, &more).filtered;
        }
        for more in [&[][..], &["-j", "2"]] {
            let more = [&["--capture", "xdp"], more].concat();
            finished += replay("mixed.pcap", &mixed, query, &more).filtered;
        }
    }
    assert!(finished > 1000, "{finished} packets finished");
}

/// Queries whose groups the kernel makes, so that no packet but those that it can't read goes up.
const COUNTING: [&str; 6] = [
    "packets | summarize n = count(), bytes = sum(len)",
    "packets | summarize n = count(), lo = min(len), hi = max(ip.ttl), mean = avg(ip.len), \
     a = any(tcp.syn), b = all(tcp.ack), f = bit_or(tcp.flags), u = count() where udp, \
     w = sum(tcp.window) where tcp.syn by ip.src, vlan.id",
    "packets | where tcp | extend low = min_of(sport, dport) | summarize n = count() by low, ip.src \
     | where n > 1 | summarize hosts = count(), n = sum(n) by low",
    "packets | where tcp.syn and not tcp.ack | summarize n = count() by ip.dst, tcp.dport
     packets | where udp | summarize n = count(), b = sum(udp.len) by conn
     packets | summarize n = count() by eth.type",
    "packets | where arp | project arp.op, arp.sender_ip
     packets | where ip | summarize n = count() by hosts, ip.proto",
    "packets | where ip | summarize n = count(), began = first(len), who = first(ip.src), \
     port = last(dport), ended = last(ip.dst), flags = last(tcp.flags) where tcp.syn by conn",
];

/// Groups that the kernel makes are those that the workers make, at each hook.
#[test]
fn groups_are_those_that_workers_make() {
    if !namespace("groups_are_those_that_workers_make") {
        return;
    }
    veth("v0", "v1");
    let mut mixed = sendable(&root().join("fixtures/mixed.pcap"), FRAMES_MAX);
    mixed.retain(|frame| frame.len() <= 1514);
    for query in COUNTING {
        for hook in [&["-Q", "in"][..], &["--capture", "tcx", "-Q", "in"], &["--capture", "xdp"]] {
            for workers in [&[][..], &["-j", "2"]] {
                let counts = replay("mixed.pcap", &mixed, query, &[hook, workers].concat());
                assert!(counts.counted > 50, "{query}, {hook:?}: {counts:?}");
            }
        }
    }
}

/// More groups than a table of the kernel has room for: the others are made by the workers.
#[test]
fn a_full_table_loses_no_packet() {
    if !namespace("a_full_table_loses_no_packet") {
        return;
    }
    veth("v0", "v1");
    let frame = |host: u8, port| {
        Frame::ethernet().ipv4([10, 0, 0, host], [192, 0, 2, 1]).udp(port, 53).bytes()
    };
    let frames: Vec<Vec<u8>> =
        (0..3).flat_map(|host| (0..=u16::MAX).map(move |port| frame(host, port))).collect();
    let query = "packets | summarize n = count(), b = sum(len) by ip.src, udp.sport";
    let counts = replay("many groups", &frames, query, &["-Q", "in", "-B", "131072"]);
    assert!(counts.full > 1000 && counts.counted > 10_000, "{counts:?}");
}

/// While windows end and at the end of the run, no packet is left out or counted twice.
#[test]
fn windows_of_the_kernel_hold_each_packet_once() {
    if !namespace("windows_of_the_kernel_hold_each_packet_once") {
        return;
    }
    veth("v0", "v1");
    let query = "packets | where udp | summarize n = count() by udp.dport every 20ms
                 packets | where udp | summarize n = count() over 50ms every 10ms
                 packets | where udp | summarize n = count(), first = min(ts), last = max(ts)";
    for hook in [&["-Q", "in"][..], &["--capture", "tcx", "-Q", "in"], &["--capture", "xdp"]] {
        for workers in ["1", "2"] {
            let folder = tempfile::tempdir().expect("a folder");
            let rows = folder.path().join("rows");
            let rows = rows.to_str().expect("a plain path");
            let common = ["run", "-e", query, "-o", "csv", "--out-dir", rows, "-j", workers];
            let live = ["-i", "v1", "--offload", "require"];
            let run = Run::start(&[&common[..], &live, hook].concat());
            let sender = Sender::new("v0");
            for _ in 0..20 {
                (0..1000).for_each(|n| sender.send(&udp(1, 1000 + n % 7)));
                wires::pause();
            }
            let (_, said) = run.interrupt();
            let files = outputs(rows);
            let sum = |file: usize, column: usize| -> u64 {
                let cells = files[file].1.lines().skip(1).map(|row| row.split(',').nth(column));
                cells.map(|cell| cell.and_then(|n| n.parse::<u64>().ok()).expect("a count")).sum()
            };
            let named = format!("{hook:?}, {workers} workers: {said}{files:?}");
            let counts = Counts::of(&said);
            assert!(counts.account_for(20_000) && counts.counted > 19_000, "{named}");
            assert_eq!(files.len(), 3, "{named}");
            assert_eq!(sum(0, 2), 20_000, "{named}");
            // Each packet is in five windows.
            assert_eq!(sum(1, 1), 100_000, "{named}");
            assert_eq!(sum(2, 0), 20_000, "{named}");
            assert!(files[0].1.lines().count() > 7 * 5, "{named}");
        }
    }
}

/// Packets that the kernel finished count as received, beside those that the ring had no room for.
#[test]
fn completeness_is_that_of_the_ledger() {
    /// More than a ring of 4 MiB has room for.
    const FRAMES: u64 = 120_000;
    if !namespace("completeness_is_that_of_the_ledger") {
        return;
    }
    veth("v0", "v1");
    // Of two ports, one goes up, and the other is filtered or counted.
    let filters = "packets | where udp.dport == 53 | summarize n = distinct(udp.sport), \
                   c = completeness()";
    let counts = "packets | where udp.dport == 53 | summarize n = distinct(udp.sport), \
                  c = completeness()
                  packets | where udp.dport == 54 | summarize n = count(), c = completeness()";
    for (query, hook) in [(filters, &["-Q", "in"][..]), (counts, &["--capture", "tcx", "-Q", "in"])]
    {
        let folder = tempfile::tempdir().expect("a folder");
        let rows = folder.path().join("rows");
        let rows = rows.to_str().expect("a plain path");
        let live = ["run", "-e", query, "-o", "csv", "--out-dir", rows, "-i", "v1", "-B", "256"];
        let run = Run::start(&[&live[..], &["--offload", "require"], hook].concat());
        let sender = Sender::new("v0");
        // It reads nothing meanwhile.
        run.signal("-STOP");
        (0..FRAMES).for_each(|n| sender.send(&udp(1, 53 + (n % 2) as u16)));
        run.signal("-CONT");
        let (_, said) = run.interrupt();
        let lost = said.lines().find(|line| line.starts_with("lost "));
        let lost = lost.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
        let (lost, counts) = (lost.unwrap_or_default(), Counts::of(&said));
        assert_eq!(counts.received + lost, FRAMES, "{said}");
        assert_eq!(counts.filtered + counts.counted, FRAMES / 2, "{said}");
        assert!(lost > 1000, "{said}");
        let wanted = counts.received as f64 / FRAMES as f64;
        for (name, rows) in outputs(rows) {
            let share = rows.lines().nth(1).and_then(|row| row.split(',').nth(1)?.parse().ok());
            let share: f64 = share.unwrap_or_else(|| panic!("{name}: {rows}"));
            assert!((share - wanted).abs() < 1e-3, "{name}: {share}, {wanted}: {said}");
        }
    }
}

/// A run that is ended while packets come: the rows hold what the ledger says.
#[test]
fn a_run_may_end_in_the_middle_of_traffic() {
    if !namespace("a_run_may_end_in_the_middle_of_traffic") {
        return;
    }
    veth("v0", "v1");
    let query = "packets | where udp | summarize n = count()";
    for hook in [&["-Q", "in"][..], &["--capture", "tcx", "-Q", "in"], &["--capture", "xdp"]] {
        let live = ["-i", "v1", "--offload", "require", "-o", "csv"];
        let run = Run::start(&[&["run", "-e", query], &live[..], hook].concat());
        let sender = Sender::new("v0");
        let (stop, ended) = std::sync::mpsc::channel::<()>();
        let (rows, said) = std::thread::scope(|scope| {
            scope.spawn(move || {
                let over = std::sync::mpsc::TryRecvError::Disconnected;
                (0..3_000_000)
                    .take_while(|_| ended.try_recv() != Err(over))
                    .for_each(|_| sender.send(&udp(1, 53)));
            });
            wires::pause();
            let all = run.interrupt();
            drop(stop);
            all
        });
        let n: u64 = rows.lines().nth(1).and_then(|n| n.parse().ok()).expect("a row");
        let counts = Counts::of(&said);
        assert_eq!(n, counts.counted + counts.processed, "{hook:?}: {rows}{said}");
        assert!(counts.counted > 100, "{hook:?}: {said}");
    }
}

/// Of packets that are known each count is what it must be, in both directions, with tags and
/// tunnels, and on two interfaces.
#[test]
fn every_packet_is_in_one_count() {
    if !namespace("every_packet_is_in_one_count") {
        return;
    }
    veth("v0", "v1");
    veth("w0", "w1");
    let query = "packets | where udp.dport == 53 | project ip.src, udp.dport, vlan.id, interface";
    let check = |options: &[&str], rows: &[&str], ledger: &str| {
        let run = Run::start(&[&["run", "-e", query, "-o", "csv"], options].concat());
        let (there, here, other) = (Sender::new("v0"), Sender::new("v1"), Sender::new("w0"));
        (1..6).for_each(|host| there.send(&udp(host, 53)));
        (0..70).for_each(|host| there.send(&udp(host, 54)));
        here.send(&udp(9, 53));
        here.send(&udp(9, 99));
        let tagged = |port| Frame::ethernet().vlan(7).ipv4([9; 4], [8; 4]).udp(1, port).bytes();
        there.send(&tagged(53));
        there.send(&tagged(99));
        // A tunnel, whose outer headers say enough, and a header that ends too soon.
        let mut tunnel = udp(9, 53);
        tunnel[23] = 47;
        there.send(&tunnel);
        there.send(&udp(9, 53)[..30]);
        other.send(&udp(77, 53));
        other.send(&udp(77, 80));
        let (found, said) = run.interrupt();
        let mut found: Vec<&str> = found.lines().skip(1).collect();
        found.sort_unstable();
        assert_eq!(found, rows, "{options:?}: {said}");
        assert!(said.contains(ledger), "{options:?}: {said}");
    };
    let mine = ["10.0.0.1,53,,v1", "10.0.0.2,53,,v1", "10.0.0.3,53,,v1", "10.0.0.4,53,,v1"];
    let rest = ["10.0.0.5,53,,v1", "9.9.9.9,53,7,v1"];
    let sent = "10.0.0.9,53,,v1";
    let received = [&mine[..], &rest].concat();
    check(
        &["-i", "v1", "-Q", "in", "--offload", "require"],
        &received,
        "received   79 packets\nfiltered   72 by the query, in the kernel; it handed 7 up: 6 \
         wanted, 1 it could not read\nprocessed   7",
    );
    check(
        &["-i", "v1", "-Q", "out", "--offload", "require"],
        &[sent],
        "received   2 packets\nfiltered   1 by the query, in the kernel; it handed 1 up\n",
    );
    let both = [&mine[..], &rest[..1], &[sent], &rest[1..]].concat();
    check(
        &["-i", "v1", "--offload", "require", "--rings", "3", "-j", "2"],
        &both,
        "received   81 packets\nfiltered   73 by the query, in the kernel; it handed 8 up: 7 wanted",
    );
    let two = [&mine[..], &rest[..1], &["10.0.0.77,53,,w1"], &rest[1..]].concat();
    check(
        &["-i", "v1", "-i", "w1", "-Q", "in", "--offload", "require"],
        &two,
        "received   81 packets\nfiltered   73 by the query, in the kernel; it handed 8 up: 7 wanted",
    );
    check(&["-i", "v1", "-Q", "in"], &received, "received   79 packets\nprocessed  79");
}

/// Without being required, groups are made in the kernel only where that saves something: not by a
/// socket filter.
#[test]
fn auto_leaves_groups_of_socket_filters_to_workers() {
    if !namespace("auto_leaves_groups_of_socket_filters_to_workers") {
        return;
    }
    veth("v0", "v1");
    let filtered = "packets | where udp.dport == 53 | summarize n = count() by udp.dport";
    let all = "packets | summarize n = count() by udp.dport";
    let socket = ["-Q", "in"];
    for (query, hook, said, counted) in [
        (filtered, &socket[..], "(socket filter) runs 1 stage of pipeline 1", false),
        (all, &socket, "cost more than packets that workers count", false),
        (all, &["--capture", "tcx", "-Q", "in"], "(tcx) runs 1 stage of pipeline 1, and", true),
        (all, &["--capture", "xdp"], "(XDP) runs 1 stage of pipeline 1, and counts", true),
    ] {
        let live = ["run", "-e", query, "-i", "v1", "-o", "csv", "--offload", "auto"];
        let run = Run::start(&[&live[..], hook].concat());
        assert!(run.has_said(said), "{query}, {hook:?}: {:?}", run.said);
        let sender = Sender::new("v0");
        (0..50).for_each(|_| sender.send(&udp(1, 53)));
        let (rows, ledger) = run.interrupt();
        assert_eq!(rows, "udp.dport,n\n53,50\n", "{query}, {hook:?}: {ledger}");
        assert_eq!(Counts::of(&ledger).counted > 0, counted, "{query}, {hook:?}: {ledger}");
    }
}

/// The numbers of the programs that a process holds, by itself or by links.
fn programs_of(process: u32) -> Vec<u32> {
    let folder = format!("/proc/{process}/fdinfo");
    let all = std::fs::read_dir(folder).expect("it runs").flatten();
    let texts = all.map(|file| std::fs::read_to_string(file.path()).unwrap_or_default());
    let number = |text: String| -> Option<u32> {
        text.lines().find_map(|line| line.strip_prefix("prog_id:")?.trim().parse().ok())
    };
    let mut numbers: Vec<u32> = texts.filter_map(number).collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

/// Whatever a run is killed by, nothing of it stays in the kernel: another takes its place.
#[test]
fn a_run_that_is_killed_leaves_nothing_attached() {
    if !namespace("a_run_that_is_killed_leaves_nothing_attached") {
        return;
    }
    veth("v0", "v1");
    let query = "packets | where udp | summarize n = count() by udp.dport";
    for hook in [&["-Q", "in"][..], &["--capture", "tcx", "-Q", "in"], &["--capture", "xdp"]] {
        let live = ["run", "-e", query, "-i", "v1", "-o", "csv", "--offload", "require"];
        let mut run = Run::start(&[&live[..], hook].concat());
        let sender = Sender::new("v0");
        (0..100).for_each(|_| sender.send(&udp(1, 53)));
        let programs = programs_of(run.child.id());
        assert!(!programs.is_empty(), "{hook:?}");
        let exist = || programs.iter().filter(|id| Program::info(**id).is_ok()).count();
        assert_eq!(exist(), programs.len(), "{hook:?}");
        run.child.kill().expect("it runs");
        run.child.wait().expect("it ends");
        // The kernel frees programs a moment after their last user is gone.
        until("the programs are gone", || exist() == 0);
        let link = std::process::Command::new("ip").args(["-d", "link", "show", "v1"]).output();
        let link = link.expect("ip runs");
        assert!(!text(&link.stdout).contains("xdp"), "{}", text(&link.stdout));
        let next = Run::start(&[&live[..], hook].concat());
        (0..100).for_each(|_| sender.send(&udp(1, 54)));
        let (rows, said) = next.interrupt();
        assert_eq!(rows.lines().last(), Some("54,100"), "{hook:?}: {said}");
    }
}

/// Packets that a machine sends to itself come once.
#[test]
fn a_loopback_interface_counts_packets_once() {
    if !namespace("a_loopback_interface_counts_packets_once") {
        return;
    }
    ip("link set lo up");
    let query = "packets | where udp.dport == 9 | project udp.dport";
    let run = Run::start(&["run", "-e", query, "-i", "lo", "-o", "csv", "--offload", "require"]);
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").expect("a socket");
    for port in [9, 10, 9, 11] {
        // No program listens there, which the socket may hear of.
        let _ = socket.send_to(b"x", ("127.0.0.1", port));
    }
    let (rows, said) = run.interrupt();
    assert_eq!(rows.lines().count(), 3, "{rows}{said}");
    // The errors of UDP, and messages that nobody listens there.
    let counts = Counts::of(&said);
    assert!(counts.account_for(counts.received as usize) && counts.up == 2, "{said}");
    assert!((4..=8).contains(&counts.received), "{said}");
}

#[test]
fn an_interface_may_go_and_come() {
    if !namespace("an_interface_may_go_and_come") {
        return;
    }
    veth("v0", "v1");
    let query = "packets | where udp.dport == 53 | project ip.src";
    let live = ["-i", "v1", "-Q", "in", "--offload", "require"];
    let run = Run::start(&[&["run", "-e", query, "-o", "csv"][..], &live].concat());
    let sender = Sender::new("v0");
    (0..10).for_each(|i| sender.send(&udp(i, 53 + u16::from(i % 2))));
    ip("link set v1 down");
    wires::pause();
    ip("link set v1 up");
    wires::pause();
    let sender = Sender::new("v0");
    (10..20).for_each(|i| sender.send(&udp(i, 53 + u16::from(i % 2))));
    let (rows, said) = run.interrupt();
    assert_eq!(rows.lines().count(), 11, "{rows}{said}");
    let counts = Counts::of(&said);
    assert_eq!((counts.received, counts.filtered, counts.up), (20, 10, 10), "{said}");
}

/// A run with a part in the kernel whose programs come and go.
struct Changing {
    folder: tempfile::TempDir,
    run: Run,
    sender: Sender,
    sent: u8,
}

impl Changing {
    fn start(query: &str, more: &[&str]) -> Changing {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name).display().to_string();
        let (control, rows) = (format!("--control={}", path("socket")), path("rows"));
        let live = ["run", "-e", query, "-i", "v1", "--offload", "require", "-o", "json"];
        let given = [&live[..], &[&control, "--out-dir", &rows], more].concat();
        let run = Run::start(&given);
        Changing { folder, run, sender: Sender::new("v0"), sent: 0 }
    }

    fn ask(&self, args: &[&str]) -> String {
        let socket = self.folder.path().join("socket").display().to_string();
        let output = weir(&[&["ctl", "-S", &socket], args].concat());
        assert_eq!(output.status.code(), Some(0), "{args:?}: {}", text(&output.stderr));
        text(&output.stdout).to_owned()
    }

    /// Whether the run reports that the kernel hands all packets up, as JSON and as text.
    fn hands_up(&self) -> bool {
        let counts: serde_json::Value =
            serde_json::from_str(&self.ask(&["stats", "-o", "json"])).expect("JSON");
        let hands_up = counts["kernel_hands_up"].as_bool().expect("the kernel has a part");
        let said = self.ask(&["stats", "-o", "table"]);
        let line = match hands_up {
            true => "\nkernel     hands all packets up: programs have changed\n",
            false => "\nkernel     runs its part of the programs\n",
        };
        assert!(said.contains(line), "{hands_up}: {said}");
        hands_up
    }

    /// The name of the first program that runs.
    fn first(&self) -> String {
        let list: serde_json::Value =
            serde_json::from_str(self.ask(&["list", "-o", "json"]).lines().next().expect("one"))
                .expect("JSON");
        list["name"].as_str().expect("a name").to_owned()
    }

    /// Ten packets, half of them to port 53, and waits until each has been finished.
    fn send(&mut self) {
        for _ in 0..10 {
            self.sent += 1;
            self.sender.send(&udp(self.sent % 3, 53 + u16::from(self.sent % 2)));
        }
        for _ in 0..600 {
            let counts: serde_json::Value =
                serde_json::from_str(&self.ask(&["stats", "-o", "json"])).expect("JSON");
            let n = |name: &str| counts[name].as_u64().unwrap_or_default();
            let finished = n("kernel_filtered") + n("kernel_counted") + n("processed");
            if finished >= u64::from(self.sent) {
                return;
            }
            wires::pause();
        }
        panic!("{} packets were not finished: {:?}", self.sent, self.run.said);
    }

    /// The rows of each program, what the run has said, and its counts.
    fn end(self) -> (Vec<(String, String)>, String, Counts) {
        let (_, said) = self.run.interrupt();
        let rows = outputs(self.folder.path().join("rows").to_str().expect("a plain path"));
        let counts = Counts::of(&said);
        assert!(counts.account_for(self.sent.into()), "{said}");
        (rows, said, counts)
    }
}

/// How many packets the rows of a file tell of.
fn told_of(rows: &[(String, String)], file: &str) -> u64 {
    let found = rows.iter().find(|(name, _)| name == file);
    let found = found.unwrap_or_else(|| panic!("no {file}: {rows:?}"));
    let n = |line: &str| {
        let row: serde_json::Value = serde_json::from_str(line).expect("JSON");
        row["n"].as_u64().expect("a count")
    };
    found.1.lines().map(n).sum()
}

const HANDS_UP: &str = "programs have changed: the kernel hands all packets up";
const AGAIN: &str = "programs are as at the beginning: the kernel runs its part again";

/// While another program runs, all packets go up; the groups of before and after are not lost.
#[test]
fn programs_come_and_go_over_a_part_in_the_kernel() {
    if !namespace("programs_come_and_go_over_a_part_in_the_kernel") {
        return;
    }
    veth("v0", "v1");
    let counts = "packets | where udp.dport == 53 | summarize n = count() by ip.src";
    let added = "packets | where udp | summarize n = count() by udp.dport";
    let windows = "packets | where udp.dport == 53 | summarize n = count() by ip.src every 1s";
    for hook in [&["-Q", "in"][..], &["--capture", "tcx", "-Q", "in"], &["--capture", "xdp"]] {
        for (query, workers) in [(counts, "1"), (counts, "2"), (windows, "2")] {
            let mut run = Changing::start(query, &[hook, &["-j", workers]].concat());
            let first = run.first();
            run.send();
            assert!(!run.hands_up());
            run.ask(&["add", "--name", "added", "-e", added]);
            assert!(run.hands_up());
            run.send();
            // Nothing of the first changes by what comes with it.
            run.ask(&["replace", "added", "-e", added]);
            run.send();
            run.ask(&["remove", "added"]);
            assert!(!run.hands_up());
            run.send();
            let (rows, said, counts) = run.end();
            let named = format!("{hook:?}, {query}, {workers} workers: {said}{rows:?}");
            assert_eq!(told_of(&rows, &format!("{first}.jsonl")), 20, "{named}");
            assert_eq!(told_of(&rows, "added.jsonl"), 20, "{named}");
            assert_eq!((counts.counted, counts.filtered, counts.up), (10, 10, 20), "{named}");
            assert!(said.contains(HANDS_UP) && said.contains(AGAIN), "{named}");
        }
    }
}

/// Groups that the kernel counted for a program come out when it ends, and its successor starts
/// anew.
#[test]
fn a_program_that_ends_takes_its_groups_out_of_the_kernel() {
    if !namespace("a_program_that_ends_takes_its_groups_out_of_the_kernel") {
        return;
    }
    veth("v0", "v1");
    let counts = |port: u16| {
        format!("packets | where udp.dport == {port} | summarize n = count() by ip.src")
    };
    for hook in [&["-Q", "in"][..], &["--capture", "tcx", "-Q", "in"], &["--capture", "xdp"]] {
        let mut run = Changing::start(&counts(53), hook);
        let first = run.first();
        run.send();
        run.send();
        run.ask(&["replace", &first, "-e", &counts(54)]);
        run.send();
        // The same query as at the beginning is another instance: its groups are the workers'.
        run.ask(&["replace", &first, "-e", &counts(53)]);
        run.send();
        assert!(run.hands_up());
        run.ask(&["remove", &first]);
        run.send();
        let (rows, said, counted) = run.end();
        let named = format!("{hook:?}: {said}{rows:?}");
        let all: u64 = rows.iter().map(|(name, _)| told_of(&rows, name)).sum();
        assert_eq!(all, 10 + 5 + 5, "{named}");
        assert_eq!((counted.counted, counted.filtered, counted.up), (10, 10, 30), "{named}");
        assert!(said.contains(HANDS_UP) && !said.contains(AGAIN), "{named}");
    }
}

/// Where the kernel has no part, `require` fails with the reason, and `auto` gives it.
#[test]
fn what_has_no_part_in_the_kernel_says_why() {
    if !namespace("what_has_no_part_in_the_kernel_says_why") {
        return;
    }
    veth("v0", "v1");
    let udp_only = "packets | where udp | project ip.src";
    let folder = tempfile::tempdir().expect("a folder");
    let socket = folder.path().join("socket");
    let control = format!("--control={}", socket.display());
    let cases: [(&[&str], &str); 9] = [
        (&["-e", "packets | project ip.src", "-i", "v1"], "pipeline 1 wants every frame"),
        (&["-e", "packets | where udp | project number", "-i", "v1"], "`number`"),
        (&["-e", "packets | where dns.qname == \"x\" | project len", "-i", "v1"], "wants every"),
        (&["-e", udp_only, "-i", "any"], "Ethernet only"),
        (&["-e", udp_only, "-i", "v1", "-s", "60"], "a snap length of 60 bytes"),
        (&["-e", udp_only, "-i", "v1", "-c", "5"], "-c counts packets"),
        (&["-i", "v1", &control], "no program runs yet"),
        (&["-e", udp_only, "-i", "v1", "--capture", "pcap"], "libpcap"),
        (&["-e", udp_only, "-i", "v1", "udp", "port", "53"], "there is a capture filter"),
    ];
    for (args, why) in cases {
        let (options, filter) =
            args.split_at(args.iter().position(|a| *a == "udp").unwrap_or(args.len()));
        let with = |mode| [&["run"], options, &["--offload", mode, "-o", "json"], filter].concat();
        let refused = weir(&with("require"));
        let said = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(1), "{args:?}: {said}");
        assert!(said.contains(why) && said.contains("--offload require"), "{args:?}: {said}");
        if options.contains(&"pcap") {
            continue;
        }
        let run = Run::start(&with("auto"));
        assert!(run.has_said("the kernel runs no part of the query: "), "{args:?}: {:?}", run.said);
        assert!(run.has_said(why), "{args:?}: {:?}", run.said);
        let (_, said) = run.interrupt();
        assert!(!said.contains("in the kernel; it handed"), "{said}");
        let quiet = Run::start(&with("off"));
        assert!(!quiet.has_said("the kernel"), "{:?}", quiet.said);
        quiet.interrupt();
    }
    let fixture = root().join("fixtures/mixed.pcap");
    let fixture = fixture.to_str().expect("a plain path");
    let files = |mode| weir(&["run", "-e", udp_only, "-r", fixture, "--offload", mode]);
    assert_eq!(files("require").status.code(), Some(2));
    assert!(text(&files("require").stderr).contains("packets come from files"));
    assert_eq!(files("auto").status.code(), Some(0));
}
