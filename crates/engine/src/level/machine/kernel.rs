//! The kernel level as the machine level sees it: one more producer.

use crate::counters::Ledger;
use crate::kernel::{KernelFeed, KernelGroups};
use crate::level::Closed;
use crate::ops::groups::{Groups, Spec};
use std::sync::Arc;
use weir_plan::physical::PipelineId;

/// Takes groups out of a feed.
pub(crate) struct KernelInlet {
    feed: Arc<dyn KernelFeed>,
    nodes: Vec<(PipelineId, Arc<Spec>)>,
}

impl KernelInlet {
    /// Takes groups of these nodes from the feed.
    pub(crate) fn new(feed: Arc<dyn KernelFeed>, nodes: Vec<(PipelineId, Arc<Spec>)>) -> Self {
        KernelInlet { feed, nodes }
    }

    /// Adds what the kernel counted to the ledger.
    pub(crate) fn count(&self, ledger: &mut Ledger) {
        self.feed.count_ends(&mut ledger.ends);
    }

    /// Whether groups of this pipeline come.
    pub(crate) fn feeds(&self, pipeline: PipelineId) -> bool {
        self.nodes.iter().any(|(fed, _)| *fed == pipeline)
    }

    /// Leaves out groups of other pipelines.
    pub(crate) fn retain(&mut self, which: &dyn Fn(PipelineId) -> bool) {
        self.nodes.retain(|(fed, _)| which(*fed));
    }

    /// Adds the groups of windows that close at a watermark, or of all at the end, to those of the
    /// workers, which come by pipeline, then by time.
    pub(crate) fn add(&self, watermark: Option<i64>, closed: &mut Vec<Closed>) {
        let until = |spec: &Spec| match watermark {
            None => Some(None),
            Some(w) => spec.closed_before(w).map(Some),
        };
        self.add_until(&|_, spec| until(spec), closed);
    }

    /// Adds all groups of these pipelines, for which the kernel counts no more, while the run goes
    /// on.
    pub(crate) fn drain(&self, which: &dyn Fn(PipelineId) -> bool, closed: &mut Vec<Closed>) {
        self.add_until(&|p, _| which(p).then_some(Some(i64::MAX)), closed);
    }

    /// Adds the groups of windows that start before the time given for a pipeline, if one is; of
    /// `None` all, since the run ends.
    fn add_until(
        &self,
        until: &dyn Fn(PipelineId, &Spec) -> Option<Option<i64>>,
        closed: &mut Vec<Closed>,
    ) {
        let before = closed.len();
        for (pipeline, spec) in &self.nodes {
            let Some(until) = until(*pipeline, spec) else { continue };
            let mut add = |counted: KernelGroups| {
                let start = counted.start;
                debug_assert!(spec.is_start(start), "{start}");
                debug_assert!(until.is_none_or(|until| start < until), "{start}");
                let mut groups = Groups::new(spec);
                groups.add_counted(&counted);
                let same = |c: &&mut Closed| (c.pipeline, c.start) == (*pipeline, start);
                match closed.iter_mut().find(same) {
                    Some(there) => _ = there.groups.absorb(groups),
                    None => closed.push(Closed { pipeline: *pipeline, start, groups }),
                }
            };
            self.feed.close(*pipeline, until, &mut add);
        }
        if closed.len() > before {
            closed.sort_by_key(|c| (c.pipeline, c.start));
        }
    }
}

#[cfg(test)]
mod tests;
