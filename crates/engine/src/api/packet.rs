//! Packets as closures see them.

use super::{Key, Stream};
use crate::clock::Clock;
use crate::limits::{JUMP_NS, LATENESS_NS};
use std::fmt;
use std::net::IpAddr;
use weir_packet::source::{FrameBatch, Source, SourceError};
use weir_packet::tcp::Tcp;
use weir_packet::udp::Udp;
use weir_packet::walk::{Layer, Layers, classify};
use weir_plan::Value;

/// The packets of a source: where streams begin.
pub struct Packets<'s, S: Source + ?Sized> {
    source: &'s mut S,
    frames: FrameBatch,
    layers: Layers,
    clock: Clock,
}

impl<'s, S: Source + ?Sized> Packets<'s, S> {
    /// The packets of `source`, its time kept by the default rules.
    pub fn new(source: &'s mut S) -> Packets<'s, S> {
        Packets {
            source,
            frames: FrameBatch::new(),
            layers: Layers::new(),
            clock: Clock::new(LATENESS_NS, JUMP_NS),
        }
    }

    /// Sets how far the watermark stays behind the latest packet, and how far ahead of it one
    /// packet may be and still move it; in nanoseconds. See [`Clock`].
    #[must_use]
    pub fn time(mut self, lateness_ns: i64, jump_ns: i64) -> Packets<'s, S> {
        self.clock = Clock::new(lateness_ns, jump_ns);
        self
    }
}

impl<S: Source + ?Sized> Stream for Packets<'_, S> {
    type Item<'a> = Packet<'a>;

    fn batch(&mut self, mut f: impl FnMut(i64, Packet<'_>)) -> Result<Option<i64>, SourceError> {
        if !self.source.fill(&mut self.frames)? {
            return Ok(None);
        }
        classify(&self.frames, &mut self.layers);
        let (frames, layers) = (&self.frames, &self.layers);
        let bytes = frames.bytes();
        for (i, &ts) in frames.ts().iter().enumerate() {
            self.clock.observe(ts);
            f(ts, Packet { frames, layers, bytes, i });
        }
        Ok(Some(self.clock.watermark()))
    }

    fn finish(&mut self, _: impl FnMut(i64, Packet<'_>)) {}
}

/// One packet, lent for the time of a call. Accessors that return an `Option` have nothing to say
/// where the packet lacks the layer or its bytes were not captured.
#[derive(Clone, Copy)]
pub struct Packet<'a> {
    frames: &'a FrameBatch,
    layers: &'a Layers,
    bytes: &'a [u8],
    i: usize,
}

impl<'a> Packet<'a> {
    /// When it was captured: nanoseconds since 1970.
    #[inline(always)]
    pub fn ts(&self) -> i64 {
        self.frames.ts()[self.i]
    }

    /// Its length on the wire, in bytes.
    #[inline(always)]
    pub fn len(&self) -> u64 {
        self.frames.lens()[self.i] as u64
    }

    /// Whether it had no bytes on the wire.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Its number in the capture, from 1.
    pub fn number(&self) -> u64 {
        self.frames.seq()[self.i] + 1
    }

    /// The captured bytes, from the link header on.
    #[inline(always)]
    pub fn bytes(&self) -> &'a [u8] {
        self.frames.frame(self.i)
    }

    /// Whether it has a layer.
    #[inline(always)]
    pub fn has(&self, layer: Layer) -> bool {
        self.layers.has(layer).has(self.i)
    }

    /// Whether it is IPv4 or IPv6.
    #[inline(always)]
    pub fn is_ip(&self) -> bool {
        self.has(Layer::Ipv4) || self.has(Layer::Ipv6)
    }

    /// Whether it has a TCP header.
    #[inline(always)]
    pub fn is_tcp(&self) -> bool {
        self.has(Layer::Tcp)
    }

    /// Whether it has a UDP header.
    #[inline(always)]
    pub fn is_udp(&self) -> bool {
        self.has(Layer::Udp)
    }

    /// Source and destination address.
    pub fn ip(&self) -> Option<(IpAddr, IpAddr)> {
        let (src, dst) = self.addresses()?;
        Some((Value::to_ip(src), Value::to_ip(dst)))
    }

    /// Source and destination port of TCP, UDP, UDP-Lite, SCTP or DCCP.
    #[inline(always)]
    pub fn ports(&self) -> Option<(u16, u16)> {
        if !self.has(Layer::Ports) {
            return None;
        }
        let b = self.at(self.layers.l4[self.i])?.first_chunk::<4>()?;
        Some((u16::from_be_bytes([b[0], b[1]]), u16::from_be_bytes([b[2], b[3]])))
    }

    /// Protocol number of the IP payload.
    #[inline(always)]
    pub fn proto(&self) -> Option<u8> {
        self.layers.proto_known.has(self.i).then(|| self.layers.proto[self.i])
    }

    /// The TCP header.
    pub fn tcp(&self) -> Option<Tcp<'a>> {
        let header =
            self.is_tcp().then(|| self.bytes().get(self.layers.l4[self.i] as usize..))??;
        Tcp::new(header).ok()
    }

    /// The UDP header.
    pub fn udp(&self) -> Option<Udp<'a>> {
        let header =
            self.is_udp().then(|| self.bytes().get(self.layers.l4[self.i] as usize..))??;
        Udp::new(header).ok()
    }

    /// The flow it belongs to: the 5-tuple, one direction. A packet without ports has ports 0.
    #[inline(always)]
    pub fn flow(&self) -> Option<Flow> {
        let (src, dst) = self.addresses()?;
        let (sport, dport) = self.ports().unwrap_or((0, 0));
        let proto = self.proto().unwrap_or(0);
        Some(Flow { src, dst, ends: (sport as u64) << 24 | (dport as u64) << 8 | proto as u64 })
    }

    /// The bytes from a position of the frame to the end of what was captured into the buffer.
    #[inline(always)]
    fn at(&self, position: u16) -> Option<&'a [u8]> {
        self.bytes.get(self.frames.offsets()[self.i] as usize + position as usize..)
    }

    #[inline(always)]
    fn addresses(&self) -> Option<(u128, u128)> {
        let ip = self.layers.l3[self.i];
        if self.has(Layer::Ipv4) {
            let b = self.at(ip)?.get(12..20)?;
            let word = |at| u32::from_be_bytes([b[at], b[at + 1], b[at + 2], b[at + 3]]);
            let mapped = |a: u32| 0xffff << 32 | a as u128;
            return Some((mapped(word(0)), mapped(word(4))));
        }
        if self.has(Layer::Ipv6) {
            let b = self.at(ip)?.get(8..40)?;
            let half = |at: usize| b[at..at + 16].first_chunk().map(|a| u128::from_be_bytes(*a));
            return Some((half(0)?, half(16)?));
        }
        None
    }
}

/// A 5-tuple. Ordered by source, destination, source port, destination port, protocol.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Flow {
    src: u128,
    dst: u128,
    /// Source port, destination port, protocol, from high bits to low.
    ends: u64,
}

impl Flow {
    /// Source address.
    pub fn src(&self) -> IpAddr {
        Value::to_ip(self.src)
    }

    /// Destination address.
    pub fn dst(&self) -> IpAddr {
        Value::to_ip(self.dst)
    }

    /// Source port.
    pub fn sport(&self) -> u16 {
        (self.ends >> 24) as u16
    }

    /// Destination port.
    pub fn dport(&self) -> u16 {
        (self.ends >> 8) as u16
    }

    /// Protocol number.
    pub fn proto(&self) -> u8 {
        self.ends as u8
    }
}

impl Key for Flow {
    #[inline(always)]
    fn hash(&self) -> u64 {
        let high = (self.src >> 64) as u64 ^ ((self.dst >> 64) as u64).rotate_left(32);
        crate::table::hash([self.src as u64 ^ high, self.dst as u64, self.ends])
    }
}

impl fmt::Display for Flow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = |ip: IpAddr, port| match ip {
            IpAddr::V4(a) => format!("{a}:{port}"),
            IpAddr::V6(a) => format!("[{a}]:{port}"),
        };
        let (src, dst) = (end(self.src(), self.sport()), end(self.dst(), self.dport()));
        write!(f, "{src} > {dst} proto {}", self.proto())
    }
}
