use crate::functions::Functions;
use crate::limits::LATENESS_NS;
use crate::ops::testing::{agg, binary, field, int, summarize};
use crate::rows::Collect;
use crate::run::{Options, run};
use crate::suppress::SuppressionList;
use crate::tests::{Frames, check, program};
use std::net::Ipv4Addr;
use weir_base::alert::AlertSeverity;
use weir_model::TimeRules;
use weir_packet::craft::Frame;
use weir_packet::source::LinkType;
use weir_plan::alert::{Compared, Peak, TextPart};
use weir_plan::limits::{ALERT_KEYS_MAX, ALERT_STORM_KEYS};
use weir_plan::{
    AggFunc, Alert, BinaryOp, Expr, ExprKind, Func, Schema, Stage, SuppressedIf, Suppression, Type,
    UnaryOp, Value, Window,
};

const S: i64 = 1_000_000_000;

/// An alert over rows of `ts`, `ip.src` and a number, which must be above 0.
fn alert() -> Alert {
    let number = Expr::column(2, Type::Int);
    let float =
        |e: Expr| Expr { ty: Type::Float, kind: ExprKind::Unary(UnaryOp::ToFloat, e.into()) };
    Alert {
        rule: "rule".into(),
        severity: AlertSeverity::High,
        text: vec![
            TextPart::Value(Expr::column(1, Type::Ip)),
            TextPart::Text(" had ".into()),
            TextPart::Value(number.clone()),
        ],
        category: Some("Scan".into()),
        technique: Some("T1046".into()),
        next: vec![TextPart::Text("look".into())],
        compared: Some(Compared {
            field: "n".into(),
            value: float(number),
            threshold: float(int(0)),
            peak: Peak::Most,
        }),
        keys: vec![("ip.src".into(), 1)],
        ts: 0,
        first: None,
        last: None,
        over_ns: 0,
        completeness: None,
        community: None,
        hold_ns: 2 * S,
        repeat_ns: None,
        storm_keys: ALERT_STORM_KEYS,
        max_keys: ALERT_KEYS_MAX,
    }
}

/// Packets of hosts 10.0.0.1 and so on, at these milliseconds, with so many bytes of payload.
fn frames(packets: &[(i64, u8, usize)]) -> Frames {
    let frame = |&(ms, host, payload): &(i64, u8, usize)| {
        let source = Ipv4Addr::new(10, 0, 0, host);
        let frame = Frame::ethernet().ipv4(source, Ipv4Addr::new(10, 0, 0, 9)).udp(1, 2);
        (ms * 1_000_000, frame.payload(&vec![0; payload]).bytes())
    };
    Frames::new(LinkType::ETHERNET, &packets.iter().map(frame).collect::<Vec<_>>())
}

/// Rows of the packets themselves: `ts`, `ip.src`, and how much payload they have.
fn packet_rows() -> Stage {
    let column = |name: &str, e: Expr| (name.to_owned(), e);
    let payload = binary(BinaryOp::Sub, field("udp.len"), int(8));
    let columns =
        vec![column("ts", field("ts")), column("ip.src", field("ip.src")), column("n", payload)];
    Stage::Project { columns }
}

/// Packets of each source every second.
fn window_rows() -> Stage {
    let Stage::Summarize(mut s) =
        summarize(&["ip.src"], vec![agg(AggFunc::Count, None)], Window::Tumbling(S))
    else {
        unreachable!("it is one")
    };
    s.keys[0].0 = "ip.src".into();
    Stage::Summarize(s)
}

/// The columns of a row that come out, by name.
fn row(cells: &[Value], schema: &Schema, names: &[&str]) -> String {
    let shown = |name: &&str| {
        let cell = &cells[schema.position(name).unwrap_or_else(|| panic!("no {name}"))];
        match cell {
            Value::Str(text) => text.to_string(),
            Value::Time(t) => format!("@{}", t / 1_000_000),
            cell => cell.to_string(),
        }
    };
    names.iter().map(shown).collect::<Vec<_>>().join(" ")
}

const SHOWN: [&str; 8] = [
    "ts",
    "alert.state",
    "ip.src",
    "alert.value",
    "alert.peak",
    "alert.first",
    "alert.last",
    "alert.rows",
];

/// Runs an alert with the engine and the model; the rows, and how many keys were evicted.
fn told(before: Stage, alert: Alert, packets: &[(i64, u8, usize)]) -> (Vec<String>, u64) {
    let program = program(vec![before, Stage::Alert(Box::new(alert))]);
    let frames = frames(packets);
    let rows = check(&program, &Functions::default(), &frames);
    let rules = TimeRules { lateness_ns: LATENESS_NS, jump_ns: 60 * S };
    let model = weir_model::run(&program, &Functions::default(), &mut frames.cut(&[7]), &rules);
    let schema = &program.pipelines[0].schema;
    let rows = rows.iter().map(|(_, cells)| row(cells, schema, &SHOWN)).collect();
    (rows, model.ledger.evicted)
}

#[test]
fn a_key_starts_once_and_ends_once() {
    let packets = [(0, 1, 5), (500, 1, 9), (1000, 2, 1), (2000, 1, 7), (3000, 2, 2), (9000, 3, 1)];
    let (rows, evicted) = told(packet_rows(), alert(), &packets);
    // Of host 1 the hold is over 2 s after 2 s, of host 2 after 3 s; the watermark passes both with
    // the packet at 9 s.
    assert_eq!(
        rows,
        [
            "@0 start 10.0.0.1 5.0 5.0 @0 @0 1",
            "@1000 start 10.0.0.2 1.0 1.0 @1000 @1000 1",
            "@2000 end 10.0.0.1 9.0 9.0 @0 @2000 3",
            "@3000 end 10.0.0.2 2.0 2.0 @1000 @3000 2",
            "@9000 start 10.0.0.3 1.0 1.0 @9000 @9000 1",
            "@9000 open 10.0.0.3 1.0 1.0 @9000 @9000 1",
        ]
    );
    assert_eq!(evicted, 0);
}

#[test]
fn all_columns_of_a_row() {
    let alert = Alert { hold_ns: S, over_ns: S, ..alert() };
    let program = program(vec![window_rows(), Stage::Alert(Box::new(alert))]);
    let rows = check(&program, &Functions::default(), &frames(&[(0, 1, 5), (10, 1, 5)]));
    let schema = &program.pipelines[0].schema;
    let names: Vec<&str> = schema.columns.iter().map(|c| c.name.as_str()).collect();
    assert_eq!(rows.len(), 2);
    let line = |(name, cell): (&&str, &Value)| format!("{name}: {cell}");
    let shown: Vec<String> = names.iter().zip(&rows[0].1).map(line).collect();
    insta::assert_snapshot!(shown.join("\n"), @r#"
    ts: 1970-01-01T00:00:00Z
    alert.rule: "rule"
    alert.state: "start"
    alert.severity: "high"
    alert.message: "10.0.0.1 had 2"
    alert.key: "ip.src=10.0.0.1"
    alert.field: "n"
    alert.value: 2.0
    alert.threshold: 0.0
    alert.peak: 2.0
    alert.first: 1970-01-01T00:00:00Z
    alert.last: 1970-01-01T00:00:01Z
    alert.rows: 1
    alert.window: 1s
    alert.completeness: absent
    alert.community_id: absent
    alert.category: "Scan"
    alert.technique: "T1046"
    alert.next: "look"
    alert.suppress: "rule ip.src=10.0.0.1"
    ip.src: 10.0.0.1
    count: 2
    "#);
}

/// The times of the packets that count, where columns say them: the row is dated by the first of
/// them, and what was asserted last by the last.
#[test]
fn an_alert_is_dated_by_its_packets() {
    let of = |ms: i64| {
        let delta = Expr::constant(Value::Duration(ms * 1_000_000));
        let ts = Box::new(Expr::column(0, Type::Time));
        Expr { ty: Type::Time, kind: ExprKind::Binary(BinaryOp::Add, ts, delta.into()) }
    };
    let times =
        Stage::Extend { columns: vec![("a".to_owned(), 3, of(100)), ("b".to_owned(), 4, of(300))] };
    let check = |first, last, expected: &[&str]| {
        let alert = Alert { hold_ns: S, over_ns: S, first, last, ..alert() };
        let stages = vec![window_rows(), times.clone(), Stage::Alert(Box::new(alert))];
        let program = program(stages);
        let frames = frames(&[(0, 1, 5), (1010, 1, 5)]);
        let rows = super::tests::check(&program, &Functions::default(), &frames);
        let schema = &program.pipelines[0].schema;
        let rows: Vec<String> = rows.iter().map(|(_, cells)| row(cells, schema, &SHOWN)).collect();
        assert_eq!(rows, expected);
        let names: Vec<&str> = schema.columns[Alert::COLUMNS..].iter().map(|c| &*c.name).collect();
        let rest = [("a", first), ("b", last)].into_iter().filter(|(_, at)| at.is_none());
        let rest: Vec<&str> = ["ip.src", "count"].into_iter().chain(rest.map(|(n, _)| n)).collect();
        assert_eq!(names, rest);
    };
    check(
        Some(3),
        Some(4),
        &["@100 start 10.0.0.1 1.0 1.0 @100 @300 1", "@1300 open 10.0.0.1 1.0 1.0 @100 @1300 2"],
    );
    // Without such columns it is the window.
    check(
        None,
        None,
        &["@0 start 10.0.0.1 1.0 1.0 @0 @1000 1", "@2000 open 10.0.0.1 1.0 1.0 @0 @2000 2"],
    );
}

/// The hold is counted from the end of the window, so that windows that follow one another are one
/// alert, however short the hold is.
#[test]
fn windows_that_follow_one_another_do_not_flap() {
    let packets: Vec<_> = (0..5).map(|s| (1000 * s + 300, 1, 5)).chain([(9000, 2, 5)]).collect();
    let alert = |hold_ns| Alert { hold_ns, over_ns: S, ..alert() };
    let (rows, _) = told(window_rows(), alert(1), &packets);
    let first = ["@0 start 10.0.0.1 1.0 1.0 @0 @1000 1", "@5000 end 10.0.0.1 1.0 1.0 @0 @5000 5"];
    assert_eq!(rows[..2], first);
    // A gap of one window is more than that.
    let gap: Vec<_> = packets.iter().filter(|p| p.0 != 2300).copied().collect();
    let (rows, _) = told(window_rows(), alert(1), &gap);
    let states: Vec<&str> = rows.iter().filter_map(|row| row.split(' ').nth(1)).collect();
    assert_eq!(states, ["start", "end", "start", "end", "start", "open"]);
    assert_eq!(told(window_rows(), alert(S), &gap).0.len(), 4);
}

#[test]
fn the_last_moment_of_the_hold_counts() {
    let after = |ms| told(packet_rows(), alert(), &[(0, 1, 1), (ms, 1, 1)]).0;
    assert_eq!(
        after(2000),
        ["@0 start 10.0.0.1 1.0 1.0 @0 @0 1", "@2000 open 10.0.0.1 1.0 1.0 @0 @2000 2"]
    );
    assert_eq!(after(2001).len(), 4);
}

#[test]
fn a_repeat_tells_again() {
    let packets: Vec<_> = (0..8).map(|i| (500 * i, 1, 3 + (i as usize % 4))).collect();
    let alert = Alert { repeat_ns: Some(S), ..alert() };
    let (rows, _) = told(packet_rows(), alert, &packets);
    assert_eq!(
        rows,
        [
            "@0 start 10.0.0.1 3.0 3.0 @0 @0 1",
            "@1000 ongoing 10.0.0.1 5.0 5.0 @0 @1000 3",
            "@2000 ongoing 10.0.0.1 3.0 6.0 @0 @2000 5",
            "@3000 ongoing 10.0.0.1 5.0 6.0 @0 @3000 7",
            "@3500 open 10.0.0.1 6.0 6.0 @0 @3500 8",
        ]
    );
}

#[test]
fn below_a_threshold_the_peak_is_the_smallest() {
    let mut alert = alert();
    if let Some(compared) = &mut alert.compared {
        compared.peak = Peak::Least;
    }
    let packets = [(0, 1, 5), (100, 1, 2), (200, 1, 8)];
    let (rows, _) = told(packet_rows(), alert.clone(), &packets);
    assert_eq!(rows[1], "@200 open 10.0.0.1 2.0 2.0 @0 @200 3");
    alert.compared = None;
    let (rows, _) = told(packet_rows(), alert, &packets);
    assert_eq!(rows[1], "@200 open 10.0.0.1 absent absent @0 @200 3");
}

#[test]
fn where_keys_are_too_many_the_oldest_ends() {
    let alert = Alert { max_keys: 2, ..alert() };
    let packets = [(0, 1, 1), (100, 2, 1), (200, 1, 1), (300, 3, 1), (400, 2, 1)];
    let (rows, evicted) = told(packet_rows(), alert, &packets);
    assert_eq!(
        rows,
        [
            "@0 start 10.0.0.1 1.0 1.0 @0 @0 1",
            "@100 start 10.0.0.2 1.0 1.0 @100 @100 1",
            "@100 end 10.0.0.2 1.0 1.0 @100 @100 1",
            "@300 start 10.0.0.3 1.0 1.0 @300 @300 1",
            "@200 end 10.0.0.1 1.0 1.0 @0 @200 2",
            "@400 start 10.0.0.2 1.0 1.0 @400 @400 1",
            "@300 open 10.0.0.3 1.0 1.0 @300 @300 1",
            "@400 open 10.0.0.2 1.0 1.0 @400 @400 1",
        ]
    );
    assert_eq!(evicted, 2);
}

/// Of many keys that begin at once the first are reported one by one, and the others as one alert,
/// which counts them. In the next minute keys are reported one by one again.
#[test]
fn keys_that_begin_in_a_storm_are_reported_together() {
    let alert = Alert { storm_keys: 2, ..alert() };
    let mut packets: Vec<(i64, u8, usize)> = (1..=6).map(|n| (i64::from(n), n, 10)).collect();
    // Host 4 has more and goes on, host 2 does, too; then one after the other.
    packets.extend([(100, 4, 99), (1500, 4, 7), (1600, 2, 3), (9000, 7, 1), (61_000, 8, 1)]);
    let (rows, evicted) = told(packet_rows(), alert.clone(), &packets);
    assert_eq!(
        rows,
        [
            "@1 start 10.0.0.1 10.0 10.0 @1 @1 1",
            "@2 start 10.0.0.2 10.0 10.0 @2 @2 1",
            "@3 start 10.0.0.3 10.0 10.0 @3 @3 1",
            "@1 end 10.0.0.1 10.0 10.0 @1 @1 1",
            "@1600 end 10.0.0.2 10.0 10.0 @2 @1600 2",
            // Four hosts: 3 to 6. Host 4 went on, and is no further one.
            "@1500 end 10.0.0.3 10.0 10.0 @3 @1500 4",
            "@9000 start 10.0.0.7 1.0 1.0 @9000 @9000 1",
            "@9000 end 10.0.0.7 1.0 1.0 @9000 @9000 1",
            "@61000 start 10.0.0.8 1.0 1.0 @61000 @61000 1",
            "@61000 open 10.0.0.8 1.0 1.0 @61000 @61000 1",
        ]
    );
    assert_eq!(evicted, 0);
    // The message says how many keys there are, and the line suppresses the rule.
    let stages = vec![packet_rows(), Stage::Alert(Box::new(alert))];
    let program = program(stages);
    let rows = check(&program, &Functions::default(), &frames(&packets));
    let schema = &program.pipelines[0].schema;
    let names = ["alert.state", "alert.key", "alert.message", "alert.suppress"];
    let said: Vec<String> = rows.iter().map(|(_, cells)| row(cells, schema, &names)).collect();
    assert_eq!(said[2], "start storm and 1 more: 10.0.0.3 had 10 rule");
    assert_eq!(said[5], "end storm and 4 more: 10.0.0.3 had 10 rule");
    assert_eq!(said[6], "start storm and 1 more: 10.0.0.7 had 1 rule", "within the same minute");
}

/// A storm that lasts is reported again after each `repeat`, with the keys so far.
#[test]
fn a_storm_goes_on_with_keys_that_begin() {
    let alert = Alert { storm_keys: 1, repeat_ns: Some(S), hold_ns: 5 * S, ..alert() };
    let packets: Vec<(i64, u8, usize)> =
        (1..=9).map(|n| (500 * i64::from(n), n, usize::from(n))).collect();
    let (rows, _) = told(packet_rows(), alert, &packets);
    assert_eq!(
        rows,
        [
            "@500 start 10.0.0.1 1.0 1.0 @500 @500 1",
            "@1000 start 10.0.0.2 2.0 2.0 @1000 @1000 1",
            "@2000 ongoing 10.0.0.4 4.0 4.0 @1000 @2000 3",
            "@3000 ongoing 10.0.0.6 6.0 6.0 @1000 @3000 5",
            "@4000 ongoing 10.0.0.8 8.0 8.0 @1000 @4000 7",
            "@500 open 10.0.0.1 1.0 1.0 @500 @500 1",
            "@4500 open 10.0.0.9 9.0 9.0 @1000 @4500 8",
        ]
    );
}

/// A clock that steps back: rows that lag the watermark assert their keys as if they came at it.
#[test]
fn late_rows_keep_an_alert_going() {
    let packets =
        [(0, 1, 1), (10, 1, 1), (9000, 2, 1), (100, 1, 1), (10_500, 2, 1), (11_900, 2, 1)];
    let (rows, _) = told(packet_rows(), alert(), &packets);
    assert_eq!(
        rows,
        [
            "@0 start 10.0.0.1 1.0 1.0 @0 @0 1",
            "@10 end 10.0.0.1 1.0 1.0 @0 @10 2",
            "@9000 start 10.0.0.2 1.0 1.0 @9000 @9000 1",
            "@100 start 10.0.0.1 1.0 1.0 @100 @100 1",
            "@100 open 10.0.0.1 1.0 1.0 @100 @100 1",
            "@11900 open 10.0.0.2 1.0 1.0 @9000 @11900 3",
        ]
    );
}

#[test]
fn the_whole_rule_is_one_key() {
    let alert = Alert { keys: Vec::new(), ..alert() };
    let program = program(vec![packet_rows(), Stage::Alert(Box::new(alert))]);
    let frames = frames(&[(0, 1, 1), (1, 2, 3)]);
    let rows = check(&program, &Functions::default(), &frames);
    let schema = &program.pipelines[0].schema;
    let shown = |(_, cells): &(usize, Vec<Value>)| {
        row(cells, schema, &["alert.state", "alert.key", "alert.suppress", "alert.message"])
    };
    let rows: Vec<String> = rows.iter().map(shown).collect();
    assert_eq!(rows, ["start absent rule 10.0.0.1 had 1", "open absent rule 10.0.0.2 had 3"]);
}

/// Rows that come out have times that what comes after can rely on.
#[test]
fn alerts_are_counted_by_the_time_that_they_tell_of() {
    let packets = [(0, 1, 1), (100, 2, 1), (2500, 3, 1), (5200, 1, 1), (9000, 4, 1)];
    let state = Expr::column(2, Type::Str);
    let mut count = summarize(&[], vec![agg(AggFunc::Count, None)], Window::Tumbling(S));
    if let Stage::Summarize(s) = &mut count {
        s.keys.push(("state".into(), state));
    }
    let stages = vec![packet_rows(), Stage::Alert(Box::new(alert())), count];
    let rows = check(&program(stages), &Functions::default(), &frames(&packets));
    let line = |(_, cells): &(usize, Vec<Value>)| match &cells[..] {
        [Value::Time(t), state, n] => format!("{} {state} {n}", t / S),
        cells => panic!("{cells:?}"),
    };
    let rows: Vec<String> = rows.iter().map(line).collect();
    let expected = [
        "0 \"start\" 2",
        "2 \"end\" 2",
        "2 \"start\" 1",
        "4 \"end\" 1",
        "5 \"start\" 1",
        "7 \"end\" 1",
        "9 \"open\" 1",
        "9 \"start\" 1",
    ];
    assert_eq!(rows, expected);
}

#[test]
fn many_keys_end_in_order() {
    let packets: Vec<_> = (0..200u8).map(|i| (i64::from(i % 3), i.wrapping_mul(37), 1)).collect();
    let packets: Vec<_> = packets.into_iter().chain([(9000, 1, 1)]).collect();
    let (rows, _) = told(packet_rows(), Alert { storm_keys: 500, ..alert() }, &packets);
    let ends: Vec<&String> = rows.iter().filter(|row| row.contains(" end ")).collect();
    assert_eq!((rows.len(), ends.len()), (402, 200));
}

#[test]
fn an_absent_comparison_and_share_do_no_harm() {
    let share = Expr {
        ty: Type::Float,
        kind: ExprKind::Call(Func::ToFloat, vec![Expr::constant(Value::Str("x".into()))]),
    };
    let Stage::Project { mut columns } = packet_rows() else { unreachable!("it is one") };
    columns.push(("completeness".into(), share.clone()));
    let mut alert = Alert { completeness: Some(3), ..alert() };
    if let Some(compared) = &mut alert.compared {
        compared.value = share.clone();
    }
    let above = ExprKind::Binary(
        BinaryOp::Ge,
        Box::new(Expr::column(2, Type::Int)),
        Box::new(Expr::constant(Value::Int(0))),
    );
    let above = Stage::Where(Expr { ty: Type::Bool, kind: above });
    let stages = vec![Stage::Project { columns }, above, Stage::Alert(Box::new(alert))];
    let rows = check(&program(stages), &Functions::default(), &frames(&[(0, 1, 1), (1, 1, 1)]));
    assert_eq!(rows.len(), 2);
}

/// The rows of a run with a list, by the engine; the model agrees.
fn told_with(list: &[Suppression], packets: &[(i64, u8, usize)]) -> (Vec<String>, u64) {
    let alert = Alert { repeat_ns: Some(S), ..alert() };
    let program = program(vec![packet_rows(), Stage::Alert(Box::new(alert))]);
    let (frames, functions) = (frames(packets), Functions::default());
    let rules = TimeRules { lateness_ns: LATENESS_NS, jump_ns: 60 * S };
    let mut answers = Vec::new();
    for workers in [1, 2, 4] {
        let suppressions = SuppressionList::new(list.to_vec());
        let options = Options { workers, suppressions, ..Options::default() };
        let mut sink = Collect::default();
        let mut source = frames.cut(&[3]);
        let outcome = run(&program, &functions, &mut source, &mut sink, &options, &mut |_| {});
        assert!(outcome.error.is_none(), "{:?}", outcome.error);
        answers.push((sink.rows, outcome.ledger));
    }
    let with = (&program, list);
    let model = weir_model::run_suppressing(with, &functions, &mut frames.cut(&[3]), &rules);
    for (rows, ledger) in answers {
        assert_eq!((rows, ledger), (model.rows.clone(), model.ledger.clone()));
    }
    let schema = &program.pipelines[0].schema;
    let rows = model.rows.iter().map(|(_, cells)| row(cells, schema, &SHOWN)).collect();
    (rows, model.ledger.suppressed)
}

fn suppressed(conditions: &[(&str, &str)], until: Option<i64>) -> Suppression {
    let condition = |(column, value): &(&str, &str)| SuppressedIf {
        column: (*column).to_owned(),
        value: (*value).to_owned(),
        quoted: false,
    };
    let conditions = conditions.iter().map(condition).collect();
    Suppression { rule: Some("rule".to_owned()), conditions, until }
}

/// A key that was suppressed when it began comes out when it is asserted after that, and none that
/// never came out ends.
#[test]
fn a_list_leaves_alerts_out() {
    let packets = [(0, 1, 5), (100, 2, 5), (1500, 1, 7), (2000, 1, 6), (3400, 1, 3), (9000, 3, 1)];
    let first = [("ip.src", "10.0.0.1/31")];
    let (rows, count) = told_with(&[suppressed(&first, None)], &packets);
    assert_eq!((rows.len(), count), (4, 1));
    assert!(rows.iter().all(|row| !row.contains("10.0.0.1 ")), "{rows:?}");
    let until = Some(1_500_000_000);
    let (rows, count) = told_with(&[suppressed(&first, until)], &packets);
    assert_eq!(
        rows,
        [
            "@100 start 10.0.0.2 5.0 5.0 @100 @100 1",
            "@1500 start 10.0.0.1 7.0 7.0 @0 @1500 2",
            "@3400 ongoing 10.0.0.1 3.0 7.0 @0 @3400 4",
            "@100 end 10.0.0.2 5.0 5.0 @100 @100 1",
            "@3400 end 10.0.0.1 7.0 7.0 @0 @3400 4",
            "@9000 start 10.0.0.3 1.0 1.0 @9000 @9000 1",
            "@9000 open 10.0.0.3 1.0 1.0 @9000 @9000 1",
        ]
    );
    assert_eq!(count, 1);
    // Of evidence, rows are judged one by one.
    let (rows, count) = told_with(&[suppressed(&[("n", "5")], None)], &packets);
    assert_eq!((rows[0].as_str(), count), ("@1500 start 10.0.0.1 7.0 7.0 @0 @1500 2", 2));
    assert_eq!(told_with(&[suppressed(&[], None)], &packets).0.len(), 0);
    assert_eq!(told_with(&[suppressed(&[("port", "1")], None)], &packets).1, 0);
}
