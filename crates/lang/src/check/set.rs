//! Params that are sets: what is in them, and where they stand in for members.

use super::Checker;
use super::file::file_call;
use super::param::convert;
use super::words::{a, a_set, say};
use crate::diagnostic::{Code, Diagnostic, Span};
use crate::names::{Meaning, ParamSet, Scope};
use crate::parse::parse_value;
use crate::query::Options;
use crate::tree::{Expr as TreeExpr, ExprKind as Tree, Member as TreeMember, Name, Set, Spanned};
use std::rc::Rc;
use weir_plan::{Member, Type, Value};

impl<'t> Checker<'t> {
    /// The param that is a set, if an expression is nothing but the name of one.
    pub(super) fn named_set(&mut self, scope: &Scope, e: &TreeExpr) -> Option<Rc<ParamSet>> {
        let Tree::Name(name) = e.node.unbracketed() else { return None };
        // A state or a column of the name hides it.
        if scope.states.position(name).is_some() || scope.position(name).is_some() {
            return None;
        }
        match &self.definitions.find(name)?.meaning {
            Meaning::Set(set) => Some(Rc::clone(set)),
            _ => None,
        }
    }

    /// The members of a set of values of the type: the default of the param `name`.
    pub(super) fn set_of(
        &mut self,
        name: &Name,
        ty: &Type,
        set: &Spanned<Set>,
    ) -> Option<ParamSet> {
        let scope = Scope::of(self.source);
        let (mut members, mut sound) = (Vec::new(), true);
        for member in set.node.members() {
            self.nodes = 0;
            match self.members_of(&scope, name, ty, member) {
                Some(more) => members.extend(more),
                None => sound = false,
            }
        }
        self.count_members(members.len(), set.span)?;
        sound.then(|| ParamSet { ty: ty.clone(), members })
    }

    /// The members that one written member stands for.
    fn members_of(
        &mut self,
        scope: &Scope,
        name: &Name,
        ty: &Type,
        member: &TreeMember,
    ) -> Option<Vec<Member>> {
        match member {
            TreeMember::Value(e) => {
                if let Some(args) = file_call(e) {
                    return self.set_file(scope, args, e.span, ty);
                }
                if let Some(other) = self.named_set(scope, e) {
                    if other.ty == *ty {
                        return Some(other.members.clone());
                    }
                    self.wrong_member(name, ty, e.span, &a_set(&other.ty));
                    return None;
                }
                let value = self.member_constant(scope, name, ty, e)?;
                let net = matches!(value, Value::Net(..));
                Some(vec![if net { Member::Net(value) } else { Member::Value(value) }])
            }
            TreeMember::Range(low, high) => {
                let low_value = self.member_constant(scope, name, ty, low);
                let high_value = self.member_constant(scope, name, ty, high);
                let (low_value, high_value) = (low_value?, high_value?);
                let net = |v: &Value| matches!(v, Value::Net(..));
                let message = if net(&low_value) || net(&high_value) {
                    "nets have no order: a range needs one"
                } else if low_value > high_value {
                    "nothing is in this range"
                } else {
                    return Some(vec![Member::Range(low_value, high_value)]);
                };
                self.report(Diagnostic::new(Code::BadConstant, member.span(), message));
                None
            }
        }
    }

    /// A value that may be in a set of such values.
    fn member_constant(
        &mut self,
        scope: &Scope,
        name: &Name,
        ty: &Type,
        e: &TreeExpr,
    ) -> Option<Value> {
        let value = match &e.node {
            Tree::Literal { value, text } => self.literal(value, text),
            _ => {
                self.not_a_difference(e)?;
                self.constant(scope, e, "a member of a set")?
            }
        };
        match (value, ty) {
            // The network of one address is that address.
            (Value::Net(address, 128), Type::Ip) => Some(Value::Ip(address)),
            (net @ Value::Net(..), Type::Ip) => Some(net),
            (value, ty) => match convert(value, ty) {
                Ok(value) => Some(value),
                Err(value) => {
                    let found = value.ty().map_or_else(|| "absent".to_owned(), |ty| a(&ty));
                    self.wrong_member(name, ty, e.span, &found);
                    None
                }
            },
        }
    }

    fn wrong_member(&mut self, name: &Name, ty: &Type, span: Span, found: &str) {
        let shown = say(self.text, span);
        let message = format!("the param `{}` is {}, and {shown} is {found}", name.node, a_set(ty));
        self.report(Diagnostic::new(Code::BadParam, span, message).label(found));
    }

    /// The set given on the command line, or in a file of settings.
    pub(super) fn given_set(
        &mut self,
        name: &Name,
        ty: &Type,
        text: &str,
        options: &Options<'_>,
    ) -> Option<ParamSet> {
        // Mistakes lie in that text, not in the query.
        let mut checker = Checker::new(text, options);
        let read = parse_value(text);
        let set = read.as_ref().ok().and_then(|set| checker.set_of(name, ty, set));
        let mut faults = checker.diagnostics;
        faults.extend(read.err().into_iter().flatten());
        match (set, faults.into_iter().find(Diagnostic::is_error)) {
            (Some(set), None) => Some(set),
            (_, fault) => {
                self.wrong_set(name, ty, text, fault);
                None
            }
        }
    }

    fn wrong_set(&mut self, name: &Name, ty: &Type, text: &str, fault: Option<Diagnostic>) {
        let short = say(text, Span::new(0, text.len()));
        let cause = match fault {
            Some(fault) if fault.message.starts_with("the param ") => fault.message,
            Some(fault) => format!("the param `{}`: {}", name.node, fault.message),
            None => format!("{short} is not a value for the param `{}`", name.node),
        };
        let example = match ty {
            Type::Ip => "`{10.0.0.0/8, 192.0.2.1}`",
            Type::Int => "`{22, 8000..8099}`",
            Type::Mac => "`{02:00:5e:10:00:01}`",
            _ => "`{\"a\", \"b\"}`",
        };
        let d = Diagnostic::new(Code::BadParam, name.span, cause);
        self.report(
            d.label(format!("takes {}", a_set(ty)))
                .help(format!("give it {example}, or `{{}}` for none")),
        );
    }
}
