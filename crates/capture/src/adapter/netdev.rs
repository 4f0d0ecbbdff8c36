//! The XDP features of a driver: the `netdev` family of generic netlink (Linux 6.3,
//! Documentation/netlink/specs/netdev.yaml).

use crate::limits::NETLINK_BUFFER;
use crate::xdp::link::{attributes, u16_at, u32_at};
use rustix::net::netlink::{self, SocketAddrNetlink};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, connect, recv, send, socket_with,
};
use std::io;
use std::os::fd::OwnedFd;

/// `nlctrl`, which knows the numbers of the others.
const CONTROL: u16 = 0x10;
const GET_FAMILY: u8 = 3;
const FAMILY_ID: u16 = 1;
const FAMILY_NAME: u16 = 2;

const GET_DEVICE: u8 = 1;
const DEVICE_INDEX: u16 = 1;
const DEVICE_XDP: u16 = 3;

const NLM_F_REQUEST: u16 = 1;
const NLMSG_ERROR: u16 = 2;
/// `struct nlmsghdr` and `struct genlmsghdr`.
const HEADERS: usize = 16 + 4;

/// `NETDEV_XDP_ACT_…` of the interface of this number; `None` where the kernel does not tell.
pub(super) fn xdp_features(index: u32) -> io::Result<Option<u64>> {
    let socket = socket_with(
        AddressFamily::NETLINK,
        SocketType::RAW,
        SocketFlags::CLOEXEC,
        Some(netlink::GENERIC),
    )?;
    connect(&socket, &SocketAddrNetlink::new(0, 0))?;
    let name = ask(&socket, &request(CONTROL, GET_FAMILY, FAMILY_NAME, b"netdev\0"))?;
    let Some(family) = name.as_deref().and_then(|m| value(m, FAMILY_ID)?.try_into().ok()) else {
        return Ok(None);
    };
    let family = u16::from_ne_bytes(family);
    let device = ask(&socket, &request(family, GET_DEVICE, DEVICE_INDEX, &index.to_ne_bytes()))?;
    let features = device.as_deref().and_then(|m| value(m, DEVICE_XDP)?.try_into().ok());
    Ok(features.map(u64::from_ne_bytes))
}

fn request(family: u16, command: u8, kind: u16, value: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; HEADERS];
    bytes[4..6].copy_from_slice(&family.to_ne_bytes());
    bytes[6..8].copy_from_slice(&NLM_F_REQUEST.to_ne_bytes());
    (bytes[16], bytes[17]) = (command, 1);
    bytes.extend_from_slice(&(4 + value.len() as u16).to_ne_bytes());
    bytes.extend_from_slice(&kind.to_ne_bytes());
    bytes.extend_from_slice(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    let len = bytes.len() as u32;
    bytes[..4].copy_from_slice(&len.to_ne_bytes());
    bytes
}

/// The answer, whole; `None` where there is no such thing.
fn ask(socket: &OwnedFd, request: &[u8]) -> io::Result<Option<Vec<u8>>> {
    send(socket, request, SendFlags::empty())?;
    let mut answer = vec![0; NETLINK_BUFFER];
    let (n, _) = recv(socket, &mut answer[..], RecvFlags::empty())?;
    answer.truncate(n);
    let refused = u16_at(&answer, 4) == Some(NLMSG_ERROR);
    Ok((!refused).then_some(answer))
}

/// The value of an attribute of a message.
fn value(message: &[u8], wanted: u16) -> Option<&[u8]> {
    let len = u32_at(message, 0)? as usize;
    let body = message.get(HEADERS..len.min(message.len()))?;
    attributes(body).find(|&(kind, _)| kind == wanted).map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn loopback_is_asked_about() {
        // Which kernels answer is their business; that there is an answer is ours.
        let features = xdp_features(1).expect("the kernel answers");
        assert!(features.is_none_or(|bits| bits < 1 << 32), "{features:?}");
        assert_eq!(xdp_features(u32::MAX).expect("the kernel answers"), None);
    }

    proptest! {
        #[test]
        fn any_answer_is_read(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = value(&bytes, DEVICE_XDP);
        }
    }
}
