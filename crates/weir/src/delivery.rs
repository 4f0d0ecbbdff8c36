//! Alerts of a run on their way to the process that delivers them, and what became of them.

use crate::args::{ConfineArgs, DeliverArgs};
use crate::exit::usage;
use crate::observe::Observer;
use crate::shelf::own_command;
use crate::term::Term;
use std::fmt::Write as _;
use std::io;
use weir_base::full::WhenFull;
use weir_deliver::limits::DRAIN;
use weir_deliver::{Courier, CourierError, DeliveryCounts, Setup, Target, TargetCounts};
use weir_engine::rows::{Output, Rows};
use weir_plan::{Alert, Program};
use weir_sink::{LineWriter, Names, RowOptions, each_line};

/// The command that starts the process that delivers (`cmd/deliver.rs`).
const COMMAND: &str = "deliver-alerts";

/// The receivers of a run, checked.
pub(crate) fn targets(
    args: &DeliverArgs,
    program: Option<&Program>,
) -> anyhow::Result<Vec<Target>> {
    let targets = args.targets()?;
    let has_alerts =
        |program: &Program| Output::of(program).iter().any(|output| Alert::is_of(&output.schema));
    // Where programs may come, those may have alerts.
    if !targets.is_empty() && program.is_some_and(|program| !has_alerts(program)) {
        return Err(usage(
            "--alert-to, --alert-config: no query prints alerts; the stage `alert` makes them",
        ));
    }
    Ok(targets)
}

/// Starts the process that delivers, if there are receivers. This comes before anything is given
/// up, and before there are threads.
pub(crate) fn start(
    targets: Vec<Target>,
    args: &DeliverArgs,
    confine: &ConfineArgs,
) -> anyhow::Result<Option<Courier>> {
    if targets.is_empty() {
        return Ok(None);
    }
    let host = nix::unistd::gethostname().unwrap_or_default();
    let setup = Setup {
        targets,
        host: host.to_string_lossy().into_owned(),
        user: confine.relinquish_privileges.clone(),
        spill: args.alert_spill.clone(),
        confines: !confine.no_sandbox,
    };
    let mut command = own_command();
    command.arg(COMMAND);
    match Courier::start(command, &setup) {
        Ok(courier) => Ok(Some(courier)),
        Err(CourierError::Fault(why)) => Err(usage(format!("--alert-to: {why}"))),
        Err(e) => Err(e.into()),
    }
}

/// From now on hands alerts over, and tells the user of receivers that are away.
pub(crate) fn run(courier: &Courier, term: &Term, quiet: bool) -> io::Result<()> {
    let term = *term;
    courier.run(move |text| {
        if !quiet {
            term.say(text);
        }
    })
}

/// Waits until what was handed over is delivered, for some seconds.
pub(crate) fn finish(courier: &Courier, term: &Term, quiet: bool) -> DeliveryCounts {
    courier.finish(|| {
        if !quiet {
            let seconds = DRAIN.as_secs();
            term.say(format_args!("waiting for alerts to be delivered, at most {seconds} s"));
        }
    })
}

/// Hands over the alerts among rows.
pub(crate) struct AlertTap {
    courier: Courier,
    when_full: WhenFull,
    /// The outputs whose rows are alerts.
    outputs: Vec<Option<LineWriter>>,
}

impl AlertTap {
    pub(crate) fn new(courier: Courier, when_full: WhenFull) -> Self {
        AlertTap { courier, when_full, outputs: Vec::new() }
    }
}

impl Observer for AlertTap {
    fn open(&mut self, outputs: &[Output]) -> io::Result<()> {
        let of_alerts = |output: &Output| {
            let writer =
                || LineWriter::new(output.clone(), RowOptions::default(), Names::default());
            Alert::is_of(&output.schema).then(writer)
        };
        self.outputs = outputs.iter().map(of_alerts).collect();
        Ok(())
    }

    fn rows(&mut self, output: usize, rows: &Rows) -> io::Result<()> {
        if let Some(Some(output)) = self.outputs.get(output) {
            for line in each_line(&output.lines(rows)) {
                self.courier.give(line, self.when_full);
            }
        }
        Ok(())
    }
}

/// A line for each receiver, and one for alerts that never got as far.
pub(crate) fn render(counts: &DeliveryCounts) -> String {
    let mut out = String::new();
    for target in &counts.targets {
        let _ = write!(out, "alerts     {} delivered to {}", target.delivered, target.name);
        if target.waiting > 0 {
            let _ = write!(out, "; {} waiting", target.waiting);
        }
        if target.kept > 0 {
            let _ = write!(out, "; {} kept for the next run", target.kept);
        }
        if target.undelivered() > 0 {
            let _ = write!(out, "; {}", undelivered(target));
        }
        out.push('\n');
    }
    out + &missed(counts)
}

/// A line for each loss; empty if there is none.
pub(crate) fn losses(counts: &DeliveryCounts) -> String {
    let mut out = String::new();
    for target in counts.targets.iter().filter(|target| target.undelivered() > 0) {
        let _ = writeln!(out, "alerts     {} to {}", undelivered(target), target.name);
    }
    out + &missed(counts)
}

fn undelivered(target: &TargetCounts) -> String {
    let TargetCounts { full, refused, away, error, .. } = target;
    let reasons = [
        (full, "found the queue full"),
        (refused, "it did not accept"),
        (away, "waited for it in vain"),
    ];
    let parts = reasons.iter().filter(|(n, _)| **n > 0).map(|(n, why)| format!("{n} {why}"));
    let parts: Vec<String> = parts.collect();
    let error = error.as_ref().map(|e| format!(" ({e})")).unwrap_or_default();
    format!("{} undelivered: {}{error}", target.undelivered(), parts.join(", "))
}

fn missed(counts: &DeliveryCounts) -> String {
    let why = counts.ended.as_deref();
    let why = why.unwrap_or("the process that delivers alerts did not take them in time");
    match counts.missed {
        0 if counts.ended.is_none() => String::new(),
        0 => format!("alerts     {why}\n"),
        n => format!("alerts     {n} undelivered: {why}\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use insta::assert_snapshot;

    #[test]
    fn every_alert_that_was_not_delivered_is_told() {
        let target = |name: &str, delivered| TargetCounts {
            name: name.to_owned(),
            delivered,
            ..TargetCounts::default()
        };
        let mut counts = DeliveryCounts {
            alerts: 9,
            targets: vec![target("syslog://a:514", 9), target("https://b:443", 2)],
            ..DeliveryCounts::default()
        };
        assert_eq!(losses(&counts), "");
        let b = &mut counts.targets[1];
        (b.full, b.refused, b.away, b.waiting) = (1, 2, 3, 1);
        b.error = Some("connecting: Connection refused".to_owned());
        counts.missed = 4;
        assert_snapshot!(render(&counts), @r"
        alerts     9 delivered to syslog://a:514
        alerts     2 delivered to https://b:443; 1 waiting; 6 undelivered: 1 found the queue full, 2 it did not accept, 3 waited for it in vain (connecting: Connection refused)
        alerts     4 undelivered: the process that delivers alerts did not take them in time
        ");
        assert_snapshot!(losses(&counts), @r"
        alerts     6 undelivered: 1 found the queue full, 2 it did not accept, 3 waited for it in vain (connecting: Connection refused) to https://b:443
        alerts     4 undelivered: the process that delivers alerts did not take them in time
        ");
        counts.ended = Some("it has ended".to_owned());
        assert!(losses(&counts).ends_with("alerts     4 undelivered: it has ended\n"));
        // No alert came after that, and none would have been delivered.
        let counts = DeliveryCounts { ended: counts.ended, ..DeliveryCounts::default() };
        assert_eq!(losses(&counts), "alerts     it has ended\n");
    }
}
