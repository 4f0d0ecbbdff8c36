//! The sink that stores rows.

use crate::layout::{FileName, StoredHour};
use crate::limits::{FILE_ROWS_MAX, FOLDER_TRIES, HOURS_MAX, LIVE_AGE_MAX, WAITING_BYTES_MAX};
use crate::options::StoreOptions;
use sha2::{Digest as _, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use weir_arrow::arrow_schema::Schema as ArrowSchema;
use weir_arrow::{Encoding as _, Gathering, ParquetFile, schema_of};
use weir_engine::rows::{Output, Rows, Sink};
use weir_plan::{Schema, Type};

/// Stores rows below a folder.
#[derive(Debug)]
pub struct Store {
    folder: PathBuf,
    options: StoreOptions,
    age_max: Duration,
    waiting_max: usize,
    outputs: Vec<StoredOutput>,
    /// A random number, unlike that of another run.
    run: u64,
    /// The files of this run.
    names: BTreeSet<(PathBuf, FileName)>,
    /// Bytes of memory that rows wait in.
    waiting: usize,
    given: u64,
    stored: u64,
    failed: bool,
}

/// The rows of one output.
#[derive(Debug)]
struct StoredOutput {
    folder: PathBuf,
    schema: Schema,
    /// The column whose time decides where a row is stored.
    time: Option<usize>,
    hours: BTreeMap<StoredHour, WaitingRows>,
    /// Rows of one hour, where a batch has rows of several.
    some: Rows,
    /// Batches of rows so far.
    batches: u64,
}

/// Rows of an hour that are not on disk yet.
struct WaitingRows {
    gathering: Gathering,
    file: ParquetFile,
    rows: u64,
    /// Bytes of memory that they take, when the last of them came.
    memory: usize,
    times: Option<(i64, i64)>,
    /// When the first of them came.
    since: Instant,
    /// The number of the batch that the last of them came in.
    until: u64,
}

impl Store {
    /// A sink that stores rows below a folder, which exists.
    pub fn new(folder: &Path, options: StoreOptions) -> Store {
        Store {
            folder: folder.to_owned(),
            options,
            age_max: LIVE_AGE_MAX,
            waiting_max: WAITING_BYTES_MAX,
            outputs: Vec::new(),
            run: random(),
            names: BTreeSet::new(),
            waiting: 0,
            given: 0,
            stored: 0,
            failed: false,
        }
    }

    /// The same, whose rows wait no longer than this, in no more memory than that.
    #[cfg(test)]
    pub(crate) fn bounded(self, age_max: Duration, waiting_max: usize) -> Store {
        Store { age_max, waiting_max, ..self }
    }

    /// Bytes of memory that rows wait in.
    #[cfg(test)]
    pub(crate) fn waiting(&self) -> usize {
        self.waiting
    }

    /// Writes the largest files, until as much waits as may.
    fn make_room(&mut self) -> io::Result<()> {
        while self.waiting > self.waiting_max {
            let outputs = self.outputs.iter().enumerate();
            let all = outputs.flat_map(|(n, output)| {
                output.hours.iter().map(move |(hour, rows)| (rows.memory, n, *hour))
            });
            let Some((_, n, hour)) = all.max() else { return Ok(()) };
            self.write(n, hour)?;
        }
        Ok(())
    }

    /// Puts the rows of an hour on disk.
    fn write(&mut self, output: usize, hour: StoredHour) -> io::Result<()> {
        let output = &mut self.outputs[output];
        let Some(waiting) = output.hours.remove(&hour) else { return Ok(()) };
        let (folder, rows) = (output.folder.join(hour.folder()), waiting.rows);
        self.waiting -= waiting.memory;
        let (first, last) = waiting.times.unwrap_or_default();
        let written = waiting.finish().and_then(|bytes| {
            let hash = self.hash(&folder, hour, (first, last), &bytes);
            put(&folder, &FileName { first, last, hash }.to_string(), &bytes)
        });
        written.map_err(|e| {
            self.failed = true;
            io::Error::new(e.kind(), format!("{}: {e}", folder.display()))
        })?;
        self.stored += rows;
        Ok(())
    }

    /// The hash of a file. Rows of a capture that are stored once more have the same; others that
    /// only look alike do not: those of another run where their times do not tell them apart, or
    /// those that come again in this one.
    fn hash(&mut self, folder: &Path, hour: StoredHour, times: (i64, i64), bytes: &[u8]) -> u128 {
        let is_of_run = self.options.is_live || hour == StoredHour::Unknown;
        let (first, last) = times;
        for repeat in 0_u64.. {
            let mut hash = Sha256::new();
            hash.update(bytes);
            hash.update((if is_of_run { self.run } else { self.options.captures }).to_le_bytes());
            hash.update(repeat.to_le_bytes());
            let half = hash.finalize().first_chunk::<16>().copied();
            let hash = u128::from_be_bytes(half.expect("it has 32 bytes"));
            if self.names.insert((folder.to_owned(), FileName { first, last, hash })) {
                return hash;
            }
        }
        unreachable!("a run has fewer files")
    }

    /// Puts those rows on disk for which that is asked, also after others could not be put there;
    /// gives the first error.
    fn write_those(&mut self, due: impl Fn(&WaitingRows) -> bool) -> io::Result<()> {
        let mut result = Ok(());
        for n in 0..self.outputs.len() {
            let hours = self.outputs[n].hours.iter().filter(|(_, rows)| due(rows));
            for hour in hours.map(|(hour, _)| *hour).collect::<Vec<_>>() {
                result = result.and(self.write(n, hour));
            }
        }
        result
    }
}

impl Sink for Store {
    fn open(&mut self, outputs: &[Output]) -> io::Result<()> {
        // Programs come and go: rows of those that went are not to wait.
        self.write_those(|_| true)?;
        let of = |(n, output): (usize, &Output)| {
            let name = output.name.clone().unwrap_or_else(|| (n + 1).to_string());
            StoredOutput::new(self.folder.join(name), &output.schema, self.options)
        };
        self.outputs = outputs.iter().enumerate().map(of).collect::<io::Result<_>>()?;
        Ok(())
    }

    fn rows(&mut self, output: usize, rows: &Rows) -> io::Result<()> {
        self.given += rows.len as u64;
        self.take(output, rows).inspect_err(|_| self.failed = true)
    }

    fn flush(&mut self) -> io::Result<()> {
        if !self.options.is_live {
            return Ok(());
        }
        let age_max = self.age_max;
        self.write_those(|rows| rows.since.elapsed() >= age_max)
    }

    fn finish(&mut self) -> io::Result<()> {
        self.write_those(|_| true)
    }

    fn unwritten(&self) -> u64 {
        if self.failed { self.given - self.stored } else { 0 }
    }
}

impl Store {
    /// Takes rows in.
    fn take(&mut self, output: usize, rows: &Rows) -> io::Result<()> {
        let stored = &mut self.outputs[output];
        stored.batches += 1;
        let mut full = Vec::new();
        let mut from = 0;
        while from < rows.len {
            let hour = stored.hour(rows, from);
            let end = (from..rows.len).find(|&i| stored.hour(rows, i) != hour);
            let end = end.unwrap_or(rows.len);
            let before = stored.hours.get(&hour).map_or(0, |waiting| waiting.memory);
            let waiting = stored.append(hour, rows, from..end, self.options)?;
            self.waiting = self.waiting - before + waiting.memory;
            if waiting.rows >= FILE_ROWS_MAX {
                full.push(hour);
            }
            from = end;
        }
        full.extend(stored.oldest_beyond(HOURS_MAX));
        for hour in full {
            self.write(output, hour)?;
        }
        self.make_room()
    }
}

impl StoredOutput {
    /// Of rows that are stored below a folder, where there may be some.
    fn new(folder: PathBuf, schema: &Schema, options: StoreOptions) -> io::Result<StoredOutput> {
        is_of_these_columns(&folder, schema, options)?;
        let time = schema.columns.iter().position(|c| c.ty == Type::Time);
        Ok(StoredOutput {
            folder,
            time,
            hours: BTreeMap::new(),
            some: Rows::new(schema),
            batches: 0,
            schema: schema.clone(),
        })
    }

    /// The time of a row.
    fn time(&self, rows: &Rows, i: usize) -> Option<i64> {
        let column = &rows.columns[self.time?];
        column.present.has(i).then(|| column.word()[i] as i64)
    }

    /// The hour that a row is stored under.
    fn hour(&self, rows: &Rows, i: usize) -> StoredHour {
        self.time(rows, i).map_or(StoredHour::Unknown, StoredHour::of)
    }

    /// Takes some rows of an hour; gives all that wait of it.
    fn append(
        &mut self,
        hour: StoredHour,
        rows: &Rows,
        range: std::ops::Range<usize>,
        options: StoreOptions,
    ) -> io::Result<&WaitingRows> {
        let times = range.clone().filter_map(|i| self.time(rows, i));
        let times = times.fold(None, |all: Option<(i64, i64)>, t| {
            Some(all.map_or((t, t), |(least, most)| (least.min(t), most.max(t))))
        });
        let some = if range.len() == rows.len {
            rows
        } else {
            self.some.clear();
            self.some.append_cells(rows, range);
            &self.some
        };
        let waiting = match self.hours.entry(hour) {
            std::collections::btree_map::Entry::Occupied(known) => known.into_mut(),
            std::collections::btree_map::Entry::Vacant(new) => {
                new.insert(WaitingRows::new(&self.schema, options)?)
            }
        };
        waiting.until = self.batches;
        waiting.append(some, times)?;
        Ok(waiting)
    }

    /// The hours that got no rows for the longest, of more than so many.
    fn oldest_beyond(&self, most: usize) -> Vec<StoredHour> {
        let beyond = self.hours.len().saturating_sub(most);
        if beyond == 0 {
            return Vec::new();
        }
        let mut hours: Vec<_> = self.hours.iter().map(|(hour, rows)| (rows.until, *hour)).collect();
        hours.sort_unstable();
        hours.into_iter().take(beyond).map(|(_, hour)| hour).collect()
    }
}

#[expect(clippy::disallowed_methods, reason = "rows of a live run are to be on disk soon")]
fn now() -> Instant {
    Instant::now()
}

impl WaitingRows {
    fn new(schema: &Schema, options: StoreOptions) -> io::Result<WaitingRows> {
        let gathering = Gathering::new(schema, options.addresses);
        let addresses = schema.columns.iter().filter(|c| matches!(c.ty, Type::Ip | Type::Mac));
        let addresses = addresses.map(|c| c.name.as_str());
        let file = ParquetFile::with_filters(gathering.schema(), addresses)?;
        let (rows, memory, times) = (0, 0, None);
        Ok(WaitingRows { gathering, file, rows, memory, times, since: now(), until: 0 })
    }

    fn append(&mut self, rows: &Rows, times: Option<(i64, i64)>) -> io::Result<()> {
        self.rows += rows.len as u64;
        self.times = match (self.times, times) {
            (Some((a, b)), Some((c, d))) => Some((a.min(c), b.max(d))),
            (known, new) => known.or(new),
        };
        self.gathering.append(rows);
        if self.gathering.is_full() {
            self.file.write(&self.gathering.take())?;
        }
        self.memory = self.gathering.memory() + self.file.memory();
        Ok(())
    }

    /// The bytes of their file.
    fn finish(mut self) -> io::Result<Vec<u8>> {
        if self.gathering.rows() > 0 {
            self.file.write(&self.gathering.take())?;
        }
        self.file.finish()?;
        Ok(std::mem::take(self.file.bytes()))
    }
}

impl std::fmt::Debug for WaitingRows {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WaitingRows").field("rows", &self.rows).finish_non_exhaustive()
    }
}

/// Puts a file into a folder, which is made: as a whole, and on disk when this returns.
fn put(folder: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    let path = folder.join(name);
    if fs::exists(&path)? {
        return Ok(());
    }
    let part = folder.join(format!("{name}.{:016x}.part", random()));
    let created = (0..FOLDER_TRIES).find_map(|_| {
        let created = make_folder(folder).and_then(|()| File::create_new(&part));
        // `weir archive expire` may have removed the folder while it was empty.
        (!matches!(&created, Err(e) if e.kind() == io::ErrorKind::NotFound)).then_some(created)
    });
    let created = created.unwrap_or_else(|| File::create_new(&part));
    let written = created.and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()
    });
    let put = written.and_then(|()| fs::rename(&part, &path));
    put.inspect_err(|_| drop(fs::remove_file(&part)))?;
    File::open(folder)?.sync_all()
}

/// Makes a folder, and those that it is in, on disk.
fn make_folder(folder: &Path) -> io::Result<()> {
    let Some(parent) = folder.parent().filter(|_| !folder.is_dir()) else { return Ok(()) };
    make_folder(parent)?;
    match fs::create_dir(folder) {
        Err(e) if e.kind() != io::ErrorKind::AlreadyExists => Err(e),
        _ => File::open(parent)?.sync_all(),
    }
}

fn random() -> u64 {
    RandomState::new().hash_one(0)
}

/// The file that keeps the columns of an output: an empty one of Parquet, which readers of
/// `*.parquet` pass by.
pub(crate) const COLUMNS: &str = "_columns";

/// Sees that rows of an output that are stored have the same columns, and keeps these if there are
/// none yet.
fn is_of_these_columns(folder: &Path, schema: &Schema, options: StoreOptions) -> io::Result<()> {
    let refused = |why: String| Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    let is_folder = |name: &str| ["date", "hour"].iter().any(|f| name.eq_ignore_ascii_case(f));
    if let Some(column) = schema.columns.iter().find(|c| is_folder(&c.name)) {
        return refused(format!(
            "readers take the folders of stored rows for columns `date` and `hour`: give `{}` \
             another name",
            column.name
        ));
    }
    let ours = schema_of(schema, options.addresses);
    let mut none = ParquetFile::with_filters(&ours, std::iter::empty())?;
    none.finish()?;
    let path = folder.join(COLUMNS);
    let told = |e: io::Error| io::Error::new(e.kind(), format!("{}: {e}", path.display()));
    put(folder, COLUMNS, none.bytes()).map_err(told)?;
    let stored = File::open(&path).and_then(|file| weir_arrow::schema_of_file(&file));
    let stored = stored.map_err(told)?;
    if stored.fields() == ours.fields() {
        return Ok(());
    }
    let names = |schema: &ArrowSchema| {
        let fields = schema.fields().iter().map(|f| format!("{} {}", f.name(), f.data_type()));
        fields.collect::<Vec<_>>().join(", ")
    };
    refused(format!(
        "{} has rows with other columns ({}) than these ({}); store them in another folder, or \
         give the output another name",
        folder.display(),
        names(&stored),
        names(&ours)
    ))
}
