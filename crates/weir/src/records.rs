//! Flow records of exporters as the source of a run: what options they take, and what the ledger
//! says of them.

use crate::args::{OffloadMode, RunOptions};
use crate::exit::usage;
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use weir_capture::limits::RECORD_BUFFER;
use weir_capture::records::{
    RecordAddress, RecordOptions, RecordReport, RecordSummary, is_record_address,
    open_record_sockets,
};
use weir_flows::{Exporter, Fault};
use weir_packet::source::{Source, SourceError};
use weir_plan::{Program, SourceKind};

/// How long after its end a record may come, unless `--lateness` says otherwise: routers export a
/// flow some 15 s after its last packet, and keep records until a datagram is full.
const LATENESS_NS: i64 = 60 * 1_000_000_000;

/// Whether flow records are received at addresses of this machine.
pub(crate) fn is_received(options: &RunOptions) -> bool {
    options.live.interface.iter().any(|name| is_record_address(name))
}

/// The kind of the source of a run: packets or flow records. Programs that come later have to read
/// the same.
pub(crate) fn kind(options: &RunOptions, program: &Program) -> SourceKind {
    match is_received(options) {
        true => SourceKind::FlowRecords,
        false => program.source,
    }
}

/// How long after its end a record may come.
pub(crate) fn lateness_ns(options: &RunOptions) -> i64 {
    options.lateness.unwrap_or(LATENESS_NS)
}

/// Refuses a query, a filter or options that the source of records does not go together with.
pub(crate) fn check(options: &RunOptions, program: &Program, filter: bool) -> anyhow::Result<()> {
    if program.source == SourceKind::FlowRecords && options.lookback.ring.is_some() {
        return Err(usage("--ring keeps packets, and the query reads flow records"));
    }
    if !is_received(options) {
        return Ok(());
    }
    let live = &options.live;
    let given = &live.interface;
    if let Some(name) = given.iter().find(|name| !is_record_address(name)) {
        return Err(usage(format!(
            "-i {name} delivers packets, and {} flow records: a run has one kind of source",
            given.iter().find(|name| is_record_address(name)).map_or("the other", |s| s)
        )));
    }
    addresses(given).map_err(usage)?;
    if program.source == SourceKind::Packets && !program.pipelines.is_empty() {
        return Err(usage(format!(
            "{} delivers flow records, and the query reads packets: begin it with `flows`, and see \
             `weir fields --flows`",
            given[0]
        )));
    }
    let wrong = [
        (filter, "a capture filter"),
        (live.capture.is_some(), "--capture"),
        (live.offload != OffloadMode::Off, "--offload"),
        (live.busy_poll, "--busy-poll"),
        (live.snapshot_length.is_some(), "-s"),
        (live.direction.is_some(), "-Q"),
        (live.no_promiscuous_mode, "--no-promiscuous-mode"),
        (live.time_stamp_type.is_some(), "--time-stamp-type"),
        (live.immediate_mode, "--immediate-mode"),
        (live.rings.is_some(), "--rings"),
        (options.fragments, "--fragments"),
    ];
    match wrong.into_iter().find(|(given, _)| *given) {
        Some((_, what)) => Err(usage(format!(
            "{what} only applies to packets, and {} delivers flow records",
            given[0]
        ))),
        None => Ok(()),
    }
}

fn addresses(given: &[String]) -> Result<Vec<RecordAddress>, String> {
    given.iter().map(|name| name.parse()).collect()
}

/// Opens the sockets that exporters send to; `stop` ends them.
pub(crate) fn open(
    options: &RunOptions,
    stop: &Arc<AtomicBool>,
    report: &RecordReport,
    quiet: bool,
) -> Result<Box<dyn Source>, SourceError> {
    let live = &options.live;
    let addresses = addresses(&live.interface)
        .map_err(|reason| SourceError::Format { name: live.interface.join(", "), reason })?;
    let (stop, lateness_ns) = (Arc::clone(stop), lateness_ns(options));
    let buffer = live.buffer_size.unwrap_or(RECORD_BUFFER);
    let sockets =
        open_record_sockets(&addresses, RecordOptions { buffer, lateness_ns, stop }, report)?;
    if !quiet {
        // There is no way to report that this can't be written.
        let _ = writeln!(io::stderr(), "receiving flow records at {}", sockets.names().join(", "));
    }
    Ok(Box::new(sockets))
}

/// The lines of the ledger about exporters: datagrams, what of them was lost or is no flow, and a
/// line for each exporter.
pub(crate) fn render(summary: &RecordSummary) -> String {
    let mut out = losses(summary);
    let RecordSummary { counts, exporters, others, ahead, .. } = summary;
    let mut beside = Vec::new();
    for (n, what) in [
        (counts.options, "records of options"),
        (counts.counters, "samples of counters"),
        (*others, "packets without such a datagram"),
        (counts.sessions_forgotten, "exporters forgotten, of which a host had too many"),
        (counts.totals_forgotten, "flows with running totals forgotten, of which were too many"),
        (*ahead, "records that ended more than a minute after they came, as they said"),
    ] {
        if n > 0 {
            beside.push(format!("{n} {what}"));
        }
    }
    let beside = match beside.is_empty() {
        true => String::new(),
        false => format!("; beside flows {}", beside.join(", ")),
    };
    let _ = writeln!(out, "datagrams  {}{beside}", counts.datagrams);
    for exporter in exporters {
        let Exporter { records, lost, restarts, .. } = exporter;
        let _ = write!(out, "exporter   {exporter}: {records} records");
        if *lost > 0 {
            let _ = write!(out, ", {lost} {} lost", exporter.unit());
        }
        if *restarts > 0 {
            let times = if *restarts == 1 { "once" } else { "times" };
            let n = if *restarts == 1 { String::new() } else { format!("{restarts} ") };
            let _ = write!(out, ", started again {n}{times}");
        }
        out.push('\n');
    }
    out
}

/// A line for each way in which records were lost; empty if nothing was. They are printed even with
/// `-q`, and `--fail-on-loss` fails for them.
pub(crate) fn losses(summary: &RecordSummary) -> String {
    let RecordSummary { counts, exporters, dropped, crowded, unseen, .. } = summary;
    let mut out = String::new();
    for (unit, lost, records) in on_the_way(exporters) {
        let some = match unit == "datagrams" {
            true => format!(", with some {records} records"),
            false => String::new(),
        };
        let place = "on the way from exporters, as their sequence numbers say";
        let _ = writeln!(out, "lost       {lost} {unit} {place}{some}");
    }
    let untemplated = counts.untemplated;
    for (n, what) in [
        (*dropped, "datagrams that the kernel dropped here: -B lets more wait"),
        (*unseen, "packets before they were read, each maybe with a datagram: -B lets more wait"),
        (*crowded, "records of datagrams that bring more than 65,536 at once"),
        (untemplated, "data sets, whose template did not come in time"),
        (counts.templates_refused, "templates, of which there were too many"),
        (counts.exporters_refused, "datagrams of exporters, of which there were too many"),
    ] {
        if n > 0 {
            let _ = writeln!(out, "lost       {n} {what}");
        }
    }
    let faults = Fault::ALL.into_iter().zip(counts.faults).filter(|(_, n)| *n > 0);
    let faults: Vec<String> = faults.map(|(fault, n)| format!("{fault} {n}")).collect();
    if !faults.is_empty() {
        let _ = writeln!(out, "malformed  parts of datagrams: {}", faults.join(", "));
    }
    out
}

/// The losses by sequence numbers, by what these count; and how many records that is, about.
fn on_the_way(exporters: &[Exporter]) -> Vec<(&'static str, u64, u64)> {
    let mut all: Vec<(&'static str, u64, u64)> = Vec::new();
    for exporter in exporters.iter().filter(|exporter| exporter.lost > 0) {
        let unit = exporter.unit();
        let (lost, records) = (exporter.lost, exporter.lost_records());
        match all.iter_mut().find(|(other, ..)| *other == unit) {
            Some((_, n, of)) => (*n, *of) = (*n + lost, *of + records),
            None => all.push((unit, lost, records)),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_flows::Counts;
    use weir_packet::record::Protocol;

    #[test]
    fn exporters_have_lines() {
        let exporter = |domain, protocol, lost, restarts| Exporter {
            address: Some([192, 0, 2, 1].into()),
            domain,
            protocol,
            datagrams: 20,
            records: 500,
            lost,
            restarts,
        };
        let mut counts = Counts { datagrams: 40, options: 2, untemplated: 3, ..Counts::default() };
        counts.faults[Fault::SetLength as usize] = 1;
        let summary = RecordSummary {
            counts,
            exporters: vec![
                exporter(0, Protocol::Ipfix, 0, 0),
                exporter(7, Protocol::Netflow9, 21, 1),
            ],
            dropped: 4,
            others: 0,
            unseen: 2,
            ahead: 5,
            crowded: 6,
        };
        insta::assert_snapshot!(render(&summary), @r"
        lost       21 datagrams on the way from exporters, as their sequence numbers say, with some 525 records
        lost       4 datagrams that the kernel dropped here: -B lets more wait
        lost       2 packets before they were read, each maybe with a datagram: -B lets more wait
        lost       6 records of datagrams that bring more than 65,536 at once
        lost       3 data sets, whose template did not come in time
        malformed  parts of datagrams: set length 1
        datagrams  40; beside flows 2 records of options, 5 records that ended more than a minute after they came, as they said
        exporter   192.0.2.1 ipfix: 500 records
        exporter   192.0.2.1/7 netflow9: 500 records, 21 datagrams lost, started again once
        ");
    }
}
