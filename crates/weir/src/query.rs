//! Where the text of a query comes from, and its compilation with messages.

use crate::exit::usage;
use crate::library::{self, Entry, LIBRARY};
use crate::term::Term;
use std::io;
use std::path::{Path, PathBuf};
use weir_engine::functions::Functions;
use weir_lang::{Files, Options, Query};
use weir_plan::Program;

/// Bytes of the largest file that a query may name.
const FILE_MAX: u64 = 256 << 20;

/// The text of a query, and what to call it in messages.
#[derive(Debug)]
pub(crate) struct Source {
    /// A file, `-`, or `-e`.
    pub(crate) name: String,
    /// The text.
    pub(crate) text: String,
}

impl Source {
    /// The query of `-e TEXT`.
    pub(crate) fn from_text(text: &str) -> Source {
        Source { name: "-e".to_owned(), text: text.to_owned() }
    }

    /// A query of the library.
    pub(crate) fn from_library(entry: &Entry) -> Source {
        Source { name: format!("{}.weir", entry.stem), text: entry.text.to_owned() }
    }

    /// The query in a file, or on standard input (`-`).
    pub(crate) fn read(path: &Path) -> anyhow::Result<Source> {
        let name = path.display().to_string();
        let text = if name == "-" {
            io::read_to_string(io::stdin())
        } else {
            std::fs::read_to_string(path)
        };
        match text {
            Ok(text) => Ok(Source { name, text }),
            Err(e) if e.kind() == io::ErrorKind::InvalidData => {
                Err(usage(format!("{name} is not text (a capture is given with -r)")))
            }
            Err(e) => Err(usage(format!("{name}: {e}"))),
        }
    }

    /// The query in a file, on standard input (`-`), or in the library, in this order.
    pub(crate) fn load(word: &str) -> anyhow::Result<Source> {
        if word == "-" || Path::new(word).exists() {
            return Source::read(Path::new(word));
        }
        library::find(word).map(Source::from_library).ok_or_else(|| unknown(word))
    }

    /// The one query that a command was given, as text or as a word.
    pub(crate) fn given(expression: Option<&str>, word: Option<&str>) -> anyhow::Result<Source> {
        match (expression, word) {
            (Some(text), _) => Ok(Source::from_text(text)),
            (None, Some(word)) => Source::load(word),
            (None, None) => Err(usage("no query given: name a file or a query, or use -e TEXT")),
        }
    }

    /// Where the files that the query names are: beside its own file, or else in the working
    /// folder.
    fn files(&self) -> Beside {
        let folder = match self.name.as_str() {
            "-e" | "-" => Path::new(""),
            name => Path::new(name).parent().unwrap_or(Path::new("")),
        };
        Beside(folder.to_owned())
    }

    /// As the language takes it.
    pub(crate) fn query(&self) -> Query<'_> {
        Query { name: &self.name, text: &self.text }
    }
}

/// Files by names that count from a folder.
#[derive(Debug)]
struct Beside(PathBuf);

impl Files for Beside {
    fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        let path = self.0.join(path);
        let cause = |e: io::Error| match e.kind() {
            io::ErrorKind::NotFound => format!("there is no {}", path.display()),
            io::ErrorKind::PermissionDenied => "may not be read".to_owned(),
            _ => e.to_string(),
        };
        let size = std::fs::metadata(&path).map_err(cause)?;
        if !size.is_file() {
            return Err("not a file".to_owned());
        }
        if size.len() > FILE_MAX {
            return Err(format!("larger than {} MiB", FILE_MAX >> 20));
        }
        std::fs::read(&path).map_err(cause)
    }
}

/// Compiles a query. Diagnostics go to standard error; `None`: there were errors among them. A
/// param that is set twice is refused.
pub(crate) fn compile(
    source: &Source,
    params: &[(String, String)],
    functions: &Functions,
    quiet: bool,
    term: &Term,
) -> anyhow::Result<Option<Program>> {
    let twice = |i: &usize| params[..*i].iter().any(|(name, _)| *name == params[*i].0);
    if let Some(i) = (0..params.len()).find(twice) {
        return Err(usage(format!("-p {} is given twice", params[i].0)));
    }
    let options =
        Options { params, signatures: functions.signatures(), files: Some(&source.files()) };
    match weir_lang::compile(&source.query(), &options) {
        Ok(compiled) => {
            if !quiet && !compiled.warnings.is_empty() {
                term.say_text(&weir_lang::render(
                    &compiled.warnings,
                    &source.query(),
                    term.color_err,
                ));
            }
            Ok(Some(compiled.program))
        }
        Err(diagnostics) => {
            term.say_text(&weir_lang::render(&diagnostics, &source.query(), term.color_err));
            Ok(None)
        }
    }
}

fn unknown(word: &str) -> anyhow::Error {
    let names = LIBRARY.iter().flat_map(|e| [e.name, e.stem]);
    let hint = match weir_lang::closest(word, names) {
        Some(name) => format!("did you mean `{name}`?"),
        None => "`weir list` shows the queries that come with Weir".to_owned(),
    };
    usage(format!("{word}: no such file, and no query of that name; {hint}"))
}
