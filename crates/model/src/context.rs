//! The context that all stages of the naive model share.

use super::eval::Eval;
use super::losses::Losses;
use weir_plan::Suppression;
use weir_plan::registered::Functions;

/// Values, losses and counts of a run. Each stage adds its methods in a file of its own.
pub(super) struct StageContext<'a> {
    pub(super) eval: Eval<'a>,
    pub(super) losses: Losses,
    /// How many rows came to stages that remember keys.
    pub(super) turn: u64,
    pub(super) late: u64,
    pub(super) lagging: u64,
    pub(super) evicted: u64,
    pub(super) unfilled: u64,
    pub(super) undecided: u64,
    pub(super) copies: u64,
    pub(super) unfinished: u64,
    /// Alerts that are not reported, and how many were not.
    pub(super) suppressions: Vec<Suppression>,
    pub(super) suppressed: u64,
}

impl<'a> StageContext<'a> {
    pub(super) fn new(functions: &'a Functions) -> StageContext<'a> {
        StageContext {
            eval: Eval::new(functions),
            losses: Losses::default(),
            turn: 0,
            late: 0,
            lagging: 0,
            evicted: 0,
            unfilled: 0,
            undecided: 0,
            copies: 0,
            unfinished: 0,
            suppressions: Vec::new(),
            suppressed: 0,
        }
    }
}
