//! Frames that leave by AF_XDP: those that came, unchanged and in order; what is not sent is
//! counted.

use crate::common::{files, workplace};
use crate::space::{Space, Tap};
use crate::{capture, errors, fixture, frames, has_line, header, records};
use weir_packet::source::LinkType;

/// What AF_XDP sends in one piece.
const MTU: &str = "link set v0 mtu 4078";

#[test]
fn frames_leave_as_they_came() {
    let test = "wires::by_xdp::frames_leave_as_they_came";
    let Some(space) = Space::new(test) else { return };
    let folder = workplace();
    space.veth("v0", "v1");
    space.ip(MTU);
    let Some(tap) = Tap::start(test, &space, "v1", folder.path()) else { return };
    let mut all = Vec::new();
    for (n, path) in files("fixtures", &[".pcap", ".pcapng"]).iter().enumerate() {
        let before = frames(path);
        let ethernet = before.iter().filter(|(link, _)| *link == LinkType::ETHERNET);
        let sent: Vec<Vec<u8>> = ethernet.map(|(_, bytes)| bytes.clone()).collect();
        if sent.is_empty() {
            continue;
        }
        let read = path.to_str().expect("a plain path");
        let workers = ["1", "2", "4"][n % 3];
        let args = match n % 2 {
            0 => ["-e", "packets | pass", "-w", "xdp:v0"],
            _ => ["-e", "param out: string = \"x\"\npackets | forward out", "-p", "out=xdp:v0"],
        };
        let args = [&["run", "-r", read, "-j", workers], &args[..]].concat();
        let ledger = space.weir(folder.path(), &args);
        let mode = "xdp:v0: sends by AF_XDP on queue 0, copied by the kernel, 2048 frames of 4096";
        has_line(&ledger, mode);
        let word = if n % 2 == 0 { "passed" } else { "sent" };
        has_line(&ledger, &format!("{word} {} packet", sent.len()));
        all.extend(sent);
        assert!(tap.frames(all.len()) == all, "{read}");
    }
    assert!(all.len() > 3000, "{} frames", all.len());
}

#[test]
fn what_cannot_be_sent_is_counted_by_reason() {
    let test = "wires::by_xdp::what_cannot_be_sent_is_counted_by_reason";
    let Some(space) = Space::new(test) else { return };
    let folder = workplace();
    space.veth("v0", "v1");
    space.ip("link set v0 mtu 1500");
    let Some(tap) = Tap::start(test, &space, "v1", folder.path()) else { return };
    let frame = |len: usize, tags: usize| {
        let mut frame = vec![2; len];
        frame[12..14].copy_from_slice(&[0x08, 0x00]);
        (0..tags).for_each(|_| drop(frame.splice(12..12, [0x81, 0, 0, 5])));
        frame
    };
    // As long as its MTU allows, with a tag, and without a header.
    let sent = [frame(1514, 0), frame(1515, 0), frame(60, 0), frame(1514, 1), frame(1516, 1)];
    let sent = [&sent[..], &[vec![3; 13], vec![4; 14]]].concat();
    std::fs::write(folder.path().join("a.pcap"), capture(LinkType::ETHERNET, &sent)).expect("ok");
    let args = ["run", "-e", "packets | forward \"xdp:v0\"", "-r", "a.pcap"];
    let ledger = space.weir(folder.path(), &args);
    has_line(&ledger, "sent 4 packets to xdp:v0, ");
    has_line(&ledger, "refused 3 by xdp:v0: 1 shorter than a header of its frames; 2 longer than");
    let want: Vec<_> = [0, 2, 3, 6].into_iter().map(|i| sent[i].clone()).collect();
    assert!(tap.frames(4) == want);
}

/// It goes down, comes back, is removed and made anew; a run survives all of it.
#[test]
fn an_interface_may_go_and_come_back() {
    let test = "wires::by_xdp::an_interface_may_go_and_come_back";
    let Some(space) = Space::new(test) else { return };
    let folder = workplace();
    space.veth("v0", "v1");
    space.ip(MTU);
    let frame = |n: u8| [&[2; 12][..], &[0x08, 0], &[n; 50]].concat();
    let Some(tap) = Tap::start(test, &space, "v1", folder.path()) else { return };
    let mut run = space.stream(folder.path(), &["run", "-e", "packets | forward \"xdp:v0\""]);
    run.write(&header(LinkType::ETHERNET).to_bytes());
    run.write(&records(&[frame(1)]));
    tap.frames(1);
    space.ip("link set v0 down");
    run.write(&records(&[frame(2), frame(3)]));
    run.told("xdp:v0: is down or gone", 1);
    space.ip("link set v0 up");
    run.write(&records(&[frame(4)]));
    run.told("xdp:v0: is back", 1);
    assert_eq!(tap.frames(2), [frame(1), frame(4)]);
    space.ip("link set v1 down");
    run.write(&records(&[frame(5)]));
    run.told("xdp:v0: is down or gone", 2);
    space.ip("link delete v0");
    drop(tap);
    space.veth("v0", "v1");
    space.ip(MTU);
    let Some(tap) = Tap::start(test, &space, "v1", folder.path()) else { return };
    run.write(&records(&[frame(6)]));
    run.told("xdp:v0: is back", 2);
    assert_eq!(tap.frames(1), [frame(6)]);
    let ledger = run.end();
    has_line(&ledger, "sent 3 packets to xdp:v0, 192 bytes");
    has_line(&ledger, "refused 3 by xdp:v0: 3 while it was down or gone");
}

/// Nobody reads what the kernel sends by a device, so that its queue fills: what is sent are the
/// first, in order, and the others are counted.
#[test]
fn a_queue_that_stays_full_is_counted() {
    let test = "wires::by_xdp::a_queue_that_stays_full_is_counted";
    let Some(space) = Space::new(test) else { return };
    let folder = workplace();
    space.ip("tuntap add dev t0 mode tap");
    let mut idle = space.stream(folder.path(), &["run", "-e", "packets | pass", "-w", "tap:t0"]);
    idle.write(&header(LinkType::ETHERNET).to_bytes());
    crate::until("t0 is up", || {
        let show = || std::process::Command::new("ip").args(["link", "show", "t0"]).output();
        let output = space.run(show).expect("ip, of iproute2");
        String::from_utf8_lossy(&output.stdout).contains("LOWER_UP").then_some(())
    });
    space.ip("link set t0 txqueuelen 100");
    let Some(tap) = Tap::start(test, &space, "t0", folder.path()) else { return };
    let sent: Vec<Vec<u8>> = (0..300u32).map(|n| vec![n as u8; 60]).collect();
    std::fs::write(folder.path().join("a.pcap"), capture(LinkType::ETHERNET, &sent)).expect("ok");
    let args = ["run", "-e", "packets | pass", "-w", "xdp:t0", "-r", "a.pcap"];
    let ledger = space.weir(folder.path(), &args);
    drop(tap);
    let number = |word: &str| -> u64 {
        let line =
            ledger.lines().find(|l| l.starts_with(word)).unwrap_or_else(|| panic!("{ledger}"));
        let n = line.split_whitespace().nth(1).expect("a number").trim_end_matches(':');
        n.parse().expect("a number")
    };
    assert_eq!(number("passed") + number("refused"), 300, "{ledger}");
    assert!(number("passed") >= 100 && number("refused") > 0, "{ledger}");
    assert!(ledger.contains("while its queue was full"), "{ledger}");
    idle.end();
}

/// In by AF_XDP, and out by it.
#[test]
fn a_bridge_of_af_xdp_passes_frames_on() {
    let test = "wires::by_xdp::a_bridge_of_af_xdp_passes_frames_on";
    let Some(space) = Space::new(test) else { return };
    let folder = workplace();
    space.veth("v0", "v1");
    space.veth("w0", "w1");
    for end in ["v0", "v1", "w0", "w1"] {
        space.ip(&format!("link set {end} mtu 1500"));
    }
    let Some(tap) = Tap::start(test, &space, "w1", folder.path()) else { return };
    let args = ["run", "-e", "packets | pass", "-i", "v1", "--capture", "xdp", "-w", "xdp:w0"];
    let run = space.live(folder.path(), &args);
    run.told("listening on", 1);
    let sent: Vec<_> = fixture("mixed.pcap").into_iter().filter(|f| f.len() <= 1514).collect();
    std::fs::write(folder.path().join("a.pcap"), capture(LinkType::ETHERNET, &sent)).expect("ok");
    space.weir(folder.path(), &["run", "-e", "packets | pass", "-r", "a.pcap", "-w", "xdp:v0"]);
    assert!(tap.frames(sent.len()) == sent);
    let ledger = run.interrupt();
    has_line(&ledger, &format!("passed {} packets", sent.len()));
    assert!(!ledger.contains("refused") && !ledger.contains("lost"), "{ledger}");
}

#[test]
fn what_cannot_be_opened_is_refused_first() {
    let test = "wires::by_xdp::what_cannot_be_opened_is_refused_first";
    let Some(space) = Space::new(test) else { return };
    let folder = workplace();
    let check = |to: &str, part: &str| {
        let args = ["run", "-e", "packets | pass", "-r", "fixtures/dns.pcap", "-w", to];
        let output = space.attempt(folder.path(), &args);
        let told = errors(&output);
        assert!(!output.status.success() && told.contains(&format!("{to}: {part}")), "{told}");
    };
    space.veth("v0", "v1");
    check(
        "xdp:eth8",
        "there is no such interface, of lo, v1, v0; the name of a file ends in .pcap",
    );
    check("xdp:v0", "its MTU of 65535 is more than AF_XDP sends in one piece, 4078; send by v0");
    space.ip("tuntap add dev u0 mode tun");
    space.ip("link set u0 up");
    check("xdp:u0", "AF_XDP sends Ethernet only");
}
