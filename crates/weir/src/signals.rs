//! Ctrl-C: the first asks the run to end well, the second ends the process. SIGUSR1 asks it how it
//! is.

use crate::stats::Stats;
use signal_hook::consts::{SIGINT, SIGTERM, SIGUSR1};
use signal_hook::flag;
use signal_hook::iterator::Signals;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Signals that are heard, but that nobody was told of yet.
pub(crate) struct Heard(Signals);

/// From now on the first SIGINT or SIGTERM sets `stop`; another ends the process at once, with the
/// status that shells give to the signal (130 for Ctrl-C).
pub(crate) fn hear(stop: &Arc<AtomicBool>) -> io::Result<Heard> {
    for signal in [SIGINT, SIGTERM] {
        // In this order: the flag is set only after the first signal was found not to be the
        // second.
        flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(stop))?;
        flag::register(signal, Arc::clone(stop))?;
    }
    Ok(Heard(Signals::new([SIGINT, SIGTERM, SIGUSR1])?))
}

impl Heard {
    /// Starts a thread that calls `wake` at SIGINT and SIGTERM and prints `stats` at SIGUSR1, those
    /// included that came since they are heard.
    pub(crate) fn tell(self, stats: &Stats, wake: impl Fn() + Send + 'static) -> io::Result<()> {
        let (Heard(mut signals), stats) = (self, stats.clone());
        std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
            for signal in signals.forever() {
                match signal {
                    SIGUSR1 => stats.print(),
                    _ => wake(),
                }
            }
        })?;
        Ok(())
    }
}
