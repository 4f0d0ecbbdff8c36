//! Pipelines of a query of the library, before those of the query that starts from it.

use super::Checker;
use super::query::{names_of_lets, source_of};
use crate::diagnostic::{Code, Diagnostic, Span};
use crate::import::Imported;
use crate::names::{Definitions, Meaning};
use crate::query::Options;
use weir_plan::{Input, Stage};

impl<'t> Checker<'t> {
    /// Checks the statements of a query of the library, whose rows are known by its name from then
    /// on, and those of its lets by `NAME.LET`.
    pub(super) fn import(&mut self, import: &'t Imported, options: &Options<'t>) {
        let outside = std::mem::take(&mut self.definitions);
        let (text, source) = (std::mem::replace(&mut self.text, import.text), self.source);
        let reported = self.diagnostics.len();
        self.below = names_of_lets(&import.tree);
        self.source = source_of(&import.tree, &self.below);
        let (first, kind) = (self.built.len(), self.source);
        for statement in &import.tree.statements {
            self.statement(&statement.node, options);
        }
        let inside: Definitions<'t> = std::mem::replace(&mut self.definitions, outside);
        (self.text, self.source) = (text, source);
        // It compiles by itself, so that what is wrong is what it was given.
        let wrong = self.diagnostics.drain(reported..).find(Diagnostic::is_error);
        if let Some(mut d) = wrong {
            d.span = Span::NOWHERE;
            d.notes.clear();
            self.report(d.note(format!("in `{}`, which this query starts from", import.name)));
        }
        // A pipeline without a name that is read is the beginning of another one.
        let outputs = |number: &usize| {
            let built = &self.built[*number];
            !built.read || built.print.is_some()
        };
        let mut all = (first..self.built.len()).filter(outputs);
        let unnamed = all.clone().find(|number| self.built[*number].name.is_none());
        let main = unnamed.or_else(|| all.next()).unwrap_or(first);
        self.imported.insert(import.name.clone(), (main, kind));
        for (name, definition) in inside.iter() {
            if let Meaning::Pipeline(number) = definition.meaning {
                self.imported.insert(format!("{}.{name}", import.name), (number, kind));
            }
        }
        for built in &mut self.built[first..] {
            built.is_imported = true;
            built.name = Some(match &built.name {
                Some(name) => format!("{}.{name}", import.name),
                None => import.name.clone(),
            });
            // They are places in another text.
            built.scope.forget_places();
            built.end = built.end.map(|(_, word)| (Span::NOWHERE, word));
            (built.read, built.print, built.idle_edit) = (true, None, None);
        }
    }

    /// The pipeline of the library that is called so, whose rows a place takes.
    pub(super) fn imported(&mut self, word: &str, place: Span) -> Option<usize> {
        let (number, kind) = *self.imported.get(word)?;
        if kind != self.source {
            let message =
                format!("`{word}` reads {}, and this query {}", kind.name(), self.source.name());
            let d = Diagnostic::new(Code::MixedSources, place, message);
            self.report(d.help("make two queries, and run each over its own source"));
        }
        Some(number)
    }

    /// Leaves out pipelines of the library that no other one needs.
    pub(super) fn leave_unneeded(&mut self) {
        let mut needed = vec![false; self.built.len()];
        for number in (0..self.built.len()).rev() {
            let built = &mut self.built[number];
            if built.is_imported && !needed[number] {
                built.rows_read = false;
                continue;
            }
            if let Input::Pipeline(other) = built.input {
                needed[other] = true;
            }
            match built.stages.first() {
                Some(Stage::Join(join)) => needed[join.right] = true,
                Some(Stage::Union(union)) => union.others.iter().for_each(|at| needed[*at] = true),
                _ => {}
            }
        }
    }
}
