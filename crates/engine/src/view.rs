//! A batch of packets with its fields decoded on demand.
//!
//! All pipelines of a worker look at the same view, so a field that several ask for is decoded
//! once, and only for the rows that somebody asked for.

use weir_packet::bits::Bits;
use weir_packet::column::Column;
use weir_packet::fields::FieldId;
use weir_packet::read::{Family, Plain, read_field, read_field_text, read_parts};
use weir_packet::repeated::{PartValue, Repeated};
use weir_packet::source::FrameBatch;
use weir_packet::walk::Layers;

/// The fields of the batch at hand that were decoded so far.
#[derive(Debug)]
pub(crate) struct View {
    fields: Vec<Decoded>,
}

#[derive(Debug)]
struct Decoded {
    id: FieldId,
    column: Column,
    /// Rows of this batch that the column is valid for.
    rows: Bits,
}

impl View {
    /// A view that will decode these fields; operators name them by position.
    pub(crate) fn new(fields: &[FieldId]) -> View {
        let decoded = |&id: &FieldId| {
            let column = Column::new(id.info().ty.repr());
            Decoded { id, column, rows: Bits::NONE }
        };
        View { fields: fields.iter().map(decoded).collect() }
    }

    /// Forgets decoded fields: another batch is at hand.
    pub(crate) fn next_batch(&mut self) {
        self.fields.iter_mut().for_each(|f| f.rows = Bits::NONE);
    }

    /// The packets of the batch at hand as operators see them; `layers` is what
    /// [`weir_packet::walk::classify`] said of `frames`.
    pub(crate) fn packets<'a>(
        &'a mut self,
        frames: &'a FrameBatch,
        layers: &'a Layers,
    ) -> Packets<'a> {
        Packets { frames, layers, fields: &mut self.fields }
    }
}

/// A batch that rows of a later chain were made of: their packets are found by number.
#[derive(Clone, Copy)]
pub(crate) struct Origin<'a> {
    /// The frames of the batch.
    pub frames: &'a FrameBatch,
    /// The layers that [`weir_packet::walk::classify`] found in them.
    pub layers: &'a Layers,
}

impl Origin<'_> {
    /// Where the packet of this number stands in the batch.
    pub(crate) fn position(&self, number: u64) -> Option<usize> {
        self.frames.seq().binary_search(&number).ok()
    }

    /// Hands out the parts of the packets `rows`, each with the row that it is of; returns how many
    /// were left out, as [`read_parts`] says.
    pub(crate) fn parts(
        &self,
        what: Repeated,
        rows: Bits,
        put: impl FnMut(usize, &[PartValue<'_>]),
    ) -> u64 {
        read_parts(what, self.frames, self.layers, rows, put)
    }
}

/// The packets as operators see them.
pub(crate) struct Packets<'a> {
    frames: &'a FrameBatch,
    layers: &'a Layers,
    fields: &'a mut [Decoded],
}

impl<'a> Packets<'a> {
    /// The frames themselves.
    #[inline]
    pub(crate) fn frames(&self) -> &'a FrameBatch {
        self.frames
    }

    /// Makes field number `i` valid for `rows`.
    #[inline]
    pub(crate) fn ensure(&mut self, i: usize, rows: Bits) {
        let f = &mut self.fields[i];
        let need = rows.minus(f.rows);
        if !need.is_empty() {
            read_field(f.id, self.frames, self.layers, need, &mut f.column);
            f.rows = f.rows.or(need);
        }
    }

    /// Decodes a text field for `rows` into a column: `put` takes each text and gives the word that
    /// the column holds for it. Where texts stand is the caller's affair, so each decodes its own.
    pub(crate) fn texts(
        &self,
        id: FieldId,
        rows: Bits,
        column: &mut Column,
        put: impl FnMut(&[u8]) -> u64,
    ) {
        read_field_text(id, self.frames, self.layers, rows, column, put);
    }

    /// The batch that they are of.
    pub(crate) fn origin(&self) -> Origin<'a> {
        Origin { frames: self.frames, layers: self.layers }
    }

    /// The packets of a family whose headers stand at fixed places.
    #[inline]
    pub(crate) fn plain(&self, family: Family) -> Plain<'_> {
        Plain::new(self.frames, self.layers, family)
    }

    /// The column of field number `i`; only rows that were ensured mean anything.
    #[inline]
    pub(crate) fn column(&self, i: usize) -> &Column {
        &self.fields[i].column
    }
}

#[cfg(test)]
mod tests {
    use crate::functions::Functions;
    use crate::ops::testing::{agg, binary, compare, field, int, project, state, summarize};
    use crate::tests::{Frames, check, check_stages, program};
    use weir_packet::craft::Frame;
    use weir_packet::craft::messages::dns_query;
    use weir_packet::fields::{FieldId, Header, HeaderBytes};
    use weir_packet::source::LinkType;
    use weir_plan::limits::SCAN_KEYS_MAX;
    use weir_plan::stage::ScanState;
    use weir_plan::{
        AggFunc, BinaryOp, Expr, Func, Order, Program, Scan, SortKey, Stage, Type, Value, Window,
    };

    /// Queries for seven names, in either case, and other packets between them.
    fn queries() -> Frames {
        let frames: Vec<_> = (0..600u32)
            .map(|i| {
                let letter = if i % 2 == 0 { b'a' } else { b'A' } + (i % 7) as u8;
                let name = format!("{}.example", letter as char);
                let port = if i % 5 == 4 { 54 } else { 53 };
                let frame = Frame::ethernet().ipv4([10, 0, 0, 1], [10, 0, 0, 2]).udp(9, port);
                let frame = frame.payload(&dns_query(i as u16, &name, 1));
                ((10_000 + i64::from(i) * 10) * 1_000_000, frame.bytes())
            })
            .collect();
        Frames::new(LinkType::ETHERNET, &frames)
    }

    fn qname() -> Expr {
        field("dns.qname")
    }

    fn is(name: &str) -> Stage {
        let name = Expr::constant(Value::Str(name.into()));
        Stage::Where(compare(BinaryOp::Eq, qname(), name))
    }

    /// Numbers the queries for each name, and remembers the name.
    fn numbered() -> Vec<Stage> {
        let update = binary(BinaryOp::Add, state(0, Type::Int), int(1));
        let number = ScanState { name: "n".into(), output: 0, init: int(0), update };
        let init = Expr::constant(Value::Str("".into()));
        let seen = ScanState { name: "seen".into(), output: 1, init, update: qname() };
        let (states, keys) = (vec![number, seen], vec![qname()]);
        let scan =
            Stage::Scan(Scan { states, keys, idle_ns: 1_000_000_000, max_keys: SCAN_KEYS_MAX });
        let column = |i, ty| (format!("c{i}"), Expr::column(i, ty));
        let columns = vec![column(0, Type::Int), column(1, Type::Str)];
        vec![scan, Stage::Project { columns }]
    }

    /// Whichever worker gets them, however batches are cut.
    #[test]
    fn who_brought_packets_is_known_everywhere() {
        let count = || vec![agg(AggFunc::Count, None)];
        let by = |keys: &[&str]| check_stages(vec![summarize(keys, count(), Window::All)]);
        assert_eq!(by(&["interface"]), ["absent 11", "\"eth0\" 15", "\"eth1\" 15"]);
        assert_eq!(by(&["direction"]), ["absent 11", "\"in\" 20", "\"out\" 10"]);
        let first = Expr::constant(Value::Str("eth1".into()));
        let first = Stage::Where(compare(BinaryOp::Eq, field("interface"), first));
        let update = binary(BinaryOp::Add, state(0, Type::Int), int(1));
        let number = ScanState { name: "n".into(), output: 0, init: int(0), update };
        let keys = vec![field("interface"), field("direction")];
        let scan =
            Scan { states: vec![number], keys, idle_ns: 60_000_000_000, max_keys: SCAN_KEYS_MAX };
        let columns =
            vec![("number".into(), field("number")), ("n".into(), Expr::column(0, Type::Int))];
        let stages = vec![first, Stage::Scan(scan), Stage::Project { columns }];
        let rows = check_stages(stages);
        assert_eq!(rows[..6], ["6 1", "7 1", "8 2", "9 1", "10 2", "21 2"]);
    }

    /// Compared with a constant, as key, argument and state, as what packets are spread by; and
    /// after a stage that hands rows from one chain to the next.
    #[test]
    fn texts_of_packets_are_the_same_wherever_they_stand() {
        let made = Expr {
            ty: Type::Str,
            kind: weir_plan::ExprKind::Call(Func::Concat, vec![qname(), qname()]),
        };
        let texts = [AggFunc::Distinct, AggFunc::First, AggFunc::Max];
        let aggs = texts.map(|func| agg(func, Some(qname()))).to_vec();
        let window = Window::Tumbling(1_000_000_000);
        let by = vec![SortKey { expr: qname(), order: Order::Descending }];
        let top = Stage::Top { n: 30, by, windowed: false, per: None };
        let rows = |stages: Vec<Stage>| {
            let program = program(stages);
            let alone = check(&program, &Functions::default(), &queries()).len();
            // Two pipelines look at the same packets, each with texts of its own.
            let two = [program.pipelines.clone(), program.pipelines].concat();
            let both = check(&Program::of(two), &Functions::default(), &queries());
            assert_eq!(both.len(), 2 * alone);
            alone
        };
        let made = Stage::Project { columns: vec![("made".into(), made)] };
        assert_eq!(rows(vec![is("b.example"), project(&["number", "dns.qname"])]), 69);
        assert_eq!(rows(vec![is("B.example"), made.clone()]), 0);
        assert_eq!(rows(vec![made]), 600);
        assert_eq!(rows(vec![summarize(&["dns.qname"], aggs.clone(), window)]), 7 * 6 + 6);
        assert_eq!(rows(vec![summarize(&[], aggs, window)]), 6);
        assert_eq!(rows(numbered()), 600);
        assert_eq!(rows(vec![Stage::Limit(300), is("c.example"), project(&["dns.qname"])]), 34);
        assert_eq!(rows(vec![top, project(&["number", "dns.qname", "dns.id"])]), 30);
    }

    /// Bytes by their place: as condition, key, argument, state and what packets are spread by, and
    /// after stages that hand rows on.
    #[test]
    fn bytes_by_their_place_are_fields_like_others() {
        let bytes = |header, at, size| {
            let bytes = HeaderBytes::new(header, at, size).expect("a few bytes");
            Expr::field(FieldId::of_bytes(bytes))
        };
        // The name's first label, and its first seven and eight bytes.
        let letter = || bytes(Header::Payload, 13, 1);
        let long = || bytes(Header::Payload, 13, 8);
        assert_eq!((letter().ty, long().ty), (Type::Int, Type::Bytes));
        let rows =
            |stages: Vec<Stage>| check(&program(stages), &Functions::default(), &queries()).len();
        let asked = |e: Expr| Stage::Where(compare(BinaryOp::Eq, e, int(b'a'.into())));
        let columns =
            vec![("l".into(), letter()), ("long".into(), long()), ("p".into(), field("payload"))];
        let shown = Stage::Project { columns };
        assert_eq!(rows(vec![asked(letter()), shown.clone()]), 43);
        assert_eq!(rows(vec![asked(bytes(Header::Frame, 55, 1)), shown.clone()]), 43);
        assert_eq!(rows(vec![Stage::Limit(301), asked(letter()), shown.clone()]), 22);
        let by = vec![SortKey { expr: long(), order: Order::Descending }];
        let top = Stage::Top { n: 30, by, windowed: false, per: None };
        assert_eq!(rows(vec![top, shown]), 30);
        let keys = vec![("k".into(), letter()), ("long".into(), long())];
        let aggs = [AggFunc::Distinct, AggFunc::First, AggFunc::Max];
        let aggs = aggs.map(|func| agg(func, Some(field("payload")))).to_vec();
        let (window, lateness_ns, fill, max_groups) = (Window::All, 0, None, 1000);
        let until = None;
        let grouped = weir_plan::Summarize {
            keys,
            aggs,
            window,
            lateness_ns,
            fill,
            until,
            unless: None,
            zone: None,
            max_groups,
        };
        assert_eq!(rows(vec![Stage::Summarize(grouped)]), 14);
        let update = binary(BinaryOp::Add, state(0, Type::Int), letter());
        let sum = ScanState { name: "n".into(), output: 0, init: int(0), update };
        let (states, keys) = (vec![sum], vec![long()]);
        let scan = Scan { states, keys, idle_ns: 1_000_000_000, max_keys: SCAN_KEYS_MAX };
        let columns = vec![("c".into(), Expr::column(0, Type::Int))];
        assert_eq!(rows(vec![Stage::Scan(scan), Stage::Project { columns }]), 600);
    }
}
