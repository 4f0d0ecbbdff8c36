//! How a run ends: the ledger, then what ended it early.

use super::session::Run;
use crate::exit::Status;
use crate::{delivery, ledger, records, wire};
use std::io;
use weir_capture::lookback::Lookback;
use weir_deliver::DeliveryCounts;
use weir_engine::counters::Ledger;
use weir_engine::reading::Reading;
use weir_engine::run::{Outcome, RunError};
use weir_packet::source::{Lost, Source};
use weir_plan::{Pipeline, Stage};

impl Run<'_> {
    /// Prints the ledger and what became of alerts, then what ended the run early.
    pub(super) fn end(
        &self,
        outcome: Outcome,
        source: &mut Lookback<Reading<Box<dyn Source>>>,
        interrupted: bool,
        delivered: Option<&DeliveryCounts>,
    ) -> anyhow::Result<Status> {
        let captures = source.finish().filter(|_| self.keeps_for_files());
        let left = outcome.error.as_ref().and_then(reader_left);
        // A reader that takes the first rows of a file, as head(1) does, wants no more of it.
        if left.is_some() && !self.is_live() {
            return Ok(Status::Ok);
        }
        let records = self.reads_records().then(|| self.records.summary());
        let mut losses = ledger::losses(&outcome.ledger, captures.as_ref());
        if let Some(records) = &records {
            // The losses on the way have lines of their own.
            let of_others = Ledger { lost: Lost::default(), ..outcome.ledger.clone() };
            losses = ledger::losses(&of_others, captures.as_ref()) + &records::losses(records);
        }
        losses += &delivered.map(delivery::losses).unwrap_or_default();
        losses += &self.notes.losses();
        if self.options.quiet {
            // A loss is never quiet.
            self.term.say_text(&losses);
        } else {
            if self.term.stdout_tty && self.term.stderr_tty {
                self.term.say("");
            }
            self.term.say_text(&match records {
                Some(_) => ledger::render_records(&outcome.ledger),
                None => ledger::render(&outcome.ledger),
            });
            if self.options.verbose {
                self.term.say_text(&ledger::workers(&outcome.ledger));
            }
            self.term.say_text(&match &records {
                Some(records) => records::render(records),
                None => wire::render(&source.interfaces(), &self.notes),
            });
            if let Some(counts) = source.inner().counts() {
                self.term.say(ledger::fragments(&counts));
            }
            if let Some(captures) = &captures {
                self.term.say(ledger::captures(captures));
            }
            self.term.say_text(&delivered.map(delivery::render).unwrap_or_default());
            self.term.say_text(&self.notes.losses());
            if interrupted {
                self.term.say("interrupted");
            }
        }
        match (outcome.error, left) {
            // Ctrl-C ends all processes of a pipeline, and a reader of a limited number of rows may
            // have had enough.
            (Some(_), Some(_)) if interrupted || self.is_limited() => Ok(Status::Ok),
            (Some(_), Some(left)) => Err(anyhow::anyhow!("{left}")),
            (Some(e), None) => Err(e.into()),
            (None, _) if captures.as_ref().is_some_and(|captures| captures.failed > 0) => {
                self.term.error(format_args!("some files of `capture` could not be written"));
                Ok(Status::Failed)
            }
            (None, _) if self.options.fail_on_loss && !losses.is_empty() => {
                self.term.error(format_args!("packets, rows or alerts were lost (--fail-on-loss)"));
                Ok(Status::Failed)
            }
            (None, _) => Ok(Status::Ok),
        }
    }

    /// Whether the run is limited to a number of rows or packets.
    fn is_limited(&self) -> bool {
        let limits = |stage: &Stage| matches!(stage, Stage::Limit(_));
        let ends = |p: &&Pipeline| {
            p.printed || p.stages.iter().any(|stage| matches!(stage, Stage::Ends(_)))
        };
        let mut ends = self.program.pipelines.iter().filter(ends);
        // Programs that are added later may ask for more.
        let rows = !self.options.takes_programs() && ends.all(|p| p.stages.iter().any(limits));
        self.options.count.is_some() || rows
    }
}

/// The message if the run failed because the reader of its rows or packets has gone.
fn reader_left(error: &RunError) -> Option<String> {
    match error {
        RunError::Sink(e) if e.kind() == io::ErrorKind::BrokenPipe => {
            Some("nobody reads the rows any more, so the run has ended".to_owned())
        }
        RunError::Egress(e) if e.kind() == io::ErrorKind::BrokenPipe => {
            Some(format!("{e}: nobody reads the packets any more, so the run has ended"))
        }
        _ => None,
    }
}
