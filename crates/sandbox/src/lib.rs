//! The permissions that a run gives up before it looks at the first packet, so that an attacker who
//! exploits a fault by packets, captures or compressed bytes gains little.
//!
//! The run has opened everything that it needs by then ([`Needs`] lists the exceptions), and has
//! started no other thread, so that all threads inherit what is given up: capabilities
//! (`privileges.rs`), files (`files.rs`, by Landlock), and system calls that a run does not use
//! (`calls.rs`, by seccomp). The sandbox reports what the kernel does not support, and requires
//! nothing of it.

#![deny(unsafe_code)]

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64"))]
mod calls;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")))]
#[path = "no_calls.rs"]
mod calls;
mod error;
mod files;
mod needs;
mod privileges;
#[expect(unsafe_code, reason = "seccomp(2) and landlock(7)")]
mod sys;

pub use error::GiveUpError;
pub use needs::Needs;
pub use privileges::{UserError, UserIds, become_user, look_up};
pub use sys::landlock_abi;

use parking_lot::Mutex;
use rustix::thread::CapabilitySet;
use std::fmt;
use std::io;
use std::sync::Arc;

/// Runs a closure in the thread that DPDK has started.
pub type InThread = fn(Box<dyn FnOnce() + Send>) -> io::Result<()>;

/// The permissions that a run has given up. It prints as one line.
#[derive(Debug)]
pub struct Confined {
    capabilities: String,
    files: String,
    calls: String,
    /// The permissions that threads of DPDK still have.
    beside: Option<String>,
}

/// Gives up everything but what is needed, for good. The calling thread must be the only one,
/// except for those of DPDK: `in_dpdk` runs a closure in its thread, where DPDK has been started.
/// The result says what the kernel, or a container around this process, did not allow to be given
/// up.
pub fn confine(needs: &Needs, in_dpdk: Option<InThread>) -> Confined {
    let beside = in_dpdk.and_then(|in_thread| beside(needs, in_thread));
    let or = |given_up: Result<String, GiveUpError>, kept: &str| {
        given_up.unwrap_or_else(|e| format!("{kept} ({e})"))
    };
    let capabilities = or(privileges::keep(needs.capabilities), "all capabilities");
    // Without it the others fail, and say so.
    let promised = privileges::gain_none();
    let files = or(files::restrict(needs), "any files");
    let calls = promised.and_then(|()| calls::restrict(needs));
    let calls = or(calls, "any system calls");
    Confined { capabilities, files, calls, beside }
}

/// Gives up, for a process that starts others and sees no packet, all capabilities but that of root
/// to read files of others, and gaining more. Processes that it starts have none.
///
/// # Errors
/// If the system refuses a step.
pub fn keep_reading() -> Result<(), GiveUpError> {
    privileges::keep(CapabilitySet::DAC_READ_SEARCH)?;
    privileges::gain_none()
}

/// Lets DPDK's thread give up what each thread gives up for itself; the filter of system calls
/// applies to all threads at once. Says what remains, if something does.
fn beside(needs: &Needs, in_thread: InThread) -> Option<String> {
    let (given_up, needs) = (Arc::new(Mutex::new(None)), needs.clone());
    let result = Arc::clone(&given_up);
    let give_up = move || {
        let all = privileges::keep(needs.capabilities)
            .and_then(|_| privileges::gain_none())
            .and_then(|()| files::restrict(&needs));
        *result.lock() = Some(all.map(drop));
    };
    let asked = in_thread(Box::new(give_up));
    let done = given_up.lock().take();
    match (asked, done) {
        (Ok(()), Some(Ok(()))) => others(),
        (Ok(()), Some(Err(e))) => Some(format!("DPDK's thread keeps what it had ({e})")),
        (Ok(()), None) => Some("DPDK's thread keeps what it had".to_owned()),
        (Err(e), _) => Some(format!("DPDK's thread keeps what it had ({e})")),
    }
}

/// The message about threads that drivers, or arguments for DPDK, have started: all threads but the
/// first and the one that `beside` has run in.
fn others() -> Option<String> {
    let threads = std::fs::read_dir("/proc/self/task").map_or(0, Iterator::count);
    match threads.saturating_sub(2) {
        0 => None,
        1 => Some("another thread of DPDK keeps capabilities and files".to_owned()),
        n => Some(format!("{n} other threads of DPDK keep capabilities and files")),
    }
}

impl fmt::Display for Confined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Confined { capabilities, files, calls, beside } = self;
        write!(f, "sandbox: {capabilities}; {files}; {calls}")?;
        match beside {
            Some(beside) => write!(f, "; {beside}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sched::{CloneFlags, unshare};
    use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};
    use rustix::thread::{CapabilitySet, capabilities};
    use std::fs::{self, File};
    use std::io::{self, ErrorKind::PermissionDenied};
    use std::net::{TcpListener, TcpStream, UdpSocket};
    use std::os::unix::net::{UnixDatagram, UnixStream};
    use std::process::Command;

    /// Checks what a confined thread can and cannot do any more. There is no way back from it, so
    /// the test below runs it in a process of its own, in a folder that is laid out for it.
    #[test]
    #[expect(clippy::print_stdout, reason = "the test that runs it reads this")]
    #[ignore = "gives up the permissions of its process; another test runs it where that is meant"]
    fn probe() {
        if !fs::exists("laid out").is_ok_and(|there| there) {
            return;
        }
        let mut needs = Needs { write: vec!["out".into()], ..Needs::default() };
        needs.captures(["in", "not there", "/dev/fd/0"].into_iter());
        needs.filter();
        let told = confine(&needs, None).to_string();
        let own = capabilities(None).expect("the kernel tells");
        assert!(CapabilitySet::DAC_READ_SEARCH.contains(own.permitted), "{own:?}");
        assert!(rustix::thread::no_new_privs().expect("the kernel tells"));
        if !told.contains("any files") {
            no_files();
            std::thread::spawn(no_files).join().expect("as little as its parent");
        }
        if !told.contains("any system calls") {
            no_calls();
        }
        println!("{told}");
    }

    /// The same for a run that needs nothing more: it makes no sockets at all.
    #[test]
    #[expect(clippy::print_stdout, reason = "the test that runs it reads this")]
    #[ignore = "gives up the permissions of its process; another test runs it where that is meant"]
    fn probe_of_a_plain_run() {
        if !fs::exists("laid out").is_ok_and(|there| there) {
            return;
        }
        let told = confine(&Needs::default(), None).to_string();
        if !told.contains("any system calls") {
            let ip = [AddressFamily::Inet, AddressFamily::Inet6];
            for family in ip.into_iter().chain([AddressFamily::Netlink, AddressFamily::Unix]) {
                let made = socket(family, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None);
                denied(made.map_err(io::Error::from));
            }
            denied(UdpSocket::bind("127.0.0.1:0"));
            UnixStream::pair().expect("signals come so");
        }
        println!("{told}");
    }

    /// The same for a process that connects to others: to one port, and no other.
    #[test]
    #[expect(clippy::print_stdout, reason = "the test that runs it reads this")]
    #[ignore = "gives up the permissions of its process; another test runs it where that is meant"]
    fn probe_that_connects() {
        if !fs::exists("laid out").is_ok_and(|there| there) {
            return;
        }
        let bound = || TcpListener::bind("127.0.0.1:0").expect("a port");
        let (needed, other) = (bound(), bound());
        let address = |listener: &TcpListener| listener.local_addr().expect("an address");
        let mut needs = Needs::default();
        needs.connections([address(&needed).port()].into_iter());
        let told = confine(&needs, None).to_string();
        TcpStream::connect(address(&needed)).expect("is needed");
        if told.contains("(Landlock, ABI ") {
            denied(File::open("secret"));
            let old = ["ABI 1)", "ABI 2)", "ABI 3)"].iter().any(|abi| told.contains(abi));
            if !old {
                denied(TcpStream::connect(address(&other)));
                denied(TcpListener::bind("127.0.0.1:0"));
            }
        }
        println!("{told}");
    }

    #[track_caller]
    fn denied<T>(result: io::Result<T>) {
        assert_eq!(result.err().map(|e| e.kind()), Some(PermissionDenied));
    }

    fn no_files() {
        assert_eq!(fs::read_to_string("in").expect("is needed"), "in");
        denied(fs::write("in", "x"));
        denied(File::open("secret"));
        denied(File::open("/etc/passwd"));
        denied(fs::read_dir("/etc"));
        denied(File::create("new"));
        denied(fs::remove_file("secret"));
        denied(fs::rename("secret", "out/secret"));
        fs::write("out/new", "new").expect("is needed");
        fs::write("out/new", "").expect("is needed");
        fs::remove_file("out/new").expect("is needed");
        File::open("/etc/hosts").map_or_else(|e| assert_ne!(e.kind(), PermissionDenied), drop);
    }

    fn no_calls() {
        denied(Command::new("true").status());
        let packets = (AddressFamily::Packet, SockType::Raw);
        let raw = (AddressFamily::Inet, SockType::Raw);
        for (family, kind) in [packets, raw, (AddressFamily::Inet6, SockType::Stream)] {
            denied(socket(family, kind, SockFlag::SOCK_CLOEXEC, None).map_err(io::Error::from));
        }
        denied(TcpStream::connect("127.0.0.1:1"));
        denied(UnixDatagram::unbound());
        denied(unshare(CloneFlags::CLONE_NEWUSER).map_err(io::Error::from));
        denied(fs::set_permissions("out", fs::metadata("out").expect("there").permissions()));
        UdpSocket::bind("127.0.0.1:0").expect("resolvers do");
        let names = (AddressFamily::Netlink, SockType::Raw);
        socket(names.0, names.1, SockFlag::SOCK_CLOEXEC, None).expect("resolvers do");
        UnixStream::pair().expect("signals come so");
    }

    #[test]
    fn what_is_given_up_is_gone() {
        let said = probed("tests::probe");
        assert!(said.contains("reads in, reads not there, reads /dev/fd/0, writes in "), "{said}");
        let said = probed("tests::probe_of_a_plain_run");
        assert!(
            said.contains("; no programs, no sockets (") || said.contains("any system"),
            "{said}"
        );
        let said = probed("tests::probe_that_connects");
        assert!(said.contains("of others"), "{said}");
    }

    /// The output of such a test in a process and a folder of its own.
    fn probed(test: &str) -> String {
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["laid out", "in", "secret"] {
            fs::write(folder.path().join(name), name).expect("writes");
        }
        fs::create_dir(folder.path().join("out")).expect("makes");
        let itself = std::env::current_exe().expect("a path");
        let mut command = Command::new(itself);
        command.args(["--exact", test, "--ignored", "--nocapture"]);
        command.current_dir(folder.path()).stdin(std::process::Stdio::piped());
        let output = command.output().expect("it runs");
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        assert!(output.status.success() && said.contains("1 passed"), "{said}");
        said.into_owned()
    }
}
