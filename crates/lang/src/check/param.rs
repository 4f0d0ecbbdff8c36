//! Params: their types, defaults, and the values given to them.

use super::Checker;
use super::words::{a, say};
use crate::diagnostic::{Code, Diagnostic, Span};
use crate::import::Imported;
use crate::lex;
use crate::lower;
use crate::names::{Meaning, Scope};
use crate::query::Options;
use crate::suggest;
use crate::tree::{Expr, Member, Name, Set, Spanned, Statement, Tree};
use std::rc::Rc;
use weir_plan::{Type, Value};

/// The type of a param.
#[derive(Debug)]
enum ParamType {
    /// One value.
    Value(Type),
    /// A set of values of a type, to stand on the right of `in`; one of addresses has networks,
    /// too.
    Set(Type),
}

/// Types by the name that params give them.
const TYPES: &[(&str, ParamType)] = &[
    ("int", ParamType::Value(Type::Int)),
    ("float", ParamType::Value(Type::Float)),
    ("string", ParamType::Value(Type::Str)),
    ("bool", ParamType::Value(Type::Bool)),
    ("duration", ParamType::Value(Type::Duration)),
    ("time", ParamType::Value(Type::Time)),
    ("ip", ParamType::Value(Type::Ip)),
    ("mac", ParamType::Value(Type::Mac)),
    ("net", ParamType::Value(Type::Net)),
    ("ints", ParamType::Set(Type::Int)),
    ("nets", ParamType::Set(Type::Ip)),
    ("macs", ParamType::Set(Type::Mac)),
    ("strings", ParamType::Set(Type::Str)),
];

/// The mistake in a value for a param of the type that is called so, if that is a type: the value
/// is a text, which is given outside of the query.
pub(crate) fn fault(
    name: &str,
    ty: &str,
    value: &str,
    options: &Options<'_>,
) -> Option<Diagnostic> {
    let (_, ty) = TYPES.iter().find(|(word, _)| *word == ty)?;
    let name = Name::new(name.to_owned(), Span::NOWHERE);
    let mut checker = Checker::new("", options);
    match ty {
        ParamType::Value(ty) => drop(checker.given(&name, ty, value)),
        ParamType::Set(ty) => drop(checker.given_set(&name, ty, value, options)),
    }
    checker.diagnostics.into_iter().find(Diagnostic::is_error)
}

impl<'t> Checker<'t> {
    pub(super) fn unknown_params(
        &mut self,
        tree: &'t Tree,
        imports: &'t [Imported],
        options: &Options<'_>,
    ) {
        let trees = [tree].into_iter().chain(imports.iter().map(|import| &import.tree));
        let known: Vec<&str> = trees
            .flat_map(|tree| &tree.statements)
            .filter_map(|s| match &s.node {
                Statement::Param { name, .. } | Statement::Broken(name) => Some(name.node.as_str()),
                _ => None,
            })
            .collect();
        for (name, value) in options.params {
            if known.contains(&name.as_str()) {
                continue;
            }
            let d = Diagnostic::new(
                Code::UnknownParam,
                Span::NOWHERE,
                format!("the query has no param `{name}` to set to `{value}`"),
            );
            let help = suggest::did_you_mean(name, known.iter().copied());
            self.report(match (help, known.is_empty()) {
                (Some(help), _) => d.help(help),
                (None, true) => d.note("it has no params at all"),
                (None, false) => d.note(format!("its params: {}", known.join(", "))),
            });
        }
    }

    pub(super) fn param(
        &mut self,
        name: &'t Name,
        ty: &Name,
        default: &Spanned<Set>,
        options: &Options<'_>,
    ) {
        let Some((_, ty)) = TYPES.iter().find(|(word, _)| *word == ty.node) else {
            let d = Diagnostic::new(
                Code::UnknownType,
                ty.span,
                format!("there is no type called `{}`", ty.node),
            );
            let names: Vec<&str> = TYPES.iter().map(|(word, _)| *word).collect();
            let near = suggest::closest(&ty.node, names.iter().copied());
            let near = suggest::type_name(&ty.node).or(near);
            let help = near.map(|near| format!("did you mean `{near}`?"));
            self.report(d.maybe_help(help).note(format!("types of params: {}", names.join(" "))));
            return self.define(name, Meaning::Param(None));
        };
        let given = options.params.iter().rev().find(|(n, _)| *n == name.node);
        let given = given.map(|(_, text)| text.as_str());
        let meaning = match ty {
            ParamType::Value(ty) => {
                let value = self.value_of(name, ty, default);
                Meaning::Param(match given {
                    Some(text) => self.given(name, ty, text),
                    None => value,
                })
            }
            ParamType::Set(ty) => {
                let set = self.set_of(name, ty, default);
                let set = match given {
                    Some(text) => self.given_set(name, ty, text, options),
                    None => set,
                };
                set.map_or(Meaning::Unknown, |set| Meaning::Set(Rc::new(set)))
            }
        };
        self.define(name, meaning);
    }

    /// The default of a param that is one value.
    fn value_of(&mut self, name: &Name, ty: &Type, default: &Spanned<Set>) -> Option<Value> {
        let Some(value) = one_value(&default.node) else {
            let message = format!("the param `{}` is {}, and its default a set", name.node, a(ty));
            let d = Diagnostic::new(Code::BadParam, default.span, message);
            let set = TYPES.iter().find_map(|(word, known)| match (known, ty) {
                (ParamType::Set(Type::Ip), Type::Net) => Some(word),
                (ParamType::Set(member), ty) if member == ty => Some(word),
                _ => None,
            });
            self.report(d.maybe_help(set.map(|word| format!("the type of such sets is `{word}`"))));
            return None;
        };
        let v = self.constant(&Scope::of(self.source), value, "the default of a param")?;
        self.default_of(name, ty, v, value.span)
    }

    fn default_of(&mut self, name: &Name, ty: &Type, v: Value, span: Span) -> Option<Value> {
        let shown = say(self.text, span);
        match convert(v, ty) {
            Ok(v) => Some(v),
            Err(v) => {
                let found = v.ty().map_or_else(|| "absent".into(), |t| a(&t));
                let message = format!(
                    "the param `{}` is {}, and its default {shown} is {found}",
                    name.node,
                    a(ty)
                );
                let d = Diagnostic::new(Code::BadParam, span, message);
                self.report(match (ty, &v) {
                    (Type::Net, Value::Ip(_)) => {
                        d.help(format!("a network has a prefix: `{v}/32`"))
                    }
                    (Type::Duration, Value::Int(n)) => d.help(format!("say the unit: `{n}s`")),
                    _ => d,
                });
                None
            }
        }
    }

    /// The value given on the command line.
    pub(super) fn given(&mut self, name: &Name, ty: &Type, text: &str) -> Option<Value> {
        let quoted = text.starts_with('"') && *ty == Type::Str;
        let value = if *ty == Type::Str && !quoted {
            Some(Value::Str(text.into()))
        } else {
            lex::literal(text.trim()).and_then(|v| convert(v, ty).ok())
        };
        if value.is_none() {
            let message = format!("`{text}` is not a value for the param `{}`", name.node);
            let mut d = Diagnostic::new(Code::BadParam, name.span, message);
            if let Some(fault) = lex::fault(text.trim()).filter(|f| about(f.code, ty)) {
                d.message = format!("the param `{}`: {}", name.node, fault.message);
                d.notes = fault.notes;
            }
            let example = match ty {
                Type::Int => "`1000`, `1M` or `0x1f`",
                Type::Float => "`0.5` or `1e-3`",
                Type::Bool => "`true` or `false`",
                Type::Duration => "`10s`, `250ms` or `1.5h`",
                Type::Time => "`@2023-11-14T22:13:20Z` or `@2023-11-14`",
                Type::Ip => "`10.0.0.1` or `2001:db8::1`",
                Type::Mac => "`02:00:5e:10:00:01`",
                Type::Net => "`10.0.0.0/8` or `2001:db8::/32`",
                _ => "`\"text\"`",
            };
            self.report(d.label(format!("takes {}", a(ty))).help(format!("give it {example}")));
        }
        value
    }
}

/// The value that a param has in its text, where that is no set.
fn one_value(set: &Set) -> Option<&Expr> {
    match set {
        Set::One(member) => match &**member {
            Member::Value(e) => Some(e),
            Member::Range(..) => None,
        },
        Set::Braces(_) => None,
    }
}

/// Whether a fault of this kind lies in a value that was to be of the type, rather than of another.
fn about(code: Code, ty: &Type) -> bool {
    match code {
        Code::BadNumber => matches!(ty, Type::Int | Type::Float | Type::Duration),
        Code::BadAddress => matches!(ty, Type::Ip | Type::Mac | Type::Net),
        Code::BadNetwork => *ty == Type::Net,
        Code::BadTime => *ty == Type::Time,
        _ => false,
    }
}

/// `v` as a value of that type, or `v` itself back.
pub(super) fn convert(v: Value, ty: &Type) -> Result<Value, Value> {
    match v.ty() {
        Some(found) if lower::fits(&found, ty) => Ok(lower::cast_value(v, ty)),
        _ => Err(v),
    }
}
