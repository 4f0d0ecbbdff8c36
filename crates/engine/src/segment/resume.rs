//! A segment that takes over what another one holds, which was compiled of the same first stages.

use super::{End, Segment};

impl Segment {
    /// How many stages it takes.
    pub fn stages(&self) -> usize {
        self.stages.len()
    }

    /// Takes over what `old` holds, whose first `same` stages are those of this one and come behind
    /// the same ones; says which of its stages had something to take over.
    pub fn resume(&mut self, old: &mut Segment, same: usize) -> Vec<usize> {
        if let (Some((count, _)), Some((before, _))) = (&mut self.numbers, &old.numbers) {
            *count = *before;
        }
        let mut kept = Vec::new();
        // The same stage may come with other operators that hold nothing, for what comes behind it.
        let (mut from, mut old_from) = (0, 0);
        for (stage, (&until, &old_until)) in self.stages.iter().zip(&old.stages).enumerate() {
            if stage >= same {
                break;
            }
            let all = self.ops[from..until].iter_mut().zip(&mut old.ops[old_from..old_until]);
            // Each of them, and not only until one has something.
            if all.filter_map(|(op, old)| op.resume(&mut **old).then_some(())).count() > 0 {
                kept.push(stage);
            }
            (from, old_from) = (until, old_until);
        }
        if same >= self.stages.len() && self.end.resume(&mut old.end) {
            old.moved = true;
            kept.push(self.stages.len() - 1);
        }
        kept
    }

    /// The same of what puts groups out, alone.
    pub fn resume_emitter(&mut self, old: &mut Segment) {
        if let (End::Summarize(_, mine), End::Summarize(_, theirs)) = (&mut self.end, &mut old.end)
        {
            mine.resume(theirs);
            old.moved = true;
        }
    }
}

impl End {
    /// As [`Segment::resume`], of the last stage.
    fn resume(&mut self, old: &mut End) -> bool {
        match (self, old) {
            (End::Summarize(op, emitter), End::Summarize(old, before)) => {
                emitter.resume(before);
                op.resume(&mut **old)
            }
            (End::Top(top), End::Top(old)) => top.resume(old),
            _ => false,
        }
    }
}
