//! The code that finds the states of a key, and keeps or gives up what it found.

use super::table::{CROWDED, HEAD, KEY, LAST, LOCK, META, SLOTS, STATES, StateTable, UP, USED};
use crate::table::{KeyCode, offset};
use weir_ebpf::{Alu, Assembler, Atomic, Cond, EbpfInstruction, Label, Reg, Reg::*, Size};

/// How often a program tries to get a lock before its frame goes up.
const LOCK_TRIES: usize = 8;

/// Bits that any offset within a table fits in: the kernel takes no larger ones.
const OFFSET_MASK: i32 = (1 << 29) - 1;

/// On the stack, that no slot was found.
const NONE: i32 = -1;

/// Where values of 8 bytes are on the stack, from `R10`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct StatePlaces {
    /// The first word of the key; the others follow upwards.
    pub(crate) key: i16,
    /// The time of the frame, in nanoseconds since 1970.
    pub(crate) now: i16,
    /// The offset of the bucket.
    pub(crate) bucket: i16,
    /// The offset of the slot, whose bucket is locked then.
    pub(crate) slot: i16,
    /// The first state after the frame; the others follow downwards.
    pub(crate) after: i16,
}

/// Where frames go on whose states the program does not hold.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StateExits {
    /// The bucket has no room.
    pub(crate) full: Label,
    /// Somebody else has the lock, or the workers hold the states.
    pub(crate) up: Label,
}

/// Writes code for a table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StateCode<'a> {
    /// Which table.
    pub(crate) table: &'a StateTable,
    /// The number of the map whose value is the table.
    pub(crate) map: i32,
    /// Where its values are on the stack.
    pub(crate) places: StatePlaces,
}

fn number(n: usize) -> i32 {
    i32::try_from(n).expect("a table is smaller")
}

impl StateCode<'_> {
    /// The code that makes its key on the stack.
    pub(crate) fn key(&self) -> KeyCode<'_> {
        KeyCode { layout: self.table.keys(), at: self.places.key }
    }

    /// Begins: no slot was found.
    pub(crate) fn begin(&self, a: &mut Assembler) {
        a.store(Size::DW, R10, self.places.slot, NONE);
    }

    /// Finds the slot of the key, or makes it, and leaves its bucket locked. `R1` points to the
    /// slot then, and `R0` is 1 if it has states, 0 if the key begins anew. Uses `R0` to `R5`.
    pub(crate) fn find(&self, a: &mut Assembler, exits: StateExits) {
        let StatePlaces { now, bucket, slot, .. } = self.places;
        self.key().hash(a, self.table.secret);
        a.alu(Alu::Rsh, R5, (u64::BITS - self.table.buckets.ilog2()) as i32);
        a.alu(Alu::Mul, R5, number(8 * self.table.bucket_words()));
        a.store(Size::DW, R10, bucket, R5);
        self.point(a);
        self.lock(a, exits.up);
        let (claim, found) = (a.label("claim"), a.label("found"));
        let (anew, done) = (a.label("anew"), a.label("slot"));
        self.look(a, claim, found, exits.full);
        a.bind(claim);
        self.slot_pointer(a);
        for word in 0..self.table.keys.words() {
            a.load(Size::DW, R2, R10, self.key().word(word));
            a.store(Size::DW, R1, offset(KEY + word), R2);
        }
        a.load(Size::DW, R3, R10, now).store(Size::DW, R1, offset(LAST), R3);
        a.jump(anew);
        a.bind(found);
        self.slot_pointer(a);
        self.known(a, anew, exits.up);
        a.mov(R0, 1).jump(done);
        a.bind(anew);
        a.store(Size::DW, R1, offset(META), USED).mov(R0, 0);
        a.bind(done);
        a.store(Size::DW, R10, slot, R5);
    }

    /// Gets the lock of the bucket that `R1` points to. Uses `R2`.
    fn lock(&self, a: &mut Assembler, up: Label) {
        let locked = a.label("locked");
        for _ in 0..LOCK_TRIES {
            a.mov(R2, 1);
            a.atomic(Atomic::Xchg, R1, offset(LOCK), R2).jump_if(Cond::Eq, R2, 0, locked);
        }
        a.jump(up);
        a.bind(locked);
    }

    /// Looks for the key in the bucket that `R1` points to, at the offset `R5`. The offset of the
    /// slot with it is left there at `found`, that of a free one at `claim`.
    fn look(&self, a: &mut Assembler, claim: Label, found: Label, full: Label) {
        let at = |slot: usize| HEAD + slot * self.table.slot_words();
        let mut ends = Vec::new();
        for slot in 0..SLOTS {
            let (hit, other) = (a.label("same key"), a.label("next slot"));
            a.load(Size::DW, R2, R1, offset(at(slot) + META)).jump_if(Cond::Eq, R2, 0, other);
            self.key().compare(a, at(slot) + KEY, hit);
            a.bind(other);
            ends.push((at(slot), hit, found));
        }
        let (free, crowded) = (a.label("not crowded"), a.label("crowded"));
        a.load(Size::DW, R3, R10, self.places.now).load_imm64(R4, self.table.idle_ns as u64);
        a.load(Size::DW, R2, R1, offset(CROWDED)).jump_if(Cond::Eq, R2, 0, free);
        a.mov(R0, R3).alu(Alu::Sub, R0, R2).jump_if(Cond::Slt, R0, R4, crowded);
        a.bind(free);
        for slot in 0..SLOTS {
            let free = a.label("free slot");
            a.load(Size::DW, R2, R1, offset(at(slot) + META)).jump_if(Cond::Eq, R2, 0, free);
            a.load(Size::DW, R2, R1, offset(at(slot) + LAST));
            a.mov(R0, R3).alu(Alu::Sub, R0, R2).jump_if(Cond::Sge, R0, R4, free);
            ends.push((at(slot), free, claim));
        }
        a.bind(crowded);
        a.store(Size::DW, R1, offset(CROWDED), R3);
        unlock(a);
        a.jump(full);
        for (at, from, to) in ends {
            a.bind(from);
            a.add(R5, number(8 * at)).jump(to);
        }
    }

    /// Goes on at `anew` if the key of the slot that `R1` points to was forgotten, and at `up` if
    /// the workers hold its states. Leaves `R5` as it is.
    fn known(&self, a: &mut Assembler, anew: Label, up: Label) {
        let (mine, later) = (a.label("held here"), a.label("later"));
        a.load(Size::DW, R3, R10, self.places.now).load(Size::DW, R2, R1, offset(LAST));
        a.mov(R0, R3).alu(Alu::Sub, R0, R2).load_imm64(R4, self.table.idle_ns as u64);
        a.jump_if(Cond::Sge, R0, R4, anew);
        a.load(Size::DW, R2, R1, offset(META)).and(R2, UP).jump_if(Cond::Eq, R2, 0, mine);
        a.jump_if(Cond::Sle, R0, 0, later).store(Size::DW, R1, offset(LAST), R3);
        a.bind(later);
        self.unlock_bucket(a);
        a.jump(up);
        a.bind(mine);
    }

    /// `dst =` a state of the slot that `R1` points to.
    pub(crate) fn load(&self, a: &mut Assembler, state: usize, dst: Reg) {
        a.load(Size::DW, dst, R1, offset(self.table.states_at() + state));
    }

    /// Where a state after the frame is on the stack.
    pub(crate) fn after(&self, state: usize) -> i16 {
        self.places.after - offset(state)
    }

    /// Keeps the states after the frame, if a slot was found, and lets the bucket go. Uses `R1` to
    /// `R5`.
    pub(crate) fn keep(&self, a: &mut Assembler) {
        let none = a.label("no slot");
        self.pending(a, none);
        for state in 0..self.table.states {
            a.load(Size::DW, R2, R10, self.after(state));
            a.store(Size::DW, R1, offset(self.table.states_at() + state), R2);
        }
        a.store(Size::DW, R1, offset(META), USED | STATES);
        self.let_go(a);
        a.bind(none);
    }

    /// Hands the states to the workers, as they are before the frame, if a slot was found, and
    /// lets the bucket go. Uses `R1` to `R5`.
    pub(crate) fn hand_up(&self, a: &mut Assembler) {
        let none = a.label("no slot");
        self.pending(a, none);
        a.load(Size::DW, R2, R1, offset(META)).alu(Alu::Or, R2, UP);
        a.store(Size::DW, R1, offset(META), R2);
        self.let_go(a);
        a.bind(none);
    }

    /// `R1 =` the address of the slot that was found; goes on at `none` if there is none.
    fn pending(&self, a: &mut Assembler, none: Label) {
        a.load(Size::DW, R5, R10, self.places.slot).jump_if(Cond::Eq, R5, NONE, none);
        self.point(a);
    }

    /// Notes the time in the slot that `R1` points to, and lets its bucket go.
    fn let_go(&self, a: &mut Assembler) {
        let later = a.label("later");
        a.load(Size::DW, R3, R10, self.places.now).load(Size::DW, R2, R1, offset(LAST));
        a.jump_if(Cond::Sge, R2, R3, later).store(Size::DW, R1, offset(LAST), R3);
        a.bind(later);
        self.unlock_bucket(a);
    }

    fn unlock_bucket(&self, a: &mut Assembler) {
        a.load(Size::DW, R5, R10, self.places.bucket);
        self.point(a);
        unlock(a);
    }

    /// `R1 =` the address at the offset `R5`.
    fn point(&self, a: &mut Assembler) {
        a.push(EbpfInstruction::LoadMapValue { dst: R1, fd: self.map, offset: 0 });
        a.add(R1, R5);
    }

    /// The same. The offset is bounded by the same numbers whichever slot it is, so that the
    /// verifier goes through what comes after only once.
    fn slot_pointer(&self, a: &mut Assembler) {
        a.and(R5, OFFSET_MASK);
        self.point(a);
    }
}

/// Lets the bucket go that `R1` points to. Earlier writes are seen by the next holder of the lock.
/// Uses `R2`.
fn unlock(a: &mut Assembler) {
    a.mov(R2, 0).atomic(Atomic::Xchg, R1, offset(LOCK), R2);
}
