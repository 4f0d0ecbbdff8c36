//! Functions of addresses and of connections.

use super::kernels::each;
use super::{Ctx, Src, Val};
use crate::anonymize::CryptoPan;
use crate::community::{self, Tuple};
use weir_base::address::is_v4;
use weir_packet::bits::Bits;

/// Addresses whose other names are remembered within a batch.
const KNOWN: usize = 64;

impl Ctx<'_> {
    /// The first bits of addresses: `v4` is the mask of the low half of an IPv4 address.
    pub(super) fn prefix(&mut self, a: &Val, (v4, v6): (u64, u128), out: usize, rows: Bits) -> Src {
        let a = self.value(a, rows);
        let (n, v6_hi, v6_lo) = (self.n, (v6 >> 64) as u64, v6 as u64);
        let (x, col) = self.split(a, out);
        let present = x.present.and(rows);
        let ((x_hi, x_lo), (hi, lo)) = (x.pair(), col.pair_mut());
        each(present, n, |i| {
            hi[i] = x_hi[i] & v6_hi;
            lo[i] = x_lo[i] & if is_v4(x_hi[i], x_lo[i]) { v4 } else { v6_lo };
        });
        col.present = present;
        Src::Slot(out)
    }

    /// Other names for addresses.
    pub(super) fn anonymize(&mut self, names: &CryptoPan, a: &Val, out: usize, rows: Bits) -> Src {
        let a = self.value(a, rows);
        let (x, col) = self.split(a, out);
        let present = x.present.and(rows);
        let mut known: [Option<(u128, u128)>; KNOWN] = [None; KNOWN];
        for i in present.iter() {
            let address = x.raw(i);
            let entry = &mut known[address as usize % KNOWN];
            let name = match *entry {
                Some((known, name)) if known == address => name,
                _ => names.anonymize(address),
            };
            *entry = Some((address, name));
            col.set_raw(i, name);
        }
        col.present = present;
        Src::Slot(out)
    }

    /// The Community IDs of connections.
    pub(super) fn community_id(&mut self, seed: u16, parts: &[Val], out: usize, rows: Bits) -> Src {
        parts.iter().for_each(|v| {
            self.value(v, rows);
        });
        let mut col = self.take(out);
        col.present = Bits::NONE;
        for i in rows.iter() {
            let part = |k: usize| {
                let col = parts.get(k).map(|v| self.column(v.out()));
                col.filter(|col| col.present.has(i)).map(|col| col.raw(i))
            };
            let id = Tuple::of(part).and_then(|t| community::id(seed, &t));
            if let Some(id) = id {
                col.word_mut()[i] = self.regs.arena.put(&id);
                col.present.set(i);
            }
        }
        let present = col.present;
        self.put_checked(out, col, present, Bits::NONE)
    }
}
