//! Helpers of several tests: the repository's files, the shared captures, and a run to values.

#![allow(dead_code, unreachable_pub, reason = "each test file uses a part of it")]

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use weir_capture::records::{RecordPackets, RecordReport};
use weir_engine::counters::Ledger;
use weir_engine::functions::Functions;
use weir_engine::limits::{JUMP_NS, LATENESS_NS};
use weir_engine::reading::Reading;
use weir_engine::rows::Collect;
use weir_engine::run::{Options, RunError, run_to};
use weir_lang::{Query, ReadingRules, compile, render};
use weir_model::TimeRules;
use weir_model::egress::Frame;
use weir_packet::egress::{Egress, Outlet, Sent};
use weir_packet::source::{LinkType, Source, SourceError};
use weir_packet::walk::{self, Headers};
use weir_plan::{Program, SourceKind, Value};

/// The root of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the checkout")
}

/// A file of the repository as text.
pub fn text(path: impl AsRef<Path>) -> String {
    let path = root().join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// All files below a folder of the repository with one of these endings, sorted.
pub fn files(folder: &str, endings: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for entry in entries {
            let path = entry.expect("an entry").path();
            let name = path.file_name().expect("a name").to_string_lossy().into_owned();
            if path.is_dir() {
                if name != "target" && name != "node_modules" && !name.starts_with('.') {
                    folders.push(path);
                }
            } else if endings.iter().any(|e| name.ends_with(e)) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// The queries of the library over packets that are no detectors, sorted.
pub fn queries() -> Vec<PathBuf> {
    let mut all = files("queries", &[".weir"]);
    all.retain(|path| !is_detector(path) && !is_of_records(path));
    all
}

/// Whether a query stands in the folder of those over flow records.
pub fn is_of_records(path: &Path) -> bool {
    path.parent().is_some_and(|folder| folder.ends_with("records"))
}

/// The detectors of the library, sorted.
pub fn detectors() -> Vec<PathBuf> {
    let mut all = files("queries", &[".weir"]);
    all.retain(|path| is_detector(path));
    all
}

/// Whether a query stands in the folder of detectors.
pub fn is_detector(path: &Path) -> bool {
    path.parent().is_some_and(|folder| folder.ends_with("detectors"))
}

/// The values of the lines of a query's header that begin with a word, such as `triggers`.
pub fn header_lines(query: &str, word: &str) -> Vec<String> {
    let header = query.lines().take_while(|l| l.starts_with('#'));
    let prefix = format!("# {word}: ");
    header.filter_map(|l| l.strip_prefix(&prefix)).map(|l| l.trim().to_owned()).collect()
}

/// The captures that the header of a query names, from the root of the repository.
pub fn own_captures(query: &str) -> Vec<String> {
    let words = ["triggers", "quiet", "vector"];
    let lines = words.iter().flat_map(|word| header_lines(query, word));
    let file = |line: String| line.split(' ').next().unwrap_or_default().to_owned();
    lines.map(file).collect()
}

/// The engine of jobs as a library, which is built with the tests.
pub fn native() -> PathBuf {
    let deps = Path::new(env!("CARGO_BIN_EXE_weir")).with_file_name("deps");
    deps.join("libweir_native.so")
}

/// The captures of the repository that were made for no detector.
pub fn fixtures() -> Vec<PathBuf> {
    let mut all = all_fixtures();
    all.retain(|path| !path.starts_with(root().join("fixtures/detectors")));
    assert!(all.len() >= 30, "{} fixtures", all.len());
    all
}

/// All captures of the repository.
pub fn all_fixtures() -> Vec<PathBuf> {
    files("fixtures", &[".pcap", ".pcapng", ".gz", ".zst"])
}

/// A folder to run in, so that what is written does not lie about: it sees the captures and queries
/// of the repository.
pub fn workplace() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for name in ["fixtures", "queries"] {
        std::os::unix::fs::symlink(root().join(name), folder.path().join(name)).expect("links");
    }
    folder
}

/// Calls a function with each item, on as many threads as there are cores. Returns its results in
/// the order of the items.
pub fn map_at_once<T: Sync, R: Send>(items: &[T], each: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let (next, results) = (AtomicUsize::new(0), Mutex::new(BTreeMap::new()));
    let work = || loop {
        let at = next.fetch_add(1, Ordering::Relaxed);
        let Some(item) = items.get(at) else { return };
        let result = each(item);
        results.lock().expect("no other thread panicked").insert(at, result);
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(work);
        }
    });
    results.into_inner().expect("no thread panicked").into_values().collect()
}

/// Says on the terminal, past the test runner's capture, that something was not tested.
pub fn skip(test: &str, why: &str) {
    let _ = writeln!(std::io::stderr().lock(), "SKIPPED {test}: {why}");
}

/// The folder of further captures with their truths (`truth.jsonl`), which `WEIR_CAPTURES` names;
/// `None` after saying that the test is skipped.
pub fn shared(test: &str) -> Option<PathBuf> {
    let Some(folder) = std::env::var_os("WEIR_CAPTURES").map(PathBuf::from) else {
        skip(test, "WEIR_CAPTURES names no folder of further captures");
        return None;
    };
    assert!(folder.join("truth.jsonl").is_file(), "{}: no truth.jsonl", folder.display());
    Some(folder)
}

/// The same, and what tshark says of its version; `None` where it is not installed, either.
pub fn shared_with_tshark(test: &str) -> Option<(PathBuf, String)> {
    let folder = shared(test)?;
    let Ok(version) = std::process::Command::new("tshark").arg("--version").output() else {
        skip(test, "there is no tshark (apt-get install tshark)");
        return None;
    };
    Some((folder, String::from_utf8_lossy(&version.stdout).into_owned()))
}

/// The lines of `truth.jsonl`.
pub fn truths(shared: &Path) -> Vec<serde_json::Value> {
    let text = std::fs::read_to_string(shared.join("truth.jsonl")).expect("truth.jsonl");
    text.lines().map(|l| serde_json::from_str(l).expect("a line of JSON")).collect()
}

/// Whether every link type that a capture declares is decoded.
pub fn supported(truth: &serde_json::Value) -> bool {
    let types = truth["linktypes"].as_array();
    types.is_some_and(|types| {
        types.iter().all(|t| {
            let number = t.as_u64().and_then(|n| u16::try_from(n).ok());
            number.is_some_and(|n| walk::supported(LinkType(n)))
        })
    })
}

/// Compiles a query; panics with its diagnostics.
pub fn program(text: &str, functions: &Functions) -> Program {
    program_by(text, functions, ReadingRules::default())
}

/// The same, where names mean this.
pub fn program_by(text: &str, functions: &Functions, rules: ReadingRules) -> Program {
    let query = Query { name: "test.weir", text };
    let options = weir_lang::Options {
        params: &[],
        program: "test",
        signatures: functions.signatures(),
        files: Some(&Checkout),
        rules,
        ..weir_lang::Options::default()
    };
    match compile(&query, &options) {
        Ok(compiled) => compiled.program,
        Err(diagnostics) => panic!("{}", render(&diagnostics, &query, false)),
    }
}

/// The results of a run.
pub struct Answer {
    pub rows: Vec<(usize, Vec<Value>)>,
    /// The frames that were handed out, by outlet.
    pub frames: Vec<Digest>,
    pub ledger: Ledger,
    pub error: Option<String>,
}

/// A frame that was handed out: where to, link type, time, length on the wire, and a hash of its
/// bytes.
pub type Digest = (Outlet, u16, i64, u32, u64);

fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    hasher.finish()
}

/// Takes frames as digests.
#[derive(Default)]
struct Digests {
    outlets: Vec<Outlet>,
    frames: Vec<Digest>,
}

impl Egress for Digests {
    fn open(&mut self, outlets: &[Outlet]) -> io::Result<()> {
        self.outlets = outlets.to_vec();
        Ok(())
    }

    fn send(&mut self, memory: &[u8], frames: &[Sent]) -> io::Result<()> {
        self.frames.extend(frames.iter().map(|f| {
            let outlet = self.outlets[f.outlet as usize].clone();
            (outlet, f.link.0, f.ts, f.len, hash(f.bytes(memory)))
        }));
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The frames of each outlet in their order.
fn by_outlet(mut frames: Vec<Digest>) -> Vec<Digest> {
    frames.sort_by(|a, b| a.0.cmp(&b.0));
    frames
}

/// How a capture is read.
#[derive(Clone, Copy, Default, Debug)]
pub struct ReadingOptions {
    /// Which packet fields mean.
    pub headers: Headers,
    /// Whether later fragments get the ports of their first.
    pub fragments: bool,
}

/// Runs a program over a capture file.
pub fn answer(program: &Program, capture: &Path, workers: usize) -> Answer {
    answer_of(program, capture, workers, ReadingOptions::default())
}

/// Runs a program over a capture file that is read with some options.
pub fn answer_of(
    program: &Program,
    capture: &Path,
    workers: usize,
    reading: ReadingOptions,
) -> Answer {
    let functions = Functions::default();
    let (mut sink, mut egress) = (Collect::default(), Digests::default());
    let options = Options { workers, ..Options::default() };
    let mut source: Box<dyn Source> = match open(capture, reading) {
        Ok(source) if program.source == SourceKind::FlowRecords => {
            let lateness_ns = 60_000_000_000;
            Box::new(RecordPackets::new(source, lateness_ns, &RecordReport::default()))
        }
        Ok(source) => Box::new(source),
        Err(e) => return failed(&e),
    };
    let ends = (&mut sink as _, &mut egress as _);
    let outcome = run_to(program, &functions, &mut source, ends, &options, &mut |_| {});
    let error = outcome.error.map(|e| match e {
        RunError::Source(e) => e.to_string(),
        e => panic!("{e}"),
    });
    let frames = by_outlet(egress.frames);
    Answer { rows: sink.rows, frames, ledger: outcome.ledger, error }
}

/// The same by the naive model.
pub fn naive_answer(program: &Program, capture: &Path, reading: ReadingOptions) -> Answer {
    let rules = TimeRules { lateness_ns: LATENESS_NS, jump_ns: JUMP_NS };
    let mut source = match open(capture, reading) {
        Ok(source) => source,
        Err(e) => return failed(&e),
    };
    let answer = weir_model::run(program, &Functions::default(), &mut source, &rules);
    let digest = |f: &Frame| (f.outlet.clone(), f.link.0, f.ts, f.len, hash(&f.bytes));
    let frames = by_outlet(answer.frames.iter().map(digest).collect());
    let error = answer.error.map(|e| e.to_string());
    Answer { rows: answer.rows, frames, ledger: answer.ledger, error }
}

/// Opens a capture file that is read with some options.
pub fn open(
    capture: &Path,
    reading: ReadingOptions,
) -> Result<Reading<Box<dyn Source>>, SourceError> {
    let name = capture.to_str().expect("a name in UTF-8");
    let source = weir_capture::open(name, &weir_capture::Options::default())?;
    let read = Reading::new(source).headers(reading.headers);
    Ok(if reading.fragments { read.fragments() } else { read })
}

fn failed(e: &SourceError) -> Answer {
    let (rows, frames) = (Vec::new(), Vec::new());
    Answer { rows, frames, ledger: Ledger::default(), error: Some(e.to_string()) }
}

/// The files of the checkout, by their names from its root.
#[derive(Debug)]
struct Checkout;

impl weir_lang::Files for Checkout {
    fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        std::fs::read(root().join(path)).map_err(|e| e.to_string())
    }
}
