//! The interfaces that frames are captured on, and the outlets that would have these frames
//! captured again.

use super::error::OutletError;
use crate::live::ANY;
use crate::send::Wire;
use crate::send::place::Place;
use std::net::IpAddr;
use weir_packet::source::LinkType;

/// An interface that frames are captured on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Captured {
    /// Its name.
    pub name: String,
    /// The kernel's number of it; 0 for all interfaces, and for what the kernel does not know.
    pub index: u32,
    /// How.
    pub by: CapturedBy,
    /// Whether frames are captured that leave by it, too.
    pub outgoing: bool,
    /// The link type of frames captured on it.
    pub link: LinkType,
    /// The IP addresses that the machine has there.
    pub addresses: Vec<IpAddr>,
}

/// How frames are captured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CapturedBy {
    /// Of what the kernel receives and sends.
    Kernel,
    /// By sockets of AF_XDP on all queues.
    Xdp,
    /// By a device of DPDK, whose name its frames bear instead of the interface's.
    Dpdk,
}

/// The kernel's number of an interface, which may have several names.
#[cfg(target_os = "linux")]
fn index_of(interface: &str) -> Option<u32> {
    crate::sys::link::index(interface).ok()
}

#[cfg(not(target_os = "linux"))]
fn index_of(_: &str) -> Option<u32> {
    None
}

impl Captured {
    /// Whether it is this interface, by whatever name, or all of them.
    fn is(&self, interface: &str) -> bool {
        let same = || index_of(interface) == Some(self.index);
        self.name == ANY || self.name == interface || self.index != 0 && same()
    }
}

/// The interface that frames for an outlet of this name leave by, by its form alone, if it is one.
pub fn interface_of(outlet: &str) -> Option<String> {
    match Place::of(outlet) {
        Ok(Place::Interface) => Some(outlet.to_owned()),
        Ok(Place::Xdp(interface)) => Some(interface),
        _ => None,
    }
}

/// Whether frames for an outlet of this name go to the host that receives.
pub fn is_host(outlet: &str) -> bool {
    Place::of(outlet) == Ok(Place::Host)
}

/// The interface among `captured` that an outlet of this name sends by, if it is one.
pub(super) fn captured_interface<'a>(captured: &'a [Captured], name: &str) -> Option<&'a Captured> {
    let interface = interface_of(name)?;
    captured.iter().find(|on| on.is(&interface))
}

/// Refuses an interface that frames are captured on, unless others are, too, and only what comes
/// in: then frames don't go back where they came from, see
/// [`Refusal::CameByIt`](weir_packet::egress::Refusal::CameByIt). And a device whose frames would
/// come in there.
///
/// # Errors
/// Why the outlet is refused.
pub(super) fn check_place(
    captured: &[Captured],
    name: &str,
    place: &Place,
) -> Result<(), OutletError> {
    let interface = match place {
        Place::Interface => name,
        Place::Xdp(interface) | Place::Tap(interface) | Place::Tun(interface) => interface,
        _ => return Ok(()),
    };
    let Some(on) = captured.iter().find(|on| on.is(interface)) else { return Ok(()) };
    let several = captured.len() > 1 && on.by != CapturedBy::Dpdk;
    let (name, interface) = (name.to_owned(), interface.to_owned());
    Err(match place {
        Place::Tap(_) | Place::Tun(_) => OutletError::Echo { name, interface },
        _ if several && on.outgoing => OutletError::CapturesOutgoing { name },
        Place::Xdp(_) if several && on.by == CapturedBy::Xdp => {
            OutletError::NoQueueLeft { name, interface }
        }
        _ if several => return Ok(()),
        _ => OutletError::SameInterface { name },
    })
}

/// Refuses a tunnel whose own packets would be captured, and wrapped again, without end; and a
/// wire that takes nothing of what is captured.
///
/// # Errors
/// Why the wire is refused.
pub(super) fn check_wire(captured: &[Captured], wire: &Wire) -> Result<(), OutletError> {
    let name = || wire.name.clone();
    let local = wire.local_address();
    let seen = |on: &&Captured| on.outgoing && local.is_some_and(|ip| on.addresses.contains(&ip));
    if let Some(on) = captured.iter().find(seen) {
        return Err(OutletError::TunnelCaptured { name: name(), interface: on.name.clone() });
    }
    let other = |on: &Captured| !wire.takes(on.link);
    match captured.first() {
        Some(first) if captured.iter().all(other) => {
            let (link, interface) = (first.link, first.name.clone());
            Err(OutletError::LinkType { name: name(), link, interface })
        }
        _ => Ok(()),
    }
}
