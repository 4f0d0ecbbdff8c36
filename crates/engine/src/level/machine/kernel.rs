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

    /// Adds the groups of windows that close at a watermark, or of all at the end, to those of the
    /// workers, which come by pipeline, then by time.
    pub(crate) fn add(&self, watermark: Option<i64>, closed: &mut Vec<Closed>) {
        let before = closed.len();
        for (pipeline, spec) in &self.nodes {
            let until = match watermark {
                None => None,
                Some(w) => match spec.closed_before(w) {
                    None => continue,
                    until => until,
                },
            };
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
