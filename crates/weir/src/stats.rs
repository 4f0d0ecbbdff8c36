//! What happened so far, on standard error: every few seconds, and whenever somebody asks.

use crate::term::Term;
use crate::{ledger, wire};
use std::io;
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use weir_engine::run::Inquiry;

/// What comes before such a ledger.
const SO_FAR: &str = "so far:";

/// An inquiry whose answers are printed.
pub(crate) fn inquiry(term: &Term) -> Arc<Inquiry> {
    let term = *term;
    Arc::new(Inquiry::new(move |counts, interfaces| {
        term.say(SO_FAR);
        term.say_text(&ledger::render(counts));
        term.say_text(&wire::render(interfaces, &wire::Notes::default()));
    }))
}

/// Asks after each `period`, as long as the run lasts.
pub(crate) fn ask_every(period: Duration, inquiry: &Arc<Inquiry>) -> io::Result<()> {
    let inquiry = Arc::downgrade(inquiry);
    thread::Builder::new().name("stats".to_owned()).spawn(move || {
        loop {
            // Nobody wakes it before its time.
            thread::park_timeout(period);
            let Some(inquiry) = inquiry.upgrade() else { return };
            inquiry.ask();
        }
    })?;
    Ok(())
}
