//! `distinct`: keeps the first row of each key.
//!
//! | | |
//! |---|---|
//! | Syntax | `distinct KEY, … idle D max N` |
//! | Emits | on push: the first row of a key, of windowed rows the first in each window; with `idle` also the first after so long without one |
//! | Order | kept |
//! | State | per key its words, its time and a word of housekeeping; `max` (default 16 Mi) keys, kept to the end unless there is an `idle` |
//! | Full | the key that had no row for longest is evicted, and counted unless it is idle; its next row passes again |
//! | Late | a late row is taken as it comes; it cannot bring an expired key back |
//! | Merge | partitioned by key |
//! | Exact? | exact; which key is evicted depends on workers where the query names no `max`: each holds that many |
//!
//! It is a [`scan`](super::scan) that counts the rows of a key as far as two, and so an automaton,
//! and a filter after it.

use weir_plan::stage::ScanState;
use weir_plan::{BinaryOp, Expr, ExprKind, Scan, Type, Value};

/// Idle time of a key that has the start of a window in it: later windows have other keys.
const WINDOW_IDLE_NS: i64 = 1;

/// The scan of a distinct, whose state goes to column `output`, and the condition on it.
/// `window` is the start of the window, where rows have one.
pub(crate) fn scan(
    plan: &weir_plan::Distinct,
    window: Option<Expr>,
    output: usize,
) -> (Scan, Expr) {
    let int = |n| Expr::constant(Value::Int(n));
    let is = |a: Expr, n| Expr {
        ty: Type::Bool,
        kind: ExprKind::Binary(BinaryOp::Eq, Box::new(a), Box::new(int(n))),
    };
    let seen = Expr { ty: Type::Int, kind: ExprKind::State(0) };
    let next = ExprKind::If(Box::new(is(seen, 0)), Box::new(int(1)), Box::new(int(2)));
    let update = Expr { ty: Type::Int, kind: next };
    let state = ScanState { name: String::new(), output, init: int(0), update };
    let idle_ns = if window.is_some() { WINDOW_IDLE_NS } else { plan.idle_ns };
    let keys = plan.keys.iter().cloned().chain(window).collect();
    let scan = Scan { states: vec![state], keys, idle_ns, max_keys: plan.max_keys };
    (scan, is(Expr::column(output, Type::Int), 1))
}

#[cfg(test)]
mod tests {
    use crate::functions::Functions;
    use crate::ops::testing::{agg, field, project, summarize};
    use crate::rows::Collect;
    use crate::run::{Options, run};
    use crate::tests::{Frames, check, check_stages, program};
    use weir_packet::source::LinkType;
    use weir_plan::limits::DISTINCT_KEYS_MAX;
    use weir_plan::{AggFunc, Distinct, Expr, Stage, Type, Window};

    fn distinct(keys: Vec<Expr>, windowed: bool, idle_ns: i64, max_keys: u64) -> Stage {
        Stage::Distinct(Distinct { keys, windowed, idle_ns, max_keys })
    }

    #[test]
    fn the_first_row_of_each_key() {
        let of = |name| {
            let keys = vec![field(name)];
            check_stages(vec![
                distinct(keys, false, i64::MAX, DISTINCT_KEYS_MAX),
                project(&["number", name]),
            ])
        };
        assert_eq!(of("dport"), ["1 80", "3 40000", "41 absent"]);
        assert_eq!(of("tcp"), ["1 true", "41 false"]);
        assert_eq!(of("number").len(), 41);
    }

    #[test]
    fn and_the_first_after_so_long() {
        let stages = |idle| {
            vec![
                distinct(vec![field("dport")], false, idle, DISTINCT_KEYS_MAX),
                project(&["number"]),
            ]
        };
        // Packets come every 100 ms; every third is an answer.
        let rows = check_stages(stages(300_000_000));
        assert_eq!(rows[..4], ["1", "3", "6", "9"]);
        assert_eq!(check_stages(stages(301_000_000)), ["1", "3", "41"]);
    }

    #[test]
    fn windows_by_themselves() {
        let groups = summarize(
            &["dport", "len"],
            vec![agg(AggFunc::Count, None)],
            Window::Tumbling(2_000_000_000),
        );
        let keys = vec![Expr::column(1, Type::Int)];
        let rows = check_stages(vec![groups, distinct(keys, true, i64::MAX, DISTINCT_KEYS_MAX)]);
        let ports: Vec<_> = rows.iter().map(|r| r.split(' ').nth(1).unwrap_or("")).collect();
        assert_eq!(ports, ["80", "40000", "80", "40000", "absent"]);
    }

    #[test]
    fn beyond_its_bound_keys_are_evicted_and_counted() {
        let frames: Vec<_> = (0..3000).map(|i| (i, vec![0; 60 + (i % 1500) as usize])).collect();
        let frames = Frames::new(LinkType::ETHERNET, &frames);
        let plan = |max| {
            program(vec![distinct(vec![field("len")], false, i64::MAX, max), project(&["len"])])
        };
        let mut sink = Collect::default();
        let options = Options::default();
        let ledger = run(
            &plan(100),
            &Functions::default(),
            &mut frames.clone(),
            &mut sink,
            &options,
            &mut |_| {},
        )
        .ledger;
        assert_eq!(sink.rows.len() as u64, 100 + ledger.evicted);
        assert!(ledger.evicted > 1000, "{ledger:?}");
        assert_eq!(check(&plan(1500), &Functions::default(), &frames).len(), 1500);
    }
}
