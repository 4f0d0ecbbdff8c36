//! Queries of a library as sources of another: `rtp | where jitter > 30ms`.
//!
//! A name that begins a pipeline, or that `join` and `union` take, and that the query does not
//! define, may be that of a query of the library. Its rows are those that it prints without a name,
//! or else first; those of its lets are asked for by `NAME.LET`. Its definitions stay its own, but
//! for its params, which are given as if the query had them.

use crate::query::Options;
use crate::tree::{LetBody, Pipeline, Stage, Statement, Tree};
use crate::{alert_times, parse};
use std::collections::BTreeSet;
use weir_plan::SourceKind;

/// A query of the library that another one starts from.
#[derive(Debug)]
pub(crate) struct Imported {
    /// As it is named there.
    pub(crate) name: String,
    pub(crate) text: &'static str,
    pub(crate) tree: Tree,
}

/// The queries of the library that a tree names, in the order of their names.
pub(crate) fn imports(tree: &Tree, options: &Options<'_>) -> Vec<Imported> {
    let Some(library) = options.library else { return Vec::new() };
    let mut names = BTreeSet::new();
    let mut lets = BTreeSet::new();
    for statement in &tree.statements {
        match &statement.node {
            Statement::Pipeline(pipeline) => sources(pipeline, &mut names),
            Statement::Let { name, body } => {
                lets.insert(name.node.as_str());
                if let LetBody::Pipeline(pipeline) = body {
                    sources(pipeline, &mut names);
                }
            }
            Statement::Param { .. } | Statement::Broken(_) => {}
        }
    }
    let own = [SourceKind::Packets, SourceKind::FlowRecords].map(SourceKind::name);
    let names = names.into_iter().filter(|name| !lets.contains(name) && !own.contains(name));
    let bases: BTreeSet<&str> = names.map(base).collect();
    let import = |name: &str| {
        let text = library(name)?;
        let mut tree = parse::parse(text).tree;
        alert_times::add(&mut tree);
        Some(Imported { name: name.to_owned(), text, tree })
    };
    bases.into_iter().filter_map(import).collect()
}

/// The name of the query in `NAME.LET`.
fn base(name: &str) -> &str {
    name.split('.').next().unwrap_or(name)
}

/// The names of rows that a pipeline takes.
fn sources<'t>(pipeline: &'t Pipeline, names: &mut BTreeSet<&'t str>) {
    names.insert(&pipeline.source.node);
    for stage in &pipeline.stages {
        match &stage.node {
            Stage::Join(join) => drop(names.insert(&join.right.node)),
            Stage::Union(others) => names.extend(others.iter().map(|name| name.node.as_str())),
            _ => {}
        }
    }
}
