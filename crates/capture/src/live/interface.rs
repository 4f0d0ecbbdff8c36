//! The interfaces that can be captured from, and what their frames begin with.

use super::error::LiveError;
use super::options::ANY;
use crate::sys::interface::{self as sys, Facts};
use crate::sys::packet::Shape;
use std::io;
use std::net::IpAddr;
use weir_packet::source::LinkType;

/// An interface of this machine, or of the network namespace.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// Its number in the kernel.
    pub index: u32,
    /// The link type of its frames as they are captured.
    pub link: LinkType,
    /// Whether it is switched on.
    pub up: bool,
    /// Whether it is connected.
    pub running: bool,
    /// Whether it leads back to this machine.
    pub loopback: bool,
    /// Its hardware address; empty where it has none.
    pub address: Vec<u8>,
    /// Its IP addresses.
    pub ip: Vec<IpAddr>,
}

/// All interfaces, in the order of their indices.
///
/// # Errors
/// When the kernel does not tell.
pub fn interfaces() -> io::Result<Vec<Interface>> {
    Ok(sys::list()?.into_iter().map(Interface::from).collect())
}

impl From<Facts> for Interface {
    fn from(facts: Facts) -> Interface {
        let flag = |flag: libc::c_int| facts.flags & flag as u32 != 0;
        Interface {
            index: facts.index,
            link: shape(facts.hardware).1,
            up: flag(libc::IFF_UP),
            running: flag(libc::IFF_RUNNING),
            loopback: flag(libc::IFF_LOOPBACK),
            address: facts.address,
            ip: facts.ip,
            name: facts.name,
        }
    }
}

/// `ARPHRD_RAWIP`, which libc lacks.
const RAW_IP: u16 = 519;

/// How to capture from an interface of this hardware type. Link headers that are not decoded, or
/// that the kernel does not show whole (PPP), are taken off by it.
pub(crate) fn shape(hardware: u16) -> (Shape, LinkType) {
    match hardware {
        libc::ARPHRD_ETHER | libc::ARPHRD_LOOPBACK => (Shape::Raw, LinkType::ETHERNET),
        libc::ARPHRD_NONE
        | RAW_IP
        | libc::ARPHRD_TUNNEL
        | libc::ARPHRD_TUNNEL6
        | libc::ARPHRD_SIT => (Shape::Raw, LinkType::RAW),
        libc::ARPHRD_IEEE80211 => (Shape::Raw, LinkType::IEEE802_11),
        libc::ARPHRD_IEEE80211_RADIOTAP => (Shape::Raw, LinkType::RADIOTAP),
        _ => (Shape::Cooked, LinkType::LINUX_SLL2),
    }
}

/// The error of an interface that there is not.
pub(super) fn missing(known: &[Facts]) -> LiveError {
    let names = known.iter().map(|f| f.name.clone()).chain([ANY.to_owned()]);
    LiveError::NoInterface { known: names.collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_frames_begin_with() {
        assert_eq!(shape(1), (Shape::Raw, LinkType::ETHERNET));
        assert_eq!(shape(772), (Shape::Raw, LinkType::ETHERNET));
        assert_eq!(shape(65534), (Shape::Raw, LinkType::RAW));
        assert_eq!(shape(803), (Shape::Raw, LinkType::RADIOTAP));
        assert_eq!(shape(512), (Shape::Cooked, LinkType::LINUX_SLL2));
        assert_eq!(shape(778), (Shape::Cooked, LinkType::LINUX_SLL2));
    }

    #[test]
    fn the_loopback_interface_is_there() {
        let all = interfaces().expect("the kernel tells");
        let lo = all.iter().find(|i| i.loopback).expect("every machine has one");
        assert_eq!((lo.link, lo.index > 0), (LinkType::ETHERNET, true));
        assert!(all.is_sorted_by_key(|i| i.index));
    }
}
