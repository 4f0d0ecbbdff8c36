//! Frames on their way to the outlets: an exit for each stage that hands some out.

use crate::counters::{Ledger, Traffic};
use crate::limits::SPARE_ROWS;
use crate::merge::{Merge, run};
use crate::ops::ends::{ALL, Wanted, address};
use crate::rows::{Arena, Rows};
use std::io;
use weir_packet::egress::{Egress, Outlet, Sent};
use weir_packet::source::LinkType;
use weir_plan::Program;

/// Where frames go.
pub(crate) struct Exits<'e> {
    egress: Option<&'e mut dyn Egress>,
    outlets: Vec<Outlet>,
    /// What each outlet took.
    traffic: Vec<Traffic>,
    /// Of each stage, by act, the numbers of its outlets.
    exits: Vec<Vec<Vec<u32>>>,
    /// Whether an outlet takes frames of several exits, which then wait for each other.
    crossing: bool,
    waiting: Vec<Waiting>,
    merge: Merge<(u64, usize)>,
    /// Memory of lots that were sent.
    spare: Vec<Rows>,
    /// Scratch: what goes out at once.
    frames: Vec<Sent>,
    failed: bool,
    error: Option<io::Error>,
}

/// A lot that waits for those of other exits.
struct Waiting {
    exit: usize,
    rows: Rows,
    /// Frames of it that were sent.
    done: usize,
}

impl Waiting {
    /// Where its next frame belongs: by packet, then by exit. `None` at its end.
    fn next(&self) -> Option<(u64, usize)> {
        (self.done < self.rows.len).then(|| (self.rows.order[self.done], self.exit))
    }
}

impl<'e> Exits<'e> {
    /// The exits of a program; without an egress, frames are only counted.
    pub(crate) fn new(program: &Program, egress: Option<&'e mut dyn Egress>) -> Exits<'e> {
        let outlets = program.outlets();
        let number = |outlet: &Outlet| outlets.iter().position(|o| o == outlet).unwrap_or(0) as u32;
        let act = |act: &weir_plan::ends::Act| act.to.outlets().iter().map(number).collect();
        let exits: Vec<Vec<Vec<u32>>> =
            program.ends().map(|(.., ends)| ends.acts().map(act).collect()).collect();
        let takes = |exit: &Vec<Vec<u32>>, o: u32| exit.iter().flatten().any(|&n| n == o);
        let crossing = (0..outlets.len() as u32)
            .any(|o| exits.iter().filter(|exit| takes(exit, o)).count() > 1);
        Exits {
            egress,
            traffic: vec![Traffic::default(); outlets.len()],
            outlets,
            exits,
            crossing,
            waiting: Vec::new(),
            merge: Merge::default(),
            spare: Vec::new(),
            frames: Vec::new(),
            failed: false,
            error: None,
        }
    }

    /// Opens the outlets.
    pub(crate) fn open(&mut self) -> io::Result<()> {
        match &mut self.egress {
            Some(egress) => egress.open(&self.outlets),
            None => Ok(()),
        }
    }

    /// Who wants frames.
    pub(crate) fn wanted(&self) -> Wanted {
        let Some(egress) = &self.egress else { return Wanted::default() };
        Wanted { named: true, passed: egress.wants(&Outlet::Pass) }
    }

    /// Takes frames of an exit. Where others of the same step may still come that belong before
    /// them, they wait for [`Exits::step`] or [`Exits::close`].
    pub(super) fn take(&mut self, exit: usize, rows: &Rows) {
        if !self.crossing {
            return self.send(exit, rows, 0..rows.len);
        }
        let mut copy = self.spare.pop().unwrap_or_else(|| rows.empty());
        copy.clear();
        copy.append(rows, 0..rows.len);
        self.waiting.push(Waiting { exit, rows: copy, done: 0 });
    }

    /// Ends a step in which windows close or the input ends: what waits goes out, exit by exit, as
    /// each stage takes all rows of such a step.
    pub(super) fn close(&mut self) {
        let mut waiting = std::mem::take(&mut self.waiting);
        waiting.sort_by_key(|lot| lot.exit);
        for Waiting { exit, rows, done } in &waiting {
            self.send(*exit, rows, *done..rows.len);
        }
        self.recycle(waiting);
    }

    /// Ends a step of packets: what waits goes out, in their order.
    pub(super) fn step(&mut self) {
        if self.waiting.is_empty() {
            return;
        }
        let mut waiting = std::mem::take(&mut self.waiting);
        for (at, lot) in waiting.iter().enumerate() {
            lot.next().into_iter().for_each(|next| self.merge.add(at, next));
        }
        while let Some((at, bound)) = self.merge.next() {
            let lot = &mut waiting[at];
            let (exit, from) = (lot.exit, lot.done);
            lot.done += run(&lot.rows.order[from..], bound, |order| (order, exit));
            lot.next().into_iter().for_each(|next| self.merge.add(at, next));
            self.send(exit, &lot.rows, from..lot.done);
        }
        self.recycle(waiting);
    }

    /// Keeps the memory of lots that were sent.
    fn recycle(&mut self, mut sent: Vec<Waiting>) {
        self.spare.extend(sent.drain(..).map(|lot| lot.rows));
        self.spare.truncate(SPARE_ROWS);
        self.waiting = sent;
    }

    /// Sends some frames of an exit.
    fn send(&mut self, exit: usize, rows: &Rows, range: std::ops::Range<usize>) {
        let Some(egress) = self.egress.as_mut().filter(|_| !self.failed) else { return };
        let words = |c: usize| rows.columns[c].word();
        let (to, handles, lens, links) = (words(0), words(1), words(2), words(3));
        self.frames.clear();
        for i in range {
            let (act, choice) = address(to[i]);
            let outlets = &self.exits[exit][act];
            let chosen = match choice {
                ALL => &outlets[..],
                one => &outlets[one as usize..one as usize + 1],
            };
            self.frames.extend(chosen.iter().map(|&outlet| Sent {
                outlet,
                link: LinkType(links[i] as u16),
                ts: rows.time.word()[i] as i64,
                len: lens[i] as u32,
                start: Arena::start_of(handles[i]) as u32,
                caplen: Arena::len_of(handles[i]) as u32,
            }));
        }
        match egress.send(rows.arena.bytes(), &self.frames) {
            Ok(()) => {
                self.frames.iter().for_each(|f| self.traffic[f.outlet as usize].add(f.len));
            }
            Err(e) => self.fail(e),
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

    /// What went wrong, if anything did.
    pub(super) fn take_error(&mut self) -> Option<io::Error> {
        self.error.take()
    }

    /// Adds what was counted to the ledger; every outlet stands there.
    pub(super) fn count(&self, ledger: &mut Ledger) {
        for (outlet, traffic) in self.outlets.iter().zip(&self.traffic) {
            ledger.ends.add(outlet, *traffic);
        }
    }
}
