//! Rows on their way to the sink, counted by program, and shown to clients over HTTP.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use weir_engine::rows::{Output, Rows, Sink};
use weir_http::{RowLog, ShownOutput};

/// How many programs, interfaces, workers or outlets have counts of their own in the time of a run.
/// The counts of the others are added up under the name [`OTHERS`].
pub(crate) const NAMES_MAX: usize = 256;
pub(crate) const OTHERS: &str = "_other";

/// Rows of a program that were emitted, and those of them that the sink did not take in time.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct RowTally {
    pub(crate) emitted: u64,
    pub(crate) refused: u64,
}

/// The rows of all programs that have run. One that comes again goes on counting.
#[derive(Clone, Default)]
pub(crate) struct Tallies(Arc<Mutex<BTreeMap<String, RowTally>>>);

impl Tallies {
    /// Each program, by name.
    pub(crate) fn all(&self) -> Vec<(String, RowTally)> {
        self.0.lock().iter().map(|(name, tally)| (name.clone(), *tally)).collect()
    }

    fn add(&self, program: &str, emitted: u64, refused: u64) {
        let mut all = self.0.lock();
        let name = if all.len() < NAMES_MAX { program } else { OTHERS };
        let tally = match all.get_mut(program) {
            Some(tally) => tally,
            None => all.entry(name.to_owned()).or_default(),
        };
        tally.emitted += emitted;
        tally.refused += refused;
    }
}

/// The fate of clients at the end of the input.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum AtEnd {
    /// Their streams end.
    Close,
    /// They may still ask for what is kept, and packets may be read again.
    Rest,
}

/// A sink that counts, and keeps rows for clients before it hands them on.
pub(crate) struct Tap<'a> {
    to: Box<dyn Sink + 'a>,
    tallies: Tallies,
    log: RowLog,
    /// The outputs, as clients see them.
    outputs: Vec<ShownOutput>,
    at_end: AtEnd,
}

impl<'a> Tap<'a> {
    /// Hands rows on to a sink. Clients are told which outputs there will be first, before they can
    /// ask: packets may be late, and with them the first call of [`Sink::open`].
    pub(crate) fn new(
        to: Box<dyn Sink + 'a>,
        (tallies, log): (Tallies, RowLog),
        outputs: &[Output],
        at_end: AtEnd,
    ) -> Tap<'a> {
        let mut tap = Tap { to, tallies, log, outputs: Vec::new(), at_end };
        tap.set_outputs(outputs);
        tap
    }

    fn set_outputs(&mut self, outputs: &[Output]) {
        self.log.open(outputs);
        self.outputs = self.log.form().shown(outputs);
        self.outputs.iter().for_each(|output| self.tallies.add(&output.program, 0, 0));
    }
}

impl Drop for Tap<'_> {
    fn drop(&mut self) {
        // Nothing follows a rest any more.
        if self.at_end == AtEnd::Rest {
            self.log.close();
        }
    }
}

impl Sink for Tap<'_> {
    fn open(&mut self, outputs: &[Output]) -> io::Result<()> {
        self.set_outputs(outputs);
        self.to.open(outputs)
    }

    fn rows(&mut self, output: usize, rows: &Rows) -> io::Result<()> {
        self.log.add(output, rows);
        let before = self.to.refused();
        let result = self.to.rows(output, rows);
        let refused = self.to.refused().saturating_sub(before);
        self.tallies.add(&self.outputs[output].program, rows.len as u64, refused);
        result
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }

    fn finish(&mut self) -> io::Result<()> {
        let result = self.to.finish();
        match self.at_end {
            AtEnd::Close => self.log.close(),
            AtEnd::Rest => self.log.rest(),
        }
        result
    }

    fn refused(&self) -> u64 {
        self.to.refused()
    }

    fn unwritten(&self) -> u64 {
        self.to.unwritten()
    }
}
