//! The terminal: taken over for the screen, and given back as it was.

use crossterm::cursor::{Hide, Show};
use crossterm::event::{self, DisableBracketedPaste, EnableBracketedPaste};
use crossterm::style::ResetColor;
use crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen};
use crossterm::{execute, queue};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::termios::{SetArg, Termios, cfmakeraw, tcgetattr, tcsetattr};
use parking_lot::Mutex;
use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal as _, Write as _};
use std::os::fd::AsFd as _;
use std::panic;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The terminal of this process.
#[derive(Debug)]
pub struct Terminal(Arc<TerminalFiles>);

#[derive(Debug)]
struct TerminalFiles {
    /// Where keys come from.
    keys: File,
    /// Where the screen is drawn.
    out: File,
    /// The modes that the terminal had.
    before: Mutex<Termios>,
    is_taken: AtomicBool,
}

impl Terminal {
    /// Opens what is needed to take the terminal over, which changes nothing yet. A process that
    /// gives up permissions calls this before. Keys come from standard input, or from the terminal
    /// of the process where standard input is something else.
    ///
    /// # Errors
    /// If there is no terminal, or standard output is none.
    pub fn open() -> io::Result<Terminal> {
        if !io::stdout().is_terminal() {
            return Err(io::Error::other("standard output is no terminal"));
        }
        let keys = match io::stdin().is_terminal() {
            true => File::from(io::stdin().as_fd().try_clone_to_owned()?),
            false => OpenOptions::new().read(true).write(true).open("/dev/tty")?,
        };
        let out = File::from(io::stdout().as_fd().try_clone_to_owned()?);
        let before = Mutex::new(tcgetattr(&keys)?);
        // Opens what it reads events from.
        event::poll(Duration::ZERO)?;
        let is_taken = AtomicBool::new(false);
        Ok(Terminal(Arc::new(TerminalFiles { keys, out, before, is_taken })))
    }

    /// Takes the terminal over: its other screen, and keys as they are pressed. It is given back by
    /// [`Terminal::give_back`], when this is dropped, and before a panic is reported, which also
    /// sets `stop`.
    ///
    /// # Errors
    /// If the terminal does not take that.
    pub(crate) fn take(&self, stop: &Arc<AtomicBool>) -> io::Result<()> {
        let mut raw = self.0.before.lock().clone();
        cfmakeraw(&mut raw);
        tcsetattr(&self.0.keys, SetArg::TCSANOW, &raw)?;
        self.0.is_taken.store(true, Ordering::SeqCst);
        let mut out = &self.0.out;
        execute!(out, EnterAlternateScreen, EnableBracketedPaste, Hide)?;
        let (shared, stop) = (Arc::clone(&self.0), Arc::clone(stop));
        let reported = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            shared.give_back();
            stop.store(true, Ordering::SeqCst);
            reported(panic);
        }));
        Ok(())
    }

    /// Whether the screen is there to be drawn on.
    pub(crate) fn is_taken(&self) -> bool {
        self.0.is_taken.load(Ordering::SeqCst)
    }

    /// Waits for a key, for a signal, or for so long; whether the terminal is still there. One that
    /// has gone may come without a signal, and whoever reads events from it reads for ever.
    pub(crate) fn wait(&self, patience: Duration) -> io::Result<bool> {
        let mut keys = [PollFd::new(self.0.keys.as_fd(), PollFlags::POLLIN)];
        let patience = PollTimeout::try_from(patience).unwrap_or(PollTimeout::MAX);
        match poll(&mut keys, patience) {
            Ok(_) => {}
            // Such as that of another size, which is among the events.
            Err(Errno::EINTR) => return Ok(true),
            Err(e) => return Err(e.into()),
        }
        let gone = PollFlags::POLLHUP | PollFlags::POLLERR | PollFlags::POLLNVAL;
        Ok(!keys[0].revents().is_some_and(|events| events.intersects(gone)))
    }

    /// Gives the terminal back as it was. Only the first call does something.
    pub fn give_back(&self) {
        self.0.give_back();
    }

    /// Where the screen is drawn.
    pub(crate) fn out(&self) -> io::Result<File> {
        self.0.out.try_clone()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.give_back();
    }
}

impl TerminalFiles {
    fn give_back(&self) {
        if !self.is_taken.swap(false, Ordering::SeqCst) {
            return;
        }
        // There is no one left who could be told that this fails: the terminal has gone.
        let mut out = &self.out;
        let _ = queue!(out, ResetColor, DisableBracketedPaste, LeaveAlternateScreen, Show);
        let _ = out.flush();
        let before = self.before.lock();
        let _ = tcsetattr(&self.keys, SetArg::TCSANOW, &before);
    }
}
