//! Runs by DPDK, over its virtual devices: the rows of a device are those of a file, every packet is
//! accounted for, and what can't be had is refused in words that help.

#![cfg(target_os = "linux")]

/// The message of a program that was built without DPDK.
#[test]
#[cfg(not(feature = "dpdk"))]
fn a_program_without_dpdk_says_how_to_get_one() {
    let mut weir = std::process::Command::new(env!("CARGO_BIN_EXE_weir"));
    let args = ["run", "-e", "packets", "--capture", "dpdk", "-i", "net_null0"];
    let output = weir.args(args).output().expect("the binary runs");
    let said = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("built without DPDK"), "{said}");
    assert!(said.contains("cargo build --release --features dpdk"), "{said}");
    let capture = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/mixed.pcap");
    let mut weir = std::process::Command::new(env!("CARGO_BIN_EXE_weir"));
    let args = ["run", "-e", "packets | pass", "-w", "dpdk:net_null0", "-r", capture];
    let output = weir.args(args).output().expect("the binary runs");
    let said = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("built without DPDK"), "{said}");
}

#[cfg(feature = "dpdk")]
mod common;
#[cfg(feature = "dpdk")]
#[path = "common/signal.rs"]
mod signal;
#[cfg(feature = "dpdk")]
#[path = "../../capture/tests/wires/mod.rs"]
mod wires;

#[cfg(feature = "dpdk")]
#[path = "dpdk/sending.rs"]
mod sending;

#[cfg(feature = "dpdk")]
mod linked {
    use super::common::{files, root, skip, text as page};
    use super::signal::signal;
    use super::wires::{Sender, ip, namespace, pause, veth};
    use std::fs;
    use std::io::{BufRead as _, BufReader, Read};
    use std::path::Path;
    use std::process::{Child, Command, Output, Stdio};
    use std::sync::mpsc::{self, Receiver};
    use std::sync::{Mutex, MutexGuard, PoisonError};
    use std::time::Duration;
    use weir_packet::craft::Frame;
    use weir_packet::pcap::FileHeader;
    use weir_packet::source::{FrameBatch, LinkType};

    /// Longer than anything takes on a busy machine.
    pub(super) const LONG: Duration = Duration::from_secs(60);

    /// Answers in which times have no part: packets one by one, and flows.
    const PACKETS: &str = "packets | project number, len, eth.src, eth.dst, vlan.id, ip.src, ip.dst, \
                           ip.proto, sport, dport, tcp.seq, tcp.flags, dns.qname, icmp.type, \
                           bytes = hex(payload)";
    const FLOWS: &str = "packets | summarize n = count(), bytes = sum(len), flags = bit_or(tcp.flags) \
                         by eth.src, vlan.id, ip.src, ip.dst, ip.proto, sport, dport";

    /// Whether this user may do all that there is to do.
    pub(super) fn is_root() -> bool {
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let own = status.lines().find_map(|line| line.strip_prefix("Uid:"));
        own.and_then(|ids| ids.split_whitespace().nth(1)) == Some("0")
    }

    pub(super) fn text(bytes: &[u8]) -> &str {
        std::str::from_utf8(bytes).expect("text")
    }

    pub(super) fn weir(args: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_weir")).args(args).output().expect("the binary runs")
    }

    /// Rows and what else was said, of a run that ends well.
    pub(super) fn rows(args: &[&str]) -> (String, String) {
        let output = weir(args);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{args:?}: {said}");
        (text(&output.stdout).to_owned(), said.to_owned())
    }

    /// One test at a time: where there are huge pages, they need not do for several.
    pub(super) fn alone() -> MutexGuard<'static, ()> {
        static ALONE: Mutex<()> = Mutex::new(());
        ALONE.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The line of the ledger about received packets.
    pub(super) fn received(said: &str) -> &str {
        said.lines().find(|line| line.starts_with("received")).expect("a ledger")
    }

    /// A run that goes on until it is told to end.
    pub(super) struct Run {
        pub(super) child: Child,
        pub(super) rows: Receiver<String>,
        errors: Receiver<String>,
        said: Vec<String>,
    }

    fn lines(from: impl Read + Send + 'static) -> Receiver<String> {
        let (to, lines) = mpsc::channel();
        std::thread::spawn(move || {
            BufReader::new(from).lines().map_while(Result::ok).try_for_each(|l| to.send(l))
        });
        lines
    }

    impl Run {
        pub(super) fn start(args: &[&str]) -> Run {
            let mut child = Command::new(env!("CARGO_BIN_EXE_weir"))
                .args(args)
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .expect("the binary runs");
            let errors = lines(child.stderr.take().expect("piped"));
            let rows = lines(child.stdout.take().expect("piped"));
            let mut run = Run { child, rows, errors, said: Vec::new() };
            run.until("sandbox: ");
            run
        }

        /// Waits until a line begins so.
        pub(super) fn until(&mut self, start: &str) {
            loop {
                let line = self.errors.recv_timeout(LONG);
                let line = line.unwrap_or_else(|_| panic!("no `{start}` after {:?}", self.said));
                let found = line.starts_with(start);
                self.said.push(line);
                if found {
                    return;
                }
            }
        }

        /// Ends it as Ctrl-C does; its rows, and all that it said.
        pub(super) fn interrupt(mut self) -> (String, String) {
            signal(self.child.id(), "-INT");
            let status = self.child.wait().expect("ends");
            self.said.extend(self.errors.iter());
            let said = self.said.join("\n");
            assert_eq!(status.code(), Some(0), "{said}");
            let rows: Vec<String> = self.rows.iter().map(|row| format!("{row}\n")).collect();
            (rows.concat(), said)
        }
    }

    impl Drop for Run {
        fn drop(&mut self) {
            // Of a failed test; else it has ended.
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }

    /// The Ethernet frames of a capture, of so many bytes at most.
    pub(super) fn frames(capture: &Path, longest: usize) -> Vec<Vec<u8>> {
        let name = capture.to_str().expect("a name in UTF-8");
        let options = weir_capture::Options { any_link: true, ..Default::default() };
        let Ok(mut source) = weir_capture::open(name, &options) else { return Vec::new() };
        let (mut batch, mut frames) = (FrameBatch::new(), Vec::new());
        while source.fill(&mut batch).unwrap_or(false) {
            if batch.link != LinkType::ETHERNET {
                return Vec::new();
            }
            let fits = |i: &usize| (14..=longest).contains(&batch.frame(*i).len());
            frames.extend((0..batch.len()).filter(fits).map(|i| batch.frame(i).to_vec()));
        }
        frames
    }

    /// Writes a capture of these frames, a microsecond apart; its name.
    pub(super) fn capture(folder: &Path, frames: &[Vec<u8>]) -> String {
        let header = FileHeader::new(LinkType::ETHERNET);
        let mut bytes = header.to_bytes().to_vec();
        for (i, frame) in frames.iter().enumerate() {
            let ts = 1_700_000_000_000_000_000 + 1000 * i as i64;
            header.put_record(&mut bytes, ts, frame.len() as u32, frame);
        }
        let path = folder.join("sent.pcap");
        fs::write(&path, bytes).expect("writes");
        path.to_str().expect("a plain path").to_owned()
    }

    pub(super) fn udp(i: usize, payload: usize) -> Vec<u8> {
        let frame = Frame::ethernet().ipv4([10, 0, (i >> 8) as u8, i as u8], [192, 0, 2, 1]);
        let payload: Vec<u8> = (0..payload).map(|at| (at * 7 + i) as u8).collect();
        frame.udp(9, 1000 + i as u16).payload(&payload).bytes()
    }

    #[test]
    fn a_device_that_reads_a_file_gives_the_rows_of_the_file() {
        let _alone = alone();
        let folder = tempfile::tempdir().expect("a folder");
        let (mut replayed, mut packets) = (0, 0);
        for (i, fixture) in files("fixtures", &[".pcap", ".pcapng"]).iter().enumerate() {
            let frames = frames(fixture, 60_000);
            if frames.is_empty() {
                continue;
            }
            let path = capture(folder.path(), &frames);
            let query = [PACKETS, FLOWS][i % 2];
            let want = rows(&["run", "-e", query, "-o", "csv", "-r", &path]);
            let device = format!("net_pcap0,rx_pcap={path}");
            let (n, workers) = (frames.len().to_string(), ["1", "2"][i / 2 % 2]);
            let got = rows(&[
                "run",
                "-e",
                query,
                "-o",
                "csv",
                "--capture",
                "dpdk",
                "-i",
                &device,
                "-c",
                &n,
                "-j",
                workers,
            ]);
            let name = fixture.display();
            assert_eq!(got.0, want.0, "{name}");
            assert_eq!(received(&got.1), received(&want.1), "{name}: {}", got.1);
            (replayed, packets) = (replayed + 1, packets + frames.len());
        }
        assert!(replayed > 10 && packets > 1000, "{replayed} captures of {packets} packets");
    }

    /// Frames longer than a buffer come in several pieces, among others that don't.
    #[test]
    fn frames_in_pieces_are_whole() {
        let _alone = alone();
        let folder = tempfile::tempdir().expect("a folder");
        let sizes = [20, 1400, 2100, 4000, 9000, 30, 40_000, 2048, 2006, 2005, 1999, 60, 65_000];
        let frames: Vec<Vec<u8>> = (0..800).map(|i| udp(i, sizes[i % sizes.len()])).collect();
        let path = capture(folder.path(), &frames);
        let device = format!("net_pcap0,rx_pcap={path}");
        let written = folder.path().join("passed.pcap");
        let to = written.to_str().expect("a plain path");
        for more in [&["-j", "1"][..], &["-j", "2", "-B", "1024"]] {
            let args =
                ["run", "-e", "packets | pass", "-w", to, "--capture", "dpdk", "-i", &device];
            let (_, said) = rows(&[&args[..], &["-c", "800"], more].concat());
            assert_eq!(received(&said), "received   800 packets", "{said}");
            assert!(!said.contains("lost"), "{said}");
            let passed = super::linked::frames(&written, 100_000);
            assert_eq!(passed.len(), frames.len());
            assert!(passed == frames, "frames are what they were");
            fs::remove_file(&written).expect("written");
        }
        let cut = ["run", "-e", "packets | project number, len, sport", "-o", "csv", "-s", "38"];
        let args = [&cut[..], &["--capture", "dpdk", "-i", &device, "-c", "800"]].concat();
        let (got, said) = rows(&args);
        assert!(said.contains("800: 0 whole, 800 cut by the snap length"), "{said}");
        assert!(got.starts_with("number,len,sport\n1,62,9\n2,1442,9\n3,2142,9\n"), "{got}");
    }

    /// The longest frames that links have find buffers, however little memory there is; what a device
    /// could not read is counted.
    #[test]
    fn frames_are_received_or_counted() {
        let _alone = alone();
        let folder = tempfile::tempdir().expect("a folder");
        let frame = [&[2; 12][..], &[0x88, 0xb5], &[7; 65_521]].concat();
        let path = capture(folder.path(), &vec![frame; 300]);
        let device = format!("net_pcap0,rx_pcap={path}");
        let args = ["run", "-e", "packets | summarize n = count(), bytes = sum(len)", "-o", "csv"];
        let device = ["-j", "2", "-B", "64", "--capture", "dpdk", "-i", &device];
        let all = [&args[..], &device].concat();
        let (rows, said) = Run::start(&all).interrupt();
        assert_eq!(rows, format!("n,bytes\n300,{}\n", 300 * 65_535), "{said}");
        assert!(!said.contains("lost"), "{said}");
        // The last record breaks off.
        let bytes = fs::read(&path).expect("written");
        fs::write(&path, &bytes[..bytes.len() - 1]).expect("writes");
        let (rows, said) = Run::start(&all).interrupt();
        assert_eq!(rows, format!("n,bytes\n299,{}\n", 299 * 65_535), "{said}");
        assert_eq!(received(&said), "received   299 packets", "{said}");
        assert!(said.contains("lost       1 (1 by the interface)"), "{said}");
    }

    #[test]
    fn times_of_a_file_are_taken_if_asked_for() {
        let _alone = alone();
        let folder = tempfile::tempdir().expect("a folder");
        let all: Vec<Vec<u8>> = (0..300).map(|i| udp(i, 20)).collect();
        let path = capture(folder.path(), &all);
        let query = "packets | project ts, number, dport";
        let want = rows(&["run", "-e", query, "-o", "csv", "-r", &path]).0;
        let device = format!("net_pcap0,rx_pcap={path}");
        let args =
            ["run", "-e", query, "-o", "csv", "--capture", "dpdk", "-i", &device, "-c", "300"];
        let own = [&args[..], &["--time-stamp-type", "adapter_unsynced"]].concat();
        assert_eq!(rows(&own).0, want);
        assert_ne!(rows(&args).0, want);
        let output = weir(&[&args[..], &["--time-stamp-type", "adapter"]].concat());
        let (said, why) = (text(&output.stderr), "adapter_unsynced takes them as they are");
        assert!(output.status.code() == Some(1) && said.contains(why), "{said}");
    }

    /// More frames than there are buffers, by far, and hardly more buffers than a device has itself.
    #[test]
    fn buffers_come_back() {
        let _alone = alone();
        for more in [&["-j", "1"][..], &["-j", "2", "--rings", "3"], &["-j", "2", "-B", "64"]] {
            let args =
                ["run", "-e", "packets | summarize n = count(), bytes = sum(len)", "-o", "csv"];
            let device = ["--capture", "dpdk", "-i", "net_null0,size=100", "-c", "1000000"];
            let (got, said) = rows(&[&args[..], &device, more].concat());
            assert_eq!(got, "n,bytes\n1000000,100000000\n", "{said}");
            assert_eq!(received(&said), "received   1000000 packets", "{said}");
            let queues = if more.contains(&"3") { " on 3 queues of " } else { " on " };
            assert!(said.contains(queues), "{said}");
        }
    }

    /// The same in memory of huge pages, by either kind of addresses for devices.
    #[test]
    fn memory_may_be_of_huge_pages() {
        let _alone = alone();
        let free = "/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages";
        let free = fs::read_to_string(free).ok().and_then(|n| n.trim().parse::<u32>().ok());
        if free.is_none_or(|pages| pages < 100) {
            let why = "there are no 100 huge pages free: sysctl vm.nr_hugepages=100";
            return skip("dpdk::memory_may_be_of_huge_pages", why);
        }
        for addresses in ["--iova-mode=va", "--iova-mode=pa"] {
            let (got, said) = rows(&[
                "run",
                "-e",
                "packets | summarize n = count()",
                "-o",
                "csv",
                "--capture",
                "dpdk",
                "-i",
                "net_null0",
                "-c",
                "200000",
                "--dpdk-args",
                addresses,
            ]);
            assert_eq!(got, "n\n200000\n", "{said}");
            assert!(said.contains(", huge pages, "), "{said}");
        }
    }

    #[test]
    fn devices_are_read_in_turn_and_counted_each() {
        let _alone = alone();
        let folder = tempfile::tempdir().expect("a folder");
        let all: Vec<Vec<u8>> = (0..500).map(|i| udp(i, 20)).collect();
        let path = capture(folder.path(), &all);
        // One of two queues, whose frames are all to be read.
        let one = format!("net_pcap0,rx_pcap={path},rx_pcap={path}");
        let two = format!("net_pcap1,rx_pcap={path}");
        let args = ["run", "-e", "packets | summarize n = count() by ip.src", "-o", "csv"];
        let devices = ["--capture", "dpdk", "-i", &one, "-i", &two, "-c", "1500"];
        let (got, said) = rows(&[&args[..], &devices].concat());
        assert_eq!(got.lines().filter(|line| line.ends_with(",3")).count(), 500, "{got}");
        assert!(said.contains("net_pcap0: DPDK ") && said.contains(" on 2 queues of "), "{said}");
        assert!(said.contains("net_pcap0  1000 received\nnet_pcap1  500 received"), "{said}");
    }

    #[test]
    fn a_filter_counts_what_it_refuses() {
        let _alone = alone();
        let folder = tempfile::tempdir().expect("a folder");
        let all: Vec<Vec<u8>> = (0..100).map(|i| udp(i, 20)).collect();
        let device = format!("net_pcap0,rx_pcap={}", capture(folder.path(), &all));
        let query = "packets | project number, dport";
        let run = Run::start(&[
            "run",
            "-e",
            query,
            "-o",
            "csv",
            "-l",
            "--capture",
            "dpdk",
            "-i",
            &device,
            "udp dst port 1002 or 1099",
        ]);
        for want in ["number,dport", "3,1002", "100,1099"] {
            assert_eq!(run.rows.recv_timeout(LONG).as_deref(), Ok(want));
        }
        let (_, said) = run.interrupt();
        assert!(
            said.contains("received   100 packets\nfiltered    98 by the capture filter\n"),
            "{said}"
        );
    }

    #[test]
    fn a_wire_gives_the_rows_of_a_file() {
        let _alone = alone();
        if !namespace("dpdk::a_wire_gives_the_rows_of_a_file") {
            return;
        }
        veth("v0", "v1");
        let folder = tempfile::tempdir().expect("a folder");
        let (mut replayed, mut fragments, sender) = (0, 0, Sender::new("v0"));
        for (i, fixture) in files("fixtures", &[".pcap"]).iter().enumerate() {
            let mut frames = frames(fixture, 1514);
            frames.truncate(1000);
            // The driver has the kernel join fragments of IPv4, and cuts what comes of it.
            let fragment = |f: &Vec<u8>| f[12..14] == [8, 0] && (f[20] & 0x3f, f[21]) != (0, 0);
            let all = frames.len();
            frames.retain(|frame| frame.len() < 34 || !fragment(frame));
            fragments += all - frames.len();
            if frames.is_empty() {
                continue;
            }
            let path = capture(folder.path(), &frames);
            let want = rows(&["run", "-e", FLOWS, "-o", "csv", "-r", &path]);
            let run = Run::start(&[
                "run",
                "-e",
                FLOWS,
                "-o",
                "csv",
                "--capture",
                "dpdk",
                "-i",
                "net_af_packet0,iface=v1,blocksz=65536,framesz=2048,framecnt=4096",
                "-j",
                ["1", "2"][i % 2],
            ]);
            frames.iter().for_each(|frame| sender.send(frame));
            let (got, said) = run.interrupt();
            assert_eq!(got, want.0, "{}: {said}", fixture.display());
            assert_eq!(received(&said), received(&want.1), "{}: {said}", fixture.display());
            replayed += 1;
        }
        skip(
            "dpdk::a_wire_gives_the_rows_of_a_file",
            &format!("{replayed} captures sent; not {fragments} fragments of IPv4"),
        );
        assert!(replayed > 10, "{replayed} captures were replayed");
    }

    /// The kernel counts who wants what is meant for others, and what its owner has set stays.
    #[test]
    fn an_interface_is_as_promiscuous_as_it_was() {
        let _alone = alone();
        if !namespace("dpdk::an_interface_is_as_promiscuous_as_it_was") {
            return;
        }
        veth("v0", "v1");
        // The owner's flag, which alone is told as one, and how many want it, whoever they are.
        let flag_and_count = || {
            let shown = Command::new("ip").args(["-d", "link", "show", "v1"]).output();
            let shown = shown.expect("ip (of iproute2)").stdout;
            let shown = text(&shown).to_owned();
            let (flags, _) = shown.split_once('>').expect("flags");
            let (_, count) = shown.split_once(" promiscuity ").expect("a count");
            let count: u32 =
                count.split(' ').next().and_then(|n| n.parse().ok()).expect("a number");
            (flags.contains("PROMISC"), count)
        };
        let query = ["run", "-e", "packets | summarize n = count()", "-o", "csv"];
        let device = ["--capture", "dpdk", "-i", "net_af_packet0,iface=v1"];
        for (owner, promiscuous) in [(false, true), (true, true), (true, false), (false, false)] {
            ip(&format!("link set v1 promisc {}", if owner { "on" } else { "off" }));
            let before = (owner, u32::from(owner));
            assert_eq!(flag_and_count(), before);
            let own = if promiscuous { &[][..] } else { &["--no-promiscuous-mode"] };
            let run = Run::start(&[&query[..], &device, own].concat());
            let during = (owner, u32::from(owner) + u32::from(promiscuous));
            assert_eq!(flag_and_count(), during, "{owner} {promiscuous}");
            let (_, said) = run.interrupt();
            assert_eq!(said.contains("not promiscuous"), !promiscuous, "{said}");
            assert_eq!(flag_and_count(), before, "{owner} {promiscuous}");
        }
        // However it ends.
        let mut run = Run::start(&[&query[..], &device].concat());
        assert_eq!(flag_and_count(), (false, 1));
        run.child.kill().expect("runs");
        run.child.wait().expect("ends");
        assert_eq!(flag_and_count(), (false, 0));
    }

    /// Its driver takes as many queues to send as to receive, and no others.
    #[test]
    fn a_tap_has_as_many_queues_as_workers() {
        let _alone = alone();
        if !namespace("dpdk::a_tap_has_as_many_queues_as_workers") {
            return;
        }
        let query = "packets | where udp | project dport";
        let device = ["--capture", "dpdk", "-i", "net_tap0,iface=weirtap0", "-j", "2"];
        let run = Run::start(&[&["run", "-e", query, "-o", "csv", "-l"][..], &device].concat());
        ip("link set weirtap0 up");
        let sender = Sender::new("weirtap0");
        (0..64).for_each(|i| sender.send(&udp(i, 20)));
        assert_eq!(run.rows.recv_timeout(LONG).as_deref(), Ok("dport"));
        let mut ports: Vec<u16> = Vec::new();
        while ports.len() < 64 {
            let row = run.rows.recv_timeout(LONG).expect("frames come");
            ports.push(row.parse().expect("a port"));
        }
        ports.sort_unstable();
        assert!(ports.into_iter().eq(1000..1064));
        let (_, said) = run.interrupt();
        assert!(said.contains(" on 2 queues of "), "{said}");
        assert!(!said.contains("lost"), "{said}");
    }

    /// Time goes on where no packet comes; what happens to the link is told.
    #[test]
    fn a_quiet_wire_closes_windows_and_a_link_that_goes_down_is_told() {
        let _alone = alone();
        if !namespace("dpdk::a_quiet_wire_closes_windows_and_a_link_that_goes_down_is_told") {
            return;
        }
        let query = "packets | where udp | summarize n = count() every 1s | project n";
        let mut run = Run::start(&[
            "run",
            "-e",
            query,
            "-o",
            "csv",
            "-l",
            "--capture",
            "dpdk",
            "-i",
            "net_tap0,iface=weirtap0",
        ]);
        ip("link set weirtap0 up");
        // The device learns that its link is up in the time of a few looks.
        (0..10).for_each(|_| pause());
        let sender = Sender::new("weirtap0");
        (0..5).for_each(|i| sender.send(&udp(i, 20)));
        let mut seen = 0;
        while seen < 5 {
            let row = run.rows.recv_timeout(LONG).expect("windows close");
            seen += row.parse().unwrap_or(0);
        }
        ip("link set weirtap0 down");
        run.until("net_tap0 is down; ");
        ip("link set weirtap0 up");
        run.until("net_tap0 is up again");
        (5..8).for_each(|i| sender.send(&udp(i, 20)));
        while seen < 8 {
            let row = run.rows.recv_timeout(LONG).expect("windows close");
            seen += row.parse().unwrap_or(0);
        }
        let (_, said) = run.interrupt();
        assert!(said.contains("note       net_tap0 is up again"), "{said}");
    }

    /// DPDK has a thread of its own, which is there before capabilities are given up.
    #[test]
    fn no_thread_keeps_what_is_given_up() {
        let _alone = alone();
        if !is_root() {
            let why = "who is not root has no capabilities to give up; run as root";
            return skip("dpdk::no_thread_keeps_what_is_given_up", why);
        }
        let run = Run::start(&["run", "-e", "packets", "--capture", "dpdk", "-i", "net_ring0"]);
        let tasks = format!("/proc/{}/task", run.child.id());
        let mut names = Vec::new();
        for task in fs::read_dir(tasks).expect("threads") {
            let task = task.expect("a thread").path();
            let name = fs::read_to_string(task.join("comm")).expect("a name").trim().to_owned();
            let status = fs::read_to_string(task.join("status")).expect("a status");
            let of = |key: &str| status.lines().find_map(|l| l.strip_prefix(key)).map(str::trim);
            assert_eq!(of("CapEff:"), Some("0000000000000000"), "{name}");
            assert_eq!(of("NoNewPrivs:"), Some("1"), "{name}");
            assert_eq!(of("Seccomp:"), Some("2"), "{name}");
            names.push(name);
        }
        assert!(names.iter().any(|name| name.starts_with("eal-intr")), "{names:?}");
        let (_, said) = run.interrupt();
        assert!(said.contains("sandbox: no capabilities; reads /sys/devices ("), "{said}");
        assert!(!said.contains("keep"), "{said}");
    }

    /// Commands in the documentation are accepted, and those that anybody may run do what they say.
    #[test]
    fn commands_that_are_documented_run() {
        let _alone = alone();
        let page = page("docs/dpdk.md");
        let commands = page.lines().map(|line| line.trim_start_matches("sudo "));
        let (mut accepted, mut ran) = (0, 0);
        for command in commands.filter_map(|line| line.strip_prefix("weir ")) {
            let words: Vec<&str> = command.split(' ').collect();
            let run = |words: &[&str]| {
                let mut weir = Command::new(env!("CARGO_BIN_EXE_weir"));
                let output = weir.current_dir(root()).args(words).output().expect("it runs");
                let said = text(&output.stderr).to_owned();
                assert_eq!(output.status.code(), Some(0), "{command}: {said}");
                said
            };
            run(&[&words[..], &["-T"]].concat());
            accepted += 1;
            let Some(at) = words.iter().position(|word| *word == "-c") else { continue };
            let said = run(&words);
            assert_eq!(received(&said), format!("received   {} packets", words[at + 1]), "{said}");
            ran += 1;
            if words.contains(&"net_null0,size=60") {
                let line = said.lines().find(|l| l.starts_with("net_null0: ")).expect("its mode");
                // Numbers are those of a version and a machine, which may have huge pages.
                let plain = |text: &str| {
                    let text = text.replace(|c: char| c.is_ascii_digit(), "");
                    let (start, rest) = text.split_once(" queue of , ").expect("queues");
                    let (_, end) = rest.split_once(" buffers, ").expect("buffers");
                    format!("{start}, {end}")
                };
                let shown = page.lines().find(|l| l.starts_with("net_null0: ")).expect("shown");
                assert_eq!(plain(line), plain(shown));
            }
        }
        assert!(accepted >= 5 && ran == 2, "{accepted} commands, of which {ran} were run");
    }

    #[test]
    fn what_cannot_be_had_says_what_helps() {
        let _alone = alone();
        let check = |args: &[&str], status: i32, why: &str| {
            let all = [&["run", "-e", "packets", "--capture", "dpdk"], args].concat();
            let mut weir = Command::new(env!("CARGO_BIN_EXE_weir"));
            weir.args(&all).stdout(Stdio::piped()).stderr(Stdio::piped());
            let child = weir.spawn().expect("the binary runs");
            let folder = format!("/var/run/dpdk/weir-{}", child.id());
            let output = child.wait_with_output().expect("ends");
            assert!(!Path::new(&folder).exists(), "{args:?}: {folder} is left");
            let said = text(&output.stderr);
            assert_eq!(output.status.code(), Some(status), "{args:?}: {said}");
            assert!(said.contains(why), "{args:?}: {said}");
            assert_eq!(text(&output.stdout), "", "{args:?}: rows alone are put out");
        };
        check(&["-i", "lo"], 1, "lo: it is an interface of the kernel; DPDK takes it by a virtual");
        check(&["-i", "0000:ff:1f.7"], 1, "0000:ff:1f.7: there is no PCI device of this address");
        check(&["-i", "net_nosuch0"], 1, "there is no driver net_nosuch; Debian's are in");
        check(&["-i", "net_pcap0,rx_pcap=/nosuch"], 1, "/nosuch: No such file or directory");
        check(&["-i", "net_null0", "-i", "net_null0"], 1, "net_null0: it is named twice");
        for (args, why) in [
            ("--nosuch", "is --dpdk-args as DPDK takes it?"),
            ("-h", "--dpdk-args -h captures nothing; what arguments there are: https://"),
            ("--no-hpet --help", "--dpdk-args --help captures nothing"),
        ] {
            check(&["-o", "csv", "-i", "net_null0", "--dpdk-args", args], 1, why);
        }
        check(&["-i", "net_null0", "--dpdk-args", "--no-huge -m 16"], 1, "reserving memory for");
        let stamps = ["--time-stamp-type", "adapter"];
        let why = "net_null0: its driver, net_null, does not say when frames came";
        check(&[&["-i", "net_null0"][..], &stamps].concat(), 1, why);
        check(&["-i", "any"], 2, "-i any can't be used with --capture dpdk");
        check(&["-i", "net_null0", "-Q", "out"], 2, "-Q inout can't be used with --capture dpdk");
        let output = weir(&["run", "-e", "packets", "-i", "lo", "--dpdk-args", "-l 1"]);
        assert_eq!(output.status.code(), Some(2));
        assert!(text(&output.stderr).contains("add --capture dpdk"), "{output:?}");
        // Packets of programs that come may go to `-w`.
        let socket = ["--control=/nosuch/s", "-w", "dpdk:net_null0", "-i", "lo", "-T"];
        let args = [&["run", "-e", "packets", "--dpdk-args", "-l 1"][..], &socket].concat();
        let output = weir(&args);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
    }
}
