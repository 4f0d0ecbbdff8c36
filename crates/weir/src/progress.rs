//! The progress bar: how much of a file has been read, on standard error.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{self, Write};
use std::time::{Duration, Instant};
use weir_packet::source::Account;

/// A run shorter than this shows no bar at all.
const QUIET_START: Duration = Duration::from_millis(300);

/// The bar is looked at this often while a file is read.
const STEPS: u64 = 1000;

/// Shows how far a run is, or nothing.
pub(crate) struct Progress {
    bar: ProgressBar,
    /// Bytes to be read before the bar next moves.
    next: u64,
    step: u64,
    started: Instant,
    drawn: bool,
}

impl Progress {
    /// A bar for a file of `total` bytes, shown once the run has taken a moment.
    #[expect(clippy::disallowed_methods, reason = "the display for people may look at a clock")]
    pub(crate) fn new(total: u64) -> Progress {
        let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::hidden());
        let template =
            "{bar:30} {percent:>3}% of {total_bytes}, {bytes_per_sec}, {eta} left, {msg}";
        let style = ProgressStyle::with_template(template).expect("the template is well formed");
        bar.set_style(style);
        let step = (total / STEPS).max(1);
        Progress { bar, next: 0, step, started: Instant::now(), drawn: false }
    }

    /// Takes note of how far the source is.
    pub(crate) fn update(&mut self, account: &Account) {
        if account.bytes_read < self.next {
            return;
        }
        self.next = account.bytes_read + self.step;
        if !self.drawn && self.started.elapsed() >= QUIET_START {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
            self.drawn = true;
        }
        self.bar.set_position(account.bytes_read);
        if self.drawn {
            self.bar.set_message(format!("{} packets", account.received));
        }
    }

    /// Removes the bar from the screen.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }

    /// A writer that hides the bar while it writes, so that rows and bar can share a terminal.
    pub(crate) fn around<W: Write>(&self, out: W) -> impl Write + use<W> {
        Around { bar: self.bar.clone(), out }
    }
}

struct Around<W> {
    bar: ProgressBar,
    out: W,
}

impl<W: Write> Write for Around<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bar.suspend(|| self.out.write(bytes))
    }

    // In one piece, so that the bar never comes back in the middle of a row.
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.bar.suspend(|| self.out.write_all(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.bar.suspend(|| self.out.flush())
    }
}
