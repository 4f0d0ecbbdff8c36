//! `weir ctl`: asks a run that listens on a control socket.

use crate::args::ctl::{Ask, CtlArgs, GivenArgs, SuppressArgs};
use crate::exit::{Status, usage};
use crate::output;
use crate::query::{self, ReadFile, Source};
use crate::site::Site;
use crate::term::Term;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use weir_control::{
    AskError, Attached, Counts, ProgramState, QueryText, Reply, Request, SuppressionState,
};
use weir_engine::functions::Functions;
use weir_plan::{Type, Value};
use weir_sink::{Format, json, table};

/// Runs `weir ctl`.
pub(crate) fn run(args: CtlArgs, term: &Term) -> anyhow::Result<Status> {
    let socket = weir_control::socket(args.socket);
    let (request, format) = match args.ask {
        Ask::List(listed) => (Request::List, listed.output),
        Ask::Stats(listed) => (Request::Stats, listed.output),
        Ask::Suppressions(listed) => (Request::Suppressions, listed.output),
        Ask::Suppress(args) => (Request::Suppress { line: line(args)? }, None),
        Ask::Unsuppress { line } => (Request::Unsuppress { line }, None),
        Ask::ReloadSuppressions { files } => {
            (Request::ReloadSuppressions { files: attached(&files)? }, None)
        }
        Ask::Remove { name } => (Request::Remove { name }, None),
        Ask::Add(add) => {
            let Some(mut text) = text(add.query, add.given, term)? else {
                return Ok(Status::Usage);
            };
            text.name = add.name.unwrap_or(text.name);
            (Request::Add(text), None)
        }
        Ask::Replace(replace) => {
            let Some(text) = text(replace.query, replace.given, term)? else {
                return Ok(Status::Usage);
            };
            (Request::Replace(QueryText { name: replace.name, ..text }), None)
        }
    };
    let lists = matches!(request, Request::List);
    let lists_lines = matches!(request, Request::Suppressions);
    let Reply { error, text, programs, suppressions, counts } = ask(&socket, request)?;
    match counts {
        Some(counts) if error.is_none() => show_counts(&counts, &text, format, term)?,
        _ => term.say_text(&text),
    }
    if let Some(error) = error {
        term.error(format_args!("{error}"));
        return Ok(Status::Failed);
    }
    if lists {
        show_programs(&programs, format, term)?;
    }
    if lists_lines {
        let row = |state: SuppressionState| [state.line, state.from];
        let rows: Vec<[String; 2]> = suppressions.into_iter().map(row).collect();
        output::print(["suppression", "from"], &rows, format, term)?;
    }
    Ok(Status::Ok)
}

/// A line that leaves alerts out, for a while if that is asked for.
#[expect(clippy::disallowed_methods, reason = "people say how long from now on")]
fn line(args: SuppressArgs) -> anyhow::Result<String> {
    let SuppressArgs { line, span } = args;
    let read = weir_lang::suppression(&line).map_err(|cause| usage(format!("{line}: {cause}")))?;
    let Some(mut entry) = read else {
        return Err(usage("say which alerts: 'RULE COLUMN=VALUE'"));
    };
    if let Some(span) = span {
        if entry.until.is_some() {
            return Err(usage("`until` and --for both say how long"));
        }
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let now = i64::try_from(now.as_nanos()).unwrap_or(i64::MAX);
        entry.until = Some(now.saturating_add(span));
    }
    Ok(entry.to_string())
}

/// Files with what is in them.
fn attached(paths: &[PathBuf]) -> anyhow::Result<Vec<Attached>> {
    let file = |path: &PathBuf| {
        let name = path.display().to_string();
        let bytes = std::fs::read(path).map_err(|e| usage(format!("{name}: {e}")))?;
        Ok(Attached { path: name, len: bytes.len() as u64, bytes })
    };
    paths.iter().map(file).collect()
}

/// The query, with the files that it names; `None` where it has errors, which were shown.
fn text(word: Option<String>, given: GivenArgs, term: &Term) -> anyhow::Result<Option<QueryText>> {
    let source = match (given.expression, word) {
        (Some(text), _) => Source::from_text(&text, 1, 1),
        (None, Some(word)) => Source::load(&word)?,
        (None, None) => return Err(usage("no query given: name a file or a query, or use -e")),
    };
    query::refuse_twice(&given.params)?;
    let functions = Functions::default();
    let (mut params, site) = (given.params, Site::read(given.site.site.as_deref(), term)?);
    let known = weir_lang::params(&source.text);
    params.extend(site.values(&source.program, &known, &params, &source.files())?);
    let Some(files) = query::files(&source, &params, &functions, term) else {
        return Ok(None);
    };
    let attached = |ReadFile { path, bytes }| Attached { path, len: bytes.len() as u64, bytes };
    Ok(Some(QueryText {
        name: source.program,
        source: source.name,
        text: source.text,
        params,
        files: files.into_iter().map(attached).collect(),
    }))
}

fn ask(socket: &Path, request: Request) -> anyhow::Result<Reply> {
    let shown = socket.display();
    weir_control::ask(socket, request).map_err(|e| match e {
        AskError::NoRun => anyhow::anyhow!(
            "{shown}: no run listens there; start one with `weir run --control={shown} …`, or \
             name another socket with -S"
        ),
        AskError::Denied(e) => anyhow::anyhow!(
            "{shown}: {e}; only users who may write to the socket may change the run"
        ),
        e => anyhow::anyhow!("{shown}: {e}"),
    })
}

fn show_programs(
    programs: &[ProgramState],
    format: Option<&'static Format>,
    term: &Term,
) -> io::Result<()> {
    let count = |n: u64| Value::Int(i64::try_from(n).unwrap_or(i64::MAX));
    let row = |state: &ProgramState| {
        let since = i64::try_from(state.since).unwrap_or(0).saturating_mul(1_000_000_000);
        let failed = state.failed.as_ref().map(|reason| format!("failed: {reason}"));
        [
            Value::Str(state.name.as_str().into()),
            Value::Str(state.source.as_str().into()),
            Value::Time(since),
            count(state.rows),
            count(state.refused),
            Value::Str(failed.as_deref().unwrap_or("runs").into()),
        ]
    };
    let rows: Vec<[Value; 6]> = programs.iter().map(row).collect();
    let columns = [
        ("name", Type::Str),
        ("query", Type::Str),
        ("since", Type::Time),
        ("rows", Type::Int),
        ("refused", Type::Int),
        ("state", Type::Str),
    ];
    output::print_values(columns, &rows, format, term)
}

/// Prints counts for people as a run prints them, else as one JSON object.
fn show_counts(
    counts: &Counts,
    text: &str,
    format: Option<&'static Format>,
    term: &Term,
) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    let format = output::choose(format, term);
    if *format == table::FORMAT {
        out.write_all(text.as_bytes())?;
    } else if *format == json::FORMAT {
        serde_json::to_writer(&mut out, counts)?;
        out.write_all(b"\n")?;
    } else {
        return Err(usage("counts are written with -o table or -o json"));
    }
    Ok(out.flush()?)
}
