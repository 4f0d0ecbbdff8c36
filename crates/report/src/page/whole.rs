//! Everything that a page is made of.

use crate::collector::Collector;
use weir_engine::counters::Ledger;
use weir_packet::source::Account;
use weir_plan::TimeZone;

/// The subject of a report.
#[derive(Clone, Debug)]
pub struct About {
    /// The captures, as they were given.
    pub captures: Vec<String>,
    /// The capture filter; empty for none.
    pub filter: String,
    /// The version of the program.
    pub version: String,
    /// The time zone of all times, if it is not UTC.
    pub zone: Option<TimeZone>,
    /// Detectors and what each is for.
    pub rules: Vec<RuleTitle>,
}

/// A detector.
#[derive(Clone, Debug)]
pub struct RuleTitle {
    /// Its name, as in `alert.rule`.
    pub name: String,
    /// Its title, which says what it looks for.
    pub title: String,
}

/// How the run of a report ended.
#[derive(Clone, Debug)]
pub struct Ended {
    /// The fate of every packet.
    pub ledger: Ledger,
    /// The same, as text for people.
    pub text: String,
    /// The counts of each interface, by its name.
    pub interfaces: Vec<(String, Account)>,
    /// Why the report is not about the whole input, if it isn't.
    pub cut_short: Option<String>,
}

/// Everything that a section of the page is made of.
pub(super) struct Whole<'a> {
    pub(super) rows: &'a Collector,
    pub(super) about: &'a About,
    pub(super) ended: &'a Ended,
}
