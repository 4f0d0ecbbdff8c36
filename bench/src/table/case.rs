//! A line of the table before it is measured.

use crate::compressed::Packer;
use crate::contestant::Setup;
use crate::roofline::Mode;
use crate::work::Work;

/// A line of the table.
#[derive(Clone, Debug)]
pub(crate) struct TableCase {
    /// The kind of comparison.
    pub(super) kind: Comparison,
    pub(super) title: String,
    pub(super) trace: &'static str,
    /// The time relative to the roofline that is aimed at.
    pub(super) target: Option<f64>,
    /// The programs that run, in the order that [`Comparison`] gives.
    pub(super) runners: Vec<Runner>,
}

/// The kinds of comparison.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Comparison {
    /// The yardstick, ours.
    Time,
    /// The yardstick with one and with two threads, ours with one and with two.
    Scaling,
    /// The unpacking program, ours.
    Packed,
}

/// A program that runs.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Runner {
    /// The loop in C.
    Roofline(Mode),
    /// The loop in Rust, where the one in C is absent.
    Reference,
    /// A program that unpacks.
    Unpack(Packer),
    /// Ours, over the trace or over its packed form.
    Work { work: &'static Work, setup: Setup, packed: Option<Packer> },
}

impl TableCase {
    /// The name of the case, which `--only` matches.
    pub(super) fn name(&self) -> String {
        let works = self.runners.iter().find_map(|r| match r {
            Runner::Work { work, .. } => Some(work.name),
            _ => None,
        });
        format!("{} {}: {}", self.trace, works.unwrap_or_default(), self.title)
    }

    /// The program that packs its trace, if one does.
    pub(super) fn packer(&self) -> Option<Packer> {
        self.runners.iter().find_map(|r| match r {
            Runner::Unpack(packer) => Some(*packer),
            _ => None,
        })
    }
}
