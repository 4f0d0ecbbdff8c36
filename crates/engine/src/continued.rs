//! The kernel level of a run whose programs have changed.

use crate::counters::EndCounts;
use crate::kernel::{KernelFeed, KernelGroups, KernelStates};
use std::sync::Arc;
use weir_plan::change::Continued;
use weir_plan::physical::PipelineId;
use weir_plan::{Program, Stage};

/// A feed by the numbers that its pipelines have by now. The kernel goes on with the pipelines that
/// the run began with: it knows no later ones.
#[derive(Clone, Debug)]
pub(crate) struct ContinuedFeed {
    feed: Arc<dyn KernelFeed>,
    /// The pipelines that the run began with.
    first: Arc<[FirstPipeline]>,
    /// Of each pipeline at hand where it goes on, by the numbers of those.
    origins: Vec<Option<Continued>>,
}

/// A pipeline that the run began with.
#[derive(Debug)]
struct FirstPipeline {
    stages: usize,
    /// The position of its first `summarize`, of which the kernel may make groups.
    summarize: Option<usize>,
}

/// The position of the first `summarize` of a pipeline.
pub(crate) fn summarize_of(stages: &[Stage]) -> Option<usize> {
    stages.iter().position(|stage| matches!(stage, Stage::Summarize(_)))
}

impl ContinuedFeed {
    /// The feed of the program that a run begins with.
    pub(crate) fn new(feed: Arc<dyn KernelFeed>, program: &Program) -> ContinuedFeed {
        let first = program.pipelines.iter().map(|pipeline| FirstPipeline {
            stages: pipeline.stages.len(),
            summarize: summarize_of(&pipeline.stages),
        });
        let first: Arc<[FirstPipeline]> = first.collect();
        let all = |(pipeline, first): (usize, &FirstPipeline)| {
            Some(Continued { pipeline, stages: first.stages })
        };
        let origins = first.iter().enumerate().map(all).collect();
        ContinuedFeed { feed, first, origins }
    }

    /// The same for the program that takes the place of the one at hand.
    pub(crate) fn after(&self, continued: &[Option<Continued>]) -> ContinuedFeed {
        let origin = |c: &Option<Continued>| {
            let Continued { pipeline, stages } = (*c)?;
            let before = (*self.origins.get(pipeline)?)?;
            Some(Continued { stages: before.stages.min(stages), ..before })
        };
        let origins = continued.iter().map(origin).collect();
        ContinuedFeed { origins, ..self.clone() }
    }

    /// Whether these are the pipelines that the run began with, all of them and no others: what the
    /// kernel knows of them is still right.
    pub(crate) fn is_whole(&self, program: &Program) -> bool {
        let whole = |(p, origin): (usize, &Option<Continued>)| {
            origin.is_some_and(|Continued { pipeline, stages }| {
                let all = self.first[pipeline].stages;
                stages == all && program.pipelines[p].stages.len() == all
            })
        };
        self.origins.len() == self.first.len() && self.origins.iter().enumerate().all(whole)
    }

    /// The number that a pipeline had at the beginning, if these stages of it go on.
    fn origin(&self, pipeline: PipelineId, stages: usize) -> Option<PipelineId> {
        let origin = (*self.origins.get(pipeline.0)?)?;
        (origin.stages >= stages).then_some(PipelineId(origin.pipeline))
    }

    /// The same where its first `summarize` goes on.
    fn counting(&self, pipeline: PipelineId) -> Option<PipelineId> {
        let origin = self.origin(pipeline, 0)?;
        self.origin(pipeline, self.first[origin.0].summarize? + 1)
    }
}

impl KernelFeed for ContinuedFeed {
    fn pipelines(&self) -> Vec<PipelineId> {
        let counting = self.feed.pipelines();
        let goes_on = |p: &PipelineId| self.counting(*p).is_some_and(|q| counting.contains(&q));
        (0..self.origins.len()).map(PipelineId).filter(goes_on).collect()
    }

    fn close(&self, pipeline: PipelineId, before: Option<i64>, out: &mut dyn FnMut(KernelGroups)) {
        if let Some(origin) = self.counting(pipeline) {
            self.feed.close(origin, before, out);
        }
    }

    fn count_by(&self, span_ns: i64) {
        self.feed.count_by(span_ns);
    }

    fn finished_before(&self, time: i64) -> u64 {
        self.feed.finished_before(time)
    }

    fn count_ends(&self, ends: &mut EndCounts) {
        self.feed.count_ends(ends);
    }

    fn states(&self, pipeline: PipelineId, stage: usize) -> Option<Arc<dyn KernelStates>> {
        self.feed.states(self.origin(pipeline, stage + 1)?, stage)
    }

    fn hand_up(&self, all: bool) {
        self.feed.hand_up(all);
    }

    fn orders_by_time(&self) -> bool {
        self.feed.orders_by_time()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{agg, summarize};
    use crate::tests::program;
    use std::sync::Mutex;
    use weir_plan::change::continued;
    use weir_plan::together::side_by_side;
    use weir_plan::{AggFunc, Window};

    /// Counts for all pipelines that it is asked about, and notes what it is asked.
    #[derive(Default, Debug)]
    struct Asked {
        closed: Mutex<Vec<usize>>,
        states: Mutex<Vec<(usize, usize)>>,
    }

    impl KernelFeed for Asked {
        fn pipelines(&self) -> Vec<PipelineId> {
            vec![PipelineId(0), PipelineId(1)]
        }

        fn close(&self, p: PipelineId, _: Option<i64>, _: &mut dyn FnMut(KernelGroups)) {
            self.closed.lock().expect("whole").push(p.0);
        }

        fn count_by(&self, _: i64) {}

        fn finished_before(&self, _: i64) -> u64 {
            0
        }

        fn states(&self, p: PipelineId, stage: usize) -> Option<Arc<dyn KernelStates>> {
            self.states.lock().expect("whole").push((p.0, stage));
            None
        }

        fn hand_up(&self, _: bool) {}
    }

    /// A program of one pipeline: a count by a field, then limits.
    fn count(by: &str, limits: &[u64]) -> Program {
        let window = Window::Tumbling(1_000_000_000);
        let mut stages = vec![summarize(&[by], vec![agg(AggFunc::Count, None)], window)];
        stages.extend(limits.iter().map(|&n| Stage::Limit(n)));
        program(stages)
    }

    #[test]
    fn pipelines_are_asked_for_by_the_numbers_they_began_with() {
        let named = |all: &[(&str, &Program)]| -> Vec<(String, Program)> {
            all.iter().map(|&(name, program)| (name.to_owned(), program.clone())).collect()
        };
        let together = |all: &[(String, Program)]| side_by_side(all.to_vec()).expect("few");
        let (a, b, c) = (count("ip.src", &[5]), count("ip.dst", &[]), count("len", &[]));
        let asked = Arc::new(Asked::default());
        let mut at = named(&[("a", &a), ("b", &b)]);
        let mut feed = ContinuedFeed::new(Arc::clone(&asked) as _, &together(&at));
        assert!(feed.is_whole(&together(&at)));
        let mut become_ = |next: Vec<(String, Program)>| {
            feed = feed.after(&continued(&at, &next));
            at = next;
            let fed: Vec<usize> = feed.pipelines().into_iter().map(|p| p.0).collect();
            for p in 0..at.len() {
                feed.close(PipelineId(p), None, &mut |_| {});
                feed.states(PipelineId(p), 0);
            }
            let closed = std::mem::take(&mut *asked.closed.lock().expect("whole"));
            let states = std::mem::take(&mut *asked.states.lock().expect("whole"));
            (feed.is_whole(&together(&at)), fed, closed, states)
        };
        // Another comes first: what was there has other numbers, and the kernel's are the same.
        let all = become_(named(&[("c", &c), ("a", &a), ("b", &b)]));
        assert_eq!(all, (false, vec![1, 2], vec![0, 1], vec![(0, 0), (1, 0)]));
        // It goes: all is as it was, in whichever order.
        let all = become_(named(&[("b", &b), ("a", &a)]));
        assert_eq!(all, (true, vec![0, 1], vec![1, 0], vec![(1, 0), (0, 0)]));
        // The stages after a `summarize` are not the kernel's; but there may be no more of them
        // than before.
        let longer = count("ip.src", &[5, 7]);
        let all = become_(named(&[("b", &b), ("a", &longer)]));
        assert_eq!(all, (false, vec![0, 1], vec![1, 0], vec![(1, 0), (0, 0)]));
        let all = become_(named(&[("b", &b), ("a", &a)]));
        assert_eq!(all, (true, vec![0, 1], vec![1, 0], vec![(1, 0), (0, 0)]));
        // One that was gone, or was another, has nothing more from the kernel.
        become_(named(&[("b", &b), ("a", &count("len", &[5]))]));
        let all = become_(named(&[("b", &b), ("a", &a)]));
        assert_eq!(all, (false, vec![0], vec![1], vec![(1, 0)]));
        let all = become_(Vec::new());
        assert_eq!(all, (false, vec![], vec![], vec![]));
    }
}
