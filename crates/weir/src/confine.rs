//! What a run gives up before it looks at the first packet: whoever finds a fault in it by way of
//! packets, captures or compressed bytes shall have little from it.
//!
//! Everything that the run needs is open by then (see [`Needs`] for what is not), and no other
//! thread has been started, so that all inherit what is given up: capabilities ([`privileges`]),
//! files ([`files`], by Landlock), and system calls that a run has no use for ([`calls`], by
//! seccomp). What the kernel does not have is told, not required.

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64"))]
mod calls;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")))]
#[path = "confine/no_calls.rs"]
mod calls;
mod files;
mod needs;
mod privileges;

pub(crate) use needs::Needs;
pub(crate) use privileges::{become_user, ids};

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// What was given up.
pub(crate) struct Confined {
    capabilities: String,
    files: String,
    calls: String,
    /// What threads of DPDK keep.
    beside: Option<String>,
}

/// Gives up everything but what is needed, for good. The calling thread must be the only one, but
/// for those of DPDK. What
/// the kernel, or whatever this process runs in, does not allow to be given up is told.
pub(crate) fn confine(needs: &Needs) -> Confined {
    let beside = (needs.dpdk && weir_dpdk::is_linked()).then(|| beside(needs));
    let or = |given_up: anyhow::Result<String>, kept: &str| {
        given_up.unwrap_or_else(|e| format!("{kept} ({e:#})"))
    };
    let capabilities = or(privileges::keep(needs.capabilities), "all capabilities");
    // Without it the others fail, and say so.
    let promised = privileges::gain_none();
    let files = or(files::restrict(needs), "any files");
    let calls = promised.and_then(|()| calls::restrict(needs));
    let calls = or(calls, "any system calls");
    Confined { capabilities, files, calls, beside: beside.flatten() }
}

/// Has DPDK's thread give up what each thread gives up for itself; system calls are refused to all
/// threads at once. Says what remains, if something does.
fn beside(needs: &Needs) -> Option<String> {
    let (given_up, needs) = (Arc::new(Mutex::new(None)), needs.clone());
    let result = Arc::clone(&given_up);
    let give_up = move || {
        let all = privileges::keep(needs.capabilities)
            .and_then(|_| privileges::gain_none())
            .and_then(|()| files::restrict(&needs));
        *result.lock().unwrap_or_else(PoisonError::into_inner) = Some(all.map(drop));
    };
    let asked = weir_dpdk::in_its_thread(Box::new(give_up));
    let done = given_up.lock().unwrap_or_else(PoisonError::into_inner).take();
    match (asked, done) {
        (Ok(()), Some(Ok(()))) => others(),
        (Ok(()), Some(Err(e))) => Some(format!("DPDK's thread keeps what it had ({e:#})")),
        (Ok(()), None) => Some("DPDK's thread keeps what it had".to_owned()),
        (Err(e), _) => Some(format!("DPDK's thread keeps what it had ({e})")),
    }
}

/// What is to be said of threads that drivers, or arguments for DPDK, have started: beyond the
/// first thread and the one that was asked.
fn others() -> Option<String> {
    let threads = std::fs::read_dir("/proc/self/task").map_or(0, Iterator::count);
    match threads.saturating_sub(2) {
        0 => None,
        1 => Some("another thread of DPDK keeps capabilities and files".to_owned()),
        n => Some(format!("{n} other threads of DPDK keep capabilities and files")),
    }
}

/// One line for the user.
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
    use std::net::{TcpStream, UdpSocket};
    use std::os::unix::net::{UnixDatagram, UnixStream};
    use std::process::Command;

    /// Looks what a confined thread can and cannot do any more. There is no way back from it, so
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
        let told = confine(&needs).to_string();
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
        UnixStream::pair().expect("signals come so");
    }

    #[test]
    fn what_is_given_up_is_gone() {
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["laid out", "in", "secret"] {
            fs::write(folder.path().join(name), name).expect("writes");
        }
        fs::create_dir(folder.path().join("out")).expect("makes");
        let itself = std::env::current_exe().expect("a path");
        let mut command = Command::new(itself);
        command.args(["--exact", "confine::tests::probe", "--ignored", "--nocapture"]);
        command.current_dir(folder.path()).stdin(std::process::Stdio::piped());
        let output = command.output().expect("it runs");
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        assert!(output.status.success() && said.contains("1 passed"), "{said}");
        assert!(said.contains("reads in, reads not there, reads /dev/fd/0 and 2 more ("), "{said}");
    }
}
