//! Conditions that packets must meet for several pipelines of a level to look at them.
//!
//! Many pipelines begin with `where` and ask the same of packets: whether they are TCP, whether
//! SYN is set. Such a condition is evaluated once per batch for all of them, and a pipeline for
//! which no packet of the batch is left is skipped.

use super::plan::{Fragment, Node, Work};
use crate::expr::{BinaryOp, Expr, ExprKind, UnaryOp};
use crate::functions::Func;
use crate::stage::Stage;
use crate::types::Type;

/// The conditions that several fragments over packets begin with.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Conditions {
    /// Each once.
    pub shared: Vec<Expr>,
    /// Of each fragment the shared ones that hold for all of its packets, by their position; the
    /// cheap ones first.
    pub of: Vec<Vec<usize>>,
}

impl Conditions {
    /// The fields of fragments that take the same packets.
    pub fn of<'a>(fragments: impl IntoIterator<Item = &'a Fragment>) -> Conditions {
        let asked: Vec<Vec<&Expr>> =
            fragments.into_iter().map(|fragment| leading(&fragment.nodes)).collect();
        let mut users: Vec<(&Expr, usize)> = Vec::new();
        for mine in &asked {
            // A pipeline that asks twice is one that asks.
            for (_, e) in mine.iter().enumerate().filter(|(at, e)| !mine[..*at].contains(e)) {
                match users.iter_mut().find(|(known, _)| known == e) {
                    Some((_, n)) => *n += 1,
                    None => users.push((e, 1)),
                }
            }
        }
        users.retain(|(_, n)| *n > 1);
        // Of equally cheap ones that which more pipelines ask for, as it is known already.
        users.sort_by_key(|&(e, n)| (nodes(e), usize::MAX - n));
        let shared = |mine: &Vec<&Expr>| {
            let known = users.iter().enumerate().filter(|(_, (e, _))| mine.contains(e));
            known.map(|(i, _)| i).collect()
        };
        let of = asked.iter().map(shared).collect();
        Conditions { shared: users.into_iter().map(|(e, _)| e.clone()).collect(), of }
    }

    /// The shared conditions of the fragment at this position.
    pub fn tested(&self, fragment: usize) -> Vec<Expr> {
        let all = self.of.get(fragment).into_iter().flatten();
        all.map(|&i| self.shared[i].clone()).collect()
    }
}

/// The rest of a condition where some parts of it are known to hold; `None` if nothing is left.
pub fn untested(condition: &Expr, tested: &[Expr]) -> Option<Expr> {
    if tested.is_empty() {
        return Some(condition.clone());
    }
    let mut parts = Vec::new();
    conjuncts(condition, &mut parts);
    parts.retain(|part| !tested.contains(part));
    all_of(&parts)
}

/// All parts joined by `and`, as a tree that is not deep.
fn all_of(parts: &[&Expr]) -> Option<Expr> {
    match parts {
        [] => None,
        [one] => Some((*one).clone()),
        _ => {
            let (a, b) = parts.split_at(parts.len() / 2);
            let (a, b) = (Box::new(all_of(a)?), Box::new(all_of(b)?));
            Some(Expr { ty: Type::Bool, kind: ExprKind::Binary(BinaryOp::And, a, b) })
        }
    }
}

/// The conditions that a fragment's first stages ask of packets, up to the first whose evaluation
/// can be told from outside.
fn leading(nodes: &[Node]) -> Vec<&Expr> {
    let mut parts = Vec::new();
    for node in nodes {
        let Work::Stage(Stage::Where(e)) = &node.work else { break };
        conjuncts(e, &mut parts);
    }
    let plain = parts.iter().take_while(|e| is_plain(e)).count();
    parts.truncate(plain);
    parts
}

/// The operands of `and`, in order.
fn conjuncts<'e>(e: &'e Expr, out: &mut Vec<&'e Expr>) {
    match &e.kind {
        ExprKind::Binary(BinaryOp::And, a, b) => {
            conjuncts(a, out);
            conjuncts(b, out);
        }
        _ => out.push(e),
    }
}

/// Whether evaluating it changes nothing, not even a count: no result of it can be outside of its
/// type, and no text is made.
fn is_plain(e: &Expr) -> bool {
    let mut plain = true;
    e.visit(&mut |e| {
        plain &= match &e.kind {
            ExprKind::Const(_) => e.ty.is_scalar() && !is_text(&e.ty),
            ExprKind::Field(id) => !id.info().ty.is_text(),
            ExprKind::In(a, _) => a.ty.is_scalar() && !is_text(&a.ty),
            ExprKind::Unary(UnaryOp::Not | UnaryOp::BitNot, _) => true,
            ExprKind::Binary(op, ..) => {
                use BinaryOp::{And, BitAnd, BitOr, BitXor, Or};
                op.is_comparison() || matches!(op, And | Or | BitAnd | BitOr | BitXor)
            }
            ExprKind::Call(func, _) => *func == Func::Exists,
            _ => false,
        };
    });
    plain
}

fn is_text(ty: &Type) -> bool {
    matches!(ty, Type::Str | Type::Bytes)
}

/// How much there is to evaluate.
fn nodes(e: &Expr) -> usize {
    let mut n = 0;
    e.visit(&mut |e| {
        n += match &e.kind {
            ExprKind::In(_, members) => 2 + members.len(),
            _ => 1,
        };
    });
    n
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::physical::{Level, LevelKind, Physical};
    use crate::program::{Input, Pipeline, Program};
    use crate::stage::Schema;
    use crate::value::Value;
    use weir_packet::fields::by_name;

    fn field(name: &str) -> Expr {
        Expr::field(by_name(name).expect("a field"))
    }

    fn binary(op: BinaryOp, a: Expr, b: Expr) -> Expr {
        Expr { ty: Type::Bool, kind: ExprKind::Binary(op, Box::new(a), Box::new(b)) }
    }

    fn and(a: Expr, b: Expr) -> Expr {
        binary(BinaryOp::And, a, b)
    }

    fn not(a: Expr) -> Expr {
        Expr { ty: Type::Bool, kind: ExprKind::Unary(UnaryOp::Not, Box::new(a)) }
    }

    fn port(n: i64) -> Expr {
        binary(BinaryOp::Eq, field("tcp.dport"), Expr::constant(Value::Int(n)))
    }

    /// A condition that may count a result outside of its type.
    fn risky() -> Expr {
        let kind = ExprKind::Binary(BinaryOp::Mul, Box::new(field("len")), Box::new(field("len")));
        let product = Expr { ty: Type::Int, kind };
        binary(BinaryOp::Gt, product, Expr::constant(Value::Int(5)))
    }

    fn conditions(pipelines: Vec<Vec<Expr>>) -> Conditions {
        let pipeline = |wheres: Vec<Expr>| {
            let mut stages: Vec<Stage> = wheres.into_iter().map(Stage::Where).collect();
            stages.push(Stage::Project { columns: vec![("len".to_owned(), field("len"))] });
            let schema = stages.iter().fold(Schema::default(), |s, stage| stage.output(&s));
            Pipeline { name: None, input: Input::Packets, stages, schema, printed: true }
        };
        let program = Program::of(pipelines.into_iter().map(pipeline).collect());
        let plan = Physical::new(&program, &[]);
        let level: &Level = plan.level(LevelKind::Worker).expect("packets are taken there");
        Conditions::of(&level.fragments)
    }

    #[test]
    fn what_several_ask_is_shared_and_the_cheap_comes_first() {
        let syn = || and(field("tcp.syn"), not(field("tcp.ack")));
        let found = conditions(vec![
            vec![and(port(80), syn())],
            vec![syn(), port(22)],
            vec![field("tcp.syn"), port(80)],
            vec![field("udp")],
        ]);
        assert_eq!(found.shared, [field("tcp.syn"), not(field("tcp.ack")), port(80)]);
        assert_eq!(found.of, [vec![0, 1, 2], vec![0, 1], vec![0, 2], vec![]]);
        assert_eq!(untested(&and(port(22), syn()), &found.tested(1)), Some(port(22)));
        assert_eq!(untested(&syn(), &found.tested(1)), None);
        assert_eq!(found.tested(3), []);
    }

    /// Undefined results of a condition are counted for the packets that come to it.
    #[test]
    fn nothing_is_taken_from_behind_what_counts() {
        let found = conditions(vec![
            vec![and(risky(), field("tcp"))],
            vec![field("tcp"), risky()],
            vec![field("tcp")],
        ]);
        assert_eq!(found.shared, [field("tcp")]);
        assert_eq!(found.of, [vec![], vec![0], vec![0]]);
        let names =
            binary(BinaryOp::Eq, field("dns.qname"), Expr::constant(Value::Str("a".into())));
        assert_eq!(conditions(vec![vec![names.clone()], vec![names]]).shared, []);
    }

    #[test]
    fn one_pipeline_shares_with_nobody() {
        let found = conditions(vec![vec![field("tcp"), field("tcp")]]);
        assert_eq!((found.shared, found.of), (vec![], vec![vec![]]));
    }
}
