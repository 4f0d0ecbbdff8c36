//! Rows for those who look at a run over HTTP. The run's thread copies them, another writes them as
//! JSON: packets wait for neither. Of files, rows that nobody follows are written once somebody
//! does.

use crate::unwritten::UnwrittenRows;
use std::cell::RefCell;
use std::io::{self, Write};
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use weir_engine::rows::{Output, Rows, Sink};
use weir_http::{FeedOutput, Keeping, RowFeed, ShownTo};
use weir_plan::Column;
use weir_sink::queue::{Queue, WhenFull};
use weir_sink::{Names, RowOptions, json};

/// Batches of rows that wait to be written: as many as a window of some ten thousand groups has,
/// whose rows come all at once.
const SHOWN_BATCHES_MAX: usize = 256;

/// How rows are shown.
#[derive(Clone)]
pub(crate) struct ShownForm {
    pub(crate) options: RowOptions,
    pub(crate) names: Names,
    /// The name of a program that is alone, whose output has none.
    pub(crate) alone: String,
}

impl ShownForm {
    /// The programs of outputs. An output is called as its program, or as it and something after a
    /// dot.
    fn programs(&self, outputs: &[Output]) -> Vec<String> {
        let program = |output: &Output| match &output.name {
            Some(name) => name.split('.').next().unwrap_or_default().to_owned(),
            None => self.alone.clone(),
        };
        outputs.iter().map(program).collect()
    }

    /// The outputs, as clients see them.
    pub(crate) fn described(&self, outputs: &[Output]) -> Vec<FeedOutput> {
        let column = |column: &Column| (column.name.clone(), column.ty.to_string());
        let one = |(output, program): (&Output, String)| FeedOutput {
            output: output.name.clone().unwrap_or_else(|| program.clone()),
            program,
            columns: output.schema.columns.iter().map(column).collect(),
        };
        outputs.iter().zip(self.programs(outputs)).map(one).collect()
    }
}

/// Hands rows to the thread that writes them for clients.
pub(crate) struct Showing {
    feed: RowFeed,
    shown: Arc<Mutex<ShownRows>>,
    outputs: Vec<FeedOutput>,
}

impl Showing {
    /// Starts the thread.
    ///
    /// # Errors
    /// When the system gives none.
    pub(crate) fn start(feed: &RowFeed, form: &ShownForm) -> io::Result<Showing> {
        // Where every row is kept, packets are read from files, which wait.
        let when_full = match feed.keeping() {
            Keeping::Latest => WhenFull::Wait,
            Keeping::Nothing | Keeping::Some => WhenFull::Refuse,
        };
        let (theirs, form) = (feed.clone(), form.clone());
        let make = move || Ok(Box::new(FeedSink::new(theirs, form)) as Box<dyn Sink>);
        let queue = Queue::start(make, when_full, SHOWN_BATCHES_MAX)?;
        let shown = Arc::new(Mutex::new(ShownRows::new(queue)));
        let theirs = Arc::downgrade(&shown);
        feed.when_followed(move || {
            if let Some(shown) = theirs.upgrade() {
                // Where the thread has ended, the run finds out.
                drop(lock(&shown).write());
            }
        });
        Ok(Showing { feed: feed.clone(), shown, outputs: Vec::new() })
    }

    /// Rows will be of these outputs, which clients see as described.
    ///
    /// # Errors
    /// When the thread has ended.
    pub(crate) fn open(&mut self, outputs: &[Output], described: &[FeedOutput]) -> io::Result<()> {
        self.feed.expect(described);
        self.outputs = described.to_vec();
        lock(&self.shown).open(outputs)
    }

    /// Shows rows to the clients that have room for them, and keeps them for others.
    ///
    /// # Errors
    /// When the thread has ended.
    pub(crate) fn rows(&mut self, output: usize, rows: &Rows) -> io::Result<()> {
        let (of, n) = (&self.outputs[output], rows.len as u64);
        if self.feed.keeping() == Keeping::Latest {
            let mut shown = lock(&self.shown);
            // Looked at while nothing else can write what is kept: whoever begins to follow after
            // that writes these rows, too.
            if !self.feed.is_followed() {
                let left_out = shown.unwritten.keep(output, rows);
                drop(shown);
                for (output, rows) in left_out {
                    self.feed.leave_out(&self.outputs[output].program, rows, ShownTo::Later);
                }
                return self.hand_on(output, self.feed.streamed_to(&of.program, n), rows);
            }
            shown.write()?;
        }
        self.hand_on(output, self.feed.shown_to(of, n), rows)
    }

    /// Hands rows to the thread for these clients.
    fn hand_on(&self, output: usize, to: ShownTo, rows: &Rows) -> io::Result<()> {
        if to == ShownTo::Nobody {
            return Ok(());
        }
        let mut shown = lock(&self.shown);
        let before = shown.queue.refused();
        let result = shown.put(output, to, rows);
        let is_refused = shown.queue.refused() > before;
        drop(shown);
        if is_refused {
            self.feed.leave_out(&self.outputs[output].program, rows.len as u64, to);
        }
        result
    }

    /// Waits until all rows are written that somebody follows. What a thread without processor time
    /// does not write is counted: the run does not fail for those who look at it. `stays`: clients
    /// may still come, and then the others are written.
    pub(crate) fn finish(self, stays: bool) {
        let mut shown = lock(&self.shown);
        if stays && !shown.unwritten.is_empty() {
            // Clients that follow all rows get those on their way before they hear of the end.
            shown.queue.drain();
            drop(shown);
            let shown = self.shown;
            self.feed.when_followed(move || {
                let mut shown = lock(&shown);
                if !shown.unwritten.is_empty() {
                    // A thread that has ended is no concern of the end.
                    drop(shown.write().and_then(|()| shown.queue.finish()));
                }
            });
            return;
        }
        let before = shown.queue.refused();
        if shown.queue.finish().is_err() {
            self.feed.count_lost(shown.queue.refused() - before);
        }
    }
}

/// Rows on their way to the thread that writes them.
struct ShownRows {
    queue: Queue,
    outputs: usize,
    /// Rows that nobody follows.
    unwritten: UnwrittenRows,
}

impl ShownRows {
    fn new(queue: Queue) -> ShownRows {
        ShownRows { queue, outputs: 0, unwritten: UnwrittenRows::default() }
    }

    fn open(&mut self, outputs: &[Output]) -> io::Result<()> {
        self.write()?;
        self.outputs = outputs.len();
        self.unwritten.open(outputs);
        // Each output as often as there are kinds of clients.
        self.queue.open(&[outputs; CLIENTS.len()].concat())
    }

    /// Hands on the rows that were kept.
    fn write(&mut self) -> io::Result<()> {
        while let Some((output, rows)) = self.unwritten.take_batch() {
            self.put(output, ShownTo::Later, &rows)?;
        }
        Ok(())
    }

    /// Hands rows to the thread.
    fn put(&mut self, output: usize, to: ShownTo, rows: &Rows) -> io::Result<()> {
        let kind = CLIENTS.iter().position(|kind| *kind == to).unwrap_or_default();
        self.queue.rows(kind * self.outputs + output, rows)
    }
}

/// The clients that rows in the queue are for, in the order of its outputs.
const CLIENTS: [ShownTo; 3] = [ShownTo::All, ShownTo::Streams, ShownTo::Later];

fn lock(shown: &Mutex<ShownRows>) -> MutexGuard<'_, ShownRows> {
    shown.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Writes rows as lines of JSON, and hands them to clients.
struct FeedSink {
    feed: RowFeed,
    form: ShownForm,
    outputs: Vec<FeedOutput>,
    json: Box<dyn Sink>,
    lines: Lines,
}

/// What was written and not handed on yet.
#[derive(Clone, Default)]
pub(crate) struct Lines(Rc<RefCell<Vec<u8>>>);

impl Lines {
    /// What was written since the last time.
    pub(crate) fn take(&self) -> Vec<u8> {
        self.0.take()
    }
}

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl FeedSink {
    fn new(feed: RowFeed, form: ShownForm) -> FeedSink {
        let lines = Lines::default();
        let json = json::FORMAT.sink(lines.clone(), form.options, form.names);
        FeedSink { feed, form, outputs: Vec::new(), json, lines }
    }
}

impl Sink for FeedSink {
    fn open(&mut self, outputs: &[Output]) -> io::Result<()> {
        let outputs = &outputs[..outputs.len() / CLIENTS.len()];
        self.outputs = self.form.described(outputs);
        self.feed.open(&self.outputs);
        self.json.open(outputs)
    }

    fn rows(&mut self, output: usize, rows: &Rows) -> io::Result<()> {
        let n = self.outputs.len();
        let (output, to) = (output % n, CLIENTS[output / n]);
        self.json.rows(output, rows)?;
        self.json.flush()?;
        let mut lines = self.lines.0.borrow_mut();
        let block = Arc::from(lines.as_slice());
        self.feed.show(&self.outputs[output], &block, rows.len as u64, to);
        lines.clear();
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        Ok(())
    }
}
