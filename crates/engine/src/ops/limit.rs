//! `limit`: keeps the first rows.
//!
//! | | |
//! |---|---|
//! | Syntax | `limit N` |
//! | Emits | on push; once no pipeline can print another row, the run ends with the batch of packets at hand (256 at most), all of which count in the ledger |
//! | Order | kept |
//! | State | one number |
//! | Full | cannot be |
//! | Late | rows pass as they come |
//! | Merge | runs after the rows of all workers are merged by packet number; a run that it may end early has one worker, so that the ledger is the same however many are asked for |
//! | Exact? | exact |

use super::operator::{Batch, Operator};
use crate::checkpoint::{Checkpoint, Passed};
use crate::hold::{Hold, known};
use weir_packet::bits::Bits;

/// Lets the first rows of the whole input pass.
pub(crate) struct Limit {
    left: u64,
}

impl Limit {
    /// Lets `n` rows pass.
    pub(crate) fn new(n: u64) -> Limit {
        Limit { left: n }
    }
}

impl Hold for Limit {
    fn take_over(&mut self, old: &mut dyn Hold) -> bool {
        let Some(old) = known::<Limit>(old) else { return false };
        self.left = old.left;
        true
    }

    fn pass_state(&mut self, at: &mut Checkpoint<'_>) -> Passed {
        at.pass(&mut self.left)
    }
}

impl Operator for Limit {
    fn push(&mut self, _: &mut Batch<'_>, rows: Bits) -> Bits {
        let n = rows.count() as u64;
        if n <= self.left {
            self.left -= n;
            return rows;
        }
        let pass = rows.iter().take(self.left as usize).collect();
        self.left = 0;
        pass
    }

    fn is_done(&self) -> bool {
        self.left == 0
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{field, project};
    use crate::tests::check_stages;
    use weir_plan::Stage;

    #[test]
    fn the_first_rows_pass() {
        let rows = |n| check_stages(vec![Stage::Limit(n), project(&["number"])]);
        assert_eq!(rows(3), ["1", "2", "3"]);
        assert_eq!(rows(0).len(), 0);
        assert_eq!(rows(1000).len(), 41);
    }

    #[test]
    fn packets_stay_packets_after_it() {
        let rows =
            check_stages(vec![Stage::Limit(41), Stage::Where(field("tcp")), project(&["dport"])]);
        assert_eq!(rows.len(), 40);
    }
}
