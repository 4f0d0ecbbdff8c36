//! `each`: one row to many.
//!
//! | | |
//! |---|---|
//! | Syntax | `each PART`, `each NAME = PART`, `each NAME = split(TEXT, SEPARATOR)` |
//! | Emits | on push: for each part of a row that row, with the part as columns; no part, no row |
//! | Order | of rows, then of the parts in each; all have the time and the number of their row |
//! | State | none |
//! | Full | of one row at most 256 parts; further ones are left out, and counted as evicted |
//! | Late | rows pass as they come |
//! | Merge | rows of all workers, by packet number |
//! | Exact? | exact |

use super::operator::Batch;
use crate::checkpoint::{Checkpoint, Passed};
use crate::counters::Ledger;
use crate::expr::{Ctx, Regs, Src, Val};
use crate::hold::Hold;
use crate::node::{End, Next};
use crate::rows::{Mover, Rows};
use weir_packet::bits::Bits;
use weir_packet::column::Column;
use weir_packet::limits::{BATCH, EACH_MAX};
use weir_packet::repeated::{PartValue, Repeated};

/// Makes rows of parts; they leave in batches of their own.
pub(crate) struct Each {
    what: What,
    /// Columns that the row had: where they stand, and where they go.
    along: Vec<(Src, usize)>,
    /// Where the values of a part go.
    parts: Vec<usize>,
    /// Rows on their way out.
    out: Rows,
    /// The row of the batch that each of them comes from.
    origins: Box<[u8; BATCH]>,
    /// Bytes of the constants, with which the rows' arena starts as the registers' does.
    shared: usize,
    left_out: u64,
}

/// The part of packets, or the text, that is taken apart.
pub(crate) enum What {
    /// A part of packets.
    Packet(Repeated),
    /// The same of rows that were made of packets of the batch at hand.
    Origin(Repeated),
    /// A text, and what separates its parts.
    Split(Val, Val),
}

impl Each {
    /// Rows like `out`: what stands in `along` goes with each part, whose values go to `parts`.
    pub(crate) fn new(what: What, along: Vec<(Src, usize)>, parts: Vec<usize>, out: Rows) -> Each {
        Each { what, along, parts, out, origins: Box::new([0; BATCH]), shared: 0, left_out: 0 }
    }

    /// Lets the rows' arena start with the registers' constants.
    pub(crate) fn share(&mut self, regs: &Regs) {
        if !self.out.texts.is_empty() {
            self.out.arena = regs.arena.clone();
            self.shared = regs.constants_len;
        }
    }

    /// Takes rows apart; `out` takes what becomes of them.
    fn take_apart(&mut self, batch: &mut Batch<'_>, rows: Bits, out: &mut dyn FnMut(&Rows)) {
        for (src, _) in &self.along {
            batch.ctx.value(&Val::Src(*src), rows);
        }
        let time = batch.ctx.value(&Val::Src(batch.time), rows);
        let split = match &self.what {
            What::Packet(_) | What::Origin(_) => None,
            What::Split(text, by) => Some((batch.ctx.value(text, rows), batch.ctx.value(by, rows))),
        };
        let Each { what, along, parts, out: into, origins, shared, left_out } = self;
        let (ctx, order, clock) = (&batch.ctx, batch.order, batch.clock);
        let mut filling =
            Filling { ctx, time, order, clock, along, rows: into, origins, shared: *shared, out };
        filling.start();
        *left_out += match (what, split) {
            (What::Packet(what), _) => {
                let view = ctx.view.as_ref().expect("parts of packets are read where packets are");
                view.origin().parts(*what, rows, |i, values| filling.part(i, parts, values))
            }
            (What::Origin(what), _) => {
                let origin = batch.origin.expect("packets are at hand on the workers");
                let of_row = |i: usize| {
                    let Some(packet) = origin.position(order[i]) else { return 0 };
                    origin.parts(*what, Bits::range(packet, packet + 1), |_, values| {
                        filling.part(i, parts, values);
                    })
                };
                rows.iter().map(of_row).sum()
            }
            (What::Split(..), Some((text, by))) => {
                let (texts, bys) = (ctx.column(text), ctx.column(by));
                let both = texts.present.and(bys.present).and(rows);
                both.iter()
                    .map(|i| {
                        let arena = &ctx.regs.arena;
                        let text = |column: &Column| arena.get(column.word()[i]);
                        filling.split(i, text(texts), text(bys), parts[0])
                    })
                    .sum()
            }
            (What::Split(..), None) => unreachable!("evaluated above"),
        };
        filling.finish();
    }
}

impl Hold for Each {
    fn pass_state(&mut self, at: &mut Checkpoint<'_>) -> Passed {
        at.count(&mut self.left_out)
    }
}

impl End for Each {
    const HOLDS_ROWS: bool = false;

    fn push(&mut self, batch: &mut Batch<'_>, rows: Bits, next: &mut Next<'_>) {
        self.take_apart(batch, rows, &mut |rows| next.rows(rows));
    }

    fn count(&self, ledger: &mut Ledger) {
        ledger.evicted += self.left_out;
    }
}

/// Stores a value of a part; the row has none so far.
fn put(rows: &mut Rows, column: usize, at: usize, value: &PartValue<'_>) {
    let raw = match *value {
        PartValue::Absent => return,
        PartValue::Bool(b) => b.into(),
        PartValue::Int(n) => n.into(),
        PartValue::Ip(bits) => bits,
        PartValue::Bytes(bytes) => rows.arena.put(bytes).into(),
    };
    rows.columns[column].set_raw(at, raw);
}

/// Rows being made of those of one batch.
struct Filling<'a> {
    ctx: &'a Ctx<'a>,
    time: Src,
    order: &'a [u64],
    clock: &'a [i64],
    along: &'a [(Src, usize)],
    rows: &'a mut Rows,
    origins: &'a mut [u8; BATCH],
    shared: usize,
    out: &'a mut dyn FnMut(&Rows),
}

impl Filling<'_> {
    fn start(&mut self) {
        self.rows.len = 0;
        self.rows.arena.truncate(self.shared);
        self.rows.columns.iter_mut().for_each(|column| column.present = Bits::NONE);
    }

    /// Adds a row that comes from row `i`; says where it is.
    fn add(&mut self, i: usize) -> usize {
        if self.rows.len == BATCH {
            self.finish();
            self.start();
        }
        let at = self.rows.len;
        self.origins[at] = i as u8;
        self.rows.len += 1;
        at
    }

    /// Adds a row for a part of packets, of row `i`, whose values go to these columns.
    fn part(&mut self, i: usize, columns: &[usize], values: &[PartValue<'_>]) {
        let at = self.add(i);
        for (&c, value) in columns.iter().zip(values) {
            put(self.rows, c, at, value);
        }
    }

    /// Adds a row for each part of a text; returns how many were left out.
    fn split(&mut self, i: usize, text: &[u8], by: &[u8], column: usize) -> u64 {
        let str = |bytes| std::str::from_utf8(bytes).unwrap_or("");
        let (text, by) = (str(text), str(by));
        let mut add = |part: &str| {
            let at = self.add(i);
            put(self.rows, column, at, &PartValue::Bytes(part.as_bytes()));
        };
        if by.is_empty() {
            add(text);
            return 0;
        }
        let mut parts = text.split(by);
        parts.by_ref().take(EACH_MAX).for_each(&mut add);
        parts.count() as u64
    }

    /// Gives the rows what goes along, and puts them out.
    fn finish(&mut self) {
        let Filling { ctx, rows, shared, .. } = self;
        let n = rows.len;
        if n == 0 {
            return;
        }
        let origins = &self.origins[..n];
        rows.order.clear();
        rows.order.extend(origins.iter().map(|&i| self.order[i as usize]));
        rows.clock.clear();
        rows.clock.extend(origins.iter().map(|&i| self.clock[i as usize]));
        rows.time.repeat(ctx.column(self.time), origins);
        for &(src, to) in self.along {
            rows.columns[to].repeat(ctx.column(src), origins);
        }
        let Rows { columns, texts, arena, .. } = &mut **rows;
        let mut mover = Mover::sharing(&ctx.regs.arena, arena, *shared);
        for &(_, to) in self.along.iter().filter(|(_, to)| texts.contains(to)) {
            mover.column(&mut columns[to], 0..n);
        }
        (self.out)(rows);
    }
}

#[cfg(test)]
mod tests {
    use crate::functions::Functions;
    use crate::ops::testing::{agg, field, project, summarize};
    use crate::tests::{Frames, check, program};
    use weir_packet::craft::Frame;
    use weir_packet::craft::messages::dns_response;
    use weir_packet::limits::EACH_MAX;
    use weir_packet::repeated::Repeated;
    use weir_packet::source::LinkType;
    use weir_plan::{AggFunc, Each, Expr, Func, Order, Parts, SortKey, Stage, Type, Value, Window};

    /// Responses with so many answers each.
    fn responses(answers: &[usize]) -> Frames {
        let frame = |(i, &n): (usize, &usize)| {
            let addresses: Vec<[u8; 4]> =
                (0..n).map(|a| [10, 0, (a >> 8) as u8, a as u8]).collect();
            let data: Vec<&[u8]> = addresses.iter().map(|a| &a[..]).collect();
            let name = format!("n{}.example", i % 3);
            let frame = Frame::ethernet().ipv4([10, 0, 0, 1], [10, 0, 0, 2]).udp(53, 9);
            let frame = frame.payload(&dns_response(i as u16, &name, 1, 0, &data));
            (i as i64 * 100_000_000, frame.bytes())
        };
        Frames::new(LinkType::ETHERNET, &answers.iter().enumerate().map(frame).collect::<Vec<_>>())
    }

    /// `each` of these parts, as columns from position `at` on.
    fn each(what: Repeated, at: usize) -> Stage {
        let info = what.info();
        let column = |(i, part): (usize, &weir_packet::repeated::Part)| {
            (format!("{}.{}", info.prefix(), part.name), at + i, part.ty.into())
        };
        let columns = info.parts.iter().enumerate().map(column).collect();
        Stage::Each(Each { what: Parts::Packet(what), columns })
    }

    fn split(text: Expr, by: &str, at: usize) -> Stage {
        let by = Expr::constant(Value::Str(by.into()));
        let columns = vec![("part".into(), at, Type::Str)];
        Stage::Each(Each { what: Parts::Split { text, by }, columns })
    }

    fn shown(stages: Vec<Stage>, frames: &Frames) -> Vec<String> {
        let rows = check(&program(stages), &Functions::default(), frames);
        let line = |(_, cells): &(usize, Vec<Value>)| {
            cells.iter().map(Value::to_string).collect::<Vec<_>>().join(" ")
        };
        rows.iter().map(line).collect()
    }

    fn columns(of: &[(usize, Type)]) -> Stage {
        let column = |(i, ty): &(usize, Type)| (format!("c{i}"), Expr::column(*i, ty.clone()));
        Stage::Project { columns: of.iter().map(column).collect() }
    }

    #[test]
    fn a_row_for_each_answer() {
        let stages = vec![
            each(Repeated::DnsAnswer, 0),
            Stage::Extend { columns: vec![("n".into(), 6, field("number"))] },
            columns(&[(6, Type::Int), (0, Type::Str), (4, Type::Ip), (5, Type::Str)]),
        ];
        assert_eq!(
            shown(stages, &responses(&[2, 0, 1])),
            [
                "1 \"n0.example\" 10.0.0.0 \"10.0.0.0\"",
                "1 \"n0.example\" 10.0.0.1 \"10.0.0.1\"",
                "3 \"n2.example\" 10.0.0.0 \"10.0.0.0\"",
            ]
        );
    }

    /// Rows of a packet reach over several batches, and over those of several workers.
    #[test]
    fn many_parts_are_grouped_numbered_and_windowed() {
        let counts: Vec<usize> = (0..90).map(|i| [0, 1, 2, 200, 7][i % 5]).collect();
        let frames = responses(&counts);
        let last = vec![
            agg(AggFunc::Count, None),
            agg(AggFunc::Last, Some(Expr::column(5, Type::Str))),
            agg(AggFunc::First, Some(Expr::column(5, Type::Str))),
            agg(AggFunc::Max, Some(field("number"))),
        ];
        let tumbling = Window::Tumbling(1_000_000_000);
        for window in [Window::All, tumbling] {
            let stages =
                vec![each(Repeated::DnsAnswer, 0), summarize(&["dns.qname"], last.clone(), window)];
            assert!(!shown(stages, &frames).is_empty());
        }
        let stages = vec![each(Repeated::DnsAnswer, 0), project(&["number", "dns.qname", "len"])];
        assert_eq!(shown(stages, &frames).len(), counts.iter().sum::<usize>());
        let twice = vec![
            each(Repeated::DnsAnswer, 0),
            split(Expr::column(5, Type::Str), ".", 6),
            Stage::Limit(1000),
            columns(&[(6, Type::Str), (5, Type::Str)]),
        ];
        assert_eq!(shown(twice, &frames).len(), 1000);
    }

    #[test]
    fn parts_of_one_kind_meet_those_of_another() {
        let names = split(field("dns.qname"), ".", 0);
        let stages = vec![
            names,
            each(Repeated::DnsAnswer, 1),
            Stage::Where(field("dns")),
            each(Repeated::TcpOption, 7),
            columns(&[(0, Type::Str), (5, Type::Ip)]),
        ];
        let mut without = stages.clone();
        without.remove(3);
        let frames = responses(&[1, 2]);
        assert!(shown(stages, &frames).is_empty());
        assert_eq!(
            shown(without, &frames),
            [
                "\"n0\" 10.0.0.0",
                "\"example\" 10.0.0.0",
                "\"n1\" 10.0.0.0",
                "\"n1\" 10.0.0.1",
                "\"example\" 10.0.0.0",
                "\"example\" 10.0.0.1",
            ]
        );
    }

    #[test]
    fn rows_of_one_packet_stay_in_their_order() {
        let letters: Vec<String> = (0..200).map(|i| ((i * 7919) % 211).to_string()).collect();
        let text = Expr::constant(Value::Str(letters.join(",").as_str().into()));
        let by = vec![SortKey { expr: field("ip.proto"), order: Order::Descending }];
        let top = Stage::Top { n: 150, by, windowed: false, per: None };
        let stages = vec![split(text, ",", 0), top, columns(&[(0, Type::Str)])];
        let rows = shown(stages, &responses(&[0; 9]));
        assert_eq!((rows.len(), &*rows[0], &*rows[149]), (150, "\"0\"", "\"19\""));
    }

    #[test]
    fn texts_are_cut_at_separators() {
        let parts = |text: &str, by: &str| {
            let text = Expr::constant(Value::Str(text.into()));
            let stages = vec![split(text, by, 0), columns(&[(0, Type::Str)])];
            shown(stages, &responses(&[0])).join(" ")
        };
        assert_eq!(parts("a,b,,c", ","), "\"a\" \"b\" \"\" \"c\"");
        assert_eq!(parts("", ","), "\"\"");
        assert_eq!(parts("abc", ""), "\"abc\"");
        assert_eq!(parts("aéb", "é"), "\"a\" \"b\"");
        let absent = Expr { ty: Type::Str, kind: weir_plan::ExprKind::Const(Value::Absent) };
        assert!(
            shown(vec![split(absent, ",", 0), columns(&[(0, Type::Str)])], &responses(&[1]))
                .is_empty()
        );
    }

    #[test]
    fn beyond_the_limit_parts_are_left_out_and_counted() {
        let long = ",".repeat(EACH_MAX + 2);
        let text = Expr {
            ty: Type::Str,
            kind: weir_plan::ExprKind::Call(
                Func::Concat,
                vec![Expr::constant(Value::Str(long.as_str().into())), field("dns.qname")],
            ),
        };
        let stages = vec![split(text, ",", 0), columns(&[(0, Type::Str)])];
        assert_eq!(shown(stages, &responses(&[0, 0])).len(), 2 * EACH_MAX);
        let stages = vec![each(Repeated::DnsAnswer, 0), project(&["number"])];
        assert_eq!(shown(stages, &responses(&[EACH_MAX + 9])).len(), EACH_MAX);
    }
}
