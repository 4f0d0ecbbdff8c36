//! Datagrams that the kernel dropped at a socket, as /proc/net/udp counts them.

use std::fs::File;
use std::io::{Read as _, Seek as _};
use std::os::fd::AsFd;

/// Bytes of the file that are looked at: a line has some 128.
const BYTES_MAX: u64 = 4 << 20;

/// The counters of some sockets. The files are open, so that they can be read after permissions
/// were given up.
pub(super) struct Drops {
    files: Vec<File>,
    /// The numbers of the sockets' inodes.
    inodes: Vec<u64>,
}

impl Drops {
    /// Of these sockets, as far as the system counts.
    pub(super) fn new<S: AsFd>(sockets: &[S]) -> Drops {
        let files = ["/proc/net/udp", "/proc/net/udp6"];
        let inode = |socket: &S| rustix::fs::fstat(socket).ok().map(|stat| stat.st_ino);
        Drops {
            files: files.into_iter().filter_map(|name| File::open(name).ok()).collect(),
            inodes: sockets.iter().filter_map(inode).collect(),
        }
    }

    /// How many datagrams were dropped so far.
    pub(super) fn count(&mut self) -> u64 {
        let mut text = String::new();
        for file in &mut self.files {
            // A file that can't be read counts nothing.
            let _ = file.rewind().and_then(|()| file.take(BYTES_MAX).read_to_string(&mut text));
        }
        text.lines()
            .filter_map(drops_of)
            .filter(|(inode, _)| self.inodes.contains(inode))
            .map(|(_, n)| n)
            .sum()
    }
}

/// The inode of the socket of a line, and how many datagrams it lacks (proc_pid_net(5)).
fn drops_of(line: &str) -> Option<(u64, u64)> {
    let mut words = line.split_ascii_whitespace();
    let inode = words.nth(9)?.parse().ok()?;
    Some((inode, words.nth(2)?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;

    #[test]
    fn lines_are_read() {
        let line = " 4739: 00000000:1283 00000000:0000 07 00000000:00000000 00:00000000 00000000  \
                    1000        0 31337 2 0000000000000000 42";
        assert_eq!(drops_of(line), Some((31337, 42)));
        assert_eq!(drops_of("  sl  local_address rem_address   st tx_queue rx_queue tr"), None);
        assert_eq!(drops_of(""), None);
    }

    #[test]
    fn a_socket_that_nobody_reads_drops() {
        let receiver = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        let mut drops = Drops::new(&[&receiver]);
        if drops.files.is_empty() {
            return;
        }
        assert_eq!(drops.count(), 0);
        let sender = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        let to = receiver.local_addr().expect("an address");
        (0..2000).for_each(|_| drop(sender.send_to(&[0; 1400], to)));
        assert!(drops.count() > 0);
    }
}
