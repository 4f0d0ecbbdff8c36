//! Where things stand in a table.

use super::cells::{Cell, Room};
use super::keys::KeyLayout;
use super::shape::ValueShape;
use crate::limits::{FRAMES_IN_SUM_MIN, PROBES, SLOTS_MAX, SLOTS_MIN, TABLE_BYTES_MAX};
use weir_plan::limits::GROUPS_MAX;
use weir_plan::physical::PipelineId;
use weir_plan::{Summarize, Window};

/// The options that the layout of tables depends on besides the plan.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TableOptions {
    /// The number after that of the last CPU there may be.
    pub cpus: u32,
    /// The secret that keys are hashed with: a seed and a multiplier. Senders who know them can
    /// make groups collide, whose frames then go up.
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

/// A table of groups of one pipeline.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Table {
    /// The pipeline whose groups they are.
    pub pipeline: PipelineId,
    /// How long its windows (of overlapping ones: panes) are, in nanoseconds; `None` for the whole
    /// input.
    pub every_ns: Option<i64>,
    pub(super) keys: KeyLayout,
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
        let layout = KeyLayout::new(keys);
        let mut room = Room { words: KEY + layout.words(), flags: 0 };
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
            keys: layout,
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

    /// Whether results of its aggregates depend on the order of frames.
    pub fn is_ordered(&self) -> bool {
        self.cells.iter().any(|cell| matches!(cell, Cell::Ordered { .. }))
    }

    /// The layout of its keys.
    pub fn keys(&self) -> &KeyLayout {
        &self.keys
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
    if plan.zone.is_some() {
        return Some("windows are by the clock of a time zone");
    }
    if plan.max_groups < GROUPS_MAX {
        return Some("`max` is exact, so one worker has all groups");
    }
    plan.fill.is_some().then_some("`fill` keeps keys beyond their window")
}
