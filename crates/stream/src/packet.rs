//! Packets as closures see them.

use crate::batches::{Batches, Passes};
use crate::flow::Flow;
use crate::time::{Marks, Time};
use std::cell::Cell;
use std::net::{IpAddr, Ipv4Addr};
use weir_base::address::number_of_v6;
use weir_engine::clock::Clock;
use weir_engine::limits::{JUMP_NS, LATENESS_NS};
use weir_packet::bits::Bits;
use weir_packet::interface::CapturePoint;
use weir_packet::limits::BATCH;
use weir_packet::read::{Family, HEADERS, Plain};
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
    lateness_ns: i64,
    marks: Box<[Cell<i64>; BATCH]>,
}

impl<'s, S: Source + ?Sized> Packets<'s, S> {
    /// The packets of `source`, its time kept by the default rules.
    pub fn new(source: &'s mut S) -> Packets<'s, S> {
        Packets {
            source,
            frames: FrameBatch::new(),
            layers: Layers::new(),
            clock: Clock::new(LATENESS_NS, JUMP_NS),
            lateness_ns: LATENESS_NS,
            marks: Box::new([const { Cell::new(0) }; BATCH]),
        }
    }

    /// Sets how far the watermark stays behind the latest packet, and how far ahead of it one
    /// packet may be and still move it; in nanoseconds. See [`Clock`].
    #[must_use]
    pub fn time(mut self, lateness_ns: i64, jump_ns: i64) -> Packets<'s, S> {
        self.clock = Clock::new(lateness_ns, jump_ns);
        self.lateness_ns = lateness_ns.max(0);
        self
    }

    /// Reads the next batch; `None` when there are no more.
    fn next(&mut self) -> Result<Option<(Batch<'_>, Marks<'_>)>, SourceError> {
        if !self.source.fill(&mut self.frames)? {
            return Ok(None);
        }
        let Packets { frames, layers, clock, lateness_ns, marks, .. } = self;
        classify(frames, layers);
        let marks = Marks::new(clock, *lateness_ns, frames.ts(), marks);
        let plain4 = Plain::new(frames, layers, Family::Four);
        let batch = Batch {
            frames,
            layers,
            bytes: frames.bytes(),
            ts: frames.ts(),
            lens: frames.lens(),
            plain4,
            plain4_rows: plain4.rows(),
        };
        Ok(Some((batch, marks)))
    }
}

impl<S: Source + ?Sized> Batches for Packets<'_, S> {
    type Item<'a> = Packet<'a>;

    #[inline(always)]
    fn batch(
        &mut self,
        mut f: impl FnMut(Time<'_>, Packet<'_>),
    ) -> Result<Option<i64>, SourceError> {
        let Some((batch, marks)) = self.next()? else { return Ok(None) };
        for (i, &ts) in batch.ts.iter().enumerate() {
            f(Time::of_row(ts, &marks, i), Packet { batch: &batch, i: i as u8 });
        }
        Ok(Some(marks.last()))
    }

    fn finish(&mut self, _: impl FnMut(Time<'_>, Packet<'_>)) {}

    #[inline(always)]
    fn batch_passes<P: Passes<Self>>(
        &mut self,
        passes: &mut P,
    ) -> Result<Option<i64>, SourceError> {
        let Some((batch, marks)) = self.next()? else { return Ok(None) };
        let ts = batch.ts;
        let (mut rows, mut n) = ([0u8; BATCH], 0);
        for (i, &ts) in ts.iter().enumerate() {
            let packet = Packet { batch: &batch, i: i as u8 };
            let taken = passes.first(Time::of_row(ts, &marks, i), &packet);
            rows[n % BATCH] = i as u8;
            n += taken as usize;
        }
        if n > 0 {
            passes.turn();
            for &i in &rows[..n] {
                let t = Time::of_row(ts[i as usize], &marks, i as usize);
                passes.second(t, Packet { batch: &batch, i });
            }
            passes.done();
        }
        Ok(Some(marks.last()))
    }
}

/// The packets of a batch.
struct Batch<'a> {
    frames: &'a FrameBatch,
    layers: &'a Layers,
    bytes: &'a [u8],
    ts: &'a [i64],
    lens: &'a [u32],
    plain4: Plain<'a>,
    /// Its rows, at hand.
    plain4_rows: Bits,
}

/// One packet, lent for the time of a call. Accessors that return an `Option` have nothing to say
/// where the packet lacks the layer or its bytes were not captured.
#[derive(Clone, Copy)]
pub struct Packet<'a> {
    batch: &'a Batch<'a>,
    /// Its row.
    i: u8,
}

// So that a row fits in a byte, and the compiler sees that it lies in the batch.
const _: () = assert!(BATCH == 1 << u8::BITS);

impl<'a> Packet<'a> {
    /// When it was captured: nanoseconds since 1970.
    #[inline(always)]
    pub fn ts(&self) -> i64 {
        self.batch.ts[self.i as usize]
    }

    /// Its length on the wire, in bytes.
    #[inline(always)]
    pub fn len(&self) -> u64 {
        self.batch.lens[self.i as usize] as u64
    }

    /// Whether it had no bytes on the wire.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Its number in the capture, from 1.
    pub fn number(&self) -> u64 {
        self.batch.frames.seq()[self.i as usize] + 1
    }

    /// The interface by which it came, and its direction there, as far as its source says. The
    /// table that the source was given has the names of interfaces by their numbers.
    pub fn capture_point(&self) -> CapturePoint {
        self.batch.frames.capture_point(self.i as usize)
    }

    /// The captured bytes, from the link header on.
    #[inline(always)]
    pub fn bytes(&self) -> &'a [u8] {
        self.batch.frames.frame(self.i as usize)
    }

    /// Whether it has a layer.
    #[inline(always)]
    pub fn has(&self, layer: Layer) -> bool {
        self.batch.layers.has(layer).has(self.i as usize)
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
    #[inline(always)]
    pub fn ip(&self) -> Option<(IpAddr, IpAddr)> {
        let Some(ip) = self.plain4() else {
            let (src, dst, _) = flow_of_any(self.batch, self.i)?;
            return Some((Value::to_ip(src), Value::to_ip(dst)));
        };
        let (src, dst) = ([ip[12], ip[13], ip[14], ip[15]], [ip[16], ip[17], ip[18], ip[19]]);
        Some((Ipv4Addr::from(src).into(), Ipv4Addr::from(dst).into()))
    }

    /// Source and destination port of TCP, UDP, UDP-Lite, SCTP or DCCP.
    #[inline(always)]
    pub fn ports(&self) -> Option<(u16, u16)> {
        if !self.has(Layer::Ports) {
            return self.batch.frames.ports(self.i as usize).map(|[src, dst]| (src, dst));
        }
        let b = self.at(self.batch.layers.l4[self.i as usize])?.first_chunk::<4>()?;
        Some((u16::from_be_bytes([b[0], b[1]]), u16::from_be_bytes([b[2], b[3]])))
    }

    /// Protocol number of the IP payload.
    #[inline(always)]
    pub fn proto(&self) -> Option<u8> {
        self.batch
            .layers
            .proto_known
            .has(self.i as usize)
            .then(|| self.batch.layers.proto[self.i as usize])
    }

    /// The TCP header.
    pub fn tcp(&self) -> Option<Tcp<'a>> {
        let header = self
            .is_tcp()
            .then(|| self.bytes().get(self.batch.layers.l4[self.i as usize] as usize..))??;
        Tcp::new(header).ok()
    }

    /// The UDP header.
    pub fn udp(&self) -> Option<Udp<'a>> {
        let header = self
            .is_udp()
            .then(|| self.bytes().get(self.batch.layers.l4[self.i as usize] as usize..))??;
        Udp::new(header).ok()
    }

    /// The flow it belongs to: the 5-tuple, one direction. A packet without ports has ports 0.
    #[inline(always)]
    pub fn flow(&self) -> Option<Flow> {
        let Some(ip) = self.plain4() else {
            let (src, dst, ends) = flow_of_any(self.batch, self.i)?;
            return Some(Flow::new(src, dst, ends));
        };
        // The protocol, and from byte 12 on both addresses and both ports.
        let addresses = [ip[12], ip[13], ip[14], ip[15], ip[16], ip[17], ip[18], ip[19]];
        let ports = u32::from_be_bytes([ip[20], ip[21], ip[22], ip[23]]);
        Some(Flow::v4(u64::from_be_bytes(addresses), (ports as u64) << 8 | ip[9] as u64))
    }

    /// The bytes from a position of the frame to the end of what was captured into the buffer.
    #[inline(always)]
    fn at(&self, position: u16) -> Option<&'a [u8]> {
        self.batch
            .bytes
            .get(self.batch.frames.offsets()[self.i as usize] as usize + position as usize..)
    }

    /// From the IP header on, if it is a plain packet of IPv4.
    #[inline(always)]
    fn plain4(&self) -> Option<&'a [u8; HEADERS]> {
        let i = self.i as usize;
        let there = self.batch.plain4_rows.has(i);
        if there { self.batch.plain4.headers(self.batch.plain4.offsets()[i]) } else { None }
    }

    fn addresses(&self) -> Option<(u128, u128)> {
        let ip = self.at(self.batch.layers.l3[self.i as usize]);
        if self.has(Layer::Ipv4) {
            let b = ip?.first_chunk::<20>()?;
            let mapped = |at| {
                let a = u32::from_be_bytes([b[at], b[at + 1], b[at + 2], b[at + 3]]);
                0xffff << 32 | a as u128
            };
            return Some((mapped(12), mapped(16)));
        }
        if self.has(Layer::Ipv6) {
            let b = ip?.get(8..40)?;
            let half = |at: usize| {
                b[at..at + 16].first_chunk().map(|a| number_of_v6(u128::from_be_bytes(*a)))
            };
            return Some((half(0)?, half(16)?));
        }
        None
    }
}

/// Addresses, and ports and protocol, of a packet of any form. Out of the way of the usual one,
/// with arguments that fit in registers.
#[inline(never)]
fn flow_of_any(batch: &Batch<'_>, i: u8) -> Option<(u128, u128, u64)> {
    let packet = Packet { batch, i };
    let (src, dst) = packet.addresses()?;
    let (sport, dport) = packet.ports().unwrap_or((0, 0));
    let proto = packet.proto().unwrap_or(0);
    Some((src, dst, (sport as u64) << 24 | (dport as u64) << 8 | proto as u64))
}
