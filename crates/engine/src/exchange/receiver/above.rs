//! The fate of windows that close in a receiver.

use super::passing::Passing;
use crate::checkpoint::{BadState, Checkpoint, Passed};
use crate::counters::Ledger;
use crate::level::machine::MachineLevel;
use crate::outcome::RunError;

/// The part of a receiver that takes windows which close.
pub(super) enum Above {
    /// The machine level, which makes rows of them.
    Rows(Box<MachineLevel<'static>>),
    /// The messages of one producer, for another receiver.
    Messages(Box<Passing>),
}

impl Above {
    /// Whether nothing further can change what it puts out.
    pub(super) fn is_done(&self) -> bool {
        match self {
            Above::Rows(machine) => machine.is_done(),
            Above::Messages(_) => false,
        }
    }

    /// The error of what takes rows or messages, if it had one.
    pub(super) fn take_error(&mut self) -> Option<RunError> {
        match self {
            Above::Rows(machine) => machine.take_error(),
            Above::Messages(passing) => passing.take_error().map(RunError::Egress),
        }
    }

    /// Ends it; what went wrong last.
    pub(super) fn end(&mut self) -> Option<RunError> {
        match self {
            Above::Rows(machine) => machine.end(),
            Above::Messages(_) => self.take_error(),
        }
    }

    /// Says up to which time it is known what came, before everything is emitted at an end.
    pub(super) fn know_until(&mut self, time: Option<i64>) {
        if let Above::Rows(machine) = self {
            machine.know_until(time);
        }
    }

    /// Adds what it counted to the ledger.
    pub(super) fn count(&self, ledger: &mut Ledger) {
        if let Above::Rows(machine) = self {
            machine.count(ledger);
        }
    }

    pub(super) fn pass_state(&mut self, at: &mut Checkpoint<'_>) -> Passed {
        match self {
            Above::Rows(machine) => machine.pass_state(at),
            Above::Messages(_) => Err(BadState("what a merge passes on has no state")),
        }
    }
}
