//! Groups of the query that programs in the kernel make: when their windows end, and reading them.
//!
//! A thread ends windows by the system's clock: it has programs write to the other half of each
//! table whose window ends, waits until those have ended that may still write to the one before,
//! and takes the groups out. The machine level asks for the groups of the windows that it closes;
//! where the thread is late, the window ends then. So a frame counts for the window that is open
//! when it comes, which differs from that of its time by as much as the thread is late; how much
//! that was is reported.

mod finished;
mod states;

pub(crate) use finished::FrameCounts;
pub(crate) use states::StateMemory;

use finished::{FinishedLog, window_start};
use nix::time::{ClockId, clock_gettime};
use parking_lot::{Condvar, Mutex};
use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;
use weir_capture::ebpf::{SharedMemory, wait_for_programs};
use weir_engine::counters::{EndCounts, Traffic};
use weir_engine::kernel::{KernelCell, KernelFeed, KernelGroups, KernelStates};
use weir_offload::{Actions, CellValue, Control, OutletPlace, StateTable, Table, TableGroups};
use weir_packet::egress::{Refusal, Refused};
use weir_plan::physical::PipelineId;

/// Groups that wait for the machine level, at most: while there are more, frames go up.
const GROUPS_WAITING_MAX: usize = 4 << 20;

/// How often the difference of the clocks is read again, at least: 1 s.
const CLOCK_NS: i64 = 1_000_000_000;

/// The clocks: the time since 1970, and that since the start of the machine, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Clocks {
    pub real: i64,
    pub monotonic: i64,
}

impl Clocks {
    /// The times that the clocks show now.
    pub fn now() -> Clocks {
        let ns = |id| {
            let time = clock_gettime(id).expect("the system has this clock");
            time.tv_sec().saturating_mul(1_000_000_000).saturating_add(time.tv_nsec())
        };
        Clocks { real: ns(ClockId::CLOCK_REALTIME), monotonic: ns(ClockId::CLOCK_MONOTONIC) }
    }
}

/// The tables of one program, by number, and the memory that controls it.
#[derive(Debug)]
pub struct ProgramTables {
    pub memory: Vec<SharedMemory>,
    pub control: SharedMemory,
    /// In which it counts frames.
    pub frames: FrameCounts,
    /// In which it counts what it does with them, if it does something.
    pub deeds: Option<Deeds>,
    /// The states that it holds together with the others.
    pub states: Vec<Arc<StateMemory>>,
}

/// The actions of a program on frames, and the memory in which it counts them.
#[derive(Clone, Debug)]
pub struct Deeds {
    pub actions: Actions,
    pub memory: Arc<SharedMemory>,
}

impl Deeds {
    fn new(actions: &Actions) -> io::Result<Deeds> {
        let memory = SharedMemory::new("weir-actions", actions.memory.words())?;
        Ok(Deeds { actions: actions.clone(), memory: Arc::new(memory) })
    }

    /// Adds what was done so far.
    fn count(&self, ends: &mut EndCounts) {
        let sums = self.actions.memory.sums(self.memory.words()).into_iter();
        let mut traffic = sums.map(|(frames, bytes)| Traffic { frames, bytes });
        ends.dropped.merge(traffic.next().unwrap_or_default());
        for (to, traffic) in self.actions.outlets.iter().zip(traffic) {
            ends.add(&to.outlet, traffic);
            if to.place == OutletPlace::CameBy {
                let mut refused = Refused::default();
                refused.frames[Refusal::CameByIt as usize] = traffic.frames;
                refused.bytes[Refusal::CameByIt as usize] = traffic.bytes;
                ends.refuse(&to.outlet, &refused);
            }
        }
        for (n, to) in self.actions.outlets.iter().enumerate() {
            let count =
                |at: usize| self.memory.words().get(at).map_or(0, |w| w.load(Ordering::Relaxed));
            let [frames, bytes] = self.actions.memory.doubted(n).map(count);
            ends.doubt(&to.outlet, Traffic { frames, bytes });
        }
    }
}

/// Says what the clocks show.
type ReadClocks = Box<dyn Fn() -> Clocks + Send + Sync>;

/// Says what became of the kernel's part in a run.
type ReportPart = Box<dyn Fn(&str) + Send + Sync>;

/// The tables of all programs of a query, one program for each interface.
pub struct KernelTables {
    clocks: ReadClocks,
    report: ReportPart,
    state: Mutex<TableState>,
    /// Wakes the thread that ends windows.
    wake: Condvar,
}

struct TableState {
    control: Control,
    programs: Vec<ProgramTables>,
    windows: Vec<OpenWindow>,
    /// The states of `scan`s that programs hold.
    states: Vec<Arc<StateMemory>>,
    finished: FinishedLog,
    /// How late a window was ended, at most, in nanoseconds.
    latest: i64,
    ended: bool,
    /// Whether all frames go up, since programs have changed.
    hands_up: bool,
}

/// The window of a table that programs count for, and those before it.
struct OpenWindow {
    table: Table,
    start: i64,
    half: u64,
    /// Groups of windows that have ended, by start.
    closed: Vec<(i64, TableGroups)>,
}

impl fmt::Debug for KernelTables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KernelTables").finish_non_exhaustive()
    }
}

impl KernelTables {
    /// Tables of these layouts, of which no program exists yet.
    pub fn new(tables: Vec<Table>, clocks: ReadClocks, report: ReportPart) -> KernelTables {
        let now = clocks();
        let window = |table: Table| {
            let start = table.every_ns.map_or(0, |every| window_start(now.real, every));
            OpenWindow { table, start, half: 0, closed: Vec::new() }
        };
        let control = Control { tables: tables.len() };
        let windows = tables.into_iter().map(window).collect();
        let (programs, finished) = (Vec::new(), FinishedLog::new(now.real));
        let states = Vec::new();
        let (latest, ended, hands_up) = (0, false, false);
        let state =
            TableState { control, programs, windows, states, finished, latest, ended, hands_up };
        KernelTables { clocks, report, state: Mutex::new(state), wake: Condvar::new() }
    }

    /// Whether these are its tables.
    pub fn are(&self, tables: &[Table]) -> bool {
        self.state.lock().windows.iter().map(|window| &window.table).eq(tables)
    }

    /// Whether there is a program whose groups are read.
    pub fn has_programs(&self) -> bool {
        !self.state.lock().programs.is_empty()
    }

    /// Makes the memory of one more program, which counts frames there.
    ///
    /// # Errors
    /// Where the kernel refuses the memory, or the program has other states than those before.
    pub fn add(
        &self,
        frames: FrameCounts,
        actions: Option<&Actions>,
        states: &[StateTable],
    ) -> io::Result<ProgramTables> {
        let mut state = self.state.lock();
        let states = states.iter().map(|table| state.states_of(table));
        let states = states.collect::<io::Result<Vec<_>>>()?;
        let control = SharedMemory::new("weir-control", state.control.words())?;
        let memory = |w: &OpenWindow| SharedMemory::new("weir-table", w.table.words());
        let memory = state.windows.iter().map(memory).collect::<io::Result<Vec<_>>>()?;
        let deeds = actions.map(Deeds::new).transpose()?;
        let program = ProgramTables { memory, control, frames, deeds, states };
        for (t, window) in state.windows.iter().enumerate() {
            program.control.words()[state.control.half(t)].store(window.half, Ordering::Relaxed);
        }
        set_clock(&program, state.control, (self.clocks)());
        Ok(program)
    }

    /// Reads the groups of a program, which was loaded with the memory that was made for it.
    pub fn read_from(&self, program: ProgramTables) {
        self.state.lock().programs.push(program);
    }

    /// Starts the thread that ends windows. It ends with the run.
    ///
    /// # Errors
    /// Where the system starts no thread.
    pub fn start(self: &Arc<Self>) -> io::Result<()> {
        let tables = Arc::clone(self);
        thread::Builder::new().name("weir-windows".to_owned()).spawn(move || tables.keep_time())?;
        Ok(())
    }

    fn keep_time(&self) {
        let mut state = self.state.lock();
        while !state.ended {
            state.tick((self.clocks)());
            let now = (self.clocks)().real;
            let next = state.next_end().map_or(CLOCK_NS, |end| end.saturating_sub(now));
            let wait = Duration::from_nanos(next.clamp(0, CLOCK_NS).unsigned_abs());
            self.wake.wait_for(&mut state, wait);
        }
    }

    /// EndCounts the windows whose time has come.
    #[cfg(test)]
    fn tick(&self) {
        self.state.lock().tick((self.clocks)());
    }

    /// Whether all frames go up, since programs have changed; `None` where programs can't change.
    pub fn hands_up(&self) -> Option<bool> {
        let state = self.state.lock();
        let may_change = state.programs.iter().any(|program| program.frames.may_change);
        may_change.then_some(state.hands_up)
    }

    /// How late a window was ended so far, at most.
    pub fn latest(&self) -> Duration {
        Duration::from_nanos(self.state.lock().latest.unsigned_abs())
    }
}

impl KernelFeed for KernelTables {
    fn pipelines(&self) -> Vec<PipelineId> {
        self.state.lock().windows.iter().map(|window| window.table.pipeline).collect()
    }

    fn close(&self, pipeline: PipelineId, before: Option<i64>, out: &mut dyn FnMut(KernelGroups)) {
        let mut state = self.state.lock();
        let of = |w: &OpenWindow| w.table.pipeline == pipeline;
        let Some(t) = state.windows.iter().position(of) else { return };
        match before {
            None => {
                state.ended = true;
                self.wake.notify_all();
                state.turn(&[(t, Turn::End)]);
            }
            Some(before) if state.windows[t].start < before => {
                let now = state.windows[t].window_at((self.clocks)().real);
                state.turn(&[(t, Turn::To(before.max(now)))]);
            }
            Some(_) => {}
        }
        let closed = &mut state.windows[t].closed;
        let n = closed.partition_point(|(start, _)| before.is_none_or(|before| *start < before));
        let closed: Vec<_> = closed.drain(..n).collect();
        drop(state);
        let Clocks { real, monotonic } = (self.clocks)();
        let ahead = real.saturating_sub(monotonic);
        closed.into_iter().for_each(|(start, groups)| out(handed_out(start, groups, ahead)));
    }

    fn orders_by_time(&self) -> bool {
        self.state.lock().windows.iter().any(|window| window.table.is_ordered())
    }

    fn count_by(&self, span_ns: i64) {
        self.state.lock().finished.count_by(span_ns);
        // The thread may have to look earlier than it thought.
        self.wake.notify_all();
    }

    fn finished_before(&self, time: i64) -> u64 {
        let TableState { programs, finished, .. } = &mut *self.state.lock();
        finished.before(time, || finished_by(programs))
    }

    fn hand_up(&self, all: bool) {
        let mut state = self.state.lock();
        state.programs.iter().for_each(|program| program.frames.hand_up(all));
        if all {
            // Then no program is left that goes by what the word said before. Only a kernel that
            // makes no groups can't wait, and frames that end there a little later do no harm.
            let _ = wait_for_programs();
        }
        if std::mem::replace(&mut state.hands_up, all) != all {
            (self.report)(match all {
                true => "programs have changed: the kernel hands all packets up",
                false => "programs are as at the beginning: the kernel runs its part again",
            });
        }
    }

    fn count_ends(&self, ends: &mut EndCounts) {
        let state = self.state.lock();
        let deeds = state.programs.iter().filter_map(|program| program.deeds.as_ref());
        deeds.for_each(|deeds| deeds.count(ends));
    }

    fn states(&self, pipeline: PipelineId, stage: usize) -> Option<Arc<dyn KernelStates>> {
        let state = self.state.lock();
        let of = |m: &&Arc<StateMemory>| (m.table.pipeline, m.table.stage) == (pipeline, stage);
        let found = state.states.iter().find(of)?;
        Some(Arc::clone(found) as Arc<dyn KernelStates>)
    }
}

/// The fate of the open window of a table.
#[derive(Clone, Copy)]
enum Turn {
    /// It ends, and the one that starts then is open.
    To(i64),
    /// It ends, and frames go up from now on.
    End,
}

impl OpenWindow {
    fn window_at(&self, now: i64) -> i64 {
        self.table.every_ns.map_or(0, |every| window_start(now, every))
    }

    fn end(&self) -> Option<i64> {
        self.table.every_ns.map(|every| self.start.saturating_add(every))
    }

    fn waiting(&self) -> usize {
        self.closed.iter().map(|(_, groups)| groups.groups).sum()
    }
}

impl TableState {
    /// The memory of this table, which is made with the first program that has it.
    fn states_of(&mut self, table: &StateTable) -> io::Result<Arc<StateMemory>> {
        let of = |m: &&Arc<StateMemory>| {
            (m.table.pipeline, m.table.stage) == (table.pipeline, table.stage)
        };
        match self.states.iter().find(of) {
            Some(memory) if memory.table == *table => Ok(Arc::clone(memory)),
            Some(_) => Err(io::Error::other("its states are not those of the other interfaces")),
            None => {
                let memory = Arc::new(StateMemory::new(table)?);
                self.states.push(Arc::clone(&memory));
                Ok(memory)
            }
        }
    }

    fn next_end(&self) -> Option<i64> {
        let ends = self.windows.iter().filter_map(OpenWindow::end);
        ends.chain(self.finished.next()).min()
    }

    fn tick(&mut self, now: Clocks) {
        self.programs.iter().for_each(|program| set_clock(program, self.control, now));
        self.finished.tick(now.real, || finished_by(&self.programs));
        let mut due = Vec::new();
        for (t, window) in self.windows.iter().enumerate() {
            let Some(late) = window.end().and_then(|end| now.real.checked_sub(end)) else {
                continue;
            };
            if late >= 0 && !self.ended {
                self.latest = self.latest.max(late);
                due.push((t, Turn::To(window.window_at(now.real))));
            }
        }
        self.turn(&due);
    }

    /// EndCounts the open windows of some tables.
    fn turn(&mut self, turns: &[(usize, Turn)]) {
        let TableState { control, programs, windows, .. } = self;
        if turns.is_empty() {
            return;
        }
        let before: Vec<u64> = turns.iter().map(|&(t, _)| windows[t].half).collect();
        for &(t, turn) in turns {
            let window = &mut windows[t];
            window.half = match (turn, window.half) {
                (Turn::End, _) => Control::ENDED,
                // Frames went up, since groups were waiting. Both halves are empty.
                (Turn::To(_), Control::ENDED) => 0,
                (Turn::To(_), half) => 1 - half,
            };
            if matches!(turn, Turn::To(_)) && window.waiting() > GROUPS_WAITING_MAX {
                window.half = Control::ENDED;
            }
            for program in &*programs {
                program.control.words()[control.half(t)].store(window.half, Ordering::SeqCst);
            }
        }
        wait_for_programs().expect("the kernel was asked before the run");
        for (&(t, turn), half) in turns.iter().zip(before) {
            let window = &mut windows[t];
            let mut groups = TableGroups::default();
            for program in programs.iter().filter(|_| half != Control::ENDED) {
                window.table.take(program.memory[t].words(), half as usize, &mut groups);
            }
            if groups.groups > 0 {
                window.closed.push((window.start, groups));
            }
            if let Turn::To(start) = turn {
                window.start = start.max(window.start);
            }
        }
    }
}

/// How many frames programs finished.
fn finished_by(programs: &[ProgramTables]) -> u64 {
    programs.iter().map(|program| program.frames.sums().finished()).sum()
}

fn set_clock(program: &ProgramTables, control: Control, now: Clocks) {
    let ahead = now.real.wrapping_sub(now.monotonic) as u64;
    program.control.words()[control.clock()].store(ahead, Ordering::Relaxed);
}

/// Groups as the engine takes them, where the time since 1970 is so much ahead of the kernel's
/// monotonic clock.
fn handed_out(start: i64, groups: TableGroups, ahead: i64) -> KernelGroups {
    let TableGroups { groups, keys, cells, .. } = groups;
    let cell = |CellValue { word, values, at, high }| {
        let time = ahead.saturating_add(at.cast_signed());
        KernelCell { word, values, time, high }
    };
    KernelGroups { start, groups, keys, cells: cells.into_iter().map(cell).collect() }
}

#[cfg(test)]
mod tests;
