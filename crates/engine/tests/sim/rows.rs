//! Stages that choose rows and take them apart.

use crate::choices::Choices;
use crate::expr::{expr, ordered};
use crate::plan::{Rows, SPANS_NS, keys};
use weir_packet::fields::{FlowKey, KeyPart, by_name};
use weir_packet::repeated::REPEATED;
use weir_plan::analyze::{TCP_COLUMNS, TCP_PREFIX, TcpColumn};
use weir_plan::limits::{DISTINCT_KEYS_MAX, SCAN_KEYS_MAX};
use weir_plan::{
    AnalyzeTcp, Deduplicate, Distinct, Each, Expr, Order, Parts, Per, Sample, SampleBy, SortKey,
    Stage, Type, Value,
};

/// Key parts, one at least.
fn some_keys(c: &mut Choices, rows: &Rows) -> Vec<Expr> {
    let mut keys = keys(c, rows);
    if keys.is_empty() {
        keys.push(expr(c, &rows.scope(), &Type::Int, 1));
    }
    keys
}

pub(crate) fn top(c: &mut Choices, rows: &mut Rows) -> Stage {
    let by = (0..1 + c.below(2)).map(|_| {
        let ty = ordered(c);
        let expr = expr(c, &rows.scope(), &ty, 2);
        SortKey { expr, order: *c.pick(&[Order::Descending, Order::Ascending]) }
    });
    let by = by.collect();
    let n = 1 + c.below(40) as u64;
    let per = c.once_in(2).then(|| {
        let max_keys = *c.pick(&[1 << 20, 3]);
        Per { keys: some_keys(c, rows), max_keys }
    });
    rows.at_hand = false;
    Stage::Top { n, by, windowed: rows.windowed, per }
}

pub(crate) fn distinct(c: &mut Choices, rows: &Rows) -> Stage {
    let idle_ns = match rows.windowed {
        true => i64::MAX,
        false => *c.pick(&[i64::MAX, SPANS_NS[0], SPANS_NS[1], SPANS_NS[2]]),
    };
    let keys = some_keys(c, rows);
    Stage::Distinct(Distinct {
        keys,
        windowed: rows.windowed,
        idle_ns,
        max_keys: DISTINCT_KEYS_MAX,
    })
}

/// The parts that flows have.
pub(crate) fn flow_key(c: &mut Choices) -> FlowKey {
    let parts = KeyPart::ALL.into_iter().filter(|_| c.once_in(3));
    parts.fold(FlowKey::default(), FlowKey::with)
}

pub(crate) fn deduplicate(c: &mut Choices) -> Stage {
    Stage::Deduplicate(Deduplicate {
        keys: Deduplicate::fields(),
        within_ns: *c.pick(&[1, SPANS_NS[0], SPANS_NS[1], i64::MAX - 1, i64::MAX]),
        max_packets: *c.pick(&[DISTINCT_KEYS_MAX, DISTINCT_KEYS_MAX, 5]),
    })
}

pub(crate) fn sample(c: &mut Choices, rows: &mut Rows) -> Stage {
    let take = 1 + c.below(3) as u64;
    let of = take + c.below(5) as u64;
    let by = match c.below(2) {
        0 if rows.fields => SampleBy::Number(Expr::field(by_name("number").expect("a field"))),
        0 => SampleBy::Order,
        _ => SampleBy::Key(some_keys(c, rows)),
    };
    rows.at_hand &= by != SampleBy::Order;
    Stage::Sample(Sample { take, of, by })
}

pub(crate) fn analyze(c: &mut Choices, rows: &mut Rows) -> Stage {
    let column = |column: &TcpColumn| {
        let name = format!("{TCP_PREFIX}{}", column.name);
        let position = rows.schema.put(&name, column.ty.clone());
        (name, position, column.ty.clone())
    };
    Stage::AnalyzeTcp(AnalyzeTcp {
        keys: AnalyzeTcp::key_fields(flow_key(c)).into_iter().map(Expr::field).collect(),
        inputs: AnalyzeTcp::input_fields().map(Expr::field).collect(),
        columns: TCP_COLUMNS.iter().map(column).collect(),
        idle_ns: *c.pick(&SPANS_NS),
        max_keys: SCAN_KEYS_MAX,
    })
}

/// Rows that are taken apart again and again would become too many.
const APART_MAX: usize = 2;

pub(crate) fn each(c: &mut Choices, rows: &mut Rows) -> Stage {
    if rows.apart == APART_MAX {
        return distinct(c, rows);
    }
    rows.apart += 1;
    if rows.fields && rows.at_hand && c.below(2) == 0 {
        let info = c.pick(REPEATED);
        let prefix = rows.fresh();
        let columns = info.parts.iter().map(|part| {
            let (name, ty) = (format!("{prefix}.{}", part.name), Type::from(part.ty));
            let position = rows.schema.put(&name, ty.clone());
            (name, position, ty)
        });
        let columns = columns.collect();
        return Stage::Each(Each { what: Parts::Packet(info.what), columns });
    }
    let text = expr(c, &rows.scope(), &Type::Str, 2);
    let by = Expr::constant(Value::Str((*c.pick(&[".", "a", "", "ex"])).into()));
    let name = rows.name(c);
    let position = rows.schema.put(&name, Type::Str);
    let columns = vec![(name, position, Type::Str)];
    Stage::Each(Each { what: Parts::Split { text, by }, columns })
}
