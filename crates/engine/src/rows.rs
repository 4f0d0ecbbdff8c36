//! Rows that leave the engine, and the [`Sink`] trait that takes them.

use crate::checkpoint::{Checkpoint, Passed, Saved};
use crate::counters::Ledger;
use std::io;
use std::ops::Range;
use weir_packet::bits::Bits;
use weir_packet::column::{Column, Repr};
use weir_packet::limits::BATCH;
use weir_plan::limits::TEXT_MAX;
use weir_plan::{Capture, Metric, Schema, Type, Value};

/// Bytes of texts for each row that is copied up to which copying all texts that the rows come with
/// is taken to be cheaper than picking theirs.
const TEXT_WHOLE: usize = 64;

/// Bytes of a usual text, for which there is room from the start.
const TEXT_BYTES: usize = 16;

/// Rows of one pipeline, stored by column. At most [`weir_packet::limits::BATCH`] at a time.
#[derive(Clone, Debug)]
pub struct Rows {
    /// How many rows.
    pub len: usize,
    /// One column per schema column.
    pub columns: Vec<Column>,
    /// Event time of each row, where it has one; not a column by itself.
    pub time: Column,
    /// The number of each row in the order that rows of this pipeline came.
    pub order: Vec<u64>,
    /// The later of each row's time and the watermark when it came; the watermark without time,
    /// [`NO_TIME`](weir_packet::time::NO_TIME) where there is none either.
    pub clock: Vec<i64>,
    /// Which columns hold handles of texts.
    pub texts: Vec<usize>,
    /// The bytes that string handles point into.
    pub arena: Arena,
}

/// Bytes of the strings in one batch. A handle holds offset and length.
#[derive(Clone, Default, Debug)]
pub struct Arena {
    bytes: Vec<u8>,
}

impl Arena {
    /// Stores bytes and returns their handle. Handles of equal bytes may differ.
    pub fn put(&mut self, s: &[u8]) -> u64 {
        let off = self.bytes.len() as u64;
        self.bytes.extend_from_slice(s);
        off << 32 | s.len() as u64
    }

    /// Stores the bytes that `write` appends, and returns their handle.
    pub(crate) fn put_with(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> u64 {
        let off = self.bytes.len();
        write(&mut self.bytes);
        (off as u64) << 32 | (self.bytes.len() - off) as u64
    }

    /// All bytes stored.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The bytes of a handle; empty for a handle of another arena that does not fit.
    #[inline]
    pub fn get(&self, handle: u64) -> &[u8] {
        let (off, len) = (Arena::start_of(handle), Arena::len_of(handle));
        self.bytes.get(off..off + len).unwrap_or(&[])
    }

    /// Where the bytes of a handle start.
    #[inline(always)]
    pub(crate) fn start_of(handle: u64) -> usize {
        (handle >> 32) as usize
    }

    /// How many bytes a handle is of.
    #[inline(always)]
    pub(crate) fn len_of(handle: u64) -> usize {
        handle as u32 as usize
    }

    /// The handle of some of the bytes of another handle.
    pub(crate) fn part(handle: u64, part: Range<usize>) -> u64 {
        let start = Arena::start_of(handle) + part.start;
        (start as u64) << 32 | part.len() as u64
    }

    /// Bytes stored.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether nothing is stored.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Forgets everything stored after the first `len` bytes.
    pub fn truncate(&mut self, len: usize) {
        self.bytes.truncate(len);
    }
}

impl Saved for Arena {
    fn pass(&mut self, at: &mut Checkpoint<'_>) -> Passed {
        at.bytes(&mut self.bytes)
    }
}

impl Rows {
    /// No rows of this schema.
    pub fn new(schema: &Schema) -> Rows {
        Rows {
            len: 0,
            columns: schema.columns.iter().map(|c| Column::new(c.ty.repr())).collect(),
            time: Column::new(Type::Time.repr()),
            order: Vec::new(),
            clock: Vec::new(),
            texts: (0..schema.columns.len())
                .filter(|&c| matches!(schema.columns[c].ty, Type::Str | Type::Bytes))
                .collect(),
            arena: Arena::default(),
        }
    }

    /// Rows of the same columns, none yet, with room for a batch of them. They are used again and
    /// again: what grew bit by bit would still ask for memory after a long time, whenever rows come
    /// that are more, or whose texts are longer, than those that this copy has met.
    pub fn empty(&self) -> Rows {
        let like = |c: &Column| Column::new(c.repr());
        // Texts that are longer by far are constants, such as those of a table: what rows have of
        // them is little.
        let most = self.texts.len() * BATCH * TEXT_MAX;
        let least = self.texts.len() * BATCH * TEXT_BYTES;
        let text_bytes = self.arena.bytes.capacity().clamp(least, most);
        Rows {
            len: 0,
            columns: self.columns.iter().map(like).collect(),
            time: like(&self.time),
            order: Vec::with_capacity(BATCH),
            clock: Vec::with_capacity(BATCH),
            texts: self.texts.clone(),
            arena: Arena { bytes: Vec::with_capacity(text_bytes) },
        }
    }

    /// Forgets all rows; keeps the memory.
    pub fn clear(&mut self) {
        self.len = 0;
        self.order.clear();
        self.clock.clear();
        self.arena.truncate(0);
        self.columns.iter_mut().chain([&mut self.time]).for_each(|c| c.present = Bits::NONE);
    }

    /// Makes these a copy of rows of the same columns, in the memory that is here.
    pub fn copy_from(&mut self, from: &Rows) {
        self.clear();
        self.len = from.len;
        self.order.extend_from_slice(&from.order);
        self.clock.extend_from_slice(&from.clock);
        let columns = self.columns.iter_mut().chain([&mut self.time]);
        for (to, from) in columns.zip(from.columns.iter().chain([&from.time])) {
            to.append(0, from, 0..self.len);
        }
        self.arena.bytes.extend_from_slice(&from.arena.bytes);
    }

    /// Appends some rows of rows of the same columns. There is room for a batch of them.
    pub(crate) fn append(&mut self, from: &Rows, range: Range<usize>) {
        self.order.extend_from_slice(&from.order[range.clone()]);
        self.clock.extend_from_slice(&from.clock[range.clone()]);
        self.time.append(self.len, &from.time, range.clone());
        self.append_cells(from, range);
    }

    /// Appends the columns of some rows of rows of the same columns, without what is no column:
    /// their time and their order. A sink needs no more. There is room for a batch of rows.
    ///
    /// # Panics
    /// If there is no room.
    pub fn append_cells(&mut self, from: &Rows, range: Range<usize>) {
        let at = self.len;
        self.len += range.len();
        for (to, from) in self.columns.iter_mut().zip(&from.columns) {
            to.append(at, from, range.clone());
        }
        if self.texts.is_empty() {
            return;
        }
        if self.arena.is_empty() && from.arena.len() <= range.len() * TEXT_WHOLE {
            // With all of the bytes in their places the handles stay as they are.
            self.arena.bytes.extend_from_slice(&from.arena.bytes);
            return;
        }
        let mut mover = Mover::new(&from.arena, &mut self.arena);
        for &c in &self.texts {
            mover.column(&mut self.columns[c], at..at + range.len());
        }
    }

    /// Bytes of memory that a batch of these rows takes, about, its texts included.
    pub fn memory(&self) -> usize {
        let words = |column: &Column| column.repr().words();
        let of_columns: usize = self.columns.iter().map(words).sum();
        let of_order = self.order.capacity() + self.clock.capacity() + BATCH;
        (of_columns * BATCH + of_order) * size_of::<u64>() + self.arena.bytes.capacity()
    }

    /// Appends picked rows of several batches of the same columns: `batches` says where a batch is.
    /// There is room for them.
    pub(crate) fn pick<'a>(&mut self, picks: &[(u32, u32)], batches: impl Fn(u32) -> &'a Rows) {
        let at = self.len;
        self.len += picks.len();
        for &(batch, i) in picks {
            self.order.push(batches(batch).order[i as usize]);
            self.clock.push(batches(batch).clock[i as usize]);
        }
        for c in 0..=self.columns.len() {
            let column = |batch| batches(batch).columns.get(c).unwrap_or(&batches(batch).time);
            let to = self.columns.get_mut(c).unwrap_or(&mut self.time);
            let picks = || picks.iter().map(|&(batch, i)| (column(batch), i as usize)).zip(at..);
            picks().for_each(|((from, i), j)| to.present.put(j, from.present.has(i)));
            match to.repr() {
                Repr::Bit => {
                    picks().for_each(|((from, i), j)| to.truth.put(j, from.truth.has(i)));
                }
                Repr::Word => {
                    let words = to.word_mut();
                    picks().for_each(|((from, i), j)| words[j] = from.word()[i]);
                }
                Repr::Pair => {
                    let (his, los) = to.pair_mut();
                    picks().for_each(|((from, i), j)| {
                        let (hi, lo) = from.pair();
                        (his[j], los[j]) = (hi[i], lo[i]);
                    });
                }
            }
        }
        for &c in &self.texts {
            for (j, &(batch, i)) in picks.iter().enumerate() {
                let (rows, i) = (batches(batch), i as usize);
                if rows.columns[c].present.has(i) {
                    let handle = self.arena.put(rows.arena.get(rows.columns[c].word()[i]));
                    self.columns[c].word_mut()[at + j] = handle;
                }
            }
        }
    }

    /// The cell of row `i` in column `c`, which has type `ty`.
    pub fn value(&self, i: usize, c: usize, ty: &Type) -> Value {
        cell(&self.columns[c], i, ty, &self.arena)
    }
}

/// Moves texts from one arena to another, those that come again soon only once.
pub(crate) struct Mover<'a> {
    from: &'a Arena,
    to: &'a mut Arena,
    /// Bytes with which both start: texts among them are where they should be.
    shared: usize,
    moved: Memo<u64>,
}

impl<'a> Mover<'a> {
    pub(crate) fn new(from: &'a Arena, to: &'a mut Arena) -> Mover<'a> {
        Mover::sharing(from, to, 0)
    }

    /// Between arenas whose first `shared` bytes are the same.
    pub(crate) fn sharing(from: &'a Arena, to: &'a mut Arena, shared: usize) -> Mover<'a> {
        Mover { from, to, shared, moved: Memo::new() }
    }

    /// Gives the rows of a column, whose handles are of the one arena, those of the other.
    pub(crate) fn column(&mut self, column: &mut Column, rows: Range<usize>) {
        let present = column.present.and(Bits::range(rows.start, rows.end));
        let words = column.word_mut();
        let start = Arena::start_of;
        // Rows that are not present may have any handle; then they are looked at one by one.
        if words[rows].iter().all(|&handle| start(handle) < self.shared) {
            return;
        }
        let Mover { from, to, shared, moved } = self;
        present.each(|i| {
            if start(words[i]) >= *shared {
                words[i] = moved.get(words[i], || to.put(from.get(words[i])));
            }
        });
    }
}

/// The results that were found for the texts seen last, by handle: most columns hold few texts.
pub(crate) struct Memo<T>([Option<(u64, T)>; 1 << MEMO_BITS]);

/// Entries of a [`Memo`], as a power of two.
const MEMO_BITS: u32 = 4;

impl<T: Copy> Memo<T> {
    pub(crate) fn new() -> Memo<T> {
        Memo([None; 1 << MEMO_BITS])
    }

    /// The result that is known of a handle, or else the result of `find`.
    #[inline(always)]
    pub(crate) fn get(&mut self, handle: u64, find: impl FnOnce() -> T) -> T {
        // Any odd number with its bits well mixed.
        let hash = handle.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - MEMO_BITS);
        let entry = &mut self.0[hash as usize];
        match *entry {
            Some((known, found)) if known == handle => found,
            _ => {
                let found = find();
                *entry = Some((handle, found));
                found
            }
        }
    }
}

/// Row `i` of a column of type `ty` as a value.
pub fn cell(column: &Column, i: usize, ty: &Type, arena: &Arena) -> Value {
    if !column.present.has(i) {
        return Value::Absent;
    }
    let raw = column.raw(i);
    match ty {
        Type::Bool => Value::Bool(raw != 0),
        Type::Int => Value::Int(raw as i64),
        Type::Float => Value::Float(f64::from_bits(raw as u64)),
        Type::Str => Value::Str(String::from_utf8_lossy(arena.get(raw as u64)).into()),
        Type::Bytes => Value::Bytes(arena.get(raw as u64).into()),
        Type::Ip => Value::Ip(raw),
        Type::Mac => Value::Mac(raw as u64),
        Type::Time => Value::Time(raw as i64),
        Type::Duration => Value::Duration(raw as i64),
        Type::Net | Type::Tuple(_) => unreachable!("no column has the type {ty}"),
    }
}

/// The largest word that a value of a type has: key parts rest on it.
pub(crate) fn word_max(ty: &Type) -> u64 {
    if *ty == Type::Mac { u64::MAX >> 16 } else { u64::MAX }
}

/// Stores `v` in row `i` of a column. An absent value leaves the row without one, and so does a
/// float that is no finite number, which a registered function may return.
pub fn set_cell(column: &mut Column, i: usize, v: &Value, arena: &mut Arena) {
    let raw = match v {
        Value::Absent => return column.present.put(i, false),
        Value::Float(f) if !f.is_finite() => return column.present.put(i, false),
        Value::Bool(b) => *b as u128,
        Value::Int(n) | Value::Time(n) | Value::Duration(n) => *n as u64 as u128,
        Value::Float(f) => Value::float_bits(*f) as u128,
        Value::Str(s) => arena.put(s.as_bytes()) as u128,
        Value::Bytes(b) => arena.put(b) as u128,
        Value::Ip(a) => *a,
        Value::Mac(m) => *m as u128,
        Value::Net(..) | Value::Tuple(_) => unreachable!("no column holds {v}"),
    };
    column.set_raw(i, raw);
}

/// A printed pipeline, as a sink sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct Output {
    /// The name a `let` gave it.
    pub name: Option<String>,
    /// Its columns.
    pub schema: Schema,
    /// The positions of the columns that say what a row is about:
    /// [`weir_plan::Program::row_keys`].
    pub keys: Vec<usize>,
    /// The packets around itself that each of its rows asks look-back for.
    pub capture: Option<Capture>,
    /// The metrics that its rows are exported as.
    pub metrics: Vec<Metric>,
}

impl Output {
    /// The printed pipelines of a program, in its order.
    pub fn of(program: &weir_plan::Program) -> Vec<Output> {
        let printed = program.pipelines.iter().enumerate().filter(|(_, p)| p.printed);
        let output = |(i, p): (usize, &weir_plan::Pipeline)| Output {
            name: p.name.clone(),
            schema: p.schema.clone(),
            keys: program.row_keys(i),
            capture: p.capture().cloned(),
            metrics: p.metrics().cloned().collect(),
        };
        printed.map(output).collect()
    }

    /// Whether rows of the other look the same.
    pub fn looks_like(&self, other: &Output) -> bool {
        (&self.name, &self.schema) == (&other.name, &other.schema)
    }
}

/// Where rows go. Every method is called from one thread, in the order that is the same for any
/// number of workers.
pub trait Sink {
    /// Called before any rows, with all printed pipelines of the program; again, where programs
    /// [come and go](crate::run::Changes), with those from then on.
    ///
    /// # Errors
    /// When the rows cannot be written. The run stops; a closed pipe
    /// ([`io::ErrorKind::BrokenPipe`]) is for the caller to take as a quiet end.
    fn open(&mut self, outputs: &[Output]) -> io::Result<()>;

    /// Takes rows of the output of that number.
    ///
    /// # Errors
    /// As for [`Sink::open`].
    fn rows(&mut self, output: usize, rows: &Rows) -> io::Result<()>;

    /// Called when windows have closed, so that what is buffered can be shown.
    ///
    /// # Errors
    /// As for [`Sink::open`].
    fn flush(&mut self) -> io::Result<()>;

    /// Called once, after all rows.
    ///
    /// # Errors
    /// As for [`Sink::open`].
    fn finish(&mut self) -> io::Result<()>;

    /// Takes the counts so far, and the time that the packets have come to: at the end, before
    /// [`Sink::finish`], and with answers to [inquiries](crate::inquiry::Inquiry) if
    /// [`Options`](crate::run::Options) say so. It may make rows of that.
    ///
    /// # Errors
    /// As for [`Sink::open`].
    fn counted(&mut self, _ledger: &Ledger, _time: i64) -> io::Result<()> {
        Ok(())
    }

    /// Rows that it made itself, besides those that it was given.
    fn own_rows(&self) -> u64 {
        0
    }

    /// Rows that it could not take in time and left out, of those that it was given. Asked after
    /// [`Sink::finish`], and while the run goes on.
    fn refused(&self) -> u64 {
        0
    }

    /// Rows that it was given and that are not written, since that failed: those of the call that
    /// failed included, and those that waited to be written then. Rows that it
    /// [refused](Sink::refused) don't count here. Asked after [`Sink::finish`], and while the run
    /// goes on.
    fn unwritten(&self) -> u64 {
        0
    }
}

/// Collects everything as values; for tests and for programs that want a `Vec`.
#[derive(Clone, Debug, Default)]
pub struct Collect {
    /// The printed pipelines.
    pub outputs: Vec<Output>,
    /// Output number and cells of each row, in the order they came.
    pub rows: Vec<(usize, Vec<Value>)>,
}

impl Sink for Collect {
    fn open(&mut self, outputs: &[Output]) -> io::Result<()> {
        self.outputs = outputs.to_vec();
        Ok(())
    }

    fn rows(&mut self, output: usize, rows: &Rows) -> io::Result<()> {
        let columns = &self.outputs[output].schema.columns;
        for i in 0..rows.len {
            let cells =
                columns.iter().enumerate().map(|(c, col)| rows.value(i, c, &col.ty)).collect();
            self.rows.push((output, cells));
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        Ok(())
    }
}
