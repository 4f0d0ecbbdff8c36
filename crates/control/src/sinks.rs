//! Where the rows of programs go that come and go.

use crate::output::Unwritten;
use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use weir_engine::rows::{Output, Rows, Sink};

/// A sink of one program.
pub(crate) type Own = Box<dyn Sink + Send>;

/// A program's own sink that is new, and the files that were made for it.
pub(crate) struct New {
    /// The sink.
    pub(crate) sink: Own,
    /// Its files, until it is opened.
    pub(crate) files: Vec<Unwritten>,
}

/// What everybody knows of a program's rows.
#[derive(Default, Debug)]
pub(crate) struct Member {
    rows: AtomicU64,
    refused: AtomicU64,
    unwritten: AtomicU64,
    failed: Mutex<Option<String>>,
}

impl Member {
    /// Rows that it has put out, and those among them that are not written: nobody took them in
    /// time, or that failed.
    pub(crate) fn rows(&self) -> (u64, u64) {
        (self.rows.load(Ordering::Relaxed), self.refused() + self.unwritten())
    }

    fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    fn unwritten(&self) -> u64 {
        self.unwritten.load(Ordering::Relaxed)
    }

    /// Takes from its sink what became of the rows.
    fn count(&self, sink: &dyn Sink) {
        self.refused.store(sink.refused(), Ordering::Relaxed);
        self.unwritten.store(sink.unwritten(), Ordering::Relaxed);
    }

    /// Why its rows are not written any more.
    pub(crate) fn failed(&self) -> Option<String> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Keeps the first reason.
    fn fail(&self, e: &io::Error) {
        let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        failed.get_or_insert_with(|| e.to_string());
    }
}

/// A program whose rows come from now on.
pub(crate) struct Coming {
    /// Its name.
    pub(crate) name: String,
    /// How many outputs it has.
    pub(crate) outputs: usize,
    /// Its own sink, where that is new.
    pub(crate) own: Option<Own>,
    /// What is known of it.
    pub(crate) member: Arc<Member>,
}

/// Where it is laid down which programs come next, for when the sink is opened again.
#[derive(Default)]
pub(crate) struct Board(Mutex<VecDeque<Vec<Coming>>>);

impl Board {
    /// Lays down what comes with the next change.
    pub(crate) fn lay(&self, coming: Vec<Coming>) {
        self.lock().push_back(coming);
    }

    /// The change is not made.
    pub(crate) fn take_back(&self) {
        self.lock().pop_back();
    }

    fn next(&self) -> Option<Vec<Coming>> {
        self.lock().pop_front()
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Vec<Coming>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How the sink of a program that went has ended: its name, whether all was well, and its counts.
type Ended = (String, io::Result<()>, Arc<Member>);

/// Where rows go.
pub(crate) enum To<'a> {
    /// All to one sink.
    One(Box<dyn Sink + 'a>),
    /// Those of each program to a sink of its own.
    Own,
}

/// Hands rows to the sinks of their programs, and counts them. Where programs have sinks of their
/// own, one that fails is told and left alone.
pub(crate) struct Members<'a> {
    to: To<'a>,
    board: Arc<Board>,
    members: Vec<Present>,
    /// Of each output the place of its program, and its number there.
    places: Vec<(usize, usize)>,
    /// Sinks of programs that went, on their way to their end.
    ending: Vec<JoinHandle<Ended>>,
    /// Rows of programs which went that nobody took in time, those that could not be written, and
    /// what was the first to fail.
    refused: u64,
    unwritten: u64,
    failed: Option<io::Error>,
    /// Says something to the user.
    tell: Box<dyn Fn(String) + 'a>,
}

struct Present {
    name: String,
    own: Option<Own>,
    member: Arc<Member>,
}

impl<'a> Members<'a> {
    /// Hands rows on as the board says.
    pub(crate) fn new(
        to: To<'a>,
        board: Arc<Board>,
        tell: Box<dyn Fn(String) + 'a>,
    ) -> Members<'a> {
        let (members, places, ending) = (Vec::new(), Vec::new(), Vec::new());
        let (refused, unwritten, failed) = (0, 0, None);
        Members { to, board, members, places, ending, refused, unwritten, failed, tell }
    }

    /// Lets a program's sink do something; what goes wrong is told once, and is the end of it.
    fn own(
        member: &mut Present,
        tell: &dyn Fn(String),
        call: impl FnOnce(&mut dyn Sink) -> io::Result<()>,
    ) {
        let Some(own) = &mut member.own else { return };
        let result = call(&mut **own);
        member.member.count(&**own);
        if let Err(e) = result {
            member.member.fail(&e);
            tell(format!("{}: {e}; its rows are not written any more", member.name));
            // Nobody waits for it.
            member.own = None;
        }
    }

    /// Takes what those came to that have ended; waits for the others if `all` says so.
    fn ended(&mut self, all: bool) {
        for thread in std::mem::take(&mut self.ending) {
            if !all && !thread.is_finished() {
                self.ending.push(thread);
                continue;
            }
            let Ok((name, ended, member)) = thread.join() else { continue };
            self.leave(&member);
            if let Err(e) = ended {
                (self.tell)(format!("{name}: {e}; its last rows are not written"));
                let named = || io::Error::new(e.kind(), format!("{name}: {e}"));
                self.failed.get_or_insert_with(named);
            }
        }
    }

    /// Counts what became of the rows of a program that went.
    fn leave(&mut self, member: &Member) {
        self.refused += member.refused();
        self.unwritten += member.unwritten();
    }

    /// Ends sinks in threads of their own: they may take their time.
    fn end(&mut self, gone: Vec<Present>) {
        for Present { name, own, member } in gone {
            let Some(mut own) = own else {
                self.leave(&member);
                if let Some(reason) = member.failed() {
                    let named = || io::Error::other(format!("{name}: {reason}"));
                    self.failed.get_or_insert_with(named);
                }
                continue;
            };
            let end = move || {
                let ended = own.finish();
                member.count(&*own);
                (name, ended, member)
            };
            match thread::Builder::new().name("last rows".to_owned()).spawn(end) {
                Ok(thread) => self.ending.push(thread),
                Err(e) => (self.tell)(format!("the last rows are not written: {e}")),
            }
        }
    }
}

impl Sink for Members<'_> {
    fn open(&mut self, outputs: &[Output]) -> io::Result<()> {
        let coming = self.board.next().unwrap_or_default();
        let (mut before, mut first) = (std::mem::take(&mut self.members), 0);
        self.places.clear();
        for Coming { name, outputs: n, own, member } in coming {
            let mine = &outputs[first..first + n];
            first += n;
            let at = before.iter().position(|present| present.name == name && own.is_none());
            let own = match (at, own) {
                (Some(at), _) => before.swap_remove(at).own,
                (None, own) => own,
            };
            let is_new = at.is_none();
            let mut present = Present { name, own, member };
            if is_new {
                Members::own(&mut present, &self.tell, |own| own.open(mine));
            }
            self.places.extend((0..n).map(|local| (self.members.len(), local)));
            self.members.push(present);
        }
        self.ended(false);
        self.end(before);
        match &mut self.to {
            To::One(sink) => sink.open(outputs),
            To::Own => Ok(()),
        }
    }

    fn rows(&mut self, output: usize, rows: &Rows) -> io::Result<()> {
        let (at, local) = self.places[output];
        let present = &mut self.members[at];
        present.member.rows.fetch_add(rows.len as u64, Ordering::Relaxed);
        match &mut self.to {
            To::One(sink) => {
                let before = sink.refused();
                let result = sink.rows(output, rows);
                let refused = sink.refused() - before;
                present.member.refused.fetch_add(refused, Ordering::Relaxed);
                result
            }
            To::Own => {
                if present.own.is_none() {
                    present.member.unwritten.fetch_add(rows.len as u64, Ordering::Relaxed);
                }
                Members::own(present, &self.tell, |own| own.rows(local, rows));
                Ok(())
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        let tell = &self.tell;
        self.members.iter_mut().for_each(|m| Members::own(m, tell, |own| own.flush()));
        match &mut self.to {
            To::One(sink) => sink.flush(),
            To::Own => Ok(()),
        }
    }

    /// All of them; fails if one failed, now or before.
    fn finish(&mut self) -> io::Result<()> {
        let members = std::mem::take(&mut self.members);
        self.end(members);
        self.ended(true);
        let result = self.failed.take().map_or(Ok(()), Err);
        match &mut self.to {
            To::One(sink) => result.and(sink.finish()),
            To::Own => result,
        }
    }

    fn refused(&self) -> u64 {
        match &self.to {
            To::One(sink) => sink.refused(),
            To::Own => self.refused + self.members.iter().map(|m| m.member.refused()).sum::<u64>(),
        }
    }

    fn unwritten(&self) -> u64 {
        match &self.to {
            To::One(sink) => sink.unwritten(),
            To::Own => {
                self.unwritten + self.members.iter().map(|m| m.member.unwritten()).sum::<u64>()
            }
        }
    }
}
