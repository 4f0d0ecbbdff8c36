//! Comparisons, and `in`.

use super::Checker;
use super::file::file_call;
use super::words::{Side, a, a_set, mismatch_help, say};
use crate::diagnostic::{Code, Diagnostic, Span};
use crate::excerpt::one_line;
use crate::foreign;
use crate::lex;
use crate::limits::MEMBERS_MAX;
use crate::lower;
use crate::names::Scope;
use crate::tree::{Expr as TreeExpr, ExprKind as Tree, Member as TreeMember, Set, Spanned};
use weir_plan::{BinaryOp, Expr, Member, Type, Value};

impl<'t> Checker<'t> {
    pub(super) fn compare(
        &mut self,
        scope: &Scope,
        a_tree: &TreeExpr,
        op: &Spanned<BinaryOp>,
        b_tree: &TreeExpr,
    ) -> Option<Expr> {
        if self.value_of_another_tool(scope, a_tree, b_tree)
            || self.value_of_another_tool(scope, b_tree, a_tree)
        {
            return None;
        }
        let (a, b) = (self.expr(scope, a_tree), self.expr(scope, b_tree));
        let (a, b) = (a?, b?);
        if matches!(op.node, BinaryOp::Eq | BinaryOp::Ne) {
            if b.ty == Type::Net {
                return self.network_equality((&a, a_tree), op, b_tree);
            }
            if a.ty == Type::Net {
                return self.network_equality((&b, b_tree), op, a_tree);
            }
        }
        let Some(ty) = lower::common_type(&a.ty, &b.ty) else {
            let sides = (Side { tree: a_tree, ty: &a.ty }, Side { tree: b_tree, ty: &b.ty });
            self.not_comparable(op.span, sides);
            return None;
        };
        let ordering = !matches!(op.node, BinaryOp::Eq | BinaryOp::Ne);
        if ordering && !ty.is_ordered() {
            let message =
                format!("{} have no order: `{}` needs one", plural(&ty), op.node.symbol());
            let span = a_tree.span.to(b_tree.span);
            self.report(Diagnostic::new(Code::NotOrdered, span, message));
            return None;
        }
        self.warn_of_one_answer(op, (&a, a_tree), (&b, b_tree));
        self.warn_of_whole_compared(scope, (&a, a_tree), (&b, b_tree));
        let (a, b) = (lower::cast(a, &ty), lower::cast(b, &ty));
        Some(lower::binary(op.node, Type::Bool, a, b))
    }

    fn network_equality(
        &mut self,
        (value, tree): (&Expr, &TreeExpr),
        op: &Spanned<BinaryOp>,
        network: &TreeExpr,
    ) -> Option<Expr> {
        let word = if op.node == BinaryOp::Eq { "in" } else { "not in" };
        let shown = |e: &TreeExpr| one_line(e.span.of(self.text));
        let message = "an address is not equal to a network, it is in one";
        let d = Diagnostic::new(Code::NetworkEquality, op.span, message);
        let help = format!("write `{} {word} {}`", shown(tree), shown(network));
        self.report(if value.ty == Type::Ip { d.help(help) } else { d });
        None
    }

    fn not_comparable(&mut self, span: Span, (left, right): (Side<'_>, Side<'_>)) {
        let message = format!(
            "{} is {} and {} {}: they do not compare",
            say(self.text, left.tree.span),
            a(left.ty),
            say(self.text, right.tree.span),
            a(right.ty),
        );
        let d = Diagnostic::new(Code::TypeMismatch, span, message)
            .note_at(left.tree.span, a(left.ty))
            .maybe_help(mismatch_help(&left, &right));
        // A member of a set is at fault itself; between two sides, neither is.
        self.report(if span == right.tree.span {
            d.label(a(right.ty))
        } else {
            d.label("two different types").note_at(right.tree.span, a(right.ty))
        });
    }

    pub(super) fn membership(
        &mut self,
        scope: &Scope,
        value: &TreeExpr,
        negated: bool,
        set: &Spanned<Set>,
    ) -> Option<Expr> {
        let e = self.expr(scope, value);
        if let Set::One(member) = &set.node
            && let TreeMember::Value(member) = &**member
            && file_call(member).is_none()
            && self.named_set(scope, member).is_none()
        {
            self.one_member(scope, (value, e.as_ref()), negated, member)?;
        }
        let e = e?;
        let (members, e) = self.members(scope, set.node.members(), (value, e))?;
        // `not in` asks for the value twice.
        if negated && !self.fits_copies(&e, 1, value.span) {
            return None;
        }
        Some(lower::membership(e, members, negated))
    }

    /// Checks that what stands alone on the right of `in` is a network.
    fn one_member(
        &mut self,
        scope: &Scope,
        (value_tree, value): (&TreeExpr, Option<&Expr>),
        negated: bool,
        member: &TreeExpr,
    ) -> Option<()> {
        self.not_a_difference(member)?;
        if self.value_of_another_tool(scope, value_tree, member) {
            return None;
        }
        let out = self.expr(scope, member)?;
        if out.ty == Type::Net {
            return Some(());
        }
        let d =
            Diagnostic::new(Code::BadSet, member.span, "`in` needs a set, a range or a network");
        let shown = one_line(member.span.of(self.text));
        let help = match (&member.node, value) {
            (Tree::Tuple(_), _) => {
                let inner = shown.trim_start_matches('(').trim_end_matches(')');
                Some(format!("a set stands in braces: `{{{inner}}}`"))
            }
            (_, Some(value)) => self.instead_of_in((value_tree, value), negated, (member, &out)),
            (_, None) => None,
        };
        self.report(d.maybe_help(help));
        None
    }

    /// The question to ask instead of `in` with one value on its right.
    fn instead_of_in(
        &self,
        (a_tree, a): (&TreeExpr, &Expr),
        negated: bool,
        (b_tree, b): (&TreeExpr, &Expr),
    ) -> Option<String> {
        let shown = |e: &TreeExpr| one_line(e.span.of(self.text));
        let not = if negated { "not " } else { "" };
        let equal = if negated { "!=" } else { "==" };
        let literal = |e: &TreeExpr| matches!(e.node.unbracketed(), Tree::Literal { .. });
        // A text in quotes is rather the part than the whole, on either side.
        let (whole, part) = match (literal(a_tree), literal(b_tree)) {
            (false, true) => ((a_tree, &a.ty), (b_tree, &b.ty)),
            _ => ((b_tree, &b.ty), (a_tree, &a.ty)),
        };
        let unquoted = match lower::constant(b) {
            Some(Value::Str(text)) => lex::literal(&text).map(|value| (value, text)),
            _ => None,
        };
        match (whole.1, part.1, unquoted) {
            (Type::Str, Type::Str, _) | (Type::Bytes, Type::Bytes, _) => Some(format!(
                "part of a text: `{not}contains({}, {})`",
                shown(whole.0),
                shown(part.0)
            )),
            (Type::Bytes, Type::Str, _) => {
                let part = match literal(part.0) {
                    true => format!("b{}", shown(part.0)),
                    false => format!("bytes({})", shown(part.0)),
                };
                Some(format!("part of bytes: `{not}contains({}, {part})`", shown(whole.0)))
            }
            (_, _, Some((Value::Net(..), text))) if a.ty == Type::Ip => {
                Some(format!("without quotes: `{} {not}in {text}`", shown(a_tree)))
            }
            (_, _, Some((value, text))) if value.ty().as_ref() == Some(&a.ty) => {
                Some(format!("without quotes: `{} {equal} {text}`", shown(a_tree)))
            }
            _ if lower::common_type(&a.ty, &b.ty).is_some() => {
                Some(format!("write `{} {equal} {}`", shown(a_tree), shown(b_tree)))
            }
            _ => None,
        }
    }

    /// Whether `value` is a word that other tools have for a value of the field `field`, such as
    /// `A` for a type of DNS; reports it then.
    fn value_of_another_tool(&mut self, scope: &Scope, field: &TreeExpr, value: &TreeExpr) -> bool {
        let (Tree::Name(field), Tree::Name(word)) =
            (field.node.unbracketed(), value.node.unbracketed())
        else {
            return false;
        };
        if self.means_something(scope, word) {
            return false;
        }
        let Some(help) = foreign::value(field, word) else { return false };
        if !scope.lenient {
            let what = if scope.packets { "field or column" } else { "column" };
            let message = format!("no {what} is called `{word}`");
            let d = Diagnostic::new(Code::UnknownName, value.span, message);
            self.report(d.help(help));
        }
        true
    }

    /// The members of a set for `e`, and `e` itself as the members want it: a float, if one of
    /// them is. All must be constant.
    pub(super) fn members(
        &mut self,
        scope: &Scope,
        members: &[TreeMember],
        (tree_of_value, e): (&TreeExpr, Expr),
    ) -> Option<(Vec<Member>, Expr)> {
        self.count_members(members.len(), tree_of_value.span)?;
        let mut ty = e.ty.clone();
        let (mut out, mut found, mut sound) = (Vec::new(), Vec::new(), true);
        for m in members {
            let several = match m {
                TreeMember::Value(v) => self.set_within(scope, v, (tree_of_value, &e.ty)),
                TreeMember::Range(..) => None,
            };
            match several {
                None => found.push((self.member(scope, m, tree_of_value, &mut ty), m)),
                Some(Some(all)) => out.extend(all.into_iter().map(|m| cast_member(m, &ty))),
                Some(None) => sound = false,
            }
        }
        for (member, tree) in found {
            match member.map(|m| cast_member(m, &ty)) {
                Some(Member::Range(low, high)) if low > high => {
                    self.empty_range(tree);
                    sound = false;
                }
                Some(member) => {
                    self.warn_of_no_member((&e, tree_of_value), (&member, tree));
                    self.warn_of_whole_member(scope, (&e, tree_of_value), (&member, tree));
                    out.push(member);
                }
                None => sound = false,
            }
        }
        sound.then(|| (out, lower::cast(e, &ty)))
    }

    /// The members that stand for several in a set for a value of the type `ty`: those of a file,
    /// or of a param that is a set. `None` where `v` is neither.
    fn set_within(
        &mut self,
        scope: &Scope,
        v: &TreeExpr,
        (tree, ty): (&TreeExpr, &Type),
    ) -> Option<Option<Vec<Member>>> {
        if let Some(args) = file_call(v) {
            return Some(self.set_file(scope, args, v.span, ty));
        }
        let set = self.named_set(scope, v)?;
        if !lower::fits(&set.ty, ty) {
            let message = format!(
                "{} is {} and {} {}: they do not compare",
                say(self.text, tree.span),
                a(ty),
                say(self.text, v.span),
                a_set(&set.ty),
            );
            let d = Diagnostic::new(Code::TypeMismatch, v.span, message).label(a_set(&set.ty));
            self.report(d.note_at(tree.span, a(ty)));
            return Some(None);
        }
        let counted = self.count_members(set.members.len(), v.span);
        Some(counted.map(|()| set.members.clone()))
    }

    /// Counts members of sets; `None` if they are too many, which is reported once.
    pub(super) fn count_members(&mut self, more: usize, span: Span) -> Option<()> {
        let within = self.members <= MEMBERS_MAX;
        self.members = self.members.saturating_add(more);
        if within && self.members > MEMBERS_MAX {
            let message = format!("the sets of a query have at most {MEMBERS_MAX} members");
            let d = Diagnostic::new(Code::TooLarge, span, message);
            self.report(d.note("those of a `let` count wherever it is used"));
        }
        (self.members <= MEMBERS_MAX).then_some(())
    }

    fn empty_range(&mut self, member: &TreeMember) {
        let TreeMember::Range(low, high) = member else { return };
        let shown = |e: &TreeExpr| one_line(e.span.of(self.text));
        let help = format!("write `{}..{}`", shown(high), shown(low));
        let d = Diagnostic::new(Code::BadConstant, member.span(), "nothing is in this range");
        self.report(d.help(help));
    }

    /// A member; `ty` is the type of the value and the members before it, and becomes what it is
    /// with this one.
    fn member(
        &mut self,
        scope: &Scope,
        member: &TreeMember,
        tree: &TreeExpr,
        ty: &mut Type,
    ) -> Option<Member> {
        let net = |v: &Value| matches!(v, Value::Net(..));
        match member {
            TreeMember::Value(v) => {
                let value = self.member_value(scope, v, tree, ty)?;
                Some(if net(&value) { Member::Net(value) } else { Member::Value(value) })
            }
            TreeMember::Range(low, high) => {
                let low = self.member_value(scope, low, tree, ty);
                let high = self.member_value(scope, high, tree, ty);
                let (low, high) = (low?, high?);
                if !ty.is_ordered() || net(&low) || net(&high) {
                    let what = if ty.is_ordered() { &Type::Net } else { &*ty };
                    let message = format!("{} have no order: a range needs one", plural(what));
                    self.report(Diagnostic::new(Code::NotOrdered, member.span(), message));
                    return None;
                }
                Some(Member::Range(low, high))
            }
        }
    }

    /// A constant to compare a value of the type `ty` with.
    fn member_value(
        &mut self,
        scope: &Scope,
        v: &TreeExpr,
        tree: &TreeExpr,
        ty: &mut Type,
    ) -> Option<Value> {
        // A literal is not worth counting as an operation: blocklists are long.
        let member = match &v.node {
            Tree::Literal { value, text } => Expr::constant(self.literal(value, text)),
            _ => {
                self.not_a_difference(v)?;
                if self.value_of_another_tool(scope, tree, v) {
                    return None;
                }
                self.expr(scope, v)?
            }
        };
        let value = self.constant_value(&member, v.span, "a member of a set")?;
        if *ty == Type::Ip && member.ty == Type::Net {
            return Some(value);
        }
        let Some(common) = lower::common_type(ty, &member.ty) else {
            let sides = (Side { tree, ty }, Side { tree: v, ty: &member.ty });
            self.not_comparable(v.span, sides);
            return None;
        };
        *ty = common;
        Some(value)
    }
}

pub(super) fn cast_member(member: Member, ty: &Type) -> Member {
    let cast = |v| lower::cast_value(v, ty);
    match member {
        Member::Value(v) => Member::Value(cast(v)),
        Member::Range(low, high) => Member::Range(cast(low), cast(high)),
        net @ Member::Net(_) => net,
    }
}

fn plural(ty: &Type) -> String {
    match ty {
        Type::Bytes => "bytes".to_owned(),
        Type::Tuple(_) => "these tuples".to_owned(),
        _ => format!("{ty}s"),
    }
}
