//! A run, and what follows from its options.

use super::serves::Serving;
use crate::args::{RunOptions, SlowSink};
use crate::output::Collector;
use crate::page::RunPhase;
use crate::records;
use crate::stats::Stats;
use crate::term::Term;
use crate::wire::Notes;
use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use weir_capture::bpf::Filter;
use weir_capture::outlets::Report;
use weir_capture::records::RecordReport;
use weir_capture::write::FilesInUse;
use weir_control::{RunningProgram, SiteParams};
use weir_deliver::Target;
use weir_engine::functions::Functions;
use weir_engine::room::MemoryRoom;
use weir_engine::run::{Changes, Options};
use weir_engine::suppress::SuppressionList;
use weir_packet::interface::InterfaceNames;
use weir_plan::{Program, SourceKind, Suppression};
use weir_sink::Format;

/// Everything that a run needs, checked.
pub(super) struct Run<'a> {
    /// All queries as one program.
    pub(super) program: Program,
    /// The name of the first program: that of the only one, if there is one.
    pub(super) alone: String,
    /// Whether it is the only one, and none can come.
    pub(super) is_alone: bool,
    /// The programs that it consists of, if they may change.
    pub(super) running: Vec<RunningProgram>,
    pub(super) functions: Functions,
    pub(super) filter: Option<Filter>,
    pub(super) format: &'static Format,
    /// Where rows are sent to instead of being printed.
    pub(super) collector: Option<Collector>,
    pub(super) options: &'a RunOptions,
    /// The files that it reads and writes.
    pub(super) in_use: FilesInUse,
    pub(super) term: &'a Term,
    /// The params of the site, for programs that are added later.
    pub(super) site: SiteParams,
    /// The alerts that are not reported, as the run looks them up, ...
    pub(super) list: SuppressionList,
    /// ... and the lines of the files that say so.
    pub(super) suppressions: Vec<Suppression>,
    /// Whom alerts are delivered to.
    pub(super) targets: Vec<Target>,
    /// The notes about interfaces.
    pub(super) notes: Notes,
    /// The counts of exporters, if records of flows come.
    pub(super) records: RecordReport,
    /// The names of interfaces.
    pub(super) names: InterfaceNames,
    /// Its service for a page, if it is there for one.
    pub(super) serves: Option<Serving>,
    /// Its state, as its page shows it.
    pub(super) phase: RunPhase,
    /// Whether it shows a screen, for which files may be read again.
    pub(super) shows_screen: bool,
    /// Set by signals that end the run, and when there is nothing left to do.
    pub(super) stop: Arc<AtomicBool>,
    /// The pipe for rows that go to Kafka, if they do.
    pub(super) rows_pipe: Option<File>,
    /// Bytes of memory that stages share, if there is such a limit.
    pub(super) memory: Option<u64>,
}

impl Run<'_> {
    /// Whether packets come from interfaces.
    pub(super) fn is_live(&self) -> bool {
        !self.options.live.interface.is_empty()
    }

    /// Whether packets that are kept may go to files: the ring of a page is for those who look at
    /// packets, unless a query of the run asks for files.
    pub(super) fn keeps_for_files(&self) -> bool {
        !self.options.lookback.is_of_page || self.program.captures().next().is_some()
    }

    /// Whether they may go to files that programs ask for which come later, for which the run was
    /// given a folder.
    pub(super) fn keeps_for_later_files(&self) -> bool {
        self.keeps_for_files() && self.options.lookback.capture_dir.is_some()
    }

    /// Whether the source delivers flow records.
    pub(super) fn reads_records(&self) -> bool {
        records::kind(self.options, &self.program) == SourceKind::FlowRecords
    }

    pub(super) fn engine_options(&self, stats: &Stats, changes: Option<Arc<Changes>>) -> Options {
        let defaults = Options::default();
        Options {
            workers: self.options.workers.get(),
            groups_hint: self.options.groups,
            memory: self.memory.map(MemoryRoom::new),
            lateness_ns: self.options.lateness.unwrap_or(defaults.lateness_ns),
            // A capture from interfaces ends itself, and delivers the packets on their way first.
            stop: (!self.is_live()).then(|| Arc::clone(&self.stop)),
            inquiry: Some(stats.inquiry()),
            tell_counts: self.is_live(),
            suppressions: self.list.clone(),
            changes,
            ..defaults
        }
    }

    /// Reports on the terminal what happens to outlets while the run goes on.
    pub(super) fn report_outlets(&self) -> Report {
        let (term, quiet) = (*self.term, self.options.quiet);
        Box::new(move |text| {
            if !quiet {
                term.say(text);
            }
        })
    }

    /// Whether rows that the sink does not take in time are left out.
    pub(super) fn drops(&self) -> bool {
        self.options.slow_sink.map_or(self.is_live(), |slow| slow == SlowSink::Drop)
    }
}
