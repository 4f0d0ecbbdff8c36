//! Calls of functions, compiled.

use super::lookup::Map;
use super::set::Ranges;
use super::{Arith, Class, Compiler, Cond, Convert, Parse, Scope, TextFn, TextTest, Val};
use crate::anonymize::CryptoPan;
use weir_plan::functions::Rounding;
use weir_plan::{Expr, ExprKind, Func, Type, Value, address};

impl Compiler<'_> {
    /// A call whose value is wanted in a column.
    pub(super) fn call(&mut self, f: &Func, args: &[Expr], e: &Expr, scope: &Scope) -> Val {
        let convert = |me: &mut Self, op| me.convert(op, &args[0], &e.ty, scope);
        let text = |me: &mut Self, f| Val::Text {
            f,
            args: args.iter().map(|a| (me.value(a, scope), a.ty.clone())).collect(),
            out: me.slot(&e.ty),
        };
        match f {
            Func::Exists
            | Func::Contains
            | Func::StartsWith
            | Func::EndsWith
            | Func::Matches
            | Func::IsIpv4
            | Func::IsIpv6
            | Func::IsIn(_) => self.boolean(e, scope),
            Func::Coalesce => {
                let (a, b) = self.two(args, scope);
                Val::Coalesce { a, b, out: self.slot(&e.ty) }
            }
            Func::MinOf | Func::MaxOf => {
                let (a, b) = self.two(args, scope);
                self.extreme(*f == Func::MaxOf, a, b, &e.ty)
            }
            Func::Clamp => {
                let (x, low) = self.two(args, scope);
                let raised = Box::new(self.extreme(true, x, low, &e.ty));
                let high = Box::new(self.value(&args[2], scope));
                self.extreme(false, raised, high, &e.ty)
            }
            Func::Lower => text(self, TextFn::Lower),
            Func::Upper => text(self, TextFn::Upper),
            Func::Concat => text(self, TextFn::Concat),
            Func::Trim => text(self, TextFn::Trim),
            Func::Slice => text(self, TextFn::Slice),
            Func::Replace => text(self, TextFn::Replace),
            Func::Split => text(self, TextFn::Split),
            Func::Hex => text(self, TextFn::Hex),
            Func::ToStr => text(self, TextFn::Show),
            Func::ToText => text(self, TextFn::Decode),
            Func::Extract => {
                let regex = regex::Regex::new(pattern(args)).expect("the checker compiled it");
                let args = vec![(self.value(&args[0], scope), Type::Str)];
                Val::Text { f: TextFn::Extract(regex), args, out: self.slot(&e.ty) }
            }
            Func::ToBytes | Func::ToDuration | Func::ToTime => convert(self, Convert::Same),
            Func::StrLen | Func::BytesLen => convert(self, Convert::TextLen),
            Func::ToFloat => match args[0].ty {
                Type::Str => self.parse_text(Parse::Float, args, e, scope),
                Type::Duration => convert(self, Convert::DurationToFloat),
                Type::Float => convert(self, Convert::Same),
                _ => convert(self, Convert::IntToFloat),
            },
            Func::ToInt => match args[0].ty {
                Type::Str => self.parse_text(Parse::Int, args, e, scope),
                Type::Float => convert(self, Convert::FloatToInt),
                Type::Bool => convert(self, Convert::BoolToInt),
                _ => convert(self, Convert::Same),
            },
            Func::ToIp => self.parse_text(Parse::Ip, args, e, scope),
            Func::Abs if e.ty == Type::Float => convert(self, Convert::AbsF),
            Func::Abs => convert(self, Convert::Abs),
            Func::Round(Rounding::Floor) => convert(self, Convert::Floor),
            Func::Round(Rounding::Ceil) => convert(self, Convert::Ceil),
            Func::Round(Rounding::Nearest) => convert(self, Convert::Round),
            Func::Math(f) => convert(self, Convert::Math(*f)),
            Func::Part(part) => convert(self, Convert::Part(*part)),
            Func::Pow => self.binary(Arith::Pow, &args[0], &args[1], &e.ty, scope),
            Func::SeqDiff => self.binary(Arith::SeqDiff, &args[0], &args[1], &e.ty, scope),
            Func::Bin => self.binary(Arith::Bin, &args[0], &args[1], &e.ty, scope),
            Func::Prefix { v4, v6 } => Val::Prefix {
                a: Box::new(self.value(&args[0], scope)),
                v4: address::mask((*v4).min(32) + 96) as u64,
                v6: address::mask(*v6),
                out: self.slot(&e.ty),
            },
            Func::Anonymize(key) => Val::Anonymize {
                names: Box::new(CryptoPan::new(&key.0)),
                a: Box::new(self.value(&args[0], scope)),
                out: self.slot(&e.ty),
            },
            Func::CommunityId { seed } => Val::CommunityId {
                seed: *seed,
                parts: args.iter().map(|a| self.value(a, scope)).collect(),
                out: self.slot(&e.ty),
            },
            Func::Lookup(table) => Val::Lookup {
                map: Map::new(&table.0, &args[0].ty, &mut self.regs),
                key: Box::new(self.value(&args[0], scope)),
                out: self.slot(&e.ty),
            },
            Func::User(i) => Val::User {
                f: self.functions().scalar_at(*i).clone(),
                args: args.iter().map(|a| (self.value(a, scope), a.ty.clone())).collect(),
                ty: e.ty.clone(),
                out: self.slot(&e.ty),
            },
        }
    }

    /// A call whose truth is wanted.
    pub(super) fn predicate(&mut self, f: &Func, args: &[Expr], e: &Expr, scope: &Scope) -> Cond {
        let test = |me: &mut Self, f| Cond::Text {
            f,
            a: me.value(&args[0], scope),
            b: me.value(&args[1], scope),
        };
        match f {
            Func::Exists => {
                let parts = match &args[0].kind {
                    ExprKind::Tuple(parts) => super::flat(parts),
                    _ => vec![&args[0]],
                };
                Cond::Exists(parts.into_iter().map(|p| self.value(p, scope)).collect())
            }
            Func::Contains => test(self, TextTest::Contains),
            Func::StartsWith => test(self, TextTest::StartsWith),
            Func::EndsWith => test(self, TextTest::EndsWith),
            Func::Matches => {
                let regex = regex::bytes::Regex::new(pattern(args));
                let regex = regex.expect("the checker compiled the pattern");
                Cond::Matches { a: self.value(&args[0], scope), regex }
            }
            Func::IsIpv4 => Cond::IsVersion { a: self.value(&args[0], scope), six: false },
            Func::IsIpv6 => Cond::IsVersion { a: self.value(&args[0], scope), six: true },
            Func::IsIn(block) => Cond::InRanges {
                class: Class::Pair,
                a: self.value(&args[0], scope),
                ranges: Ranges::of_pairs(block.ranges()),
            },
            _ => Cond::Truth(Box::new(self.value(e, scope))),
        }
    }

    fn two(&mut self, args: &[Expr], scope: &Scope) -> (Box<Val>, Box<Val>) {
        (Box::new(self.value(&args[0], scope)), Box::new(self.value(&args[1], scope)))
    }

    fn extreme(&mut self, larger: bool, a: Box<Val>, b: Box<Val>, ty: &Type) -> Val {
        Val::Extreme { larger, class: Class::of(ty), a, b, out: self.slot(ty) }
    }

    fn parse_text(&mut self, f: Parse, args: &[Expr], e: &Expr, scope: &Scope) -> Val {
        Val::Parse { f, a: Box::new(self.value(&args[0], scope)), out: self.slot(&e.ty) }
    }
}

/// The pattern of a function that takes one as its second argument.
fn pattern(args: &[Expr]) -> &str {
    match &args[1].kind {
        ExprKind::Const(Value::Str(pattern)) => pattern,
        _ => unreachable!("the checker wants a constant pattern"),
    }
}
