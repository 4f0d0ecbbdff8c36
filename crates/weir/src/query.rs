//! Reads the text of a query, and compiles it with messages.

use crate::exit::{usage, usage_try};
use crate::library::{self, Entry};
use crate::remedy;
use crate::term::Term;
use crate::texts::{from_packets, is_text};
use parking_lot::Mutex;
use std::cell::RefCell;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use weir_capture::write::{FilesInUse, ReadAs};
use weir_engine::functions::Functions;
use weir_lang::limits::TEXT_MAX;
use weir_lang::{Code, Diagnostic, Files, Library, Options, ParamInfo, Query};
use weir_plan::Program;

/// Bytes of the largest file that a query may name.
const FILE_MAX: u64 = 256 << 20;

/// The text of a query, and what to call it in messages.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    /// A file, `-`, or `-e`.
    pub(crate) name: String,
    /// The name of its program: letters, digits, `_` and `-`.
    pub(crate) program: String,
    /// The text.
    pub(crate) text: String,
    /// The files that were read for it.
    pub(crate) read_from: QueryFiles,
    /// Its params, once somebody has asked.
    params: OnceLock<Vec<ParamInfo>>,
}

/// The files that a query comes from: that of its text, and the tables and lists that it names.
/// Clones are of the same query.
#[derive(Clone, Default, Debug)]
pub(crate) struct QueryFiles(Arc<Mutex<Vec<(PathBuf, ReadAs)>>>);

impl QueryFiles {
    /// Notes one that was read.
    fn note(&self, path: &Path, what: ReadAs) {
        let mut all = self.0.lock();
        if all.iter().all(|(other, _)| other != path) {
            all.push((path.to_owned(), what));
        }
    }

    /// Notes them as files that a run reads.
    pub(crate) fn pass_to(&self, in_use: &FilesInUse) {
        self.0.lock().iter().for_each(|(path, what)| in_use.reads(path, *what));
    }
}

/// Reads a text, but not much further than a query may be long: by mistake it may be a capture of
/// any size.
fn read_text(from: impl io::Read) -> io::Result<String> {
    let mut bytes = Vec::new();
    from.take(TEXT_MAX as u64 + 1).read_to_end(&mut bytes)?;
    match String::from_utf8(bytes) {
        Ok(text) => Ok(text),
        // A letter that was cut, of a text that is too long.
        Err(e) if e.utf8_error().error_len().is_none() && e.as_bytes().len() > TEXT_MAX => {
            Ok(String::from_utf8_lossy(e.as_bytes()).into_owned())
        }
        Err(e) => Err(io::Error::new(io::ErrorKind::InvalidData, e)),
    }
}

impl Source {
    /// A text that is in no file.
    pub(crate) fn new(name: String, program: String, text: &str) -> Source {
        let (read_from, params) = (QueryFiles::default(), OnceLock::new());
        Source { name, program, text: text.to_owned(), read_from, params }
    }

    /// The query of `-e TEXT`, the `number`th of `all` that are given so.
    pub(crate) fn from_text(text: &str, number: usize, all: usize) -> Source {
        let text = &from_packets(text);
        match all {
            1 => Source::new("-e".to_owned(), "e".to_owned(), text),
            _ => Source::new(format!("-e {number}"), format!("e{number}"), text),
        }
    }

    /// A query of the library.
    pub(crate) fn from_library(entry: &Entry) -> Source {
        // The files that a text of the library may be given are found from the working folder.
        let stem = entry.stem.rsplit('/').next().unwrap_or(entry.stem);
        let name = format!("{stem}.weir");
        Source::new(name, entry.name.to_owned(), entry.text)
    }

    /// The query in a file, or on standard input (`-`).
    pub(crate) fn read(path: &Path) -> anyhow::Result<Source> {
        let name = path.display().to_string();
        let text = match &*name {
            "-" => read_text(io::stdin().lock()),
            _ => File::open(path).and_then(read_text),
        };
        match text {
            Ok(text) => {
                let source = Source::new(name, program_name(path), &text);
                source.read_from.note(path, ReadAs::Query);
                Ok(source)
            }
            Err(e) if e.kind() == io::ErrorKind::InvalidData => {
                Err(usage(format!("{name} is not a text; to read a capture, use -r {name}")))
            }
            Err(e) => Err(usage(format!("{name}: {e}"))),
        }
    }

    /// The query in a file, on standard input (`-`), in the library, or in the word itself, in this
    /// order. A folder is no query, so it hides none of the library.
    pub(crate) fn load(word: &str) -> anyhow::Result<Source> {
        let is_known = || library::find(word).is_some();
        let path = Path::new(word);
        if word == "-" || path.exists() && !(path.is_dir() && is_known()) {
            return Source::read(Path::new(word));
        }
        if is_text(word) {
            let name = "query".to_owned();
            return Ok(Source::new(name.clone(), name, &from_packets(word)));
        }
        library::find(word).map(Source::from_library).ok_or_else(|| unknown(word))
    }

    /// All queries that a word names: a folder, a group of detectors, or one query. A name of the
    /// library is that query where a folder has it, too: the folder is meant by `NAME/`.
    pub(crate) fn load_all(word: &str) -> anyhow::Result<Vec<Source>> {
        let path = Path::new(word);
        let group = library::detectors(word);
        if path.is_dir() && library::find(word).is_none() {
            let found = folder(path);
            if found.is_ok() || group.is_none() {
                return found;
            }
        }
        match group {
            Some(group) if !path.is_file() && !group.is_empty() => {
                Ok(group.into_iter().map(Source::from_library).collect())
            }
            _ => Ok(vec![Source::load(word)?]),
        }
    }

    /// The options that it is compiled with, but for params, files and rules.
    pub(crate) fn options<'a>(&'a self, functions: &'a Functions) -> Options<'a> {
        let signatures = functions.signatures();
        let library = Some(library::text as Library);
        Options { program: &self.program, signatures, library, ..Options::default() }
    }

    /// Its params, and those of the queries of the library that it starts from.
    pub(crate) fn params(&self) -> &[ParamInfo] {
        self.params.get_or_init(|| weir_lang::all_params(&self.text, library::text))
    }

    /// The folder of the files that the query names: that of its own file, or else the working
    /// folder.
    pub(crate) fn files(&self) -> Beside {
        let folder = match self.name.as_str() {
            "-" => Path::new(""),
            // Texts have names of one part.
            name => Path::new(name).parent().unwrap_or(Path::new("")),
        };
        Beside { folder: folder.to_owned(), read: self.read_from.clone() }
    }

    /// As the language takes it.
    pub(crate) fn query(&self) -> Query<'_> {
        Query { name: &self.name, text: &self.text }
    }
}

/// Files by names relative to a folder; those that are read are noted.
#[derive(Debug)]
pub(crate) struct Beside {
    folder: PathBuf,
    read: QueryFiles,
}

impl Files for Beside {
    fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        let path = self.folder.join(path);
        let cause = |e: io::Error| match e.kind() {
            io::ErrorKind::NotFound => format!("there is no {}", path.display()),
            io::ErrorKind::PermissionDenied => "it may not be read".to_owned(),
            _ => e.to_string(),
        };
        let size = std::fs::metadata(&path).map_err(cause)?;
        if !size.is_file() {
            return Err("it is not a file".to_owned());
        }
        if size.len() > FILE_MAX {
            return Err(format!("it is larger than {} MiB", FILE_MAX >> 20));
        }
        let bytes = std::fs::read(&path).map_err(cause)?;
        self.read.note(&path, ReadAs::OfQuery);
        Ok(bytes)
    }
}

/// The queries in a folder, by name.
fn folder(folder: &Path) -> anyhow::Result<Vec<Source>> {
    let shown = folder.display();
    let entries = std::fs::read_dir(folder).map_err(|e| usage(format!("{shown}: {e}")))?;
    let paths = entries.map(|entry| entry.map(|entry| entry.path()));
    let mut paths: Vec<PathBuf> =
        paths.collect::<Result<_, _>>().map_err(|e| usage(format!("{shown}: {e}")))?;
    paths.retain(|path| path.extension().is_some_and(|e| e == "weir"));
    paths.sort();
    if paths.is_empty() {
        return Err(usage(format!("{shown} is a folder without queries (NAME.weir)")));
    }
    paths.iter().map(|path| Source::read(path)).collect()
}

/// The name of the program of a file: that of the file, without its ending.
fn program_name(path: &Path) -> String {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    match stem.as_ref() {
        "-" => "stdin".to_owned(),
        stem => stem.chars().map(plain).collect(),
    }
}

/// Refuses a param that is set twice.
pub(crate) fn refuse_twice(params: &[(String, String)]) -> anyhow::Result<()> {
    let twice = |i: &usize| params[..*i].iter().any(|(name, _)| *name == params[*i].0);
    match (0..params.len()).find(twice) {
        Some(i) => Err(usage(format!("-p {} is given twice", params[i].0))),
        None => Ok(()),
    }
}

/// Compiles a query. Diagnostics go to standard error; `None`: there were errors among them.
pub(crate) fn compile(
    source: &Source,
    options: &Options<'_>,
    quiet: bool,
    term: &Term,
) -> anyhow::Result<Option<Program>> {
    let files = source.files();
    let options = Options { files: Some(&files), ..*options };
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
            term.remedy(&right_line(source, &options, &diagnostics));
            Ok(None)
        }
    }
}

/// A command line that is right where this query is wrong, or that prints what is said of its kind.
fn right_line(source: &Source, options: &Options<'_>, found: &[Diagnostic]) -> String {
    let mended = weir_lang::mended(&source.query(), options);
    let is_it = |word: &str| from_packets(word) == source.text;
    let line = mended.and_then(|text| remedy::where_meant(is_it, &text));
    if let Some(line) = line.or_else(|| right_param(options, found)) {
        return line;
    }
    let first = found.iter().find(|d| d.is_error());
    let is_of_params = first.is_some_and(|d| matches!(d.code, Code::UnknownParam | Code::BadParam));
    match library::find(&source.program) {
        Some(entry) if is_of_params => remedy::line(["help", entry.name]),
        _ => remedy::reading(&source.text, first.map_or(0, |d| d.span.start)),
    }
}

/// The given command line with the value of a param as its remedy has it.
fn right_param(options: &Options<'_>, found: &[Diagnostic]) -> Option<String> {
    let wrong = found.iter().find(|d| d.code == Code::BadParam)?;
    // Of a duration, the unit was left out.
    let is_duration = wrong.help.as_deref()?.contains("`10s`");
    let (name, old) = options.params.iter().find(|(name, old)| {
        wrong.message.contains(&format!("`{name}`")) && wrong.message.contains(&format!("`{old}`"))
    })?;
    let is_number = is_duration && old.bytes().all(|b| b.is_ascii_digit());
    let right = is_number.then(|| format!("{name}={old}s"))?;
    remedy::with_word(&format!("{name}={old}"), &right)
}

/// A file that a query names.
#[derive(Debug)]
pub(crate) struct ReadFile {
    /// As the query names it.
    pub(crate) path: String,
    pub(crate) bytes: Vec<u8>,
}

/// The files that a query names. Diagnostics go to standard error; `None`: there
/// were errors among them.
pub(crate) fn files(
    source: &Source,
    params: &[(String, String)],
    functions: &Functions,
    term: &Term,
) -> Option<Vec<ReadFile>> {
    let files = Read { beside: source.files(), read: RefCell::default() };
    let options = Options { params, files: Some(&files), ..source.options(functions) };
    match weir_lang::compile(&source.query(), &options) {
        Ok(_) => Some(files.read.into_inner()),
        Err(diagnostics) => {
            term.say_text(&weir_lang::render(&diagnostics, &source.query(), term.color_err));
            None
        }
    }
}

/// Remembers what was read.
#[derive(Debug)]
struct Read {
    beside: Beside,
    read: RefCell<Vec<ReadFile>>,
}

impl Files for Read {
    fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        let bytes = self.beside.read(path)?;
        let mut read = self.read.borrow_mut();
        if read.iter().all(|other| other.path != path) {
            read.push(ReadFile { path: path.to_owned(), bytes: bytes.clone() });
        }
        Ok(bytes)
    }
}

fn unknown(word: &str) -> anyhow::Error {
    let message =
        |hint: &str| format!("{word}: there is no such file, and no query of that name; {hint}");
    if let Some(line) = remedy::as_query(word) {
        return usage_try(message("a query that asks for a condition is `where …`"), Some(line));
    }
    match weir_lang::closest(word, library::names()) {
        Some(name) => {
            let line = remedy::with_word(word, name);
            usage_try(message(&format!("did you mean `{name}`?")), line)
        }
        None => {
            let line = remedy::line(["list"]);
            usage_try(message("`weir list` shows the queries that come with Weir"), Some(line))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_called_as_their_files() {
        for (path, expected) in [
            ("a/syn_flood.weir", "syn_flood"),
            ("a.b.weir", "a_b"),
            ("my query-2", "my_query-2"),
            ("-", "stdin"),
        ] {
            assert_eq!(program_name(Path::new(path)), expected);
        }
    }
}
