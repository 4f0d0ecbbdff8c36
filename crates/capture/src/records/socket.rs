//! Flow records from UDP sockets.

use super::address::RecordAddress;
use super::batches::RecordBatches;
use super::drops::Drops;
use super::report::RecordReport;
use crate::limits::{DRAIN_MS, RECORD_DATAGRAMS, RECORD_SOCKETS_MAX, WAIT_MS};
use crate::live::clock::{Stopwatch, system};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use weir_packet::limits::BATCH;
use weir_packet::source::{Account, FrameBatch, Source, SourceError};

/// How records are received.
#[derive(Clone, Debug)]
pub struct RecordOptions {
    /// The memory for datagrams on their way from the kernel: bytes for each socket.
    pub buffer: usize,
    /// How long after its end a record may come.
    pub lateness_ns: i64,
    /// Ends the source; datagrams that have come until then are still read.
    pub stop: Arc<AtomicBool>,
}

/// Sockets that exporters send to.
pub struct RecordSockets {
    sockets: Vec<UdpSocket>,
    names: Vec<String>,
    drops: Drops,
    dropped_at: Stopwatch,
    options: RecordOptions,
    batches: RecordBatches,
    report: RecordReport,
    /// The socket that is read next, so that a busy one leaves the others their turn.
    next: usize,
    datagram: Box<[u8]>,
    ending: Option<Stopwatch>,
    ended: bool,
}

/// The largest datagram of UDP.
const DATAGRAM_MAX: usize = 1 << 16;

/// Opens sockets at these addresses; what they count can be asked of `report`.
///
/// # Errors
/// Where an address is not of this machine, is taken, or needs a permission; and if there are more
/// than [`RECORD_SOCKETS_MAX`].
pub fn open_record_sockets(
    addresses: &[RecordAddress],
    options: RecordOptions,
    report: &RecordReport,
) -> Result<RecordSockets, SourceError> {
    if addresses.len() > RECORD_SOCKETS_MAX {
        let reason = format!("flow records are received at {RECORD_SOCKETS_MAX} addresses at most");
        let source = io::Error::new(io::ErrorKind::InvalidInput, reason);
        return Err(SourceError::Io { name: addresses[0].text.clone(), source });
    }
    let open = |address: &RecordAddress| {
        let socket = bind(address.socket)
            .and_then(|socket| socket.set_nonblocking(true).map(|()| socket))
            .map_err(|source| SourceError::Io { name: address.text.clone(), source })?;
        // More than the system allows takes a capability; a smaller one than asked for still works.
        if sockopt::set_socket_recv_buffer_size_force(&socket, options.buffer).is_err() {
            let _ = sockopt::set_socket_recv_buffer_size(&socket, options.buffer);
        }
        Ok(socket)
    };
    let sockets: Vec<UdpSocket> = addresses.iter().map(open).collect::<Result<_, SourceError>>()?;
    let name =
        |socket: &UdpSocket| socket.local_addr().map_or_else(|e| e.to_string(), |a| a.to_string());
    Ok(RecordSockets {
        names: sockets.iter().map(name).collect(),
        drops: Drops::new(&sockets),
        dropped_at: Stopwatch::start(),
        sockets,
        batches: RecordBatches::new(report.clone(), options.lateness_ns),
        options,
        report: report.clone(),
        next: 0,
        datagram: vec![0; DATAGRAM_MAX].into_boxed_slice(),
        ending: None,
        ended: false,
    })
}

/// A socket at this address: of both families, where it is that of all; of IPv4 alone on a machine
/// without IPv6.
fn bind(address: SocketAddr) -> io::Result<UdpSocket> {
    match UdpSocket::bind(address) {
        Err(e) if address.ip().is_unspecified() && e.kind() != io::ErrorKind::AddrInUse => {
            UdpSocket::bind((Ipv4Addr::UNSPECIFIED, address.port())).map_err(|_| e)
        }
        bound => bound,
    }
}

impl RecordSockets {
    /// The addresses that the sockets are at.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Receives datagrams until there are records for a batch, no more have come, or so many were
    /// received; whether any was.
    fn receive(&mut self) -> Result<bool, SourceError> {
        let (mut received, mut silent) = (0, 0);
        while silent < self.sockets.len()
            && received < RECORD_DATAGRAMS
            && self.batches.len() < BATCH
        {
            let at = self.next % self.sockets.len();
            self.next = at + 1;
            match self.sockets[at].recv_from(&mut self.datagram) {
                Ok((len, from)) => {
                    (received, silent) = (received + 1, 0);
                    let address = from.ip().to_canonical();
                    let payload = &self.datagram[..len];
                    self.batches.take((address, from.port()), system(), payload);
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => silent += 1,
                // An answer of ICMP to something that was never sent from here.
                Err(e) if is_passing(&e) => received += 1,
                Err(source) => {
                    return Err(SourceError::Io { name: self.names[at].clone(), source });
                }
            }
        }
        Ok(received > 0)
    }

    /// Waits for a datagram, so many milliseconds at most.
    fn wait(&self, most_ms: u32) -> bool {
        let mut fds: Vec<PollFd<'_>> =
            self.sockets.iter().map(|socket| PollFd::new(socket, PollFlags::IN)).collect();
        let time = Timespec { tv_sec: 0, tv_nsec: i64::from(most_ms) * 1_000_000 };
        // A signal ends it early; the caller looks again.
        poll(&mut fds, Some(&time)).is_ok_and(|ready| ready > 0)
    }

    /// Asks the kernel now and then what it dropped.
    fn count_drops(&mut self, always: bool) {
        if always || self.dropped_at.elapsed_ms() >= DROPS_EVERY_MS {
            self.dropped_at = Stopwatch::start();
            self.report.set_dropped(self.drops.count());
        }
    }

    /// Whether the source is to end, and nothing is left to read.
    fn is_over(&mut self, received: bool) -> bool {
        if !self.options.stop.load(Ordering::Relaxed) {
            return false;
        }
        let since = *self.ending.get_or_insert_with(Stopwatch::start);
        !received || since.elapsed_ms() >= DRAIN_MS
    }

    fn next(&mut self, batch: &mut FrameBatch) -> Result<bool, SourceError> {
        let waited = Stopwatch::start();
        loop {
            // Under load records would pile up, were others received before all are handed out.
            let received = self.batches.is_empty() && self.receive()?;
            if !self.batches.is_empty() {
                self.count_drops(false);
                self.batches.lend(batch);
                return Ok(true);
            }
            if self.is_over(received) {
                self.count_drops(true);
                return Ok(false);
            }
            let elapsed = waited.elapsed_ms();
            if elapsed >= WAIT_MS {
                self.count_drops(false);
                self.batches.reach(system());
                self.batches.lend(batch);
                return Ok(true);
            }
            if !received {
                self.wait(WAIT_MS - elapsed);
            }
        }
    }
}

/// How often the kernel is asked what it dropped.
const DROPS_EVERY_MS: u32 = 1000;

/// Whether the socket works on after this error.
fn is_passing(e: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionRefused, ConnectionReset, HostUnreachable, Interrupted};
    matches!(e.kind(), ConnectionRefused | ConnectionReset | HostUnreachable | Interrupted)
}

impl Source for RecordSockets {
    fn fill(&mut self, batch: &mut FrameBatch) -> Result<bool, SourceError> {
        batch.clear();
        if self.ended {
            return Ok(false);
        }
        let more = self.next(batch);
        self.ended = !matches!(more, Ok(true));
        more
    }

    fn is_ready(&mut self) -> bool {
        self.ended || !self.batches.is_empty() || self.wait(0)
    }

    fn account(&self) -> Account {
        self.report.account(self.batches.received())
    }

    fn interfaces(&self) -> Vec<(String, Account)> {
        self.report.accounts()
    }
}
