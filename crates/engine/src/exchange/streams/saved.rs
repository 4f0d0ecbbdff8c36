//! The streams of producers, in a checkpoint.

use super::{Consequence, EndOf, LIVES, LifeMessages, LossNews, ProbeLives, Streams, UnseenSpan};
use crate::checkpoint::{BadState, Checkpoint, Passed, Saved};
use crate::limits::EXCHANGE_MACHINES_MAX;

impl Streams {
    /// Saves the streams, or restores them; `nodes` report losses.
    pub(in crate::exchange) fn pass_state(
        &mut self,
        nodes: usize,
        at: &mut Checkpoint<'_>,
    ) -> Passed {
        at.pass(&mut self.closings)?;
        at.pass(&mut self.applied)?;
        at.pass(&mut self.known_until)?;
        let is_few = |n: &usize| *n <= EXCHANGE_MACHINES_MAX;
        at.pass_if(&mut self.machines, "there are too many machines", is_few)?;
        let machines = self.machines;
        at.map(&mut self.probes, ProbeLives::default, |probe, at| {
            probe.pass_state(nodes, machines, at)
        })
    }
}

impl ProbeLives {
    fn pass_state(&mut self, nodes: usize, machines: usize, at: &mut Checkpoint<'_>) -> Passed {
        at.pass(&mut self.idle)?;
        at.pass(&mut self.resumes)?;
        at.pass_if(&mut self.machine, "a probe has no number", |n| *n <= machines)?;
        at.map(
            &mut self.passed,
            || 0,
            |machine, at| {
                at.pass_if(machine, "a machine has no number", |n| (1..=machines).contains(n))
            },
        )?;
        at.pass(&mut self.unseen)?;
        at.map(&mut self.lives, LifeMessages::new, |life, at| life.pass_state(nodes, at))?;
        let has_come = self.lives.values().any(|life| !life.ahead.is_empty());
        if self.lives.len() > LIVES || has_come && self.machine == 0 {
            return Err(BadState("a probe has too many lives, or no number"));
        }
        Ok(())
    }
}

impl LifeMessages {
    fn pass_state(&mut self, nodes: usize, at: &mut Checkpoint<'_>) -> Passed {
        at.pass(&mut self.next)?;
        at.pass(&mut self.closed)?;
        let mut ended = self.ended.map(|end| end as u8);
        at.pass(&mut ended)?;
        self.ended = match ended {
            None => None,
            Some(end) => Some(end_of(end)?),
        };
        at.pass(&mut self.last)?;
        at.map(&mut self.ahead, || Consequence::Nothing, |what, at| what.pass_state(nodes, at))
    }
}

fn end_of(end: u8) -> Result<EndOf, BadState> {
    let all = [EndOf::Input, EndOf::Source];
    all.into_iter().find(|of| *of as u8 == end).ok_or(BadState("a life has ended in no way"))
}

impl Consequence {
    fn pass_state(&mut self, nodes: usize, at: &mut Checkpoint<'_>) -> Passed {
        let mut kind: u8 = match self {
            Consequence::Nothing => 0,
            Consequence::Losses(..) => 1,
            Consequence::Closed(_) => 2,
            Consequence::Clock(..) => 3,
            Consequence::End(EndOf::Input) => 4,
            Consequence::End(EndOf::Source) => 5,
        };
        at.pass(&mut kind)?;
        if at.restores() {
            *self = match kind {
                0 => Consequence::Nothing,
                1 => Consequence::Losses(0, 0, LossNews::default()),
                2 => Consequence::Closed(0),
                3 => Consequence::Clock(0, Vec::new()),
                4 => Consequence::End(EndOf::Input),
                5 => Consequence::End(EndOf::Source),
                _ => return Err(BadState("a message does nothing that is known")),
            };
        }
        match self {
            Consequence::Nothing | Consequence::End(_) => Ok(()),
            Consequence::Losses(node, machine, news) => {
                at.pass_if(node, "losses are of no node", |node| *node < nodes)?;
                at.pass(machine)?;
                at.pass(news)
            }
            Consequence::Closed(watermark) => at.pass(watermark),
            Consequence::Clock(reached, ahead) => {
                at.pass(reached)?;
                at.pass(ahead)
            }
        }
    }
}

impl Saved for UnseenSpan {
    fn pass(&mut self, at: &mut Checkpoint<'_>) -> Passed {
        at.pass(&mut self.since)?;
        at.pass(&mut self.is_told)
    }
}
