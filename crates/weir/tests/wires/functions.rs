//! The two network functions of the library, between namespaces, with real clients and servers.

use crate::common::{root, skip, workplace};
use crate::has_line;
use crate::in_kernel::IN_KERNEL;
use crate::over_wires::{until, until_some};
use crate::space::{Space, Stream};
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::process::{Command, Stdio};
use std::time::Duration;

/// How long an attempt to connect waits for an answer; and how long one that gets none, less than
/// after which the kernel would try again.
const ATTEMPT: Duration = Duration::from_secs(3);
const KNOCK: Duration = Duration::from_millis(100);

/// The address that servers have, and hardware addresses.
pub(crate) const SERVER: &str = "192.0.2.2";
const SERVER_MAC: &str = "02:00:00:00:00:02";
const CLIENT_MAC: &str = "02:00:00:00:00:01";

/// Puts an interface of the function opposite one of a host with this address, whose checksums are
/// made before frames leave it. False after saying that `ethtool` is not installed.
pub(crate) fn attach(test: &str, function: &Space, one: &str, host: &Space, address: &str) -> bool {
    function.ip(&format!("link add {one} type veth peer name h0"));
    function.ip(&format!("link set h0 netns {}", host.task));
    function.ip(&format!("link set {one} up"));
    host.ip(&format!("address add {address}/24 dev h0"));
    let mac = if address == SERVER { SERVER_MAC } else { CLIENT_MAC };
    host.ip(&format!("link set h0 address {mac}"));
    host.ip("link set h0 up");
    let off = ["-K", "h0", "tx", "off", "sg", "off", "tso", "off", "gso", "off"];
    let done = host.run(move || Command::new("ethtool").args(off).stdout(Stdio::null()).status());
    match done {
        Ok(status) => assert!(status.success(), "ethtool"),
        Err(_) => skip(test, "ethtool is not installed"),
    }
    done.is_ok()
}

/// Starts Weir in the namespace of the function; it listens when this is back.
pub(crate) fn start(function: &Space, args: &[&str]) -> Stream {
    let run = function.live(&root(), args);
    run.wait_for_report("listening on", 1);
    run
}

fn connect(host: &Space, port: u16, wait: Duration) -> Option<TcpStream> {
    let to: SocketAddr = format!("{SERVER}:{port}").parse().expect("an address");
    host.run(move || TcpStream::connect_timeout(&to, wait).ok())
}

/// A client gets through to port 22 only after the right knock, and its connection works then.
#[test]
fn the_firewall_opens_to_those_who_know_the_knock() {
    let test = "wires::functions::the_firewall_opens_to_those_who_know_the_knock";
    let spaces = [(); 3].map(|()| Space::new(test));
    let [Some(client), Some(wall), Some(server)] = spaces else { return };
    if !attach(test, &wall, "eth0", &client, "192.0.2.1")
        || !attach(test, &wall, "eth1", &server, SERVER)
    {
        return;
    }
    // The firewall lets only TCP through, so nobody can ask for addresses.
    client.ip(&format!("neighbor add {SERVER} lladdr {SERVER_MAC} dev h0"));
    server.ip(&format!("neighbor add 192.0.2.1 lladdr {CLIENT_MAC} dev h0"));
    let listener = server.run(|| TcpListener::bind("192.0.2.2:22").expect("binds"));
    let echo = std::thread::spawn(move || {
        // One that the client gave up sends nothing.
        for stream in listener.incoming() {
            let (mut stream, mut bytes) = (stream.expect("a client"), [0; 5]);
            if stream.read_exact(&mut bytes).is_ok() {
                return stream.write_all(&bytes).expect("takes them");
            }
        }
    });
    let inward = ["run", "queries/port_knocking.weir", "-l", "-o", "csv"];
    let inward = start(&wall, &[&inward[..], &["-i", "eth0", "-Q", "in", "-w", "eth1"]].concat());
    let outward = ["run", "-e", "packets | pass", "-i", "eth1", "-Q", "in", "-w", "eth0"];
    let outward = start(&wall, &outward);

    let dropped = |n: usize| {
        let rows = || inward.said().lines().filter(|row| row.ends_with(",drop")).count();
        until_some("a packet was dropped", || (rows() > n).then(rows))
    };
    assert!(connect(&client, 22, ATTEMPT).is_none(), "closed to one who has not knocked");
    let before = dropped(0);
    for port in [5123, 7345, 6234, 8456] {
        connect(&client, port, KNOCK);
    }
    assert!(connect(&client, 22, ATTEMPT).is_none(), "closed to one who knocked in another order");
    dropped(before);
    // A knock may be sent twice by a slow machine, and start over.
    let mut stream = until_some("the firewall opens", || {
        for port in [5123, 6234, 7345, 8456] {
            connect(&client, port, KNOCK);
        }
        connect(&client, 22, ATTEMPT)
    });
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("sets");
    stream.write_all(b"hello").expect("takes it");
    let mut answer = [0; 5];
    stream.read_exact(&mut answer).expect("an answer");
    assert_eq!(&answer, b"hello");
    echo.join().expect("no panic");
    for (run, interface) in [(inward, "eth0"), (outward, "eth1")] {
        let ledger = run.interrupt();
        assert!(ledger.contains("passed") && !ledger.contains("refused"), "{interface}: {ledger}");
    }
}

/// Both directions in one program, which tells them apart by the interface. A frame never goes back
/// where it came from, so sending each to all interfaces is a hub.
#[test]
fn one_program_stands_between_two_interfaces() {
    let test = "wires::functions::one_program_stands_between_two_interfaces";
    let spaces = [(); 3].map(|()| Space::new(test));
    let [Some(client), Some(wall), Some(server)] = spaces else { return };
    if !attach(test, &wall, "eth0", &client, "192.0.2.1")
        || !attach(test, &wall, "eth1", &server, SERVER)
    {
        return;
    }
    let listen = |port: u16| server.run(move || TcpListener::bind((SERVER, port)).expect("binds"));
    let (_open, _closed) = (listen(22), listen(23));
    let firewall = "packets | branch when interface == \"eth1\" -> forward \"eth0\" \
                    when arp or tcp.dport == 22 -> forward \"eth1\" else -> drop";
    let hub = "packets | broadcast to (\"eth0\", \"eth1\")";
    let both = ["-i", "eth0", "-i", "eth1", "-Q", "in"];
    let on = |program| start(&wall, &[&["run", "-e", program], &both[..]].concat());

    let run = on(firewall);
    assert!(connect(&client, 22, ATTEMPT).is_some());
    assert!(connect(&client, 23, KNOCK).is_none());
    let ledger = run.interrupt();
    assert!(ledger.contains("dropped") && !ledger.contains("refused"), "{ledger}");

    // An interface may be known by other names.
    wall.ip("link property add dev eth1 altname enp1s0");
    let run = on(&hub.replace("eth1", "enp1s0"));
    assert!(connect(&client, 22, ATTEMPT).is_some());
    assert!(connect(&client, 23, ATTEMPT).is_some());
    let ledger = run.interrupt();
    for interface in ["eth0", "enp1s0"] {
        let refused = |line: &&str| line.starts_with("refused") && line.contains(interface);
        let line = ledger.lines().find(refused).expect("some came by it");
        assert!(line.ends_with("that came by it"), "{ledger}");
    }

    // Packets that leave are captured, too, and would be sent on.
    let refused = |to: &str, args: &[&str], why: &str| {
        let program = format!("packets | forward \"{to}\"");
        let output = wall.attempt(&root(), &[&["run", "-e", &program], args].concat());
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{told}");
        assert!(told.contains(&format!("{to}: {why}")), "{told}");
    };
    for name in ["eth1", "enp1s0", "xdp:eth1"] {
        refused(name, &both[..4], "packets are captured on this interface that leave by it");
        refused(name, &both[2..4], "packets are captured on this interface, and would go back");
        refused(name, &["-i", "any", "-Q", "in"], "packets are captured on this interface, and");
    }
    let xdp = [&both[..4], &["--capture", "xdp"]].concat();
    refused("xdp:eth1", &xdp, "all its queues are captured by AF_XDP");
}

/// A DNS query comes to all workers; of other traffic, each pair of hosts to one, always the same.
#[test]
fn the_load_balancer_spreads_pairs_and_copies_dns() {
    spread("wires::functions::the_load_balancer_spreads_pairs_and_copies_dns", &["-Q", "in"]);
}

/// The kernel steers all that can't be DNS.
#[test]
fn the_load_balancer_does_so_in_the_kernel() {
    let test = "wires::functions::the_load_balancer_does_so_in_the_kernel";
    let Some(ledger) = spread(test, &IN_KERNEL) else { return };
    has_line(&ledger, &format!("acted {} dropped or handed out", 3 * HOSTS.len()));
}

/// The hosts that speak to the balancer's workers.
const HOSTS: std::ops::Range<u8> = 10..50;

/// Spreads the packets of hosts and a DNS query; the ledger.
fn spread(test: &str, how: &[&str]) -> Option<String> {
    let spaces = [(); 5].map(|()| Space::new(test));
    let [Some(client), Some(balancer), Some(a), Some(b), Some(c)] = spaces else { return None };
    if !attach(test, &balancer, "eth0", &client, "192.0.2.1") {
        return None;
    }
    client.ip(&format!("neighbor add {SERVER} lladdr {SERVER_MAC} dev h0"));
    for host in HOSTS {
        client.ip(&format!("address add 192.0.2.{host}/24 dev h0"));
    }
    let mut sockets = Vec::new();
    for (worker, interface) in [(&a, "w1"), (&b, "w2"), (&c, "w3")] {
        attach(test, &balancer, interface, worker, SERVER);
        sockets.push([53, 7000].map(|port| {
            worker.run(move || {
                let socket = UdpSocket::bind((SERVER, port)).expect("binds");
                socket.set_nonblocking(true).expect("sets");
                socket
            })
        }));
    }
    let args = ["run", "queries/load_balancer.weir", "-i", "eth0"];
    let workers = ["-p", "first=w1", "-p", "second=w2", "-p", "third=w3"];
    let run = start(&balancer, &[&args[..], &workers, how].concat());

    // www.example.test, A.
    let query = b"\x12\x34\x01\0\0\x01\0\0\0\0\0\0\x03www\x07example\x04test\0\0\x01\0\x01";
    let send = |from: String, port: u16, bytes: Vec<u8>| {
        client.run(move || {
            let socket = UdpSocket::bind(from).expect("binds");
            socket.send_to(&bytes, (SERVER, port)).expect("sends");
        });
    };
    send("192.0.2.1:0".to_owned(), 53, query.to_vec());
    let mut buffer = [0; 512];
    let mut take = |socket: &UdpSocket| match socket.recv_from(&mut buffer) {
        Ok((n, from)) => Some((buffer[..n].to_vec(), from)),
        Err(_) => None,
    };
    for [dns, _] in &sockets {
        let (got, _) = until_some("a worker has the query", || take(dns));
        assert_eq!(got, query);
    }
    for round in 0..3u8 {
        for host in HOSTS {
            send(format!("192.0.2.{host}:0"), 7000, vec![round]);
        }
    }
    // Of each worker, how often it heard each host.
    let mut heard = vec![std::collections::BTreeMap::<_, usize>::new(); 3];
    until("all packets are there", || {
        for (heard, [_, other]) in heard.iter_mut().zip(&sockets) {
            while let Some((_, from)) = take(other) {
                *heard.entry(from.ip()).or_default() += 1;
            }
        }
        let n: usize = heard.iter().flat_map(|heard| heard.values()).sum();
        n == 3 * HOSTS.len()
    });
    assert!(heard.iter().all(|heard| !heard.is_empty()), "{heard:?}");
    assert!(heard.iter().flat_map(|heard| heard.values()).all(|n| *n == 3), "{heard:?}");
    let ledger = run.interrupt();
    assert!(!ledger.contains("refused"), "{ledger}");
    Some(ledger)
}

/// Packets that are captured on an interface do not go back by it.
#[test]
fn a_loop_is_refused() {
    let test = "wires::functions::a_loop_is_refused";
    let Some(space) = Space::new(test) else { return };
    let folder = workplace();
    space.veth("v0", "v1");
    for args in
        [&["-e", "packets | pass", "-w", "v0"][..], &["-e", "packets | mirror \"v0\" | limit 1"]]
    {
        let args = [&["run", "-i", "v0"], args].concat();
        let output = space.attempt(folder.path(), &args);
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{told}");
        assert!(told.contains("v0: packets are captured on this interface"), "{told}");
    }
    // Packets that are written to a device come in by it.
    space.ip("tuntap add dev t0 mode tap");
    for on in [&["-i", "t0"][..], &["-i", "t0", "-i", "v0", "-Q", "in"], &["-i", "any"]] {
        let args = [&["run", "-e", "packets | pass", "-w", "tap:t0"], on].concat();
        let output = space.attempt(folder.path(), &args);
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{told}");
        assert!(told.contains("tap:t0: packets that are written there come in by t0"), "{told}");
    }
}
