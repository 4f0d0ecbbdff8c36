//! The end of a run of the naive model that a `limit` ends.

use super::steps::{ModelSteps, StageState};
use weir_plan::Stage;

impl ModelSteps<'_> {
    /// Whether no further packet can change an answer, so that the run ends with the batch at hand:
    /// each pipeline that prints or hands out packets has a `limit` that has let its rows pass,
    /// nothing that hands out packets before it, and nothing that holds rows back after it.
    pub(super) fn is_done(&self) -> bool {
        let ends = |stage: &Stage| matches!(stage, Stage::Ends(_));
        let holds = |stage: &Stage| {
            matches!(
                stage,
                Stage::Summarize(_) | Stage::Top { .. } | Stage::Join(_) | Stage::Alert(_)
            )
        };
        let is_over = |(stage, state): (&Stage, &StageState)| match (stage, state) {
            (Stage::Limit(n), StageState::Passed(passed)) => passed >= n,
            _ => false,
        };
        let mut leaves = (self.program.pipelines.iter().zip(&self.states))
            .filter(|(p, _)| p.printed || p.stages.iter().any(ends))
            .peekable();
        leaves.peek().is_some()
            && leaves.all(|(p, states)| {
                let after = p.stages.iter().rposition(holds).map_or(0, |at| at + 1);
                let limit = (after..p.stages.len()).find(|&i| is_over((&p.stages[i], &states[i])));
                limit.is_some_and(|at| !p.stages[..at].iter().any(ends))
            })
    }
}
