//! Packets around an alert, those before it included: the last frames of a source are kept in
//! memory, and the code that sees an alert [asks](Asking) for those of some time and key, which go
//! to a pcapng file of their own.
//!
//! A [`Lookback`] stands around a source, where frames are in the order of the capture. A request
//! is answered when the next batch is read: first with the frames that are kept, then with those
//! that pass, until time has gone on far enough. As long as there is no request, the only cost is a
//! copy of each frame; a source without a ring costs nothing.
//!
//! A thread makes and writes the files, and gets 64 KiB at a time: the thread that reads a wire
//! does not wait for a disk.

mod asking;
mod counts;
mod error;
mod file;
mod options;
mod reader;
mod ring;
mod writer;

pub use asking::{Asking, Wanted};
pub use counts::{LookbackCounts, Tally};
pub use error::LookbackError;
pub use options::LookbackOptions;
pub use reader::{HeldFrames, HeldSpan, RingReader};

use crate::limits::{LOOKBACK_JUMP_NS, LOOKBACK_OPEN_MAX, LOOKBACK_SLACK_NS};
use asking::Waiting;
use file::{CaptureFile, Missed, is_plain};
use ring::KeptFrame;
use std::collections::HashMap;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use weir_packet::bits::Bits;
use weir_packet::column::Column;
use weir_packet::fields::FieldId;
use weir_packet::read::read_field;
use weir_packet::source::{Account, FrameBatch, Source, SourceError};
use weir_packet::time::NO_TIME;
use weir_packet::walk::{Layers, classify};
use writer::{FileRequest, Make, Writer, in_folder};

/// A source whose last frames are kept.
pub struct Lookback<S> {
    source: S,
    watch: Option<Box<Watch>>,
}

impl<S> Lookback<S> {
    /// Keeps the frames of `source`, if there are options. That starts a thread.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn new(source: S, options: Option<LookbackOptions>) -> io::Result<Lookback<S>> {
        let watch = |options: LookbackOptions| {
            let folder = in_folder(options.folder.clone());
            Watch::new(options, folder).map(Box::new)
        };
        Ok(Lookback { source, watch: options.map(watch).transpose()? })
    }

    /// The source.
    pub fn inner(&self) -> &S {
        &self.source
    }

    /// Where to ask; `None` where nothing is kept.
    pub fn asking(&self) -> Option<Asking> {
        self.watch.as_ref().map(|watch| watch.asking.clone())
    }

    /// The frames that are kept, for readers beside the run; `None` where nothing is kept.
    pub fn held(&self) -> Option<HeldFrames> {
        self.watch.as_ref().map(|watch| watch.held.clone())
    }

    /// The fate of what was asked for so far; `None` where nothing is kept.
    pub fn tally(&self) -> Option<Tally> {
        self.watch.as_ref().map(|watch| watch.tally.clone())
    }

    /// Ends all files once everything is written, and says what became of them; `None` where
    /// nothing is kept. Where frames are [left out](weir_base::full::WhenFull::LeaveOut), it gives
    /// up when nothing could be written for five seconds, and counts what was not.
    pub fn finish(&mut self) -> Option<LookbackCounts> {
        self.watch.as_mut().map(|watch| watch.finish())
    }
}

impl<S: Source> Source for Lookback<S> {
    fn fill(&mut self, batch: &mut FrameBatch) -> Result<bool, SourceError> {
        let more = self.source.fill(batch)?;
        if let Some(watch) = &mut self.watch {
            watch.see(batch);
        }
        Ok(more)
    }

    fn is_ready(&mut self) -> bool {
        self.source.is_ready()
    }

    fn account(&self) -> Account {
        self.source.account()
    }

    fn interfaces(&self) -> Vec<(String, Account)> {
        self.source.interfaces()
    }
}

/// The part of a lookback that looks after files.
struct Watch {
    options: LookbackOptions,
    /// The ring. It is locked for each batch; others hold it only to copy a little.
    held: HeldFrames,
    asking: Asking,
    layers: Layers,
    /// The keys of the open files.
    keys: Vec<Key>,
    open: Vec<(Wanted, CaptureFile)>,
    now: Now,
    writer: Writer,
    tally: Tally,
}

/// Fields that say which frames belong into files. It is there as long as such a file is open: what
/// programs that come later will ask for need not be known, and of those that went nothing is left.
struct Key {
    fields: Arc<[FieldId]>,
    columns: Vec<Column>,
    /// Which of the open files are of which value.
    open: HashMap<Vec<Option<u128>>, Vec<usize>>,
    /// The value of a frame.
    value: Vec<Option<u128>>,
}

/// How far time has gone on. The time of one batch is not believed where it is far from that,
/// unless the next ones agree.
#[derive(Default)]
struct Now {
    at: Option<i64>,
    far: u32,
}

/// Batches in a row that move a time far away.
const WITNESSES: u32 = 4;

impl Now {
    fn see(&mut self, batch: &FrameBatch) {
        if let Some(reached) = batch.reached() {
            self.at = self.at.max(Some(reached));
        }
        let times = batch.ts().iter().copied().filter(|&ts| ts != NO_TIME);
        let Some(least) = times.min() else { return };
        let near = self.at.is_none_or(|at| at.abs_diff(least) <= LOOKBACK_JUMP_NS);
        self.far = if near { 0 } else { self.far + 1 };
        if near {
            self.at = self.at.max(Some(least));
        } else if self.far >= WITNESSES {
            (self.at, self.far) = (Some(least), 0);
        }
    }
}

impl Key {
    fn new(fields: &Arc<[FieldId]>) -> Key {
        let column = |id: &FieldId| Column::new(id.info().ty.repr());
        Key {
            fields: Arc::clone(fields),
            columns: fields.iter().map(column).collect(),
            open: HashMap::new(),
            value: Vec::new(),
        }
    }
}

impl Watch {
    fn new(options: LookbackOptions, make: Make) -> io::Result<Watch> {
        let tally = Tally::default();
        let (when_full, most) = (options.when_full, options.queue_bytes_max);
        Ok(Watch {
            held: HeldFrames::new(options.bytes),
            asking: Asking::default(),
            layers: Layers::new(),
            keys: Vec::new(),
            open: Vec::new(),
            now: Now::default(),
            writer: Writer::start(make, when_full, most, tally.clone())?,
            tally,
            options,
        })
    }

    /// Looks after a batch that was just read.
    fn see(&mut self, batch: &FrameBatch) {
        self.answer();
        self.now.see(batch);
        if !self.open.is_empty() {
            self.put(batch, 0..self.open.len());
            let now = self.now.at.unwrap_or(i64::MIN);
            self.close(|wanted| now.saturating_sub(wanted.to) > LOOKBACK_SLACK_NS);
        }
        self.keep(batch);
    }

    /// Keeps the frames of a batch.
    fn keep(&self, batch: &FrameBatch) {
        let mut held = self.held.lock_first();
        held.headers = batch.headers;
        if let Some(names) = batch.interface_names().filter(|names| **names != held.names) {
            held.names = names.clone();
        }
        let (memory, link, with_ports) =
            (batch.bytes(), batch.link, !batch.with_ports().is_empty());
        let (times, lens) = (batch.ts().iter(), batch.lens().iter());
        let places = batch.offsets().iter().zip(batch.caplens());
        for (i, ((&ts, &len), (&start, &caplen))) in times.zip(lens).zip(places).enumerate() {
            let (start, end) = (start as usize, start as usize + caplen as usize);
            // A frame that reaches beyond the memory reads as cut short.
            let bytes = memory.get(start..end.min(memory.len())).unwrap_or(&[]);
            let ports = if with_ports { batch.ports(i) } else { None };
            let point = batch.capture_point(i);
            held.ring.push(&KeptFrame { ts, len, link, ports, point, bytes });
        }
    }

    /// Begins the files that were asked for, with the frames that are kept.
    fn answer(&mut self) {
        let Waiting { wanted, refused } = self.asking.take();
        if wanted.is_empty() {
            return;
        }
        self.tally.change(|counts| counts.refused += refused);
        self.open.retain(|(_, file)| !file.was_never_made());
        let first = self.open.len();
        wanted.into_iter().for_each(|wanted| self.begin(wanted));
        self.index();
        let new = &self.open[first..];
        if new.is_empty() {
            return;
        }
        let from = new.iter().map(|(wanted, _)| wanted.from).min().unwrap_or(i64::MAX);
        let to = new.iter().map(|(wanted, _)| wanted.to).max().unwrap_or(i64::MIN);
        let held = self.held.clone();
        let held = held.lock();
        let mut frames = held.ring.iter().filter(|frame| (from..=to).contains(&frame.ts));
        let mut next = frames.next();
        while let Some(head) = next {
            let mut some = reader::Copied::new(head.link);
            while let Some(frame) = next.filter(|frame| some.takes(frame)) {
                some.push(&frame);
                next = frames.next();
            }
            let mut batch = FrameBatch::new();
            some.fill(&mut batch, &held);
            self.put(&batch, first..self.open.len());
        }
    }

    /// Begins a file.
    fn begin(&mut self, wanted: Wanted) {
        if !is_plain(&wanted.name) {
            let error = LookbackError::NotAName { name: wanted.name };
            return self.tally.change(|counts| counts.fail(error));
        }
        let many = self.open.len() >= LOOKBACK_OPEN_MAX;
        let short = self.held.lock().ring.forgotten().is_some_and(|ts| ts >= wanted.from);
        let room = !many && self.writer.files() < self.options.files_max;
        let request = FileRequest { name: wanted.name.clone(), is_short: short };
        let made = if room { self.writer.make(request) } else { None };
        let Some(file) = made.map(CaptureFile::new) else {
            return self.tally.change(|counts| counts.refused += 1);
        };
        if !file.was_never_made() {
            self.open.push((wanted, file));
        }
    }

    /// Finds out anew which files are of which value.
    fn index(&mut self) {
        self.keys.iter_mut().for_each(|key| key.open.clear());
        for (i, (wanted, _)) in self.open.iter().enumerate() {
            let known = self.keys.iter().position(|key| key.fields == wanted.by);
            let at = known.unwrap_or_else(|| {
                self.keys.push(Key::new(&wanted.by));
                self.keys.len() - 1
            });
            self.keys[at].open.entry(wanted.key.clone()).or_default().push(i);
        }
        self.keys.retain(|key| !key.open.is_empty());
    }

    /// Puts the frames of a batch into those of some open files that they belong to.
    fn put(&mut self, batch: &FrameBatch, files: Range<usize>) {
        let Watch { keys, layers, open, writer, options, .. } = self;
        let mut missed = 0;
        if keys.iter().any(|key| !key.fields.is_empty()) {
            classify(batch, layers);
        }
        for key in keys {
            for (id, column) in key.fields.iter().zip(&mut key.columns) {
                read_field(*id, batch, layers, Bits::first(batch.len()), column);
            }
            for i in 0..batch.len() {
                let there = |c: &Column| c.present.has(i).then(|| c.raw(i));
                key.value.clear();
                key.value.extend(key.columns.iter().map(there));
                let Some(those) = key.open.get(&key.value) else { continue };
                for &at in those.iter().filter(|at| files.contains(at)) {
                    let (wanted, file) = &mut open[at];
                    if (wanted.from..=wanted.to).contains(&batch.ts()[i])
                        && let Err(Missed) = file.put(batch, i, options.file_bytes_max, writer)
                    {
                        missed += 1;
                    }
                }
            }
        }
        if missed > 0 {
            self.tally.change(|counts| counts.missed += missed);
        }
    }

    /// Ends the files for which this holds.
    fn close(&mut self, is_over: impl Fn(&Wanted) -> bool) {
        if !self.open.iter().any(|(wanted, _)| is_over(wanted)) {
            return;
        }
        for at in (0..self.open.len()).rev() {
            if is_over(&self.open[at].0) {
                let (_, file) = self.open.remove(at);
                file.end(&self.writer);
            }
        }
        self.index();
    }

    /// Ends all files, those among them that were asked for just now.
    fn finish(&mut self) -> LookbackCounts {
        self.answer();
        self.close(|_| true);
        self.writer.finish();
        self.tally.now()
    }
}

#[cfg(test)]
mod tests;
