//! The checker: what it knows of a query, and how it reports.

use crate::diagnostic::{Diagnostic, Note, Span};
use crate::files::Files;
use crate::limits::DIAGNOSTICS_MAX;
use crate::names::{Definitions, Scope};
use crate::query::{Options, ReadingRules};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use weir_plan::table::Table;
use weir_plan::{Input, Signatures, SourceKind, Type};

/// The facts known of a query while it is checked.
pub(super) struct Checker<'t> {
    pub(super) text: &'t str,
    /// The kind of source that the query reads.
    pub(super) source: SourceKind,
    pub(super) signatures: &'t Signatures,
    pub(super) files: Option<&'t dyn Files>,
    pub(super) rules: ReadingRules,
    /// The files and tables that were read.
    pub(super) read: ReadFiles,
    pub(super) definitions: Definitions<'t>,
    /// The lets that are not defined yet, and where they are.
    pub(super) below: BTreeMap<&'t str, Span>,
    pub(super) built: Vec<Built>,
    /// Pipelines of queries of the library, by name, and what these read.
    pub(super) imported: BTreeMap<String, (usize, SourceKind)>,
    pub(super) diagnostics: Vec<Diagnostic>,
    /// Nodes visited of the expression being checked, lets expanded.
    pub(super) nodes: usize,
    /// Members of the sets visited so far, of the whole query, lets expanded.
    pub(super) members: usize,
    /// Regular expressions so far.
    pub(super) patterns: usize,
    /// Nesting of the node being checked.
    pub(super) nesting: usize,
    /// Where the first `anonymize` stands that was checked so far.
    pub(super) anonymizes: Option<Span>,
    /// The name and place of the let being expanded, seen from outside.
    pub(super) alias: Option<(&'t str, Span)>,
}

/// A pipeline, checked.
pub(super) struct Built {
    pub(super) name: Option<String>,
    /// Whether it is of a query of the library, and so only there for others.
    pub(super) is_imported: bool,
    pub(super) input: Input,
    pub(super) stages: Vec<weir_plan::Stage>,
    /// The scope of a further stage.
    pub(super) scope: Scope,
    /// Whether another pipeline starts from it.
    pub(super) read: bool,
    /// Whether another pipeline takes its rows, rather than its packets and stages.
    pub(super) rows_read: bool,
    /// Where it says `print`.
    pub(super) print: Option<Span>,
    /// After which stage there are no rows, since all packets went out.
    pub(super) end: Option<(Span, &'static str)>,
    /// The last `trim` or `tag` that nothing went out after.
    pub(super) idle_edit: Option<Span>,
}

/// The files and tables that were read for a query so far, each once.
#[derive(Default)]
pub(super) struct ReadFiles {
    pub(super) files: Vec<(String, Option<Rc<Vec<u8>>>)>,
    pub(super) tables: Vec<(Type, Arc<Table>)>,
}

impl<'t> Checker<'t> {
    /// A checker that knows of nothing in the text yet.
    pub(super) fn new(text: &'t str, options: &Options<'t>) -> Checker<'t> {
        Checker {
            text,
            source: SourceKind::Packets,
            signatures: options.signatures,
            files: options.files,
            rules: options.rules,
            read: ReadFiles::default(),
            definitions: Definitions::default(),
            below: BTreeMap::new(),
            built: Vec::new(),
            imported: BTreeMap::new(),
            diagnostics: Vec::new(),
            nodes: 0,
            members: 0,
            patterns: 0,
            nesting: 0,
            anonymizes: None,
            alias: None,
        }
    }

    /// Reports a diagnostic. One from within a let is moved to where the let is used: there it is
    /// wrong, since by itself it was fine.
    pub(super) fn report(&mut self, mut d: Diagnostic) {
        if let Some((name, span)) = self.alias {
            if !d.is_error() {
                return;
            }
            let inner = std::mem::replace(&mut d.span, span);
            d.label = format!("through `{name}`");
            d.notes.insert(0, Note { span: Some(inner), text: "here".into() });
        }
        // A place in a query of the library can't be shown.
        for note in d.notes.iter_mut().filter(|note| note.span == Some(Span::NOWHERE)) {
            note.span = None;
        }
        // Warnings leave room for as many errors: one that is left out would not stop the query.
        let alike = self.diagnostics.iter().filter(|other| other.is_error() == d.is_error());
        if alike.count() < DIAGNOSTICS_MAX {
            self.diagnostics.push(d);
        }
    }
}
