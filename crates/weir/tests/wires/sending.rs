//! Frames that leave by an interface, in either way that there is: `v0` by AF_PACKET, `xdp:v0` by
//! AF_XDP.

use crate::common::{files, workplace};
use crate::space::{Space, Tap};
use crate::{capture, frames, has_line, header, records};
use weir_packet::source::LinkType;

/// A pair of interfaces with an MTU that both ways can send in one piece.
fn pair(space: &Space) {
    space.veth("v0", "v1");
    space.ip("link set v0 mtu 4078");
}

/// Every frame of every Ethernet capture, byte for byte and in order, with any number of workers,
/// whether it passes or is forwarded. `mode`: what is said of it at the start.
pub(crate) fn frames_leave_as_they_came(test: &str, to: &str, mode: Option<&str>) {
    let Some(space) = Space::new(test) else { return };
    let folder = workplace();
    pair(&space);
    let Some(tap) = Tap::start(test, &space, "v1", folder.path()) else { return };
    let out = format!("out={to}");
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
            0 => ["-e", "packets | pass", "-w", to],
            _ => ["-e", "param out: string = \"x.pcap\"\npackets | forward out", "-p", &out],
        };
        let args = [&["run", "-r", read, "-j", workers], &args[..]].concat();
        let ledger = space.weir(folder.path(), &args);
        mode.into_iter().for_each(|mode| has_line(&ledger, mode));
        let word = if n % 2 == 0 { "passed" } else { "sent" };
        has_line(&ledger, &format!("{word} {} packet", sent.len()));
        all.extend(sent);
        assert!(tap.frames(all.len()) == all, "{read}");
    }
    assert!(all.len() > 3000, "{} frames", all.len());
}

/// As long as its MTU allows, with a tag, and without a header.
pub(crate) fn what_it_cannot_take_is_counted_by_reason(test: &str, to: &str) {
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
    let sent = [frame(1514, 0), frame(1515, 0), frame(60, 0), frame(1514, 1), frame(1516, 1)];
    let sent = [&sent[..], &[vec![3; 13], vec![4; 14]]].concat();
    std::fs::write(folder.path().join("a.pcap"), capture(LinkType::ETHERNET, &sent)).expect("ok");
    let query = format!("packets | forward \"{to}\"");
    let ledger = space.weir(folder.path(), &["run", "-e", &query, "-r", "a.pcap"]);
    has_line(&ledger, &format!("sent 4 packets to {to}, "));
    let reasons = "1 shorter than a header of its frames; 2 longer than its MTU";
    has_line(&ledger, &format!("refused 3 by {to}: {reasons}"));
    let want: Vec<_> = [0, 2, 3, 6].into_iter().map(|i| sent[i].clone()).collect();
    assert!(tap.frames(4) == want);
    // A frame cut by the snap length is not the one that came; one cut by `trim` is as it is to be.
    let mut cut = header(LinkType::ETHERNET).to_bytes().to_vec();
    header(LinkType::ETHERNET).put_record(&mut cut, 0, 200, &sent[0][..90]);
    std::fs::write(folder.path().join("cut.pcap"), cut).expect("writes");
    let args = ["run", "-e", "packets | pass", "-w", to, "-r", "cut.pcap"];
    let ledger = space.weir(folder.path(), &args);
    has_line(&ledger, "passed 0 packets, 0 bytes");
    has_line(&ledger, "refused 1: 1 cut by the snap length: capture whole frames");
    let args = ["run", "-e", "packets | trim 80 | pass", "-w", to, "-r", "cut.pcap"];
    has_line(&space.weir(folder.path(), &args), "passed 1 packet, 200 bytes");
    assert_eq!(tap.frames(5)[4], sent[0][..80]);
    // IP packets have no Ethernet header.
    let args = ["run", "-e", "packets | pass", "-w", to, "-r", "fixtures/raw.pcap"];
    let ledger = space.weir(folder.path(), &args);
    has_line(&ledger, "passed 0 packets");
    assert!(ledger.contains("of another link type than it takes"), "{ledger}");
}

/// It goes down, comes back, is removed and made anew; a run survives all of it.
pub(crate) fn it_may_go_and_come_back(test: &str, to: &str) {
    let Some(space) = Space::new(test) else { return };
    let folder = workplace();
    pair(&space);
    let frame = |n: u8| [&[2; 12][..], &[0x08, 0], &[n; 50]].concat();
    let Some(tap) = Tap::start(test, &space, "v1", folder.path()) else { return };
    let query = format!("packets | forward \"{to}\"");
    let mut run = space.stream(folder.path(), &["run", "-e", &query]);
    let (gone, back) = (format!("{to}: is down or gone"), format!("{to}: is back"));
    run.write(&header(LinkType::ETHERNET).to_bytes());
    run.write(&records(&[frame(1)]));
    tap.frames(1);
    space.ip("link set v0 down");
    run.write(&records(&[frame(2), frame(3)]));
    run.wait_for_report(&gone, 1);
    space.ip("link set v0 up");
    run.write(&records(&[frame(4)]));
    run.wait_for_report(&back, 1);
    assert_eq!(tap.frames(2), [frame(1), frame(4)]);
    // Its peer down, it has no carrier.
    space.ip("link set v1 down");
    run.write(&records(&[frame(5)]));
    run.wait_for_report(&gone, 2);
    space.ip("link delete v0");
    drop(tap);
    pair(&space);
    let Some(tap) = Tap::start(test, &space, "v1", folder.path()) else { return };
    run.write(&records(&[frame(6)]));
    run.wait_for_report(&back, 2);
    assert_eq!(tap.frames(1), [frame(6)]);
    let ledger = run.end();
    has_line(&ledger, &format!("sent 3 packets to {to}, 192 bytes"));
    has_line(&ledger, &format!("refused 3 by {to}: 3 while it was down or gone"));
}

/// No program reads what the kernel sends by a device, so that its queue fills: what is sent are
/// the first, in order, and the others are counted.
pub(crate) fn a_queue_that_stays_full_is_counted(test: &str, to: &str) {
    let Some(space) = Space::new(test) else { return };
    let folder = workplace();
    space.ip("tuntap add dev t0 mode tap");
    let mut idle = space.stream(folder.path(), &["run", "-e", "packets | pass", "-w", "tap:t0"]);
    idle.write(&header(LinkType::ETHERNET).to_bytes());
    space.wait_for_carrier("t0");
    space.ip("link set t0 txqueuelen 100");
    let sent: Vec<Vec<u8>> = (0..300u32).map(|n| vec![n as u8; 60]).collect();
    std::fs::write(folder.path().join("a.pcap"), capture(LinkType::ETHERNET, &sent)).expect("ok");
    let args = ["run", "-e", "packets | pass", "-w", to, "-r", "a.pcap"];
    let ledger = space.weir(folder.path(), &args);
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
