//! Functions that stand before the host that captures: the kernel gives it the packets that it may
//! have.

use crate::common::root;
use crate::functions::{SERVER, attach, start};
use crate::in_kernel::{IN_KERNEL, count};
use crate::over_wires::until;
use crate::space::Space;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

/// The host and a client opposite it; `None` after saying what is missing.
fn host_and_client(test: &str) -> Option<(Space, Space)> {
    let (host, client) = (Space::new(test)?, Space::new(test)?);
    if !attach(test, &host, "eth0", &client, "192.0.2.1") {
        return None;
    }
    host.ip(&format!("address add {SERVER}/24 dev eth0"));
    Some((host, client))
}

fn connect(client: &Space, port: u16, wait: Duration) -> Option<TcpStream> {
    let to: SocketAddr = format!("{SERVER}:{port}").parse().expect("an address");
    client.run(move || TcpStream::connect_timeout(&to, wait).ok())
}

/// The end of a run that stands before the host of `eth0`.
const TO_HOST: [&str; 4] = ["-i", "eth0", "-w", "host:"];

/// A client reaches the open port of a server on the capturing host, and not the closed one, where
/// a server listens as well.
#[test]
fn a_firewall_stands_before_the_host_itself() {
    let test = "wires::to_host::a_firewall_stands_before_the_host_itself";
    let Some((host, client)) = host_and_client(test) else { return };
    let listen = |port: u16| host.run(move || TcpListener::bind((SERVER, port)).expect("binds"));
    let (open, _closed) = (listen(22), listen(23));
    let query = "packets | branch when arp or tcp.dport == 22 -> pass else -> drop";
    // The driver of a virtual wire refuses programs where the other end may send long frames.
    for (mtu, mode) in [(1500, "native"), (3800, "generic")] {
        client.ip(&format!("link set h0 mtu {mtu}"));
        let run = start(&host, &[&["run", "-e", query], &TO_HOST[..], &IN_KERNEL].concat());
        run.wait_for_report(&format!(", {mode}"), 1);
        let mut stream = connect(&client, 22, Duration::from_secs(3)).expect("that is open");
        assert!(connect(&client, 23, Duration::from_millis(100)).is_none(), "that is closed");
        let (mut peer, _) = open.accept().expect("it came");
        for stream in [&stream, &peer] {
            stream.set_read_timeout(Some(Duration::from_secs(60))).expect("sets");
        }
        let sent: Vec<u8> = (0..100_000_u32).map(|n| n as u8).collect();
        let (copy, mut got) = (sent.clone(), vec![0; sent.len()]);
        let answer = std::thread::spawn(move || {
            let mut asked = vec![0; copy.len()];
            peer.read_exact(&mut asked).expect("a question");
            assert!(asked == copy, "what was sent came");
            peer.write_all(&copy).expect("takes them");
        });
        stream.write_all(&sent).expect("takes them");
        stream.read_exact(&mut got).expect("an answer");
        answer.join().expect("no panic");
        assert!(got == sent, "what was sent came");
        drop(stream);
        let ledger = run.interrupt();
        let [received, acted, filtered, processed, passed, dropped] =
            ["received", "acted", "filtered", "processed", "passed", "dropped"]
                .map(|name| count(&ledger, name));
        assert!(passed > 50 && dropped > 0, "{ledger}");
        assert_eq!((received, acted), (acted + filtered + processed, passed + dropped), "{ledger}");
        assert!(!ledger.contains("refused") && !ledger.contains("lost"), "{ledger}");
    }
}

/// A packet that the kernel can't decide on does not reach the host, and is counted.
#[test]
fn packets_that_go_up_do_not_reach_the_host_and_are_counted() {
    let test = "wires::to_host::packets_that_go_up_do_not_reach_the_host_and_are_counted";
    let Some((host, client)) = host_and_client(test) else { return };
    let query = "packets | branch when arp -> forward \"host:\" when dns -> drop \
                 else -> forward \"host:\"";
    let server = host.run(|| {
        let open = |port: u16| UdpSocket::bind((SERVER, port)).expect("binds");
        [open(53), open(9)]
    });
    let run = ["run", "-e", query, "-i", "eth0"];
    let run = start(&host, &[&run[..], &IN_KERNEL].concat());
    // By its port it may be DNS, and by its bytes it is not.
    let send = || {
        client.run(|| {
            let socket = UdpSocket::bind("192.0.2.1:0").expect("binds");
            for port in [53, 9] {
                socket.send_to(b"x", (SERVER, port)).expect("leaves");
            }
        });
    };
    server[1].set_read_timeout(Some(Duration::from_millis(100))).expect("sets");
    until("the host gets what the kernel decides on", || {
        send();
        server[1].recv(&mut [0; 9]).is_ok()
    });
    server[0].set_nonblocking(true).expect("sets");
    assert!(server[0].recv(&mut [0; 9]).is_err(), "that went up");
    let ledger = run.interrupt();
    let line = ledger.lines().find(|line| line.starts_with("refused")).expect("a line");
    assert!(line.contains("by host:: ") && line.contains("workers had to decide on"), "{ledger}");
    let all = count(&ledger, "refused") + count(&ledger, "sent") + count(&ledger, "dropped");
    assert_eq!(all, count(&ledger, "received"), "{ledger}");
}

/// Without a part in the kernel nothing could be given to the host.
#[test]
fn the_host_is_no_output_without_the_kernel() {
    let test = "wires::to_host::the_host_is_no_output_without_the_kernel";
    let Some(space) = Space::new(test) else { return };
    space.veth("eth0", "h0");
    let run = ["run", "-e", "packets | pass", "-i", "eth0", "-w", "host:"];
    // Where programs come and go, packets may have to go up at any time.
    let required = ["--capture", "xdp", "--offload", "require"];
    let changes = [&required[..], &["--control=/nonexistent/socket"]].concat();
    for more in [&[][..], &required[..2], &["--capture", "xdp", "--offload", "auto"], &changes] {
        let output = space.attempt(&root(), &[&run[..], more].concat());
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{more:?}: {errors}");
        assert!(errors.contains("only the kernel gives packets to the host"), "{errors}");
    }
}
