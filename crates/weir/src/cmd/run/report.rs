//! A run whose rows become a page.

use super::job::{checked_filter, filter_error};
use super::opening::OpenInput;
use super::serves::is_stream;
use super::session::Run;
use crate::args::RunOptions;
use crate::exit::Status;
use crate::page::RunPhase;
use crate::programs::Programs;
use crate::stats::Stats;
use crate::term::Term;
use crate::wire::Notes;
use crate::{captures, inputs, ledger, remedy, signals, suppress};
use anyhow::Context as _;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use weir_capture::bpf::Filter;
use weir_capture::lookback::Lookback;
use weir_capture::outlets::Outlets;
use weir_capture::records::RecordReport;
use weir_capture::write::{Made, StoppableWriter, Untouched};
use weir_control::SiteParams;
use weir_dpdk::Senders;
use weir_engine::functions::Functions;
use weir_engine::reading::Reading;
use weir_engine::run::Outcome;
use weir_engine::suppress::SuppressionList;
use weir_packet::interface::InterfaceNames;
use weir_packet::source::Source;
use weir_plan::together::join;
use weir_report::{About, Collector, Ended, PAGE, RuleTitle, Step};
use weir_sink::json;

/// The subject of a report, and where it goes.
pub(crate) struct ReportJob<'a> {
    /// The detectors, with the parameters of the site.
    pub(crate) detectors: Programs,
    /// The purpose of each of them.
    pub(crate) rules: Vec<RuleTitle>,
    /// The words of the capture filter.
    pub(crate) words: String,
    /// How it is written.
    pub(crate) form: ReportForm,
    /// Whether the captures are known to be small.
    pub(crate) is_small: bool,
    /// How packets are read.
    pub(crate) options: &'a RunOptions,
}

/// The form of a report.
pub(crate) enum ReportForm {
    /// A page in this file; `-` for standard output.
    Page(PathBuf),
    /// A summary in text, on standard output.
    Text,
}

impl ReportForm {
    /// The file that is made.
    fn file(&self) -> Option<&Path> {
        match self {
            ReportForm::Page(path) if path.as_os_str() != "-" => Some(path),
            _ => None,
        }
    }
}

/// Where the page goes, open.
enum PagePlace {
    Stdout,
    File(Untouched),
}

/// Writes a page about captures.
pub(crate) fn report(job: ReportJob<'_>, term: &Term) -> anyhow::Result<Status> {
    let ReportJob { detectors, rules, words, form, is_small, options } = job;
    let words = checked_filter(options, &words)?;
    let functions = Functions::default();
    let step = if is_small { Step::Millisecond } else { Step::TenMilliseconds };
    let mut programs =
        weir_report::programs(step, options.rules.rules()?).map_err(anyhow::Error::msg)?;
    match detectors.compile_each(&[], &functions, options.quiet, term)? {
        Some(detectors) => programs.extend(detectors),
        None => return Ok(Status::Usage),
    }
    let suppressions = suppress::read(&options.rows.suppress)?;
    let filter = match words.as_str() {
        "" => None,
        text => Some(Filter::new(text).map_err(|e| filter_error(e, text))?),
    };
    let named = |name: &String| if name == "-" { "standard input" } else { name }.to_owned();
    let about = About {
        captures: options.read.iter().map(named).collect(),
        filter: words,
        zone: options.rules.time_zone.0,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        rules,
    };
    let run = Run {
        program: join(programs)?,
        running: Vec::new(),
        alone: String::new(),
        is_alone: false,
        functions,
        filter,
        format: &json::FORMAT,
        collector: None,
        targets: Vec::new(),
        serves: None,
        phase: RunPhase::default(),
        in_use: inputs::of_run(options, &detectors),
        options,
        term,
        site: SiteParams::default(),
        list: SuppressionList::new(suppressions.clone()),
        suppressions,
        notes: Notes::default(),
        records: RecordReport::default(),
        names: InterfaceNames::default(),
        shows_screen: false,
        stop: Arc::default(),
        rows_pipe: None,
        memory: options.memory.bytes(),
    };
    run.report(&about, step, &form)
}

impl Run<'_> {
    /// Opens everything, gives up the other permissions, runs, and writes the page.
    fn report(&self, about: &About, step: Step, form: &ReportForm) -> anyhow::Result<Status> {
        let stop = Arc::clone(&self.stop);
        let heard = signals::hear(&stop)?;
        let stats = Stats::new(self.term);
        let stream = self.options.read.iter().any(|capture| is_stream(capture));
        let OpenInput { input, senders: _, kernel: _ } = self.input(&stop)?;
        self.become_user()?;
        let mut made = Made::among(&self.in_use);
        let place = match form.file() {
            None => PagePlace::Stdout,
            Some(output) => {
                let file = made.open(output);
                PagePlace::File(Untouched::new(file.with_context(|| output.display().to_string())?))
            }
        };
        let outlets: Outlets = self.outlets(&input, Senders::default())?;
        self.confine(&input, &outlets, Vec::new());
        let Some(source) = self.source(input, stream, heard, &stats)? else {
            self.term.say("interrupted");
            return Ok(Status::Ok);
        };
        let mut source = Reading::new(source).headers(self.options.headers());
        if self.options.fragments {
            source = source.fragments();
        }
        let mut source = Lookback::new(source, None)?;
        made.keep();
        let mut progress = self.progress(stream);
        let mut rows = Collector::new(step);
        let outcome = weir_engine::run::run(
            &self.program,
            &self.functions,
            &mut source,
            &mut rows,
            &self.engine_options(&stats, None),
            &mut |account| {
                if let Some(progress) = &mut progress {
                    progress.update(account);
                }
            },
        );
        if let Some(progress) = &progress {
            progress.finish();
        }
        let interrupted = stop.load(Ordering::Relaxed);
        let ended = self.ended(&outcome, &source, interrupted);
        let page = remedy::report_name();
        let text = match form {
            ReportForm::Page(_) => weir_report::page(&rows, about, &ended),
            ReportForm::Text => weir_report::summary(&rows, about, &ended, &|words| {
                let captures = captures::named(&self.options.read);
                let captures = captures.iter().map(String::as_str);
                let filter = [about.filter.as_str()].into_iter().filter(|words| !words.is_empty());
                let words =
                    words.iter().map(|word| if *word == PAGE { page.as_str() } else { *word });
                remedy::line(words.chain(captures).chain(filter))
            }),
        };
        self.write_page(place, &text).with_context(|| match form.file() {
            None => "standard output".to_owned(),
            Some(output) => output.display().to_string(),
        })?;
        let is_whole = ended.cut_short.is_none();
        let status = self.end(outcome, &mut source, interrupted, None)?;
        Ok(if is_whole { status } else { status.max(Status::Failed) })
    }

    /// How the run ended, for the page.
    fn ended(
        &self,
        outcome: &Outcome,
        source: &Lookback<Reading<Box<dyn Source>>>,
        interrupted: bool,
    ) -> Ended {
        let cut_short = match &outcome.error {
            Some(e) => Some(e.to_string()),
            None if interrupted => Some("the run was interrupted".to_owned()),
            None => None,
        };
        Ended {
            ledger: outcome.ledger.clone(),
            text: ledger::render(&outcome.ledger),
            interfaces: source.interfaces(),
            cut_short,
        }
    }

    /// Writes the page. A reader that takes nothing is not waited for once a signal came.
    fn write_page(&self, place: PagePlace, text: &str) -> std::io::Result<()> {
        let stops = [Arc::clone(&self.stop)];
        match place {
            PagePlace::Stdout => {
                let mut out = StoppableWriter::stdout(&stops)?;
                out.write_all(text.as_bytes())?;
                out.flush()
            }
            PagePlace::File(file) => {
                let mut file = file.begin()?;
                file.write_all(text.as_bytes())?;
                file.flush()
            }
        }
    }
}
