//! Frames on their way to the outlets, from each stage that hands some out.

use crate::counters::{Ledger, Traffic};
use crate::limits::SPARE_ROWS;
use crate::merge::{Merge, WaitingBatch, hand_on};
use crate::ops::ends::outgoing::{ALL, FrameKind, address};
use crate::ops::operator::{ActionsId, Wanted};
use crate::rows::{Arena, Rows};
use std::io;
use std::ops::Range;
use weir_packet::egress::{Egress, Outlet, Refusal, Refused, Sent};
use weir_plan::Program;
use weir_plan::ends::{Ends, To, rendezvous_there, text_word};

/// Where frames go.
pub(crate) struct EgressWriter<'e> {
    egress: Option<&'e mut dyn Egress>,
    outlets: Vec<Outlet>,
    /// The traffic that each outlet took.
    traffic: Vec<Traffic>,
    /// The stages that hand out frames, by [`ActionsId`].
    stages: Vec<Actions>,
    /// Packets that were steered to another output, since theirs was away.
    moved: u64,
    /// Scratch: by outlet, whether it is away.
    away: Vec<bool>,
    /// Whether an outlet takes frames of several stages, which then wait for each other.
    crossing: bool,
    /// Batches of frames that wait for those of other stages.
    waiting: Vec<WaitingBatch<usize>>,
    merge: Merge<(u64, usize)>,
    /// Memory of batches that were sent.
    spare: Vec<Rows>,
    /// Scratch: what goes out at once.
    frames: Vec<Sent>,
    failed: bool,
    error: Option<io::Error>,
    /// By outlet, what came for it after one had failed.
    too_late: Vec<Refused>,
}

/// A stage that hands packets out.
struct Actions {
    acts: Vec<Act>,
    /// Whether it steers.
    steers: bool,
}

/// One of the things that it does with them.
struct Act {
    /// The numbers of its outlets, ...
    outlets: Vec<u32>,
    /// ... and the words that stand for their names in the choice of one.
    words: Vec<u64>,
}

impl Actions {
    fn new(ends: &Ends, outlets: &[Outlet]) -> Actions {
        let number = |outlet: &Outlet| outlets.iter().position(|o| o == outlet).unwrap_or(0) as u32;
        let act = |act: &weir_plan::ends::Act| {
            let outlets = act.to.outlets();
            let word = |outlet: &Outlet| match outlet {
                Outlet::Named(name) => text_word(name.as_bytes()),
                Outlet::Pass => 0,
            };
            Act {
                outlets: outlets.iter().map(number).collect(),
                words: outlets.iter().map(word).collect(),
            }
        };
        Actions {
            acts: ends.acts().map(act).collect(),
            steers: ends.acts().any(|act| matches!(act.to, To::Steer { .. })),
        }
    }

    fn takes(&self, outlet: u32) -> bool {
        self.acts.iter().any(|act| act.outlets.contains(&outlet))
    }

    /// Sends the frames of steers whose outlet is away to others of theirs that are there, if any
    /// are; says how many. `frames` are those of the rows, in order.
    fn resteer(&self, away: &[bool], rows: &Rows, range: Range<usize>, frames: &mut [Sent]) -> u64 {
        let word = |c: usize, i: usize| rows.columns[c].word()[i];
        let (mut at, mut moved) = (0, 0);
        for i in range {
            let (act, choice) = address(word(0, i));
            let Act { outlets, words } = &self.acts[act];
            if choice == ALL {
                at += outlets.len();
                continue;
            }
            let frame = &mut frames[at];
            at += 1;
            if !away[frame.outlet as usize] {
                continue;
            }
            let key = FrameKind::of(word(3, i)).keyed.then_some(word(4, i));
            let there = |o: usize| !away[outlets[o] as usize];
            if let Some(chosen) = rendezvous_there(key, words, there) {
                frame.outlet = outlets[chosen];
                moved += 1;
            }
        }
        moved
    }
}

impl<'e> EgressWriter<'e> {
    /// The outlets of a program; without an egress, frames are only counted.
    pub(crate) fn new(program: &Program, egress: Option<&'e mut dyn Egress>) -> EgressWriter<'e> {
        let outlets = program.outlets();
        let number = outlets.len();
        let stages: Vec<Actions> =
            program.ends().map(|(.., ends)| Actions::new(ends, &outlets)).collect();
        let crossing = (0..outlets.len() as u32)
            .any(|o| stages.iter().filter(|stage| stage.takes(o)).count() > 1);
        EgressWriter {
            egress,
            traffic: vec![Traffic::default(); outlets.len()],
            moved: 0,
            away: Vec::new(),
            outlets,
            stages,
            crossing,
            waiting: Vec::new(),
            merge: Merge::default(),
            spare: Vec::new(),
            frames: Vec::new(),
            failed: false,
            error: None,
            too_late: vec![Refused::default(); number],
        }
    }

    /// Lets the egress open outlets that are to be among its own.
    pub(crate) fn prepare(&mut self, outlets: &[Outlet]) -> io::Result<()> {
        match &mut self.egress {
            Some(egress) => egress.prepare(outlets),
            None => Ok(()),
        }
    }

    /// Takes the egress of `old`, which counts for the last time.
    pub(crate) fn follow(&mut self, old: &mut EgressWriter<'e>, ledger: &mut Ledger) {
        if let Some(egress) = &mut old.egress {
            egress.settle();
        }
        old.count(ledger);
        let old = std::mem::replace(old, EgressWriter::new(&Program::default(), None));
        (self.egress, self.failed, self.error) = (old.egress, old.failed, old.error);
    }

    /// Opens the outlets again, unless one of them failed before.
    pub(super) fn reopen(&mut self) {
        if !self.failed
            && let Err(e) = self.open()
        {
            self.fail(e);
        }
    }

    /// Opens the outlets.
    pub(crate) fn open(&mut self) -> io::Result<()> {
        match &mut self.egress {
            Some(egress) => egress.open(&self.outlets),
            None => Ok(()),
        }
    }

    /// Which frames are wanted.
    pub(crate) fn wanted(&self) -> Wanted {
        let Some(egress) = &self.egress else { return Wanted::default() };
        Wanted { named: true, passed: egress.wants(&Outlet::Pass) }
    }

    /// Takes frames of a stage. Where others of the same step may still come that belong before
    /// them, they wait for [`EgressWriter::step`] or [`EgressWriter::close`].
    pub(super) fn take_frames(&mut self, from: ActionsId, rows: &Rows) {
        let ActionsId(stage) = from;
        if !self.crossing {
            return self.send(stage, rows, 0..rows.len);
        }
        let mut copy = self.spare.pop().unwrap_or_else(|| rows.empty());
        copy.clear();
        copy.append(rows, 0..rows.len);
        self.waiting.push(WaitingBatch::new(stage, copy));
    }

    /// Ends a step in which windows close or the input ends: what waits goes out, stage by stage,
    /// as each stage takes all rows of such a step.
    pub(super) fn close(&mut self) {
        let mut waiting = std::mem::take(&mut self.waiting);
        waiting.sort_by_key(|batch| batch.id);
        for WaitingBatch { id, rows, .. } in &waiting {
            self.send(*id, rows, 0..rows.len);
        }
        self.recycle(waiting);
    }

    /// Ends a step of packets: what waits goes out, in their order.
    pub(super) fn step(&mut self) {
        if self.waiting.is_empty() {
            return;
        }
        let mut waiting = std::mem::take(&mut self.waiting);
        let mut merge = std::mem::take(&mut self.merge);
        hand_on(&mut waiting, &mut merge, |stage, rows, range| self.send(stage, rows, range));
        self.merge = merge;
        self.recycle(waiting);
    }

    /// Keeps the memory of batches that were sent.
    fn recycle(&mut self, mut sent: Vec<WaitingBatch<usize>>) {
        self.spare.extend(sent.drain(..).map(|batch| batch.rows));
        self.spare.truncate(SPARE_ROWS);
        self.waiting = sent;
    }

    /// Sends some frames of a stage.
    fn send(&mut self, stage: usize, rows: &Rows, range: Range<usize>) {
        let Some(egress) = self.egress.as_mut() else { return };
        let words = |c: usize| rows.columns[c].word();
        let (to, handles, lens, kinds) = (words(0), words(1), words(2), words(3));
        self.frames.clear();
        for i in range.clone() {
            let (act, choice) = address(to[i]);
            let outlets = &self.stages[stage].acts[act].outlets;
            let chosen = match choice {
                ALL => &outlets[..],
                one => &outlets[one as usize..one as usize + 1],
            };
            let FrameKind { link, trimmed, point, .. } = FrameKind::of(kinds[i]);
            self.frames.extend(chosen.iter().map(|&outlet| Sent {
                outlet,
                link,
                ts: rows.time.word()[i] as i64,
                len: lens[i] as u32,
                start: Arena::start_of(handles[i]) as u32,
                caplen: Arena::len_of(handles[i]) as u32,
                trimmed,
                capture_point: point,
            }));
        }
        if self.stages[stage].steers {
            let outlets = 0..self.outlets.len() as u32;
            self.away.clear();
            self.away.extend(outlets.map(|outlet| egress.is_away(outlet)));
            if self.away.contains(&true) {
                let stage = &self.stages[stage];
                self.moved += stage.resteer(&self.away, rows, range, &mut self.frames);
            }
        }
        self.frames.iter().for_each(|f| self.traffic[f.outlet as usize].add(f.len));
        if self.failed {
            let late = |f: &Sent| self.too_late[f.outlet as usize].add(Refusal::Unwritten, f.len);
            return self.frames.iter().for_each(late);
        }
        if let Err(e) = egress.send(rows.arena.bytes(), &self.frames) {
            self.fail(e);
        }
    }

    fn fail(&mut self, e: io::Error) {
        if !std::mem::replace(&mut self.failed, true) {
            self.error = Some(e);
        }
    }

    /// Lets others see what was taken.
    pub(super) fn flush(&mut self) {
        if let Some(egress) = self.egress.as_mut().filter(|_| !self.failed)
            && let Err(e) = egress.flush()
        {
            self.fail(e);
        }
    }

    /// Closes the outlets, also where one of them failed.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        match &mut self.egress {
            Some(egress) => egress.finish(),
            None => Ok(()),
        }
    }

    /// The error of the egress, if there was one.
    pub(super) fn take_error(&mut self) -> Option<io::Error> {
        self.error.take()
    }

    /// Adds what was counted to the ledger; every outlet stands there.
    pub(super) fn count(&self, ledger: &mut Ledger) {
        ledger.ends.moved += self.moved;
        for (number, (outlet, traffic)) in (0..).zip(self.outlets.iter().zip(&self.traffic)) {
            ledger.ends.add(outlet, *traffic);
            if let Some(egress) = &self.egress {
                ledger.ends.refuse(outlet, &egress.refused(number));
                ledger.ends.refuse(outlet, &self.too_late[number as usize]);
            }
        }
    }
}
