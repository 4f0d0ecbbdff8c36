//! Wires to test on: network namespaces of their own, veth pairs in them, and a sender of frames.
//!
//! A namespace belongs to the thread that made it, and to the processes that this starts: nothing
//! else sees its traffic, and it goes with the thread, however a test ends.

#![allow(dead_code, unreachable_pub, reason = "tests of two crates use some of it")]

use nix::ifaddrs::getifaddrs;
use nix::sched::{CloneFlags, unshare};
use nix::sys::socket::{AddressFamily, LinkAddr, MsgFlags, SockFlag, SockType, sendto, socket};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::process::Command;
use std::sync::mpsc;
use weir_packet::interface::Direction;
use weir_packet::source::{FrameBatch, Source};

/// Puts the calling thread into a new network namespace, or says by name why the test is skipped.
#[must_use]
#[expect(clippy::print_stderr, reason = "a skipped test says so")]
pub fn namespace(test: &str) -> bool {
    if let Err(e) = unshare(CloneFlags::CLONE_NEWNET) {
        eprintln!("SKIPPED {test}: no network namespace can be made ({e}); run as root");
        return false;
    }
    // The kernel itself is to send nothing.
    for which in ["all", "default"] {
        let quiet = format!("/proc/sys/net/ipv6/conf/{which}/disable_ipv6");
        // Where there is no IPv6, there is nothing to switch off.
        let _ = std::fs::write(quiet, "1");
    }
    ip("link set lo up");
    true
}

/// Another network namespace, with a thread in it that runs closures.
pub struct Elsewhere {
    tasks: mpsc::Sender<Box<dyn FnOnce() + Send>>,
    /// The thread, by which its namespace is named.
    thread: String,
}

impl Elsewhere {
    pub fn new(test: &str) -> Elsewhere {
        let (tasks, told) = mpsc::channel::<Box<dyn FnOnce() + Send>>();
        let (began, begins) = mpsc::channel();
        let test = test.to_owned();
        std::thread::spawn(move || {
            assert!(namespace(&test), "a second namespace, after a first");
            let thread = std::fs::read_link("/proc/thread-self").expect("a thread");
            let number = thread.file_name().and_then(|name| name.to_str()).expect("its number");
            began.send(number.to_owned()).expect("it waits");
            told.iter().for_each(|task| task());
        });
        Elsewhere { tasks, thread: begins.recv().expect("it begins") }
    }

    /// Runs a closure in the namespace.
    pub fn run<R: Send + 'static>(&self, task: impl FnOnce() -> R + Send + 'static) -> R {
        let (to, done) = mpsc::channel();
        let told = self.tasks.send(Box::new(move || _ = to.send(task())));
        told.expect("it goes on");
        done.recv().expect("it does not panic")
    }

    /// Moves an interface of the calling thread's namespace there.
    pub fn give(&self, interface: &str) {
        ip(&format!("link set {interface} netns {}", self.thread));
    }
}

/// By which interface a frame came, and which way it went: `v1 in`.
pub fn came(batch: &FrameBatch, i: usize) -> String {
    let (point, names) = (batch.capture_point(i), batch.interface_names());
    let name = point.interface().and_then(|number| names?.name(number));
    let name = name.map_or("-".to_owned(), |name| name.text.to_string());
    format!("{name} {}", point.direction().map_or("-", Direction::name))
}

/// Of a capture of all interfaces: one that gets another name has it soon, however busy others are,
/// and so has one that comes.
pub fn other_names_are_learned(source: &mut dyn Source) {
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let to = socket.local_addr().expect("an address");
    let mut batch = FrameBatch::new();
    let mut comes = |by: &str, sender: &Sender| {
        for _ in 0..500 {
            socket.send_to(b"busy", to).expect("sends");
            sender.send(&[0xff; 60]);
            pause();
            assert!(source.fill(&mut batch).expect("goes on"));
            if (0..batch.len()).any(|i| came(&batch, i) == by) {
                return;
            }
        }
        panic!("nothing comes by {by}");
    };
    comes("lo in", &Sender::new("v0"));
    comes("v1 in", &Sender::new("v0"));
    ip("link set v1 name other");
    comes("other in", &Sender::new("v0"));
    veth("n0", "n1");
    comes("n1 in", &Sender::new("n0"));
}

/// Runs `ip` in the namespace.
pub fn ip(words: &str) {
    let status = Command::new("ip").args(words.split(' ')).status();
    assert!(status.is_ok_and(|s| s.success()), "ip {words} (of iproute2)");
}

/// Makes a pair of interfaces: what one sends the other receives.
pub fn veth(one: &str, other: &str) {
    ip(&format!("link add {one} type veth peer name {other}"));
    ip(&format!("link set {one} up"));
    ip(&format!("link set {other} up"));
}

/// Sends frames by an interface, as they are.
pub struct Sender {
    socket: OwnedFd,
    to: LinkAddr,
}

impl Sender {
    pub fn new(interface: &str) -> Sender {
        let all = getifaddrs().expect("interfaces");
        let of = |a: nix::ifaddrs::InterfaceAddress| a.address?.as_link_addr().copied();
        let to = all.filter(|a| a.interface_name == interface).find_map(of);
        let socket = socket(AddressFamily::Packet, SockType::Raw, SockFlag::SOCK_CLOEXEC, None);
        Sender { socket: socket.expect("a socket"), to: to.expect("an interface") }
    }

    pub fn send(&self, frame: &[u8]) {
        let sent = sendto(self.socket.as_raw_fd(), frame, &self.to, MsgFlags::empty());
        assert_eq!(sent, Ok(frame.len()), "a frame is sent");
    }

    /// The same of an interface that may be down.
    pub fn try_send(&self, frame: &[u8]) -> bool {
        sendto(self.socket.as_raw_fd(), frame, &self.to, MsgFlags::empty()).is_ok()
    }
}

/// Waits for a moment, between two looks at what another process does.
#[expect(clippy::disallowed_methods, reason = "another process is waited for")]
pub fn pause() {
    std::thread::sleep(std::time::Duration::from_millis(50));
}
