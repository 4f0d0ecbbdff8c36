//! The interfaces of the network namespace of the calling thread: getifaddrs(3) and netdevice(7).
//!
//! It is sound: the list of getifaddrs is walked from its head by its own links, each of
//! its pointers is looked at only where it is not null and as the type that its address family
//! says, everything is copied, and the list is freed once. Requests are those of [`link`], with
//! data of the types that they take.

use super::{checked, link};
use libc::c_int;
use std::ffi::CStr;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// An interface as the kernel describes it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Facts {
    pub(crate) name: String,
    pub(crate) index: u32,
    /// `ARPHRD_…`.
    pub(crate) hardware: u16,
    /// `IFF_…`.
    pub(crate) flags: u32,
    /// Its hardware address, where it has one.
    pub(crate) address: Vec<u8>,
    /// Its IP addresses.
    pub(crate) ip: Vec<IpAddr>,
    /// Frames that it had no room for, modulo 2^32. Frames that the kernel drops later because
    /// nobody takes their protocol or VLAN (`rx_dropped`) are seen by captures, and are not among
    /// these.
    pub(crate) dropped: u32,
}

/// `struct rtnl_link_stats`, as far as we look: counters of 32 bits in this order.
#[repr(C)]
struct Counters([u32; 16]);

const RX_FIFO: usize = 14;
const RX_MISSED: usize = 15;

/// All interfaces, in the order of their indices.
pub(crate) fn list() -> io::Result<Vec<Facts>> {
    let mut head: *mut libc::ifaddrs = std::ptr::null_mut();
    // SAFETY: a place for the head of the list.
    checked(unsafe { libc::getifaddrs(&mut head) })?;
    let (mut found, mut addresses) = (Vec::new(), Vec::new());
    let mut at: *const libc::ifaddrs = head;
    // SAFETY: the head of the list and its links, which are null at its end.
    while let Some(entry) = unsafe { at.as_ref() } {
        at = entry.ifa_next;
        // SAFETY: names end in NUL and stay until the list is freed.
        let name = unsafe { CStr::from_ptr(entry.ifa_name) }.to_string_lossy().into_owned();
        // SAFETY: addresses begin with their family.
        let family = unsafe { entry.ifa_addr.as_ref() }.map(|a| c_int::from(a.sa_family));
        match family.unwrap_or(libc::AF_PACKET) {
            libc::AF_PACKET => {
                // SAFETY: the type of addresses of this family, or null: some interfaces have none.
                let link = unsafe { entry.ifa_addr.cast::<libc::sockaddr_ll>().as_ref() };
                // SAFETY: entries of this family come with their counters, or with null.
                let counters = unsafe { entry.ifa_data.cast::<Counters>().as_ref() };
                let known = link.map(|l| (l.sll_ifindex.unsigned_abs(), l.sll_hatype));
                // One that answers nothing has gone meanwhile.
                let Some((index, hardware)) = known.or_else(|| numbers(&name)) else { continue };
                let address =
                    |l: &libc::sockaddr_ll| l.sll_addr[..usize::from(l.sll_halen).min(8)].to_vec();
                let dropped = |Counters(c): &Counters| c[RX_FIFO].wrapping_add(c[RX_MISSED]);
                found.push(Facts {
                    name,
                    index,
                    hardware,
                    flags: entry.ifa_flags,
                    address: link.map(address).unwrap_or_default(),
                    ip: Vec::new(),
                    dropped: counters.map_or(0, dropped),
                });
            }
            libc::AF_INET => {
                // SAFETY: the type of addresses of this family.
                let four = unsafe { &*entry.ifa_addr.cast::<libc::sockaddr_in>() };
                let ip = Ipv4Addr::from(four.sin_addr.s_addr.to_ne_bytes());
                addresses.push((name, IpAddr::V4(ip)));
            }
            libc::AF_INET6 => {
                // SAFETY: the type of addresses of this family.
                let six = unsafe { &*entry.ifa_addr.cast::<libc::sockaddr_in6>() };
                addresses.push((name, IpAddr::V6(Ipv6Addr::from(six.sin6_addr.s6_addr))));
            }
            _ => {}
        }
    }
    // SAFETY: the list that was made above; everything was copied.
    unsafe { libc::freeifaddrs(head) };
    for (name, ip) in addresses {
        if let Some(facts) = found.iter_mut().find(|f| f.name == name) {
            facts.ip.push(ip);
        }
    }
    found.sort_by_key(|facts| facts.index);
    Ok(found)
}

/// The index and the hardware type of an interface without an address.
fn numbers(name: &str) -> Option<(u32, u16)> {
    let hardware = link::control().and_then(|control| link::hardware(control, name));
    Some((link::index(name).ok()?, hardware.ok()?))
}

/// The time stamps that an adapter can give (`struct ethtool_ts_info`).
#[repr(C)]
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct TimeStamping {
    cmd: u32,
    so_timestamping: u32,
    phc_index: i32,
    tx_types: u32,
    tx_reserved: [u32; 3],
    rx_filters: u32,
    rx_reserved: [u32; 3],
}

/// `ETHTOOL_GET_TS_INFO`.
const GET_TS_INFO: u32 = 0x41;
const RX_HARDWARE: u32 = 1 << 2;
const RAW_HARDWARE: u32 = 1 << 6;

impl TimeStamping {
    /// Whether it can put its time on every frame that it receives.
    pub(crate) fn of_every_frame(&self) -> bool {
        let needed = RX_HARDWARE | RAW_HARDWARE;
        self.so_timestamping & needed == needed
            && self.rx_filters & 1 << libc::HWTSTAMP_FILTER_ALL != 0
    }
}

/// Asks an interface what its adapter can say of time.
pub(crate) fn time_stamping(name: &str) -> io::Result<TimeStamping> {
    let mut info = TimeStamping { cmd: GET_TS_INFO, ..TimeStamping::default() };
    // SAFETY: what this command reads and writes.
    unsafe { link::ask_with(link::control()?, libc::SIOCETHTOOL, name, &mut info)? };
    Ok(info)
}

/// Has the adapter put its time on every frame that it receives; needs CAP_NET_ADMIN.
pub(crate) fn stamp_every_frame(name: &str) -> io::Result<()> {
    let mut config = libc::hwtstamp_config {
        flags: 0,
        tx_type: libc::HWTSTAMP_TX_OFF as c_int,
        rx_filter: libc::HWTSTAMP_FILTER_ALL as c_int,
    };
    // SAFETY: what this request reads and writes.
    unsafe { link::ask_with(link::control()?, libc::SIOCSHWTSTAMP, name, &mut config) }
}
