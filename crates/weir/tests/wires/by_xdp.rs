//! Frames that leave by AF_XDP: those that came, unchanged and in order; what is not sent is
//! counted.

use crate::common::workplace;
use crate::space::{Space, Tap};
use crate::{capture, errors, fixture, has_line, sending};
use weir_packet::source::LinkType;

#[test]
fn frames_leave_as_they_came() {
    let mode = "xdp:v0: sends by AF_XDP on queue 0, copied by the kernel, 2048 frames of 4096";
    sending::frames_leave_as_they_came("wires::by_xdp::frames_leave", "xdp:v0", Some(mode));
}

#[test]
fn what_cannot_be_sent_is_counted_by_reason() {
    sending::what_it_cannot_take_is_counted_by_reason("wires::by_xdp::what_cannot", "xdp:v0");
}

#[test]
fn an_interface_may_go_and_come_back() {
    sending::it_may_go_and_come_back("wires::by_xdp::an_interface_may_go", "xdp:v0");
}

#[test]
fn a_queue_that_stays_full_is_counted() {
    sending::a_queue_that_stays_full_is_counted("wires::by_xdp::a_queue_that_stays", "xdp:t0");
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
    run.wait_for_report("listening on", 1);
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
