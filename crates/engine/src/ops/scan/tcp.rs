//! Scans that follow TCP connections: the state of a key is what
//! [`analyze_tcp`](crate::ops::analyze_tcp) remembers of a connection.

use super::store::{HEAD, META, MODE_BITS, Store, TakeTerms};
use crate::expr::{Src, Val};
use crate::ops::analyze_tcp::{Finding, RTTS, Segment, Tracked, analyze};
use crate::ops::operator::Batch;
use std::ops::Range;
use weir_packet::bits::Bits;
use weir_packet::column::Column;
use weir_packet::limits::BATCH;

/// How many inputs there are; each has a name below.
const INPUTS: usize = weir_plan::analyze::TCP_INPUTS.len();

const FORWARD: usize = 0;
const SEQ: usize = 1;
const ACKNO: usize = 2;
const FLAGS: usize = 3;
const WINDOW: usize = 4;
const LEN: usize = 5;
const WSCALE: usize = 6;
const TSVAL: usize = 7;
const TSECR: usize = 8;

/// Columns that are true or false; the two after them are numbers, the others times.
const FLAG_COLUMNS: usize = weir_plan::analyze::TCP_COLUMNS.len() - 2 - RTTS;

/// Where among the columns stand those that take more state than others.
const ACK_RTT: usize = FLAG_COLUMNS + 2;
const TSVAL_RTT: usize = ACK_RTT + 4;

/// The bit of `tcp.flags` that says SYN.
const SYN: u64 = 2;

/// A scan that follows connections.
pub(super) struct Connections {
    inputs: Vec<Val>,
    /// Registers of the columns that it makes, in the order of the plan; `None` for those that
    /// nobody reads.
    outputs: Vec<Option<usize>>,
    tracked: Tracked,
    work: Box<TcpScratch>,
}

/// Scratch of one batch, by row.
struct TcpScratch {
    segments: [Segment; BATCH],
    findings: [Finding; BATCH],
}

impl Connections {
    pub(super) fn new(inputs: Vec<Val>, outputs: Vec<Option<usize>>) -> Connections {
        assert_eq!(inputs.len(), INPUTS, "one for each field that is read");
        let is_read = |column: usize| outputs[column].is_some();
        let tracked = Tracked { stamps: is_read(TSVAL_RTT), segments: is_read(ACK_RTT) };
        let work = TcpScratch {
            segments: [Segment::default(); BATCH],
            findings: [Finding::default(); BATCH],
        };
        Connections { inputs, outputs, tracked, work: Box::new(work) }
    }

    /// The parts of a connection that the words of a table row hold.
    pub(super) fn tracked(&self) -> Tracked {
        self.tracked
    }

    /// The rows that are whole segments: those with all that each segment has, a time too.
    pub(super) fn rows(&self, batch: &mut Batch<'_>, rows: Bits) -> Bits {
        let time = Val::Src(batch.time);
        self.inputs[..WSCALE].iter().chain([&time]).fold(rows, |rows, input| {
            let src = batch.ctx.value(input, rows);
            batch.ctx.column(src).present.and(rows)
        })
    }

    /// Reads the segments of these rows.
    pub(super) fn begin(&mut self, batch: &mut Batch<'_>, rows: Bits) {
        let flags = batch.ctx.value(&self.inputs[FLAGS], rows);
        let flags = batch.ctx.column(flags).word();
        // Only a SYN says how windows are scaled.
        let syns = Bits::from_fn(batch.ctx.n, |i| flags[i] & SYN != 0).and(rows);
        let mut srcs = [Src::Slot(0); INPUTS];
        let stamped = if self.tracked.stamps { rows } else { Bits::NONE };
        for (n, (src, input)) in srcs.iter_mut().zip(&self.inputs).enumerate() {
            let rows = match n {
                WSCALE => syns,
                TSVAL | TSECR => stamped,
                _ => rows,
            };
            *src = batch.ctx.value(input, rows);
        }
        let time = batch.ctx.value(&Val::Src(batch.time), rows);
        let column = |input: usize| batch.ctx.column(srcs[input]);
        let option = |input: usize, rows: Bits| {
            let column = column(input);
            let (present, words) = (column.present.and(rows), column.word());
            move |i: usize| present.has(i).then(|| words[i])
        };
        let time = batch.ctx.column(time).word();
        let forward = column(FORWARD).truth;
        let [seq, ackno, flags, window, len] =
            [SEQ, ACKNO, FLAGS, WINDOW, LEN].map(|input| column(input).word());
        let (wscale, tsval) = (option(WSCALE, syns), option(TSVAL, stamped));
        let tsecr = option(TSECR, stamped);
        let segments = &mut self.work.segments;
        rows.each(|i| {
            segments[i] = Segment {
                time: time[i] as i64,
                forward: forward.has(i),
                seq: seq[i] as u32,
                ackno: ackno[i] as u32,
                flags: flags[i] as u16,
                window: window[i] as u16,
                len: len[i] as u32,
                wscale: wscale(i).map(|n| n as u8),
                tsval: tsval(i).map(|n| n as u32),
                tsecr: tsecr(i).map(|n| n as u32),
            };
        });
    }

    /// Looks at these rows of a store, as far as [`Store::find_or_add`] goes.
    pub(super) fn take_rows(
        &mut self,
        store: &mut Store,
        terms: TakeTerms<'_>,
        these: Range<usize>,
    ) -> usize {
        let TcpScratch { segments, findings } = &mut *self.work;
        let (first, tracked) = (terms.first << MODE_BITS, self.tracked);
        store.find_or_add(terms, these, |i, found| {
            found.cells[META] = first + ((i as u64) << MODE_BITS);
            let words = &mut found.cells[HEAD..][..tracked.words()];
            findings[i] = analyze(words, tracked, found.fresh, &segments[i]);
        })
    }

    /// Writes what was found.
    pub(super) fn end(&self, batch: &mut Batch<'_>, rows: Bits) {
        let findings = &self.work.findings;
        let (flags, others) = self.outputs.split_at(FLAG_COLUMNS);
        let (mut any, mut present) = (0, [Bits::NONE; 2 + RTTS]);
        rows.each(|i| {
            let f = &findings[i];
            any |= f.marks;
            present[0].put(i, f.duplicate_ack_num.is_some());
            present[1].put(i, f.bytes_in_flight.is_some());
            // Most segments time nothing.
            if f.rtts != [None; RTTS] {
                let there = present[2..].iter_mut().zip(&f.rtts);
                there.for_each(|(rows, rtt)| rows.put(i, rtt.is_some()));
            }
        });
        let columns = &mut batch.ctx.regs.columns;
        for (mark, to) in flags.iter().enumerate().filter_map(|(mark, to)| Some((mark, (*to)?))) {
            let column = &mut columns[to];
            (column.present, column.truth) = (rows, Bits::NONE);
            if any >> mark & 1 == 1 {
                rows.each(|i| column.truth.put(i, findings[i].marks >> mark & 1 == 1));
            }
        }
        for (n, (to, rows)) in others.iter().zip(present).enumerate() {
            let Some(to) = *to else { continue };
            write(&mut columns[to], findings, rows, |f| match n {
                0 => f.duplicate_ack_num.map(i64::from),
                1 => f.bytes_in_flight.map(i64::from),
                _ => f.rtts[n - 2],
            });
        }
    }
}

/// Writes one value of the findings that have it.
fn write(
    column: &mut Column,
    findings: &[Finding; BATCH],
    rows: Bits,
    value: impl Fn(&Finding) -> Option<i64>,
) {
    column.present = rows;
    let words = column.word_mut();
    rows.each(|i| words[i] = value(&findings[i]).unwrap_or_default() as u64);
}
