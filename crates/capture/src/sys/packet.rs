//! Sockets that see the frames of an interface: AF_PACKET, packet(7).
//!
//! It is sound: every call into the kernel is given pointers to values that live on the
//! stack for the length of the call, with their true sizes, and of the types that the kernel's
//! headers give to the option; what the kernel writes are plain numbers, for which any bytes will
//! do. Descriptors are owned by [`OwnedFd`] and closed once.

use super::bpf::Program;
use super::checked;
use crate::cbpf::Instruction;
use libc::{c_int, c_uint, c_void};
use std::io;
use std::mem::{self, MaybeUninit};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// The header that frames begin with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Shape {
    /// Their own link header.
    Raw,
    /// The network header; what the link header said stands beside the frame.
    Cooked,
}

/// The counts of a socket since it was last asked (`PACKET_STATISTICS`).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct PacketStatistics {
    /// Frames that passed the socket's filter, those among them that found no room too.
    pub(crate) passed: u32,
    /// Frames that found no room in the ring.
    pub(crate) dropped: u32,
    /// Times that the ring was full.
    pub(crate) freezes: u32,
}

/// A socket that receives nothing until it is bound.
#[derive(Debug)]
pub(crate) struct PacketSocket(OwnedFd);

/// Types that are numbers through and through: any bytes make one.
///
/// # Safety
/// Every pattern of bits is a value.
unsafe trait Plain: Copy {}
// SAFETY: a number.
unsafe impl Plain for c_int {}
// SAFETY: a structure of numbers.
unsafe impl Plain for libc::tpacket_req {}
// SAFETY: a structure of numbers.
unsafe impl Plain for libc::tpacket_req3 {}
// SAFETY: a structure of numbers.
unsafe impl Plain for libc::tpacket_stats_v3 {}
// SAFETY: a structure of numbers.
unsafe impl Plain for libc::packet_mreq {}

impl PacketSocket {
    /// A socket of the network namespace of the calling thread.
    ///
    /// # Errors
    /// Without the capability CAP_NET_RAW, or where the kernel lacks AF_PACKET.
    pub(crate) fn new(shape: Shape) -> io::Result<PacketSocket> {
        let kind = match shape {
            Shape::Raw => libc::SOCK_RAW,
            Shape::Cooked => libc::SOCK_DGRAM,
        };
        // SAFETY: plain numbers. Protocol 0: no frame comes before the socket is bound.
        let fd = unsafe { libc::socket(libc::AF_PACKET, kind | libc::SOCK_CLOEXEC, 0) };
        checked(fd)?;
        // SAFETY: a descriptor just made, owned by nobody else.
        Ok(PacketSocket(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Receives the frames of the interface with this index, of all for 0.
    pub(crate) fn bind(&self, index: u32) -> io::Result<()> {
        let mut address = address();
        address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
        address.sll_ifindex = index as c_int;
        let len = mem::size_of::<libc::sockaddr_ll>() as libc::socklen_t;
        // SAFETY: an address of its own length.
        checked(unsafe { libc::bind(self.fd(), (&raw const address).cast(), len) }).map(drop)
    }

    /// The interface that the socket is bound to; `None` once that is gone.
    pub(crate) fn interface(&self) -> io::Result<Option<u32>> {
        let mut address = address();
        let mut len = mem::size_of::<libc::sockaddr_ll>() as libc::socklen_t;
        // SAFETY: room for an address, and how much of it there is.
        checked(unsafe { libc::getsockname(self.fd(), (&raw mut address).cast(), &mut len) })?;
        Ok(u32::try_from(address.sll_ifindex).ok())
    }

    /// Asks the interface for frames that are meant for others too, while the socket lives.
    pub(crate) fn promiscuous(&self, index: u32) -> io::Result<()> {
        let membership = libc::packet_mreq {
            mr_ifindex: index as c_int,
            mr_type: libc::PACKET_MR_PROMISC as u16,
            mr_alen: 0,
            mr_address: [0; 8],
        };
        self.set(libc::PACKET_ADD_MEMBERSHIP, &membership)
    }

    /// Lets this program of classic BPF decide about frames, and how much of each is kept.
    pub(crate) fn filter(&self, program: &[Instruction]) -> io::Result<()> {
        self.set_program(libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, program)
    }

    fn set_program(&self, level: c_int, option: c_int, program: &[Instruction]) -> io::Result<()> {
        let Ok(len) = u16::try_from(program.len()) else {
            return Err(io::Error::from_raw_os_error(libc::EINVAL));
        };
        // `struct sock_filter` is laid out as our instruction; the kernel copies and only reads.
        let program = libc::sock_fprog { len, filter: program.as_ptr().cast_mut().cast() };
        let size = mem::size_of::<libc::sock_fprog>() as libc::socklen_t;
        let value = (&raw const program).cast::<c_void>();
        // SAFETY: a program of so many instructions, which lives until the call returns.
        checked(unsafe { libc::setsockopt(self.fd(), level, option, value, size) }).map(drop)
    }

    /// Lets a loaded program decide about frames, and how much of each is kept.
    pub(crate) fn attach(&self, program: &Program) -> io::Result<()> {
        self.set_at(libc::SOL_SOCKET, libc::SO_ATTACH_BPF, &(program.number() as c_int))
    }

    /// Shares the frames of what it is bound to with the other sockets of a group, which are
    /// numbered in the order in which they join. A program says which of them gets a frame; where
    /// that one is full, the frame goes to one that has a quarter of its ring left, the first if it
    /// has. Without a group begins a new one. Returns the group.
    pub(crate) fn share(&self, group: Option<u16>) -> io::Result<u16> {
        let new = if group.is_none() { libc::PACKET_FANOUT_FLAG_UNIQUEID } else { 0 };
        let kind = libc::PACKET_FANOUT_CBPF | libc::PACKET_FANOUT_FLAG_ROLLOVER | new;
        let argument = u32::from(group.unwrap_or(0)) | kind << 16;
        self.set(libc::PACKET_FANOUT, &(argument as c_int))?;
        let joined: c_int = self.get(libc::PACKET_FANOUT)?;
        Ok(joined as u16)
    }

    /// Sets the program of its group.
    pub(crate) fn spread(&self, program: &[Instruction]) -> io::Result<()> {
        self.set_program(libc::SOL_PACKET, libc::PACKET_FANOUT_DATA, program)
    }

    /// Puts the times of the adapter on frames, where it has one for them.
    pub(crate) fn adapter_times(&self) -> io::Result<()> {
        self.set(libc::PACKET_TIMESTAMP, &(libc::SOF_TIMESTAMPING_RAW_HARDWARE as c_int))
    }

    /// Turns to rings of the third version, with so many bytes to spare before each frame.
    pub(super) fn rings(&self, reserve: usize) -> io::Result<()> {
        self.set(libc::PACKET_VERSION, &(libc::tpacket_versions::TPACKET_V3 as c_int))?;
        self.set(libc::PACKET_RESERVE, &(reserve as c_int))
    }

    /// Makes the ring that [`super::ring::Ring`] maps.
    pub(super) fn ring(&self, request: &libc::tpacket_req3) -> io::Result<()> {
        self.set(libc::PACKET_RX_RING, request)
    }

    /// Turns to rings of the second version, with so many bytes to spare before each frame, and
    /// makes the one that [`super::ring::Slots`] maps. Frames that are too long for their slot are
    /// queued besides, up to about so many bytes, for [`PacketSocket::receive`].
    pub(super) fn slots(
        &self,
        reserve: usize,
        queue: usize,
        request: &libc::tpacket_req,
    ) -> io::Result<()> {
        self.set(libc::PACKET_VERSION, &(libc::tpacket_versions::TPACKET_V2 as c_int))?;
        self.set(libc::PACKET_RESERVE, &(reserve as c_int))?;
        self.set(libc::PACKET_COPY_THRESH, &1)?;
        let queue = c_int::try_from(queue).unwrap_or(c_int::MAX);
        // Beyond what everybody may have with CAP_NET_ADMIN only.
        self.set_at(libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, &queue)
            .or_else(|_| self.set_at(libc::SOL_SOCKET, libc::SO_RCVBUF, &queue))?;
        self.set(libc::PACKET_RX_RING, request)
    }

    /// Takes the next of the frames that were queued, as much of it as there is room for; returns
    /// how long it is.
    pub(crate) fn receive(&self, room: &mut [u8]) -> io::Result<usize> {
        let flags = libc::MSG_DONTWAIT | libc::MSG_TRUNC;
        // SAFETY: room for so many bytes.
        let n = unsafe { libc::recv(self.fd(), room.as_mut_ptr().cast(), room.len(), flags) };
        usize::try_from(n).map_err(|_| io::Error::last_os_error())
    }

    /// The counts since the last call; only for sockets with a ring.
    pub(crate) fn statistics(&self) -> io::Result<PacketStatistics> {
        let counts: libc::tpacket_stats_v3 = self.get(libc::PACKET_STATISTICS)?;
        Ok(PacketStatistics {
            passed: counts.tp_packets,
            dropped: counts.tp_drops,
            freezes: counts.tp_freeze_q_cnt,
        })
    }

    /// The error that is pending on the socket, which it then is no more.
    pub(crate) fn take_error(&self) -> io::Result<Option<io::Error>> {
        let error: c_int = self.get_at(libc::SOL_SOCKET, libc::SO_ERROR)?;
        Ok((error != 0).then(|| io::Error::from_raw_os_error(error)))
    }

    pub(super) fn fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }

    fn set<T: Plain>(&self, option: c_int, value: &T) -> io::Result<()> {
        self.set_at(libc::SOL_PACKET, option, value)
    }

    fn set_at<T: Plain>(&self, level: c_int, option: c_int, value: &T) -> io::Result<()> {
        let size = mem::size_of::<T>() as libc::socklen_t;
        let value = std::ptr::from_ref(value).cast::<c_void>();
        // SAFETY: a value and its size, read while the call lasts.
        checked(unsafe { libc::setsockopt(self.fd(), level, option, value, size) }).map(drop)
    }

    fn get<T: Plain>(&self, option: c_int) -> io::Result<T> {
        self.get_at(libc::SOL_PACKET, option)
    }

    fn get_at<T: Plain>(&self, level: c_int, option: c_int) -> io::Result<T> {
        let mut value = MaybeUninit::<T>::zeroed();
        let mut size = mem::size_of::<T>() as libc::socklen_t;
        let room = value.as_mut_ptr().cast::<c_void>();
        // SAFETY: room for a value, and its size, of which the kernel writes no more.
        checked(unsafe { libc::getsockopt(self.fd(), level, option, room, &mut size) })?;
        // SAFETY: zeroed, then written by the kernel as far as it pleased; any bytes will do.
        Ok(unsafe { value.assume_init() })
    }
}

/// An address of the family, of nothing.
fn address() -> libc::sockaddr_ll {
    libc::sockaddr_ll {
        sll_family: libc::AF_PACKET as u16,
        sll_protocol: 0,
        sll_ifindex: 0,
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    }
}

/// Waits for frames of several sockets.
#[derive(Default)]
pub(crate) struct Poll {
    fds: Vec<libc::pollfd>,
}

impl Poll {
    /// For these sockets; they are asked about by their numbers.
    pub(crate) fn new<'a>(sockets: impl Iterator<Item = &'a PacketSocket>) -> Poll {
        let fd = |s: &PacketSocket| libc::pollfd { fd: s.fd(), events: libc::POLLIN, revents: 0 };
        Poll { fds: sockets.map(fd).collect() }
    }

    /// Forgets a socket, from which nothing will come any more.
    pub(crate) fn forget(&mut self, number: usize) {
        if let Some(entry) = self.fds.get_mut(number) {
            // The kernel passes over negative descriptors.
            (entry.fd, entry.revents) = (-1, 0);
        }
    }

    /// Waits until something has come, is wrong, or the time is over; a signal ends it too.
    pub(crate) fn wait(&mut self, timeout_ms: c_uint) {
        self.fds.iter_mut().for_each(|entry| entry.revents = 0);
        wait(&mut self.fds, timeout_ms);
    }

    /// Whether the last wait was ended by an error of a socket.
    pub(crate) fn failed(&self, number: usize) -> bool {
        let wrong = libc::POLLERR | libc::POLLHUP | libc::POLLNVAL;
        self.fds.get(number).is_some_and(|entry| entry.revents & wrong != 0)
    }
}

fn wait(fds: &mut [libc::pollfd], timeout_ms: c_uint) {
    let timeout = c_int::try_from(timeout_ms).unwrap_or(c_int::MAX);
    // SAFETY: so many entries, written to while the call lasts. The only error besides a signal is
    // that the kernel has no memory, which the next call will report.
    unsafe { libc::poll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, timeout) };
}
