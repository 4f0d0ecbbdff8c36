//! Stages as a query would write them, and what they hold.

use super::expr::expr;
use super::text::list;
use super::{alert, ends, metric, rows};
use crate::aggregates::{Agg, AggFunc};
use crate::analyze::AnalyzeTcp;
use crate::expr::{Expr, ExprKind};
use crate::functions::Func;
use crate::join::{Join, JoinKind, Within};
use crate::limits::{GROUPS_MAX, JOIN_ROWS_MAX, SCAN_KEYS_MAX};
use crate::rows::Reshaping;
use crate::stage::{Order, Scan, Schema, Session, SortKey, Stage, Summarize, Window};
use crate::value::Value;
use crate::window::Fill;

/// The columns of a schema with their types.
pub fn columns(schema: &Schema) -> String {
    if schema.columns.is_empty() {
        return "none".to_owned();
    }
    list(&schema.columns, |c| format!("{} {}", c.name, c.ty))
}

/// A stage as a query would write it, over the columns of `input`.
pub fn stage(stage: &Stage, input: &Schema) -> String {
    let text = |e: &Expr| expr(e, input, &[]);
    let named = |name: &str, e: &Expr| match text(e) {
        same if same == name => same,
        other => format!("{name} = {other}"),
    };
    match stage {
        Stage::Where(cond) => format!("where {}", text(cond)),
        Stage::Extend { columns } => {
            format!("extend {}", list(columns, |(name, _, e)| format!("{name} = {}", text(e))))
        }
        Stage::Project { columns } => {
            format!("project {}", list(columns, |(name, e)| named(name, e)))
        }
        Stage::Reshape { columns, word } => reshape(columns, *word, input),
        Stage::Summarize(s) => {
            let mut out = format!("summarize {}", list(&s.aggs, |a| agg(a, input)));
            if !s.keys.is_empty() {
                out += &format!(" by {}", list(&s.keys, |(name, e)| named(name, e)));
            }
            out += &windows(s);
            if let Window::Session(w) = s.window {
                out += &session(&w, [&s.until, &s.unless].map(|cond| cond.as_ref().map(text)));
            }
            if s.max_groups == GROUPS_MAX { out } else { out + &format!(" max {}", s.max_groups) }
        }
        Stage::Scan(s) => scan(s, input),
        Stage::Top { n, by, per, .. } => {
            let by = list(by, |k| sort_key(k, input));
            format!("top {n} by {by}{}", rows::per(per.as_ref(), input))
        }
        Stage::Limit(n) => format!("limit {n}"),
        Stage::Join(j) => join(j, input),
        Stage::Union(u) => format!("union {}", list(&u.others, |n| format!("pipeline {}", n + 1))),
        Stage::Distinct(d) => rows::distinct(d, input),
        Stage::Deduplicate(d) => rows::deduplicate(d),
        Stage::Hello(h) => rows::hello(h),
        Stage::Sample(s) => rows::sample(s, input),
        Stage::Each(e) => rows::each(e, input),
        Stage::AnalyzeTcp(a) => analyze_tcp(a),
        Stage::Ends(e) => ends::ends(e, input),
        Stage::Capture(c) => rows::capture(c, input),
        Stage::Alert(a) => alert::alert(a, input),
        Stage::Metric(m) => metric::metric(m, input),
    }
}

/// The columns that go, or that get another name.
fn reshape(columns: &[(String, Expr)], word: Reshaping, input: &Schema) -> String {
    match word {
        Reshaping::Away => {
            let stays = |name: &str| columns.iter().any(|(kept, _)| kept == name);
            let gone = input.columns.iter().map(|c| c.name.as_str()).filter(|name| !stays(name));
            format!("project-away {}", gone.collect::<Vec<_>>().join(", "))
        }
        Reshaping::Rename => {
            let pairs = columns.iter().map(|(new, e)| (new, expr(e, input, &[])));
            let renamed = pairs.filter(|(new, old)| *new != old);
            let text = renamed.map(|(new, old)| format!("{new} = {old}"));
            format!("rename {}", text.collect::<Vec<_>>().join(", "))
        }
    }
}

/// The clauses of a `summarize` that are about time.
fn windows(s: &Summarize) -> String {
    let mut out = match s.window {
        Window::All => String::new(),
        Window::Tumbling(d) => format!(" every {}", Value::Duration(d)),
        Window::Sliding { over, every } => {
            format!(" over {} every {}", Value::Duration(over), Value::Duration(every))
        }
        Window::Session(_) => String::new(),
    };
    if let Some(zone) = s.zone {
        out += &format!(" in {}", zone.name());
    }
    if s.lateness_ns > 0 {
        out += &format!(" lateness {}", Value::Duration(s.lateness_ns));
    }
    match s.fill {
        None => {}
        Some(Fill { from_start: true, .. }) => out += " fill from start",
        Some(Fill { idle_ns: None, .. }) => out += " fill",
        Some(Fill { idle_ns: Some(idle), .. }) => {
            out += &format!(" fill idle {}", Value::Duration(idle));
        }
    }
    out
}

fn agg(agg: &Agg, input: &Schema) -> String {
    let func = match agg.func {
        AggFunc::User(i) => format!("user_{i}"),
        f => f.name().to_owned(),
    };
    let arg = match agg.arg.as_ref().map(|e| (e, &e.kind)) {
        None => String::new(),
        Some((_, ExprKind::Tuple(parts))) => {
            let parts = list(parts, |part| expr(part, input, &[]));
            if matches!(agg.func, AggFunc::DistinctUpTo(_)) { format!("({parts})") } else { parts }
        }
        // The value and the step.
        Some((_, ExprKind::Call(Func::Bin | Func::LocalBin(_), parts)))
            if agg.func == AggFunc::Histogram =>
        {
            list(parts, |part| expr(part, input, &[]))
        }
        Some((e, _)) => expr(e, input, &[]),
    };
    let more = match agg.func {
        AggFunc::Quantile(millionths) => format!(", {}", f64::from(millionths) / 1e6),
        AggFunc::Frequent(n) => format!(", {n}"),
        AggFunc::DistinctUpTo(limit) => format!(", {limit}"),
        _ => String::new(),
    };
    let mut out = format!("{} = {func}({arg}{more})", agg.name);
    if let Some(cond) = &agg.cond {
        out += &format!(" where {}", expr(cond, input, &[]));
    }
    out
}

fn scan(s: &Scan, input: &Schema) -> String {
    let init = list(&s.states, |x| format!("{} = {}", x.name, expr(&x.init, input, &[])));
    let mut update = list(&s.states, |x| expr(&x.update, input, &s.states));
    if s.states.len() > 1 {
        update = format!("({update})");
    }
    let by = match s.keys.is_empty() {
        true => String::new(),
        false => format!(" by {}", list(&s.keys, |k| expr(k, input, &[]))),
    };
    let idle = Value::Duration(s.idle_ns);
    format!("scan {init}{by} idle {idle} max {} => {update}", s.max_keys)
}

fn analyze_tcp(a: &AnalyzeTcp) -> String {
    let idle = Value::Duration(a.idle_ns);
    match a.max_keys {
        SCAN_KEYS_MAX => format!("analyze tcp idle {idle}"),
        max => format!("analyze tcp idle {idle} max {max}"),
    }
}

fn join(j: &Join, input: &Schema) -> String {
    let right = &j.schema.columns;
    let kind = match j.kind {
        JoinKind::Inner => String::new(),
        kind => format!("{} ", kind.name()),
    };
    let keys = list(&j.keys, |&(l, r)| match (&input.columns[l].name, &right[r].name) {
        (same, other) if same == other => same.clone(),
        (l, r) => format!("{l} == {r}"),
    });
    let mut out = format!("join {kind}pipeline {} by {keys}", j.right + 1);
    match j.within {
        None => {}
        Some(Within { from_ns: 0, to_ns }) => out += &format!(" within {}", Value::Duration(to_ns)),
        Some(Within { from_ns, to_ns }) => {
            let (from, to) = (Value::Duration(from_ns), Value::Duration(to_ns));
            out += &format!(" within {from}..{to}");
        }
    }
    let mut defaults = j.columns.iter().filter_map(|c| Some((c, c.default.as_ref()?))).peekable();
    if defaults.peek().is_some() {
        let text = defaults.map(|(c, v)| format!("{} = {v}", right[c.from].name));
        out += &format!(" default {}", text.collect::<Vec<_>>().join(", "));
    }
    if j.max_rows == JOIN_ROWS_MAX { out } else { out + &format!(" max {}", j.max_rows) }
}

fn sort_key(key: &SortKey, input: &Schema) -> String {
    match key.order {
        Order::Descending => expr(&key.expr, input, &[]),
        Order::Ascending => format!("{} asc", expr(&key.expr, input, &[])),
    }
}

/// The state that a stage holds, how much of it, and what happens beyond.
pub(super) fn state(stage: &Stage, input: &Schema) -> Option<String> {
    Some(match stage {
        Stage::Where(_) | Stage::Extend { .. } | Stage::Ends(_) => return None,
        Stage::Project { .. } | Stage::Reshape { .. } => return None,
        Stage::Summarize(s) => groups(s),
        Stage::Scan(s) => {
            let per = match s.keys.is_empty() {
                true => "for all rows together".to_owned(),
                false => format!("per {}", list(&s.keys, |k| expr(k, input, &[]))),
            };
            format!(
                "{} {per}, for {} after its last row; at most {} keys, evicting and counting \
                 beyond",
                list(&s.states, |x| x.name.clone()),
                Value::Duration(s.idle_ns),
                s.max_keys
            )
        }
        Stage::AnalyzeTcp(a) => format!(
            "both directions per connection, for {} after its last segment; at most {} \
             connections, evicting and counting beyond",
            Value::Duration(a.idle_ns),
            a.max_keys
        ),
        Stage::Top { n, windowed, per: Some(per), .. } => {
            rows::per_state(*n, *windowed, per, input)
        }
        Stage::Top { n, windowed: true, .. } => format!("{n} rows per open window"),
        Stage::Top { n, windowed: false, .. } => format!("{n} rows, to the end of input"),
        Stage::Limit(_) => "the number of rows passed".to_owned(),
        Stage::Join(j) => format!(
            "rows of both sides until none that they can meet is to come; at most {} each, \
             counting further ones as evicted",
            j.max_rows
        ),
        Stage::Union(_) => return None,
        Stage::Distinct(d) => rows::distinct_state(d, input),
        Stage::Deduplicate(d) => rows::deduplicate_state(d),
        Stage::Hello(h) => rows::hello_state(h),
        Stage::Sample(s) => return rows::sample_state(s),
        Stage::Each(_) | Stage::Capture(_) | Stage::Metric(_) => return None,
        Stage::Alert(a) => alert::state(a),
    })
}

/// The clauses that make sessions.
fn session(w: &Session, [until, unless]: [Option<String>; 2]) -> String {
    let gap = Value::Duration(w.gap_ns);
    if let Some(n) = w.rows {
        return format!(" every {n} rows idle {gap}");
    }
    let active = w.active_ns.map(|ns| format!(" active {}", Value::Duration(ns)));
    let until = until.map(|cond| format!(" until {cond}"));
    let linger = w.linger_ns.map(|ns| format!(" linger {}", Value::Duration(ns)));
    let unless = unless.map(|cond| format!(" unless {cond}"));
    let clauses = [active, until, linger, unless].map(Option::unwrap_or_default);
    format!(" session {gap}{}", clauses.concat())
}

fn groups(s: &Summarize) -> String {
    if let Window::Session(w) = s.window {
        let keys = list(&s.keys, |(name, _)| name.clone());
        let per = if keys.is_empty() { String::new() } else { format!(" per {keys}") };
        return format!(
            "one session{per}, those that have ended for {} at most; at most {}, putting the least \
             recently active out beyond, and counting it as evicted",
            Value::Duration(w.tick_ns()),
            s.max_groups
        );
    }
    let window = match s.window {
        Window::All => None,
        Window::Sliding { .. } => Some("open pane"),
        _ => Some("open window"),
    };
    let parts: Vec<&str> =
        window.into_iter().chain(s.keys.iter().map(|(name, _)| name.as_str())).collect();
    let per = if parts.is_empty() { String::new() } else { format!(" per {}", parts.join(", ")) };
    let until = if window.is_none() { ", to the end of input" } else { "" };
    let mut out = format!(
        "one group{per}{until}; at most {}, counting rows of others as evicted",
        s.max_groups
    );
    if let (Window::Sliding { over, .. }, Some(pane)) = (s.window, s.window.pane()) {
        let panes = over / pane;
        out += &format!("; a window is {panes} panes of {}", Value::Duration(pane));
    }
    if s.fill.is_some() {
        out += "; and the keys that are filled in, at most as many";
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::{BinaryOp, Member, UnaryOp};
    use crate::print::explain;
    use crate::program::{Input, Pipeline, Program};
    use crate::stage::{Column, ScanState};
    use crate::types::Type;
    use weir_packet::fields::by_name;

    fn field(name: &str) -> Expr {
        Expr::field(by_name(name).expect("a field"))
    }

    fn int(n: i64) -> Expr {
        Expr::constant(Value::Int(n))
    }

    fn unary(op: UnaryOp, a: Expr) -> Expr {
        Expr { ty: a.ty.clone(), kind: ExprKind::Unary(op, Box::new(a)) }
    }

    fn binary(op: BinaryOp, a: Expr, b: Expr) -> Expr {
        let logic = op.is_comparison() || matches!(op, BinaryOp::And | BinaryOp::Or);
        let ty = if logic { Type::Bool } else { a.ty.clone() };
        Expr { ty, kind: ExprKind::Binary(op, Box::new(a), Box::new(b)) }
    }

    fn call(func: Func, ty: Type, args: Vec<Expr>) -> Expr {
        Expr { ty, kind: ExprKind::Call(func, args) }
    }

    fn check(e: &Expr, expected: &str) {
        assert_eq!(expr(e, &Schema::default(), &[]), expected);
    }

    #[test]
    fn parentheses_only_where_needed() {
        use BinaryOp::*;
        let (a, b, c) = (|| field("len"), || field("caplen"), || int(2));
        check(&binary(Add, a(), binary(Mul, b(), c())), "len + caplen * 2");
        check(&binary(Mul, binary(Add, a(), b()), c()), "(len + caplen) * 2");
        check(&binary(Sub, binary(Sub, a(), b()), c()), "len - caplen - 2");
        check(&binary(Sub, a(), binary(Sub, b(), c())), "len - (caplen - 2)");
        check(&binary(Eq, binary(BitAnd, a(), c()), int(0)), "len & 2 == 0");
        check(&binary(BitAnd, a(), binary(BitOr, b(), c())), "len & (caplen | 2)");
        let either = binary(BitOr, binary(BitOr, a(), b()), c());
        check(&binary(Ne, either, int(0)), "(len | caplen | 2) != 0");
        check(&unary(UnaryOp::Neg, binary(Add, a(), b())), "-(len + caplen)");
        check(&unary(UnaryOp::Neg, unary(UnaryOp::Neg, a())), "-(-len)");
        check(&unary(UnaryOp::Neg, int(-1)), "-(-1)");
        check(&binary(Sub, a(), int(-1)), "len - -1");
    }

    #[test]
    fn logic_reads_as_typed() {
        use BinaryOp::*;
        let (tcp, udp, syn) = (|| field("tcp"), || field("udp"), || field("tcp.syn"));
        let not = |e| unary(UnaryOp::Not, e);
        check(&binary(And, binary(Or, tcp(), udp()), not(syn())), "(tcp or udp) and not tcp.syn");
        check(&binary(Or, tcp(), binary(And, udp(), syn())), "tcp or udp and tcp.syn");
        check(&not(binary(And, tcp(), udp())), "not (tcp and udp)");
        check(&not(binary(Gt, field("len"), int(9))), "not len > 9");
        check(&binary(Eq, tcp(), not(syn())), "tcp == (not tcp.syn)");
        check(&binary(Eq, binary(Eq, tcp(), udp()), syn()), "(tcp == udp) == tcp.syn");
    }

    #[test]
    fn calls_sets_and_choices() {
        let Value::Ip(ten) = Value::ip([10, 0, 0, 0].into()) else { unreachable!() };
        let inside =
            |e: Expr, members| Expr { ty: Type::Bool, kind: ExprKind::In(Box::new(e), members) };
        let ports =
            vec![Member::Value(Value::Int(22)), Member::Range(Value::Int(8000), Value::Int(8999))];
        check(&inside(field("dport"), ports), "dport in {22, 8000..8999}");
        let net = inside(field("ip.src"), vec![Member::Net(Value::Net(ten, 104))]);
        check(&net, "ip.src in 10.0.0.0/8");
        let choice = Expr {
            ty: Type::Int,
            kind: ExprKind::If(Box::new(net), Box::new(int(1)), Box::new(int(2))),
        };
        check(&choice, "if(ip.src in 10.0.0.0/8, 1, 2)");
        let second = Expr::constant(Value::Duration(1_000_000_000));
        let bin = call(Func::Bin, Type::Time, vec![field("ts"), second]);
        check(&bin, "bin(ts, 1s)");
        check(&call(Func::User(3), Type::Bool, vec![int(1)]), "user_3(1)");
        let pair = Expr {
            ty: Type::Tuple(vec![Type::Ip, Type::Int]),
            kind: ExprKind::Tuple(vec![field("ip.src"), field("sport")]),
        };
        check(&pair, "(ip.src, sport)");
    }

    /// Attempts per source and second, and of these the busiest sources of each second; and the
    /// number of each packet from a source to a port.
    fn program() -> Program {
        let count = Agg {
            name: "n".into(),
            func: AggFunc::Count,
            arg: None,
            cond: Some(unary(UnaryOp::Not, field("tcp.ack"))),
            ty: Type::Int,
        };
        let sum = Agg {
            name: "bytes".into(),
            func: AggFunc::Sum,
            arg: Some(field("len")),
            cond: None,
            ty: Type::Int,
        };
        let attempts = vec![
            Stage::Where(field("tcp.syn")),
            Stage::Summarize(Summarize {
                keys: vec![("ip.src".into(), field("ip.src")), ("port".into(), field("dport"))],
                aggs: vec![count, sum],
                window: Window::Tumbling(1_000_000_000),
                lateness_ns: 0,
                fill: None,
                until: None,
                unless: None,
                zone: None,
                max_groups: crate::limits::GROUPS_MAX,
            }),
        ];
        let busiest = vec![
            Stage::Extend {
                columns: vec![(
                    "mean".into(),
                    5,
                    binary(BinaryOp::Div, Expr::column(4, Type::Int), Expr::column(3, Type::Int)),
                )],
            },
            Stage::Top {
                n: 3,
                by: vec![
                    SortKey { expr: Expr::column(3, Type::Int), order: Order::Descending },
                    SortKey { expr: Expr::column(1, Type::Ip), order: Order::Ascending },
                ],
                windowed: true,
                per: None,
            },
            Stage::Project {
                columns: vec![
                    ("ip.src".into(), Expr::column(1, Type::Ip)),
                    ("n".into(), Expr::column(3, Type::Int)),
                    ("mean".into(), Expr::column(5, Type::Int)),
                ],
            },
        ];
        let state = Expr { ty: Type::Int, kind: ExprKind::State(0) };
        let numbers = vec![
            Stage::Scan(Scan {
                states: vec![ScanState {
                    name: "position".into(),
                    output: 0,
                    init: int(0),
                    update: binary(BinaryOp::Add, state, int(1)),
                }],
                keys: vec![field("ip.src"), field("dport")],
                idle_ns: 60_000_000_000,
                max_keys: crate::limits::SCAN_KEYS_MAX,
            }),
            Stage::Limit(7),
        ];
        let mut program = Program::default();
        for (name, input, stages, printed) in [
            (Some("attempts"), Input::Packets, attempts, false),
            (None, Input::Pipeline(0), busiest, true),
            (None, Input::Packets, numbers, true),
        ] {
            let mut schema = match input {
                Input::Packets => Schema::default(),
                Input::Pipeline(n) => program.pipelines[n].schema.clone(),
            };
            for stage in &stages {
                schema = stage.output(&schema);
            }
            let name = name.map(str::to_owned);
            program.pipelines.push(Pipeline { name, input, stages, schema, printed });
        }
        program
    }

    #[test]
    fn explains_a_program() {
        insta::assert_snapshot!(explain(&program(), 4), @r"
    workers: 4; stages that need their rows in order have ip.src, dport in common, so packets are spread by it
    largest common key: ip.src, dport

    exchange 1: packets for pipelines 1 (attempts), 3, spread by ip.src, dport
      why: stages that need their rows in order have ip.src, dport in common, so packets are spread by it

    worker level: on each worker, over its share of the packets
      ticks: every 1s
      pipeline 1 (attempts): from exchange 1 to exchange 2
        why here: any packet may be on any worker
        where tcp.syn
          reads: tcp.syn
        partial summarize n = count() where not tcp.ack, bytes = sum(len) by ip.src, port = dport every 1s
          reads: ip.src, dport, tcp.ack, len
          state: one group per open window, ip.src, port; at most 67108864, counting rows of others as evicted
      pipeline 3: from exchange 1 to exchange 3
        why here: all packets of a key are on one worker
        scan position = 0 by ip.src, dport idle 1m max 16777216 => position + 1
          reads: ip.src, dport
          columns: position int
          state: position per ip.src, dport, for 1m after its last row; at most 16777216 keys, evicting and counting beyond

    exchange 2: groups of stage 2 of pipeline 1 (attempts), merged by window and key
      why: partial groups of all workers are merged
      needs: nothing; any packet may be at any producer
    exchange 3: rows of pipeline 3, by packet number
      why: `limit` needs the rows of all workers, in order
      needs: all packets of one ip.src, dport at one producer

    machine level: once, over what the workers hand over
      pipeline 1 (attempts): from exchange 2 to pipeline 2
        final summarize n = count() where not tcp.ack, bytes = sum(len) by ip.src, port = dport every 1s
          columns: ts time, ip.src ip, port int, n int, bytes int
      pipeline 2: from pipeline 1 (attempts) to output
        why here: its rows come from another pipeline
        extend mean = bytes / n
          columns: ts time, ip.src ip, port int, n int, bytes int, mean int
        top 3 by n, ip.src asc
          state: 3 rows per open window
        project ip.src, n, mean
          columns: ip.src ip, n int, mean int
      pipeline 3: from exchange 3 to output
        limit 7
          state: the number of rows passed
    ");
    }

    #[test]
    fn joins_and_unions_read_as_typed() {
        use crate::join::{JoinColumn, Union};
        let schema = |names: &[&str]| Schema {
            columns: names.iter().map(|name| Column::new(name, &Type::Int)).collect(),
        };
        let left = schema(&["id", "client"]);
        let mut plan = Join {
            kind: JoinKind::Left,
            right: 2,
            schema: schema(&["id", "host", "n"]),
            keys: vec![(0, 0), (1, 1)],
            columns: vec![JoinColumn { from: 2, default: Some(Value::Int(0)) }],
            within: Some(Within { from_ns: 0, to_ns: 3_000_000_000 }),
            max_rows: 9,
        };
        let text = |plan: &Join| stage(&Stage::Join(plan.clone()), &left);
        let after = "join left pipeline 3 by id, client == host within 3s default n = 0 max 9";
        assert_eq!(text(&plan), after);
        plan.within = Some(Within { from_ns: -1_000_000_000, to_ns: 0 });
        (plan.kind, plan.max_rows, plan.columns) = (JoinKind::Inner, JOIN_ROWS_MAX, Vec::new());
        assert_eq!(text(&plan), "join pipeline 3 by id, client == host within -1s..0s");
        plan.within = None;
        assert_eq!(text(&plan), "join pipeline 3 by id, client == host");
        let union = Union { others: vec![0, 3], columns: Vec::new(), timed: true };
        assert_eq!(stage(&Stage::Union(union), &left), "union pipeline 1, pipeline 4");
    }

    #[test]
    fn sessions_read_as_typed() {
        let window = |active_ns, rows, linger_ns| {
            Window::Session(Session { gap_ns: 15_000_000_000, active_ns, rows, linger_ns })
        };
        let mut s = Summarize {
            keys: vec![("ip.src".into(), field("ip.src"))],
            aggs: vec![Agg {
                name: "why".into(),
                func: AggFunc::EndReason,
                arg: None,
                cond: None,
                ty: Type::Int,
            }],
            window: window(Some(60_000_000_000), None, None),
            lateness_ns: 0,
            fill: None,
            until: Some(field("tcp.rst")),
            unless: None,
            zone: None,
            max_groups: 500,
        };
        let text = |s: &Summarize| stage(&Stage::Summarize(s.clone()), &Schema::default());
        assert_eq!(
            text(&s),
            "summarize why = end_reason() by ip.src session 15s active 1m until tcp.rst max 500"
        );
        let state = groups(&s);
        assert!(state.starts_with("one session per ip.src, those that have ended for 1s at most;"));
        (s.window, s.unless) = (window(None, None, Some(5_000_000_000)), Some(field("tcp.syn")));
        assert_eq!(
            text(&s),
            "summarize why = end_reason() by ip.src session 15s until tcp.rst linger 5s unless \
             tcp.syn max 500"
        );
        (s.window, s.until, s.unless) = (window(None, Some(1000), None), None, None);
        assert_eq!(
            text(&s),
            "summarize why = end_reason() by ip.src every 1000 rows idle 15s max 500"
        );
    }

    #[test]
    fn aggregates_read_as_typed() {
        let agg_of = |func, arg| Agg { name: "x".into(), func, arg, cond: None, ty: Type::Int };
        let sum = binary(BinaryOp::Add, field("len"), int(1));
        let product = binary(BinaryOp::Mul, sum.clone(), sum);
        let both = vec![field("ip.src"), field("sport")];
        let pair = Expr { ty: Type::Tuple(vec![Type::Ip, Type::Int]), kind: ExprKind::Tuple(both) };
        for (agg_, expected) in [
            (agg_of(AggFunc::Sum, Some(product)), "x = sum((len + 1) * (len + 1))"),
            (agg_of(AggFunc::Distinct, Some(pair)), "x = distinct(ip.src, sport)"),
            (agg_of(AggFunc::User(2), Some(field("len"))), "x = user_2(len)"),
            (agg_of(AggFunc::Quantile(950_000), Some(field("len"))), "x = quantile(len, 0.95)"),
            (agg_of(AggFunc::Frequent(5), Some(field("dport"))), "x = frequent(dport, 5)"),
        ] {
            assert_eq!(agg(&agg_, &Schema::default()), expected);
        }
    }
}
