//! The code that finds the slot of a key, and updates its cells.
//!
//! Registers that it uses are named by each function; `R6` to `R9` stay as they are.

use super::cells::Cell;
use super::keys::{KeyCode, offset};
use super::layout::{Control, FRAMES, KEY, Table};
use weir_ebpf::{Alu, Assembler, Cond, EbpfInstruction, Helper, Label, Reg, Reg::*, Size};

/// Bits that any offset within a table fits in: the kernel takes no larger ones.
const OFFSET_MASK: i32 = (1 << 29) - 1;

/// Where values of 8 bytes are on the stack, from `R10`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TablePlaces {
    /// The number of the CPU, see [`TableCode::begin`].
    pub cpu: i16,
    /// The first word of the key; the others follow upwards.
    pub key: i16,
    /// Where the pointer to the slot is left.
    pub slot: i16,
    /// When the frame came, by the kernel's monotonic clock: for tables that
    /// are [ordered](Table::is_ordered).
    pub arrival: i16,
}

/// Where frames go on for which there is no slot.
#[derive(Clone, Copy, Debug)]
pub struct TableExits {
    /// The table has no room.
    pub full: Label,
    /// The run ends, or the CPU has no region.
    pub ended: Label,
}

/// Writes code for a table.
#[derive(Clone, Copy, Debug)]
pub struct TableCode<'a> {
    /// Which table.
    pub table: &'a Table,
    /// The number of the map whose value is the table.
    pub map: i32,
    /// The number of the map that is the [`Control`].
    pub control: i32,
    /// The number of the table there.
    pub number: usize,
    /// Where its values are on the stack.
    pub places: TablePlaces,
}

fn number(n: usize) -> i32 {
    i32::try_from(n).expect("a table is smaller")
}

impl TableCode<'_> {
    /// Leaves the number of the CPU on the stack, once for all tables. Uses `R0` to `R5`.
    pub fn begin(a: &mut Assembler, cpu: i16) {
        a.call(Helper::GET_SMP_PROCESSOR_ID).store(Size::DW, R10, cpu, R0);
    }

    /// `dst =` the time since 1970 in nanoseconds, `R0 =` what the monotonic clock shows. Uses `R0`
    /// to `R5`, of which `dst` is one.
    pub fn clock(a: &mut Assembler, control: Control, map: i32, dst: Reg) {
        a.call(Helper::KTIME_GET_NS);
        let offset = u32::try_from(control.clock() * 8).expect("few tables");
        a.push(EbpfInstruction::LoadMapValue { dst: R1, fd: map, offset });
        a.load(Size::DW, R1, R1, 0).add(R1, R0).mov(dst, R1);
    }

    /// The code that makes its key on the stack.
    pub fn key(&self) -> KeyCode<'_> {
        KeyCode { layout: &self.table.keys, at: self.places.key }
    }

    /// Finds the slot of the key, or a free one, which gets the key, and leaves a pointer to it on
    /// the stack. Uses `R0` to `R5`.
    ///
    /// The offset of the slot is bounded by the same numbers however many slots were looked at, and
    /// the way over all of them is the one that the verifier follows first: it goes through what
    /// comes after only once.
    pub fn find(&self, a: &mut Assembler, exits: TableExits) {
        self.first_slot(a, exits.ended);
        if self.table.keys.words() > 0 {
            self.look(a, exits.full);
        } else {
            self.check_frames(a, exits.full);
        }
        a.store(Size::DW, R10, self.places.slot, R1);
    }

    /// Whether [`TableCode::find`] may go on where the table has no room.
    pub fn may_be_full(&self) -> bool {
        self.table.keys.words() > 0 || self.table.frames_max < u64::MAX
    }

    /// `R1 =` the address of the slot of the key, or of a free one, from `R1` on; `R5` is the
    /// offset of the first.
    fn look(&self, a: &mut Assembler, full: Label) {
        let (found, claim, done) = (a.label("found"), a.label("claim"), a.label("slot"));
        let mut ends = Vec::new();
        for probe in 0..self.table.probes {
            let at = probe * self.table.slot_words;
            let (hit, free) = (a.label("same key"), a.label("free slot"));
            ends.push((at, hit, free));
            a.load(Size::DW, R2, R1, offset(at + FRAMES)).jump_if(Cond::Eq, R2, 0, free);
            self.key().compare(a, at + KEY, hit);
        }
        a.jump(full);
        for (at, hit, free) in ends {
            for (from, to) in [(hit, found), (free, claim)] {
                a.bind(from);
                a.add(R5, number(8 * at)).jump(to);
            }
        }
        a.bind(claim);
        self.slot_pointer(a);
        for word in 0..self.table.keys.words() {
            a.load(Size::DW, R2, R10, self.key().word(word));
            a.store(Size::DW, R1, offset(KEY + word), R2);
        }
        a.jump(done);
        a.bind(found);
        self.slot_pointer(a);
        self.check_frames(a, full);
        a.bind(done);
    }

    /// `R5 =` the offset of the first slot to look at, `R1 =` its address.
    fn first_slot(&self, a: &mut Assembler, ended: Label) {
        let Table { slots, options, .. } = self.table;
        if *slots > 1 {
            self.key().hash(a, self.table.options.secret);
            a.alu(Alu::Rsh, R5, (u64::BITS - slots.ilog2()) as i32);
            a.alu(Alu::Mul, R5, number(self.table.slot_bytes()));
        } else {
            a.mov(R5, 0);
        }
        let half = u32::try_from(8 * self.number).expect("few tables");
        a.push(EbpfInstruction::LoadMapValue { dst: R1, fd: self.control, offset: half });
        a.load(Size::DW, R2, R1, 0).jump_if(Cond::Gt, R2, 1, ended);
        a.alu(Alu::Mul, R2, number(8 * self.table.half_words())).add(R5, R2);
        let last = options.cpus.max(1) as i32 - 1;
        a.load(Size::DW, R2, R10, self.places.cpu).jump_if(Cond::Gt, R2, last, ended);
        a.alu(Alu::Mul, R2, number(8 * self.table.region_words())).add(R5, R2);
        a.push(EbpfInstruction::LoadMapValue { dst: R1, fd: self.map, offset: 0 });
        a.add(R1, R5);
    }

    /// `R1 =` the address of the slot at the offset `R5`.
    fn slot_pointer(&self, a: &mut Assembler) {
        a.and(R5, OFFSET_MASK);
        a.push(EbpfInstruction::LoadMapValue { dst: R1, fd: self.map, offset: 0 });
        a.add(R1, R5);
    }

    /// Goes on at `full` where a sum in the slot might leave 63 bits.
    fn check_frames(&self, a: &mut Assembler, full: Label) {
        let most = self.table.frames_max;
        if most == u64::MAX {
            return;
        }
        a.load(Size::DW, R2, R1, offset(FRAMES));
        match i32::try_from(most) {
            Ok(most) => a.jump_if(Cond::Ge, R2, most, full),
            Err(_) => a.load_imm64(R3, most).jump_if(Cond::Ge, R2, R3, full),
        };
    }

    /// `slot =` the pointer that [`TableCode::find`] left.
    pub fn slot(&self, a: &mut Assembler, slot: Reg) {
        a.load(Size::DW, slot, R10, self.places.slot);
    }

    /// Counts the frame in the slot, which from here on has the key. Uses `scratch`.
    pub fn count(&self, a: &mut Assembler, slot: Reg, scratch: Reg) {
        add_one(a, slot, FRAMES, scratch);
    }

    /// Whether the cell of aggregate `c` takes nothing: it is how many frames were counted.
    pub fn is_frames(&self, c: usize) -> bool {
        self.table.cells[c] == Cell::Frames
    }

    /// Whether the cell of aggregate `c` counts values, whatever they are, so that only their
    /// presence matters.
    pub fn is_count(&self, c: usize) -> bool {
        matches!(self.table.cells[c], Cell::Count { .. })
    }

    /// Updates the cell of aggregate `c` by `value`, for frames in which its condition holds and
    /// its argument has a value: an address is in two registers, the upper half first, all else in
    /// the first. Uses that one and `scratch`; of a cell that [counts](TableCode::is_count) just
    /// `scratch`.
    pub fn update(&self, a: &mut Assembler, c: usize, slot: Reg, pair: [Reg; 2], scratch: Reg) {
        let [value, _] = pair;
        match self.table.cells[c] {
            Cell::Frames => {}
            Cell::Ordered { at, words, last } => {
                let held = a.label("held");
                if !last {
                    a.load(Size::DW, scratch, slot, offset(at));
                    a.jump_if(Cond::Ne, scratch, 0, held);
                }
                a.load(Size::DW, scratch, R10, self.places.arrival);
                a.store(Size::DW, slot, offset(at), scratch);
                for (word, value) in pair.into_iter().enumerate().take(words) {
                    a.store(Size::DW, slot, offset(at + 1 + word), value);
                }
                a.bind(held);
            }
            Cell::Count { at } => add_one(a, slot, at, scratch),
            Cell::Sum { at, seen } => {
                combine(a, Alu::Add, slot, at, value, scratch);
                self.set_flag(a, slot, seen, value, scratch);
            }
            Cell::Mean { at, values } => {
                combine(a, Alu::Add, slot, at, value, scratch);
                values.into_iter().for_each(|at| add_one(a, slot, at, scratch));
            }
            Cell::Or { at, seen } => {
                combine(a, Alu::Or, slot, at, value, scratch);
                self.set_flag(a, slot, seen, value, scratch);
            }
            Cell::Least { at, beyond } => {
                a.alu(Alu::Xor, value, -1).add(value, 1);
                add_constant(a, value, beyond, scratch);
                keep_greater(a, slot, at, value, scratch);
            }
            Cell::Greatest { at, below } => {
                add_constant(a, value, below.wrapping_neg(), scratch);
                keep_greater(a, slot, at, value, scratch);
            }
            Cell::Truth { bit } => {
                a.mov(scratch, 1).alu(Alu::Lsh, scratch, value).alu(Alu::Lsh, scratch, bit as i32);
                let at = self.table.flags.expect("there are bits");
                combine(a, Alu::Or, slot, at, scratch, value);
            }
        }
    }

    /// Sets a bit of the slot.
    fn set_flag(&self, a: &mut Assembler, slot: Reg, bit: Option<u32>, one: Reg, scratch: Reg) {
        if let (Some(bit), Some(at)) = (bit, self.table.flags) {
            a.mov(one, 1).alu(Alu::Lsh, one, bit as i32);
            combine(a, Alu::Or, slot, at, one, scratch);
        }
    }
}

fn add_one(a: &mut Assembler, slot: Reg, at: usize, scratch: Reg) {
    a.load(Size::DW, scratch, slot, offset(at)).add(scratch, 1);
    a.store(Size::DW, slot, offset(at), scratch);
}

fn combine(a: &mut Assembler, op: Alu, slot: Reg, at: usize, value: Reg, scratch: Reg) {
    a.load(Size::DW, scratch, slot, offset(at)).alu(op, scratch, value);
    a.store(Size::DW, slot, offset(at), scratch);
}

fn add_constant(a: &mut Assembler, value: Reg, constant: i64, scratch: Reg) {
    match i32::try_from(constant) {
        Ok(0) => a,
        Ok(imm) => a.add(value, imm),
        Err(_) => a.load_imm64(scratch, constant as u64).add(value, scratch),
    };
}

fn keep_greater(a: &mut Assembler, slot: Reg, at: usize, value: Reg, scratch: Reg) {
    let less = a.label("no better");
    a.load(Size::DW, scratch, slot, offset(at)).jump_if(Cond::Le, value, scratch, less);
    a.store(Size::DW, slot, offset(at), value);
    a.bind(less);
}
