//! The kernel's facts about interfaces, by rtnetlink(7).

use crate::limits::{LINK_CHANGES_BUFFER, NETLINK_BUFFER};
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::sockopt::set_socket_recv_buffer_size;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, bind, connect, recv, send,
    socket_with,
};
use std::cell::Cell;
use std::io;
use std::os::fd::OwnedFd;

/// An interface as it was when it was asked for.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct LinkInfo {
    pub(crate) name: String,
    pub(crate) index: u32,
    /// The type of its frames, an `ARPHRD_…`.
    pub(crate) hardware: u16,
    pub(crate) up: bool,
    /// Whether there is something at the other end.
    pub(crate) carrier: bool,
    /// Bytes of a frame after its Ethernet header at most.
    pub(crate) mtu: u32,
    /// Receive queues that the driver could have.
    pub(crate) rx_queues_max: u32,
    /// Frames that the interface had no buffer for.
    pub(crate) missed: u64,
    /// How often it lost its carrier, or was taken down.
    pub(crate) downs: u32,
    /// The XDP program on it: where, and its number in the system.
    pub(crate) program: Option<(&'static str, u32)>,
}

/// How many frames an interface had no buffer for since the capture began.
pub(crate) struct MissedFrames {
    before: u64,
    since: Cell<u64>,
}

impl MissedFrames {
    /// None yet, where the capture of the interface begins.
    pub(crate) fn from(interface: &LinkInfo) -> MissedFrames {
        MissedFrames { before: interface.missed, since: Cell::new(0) }
    }

    /// Counts by what the interface says now.
    pub(crate) fn look(&self, now: &LinkInfo) {
        self.since.set(now.missed.saturating_sub(self.before));
    }

    /// Asks the kernel. An interface that is gone counts no more, and a counter that can't be read
    /// stays.
    pub(crate) fn ask(&self, known: &Interfaces, index: u32) {
        if let Ok(Some(now)) = known.by_index(index) {
            self.look(&now);
        }
    }

    pub(crate) fn get(&self) -> u64 {
        self.since.get()
    }
}

/// A way to ask about the interfaces of the network namespace it was made in.
#[derive(Debug)]
pub(crate) struct Interfaces(OwnedFd);

const RTM_NEWLINK: u16 = 16;
const RTM_DELLINK: u16 = 17;
const RTM_GETLINK: u16 = 18;
pub(super) const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
pub(super) const NLM_F_REQUEST: u16 = 1;
const NLM_F_DUMP: u16 = 0x300;

const IFLA_IFNAME: u16 = 3;
const IFLA_MTU: u16 = 4;
const IFLA_STATS64: u16 = 23;
const IFLA_NUM_RX_QUEUES: u16 = 32;
const IFLA_XDP: u16 = 43;
const IFLA_CARRIER_DOWN_COUNT: u16 = 48;
const IFLA_XDP_ATTACHED: u16 = 2;
const IFLA_XDP_PROG_ID: u16 = 4;
const IFLA_XDP_DRV_PROG_ID: u16 = 5;

/// `rx_fifo_errors` and `rx_missed_errors` in `struct rtnl_link_stats64`.
const MISSED: [usize; 2] = [14, 15];

const IFF_UP: u32 = 1;
const IFF_LOWER_UP: u32 = 1 << 16;

pub(super) const HEADER: usize = 16;
const IFINFO: usize = 16;

/// Longest name of an interface.
const NAME_MAX: usize = 15;

impl Interfaces {
    pub(crate) fn open() -> io::Result<Interfaces> {
        let (family, kind) = (AddressFamily::NETLINK, SocketType::RAW);
        // Protocol 0 is NETLINK_ROUTE.
        let socket = socket_with(family, kind, SocketFlags::CLOEXEC, None)?;
        connect(&socket, &SocketAddrNetlink::new(0, 0))?;
        Ok(Interfaces(socket))
    }

    /// The interface of this name.
    pub(crate) fn by_name(&self, name: &str) -> io::Result<Option<LinkInfo>> {
        if name.is_empty() || name.len() > NAME_MAX || name.contains('\0') {
            return Ok(None);
        }
        self.one(&request(0, 0, Some(name)))
    }

    /// The interface of this number, whatever it is called now.
    pub(crate) fn by_index(&self, index: u32) -> io::Result<Option<LinkInfo>> {
        self.one(&request(0, index, None))
    }

    /// All of them, by number.
    pub(crate) fn all(&self) -> io::Result<Vec<LinkInfo>> {
        let mut found = Vec::new();
        self.ask(&request(NLM_F_DUMP, 0, None), |interface| found.push(interface))?;
        found.sort_by_key(|interface: &LinkInfo| interface.index);
        Ok(found)
    }

    fn one(&self, request: &[u8]) -> io::Result<Option<LinkInfo>> {
        let mut found = None;
        match self.ask(request, |interface| found = Some(interface)) {
            Ok(()) => Ok(found),
            Err(e) if e.raw_os_error() == Some(libc::ENODEV) => Ok(None),
            Err(e) => Err(e),
        }
    }

    fn ask(&self, request: &[u8], mut each: impl FnMut(LinkInfo)) -> io::Result<()> {
        let dump = request.get(6..8) == Some(&(NLM_F_REQUEST | NLM_F_DUMP).to_ne_bytes()[..]);
        send(&self.0, request, SendFlags::empty())?;
        let mut answer = vec![0; NETLINK_BUFFER];
        loop {
            let (n, _) = recv(&self.0, &mut answer[..], RecvFlags::empty())?;
            let more = read(&answer[..n], &mut each)?;
            if !dump || !more {
                return Ok(());
            }
        }
    }
}

/// The fate of an interface.
pub(crate) enum LinkChange {
    /// It is so now; nothing of it may be new.
    Is(LinkInfo),
    /// The one of this number was removed.
    Gone(u32),
}

/// The kernel's messages about interfaces of the network namespace it was made in, since then. They
/// are kept until they are read.
pub(crate) struct LinkChanges(OwnedFd);

impl LinkChanges {
    pub(crate) fn open() -> io::Result<LinkChanges> {
        /// `RTMGRP_LINK`.
        const LINKS: u32 = 1;
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, None)?;
        // As much as the system allows; what has no room is found out otherwise.
        let _ = set_socket_recv_buffer_size(&socket, LINK_CHANGES_BUFFER);
        bind(&socket, &SocketAddrNetlink::new(0, LINKS))?;
        Ok(LinkChanges(socket))
    }

    /// Reads what was said. Whether that was all: else the kernel had no room for more.
    pub(crate) fn read(&self, mut each: impl FnMut(LinkChange)) -> bool {
        let (mut said, mut complete) = (vec![0; NETLINK_BUFFER], true);
        loop {
            match recv(&self.0, &mut said[..], RecvFlags::empty()) {
                Ok((n, _)) => messages(&said[..n], |kind, body| match kind {
                    // Of another family it is about a port of a bridge.
                    _ if body.first() != Some(&0) => {}
                    RTM_NEWLINK => each(LinkChange::Is(interface(body))),
                    RTM_DELLINK => each(LinkChange::Gone(interface(body).index)),
                    _ => {}
                }),
                Err(rustix::io::Errno::NOBUFS) => complete = false,
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => return complete,
            }
        }
    }
}

/// Goes through messages, by kind and body.
pub(super) fn messages(mut bytes: &[u8], mut each: impl FnMut(u16, &[u8])) {
    while let (Some(len), Some(kind)) = (u32_at(bytes, 0), u16_at(bytes, 4)) {
        let len = (len as usize).clamp(HEADER, bytes.len().max(HEADER));
        each(kind, bytes.get(HEADER..len).unwrap_or(&[]));
        bytes = bytes.get(len.next_multiple_of(4)..).unwrap_or(&[]);
    }
}

/// `RTM_GETLINK` for one interface, by number or by name, or for all.
fn request(flags: u16, index: u32, name: Option<&str>) -> Vec<u8> {
    let mut bytes = vec![0; HEADER + IFINFO];
    bytes[4..6].copy_from_slice(&RTM_GETLINK.to_ne_bytes());
    bytes[6..8].copy_from_slice(&(NLM_F_REQUEST | flags).to_ne_bytes());
    bytes[HEADER + 4..HEADER + 8].copy_from_slice(&index.to_ne_bytes());
    if let Some(name) = name {
        let len = 4 + name.len() as u16 + 1;
        bytes.extend_from_slice(&len.to_ne_bytes());
        bytes.extend_from_slice(&IFLA_IFNAME.to_ne_bytes());
        bytes.extend_from_slice(name.as_bytes());
        bytes.resize((bytes.len() + 1).next_multiple_of(4), 0);
    }
    let len = bytes.len() as u32;
    bytes[..4].copy_from_slice(&len.to_ne_bytes());
    bytes
}

/// Reads messages; whether more are to come.
fn read(mut bytes: &[u8], each: &mut impl FnMut(LinkInfo)) -> io::Result<bool> {
    while let (Some(len), Some(kind)) = (u32_at(bytes, 0), u16_at(bytes, 4)) {
        let len = (len as usize).clamp(HEADER, bytes.len().max(HEADER));
        let body = bytes.get(HEADER..len).unwrap_or(&[]);
        match kind {
            NLMSG_DONE => return Ok(false),
            NLMSG_ERROR => {
                let code = u32_at(body, 0).unwrap_or(0) as i32;
                return match code.checked_neg() {
                    Some(code) if code > 0 => Err(io::Error::from_raw_os_error(code)),
                    _ => Ok(false),
                };
            }
            RTM_NEWLINK => each(interface(body)),
            _ => {}
        }
        bytes = bytes.get(len.next_multiple_of(4)..).unwrap_or(&[]);
    }
    Ok(true)
}

/// Reads a `struct ifinfomsg` and its attributes; what is missing stays zero.
fn interface(body: &[u8]) -> LinkInfo {
    let mut to = LinkInfo {
        hardware: u16_at(body, 2).unwrap_or(0),
        index: u32_at(body, 4).unwrap_or(0),
        up: u32_at(body, 8).unwrap_or(0) & IFF_UP != 0,
        carrier: u32_at(body, 8).unwrap_or(0) & IFF_LOWER_UP != 0,
        ..LinkInfo::default()
    };
    for (kind, value) in attributes(body.get(IFINFO..).unwrap_or(&[])) {
        match kind {
            IFLA_IFNAME => {
                let name = value.split(|&b| b == 0).next().unwrap_or(&[]);
                to.name = String::from_utf8_lossy(name).into_owned();
            }
            IFLA_MTU => to.mtu = u32_at(value, 0).unwrap_or(0),
            IFLA_NUM_RX_QUEUES => to.rx_queues_max = u32_at(value, 0).unwrap_or(0),
            IFLA_STATS64 => {
                let counter = |at: usize| value.get(at * 8..)?.first_chunk::<8>().copied();
                let missed = MISSED.map(|at| counter(at).map_or(0, u64::from_ne_bytes));
                to.missed = missed[0].wrapping_add(missed[1]);
            }
            IFLA_CARRIER_DOWN_COUNT => to.downs = u32_at(value, 0).unwrap_or(0),
            IFLA_XDP => to.program = program(value),
            _ => {}
        }
    }
    to
}

/// Which XDP program stands where.
fn program(xdp: &[u8]) -> Option<(&'static str, u32)> {
    let find = |wanted| attributes(xdp).find(|&(kind, _)| kind == wanted).map(|(_, value)| value);
    let place = match find(IFLA_XDP_ATTACHED)?.first()? {
        0 => return None,
        1 => "native",
        2 => "generic",
        3 => "on the card",
        _ => "in several places",
    };
    let id = find(IFLA_XDP_PROG_ID).or_else(|| find(IFLA_XDP_DRV_PROG_ID));
    Some((place, id.and_then(|value| u32_at(value, 0)).unwrap_or(0)))
}

/// Attributes one after the other, each aligned to 4 bytes; ends at the first that is none.
pub(crate) fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    /// `NLA_F_NESTED` and `NLA_F_NET_BYTEORDER` are no part of the kind.
    const KIND: u16 = 0x3fff;
    std::iter::from_fn(move || {
        let (len, kind) = (usize::from(u16_at(bytes, 0)?), u16_at(bytes, 2)?);
        let value = bytes.get(4..len)?;
        bytes = bytes.get(len.next_multiple_of(4)..).unwrap_or(&[]);
        Some((kind & KIND, value))
    })
}

pub(crate) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn loopback_is_there() {
        let interfaces = Interfaces::open().expect("a netlink socket needs no capability");
        let lo = interfaces.by_name("lo").expect("an answer").expect("every namespace has it");
        assert_eq!((lo.name.as_str(), lo.hardware), ("lo", 772));
        assert_eq!(
            interfaces.by_index(lo.index).expect("an answer").map(|i| i.name),
            Some(lo.name)
        );
        assert!(interfaces.all().expect("answers").iter().any(|i| i.name == "lo"));
        for none in ["", "no-such-thing", "a-name-that-is-much-too-long"] {
            assert_eq!(interfaces.by_name(none).expect("an answer"), None, "{none:?}");
        }
    }

    proptest! {
        #[test]
        fn any_answer_is_read_or_refused(
            kind in prop_oneof![Just(RTM_NEWLINK), Just(NLMSG_ERROR), any::<u16>()],
            body in proptest::collection::vec(any::<u8>(), 0..200),
        ) {
            let mut bytes = vec![0; HEADER];
            bytes[..4].copy_from_slice(&((HEADER + body.len()) as u32).to_ne_bytes());
            bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
            bytes.extend(&body);
            let mut n = 0;
            let _ = read(&bytes, &mut |_| n += 1);
            let _ = read(&body, &mut |_| n += 1);
            messages(&bytes, |_, body| drop(interface(body)));
            messages(&body, |_, body| drop(interface(body)));
            prop_assert_eq!(n >= 1, kind == RTM_NEWLINK || n > 0);
        }
    }
}
