//! An alert in a checkpoint: the keys that fire.

use super::evidence::Evidence;
use super::firing::{Firing, Told};
use super::{AlertInput, Alerts};
use crate::checkpoint::{BadState, Checkpoint, Passed, Saved as _};
use crate::rows::word_max;
use weir_plan::{Type, Value};

impl Alerts {
    /// Saves the keys that fire, or restores them.
    pub(super) fn pass_keys(&mut self, at: &mut Checkpoint<'_>) -> Passed {
        at.pass(&mut self.report.tick)?;
        at.pass(&mut self.report.order)?;
        at.count(&mut self.suppressed)?;
        at.count(&mut self.evicted)?;
        let input = &self.input;
        self.firing.pass_state(at, |firing, at| firing.pass_state(input, at))?;
        at.pass(&mut self.storm.minute)?;
        at.pass(&mut self.storm.begun)?;
        let mut lasts = self.storm.all.is_some();
        at.pass(&mut lasts)?;
        if !lasts {
            return Ok(());
        }
        let all = self.storm.all.get_or_insert_with(|| Box::new(Firing::nothing()));
        all.pass_state(input, at)
    }
}

impl Firing {
    fn pass_state(&mut self, input: &AlertInput, at: &mut Checkpoint<'_>) -> Passed {
        at.pass(&mut self.at)?;
        at.pass(&mut self.put_at)?;
        at.pass(&mut self.first)?;
        at.pass(&mut self.last)?;
        at.pass(&mut self.shown)?;
        let mut told = self.told as u8;
        at.pass(&mut told)?;
        let known = Told::ALL.into_iter().find(|known| *known as u8 == told);
        self.told = known.ok_or(BadState("a key is reported in no way"))?;
        at.pass_if(&mut self.rows, "a key fires without rows", |n| (1..1 << 62).contains(n))?;
        at.pass(&mut self.least)?;
        self.peak.pass_state(input, at)
    }
}

impl Evidence {
    fn pass_state(&mut self, input: &AlertInput, at: &mut Checkpoint<'_>) -> Passed {
        at.pass(&mut self.ts)?;
        at.pass(&mut self.first)?;
        at.pass(&mut self.last)?;
        pass_value(&mut self.message, &Type::Str, at)?;
        at.pass(&mut self.value)?;
        at.pass(&mut self.threshold)?;
        at.pass(&mut self.completeness)?;
        pass_value(&mut self.community, &Type::Str, at)?;
        pass_value(&mut self.next_step, &Type::Str, at)?;
        self.rest.resize(input.evidence.len(), Value::Absent);
        let mut rest = self.rest.iter_mut().zip(&input.evidence);
        rest.try_for_each(|(value, (_, ty))| pass_value(value, ty, at))
    }
}

/// Passes a value of a type, or none.
fn pass_value(value: &mut Value, ty: &Type, at: &mut Checkpoint<'_>) -> Passed {
    value.pass(at)?;
    match value.ty() {
        Some(other) if other != *ty => Err(BadState("a value is of another type")),
        _ => match value {
            Value::Mac(word) if *word > word_max(ty) => Err(BadState("a value is too large")),
            _ => Ok(()),
        },
    }
}
