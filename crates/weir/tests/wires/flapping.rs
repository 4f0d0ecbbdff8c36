//! Outputs of the kernel that go down and up again while packets flow.

use crate::functions::start;
use crate::in_kernel::{IN_KERNEL, count};
use crate::over_wires::{until, until_some};
use crate::space::Space;
use std::net::UdpSocket;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Packets that an interface has received.
pub(crate) fn received(space: &Space, interface: &'static str) -> u64 {
    let show = move || Command::new("ip").args(["-s", "link", "show", interface]).output();
    let output = space.run(show).expect("ip, of iproute2");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let rx = text.lines().skip_while(|line| !line.contains("RX:")).nth(1);
    rx.and_then(|rx| rx.split_whitespace().nth(1)?.parse().ok()).expect("a count")
}

/// Packets that an interface has received once no more come.
pub(crate) fn all_received(space: &Space, interface: &'static str) -> u64 {
    let (mut before, mut same) = (0, 0);
    until_some("the last have come", || {
        let now = received(space, interface);
        same = if now == before { same + 1 } else { 0 };
        before = now;
        (same > 20).then_some(now)
    })
}

/// The packets that the ledger calls sent arrived, but for those that it calls doubtful.
#[test]
fn what_an_output_that_flaps_may_have_dropped_is_counted() {
    let test = "wires::flapping::what_an_output_that_flaps_may_have_dropped_is_counted";
    for (gro, mode) in [("on", "native"), ("off", "generic")] {
        let Some(space) = Space::new(test) else { return };
        for (one, other) in [("eth0", "h0"), ("eth1", "h1")] {
            space.ip(&format!("link add {one} type veth peer name {other}"));
            space.ip(&format!("link set {one} up"));
            space.ip(&format!("link set {other} up"));
        }
        let set = move || Command::new("ethtool").args(["-K", "h1", "gro", gro]).status();
        match space.run(set) {
            Ok(status) => assert!(status.success(), "ethtool"),
            Err(_) => return crate::common::skip(test, "ethtool is not installed"),
        }
        space.ip("address add 192.0.2.1/24 dev h0");
        space.ip("neighbor add 192.0.2.2 lladdr 02:00:00:00:00:02 dev h0");
        let run = ["run", "-e", "packets | forward \"eth1\"", "-i", "eth0"];
        let run = start(&space, &[&run[..], &IN_KERNEL].concat());
        run.wait_for_report(&format!(", {mode}"), 1);
        let over = Arc::new(AtomicBool::new(false));
        let until_over = Arc::clone(&over);
        let traffic = space.run(move || {
            std::thread::spawn(move || {
                let socket = UdpSocket::bind("192.0.2.1:0").expect("binds");
                let mut sent = 0_u64;
                while !until_over.load(Ordering::Relaxed) {
                    sent += u64::from(socket.send_to(&[7; 20], "192.0.2.2:9").is_ok());
                }
                sent
            })
        });
        for _ in 0..4 {
            // Between two changes there are many looks, by which packets are known to have left.
            let (before, mut tries) = (received(&space, "h1"), 0);
            until("packets arrive for a second", || {
                tries += 1;
                tries > 50 && received(&space, "h1") > before + 1000
            });
            space.ip("link set eth1 down");
            space.ip("link set eth1 up");
        }
        over.store(true, Ordering::Relaxed);
        let sent = traffic.join().expect("no panic");
        let arrived = all_received(&space, "h1");
        let ledger = run.interrupt();
        let [handed, doubtful, refused] =
            ["sent", "doubtful", "refused"].map(|n| count(&ledger, n));
        let all = count(&ledger, "received");
        assert_eq!(all, handed + refused, "{ledger}");
        assert!(all <= sent, "{sent}: {ledger}");
        assert!(doubtful > 0 && doubtful < handed, "{ledger}");
        assert!(arrived <= handed && handed <= arrived + doubtful, "{mode}: {arrived}: {ledger}");
    }
}
