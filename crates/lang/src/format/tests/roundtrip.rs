//! Property: any tree, laid out and read again, is the same tree, and laid out again the same text.

use super::format;
use crate::diagnostic::Span;
use crate::lex;
use crate::parse::parse;
use crate::tree::*;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use weir_plan::{BinaryOp, JoinKind, UnaryOp, Value};

fn at<T>(node: T) -> Spanned<T> {
    Spanned::new(node, Span::NOWHERE)
}

fn name() -> impl Strategy<Value = Name> {
    const WORDS: &[&str] =
        &["x", "tcp.dport", "face", "max", "count", "a_rather_long_name_of_a_column", "len"];
    select(WORDS).prop_map(|w| at(w.to_owned()))
}

fn literal() -> impl Strategy<Value = Expr> {
    const TEXTS: &[&str] = &[
        "0",
        "1_000",
        "0x1f",
        "1.5M",
        "2.5",
        "1e-3",
        "250ms",
        "\"a # | b\"",
        "b\"\\x00\"",
        "true",
        "10.0.0.1",
        "10.0.0.0/8",
        "2001:db8::1",
        "02:00:5e:10:00:01",
        "@2023-11-14T22:13:20Z",
    ];
    select(TEXTS).prop_map(|text| {
        let value = lex::literal(text).expect("a literal");
        at(ExprKind::Literal { value, text: text.to_owned() })
    })
}

/// How tight an expression holds together, as the parser counts.
fn level(e: &Expr) -> u8 {
    match &e.node {
        ExprKind::Chain { rest, .. } => op_level(rest[0].0.node),
        ExprKind::Compare(..) | ExprKind::In { .. } => 4,
        ExprKind::Unary(UnaryOp::Not, _) => 3,
        ExprKind::Unary(..) => 11,
        _ => 12,
    }
}

fn op_level(op: BinaryOp) -> u8 {
    use BinaryOp::*;
    match op {
        Or => 1,
        And => 2,
        BitOr => 5,
        BitXor => 6,
        BitAnd => 7,
        Shl | Shr => 8,
        Add | Sub => 9,
        Mul | Div | Rem => 10,
        _ => 4,
    }
}

/// `e` with brackets if it would fall apart in a place that wants `wanted`.
fn bracket(e: Expr, wanted: u8) -> Expr {
    if level(&e) < wanted { at(ExprKind::Paren(Box::new(e))) } else { e }
}

fn chain(ops: Vec<BinaryOp>, operands: Vec<Expr>) -> Expr {
    let tight = op_level(ops[0]) + 1;
    let mut operands = operands.into_iter().map(|e| bracket(e, tight));
    let first = Box::new(operands.next().expect("an operand"));
    let same = ops.iter().filter(|op| op_level(**op) + 1 == tight).cycle();
    let rest = same.zip(operands).map(|(op, e)| (at(*op), e)).collect();
    let bit_or = ops[0] == BinaryOp::BitOr;
    let chain = at(ExprKind::Chain { first, rest });
    // Outside of brackets it would be the pipe.
    if bit_or { at(ExprKind::Paren(Box::new(chain))) } else { chain }
}

fn binary_op() -> impl Strategy<Value = BinaryOp> {
    use BinaryOp::*;
    select(&[Or, And, BitOr, BitXor, BitAnd, Shl, Shr, Add, Sub, Mul, Div, Rem])
}

fn member(e: impl Strategy<Value = Expr> + Clone) -> impl Strategy<Value = Member> {
    prop_oneof![
        e.clone().prop_map(|e| Member::Value(bracket(e, 5))),
        (e.clone(), e).prop_map(|(a, b)| Member::Range(bracket(a, 5), bracket(b, 5))),
    ]
}

fn pattern(e: BoxedStrategy<Expr>) -> BoxedStrategy<Pattern> {
    // A pattern that starts with a bracket is a tuple.
    let plain = member(e).prop_filter("brackets", |m| !format!("{m:?}").contains("Paren"));
    let plain = plain.prop_filter("tuples", |m| !format!("{m:?}").contains("Tuple")).boxed();
    let leaf = prop_oneof![
        Just(PatternKind::Any),
        plain.clone().prop_map(PatternKind::Member),
        vec(plain, 1..3).prop_map(PatternKind::Braces),
    ];
    let leaf = leaf.prop_map(at).boxed();
    let some = prop_oneof![leaf.clone(), vec(leaf, 2..4).prop_map(|p| at(PatternKind::Or(p)))];
    let some = some.boxed();
    prop_oneof![some.clone(), vec(some, 1..3).prop_map(|p| at(PatternKind::Tuple(p))),].boxed()
}

fn expr() -> BoxedStrategy<Expr> {
    let leaf = prop_oneof![literal(), name().prop_map(|n| at(ExprKind::Name(n.node)))];
    leaf.prop_recursive(4, 40, 4, |e| {
        let unary = select(&[UnaryOp::Not, UnaryOp::Neg, UnaryOp::BitNot]);
        let compare = select(&[BinaryOp::Eq, BinaryOp::Lt, BinaryOp::Ge]);
        let pat = pattern(prop_oneof![literal(), literal()].boxed());
        let set = prop_oneof![
            vec(member(e.clone()), 1..4).prop_map(Set::Braces),
            member(e.clone()).prop_map(|m| Set::One(Box::new(m))),
        ];
        prop_oneof![
            (unary, e.clone()).prop_map(|(op, e)| {
                let wanted = if op == UnaryOp::Not { 4 } else { 11 };
                at(ExprKind::Unary(op, Box::new(bracket(e, wanted))))
            }),
            (vec(binary_op(), 3), vec(e.clone(), 2..5)).prop_map(|(op, e)| chain(op, e)),
            (e.clone(), compare, e.clone()).prop_map(|(a, op, b)| at(ExprKind::Compare(
                Box::new(bracket(a, 5)),
                at(op),
                Box::new(bracket(b, 5))
            ))),
            (e.clone(), any::<bool>(), set).prop_map(|(e, negated, set)| at(ExprKind::In {
                value: Box::new(bracket(e, 5)),
                negated,
                set: at(set)
            })),
            (name(), vec(e.clone(), 0..4)).prop_filter_map("dots", |(func, args)| {
                Some(at(ExprKind::Call { func, args }))
            }),
            (e.clone(), vec((pat, e.clone()), 1..4)).prop_map(|(value, arms)| {
                let arms = arms.into_iter().map(|(pattern, body)| Arm { pattern, body }).collect();
                at(ExprKind::Match { value: Box::new(value), arms })
            }),
            (name(), e.clone(), option::of(e.clone())).prop_map(|(header, offset, size)| {
                let (offset, size) = (Box::new(offset), size.map(Box::new));
                at(ExprKind::Bytes { header, offset, size })
            }),
            e.clone().prop_map(|e| at(ExprKind::Paren(Box::new(e)))),
            vec(e, 2..4).prop_map(|parts| at(ExprKind::Tuple(parts))),
        ]
    })
    .boxed()
}

fn item() -> impl Strategy<Value = Item> {
    (option::of(name()), expr()).prop_map(|(name, expr)| Item { name, expr })
}

fn named() -> impl Strategy<Value = Item> {
    (name(), expr()).prop_map(|(name, expr)| Item { name: Some(name), expr })
}

fn agg() -> impl Strategy<Value = AggItem> {
    let call = (name(), vec(expr(), 0..2)).prop_map(|(f, args)| {
        let func = if f.node.contains('.') { at("sum".to_owned()) } else { f };
        at(ExprKind::Call { func, args })
    });
    (option::of(name()), call, option::of(expr()))
        .prop_map(|(name, expr, cond)| AggItem { item: Item { name, expr }, cond })
}

fn sessions() -> impl Strategy<Value = Box<Sessions>> {
    let clause = || option::of(expr());
    let closing = (clause(), clause(), clause());
    (any::<bool>(), clause(), clause(), clause(), closing).prop_map(
        |(rows, idle, gap, active, (until, linger, unless))| {
            Box::new(Sessions { rows, idle, gap, active, until, linger, unless })
        },
    )
}

fn alert_text() -> impl Strategy<Value = Expr> {
    select(&["", "a", "{x} and {{y}}", "é"]).prop_map(|text| {
        let value = Value::Str(text.into());
        at(ExprKind::Literal { value, text: format!("{text:?}") })
    })
}

fn stage() -> impl Strategy<Value = Stage> {
    let clauses = (option::of(expr()), option::of(expr()));
    let distinct = (vec(expr(), 1..3), clauses.clone());
    let hello = clauses.clone();
    let idle = option::of(expr());
    let fill = (any::<bool>(), idle);
    let fill =
        option::of(fill.prop_map(|(from_start, idle)| Fill { word: at(()), from_start, idle }));
    let windows = (option::of(expr()), option::of(expr()), fill, sessions());
    let summarize = (vec(agg(), 1..4), vec(item(), 0..3), clauses.clone(), windows);
    let scan = (vec(named(), 1..3), vec(expr(), 0..3), clauses, expr());
    let sort = (expr(), option::of(any::<bool>()));
    let sort = sort.prop_map(|(expr, ascending)| SortKey { expr, ascending });
    let top = (expr(), vec(sort, 1..3), vec(expr(), 0..3), option::of(expr()));
    prop_oneof![
        expr().prop_map(Stage::Where),
        vec(named(), 1..3).prop_map(Stage::Extend),
        vec(item(), 1..4).prop_map(Stage::Project),
        vec(item(), 1..4).prop_map(Stage::ProjectAway),
        vec(named(), 1..4).prop_map(Stage::Rename),
        summarize.prop_map(|(aggs, keys, (every, max), (over, lateness, fill, mut sessions))| {
            sessions.rows &= every.is_some();
            Stage::Summarize(Summarize { aggs, keys, over, every, lateness, fill, sessions, max })
        }),
        scan.prop_map(|(states, keys, (idle, max), update)| {
            Stage::Scan(Scan { states, keys, idle, max, update })
        }),
        (option::of(expr()), option::of(expr()))
            .prop_map(|(idle, max)| Stage::AnalyzeTcp(KeyBounds { idle, max })),
        top.prop_map(|(n, by, per, max)| {
            let max = max.filter(|_| !per.is_empty());
            Stage::Top(Top { n, by, per, max })
        }),
        distinct.prop_map(|(keys, (idle, max))| Stage::Distinct(Distinct { keys, idle, max })),
        hello.prop_map(|(idle, max)| Stage::Hello(KeyBounds { idle, max })),
        (expr(), option::of(expr()))
            .prop_map(|(within, max)| Stage::Deduplicate(Deduplicate { within, max })),
        (expr(), option::of(expr()), vec(expr(), 0..3)).prop_map(|(take, of, keys)| {
            let (take, of) = (bracket(take, 11), of.map(|of| bracket(of, 5)));
            Stage::Sample(Sample { take, of, keys })
        }),
        (expr(), any::<bool>(), option::of(expr()), option::of(expr()), vec(item(), 0..3))
            .prop_map(|(around, both, before, after, keys)| {
                let around = Some(around).filter(|_| both || before.is_none() && after.is_none());
                Stage::Capture(Capture { around, before, after, keys })
            }),
        named().prop_map(Stage::Each),
        (
            (alert_text(), vec(option::of(alert_text()), 3)),
            option::of(select(&["high", "x"])),
            vec(name(), 0..3),
            vec(option::of(expr()), 4),
        )
            .prop_map(|((text, mut said), severity, keys, mut bounds)| {
                let mut bound = || bounds.pop().flatten();
                let (hold, repeat, storm, max) = (bound(), bound(), bound(), bound());
                let severity = severity.map(|word| at(word.to_owned()));
                let mut said = || said.pop().flatten();
                let (category, technique, next) = (said(), said(), said());
                Stage::Alert(Box::new(Alert {
                    text,
                    severity,
                    category,
                    technique,
                    next,
                    keys,
                    hold,
                    repeat,
                    storm,
                    max,
                }))
            }),
        (
            select(&["gauge", "counter", "x"]),
            select(&["a_b", "é"]),
            option::of(name()),
            vec(name(), 0..3),
            (option::of(expr()), option::of(select(&["", "so \\ it is"]))),
        )
            .prop_map(|(kind, metric, of, keys, (max, help))| {
                let text = |text: &str| {
                    let value = Value::Str(text.into());
                    at(ExprKind::Literal { value, text: format!("{text:?}") })
                };
                let (kind, name) = (at(kind.to_owned()), text(metric));
                Stage::Metric(Metric { kind, name, of, keys, max, help: help.map(text) })
            }),
        expr().prop_map(Stage::Limit),
        join().prop_map(Stage::Join),
        vec(side(), 1..4).prop_map(Stage::Union),
        act().prop_filter("only in arms", |act| *act != Act::Next).prop_map(Stage::Act),
        (vec((expr(), chain_of_acts()), 1..4), option::of(chain_of_acts())).prop_map(
            |(arms, rest)| {
                let arms = arms.into_iter().map(|(when, acts)| (Some(when), acts));
                let arms = arms.chain(rest.map(|acts| (None, acts)));
                Stage::Branch(arms.map(|(when, acts)| at(BranchArm { when, acts })).collect())
            }
        ),
        Just(Stage::Print),
    ]
}

fn side() -> impl Strategy<Value = Name> {
    select(&["web", "x1", "left"]).prop_map(|w| at(w.to_owned()))
}

fn join() -> impl Strategy<Value = Join> {
    let kind = select(&[JoinKind::Inner, JoinKind::Left, JoinKind::Anti]);
    let key = (name(), option::of(name())).prop_map(|(left, right)| JoinKey { left, right });
    let clauses = (option::of(member(expr())), vec(named(), 0..3), option::of(expr()));
    (option::of(kind), side(), vec(key, 1..4), clauses).prop_map(
        |(kind, right, keys, (within, defaults, max))| Join {
            kind,
            right,
            keys,
            within,
            defaults,
            max,
        },
    )
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        select(&[Act::Pass, Act::Drop, Act::Next]),
        expr().prop_map(Act::Forward),
        expr().prop_map(Act::Broadcast),
        (vec(expr(), 1..3), expr()).prop_map(|(keys, to)| Act::Steer { keys, to }),
        open_act(),
    ]
}

/// An act after which an arm goes on.
fn open_act() -> impl Strategy<Value = Act> {
    let edit = prop_oneof![expr().prop_map(Act::Trim), expr().prop_map(Act::Tag)];
    let anonymize = (vec(expr(), 1..3), expr());
    let anonymize = anonymize.prop_map(|(fields, key)| Act::Anonymize { fields, key });
    prop_oneof![edit, anonymize, expr().prop_map(Act::Mirror)]
}

/// The acts of an arm.
fn chain_of_acts() -> impl Strategy<Value = Vec<Spanned<Act>>> {
    let end = act().prop_filter("ends", |act| !act.is_open());
    (vec(open_act(), 0..3), end, any::<bool>()).prop_map(|(mut acts, end, next)| {
        let over = end == Act::Next;
        acts.push(end);
        if next && !over {
            acts.push(Act::Next);
        }
        acts.into_iter().map(at).collect()
    })
}

fn pipeline() -> impl Strategy<Value = Pipeline> {
    (select(&["packets", "web"]), vec(stage(), 1..4)).prop_map(|(source, stages)| Pipeline {
        source: at(source.to_owned()),
        stages: stages.into_iter().map(at).collect(),
    })
}

fn statement() -> impl Strategy<Value = Statement> {
    let word = || select(&["web", "x1", "limit_of_it"]).prop_map(|w| at(w.to_owned()));
    let body = prop_oneof![pipeline().prop_map(LetBody::Pipeline), expr().prop_map(LetBody::Expr),];
    let default = prop_oneof![
        expr().prop_map(|e| Set::One(Box::new(Member::Value(e)))),
        vec(member(expr()), 0..4).prop_map(Set::Braces),
        member(expr()).prop_map(|m| Set::One(Box::new(m))),
    ];
    prop_oneof![
        (word(), word(), default).prop_map(|(name, ty, default)| Statement::Param {
            name,
            ty,
            default: at(default),
        }),
        (word(), body).prop_map(|(name, body)| Statement::Let { name, body }),
        pipeline().prop_map(Statement::Pipeline),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn formatting_keeps_the_tree(statements in vec(statement(), 1..4)) {
        let tree = Tree { statements: statements.into_iter().map(at).collect() };
        let text = format(&tree, &[], "");
        let parsed = parse(&text);
        prop_assert!(parsed.diagnostics.is_empty(), "{}\n{:?}", text, parsed.diagnostics);
        prop_assert_eq!(&parsed.tree, &tree, "{}", text);
        let again = format(&parsed.tree, &parsed.comments, &text);
        let blanks = |s: &str| s.replace("\n\n", "\n");
        prop_assert_eq!(blanks(&again), blanks(&text));
    }
}
