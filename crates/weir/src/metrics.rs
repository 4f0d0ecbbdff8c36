//! The ledger as metrics.

use crate::exports::{self, Exports};
use crate::stage_flow::StageMetrics;
use crate::stats::{RunCounts, Stats};
use crate::tap::{NAMES_MAX, OTHERS, Tallies};
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};
use weir_capture::lookback::LookbackCounts;
use weir_deliver::{DeliveryCounts, TargetCounts};
use weir_engine::counters::Ledger;
use weir_engine::flow::StageFlows;
use weir_engine::rows::Output;
use weir_http::{Api, Exposition, MetricsFormat, Page, Pages, RowLog, Sample};
use weir_packet::egress::Outlet;
use weir_packet::source::{Account, Lost};
use weir_packet::unread::{UnreadProtocol, UnreadReason};
use weir_packet::walk::Reason;

/// How long a client waits for the run, whose workers answer between batches.
const PATIENCE: Duration = Duration::from_secs(3);

/// How long an answer of the run is good for the next client, too: clients that ask often cost the
/// run no more than this.
const FRESH: Duration = Duration::from_millis(250);

/// The pages of a run.
pub(crate) fn pages(
    stats: &Stats,
    exports: Exports,
    (tallies, log): (Tallies, RowLog),
    stages: StageMetrics,
    (api, page): (Option<Api>, Option<Page>),
) -> Pages {
    let view = Arc::new(View::new(stats.clone()));
    let has_api = api.is_some();
    let asked = Arc::clone(&view);
    Pages {
        metrics: Box::new(move |format| {
            let counts = view.counts()?;
            let mut out = Exposition::new(format);
            all(&mut out, view.start, &counts, view.stats.captures().as_ref());
            programs(&mut out, &tallies);
            stages.write(&mut out, &counts.ledger.flows);
            if let Some(counts) = view.stats.deliveries() {
                deliveries(&mut out, &counts);
            }
            if has_api {
                clients(&mut out, log.clients() as u64, log.lost());
            }
            exports.write(&mut out);
            Some(out.finish())
        }),
        is_healthy: Box::new(move || asked.counts().is_some()),
        api,
        page,
    }
}

/// The counts of a run as several clients see them.
struct View {
    stats: Stats,
    /// When the run began, in seconds since 1970.
    start: u64,
    latest: Mutex<Option<Latest>>,
}

/// The counts that the run answered, if it did, and when.
struct Latest {
    at: Instant,
    counts: Option<Arc<RunCounts>>,
}

impl View {
    #[expect(clippy::disallowed_methods, reason = "people ask since when it runs")]
    fn new(stats: Stats) -> View {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        View { stats, start: since.map_or(0, |since| since.as_secs()), latest: Mutex::default() }
    }

    /// The counts, unless the run does not answer. Clients that come at the same time share them.
    #[expect(clippy::disallowed_methods, reason = "the age of an answer")]
    fn counts(&self) -> Option<Arc<RunCounts>> {
        let mut latest = self.latest.lock();
        let fresh = latest.as_ref().filter(|latest| latest.at.elapsed() < FRESH);
        if let Some(latest) = fresh {
            return latest.counts.clone();
        }
        let counts = self.stats.wait(PATIENCE).map(Arc::new);
        *latest = Some(Latest { at: Instant::now(), counts: counts.clone() });
        counts
    }
}

/// Refuses metrics of queries of which two would have one name, or one that runs have themselves.
pub(crate) fn check_exports(outputs: &[Output]) -> Result<(), String> {
    exports::check(outputs, &own_names())
}

/// The names of the metrics of runs themselves, and of their samples.
fn own_names() -> BTreeSet<String> {
    let mut out = Exposition::new(MetricsFormat::OpenMetrics);
    let counts = RunCounts { ledger: Ledger::default(), interfaces: Vec::new() };
    all(&mut out, 0, &counts, Some(&LookbackCounts::default()));
    programs(&mut out, &Tallies::default());
    write_no_stages(&mut out);
    clients(&mut out, 0, 0);
    deliveries(&mut out, &DeliveryCounts::default());
    Exports::default().write(&mut out);
    let text = out.finish();
    let families = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    let family = |line: &str| {
        let (name, kind) = line.split_once(' ')?;
        Some([
            name.to_owned(),
            format!("{name}_{}", if kind == "counter" { "total" } else { kind }),
        ])
    };
    families.filter_map(family).flatten().collect()
}

/// The names of the metrics of stages, all of them.
fn write_no_stages(out: &mut Exposition) {
    let mut flows = StageFlows::default();
    flows.waiting = Some(0);
    StageMetrics::default().write(out, &flows);
}

/// All metrics of a run that come from its ledger.
fn all(out: &mut Exposition, start: u64, counts: &RunCounts, captures: Option<&LookbackCounts>) {
    let version = vec![("version", env!("CARGO_PKG_VERSION").to_owned())];
    out.info("weir_build", "The version of Weir.", version);
    let about = "When the run began, in seconds since 1970.";
    out.gauge("weir_start_time_seconds", about, [Sample::plain(start)]);
    packets(out, &counts.ledger);
    rows(out, &counts.ledger);
    outlets(out, &counts.ledger);
    workers(out, &counts.ledger);
    interfaces(out, &counts.interfaces);
    if let Some(captures) = captures {
        around_rows(out, captures);
    }
}

/// Rows by program.
fn programs(out: &mut Exposition, tallies: &Tallies) {
    let all = tallies.all();
    let of = |program: &String, n| Sample::of("program", program, n);
    let about = "Rows that a program emitted.";
    out.counter("weir_program_rows_emitted", about, all.iter().map(|(p, n)| of(p, n.emitted)));
    let about = "Rows of a program that the sink did not take in time.";
    out.counter("weir_program_rows_refused", about, all.iter().map(|(p, n)| of(p, n.refused)));
}

/// The fate of alerts, by receiver.
fn deliveries(out: &mut Exposition, counts: &DeliveryCounts) {
    let of = |n: fn(&TargetCounts) -> u64| {
        counts.targets.iter().map(move |target| Sample::of("target", &target.name, n(target)))
    };
    let about = "Alerts that a receiver took.";
    out.counter("weir_alerts_delivered", about, of(|target| target.delivered));
    let about = "Alerts that a receiver will not get.";
    out.counter("weir_alerts_undelivered", about, of(TargetCounts::undelivered));
    let about = "Alerts that wait for a receiver.";
    out.gauge("weir_alerts_waiting", about, of(|target| target.waiting));
    let about = "Alerts that never reached the process that delivers them.";
    out.counter("weir_alerts_missed", about, [Sample::plain(counts.missed)]);
}

/// Clients that get rows.
fn clients(out: &mut Exposition, clients: u64, lost: u64) {
    let streams = Sample::plain(clients);
    out.gauge("weir_http_streams", "Clients that get rows over HTTP.", [streams]);
    let about = "Rows that such clients did not take in time.";
    out.counter("weir_http_rows_lost", about, [Sample::plain(lost)]);
}

/// Counters without labels: their names, what they count, and their values.
type Plain = (&'static str, &'static str, u64);

fn plain(out: &mut Exposition, all: impl IntoIterator<Item = Plain>) {
    for (name, help, value) in all {
        out.counter(name, help, [Sample::plain(value)]);
    }
}

fn packets(out: &mut Exposition, ledger: &Ledger) {
    let Ledger { received, filtered, processed, abandoned, cut, wild, untimed, overlong, .. } =
        *ledger;
    plain(
        out,
        [
            ("weir_packets_received", "Packets that the source delivered.", received),
            ("weir_packets_filtered", "Packets that the capture filter refused.", filtered),
            ("weir_packets_processed", "Packets that went through the queries.", processed),
            (
                "weir_packets_abandoned",
                "Packets that waited to be processed when the run failed.",
                abandoned,
            ),
            ("weir_packets_cut", "Processed packets cut inside a header.", cut),
            ("weir_packets_wild", "Packets whose time is far ahead of the others.", wild),
            ("weir_packets_overlong", "Packets with a forged length.", overlong),
            ("weir_packets_untimed", "Packets without a time.", untimed),
        ],
    );
    let kernel = ledger.kernel;
    let outcomes = [
        ("filtered", kernel.filtered),
        ("counted", kernel.counted),
        ("wanted", kernel.wanted),
        ("unclear", kernel.unclear),
        ("full", kernel.full),
        ("acted", kernel.acted),
    ];
    out.counter(
        "weir_kernel_packets",
        "Packets that a program of the query met in the kernel, by what became of them there.",
        outcomes.map(|(outcome, n)| Sample::of("outcome", outcome, n)),
    );
    let reason =
        |reason: Reason| Sample::of("reason", reason.name(), ledger.malformed[reason as usize]);
    out.counter(
        "weir_packets_malformed",
        "Processed packets whose headers contradict themselves, by reason.",
        Reason::ALL.into_iter().map(reason),
    );
    let unread = |(protocol, reason, value): (UnreadProtocol, UnreadReason, u64)| Sample {
        labels: vec![("protocol", protocol.name().into()), ("reason", reason.name().into())],
        value,
    };
    out.counter(
        "weir_packets_unread",
        "Parts of packets that fields did not show, by protocol and reason.",
        ledger.unread.each().map(unread),
    );
    out.counter(
        "weir_packets_lost",
        "Packets that were never received, by the place where they were lost.",
        places(ledger.lost).map(|(place, n)| Sample::of("place", place, n)),
    );
}

/// Losses by place.
fn places(lost: Lost) -> [(&'static str, u64); 3] {
    [("interface", lost.interface), ("kernel", lost.kernel), ("ring", lost.ring)]
}

fn rows(out: &mut Exposition, ledger: &Ledger) {
    // Rows may turn out not to be written after they have left; so the sum is what only grows.
    let emitted = ledger.rows + ledger.refused + ledger.unwritten;
    let Ledger { refused, unwritten, evicted, undefined, unfilled, .. } = *ledger;
    plain(
        out,
        [
            ("weir_rows_emitted", "Rows that the queries emitted.", emitted),
            ("weir_rows_refused", "Emitted rows that the sink did not take in time.", refused),
            ("weir_rows_unwritten", "Emitted rows that could not be written.", unwritten),
            ("weir_rows_late", "Rows that came after their window had closed.", ledger.late),
            ("weir_rows_lagging", "Rows that came too late to their session.", ledger.lagging),
            ("weir_packets_disordered", "Packets not in order of time.", ledger.disordered),
            ("weir_rows_evicted", "Groups and rows left out for want of room.", evicted),
            ("weir_values_undefined", "Values left absent: out of range.", undefined),
            ("weir_windows_unfilled", "Windows that lack rows of fill.", unfilled),
            ("weir_rows_undecided", "Rows that a join left out at the end.", ledger.undecided),
            ("weir_packets_copies", "Packets that deduplicate left out.", ledger.copies),
            ("weir_hellos_unfinished", "TLS hellos that did not complete.", ledger.unfinished),
            ("weir_alerts_suppressed", "Alerts that a list left out.", ledger.suppressed),
        ],
    );
}

fn outlets(out: &mut Exposition, ledger: &Ledger) {
    let ends = &ledger.ends;
    plain(
        out,
        [
            ("weir_packets_dropped", "Packets that a query dropped.", ends.dropped.frames),
            ("weir_packets_withheld", "Packets that anonymize withheld.", ends.withheld),
            ("weir_packets_untagged", "Packets without a place for a tag.", ends.untagged),
            ("weir_packets_moved", "Packets whose output was away.", ends.moved),
        ],
    );
    let name = |outlet: &Outlet| match outlet {
        Outlet::Pass => "pass".to_owned(),
        Outlet::Named(name) => name.clone(),
    };
    let handed = bounded(ends.outlets.iter().map(|(o, n)| (name(o), [n.frames, n.bytes])));
    let refused = bounded(ends.refused.iter().map(|(o, n)| (name(o), [n.total().0])));
    let of = |outlet: &String, n| Sample::of("outlet", outlet, n);
    out.counter(
        "weir_outlet_packets",
        "Packets that were handed to an outlet: sent or refused.",
        handed.iter().map(|(outlet, n)| of(outlet, n[0])),
    );
    out.counter(
        "weir_outlet_bytes",
        "Bytes of these packets as on the wire.",
        handed.iter().map(|(outlet, n)| of(outlet, n[1])),
    );
    out.counter(
        "weir_outlet_refused_packets",
        "Packets that the outlet did not take.",
        refused.iter().map(|(outlet, n)| of(outlet, n[0])),
    );
    let doubtful = bounded(ends.doubtful.iter().map(|(o, n)| (name(o), [n.frames])));
    out.counter(
        "weir_outlet_doubtful_packets",
        "Packets that may not have left, at most, since this or another outlet of them went down.",
        doubtful.iter().map(|(outlet, n)| of(outlet, n[0])),
    );
}

fn workers(out: &mut Exposition, ledger: &Ledger) {
    let shares = ledger.shares.of_workers().iter().enumerate();
    let shares = bounded(shares.map(|(worker, ways)| (worker.to_string(), [ways.iter().sum()])));
    out.counter(
        "weir_worker_packets",
        "Packets that a worker processed, once for each way in which packets are spread.",
        shares.iter().map(|(worker, n): &(String, [u64; 1])| Sample::of("worker", worker, n[0])),
    );
}

fn interfaces(out: &mut Exposition, interfaces: &[(String, Account)]) {
    let numbers = |(name, account): &(String, Account)| {
        let lost = account.lost;
        (name.clone(), [account.received, lost.interface, lost.kernel, lost.ring])
    };
    let all = bounded(interfaces.iter().map(numbers));
    out.counter(
        "weir_interface_packets_received",
        "Packets that were received from an interface.",
        all.iter().map(|(name, n)| Sample::of("interface", name, n[0])),
    );
    let lost = all.iter().flat_map(|(name, [_, interface, kernel, ring])| {
        let lost = Lost { interface: *interface, kernel: *kernel, ring: *ring };
        places(lost).map(|(place, value)| {
            let labels = vec![("interface", name.clone()), ("place", place.to_owned())];
            Sample { labels, value }
        })
    });
    let about = "Packets of an interface that were never received, by place.";
    out.counter("weir_interface_packets_lost", about, lost);
}

fn around_rows(out: &mut Exposition, captures: &LookbackCounts) {
    let LookbackCounts { files, frames, bytes, short, full, left_out, missed, .. } = *captures;
    plain(
        out,
        [
            ("weir_capture_files", "Files with packets around rows that were begun.", files),
            ("weir_capture_packets", "Packets in them.", frames),
            ("weir_capture_bytes", "Bytes of those packets.", bytes),
            ("weir_capture_short_files", "Files that may lack their first packets.", short),
            ("weir_capture_full_files", "Files that are full.", full),
            ("weir_capture_left_out_packets", "Packets that full files lack.", left_out),
            ("weir_capture_missed_packets", "Packets that the disk did not take.", missed),
            ("weir_capture_refused_files", "Files beyond the bounds.", captures.refused),
            ("weir_capture_existing_files", "Files not begun, as one existed.", captures.existed),
            ("weir_capture_failed_files", "Files that failed.", captures.failed),
        ],
    );
}

/// The numbers of each name, in order. The counts of one name are added up, and so are those of all
/// names beyond the first [`NAMES_MAX`].
fn bounded<const N: usize>(
    all: impl Iterator<Item = (String, [u64; N])>,
) -> Vec<(String, [u64; N])> {
    let mut out: Vec<(String, [u64; N])> = Vec::new();
    let mut places = BTreeMap::new();
    for (name, numbers) in all {
        let known = places.contains_key(&name) || places.len() < NAMES_MAX;
        let name = if known { name } else { OTHERS.to_owned() };
        let place = *places.entry(name.clone()).or_insert_with(|| {
            out.push((name, [0; N]));
            out.len() - 1
        });
        let sums: &mut [u64; N] = &mut out[place].1;
        sums.iter_mut().zip(numbers).for_each(|(sum, n)| *sum = sum.saturating_add(n));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_engine::counters::Traffic;

    #[test]
    fn names_beyond_the_bound_are_added_up() {
        let all = bounded((0..NAMES_MAX + 3).map(|i| (i.to_string(), [1, i as u64])));
        assert_eq!(all.len(), NAMES_MAX + 1);
        let sum = (NAMES_MAX..NAMES_MAX + 3).sum::<usize>() as u64;
        assert_eq!(all[NAMES_MAX], (OTHERS.to_owned(), [3, sum]));
        let twice = ["a", "b", "a"].map(|name| (name.to_owned(), [1]));
        let expected = [("a".to_owned(), [2]), ("b".to_owned(), [1])];
        assert_eq!(bounded(twice.into_iter()), expected);
    }

    #[test]
    fn packets_that_an_outlet_may_have_dropped_are_told() {
        let mut ledger = Ledger::default();
        ledger.ends.doubt(&Outlet::Pass, Traffic { frames: 12, bytes: 720 });
        ledger.ends.doubt(&Outlet::Named("spare".to_owned()), Traffic { frames: 3, bytes: 180 });
        let mut out = Exposition::new(MetricsFormat::OpenMetrics);
        outlets(&mut out, &ledger);
        let text = out.finish();
        for line in ["{outlet=\"pass\"} 12\n", "{outlet=\"spare\"} 3\n"] {
            let line = format!("weir_outlet_doubtful_packets_total{line}");
            assert!(text.contains(&line), "{text}");
        }
    }

    #[test]
    fn every_name_is_one_family() {
        let counts = RunCounts { ledger: Ledger::default(), interfaces: Vec::new() };
        let captures = LookbackCounts::default();
        let mut out = Exposition::new(MetricsFormat::OpenMetrics);
        all(&mut out, 0, &counts, Some(&captures));
        programs(&mut out, &Tallies::default());
        write_no_stages(&mut out);
        clients(&mut out, 0, 0);
        deliveries(&mut out, &DeliveryCounts::default());
        Exports::default().write(&mut out);
        let text = out.finish();
        let mut families: Vec<_> = text.lines().filter(|l| l.starts_with("# TYPE")).collect();
        let n = families.len();
        families.sort_unstable();
        families.dedup();
        assert_eq!((families.len(), n > 30), (n, true));
        assert!(!text.contains("_total_total") && text.ends_with("# EOF\n"));
    }
}
