//! The programs that run a function, and the results of a run.

use super::function::Function;
use clap::ValueEnum;

/// The program that runs a function, and the way frames reach it and leave it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Debug)]
pub(crate) enum Forwarder {
    /// The kernel.
    Kernel,
    /// Weir by AF_PACKET, one worker.
    Packet,
    /// The same, two workers.
    PacketTwo,
    /// Weir receives by AF_XDP and sends by AF_PACKET, one worker.
    Xdp,
    /// The same, two workers.
    XdpTwo,
    /// Weir receives by AF_PACKET and sends by AF_XDP, one worker.
    XdpOut,
    /// Weir's programs in XDP do all of it, and no worker sees a frame.
    XdpKernel,
}

impl Forwarder {
    /// In the order of the table.
    pub(super) const ALL: [Forwarder; 7] = [
        Forwarder::Kernel,
        Forwarder::Packet,
        Forwarder::PacketTwo,
        Forwarder::Xdp,
        Forwarder::XdpTwo,
        Forwarder::XdpOut,
        Forwarder::XdpKernel,
    ];

    /// Its name in a table.
    pub(super) fn title(self, function: Function) -> &'static str {
        match self {
            Forwarder::Kernel => function.of_the_kernel(),
            Forwarder::Packet => "Weir, AF_PACKET",
            Forwarder::PacketTwo => "Weir, AF_PACKET, two workers",
            Forwarder::Xdp => "Weir, AF_XDP",
            Forwarder::XdpTwo => "Weir, AF_XDP, two workers",
            Forwarder::XdpOut => "Weir, AF_PACKET in, AF_XDP out",
            Forwarder::XdpKernel => "Weir, wholly in XDP",
        }
    }
}

/// How datagrams fared.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Datagrams {
    pub(super) sent: u64,
    pub(super) received: u64,
    pub(super) ns: u64,
}

impl Datagrams {
    /// The part that was lost.
    pub(super) fn lost(&self) -> f64 {
        1.0 - self.received as f64 / self.sent as f64
    }

    /// Received, per second of sending.
    pub(super) fn rate(&self) -> f64 {
        self.received as f64 * 1e9 / self.ns as f64
    }
}

/// The results of one run.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct ForwardRun {
    pub(super) way: Forwarder,
    /// Nanoseconds of each round trip, sorted, and how many had no answer.
    pub(super) trips: Vec<u64>,
    pub(super) trips_lost: u64,
    pub(super) steady: Datagrams,
    pub(super) small: Datagrams,
    /// Bits of TCP payload per second, segments sent again, and how many processors were busy.
    pub(super) bits: f64,
    pub(super) again: u64,
    pub(super) busy: f64,
}

impl ForwardRun {
    /// The round trip, in microseconds, that this part of all took at most; NaN without any.
    pub(super) fn trip(&self, share: f64) -> f64 {
        let at = (self.trips.len() as f64 * share).ceil() as usize;
        self.trips.get(at.saturating_sub(1)).map_or(f64::NAN, |&ns| ns as f64 / 1000.0)
    }
}
