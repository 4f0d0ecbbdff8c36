//! Real TCP through a bridge and a firewall, with one worker and two: what waits for an answer
//! before it sends more.

use crate::common::root;
use crate::functions::{SERVER, attach, start};
use crate::has_line;
use crate::space::{Space, Stream};
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::time::Duration;

/// Bytes that each side sends.
const BYTES: usize = 8 << 20;

/// How long a side waits for the other one before it calls the connection stalled.
const PATIENCE: Duration = Duration::from_secs(60);

/// The byte at a place of what is sent.
fn byte(at: usize) -> u8 {
    (at * 7 + (at >> 11) * 13) as u8
}

/// Sends all that there is to send.
fn send(stream: &mut TcpStream) {
    let all: Vec<u8> = (0..BYTES).map(byte).collect();
    stream.write_all(&all).expect("the other side takes it");
    stream.shutdown(Shutdown::Write).expect("ends");
}

/// Receives until the other side ends; panics where a byte is not the one that was sent.
fn receive(stream: &mut TcpStream) {
    let mut all = Vec::new();
    stream.read_to_end(&mut all).expect("the other side sends it");
    assert_eq!(all.len(), BYTES);
    assert!(all.iter().enumerate().all(|(at, &got)| got == byte(at)), "a byte is another");
}

/// Lets neither reading nor writing wait without end.
fn bounded(stream: TcpStream) -> TcpStream {
    stream.set_read_timeout(Some(PATIENCE)).expect("sets");
    stream.set_write_timeout(Some(PATIENCE)).expect("sets");
    stream
}

/// The segments that a host received, and how many of these came ahead of one before them.
///
/// Segments that are sent again would also count how long a busy machine lets a bridge wait: after
/// 200 ms a sender takes all that is under way for lost. They arrive twice then, not out of order.
fn segments(host: &Space) -> (u64, u64) {
    let read = |path| host.run(move || std::fs::read_to_string(path)).expect("counters");
    let counter = |text: &str, table: &str, name: &str| -> u64 {
        let mut lines = text.lines().filter_map(|line| line.strip_prefix(table));
        let (names, values) = (lines.next().expect("names"), lines.next().expect("values"));
        let mut both = names.split(' ').zip(values.split(' '));
        both.find(|(this, _)| *this == name).and_then(|(_, n)| n.parse().ok()).expect("a counter")
    };
    let received = counter(&read("/proc/thread-self/net/snmp"), "Tcp: ", "InSegs");
    let early = counter(&read("/proc/thread-self/net/netstat"), "TcpExt: ", "TCPOFOQueue");
    (received, early)
}

/// A client on one side, a server on the other, and what stands between them.
struct Between {
    client: Space,
    middle: Space,
    server: Space,
}

impl Between {
    fn new(test: &str) -> Option<Between> {
        let [Some(client), Some(middle), Some(server)] = [(); 3].map(|()| Space::new(test)) else {
            return None;
        };
        let there = attach(test, &middle, "eth0", &client, "192.0.2.1")
            && attach(test, &middle, "eth1", &server, SERVER);
        there.then_some(Between { client, middle, server })
    }

    /// Sends in both directions, one after the other, while these run; all must arrive, no packet
    /// be lost on its way here, and few come out of order.
    fn carry(&self, runs: Vec<Stream>) {
        let before = [&self.client, &self.server].map(segments);
        let listener = self.server.run(|| TcpListener::bind((SERVER, 0)).expect("binds"));
        let to = listener.local_addr().expect("an address");
        let server = std::thread::spawn(move || {
            let mut stream = bounded(listener.accept().expect("a client").0);
            receive(&mut stream);
            send(&mut stream);
        });
        let connect = move || TcpStream::connect_timeout(&to, PATIENCE).expect("connects");
        let mut stream = bounded(self.client.run(connect));
        send(&mut stream);
        receive(&mut stream);
        server.join().expect("no panic");
        for (host, (received, early)) in [&self.client, &self.server].into_iter().zip(before) {
            let now = segments(host);
            let (received, early) = (now.0 - received, now.1 - early);
            assert!(early * 50 <= received, "{early} of {received} segments came out of order");
        }
        for run in runs {
            let ledger = run.interrupt();
            assert!(!ledger.lines().any(|line| line.starts_with("lost")), "{ledger}");
            assert!(!ledger.contains("refused"), "{ledger}");
        }
    }
}

/// Idle workers kept blocks of the ring, which was full then with nothing in it; and whoever had
/// nothing to read waited for the wire with packets in hand.
#[test]
fn tcp_gets_through_a_bridge_of_several_workers() {
    let Some(between) = Between::new("wires::bridge::tcp_gets_through") else { return };
    let both = "packets | branch when interface == \"eth1\" -> forward \"eth0\" \
                else -> forward \"eth1\"";
    for workers in ["1", "2"] {
        let args = ["run", "-e", both, "-i", "eth0", "-i", "eth1", "-Q", "in", "-j", workers];
        between.carry(vec![start(&between.middle, &args)]);
    }
    for workers in ["1", "2"] {
        let way = |from: &str, to: &str| {
            let args = ["run", "-e", "packets | pass", "-i", from, "-Q", "in", "-w", to];
            start(&between.middle, &[&args[..], &["-j", workers]].concat())
        };
        between.carry(vec![way("eth0", "eth1"), way("eth1", "eth0")]);
    }
}

/// The same where packets leave by AF_XDP. This was a tenth as fast as by AF_PACKET: frames came in
/// by blocks of the ring then, each up to 20 ms late, and no test sent TCP through such an outlet.
#[test]
fn tcp_gets_through_a_bridge_that_sends_by_af_xdp() {
    let Some(between) = Between::new("wires::bridge::tcp_gets_through_af_xdp") else { return };
    let both = "packets | branch when interface == \"eth1\" -> forward \"xdp:eth0\" \
                else -> forward \"xdp:eth1\"";
    for workers in ["1", "2"] {
        let args = ["run", "-e", both, "-i", "eth0", "-i", "eth1", "-Q", "in", "-j", workers];
        between.carry(vec![start(&between.middle, &args)]);
        let way = |from: &str, to: &str| {
            let args = ["run", "-e", "packets | pass", "-i", from, "-Q", "in", "-w", to];
            start(&between.middle, &[&args[..], &["-j", workers]].concat())
        };
        between.carry(vec![way("eth0", "xdp:eth1"), way("eth1", "xdp:eth0")]);
    }
}

/// The same where packets are spread by key.
#[test]
fn tcp_gets_through_a_firewall_of_several_workers() {
    let Some(between) = Between::new("wires::bridge::tcp_gets_through_a_firewall") else { return };
    let firewall = "packets | scan seen = 0 by conn idle 60s max 1000 => seen + 1 \
                    | branch when interface == \"eth1\" -> forward \"eth0\" \
                    when arp or tcp and seen > 0 -> forward \"eth1\" else -> drop";
    for workers in ["1", "2"] {
        let args = ["run", "-e", firewall, "-i", "eth0", "-i", "eth1", "-Q", "in", "-j", workers];
        between.carry(vec![start(&between.middle, &args)]);
    }
}

/// A frame goes on though no further one follows it: ARP and the first segment of a connection wait
/// for each other. Each asks only when it has the answer to the one before.
#[test]
fn a_packet_goes_on_without_one_after_it() {
    let Some(between) = Between::new("wires::bridge::a_packet_goes_on") else { return };
    for more in [&[][..], &["--immediate-mode"]] {
        let program = "packets | branch when interface == \"eth1\" -> forward \"eth0\" \
                       else -> forward \"eth1\"";
        let args = ["run", "-e", program, "-i", "eth0", "-i", "eth1", "-Q", "in", "-j", "2"];
        let run = start(&between.middle, &[&args[..], more].concat());
        let bind = |host: &Space, address: &'static str| {
            host.run(move || {
                let socket = std::net::UdpSocket::bind(address).expect("binds");
                let patience = std::time::Duration::from_secs(60);
                socket.set_read_timeout(Some(patience)).expect("sets");
                socket
            })
        };
        let (asks, answers) =
            (bind(&between.client, "192.0.2.1:0"), bind(&between.server, "192.0.2.2:0"));
        let to = answers.local_addr().expect("an address");
        let mut buffer = [0; 8];
        for n in 0..200u64 {
            asks.send_to(&n.to_be_bytes(), to).expect("sends");
            let (len, from) = answers.recv_from(&mut buffer).expect("the question comes");
            answers.send_to(&buffer[..len], from).expect("sends");
            let (len, _) = asks.recv_from(&mut buffer).expect("the answer comes");
            assert_eq!(buffer[..len], n.to_be_bytes());
        }
        let ledger = run.interrupt();
        assert!(!ledger.lines().any(|line| line.starts_with("lost")), "{ledger}");
        has_line(&ledger, "sent");
    }
    let output = between.middle.attempt(&root(), &["run", "-e", "packets", "--immediate-mode"]);
    assert_eq!(output.status.code(), Some(2), "it is of captures from interfaces");
}
