//! Rows on their way to the sink, counted by program, and shown to clients over HTTP.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use weir_engine::rows::{Output, Rows, Sink};
use weir_http::{FeedOutput, RowFeed};
use weir_plan::Column;
use weir_sink::{Names, RowOptions, json};

/// How many programs, interfaces, workers or outlets have counts of their own in the time of a run.
/// Those of the others are added up under the name [`OTHERS`].
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
        self.lock().iter().map(|(name, tally)| (name.clone(), *tally)).collect()
    }

    fn add(&self, program: &str, emitted: u64, refused: u64) {
        let mut all = self.lock();
        let name = if all.len() < NAMES_MAX { program } else { OTHERS };
        let tally = match all.get_mut(program) {
            Some(tally) => tally,
            None => all.entry(name.to_owned()).or_default(),
        };
        tally.emitted += emitted;
        tally.refused += refused;
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, RowTally>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What becomes of clients at the end of the input.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum AtEnd {
    /// Their streams end.
    Close,
    /// They may still ask for what is kept, and packets may be read again.
    Rest,
}

/// A sink that counts, and copies rows for clients before it hands them on.
pub(crate) struct Tap<'a> {
    to: Box<dyn Sink + 'a>,
    tallies: Tallies,
    feed: RowFeed,
    /// For each output the name of its program.
    programs: Vec<String>,
    /// The name of a program that is alone, whose output has none.
    alone: String,
    outputs: Vec<Output>,
    options: RowOptions,
    names: Names,
    at_end: AtEnd,
}

impl<'a> Tap<'a> {
    /// Hands rows on to a sink. `alone`: the name of the program if it is alone.
    pub(crate) fn new(
        to: Box<dyn Sink + 'a>,
        (tallies, feed): (Tallies, RowFeed),
        alone: String,
        (options, names): (RowOptions, Names),
    ) -> Tap<'a> {
        let (programs, outputs, at_end) = (Vec::new(), Vec::new(), AtEnd::Close);
        Tap { to, tallies, feed, programs, alone, outputs, options, names, at_end }
    }

    /// The same, with this at the end of the input.
    pub(crate) fn at_end(mut self, at_end: AtEnd) -> Tap<'a> {
        self.at_end = at_end;
        self
    }

    /// Tells clients which outputs there are from now on. The first ones are told before clients
    /// can ask, since packets may be late, and with them the first call of [`Sink::open`].
    pub(crate) fn announce(&mut self, outputs: &[Output]) {
        // Outputs are called as their program, or as it and something after a dot.
        let program = |output: &Output| match &output.name {
            Some(name) => name.split('.').next().unwrap_or_default().to_owned(),
            None => self.alone.clone(),
        };
        self.programs = outputs.iter().map(program).collect();
        self.programs.iter().for_each(|program| self.tallies.add(program, 0, 0));
        self.outputs = outputs.to_vec();
        self.feed.open(&self.described());
    }

    /// Shows rows to the clients that want them, and keeps them for others.
    fn show(&self, output: usize, rows: &Rows) -> io::Result<()> {
        let program = &self.programs[output];
        let keeps = self.feed.has_room(program, rows.len as u64);
        let wanted = self.feed.is_wanted(program);
        if !keeps && !wanted {
            return Ok(());
        }
        let mut lines = Vec::new();
        let mut sink = json::FORMAT.sink(&mut lines, self.options, self.names);
        sink.open(&self.outputs)?;
        sink.rows(output, rows)?;
        sink.finish()?;
        drop(sink);
        if keeps {
            self.feed.keep(program, &lines);
        }
        if wanted {
            self.feed.publish(program, &lines);
        }
        Ok(())
    }

    /// The outputs, as clients see them.
    fn described(&self) -> Vec<FeedOutput> {
        let column = |column: &Column| (column.name.clone(), column.ty.to_string());
        let one = |(output, program): (&Output, &String)| FeedOutput {
            program: program.clone(),
            output: output.name.clone().unwrap_or_else(|| program.clone()),
            columns: output.schema.columns.iter().map(column).collect(),
        };
        self.outputs.iter().zip(&self.programs).map(one).collect()
    }
}

impl Drop for Tap<'_> {
    fn drop(&mut self) {
        // Nothing follows a rest any more.
        if self.at_end == AtEnd::Rest {
            self.feed.close();
        }
    }
}

impl Sink for Tap<'_> {
    fn open(&mut self, outputs: &[Output]) -> io::Result<()> {
        self.announce(outputs);
        self.to.open(outputs)
    }

    fn rows(&mut self, output: usize, rows: &Rows) -> io::Result<()> {
        self.show(output, rows)?;
        let before = self.to.refused();
        let result = self.to.rows(output, rows);
        let refused = self.to.refused().saturating_sub(before);
        self.tallies.add(&self.programs[output], rows.len as u64, refused);
        result
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }

    fn finish(&mut self) -> io::Result<()> {
        let result = self.to.finish();
        match self.at_end {
            AtEnd::Close => self.feed.close(),
            AtEnd::Rest => self.feed.rest(),
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
