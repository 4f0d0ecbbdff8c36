//! `deduplicate`: drops copies of packets, as SPAN ports and several taps deliver them.
//!
//! | | |
//! |---|---|
//! | Syntax | `deduplicate within D max N` |
//! | Emits | on push: a packet unless the same one was kept, and came within `D` before or after it |
//! | Order | kept |
//! | State | per packet a digest of 128 bits, its time and a word of housekeeping; `max` (default 16 Mi) packets, each until no copy came for `D` |
//! | Full | the packet of which no copy came for longest is evicted, and counted unless it is forgotten by then; its next copy passes |
//! | Late | a late packet is taken as it comes; it cannot bring an expired one back |
//! | Merge | partitioned by `ip.src, ip.dst` |
//! | Exact? | exact, up to digests that are equal by chance; which packet is evicted depends on workers where the query names no `max`: each holds that many |
//!
//! Digests are keyed by a secret of the run: no sender can make two packets of one digest.
//! Packets are spread by their addresses, which copies share by whatever interface, and with
//! whatever tags, they came. They are not spread by ports, which `--fragments` gives to later
//! fragments that come after their first only. Packets without a time have one key, the absent one.
//!
//! It is a [`scan`](super::scan) by digest of when a packet was kept, and a filter after it.

use super::operator::{Batch, Operator};
use crate::counters::Ledger;
use crate::expr::{Src, Val};
use crate::hold::{Hold, known};
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use weir_packet::bits::Bits;
use weir_packet::copies::{Compared, compared};
use weir_plan::stage::ScanState;
use weir_plan::{BinaryOp, Expr, ExprKind, Scan, Type, Value};

/// The columns that [`Digest`] makes after both halves of the digest: the time of the packet, and
/// the first and the last time at which its copies may come.
const NOW: usize = 2;
const FROM: usize = 3;
const UNTIL: usize = 4;

/// How many columns these are.
pub(crate) const MADE: usize = 5;

/// How many states the scan has.
pub(crate) const STATES: usize = 3;

/// Its state: 1 after a packet that is kept, 2 after a copy.
const KEPT: i64 = 1;
const COPY: i64 = 2;

/// The scan of a `deduplicate` over the columns that [`Digest`] makes, from `made` on. Its states
/// go to the columns from `output` on: whether the packet is kept, and between which times copies
/// of the one that is come.
pub(crate) fn scan(plan: &weir_plan::Deduplicate, made: usize, output: usize) -> Scan {
    let expr = |ty: Type, kind: ExprKind| Expr { ty, kind };
    let binary =
        |op, a: Expr, b: Expr| expr(Type::Bool, ExprKind::Binary(op, Box::new(a), Box::new(b)));
    let int = |n| Expr::constant(Value::Int(n));
    let time = |at: usize| Expr::column(made + at, Type::Time);
    let state = |ty: Type, at| expr(ty, ExprKind::State(at));
    let both = |a, b| binary(BinaryOp::And, a, b);
    let is_known = binary(BinaryOp::Gt, state(Type::Int, 0), int(0));
    let is_after = binary(BinaryOp::Ge, time(NOW), state(Type::Time, 1));
    let is_before = binary(BinaryOp::Le, time(NOW), state(Type::Time, 2));
    let is_copy = both(is_known, both(is_after, is_before));
    let update = |at: usize, init: Expr, of_copy: Expr, of_kept: Expr| ScanState {
        name: String::new(),
        output: output + at,
        update: expr(
            init.ty.clone(),
            ExprKind::If(Box::new(is_copy.clone()), Box::new(of_copy), Box::new(of_kept)),
        ),
        init,
    };
    let states = vec![
        update(0, int(0), int(COPY), int(KEPT)),
        update(1, time(FROM), state(Type::Time, 1), time(FROM)),
        update(2, time(UNTIL), state(Type::Time, 2), time(UNTIL)),
    ];
    let (keys, max_keys) = (digest_columns(made).to_vec(), plan.max_packets);
    Scan { states, keys, idle_ns: plan.idle_ns(), max_keys }
}

/// The columns of a digest.
pub(crate) fn digest_columns(at: usize) -> [Expr; 2] {
    [at, at + 1].map(|at| Expr::column(at, Type::Int))
}

/// Writes the digest of each packet into two columns, and its times into three.
pub(crate) struct Digest {
    slots: [usize; MADE],
    within_ns: i64,
    secrets: [RandomState; 2],
}

impl Digest {
    pub(crate) fn new(slots: [usize; MADE], within_ns: i64) -> Digest {
        Digest { slots, within_ns, secrets: [RandomState::new(), RandomState::new()] }
    }

    /// Writes the time of each packet, and between which times copies come; says which packets have
    /// a time.
    fn write_times(&self, batch: &mut Batch<'_>, rows: Bits) -> Bits {
        let time = batch.ctx.value(&Val::Src(batch.time), rows);
        let time = batch.ctx.column(time);
        let (times, timed) = (*time.word(), time.present.and(rows));
        let within = self.within_ns;
        let [.., now, from, until] = self.slots;
        for (slot, of) in [
            (now, (|ts, _| ts) as fn(i64, i64) -> i64),
            (from, i64::saturating_sub),
            (until, i64::saturating_add),
        ] {
            let column = &mut batch.ctx.regs.columns[slot];
            timed.each(|i| column.word_mut()[i] = of(times[i] as i64, within) as u64);
            column.present = timed;
        }
        timed
    }
}

/// Half of a digest.
fn digest(secret: &RandomState, packet: &Compared<'_>) -> u64 {
    let mut hasher = secret.build_hasher();
    hasher.write_u64(u64::from(packet.len) << 8 | packet.kind as u64);
    packet.parts.iter().for_each(|part| hasher.write(part));
    hasher.finish()
}

impl Hold for Digest {
    fn take_over(&mut self, old: &mut dyn Hold) -> bool {
        let Some(old) = known::<Digest>(old) else { return false };
        // The digests that the scan holds were made with them.
        std::mem::swap(&mut self.secrets, &mut old.secrets);
        true
    }
}

impl Operator for Digest {
    fn push(&mut self, batch: &mut Batch<'_>, rows: Bits) -> Bits {
        let of_view = batch.ctx.view.as_ref().map(|view| view.origin());
        let is_view = of_view.is_some();
        let origin = of_view.or(batch.origin).expect("packets are at hand on the workers");
        let timed = self.write_times(batch, rows);
        for (slot, secret) in self.slots.into_iter().zip(&self.secrets) {
            let column = &mut batch.ctx.regs.columns[slot];
            timed.each(|i| {
                let place = if is_view { Some(i) } else { origin.position(batch.order[i]) };
                let place = place.expect("packets are at hand on the workers");
                let packet = compared(origin.frames, origin.layers, place);
                column.word_mut()[i] = digest(secret, &packet);
            });
            column.present = timed;
        }
        rows
    }
}

/// Drops the copies, and counts them. A packet without a time stays, since it may be far from all
/// others.
pub(crate) struct DropCopies {
    state: Src,
    copies: u64,
}

impl DropCopies {
    pub(crate) fn new(state: Src) -> DropCopies {
        DropCopies { state, copies: 0 }
    }
}

impl Hold for DropCopies {
    fn take_over(&mut self, old: &mut dyn Hold) -> bool {
        if let Some(old) = known::<DropCopies>(old) {
            std::mem::swap(&mut self.copies, &mut old.copies);
        }
        false
    }
}

impl Operator for DropCopies {
    fn push(&mut self, batch: &mut Batch<'_>, rows: Bits) -> Bits {
        let state = batch.ctx.value(&Val::Src(self.state), rows);
        let time = batch.ctx.value(&Val::Src(batch.time), rows);
        let (words, timed) = (batch.ctx.column(state).word(), batch.ctx.column(time).present);
        let is_kept = |&i: &usize| words[i] as i64 == KEPT || !timed.has(i);
        let kept: Bits = rows.iter().filter(is_kept).collect();
        self.copies += rows.minus(kept).count() as u64;
        kept
    }

    fn count(&self, ledger: &mut Ledger) {
        ledger.copies += self.copies;
    }
}

#[cfg(test)]
mod tests {
    use crate::functions::Functions;
    use crate::ops::testing::project;
    use crate::rows::Collect;
    use crate::run::{Options, run};
    use crate::tests::{Frames, check, program};
    use weir_packet::craft::Frame;
    use weir_packet::ipv4;
    use weir_packet::source::LinkType;
    use weir_packet::time::NO_TIME;
    use weir_plan::limits::DISTINCT_KEYS_MAX;
    use weir_plan::{Deduplicate, Program, Stage, Value};

    fn deduplicate(within_ns: i64, max_packets: u64) -> Program {
        let stage = Deduplicate { keys: Deduplicate::fields(), within_ns, max_packets };
        program(vec![Stage::Deduplicate(stage), project(&["number"])])
    }

    /// The packet of this number, after so many routers.
    fn packet(id: u16, routers: u8) -> Vec<u8> {
        let ip = Frame::ethernet().ipv4([10, 0, 0, 1], [10, 0, 0, 2]).id(id);
        ip.put(ipv4::TTL, &[64 - routers]).udp(1, 2).payload(b"data").bytes()
    }

    fn numbers(rows: Vec<(usize, Vec<Value>)>) -> Vec<i64> {
        let number = |(_, cells): (usize, Vec<Value>)| match cells[..] {
            [Value::Int(number)] => number,
            _ => panic!("{cells:?} is no number"),
        };
        rows.into_iter().map(number).collect()
    }

    /// The numbers of the packets that are kept of those with these times and identifications.
    fn kept(within_ns: i64, came: &[(i64, u16)]) -> Vec<i64> {
        let frames = came.iter().enumerate();
        let frames: Vec<_> = frames.map(|(i, &(ts, id))| (ts, packet(id, i as u8 % 4))).collect();
        let frames = Frames::new(LinkType::ETHERNET, &frames);
        let rows =
            check(&deduplicate(within_ns, DISTINCT_KEYS_MAX), &Functions::default(), &frames);
        numbers(rows)
    }

    #[test]
    fn one_of_each_packet_within_the_time() {
        assert_eq!(
            kept(50, &[(100, 1), (110, 1), (120, 2), (150, 1), (151, 1), (170, 2)]),
            [1, 3, 5]
        );
        assert_eq!(kept(50, &[(0, 1), (40, 1), (80, 1), (120, 1), (160, 1)]), [1, 3, 5]);
    }

    #[test]
    fn copies_come_before_and_after_each_other() {
        assert_eq!(kept(50, &[(100, 1), (60, 1), (50, 1), (49, 1)]), [1, 4]);
        assert_eq!(kept(i64::MAX, &[(0, 1), (i64::MAX / 2, 1)]), [1]);
        assert_eq!(kept(1, &[(0, 1), (1, 1), (2, 1), (3, 1)]), [1, 3]);
    }

    #[test]
    fn packets_without_a_time_stay() {
        assert_eq!(kept(50, &[(NO_TIME, 1), (NO_TIME, 1), (100, 1), (NO_TIME, 1)]), [1, 2, 3, 4]);
        assert_eq!(kept(i64::MAX, &[(0, 1), (NO_TIME, 1), (1, 1)]), [1, 2]);
    }

    #[test]
    fn beyond_its_bound_packets_are_evicted_and_copies_are_counted() {
        let frames: Vec<_> = (0..300).map(|i| (i, packet((i % 30) as u16, 0))).collect();
        let frames = Frames::new(LinkType::ETHERNET, &frames);
        for (max, rows) in [(10, 300), (30, 30)] {
            let (mut sink, plan) = (Collect::default(), deduplicate(1000, max));
            let (functions, options) = (Functions::default(), Options::default());
            let mut source = frames.clone();
            let ledger =
                run(&plan, &functions, &mut source, &mut sink, &options, &mut |_| {}).ledger;
            assert_eq!((sink.rows.len(), ledger.copies), (rows, 300 - rows as u64));
            assert_eq!(ledger.evicted, if max < 30 { 290 } else { 0 });
            check(&plan, &functions, &frames);
        }
    }

    #[test]
    fn frames_without_addresses_are_compared_too() {
        let arp = Frame::ethernet().put(12, &[8, 6]).payload(&[7; 28]).bytes();
        let frames = [(0, arp.clone()), (1, arp), (2, vec![]), (3, vec![])];
        let frames = Frames::new(LinkType::ETHERNET, &frames);
        let plan = deduplicate(10, DISTINCT_KEYS_MAX);
        assert_eq!(numbers(check(&plan, &Functions::default(), &frames)), [1, 3]);
    }
}
