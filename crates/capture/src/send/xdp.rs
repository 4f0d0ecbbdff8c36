//! A network interface by AF_XDP: frames are put into memory that the kernel shares, and leave
//! without a socket's way through the stack (the kernel's Documentation/networking/af_xdp.rst).
//!
//! The kernel copies what it sends, while it is called, which works with any driver and needs no
//! program on the interface. A frame that the driver has no room for it throws away, and says so:
//! it is put in again, before later ones, which the kernel has not taken.

use super::attempt::Attempt;
use super::carry::{Carries, TAG, is_longer};
use super::error::{Remedy, SendError};
use crate::limits::{
    SEND_AT_ONCE, SEND_BUFFER, XDP_BIND_EVERY_MS, XDP_BIND_TRIES, XDP_FRAME_BYTES, XDP_QUEUES_MAX,
    XDP_SEND_FRAMES,
};
use crate::live::clock::pause_ms;
use crate::sys::link;
use crate::sys::send::Pieces;
use crate::sys::xsk::{RingMap, XdpSocket};
use crate::xdp::link::{Interfaces, LinkInfo};
use crate::xdp::ring::Descriptor;
use crate::xdp::tx::{CompletionRing, TxRing};
use memmap2::MmapMut;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use weir_packet::egress::Refusal;

/// Bytes of an Ethernet header.
const ETHERNET: usize = 14;

/// An interface that frames are sent by.
pub(super) struct XdpSender {
    outlet: String,
    name: String,
    control: OwnedFd,
    /// Asks for the interface of its name.
    known: Interfaces,
    /// Bytes of a frame without a tag, at most.
    len_max: usize,
    index: u32,
    /// `None` where the interface had gone and could not be opened again yet.
    open: Option<OpenSocket>,
    /// Whether the kernel said that the socket has no interface any more: it is of no use then,
    /// even where the interface is there again, with the same number.
    dead: bool,
}

/// A socket with its memory, by pieces of so many bytes.
struct OpenSocket {
    socket: XdpSocket,
    queue: u32,
    memory: MmapMut,
    piece: usize,
    tx: TxRing<RingMap>,
    completion: CompletionRing<RingMap>,
    /// The piece that the next frame goes to. They go round: where a driver sends out of this
    /// memory, frames come back in the order in which they went.
    next: u32,
    /// Frames taken by the kernel that did not come back yet.
    away: u32,
    descriptors: Vec<Descriptor>,
}

impl XdpSender {
    /// Opens the interface `name`; `outlet` stands in errors. Says what it carries, and how it is
    /// sent.
    pub(super) fn open(
        outlet: &str,
        name: &str,
        report: &mut dyn FnMut(String),
    ) -> io::Result<(XdpSender, Carries)> {
        let refused = |e| SendError::refused(outlet, e, Remedy::None);
        let known = Interfaces::open().map_err(refused)?;
        let Some(interface) = known.by_name(name).map_err(refused)? else {
            return Err(SendError::no_interface(outlet));
        };
        let (index, open) = (interface.index, OpenSocket::new(outlet, &interface, XDP_BIND_TRIES)?);
        report(format!(
            "{outlet}: sends by AF_XDP on queue {}, copied by the kernel, {XDP_SEND_FRAMES} frames \
             of {} bytes",
            open.queue, open.piece
        ));
        let control = link::control().map_err(refused)?;
        let (outlet, name) = (outlet.to_owned(), name.to_owned());
        let len_max = open.len_max(interface.mtu);
        let open = Some(open);
        let xdp = XdpSender { outlet, name, control, known, len_max, index, open, dead: false };
        Ok((xdp, Carries::Ethernet))
    }

    /// The descriptor that can be waited on until there is room; `None` while it is away.
    pub(super) fn socket(&self) -> Option<BorrowedFd<'_>> {
        self.open.as_ref().map(|open| open.socket.as_fd())
    }

    /// Whether it is up and has a carrier.
    pub(super) fn is_back(&self) -> bool {
        link::state(&self.control, &self.name).is_ok_and(|state| state.running)
    }

    /// Takes it into use again if it is back, perhaps as another one of the same name.
    pub(super) fn come_back(&mut self) -> bool {
        let Ok(Some(interface)) = self.known.by_name(&self.name) else { return false };
        if !self.is_back() {
            return false;
        }
        if self.dead || interface.index != self.index {
            // The old one first: it may still have the queue.
            (self.open, self.dead) = (None, false);
            self.index = interface.index;
        }
        if self.open.is_none() {
            // This is tried again with the next batch, which must not wait for long.
            self.open = OpenSocket::new(&self.outlet, &interface, 1).ok();
        }
        let Some(open) = &self.open else { return false };
        self.len_max = open.len_max(interface.mtu);
        true
    }

    /// Sends frames, which have nothing before them.
    pub(super) fn put(&mut self, messages: &[Pieces<'_>]) -> Attempt {
        let most = self.len_max;
        let long = |[_, frame]: &Pieces<'_>| is_longer(frame, most);
        let n = messages.iter().position(long).unwrap_or(messages.len());
        if n == 0 {
            let error = io::Error::from_raw_os_error(libc::EMSGSIZE);
            return Attempt::Refused(Refusal::Long, error);
        }
        let Some(open) = &mut self.open else { return Attempt::Away(Refusal::Down) };
        let (took, error) = open.send(&messages[..n]);
        if took > 0 {
            return Attempt::Took(took);
        }
        let Some(error) = error else { return Attempt::FullUntold };
        match error.raw_os_error() {
            Some(libc::EINTR) => Attempt::Took(0),
            Some(libc::ENETDOWN) => Attempt::Away(Refusal::Down),
            // Bound to nothing: the interface was removed, or is another namespace's.
            Some(libc::ENXIO | libc::ENODEV | libc::EBADF) => {
                self.dead = true;
                Attempt::Away(Refusal::Down)
            }
            // The driver's queue is full, or its interface has lost its carrier.
            Some(libc::EBUSY) if !self.is_back() => Attempt::Away(Refusal::Down),
            Some(libc::EBUSY | libc::EAGAIN | libc::ENOBUFS | libc::ENOMEM) => Attempt::FullUntold,
            _ => Attempt::Refused(Refusal::Other, error),
        }
    }
}

impl OpenSocket {
    /// Opens a socket on the first queue that has none, which is tried so often.
    fn new(outlet: &str, interface: &LinkInfo, tries: u32) -> io::Result<OpenSocket> {
        let refused = |e: io::Error| {
            let remedy = remedy(&e);
            SendError::refused(outlet, e, remedy)
        };
        let outlet_name = || outlet.to_owned();
        let LinkInfo { name, mtu, hardware, index, .. } = interface;
        if !matches!(*hardware, libc::ARPHRD_ETHER | libc::ARPHRD_LOOPBACK) {
            return Err(SendError::XdpHardware { name: outlet_name() }.into());
        }
        let needed = *mtu as usize + ETHERNET + TAG;
        let Some(piece) = XDP_FRAME_BYTES.into_iter().find(|&bytes| bytes >= needed) else {
            let mtu_max = XDP_FRAME_BYTES[XDP_FRAME_BYTES.len() - 1] - ETHERNET - TAG;
            let (interface, mtu) = (name.clone(), *mtu);
            return Err(SendError::XdpMtu { name: outlet_name(), interface, mtu, mtu_max }.into());
        };
        let socket = XdpSocket::new().map_err(refused)?;
        let memory = MmapMut::map_anon(XDP_SEND_FRAMES as usize * piece).map_err(refused)?;
        socket.send_buffer(SEND_BUFFER).map_err(refused)?;
        socket.register(memory.as_ptr(), memory.len(), piece as u32).map_err(refused)?;
        let entries = (SEND_AT_ONCE as u32).next_power_of_two();
        let (completion, tx) = socket.send_rings(entries, XDP_SEND_FRAMES).map_err(refused)?;
        let queue = bind(&socket, *index, tries).map_err(refused)?;
        Ok(OpenSocket {
            socket,
            queue,
            memory,
            piece,
            tx: TxRing::new(tx),
            completion: CompletionRing::new(completion),
            next: 0,
            away: 0,
            descriptors: Vec::with_capacity(SEND_AT_ONCE),
        })
    }

    /// Bytes of a frame without a tag at most; the MTU may have grown.
    fn len_max(&self, mtu: u32) -> usize {
        (mtu as usize + ETHERNET).min(self.piece - TAG)
    }

    /// Sends frames in order, as many as there is room for; how many, and what the kernel said.
    fn send(&mut self, messages: &[Pieces<'_>]) -> (usize, Option<io::Error>) {
        self.away -= self.completion.take().min(self.away);
        let room = (XDP_SEND_FRAMES - self.away) as usize;
        self.descriptors.clear();
        for (i, [_, frame]) in (0..).zip(messages.iter().take(SEND_AT_ONCE.min(room))) {
            let piece = self.next.wrapping_add(i) % XDP_SEND_FRAMES;
            let start = piece as usize * self.piece;
            self.memory[start..start + frame.len()].copy_from_slice(frame);
            let (address, len) = (start as u64, frame.len() as u32);
            self.descriptors.push(Descriptor { address, len });
        }
        if self.descriptors.is_empty() {
            return (0, None);
        }
        self.tx.put(&self.descriptors);
        let error = self.socket.send_now().err();
        let dropped = error.as_ref().is_some_and(|e| e.raw_os_error() == Some(libc::EBUSY));
        let taken = self.tx.taken(dropped).min(self.descriptors.len() as u32);
        // Buffers come back when the driver is done with them, the one thrown away among them.
        self.next = self.next.wrapping_add(taken);
        self.away += taken;
        (taken as usize - usize::from(dropped && taken > 0), error)
    }
}

/// Binds a socket to the first queue of an interface that has none yet, which is tried so often.
fn bind(socket: &XdpSocket, index: u32, tries: u32) -> io::Result<u32> {
    for tried in 0..tries {
        if tried > 0 {
            // A socket that was closed just now lets go of its queue a little later.
            pause_ms(XDP_BIND_EVERY_MS);
        }
        for queue in 0..XDP_QUEUES_MAX {
            match socket.bind(index, queue, false) {
                Ok(()) => return Ok(queue),
                Err(e) if e.raw_os_error() == Some(libc::EBUSY) => {}
                // There is no such queue; those that there are are taken.
                Err(e) if queue > 0 && e.raw_os_error() == Some(libc::EINVAL) => break,
                Err(e) => return Err(e),
            }
        }
    }
    Err(io::Error::from_raw_os_error(libc::EBUSY))
}

/// The remedy where AF_XDP is refused.
fn remedy(e: &io::Error) -> Remedy {
    match e.raw_os_error() {
        Some(libc::EBUSY) => Remedy::XdpQueues,
        Some(libc::ENOBUFS) => Remedy::LockedMemory,
        Some(libc::EAFNOSUPPORT | libc::ENOSYS) => Remedy::NoXdp,
        _ => Remedy::permission(e, "cap_net_raw"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::testbed::{in_namespace, ip, may, veth};
    use rustix::thread::gettid;
    use std::sync::mpsc;

    /// An interface that was another namespace's for a while has its old number, and not its old
    /// sockets.
    #[test]
    fn an_interface_may_go_to_another_namespace_and_return() {
        if !may("an_interface_may_go_to_another_namespace_and_return") {
            return;
        }
        in_namespace(|| {
            veth("v0", "v1", 1);
            let mut xdp = XdpSender::open("xdp:v0", "v0", &mut |_| ()).expect("opens").0;
            let (frame, index) = ([7; 60], xdp.index);
            assert!(matches!(xdp.put(&[[&[], &frame]]), Attempt::Took(1)));
            let home = gettid().as_raw_nonzero();
            let (told, away) = mpsc::channel();
            let (back, asked) = mpsc::channel::<()>();
            std::thread::scope(|scope| {
                scope.spawn(move || {
                    in_namespace(move || {
                        told.send(gettid().as_raw_nonzero()).expect("is waited for");
                        asked.recv().expect("is asked");
                        ip(&format!("link set v0 netns {home}"));
                    });
                });
                let there = away.recv().expect("another namespace");
                ip(&format!("link set v0 netns {there}"));
                assert!(matches!(xdp.put(&[[&[], &frame]]), Attempt::Away(Refusal::Down)));
                assert!(!xdp.come_back());
                back.send(()).expect("waits");
            });
            ip("link set v0 up");
            let now = xdp.known.by_name("v0").expect("the kernel tells");
            assert_eq!(now.map(|on| on.index), Some(index));
            // Its carrier comes a moment after it is up.
            for _ in 0..100 {
                if xdp.come_back() {
                    break;
                }
                pause_ms(20);
            }
            assert!(matches!(xdp.put(&[[&[], &frame]]), Attempt::Took(1)));
        });
    }
}
