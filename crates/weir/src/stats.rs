//! What happened so far, on standard error: every few seconds, and whenever SIGUSR1 asks.

use crate::term::Term;
use crate::{ledger, wire};
use signal_hook::consts::SIGUSR1;
use signal_hook::iterator::Signals;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;
use weir_engine::run::Inquiry;

/// What comes before such a ledger.
const SO_FAR: &str = "so far:";

/// From now on SIGUSR1 asks the run how it is, and so does the clock after each `every`; what it
/// says is printed.
pub(crate) fn watch(every: Option<Duration>, term: &Term) -> io::Result<Arc<Inquiry>> {
    let term = *term;
    let inquiry = Arc::new(Inquiry::new(move |counts, interfaces| {
        term.say(SO_FAR);
        term.say_text(&ledger::render(counts));
        term.say_text(&wire::render(interfaces, &wire::Notes::default()));
    }));
    let mut signals = Signals::new([SIGUSR1])?;
    let asked = Arc::clone(&inquiry);
    thread::Builder::new().name("asked".to_owned()).spawn(move || {
        for _ in signals.forever() {
            asked.ask();
        }
    })?;
    if let Some(every) = every {
        let asked = Arc::downgrade(&inquiry);
        // Nobody ever says anything: what ends the waiting is the time.
        let (silent, time) = mpsc::channel::<()>();
        thread::Builder::new().name("stats".to_owned()).spawn(move || {
            let _silent = silent;
            while time.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
                let Some(inquiry) = asked.upgrade() else { return };
                inquiry.ask();
            }
        })?;
    }
    Ok(inquiry)
}
