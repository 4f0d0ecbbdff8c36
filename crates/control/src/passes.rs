//! Passes over the same packets, which are read again for each change of the programs.

use parking_lot::{Condvar, Mutex};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use weir_engine::run::Changes;
use weir_plan::Program;

/// How the programs of a run change.
#[derive(Clone)]
pub enum ChangeBy {
    /// Between two packets.
    Continuing(Arc<Changes>),
    /// By reading all packets again.
    ReadingAgain(Arc<Passes>),
}

/// The program that is to be run in the next pass, and whether there is one.
#[derive(Default)]
pub struct Passes {
    state: Mutex<PassState>,
    changed: Condvar,
}

#[derive(Default)]
struct PassState {
    next: Option<Program>,
    /// Ends the pass that goes on.
    stop: Arc<AtomicBool>,
    over: bool,
}

impl Passes {
    /// Ends the pass that goes on, and runs this program in the next one. Before that `prepare`
    /// prepares it, and is told whether it takes the place of another that was to be next.
    pub(crate) fn demand(&self, program: Program, prepare: impl FnOnce(bool)) {
        let mut state = self.state.lock();
        prepare(state.next.is_some());
        state.next = Some(program);
        state.stop.store(true, Ordering::SeqCst);
        drop(state);
        self.changed.notify_all();
    }

    /// Begins a pass, which ends when the result is set.
    pub fn begin(&self) -> Arc<AtomicBool> {
        let mut state = self.state.lock();
        // A demand that came meanwhile ends it at once.
        let stop = Arc::new(AtomicBool::new(state.over || state.next.is_some()));
        state.stop = Arc::clone(&stop);
        stop
    }

    /// Ends the pass that goes on; there is none after it.
    pub fn end(&self) {
        let mut state = self.state.lock();
        state.over = true;
        state.stop.store(true, Ordering::SeqCst);
        drop(state);
        self.changed.notify_all();
    }

    /// Whether there is a program for the next pass already.
    pub fn has_next(&self) -> bool {
        let state = self.state.lock();
        state.next.is_some() && !state.over
    }

    /// Waits until it is known whether there is a next pass; says whether there is one.
    pub fn wait(&self) -> bool {
        let idle = |state: &mut PassState| !state.over && state.next.is_none();
        let mut state = self.state.lock();
        self.changed.wait_while(&mut state, idle);
        !state.over
    }

    /// The program of the next pass, if there is one.
    pub fn next(&self) -> Option<Program> {
        let mut state = self.state.lock();
        if state.over { None } else { state.next.take() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_demand_ends_the_pass_and_is_the_next() {
        let passes = Arc::<Passes>::default();
        let first = passes.begin();
        assert!(!first.load(Ordering::SeqCst));
        passes.demand(Program::default(), |replaces| assert!(!replaces));
        passes.demand(Program::default(), |replaces| assert!(replaces));
        assert!(first.load(Ordering::SeqCst));
        assert!(passes.begin().load(Ordering::SeqCst) && passes.has_next(), "it waits");
        assert!(passes.wait() && passes.next().is_some());
        assert!(!passes.has_next());
        let second = passes.begin();
        assert!(!second.load(Ordering::SeqCst));
        let other = Arc::clone(&passes);
        let waiting = std::thread::spawn(move || !other.wait());
        passes.end();
        assert!(waiting.join().expect("ends") && second.load(Ordering::SeqCst));
        assert!(passes.begin().load(Ordering::SeqCst) && passes.next().is_none());
    }
}
