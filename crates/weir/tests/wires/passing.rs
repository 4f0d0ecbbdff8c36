//! Packets that get through when nothing runs, when a run was killed, when a program was removed,
//! and when a table is full: the table of docs/network_functions.md.

use crate::common::root;
use crate::functions::{SERVER, attach, start};
use crate::in_kernel::IN_KERNEL;
use crate::over_wires::until_some;
use crate::space::{Space, Stream};
use crate::{capture, frames};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::time::Duration;
use weir_packet::craft::Frame;
use weir_packet::source::LinkType;

/// How long an attempt waits that is to get an answer, and one that is to get none.
const ANSWER: Duration = Duration::from_secs(3);
const NONE: Duration = Duration::from_millis(200);

/// A client, what stands between, and a server that listens on two ports.
struct Sides {
    client: Space,
    wall: Space,
    _listeners: [TcpListener; 2],
    _server: Space,
}

impl Sides {
    fn new(test: &str) -> Option<Sides> {
        let spaces = [(); 3].map(|()| Space::new(test));
        let [Some(client), Some(wall), Some(server)] = spaces else { return None };
        let there = attach(test, &wall, "eth0", &client, "192.0.2.1")
            && attach(test, &wall, "eth1", &server, SERVER);
        for host in [&client, &server] {
            // Else the driver of a virtual wire takes no frames from a program.
            let set = || Command::new("ethtool").args(["-K", "h0", "gro", "on"]).status();
            assert!(!there || host.run(set).is_ok_and(|status| status.success()), "ethtool");
        }
        let listeners = listen(&server);
        there.then_some(Sides { client, wall, _listeners: listeners, _server: server })
    }

    /// Whether the client gets through at last.
    fn opens(&self, port: u16) {
        until_some("it is open", || connect(&self.client, port, ANSWER));
    }

    #[track_caller]
    fn is_closed(&self, port: u16) {
        assert!(connect(&self.client, port, NONE).is_none(), "port {port} is open");
    }
}

fn listen(server: &Space) -> [TcpListener; 2] {
    [22, 23].map(|port| server.run(move || TcpListener::bind((SERVER, port)).expect("binds")))
}

fn connect(client: &Space, port: u16, wait: Duration) -> Option<TcpStream> {
    let to: SocketAddr = format!("{SERVER}:{port}").parse().expect("an address");
    client.run(move || TcpStream::connect_timeout(&to, wait).ok())
}

/// A firewall between two interfaces.
const BETWEEN: &str = "packets | branch when interface == \"eth1\" -> forward \"eth0\" \
                       when arp or tcp.dport == 22 -> forward \"eth1\" else -> drop";

/// The ways to forward between interfaces.
const WAYS: [&[&str]; 3] = [&["-Q", "in"], &["--capture", "xdp"], &IN_KERNEL];

fn between(wall: &Space, how: &[&str]) -> Stream {
    start(wall, &[&["run", "-e", BETWEEN, "-i", "eth0", "-i", "eth1"], how].concat())
}

#[test]
fn a_bridge_is_closed_before_its_run_and_once_it_is_killed() {
    let test = "wires::passing::a_bridge_is_closed_before_its_run_and_once_it_is_killed";
    let Some(sides) = Sides::new(test) else { return };
    for how in WAYS {
        sides.is_closed(22);
        let run = between(&sides.wall, how);
        sides.opens(22);
        sides.is_closed(23);
        run.kill();
        sides.is_closed(22);
    }
}

#[test]
fn a_bridge_closes_with_its_program() {
    let test = "wires::passing::a_bridge_closes_with_its_program";
    let Some(sides) = Sides::new(test) else { return };
    for how in WAYS {
        let folder = tempfile::tempdir().expect("a folder");
        let socket = folder.path().join("socket").display().to_string();
        let control = format!("--control={socket}");
        let run = between(&sides.wall, &[how, &[&control]].concat());
        let ctl = |args: &[&str]| {
            let output = sides.wall.attempt(&root(), &[&["ctl", "-S", &socket], args].concat());
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        };
        sides.opens(22);
        ctl(&["remove", "e"]);
        sides.is_closed(22);
        // The run has its outputs from the start.
        ctl(&["add", "--name", "again", "-e", BETWEEN]);
        sides.opens(22);
        sides.is_closed(23);
        run.interrupt();
    }
}

/// A function that stands before the host lets everything through when it does not run.
#[test]
fn the_host_gets_everything_before_a_run_and_once_it_is_killed() {
    let test = "wires::passing::the_host_gets_everything_before_a_run_and_once_it_is_killed";
    let (Some(host), Some(client)) = (Space::new(test), Space::new(test)) else { return };
    if !attach(test, &host, "eth0", &client, "192.0.2.1") {
        return;
    }
    host.ip(&format!("address add {SERVER}/24 dev eth0"));
    let _listeners = listen(&host);
    let opens = |port| until_some("it is open", || connect(&client, port, ANSWER));
    opens(23);
    let query = "packets | branch when arp or tcp.dport == 22 -> pass else -> drop";
    let run = ["run", "-e", query, "-i", "eth0", "-w", "host:"];
    let run = start(&host, &[&run[..], &IN_KERNEL].concat());
    opens(22);
    assert!(connect(&client, 23, NONE).is_none(), "that is closed");
    run.kill();
    opens(23);
}

/// A capture takes copies: the host gets what a program drops.
#[test]
fn what_a_program_drops_reaches_the_host_of_a_capture() {
    let test = "wires::passing::what_a_program_drops_reaches_the_host_of_a_capture";
    let (Some(host), Some(client)) = (Space::new(test), Space::new(test)) else { return };
    if !attach(test, &host, "eth0", &client, "192.0.2.1") {
        return;
    }
    host.ip(&format!("address add {SERVER}/24 dev eth0"));
    let _listeners = listen(&host);
    for how in [&["-Q", "in"][..], &["--capture", "tcx"]] {
        let query = "packets | branch when arp -> drop else -> drop";
        let run = start(&host, &[&["run", "-e", query, "-i", "eth0"], how].concat());
        until_some("it is open", || connect(&client, 23, ANSWER));
        let ledger = run.interrupt();
        assert!(ledger.contains("dropped"), "{ledger}");
    }
}

/// A list that is full forgets the host that it has heard of least lately: one that was shut out
/// gets through again, and one that was let in does not any more.
#[test]
fn a_list_that_is_full_forgets() {
    let frame = |host: u8, port: u16| {
        let frame = Frame::ethernet().ipv4([192, 0, 2, host], [198, 51, 100, 1]);
        frame.tcp(4000, port).bytes()
    };
    let sent = [(1, 23), (1, 80), (2, 80), (3, 80), (1, 80)].map(|(host, port)| frame(host, port));
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("in.pcap"), capture(LinkType::ETHERNET, &sent))
        .expect("writes");
    let passed = |max: u8, ends: &str| {
        let known = "packets | scan known = false by ip.src idle 1h";
        let query =
            format!("{known} max {max} => known or tcp.dport == 23 | branch when known -> {ends}");
        let args = ["run", "-e", &query, "-r", "in.pcap", "-w", "out.pcap"];
        let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
        let output = command.args(args).current_dir(folder.path()).output();
        let output = output.expect("the binary runs");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{said}");
        assert_eq!(said.contains("evicted"), max == 2, "{said}");
        let sources = frames(&folder.path().join("out.pcap"));
        sources.iter().map(|(_, bytes)| bytes[29]).collect::<Vec<u8>>()
    };
    let (deny, allow) = ("drop else -> pass", "pass else -> drop");
    assert_eq!((passed(3, deny), passed(3, allow)), (vec![2, 3], vec![1, 1, 1]));
    assert_eq!((passed(2, deny), passed(2, allow)), (vec![2, 3, 1], vec![1, 1]));
}
