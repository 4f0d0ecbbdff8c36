//! Where the rows of a run go.

use super::row_files::{ProgramFiles, RowFiles};
use super::session::Run;
use crate::control::{self, Limits};
use crate::output::{self, Collector, Taken};
use crate::progress::Progress;
use crate::records;
use crate::stats::Stats;
use std::fs::File;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use weir_base::full::WhenFull;
use weir_capture::write::StoppableWriter;
use weir_control::{
    Answers, ChangeBy, Cleanup, MakeSink, NewSink, PendingChanges, ProgramSinks, Registry,
    RowTarget, Rules, RunningProgram, Server, SiteParams, Suppressions,
};
use weir_engine::discard::Discard;
use weir_engine::rows::Sink;
use weir_engine::run::Changes;
use weir_partitions::up::RowsOut;
use weir_sink::queue::Queue;
use weir_sink::{Named, RowOptions};

/// Where the rows of a run go.
pub(super) struct RunSink {
    pub(super) sink: Box<dyn Sink>,
    /// Removes the files that were made for rows and got none.
    pub(super) cleanup: Cleanup,
    /// The answers to clients, where programs may change.
    pub(super) answers: Option<Arc<Answers>>,
}

/// The control over the programs of a run, which change on demand of a server.
pub(super) struct Control<'a> {
    pub(super) server: Option<&'a Server>,
    pub(super) changes: &'a Arc<Changes>,
    pub(super) stats: &'a Stats,
    /// Whether the run keeps the last packets.
    pub(super) keeps_packets: bool,
    /// Values for the params of programs that are added later.
    pub(super) site: SiteParams,
    /// Where programs make files of rows, if they do.
    pub(super) files: RowFiles,
}

impl Run<'_> {
    /// The sink for rows: standard output, or files.
    pub(super) fn sink(
        &self,
        files: RowFiles,
        progress: Option<&Progress>,
        options: RowOptions,
    ) -> anyhow::Result<Box<dyn Sink>> {
        let (names, format) = (self.options.rows.names.into(), self.format);
        let ending = Arc::new(AtomicBool::new(false));
        let stops = [Arc::clone(&self.stop), Arc::clone(&ending)];
        let stdout = StoppableWriter::stdout(&stops)?;
        let collector = self.collector.as_ref().map(Collector::try_clone).transpose()?;
        let pipe = self.rows_pipe.as_ref().map(File::try_clone).transpose()?;
        let pipe = pipe.map(|pipe| StoppableWriter::new(pipe, &stops));
        let captures = self.options.read.clone();
        let sink = move |stdout: Box<dyn Write>| -> io::Result<Box<dyn Sink>> {
            if let Some(pipe) = pipe {
                let rows = RowsOut::new(pipe, options.time);
                return Ok(Box::new(Named::new(names, Box::new(rows))));
            }
            match (files, collector) {
                (_, Some(collector)) => Ok(collector.into_sink()),
                (RowFiles::Open(files), None) => {
                    let taken = Taken::default();
                    Ok(Box::new(output::over(files, format, options, names, &taken, &stops)))
                }
                (RowFiles::Stored(folder), None) => {
                    output::stored(&folder, &captures, options, names)
                }
                (RowFiles::None | RowFiles::PerProgram(_), None) => {
                    Ok(format.sink(stdout, options, names))
                }
            }
        };
        if self.drops() {
            let sink = move || sink(Box::new(stdout));
            let mut queue = Queue::start(sink, WhenFull::LeaveOut, self.options.sink_queue)?;
            if self.options.rows.store.is_some() {
                queue = queue.waited_for();
            }
            return Ok(Box::new(queue.ending_by(ending)));
        }
        Ok(sink(match progress {
            Some(progress) => Box::new(progress.around(stdout)),
            None => Box::new(stdout),
        })?)
    }

    /// Writes rows as soon as they are emitted, if that is asked for.
    pub(super) fn prompt(&self, sink: Box<dyn Sink>) -> Box<dyn Sink> {
        match self.options.line_buffered {
            true => Box::new(output::Prompt(sink)),
            false => sink,
        }
    }

    /// Lets the server change programs; gives the sink for their rows.
    pub(super) fn controlled(
        &self,
        running: Vec<RunningProgram>,
        control: Control<'_>,
        progress: Option<&Progress>,
        table: RowOptions,
    ) -> anyhow::Result<RunSink> {
        let Control { server, changes, stats, keeps_packets, site, files } = control;
        let pending = Arc::new(PendingChanges::default());
        let limits = Limits {
            write: self.options.write.to.clone(),
            names: self.options.rows.names.into(),
            keeps_packets,
            reads_again: self.reads_again(),
            source: records::kind(self.options, &self.program),
        };
        let rules = Rules {
            allows: Box::new(move |program, outputs| limits.check(program, outputs)),
            make_sink: self.make_sink(files, table),
            site,
            suppressions: Suppressions::new(self.list.clone(), self.suppressions.clone()),
        };
        let stats = stats.clone();
        let report = Arc::new(move |patience| control::report(&stats, patience));
        let theirs = Arc::clone(&pending);
        let changes = match self.serves.as_ref().filter(|serves| serves.reads_again) {
            Some(serves) => ChangeBy::ReadingAgain(Arc::clone(&serves.passes)),
            None => ChangeBy::Continuing(Arc::clone(changes)),
        };
        let (registry, cleanup) =
            Registry::new(running, rules, theirs, changes, report).map_err(anyhow::Error::msg)?;
        let answers = Arc::new(Answers::new(registry));
        if let Some(server) = server {
            server.start(Arc::clone(&answers))?;
        }
        let target = match self.options.rows.go_to_files() {
            true => RowTarget::PerProgram,
            false if self.serves.is_some() => RowTarget::Shared(Box::new(Discard)),
            false => RowTarget::Shared(self.sink(RowFiles::None, progress, table)?),
        };
        let term = *self.term;
        let sink = ProgramSinks::new(target, pending, Box::new(move |text| term.say(text)));
        Ok(RunSink { sink: Box::new(sink), cleanup, answers: Some(answers) })
    }

    /// Makes the sinks of programs that write files of their own.
    fn make_sink(&self, files: RowFiles, options: RowOptions) -> MakeSink {
        let (format, stop) = (self.format, Arc::clone(&self.stop));
        let (names, batches) = (self.options.rows.names.into(), self.options.sink_queue);
        let when_full = if self.drops() { WhenFull::LeaveOut } else { WhenFull::Wait };
        let (mut files, captures) = (files, self.options.read.clone());
        Box::new(move |outputs| {
            let ending = Arc::new(AtomicBool::new(false));
            let stops = [Arc::clone(&stop), Arc::clone(&ending)];
            let (queue, cleanup) = match &mut files {
                RowFiles::PerProgram(ProgramFiles { folder, first, taken }) => {
                    let files = match first.pop_front() {
                        Some(files) => Ok(files),
                        None => output::new_files(folder, outputs, format, taken),
                    };
                    let files = files.map_err(|e| format!("{e:#}"))?;
                    let (taken, cleanup) = (taken.clone(), output::cleanup(&files));
                    let make = move || {
                        let sink = output::over(files, format, options, names, &taken, &stops);
                        Ok(Box::new(sink) as Box<dyn Sink>)
                    };
                    (Queue::start(make, when_full, batches), cleanup)
                }
                RowFiles::Stored(folder) => {
                    let (folder, captures) = (folder.clone(), captures.clone());
                    // Columns that do not fit are refused before the program runs.
                    let fits = output::stored(&folder, &captures, options, names);
                    fits.and_then(|mut s| s.open(outputs)).map_err(|e| e.to_string())?;
                    let make = move || output::stored(&folder, &captures, options, names);
                    let queue = Queue::start(make, when_full, batches);
                    (queue.map(Queue::waited_for), Cleanup::default())
                }
                RowFiles::None | RowFiles::Open(_) => return Ok(None),
            };
            let queue = queue.map_err(|e| e.to_string())?;
            Ok(Some(NewSink { sink: Box::new(queue.ending_by(ending)), cleanup }))
        })
    }

    /// A progress bar, if the length of the input is known and a terminal shows it.
    pub(super) fn progress(&self, stream: bool) -> Option<Progress> {
        let wanted = !stream
            && self.serves.is_none()
            && self.term.stderr_tty
            && !self.options.quiet
            && !self.options.no_progress;
        let sizes = || self.options.read.iter().map(|name| weir_capture::size_hint(name)).sum();
        let total: Option<u64> = wanted.then(sizes).flatten();
        total.map(Progress::new)
    }
}
