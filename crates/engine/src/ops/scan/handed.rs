//! States that the kernel held: a row that comes up brings those of its key along.

use super::{Mode, Scan};
use crate::kernel::{KernelState, KernelStates};
use crate::limits::PARTS_MAX;
use crate::ops::operator::Batch;
use weir_packet::bits::Bits;
use weir_packet::column::{Column, Repr};

impl Scan {
    /// Takes over the states of the keys of these rows, which were taken by stores. The kernel goes
    /// on with none of them until they were idle.
    pub(super) fn take_from(
        &mut self,
        kernel: &dyn KernelStates,
        batch: &mut Batch<'_>,
        rows: Bits,
    ) {
        self.srcs.clear();
        self.srcs.extend(self.keys.iter().map(|k| batch.ctx.value(k, rows)));
        let mut taken: Vec<(usize, KernelState)> = Vec::new();
        let mut key = [None; PARTS_MAX];
        let key = &mut key[..self.srcs.len()];
        rows.each(|i| {
            for (part, &src) in key.iter_mut().zip(&self.srcs) {
                *part = raw(batch.ctx.column(src), i);
            }
            taken.extend(kernel.take(key, batch.clock[i]).map(|state| (i, state)));
        });
        for (i, state) in taken {
            self.go_on(i, &state, batch.clock[i]);
        }
    }

    /// Goes on with the states of the key that the row at `i` of the batch has.
    fn go_on(&mut self, i: usize, state: &KernelState, now: i64) {
        let Some(s) = self.stores.iter().position(|store| store.taken.has(i)) else { return };
        if !self.stores[s].knows(i) && self.live() >= self.max_keys {
            self.evict(now);
        }
        let (store, states) = (&mut self.stores[s], &self.states);
        match &mut self.mode {
            Mode::Steps(steps) => {
                let number = steps.number_of(&state.states);
                store.put(i, state.last, |cells| cells[super::store::META] = number);
            }
            Mode::Rounds(_) => {
                store.put(i, state.last, |cells| super::rounds::put(cells, states, &state.states));
            }
            // The kernel does not follow connections.
            Mode::Connections(_) => {}
        }
    }
}

/// The value of a row as a key has it.
fn raw(column: &Column, i: usize) -> Option<u128> {
    column.present.has(i).then(|| match column.repr() {
        Repr::Bit => u128::from(column.truth.has(i)),
        Repr::Word => column.word()[i].into(),
        Repr::Pair => {
            let (high, low) = column.pair();
            u128::from(high[i]) << 64 | u128::from(low[i])
        }
    })
}
