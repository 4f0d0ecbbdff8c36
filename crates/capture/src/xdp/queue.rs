//! One receive queue: its socket, its rings, its memory.

use super::error::{Refused, refused};
use super::options::XdpOptions;
use super::program::wire_length;
use super::ring::{FillRing, RxRing};
use crate::limits::{XDP_BATCH_PART, XDP_BIND_EVERY_MS, XDP_BIND_TRIES};
use crate::live::clock::pause_ms;
use crate::loans::Loans;
use crate::sys::xsk::{RingMap, Umem, View, XdpSocket};
use rustix::net::xdp::XdpStatistics;
use std::io;
use std::sync::Arc;
use weir_packet::limits::BATCH;
use weir_packet::source::{Chunk, FrameBatch, LinkType, SourceError};

/// A queue that frames are received from.
pub(super) struct Queue {
    pub(super) socket: XdpSocket,
    fill: FillRing<RingMap>,
    rx: RxRing<RingMap>,
    loans: Loans,
    /// Which interface of the source it belongs to.
    pub(super) port: usize,
    /// Its number among the queues of the interface.
    pub(super) number: u32,
    /// Frames that it has memory for.
    pub(super) frames: usize,
    frame_bytes: u32,
    /// Frames handed out.
    pub(super) delivered: u64,
    /// Frames that are still taken, where those that come now are not.
    left: Option<u32>,
}

/// A queue, and what it did not get.
pub(super) struct Opened {
    pub(super) queue: Queue,
    pub(super) zero_copy: bool,
    /// Why not, where it was tried.
    pub(super) not_zero_copy: Option<io::Error>,
    pub(super) no_huge_pages: Option<String>,
    pub(super) not_busy_poll: Option<io::Error>,
}

/// Which queue is to be opened, and how.
pub(super) struct Request<'a> {
    pub(super) interface: &'a str,
    pub(super) ifindex: u32,
    pub(super) port: usize,
    pub(super) number: u32,
    /// It is unknown how many queues there are: the first that can't be bound is the end.
    pub(super) probing: bool,
    pub(super) frames: usize,
    pub(super) frame_bytes: u32,
    /// Whether zero-copy is to be tried, and whether copies are to be.
    pub(super) zero_copy: bool,
    pub(super) copy: bool,
    pub(super) options: &'a XdpOptions,
}

impl Queue {
    /// Makes memory and rings, and binds a socket to the queue. `None`: there is no such queue.
    pub(super) fn open(request: &Request<'_>) -> Result<Option<Opened>, SourceError> {
        let (interface, number) = (request.interface, Some(request.number));
        let failed = |doing, why| refused(interface, number, doing, why);
        let socket = XdpSocket::new()
            .map_err(|e| failed("opening a socket of AF_XDP", Refused::XdpSocket(e)))?;
        let umem = Umem::new(request.frames * request.frame_bytes as usize)
            .map_err(|e| failed("mapping memory for frames", Refused::Memory(e)))?;
        umem.serve(&socket, request.frame_bytes)
            .map_err(|e| failed("registering memory for frames", Refused::Memory(e)))?;
        let (fill, rx) = socket
            .rings(request.frames as u32)
            .map_err(|e| failed("making the rings of a socket", Refused::Memory(e)))?;
        let busy_poll = request.options.busy_poll;
        let not_busy_poll =
            busy_poll.and_then(|poll| socket.prefer_busy_poll(poll.micros, poll.budget).err());
        let mut fill = FillRing::new(fill);
        let all: Vec<u32> = (0..request.frames as u32).map(|i| i * request.frame_bytes).collect();
        fill.put(&all);

        let (zero_copy, not_zero_copy) = match request.bind(&socket) {
            Ok(bound) => bound,
            Err(e) if request.probing && e.raw_os_error() == Some(libc::EINVAL) => return Ok(None),
            Err(e) => return Err(failed("binding a socket to the queue", Refused::Bind(e))),
        };
        let umem = Arc::new(umem);
        let no_huge_pages = umem.no_huge_pages.as_ref().map(|e| e.to_string());
        let loans = Loans::new(request.frames, || -> Chunk { Arc::new(View(Arc::clone(&umem))) });
        let queue = Queue {
            socket,
            fill,
            rx: RxRing::new(rx),
            loans,
            port: request.port,
            number: request.number,
            frames: request.frames,
            frame_bytes: request.frame_bytes,
            delivered: 0,
            left: None,
        };
        Ok(Some(Opened { queue, zero_copy, not_zero_copy, no_huge_pages, not_busy_poll }))
    }

    /// Whether frames have come.
    pub(super) fn has_frames(&mut self) -> bool {
        self.left != Some(0) && self.rx.waiting() > 0
    }

    /// Takes no frames but those that have come when this is first called.
    pub(super) fn take_no_more(&mut self) {
        self.left.get_or_insert_with(|| self.rx.all_waiting());
    }

    /// Whether a batch can be filled, if there are frames.
    pub(super) fn can_lend(&self) -> bool {
        self.loans.can_lend()
    }

    /// Whether batches hold so much of the memory that it should be looked after often.
    pub(super) fn is_short(&self) -> bool {
        self.loans.frames_out() > self.frames / 2 || !self.loans.can_lend()
    }

    /// Gives frames back to the kernel that no batch refers to any more.
    pub(super) fn collect(&mut self, thorough: bool) {
        let thorough = thorough || self.loans.frames_out() > self.frames / 4 * 3;
        let fill = &mut self.fill;
        self.loans.collect(thorough, |frames| {
            // The ring has room for all frames there are.
            let put = fill.put(frames);
            debug_assert_eq!(put, frames.len(), "room in the fill ring");
        });
        if self.fill.needs_wakeup() {
            self.socket.wake();
        }
    }

    /// Fills a batch with frames that have come, up to `snap` bytes of each, with this time stamp
    /// and numbered from `seq` on; how many. Where a `mark` stands before a frame, so does its
    /// length on the wire.
    pub(super) fn receive(
        &mut self,
        batch: &mut FrameBatch,
        (ts, seq): (i64, u64),
        snap: u32,
        mark: Option<u32>,
    ) -> u64 {
        let (rx, mut n) = (&mut self.rx, 0);
        // A batch that takes all frames of a small memory leaves none for those that come.
        let most =
            (BATCH.min(self.frames / XDP_BATCH_PART) as u32).min(self.left.unwrap_or(u32::MAX));
        let room = !(self.frame_bytes - 1);
        self.loans.lend(|chunk, frames| {
            batch.restart(chunk, 0, LinkType::ETHERNET);
            rx.take(most, |frame| {
                // Less than 4 GiB, as `open` sees to.
                let start = frame.address as u32;
                let marked = mark.and_then(|mark| wire_length((**chunk).as_ref(), start, mark));
                let len = marked.unwrap_or(frame.len).max(frame.len);
                batch.push(ts, seq + n, start, frame.len.min(snap), len);
                frames.push(start & room);
                n += 1;
            });
        });
        self.delivered += n;
        self.left = self.left.map(|left| left - n as u32);
        n
    }

    /// The kernel's counts for the socket.
    pub(super) fn statistics(&self) -> Option<XdpStatistics> {
        self.socket.statistics().ok()
    }
}

impl Request<'_> {
    /// Binds the socket, so that the driver fills our memory if it may. Whether it does, and why
    /// not.
    fn bind(&self, socket: &XdpSocket) -> io::Result<(bool, Option<io::Error>)> {
        // A socket that was closed just now lets go of its queue a little later. Some drivers also
        // say so to zero-copy, and mean something else.
        let bind = |zero_copy, tries| {
            for _ in 0..tries {
                match socket.bind(self.ifindex, self.number, zero_copy) {
                    Err(e) if e.raw_os_error() == Some(libc::EBUSY) => pause_ms(XDP_BIND_EVERY_MS),
                    result => return result,
                }
            }
            socket.bind(self.ifindex, self.number, zero_copy)
        };
        let mut refusal = None;
        if self.zero_copy {
            let tries = if self.copy { XDP_BIND_TRIES / 10 } else { XDP_BIND_TRIES };
            match bind(true, tries) {
                Ok(()) => return Ok((true, None)),
                Err(error) if !self.copy => return Err(error),
                Err(error) => refusal = Some(error),
            }
        }
        bind(false, XDP_BIND_TRIES)?;
        Ok((false, refusal))
    }
}
