//! The kernel level: what runs of a plan before a frame reaches the process.
//!
//! Each frame is finished by exactly one level. A frame that the kernel can't finish goes up, and
//! the workers run all stages of all pipelines on it. So the fragments of the kernel are the
//! beginnings of those of the workers, which stay whole, and no stage is taken off any of them.

use super::{
    Exchange, ExchangeId, Fragment, Half, Inlet, Level, LevelKind, Needs, Payload, Physical,
    PipelineId, Target,
};

/// The stages of a pipeline that the kernel runs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Prefix {
    /// The pipeline.
    pub pipeline: PipelineId,
    /// How many of its stages, from the first.
    pub stages: usize,
    /// Whether the last of them aggregates in kernel maps, so that its frames need not go up.
    pub counts: bool,
    /// Whether some of them hand packets out there, or drop them.
    pub acts: bool,
    /// Why the kernel does not run the next stage: one clause. `None`: it runs all that
    /// workers would.
    pub stopped_by: Option<String>,
}

impl Prefix {
    /// The kernel's work for the pipeline, and why it stops there: one clause or sentence.
    pub fn why(&self) -> String {
        match (&self.stopped_by, self.stages) {
            (Some(why), 0) => format!("the kernel can run nothing of it: {why}"),
            (Some(why), _) if self.acts => {
                format!("packets are handed out in the kernel, where they can be: {why}")
            }
            (Some(why), _) => format!("workers go on from here: {why}"),
            (None, _) if self.acts && self.counts => {
                "packets are handed out in the kernel, and its groups take them in".to_owned()
            }
            (None, _) if self.acts => "packets are handed out in the kernel".to_owned(),
            (None, _) if self.counts => "groups in the kernel take whole frames in".to_owned(),
            (None, _) => "workers have nothing to filter beyond this".to_owned(),
        }
    }
}

impl Physical {
    /// The same plan with a level below the workers, which runs so much of each pipeline over
    /// packets at this hook of the kernel. A plan that has such a level gets another.
    ///
    /// # Panics
    /// Where a prefix is longer than what workers run of its pipeline.
    #[must_use]
    pub fn with_kernel(&self, hook: &str, prefixes: &[Prefix]) -> Physical {
        let mut plan = self.without_kernel();
        plan.shift_exchanges(2, |id| ExchangeId(id.0 + 2));
        let exchange = |payload, why: String| Exchange { payload, needs: Needs::Nothing, why };
        let (offered, unfinished) = (ExchangeId(0), ExchangeId(1));
        plan.exchanges[0] = exchange(Payload::Offered, format!("they meet the {hook} first"));
        let why = "some pipeline wants them, the kernel can't tell what they are, or a table is \
                   full; workers run all pipelines on them";
        plan.exchanges[1] = exchange(Payload::Unfinished, why.to_owned());
        let mut fragments = Vec::new();
        for (_, whole) in self.fragments_of(LevelKind::Worker) {
            let prefix = prefixes.iter().find(|prefix| prefix.pipeline == whole.pipeline);
            let stages = prefix.map_or(0, |prefix| prefix.stages);
            let mut to = vec![Target::Exchange(unfinished)];
            let last = whole.nodes[..stages].last().map(|node| node.id);
            if let Some(id) = last.filter(|id| id.half == Half::Partial) {
                let why = "groups of the kernel are merged with those of workers".to_owned();
                to.push(Target::Exchange(ExchangeId(plan.exchanges.len())));
                plan.exchanges.push(exchange(Payload::KernelGroups(id), why));
            }
            fragments.push(Fragment {
                pipeline: whole.pipeline,
                from: Inlet::Exchange(offered),
                carries: whole.carries.clone(),
                nodes: whole.nodes[..stages].to_vec(),
                to,
                why: prefix
                    .map_or_else(|| "the kernel was given none of it".to_owned(), Prefix::why),
            });
        }
        plan.levels.insert(0, Level { kind: LevelKind::Kernel, fragments, ticks: Vec::new() });
        plan
    }

    /// The same plan without a kernel level: the meaning of the program is the same.
    #[must_use]
    pub fn without_kernel(&self) -> Physical {
        let mut plan = self.clone();
        let Some(at) = plan.levels.iter().position(|level| level.kind == LevelKind::Kernel) else {
            return plan;
        };
        plan.levels.remove(at);
        let mut new = Vec::new();
        let mut kept = 0;
        for exchange in &self.exchanges {
            new.push(ExchangeId(kept));
            kept += usize::from(!exchange.payload.is_of_kernel());
        }
        plan.exchanges.retain(|exchange| !exchange.payload.is_of_kernel());
        plan.shift_exchanges(0, |id| new.get(id.0).copied().unwrap_or(id));
        plan
    }

    /// Puts so many exchanges before the others, of which fragments get these new numbers. The
    /// exchanges in front remain to be filled in.
    fn shift_exchanges(&mut self, front: usize, new: impl Fn(ExchangeId) -> ExchangeId) {
        let blank =
            Exchange { payload: Payload::Offered, needs: Needs::Nothing, why: String::new() };
        self.exchanges.splice(0..0, std::iter::repeat_n(blank, front));
        for fragment in self.levels.iter_mut().flat_map(|level| &mut level.fragments) {
            if let Inlet::Exchange(id) = &mut fragment.from {
                *id = new(*id);
            }
            for target in &mut fragment.to {
                if let Target::Exchange(id) = target {
                    *id = new(*id);
                }
            }
        }
    }

    /// The fragments of one level.
    pub(super) fn fragments_of(
        &self,
        kind: LevelKind,
    ) -> impl Iterator<Item = (LevelKind, &Fragment)> {
        let level = self.level(kind).into_iter();
        level.flat_map(move |level| level.fragments.iter().map(move |f| (kind, f)))
    }

    /// The fragment of a pipeline that the kernel runs, if there is a kernel level.
    pub fn in_kernel(&self, id: PipelineId) -> Option<&Fragment> {
        self.fragments_of(LevelKind::Kernel).map(|(_, f)| f).find(|f| f.pipeline == id)
    }
}

impl Payload {
    /// Whether it is there for a kernel level only.
    pub fn is_of_kernel(&self) -> bool {
        matches!(self, Payload::Offered | Payload::Unfinished | Payload::KernelGroups(_))
    }
}
