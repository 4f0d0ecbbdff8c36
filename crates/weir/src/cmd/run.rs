//! `weir run`: a query over a capture, to rows and a ledger.

use crate::args::{Format, RunArgs, RunOptions};
use crate::exit::{Status, usage};
use crate::progress::Progress;
use crate::query::{self, Source as Text};
use crate::source::{Stream, Take};
use crate::term::Term;
use crate::{ledger, output, signals};
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use weir_capture::bpf::{Filter, FilterError};
use weir_engine::fragments::Counts;
use weir_engine::functions::Functions;
use weir_engine::reading::Reading;
use weir_engine::run::{Options, Outcome, RunError};
use weir_packet::source::Source;
use weir_plan::Program;
use weir_sink::table::TableOptions;

/// A query, what it reads, and how.
pub(crate) struct Job {
    /// The text of the query.
    pub(crate) source: Text,
    /// The capture filter; empty for none.
    pub(crate) filter: String,
    /// Everything else.
    pub(crate) options: RunOptions,
}

/// Runs `weir run`.
pub(crate) fn run(args: RunArgs, term: &Term) -> anyhow::Result<Status> {
    let RunArgs { expression, words, options } = args;
    options.supported()?;
    if expression.is_none() && words.first().is_some_and(|w| w == "-") && options.reads_stdin() {
        return Err(usage(
            "standard input can't be both the query and the capture; use -e or a file",
        ));
    }
    let (source, filter) = match (expression, words.split_first()) {
        (None, Some((query, filter))) => (Text::load(query)?, filter.join(" ")),
        (text, _) => (Text::given(text.as_deref(), None)?, words.join(" ")),
    };
    job(Job { source, filter, options }, term)
}

/// Checks and runs a job.
pub(crate) fn job(job: Job, term: &Term) -> anyhow::Result<Status> {
    let Job { source, filter, options } = job;
    options.supported()?;
    one_capture(&options.read, &filter)?;
    let functions = Functions::default();
    let compiled = query::compile(&source, &options.params, &functions, options.quiet, term)?;
    let Some(program) = compiled else { return Ok(Status::Usage) };
    let format = output::choose(options.output, term);
    let printed = program.pipelines.iter().filter(|p| p.printed).count();
    if format == Format::Csv && printed > 1 {
        return Err(usage(format!(
            "the query has {printed} outputs and CSV has one header; use -o json or -o table"
        )));
    }
    let filter = match filter.as_str() {
        "" => None,
        text => Some(Filter::new(text).map_err(filter_error)?),
    };
    if options.test {
        return Ok(Status::Ok);
    }
    let [capture] = options.read.as_slice() else {
        return Err(usage("no capture given: use -r CAPTURE"));
    };
    if options.verbose {
        term.say_text(&weir_plan::print::explain(&program, options.workers.get()));
    }
    let run = Run { program, functions, capture, filter, format, options: &options, term };
    run.start()
}

/// Refuses a second capture, given with -r or, as `-r *.pcap` does, as if it were a filter.
fn one_capture(captures: &[String], filter: &str) -> anyhow::Result<()> {
    if captures.len() > 1 {
        return Err(usage("one capture at a time: give -r once (mergecap joins files)"));
    }
    // A file may bear the name of a word that begins filters; those are of letters and digits.
    let word = filter.split_whitespace().next().unwrap_or_default();
    let keyword = word.bytes().all(|b| b.is_ascii_alphanumeric());
    if !keyword && Path::new(word).is_file() {
        return Err(usage(format!(
            "one capture at a time: {word} is a file, not a capture filter (mergecap joins files)"
        )));
    }
    Ok(())
}

/// A refused expression is a wrong argument; a missing libpcap is not.
fn filter_error(e: FilterError) -> anyhow::Error {
    match e {
        FilterError::Expression { .. } => usage(e.to_string()),
        _ => e.into(),
    }
}

/// Everything that a run needs, checked.
struct Run<'a> {
    program: Program,
    functions: Functions,
    capture: &'a str,
    filter: Option<Filter>,
    format: Format,
    options: &'a RunOptions,
    term: &'a Term,
}

impl Run<'_> {
    fn start(mut self) -> anyhow::Result<Status> {
        let stop = Arc::new(AtomicBool::new(false));
        let stream = is_stream(self.capture);
        let mut source =
            Reading::new(self.source(stream, &stop)?).headers(self.options.headers.into());
        if self.options.fragments {
            source = source.fragments();
        }
        let mut progress = self.progress(stream);
        let stdout = io::stdout().lock();
        let out: Box<dyn Write + '_> = match &progress {
            Some(progress) => Box::new(progress.around(stdout)),
            None => Box::new(stdout),
        };
        let table =
            TableOptions { time: self.options.time.into(), color: self.term.color_out, stream };
        let mut sink = output::sink(self.format, out, table);
        let mut options = Options {
            workers: self.options.workers.get(),
            groups_hint: self.options.groups,
            stop: Some(Arc::clone(&stop)),
            ..Options::default()
        };
        if let Some(lateness_ns) = self.options.lateness {
            options.lateness_ns = lateness_ns;
        }
        let outcome = weir_engine::run::run(
            &self.program,
            &self.functions,
            &mut source,
            &mut *sink,
            &options,
            &mut |account| {
                if let Some(progress) = &mut progress {
                    progress.update(account);
                }
            },
        );
        drop(sink);
        if let Some(progress) = &progress {
            progress.finish();
        }
        self.end(outcome, source.counts(), stop.load(Ordering::Relaxed))
    }

    /// Opens the capture and lets signals end its reading.
    fn source(&mut self, stream: bool, stop: &Arc<AtomicBool>) -> anyhow::Result<Box<dyn Source>> {
        let capture = self.capture.to_owned();
        let options = weir_capture::Options { filter: self.filter.take(), ..Default::default() };
        let open = move || weir_capture::open(&capture, &options);
        let source: Box<dyn Source> = if stream {
            let (source, end) = Stream::start(open)?;
            signals::watch(stop, move || end.end())?;
            Box::new(source)
        } else {
            signals::watch(stop, || ())?;
            open()?
        };
        Ok(match self.options.count {
            Some(n) => Box::new(Take::new(source, n)),
            None => source,
        })
    }

    /// A progress bar, where there is a length to measure by and somebody to see it.
    fn progress(&self, stream: bool) -> Option<Progress> {
        let wanted =
            !stream && self.term.stderr_tty && !self.options.quiet && !self.options.no_progress;
        let total = wanted.then(|| weir_capture::size_hint(self.capture)).flatten()?;
        Some(Progress::new(total))
    }

    /// Prints the ledger, then what ended the run early.
    fn end(
        &self,
        outcome: Outcome,
        fragments: Option<Counts>,
        interrupted: bool,
    ) -> anyhow::Result<Status> {
        // The ledger of a run that a closed pipe cut short interests nobody.
        let unread = matches!(
            &outcome.error,
            Some(RunError::Sink(e)) if e.kind() == io::ErrorKind::BrokenPipe
        );
        if !self.options.quiet && !unread {
            if self.term.stdout_tty && self.term.stderr_tty {
                self.term.say("");
            }
            self.term.say_text(&ledger::render(&outcome.ledger));
            if let Some(counts) = fragments {
                self.term.say(ledger::fragments(&counts));
            }
            if interrupted {
                self.term.say("interrupted");
            }
        }
        match outcome.error {
            Some(e) => Err(e.into()),
            None => Ok(Status::Ok),
        }
    }
}

/// Whether reading may wait for somebody who writes: standard input, or a named pipe.
fn is_stream(capture: &str) -> bool {
    capture == "-" || std::fs::metadata(capture).is_ok_and(|m| !m.is_file())
}
