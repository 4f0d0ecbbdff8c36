//! Params: their types, defaults, and the values given to them.

use super::Checker;
use super::words::{a, say};
use crate::diagnostic::{Code, Diagnostic, Span};
use crate::lex;
use crate::lower;
use crate::names::{Meaning, Scope};
use crate::query::Options;
use crate::suggest;
use crate::tree::{Expr, Name, Statement, Tree};
use weir_plan::{Type, Value};

/// Types by the name that params give them.
const TYPES: &[(&str, Type)] = &[
    ("int", Type::Int),
    ("float", Type::Float),
    ("string", Type::Str),
    ("bool", Type::Bool),
    ("duration", Type::Duration),
    ("time", Type::Time),
    ("ip", Type::Ip),
    ("mac", Type::Mac),
    ("net", Type::Net),
];

impl<'t> Checker<'t> {
    pub(super) fn unknown_params(&mut self, tree: &'t Tree, options: &Options<'_>) {
        let known: Vec<&str> = tree
            .statements
            .iter()
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
        default: &'t Expr,
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
        let value = self.constant(&Scope::packets(), default, "the default of a param");
        let value = value.and_then(|v| self.default_of(name, ty, v, default.span));
        let given = options.params.iter().rev().find(|(n, _)| *n == name.node);
        let value = match given {
            Some((_, text)) => self.given(name, ty, text),
            None => value,
        };
        self.define(name, Meaning::Param(value));
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
    fn given(&mut self, name: &Name, ty: &Type, text: &str) -> Option<Value> {
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
            self.report(d.label(format!("wants {}", a(ty))).help(format!("give it {example}")));
        }
        value
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
fn convert(v: Value, ty: &Type) -> Result<Value, Value> {
    match v.ty() {
        Some(found) if lower::fits(&found, ty) => Ok(lower::cast_value(v, ty)),
        _ => Err(v),
    }
}
