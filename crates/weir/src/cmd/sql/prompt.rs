//! The prompt of `weir sql`: lines that are edited, a history, and names that are completed.

use super::answers::Answers;
use crate::exit::{self, Status};
use crate::library;
use crate::term::Term;
use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Context, Editor, Helper, Highlighter, Hinter};
use std::path::{Path, PathBuf};
use weir_packet::fields::FIELDS;

const GREETING: &str = "\
Statements end with `;`. Tables are files: select ip.src, len from 'x.pcap' limit 5;
`describe 'x.pcap';` lists columns, Tab completes names, Ctrl-D leaves.";

/// Words that are completed besides the names of fields and of queries.
const WORDS: &[&str] = &[
    "select",
    "from",
    "where",
    "group by",
    "order by",
    "having",
    "limit",
    "join",
    "distinct",
    "between",
    "describe",
    "explain",
    "create view",
    "with",
    "union all",
    "count(",
    "sum(",
    "avg(",
    "min(",
    "max(",
    "approx_distinct(",
    "median(",
    "date_bin(",
    "date_trunc(",
    "in_net(",
    "prefix(",
    "ip(",
    "ip_text(",
    "mac(",
    "weir(",
];

/// Reads statements from a terminal until it ends. An error is reported, and the next is read.
pub(super) fn run(answers: &Answers<'_>, term: &Term) -> anyhow::Result<Status> {
    let mut editor = Editor::<Names, FileHistory>::new()?;
    editor.set_helper(Some(Names(names())));
    let history = history();
    if let Some(file) = &history {
        // There is none the first time.
        let _ = editor.load_history(file);
    }
    term.say(GREETING);
    loop {
        let text = match editor.readline("sql> ") {
            Ok(text) => text,
            Err(ReadlineError::Interrupted) => continue,
            Err(ReadlineError::Eof) => break,
            Err(e) => return Err(e.into()),
        };
        if matches!(text.trim().trim_end_matches(';').trim(), "quit" | "exit" | "\\q") {
            break;
        }
        editor.add_history_entry(text.as_str())?;
        if let Some(file) = &history {
            keep(&mut editor, file, term);
        }
        for statement in answers.session.read(&text).unwrap_or_else(|e| {
            term.error(format_args!("{e}"));
            Vec::new()
        }) {
            if let Err(e) = answers.answer(statement) {
                exit::report(&e, term);
            }
        }
    }
    Ok(Status::Ok)
}

/// Keeps the history at once: a terminal may be closed at any time.
fn keep(editor: &mut Editor<Names, FileHistory>, file: &Path, term: &Term) {
    let made = file.parent().map_or(Ok(()), std::fs::create_dir_all);
    if let Err(e) = made.map_err(ReadlineError::from).and_then(|()| editor.save_history(file)) {
        term.warning(format_args!("the history is not kept: {e}"));
    }
}

/// The file of statements of earlier sessions, below the folder for the state of programs (XDG Base
/// Directory Specification); none where it is not known whose they are.
#[expect(clippy::disallowed_methods, reason = "the binary reads the environment")]
fn history() -> Option<PathBuf> {
    let state = std::env::var("XDG_STATE_HOME").ok().filter(|folder| !folder.is_empty());
    let state = state.map(PathBuf::from).or_else(|| {
        let home = std::env::var("HOME").ok().filter(|home| !home.is_empty())?;
        Some(PathBuf::from(home).join(".local/state"))
    });
    Some(state?.join("weir/sql_history"))
}

/// All names that can be completed, in order.
fn names() -> Vec<String> {
    let fields = FIELDS.iter().map(|field| field.name.to_owned());
    let queries = library::names().map(|query| format!("weir('{query}', "));
    let words = WORDS.iter().map(|&word| word.to_owned());
    let mut names: Vec<String> = fields.chain(queries).chain(words).collect();
    names.sort_unstable();
    names
}

#[derive(Helper, Highlighter, Hinter)]
struct Names(Vec<String>);

impl Completer for Names {
    type Candidate = String;

    fn complete(
        &self,
        line: &str,
        at: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<String>)> {
        let before = &line[..at];
        let is_part = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '\'' | '(');
        let end = before.char_indices().rev().find(|(_, c)| !is_part(*c));
        let start = end.map_or(0, |(at, c)| at + c.len_utf8());
        let word = before[start..].to_ascii_lowercase();
        // An opening parenthesis before a name is no part of it.
        let (skip, word) = match word.rsplit_once('(') {
            Some((call, inner)) if call != "weir" => (call.len() + 1, inner),
            _ => (0, word.as_str()),
        };
        let fits = |name: &&String| !word.is_empty() && name.starts_with(word);
        Ok((start + skip, self.0.iter().filter(fits).cloned().collect()))
    }
}

impl Validator for Names {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        let text = context.input().trim();
        Ok(match text.is_empty() || text.ends_with(';') {
            true => ValidationResult::Valid(None),
            false => ValidationResult::Incomplete,
        })
    }
}
