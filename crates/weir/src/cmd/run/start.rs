//! A run from its start to its end.

use super::carriers::{Carriers, packet_topic};
use super::opening::OpenInput;
use super::publish::{Published, Publisher};
use super::row_files::RowFiles;
use super::serves::{Serving, is_stream};
use super::serving::RunEnds;
use super::session::Run;
use super::sinks::{Control, RunSink};
use crate::evictions::EvictionAlerts;
use crate::exit::Status;
use crate::observe::Observer as _;
use crate::output;
use crate::plot::PlotFile;
use crate::progress::Progress;
use crate::shelf::Shelf;
use crate::stats::Stats;
use crate::user::user_ids;
use crate::{delivery, lookback, signals};
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use weir_capture::lookback::{HeldFrames, Lookback};
use weir_capture::write::Made;
use weir_control::{Answers, Server};
use weir_deliver::Courier;
use weir_engine::kernel::KernelFeed;
use weir_engine::reading::Reading;
use weir_engine::rows::Sink;
use weir_engine::run::{Changes, Options, Outcome};
use weir_http::HttpSocket;
use weir_kernel::KernelTables;
use weir_packet::source::Source;
use weir_partitions::outlets::PacketOutlets;
use weir_partitions::reported::{Reported, SourceReport};
use weir_plan::Program;
use weir_sandbox::UserIds;
use weir_sink::RowOptions;

/// How often a run over a wire looks whether queries give up rows.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// Everything that a run has opened before it reads packets.
struct Opened {
    source: Lookback<Reading<Box<dyn Source>>>,
    outlets: PacketOutlets,
    /// The processes that carry packets and rows to Kafka.
    carriers: Carriers,
    /// The files of rows.
    files: RowFiles,
    /// The picture of `--plot`.
    plot: Option<PlotFile>,
    /// Files and folders that are removed again unless the run begins.
    made: Made,
    /// The socket of `--control`.
    server: Option<Server>,
    /// The socket of `--metrics`.
    http: Option<HttpSocket>,
    /// Keeps captures for clients of the page.
    shelf: Option<Arc<Shelf>>,
    /// The courier that hands alerts to the process that delivers them.
    courier: Option<Courier>,
    stats: Stats,
    /// Groups that programs in the kernel make.
    kernel: Option<Arc<KernelTables>>,
    /// Whether the input may wait for its writer.
    stream: bool,
}

/// The parts of a run that serve clients over HTTP.
struct Clients {
    /// Where they connect.
    http: Option<HttpSocket>,
    /// The answers to them, where programs may change.
    answers: Option<Arc<Answers>>,
    /// The packets that are kept.
    held: Option<HeldFrames>,
    /// Captures that are kept beside the run.
    shelf: Option<Arc<Shelf>>,
}

impl Run<'_> {
    /// The process that keeps captures for the page, if there is one.
    fn shelf(&self) -> anyhow::Result<Option<Arc<Shelf>>> {
        let confine = &self.options.confine;
        let start = |serves: &Serving| Shelf::start(serves.captures.as_deref(), confine);
        self.serves.as_ref().map(start).transpose()
    }

    /// The source, read as options say.
    fn reading<S: Source>(&self, source: S) -> Reading<S> {
        let source = Reading::new(source).headers(self.options.headers());
        if self.options.fragments { source.fragments() } else { source }
    }

    /// Opens everything, gives up the other permissions, and runs. It starts no thread before, so
    /// that all threads lack these permissions.
    pub(super) fn start(mut self) -> anyhow::Result<Status> {
        let stop = Arc::clone(&self.stop);
        let heard = signals::hear(&stop)?;
        let carrier = self.carrier()?;
        let carriers = self.carriers()?;
        let stats = Stats::new(self.term);
        let targets = std::mem::take(&mut self.targets);
        let courier = delivery::start(targets, &self.options.rows.deliver, &self.options.confine)?;
        let shelf = self.shelf()?;
        let server = self.options.later.control.as_deref().map(Server::bind).transpose()?;
        let http = self.options.http.listen()?;
        let stream = self.is_live() || self.options.read.iter().any(|capture| is_stream(capture));
        let OpenInput { input, senders, kernel } = self.input(&stop)?;
        if let (Some(server), Some(user)) = (&server, &self.options.confine.relinquish_privileges) {
            let UserIds { user, group } = user_ids(user)?;
            server.give_to(user, group)?;
        }
        self.become_user()?;
        // From here on files are made. Until the run begins they are removed again if something is
        // refused, and existing files stay as they are.
        let mut made = Made::among(&self.in_use);
        let files = self.files(&mut made)?;
        let plot = PlotFile::open(&self.program, &self.alone, self.options, &mut made)?;
        let publisher = self.publisher(&mut made, carrier)?;
        let uses = lookback::Use { later: self.options.takes_programs(), is_live: self.is_live() };
        let kept = lookback::options(&self.program, &self.options.lookback, uses, &mut made)?;
        let mut outlets = self.outlets(&input, senders)?;
        self.confine(&input, &outlets, self.later_folders(&files, kept.as_ref())?);

        let ending = Arc::clone(&stop);
        outlets.when_over(move || ending.store(true, Ordering::Relaxed));
        let Some(mut source) = self.source(input, stream, heard, &stats)? else {
            if !self.options.quiet {
                self.term.say("interrupted");
            }
            return Ok(Status::Ok);
        };
        let report = SourceReport::default();
        if packet_topic(self.options).is_some() {
            source = Box::new(Reported::new(source, report.clone(), self.is_live()));
        }
        let outlets = self.packet_outlets(outlets, &carriers, &report)?;
        let source = Lookback::new(self.reading(source), kept)?;
        if let Some(tally) = source.tally().filter(|_| self.keeps_for_files()) {
            stats.report_captures(tally);
        }
        if self.reads_records() {
            stats.report_records(self.records.clone());
        }
        let opened = Opened {
            source,
            outlets,
            carriers,
            files,
            plot,
            made,
            server,
            http,
            shelf,
            courier,
            stats,
            kernel,
            stream,
        };
        match publisher {
            Some(publisher) => self.probe(publisher, opened),
            None => self.process(opened),
        }
    }

    /// Prints counts as often as `--stats` says.
    fn print_counts(&self, stats: &Stats) -> io::Result<()> {
        self.options.stats.map_or(Ok(()), |period| stats.print_every(period))
    }

    /// Runs as a probe: what its workers hand over is for `weir merge`.
    fn probe(self, publisher: Publisher, opened: Opened) -> anyhow::Result<Status> {
        let Opened { mut source, mut made, stats, .. } = opened;
        self.print_counts(&stats)?;
        made.keep();
        let Published { outcome, carrier } = self.publish(publisher, &mut source, &stats)?;
        let ended = self.end(outcome, &mut source, self.stop.load(Ordering::Relaxed), None);
        // Also where the run failed: what it has written is on its way.
        let carried = carrier.map_or(Status::Ok, |carrier| carrier.finish(self.term));
        Ok(ended?.max(carried))
    }

    /// Says how late the kernel was, if it has made groups and somebody wants to know.
    fn say_latest(&self, kernel: Option<&KernelTables>) {
        if let Some(kernel) = kernel.filter(|_| self.options.verbose) {
            let late = kernel.latest();
            self.term.say(format_args!("windows in the kernel ended at most {late:?} late"));
        }
    }

    /// Runs over what was opened.
    fn process(mut self, opened: Opened) -> anyhow::Result<Status> {
        let Opened { source, outlets, files, mut made, stats, stream, .. } = opened;
        let (server, http, kernel) = (opened.server, opened.http, opened.kernel);
        let (carriers, courier, plot) = (opened.carriers, opened.courier, opened.plot);
        self.rows_pipe = carriers.rows_pipe()?;
        let mut progress = self.progress(stream);
        let table = RowOptions {
            color: self.term.color_out,
            stream: stream || self.options.line_buffered,
            titles: self.options.takes_programs(),
            ..self.options.rows.row_options(self.options.rules.time_zone)
        };
        let changes = self.options.takes_programs().then(Arc::<Changes>::default);
        let running = std::mem::take(&mut self.running);
        let RunSink { sink, cleanup: _cleanup, answers } = match &changes {
            Some(changes) => {
                let keeps_packets = source.asking().is_some() && self.keeps_for_later_files();
                let (stats, site) = (&stats, std::mem::take(&mut self.site));
                let server = server.as_ref();
                let control = Control { server, changes, stats, keeps_packets, site, files };
                self.controlled(running, control, progress.as_ref(), table)?
            }
            _ => {
                let cleanup = output::cleanup(files.opened());
                let sink = self.sink(files, progress.as_ref(), table)?;
                RunSink { sink, cleanup, answers: None }
            }
        };
        let sink = self.deliver(courier.as_ref(), &stats, self.prompt(sink))?;
        let clients = Clients { http, answers, held: source.held(), shelf: opened.shelf };
        let mut sink = self.show_to_others(clients, &stats, plot.as_ref(), (sink, table))?;
        sink = EvictionAlerts::default().on_the_way(sink);
        if let Some(asking) = source.asking() {
            sink = lookback::Asks::new(asking).on_the_way(sink);
        }
        if self.is_live() {
            stats.look_every(LOOK_EVERY)?;
        }
        self.print_counts(&stats)?;
        made.keep();
        if let Some(kernel) = &kernel {
            stats.report_kernel(Arc::clone(kernel));
            kernel.start()?;
        }
        let options = Options {
            kernel: kernel.clone().map(|tables| tables as Arc<dyn KernelFeed>),
            ..self.engine_options(&stats, changes)
        };
        let mut run_ends = RunEnds { source, sink, outlets };
        let outcome = self.run_through(&mut run_ends, &options, &stats, progress.as_mut())?;
        let RunEnds { mut source, sink, outlets } = run_ends;
        drop(sink);
        drop(server);
        let quiet = self.options.quiet;
        let delivered = courier.map(|courier| delivery::finish(&courier, self.term, quiet));
        if let Some(progress) = &progress {
            progress.finish();
        }
        self.say_latest(kernel.as_deref());
        let interrupted = self.stop.load(Ordering::Relaxed) && !outlets.is_over();
        let drawn = self.draw(plot);
        drop(outlets);
        let status = self.end(outcome, &mut source, interrupted, delivered.as_ref());
        self.rows_pipe = None;
        // Also where the run failed: what it has handed over is on its way.
        let carried = carriers.finish(self.term);
        drawn.and(status).map(|status| status.max(carried))
    }

    /// The sink for rows that clients over HTTP and a picture are shown, too.
    fn show_to_others(
        &self,
        Clients { http, answers, held, shelf }: Clients,
        stats: &Stats,
        plot: Option<&PlotFile>,
        (mut sink, table): (Box<dyn Sink>, RowOptions),
    ) -> anyhow::Result<Box<dyn Sink>> {
        if let (Some(_), Some(answers)) = (&self.serves, &answers) {
            self.fit_windows(answers)?;
        }
        if let Some(http) = http {
            sink = self.serve_http(http, stats, (answers, held, shelf), (sink, table))?;
        }
        Ok(match plot {
            Some(plot) => plot.watch(sink),
            None => sink,
        })
    }

    /// Writes the picture of `--plot`.
    fn draw(&self, plot: Option<PlotFile>) -> anyhow::Result<()> {
        let timeless = plot.map_or(Ok(0), PlotFile::write)?;
        if timeless > 0 && !self.options.quiet {
            self.term.say(format_args!("not drawn: {timeless} rows without a time"));
        }
        Ok(())
    }

    /// Runs over the packets: once, or for a page as often as its programs change.
    fn run_through(
        &self,
        run_ends: &mut RunEnds<'_>,
        options: &Options,
        stats: &Stats,
        mut progress: Option<&mut Progress>,
    ) -> anyhow::Result<Outcome> {
        let mut pass = |program: &Program, run_ends: &mut RunEnds<'_>, options: &Options| {
            let ends = (&mut *run_ends.sink as _, &mut run_ends.outlets as _);
            let (functions, source) = (&self.functions, &mut run_ends.source);
            weir_engine::run::run_to(program, functions, source, ends, options, &mut |account| {
                if let Some(progress) = &mut progress {
                    progress.update(account);
                }
            })
        };
        let Some(serves) = &self.serves else { return Ok(pass(&self.program, run_ends, options)) };
        self.stay(serves, run_ends, stats, |program, run_ends, stop| {
            pass(program, run_ends, &self.pass_options(options, stop))
        })
    }
}
