//! Virtual wires, and what interfaces count, by rtnetlink(7).

use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, connect, recv, send, socket_with,
};
use std::io;
use std::os::fd::OwnedFd;

const RTM_NEWLINK: u16 = 16;
const RTM_GETLINK: u16 = 18;
const NLMSG_ERROR: u16 = 2;

/// A request that is to be answered; that makes something, which must not be there.
const REQUEST: u16 = 1;
const ACKNOWLEDGE: u16 = 4;
const MAKE: u16 = 0x200 | 0x400;

const IFLA_IFNAME: u16 = 3;
const IFLA_LINKINFO: u16 = 18;
const IFLA_STATS64: u16 = 23;
const IFLA_NUM_TX_QUEUES: u16 = 31;
const IFLA_NUM_RX_QUEUES: u16 = 32;
const IFLA_INFO_KIND: u16 = 1;
const IFLA_INFO_DATA: u16 = 2;
const VETH_INFO_PEER: u16 = 1;

const IFF_UP: u32 = 1;

/// Bytes of `struct nlmsghdr`, and of `struct ifinfomsg`.
const HEADER: usize = 16;
const IFINFO: usize = 16;

/// Bytes of one answer; the kernel sends 32 KiB at most.
const ANSWER: usize = 64 << 10;

/// Which of `struct rtnl_link_stats64` are counted with.
const RX_PACKETS: usize = 0;
const RX_DROPPED: usize = 6;

/// The counts of an interface since it was made.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Counts {
    /// Frames received.
    pub(super) received: u64,
    /// Frames dropped: those that its queue had no room for, and those that an XDP program
    /// redirected in vain.
    pub(super) dropped: u64,
}

/// An interface.
#[derive(Clone, Copy, Debug)]
pub(super) struct Interface {
    pub(super) index: u32,
    pub(super) counts: Counts,
}

/// A way to ask about the interfaces of the network namespace it was made in.
pub(super) struct Netlink(OwnedFd);

impl Netlink {
    pub(super) fn open() -> io::Result<Netlink> {
        let (family, kind) = (AddressFamily::NETLINK, SocketType::RAW);
        // Protocol 0 is NETLINK_ROUTE.
        let socket = socket_with(family, kind, SocketFlags::CLOEXEC, None)?;
        connect(&socket, &SocketAddrNetlink::new(0, 0))?;
        Ok(Netlink(socket))
    }

    /// Makes two ends of a wire, each with so many queues, both up.
    pub(super) fn veth(&self, one: &str, other: &str, queues: u32) -> io::Result<()> {
        let end = |name: &str| {
            let mut end = ifinfo(0, 0);
            put(&mut end, IFLA_IFNAME, &text(name));
            put(&mut end, IFLA_NUM_TX_QUEUES, &queues.to_ne_bytes());
            put(&mut end, IFLA_NUM_RX_QUEUES, &queues.to_ne_bytes());
            end
        };
        let (mut data, mut info) = (Vec::new(), Vec::new());
        put(&mut data, VETH_INFO_PEER, &end(other));
        put(&mut info, IFLA_INFO_KIND, &text("veth"));
        put(&mut info, IFLA_INFO_DATA, &data);
        let mut body = end(one);
        put(&mut body, IFLA_LINKINFO, &info);
        self.ask(RTM_NEWLINK, ACKNOWLEDGE | MAKE, &body)?;
        // Neither can be up before it has its peer.
        for name in [one, other] {
            let up = ifinfo(self.interface(name)?.index, IFF_UP);
            self.ask(RTM_NEWLINK, ACKNOWLEDGE, &up)?;
        }
        Ok(())
    }

    /// The interface of this name.
    pub(super) fn interface(&self, name: &str) -> io::Result<Interface> {
        let mut body = ifinfo(0, 0);
        put(&mut body, IFLA_IFNAME, &text(name));
        let answer = self.ask(RTM_GETLINK, 0, &body)?;
        let short = || io::Error::other("the kernel says too little of the interface");
        let index = answer.get(4..8).and_then(word).ok_or_else(short)?;
        let stats = attribute(answer.get(IFINFO..).unwrap_or(&[]), IFLA_STATS64);
        let count = |at: usize| {
            let bytes = stats?.get(at * 8..at * 8 + 8)?;
            Some(u64::from_ne_bytes(bytes.try_into().ok()?))
        };
        let counts = Counts {
            received: count(RX_PACKETS).ok_or_else(short)?,
            dropped: count(RX_DROPPED).ok_or_else(short)?,
        };
        Ok(Interface { index, counts })
    }

    /// Sends a request and gives the body of what comes back.
    fn ask(&self, kind: u16, flags: u16, body: &[u8]) -> io::Result<Vec<u8>> {
        let mut message = Vec::with_capacity(HEADER + body.len());
        message.extend(((HEADER + body.len()) as u32).to_ne_bytes());
        message.extend(kind.to_ne_bytes());
        message.extend((REQUEST | flags).to_ne_bytes());
        message.extend([0; 8]);
        message.extend(body);
        send(&self.0, &message, SendFlags::empty())?;
        let mut answer = vec![0; ANSWER];
        let (n, _) = recv(&self.0, &mut answer[..], RecvFlags::empty())?;
        answer.truncate(n);
        let kind = answer.get(4..6).map(|b| u16::from_ne_bytes([b[0], b[1]]));
        let body = answer.split_off(HEADER.min(n));
        if kind != Some(NLMSG_ERROR) {
            return Ok(body);
        }
        match body.get(..4).and_then(word).unwrap_or(0) as i32 {
            0 => Ok(Vec::new()),
            code => Err(io::Error::from_raw_os_error(code.saturating_neg())),
        }
    }
}

/// A `struct ifinfomsg`.
fn ifinfo(index: u32, flags: u32) -> Vec<u8> {
    let mut bytes = vec![0; 4];
    bytes.extend(index.to_ne_bytes());
    bytes.extend(flags.to_ne_bytes());
    // Which flags are meant.
    bytes.extend(flags.to_ne_bytes());
    bytes
}

/// A text with its NUL.
fn text(text: &str) -> Vec<u8> {
    [text.as_bytes(), &[0]].concat()
}

/// Appends an attribute, filled up to 4 bytes.
fn put(to: &mut Vec<u8>, kind: u16, value: &[u8]) {
    to.extend((4 + value.len() as u16).to_ne_bytes());
    to.extend(kind.to_ne_bytes());
    to.extend(value);
    to.resize(to.len().next_multiple_of(4), 0);
}

/// The value of the first attribute of a kind.
fn attribute(mut bytes: &[u8], wanted: u16) -> Option<&[u8]> {
    loop {
        let head = bytes.first_chunk::<4>()?;
        let (len, kind) = ([head[0], head[1]], [head[2], head[3]]);
        let len = usize::from(u16::from_ne_bytes(len));
        let value = bytes.get(4..len)?;
        if u16::from_ne_bytes(kind) == wanted {
            return Some(value);
        }
        bytes = bytes.get(len.next_multiple_of(4)..)?;
    }
}

fn word(bytes: &[u8]) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_found_again() {
        let mut bytes = Vec::new();
        put(&mut bytes, 7, b"odd");
        put(&mut bytes, 3, &text("v0"));
        put(&mut bytes, 9, &[]);
        assert_eq!(attribute(&bytes, 7), Some(&b"odd"[..]));
        assert_eq!(attribute(&bytes, 3), Some(&b"v0\0"[..]));
        assert_eq!((attribute(&bytes, 9), attribute(&bytes, 8)), (Some(&[][..]), None));
        for cut in 0..bytes.len() {
            let _ = attribute(&bytes[..cut], 9);
        }
    }

    #[test]
    fn loopback_is_there() {
        let netlink = Netlink::open().expect("a netlink socket needs no capability");
        assert!(netlink.interface("lo").expect("every namespace has it").index > 0);
        let error = netlink.interface("no-such-thing").expect_err("none");
        assert_eq!(error.raw_os_error(), Some(libc::ENODEV));
    }
}
