//! Calls of functions, compiled.

use super::lookup_map::LookupMap;
use super::set::Ranges;
use super::{Arith, Class, Compiler, Cond, Convert, Parse, Scope, TextFn, TextTest, Val};
use crate::anonymize::CryptoPan;
use weir_plan::functions::Rounding;
use weir_plan::pattern::{of_bytes, of_text};
use weir_plan::{Expr, ExprKind, Func, Type, Value, address};

impl Compiler<'_> {
    /// A call whose value is wanted in a column.
    pub(super) fn call(&mut self, f: &Func, args: &[Expr], e: &Expr, scope: &Scope) -> Val {
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
            Func::Clamp => self.clamp(args, &e.ty, scope),
            Func::Lower
            | Func::Upper
            | Func::Concat
            | Func::Trim
            | Func::Slice
            | Func::Replace
            | Func::Split
            | Func::Extract
            | Func::RegisteredDomain
            | Func::Hex
            | Func::ToStr
            | Func::Short
            | Func::ToText => self.text(f, args, &e.ty, scope),
            Func::ToIp | Func::EntropyOf => self.parse_text(f, args, e, scope),
            Func::ToInt | Func::ToFloat if args[0].ty == Type::Str => {
                self.parse_text(f, args, e, scope)
            }
            Func::ToBytes
            | Func::ToDuration
            | Func::ToTime
            | Func::StrLen
            | Func::BytesLen
            | Func::ToFloat
            | Func::ToInt
            | Func::Abs
            | Func::Round(_)
            | Func::Math(_)
            | Func::LocalTime(_)
            | Func::Part(_) => self.convert(conversion(f, &args[0].ty), &args[0], &e.ty, scope),
            Func::Pow | Func::SeqDiff | Func::SeqAdd | Func::Bin | Func::LocalBin(_) => {
                self.binary(arithmetic(f), &args[0], &args[1], &e.ty, scope)
            }
            Func::Prefix { .. } | Func::Anonymize(_) | Func::CommunityId { .. } => {
                self.address(f, args, &e.ty, scope)
            }
            Func::Lookup(table) => Val::Lookup {
                map: LookupMap::new(&table.0, &args[0].ty, &mut self.regs),
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
                let regex = of_bytes(pattern(args));
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

    /// A call that makes something of addresses.
    fn address(&mut self, f: &Func, args: &[Expr], ty: &Type, scope: &Scope) -> Val {
        match f {
            Func::Prefix { v4, v6 } => Val::Prefix {
                a: Box::new(self.value(&args[0], scope)),
                v4: address::mask((*v4).min(32) + 96) as u64,
                v6: address::mask(*v6),
                out: self.slot(ty),
            },
            Func::Anonymize(key) => Val::Anonymize {
                names: Box::new(CryptoPan::new(&key.0)),
                a: Box::new(self.value(&args[0], scope)),
                out: self.slot(ty),
            },
            Func::CommunityId { seed } => Val::CommunityId {
                seed: *seed,
                parts: args.iter().map(|a| self.value(a, scope)).collect(),
                out: self.slot(ty),
            },
            other => unreachable!("{other:?} is of no address"),
        }
    }

    /// A call that makes a text, or bytes.
    fn text(&mut self, f: &Func, args: &[Expr], ty: &Type, scope: &Scope) -> Val {
        let (f, args) = match f {
            Func::Lower => (TextFn::Lower, args),
            Func::Upper => (TextFn::Upper, args),
            Func::Concat => (TextFn::Concat, args),
            Func::Trim => (TextFn::Trim, args),
            Func::Slice => (TextFn::Slice, args),
            Func::Replace => (TextFn::Replace, args),
            Func::Split => (TextFn::Split, args),
            Func::RegisteredDomain => (TextFn::RegisteredDomain, args),
            Func::Hex => (TextFn::Hex, args),
            Func::ToStr => (TextFn::Show, args),
            Func::Short => (TextFn::Short, args),
            Func::ToText => (TextFn::Decode, args),
            Func::Extract => {
                let regex = of_text(pattern(args)).expect("the checker compiled it");
                (TextFn::Extract(regex), &args[..1])
            }
            other => unreachable!("{other:?} makes no text"),
        };
        let args = args.iter().map(|a| (self.value(a, scope), a.ty.clone())).collect();
        Val::Text { f, args, out: self.slot(ty) }
    }

    fn two(&mut self, args: &[Expr], scope: &Scope) -> (Box<Val>, Box<Val>) {
        (Box::new(self.value(&args[0], scope)), Box::new(self.value(&args[1], scope)))
    }

    fn clamp(&mut self, args: &[Expr], ty: &Type, scope: &Scope) -> Val {
        let (x, low) = self.two(args, scope);
        let raised = Box::new(self.extreme(true, x, low, ty));
        let high = Box::new(self.value(&args[2], scope));
        self.extreme(false, raised, high, ty)
    }

    fn extreme(&mut self, larger: bool, a: Box<Val>, b: Box<Val>, ty: &Type) -> Val {
        Val::Extreme { larger, class: Class::of(ty), a, b, out: self.slot(ty) }
    }

    fn parse_text(&mut self, f: &Func, args: &[Expr], e: &Expr, scope: &Scope) -> Val {
        let f = match f {
            Func::ToIp => Parse::Ip,
            Func::ToInt => Parse::Int,
            Func::ToFloat => Parse::Float,
            Func::EntropyOf => Parse::Entropy,
            other => unreachable!("{other:?} reads no text"),
        };
        Val::Parse { f, a: Box::new(self.value(&args[0], scope)), out: self.slot(&e.ty) }
    }
}

/// How a function makes one word of two.
fn arithmetic(f: &Func) -> Arith {
    match f {
        Func::Pow => Arith::Pow,
        Func::SeqDiff => Arith::SeqDiff,
        Func::SeqAdd => Arith::SeqAdd,
        Func::Bin => Arith::Bin,
        Func::LocalBin(zone) => Arith::LocalBin(*zone),
        other => unreachable!("{other:?} is of no two numbers"),
    }
}

/// How a function makes one word of one value of a type that is no text to be read.
fn conversion(f: &Func, from: &Type) -> Convert {
    match (f, from) {
        (Func::StrLen | Func::BytesLen, _) => Convert::TextLen,
        (Func::ToFloat, Type::Duration) => Convert::DurationToFloat,
        (Func::ToFloat, Type::Int) => Convert::IntToFloat,
        (Func::ToInt, Type::Float) => Convert::FloatToInt,
        (Func::ToInt, Type::Bool) => Convert::BoolToInt,
        (Func::Abs, Type::Float) => Convert::AbsF,
        (Func::Abs, _) => Convert::Abs,
        (Func::Round(Rounding::Floor), _) => Convert::Floor,
        (Func::Round(Rounding::Ceil), _) => Convert::Ceil,
        (Func::Round(Rounding::Nearest), _) => Convert::Round,
        (Func::Math(f), _) => Convert::Math(*f),
        (Func::Part(part), _) => Convert::Part(*part),
        (Func::LocalTime(zone), _) => Convert::Local(*zone),
        _ => Convert::Same,
    }
}

/// The pattern of a function that takes one as its second argument.
fn pattern(args: &[Expr]) -> &str {
    match &args[1].kind {
        ExprKind::Const(Value::Str(pattern)) => pattern,
        _ => unreachable!("the checker wants a constant pattern"),
    }
}
