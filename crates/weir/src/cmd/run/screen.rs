//! A run that is shown on the screen of `weir top`.

use super::job::{checked_filter, filter_error};
use super::opening::OpenInput;
use super::row_files::RowFiles;
use super::row_packets::RowPackets;
use super::serves::is_stream;
use super::session::Run;
use crate::args::RunOptions;
use crate::exit::{Status, usage};
use crate::library::Entry;
use crate::page::{RunPhase, of_packets};
use crate::programs::Programs;
use crate::stats::{RunCounts, Stats};
use crate::term::Term;
use crate::top::ScreenTerminal;
use crate::wire::Notes;
use crate::{inputs, signals};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, TryRecvError};
use std::thread::{Builder, Scope, ScopedJoinHandle, scope};
use weir_base::full::WhenFull;
use weir_capture::bpf::Filter;
use weir_capture::limits::LOOKBACK_BYTES;
use weir_capture::lookback::{Lookback, LookbackOptions};
use weir_capture::records::RecordReport;
use weir_control::SiteParams;
use weir_engine::functions::Functions;
use weir_engine::reading::Reading;
use weir_engine::run::{Change, Changes, Outcome};
use weir_engine::suppress::SuppressionList;
use weir_http::NoPackets;
use weir_packet::interface::InterfaceNames;
use weir_packet::source::Source;
use weir_plan::Program;
use weir_plan::change::continued;
use weir_plan::together::side_by_side;
use weir_search::{Earlier, Sought, of_condition, of_values};
use weir_sink::json;
use weir_top::{
    FoundPackets, LibraryQuery, ModelSink, Pace, PacketsWanted, Phase, RunState, Screen, ScreenRun,
    Setup, SharedModel,
};

/// Shows what comes by interfaces or from captures on a screen, until somebody ends it.
pub(crate) fn show(
    screen: ScreenTerminal,
    options: &RunOptions,
    filter: &str,
    term: &Term,
) -> anyhow::Result<Status> {
    let filter = checked_filter(options, filter)?;
    let source = match options.live.interface.is_empty() {
        true => {
            let named =
                |name: &String| if name == "-" { "standard input" } else { name }.to_owned();
            options.read.iter().map(named).collect::<Vec<_>>().join(", ")
        }
        false => options.live.interface.join(", "),
    };
    let source = if filter.is_empty() { source } else { format!("{source}: {filter}") };
    let filter = match filter.as_str() {
        "" => None,
        text => Some(Filter::new(text).map_err(|e| filter_error(e, text))?),
    };
    let pace = match options.live.interface.is_empty() {
        true if options.read.iter().any(|name| is_stream(name)) => Pace::Stream,
        true => Pace::Whole,
        false => Pace::Live,
    };
    if let Some(folder) = options.lookback.capture_dir.as_ref().filter(|folder| !folder.is_dir()) {
        return Err(usage(format!("--capture-dir {}: there is no such folder", folder.display())));
    }
    let rules = options.rules.rules()?;
    let setup = Setup { rules, ..Setup::first(pace, options.workers.get()) };
    let programs = setup.compile().map_err(anyhow::Error::msg)?;
    let run = Run {
        program: side_by_side(programs.clone())?,
        running: Vec::new(),
        alone: String::new(),
        is_alone: false,
        functions: Functions::default(),
        filter,
        format: &json::FORMAT,
        collector: None,
        in_use: inputs::of_run(options, &Programs::none()),
        options,
        term,
        site: SiteParams::default(),
        list: SuppressionList::new(Vec::new()),
        suppressions: Vec::new(),
        targets: Vec::new(),
        notes: Notes::default(),
        records: RecordReport::default(),
        names: InterfaceNames::default(),
        serves: None,
        phase: RunPhase::default(),
        shows_screen: true,
        stop: Arc::default(),
        rows_pipe: None,
        memory: options.memory.bytes(),
    };
    let model = SharedModel::new(pace);
    let ScreenTerminal { terminal, look } = screen;
    let (library, shown) = (queries(), model.clone());
    let screen = Screen { source, look, setup: setup.clone(), library, model: shown };
    run.show(&terminal, screen, Counted { setup, programs })
}

/// The programs by which a run counts, and the setup that they come from.
struct Counted {
    setup: Setup,
    programs: Vec<(String, Program)>,
}

impl Counted {
    /// How packets are looked for.
    fn sought(&self, wanted: &PacketsWanted) -> Result<Sought, NoPackets> {
        let (output, row) = match wanted {
            PacketsWanted::Condition(text) => return of_condition(text),
            PacketsWanted::Row { output, row } => (*output, row),
        };
        let query = self.setup.query.as_ref();
        let program =
            query.and_then(|query| self.programs.iter().find(|(name, _)| *name == query.name));
        let Some((name, program)) = program else {
            return Err(NoPackets::Unknown("the query of the row runs no more".to_owned()));
        };
        of_values(name, program, output, &row.values)
    }
}

/// The queries that a screen can run: those over packets that are no network functions, which send
/// packets or write files.
fn queries() -> Vec<LibraryQuery> {
    let query = |entry: &Entry| LibraryQuery {
        name: entry.name.to_owned(),
        title: entry.title(),
        text: entry.text.to_owned(),
    };
    of_packets().filter(|entry| entry.group != "functions").map(query).collect()
}

/// Packets as the engine reads them.
pub(super) type PassSource = Lookback<Reading<Box<dyn Source>>>;

impl Run<'_> {
    /// Opens everything, gives up the other permissions, and shows what is counted. As for any run,
    /// threads start after that.
    fn show(
        self,
        terminal: &weir_top::Terminal,
        screen: Screen,
        counted: Counted,
    ) -> anyhow::Result<Status> {
        let stop = Arc::clone(&self.stop);
        let given_back = Arc::<AtomicBool>::default();
        let heard = signals::hear_on_screen(&stop, &given_back)?;
        let stats = Stats::silent();
        let stream = self.is_live() || counted.setup.pace == Pace::Stream;
        // A screen takes no part in the kernel.
        let OpenInput { input, senders, kernel: _ } = self.input(&stop)?;
        self.become_user()?;
        let outlets = self.outlets(&input, senders)?;
        self.confine(&input, &outlets, self.later_folders(&RowFiles::None, None)?);
        let Some(source) = self.source(input, stream, heard, &stats)? else {
            self.term.say("interrupted");
            return Ok(Status::Ok);
        };
        let (total, model) = (self.total(), screen.model.clone());
        let ended = scope(|scope| -> anyhow::Result<_> {
            let ring = stream.then(ring);
            let source = self.read_through(source, ring)?;
            let earlier = source.held().map_or_else(|| self.in_captures(), Earlier::Ring);
            let mut shown = ShownRun {
                scope,
                run: &self,
                stats,
                model,
                total,
                counted,
                pass: None,
                ended: None,
                answer: None,
                changing: None,
                waiting: None,
                refused: None,
                packets: RowPackets::new(scope, earlier, self.options.lookback.capture_dir.clone()),
            };
            shown.start(source)?;
            let result = screen.show(terminal, &mut shown, &stop);
            terminal.give_back();
            // From here on a signal ends the process, as the second one ends any run.
            given_back.store(true, Ordering::SeqCst);
            let interrupted = stop.swap(true, Ordering::SeqCst);
            shown.finish();
            result?;
            Ok(shown.ended.map(|ended| (ended, interrupted)))
        })?;
        let Some((EndedPass { outcome, mut source }, interrupted)) = ended else {
            anyhow::bail!("the run failed");
        };
        self.end(outcome, &mut source, interrupted, None)
    }

    /// The length of all captures, if that is known.
    fn total(&self) -> Option<u64> {
        self.options.read.iter().map(|name| weir_capture::size_hint(name)).sum()
    }

    /// A source, read as the options say; its last frames are kept, if there is a ring.
    pub(super) fn read_through(
        &self,
        source: Box<dyn Source>,
        ring: Option<LookbackOptions>,
    ) -> anyhow::Result<PassSource> {
        let mut source = Reading::new(source).headers(self.options.headers());
        if self.options.fragments {
            source = source.fragments();
        }
        Ok(Lookback::new(source, ring)?)
    }
}

/// The latest packets, for those who look at a row.
fn ring() -> LookbackOptions {
    // No file is asked for, and nothing waits for one.
    LookbackOptions { when_full: WhenFull::LeaveOut, ..LookbackOptions::new(LOOKBACK_BYTES) }
}

/// A run that goes through packets, in a thread of its own.
struct Pass<'scope> {
    thread: ScopedJoinHandle<'scope, EndedPass>,
    changes: Arc<Changes>,
    stop: Arc<AtomicBool>,
    /// Bytes that were read.
    read: Arc<AtomicU64>,
}

/// The outcome of such a run, and its source.
struct EndedPass {
    outcome: Outcome,
    source: PassSource,
}

/// A change on its way.
struct Changing {
    next: Counted,
    answer: Receiver<io::Result<Vec<(usize, usize)>>>,
}

/// A run, as its screen sees it.
struct ShownRun<'scope, 'env> {
    scope: &'scope Scope<'scope, 'env>,
    run: &'env Run<'env>,
    stats: Stats,
    model: SharedModel,
    total: Option<u64>,
    counted: Counted,
    pass: Option<Pass<'scope>>,
    ended: Option<EndedPass>,
    /// Brings the counts that were asked for.
    answer: Option<Receiver<RunCounts>>,
    changing: Option<Changing>,
    /// The setup that is to be counted after that change.
    waiting: Option<Setup>,
    refused: Option<String>,
    packets: RowPackets<'scope, 'env>,
}

impl ShownRun<'_, '_> {
    /// Starts a run over a source.
    fn start(&mut self, mut source: PassSource) -> anyhow::Result<()> {
        let run = self.run;
        let program = side_by_side(self.counted.programs.clone())?;
        let (changes, read) = (Arc::<Changes>::default(), Arc::<AtomicU64>::default());
        let stop = match self.counted.setup.pace {
            Pace::Whole => Arc::default(),
            Pace::Live | Pace::Stream => Arc::clone(&run.stop),
        };
        let mut options = run.engine_options(&self.stats, Some(Arc::clone(&changes)));
        if options.stop.is_some() {
            options.stop = Some(Arc::clone(&stop));
        }
        let (functions, mut sink) = (&run.functions, ModelSink::new(self.model.clone()));
        let bytes = Arc::clone(&read);
        let body = move || {
            let outcome = weir_engine::run::run(
                &program,
                functions,
                &mut source,
                &mut sink,
                &options,
                &mut |account| bytes.store(account.bytes_read, Ordering::Relaxed),
            );
            EndedPass { outcome, source }
        };
        let thread = Builder::new().name("run".to_owned()).spawn_scoped(self.scope, body)?;
        self.pass = Some(Pass { thread, changes, stop, read });
        self.ended = None;
        Ok(())
    }

    /// Ends the run, if one goes on.
    fn finish(&mut self) {
        if let Some(pass) = &self.pass {
            pass.stop.store(true, Ordering::SeqCst);
        }
        self.packets.end();
        self.join();
    }

    /// Waits for the end of the run, and keeps what it came to.
    fn join(&mut self) {
        if let Some(pass) = self.pass.take() {
            // A panic of the engine comes as an outcome; any other was reported.
            self.ended = pass.thread.join().ok();
        }
        self.answer = None;
    }

    /// Reads the captures again, from their beginning.
    fn read_again(&mut self, next: Counted) -> anyhow::Result<()> {
        self.finish();
        let source = self.run.captures()?.start()?;
        let source = self.run.read_through(self.run.counted(source), None)?;
        self.counted = next;
        self.start(source)
    }

    /// Begins a change, or says why it can't.
    fn begin(&mut self, setup: &Setup) -> Result<(), String> {
        let programs = setup.compile()?;
        let next = Counted { setup: setup.clone(), programs };
        if setup.pace == Pace::Whole {
            return self.read_again(next).map_err(|e| format!("{e:#}"));
        }
        let Some(pass) = self.pass.as_ref().filter(|pass| !pass.thread.is_finished()) else {
            return Err("there are no more packets to count".to_owned());
        };
        let program = side_by_side(next.programs.clone()).map_err(|e| e.to_string())?;
        let continued = continued(&self.counted.programs, &next.programs);
        let (report, answer) = mpsc::channel();
        // The screen may have been closed.
        let report = Box::new(move |result| drop(report.send(result)));
        pass.changes.send(Change { program, continued, report });
        self.changing = Some(Changing { next, answer });
        Ok(())
    }

    /// Looks whether the change on its way has been made.
    fn check_change(&mut self) {
        let Some(Changing { next, answer }) = self.changing.take() else { return };
        match answer.try_recv() {
            Ok(Ok(_)) => self.counted = next,
            Ok(Err(e)) => self.refused = Some(e.to_string()),
            Err(TryRecvError::Empty) => {
                self.changing = Some(Changing { next, answer });
                return;
            }
            Err(TryRecvError::Disconnected) => {
                self.refused = Some("there are no more packets to count".to_owned());
            }
        }
        if let Some(setup) = self.waiting.take() {
            self.refused = None;
            self.change(&setup);
        }
    }
}

impl ScreenRun for ShownRun<'_, '_> {
    fn change(&mut self, setup: &Setup) {
        if self.changing.is_some() {
            self.waiting = Some(setup.clone());
        } else if let Err(why) = self.begin(setup) {
            self.refused = Some(why);
        }
    }

    fn changed(&mut self) -> Option<(Setup, String)> {
        self.check_change();
        self.refused.take().map(|why| (self.counted.setup.clone(), why))
    }

    fn look_for_packets(&mut self, wanted: Option<&PacketsWanted>) {
        let sought = wanted.map(|wanted| self.counted.sought(wanted));
        self.packets.look_for(sought);
    }

    fn found(&mut self) -> Option<Result<FoundPackets, String>> {
        self.packets.found()
    }

    fn save_packets(&mut self, wanted: &PacketsWanted) {
        let sought = self.counted.sought(wanted);
        self.packets.save(sought);
    }

    fn saved(&mut self) -> Option<Result<String, String>> {
        self.packets.saved()
    }

    fn state(&mut self) -> Option<RunState> {
        if self.pass.as_ref().is_some_and(|pass| pass.thread.is_finished()) {
            // The flag of a wire also ends the screen: it stays as it is.
            self.join();
        }
        if let Some(EndedPass { outcome, source }) = &self.ended {
            let error = outcome.error.as_ref().map(ToString::to_string);
            let (ledger, interfaces) = (outcome.ledger.clone(), source.interfaces());
            return Some(RunState { phase: Phase::Ended { error }, ledger, interfaces });
        }
        let stats = &self.stats;
        let counts = match self.answer.get_or_insert_with(|| stats.ask()).try_recv() {
            Err(TryRecvError::Empty) => return None,
            Err(TryRecvError::Disconnected) => {
                self.answer = None;
                return None;
            }
            Ok(counts) => counts,
        };
        self.answer = Some(self.stats.ask());
        let read = self.pass.as_ref().map_or(0, |pass| pass.read.load(Ordering::Relaxed));
        let share = |total| (read as f64 / total as f64).min(1.0);
        let is_whole = self.counted.setup.pace == Pace::Whole;
        let read = self.total.filter(|total| is_whole && *total > 0).map(share);
        let RunCounts { ledger, interfaces } = counts;
        Some(RunState { phase: Phase::Running { read }, ledger, interfaces })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_capture::Captures;

    #[test]
    fn every_query_of_the_screen_runs_beside_what_it_counts() {
        let all = queries();
        let has = |name: &str| all.iter().any(|query| query.name == name);
        assert!(all.len() > 50 && has("sources") && has("syn_flood") && has("tcp-health"));
        // They send packets, or read flow records.
        assert!(!has("knock") && !has("balance") && !has("record-talkers"));
        let capture = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/mixed.pcap").to_owned();
        for query in all {
            let name = query.name.clone();
            let mut setup = Setup::first(Pace::Whole, 1);
            setup.data.push(weir_top::Data::Query);
            (setup.query, setup.filter) = (Some(query), "ip.src != 192.0.2.254".to_owned());
            let programs = setup.compile().expect("compiles");
            for (_, program) in &programs {
                assert_eq!((program.ends().count(), program.captures().count()), (0, 0), "{name}");
            }
            let program = side_by_side(programs).unwrap_or_else(|e| panic!("{name}: {e}"));
            let options = weir_capture::Options::default();
            let captures = Captures::new(vec![capture.clone()], &options).expect("a capture");
            let mut source = captures.start().expect("opens");
            let mut sink = ModelSink::new(SharedModel::new(Pace::Whole));
            let outcome = weir_engine::run::run(
                &program,
                &Functions::default(),
                &mut *source,
                &mut sink,
                &weir_engine::run::Options::default(),
                &mut |_| {},
            );
            assert!(outcome.error.is_none(), "{name}: {:?}", outcome.error);
            assert_eq!(outcome.ledger.processed, 336, "{name}");
        }
    }
}
