//! `hello`: puts ClientHellos together, of TLS over TCP segments and of QUIC over Initial packets.
//!
//! | | |
//! |---|---|
//! | Syntax | `hello idle D max N` |
//! | Emits | on push: the packet that completes a hello, with what the hello says as columns |
//! | Order | kept |
//! | State | per flow its key, its place in the stream and its age, some 150 bytes; of an unfinished hello at most 16 KiB of pieces; `max` (default 256 Ki) flows, `idle` (default 10 s) |
//! | Full | the flow that took in no packet for longest is evicted, and counted if it holds the start of a hello; so it is where pieces take more than 256 bytes a flow that may be held, 4 MiB at least |
//! | Late | a late packet is taken in as it comes; it cannot bring an expired flow back |
//! | Merge | partitioned by flow |
//! | Exact? | exact; which flow is evicted depends on workers where the query names no `max`: each holds that many |
//!
//! A hello begins after the SYN of a client, or with a segment that starts like one: then segments
//! are pieces by their sequence numbers. Initial packets of QUIC are decrypted with the keys that a
//! client's first one gives, and its first after a Retry packet; CRYPTO frames are the pieces. The
//! bytes that came first hold. One that never completes is counted as unfinished.

mod flows;
mod stream;
#[cfg(test)]
mod tests;

use super::operator::{Batch, Operator};
use crate::counters::Ledger;
use crate::expr::{Src, Val};
use crate::hold::{Hold, known};
use crate::key::{Chosen, KeyPart, Layout, Pool, choose, pack};
use crate::limits::PARTS_MAX;
use crate::room::RoomShare;
use crate::table::{HashKey, Keys};
use crate::view::Origin;
use flows::Flows;
use std::mem::swap;
use stream::{CompleteHello, Scratch};
use weir_packet::bits::Bits;
use weir_packet::column::Column;
use weir_packet::quic::initial::initials;
use weir_packet::read::{Transport, Transports};
use weir_packet::tcp::{ACK, SYN};
use weir_packet::text::Text;
use weir_packet::tls::Hello as TlsHello;
use weir_packet::tls::ja4::{Carrier, ja4};

/// Puts hellos together.
pub(crate) struct Hello {
    keys: Vec<Val>,
    layout: Layout,
    packed: Keys,
    positions: Vec<u16>,
    /// Where the columns go, in the order of [`weir_plan::HELLO_COLUMNS`].
    slots: [usize; 8],
    flows: Flows,
    scratch: Scratch,
    srcs: Vec<Src>,
    text: Box<Text>,
}

impl Hello {
    /// Of a plan, compiled.
    pub(crate) fn new(
        plan: &weir_plan::Hello,
        keys: Vec<Val>,
        slots: [usize; 8],
        (share, hash_key): (RoomShare, HashKey),
    ) -> Hello {
        assert!(keys.len() <= PARTS_MAX, "a key has at most {PARTS_MAX} parts");
        let parts: Vec<KeyPart> = plan.keys.iter().map(KeyPart::of).collect();
        let (narrow, wide) = Layout::both(&parts);
        let layout = wide.unwrap_or(narrow);
        Hello {
            keys,
            packed: Keys::new(layout.words),
            positions: Vec::new(),
            slots,
            flows: Flows::new(plan.idle_ns, share, layout.words, hash_key),
            scratch: Scratch::default(),
            srcs: Vec::with_capacity(PARTS_MAX),
            text: Box::new(Text::new()),
            layout,
        }
    }

    /// Packs the keys of some rows, and asks for where their flows stand.
    fn take_keys(&mut self, batch: &mut Batch<'_>, rows: Bits) {
        self.srcs.clear();
        self.srcs.extend(self.keys.iter().map(|k| batch.ctx.value(k, rows)));
        // Unused entries need some column to point at.
        let mut columns: [&Column; PARTS_MAX] = [batch.ctx.column(batch.time); PARTS_MAX];
        columns.iter_mut().zip(&self.srcs).for_each(|(c, &src)| *c = batch.ctx.column(src));
        choose(rows, &mut self.positions);
        let chosen = Chosen { set: rows, positions: &self.positions };
        let columns = &columns[..self.srcs.len()];
        // Keys of texts are none of the language.
        let (mut texts, arena) = (Pool::default(), &batch.ctx.regs.arena);
        pack(&self.layout, columns, chosen, &mut texts, arena, &mut self.packed);
        self.flows.hash(&mut self.packed);
    }

    /// Writes the columns of row `i`.
    fn write(&mut self, batch: &mut Batch<'_>, i: usize, found: CompleteHello) {
        let regs = &mut *batch.ctx.regs;
        let text = &mut self.text;
        let [transport, version, sni, alpn, fingerprint, ech, packets, first] = self.slots;
        let mut word = |slot: usize, word: u64| {
            let column: &mut Column = &mut regs.columns[slot];
            column.word_mut()[i] = word;
            column.present.set(i);
        };
        let arena = &mut regs.arena;
        let name: &[u8] = match found.carrier {
            Carrier::Tcp => b"tcp",
            Carrier::Quic => b"quic",
        };
        word(transport, arena.put(name));
        word(packets, found.packets.into());
        word(first, found.first as u64);
        // It is whole and starts like one, so it can be read.
        let Some(hello) = TlsHello::new(&self.scratch.message) else { return };
        if let Ok(highest) = hello.version() {
            word(version, highest.into());
        }
        text.clear();
        if text.write_host(hello.server_name()) {
            word(sni, arena.put(text.bytes()));
        }
        text.clear();
        if text.write_list(hello.protocols()) {
            word(alpn, arena.put(text.bytes()));
        }
        if let Some(ja4) = ja4(&hello, found.carrier) {
            word(fingerprint, arena.put(&ja4));
        }
        if let Ok(has) = hello.has_ech() {
            let column = &mut regs.columns[ech];
            column.truth.put(i, has);
            column.present.set(i);
        }
    }
}

/// Where the packet of a row is at hand: the packet's place in the batch of packets.
fn place(batch: &Batch<'_>, origin: Origin<'_>, i: usize) -> Option<usize> {
    if batch.ctx.view.is_some() { Some(i) } else { origin.position(batch.order[i]) }
}

/// Whether a packet may have to do with a hello: the SYN of a client, a segment with data, a
/// datagram with an Initial packet.
fn concerns(packet: Transport<'_>) -> bool {
    match packet {
        Transport::Tcp(tcp) if tcp.flags() & SYN != 0 => tcp.flags() & ACK == 0,
        Transport::Tcp(tcp) => !tcp.payload().is_empty(),
        Transport::Udp(udp) => {
            let payload = udp.payload();
            payload.first().is_some_and(|first| first & 0x80 != 0)
                && initials(payload).next().is_some()
        }
    }
}

impl Hold for Hello {
    fn take_over(&mut self, old: &mut dyn Hold) -> bool {
        let Some(old) = known::<Hello>(old) else { return false };
        swap(&mut self.flows, &mut old.flows);
        true
    }
}

impl Operator for Hello {
    fn push(&mut self, batch: &mut Batch<'_>, rows: Bits) -> Bits {
        for &slot in &self.slots {
            batch.ctx.regs.columns[slot].present = Bits::NONE;
        }
        let of_view = batch.ctx.view.as_ref().map(|view| view.origin());
        let origin = of_view.or(batch.origin).expect("packets are at hand on the workers");
        let transports = Transports::new(origin.frames, origin.layers);
        let packet = |batch: &Batch<'_>, i| transports.of(place(batch, origin, i)?);
        let concerned = |&i: &usize| packet(batch, i).is_some_and(concerns);
        let concerned: Bits = rows.iter().filter(concerned).collect();
        if concerned.is_empty() {
            return concerned;
        }
        let time = batch.ctx.value(&Val::Src(batch.time), concerned);
        self.take_keys(batch, concerned);
        let mut complete = Bits::NONE;
        for j in 0..self.positions.len() {
            let i = usize::from(self.positions[j]);
            let Some(packet) = packet(batch, i) else { continue };
            let at = stream::Arrival {
                time: batch.ctx.column(time).word()[i] as i64,
                clock: batch.clock[i],
            };
            let found = self.flows.take_in(&self.packed, j, at, packet, &mut self.scratch);
            if let Some(found) = found {
                self.write(batch, i, found);
                complete.set(i);
            }
        }
        complete
    }

    fn watermark(&mut self, watermark: i64) {
        self.flows.sweep(watermark);
    }

    fn finish(&mut self) {
        self.flows.finish();
    }

    fn count(&self, ledger: &mut Ledger) {
        let (unfinished, evicted) = self.flows.counts();
        ledger.unfinished += unfinished;
        ledger.evicted += evicted;
    }
}
