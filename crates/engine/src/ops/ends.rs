//! Ends: `pass`, `drop`, `forward`, `broadcast`, `steer`, `mirror`, with `trim`, `tag` and
//! `anonymize`, alone or in the arms of a `branch`.
//!
//! | | |
//! |---|---|
//! | Syntax | `pass`, `drop`, `forward TO`, `broadcast to OUTPUTS`, `steer by KEYS to OUTPUTS`, `mirror TO`, `trim N`, `tag N`, `anonymize FIELDS with KEY`, `branch when CONDITION -> ARM … else -> ARM` |
//! | Emits | frames on push; rows go on after `mirror` and `next`, and those that no arm takes |
//! | Order | kept: frames leave in the order that rows come, once for each end |
//! | State | none |
//! | Full | what a file does not take ends the run; what a wire does not is counted by reason, and the run goes on; so are packets that `anonymize` can't rewrite |
//! | Late | packets go out as they come |
//! | Merge | frames of all workers, by packet number |
//! | Exact? | exact: a frame is what was captured, but for `trim`, `tag` and `anonymize`; while an output of `steer` is away, its keys go to the others |
//!
//! Workers copy the frames of their packets, as they are to look, into rows of five columns
//! (`outgoing_schema`), which go to the machine level as other rows do, and there to the outlets.
//! Where no outlet wants the frames, they are only counted here.

pub(crate) mod carried;
mod out;
pub(crate) mod outgoing;

use super::operator::{Batch, Operator, Wanted};
use crate::anonymize::Anonymizer;
use crate::counters::{Ledger, Traffic};
use crate::expr::{Cond, Ctx, Val};
use crate::hold::Hold;
use crate::rows::{Arena, Rows};
use carried::FrameSlots;
use out::{BatchFrames, EditedFrame};
use outgoing::{ALL, FrameKind, address_word, outgoing_schema};
use std::ops::Range;
use weir_packet::bits::Bits;
use weir_packet::column::{Column, Repr};
use weir_packet::egress::Outlet;
use weir_packet::limits::BATCH;
use weir_packet::time::NO_TIME;
use weir_plan::Type;
use weir_plan::ends::{Edit, mix, rendezvous, text_word};

/// Hands packets out.
pub(crate) struct PacketActions {
    arms: Vec<BranchArm>,
    acts: Vec<Act>,
    /// `None`: rows are those of a view.
    slots: Option<FrameSlots>,
    /// The arm of each row that takes one.
    arm: [u8; BATCH],
    /// Frames of this batch; the first `used` of them.
    outgoing: Vec<Rows>,
    used: usize,
    tally: Tally,
}

/// Frames that go nowhere, and those that are not as they were to be.
#[derive(Default)]
struct Tally {
    dropped: Traffic,
    untagged: u64,
    withheld: u64,
}

/// The acts for some of the rows.
pub(crate) struct BranchArm {
    when: Option<Cond>,
    acts: Range<usize>,
    next: bool,
    /// The rows of the batch.
    rows: Bits,
}

impl BranchArm {
    pub(crate) fn new(when: Option<Cond>, acts: Range<usize>, next: bool) -> BranchArm {
        BranchArm { when, acts, next, rows: Bits::NONE }
    }
}

/// A frame that goes somewhere.
pub(crate) struct Act {
    edits: Vec<Edit>,
    /// Of the edits that give addresses other names.
    anonymizers: Vec<Anonymizer>,
    outlets: Vec<Outlet>,
    steer: Option<Steer>,
    /// Whether frames are copied, or only counted, ...
    copied: bool,
    /// ... by outlet.
    counted: Vec<Traffic>,
    /// Memory for a frame that is made only to be counted.
    scratch: Vec<u8>,
}

/// Chooses one outlet by a key.
struct Steer {
    keys: Vec<(Val, bool)>,
    outlets: Vec<u64>,
    keyed: Bits,
    hashes: [u64; BATCH],
    chosen: [u32; BATCH],
}

impl Act {
    pub(crate) fn new(act: &weir_plan::ends::Act, keys: Vec<(Val, Type)>) -> Act {
        let outlets = act.to.outlets();
        let names = |outlet: &Outlet| match outlet {
            Outlet::Named(name) => text_word(name.as_bytes()),
            Outlet::Pass => 0,
        };
        let is_text = |ty: &Type| matches!(ty, Type::Str | Type::Bytes);
        let steers = matches!(act.to, weir_plan::ends::To::Steer { .. });
        let anonymizer = |edit: &Edit| match edit {
            Edit::Anonymize(how) => Some(Anonymizer::new(*how)),
            _ => None,
        };
        Act {
            anonymizers: act.edits.iter().filter_map(anonymizer).collect(),
            edits: act.edits.clone(),
            steer: steers.then(|| Steer {
                keys: keys.into_iter().map(|(val, ty)| (val, is_text(&ty))).collect(),
                outlets: outlets.iter().map(names).collect(),
                keyed: Bits::NONE,
                hashes: [0; BATCH],
                chosen: [0; BATCH],
            }),
            copied: false,
            counted: vec![Traffic::default(); outlets.len()],
            scratch: Vec::new(),
            outlets,
        }
    }

    /// Which of its outlets the frame of a row goes to.
    fn choice(&self, row: usize) -> u32 {
        match &self.steer {
            Some(steer) => steer.chosen[row],
            None => ALL,
        }
    }

    /// The hash of its key, if it has one.
    fn key(&self, row: usize) -> Option<u64> {
        self.steer.as_ref().filter(|steer| steer.keyed.has(row)).map(|steer| steer.hashes[row])
    }

    /// Of rows those whose frames can be anonymized; the others are counted.
    fn made(&mut self, frames: &BatchFrames<'_>, rows: Bits, tally: &mut Tally) -> Bits {
        let Act { edits, anonymizers, scratch, .. } = self;
        let mut can = |&i: &usize| {
            scratch.clear();
            frames.get(i).write(edits, anonymizers, scratch, &mut 0).is_some()
        };
        let made: Bits = rows.iter().filter(&mut can).collect();
        tally.withheld += rows.minus(made).count() as u64;
        made
    }

    /// Counts frames that no outlet wants.
    fn count_all(&mut self, frames: &BatchFrames<'_>, rows: Bits, tally: &mut Tally) {
        let rows = match self.anonymizers.is_empty() {
            true => rows,
            false => self.made(frames, rows, tally),
        };
        let tags = self.edits.iter().any(|edit| matches!(edit, Edit::Tag(_)));
        let Act { edits, steer, counted, .. } = self;
        let mut len = |i: usize| match tags {
            true => frames.get(i).wire_len(edits, &mut tally.untagged),
            false => frames.len(i),
        };
        if let Some(steer) = steer {
            return rows.each(|i| counted[steer.chosen[i] as usize].add(len(i)));
        }
        let mut all = Traffic::default();
        rows.each(|i| all.add(len(i)));
        match &mut counted[..] {
            [] => tally.dropped.merge(all),
            each => each.iter_mut().for_each(|one| one.merge(all)),
        }
    }
}

impl Steer {
    /// Chooses for rows. Where no part of the key is there, the first outlet.
    fn choose(&mut self, ctx: &mut Ctx<'_>, rows: Bits) {
        let mut keyed = Bits::NONE;
        self.hashes = [0; BATCH];
        for (key, is_text) in &self.keys {
            let src = ctx.value(key, rows);
            let column = ctx.column(src);
            keyed = keyed.or(column.present.and(rows));
            words(column, *is_text, &ctx.regs.arena, rows, &mut self.hashes);
        }
        self.keyed = keyed;
        let Steer { outlets, hashes, chosen, .. } = self;
        rows.each(|i| {
            chosen[i] = if keyed.has(i) { rendezvous(hashes[i], outlets) as u32 } else { 0 };
        });
    }
}

/// Mixes the words of one part of a key into the hashes of rows.
fn words(column: &Column, is_text: bool, arena: &Arena, rows: Bits, hashes: &mut [u64; BATCH]) {
    let there = |i| (column.present.has(i) as u64).wrapping_neg();
    match column.repr() {
        Repr::Bit => {
            let truth = column.truth.and(column.present);
            rows.each(|i| hashes[i] = mix(hashes[i], truth.has(i) as u64));
        }
        Repr::Word if is_text => rows.each(|i| {
            let text = if column.present.has(i) { arena.get(column.word()[i]) } else { &[] };
            let word = text_word(text) & there(i);
            hashes[i] = mix(hashes[i], word);
        }),
        Repr::Word => {
            let words = column.word();
            rows.each(|i| hashes[i] = mix(hashes[i], words[i] & there(i)));
        }
        Repr::Pair => {
            let (hi, lo) = column.pair();
            rows.each(|i| hashes[i] = mix(mix(hashes[i], hi[i] & there(i)), lo[i] & there(i)));
        }
    }
}

impl PacketActions {
    pub(crate) fn new(
        arms: Vec<BranchArm>,
        acts: Vec<Act>,
        slots: Option<FrameSlots>,
    ) -> PacketActions {
        PacketActions {
            arms,
            acts,
            slots,
            arm: [0; BATCH],
            outgoing: Vec::new(),
            used: 0,
            tally: Tally::default(),
        }
    }

    /// Hands out the frames of rows, each by the acts of its arm.
    fn act(&mut self, batch: &mut Batch<'_>, rows: Bits) {
        let time = batch.ctx.value(&Val::Src(batch.time), rows);
        if let Some(FrameSlots { bytes, len, origin }) = self.slots {
            for src in [bytes, len, origin] {
                batch.ctx.value(&Val::Src(src), rows);
            }
        }
        let frames = BatchFrames::new(&batch.ctx, self.slots);
        let mut copied = Bits::NONE;
        for arm in &self.arms {
            for act in &mut self.acts[arm.acts.clone()] {
                if act.copied {
                    copied = copied.or(arm.rows);
                } else {
                    act.count_all(&frames, arm.rows, &mut self.tally);
                }
            }
        }
        let times = batch.ctx.column(time);
        let time = |i: usize| match times.present.has(i) {
            true => times.word()[i],
            false => NO_TIME as u64,
        };
        copied.each(|i| {
            for at in self.arms[usize::from(self.arm[i])].acts.clone() {
                let act = &mut self.acts[at];
                if !act.copied {
                    continue;
                }
                let to_send = place(&mut self.outgoing, &mut self.used);
                let (n, out) = (to_send.len, frames.get(i));
                let mut written = None;
                let untagged = &mut self.tally.untagged;
                let Act { edits, anonymizers, .. } = act;
                let write = |memory: &mut Vec<u8>| {
                    written = out.write(edits, anonymizers, memory, untagged);
                };
                let handle = to_send.arena.put_with(write);
                let Some(EditedFrame { len, trimmed }) = written else {
                    self.tally.withheld += 1;
                    continue;
                };
                let to = address_word(at, act.choice(i));
                let key = act.key(i);
                let kind =
                    FrameKind { link: out.link, trimmed, keyed: key.is_some(), point: out.point };
                let words = [to, handle, len.into(), kind.word(), key.unwrap_or(0)];
                for (column, word) in to_send.columns.iter_mut().zip(words) {
                    column.word_mut()[n] = word;
                    column.present.set(n);
                }
                to_send.time.word_mut()[n] = time(i);
                to_send.time.present.set(n);
                to_send.order.push(batch.order[i]);
                to_send.clock.push(batch.clock[i]);
                to_send.len = n + 1;
            }
        });
    }
}

/// The batch of outgoing frames that has room for the next one.
fn place<'a>(outgoing: &'a mut Vec<Rows>, used: &mut usize) -> &'a mut Rows {
    if *used == 0 || outgoing[*used - 1].len == BATCH {
        if *used == outgoing.len() {
            outgoing.push(Rows::new(&outgoing_schema()));
        }
        outgoing[*used].clear();
        *used += 1;
    }
    &mut outgoing[*used - 1]
}

impl Hold for PacketActions {}

impl Operator for PacketActions {
    fn push(&mut self, batch: &mut Batch<'_>, rows: Bits) -> Bits {
        self.used = 0;
        let (mut left, mut acting, mut next) = (rows, Bits::NONE, Bits::NONE);
        for (a, arm) in self.arms.iter_mut().enumerate() {
            let mine = match &arm.when {
                Some(when) => batch.ctx.condition(when, left),
                None => left,
            };
            arm.rows = mine;
            left = left.minus(mine);
            if arm.next {
                next = next.or(mine);
            }
            if arm.acts.is_empty() || mine.is_empty() {
                continue;
            }
            acting = acting.or(mine);
            mine.each(|i| self.arm[i] = a as u8);
            for act in &mut self.acts[arm.acts.clone()] {
                if let Some(steer) = &mut act.steer {
                    steer.choose(&mut batch.ctx, mine);
                }
            }
        }
        if !acting.is_empty() {
            self.act(batch, acting);
        }
        next.or(left)
    }

    fn frames(&mut self, out: &mut dyn FnMut(&Rows)) {
        let used = std::mem::take(&mut self.used);
        // A chunk stays empty where all its frames were withheld.
        self.outgoing[..used].iter().filter(|chunk| chunk.len > 0).for_each(out);
    }

    fn want(&mut self, wanted: Wanted) {
        for act in &mut self.acts {
            act.copied = act.outlets.iter().any(|outlet| match outlet {
                Outlet::Pass => wanted.passed,
                Outlet::Named(_) => wanted.named,
            });
        }
    }

    fn count(&self, ledger: &mut Ledger) {
        ledger.ends.dropped.merge(self.tally.dropped);
        ledger.ends.untagged += self.tally.untagged;
        ledger.ends.withheld += self.tally.withheld;
        for act in &self.acts {
            for (outlet, traffic) in act.outlets.iter().zip(&act.counted) {
                ledger.ends.add(outlet, *traffic);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::functions::Functions;
    use crate::limits::{JUMP_NS, LATENESS_NS};
    use crate::ops::testing::{agg, binary, compare, field, int, project, summarize};
    use crate::tests::{Frames, check, program};
    use weir_model::TimeRules;
    use weir_model::egress::{Frame, by_outlet};
    use weir_packet::limits::CAPLEN_MAX;
    use weir_packet::source::LinkType;
    use weir_plan::ends::{Act, Arm, Ends, To};
    use weir_plan::{AggFunc, BinaryOp, Expr, Order, Program, SortKey, Stage, Window};

    fn act(edits: &[Edit], to: To) -> Act {
        Act { edits: edits.to_vec(), to }
    }

    fn arm(when: Option<Expr>, acts: Vec<Act>, next: bool) -> Arm {
        Arm { when, acts, next }
    }

    fn file(name: &str) -> To {
        To::Forward(name.to_owned())
    }

    fn one(to: To, next: bool) -> Stage {
        Stage::Ends(Ends { arms: vec![arm(None, vec![act(&[], to)], next)] })
    }

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|&n| n.to_owned()).collect()
    }

    /// Frames that the engine, in all ways, and the model hand out; by outlet.
    fn sent(program: &Program, frames: &Frames) -> Vec<Frame> {
        check(program, &Functions::default(), frames);
        let rules = TimeRules { lateness_ns: LATENESS_NS, jump_ns: JUMP_NS };
        let functions = Functions::default();
        let answer = weir_model::run(program, &functions, &mut frames.clone(), &rules);
        by_outlet(answer.frames)
    }

    fn ends(stages: Vec<Stage>) -> Program {
        let mut program = program(stages);
        program.pipelines[0].printed = false;
        program
    }

    /// How many frames of the sample went to each outlet.
    fn shares(stages: Vec<Stage>) -> Vec<(String, usize)> {
        let mut shares: Vec<(String, usize)> = Vec::new();
        for frame in sent(&ends(stages), &Frames::sample()) {
            let name = frame.outlet.to_string();
            match shares.last_mut().filter(|(last, _)| *last == name) {
                Some((_, n)) => *n += 1,
                None => shares.push((name, 1)),
            }
        }
        shares
    }

    fn share(name: &str, n: usize) -> (String, usize) {
        (name.to_owned(), n)
    }

    #[test]
    fn frames_are_as_captured() {
        use weir_packet::source::{FrameBatch, Source as _};
        let frames = Frames::sample();
        let got = sent(&ends(vec![one(file("all"), false)]), &frames);
        let (mut source, mut batch, mut i) = (frames.clone(), FrameBatch::new(), 0);
        while source.fill(&mut batch).expect("no error") {
            for n in 0..batch.len() {
                assert_eq!(got[i].bytes, batch.frame(n));
                assert_eq!((got[i].ts, got[i].len), (batch.ts()[n], batch.lens()[n]));
                i += 1;
            }
        }
        assert_eq!((got.len(), i), (41, 41));
    }

    #[test]
    fn each_packet_takes_the_first_arm_that_holds() {
        let small = compare(BinaryOp::Lt, field("len"), int(60));
        let arms = vec![
            arm(Some(small), vec![act(&[], file("small"))], false),
            arm(Some(field("tcp")), vec![act(&[], To::Pass)], false),
            arm(None, vec![act(&[], To::Drop)], false),
        ];
        let got = shares(vec![Stage::Ends(Ends { arms })]);
        assert_eq!(got, [share("pass", 34), share("\"small\"", 6)]);
    }

    #[test]
    fn rows_of_no_arm_go_on() {
        let arms = vec![arm(Some(field("tcp")), vec![act(&[], file("tcp"))], false)];
        let rest = one(file("rest"), false);
        let got = shares(vec![Stage::Ends(Ends { arms }), rest]);
        assert_eq!(got, [share("\"rest\"", 1), share("\"tcp\"", 40)]);
    }

    #[test]
    fn what_is_edited_is_so_in_order() {
        let both = |edits: &[Edit]| {
            let arms = vec![arm(None, vec![act(edits, file("x"))], false)];
            let got = sent(&ends(vec![Stage::Ends(Ends { arms })]), &Frames::sample());
            (got[30].bytes.clone(), got[30].len)
        };
        let (whole, len) = both(&[]);
        let (tagged, longer) = both(&[Edit::Tag(0x123)]);
        assert_eq!((len, longer), (84, 88));
        assert_eq!(tagged[..12], whole[..12]);
        assert_eq!(tagged[12..16], [0x81, 0x00, 0x01, 0x23]);
        assert_eq!(tagged[16..], whole[12..]);
        assert_eq!(both(&[Edit::Trim(20)]), (whole[..20].to_vec(), 84));
        assert_eq!(both(&[Edit::Trim(20), Edit::Tag(0x123)]), (tagged[..24].to_vec(), 88));
        assert_eq!(both(&[Edit::Tag(0x123), Edit::Trim(20)]), (tagged[..20].to_vec(), 88));
        // Cut within its addresses, it has no place for a tag.
        assert_eq!(both(&[Edit::Trim(11), Edit::Tag(5)]), (whole[..11].to_vec(), 84));
    }

    #[test]
    fn both_directions_are_steered_alike() {
        let steer = |key: &str| {
            let key = weir_packet::fields::key_by_name(key).expect("a key");
            let keys = key.fields.iter().map(|&id| Expr::field(id)).collect();
            shares(vec![one(To::Steer { keys, outputs: names(&["a", "b", "c"]) }, false)])
        };
        // Packets without addresses go to the first.
        for key in ["hosts", "conn"] {
            let got = steer(key);
            assert!(got.iter().any(|(_, n)| *n >= 40), "{key}: {got:?}");
            assert_eq!(got.iter().map(|(_, n)| n).sum::<usize>(), 41);
        }
        assert_eq!(steer("flow").iter().map(|(_, n)| n).sum::<usize>(), 41);
    }

    #[test]
    fn a_copy_goes_to_each() {
        let all = one(To::Broadcast(names(&["b", "a"])), false);
        assert_eq!(shares(vec![all]), [share("\"a\"", 41), share("\"b\"", 41)]);
    }

    #[test]
    fn rows_go_on_after_a_copy() {
        let rows = vec![
            one(file("copy"), true),
            Stage::Where(field("tcp")),
            one(To::Pass, true),
            summarize(&["ip.src"], vec![agg(AggFunc::Count, None)], Window::All),
        ];
        let got = check(&program(rows), &Functions::default(), &Frames::sample());
        assert_eq!(got.len(), 2);
    }

    #[test]
    fn outlets_of_several_stages_keep_the_order_of_packets() {
        let half = compare(BinaryOp::Eq, binary(BinaryOp::Rem, field("number"), int(2)), int(0));
        let arms = vec![arm(Some(half), vec![act(&[], file("x"))], true)];
        let stages = vec![Stage::Ends(Ends { arms }), one(file("x"), false)];
        let mut two = ends(stages.clone());
        two.pipelines.extend(ends(vec![one(file("x"), false)]).pipelines);
        let times: Vec<i64> = sent(&two, &Frames::sample()).iter().map(|f| f.ts).collect();
        assert_eq!(times.len(), 41 + 20 + 41);
        assert!(times.is_sorted());
    }

    /// The frame is taken along where stages see the rows of all workers.
    #[test]
    fn after_limit_and_top() {
        let first = shares(vec![Stage::Limit(5), one(file("x"), false)]);
        assert_eq!(first, [share("\"x\"", 5)]);
        let by = vec![SortKey { expr: field("len"), order: Order::Descending }];
        let top = Stage::Top { n: 3, by, windowed: false, per: None };
        let stages = vec![
            Stage::Where(field("tcp")),
            Stage::Limit(30),
            one(file("copy"), true),
            top,
            one(To::Steer { keys: vec![field("ip.src")], outputs: names(&["a", "b"]) }, true),
            project(&["len"]),
        ];
        let frames = sent(&program(stages), &Frames::sample());
        let lens: Vec<u32> = frames.iter().filter(|f| f.ts > 0).map(|f| f.len).collect();
        assert_eq!((frames.len(), lens.iter().max()), (33, Some(&83)));
    }

    /// Where rows come out because the input ended, each stage hands out all of them before the
    /// next does, also where they fill several batches.
    #[test]
    fn outlets_of_several_stages_after_top() {
        let by = vec![SortKey { expr: field("len"), order: Order::Descending }];
        let top = Stage::Top { n: 1000, by, windowed: false, per: None };
        let tagged = vec![act(&[Edit::Tag(7)], file("x"))];
        let tagged = Stage::Ends(Ends { arms: vec![arm(None, tagged, true)] });
        let frames: Vec<(i64, Vec<u8>)> = (0..600).map(|i| (i, vec![i as u8; 70])).collect();
        let frames = Frames::new(LinkType::ETHERNET, &frames);
        let got = sent(&ends(vec![top, tagged, one(file("x"), false)]), &frames);
        assert_eq!(got.len(), 1200);
        assert!(got[..600].iter().all(|f| f.len == 74) && got[600..].iter().all(|f| f.len == 70));
    }

    /// A `limit` ends the run only where no end still wants packets.
    #[test]
    fn a_limit_ends_no_other_end() {
        let mut two = program(vec![Stage::Limit(1), project(&["number"])]);
        two.pipelines.extend(ends(vec![one(file("all"), false)]).pipelines);
        assert_eq!(sent(&two, &Frames::sample()).len(), 41);
        let copied = vec![one(file("all"), true), Stage::Limit(1), project(&["number"])];
        assert_eq!(sent(&program(copied), &Frames::sample()).len(), 41);
    }

    /// More frames than a batch has room for come of one batch.
    #[test]
    fn many_copies_of_each() {
        let acts = (0..5).map(|_| act(&[], file("x"))).collect();
        let arms = vec![arm(None, acts, false)];
        let frames: Vec<(i64, Vec<u8>)> = (0..600).map(|i| (i, vec![i as u8; 70])).collect();
        let frames = Frames::new(LinkType::ETHERNET, &frames);
        let got = sent(&ends(vec![Stage::Ends(Ends { arms })]), &frames);
        assert_eq!(got.len(), 3000);
        assert!(got.windows(2).all(|w| w[0].ts <= w[1].ts));
    }

    /// A tag makes no frame longer than a capture can hold.
    #[test]
    fn the_longest_frames() {
        let frame = |i: i64| (i, vec![i as u8; CAPLEN_MAX as usize - usize::from(i % 2 == 0) * 4]);
        let frames = Frames::new(LinkType::ETHERNET, &(0..6).map(frame).collect::<Vec<_>>());
        let arms = vec![arm(None, vec![act(&[Edit::Tag(1)], file("x"))], false)];
        let got = sent(&ends(vec![Stage::Limit(6), Stage::Ends(Ends { arms })]), &frames);
        assert_eq!(got.len(), 6);
        assert!(got.iter().all(|f| f.bytes.len() == CAPLEN_MAX as usize));
        assert_eq!(got[1].len, CAPLEN_MAX + 4);
    }

    /// An egress one of whose outlets may be away, and refuses what comes all the same.
    struct Partly {
        all: weir_model::egress::Collected,
        away: Option<u32>,
        trimmed: u64,
        refused: weir_packet::egress::Refused,
    }

    impl weir_packet::egress::Egress for Partly {
        fn open(&mut self, outlets: &[Outlet]) -> std::io::Result<()> {
            self.all.open(outlets)
        }

        fn send(
            &mut self,
            memory: &[u8],
            frames: &[weir_packet::egress::Sent],
        ) -> std::io::Result<()> {
            self.trimmed += frames.iter().filter(|f| f.trimmed).count() as u64;
            for frame in frames.iter().filter(|f| Some(f.outlet) == self.away) {
                self.refused.add(weir_packet::egress::Refusal::Down, frame.len);
            }
            self.all.send(memory, frames)
        }

        fn is_away(&mut self, outlet: u32) -> bool {
            self.away == Some(outlet)
        }

        fn refused(&self, outlet: u32) -> weir_packet::egress::Refused {
            if self.away == Some(outlet) { self.refused } else { Default::default() }
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }

        fn finish(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    /// The frames that a program hands out while an outlet is away, with 1, 2 and 4 workers, and
    /// the ledger.
    fn partly(program: &Program, away: Option<u32>) -> (Partly, Ledger) {
        use crate::rows::Collect;
        use crate::run::{Options, run_to};
        let runs = [1, 2, 4].map(|workers| {
            let mut egress =
                Partly { all: Default::default(), away, trimmed: 0, refused: Default::default() };
            let outcome = run_to(
                program,
                &Functions::default(),
                &mut Frames::sample(),
                (&mut Collect::default(), &mut egress),
                &Options { workers, ..Options::default() },
                &mut |_| {},
            );
            assert!(outcome.error.is_none() && outcome.ledger.adds_up());
            egress.all.frames = by_outlet(std::mem::take(&mut egress.all.frames));
            (egress, outcome.ledger)
        });
        assert!(runs.iter().all(|(e, l)| e.all.frames == runs[0].0.all.frames && *l == runs[0].1));
        let [first, ..] = runs;
        first
    }

    #[test]
    fn while_an_outlet_is_away_only_its_own_keys_move() {
        let keys = || vec![field("number")];
        let steer = |outputs| ends(vec![one(To::Steer { keys: keys(), outputs }, false)]);
        let all = steer(names(&["a", "b", "c"]));
        let (before, ledger) = partly(&all, None);
        assert_eq!(ledger.ends.moved, 0);
        let (after, ledger) = partly(&all, Some(1));
        assert!(ledger.ends.moved > 5 && ledger.ends.refused.is_empty());
        // As if it were not in the list; so what went elsewhere before stays there.
        let (without, _) = partly(&steer(names(&["a", "c"])), None);
        assert_eq!(after.all.frames, without.all.frames);
        let of = |run: &Partly, name: &str| -> Vec<Frame> {
            let outlet = Outlet::Named(name.to_owned());
            run.all.frames.iter().filter(|f| f.outlet == outlet).cloned().collect()
        };
        assert_eq!(of(&before, "b").len() as u64, ledger.ends.moved);
        for other in ["a", "c"] {
            let now = of(&after, other);
            assert!(of(&before, other).iter().all(|frame| now.contains(frame)));
        }
        // Packets without a key go to the first that is there; a `forward` has no other.
        let none = To::Steer { keys: vec![field("udp.sport")], outputs: names(&["a", "b"]) };
        let (first, ledger) = partly(&ends(vec![one(none, false)]), Some(0));
        assert!(of(&first, "a").is_empty() && ledger.ends.moved > 0);
        let (kept, ledger) = partly(&ends(vec![one(file("a"), false)]), Some(0));
        assert_eq!((kept.all.frames.len(), ledger.ends.moved), (41, 0));
        assert_eq!(ledger.ends.sent(&Outlet::Named("a".to_owned())), Traffic::default());
    }

    #[test]
    fn an_egress_is_told_what_was_trimmed() {
        let trimmed = |edits: &[Edit]| {
            let arms = vec![arm(None, vec![act(edits, file("x"))], false)];
            partly(&ends(vec![Stage::Ends(Ends { arms })]), None).0.trimmed
        };
        assert_eq!(trimmed(&[]), 0);
        assert_eq!(trimmed(&[Edit::Trim(60)]), trimmed(&[Edit::Trim(65_535), Edit::Trim(60)]));
        assert_eq!(trimmed(&[Edit::Trim(10)]), 41);
        assert_eq!(trimmed(&[Edit::Tag(1), Edit::Trim(60_000)]), 0);
    }

    #[test]
    fn what_nobody_wants_is_counted_all_the_same() {
        use crate::rows::Collect;
        use crate::run::{Options, run};
        let edits = [Edit::Tag(7)];
        let steer = To::Steer { keys: vec![field("ip.src")], outputs: names(&["a", "b"]) };
        let arms = vec![
            arm(Some(field("tcp")), vec![act(&edits, steer), act(&edits, To::Pass)], false),
            arm(None, vec![act(&[], To::Drop)], false),
        ];
        let program = ends(vec![Stage::Ends(Ends { arms })]);
        let rules = TimeRules { lateness_ns: LATENESS_NS, jump_ns: JUMP_NS };
        let functions = Functions::default();
        let want = weir_model::run(&program, &functions, &mut Frames::sample(), &rules);
        let outcome = run(
            &program,
            &functions,
            &mut Frames::sample(),
            &mut Collect::default(),
            &Options::default(),
            &mut |_| {},
        );
        assert_eq!(outcome.ledger, want.ledger);
        assert_eq!(outcome.ledger.ends.dropped, Traffic { frames: 1, bytes: 60 });
        assert_eq!(outcome.ledger.ends.outlets[&Outlet::Pass].frames, 40);
    }
}
