//! A query over a capture: a run of its own, which confines itself before it reads.

use super::refusal::Refusal;
use crate::library;
use crate::shelf::own_command;
use serde_json::{Value, json};
use std::fs::File;
use std::io::{self, Read};
use std::process::{Child, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};
use weir_engine::functions::Functions;
use weir_engine::rows::Output;
use weir_lang::Query;
use weir_plan::Program;

/// Bytes of a query.
const TEXT_MAX: usize = 64 << 10;

/// Bytes of rows, and of what the run says.
const ROWS_MAX: u64 = 8 << 20;
const SAID_MAX: u64 = 64 << 10;

/// How long it may take.
const TIME_MAX: Duration = Duration::from_secs(30);

/// The memory that its state fits into.
const MEMORY: &str = "256m";

/// Runs a query, and gives its rows as lines of JSON.
pub(super) fn run(
    capture: File,
    text: &str,
    params: &Value,
    confines: bool,
) -> Result<(Value, Vec<u8>), Refusal> {
    let params: Vec<(String, String)> = match params {
        Value::Object(all) => {
            let text = |value: &Value| value.as_str().map(str::to_owned);
            let pair = |(name, value): (&String, &Value)| Some((name.clone(), text(value)?));
            let all: Option<Vec<_>> = all.iter().map(pair).collect();
            all.ok_or_else(|| Refusal::wrong("params are texts"))?
        }
        _ => Vec::new(),
    };
    let outputs = Output::of(&checked(text, &params)?);
    let mut command = own_command();
    command.args(["run", "-r", "-", "-o", "json", "--no-progress", "--memory", MEMORY]);
    command.arg(format!("--expression={text}"));
    command.args(params.iter().map(|(name, value)| format!("--param={name}={value}")));
    if !confines {
        command.arg("--no-sandbox");
    }
    command.stdin(capture).stdout(Stdio::piped()).stderr(Stdio::piped());
    let failed = |e: io::Error| Refusal::wrong(format!("the query can't be run: {e}"));
    let child = command.spawn().map_err(failed)?;
    let Ran { rows, said, more, is_late, status } = wait(child).map_err(failed)?;
    if status == Some(2) {
        return Err(Refusal::wrong("the query can't be run over this capture").with_text(said));
    }
    let column =
        |column: &weir_plan::Column| json!({ "name": column.name, "type": column.ty.to_string() });
    let output = |(i, output): (usize, &Output)| {
        let columns: Vec<Value> = output.schema.columns.iter().map(column).collect();
        let number = (i + 1).to_string();
        let name = output.name.clone().unwrap_or(number);
        json!({ "name": name, "columns": columns })
    };
    let outputs: Vec<Value> = outputs.iter().enumerate().map(output).collect();
    let head = json!({
        "outputs": outputs,
        "more": more,
        "cut_short": is_late,
        "failed": status != Some(0) && !more && !is_late,
        "said": said,
    });
    Ok((head, rows))
}

/// The query, which names no file, and sends packets nowhere.
fn checked(text: &str, params: &[(String, String)]) -> Result<Program, Refusal> {
    if text.len() > TEXT_MAX || text.contains('\0') {
        return Err(Refusal::wrong(format!("a query has at most {} KiB", TEXT_MAX >> 10)));
    }
    let functions = Functions::default();
    let query = Query { name: "query", text };
    let options = weir_lang::Options {
        params,
        signatures: functions.signatures(),
        library: Some(library::text),
        ..weir_lang::Options::default()
    };
    let compiled = weir_lang::compile(&query, &options).map_err(|all| {
        let text = weir_lang::render(&all, &query, false);
        Refusal::wrong("the query has errors").with_text(text)
    })?;
    let program = compiled.program;
    if !program.outlets().is_empty() || program.captures().next().is_some() {
        let reason = "packets can't go anywhere from a query over a capture: leave out `pass`, \
                      `forward` and `capture`";
        return Err(Refusal::wrong(reason));
    }
    Ok(program)
}

/// The fate of a run.
struct Ran {
    rows: Vec<u8>,
    said: String,
    /// Whether there were more rows.
    more: bool,
    /// Whether its time was over.
    is_late: bool,
    status: Option<i32>,
}

/// Takes what a run writes, as far as there is room and time.
#[expect(clippy::disallowed_methods, reason = "somebody waits for the answer")]
fn wait(mut child: Child) -> io::Result<Ran> {
    let rows = take(child.stdout.take(), ROWS_MAX);
    let said = take(child.stderr.take(), SAID_MAX);
    let until = Instant::now() + TIME_MAX;
    let left = |until: Instant| until.saturating_duration_since(Instant::now());
    let mut got = rows.recv_timeout(left(until)).ok();
    let (is_late, more) = (got.is_none(), got.as_ref().is_some_and(|(_, more)| *more));
    if is_late || more {
        // Its rows are of no use any more.
        child.kill()?;
        got = got.or_else(|| rows.recv().ok());
    }
    // It may close its output and stay.
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status.code();
        }
        if left(until).is_zero() {
            child.kill()?;
        }
        thread::park_timeout(Duration::from_millis(5));
    };
    let (mut rows, _) = got.unwrap_or_default();
    // The last line may have been cut.
    rows.truncate(rows.iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1));
    let (said, _) = said.recv_timeout(TIME_MAX).unwrap_or_default();
    let said = String::from_utf8_lossy(&said).into_owned();
    Ok(Ran { rows, said, more, is_late, status })
}

/// Reads to the end, or to a number of bytes; then says whether there are more.
fn take(from: Option<impl Read + Send + 'static>, most: u64) -> Receiver<(Vec<u8>, bool)> {
    let (to, taken) = mpsc::channel();
    thread::spawn(move || {
        let Some(mut from) = from else { return };
        let mut bytes = Vec::new();
        // The bytes before a fault are there all the same.
        let _ = from.by_ref().take(most).read_to_end(&mut bytes);
        let more = bytes.len() as u64 == most && from.read(&mut [0]).is_ok_and(|n| n > 0);
        // The receiver may have gone.
        let _ = to.send((bytes, more));
    });
    taken
}
