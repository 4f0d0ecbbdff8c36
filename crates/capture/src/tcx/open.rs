//! Opening: the ring, and a program for each interface and direction.

use super::error::TcxError;
use super::program::Tap;
use super::source::{HookedPort, TcxHooks};
use crate::bpf::Filtered;
use crate::ebpf::{Link, Offloaded, Program, ProgramKind, SharedMemory};
use crate::limits::{TCX_RING_MAX, TCX_RING_MIN};
use crate::live::driver::{Driver, Driving, Links};
use crate::live::watch::Watch;
use crate::live::{ANY, Directions, LiveError, LiveOptions, Stamps, check_names, shape};
use crate::sys::bpf::RecordRing;
use crate::sys::packet::{PacketSocket, Shape};
use crate::xdp::link::{Interfaces, LinkInfo};
use std::io;
use weir_packet::interface::{CapturePoint, Direction};
use weir_packet::source::{LinkType, Source, SourceError};

/// Captures from interfaces of the network namespace of the calling thread, by their names, at
/// their traffic control hooks. It ends when [`LiveOptions::stop`] is set, or when the last of them
/// is removed. Of the options, `rings` has no meaning: all packets come by one ring of
/// [`LiveOptions::buffer`] bytes, rounded down to a power of two.
///
/// `offloaded` has what runs before the capture, for each interface in their order, or is empty.
///
/// # Errors
/// When there is no such interface, the process may not, or the kernel refuses what the options
/// ask for. Nothing is left behind.
pub fn open_tcx(
    names: &[String],
    mut options: LiveOptions,
    offloaded: Vec<Offloaded>,
) -> Result<Box<dyn Source>, SourceError> {
    check_names(names)?;
    let all = names.join(", ");
    if options.stamps != Stamps::Host {
        return Err(TcxError::NoTimes.on(&all));
    }
    let watch = options.events.as_ref().and_then(|_| Watch::new(names).ok());
    let known = Interfaces::open().map_err(|e| refused(&all, "asking for interfaces", e))?;
    let ring = RecordRing::new("weir-frames", ring_bytes(options.buffer))
        .map_err(|e| refused(&all, "making a ring for packets", e))?;
    let lost = SharedMemory::new("weir-lost", names.len())
        .map_err(|e| refused(&all, "making memory for counters", e))?;
    let mut offloaded = offloaded.into_iter();
    let (mut ports, mut points) = (Vec::new(), Vec::new());
    for (number, name) in names.iter().enumerate() {
        let interface = look_up(&known, name)?;
        let opening = Opening { interface: &interface, number, options: &options };
        ports.push(opening.open(&ring, &lost, offloaded.next())?);
        let point = options.interfaces.number(name);
        let point = |direction| CapturePoint::new(point, Some(direction));
        points.extend([point(Direction::In), point(Direction::Out)]);
    }
    let hooks = TcxHooks::new(ring, lost, (ports, points), known, &options);
    let links = Links::new(names.iter().cloned(), options.events.take()).watched(watch);
    let driving = Driving { stamps: options.stamps, stop: options.stop, began_before: true };
    let source = Driver::new(hooks, links, driving);
    Ok(match options.filter {
        Some(filter) => Box::new(Filtered::new(source, &all, filter)),
        None => Box::new(source),
    })
}

/// A power of two, at most as large as was asked for.
fn ring_bytes(wanted: usize) -> usize {
    let wanted = wanted.clamp(TCX_RING_MIN, TCX_RING_MAX);
    1 << wanted.ilog2()
}

/// The interface of this name, if it can be captured.
fn look_up(known: &Interfaces, name: &str) -> Result<LinkInfo, SourceError> {
    if name == ANY {
        return Err(TcxError::Any.on(name));
    }
    let asking = |e| refused(name, "asking for the interface", e);
    let Some(interface) = known.by_name(name).map_err(asking)? else {
        let known = known.all().map_err(asking)?.into_iter().map(|i| i.name).collect();
        return Err(LiveError::NoInterface { known }.on(name));
    };
    Ok(interface)
}

/// One interface to be opened.
struct Opening<'a> {
    interface: &'a LinkInfo,
    number: usize,
    options: &'a LiveOptions,
}

impl Opening<'_> {
    fn open(
        &self,
        ring: &RecordRing,
        lost: &SharedMemory,
        offloaded: Option<Offloaded>,
    ) -> Result<HookedPort, SourceError> {
        let LinkInfo { name, index, hardware, .. } = self.interface;
        let (Shape::Raw, link @ (LinkType::ETHERNET | LinkType::RAW)) = shape(*hardware) else {
            return Err(TcxError::Hardware(*hardware).on(name));
        };
        let mut links = Vec::new();
        for sends in self.directions() {
            let tap = Tap {
                ring: ring.number(),
                lost: lost.number(),
                count: self.number as u32,
                number: 2 * self.number as i32 + i32::from(sends),
                snaplen: self.options.snaplen,
                ethernet: link == LinkType::ETHERNET,
                offloaded: offloaded.as_ref(),
            };
            let code = tap
                .code()
                .map_err(|e| refused(name, "writing the program for tcx", io::Error::other(e)))?;
            let program = Program::load(ProgramKind::TrafficControl, "weir-tcx", &code)
                .map_err(|e| TcxError::Load(e).on(name))?;
            let link = Link::tcx(&program, *index, sends);
            links.push(link.map_err(|e| TcxError::Attach(e).on(name))?);
        }
        let promiscuous = self.promiscuous()?;
        let counts = offloaded.map(|offloaded| offloaded.counts);
        Ok(HookedPort::new(self.interface, link, links, promiscuous, counts))
    }

    /// Whether packets that are sent are captured, and those that are received. Packets that go out
    /// by loopback come in by it, and are wanted once.
    fn directions(&self) -> Vec<bool> {
        match self.options.direction {
            Directions::In => vec![false],
            Directions::Out => vec![true],
            Directions::InOut if self.interface.hardware == libc::ARPHRD_LOOPBACK => vec![false],
            Directions::InOut => vec![false, true],
        }
    }

    /// A socket that keeps the interface promiscuous as long as it lives, and receives nothing.
    fn promiscuous(&self) -> Result<Option<PacketSocket>, SourceError> {
        if !self.options.promiscuous {
            return Ok(None);
        }
        let LinkInfo { name, index, .. } = self.interface;
        let socket = PacketSocket::new(Shape::Raw).map_err(|e| refused(name, "a socket", e))?;
        socket.promiscuous(*index).map_err(|e| refused(name, "promiscuous mode", e))?;
        Ok(Some(socket))
    }
}

fn refused(name: &str, doing: &'static str, source: io::Error) -> SourceError {
    TcxError::Refused { doing, source }.on(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_has_a_power_of_two_of_bytes() {
        for (wanted, bytes) in [
            (0, TCX_RING_MIN),
            (TCX_RING_MIN, TCX_RING_MIN),
            ((32 << 20) - 1, 16 << 20),
            (32 << 20, 32 << 20),
            (usize::MAX, TCX_RING_MAX),
        ] {
            assert_eq!(ring_bytes(wanted), bytes, "{wanted}");
        }
    }
}
