//! Opening: interfaces, sockets, rings, filters.

use super::block::{RESERVE, Rules, SLOT_OVERHEAD};
use super::bound::BoundInterface;
use super::error::{LiveError, error};
use super::event::Event;
use super::interface::{missing, shape};
use super::kernel::put_in_place;
use super::options::{ANY, Handover, KernelPart, LiveOptions, SocketSite, Stamps, check_names};
use super::program::{NOTHING, program};
use super::ring::{Memory, Part, SocketRing};
use super::spread::spread;
use crate::cbpf::ClassicProgram;
use crate::limits::{
    KERNEL_FILTER_MAX, RETIRE_MS, RING_BLOCK, RING_BLOCKS_MIN, RING_BUFFER_MAX, RING_QUEUE,
    RING_SLOT, RING_SLOT_MAX, RING_SLOTS_MIN, RINGS_MAX,
};
use crate::sys;
use crate::sys::interface::Facts;
use crate::sys::link;
use crate::sys::packet::{PacketSocket, Shape};
use std::io;
use weir_packet::limits::CAPLEN_MAX;
use weir_packet::source::{LinkType, SourceError};

/// An interface about to be captured from.
struct Plan<'a> {
    name: &'a str,
    index: u32,
    shape: Shape,
    link: LinkType,
    /// The interface of which what goes out is not wanted.
    loopback: Option<u32>,
}

/// Opens the interfaces, all or none.
pub(super) fn open(
    names: &[String],
    options: &LiveOptions,
) -> Result<(Vec<BoundInterface>, Vec<SocketRing>), SourceError> {
    let known = sys::interface::list().map_err(|e| error(ANY, e))?;
    check(names, options)?;
    let (mut interfaces, mut rings) = (Vec::new(), Vec::new());
    for name in names {
        let plan = plan(name, &known)?;
        stamps(&plan, options.stamps)?;
        let part = sockets(&plan, interfaces.len(), options, &mut rings)?;
        let dropped = known.iter().find(|f| f.index == plan.index).map_or(0, |f| f.dropped);
        interfaces.push(BoundInterface::new(plan.index, plan.link, dropped, part));
    }
    Ok((interfaces, rings))
}

fn check(names: &[String], options: &LiveOptions) -> Result<(), SourceError> {
    check_names(names)?;
    if !(1..=RINGS_MAX).contains(&options.rings) {
        return Err(LiveError::Rings(options.rings).on(&names[0]));
    }
    if options.buffer > RING_BUFFER_MAX {
        return Err(LiveError::Buffer.on(&names[0]));
    }
    Ok(())
}

fn plan<'a>(name: &'a str, known: &[Facts]) -> Result<Plan<'a>, SourceError> {
    let is_loopback = |f: &&Facts| f.flags & libc::IFF_LOOPBACK as u32 != 0;
    if name == ANY {
        let loopback = known.iter().find(is_loopback).map(|f| f.index);
        let (shape, link) = (Shape::Cooked, LinkType::LINUX_SLL2);
        return Ok(Plan { name, index: 0, shape, link, loopback });
    }
    let Some(facts) = known.iter().find(|f| f.name == name) else {
        return Err(missing(known).on(name));
    };
    let (shape, link) = shape(facts.hardware);
    let loopback = Some(facts).filter(is_loopback).map(|f| f.index);
    Ok(Plan { name, index: facts.index, shape, link, loopback })
}

/// Has the adapter put its time on frames, if that is asked for.
fn stamps(plan: &Plan<'_>, stamps: Stamps) -> Result<(), SourceError> {
    if stamps == Stamps::Host {
        return Ok(());
    }
    if plan.name == ANY {
        return Err(LiveError::TimesOfAll.on(ANY));
    }
    let can = sys::interface::time_stamping(plan.name).is_ok_and(|can| can.of_every_frame());
    if !can {
        return Err(LiveError::NoTimes.on(plan.name));
    }
    sys::interface::stamp_every_frame(plan.name).map_err(|e| match e.raw_os_error() {
        Some(libc::EPERM) => LiveError::MayNotTime(e).on(plan.name),
        _ => refused(plan.name, "times of the adapter", e),
    })
}

/// Makes the sockets of an interface. None of them lets a frame in before all are in place, so that
/// no frame comes twice. Returns what the kernel runs of the query.
fn sockets(
    plan: &Plan<'_>,
    interface: usize,
    options: &LiveOptions,
    rings: &mut Vec<SocketRing>,
) -> Result<Option<KernelPart>, SourceError> {
    let name = plan.name;
    let filter = filter(plan, options)?;
    // Frames overflow into the first ring of a group before others.
    let overflow = (options.handover == Handover::Blocks).then_some(Part::Overflow);
    let parts = overflow.into_iter().chain(std::iter::repeat_n(Part::Flows, options.rings));
    let (mut members, mut group, mut made) = (parts.clone().count(), None, Vec::new());
    for part in parts {
        let socket = PacketSocket::new(plan.shape).map_err(|e| no_socket(name, e))?;
        if options.stamps != Stamps::Host {
            socket.adapter_times().map_err(|e| refused(name, "times of the adapter", e))?;
        }
        let memory = memory(&socket, part, plan, options)?;
        socket.filter(&NOTHING).map_err(|e| refused(name, "a filter", e))?;
        socket.bind(plan.index).map_err(|e| refused(name, "a socket", e))?;
        if options.promiscuous && plan.index != 0 {
            socket.promiscuous(plan.index).map_err(|e| refused(name, "promiscuous mode", e))?;
        }
        if members > 1 {
            match socket.share(group) {
                Ok(joined) => group = Some(joined),
                // A kernel may refuse a group while the interface is down. One ring needs none.
                Err(_) if part == Part::Overflow && options.rings == 1 => {
                    members = 1;
                    continue;
                }
                Err(e) => return Err(refused(name, "several rings", e)),
            }
        }
        made.push((part, socket, memory));
    }
    let sockets = made.iter().map(|(_, socket, _)| socket);
    if let Some(socket) = sockets.clone().next().filter(|_| members > 1) {
        let program = spread(members - options.rings, options.rings);
        socket.spread(&program).map_err(|e| refused(name, "several rings", e))?;
    }
    let part = offload(plan, options, sockets.clone())?;
    let in_kernel = match part {
        Some(_) => false,
        None => start(plan, options, filter.as_ref(), sockets)?,
    };
    let program = filter.map(|code| ClassicProgram::new(&code)).transpose();
    let program = program.map_err(|e| SourceError::Filter {
        name: name.to_owned(),
        reason: format!("capture filter: {e}"),
    })?;
    let rules = Rules {
        shape: plan.shape,
        ethernet: plan.link == LinkType::ETHERNET,
        snaplen: options.snaplen,
        all: program.is_some() && !in_kernel,
        filter: program,
    };
    rings.extend(made.into_iter().map(|ring| SocketRing::new(interface, ring, rules.clone())));
    Ok(part)
}

/// Lets the kernel's part of the query decide about frames, where there is one. Beside a capture
/// filter there is none.
fn offload<'a>(
    plan: &Plan<'_>,
    options: &LiveOptions,
    mut sockets: impl Iterator<Item = &'a PacketSocket>,
) -> Result<Option<KernelPart>, SourceError> {
    let site = SocketSite {
        interface: plan.name,
        link: plan.link,
        direction: options.direction,
        loopback: plan.loopback,
        snaplen: options.snaplen,
    };
    put_in_place(&site, options, |program| sockets.try_for_each(|socket| socket.attach(program)))
}

/// Makes the ring of a socket.
fn memory(
    socket: &PacketSocket,
    part: Part,
    plan: &Plan<'_>,
    options: &LiveOptions,
) -> Result<Memory, SourceError> {
    let (name, rings) = (plan.name, options.rings);
    let bytes = options.buffer / rings;
    match (part, options.handover) {
        (Part::Overflow, _) => {
            // Short slots hold the most frames. Longer frames are queued, as many as fit there.
            let slots = (options.buffer / RING_SLOT).max(RING_SLOTS_MIN);
            let queue = options.buffer.max(RING_QUEUE);
            slot_ring(socket, name, (slots, RING_SLOT, queue), 1)
        }
        (Part::Flows, Handover::Blocks) => {
            let blocks = (bytes / RING_BLOCK).max(RING_BLOCKS_MIN);
            let (block, retire_ms, reserve) = (RING_BLOCK, RETIRE_MS, RESERVE);
            let ring = sys::ring::BlockRing::new(
                socket,
                sys::ring::BlockRingSize { blocks, block, retire_ms, reserve },
            )
            .map_err(|e| no_memory(name, blocks * block * rings, e))?;
            Ok(Memory::Blocks { ring, reading: 0 })
        }
        (Part::Flows, Handover::AtOnce) => {
            // Of all interfaces there is no MTU; a frame has a link header and perhaps a tag.
            let mtu = link::control().and_then(|control| link::mtu(control, name)).unwrap_or(0);
            let longest = usize::try_from(mtu).unwrap_or(usize::MAX).saturating_add(LINK_HEADER);
            let slot = longest.saturating_add(SLOT_OVERHEAD).clamp(RING_SLOT, RING_SLOT_MAX);
            let slot = slot.next_power_of_two();
            let slots = (bytes / slot).max(RING_SLOTS_MIN);
            slot_ring(socket, name, (slots, slot, RING_QUEUE), rings)
        }
    }
}

/// Makes a ring of slots, one of so many.
fn slot_ring(
    socket: &PacketSocket,
    name: &str,
    (slots, slot, queue): (usize, usize, usize),
    rings: usize,
) -> Result<Memory, SourceError> {
    let (block, reserve) = (RING_BLOCK, RESERVE);
    let size = sys::ring::SlotSize { slots, slot, block, reserve, queue };
    let ring = sys::ring::Slots::new(socket, size)
        .map_err(|e| no_memory(name, slots * slot * rings, e))?;
    Ok(Memory::Slots { ring, long: None, error: None })
}

/// Bytes of an Ethernet header with a tag.
const LINK_HEADER: usize = 18;

type Code = Vec<crate::cbpf::Instruction>;

/// The capture filter for the frames of an interface.
fn filter(plan: &Plan<'_>, options: &LiveOptions) -> Result<Option<Code>, SourceError> {
    let compile = |filter: &crate::bpf::Filter| filter.instructions(plan.link);
    options
        .filter
        .as_ref()
        .map(compile)
        .transpose()
        .map_err(|e| SourceError::Filter { name: plan.name.to_owned(), reason: e.to_string() })
}

/// Lets frames into all sockets. Returns whether the kernel applies the capture filter.
fn start<'a>(
    plan: &Plan<'_>,
    options: &LiveOptions,
    filter: Option<&Code>,
    sockets: impl Iterator<Item = &'a PacketSocket> + Clone,
) -> Result<bool, SourceError> {
    let set = |code: &Code| sockets.clone().try_for_each(|socket| socket.filter(code));
    // The fields of a cooked header are not where the kernel's filter would look.
    let kernel = filter.filter(|_| plan.shape == Shape::Raw);
    let code = |filter: Option<&Code>, snaplen| {
        program(options.direction, plan.loopback, snaplen, filter.map(|code| &code[..]))
    };
    if let Some(filter) = kernel {
        let whole = code(Some(filter), options.snaplen);
        let refusal = match whole.len() {
            0..=KERNEL_FILTER_MAX => match set(&whole) {
                Ok(()) => return Ok(true),
                Err(e) => e.to_string(),
            },
            n => format!("{n} instructions are more than {KERNEL_FILTER_MAX}"),
        };
        options.report(&Event::FilterBehind { interface: plan.name.to_owned(), reason: refusal });
    }
    let snaplen = if filter.is_some() { CAPLEN_MAX } else { options.snaplen };
    set(&code(None, snaplen)).map_err(|e| refused(plan.name, "a filter", e))?;
    Ok(false)
}

fn no_socket(name: &str, e: io::Error) -> SourceError {
    match e.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => LiveError::MayNot(e).on(name),
        Some(libc::EAFNOSUPPORT | libc::EPROTONOSUPPORT | libc::ESOCKTNOSUPPORT) => {
            LiveError::NoPacketSockets(e).on(name)
        }
        _ => refused(name, "a socket", e),
    }
}

fn no_memory(name: &str, bytes: usize, e: io::Error) -> SourceError {
    if e.raw_os_error() == Some(libc::ENOMEM) {
        return LiveError::NoMemory { bytes, source: e }.on(name);
    }
    refused(name, "a ring", e)
}

fn refused(name: &str, what: &'static str, source: io::Error) -> SourceError {
    LiveError::Refused { what, source }.on(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Other refusals of the same kind, of a ring say, are not taken for it.
    #[test]
    fn that_there_are_no_packet_sockets_can_be_told() {
        let told = |error: SourceError| match error {
            SourceError::Io { source, .. } => {
                let error = source.get_ref().and_then(|e| e.downcast_ref::<LiveError>());
                (source.kind(), matches!(error, Some(LiveError::NoPacketSockets(_))))
            }
            other => panic!("{other}"),
        };
        let os = io::Error::from_raw_os_error;
        let none = told(no_socket("eth0", os(libc::EAFNOSUPPORT)));
        assert_eq!(none, (io::ErrorKind::Unsupported, true));
        let other = told(refused("eth0", "several rings", os(libc::EOPNOTSUPP)));
        assert_eq!(other, (io::ErrorKind::Unsupported, false));
        assert!(!told(no_socket("eth0", os(libc::EPERM))).1);
    }
}
