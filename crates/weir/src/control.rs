//! The report of a run to the control socket: its counts, and which programs may run beside the
//! others.

use crate::stats::{RunCounts, Stats};
use crate::{delivery, ledger, metrics};
use std::time::Duration;
use weir_capture::lookback::LookbackCounts;
use weir_capture::outlets::Outlets;
use weir_control::{Captured, Counts, Deliveries, Report, UnreadCount};
use weir_deliver::DeliveryCounts;
use weir_engine::rows::Output;
use weir_packet::source::Account;
use weir_packet::unread::{UnreadProtocol, UnreadReason};
use weir_plan::{Program, SourceKind};
use weir_sink::Names;

/// Asks the run for its counts, and waits for them at most so long.
pub(crate) fn report(stats: &Stats, patience: Duration) -> Option<Report> {
    let counts = stats.wait(patience)?;
    let mut text = stats.text(&counts);
    let captures = stats.captures();
    if let Some(captures) = &captures {
        text += &ledger::captures(captures);
        text.push('\n');
    }
    let delivered = stats.deliveries();
    text += &delivered.as_ref().map(delivery::render).unwrap_or_default();
    let deliveries = delivered.as_ref().map(deliveries);
    let kernel_hands_up = stats.hands_up();
    let counts = Counts { deliveries, kernel_hands_up, ..numbers(&counts, captures) };
    Some(Report { text, counts })
}

/// The counts of a ledger, of each interface, and of the packets around rows.
fn numbers(counts: &RunCounts, captures: Option<LookbackCounts>) -> Counts {
    let RunCounts { ledger, interfaces } = counts;
    let interface = |(name, account): &(String, Account)| {
        (name.clone(), account.received, account.lost.total())
    };
    Counts {
        received: ledger.received,
        filtered: ledger.filtered,
        kernel_filtered: ledger.kernel.filtered,
        kernel_counted: ledger.kernel.counted,
        kernel_wanted: ledger.kernel.wanted,
        kernel_unclear: ledger.kernel.unclear,
        kernel_full: ledger.kernel.full,
        kernel_acted: ledger.kernel.acted,
        kernel_hands_up: None,
        processed: ledger.processed,
        cut: ledger.cut,
        malformed: ledger.malformed_total(),
        lost_by_interface: ledger.lost.interface,
        lost_in_kernel: ledger.lost.kernel,
        lost_in_ring: ledger.lost.ring,
        late: ledger.late,
        lagging: ledger.lagging,
        disordered: ledger.disordered,
        wild: ledger.wild,
        untimed: ledger.untimed,
        overlong: ledger.overlong,
        evicted: ledger.evicted,
        undefined: ledger.undefined,
        unfilled: ledger.unfilled,
        undecided: ledger.undecided,
        copies: ledger.copies,
        unfinished: ledger.unfinished,
        unread: ledger.unread.each().map(unread).collect(),
        suppressed: ledger.suppressed,
        rows: ledger.rows,
        refused: ledger.refused,
        unwritten: ledger.unwritten,
        withheld: ledger.ends.withheld,
        doubtful: ledger.ends.doubtful.values().map(|traffic| traffic.frames).sum(),
        interfaces: interfaces.iter().map(interface).collect(),
        workers: ledger.shares.of_workers().iter().map(|ways| ways.iter().sum()).collect(),
        captured: captures.map(captured),
        deliveries: None,
    }
}

fn unread((protocol, reason, count): (UnreadProtocol, UnreadReason, u64)) -> UnreadCount {
    UnreadCount { protocol: protocol.name().to_owned(), reason: reason.name().to_owned(), count }
}

fn deliveries(counts: &DeliveryCounts) -> Deliveries {
    Deliveries {
        alerts: counts.alerts,
        delivered: counts.delivered(),
        waiting: counts.waiting(),
        undelivered: counts.undelivered(),
    }
}

fn captured(captures: LookbackCounts) -> Captured {
    Captured {
        files: captures.files,
        frames: captures.frames,
        bytes: captures.bytes,
        short: captures.short,
        full: captures.full,
        left_out: captures.left_out,
        missed: captures.missed,
        refused: captures.refused,
        existed: captures.existed,
        failed: captures.failed,
        error: captures.error.map(|e| e.to_string()),
    }
}

/// The limits of the programs that are added to a run.
pub(crate) struct Limits {
    /// Where passed packets go (-w).
    pub(crate) write: Option<String>,
    /// The program whose names columns have.
    pub(crate) names: Names,
    /// Whether the run keeps the last packets (--ring), and has a folder for files of them
    /// (--capture-dir).
    pub(crate) keeps_packets: bool,
    /// Whether each change reads the packets again.
    pub(crate) reads_again: bool,
    /// The kind of the source: packets or flow records.
    pub(crate) source: SourceKind,
}

impl Limits {
    /// Refuses a program with these outputs that may not run, with the reason.
    pub(crate) fn check(&self, program: &Program, outputs: &[Output]) -> Result<(), String> {
        if program.source != self.source {
            return Err(format!(
                "the program reads {}, and the source of this run delivers {}",
                program.source.plural(),
                self.source.plural()
            ));
        }
        if !self.keeps_packets && program.captures().next().is_some() {
            return Err("`capture` writes earlier packets to new files, and this run keeps none \
                        for that: start it with --ring 64m, say, and --capture-dir FOLDER"
                .to_owned());
        }
        metrics::check_exports(outputs)?;
        let outlets = program.outlets();
        if self.reads_again && !outlets.is_empty() {
            return Err("packets can't go anywhere here: each change of programs reads the \
                        captures again from their beginning; use `weir run`"
                .to_owned());
        }
        Outlets::check(&outlets, self.write.as_deref()).map_err(|e| e.to_string())?;
        self.names.check(outputs).map_err(|clash| clash.to_string())
    }
}
