//! `sample`: keeps a share of the rows.
//!
//! | | |
//! |---|---|
//! | Syntax | `sample N in M`, `sample P%`, each also with `by KEY, …` |
//! | Emits | on push |
//! | Order | kept |
//! | State | none; of rows that are no packets any more one number |
//! | Full | cannot be |
//! | Late | rows pass as they come |
//! | Merge | rows of all workers, by packet number |
//! | Exact? | of packets and rows exactly the first N of every M; of keys about that share of them, always the same |
//!
//! Systematic count-based and hash-based selection, as RFC 5475 calls them.

use super::operator::{Batch, Operator};
use crate::checkpoint::{Checkpoint, Passed};
use crate::expr::{Class, Ctx, Val};
use crate::hold::{Hold, known};
use weir_packet::bits::Bits;
use weir_packet::column::Column;
use weir_packet::limits::BATCH;
use weir_plan::Type;
use weir_plan::rows::{hash_step, text_words};

/// Lets a share of the rows pass.
pub(crate) struct Sample {
    share: weir_plan::Sample,
    rule: Rule,
}

/// The rule that decides which rows pass.
pub(crate) enum Rule {
    /// The number of the packet, from 1.
    Number(Val),
    /// The number of the row; so many came so far.
    Order(u64),
    /// The hash of a key.
    Key(Vec<(Val, Type)>),
}

impl Sample {
    /// Keeps the share that the plan says.
    pub(crate) fn new(share: weir_plan::Sample, rule: Rule) -> Sample {
        Sample { share, rule }
    }
}

impl Hold for Sample {
    fn take_over(&mut self, old: &mut dyn Hold) -> bool {
        let (Rule::Order(mine), Some(Sample { rule: Rule::Order(theirs), .. })) =
            (&mut self.rule, known::<Sample>(old))
        else {
            return false;
        };
        *mine = *theirs;
        true
    }

    fn pass_state(&mut self, at: &mut Checkpoint<'_>) -> Passed {
        match &mut self.rule {
            Rule::Order(seen) => at.count(seen),
            Rule::Number(_) | Rule::Key(_) => Ok(()),
        }
    }
}

impl Operator for Sample {
    fn push(&mut self, batch: &mut Batch<'_>, rows: Bits) -> Bits {
        let Sample { share, rule } = self;
        match rule {
            Rule::Number(number) => {
                let number = batch.ctx.value(number, rows);
                let numbers = batch.ctx.column(number).word();
                rows.iter().filter(|&i| share.keeps(numbers[i].wrapping_sub(1))).collect()
            }
            Rule::Order(seen) => {
                let first = *seen;
                *seen += rows.count() as u64;
                let numbered = rows.iter().zip(first..);
                numbered.filter(|(_, number)| share.keeps(*number)).map(|(i, _)| i).collect()
            }
            Rule::Key(parts) => {
                let mut hashes = [0; BATCH];
                for (part, ty) in parts {
                    let part = batch.ctx.value(part, rows);
                    mix(&batch.ctx, batch.ctx.column(part), ty, rows, &mut hashes);
                }
                let max = share.hash_max();
                rows.and(Bits::from_fn(batch.ctx.n, |i| hashes[i] <= max))
            }
        }
    }
}

/// Goes on with the hashes of keys: a part of the words that [`hash_step`] says.
fn mix(ctx: &Ctx<'_>, column: &Column, ty: &Type, rows: Bits, hashes: &mut [u64; BATCH]) {
    let there = column.present.and(rows);
    rows.minus(there).each(|i| hashes[i] = hash_step(hashes[i], 0));
    match Class::of(ty) {
        Class::Bit => there.each(|i| {
            hashes[i] = hash_step(hash_step(hashes[i], 1), column.truth.has(i).into());
        }),
        Class::Pair => {
            let (hi, lo) = column.pair();
            there.each(|i| {
                hashes[i] = hash_step(hash_step(hash_step(hashes[i], 1), hi[i]), lo[i]);
            });
        }
        Class::Text => {
            let words = column.word();
            there.each(|i| {
                let text = text_words(ctx.regs.arena.get(words[i]));
                hashes[i] = text.fold(hash_step(hashes[i], 1), hash_step);
            });
        }
        _ => {
            let words = column.word();
            there.each(|i| hashes[i] = hash_step(hash_step(hashes[i], 1), words[i]));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{agg, field, project, summarize};
    use crate::tests::check_stages;
    use weir_plan::{AggFunc, Sample, SampleBy, Stage, Window};

    fn sample(take: u64, of: u64, by: SampleBy) -> Stage {
        Stage::Sample(Sample { take, of, by })
    }

    #[test]
    fn packets_by_their_number() {
        let by = || SampleBy::Number(field("number"));
        let rows = check_stages(vec![sample(1, 10, by()), project(&["number"])]);
        assert_eq!(rows, ["1", "11", "21", "31", "41"]);
        // Of what a filter lets pass those of the same numbers.
        let tcp = Stage::Where(field("tcp"));
        let rows = check_stages(vec![tcp, sample(2, 20, by()), project(&["number"])]);
        assert_eq!(rows, ["1", "2", "21", "22"]);
        assert_eq!(check_stages(vec![sample(3, 3, by()), project(&["number"])]).len(), 41);
    }

    #[test]
    fn rows_as_they_come() {
        let rows = check_stages(vec![project(&["number"]), sample(1, 20, SampleBy::Order)]);
        assert_eq!(rows, ["1", "21", "41"]);
        let groups =
            summarize(&["len"], vec![agg(AggFunc::Count, None)], Window::Tumbling(1_000_000_000));
        assert_eq!(check_stages(vec![groups, sample(1, 10, SampleBy::Order)]).len(), 5);
    }

    /// Which ones is part of the language.
    #[test]
    fn whole_keys_by_their_hash() {
        let by = |names: &[&str]| SampleBy::Key(names.iter().map(|n| field(n)).collect());
        let of = |names| check_stages(vec![sample(1, 2, by(names)), project(&["dport", "ip.src"])]);
        assert_eq!(of(&["len"]).len(), 21);
        for names in [&["dport"][..], &["ip.src", "tcp.syn"], &["dns.qname", "eth.src", "ts"]] {
            let some = check_stages(vec![sample(1, 10, by(names)), project(&["number"])]);
            let more = check_stages(vec![sample(1, 2, by(names)), project(&["number"])]);
            assert!(some.iter().all(|n| more.contains(n)), "{names:?}");
        }
        let mut flows = of(&["dport"]);
        flows.sort();
        flows.dedup();
        assert!(flows.len() <= 3, "{flows:?}");
    }
}
