//! Where things stand in a table.

use super::cells::{Cell, Room};
use super::shape::ValueShape;
use crate::limits::{FRAMES_IN_SUM_MIN, PROBES, SLOTS_MAX, SLOTS_MIN, TABLE_BYTES_MAX};
use weir_plan::limits::GROUPS_MAX;
use weir_plan::physical::PipelineId;
use weir_plan::{Summarize, Window};

/// What the layout of tables depends on besides the plan.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TableOptions {
    /// The number after that of the last CPU there may be.
    pub cpus: u32,
    /// What keys are hashed with: a seed and a multiplier. Senders who know them can make groups
    /// collide, whose frames then go up.
    pub secret: [u64; 2],
}

/// The memory by which process and program agree on what programs do: one word for each table,
/// which says the half that programs write to, then the time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Control {
    /// How many tables there are.
    pub tables: usize,
}

impl Control {
    /// In place of a half: frames go up, since the run ends.
    pub const ENDED: u64 = 2;

    /// How many words there are.
    pub fn words(self) -> usize {
        self.tables + 1
    }

    /// The word that says which half of a table programs write to.
    pub fn half(self, table: usize) -> usize {
        table
    }

    /// The word that says what to add to the kernel's monotonic clock, in nanoseconds, for the time
    /// since 1970.
    pub fn clock(self) -> usize {
        self.tables
    }
}

/// Where a part of a key stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct PartPlace {
    /// The word, from the start of the key; of an address the first of two, the high one.
    pub(super) word: usize,
    pub(super) shift: u32,
    /// 1 to 64, or 128.
    pub(super) bits: u32,
    /// The bit of the word [`Table::presence`] that says that it is there, if it may be absent.
    pub(super) present: Option<u32>,
}

/// A table of groups of one pipeline.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Table {
    /// Whose groups they are.
    pub pipeline: PipelineId,
    /// How long its windows (of overlapping ones: panes) are, in nanoseconds; `None` for the whole
    /// input.
    pub every_ns: Option<i64>,
    pub(super) parts: Vec<PartPlace>,
    /// The word of the key with the bits of parts that may be absent.
    pub(super) presence: Option<usize>,
    pub(super) key_words: usize,
    pub(super) cells: Vec<Cell>,
    /// The word of a slot with the bits of cells.
    pub(super) flags: Option<usize>,
    pub(super) slot_words: usize,
    /// A power of two.
    pub(super) slots: usize,
    /// How many slots a key is looked for in.
    pub(super) probes: usize,
    /// How many frames a slot may count, so that no sum leaves 63 bits.
    pub(super) frames_max: u64,
    pub(super) options: TableOptions,
}

/// Of a slot, the word that counts frames.
pub(super) const FRAMES: usize = 0;
/// Of a slot, the first word of the key.
pub(super) const KEY: usize = 1;

impl Table {
    /// The table of the partial half of a `summarize`, whose keys and arguments have these shapes.
    ///
    /// # Errors
    /// Where the kernel can't compute it: one clause that says why.
    pub fn new(
        pipeline: PipelineId,
        plan: &Summarize,
        keys: &[ValueShape],
        args: &[Option<ValueShape>],
        options: TableOptions,
    ) -> Result<Table, String> {
        if let Some(why) = refusal(plan) {
            return Err(why.to_owned());
        }
        let (parts, presence, key_words) = place_keys(keys);
        let mut room = Room { words: KEY + key_words, flags: 0 };
        let (mut cells, mut frames_max) = (Vec::new(), u64::MAX);
        for (agg, arg) in plan.aggs.iter().zip(args) {
            let (cell, most) = Cell::new(agg, *arg, &mut room)?;
            frames_max = frames_max.min(most);
            if frames_max < FRAMES_IN_SUM_MIN {
                return Err(format!("the sum of `{}` might not fit in 64 bits", agg.name));
            }
            cells.push(cell);
        }
        let flags = (room.flags > 0).then_some(room.words);
        let slot_words = room.words + usize::from(flags.is_some());
        let probes = if keys.is_empty() { 1 } else { PROBES };
        let regions = 2 * options.cpus.max(1) as usize;
        let room = |slots: &usize| (slots + probes - 1) * slot_words * 8 * regions;
        let mut sizes = (SLOTS_MIN.ilog2()..=SLOTS_MAX.ilog2()).rev().map(|bits| 1 << bits);
        let slots = match keys.is_empty() {
            true => 1,
            false => sizes
                .find(|slots| room(slots) <= TABLE_BYTES_MAX)
                .ok_or("there are too many CPUs for tables of each")?,
        };
        Ok(Table {
            pipeline,
            every_ns: plan.window.pane(),
            parts,
            presence,
            key_words,
            cells,
            flags,
            slot_words,
            slots,
            probes,
            frames_max,
            options,
        })
    }

    /// Words of 8 bytes that its memory has.
    pub fn words(&self) -> usize {
        2 * self.half_words()
    }

    /// How many groups each CPU has room for in a window, at most.
    pub fn groups_max(&self) -> usize {
        self.region_slots()
    }

    /// Words of a key.
    pub(crate) fn key_words(&self) -> usize {
        self.key_words
    }

    /// Bytes of a slot.
    pub fn slot_bytes(&self) -> usize {
        8 * self.slot_words
    }

    pub(super) fn region_slots(&self) -> usize {
        self.slots + self.probes - 1
    }

    pub(super) fn region_words(&self) -> usize {
        self.region_slots() * self.slot_words
    }

    pub(super) fn half_words(&self) -> usize {
        self.region_words() * self.options.cpus.max(1) as usize
    }
}

/// Why the kernel can't make groups of this stage, whatever its keys and arguments are.
fn refusal(plan: &Summarize) -> Option<&'static str> {
    match plan.window {
        Window::Session(_) => return Some("sessions end by the order of packets"),
        Window::All | Window::Tumbling(_) | Window::Sliding { .. } => {}
    }
    if plan.max_groups < GROUPS_MAX {
        return Some("`max` is exact, so one worker has all groups");
    }
    plan.fill.is_some().then_some("`fill` keeps keys beyond their window")
}

/// The place of each part, the word of presence bits, and how many words there are. Parts of fewer
/// than 64 bits share words.
fn place_keys(keys: &[ValueShape]) -> (Vec<PartPlace>, Option<usize>, usize) {
    let mut used: Vec<u32> = Vec::new();
    let mut parts = Vec::new();
    let mut optional = 0;
    for key in keys {
        let bits = match *key {
            ValueShape::Address { .. } => 128,
            ValueShape::Word { least, greatest, .. } if least >= 0 => {
                (u64::BITS - greatest.leading_zeros()).max(1)
            }
            ValueShape::Word { .. } => 64,
        };
        let present = key.is_nullable().then(|| {
            optional += 1;
            optional - 1
        });
        let (word, shift) = if bits == 128 {
            used.extend([64, 64]);
            (used.len() - 2, 0)
        } else {
            let word = used.iter().position(|used| used + bits <= 64).unwrap_or_else(|| {
                used.push(0);
                used.len() - 1
            });
            used[word] += bits;
            (word, used[word] - bits)
        };
        parts.push(PartPlace { word, shift, bits, present });
    }
    if optional == 0 {
        return (parts, None, used.len());
    }
    let free = used.iter().position(|used| used + optional <= 64);
    let word = free.unwrap_or_else(|| {
        used.push(0);
        used.len() - 1
    });
    for part in &mut parts {
        part.present = part.present.map(|bit| bit + used[word]);
    }
    (parts, Some(word), used.len())
}
