//! Frames onto wires, as Linux does it.

use super::attempt::Attempt;
use super::carry::{Carries, Header};
use super::dpdk::DpdkSender;
use super::error::SendError;
use super::interface::InterfaceSender;
use super::place::Place;
use super::transmit::OpenTransmit;
use super::tun_tap::TunTapSender;
use super::tunnel::TunnelSender;
use super::xdp::XdpSender;
use crate::limits::{SEND_AT_ONCE, SEND_PAUSE_NS, SEND_RETRIES};
use crate::sys::send::{Pieces, wait_writable};
pub(crate) use crate::sys::tun::DEVICES;
use std::net::IpAddr;
use std::os::fd::BorrowedFd;
use std::{fmt, io};
use weir_packet::egress::{Refusal, Refused, Sent};
use weir_packet::shorten::make_whole;
use weir_packet::source::LinkType;

/// A sender of frames.
enum Port {
    Interface(InterfaceSender),
    Xdp(Box<XdpSender>),
    Dpdk(DpdkSender),
    Device(TunTapSender),
    Tunnel(TunnelSender),
    /// The host, to which nothing is sent from here.
    Host,
}

/// A frame to be sent.
#[derive(Clone, Copy)]
struct Queued {
    /// Its number in the batch.
    frame: u32,
    header: Header,
    /// Where its bytes are: in the memory of the batch, or among those that were made anew.
    anew: bool,
    start: u32,
    len: u32,
    /// Whether it was refused by itself.
    refused: bool,
}

/// Frames of an outlet that went to a device which may throw them away later.
struct Taken {
    outlet: u32,
    /// How many, without those that were counted as thrown away.
    frames: u64,
    /// The length of the last of them.
    len: u32,
}

/// Where frames go that is not a file.
pub(crate) struct Wire {
    pub(crate) name: String,
    port: Port,
    carries: Carries,
    /// Why it takes nothing for now, if it doesn't.
    away: Option<Refusal>,
    wait_ns: u64,
    /// Numbers of the frames of the batch that are for it.
    batch: Vec<u32>,
    queue: Vec<Queued>,
    /// Bytes of frames that were shortened.
    anew: Vec<u8>,
    /// Whether an error was reported that has no name in the ledger.
    noted: bool,
    /// Frames that may be thrown away later, outlet by outlet.
    taken: Vec<Taken>,
}

impl Wire {
    /// Opens a place that is no file, those of DPDK by `dpdk`. Peculiarities go to `report`.
    pub(crate) fn open(
        name: &str,
        place: &Place,
        wait_ns: u64,
        report: &mut dyn FnMut(String),
        dpdk: &mut OpenTransmit,
    ) -> io::Result<Wire> {
        let (port, carries) = match place {
            Place::Interface => {
                let (interface, carries) = InterfaceSender::open(name)?;
                (Port::Interface(interface), carries)
            }
            Place::Xdp(interface) => {
                let (interface, carries) = XdpSender::open(name, interface, report)?;
                (Port::Xdp(Box::new(interface)), carries)
            }
            Place::Dpdk(device) => {
                (Port::Dpdk(DpdkSender::open(name, device, dpdk)?), Carries::Ethernet)
            }
            Place::Tap(device) => {
                let kind = crate::sys::tun::Kind::Tap;
                (Port::Device(TunTapSender::open(name, device, kind)?), Carries::Ethernet)
            }
            Place::Tun(device) => {
                let kind = crate::sys::tun::Kind::Tun;
                (Port::Device(TunTapSender::open(name, device, kind)?), Carries::Ip)
            }
            Place::Tunnel(tunnel) => {
                let (tunnel, carries) = TunnelSender::open(name, tunnel)?;
                (Port::Tunnel(tunnel), carries)
            }
            Place::Host => (Port::Host, Carries::Ethernet),
            Place::File => return Err(SendError::File { name: name.to_owned() }.into()),
        };
        let mut wire = Wire {
            name: name.to_owned(),
            port,
            carries,
            away: None,
            wait_ns,
            batch: Vec::new(),
            queue: Vec::new(),
            anew: Vec::new(),
            noted: false,
            taken: Vec::new(),
        };
        let there = match &wire.port {
            Port::Interface(interface) => interface.is_back(),
            Port::Xdp(interface) => interface.is_back(),
            Port::Dpdk(device) => device.is_back(),
            Port::Device(_) | Port::Tunnel(_) | Port::Host => true,
        };
        if !there {
            wire.leave(Refusal::Down, report);
        }
        Ok(wire)
    }

    /// Whether it may take frames of this link type.
    pub(crate) fn takes(&self, link: LinkType) -> bool {
        self.carries.takes(link)
    }

    /// Whether it is a TUN or TAP device.
    pub(crate) fn is_device(&self) -> bool {
        matches!(self.port, Port::Device(_))
    }

    /// Whether it is sent by AF_XDP.
    pub(crate) fn is_xdp(&self) -> bool {
        matches!(self.port, Port::Xdp(_))
    }

    /// The address that its packets leave from, if it is a tunnel.
    pub(crate) fn local_address(&self) -> Option<IpAddr> {
        match &self.port {
            Port::Tunnel(tunnel) => tunnel.local_address(),
            Port::Interface(_) | Port::Xdp(_) | Port::Dpdk(_) | Port::Device(_) | Port::Host => {
                None
            }
        }
    }

    /// Puts a frame of the batch, by its number, into the queue.
    pub(crate) fn push(&mut self, frame: u32) {
        self.batch.push(frame);
    }

    /// Whether it takes nothing for now; if so, it is looked whether that is over.
    pub(crate) fn is_away(&mut self, report: &mut dyn FnMut(String)) -> bool {
        if self.away.is_some() && self.back() {
            self.away = None;
            report(format!("{}: is back", self.name));
        }
        self.away.is_some()
    }

    fn back(&mut self) -> bool {
        match &mut self.port {
            Port::Interface(interface) => interface.come_back(),
            Port::Xdp(interface) => interface.come_back(),
            Port::Dpdk(device) => device.is_back(),
            Port::Device(device) => device.come_back(),
            Port::Tunnel(tunnel) => tunnel.come_back(),
            Port::Host => true,
        }
    }

    fn leave(&mut self, reason: Refusal, report: &mut dyn FnMut(String)) {
        if self.away.replace(reason).is_none() {
            let why = match reason {
                Refusal::Unreachable => "there is no way there",
                _ => "is down or gone",
            };
            report(format!("{}: {why}; packets for it are refused until that is over", self.name));
        }
    }

    /// Sends what was put into the queue; adds what was refused to the account of its outlet.
    pub(crate) fn send(
        &mut self,
        memory: &[u8],
        frames: &[Sent],
        accounts: &mut [Refused],
        report: &mut dyn FnMut(String),
    ) {
        if self.batch.is_empty() {
            return;
        }
        let mut refuse = |frame: u32, reason| {
            let Sent { outlet, len, .. } = frames[frame as usize];
            accounts[outlet as usize].add(reason, len);
        };
        if matches!(self.port, Port::Host) {
            self.batch.drain(..).for_each(|frame| refuse(frame, Refusal::WentUp));
            return;
        }
        self.is_away(report);
        self.prepare(memory, frames, &mut refuse);
        let mut at = 0;
        if self.away.is_none() {
            at = self.put(memory, &mut refuse, report);
        }
        let reason = self.away.unwrap_or(Refusal::Full);
        self.queue[at..].iter().for_each(|queued| refuse(queued.frame, reason));
        self.queue.truncate(at);
        self.count_thrown(frames, &mut refuse, report);
        self.queue.clear();
    }

    /// Counts what a device took and threw away, which it may report later. It does not report
    /// which frames those were: the last ones that it took are counted.
    fn count_thrown(
        &mut self,
        frames: &[Sent],
        refuse: &mut impl FnMut(u32, Refusal),
        report: &mut dyn FnMut(String),
    ) {
        let Port::Dpdk(device) = &mut self.port else { return };
        let taken = || self.queue.iter().rev().filter(|queued| !queued.refused);
        let count = taken().count();
        if count == 0 {
            return;
        }
        let (n, reason) = device.thrown(count as u64);
        taken().take(n as usize).for_each(|queued| refuse(queued.frame, reason));
        for queued in self.queue.iter().filter(|queued| !queued.refused).take(count - n as usize) {
            let Sent { outlet, len, .. } = frames[queued.frame as usize];
            match self.taken.iter_mut().find(|taken| taken.outlet == outlet) {
                Some(taken) => (taken.frames, taken.len) = (taken.frames + 1, len),
                None => self.taken.push(Taken { outlet, frames: 1, len }),
            }
        }
        if n > 0 && reason == Refusal::Other {
            self.note(&"the device took frames and threw them away", report);
        }
    }

    /// Waits a little until what a device took has left, and counts what it threw away, no more
    /// than it took here: it may be the device of other wires, too. Outlets may get other numbers
    /// then.
    pub(crate) fn settle(&mut self, accounts: &mut [Refused]) {
        let Port::Dpdk(device) = &mut self.port else { return };
        let taken = std::mem::take(&mut self.taken);
        if taken.is_empty() {
            return;
        }
        device.drain();
        let (mut rest, reason) = device.thrown(taken.iter().map(|taken| taken.frames).sum());
        for Taken { outlet, frames, len } in taken {
            let n = rest.min(frames);
            rest -= n;
            if let Some(account) = accounts.get_mut(outlet as usize) {
                (0..n).for_each(|_| account.add(reason, len));
            }
        }
    }

    /// Makes of each frame what the wire carries.
    fn prepare(&mut self, memory: &[u8], frames: &[Sent], refuse: &mut impl FnMut(u32, Refusal)) {
        self.anew.clear();
        for frame in self.batch.drain(..) {
            let sent = &frames[frame as usize];
            let whole = sent.caplen >= sent.len;
            if !whole && !sent.trimmed {
                refuse(frame, Refusal::Cut);
                continue;
            }
            let (skip, header) = match self.carries.fit(sent.link, sent.bytes(memory)) {
                Ok(fits) => fits,
                Err(reason) => {
                    refuse(frame, reason);
                    continue;
                }
            };
            let (mut start, len) = (sent.start + skip, sent.caplen - skip);
            if !whole {
                start = u32::try_from(self.anew.len()).unwrap_or(u32::MAX);
                self.anew.extend_from_slice(&sent.bytes(memory)[skip as usize..]);
                let link = if skip == 0 { sent.link } else { LinkType::RAW };
                make_whole(link, &mut self.anew[start as usize..]);
            }
            let anew = !whole;
            self.queue.push(Queued { frame, header, anew, start, len, refused: false });
        }
    }

    /// Gives frames to the system until all are sent or refused, or none can be; says how many.
    fn put(
        &mut self,
        memory: &[u8],
        refuse: &mut impl FnMut(u32, Refusal),
        report: &mut dyn FnMut(String),
    ) -> usize {
        let (mut at, mut wait_ns, mut again) = (0, self.wait_ns, 0);
        while at < self.queue.len() {
            let mut pieces: [Pieces<'_>; SEND_AT_ONCE] = [[&[]; 2]; SEND_AT_ONCE];
            let some = &self.queue[at..self.queue.len().min(at + SEND_AT_ONCE)];
            for (pieces, queued) in pieces.iter_mut().zip(some) {
                let bytes = if queued.anew { &self.anew[..] } else { memory };
                let (start, len) = (queued.start as usize, queued.len as usize);
                let frame = bytes.get(start..start + len).unwrap_or(&[]);
                *pieces = [queued.header.bytes(), frame];
            }
            let attempt = self.port.put(&pieces[..some.len()]);
            if !matches!(attempt, Attempt::Again(_)) {
                again = 0;
            }
            match attempt {
                Attempt::Took(n) => at += n,
                Attempt::Full | Attempt::FullUntold if wait_ns == 0 => break,
                Attempt::Full => {
                    let room = wait_writable(self.port.socket(), wait_ns);
                    wait_ns = if room { wait_ns.saturating_sub(SEND_PAUSE_NS) } else { 0 };
                }
                Attempt::FullUntold => {
                    wait_writable(None, SEND_PAUSE_NS);
                    wait_ns = wait_ns.saturating_sub(SEND_PAUSE_NS);
                }
                Attempt::Again(error) => {
                    self.note(&error, report);
                    again += 1;
                    if again > SEND_RETRIES {
                        refuse(self.queue[at].frame, Refusal::Unreachable);
                        self.queue[at].refused = true;
                        (at, again) = (at + 1, 0);
                    }
                }
                Attempt::Refused(reason, error) => {
                    if reason == Refusal::Other {
                        self.note(&error, report);
                    }
                    refuse(self.queue[at].frame, reason);
                    self.queue[at].refused = true;
                    at += 1;
                }
                Attempt::Away(reason) => {
                    self.leave(reason, report);
                    break;
                }
            }
        }
        at
    }

    /// Reports an error that has no name in the ledger; of the first only.
    fn note(&mut self, error: &dyn fmt::Display, report: &mut dyn FnMut(String)) {
        if !std::mem::replace(&mut self.noted, true) {
            report(format!("{}: {error}", self.name));
        }
    }
}

impl Port {
    fn put(&mut self, messages: &[Pieces<'_>]) -> Attempt {
        match self {
            Port::Interface(interface) => interface.put(messages),
            Port::Xdp(interface) => interface.put(messages),
            Port::Dpdk(device) => device.put(messages),
            Port::Device(device) => device.put(messages),
            Port::Tunnel(tunnel) => tunnel.put(messages),
            Port::Host => Attempt::Away(Refusal::WentUp),
        }
    }

    /// The descriptor that can be waited on for room.
    fn socket(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Port::Interface(interface) => Some(interface.socket()),
            Port::Xdp(interface) => interface.socket(),
            Port::Dpdk(_) | Port::Host => None,
            Port::Device(device) => Some(device.socket()),
            Port::Tunnel(tunnel) => Some(tunnel.socket()),
        }
    }
}
