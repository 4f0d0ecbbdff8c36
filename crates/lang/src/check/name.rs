//! The meaning of a name in an expression.

use super::Checker;
use crate::diagnostic::{Code, Diagnostic, Span};
use crate::foreign::{self, WithoutFields};
use crate::names::{Meaning, Scope};
use crate::suggest;
use weir_packet::fields::{self, FieldId, FlowKey};
use weir_packet::repeated;
use weir_plan::analyze::{TCP_COLUMNS, TCP_PREFIX};
use weir_plan::functions::by_name;
use weir_plan::{Expr, ExprKind, SourceKind};

impl<'t> Checker<'t> {
    /// The expression that a name stands for: a state, a column, a param or let, a field, or a key;
    /// the first of these that has the name.
    pub(super) fn name(&mut self, scope: &Scope, name: &str, span: Span) -> Option<Expr> {
        if let Some(i) = scope.states.position(name) {
            let ty = scope.states.columns[i].ty.clone();
            return Some(Expr { ty, kind: ExprKind::State(i) });
        }
        if scope.poisoned.contains(name) {
            return None;
        }
        if let Some(i) = scope.position(name) {
            return Some(Expr::column(i, scope.schema.columns[i].ty.clone()));
        }
        if let Some(definition) = self.definitions.find(name) {
            let (meaning, defined) = (definition.meaning.clone(), definition.span);
            return self.definition(scope, name, span, meaning, defined);
        }
        let gone = scope.gone.contains_key(name);
        if let Some(id) = scope.field(name).filter(|_| scope.packets && !gone) {
            return self.field(scope, id, span);
        }
        if let Some(key) = self.key_fields(scope, name) {
            let parts = key.into_iter().map(|part| {
                let field = part.info().name;
                (self.name(scope, field, span), span)
            });
            let parts = parts.collect();
            return self.tuple(parts);
        }
        if !scope.lenient {
            self.unknown_name(scope, name, span);
        }
        None
    }

    /// Whether a name stands for something here, or did so further up.
    pub(super) fn means_something(&mut self, scope: &Scope, name: &str) -> bool {
        scope.states.position(name).is_some()
            || scope.poisoned.contains(name)
            || scope.position(name).is_some()
            || scope.gone.contains_key(name)
            || scope.field(name).is_some()
            || self.definitions.find(name).is_some()
            || self.below.contains_key(name)
            || fields::key_by_name(name).is_some()
    }

    /// The fields of a key of this name. The fields that a run adds to the keys of flows are among
    /// them where rows have them.
    pub(super) fn key_fields(&self, scope: &Scope, name: &str) -> Option<Vec<FieldId>> {
        let key = fields::key_by_name(name)?;
        let own = key.fields.len();
        let rules = match self.source {
            SourceKind::Packets => self.rules.flow_key,
            SourceKind::FlowRecords => FlowKey::default(),
        };
        let all = rules.of(key).enumerate().filter(|(at, id)| {
            let name = id.info().name;
            let is_field = scope.packets && !scope.gone.contains_key(name);
            *at < own || is_field || scope.position(name).is_some()
        });
        Some(all.map(|(_, id)| id).collect())
    }

    fn definition(
        &mut self,
        scope: &Scope,
        name: &str,
        span: Span,
        meaning: Meaning<'t>,
        defined: Span,
    ) -> Option<Expr> {
        match meaning {
            Meaning::Unknown => None,
            Meaning::Param(value) => value.map(Expr::constant),
            Meaning::Set(_) => {
                let message = format!("`{name}` is a set, not a value");
                let d = Diagnostic::new(Code::NotAValue, span, message);
                let d = d.note_at(defined, "defined here");
                self.report(d.help(format!("it stands on the right of `in`: `ip.src in {name}`")));
                None
            }
            Meaning::Alias { sound: false, .. } => None,
            Meaning::Alias { expr, .. } => {
                let outside = self.alias;
                self.alias = outside.or(Some((defined.of(self.text), span)));
                let out = self.expr(scope, expr);
                self.alias = outside;
                out
            }
            Meaning::Pipeline(_) => {
                let message = format!("`{name}` is a pipeline, not a value");
                let d = Diagnostic::new(Code::NotAValue, span, message);
                self.report(d.note_at(defined, "defined here"));
                None
            }
        }
    }

    pub(super) fn unknown_name(&mut self, scope: &Scope, name: &str, span: Span) {
        if let Some(gone) = scope.gone.get(name) {
            let message = match gone.renamed {
                Some(_) => format!("`{name}` has another name since `{}`", gone.stage),
                None => format!("`{name}` is gone: `{}` took it", gone.stage),
            };
            let d = Diagnostic::new(Code::FieldGone, span, message).note_at(gone.span, "here");
            let help = gone.renamed.as_ref().map(|new| format!("it is `{new}` now"));
            return self.report(d.maybe_help(help));
        }
        if let Some((stage, dropped)) = scope.dropped
            && scope.field(name).is_some()
        {
            return self.field_gone(scope, name, span, stage, dropped);
        }
        if let Some(below) = self.below.get(name) {
            let message = format!("`{name}` is defined only further down");
            let d = Diagnostic::new(Code::NotYetDefined, span, message);
            return self.report(d.note_at(*below, "move this up"));
        }
        if !name.is_ascii() {
            // The lexer has reported that it is no name.
            return;
        }
        if scope.packets && scope.of_records() && fields::by_name(name).is_some() {
            return self.no_field_of_records(name, span);
        }
        if scope.packets && !scope.of_records() && self.has_no_fields(name, span) {
            return;
        }
        let what = if scope.packets { "field or column" } else { "column" };
        let d = Diagnostic::new(Code::UnknownName, span, format!("no {what} is called `{name}`"));
        let columns = scope.columns();
        let states = scope.states.columns.iter().map(|c| c.name.as_str());
        let fields = scope.field_names();
        let fields = fields.filter(|name| scope.packets && !scope.gone.contains_key(*name));
        let fields = fields.map(|name: &str| name);
        let known = columns.clone().chain(states).chain(self.definitions.iter().map(|(n, _)| n));
        let near = suggest::closest(name, known.chain(fields));
        let of_packets = scope.packets && !scope.of_records();
        let foreign = suggest::field(name).filter(|_| of_packets);
        if scope.pending.iter().any(|n| n == name) {
            let help = format!("`{name}` is made by this same stage: use it in a stage after it");
            return self.report(d.help(help));
        }
        let function = by_name(name).is_some() || self.is_aggregate(name);
        if let Some(help) = something_of_packets(name).filter(|_| of_packets) {
            return self.report(d.help(help));
        }
        self.report(match foreign.or(near) {
            None if function && !scope.packets => {
                let columns: Vec<&str> = columns.collect();
                d.help(format!("the columns here: {}", columns.join(", ")))
            }
            _ if function && foreign.is_none() => {
                d.help(format!("`{name}` is a function: `{name}(…)`"))
            }
            Some(near) => d.help(format!("did you mean `{near}`?")),
            None if of_packets => d.help("`weir fields` lists the fields"),
            None if scope.packets => d.help("`weir fields --flows` lists the fields"),
            None => {
                let columns: Vec<&str> = columns.collect();
                d.note(format!("the columns here: {}", columns.join(", ")))
            }
        });
    }

    /// Reports a field of packets that flow records don't have.
    fn no_field_of_records(&mut self, name: &str, span: Span) {
        let message = format!("`{name}` is a field of packets, which flow records don't have");
        let d = Diagnostic::new(Code::UnknownName, span, message);
        let help = match name {
            "len" | "ip.len" | "caplen" => "their `bytes` are those of all packets of a flow",
            "interface" => "their `in_if` and `out_if` are indices of interfaces",
            _ => "`weir fields --flows` lists those that they have",
        };
        self.report(d.help(help));
    }

    /// Whether the name belongs to a protocol without fields; reports it then.
    fn has_no_fields(&mut self, name: &str, span: Span) -> bool {
        let protocol = name.split('.').next().unwrap_or(name);
        let (message, help) = match foreign::protocol(name) {
            None => return false,
            Some(WithoutFields::Undecoded(condition)) => (
                format!("`{protocol}` is not decoded yet"),
                format!("its packets, as far as ports and types tell: `{condition}`"),
            ),
            Some(WithoutFields::Skipped(condition)) => (
                format!("`{protocol}` has no fields of its own"),
                format!("its packets: `{condition}`; fields mean the packet inside"),
            ),
            Some(WithoutFields::Tunnel(condition)) => (
                format!("`{protocol}` has no fields of its own"),
                format!(
                    "its packets: `{condition}`; with `--headers inner` fields mean the packet \
                     inside, and `tunnel` holds"
                ),
            ),
        };
        self.report(Diagnostic::new(Code::Unsupported, span, message).help(help));
        true
    }

    fn field_gone(&mut self, scope: &Scope, name: &str, span: Span, stage: &str, dropped: Span) {
        let keeps = match stage {
            "project" => "just the columns it names",
            _ => "just its keys and aggregates",
        };
        let d = Diagnostic::new(
            Code::FieldGone,
            span,
            format!("`{name}` is gone: `{stage}` keeps {keeps}"),
        )
        .label("a field of packets")
        .note_at(dropped, "from here on, rows are not packets");
        let last = name.rsplit('.').next().unwrap_or(name);
        let column = scope.columns().find(|c| c.ends_with(last));
        self.report(match (stage, column) {
            (_, Some(column)) => d.help(format!("did you mean the column `{}`?", column)),
            ("project", None) => d.help(format!("add it there: `project …, {name}`")),
            (_, None) => d.help(format!(
                "add it there, as a key: `by …, {name}`, or as an aggregate: `first({name})`"
            )),
        });
    }
}

/// The possible meaning of a name that is no field of packets, but something else of theirs.
fn something_of_packets(name: &str) -> Option<String> {
    if repeated::by_name(name).is_some() {
        return Some(format!("a packet may have several: `each {name}` makes a row of each"));
    }
    if TCP_COLUMNS.iter().any(|c| name.strip_prefix(TCP_PREFIX) == Some(c.name)) {
        return Some("`| analyze tcp` before this stage makes it".to_owned());
    }
    foreign::field(name).map(Into::into).or_else(|| foreign::value_by_name(name))
}
