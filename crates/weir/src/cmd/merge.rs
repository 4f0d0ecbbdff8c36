//! `weir merge`: the machine level of queries over the partial results of several probes.

mod passing;

use crate::args::MergeArgs;
use crate::delivery::AlertTap;
use crate::exit::{Status, usage};
use crate::kafka::{self, Logs};
use crate::observe::Observer as _;
use crate::output::{self, Collector, Fresh, Taken};
use crate::programs::Programs;
use crate::signals;
use crate::site::Site;
use crate::term::Term;
use crate::user::become_user;
use crate::{delivery, exports, inputs, ledger, suppress};
use anyhow::Context as _;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use weir_base::full::WhenFull;
use weir_capture::write::{Made, StoppableWriter};
use weir_cluster::{
    Begin, ForeignStream, Merge, MergeControl, MergeOutcome, OpenedStreams, ProbeDelay, ProbeInput,
    ProbeProgress, ProbeStanding, ProbeStream, SkewWatch, StreamReport,
};
use weir_deliver::DeliveryCounts;
use weir_engine::discard::Discard;
use weir_engine::exchange::Receiver;
use weir_engine::functions::Functions;
use weir_engine::rows::{Output, Sink};
use weir_engine::run::Options;
use weir_engine::suppress::SuppressionList;
use weir_kafka::address::KafkaTopic;
use weir_kafka::order::LogStart;
use weir_packet::time::rfc3339;
use weir_plan::Program;
use weir_plan::physical::Physical;
use weir_sandbox::{Needs, confine};
use weir_sink::{Format, RowOptions};

/// Merges, and prints rows and what was counted.
pub(crate) fn run(args: MergeArgs, term: &Term) -> anyhow::Result<Status> {
    let functions = Functions::default();
    let Some((programs, program)) = compiled(&args, &functions, term)? else {
        return Ok(Status::Usage);
    };
    let format = output::row_format(&program, &args.rows, false, term)?;
    let suppressions = SuppressionList::new(suppress::read(&args.rows.suppress)?);
    let targets = delivery::targets(&args.rows.deliver, Some(&program))?;
    let plan = Physical::new(&program, &[]);
    weir_engine::exchange::needs(&plan).map_err(|why| usage(why.to_string()))?;
    let topic = check_streams(&args)?;
    let options = Options { memory: args.memory.room(), suppressions, ..Options::default() };

    let collector = args.rows.export.as_ref().map(Collector::connect).transpose()?;
    let courier = delivery::start(targets, &args.rows.deliver, &args.confine)?;
    let carrier = passing::carrier(&args, term)?;
    let (logs, inputs) = open_all(topic.as_ref(), &args, term)?;
    let in_use = inputs::of_merge(&args, &programs);
    let taken = Taken::among(&in_use);
    take_user(&args, term)?;
    let outputs = Output::of(&program);
    let files = args.rows.out_dir.as_deref();
    let files = files.map(|to| output::files(to, &outputs, format, &taken)).transpose()?;
    let _cleanup = output::cleanup(files.as_deref().unwrap_or_default());
    let folder = args.rows.store.as_deref().map(output::store_folder).transpose()?;
    let (stop, asked) = (Arc::<AtomicBool>::default(), Arc::<AtomicBool>::default());
    let mut made = Made::among(&in_use);
    let published = passing::open(&args, carrier, &mut made, &stop)?;
    let heard = signals::hear(&stop)?;
    confine_merge(&args, folder.as_deref(), term);
    // From here on bytes of others are read, and threads are started.
    let asks = Arc::clone(&asked);
    heard.handle(move || asks.store(true, Ordering::Relaxed), || ())?;
    let streams = match ProbeStream::read_heads(inputs, &stop) {
        Ok(Some(streams)) => streams,
        none => return without_heads(none.err(), logs, &args, term),
    };
    let merge = together(streams, &args, term)?;
    let options = Options { lateness_ns: merge.rules().lateness_ns, ..options };
    let receiver = Receiver::new(&plan, &functions, &options, &merge.probes())?;
    merge.check_query(receiver.fingerprint()).map_err(|why| usage(why.to_string()))?;
    warn_of_streams(&merge, &args, term);
    let (receiver, carrier) = match published {
        None => (receiver, None),
        Some(stream) => {
            made.keep();
            let (id, send, carrier) = passing::begin(stream, &args, &merge, &receiver)?;
            let probes = &merge.probes();
            (Receiver::passing_on(&plan, &functions, &options, probes, id, send)?, carrier)
        }
    };
    let mut sink = match (collector, folder) {
        _ if args.publish.is_some() => Box::new(Discard),
        (Some(collector), _) => collector.into_sink(),
        (None, Some(folder)) => stored(&args, &folder)?,
        (None, None) => sink(&args, files.map(|files| (files, taken)), format, &stop, term)?,
    };
    if let Some(courier) = &courier {
        delivery::run(courier, term, args.quiet)?;
        sink = AlertTap::new(courier.clone(), WhenFull::Wait).on_the_way(sink);
    }
    sink.open(&outputs).context("writing rows")?;
    let merged = merged(merge, receiver, &mut *sink, [&stop, &asked], (&args, term))?;
    drop(sink);
    let delivered = courier.map(|courier| delivery::finish(&courier, term, args.quiet));
    let ended = end(merged, delivered.as_ref(), &args, term);
    // Also where the merge failed: what it has written is on its way.
    let carried = carrier.map_or(Status::Ok, |carrier| carrier.finish(term));
    Ok(logs.finish(term).max(ended?).max(carried))
}

/// Merges until the end, or until it is stopped (`stop`); says how far probes are when it is asked.
fn merged(
    merge: Merge,
    receiver: Receiver,
    sink: &mut dyn Sink,
    [stop, asked]: [&AtomicBool; 2],
    (args, term): (&MergeArgs, &Term),
) -> io::Result<MergeOutcome> {
    let tell = |probes: &[ProbeProgress]| probes.iter().for_each(|probe| term.say(line(probe)));
    let tell_skew = |probe: &str, delay: &ProbeDelay| tell_skew(probe, delay, args, term);
    let skew = SkewWatch { most: max_skew(args).unwrap_or(SKEW_TOLD), tell: &tell_skew };
    let lost = |stream: &StreamReport| tell_lost(stream, args.quiet, term);
    let control = MergeControl { stop, asked, tell: &tell, skew, lost: &lost };
    merge.run(receiver, sink, &control)
}

/// The topic that is read, if one is; refuses streams that can't be had together.
fn check_streams(args: &MergeArgs) -> anyhow::Result<Option<KafkaTopic>> {
    if args.from.iter().filter(|from| *from == "-").count() > 1 {
        return Err(usage("standard input can be one stream only"));
    }
    let topic = kafka::topic_of(args)?;
    passing::check(args, topic.as_ref())?;
    Ok(topic)
}

/// The queries, and the program of all; `None`: there were errors among them, which are printed.
fn compiled(
    args: &MergeArgs,
    functions: &Functions,
    term: &Term,
) -> anyhow::Result<Option<(Programs, Program)>> {
    let programs = Programs::given(&args.expressions, &args.queries)?;
    let programs = programs.with_site(Site::read(args.site.site.as_deref(), term)?);
    let programs = programs.with_rules(args.rules.rules()?);
    let named = args.rows.go_to_files();
    let compiled = programs.compile(&args.params, named, functions, args.quiet, term)?;
    let Some(program) = compiled else { return Ok(None) };
    refuse_metrics(&program, "weir merge")?;
    Ok(Some((programs, program)))
}

/// Refuses a query that exports metrics.
pub(super) fn refuse_metrics(program: &Program, who: &str) -> anyhow::Result<()> {
    let metrics = exports::names(program);
    if metrics.is_empty() {
        return Ok(());
    }
    Err(usage(format!(
        "{who} exports no metrics, and the query has `metric` ({metrics}): leave `metric` out \
         of the query of the probes and of the merge, or run it on each probe with `weir run \
         --metrics`, whose series a server such as Prometheus can add up"
    )))
}

/// Opens all streams: those of the probes of a topic, too.
fn open_all(
    topic: Option<&KafkaTopic>,
    args: &MergeArgs,
    term: &Term,
) -> anyhow::Result<(Logs, Vec<ProbeInput>)> {
    let (logs, mut inputs) = match topic {
        Some(topic) => Logs::open(topic, args, term)?,
        None => Default::default(),
    };
    for from in args.from.iter().filter(|from| !KafkaTopic::is_meant(from)) {
        inputs.push(open(from)?);
    }
    Ok((logs, inputs))
}

/// Gives up root, if that is asked for.
fn take_user(args: &MergeArgs, term: &Term) -> anyhow::Result<()> {
    let Some(user) = &args.confine.relinquish_privileges else { return Ok(()) };
    let becomes = become_user(user)?;
    if args.verbose {
        term.say(becomes);
    }
    Ok(())
}

/// Ends where heads can't be read, or the merge was stopped before they came.
fn without_heads(
    why: Option<ForeignStream>,
    logs: Logs,
    args: &MergeArgs,
    term: &Term,
) -> anyhow::Result<Status> {
    match (logs.finish(term), why) {
        (Status::Ok, Some(why)) => Err(why.into()),
        (Status::Ok, None) => {
            if !args.quiet {
                term.say("interrupted");
            }
            Ok(Status::Ok)
        }
        // The thread that reads a log has said why it can't be read.
        (failed, _) => Ok(failed),
    }
}

/// The streams, if they belong together.
fn together(opened: OpenedStreams, args: &MergeArgs, term: &Term) -> anyhow::Result<Merge> {
    let OpenedStreams { streams, headless } = opened;
    let merge = Merge::new(streams).map_err(|why| usage(why.to_string()))?.begin(begin(args));
    for stream in headless.iter().filter(|_| !args.quiet) {
        term.warning(format_args!(
            "nobody knows what the probe of this stream saw, and completeness() of all windows is \
             next to 0: {stream}"
        ));
    }
    let merge = merge.without(headless);
    match max_skew(args) {
        Some(most) => merge.with_max_skew(most).map_err(|why| usage(format!("--max-skew: {why}"))),
        None => Ok(merge),
    }
}

/// By how much clocks may differ, if that has a bound.
fn max_skew(args: &MergeArgs) -> Option<Duration> {
    args.max_skew.map(|most| Duration::from_nanos(most.unsigned_abs()))
}

/// Where streams begin.
fn begin(args: &MergeArgs) -> Begin {
    match args.kafka.kafka_from {
        LogStart::Earliest => Begin::OfLife,
        LogStart::Latest | LogStart::Offset(_) => Begin::Anywhere,
    }
}

/// Opens the stream of a probe; a named pipe waits for its writer.
fn open(name: &str) -> anyhow::Result<ProbeInput> {
    let from: Box<dyn Read + Send> = match name {
        "-" => Box::new(BufReader::new(io::stdin())),
        path => Box::new(BufReader::new(File::open(path).with_context(|| path.to_owned())?)),
    };
    Ok((name.to_owned(), from))
}

/// Gives up all that a merge does not need once everything is open.
fn confine_merge(args: &MergeArgs, store: Option<&Path>, term: &Term) {
    let mut needs = Needs::default();
    if let Some(folder) = store {
        needs.store(folder);
    }
    let confined = match args.confine.no_sandbox {
        true => "sandbox: none (--no-sandbox)".to_owned(),
        false => confine(&needs, None).to_string(),
    };
    if args.verbose {
        term.say(confined);
    }
}

/// Warns of what may be meant otherwise.
fn warn_of_streams(merge: &Merge, args: &MergeArgs, term: &Term) {
    if args.quiet {
        return;
    }
    for (probe, streams) in merge.shared_names() {
        term.warning(format_args!(
            "{} are streams of one probe, {probe}, and are read one after the other; different \
             probes need different names (weir run --probe)",
            streams.join(", ")
        ));
    }
    let unsynchronised = merge.unsynchronised();
    if args.max_skew.is_none() && merge.live() > 1 && !unsynchronised.is_empty() {
        term.warning(format_args!(
            "the clocks of the probes of {} are not synchronised, as the kernels there say: \
             packets count in the windows of their probe's clock; keep clocks in step (NTP, PTP)",
            unsynchronised.join(", ")
        ));
    }
    let own = env!("CARGO_PKG_VERSION");
    for (version, streams) in merge.other_versions(own) {
        term.warning(format_args!(
            "{} were written by Weir {version}, and this is {own}; the query is the same, but what \
             has changed between the versions may count packets in another way",
            streams.join(", ")
        ));
    }
}

/// How much later the windows of a probe may come without a warning.
const SKEW_TOLD: Duration = Duration::from_secs(1);

/// Says that the windows of a probe come later than those of others.
fn tell_skew(probe: &str, ProbeDelay { delay, first }: &ProbeDelay, args: &MergeArgs, term: &Term) {
    let text = format!(
        "the windows of probe {probe} come {:.1} s after those of probe {first}: one of their \
         clocks is off, or the messages of {probe} take so long",
        delay.as_secs_f64()
    );
    match args.max_skew {
        Some(_) => term.error(format_args!("{text} (--max-skew)")),
        None if args.quiet => {}
        None => term.warning(format_args!("{text}")),
    }
}

/// Says that messages of a probe are missing, while the merge goes on.
fn tell_lost(stream: &StreamReport, quiet: bool, term: &Term) {
    if !quiet {
        term.warning(format_args!(
            "nobody knows what the probe of this stream saw for some time, and completeness() of \
             these windows is next to 0: {stream}"
        ));
    }
}

/// A sink that stores rows below a folder.
fn stored(args: &MergeArgs, folder: &Path) -> anyhow::Result<Box<dyn Sink>> {
    let options = RowOptions { stream: true, ..args.rows.row_options(args.rules.time_zone) };
    Ok(output::stored(folder, &args.from, options, args.rows.names.into())?)
}

fn sink(
    args: &MergeArgs,
    files: Option<(Vec<Fresh>, Taken)>,
    format: &'static Format,
    stop: &Arc<AtomicBool>,
    term: &Term,
) -> anyhow::Result<Box<dyn Sink>> {
    let options = RowOptions {
        color: term.color_out,
        // Rows come while probes run.
        stream: true,
        ..args.rows.row_options(args.rules.time_zone)
    };
    let (names, stops) = (args.rows.names.into(), [Arc::clone(stop)]);
    let sink: Box<dyn Sink> = match files {
        Some((files, taken)) => {
            Box::new(output::over(files, format, options, names, &taken, &stops))
        }
        None => format.sink(StoppableWriter::stdout(&stops)?, options, names),
    };
    Ok(if args.line_buffered { Box::new(output::Prompt(sink)) } else { sink })
}

/// How far a probe is, as SIGUSR1 asks, and `weir cluster status`.
pub(super) fn line(progress: &ProbeProgress) -> String {
    let ProbeProgress { probe, closed, delay, missing, broken, standing } = progress;
    let windows = match closed {
        Some(time) => format!("windows that end until {} have come", rfc3339(*time)),
        None => "no window has come".to_owned(),
    };
    let standing = match standing {
        ProbeStanding::Slowest => "; the other probes wait for it",
        ProbeStanding::Ahead => "",
        ProbeStanding::Ended => "; its run has ended, and nobody waits for it",
        ProbeStanding::Retired => "; it is retired, and nobody waits for it",
        ProbeStanding::Refused => "; its run is refused, and nobody waits for it",
    };
    let delay = delay.as_ref().map_or_else(String::new, |ProbeDelay { delay, first }| {
        format!(", {:.1} s after those of probe {first}", delay.as_secs_f64())
    });
    let missing = match missing {
        0 => String::new(),
        n => format!("; {n} messages are missing"),
    };
    let broken = match broken {
        0 => String::new(),
        n => format!("; {n} of its runs broke off"),
    };
    format!("probe {probe}: {windows}{delay}{missing}{broken}{standing}")
}

/// Prints what was counted, and says what is missing.
fn end(
    merged: MergeOutcome,
    delivered: Option<&DeliveryCounts>,
    args: &MergeArgs,
    term: &Term,
) -> anyhow::Result<Status> {
    let MergeOutcome { outcome, streams, headless, was_stopped, late } = merged;
    let mut losses = ledger::losses(&outcome.ledger, None);
    losses += &delivered.map(delivery::losses).unwrap_or_default();
    if args.quiet {
        term.say_text(&losses);
    } else {
        if term.stdout_tty && term.stderr_tty {
            term.say("");
        }
        term.say_text(&ledger::render(&outcome.ledger));
        term.say_text(&delivered.map(delivery::render).unwrap_or_default());
    }
    let mut broken = headless.len();
    headless.iter().for_each(|stream| term.error(format_args!("{stream}")));
    for stream in &streams {
        if !stream.is_whole() {
            broken += 1;
            term.error(format_args!("{stream}"));
        } else if args.verbose || stream.repeated > 0 && !args.quiet {
            term.say(stream);
        }
    }
    if was_stopped && !args.quiet {
        term.say("interrupted");
    }
    if let Some(e) = outcome.error {
        return Err(e.into());
    }
    if broken > 0 {
        let of = streams.len() + headless.len();
        term.error(format_args!("partial results of {broken} of {of} streams are missing"));
        return Ok(Status::Failed);
    }
    if args.fail_on_loss && !losses.is_empty() {
        term.error(format_args!("packets, rows or alerts were lost (--fail-on-loss)"));
        return Ok(Status::Failed);
    }
    Ok(if args.max_skew.is_some() && late > 0 { Status::Failed } else { Status::Ok })
}
