//! Alerts over rows that are no packets.

use crate::choices::Choices;
use crate::expr::{expr, scalar};
use crate::plan::{Rows, SPANS_NS};
use weir_base::alert::AlertSeverity;
use weir_plan::alert::{Compared, Peak, TextPart};
use weir_plan::limits::{ALERT_KEYS_MAX, ALERT_STORM_KEYS};
use weir_plan::{Alert, Stage, Type};

/// An alert, or what it needs to have before it.
pub(crate) fn alert(c: &mut Choices, rows: &mut Rows) -> Stage {
    let columns = &rows.schema.columns;
    if columns.iter().any(|column| Alert::makes(&column.name)) {
        return Stage::Limit(1000);
    }
    let is_time = |at: &usize| columns[*at].ty == Type::Time;
    let named = rows.schema.position("ts");
    let Some(ts) = named.or_else(|| (0..columns.len()).find(is_time)).filter(is_time) else {
        let (name, e) = (rows.fresh(), expr(c, &rows.scope(), &Type::Time, 2));
        let position = rows.schema.put(&name, Type::Time);
        return Stage::Extend { columns: vec![(name, position, e)] };
    };
    let mut time = || (0..columns.len()).find(|at| *at != ts && is_time(at) && c.once_in(2));
    let times = [Some(ts), time(), time()];
    let keys = (0..columns.len()).filter(|at| !times.contains(&Some(*at)) && c.once_in(2)).take(4);
    let keys = keys.map(|at| (columns[at].name.clone(), at)).collect();
    let share = |at: &usize| columns[*at].ty == Type::Float;
    let completeness = (0..columns.len()).find(share).filter(|_| c.once_in(2));
    let scope = rows.scope();
    let mut part = || match c.below(2) {
        0 => TextPart::Text((*c.pick(&["text", "{", "", "a \"b\""])).to_owned()),
        _ => {
            let ty = scalar(c);
            TextPart::Value(expr(c, &scope, &ty, 2))
        }
    };
    let (text, next) = (vec![part(), part()], vec![part()]);
    let compared = (!c.once_in(3)).then(|| Compared {
        field: "x".to_owned(),
        value: expr(c, &scope, &Type::Float, 2),
        threshold: expr(c, &scope, &Type::Float, 1),
        peak: *c.pick(&[Peak::Most, Peak::Least]),
    });
    let alert = Alert {
        rule: (*c.pick(&["rule", "a rule", "a.b"])).to_owned(),
        severity: *c.pick(&AlertSeverity::ALL),
        text,
        category: c.once_in(2).then(|| "Scan".to_owned()),
        technique: c.once_in(2).then(|| "T1498.001".to_owned()),
        next: if c.once_in(2) { next } else { Vec::new() },
        compared,
        keys,
        ts,
        first: times[1],
        last: times[2],
        over_ns: *c.pick(&[0, SPANS_NS[0], SPANS_NS[1]]),
        completeness,
        community: c.once_in(3).then(|| expr(c, &scope, &Type::Str, 2)),
        hold_ns: *c.pick(&[SPANS_NS[0], SPANS_NS[1], SPANS_NS[4], SPANS_NS[3], 1]),
        repeat_ns: *c.pick(&[None, Some(SPANS_NS[2]), Some(SPANS_NS[0]), Some(1)]),
        storm_keys: *c.pick(&[ALERT_STORM_KEYS, 2, 1]),
        max_keys: *c.pick(&[ALERT_KEYS_MAX, 3, 1]),
    };
    let stage = Stage::Alert(Box::new(alert));
    rows.schema = stage.output(&rows.schema);
    (rows.windowed, rows.at_hand) = (false, false);
    stage
}
