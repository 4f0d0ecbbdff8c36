//! Signals: the first Ctrl-C ends the run as at the end of its input, the second ends the process.
//! A closed terminal (SIGHUP) ends the run like the first Ctrl-C, and SIGUSR1 prints the ledger.

use crate::stats::Stats;
use nix::sys::signal::{SigSet, SigmaskHow, Signal};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};
use signal_hook::flag;
use signal_hook::iterator::Signals;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Signals that have handlers.
const HANDLED: [Signal; 4] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGUSR1];

/// Signals that are caught, before a thread handles them.
pub(crate) struct CaughtSignals(Signals);

/// From now on SIGINT, SIGTERM and SIGHUP set `stop`. A second SIGINT or SIGTERM ends the process
/// at once, with the status that shells give to the signal (130 for Ctrl-C).
///
/// SIGHUP never does that, however often it comes: when a terminal is closed, the shell sends it,
/// and the kernel sends it again; systemd may send it right after SIGTERM. It stays ignored if the
/// parent process ignored it, as nohup(1) does.
///
/// A signal that comes meanwhile waits until all of its handlers are installed: with only the first
/// of them it would end neither the process nor the run. Other threads would have to block it, too,
/// so this function is called before any thread is started.
pub(crate) fn hear(stop: &Arc<AtomicBool>) -> io::Result<CaughtSignals> {
    hear_until(stop, &Arc::default(), true)
}

/// The same, but no signal ends the process before `given_back` is set: a screen has to give the
/// terminal back first.
pub(crate) fn hear_on_screen(
    stop: &Arc<AtomicBool>,
    given_back: &Arc<AtomicBool>,
) -> io::Result<CaughtSignals> {
    hear_until(stop, given_back, false)
}

/// From now on no signal but SIGKILL ends this process: it ends with the process that started it,
/// of which it learns by a pipe, and signals to the group reach that one, too. SIGTERM sets the
/// flag, for processes that are told so to end.
pub(crate) fn outlast() -> io::Result<Arc<AtomicBool>> {
    let told = Arc::<AtomicBool>::default();
    flag::register(SIGTERM, Arc::clone(&told))?;
    for signal in [SIGINT, SIGHUP, SIGUSR1] {
        flag::register(signal, Arc::default())?;
    }
    Ok(told)
}

/// From now on SIGTERM comes when the process has gone that started this one; whether it is still
/// there.
pub(crate) fn end_with_parent(parent: u32) -> io::Result<bool> {
    nix::sys::prctl::set_pdeathsig(Signal::SIGTERM)?;
    // It may have gone before.
    Ok(u32::try_from(nix::unistd::getppid().as_raw()) == Ok(parent))
}

/// A signal ends the process where `ready` is set; with `sets` the first one sets it.
fn hear_until(
    stop: &Arc<AtomicBool>,
    ready: &Arc<AtomicBool>,
    sets: bool,
) -> io::Result<CaughtSignals> {
    let before = SigSet::from_iter(HANDLED).thread_swap_mask(SigmaskHow::SIG_BLOCK)?;
    let heard = register(stop, ready, sets);
    before.thread_set_mask()?;
    heard
}

fn register(
    stop: &Arc<AtomicBool>,
    ready: &Arc<AtomicBool>,
    sets: bool,
) -> io::Result<CaughtSignals> {
    for signal in [SIGINT, SIGTERM] {
        // In this order: the flag that makes the next signal the second one is set after it is
        // read.
        flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(ready))?;
        if sets {
            flag::register(signal, Arc::clone(ready))?;
        }
        flag::register(signal, Arc::clone(stop))?;
    }
    let mut heard = vec![SIGINT, SIGTERM, SIGUSR1];
    if !is_ignored(SIGHUP) {
        flag::register(SIGHUP, Arc::clone(stop))?;
        heard.push(SIGHUP);
    }
    Ok(CaughtSignals(Signals::new(heard)?))
}

impl CaughtSignals {
    /// Starts a thread that calls `wake` at signals that end the run, and prints `stats` at
    /// SIGUSR1. It also handles the signals that came since they are caught.
    pub(crate) fn handle_signals(
        self,
        stats: &Stats,
        wake: impl Fn() + Send + 'static,
    ) -> io::Result<()> {
        let stats = stats.clone();
        self.handle(move || stats.print(), wake)
    }

    /// The same, but calls `print` at SIGUSR1.
    pub(crate) fn handle(
        self,
        print: impl Fn() + Send + 'static,
        wake: impl Fn() + Send + 'static,
    ) -> io::Result<()> {
        let CaughtSignals(mut signals) = self;
        std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
            for signal in signals.forever() {
                match signal {
                    SIGUSR1 => print(),
                    _ => wake(),
                }
            }
        })?;
        Ok(())
    }
}

/// Whether this process ignores a signal; false if the system does not say so (proc(5)).
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    ignores(&status, signal)
}

fn ignores(status: &str, signal: i32) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask & (1 << (signal - 1)) != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_signals_are_found_in_the_mask() {
        let status = "Name:\tweir\nSigIgn:\t0000000000001001\nSigCgt:\tffffffffffffffff\n";
        assert!(ignores(status, SIGHUP));
        assert!(ignores(status, 13));
        assert!(!ignores(status, SIGINT));
        assert!(!ignores("", SIGHUP) && !ignores("SigIgn:\tx\n", SIGHUP));
    }
}
