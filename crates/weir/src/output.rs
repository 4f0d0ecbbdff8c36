//! The sink that fits `-o` and the terminal, and small tables of our own.

use crate::args::{ExportTo, ExportVersion, RowArgs};
use crate::exit::usage;
use crate::term::Term;
use anyhow::Context as _;
use parking_lot::{Mutex, MutexGuard};
use std::fs::{self, File};
use std::io;
use std::net::{ToSocketAddrs as _, UdpSocket};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use weir_archive::StoreOptions;
use weir_capture::write::{FilesInUse, Folder, Made, StoppableWriter, Untouched, WriteError};
use weir_control::Cleanup;
use weir_engine::rows::{Output, Rows, Sink, set_cell};
use weir_packet::limits::BATCH;
use weir_plan::{Column, Program, Schema, Type, Value};
use weir_sink::{
    FORMATS, Format, Holds, Ipfix, Named, Names, RowOptions, Split, TimeFormat, ipfix, json, table,
};

/// The format asked for, or the one that fits where rows go.
pub(crate) fn choose(format: Option<&'static Format>, term: &Term) -> &'static Format {
    format.unwrap_or(if term.stdout_tty { &table::FORMAT } else { &json::FORMAT })
}

/// How many pipelines of a program print rows.
pub(crate) fn printed(program: &Program) -> usize {
    program.pipelines.iter().filter(|p| p.printed).count()
}

/// Leaves the main output of a query, its unnamed one or else its first, to print, if the format
/// that is asked for holds the rows of one. Returns what to tell of that.
pub(crate) fn keep_main(program: &mut Program, rows: &RowArgs) -> Option<String> {
    let format = rows.output.filter(|format| format.holds == Holds::OneOutput)?;
    let acts = !program.outlets().is_empty() || program.captures().next().is_some();
    if acts || rows.go_to_files() || rows.export.is_some() || printed(program) < 2 {
        return None;
    }
    let outputs = program.pipelines.iter().enumerate().filter(|(_, p)| p.printed);
    let main = outputs.clone().find(|(_, p)| p.name.is_none()).or(outputs.clone().next())?.0;
    let name = |at: usize| program.pipelines[at].name.clone().unwrap_or_default();
    let others: Vec<String> =
        outputs.map(|(at, _)| at).filter(|at| *at != main).map(name).collect();
    let named = name(main);
    for (at, pipeline) in program.pipelines.iter_mut().enumerate() {
        pipeline.printed &= at == main;
    }
    program.leave_unread();
    let main = if named.is_empty() { "the query" } else { &named };
    Some(format!(
        "{} holds the rows of one output, and these are those of {main}; --out-dir FOLDER has \
         those of {}, too",
        format.title,
        others.join(", ")
    ))
}

/// The format of rows, if it can hold the outputs of the program, which come and go if it
/// `changes`, and their columns have names that differ.
pub(crate) fn row_format(
    program: &Program,
    rows: &RowArgs,
    changes: bool,
    term: &Term,
) -> anyhow::Result<&'static Format> {
    if rows.store.is_some() && !weir_archive::is_linked() {
        return Err(usage(format!("--store: {}", weir_archive::NOT_LINKED)));
    }
    let printed = printed(program);
    let exported = rows.export.as_ref().map(|to| to.version);
    let folder = rows.out_dir.as_ref().or(rows.store.as_ref());
    let format = match (exported, rows.output, folder) {
        (Some(ExportVersion::Ipfix), ..) => &ipfix::FORMAT,
        (Some(ExportVersion::Netflow9), ..) => &ipfix::NETFLOW9,
        (None, None, Some(_)) => &json::FORMAT,
        (None, chosen, _) => choose(chosen, term),
    };
    if !format.is_text && term.stdout_tty && rows.out_dir.is_none() && rows.export.is_none() {
        let export = if format == &ipfix::FORMAT { "--export HOST:PORT or " } else { "" };
        return Err(usage(format!(
            "-o {} is binary, and standard output is a terminal; redirect it to a file, or use \
             {export}--out-dir FOLDER",
            format.name
        )));
    }
    if (printed > 1 || changes) && !rows.go_to_files() {
        let outputs = match changes {
            true => "outputs come and go".to_owned(),
            false => format!("there are {printed} outputs"),
        };
        one_place(format, &outputs).map_err(usage)?;
    }
    let outputs = Output::of(program);
    Names::from(rows.names).check(&outputs).map_err(|clash| {
        usage(format!("{clash} with these --names; give one another name in the query"))
    })?;
    (format.check)(&outputs).map_err(usage)?;
    Ok(if printed == 0 && !changes { &json::FORMAT } else { format })
}

/// Refuses a format that holds one output where rows of `outputs` go to one place.
fn one_place(format: &Format, outputs: &str) -> Result<(), String> {
    if format.holds == Holds::Outputs {
        return Ok(());
    }
    let several = FORMATS.iter().filter(|format| format.holds == Holds::Outputs);
    let several: Vec<_> = several.map(|format| format!("-o {}", format.name)).collect();
    Err(format!(
        "{outputs}, and {} holds the rows of one; use {}, or --out-dir FOLDER for one file per \
         output",
        format.title,
        several.join(", ")
    ))
}

/// Where `--export` sends rows to.
#[derive(Debug)]
pub(crate) struct Collector {
    socket: File,
    version: ExportVersion,
}

impl Collector {
    /// A socket that is connected to the collector, which need not be there yet. It is written to
    /// as a file is, which the sandbox allows.
    pub(crate) fn connect(to: &ExportTo) -> anyhow::Result<Collector> {
        let cause = || format!("--export {}", to.host);
        let addresses = to.host.to_socket_addrs().with_context(cause)?;
        let mut last = None;
        for address in addresses {
            let any = if address.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
            let socket = UdpSocket::bind(any)
                .and_then(|socket| socket.connect(address).map(|()| socket))
                .map(|socket| File::from(OwnedFd::from(socket)));
            match socket {
                Ok(socket) => return Ok(Collector { socket, version: to.version }),
                Err(e) => last = Some(e),
            }
        }
        let none = || io::Error::new(io::ErrorKind::NotFound, "the name has no address");
        Err(last.unwrap_or_else(none)).with_context(cause)
    }

    /// The same socket once more.
    pub(crate) fn try_clone(&self) -> io::Result<Collector> {
        Ok(Collector { socket: self.socket.try_clone()?, version: self.version })
    }

    /// A sink that sends rows there.
    pub(crate) fn into_sink(self) -> Box<dyn Sink> {
        match self.version {
            ExportVersion::Ipfix => Box::new(Ipfix::datagrams(self.socket)),
            ExportVersion::Netflow9 => Box::new(Ipfix::netflow9(self.socket)),
        }
    }
}

/// A sink that shows rows as soon as it has them.
pub(crate) struct Prompt<'a>(pub(crate) Box<dyn Sink + 'a>);

impl Sink for Prompt<'_> {
    fn open(&mut self, outputs: &[Output]) -> io::Result<()> {
        self.0.open(outputs)
    }

    fn rows(&mut self, output: usize, rows: &Rows) -> io::Result<()> {
        self.0.rows(output, rows)?;
        self.0.flush()
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }

    fn finish(&mut self) -> io::Result<()> {
        self.0.finish()
    }

    fn refused(&self) -> u64 {
        self.0.refused()
    }

    fn unwritten(&self) -> u64 {
        self.0.unwritten()
    }
}

/// The folder that rows are stored below, which is made if need be: where it really is.
pub(crate) fn store_folder(folder: &Path) -> anyhow::Result<PathBuf> {
    let named = || format!("--store {}", folder.display());
    fs::create_dir_all(folder).with_context(named)?;
    folder.canonicalize().with_context(named)
}

/// A sink that stores rows of captures of these names, if they are of any, below a folder.
pub(crate) fn stored(
    folder: &Path,
    captures: &[String],
    options: RowOptions,
    names: Names,
) -> io::Result<Box<dyn Sink>> {
    let RowOptions { addresses, stream: is_live, .. } = options;
    let captures = weir_base::fnv::hash(captures.join("\0").as_bytes());
    let options = StoreOptions { addresses, captures, is_live };
    Ok(Box::new(Named::new(names, weir_archive::store(folder, options)?)))
}

/// A file for rows, which is emptied once it is written to; before that, it is removed again where
/// it was made for them.
pub(crate) struct Fresh {
    file: File,
    unwritten: Unwritten,
    /// Its name, without its ending.
    name: String,
}

/// Files that were made for rows and have none yet. They are removed when that is asked for, or
/// when nobody holds them any more, which may be later than the next file of that name is opened.
#[derive(Clone, Default)]
struct Unwritten(Arc<Mutex<Made>>);

/// Removes these files when it is dropped, unless they were opened for rows.
pub(crate) fn cleanup(files: &[Fresh]) -> Cleanup {
    let mut cleanup = Cleanup::default();
    for file in files {
        let unwritten = file.unwritten();
        cleanup.add(move || unwritten.remove());
    }
    cleanup
}

impl Fresh {
    /// The file, as long as it has no rows.
    fn unwritten(&self) -> Unwritten {
        self.unwritten.clone()
    }
}

impl Unwritten {
    /// Removes those that nobody has opened for rows.
    fn remove(&self) {
        drop(std::mem::take(&mut *self.made()));
    }

    fn made(&self) -> MutexGuard<'_, Made> {
        self.0.lock()
    }
}

/// Names that a run has written files of, and all files that it reads and writes.
#[derive(Clone, Default)]
pub(crate) struct Taken {
    names: Arc<Mutex<Vec<String>>>,
    in_use: FilesInUse,
}

impl Taken {
    /// Of a run that reads and writes these files, too.
    pub(crate) fn among(in_use: &FilesInUse) -> Taken {
        Taken { names: Arc::default(), in_use: in_use.clone() }
    }
}

/// The highest number in the names of files of one output.
const NUMBERS_MAX: u32 = 10_000;

/// Files for outputs in a folder, named after the outputs; the folder is made if need be. A name in
/// `taken` gets a number: what a run wrote it does not overwrite. A file that the run reads is
/// refused.
pub(crate) fn files(
    folder: &Path,
    outputs: &[Output],
    format: &Format,
    taken: &Taken,
) -> anyhow::Result<Vec<Fresh>> {
    fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    each_file(folder, outputs, format, taken, |made, name| made.open(&folder.join(name)))
}

/// The same for programs that come later: files are new, and one that exists takes the next number,
/// too.
pub(crate) fn new_files(
    folder: &Folder,
    outputs: &[Output],
    format: &Format,
    taken: &Taken,
) -> anyhow::Result<Vec<Fresh>> {
    each_file(folder.path(), outputs, format, taken, |made, name| made.create_new(folder, name))
}

/// Opens a file for each output; an error says in which folder.
fn each_file(
    folder: &Path,
    outputs: &[Output],
    format: &Format,
    taken: &Taken,
    open: impl Fn(&mut Made, &str) -> io::Result<File>,
) -> anyhow::Result<Vec<Fresh>> {
    let names_taken = taken.names.lock();
    let file = |(n, output): (usize, &Output)| {
        let base = output.name.clone().unwrap_or_else(|| (n + 1).to_string());
        let numbers = (2..=NUMBERS_MAX).map(|n| format!("{base}-{n}"));
        let names = std::iter::once(base.clone()).chain(numbers);
        let unwritten = Unwritten(Arc::new(Mutex::new(Made::among(&taken.in_use))));
        let mut last = Err(io::ErrorKind::AlreadyExists.into());
        for name in names.filter(|name| !names_taken.contains(name)) {
            last = open(&mut unwritten.made(), &format!("{name}.{}", format.ending));
            match last {
                Ok(file) => return Ok(Fresh { file, unwritten, name }),
                Err(ref e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                Err(_) => break,
            }
        }
        let path = folder.join(format!("{base}.{}", format.ending)).display().to_string();
        Err(WriteError::of(&path)(last.expect_err("no file was opened")).into())
    };
    outputs.iter().enumerate().map(file).collect()
}

/// A sink that writes each output to a file of its own, whose names are taken then. A reader that
/// takes nothing is not waited for once any of `stops` is set.
pub(crate) fn over(
    files: Vec<Fresh>,
    format: &Format,
    options: RowOptions,
    names: Names,
    taken: &Taken,
    stops: &[Arc<AtomicBool>],
) -> Split<'static> {
    let options = RowOptions { color: false, titles: false, ..options };
    let sinks = files.into_iter().map(|Fresh { file, unwritten, name }| {
        let again = file.try_clone().map(Untouched::new);
        let sink = format.sink(StoppableWriter::new(file, stops), options, names);
        Box::new(Emptied { file: again, unwritten, name, taken: taken.clone(), sink })
            as Box<dyn Sink>
    });
    Split::new(sinks.collect())
}

/// A sink over a file that is emptied when it is opened.
struct Emptied<'a> {
    /// The same file; why there is none.
    file: io::Result<Untouched>,
    unwritten: Unwritten,
    name: String,
    taken: Taken,
    sink: Box<dyn Sink + 'a>,
}

impl Sink for Emptied<'_> {
    fn open(&mut self, outputs: &[Output]) -> io::Result<()> {
        let file = std::mem::replace(&mut self.file, Err(io::ErrorKind::NotFound.into()))?;
        // From here on it is not removed.
        self.unwritten.made().keep();
        file.begin()?;
        self.taken.names.lock().push(self.name.clone());
        self.sink.open(outputs)
    }

    fn rows(&mut self, output: usize, rows: &Rows) -> io::Result<()> {
        self.sink.rows(output, rows)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.sink.flush()
    }

    fn finish(&mut self) -> io::Result<()> {
        self.sink.finish()
    }

    fn refused(&self) -> u64 {
        self.sink.refused()
    }

    fn unwritten(&self) -> u64 {
        self.sink.unwritten()
    }
}

/// Prints rows of text on standard output the way the rows of a query are printed. An empty text is
/// an absent value.
pub(crate) fn print<const N: usize>(
    columns: [&str; N],
    cells: &[[String; N]],
    format: Option<&'static Format>,
    term: &Term,
) -> io::Result<()> {
    let cell = |text: &String| match text.as_str() {
        "" => Value::Absent,
        text => Value::Str(text.into()),
    };
    let rows: Vec<[Value; N]> = cells.iter().map(|row| row.each_ref().map(cell)).collect();
    print_values(columns.map(|name| (name, Type::Str)), &rows, format, term)
}

/// Prints rows of values of these types on standard output the way the rows of a query are printed.
pub(crate) fn print_values<const N: usize>(
    columns: [(&str, Type); N],
    cells: &[[Value; N]],
    format: Option<&'static Format>,
    term: &Term,
) -> io::Result<()> {
    let columns = columns.map(|(name, ty)| Column { name: name.to_owned(), ty }).to_vec();
    let output = Output {
        name: None,
        schema: Schema { columns },
        keys: Vec::new(),
        capture: None,
        metrics: Vec::new(),
    };
    let options =
        RowOptions { time: TimeFormat::default(), color: term.color_out, ..RowOptions::default() };
    let mut sink = choose(format, term).sink(io::stdout().lock(), options, Names::Native);
    sink.open(std::slice::from_ref(&output))?;
    for chunk in cells.chunks(BATCH) {
        let mut rows = Rows::new(&output.schema);
        for (i, row) in chunk.iter().enumerate() {
            for (column, value) in rows.columns.iter_mut().zip(row) {
                set_cell(column, i, value, &mut rows.arena);
            }
        }
        rows.len = chunk.len();
        sink.rows(0, &rows)?;
    }
    sink.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program whose sink is slow to let go of its files does not take those of the next.
    #[test]
    fn what_was_removed_may_be_made_again_at_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let name = Some("new".to_owned());
        let outputs = [Output {
            name,
            schema: Schema::default(),
            keys: Vec::new(),
            capture: None,
            metrics: Vec::new(),
        }];
        let taken = Taken::default();
        let make = || files(folder.path(), &outputs, &json::FORMAT, &taken).expect("are made");
        let sink =
            |files| over(files, &json::FORMAT, RowOptions::default(), Names::Native, &taken, &[]);
        let refused = make();
        let unwritten = refused[0].unwritten();
        let slow = sink(refused);
        let path = folder.path().join("new.jsonl");
        assert!(path.exists());
        unwritten.remove();
        assert!(!path.exists());
        let mut next = sink(make());
        drop(slow);
        assert!(path.exists());
        next.open(&outputs).expect("opens");
        // One that has begun is not removed any more.
        unwritten.remove();
        drop(next);
        assert!(path.exists());
    }
}
