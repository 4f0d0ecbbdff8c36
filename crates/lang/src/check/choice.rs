//! `if` and `match`.

use super::Checker;
use super::words::{a, say};
use crate::diagnostic::{Code, Diagnostic, Span};
use crate::limits::CASES_MAX;
use crate::lower;
use crate::names::Scope;
use crate::tree::{Arm, Expr as TreeExpr, ExprKind as Tree, Pattern, PatternKind, Spanned};
use weir_plan::address::contains;
use weir_plan::{BinaryOp, Expr, Member, Type, Value};

/// The values that one part of a matched value may have.
#[derive(Clone, Debug)]
enum Slot {
    Any,
    OneOf(Vec<Member>),
}

impl Slot {
    /// How many members it lists.
    fn len(&self) -> usize {
        match self {
            Slot::Any => 0,
            Slot::OneOf(members) => members.len(),
        }
    }
}

/// The slots of all parts of a matched value.
type Case = Vec<Slot>;

/// The value of a match: its parts, of which a plain value has one.
struct Subject<'a> {
    tree: &'a TreeExpr,
    parts: Vec<Expr>,
}

impl<'t> Checker<'t> {
    pub(super) fn if_call(&mut self, scope: &Scope, args: &[TreeExpr], span: Span) -> Option<Expr> {
        let [cond_tree, then_tree, else_tree] = args else {
            self.wrong_arity("if", 3, args.len(), span);
            return None;
        };
        let cond = self.expr(scope, cond_tree);
        let cond = cond.and_then(|e| self.bool(e, cond_tree, "`if`"));
        let (then, other) = (self.expr(scope, then_tree), self.expr(scope, else_tree));
        let results = self.one_type(vec![(then?, then_tree.span), (other?, else_tree.span)])?;
        let [then, other] = <[Expr; 2]>::try_from(results).expect("two results");
        let copies = copies(&then.ty);
        let nodes = [&then, &other].map(lower::size).iter().sum::<usize>();
        let cond = cond?;
        let fits = self.fits(nodes + copies * lower::size(&cond), span)
            && self.fits_copies(&cond, copies - 1, span);
        fits.then(|| lower::choice(cond, then, other))
    }

    /// The results of a choice, made to have one type.
    fn one_type(&mut self, results: Vec<(Expr, Span)>) -> Option<Vec<Expr>> {
        let mut common: Option<(Type, Span)> = None;
        let mut out = Vec::new();
        for (e, span) in results {
            let e = self.no_network(e, span)?;
            let (so_far, first) = common.unwrap_or_else(|| (e.ty.clone(), span));
            let Some(ty) = lower::common_type(&so_far, &e.ty) else {
                let message = format!("one result is {}, another {}", a(&so_far), a(&e.ty));
                let d = Diagnostic::new(Code::BranchTypes, span, message)
                    .label(a(&e.ty))
                    .note_at(first, a(&so_far))
                    .help("all results of a choice have one type");
                self.report(d);
                return None;
            };
            common = Some((ty, first));
            out.push(e);
        }
        let (ty, _) = common?;
        Some(out.into_iter().map(|e| lower::cast(e, &ty)).collect())
    }

    fn no_network(&mut self, e: Expr, span: Span) -> Option<Expr> {
        if e.ty == Type::Net { self.one_value(e, span) } else { Some(e) }
    }

    pub(super) fn match_expr(
        &mut self,
        scope: &Scope,
        value: &TreeExpr,
        arms: &[Arm],
        span: Span,
    ) -> Option<Expr> {
        if arms.len() > CASES_MAX {
            let message = format!("a `match` has at most {CASES_MAX} cases");
            self.report(Diagnostic::new(Code::TooLarge, span, message));
            return None;
        }
        let subject = self.expr(scope, value).map(|e| match &e.ty {
            Type::Tuple(types) => {
                let types = types.clone();
                Subject { tree: value, parts: lower::parts(e, &types) }
            }
            _ => Subject { tree: value, parts: vec![e] },
        });
        let bodies: Vec<_> =
            arms.iter().map(|arm| (self.expr(scope, &arm.body), arm.body.span)).collect();
        let subject = subject?;
        let cases: Vec<_> =
            arms.iter().map(|arm| self.pattern(scope, &arm.pattern, &subject)).collect();
        let cases: Vec<Vec<Case>> = cases.into_iter().collect::<Option<_>>()?;
        let reachable = self.reachable(arms, &cases);
        let bodies = bodies.into_iter().map(|(e, span)| Some((e?, span))).collect::<Option<_>>()?;
        let bodies = self.one_type(bodies)?;
        let subject_size: usize = subject.parts.iter().map(lower::size).sum();
        let tests: usize = cases.iter().map(Vec::len).sum::<usize>() * (subject_size + 4);
        let body_size: usize = bodies.iter().map(lower::size).sum();
        let copies = copies(&bodies[0].ty);
        if !self.fits(tests * copies + body_size, span) {
            return None;
        }
        // The value is put in place for each test, and the tests for each part of the result.
        let repeated: usize = cases.iter().flatten().flatten().map(Slot::len).sum();
        let value: usize = subject.parts.iter().map(lower::members).sum();
        let asked = cases.iter().map(Vec::len).sum::<usize>() * value + repeated;
        self.count_members(asked.saturating_mul(copies), span)?;
        let mut out = lower::absent(bodies[0].ty.clone());
        for ((cases, body), reachable) in cases.iter().zip(bodies).zip(reachable).rev() {
            if reachable {
                out = match test(&subject.parts, cases) {
                    Some(test) => lower::choice(test, body, out),
                    None => body,
                };
            }
        }
        Some(out)
    }

    /// Which arms something is left for; warns of the others.
    fn reachable(&mut self, arms: &[Arm], cases: &[Vec<Case>]) -> Vec<bool> {
        let mut out = Vec::new();
        for (i, arm) in arms.iter().enumerate() {
            let covering = |case: &Case| {
                let mut earlier = cases[..i].iter().zip(arms);
                earlier.find(|(cases, _)| cases.iter().any(|c| covers(c, case)))
            };
            // A param may be an empty set, which is no mistake.
            let empty =
                |case: &Case| case.iter().any(|s| matches!(s, Slot::OneOf(m) if m.is_empty()));
            let covered: Option<Vec<_>> = cases[i].iter().map(covering).collect();
            out.push(covered.is_none() || cases[i].iter().all(empty));
            if out.last() == Some(&true) {
                continue;
            }
            let Some((_, by)) = covered.and_then(|by| by.first().copied()) else { continue };
            let message = "nothing is left for this pattern";
            let d = Diagnostic::new(Code::UnreachableArm, arm.pattern.span, message);
            self.report(d.label("never matches").note_at(by.pattern.span, "matches all of it"));
        }
        out
    }

    /// The cases that a pattern stands for; any of them will do.
    fn pattern(&mut self, scope: &Scope, p: &Pattern, subject: &Subject<'_>) -> Option<Vec<Case>> {
        let width = subject.parts.len();
        match &p.node {
            PatternKind::Error => None,
            PatternKind::Any => Some(vec![vec![Slot::Any; width]]),
            PatternKind::Or(all) => {
                let all: Vec<_> = all.iter().map(|p| self.pattern(scope, p, subject)).collect();
                let all: Vec<Vec<Case>> = all.into_iter().collect::<Option<_>>()?;
                Some(all.into_iter().flatten().collect())
            }
            PatternKind::Tuple(parts) if parts.len() == 1 => {
                self.pattern(scope, &parts[0], subject)
            }
            PatternKind::Tuple(parts) if parts.len() == width => {
                let slots: Vec<_> = parts
                    .iter()
                    .zip(&subject.parts)
                    .map(|(p, part)| self.slot(scope, p, subject.tree, part))
                    .collect();
                Some(vec![slots.into_iter().collect::<Option<_>>()?])
            }
            PatternKind::Tuple(parts) => self.wrong_width(p.span, width, parts.len()),
            PatternKind::Member(_) | PatternKind::Braces(_) if width > 1 => {
                self.wrong_width(p.span, width, 1)
            }
            PatternKind::Member(member) => {
                let members = std::slice::from_ref(member);
                self.one_of(scope, members, subject.tree, &subject.parts[0])
            }
            PatternKind::Braces(members) => {
                self.one_of(scope, members, subject.tree, &subject.parts[0])
            }
        }
    }

    fn wrong_width(&mut self, span: Span, wanted: usize, found: usize) -> Option<Vec<Case>> {
        let parts = |n: usize| if n == 1 { "1 part".to_owned() } else { format!("{n} parts") };
        let message = format!("the value has {}, this pattern {}", parts(wanted), parts(found));
        let d = Diagnostic::new(Code::BadPattern, span, message);
        let shape = vec!["_"; wanted].join(", ");
        self.report(if wanted > 1 {
            d.help(format!("write a pattern for each part, `({shape})`, or `_` for all"))
        } else {
            d
        });
        None
    }

    fn one_of(
        &mut self,
        scope: &Scope,
        members: &[crate::tree::Member],
        tree: &TreeExpr,
        part: &Expr,
    ) -> Option<Vec<Case>> {
        // Patterns are compared with one another, so a member here is an operation.
        self.nodes += members.len();
        if !self.fits(self.nodes, tree.span) {
            return None;
        }
        let (members, as_member) = self.members(scope, members, (tree, part.clone()))?;
        if as_member.ty != part.ty {
            let shown = say(self.text, tree.span);
            let message = format!("a float pattern for {shown}, which is {}", a(&part.ty));
            self.report(Diagnostic::new(Code::BadPattern, tree.span, message));
            return None;
        }
        Some(vec![vec![Slot::OneOf(members)]])
    }

    /// The pattern of one part of a tuple.
    fn slot(&mut self, scope: &Scope, p: &Pattern, whole: &TreeExpr, part: &Expr) -> Option<Slot> {
        // Messages name the part where it is written, the whole where it is a key or a let.
        let parts = match whole.node.unbracketed() {
            Tree::Tuple(trees) => trees.iter().find(|_| trees.len() == 1),
            _ => None,
        };
        let tree = parts.cloned().unwrap_or_else(|| Spanned::new(Tree::Error, whole.span));
        let subject = Subject { tree: &tree, parts: vec![part.clone()] };
        let mut members = Vec::new();
        for case in self.pattern(scope, p, &subject)? {
            match case.into_iter().next() {
                Some(Slot::OneOf(more)) => members.extend(more),
                _ => return Some(Slot::Any),
            }
        }
        Some(Slot::OneOf(members))
    }
}

/// How often a choice asks its condition: once for each part of a tuple.
fn copies(ty: &Type) -> usize {
    match ty {
        Type::Tuple(parts) => parts.len(),
        _ => 1,
    }
}

/// The condition under which one of the cases holds; `None` if one always does.
fn test(parts: &[Expr], cases: &[Case]) -> Option<Expr> {
    if let [part] = parts {
        let mut members = Vec::new();
        for case in cases {
            match &case[0] {
                Slot::Any => return None,
                Slot::OneOf(more) => members.extend(more.iter().cloned()),
            }
        }
        return Some(lower::test(part, members));
    }
    let case = |case: &Case| {
        let slots = case.iter().zip(parts).map(|(slot, part)| match slot {
            Slot::Any => None,
            Slot::OneOf(members) => Some(lower::test(part, members.clone())),
        });
        slots.fold(None, lower::both)
    };
    let tests = cases.iter().map(case).collect::<Option<Vec<_>>>()?;
    Some(lower::balanced(BinaryOp::Or, tests))
}

/// Whether whatever fits `b` fits `a` too, as far as single members tell.
fn covers(a: &Case, b: &Case) -> bool {
    a.iter().zip(b).all(|(a, b)| match (a, b) {
        (Slot::Any, _) => true,
        (Slot::OneOf(_), Slot::Any) => false,
        (Slot::OneOf(a), Slot::OneOf(b)) => b.iter().all(|b| a.iter().any(|a| within(b, a))),
    })
}

fn within(b: &Member, a: &Member) -> bool {
    match (b, a) {
        (Member::Value(b), Member::Value(a)) => a == b,
        (Member::Value(b), Member::Range(low, high)) => low <= b && b <= high,
        (Member::Range(b_low, b_high), Member::Range(low, high)) => low <= b_low && b_high <= high,
        (Member::Value(Value::Ip(ip)), Member::Net(Value::Net(net, len))) => {
            contains((*net, *len), *ip)
        }
        (Member::Net(Value::Net(ip, longer)), Member::Net(Value::Net(net, len))) => {
            longer >= len && contains((*net, *len), *ip)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn containment() {
        let int = |n| Member::Value(Value::Int(n));
        let range = |a, b| Member::Range(Value::Int(a), Value::Int(b));
        assert!(within(&int(5), &range(1, 9)) && within(&range(2, 3), &range(1, 9)));
        assert!(!within(&int(10), &range(1, 9)) && !within(&range(1, 9), &int(5)));
        let net = |a: u128, len| Member::Net(Value::Net(a, len));
        assert!(within(&net(0x0a01 << 112, 16), &net(0x0a << 120, 8)));
        assert!(!within(&net(0x0a << 120, 8), &net(0x0a01 << 112, 16)));
        assert!(within(&Member::Value(Value::Ip(7)), &net(0, 0)));
        let any = vec![Slot::Any, Slot::OneOf(vec![int(1)])];
        assert!(covers(&any, &vec![Slot::OneOf(vec![int(3)]), Slot::OneOf(vec![int(1)])]));
        assert!(!covers(&any, &vec![Slot::Any, Slot::Any]));
    }
}
