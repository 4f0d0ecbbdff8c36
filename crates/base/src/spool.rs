//! Records that wait on disk: files of a folder, written at one end and read at the other. Records
//! that a process which was killed has left are there for the next one.
//!
//! A file is a row of records, each after its length (4 bytes) and the hash of its bytes (8 bytes).
//! The last record of a process that was killed may be cut; the next process begins a new file.

use crate::fnv::hash;
use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

/// Bytes of a file, after which another one begins: space is given back a file at a time.
pub const SPOOL_FILE_BYTES: u64 = 16 << 20;

/// Bytes of a record.
pub const SPOOL_RECORD_BYTES_MAX: usize = 2 << 20;

/// How often a process looks whether another one has let go of the records, ...
const LOCK_TRIES: u32 = 500;

/// ... and how long it waits between.
const LOCK_EVERY: Duration = Duration::from_millis(10);

/// Bytes before a record: its length and its hash.
const FRONT_BYTES: usize = 12;

/// A link in a folder that others may write to could lead to any file.
const NO_LINK: i32 = OFlags::NOFOLLOW.bits().cast_signed();

/// The fate of a record that was to wait on disk.
#[derive(Debug)]
pub enum Spooled {
    /// It is there.
    Kept,
    /// There is no room for it, by the bound or because the disk has none.
    Full(Option<io::Error>),
}

/// The records that wait.
#[derive(Debug)]
pub struct Spool {
    /// Held while this process has the files. It says how far they are done with, if anything.
    lock: File,
    folder: PathBuf,
    /// The start of the names of its files.
    name: String,
    bytes_max: u64,
    /// Bytes of records that wait in memory, and may have to wait here at the end.
    in_memory: u64,
    files: VecDeque<SpoolFile>,
    /// The last of the files, where records are added.
    writer: Option<File>,
    /// The first of the files, as far as it is read.
    reader: Option<BufReader<File>>,
    /// The record that was read last, and is not done with.
    front: Option<Vec<u8>>,
    read_bytes: u64,
    /// Records that could not be read back, or files whose end could not.
    torn: u64,
}

#[derive(Clone, Copy, Debug)]
struct SpoolFile {
    number: u64,
    bytes: u64,
}

impl Spool {
    /// The records in files of a folder whose names begin so; at most so many bytes.
    ///
    /// # Errors
    /// If the folder is not there or can't be used, another process has these records, or a file
    /// is none that only this user may read and write.
    pub fn open(folder: &Path, name: &str, bytes_max: u64) -> io::Result<Spool> {
        let path = folder.join(format!("{name}.lock"));
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let lock = options.custom_flags(NO_LINK).open(&path).map_err(|e| named(&path, e))?;
        is_own(&path, &lock)?;
        take(&lock).map_err(|e| named(&path, e))?;
        let prefix = format!("{name}-");
        let mut files = Vec::new();
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let file_name = entry.file_name();
            let number = file_name.to_str().and_then(|name| {
                name.strip_prefix(&prefix)?.strip_suffix(".spill")?.parse::<u64>().ok()
            });
            // Only names that are made here.
            let ours = number.filter(|number| file_name.to_str() == Some(&file(name, *number)));
            if let Some(number) = ours {
                let bytes = is_own(&entry.path(), &open_file(&entry.path())?)?;
                files.push(SpoolFile { number, bytes });
            }
        }
        files.sort_by_key(|file| file.number);
        let mut spool = Spool {
            lock,
            folder: folder.to_owned(),
            name: name.to_owned(),
            bytes_max,
            in_memory: 0,
            files: files.into(),
            writer: None,
            reader: None,
            front: None,
            read_bytes: 0,
            torn: 0,
        };
        spool.skip_done()?;
        Ok(spool)
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.front.is_none() && self.files.is_empty()
    }

    /// Bytes that wait, as they are in files.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }

    /// Records, or ends of files, that could not be read back.
    pub fn torn(&self) -> u64 {
        self.torn
    }

    /// Keeps room free for so many bytes of records that wait in memory, though not more than half
    /// of what is allowed, until they are [put before](Spool::put_before) the others.
    pub fn leave_room(&mut self, in_memory: u64) {
        self.in_memory = in_memory;
    }

    /// Adds a record after all others, of at most [`SPOOL_RECORD_BYTES_MAX`].
    ///
    /// # Errors
    /// If a file can't be made or written, for another reason than a full disk.
    pub fn push(&mut self, record: &[u8]) -> io::Result<Spooled> {
        let len = (FRONT_BYTES + record.len()) as u64;
        let room = self.bytes_max - self.in_memory.min(self.bytes_max / 2);
        if self.bytes().saturating_add(len) > room {
            return Ok(Spooled::Full(None));
        }
        match self.append(record) {
            Ok(()) => Ok(Spooled::Kept),
            Err(e) if is_full(&e) => Ok(Spooled::Full(Some(e))),
            Err(e) => Err(e),
        }
    }

    fn append(&mut self, record: &[u8]) -> io::Result<()> {
        if self.writer.is_none() || self.files.back().is_some_and(|f| f.bytes >= SPOOL_FILE_BYTES) {
            let number = self.files.back().map_or(0, |file| file.number.saturating_add(1));
            self.writer = Some(self.make(number)?);
            self.files.push_back(SpoolFile { number, bytes: 0 });
        }
        let (Some(file), Some(last)) = (&mut self.writer, self.files.back_mut()) else {
            return Err(io::Error::other("a file was just made"));
        };
        append(file, record, &mut last.bytes)
    }

    /// Puts records before all others, for the next process: those that wait in memory at the end
    /// were to be read before. How many found room, counted from the first. Where they were read
    /// from disk, they may be there twice then.
    ///
    /// # Errors
    /// If a file can't be made, named or written, for another reason than a full disk.
    pub fn put_before(&mut self, records: &[Vec<u8>]) -> io::Result<usize> {
        if records.is_empty() {
            return Ok(0);
        }
        (self.reader, self.read_bytes, self.front) = (None, 0, None);
        self.lock.set_len(0)?;
        if self.files.front().is_some_and(|file| file.number == 0) {
            self.number_higher()?;
        }
        let number = self.files.front().map_or(0, |file| file.number - 1);
        let mut file = self.make(number)?;
        self.files.push_front(SpoolFile { number, bytes: 0 });
        for (n, record) in records.iter().enumerate() {
            let len = (FRONT_BYTES + record.len()) as u64;
            if self.bytes().saturating_add(len) > self.bytes_max {
                return Ok(n);
            }
            match append(&mut file, record, &mut self.files[0].bytes) {
                Ok(()) => {}
                Err(e) if is_full(&e) => return Ok(n),
                Err(e) => return Err(e),
            }
        }
        Ok(records.len())
    }

    /// Gives each file the next number, so that one has room before all.
    fn number_higher(&mut self) -> io::Result<()> {
        for n in (0..self.files.len()).rev() {
            let number = self.files[n].number;
            fs::rename(self.path(number), self.path(number + 1))?;
            self.files[n].number = number + 1;
        }
        Ok(())
    }

    fn make(&self, number: u64) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(0o600);
        options.open(self.path(number))
    }

    /// The first record that waits; it stays until [`Spool::pop`].
    ///
    /// # Errors
    /// If a file can't be opened or removed.
    pub fn front(&mut self) -> io::Result<Option<&[u8]>> {
        while self.front.is_none() {
            let Some(SpoolFile { number, bytes }) = self.files.front().copied() else {
                return Ok(None);
            };
            if self.read_bytes >= bytes {
                self.remove_first()?;
                continue;
            }
            if self.reader.is_none() {
                let mut file = open_file(&self.path(number))?;
                file.seek(SeekFrom::Start(self.read_bytes))?;
                self.reader = Some(BufReader::new(file));
            }
            let left = bytes - self.read_bytes;
            match self.reader.as_mut().and_then(|reader| read(reader, left)) {
                Some(record) => {
                    self.read_bytes += (FRONT_BYTES + record.len()) as u64;
                    self.front = Some(record);
                }
                None => {
                    // Where the next record begins is not known.
                    self.torn += 1;
                    self.remove_first()?;
                }
            }
        }
        Ok(self.front.as_deref())
    }

    /// Is done with the first record. A process that is killed leaves it for the next one all the
    /// same, unless the file is removed that it stood in.
    pub fn pop(&mut self) {
        self.front = None;
    }

    /// Is done with the first records for good: the next process finds only those after them.
    ///
    /// # Errors
    /// If a file can't be read, written or removed.
    pub fn remove(&mut self, records: usize) -> io::Result<()> {
        for _ in 0..records {
            self.front()?;
            self.pop();
        }
        if self.files.front().is_some_and(|first| self.read_bytes >= first.bytes) {
            self.remove_first()?;
        }
        self.note_done()
    }

    /// All records that wait, in memory; they stay.
    ///
    /// # Errors
    /// If a file can't be opened.
    pub fn all(&mut self) -> io::Result<Vec<Vec<u8>>> {
        let mut all: Vec<Vec<u8>> = self.front.iter().cloned().collect();
        let mut from = self.read_bytes;
        for SpoolFile { number, bytes } in self.files.iter().copied() {
            let mut file = open_file(&self.path(number))?;
            file.seek(SeekFrom::Start(from))?;
            let (mut file, mut left) = (BufReader::new(file), bytes.saturating_sub(from));
            while let Some(record) = read(&mut file, left) {
                left -= (FRONT_BYTES + record.len()) as u64;
                all.push(record);
            }
            from = 0;
        }
        Ok(all)
    }

    /// Notes where the first record stands that is not done with.
    fn note_done(&mut self) -> io::Result<()> {
        let Some(first) = self.files.front() else { return self.lock.set_len(0) };
        let place = [first.number, self.read_bytes].map(u64::to_le_bytes).concat();
        let note = [place.as_slice(), &hash(&place).to_le_bytes()].concat();
        self.lock.write_all_at(&note, 0)
    }

    /// Passes over the records that an earlier process noted as done with.
    fn skip_done(&mut self) -> io::Result<()> {
        let mut note = [[0; 8]; 3];
        if self.lock.read_exact_at(note.as_flattened_mut(), 0).is_err() {
            return Ok(());
        }
        let [number, bytes, sum] = note.map(u64::from_le_bytes);
        if hash(note[..2].as_flattened()) != sum {
            return Ok(());
        }
        while self.files.front().is_some_and(|first| first.number < number) {
            self.remove_first()?;
        }
        if self.files.front().is_some_and(|first| first.number == number) {
            self.read_bytes = bytes;
        }
        Ok(())
    }

    fn remove_first(&mut self) -> io::Result<()> {
        if let Some(file) = self.files.pop_front() {
            if self.files.is_empty() {
                self.writer = None;
            }
            (self.reader, self.read_bytes) = (None, 0);
            fs::remove_file(self.path(file.number))?;
        }
        Ok(())
    }

    fn path(&self, number: u64) -> PathBuf {
        self.folder.join(file(&self.name, number))
    }
}

/// Locks these records against other processes. That of a run which was killed just now needs a
/// moment to put on disk what waits in its memory.
fn take(lock: &File) -> io::Result<()> {
    for _ in 0..LOCK_TRIES {
        match flock(lock, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) => thread::park_timeout(LOCK_EVERY),
            locked => return Ok(locked?),
        }
    }
    Err(io::Error::other("another process has these records"))
}

/// Opens a file of records to read it.
fn open_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(NO_LINK).open(path).map_err(|e| named(path, e))
}

/// Checks that nobody else can have written a file; how many bytes it has.
fn is_own(path: &Path, file: &File) -> io::Result<u64> {
    let meta = file.metadata().map_err(|e| named(path, e))?;
    if !meta.is_file() || meta.mode() & 0o077 != 0 {
        let why = "it is no plain file that this user alone may use (chmod 0600)";
        return Err(named(path, io::Error::other(why)));
    }
    Ok(meta.len())
}

fn named(path: &Path, e: io::Error) -> io::Error {
    io::Error::new(e.kind(), format!("{}: {e}", path.display()))
}

/// Adds a record to a file that has so many bytes.
fn append(file: &mut File, record: &[u8], bytes: &mut u64) -> io::Result<()> {
    let mut all = (record.len() as u32).to_le_bytes().to_vec();
    all.extend_from_slice(&hash(record).to_le_bytes());
    all.extend_from_slice(record);
    if let Err(e) = file.write_all(&all) {
        // A record that is there in part is removed, so that the next one can be read.
        file.set_len(*bytes)?;
        file.seek(SeekFrom::Start(*bytes))?;
        return Err(e);
    }
    *bytes += all.len() as u64;
    Ok(())
}

/// Reads a record that takes at most so many bytes; `None` if it is damaged or cut.
fn read(from: &mut impl Read, left: u64) -> Option<Vec<u8>> {
    let mut front = [0; FRONT_BYTES];
    from.read_exact(&mut front).ok()?;
    let (len, sum) = front.split_at(4);
    let len = u32::from_le_bytes(len.try_into().ok()?) as usize;
    if len > SPOOL_RECORD_BYTES_MAX || (len + FRONT_BYTES) as u64 > left {
        return None;
    }
    let mut record = vec![0; len];
    from.read_exact(&mut record).ok()?;
    (hash(&record).to_le_bytes() == sum).then_some(record)
}

/// Whether the disk has no room.
fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
}

/// The name of a file of records.
fn file(name: &str, number: u64) -> String {
    format!("{name}-{number:020}.spill")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(n: u64) -> Vec<u8> {
        [&n.to_le_bytes()[..], &vec![n as u8; n as usize % 1000]].concat()
    }

    fn number(record: &[u8]) -> u64 {
        let number = u64::from_le_bytes(record[..8].try_into().expect("8 bytes"));
        assert_eq!(record, super::tests::record(number));
        number
    }

    fn open(folder: &Path, bytes_max: u64) -> Spool {
        Spool::open(folder, "a", bytes_max).expect("a folder")
    }

    fn add(spool: &mut Spool, records: impl IntoIterator<Item = u64>) {
        for n in records {
            assert!(matches!(spool.push(&record(n)), Ok(Spooled::Kept)));
        }
    }

    fn first(spool: &mut Spool) -> Option<u64> {
        spool.front().expect("files are there").map(number)
    }

    fn drain(spool: &mut Spool) -> Vec<u64> {
        let mut all = Vec::new();
        while let Some(front) = first(spool) {
            all.push(front);
            spool.pop();
        }
        all
    }

    fn numbers(spool: &mut Spool) -> Vec<u64> {
        spool.all().expect("files").iter().map(|record| number(record)).collect()
    }

    #[test]
    fn records_come_back_in_order() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut spool = open(folder.path(), 1 << 30);
        assert!(spool.is_empty());
        let mut expected = Vec::new();
        for n in 0..100 {
            add(&mut spool, [n]);
            expected.push(n);
            if n % 10 == 9 {
                assert_eq!(first(&mut spool), Some(expected[0]));
                assert_eq!(numbers(&mut spool), expected);
                expected.remove(0);
                spool.pop();
            }
        }
        assert_eq!(drain(&mut spool), expected);
        assert!(spool.is_empty() && spool.bytes() == 0 && spool.torn() == 0);
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1, "all is given back");
        add(&mut spool, [5]);
        assert_eq!(drain(&mut spool), [5]);
    }

    #[test]
    fn records_of_a_process_that_was_killed_are_there() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut spool = open(folder.path(), 1 << 30);
        add(&mut spool, 0..50);
        let busy = Spool::open(folder.path(), "a", 1).expect_err("it is held");
        assert!(busy.to_string().contains("another process"), "{busy}");
        let mut other = Spool::open(folder.path(), "b", 1 << 30).expect("a folder");
        assert!(other.is_empty() && first(&mut other).is_none());
        drop(spool);
        // It was killed as it wrote the last one.
        let path = folder.path().join("a-00000000000000000000.spill");
        let len = fs::metadata(&path).expect("a file").len();
        OpenOptions::new().write(true).open(&path).expect("opens").set_len(len - 3).expect("cuts");
        let mut spool = open(folder.path(), 1 << 30);
        add(&mut spool, [60]);
        let all: Vec<u64> = (0..49).chain([60]).collect();
        assert_eq!(numbers(&mut spool), all);
        assert_eq!((drain(&mut spool), spool.torn()), (all, 1));
    }

    #[test]
    fn records_that_are_removed_are_gone_for_good() {
        let folder = tempfile::tempdir().expect("a folder");
        // Records of some length, so that several files are used.
        let big = |n: u64| [&n.to_le_bytes()[..], &vec![0; 1 << 20]].concat();
        let of = |record: &[u8]| u64::from_le_bytes(record[..8].try_into().expect("8 bytes"));
        let mut left: Vec<u64> = Vec::new();
        for round in 0..4 {
            let mut spool = open(folder.path(), 1 << 30);
            assert_eq!(spool.all().expect("files").iter().map(|r| of(r)).collect::<Vec<_>>(), left);
            for n in round * 20..round * 20 + 20 {
                assert!(matches!(spool.push(&big(n)), Ok(Spooled::Kept)));
                left.push(n);
            }
            for n in [0, 1, 7] {
                spool.remove(n).expect("removes");
                left.drain(..n);
            }
            spool.front().expect("files").expect("records");
            spool.pop();
        }
        let mut spool = open(folder.path(), 1 << 30);
        spool.remove(left.len() + 1).expect("removes");
        assert!(spool.is_empty());
        drop(spool);
        assert!(open(folder.path(), 1 << 30).is_empty());
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1, "all is given back");
        // A note that is damaged says nothing.
        let mut spool = open(folder.path(), 1 << 30);
        add(&mut spool, 0..9);
        spool.remove(5).expect("removes");
        spool.lock.write_all_at(&[1], 3).expect("writes");
        drop(spool);
        assert_eq!(numbers(&mut open(folder.path(), 1 << 30)), (0..9).collect::<Vec<_>>());
    }

    #[test]
    fn the_bound_holds_and_room_comes_back() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut spool = open(folder.path(), 5000);
        let full = |spool: &mut Spool| {
            (0..100).find(|_| matches!(spool.push(&record(999)), Ok(Spooled::Full(None))))
        };
        assert_eq!((full(&mut spool), spool.bytes() <= 5000), (Some(4), true));
        assert_eq!(drain(&mut spool).len(), 4);
        spool.leave_room(2 * 1100);
        assert_eq!(full(&mut spool), Some(2));
        let memory: Vec<_> = (0..4).map(|_| record(999)).collect();
        assert!(matches!(spool.put_before(&memory), Ok(2)), "the bound holds");
        assert_eq!(drain(&mut spool).len(), 4);
        // Half is left at most.
        spool.leave_room(u64::MAX);
        assert_eq!(full(&mut spool), Some(2));
    }

    #[test]
    fn records_that_were_in_memory_come_first() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut spool = open(folder.path(), 1 << 30);
        assert!(matches!(spool.put_before(&[]), Ok(0)));
        assert!(spool.is_empty());
        add(&mut spool, 30..60);
        for n in 30..32 {
            assert_eq!(first(&mut spool), Some(n));
            spool.pop();
        }
        assert_eq!(first(&mut spool), Some(32));
        let memory: Vec<_> = (20..32).map(record).collect();
        assert!(matches!(spool.put_before(&memory), Ok(12)));
        drop(spool);
        // The number of its first file is 0, where none is before.
        let mut spool = open(folder.path(), 1 << 30);
        assert!(matches!(spool.put_before(&memory[..1]), Ok(1)));
        add(&mut spool, [60]);
        let all: Vec<u64> = [20].into_iter().chain(20..32).chain(30..61).collect();
        assert_eq!((drain(&mut spool), spool.torn()), (all, 0));
        drop(spool);
        assert!(open(folder.path(), 1).is_empty());
    }

    #[test]
    fn damaged_files_are_read_without_harm() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a-00000000000000000007.spill");
        let mut bytes = Vec::new();
        for n in [1, 2] {
            let mut file = tempfile::tempfile().expect("a file");
            append(&mut file, &record(n), &mut 0).expect("writes");
            file.rewind().expect("a file");
            file.read_to_end(&mut bytes).expect("reads");
        }
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x80;
            let mut options = OpenOptions::new();
            let options = options.write(true).create(true).truncate(true).mode(0o600);
            options.open(&path).expect("opens").write_all(&damaged).expect("writes");
            let mut spool = open(folder.path(), 1 << 30);
            assert!(numbers(&mut spool).len() < 2);
            let found = drain(&mut spool);
            assert!(found.is_empty() || found == [1], "{at}: {found:?}");
            assert_eq!((spool.torn(), path.exists()), (1, false));
        }
    }

    #[test]
    fn files_that_others_may_write_are_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a-00000000000000000000.spill");
        OpenOptions::new().write(true).create_new(true).mode(0o666).open(&path).expect("makes");
        let refused = Spool::open(folder.path(), "a", 1).expect_err("others may read it");
        assert!(refused.to_string().contains("this user alone"), "{refused}");
        fs::remove_file(&path).expect("removes");
        std::os::unix::fs::symlink("/etc/passwd", &path).expect("links");
        let refused = Spool::open(folder.path(), "a", 1).expect_err("a link");
        assert!(refused.to_string().contains("a-0000"), "{refused}");
    }
}
