//! Packet functions that the kernel runs by itself, in XDP, between namespaces.

use crate::common::root;
use crate::functions::{SERVER, attach, start};
use crate::has_line;
use crate::over_wires::{until, until_some};
use crate::space::Space;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::time::Duration;

/// The options of a run that has the kernel decide.
pub(crate) const IN_KERNEL: [&str; 4] = ["--capture", "xdp", "--offload", "require"];

/// A firewall in both directions: only ARP and connections to port 22 get through.
const FIREWALL: &str = "packets | branch when interface == \"eth1\" -> forward \"eth0\" \
                        when arp or tcp.dport == 22 -> forward \"eth1\" else -> drop";

fn connect(host: &Space, port: u16, wait: Duration) -> Option<TcpStream> {
    let to: SocketAddr = format!("{SERVER}:{port}").parse().expect("an address");
    host.run(move || TcpStream::connect_timeout(&to, wait).ok())
}

/// How many packets a line of the last ledger has.
pub(crate) fn count(ledger: &str, name: &str) -> u64 {
    let line = ledger.lines().rfind(|line| line.starts_with(name));
    let number = line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok());
    number.unwrap_or_default()
}

/// The programs of XDP on an interface, as `ip` shows them.
fn programs(space: &Space, interface: &'static str) -> bool {
    let show = move || Command::new("ip").args(["link", "show", interface]).output();
    let output = space.run(show).expect("ip, of iproute2");
    String::from_utf8_lossy(&output.stdout).contains("xdp")
}

#[test]
fn a_firewall_in_the_kernel_lets_through_what_it_may() {
    let test = "wires::in_kernel::a_firewall_in_the_kernel_lets_through_what_it_may";
    let spaces = [(); 3].map(|()| Space::new(test));
    let [Some(client), Some(wall), Some(server)] = spaces else { return };
    if !attach(test, &wall, "eth0", &client, "192.0.2.1")
        || !attach(test, &wall, "eth1", &server, SERVER)
    {
        return;
    }
    let listen = |port: u16| server.run(move || TcpListener::bind((SERVER, port)).expect("binds"));
    let (open, _closed) = (listen(22), listen(23));
    let both = ["run", "-e", FIREWALL, "-i", "eth0", "-i", "eth1"];
    let both = [&both[..], &IN_KERNEL].concat();
    // The other end of a virtual wire takes frames of drivers only if it polls.
    for (gro, mode) in [("off", "generic"), ("on", "native")] {
        for host in [&client, &server] {
            let set = move || Command::new("ethtool").args(["-K", "h0", "gro", gro]).status();
            assert!(host.run(set).is_ok_and(|status| status.success()), "ethtool");
        }
        let run = start(&wall, &both);
        run.wait_for_report(&format!(", {mode}"), 2);
        run.wait_for_report("the kernel (XDP) runs 1 stage of pipeline 1, and hands packets", 2);
        let wait = Duration::from_secs(3);
        let mut stream = connect(&client, 22, wait).expect("the firewall lets it through");
        assert!(connect(&client, 23, Duration::from_millis(100)).is_none(), "that is closed");
        let (mut peer, _) = open.accept().expect("it came");
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("sets");
        let (sent, mut got) = (vec![7; 100_000], vec![0; 100_000]);
        let copy = sent.clone();
        let writer = std::thread::spawn(move || peer.write_all(&copy).expect("takes them"));
        stream.read_exact(&mut got).expect("an answer");
        writer.join().expect("no panic");
        assert!(got == sent, "what was sent came");
        drop(stream);
        let ledger = run.interrupt();
        let [received, acted, filtered] =
            ["received", "acted", "filtered"].map(|name| count(&ledger, name));
        assert!(
            acted > 50 && received == acted + filtered + count(&ledger, "processed"),
            "{ledger}"
        );
        let out = |name: &str| {
            let line = ledger.lines().find(|line| line.contains(&format!(" to {name}, ")));
            line.map_or(0, |line| count(line, "sent"))
        };
        let (dropped, done) = (count(&ledger, "dropped"), received - filtered);
        assert!(dropped > 0 && done == dropped + out("eth0") + out("eth1"), "{ledger}");
        assert!(!ledger.contains("refused"), "{ledger}");
    }
}

/// A firewall whose port 22 is closed to those who have not knocked.
const KNOCK: &str = "
    packets | where interface == \"eth1\" | forward \"eth0\"
    packets | where interface == \"eth0\" and arp | forward \"eth1\"
    packets
    | where interface == \"eth0\" and tcp
    | scan stage = 0 by ip.src, ip.dst idle 60s =>
        match (stage, tcp.dport) {
            (0, 5123) => 1,
            (1, 6234) => 2,
            (2, 7345) => 3,
            (3, 8456) or (4, _) => 4,
            _ => 0,
        }
    | where tcp.dport == 22
    | branch when stage == 4 -> forward \"eth1\" else -> drop";

/// Workers go on with what the kernel knows of a client, while programs come and go.
#[test]
fn a_firewall_remembers_knocks_while_programs_come_and_go() {
    let test = "wires::in_kernel::a_firewall_remembers_knocks_while_programs_come_and_go";
    let spaces = [(); 3].map(|()| Space::new(test));
    let [Some(client), Some(wall), Some(server)] = spaces else { return };
    if !attach(test, &wall, "eth0", &client, "192.0.2.1")
        || !attach(test, &wall, "eth1", &server, SERVER)
    {
        return;
    }
    let open = server.run(|| TcpListener::bind((SERVER, 22)).expect("binds"));
    for host in [&client, &server] {
        let set = || Command::new("ethtool").args(["-K", "h0", "gro", "on"]).status();
        assert!(host.run(set).is_ok_and(|status| status.success()), "ethtool");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let socket = folder.path().join("socket").display().to_string();
    let control = format!("--control={socket}");
    let run = ["run", "-e", KNOCK, "-i", "eth0", "-i", "eth1", "-o", "json", &control];
    let run = start(&wall, &[&run[..], &IN_KERNEL].concat());
    run.wait_for_report("4 stages of pipeline 3, and hands packets", 2);
    let ctl = |args: &[&str]| {
        let output = wall.attempt(&root(), &[&["ctl", "-S", &socket], args].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    let (wait, knock) = (Duration::from_secs(3), Duration::from_millis(20));
    let mut round = 0;
    // A knock may be sent twice by a slow machine, and start over.
    let stream = until_some("the firewall opens", || {
        round += 1;
        connect(&client, 5123, knock);
        connect(&client, 6234, knock);
        ctl(&["add", "--name", "more", "-e", "packets | where tcp | summarize n = count()"]);
        connect(&client, 7345, knock);
        ctl(&["remove", "more"]);
        connect(&client, 8456, knock);
        connect(&client, 22, wait)
    });
    let _peer = open.accept().expect("it came");
    drop(stream);
    run.wait_for_report("the kernel hands all packets up", round);
    run.wait_for_report("the kernel runs its part again", round);
    let ledger = run.interrupt();
    let [received, acted, filtered, processed] =
        ["received", "acted", "filtered", "processed"].map(|name| count(&ledger, name));
    assert!(acted > 0 && processed > 0, "{ledger}");
    assert!(received == acted + filtered + processed, "{ledger}");
}

/// The kernel holds what it knows of each client.
#[test]
fn a_firewall_in_the_kernel_opens_to_those_who_know_the_knock() {
    let test = "wires::in_kernel::a_firewall_in_the_kernel_opens_to_those_who_know_the_knock";
    let spaces = [(); 3].map(|()| Space::new(test));
    let [Some(client), Some(wall), Some(server)] = spaces else { return };
    if !attach(test, &wall, "eth0", &client, "192.0.2.1")
        || !attach(test, &wall, "eth1", &server, SERVER)
    {
        return;
    }
    let open = server.run(|| TcpListener::bind((SERVER, 22)).expect("binds"));
    for host in [&client, &server] {
        let set = || Command::new("ethtool").args(["-K", "h0", "gro", "on"]).status();
        assert!(host.run(set).is_ok_and(|status| status.success()), "ethtool");
    }
    let run = ["run", "-e", KNOCK, "-i", "eth0", "-i", "eth1"];
    let run = start(&wall, &[&run[..], &IN_KERNEL].concat());
    run.wait_for_report("4 stages of pipeline 3, and hands packets", 2);
    let (wait, knock) = (Duration::from_secs(3), Duration::from_millis(20));
    assert!(connect(&client, 22, Duration::from_millis(200)).is_none(), "it is closed");
    for port in [5123, 7345, 6234, 8456] {
        connect(&client, port, knock);
    }
    assert!(connect(&client, 22, Duration::from_millis(200)).is_none(), "that was another order");
    // A knock may be sent twice by a slow machine, and start over.
    let mut stream = until_some("the firewall opens", || {
        for port in [5123, 6234, 7345, 8456] {
            connect(&client, port, knock);
        }
        connect(&client, 22, wait)
    });
    let (mut peer, _) = open.accept().expect("it came");
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("sets");
    peer.write_all(b"hello").expect("takes it");
    let mut answer = [0; 5];
    stream.read_exact(&mut answer).expect("an answer");
    assert_eq!(&answer, b"hello");
    drop((stream, peer));
    let ledger = run.interrupt();
    let [received, acted, filtered, processed] =
        ["received", "acted", "filtered", "processed"].map(|name| count(&ledger, name));
    assert!(acted > 10 && filtered > 0, "{ledger}");
    assert!(received == acted + filtered + processed, "{ledger}");
    assert!(count(&ledger, "dropped") > 0 && !ledger.contains("refused"), "{ledger}");
}

#[test]
fn nothing_stays_attached_when_a_run_is_killed() {
    let test = "wires::in_kernel::nothing_stays_attached_when_a_run_is_killed";
    let Some(space) = Space::new(test) else { return };
    space.ip("link add eth0 type veth peer name h0");
    space.ip("link add eth1 type veth peer name h1");
    for name in ["eth0", "h0", "eth1", "h1"] {
        space.ip(&format!("link set {name} up"));
    }
    let run = ["run", "-e", FIREWALL, "-i", "eth0", "-i", "eth1"];
    let run = start(&space, &[&run[..], &IN_KERNEL].concat());
    assert!(programs(&space, "eth0"), "it is attached");
    run.kill();
    until("it is gone", || !programs(&space, "eth0"));
}

/// An output that goes down takes nothing: its packets go up, and are refused and counted there.
#[test]
fn an_output_that_is_down_loses_no_packet_uncounted() {
    let test = "wires::in_kernel::an_output_that_is_down_loses_no_packet_uncounted";
    let Some(space) = Space::new(test) else { return };
    for (one, other) in [("eth0", "h0"), ("eth1", "h1")] {
        space.veth(one, other);
    }
    space.ip("link set eth0 mtu 1500");
    space.ip("link set eth1 down");
    let run = ["run", "-e", "packets | forward \"eth1\"", "-i", "eth0", "--stats", "1"];
    let run = start(&space, &[&run[..], &IN_KERNEL].concat());
    let send = || {
        let args = ["run", "-e", "packets | pass", "-r", "fixtures/dns.pcap", "-w", "h0"];
        space.weir(&root(), &args);
    };
    send();
    run.wait_for_report("eth1: ", 1);
    space.ip("link set eth1 up");
    // The kernel level looks for outputs that are back at intervals of its own: until then packets
    // take the way through user space.
    until("the kernel hands packets out again", || {
        send();
        run.has_reported("\nacted")
    });
    let ledger = run.interrupt();
    has_line(&ledger, "refused");
    let (received, acted) = (count(&ledger, "received"), count(&ledger, "acted"));
    assert!(acted > 0 && received == acted + count(&ledger, "processed"), "{ledger}");
    let done = count(&ledger, "refused") + count(&ledger, "sent");
    assert_eq!(done, received, "{ledger}");
}
