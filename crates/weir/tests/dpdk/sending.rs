//! Frames that leave by devices of DPDK: unchanged to the byte, and each accounted for.

use crate::common::{files, skip};
use crate::linked::{LONG, Run, alone, capture, frames, is_root, received, rows, text, udp, weir};
use crate::wires::{Sender, ip, namespace, pause, veth};
use std::fs;
use std::path::Path;

/// Bytes of all these frames.
fn bytes(frames: &[Vec<u8>]) -> usize {
    frames.iter().map(Vec::len).sum()
}

/// The ledger has a line that begins so.
fn has_line(said: &str, start: &str) {
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.lines().any(|line| words(line).starts_with(start)), "no `{start}` in {said}");
}

fn path(folder: &Path, name: &str) -> String {
    folder.join(name).to_str().expect("a plain path").to_owned()
}

/// Waits until a capture has so many frames; those.
fn captured(path: &str, n: usize) -> Vec<Vec<u8>> {
    for _ in 0..LONG.as_millis() / 50 {
        let there = frames(Path::new(path), 100_000);
        if there.len() >= n {
            return there;
        }
        pause();
    }
    panic!("{path} has {} frames, not {n}", frames(Path::new(path), 100_000).len());
}

/// Every frame of every Ethernet capture, in order, with any number of workers.
#[test]
fn frames_of_files_leave_as_they_came() {
    let _alone = alone();
    let folder = tempfile::tempdir().expect("a folder");
    let written = path(folder.path(), "out.pcap");
    let to = format!("dpdk:net_pcap0,tx_pcap={written}");
    let (mut sent, mut captures) = (0, 0);
    for (i, fixture) in files("fixtures", &[".pcap", ".pcapng"]).iter().enumerate() {
        let all = frames(fixture, 9230);
        if all.is_empty() {
            continue;
        }
        let from = capture(folder.path(), &all);
        let query = format!("packets | forward {to:?}");
        let how = match i % 2 {
            0 => &["-e", "packets | pass", "-w", &to][..],
            _ => &["-e", &query],
        };
        let args = ["run", "-r", &from, "-j", ["1", "2", "4"][i % 3]];
        let (_, said) = rows(&[&args[..], how].concat());
        has_line(&said, "net_pcap0: DPDK ");
        assert!(said.contains("driver net_pcap, sends by a queue of "), "{said}");
        let word = if i % 2 == 0 { "passed" } else { "sent" };
        has_line(&said, &format!("{word} {} packet", all.len()));
        assert!(!said.contains("refused"), "{said}");
        assert!(frames(Path::new(&written), 100_000) == all, "{}", fixture.display());
        fs::remove_file(&written).expect("written");
        (captures, sent) = (captures + 1, sent + all.len());
    }
    assert!(captures > 10 && sent > 1000, "{captures} captures of {sent} packets");
}

/// A device may be captured from and sent by: what comes goes back by it. Or there are two.
#[test]
fn frames_that_come_by_dpdk_leave_by_it() {
    let _alone = alone();
    let folder = tempfile::tempdir().expect("a folder");
    let sizes = [20, 1400, 60, 1472, 300];
    let all: Vec<Vec<u8>> = (0..3000).map(|i| udp(i, sizes[i % sizes.len()])).collect();
    let from = capture(folder.path(), &all);
    let (one, two) = (path(folder.path(), "one.pcap"), path(folder.path(), "two.pcap"));
    let captured = format!("net_pcap0,rx_pcap={from},tx_pcap={one}");
    let query =
        format!("packets | broadcast to (\"dpdk:net_pcap0\", \"dpdk:net_pcap1,tx_pcap={two}\")");
    // Where a device has two names, its driver is told what stands at either.
    let both = format!("dpdk:net_pcap1,tx_pcap={two}");
    let twice = format!("packets | broadcast to ({both:?}, \"dpdk:net_pcap1\")");
    let (_, said) = rows(&["run", "-e", &twice, "-r", &from]);
    for name in [&both[..], "dpdk:net_pcap1"] {
        has_line(&said, &format!("sent 3000 packets to {name}, {} bytes", bytes(&all)));
    }
    assert_eq!(frames(Path::new(&two), 100_000).len(), 6000, "{said}");
    fs::remove_file(&two).expect("written");
    for workers in ["1", "2"] {
        let args = ["run", "-e", &query, "--capture", "dpdk", "-i", &captured, "-c", "3000"];
        let (_, said) = rows(&[&args[..], &["-j", workers]].concat());
        assert_eq!(received(&said), "received   3000 packets", "{said}");
        let line = |to: &str| format!("sent 3000 packets to dpdk:{to}, {} bytes", bytes(&all));
        has_line(&said, &line("net_pcap0"));
        has_line(&said, &line(&format!("net_pcap1,tx_pcap={two}")));
        assert!(!said.contains("refused"), "{said}");
        for written in [&one, &two] {
            assert!(frames(Path::new(written), 100_000) == all, "{written}: {said}");
            fs::remove_file(written).expect("written");
        }
    }
}

/// Far more frames than a device has places or buffers.
#[test]
fn places_and_buffers_come_back() {
    let _alone = alone();
    let device = ["--capture", "dpdk", "-i", "net_null0,size=100", "-c", "300000", "-j", "2"];
    let query = "packets | steer by number to (\"dpdk:net_null1\", \"dpdk:net_null2\")";
    let (_, said) = rows(&[&["run", "-e", query][..], &device].concat());
    assert_eq!(received(&said), "received   300000 packets", "{said}");
    let counts = said.lines().filter(|line| line.starts_with("sent")).map(|line| {
        let mut words = line.split_whitespace().skip(1);
        words.next().and_then(|n| n.parse::<u64>().ok()).expect("a number")
    });
    assert_eq!(counts.sum::<u64>(), 300_000, "{said}");
}

/// A ring that nobody empties takes what it has room for; the rest is refused by its reason.
#[test]
fn what_a_device_has_no_room_for_is_counted() {
    let _alone = alone();
    let folder = tempfile::tempdir().expect("a folder");
    let all: Vec<Vec<u8>> = (0..1280).map(|i| udp(i, 20)).collect();
    let from = capture(folder.path(), &all);
    let args = ["run", "-e", "packets | forward \"dpdk:net_ring0\"", "-r", &from];
    let (_, said) = rows(&args);
    let number = |start: &str| {
        let line = said.lines().find(|line| line.starts_with(start)).expect("a line");
        line.split_whitespace().nth(1).and_then(|n| n.parse::<usize>().ok()).expect("a number")
    };
    let (sent, refused) = (number("sent"), number("refused"));
    assert_eq!(sent + refused, 1280, "{said}");
    assert!((1000..1280).contains(&sent), "{said}");
    has_line(
        &said,
        &format!("refused {refused} by dpdk:net_ring0: {refused} while its queue was full"),
    );
}

/// As long as its MTU allows, with a tag, and without a header.
#[test]
fn what_it_cannot_send_is_counted_by_reason() {
    let _alone = alone();
    let folder = tempfile::tempdir().expect("a folder");
    let frame = |len: usize, tags: usize| {
        let mut frame = vec![2; len];
        frame[12..14].copy_from_slice(&[0x08, 0x00]);
        (0..tags).for_each(|_| drop(frame.splice(12..12, [0x81, 0, 0, 5])));
        frame
    };
    let all = [frame(9230, 0), frame(9231, 0), frame(60, 0), frame(9230, 1), frame(9232, 1)];
    let all = [&all[..], &[vec![3; 13], vec![4; 14]]].concat();
    let (from, to) = (capture(folder.path(), &all), path(folder.path(), "out.pcap"));
    let device = format!("dpdk:net_pcap0,tx_pcap={to}");
    let query = format!("packets | forward {device:?}");
    let (_, said) = rows(&["run", "-e", &query, "-r", &from]);
    has_line(&said, &format!("sent 4 packets to {device}, "));
    let reasons = "1 shorter than a header of its frames; 2 longer than its MTU";
    has_line(&said, &format!("refused 3 by {device}: {reasons}"));
    let want: Vec<_> = [0, 2, 3, 6].into_iter().map(|i| all[i].clone()).collect();
    assert!(frames(Path::new(&to), 100_000) == want, "{said}");
}

/// On a wire: what one end sends by DPDK the other receives. A capture by the kernel forwards by
/// it, too, and what can't leave while the interface is down is refused, not lost.
#[test]
fn a_wire_gets_what_is_sent() {
    let _alone = alone();
    if !namespace("dpdk::a_wire_gets_what_is_sent") {
        return;
    }
    veth("v0", "v1");
    veth("w0", "w1");
    let folder = tempfile::tempdir().expect("a folder");
    let got = path(folder.path(), "got.pcap");
    let tap = Run::start(&["run", "-e", "packets | pass", "-U", "-w", &got, "-i", "v1"]);
    let sizes = [20, 1400, 60, 1472, 300];
    let all: Vec<Vec<u8>> = (0..500).map(|i| udp(i, sizes[i % sizes.len()])).collect();
    let from = capture(folder.path(), &all);
    let device = "dpdk:net_af_packet0,iface=v0";
    let (_, said) = rows(&["run", "-e", "packets | pass", "-w", device, "-r", &from]);
    has_line(&said, &format!("passed 500 packets, {} bytes", bytes(&all)));
    assert!(captured(&got, 500) == all);

    let run = Run::start(&["run", "-e", "packets | pass", "-w", device, "-i", "w1", "-Q", "in"]);
    let sender = Sender::new("w0");
    (500..520).for_each(|i| sender.send(&udp(i, 30)));
    let more: Vec<Vec<u8>> = (500..520).map(|i| udp(i, 30)).collect();
    assert!(captured(&got, 520)[500..] == more);
    ip("link set v0 down");
    (0..7).for_each(|i| sender.send(&udp(i, 30)));
    // They have been on their way for longer than anything waits.
    (0..10).for_each(|_| pause());
    ip("link set v0 up");
    let (_, said) = run.interrupt();
    has_line(&said, "passed 20 packets, ");
    has_line(&said, "refused 7: ");
    let (_, said) = tap.interrupt();
    assert_eq!(received(&said), "received   520 packets", "{said}");
}

/// A driver that takes no device without a queue to receive by, and as many to send by.
#[test]
fn an_interface_that_is_made_gets_what_is_sent() {
    let _alone = alone();
    if !namespace("dpdk::an_interface_that_is_made_gets_what_is_sent") {
        return;
    }
    veth("v0", "v1");
    let folder = tempfile::tempdir().expect("a folder");
    let got = path(folder.path(), "got.pcap");
    let device = "dpdk:net_tap0,iface=weir0";
    let run = Run::start(&["run", "-e", "packets | pass", "-w", device, "-i", "v1", "-Q", "in"]);
    let tap = ["run", "-e", "packets | pass", "-U", "-w", &got, "-i", "weir0", "-Q", "in"];
    let tap = Run::start(&tap);
    let sender = Sender::new("v0");
    let all: Vec<Vec<u8>> = (0..50).map(|i| udp(i, 30 * i)).collect();
    all.iter().for_each(|frame| sender.send(frame));
    assert!(captured(&got, 50) == all);
    let (_, said) = tap.interrupt();
    assert_eq!(received(&said), "received   50 packets", "{said}");
    let (_, said) = run.interrupt();
    has_line(&said, &format!("passed 50 packets, {} bytes", bytes(&all)));
    assert!(!said.contains("refused"), "{said}");
}

/// A device that is captured from as an interface is not sent by: frames would come back.
#[test]
fn what_would_come_back_is_refused() {
    let _alone = alone();
    if !is_root() {
        let why = "who is not root opens no interface; run as root";
        return skip("dpdk::what_would_come_back_is_refused", why);
    }
    let check = |args: &[&str], why: &str| {
        let output = weir(&[&["run", "-e", "packets | pass"], args].concat());
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{args:?}: {said}");
        assert!(said.contains(why), "{args:?}: {said}");
    };
    let back = "packets are captured on this interface";
    check(&["-i", "lo", "-w", "dpdk:net_af_packet0,iface=lo"], back);
    let dpdk = ["--capture", "dpdk", "-i", "net_af_packet0,iface=lo"];
    check(&[&dpdk[..], &["-w", "dpdk:net_af_packet1,iface=lo"]].concat(), back);
    check(&[&dpdk[..], &["-w", "lo"]].concat(), back);
    check(&["-i", "any", "-w", "dpdk:net_af_packet0,iface=lo"], back);
    check(&["-i", "lo", "-w", "dpdk:net_pcap0,tx_iface=lo"], back);
    check(&["-i", "any", "-w", "lo"], back);
    let pcap = ["--capture", "dpdk", "-i", "net_pcap0,rx_iface=lo"];
    check(&[&pcap[..], &["-w", "lo"]].concat(), back);
    check(&["-i", "lo", "-w", "dpdk:net_nosuch0"], "there is no driver net_nosuch");
    check(&["-i", "lo", "-w", "dpdk:eth99"], "eth99: it is no device of DPDK");
}

/// Programs that come send by the devices that were opened at the start, and by no others.
#[test]
fn programs_that_come_send_by_what_is_open() {
    let _alone = alone();
    let folder = tempfile::tempdir().expect("a folder");
    let socket = path(folder.path(), "s");
    let run = Run::start(&[
        "run",
        "-e",
        "packets | where len == 1 | forward \"dpdk:net_null1\"",
        "--capture",
        "dpdk",
        "-i",
        "net_ring0",
        &format!("--control={socket}"),
        "-w",
        "dpdk:net_null2",
        "--allow-send",
        "dpdk:net_null3",
    ]);
    let add = |name: &str, query: &str| {
        let output = weir(&["ctl", "add", "-S", &socket, "--name", name, "-e", query]);
        (output.status.code(), format!("{}{}", text(&output.stdout), text(&output.stderr)))
    };
    for other in ["dpdk:net_null7", "dpdk:net_null1,size=9"] {
        let (status, said) = add("one", &format!("packets | forward {other:?}"));
        assert_eq!(status, Some(1), "{said}");
        assert!(said.contains(&format!("start the run with --allow-send {other}")), "{said}");
    }
    for (name, query) in [
        ("two", "packets | forward \"dpdk:net_null1\""),
        ("three", "packets | pass"),
        ("four", "packets | forward \"dpdk:net_null3\""),
    ] {
        let (status, said) = add(name, query);
        assert_eq!(status, Some(0), "{said}");
    }
    let (_, said) = run.interrupt();
    assert!(!said.contains("refused"), "{said}");
}
