//! The files of an archive: listed, checked, and removed when they are old or take too much room.

use crate::layout::{FileName, StoredHour};
use crate::store::COLUMNS;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use weir_arrow::arrow_array::cast::AsArray as _;
use weir_arrow::arrow_array::types::TimestampNanosecondType;
use weir_arrow::arrow_schema::{DataType, Fields, TimeUnit};
use weir_arrow::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

/// A file of rows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StoredFile {
    /// The folder of its output.
    pub output: String,
    /// The hour that it is stored under.
    pub hour: StoredHour,
    /// The times in it.
    pub name: FileName,
    /// Its path.
    pub path: PathBuf,
    /// Its size in bytes.
    pub bytes: u64,
    /// When it was written.
    pub written: SystemTime,
}

/// The files of an archive.
#[derive(Default, Debug)]
pub struct Inventory {
    /// Files of rows, the oldest first.
    pub files: Vec<StoredFile>,
    /// Files of runs that were killed, or still write them, and when each was last written.
    pub parts: Vec<(PathBuf, SystemTime)>,
    /// Files in the folder of an output that Weir did not store there.
    pub others: Vec<PathBuf>,
}

/// Which files of rows are to go.
#[derive(Clone, Copy, Default, Debug)]
pub struct Expiry {
    /// The files whose last row is before this time, in nanoseconds since 1970.
    pub before: Option<i64>,
    /// The oldest of the files that take more than so many bytes together.
    pub bytes: Option<u64>,
}

impl Inventory {
    /// Reads the folders of an archive.
    ///
    /// # Errors
    /// If one can't be read, or the folder holds no output of a query.
    pub fn read(folder: &Path) -> io::Result<Inventory> {
        fs::metadata(folder)?;
        let mut inventory = Inventory::default();
        let mut has_outputs = false;
        for output in entries(folder)? {
            if !output.join(COLUMNS).is_file() {
                continue;
            }
            has_outputs = true;
            let name = name_of(&output);
            for entry in entries(&output)? {
                if entry.is_dir() {
                    inventory.take_date(&name, &entry)?;
                } else if !entry.ends_with(COLUMNS) {
                    inventory.take_other(entry)?;
                }
            }
        }
        if !has_outputs {
            let why = "this is no archive: a run makes one with --store";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        // Rows without a time are as old as their files.
        inventory.files.sort_by_key(|file| (file.last(), file.path.clone()));
        inventory.parts.sort();
        inventory.others.sort();
        Ok(inventory)
    }

    fn take_date(&mut self, output: &str, date: &Path) -> io::Result<()> {
        for hour in entries(date)? {
            let stored = StoredHour::parse(&name_of(date), &name_of(&hour));
            let Some(stored) = stored.filter(|_| hour.is_dir()) else {
                self.others.push(hour);
                continue;
            };
            for path in entries(&hour)? {
                match FileName::parse(&name_of(&path)) {
                    Some(name) => {
                        let Some(meta) = metadata(&path)? else { continue };
                        let (output, written) = (output.to_owned(), meta.modified()?);
                        let (bytes, hour) = (meta.len(), stored);
                        self.files.push(StoredFile { output, hour, name, path, bytes, written });
                    }
                    None => self.take_other(path)?,
                }
            }
        }
        Ok(())
    }

    fn take_other(&mut self, path: PathBuf) -> io::Result<()> {
        match path.extension().is_some_and(|ending| ending == "part") {
            true => {
                if let Some(meta) = metadata(&path)? {
                    self.parts.push((path, meta.modified()?));
                }
            }
            false => self.others.push(path),
        }
        Ok(())
    }

    /// The files that are to go, the oldest first.
    pub fn expired(&self, expiry: Expiry) -> &[StoredFile] {
        let mut size: u64 = self.files.iter().map(|file| file.bytes).sum();
        let goes = |file: &&StoredFile| {
            let is_old = expiry.before.is_some_and(|before| file.last() < before);
            let is_beyond = expiry.bytes.is_some_and(|most| size > most);
            if is_old || is_beyond {
                size -= file.bytes;
            }
            is_old || is_beyond
        };
        let count = self.files.iter().take_while(goes).count();
        &self.files[..count]
    }
}

impl StoredFile {
    /// The time of its last row, in nanoseconds since 1970; of rows without a time when they were
    /// stored.
    pub fn last(&self) -> i64 {
        if self.hour != StoredHour::Unknown {
            return self.name.last;
        }
        let since = self.written.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
    }

    /// How many rows it has, as its end says.
    ///
    /// # Errors
    /// If it is no whole file of Parquet.
    pub fn rows(&self) -> io::Result<u64> {
        let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(&self.path)?);
        let rows = reader.map_err(io::Error::other)?.metadata().file_metadata().num_rows();
        Ok(rows.unsigned_abs())
    }

    /// Reads it to its end: all columns are those of its output, and all times lie within those of
    /// its name, and of its hour.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn check(&self) -> io::Result<u64> {
        let wrong = |why: &str| io::Error::new(io::ErrorKind::InvalidData, why);
        let hour = self.path.parent().and_then(Path::parent).and_then(Path::parent);
        let columns = hour.ok_or_else(|| wrong("it is in no output"))?.join(COLUMNS);
        let columns = weir_arrow::schema_of_file(&File::open(columns)?)?;
        let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(&self.path)?);
        let reader = reader.map_err(io::Error::other)?;
        if reader.schema().fields() != columns.fields() {
            return Err(wrong("its columns are not those of its output"));
        }
        let time = first_time(columns.fields());
        let mut rows = 0;
        for batch in reader.build().map_err(io::Error::other)? {
            let batch = batch.map_err(io::Error::other)?;
            rows += batch.num_rows() as u64;
            let Some(time) = time else { continue };
            let times = batch.column(time).as_primitive::<TimestampNanosecondType>();
            let is_wrong = |time: Option<i64>| match (self.hour, time) {
                (StoredHour::Unknown, time) => time.is_some(),
                (hour, Some(time)) => {
                    time < self.name.first || time > self.name.last || StoredHour::of(time) != hour
                }
                (_, None) => true,
            };
            if times.iter().any(is_wrong) {
                return Err(wrong("a row has a time that its name or its folder does not say"));
            }
        }
        Ok(rows)
    }

    /// Removes it, and the folders of its hour and its day where nothing else is in them.
    ///
    /// # Errors
    /// If it can't be removed; that it is gone already is none.
    pub fn remove(&self) -> io::Result<()> {
        match fs::remove_file(&self.path) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
            _ => {}
        }
        let hour = self.path.parent();
        for folder in hour.into_iter().chain(hour.and_then(Path::parent)) {
            // One that holds something stays.
            let _ = fs::remove_dir(folder);
        }
        Ok(())
    }
}

/// The place of the first column of times, by which rows are stored.
fn first_time(fields: &Fields) -> Option<usize> {
    let is_time = |ty: &DataType| matches!(ty, DataType::Timestamp(TimeUnit::Nanosecond, _));
    fields.iter().position(|field| is_time(field.data_type()))
}

fn name_of(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// The size and the times of a file; none of one that was removed or renamed meanwhile, as runs and
/// other commands do.
fn metadata(path: &Path) -> io::Result<Option<fs::Metadata>> {
    match fs::metadata(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        meta => meta.map(Some),
    }
}

/// The paths in a folder; a folder that has just been removed has none.
fn entries(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let told = |e: io::Error| io::Error::new(e.kind(), format!("{}: {e}", folder.display()));
    let entries = match fs::read_dir(folder) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(told)?,
    };
    entries.map(|entry| entry.map(|entry| entry.path()).map_err(told)).collect()
}
