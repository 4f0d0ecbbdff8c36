//! Stages that say which columns go or get another name: `project-away` and `rename`.
//!
//! Of rows they are a `project` of the columns that stay. Packets stay packets, with all their
//! other fields: there a name goes, and a column under another name is added.

use super::Checker;
use super::stage::NewColumn;
use crate::diagnostic::{Code, Diagnostic, Span};
use crate::names::{Gone, Scope};
use crate::tree::{ExprKind as Tree, Item};
use std::collections::{BTreeMap, BTreeSet};
use weir_plan::{Expr, Reshaping, Schema, Stage};

/// A name that a stage takes, where it stands, and what it meant.
type Taken = (String, Span, Expr);

impl<'t> Checker<'t> {
    pub(super) fn project_away(
        &mut self,
        scope: &mut Scope,
        items: &[Item],
        word: Span,
    ) -> Option<Stage> {
        let mut taken: Vec<Taken> = Vec::new();
        for item in items {
            if let Some(name) = &item.name {
                let message = "`project-away` only takes names";
                let d = Diagnostic::new(Code::Unexpected, name.span.to(item.expr.span), message);
                self.report(d.help(format!("write `project-away {}`", name.node)));
                continue;
            }
            taken.extend(self.existing(scope, item, "project-away"));
        }
        self.taken_once(&taken);
        let names: BTreeSet<&str> = taken.iter().map(|(name, ..)| name.as_str()).collect();
        let stays = |name: &str| !names.contains(name) || scope.poisoned.contains(name);
        let left = match scope.packets {
            true => scope.listed.iter().any(|name| stays(name)),
            false => scope.columns().any(stays),
        };
        if !left && !scope.lenient {
            let message = "`project-away` leaves no column";
            let d = Diagnostic::new(Code::NeedsColumns, word, message);
            self.report(d.help("leave one, or name those that stay: `project …`"));
            scope.lenient = true;
            return None;
        }
        let gone = taken.iter().map(|(name, span, _)| {
            (name.clone(), Gone { stage: "project-away", span: *span, renamed: None })
        });
        let gone: Vec<(String, Gone)> = gone.collect();
        if scope.packets {
            scope.listed.retain(|name| !names.contains(name.as_str()));
            scope.gone.extend(gone);
            return None;
        }
        let kept = scope.columns().filter(|name| stays(name));
        let columns = kept.map(|name| (name.to_owned(), name.to_owned())).collect();
        scope.gone.extend(gone);
        Some(reshape(scope, columns, Reshaping::Away))
    }

    pub(super) fn rename(&mut self, scope: &mut Scope, items: &[Item]) -> Option<Stage> {
        let mut pairs: Vec<(Taken, (String, Span))> = Vec::new();
        // Packets keep the columns that get another name; rows get no further ones.
        let before = if scope.packets { scope.schema.clone() } else { Schema::default() };
        let (given, items) = (items.len(), self.with_room(&before, items));
        scope.lenient |= items.len() < given;
        for item in items {
            let old = self.existing(scope, item, "rename");
            let new = item.name.as_ref().map(|name| (name.node.clone(), name.span));
            pairs.extend(old.into_iter().zip(new));
        }
        let taken: Vec<Taken> = pairs.iter().map(|(old, _)| old.clone()).collect();
        self.taken_once(&taken);
        let given: Vec<NewColumn> =
            pairs.iter().map(|(_, (name, span))| (name.clone(), *span, None)).collect();
        self.distinct_names(&given);
        for (_, (new, span)) in &pairs {
            if !taken.iter().any(|(old, ..)| old == new) {
                self.is_free(scope, new, *span);
            }
        }
        let names: BTreeMap<&str, &str> =
            pairs.iter().map(|((old, ..), (new, _))| (old.as_str(), new.as_str())).collect();
        let gone = pairs.iter().map(|((old, span, _), (new, _))| {
            (old.clone(), Gone { stage: "rename", span: *span, renamed: Some(new.clone()) })
        });
        let gone: Vec<(String, Gone)> = gone.collect();
        if !scope.packets {
            let renamed = |old: &str| (*names.get(old).unwrap_or(&old)).to_owned();
            let columns = scope.columns().map(|old| (renamed(old), old.to_owned())).collect();
            scope.gone.extend(gone);
            return Some(reshape(scope, columns, Reshaping::Rename));
        }
        for name in &mut scope.listed {
            if let Some(new) = names.get(name.as_str()) {
                *name = (*new).to_owned();
            }
        }
        scope.gone.extend(gone);
        let mut columns = Vec::new();
        for ((.., e), (new, span)) in pairs {
            scope.replaces(&new, span);
            let position = scope.put(&new, Some(e.ty.clone()));
            columns.push((new, position, e));
        }
        Some(Stage::Extend { columns })
    }

    /// The column or the fields that an item names.
    fn existing(&mut self, scope: &Scope, item: &Item, stage: &str) -> Vec<Taken> {
        let span = item.expr.span;
        let Tree::Name(name) = item.expr.node.unbracketed() else {
            let text = crate::excerpt::one_line(span.of(self.text));
            let message = format!("`{stage}` takes names of columns, and `{text}` is none");
            let d = Diagnostic::new(Code::Unexpected, span, message);
            self.report(match (&item.name, stage) {
                (Some(name), "rename") => {
                    d.help(format!("compute it first: `extend {} = {text}`", name.node))
                }
                _ => d,
            });
            return Vec::new();
        };
        let plain = scope.position(name).is_some() || scope.poisoned.contains(name);
        let key = self.key_fields(scope, name).filter(|_| !plain);
        if key.is_none() || stage == "rename" {
            return self.existing_one(scope, name, span).into_iter().collect();
        }
        let parts = key.into_iter().flatten();
        let parts = parts.map(|part| part.info().name);
        parts.filter_map(|field| self.existing_one(scope, field, span)).collect()
    }

    fn existing_one(&mut self, scope: &Scope, name: &str, span: Span) -> Option<Taken> {
        let field = scope.field(name).is_some_and(|_| scope.packets);
        let known = scope.position(name).is_some() || field && !scope.gone.contains_key(name);
        if known || scope.poisoned.contains(name) {
            return self.name(scope, name, span).map(|e| (name.to_owned(), span, e));
        }
        if !scope.lenient {
            self.unknown_name(scope, name, span);
        }
        None
    }

    /// Reports a column that is taken twice.
    fn taken_once(&mut self, taken: &[Taken]) {
        let mut seen: BTreeMap<&str, Span> = BTreeMap::new();
        for (name, span, _) in taken {
            if let Some(first) = seen.insert(name, *span) {
                let message = format!("`{name}` is named twice");
                let d = Diagnostic::new(Code::ColumnClash, *span, message);
                self.report(d.note_at(first, "the first time"));
            }
        }
    }

    /// Reports a new name that something else has.
    fn is_free(&mut self, scope: &Scope, name: &str, span: Span) {
        let column = scope.position(name).is_some() || scope.poisoned.contains(name);
        let field = scope.packets && scope.field(name).is_some();
        let what = match (column, field && !scope.gone.contains_key(name)) {
            (true, _) => "column",
            (false, true) => "field of packets",
            (false, false) => return,
        };
        let message = format!("there is a {what} called `{name}` already");
        let d = Diagnostic::new(Code::ColumnClash, span, message);
        self.report(d.help(format!(
            "choose another name, or drop it before: `project-away {name} | rename {name} = …`"
        )));
    }
}

/// Keeps columns of rows, each with its new name and its old one.
fn reshape(scope: &mut Scope, columns: Vec<(String, String)>, word: Reshaping) -> Stage {
    let mut after = Scope { schema: Default::default(), ..scope.clone() };
    after.poisoned.clear();
    let mut out = Vec::new();
    for (new, old) in columns {
        let sound = scope.schema.position(&old).filter(|_| !scope.poisoned.contains(&old));
        let e = sound.map(|i| Expr::column(i, scope.schema.columns[i].ty.clone()));
        after.put(&new, e.as_ref().map(|e| e.ty.clone()));
        out.extend(e.map(|e| (new, e)));
    }
    *scope = after;
    Stage::Reshape { columns: out, word }
}
