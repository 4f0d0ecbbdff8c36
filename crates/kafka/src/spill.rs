//! Records that wait on disk for a broker: files of a folder, written at one end and read at the
//! other. What a process that was killed has left is sent by the next one.

use crate::address::KafkaTopic;
use crate::limits::{LOCK_EVERY, LOCK_TRIES};
use crate::order::{LogName, SpillOrder};
use crate::record::{END_HEADER, PART_HEADER};
use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::thread;

/// Bytes of a file, after which another one begins: space is given back a file at a time.
const FILE_BYTES: u64 = 16 << 20;

/// The front of a record in a file: the length of the rest and its hash.
const FRONT_BYTES: usize = 12;

/// Bytes of a record in a file: those of a part, and some for what is said of it.
const RECORD_MAX: usize = 2 << 20;

/// A record that is to be produced.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OutRecord {
    /// The epoch of its life.
    pub epoch: u64,
    /// A further header, and its value.
    pub header: Option<(OutHeader, String)>,
    /// A head, a message, or a part of one.
    pub value: Vec<u8>,
}

/// The headers that not all records have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OutHeader {
    /// [`PART_HEADER`].
    Part = 1,
    /// [`END_HEADER`].
    End = 2,
}

impl OutHeader {
    /// Its name in a record.
    pub fn name(self) -> &'static str {
        match self {
            OutHeader::Part => PART_HEADER,
            OutHeader::End => END_HEADER,
        }
    }
}

/// The fate of a record that was to be kept.
#[derive(Debug)]
pub enum Kept {
    /// It is kept.
    Kept,
    /// There is no room for it, by the bound or because the disk has none.
    Full(Option<io::Error>),
}

/// The records that wait.
#[derive(Debug)]
pub struct Spill {
    /// Held while this process has the files.
    _lock: File,
    folder: PathBuf,
    /// What the names of its files begin with.
    name: String,
    bytes_max: u64,
    /// Bytes of records that wait in memory, and may have to wait here at the end.
    in_memory: u64,
    files: VecDeque<SpillFile>,
    /// The last of the files, where records are added.
    writer: Option<File>,
    /// The first of the files, as far as it is read.
    reader: Option<BufReader<File>>,
    /// The record that was read last, and is not done with.
    front: Option<OutRecord>,
    read_bytes: u64,
    /// Records that could not be read back, or files whose end could not.
    torn: u64,
}

#[derive(Debug)]
struct SpillFile {
    number: u64,
    bytes: u64,
}

impl Spill {
    /// The records of a probe that wait for a topic.
    ///
    /// # Errors
    /// If the folder is not there or can't be used, or another process has these records.
    pub fn of(order: &SpillOrder, topic: &KafkaTopic, log: &LogName) -> io::Result<Spill> {
        let name = hash(format!("{}\0{}", topic.topic, log.probe).as_bytes());
        Spill::open(&order.folder, &format!("weir-{name:016x}"), order.bytes_max)
    }

    /// The records of packets that wait for a topic.
    ///
    /// # Errors
    /// As with those of a probe.
    pub fn of_packets(order: &SpillOrder, topic: &KafkaTopic) -> io::Result<Spill> {
        // No probe has this name.
        let name = hash(format!("{}\0\0packets", topic.topic).as_bytes());
        Spill::open(&order.folder, &format!("weir-{name:016x}"), order.bytes_max)
    }

    /// Records in a folder that is there, in files whose names begin so; at most so many bytes.
    fn open(folder: &Path, name: &str, bytes_max: u64) -> io::Result<Spill> {
        let lock = folder.join(format!("{name}.lock"));
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false).mode(0o600).custom_flags(NO_LINK);
        let lock = options.open(lock)?;
        take(&lock)?;
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
                let meta = entry.metadata()?;
                if !meta.is_file() {
                    let path = entry.path();
                    return Err(io::Error::other(format!("{} is no plain file", path.display())));
                }
                files.push(SpillFile { number, bytes: meta.len() });
            }
        }
        files.sort_by_key(|file| file.number);
        Ok(Spill {
            _lock: lock,
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
        })
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
    /// of what is allowed, until they are [put before](Spill::put_before) the others.
    pub fn leave_room(&mut self, in_memory: u64) {
        self.in_memory = in_memory;
    }

    /// Keeps a record after all others.
    ///
    /// # Errors
    /// If a file can't be made or written, for another reason than a full disk.
    pub fn push(&mut self, record: &OutRecord) -> io::Result<Kept> {
        let bytes = record.to_bytes();
        let len = bytes.len() as u64;
        let room = self.bytes_max - self.in_memory.min(self.bytes_max / 2);
        if self.bytes().saturating_add(len) > room {
            return Ok(Kept::Full(None));
        }
        match self.append(&bytes) {
            Ok(()) => Ok(Kept::Kept),
            Err(e) if is_full(&e) => Ok(Kept::Full(Some(e))),
            Err(e) => Err(e),
        }
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.writer.is_none() || self.files.back().is_some_and(|f| f.bytes >= FILE_BYTES) {
            let number = self.files.back().map_or(0, |file| file.number.saturating_add(1));
            self.writer = Some(self.make(number)?);
            self.files.push_back(SpillFile { number, bytes: 0 });
        }
        let (Some(file), Some(last)) = (&mut self.writer, self.files.back_mut()) else {
            return Err(io::Error::other("a file was just made"));
        };
        append(file, bytes, &mut last.bytes)
    }

    /// Keeps records before all others, for the next process: those that wait in memory at the end
    /// were to be sent before. How many found room, counted from the first. Where they were read
    /// from disk, they are there twice, as of a process that was killed, and count once.
    ///
    /// # Errors
    /// If a file can't be made, named or written, for another reason than a full disk.
    pub fn put_before(&mut self, records: &[OutRecord]) -> io::Result<usize> {
        if records.is_empty() {
            return Ok(0);
        }
        (self.reader, self.read_bytes, self.front) = (None, 0, None);
        if self.files.front().is_some_and(|file| file.number == 0) {
            self.number_higher()?;
        }
        let number = self.files.front().map_or(0, |file| file.number - 1);
        let mut file = self.make(number)?;
        self.files.push_front(SpillFile { number, bytes: 0 });
        for (n, record) in records.iter().enumerate() {
            let bytes = record.to_bytes();
            if self.bytes().saturating_add(bytes.len() as u64) > self.bytes_max {
                return Ok(n);
            }
            match append(&mut file, &bytes, &mut self.files[0].bytes) {
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

    /// The first record that waits; it stays until [`Spill::pop`].
    ///
    /// # Errors
    /// If a file can't be opened or removed.
    pub fn front(&mut self) -> io::Result<Option<&OutRecord>> {
        while self.front.is_none() {
            let Some(SpillFile { number, bytes }) = self.files.front() else { return Ok(None) };
            let (number, bytes) = (*number, *bytes);
            if self.read_bytes >= bytes {
                self.remove_first()?;
                continue;
            }
            if self.reader.is_none() {
                let mut options = OpenOptions::new();
                options.read(true).custom_flags(NO_LINK);
                self.reader = Some(BufReader::new(options.open(self.path(number))?));
            }
            let left = bytes - self.read_bytes;
            let read = self.reader.as_mut().and_then(|reader| OutRecord::read(reader, left));
            match read {
                Some((record, len)) => {
                    self.front = Some(record);
                    self.read_bytes += len;
                }
                None => {
                    // Where the next record begins is not known.
                    self.torn += 1;
                    self.remove_first()?;
                }
            }
        }
        Ok(self.front.as_ref())
    }

    /// Is done with the first record.
    pub fn pop(&mut self) {
        self.front = None;
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

/// A link in a folder that others may write to could lead to any file.
const NO_LINK: i32 = OFlags::NOFOLLOW.bits().cast_signed();

/// Locks these records against other processes. That of a run which was killed just now needs a
/// moment to put what waits in its memory on disk.
fn take(lock: &File) -> io::Result<()> {
    for _ in 0..LOCK_TRIES {
        match flock(lock, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) => thread::park_timeout(LOCK_EVERY),
            locked => return Ok(locked?),
        }
    }
    Err(io::Error::other("another process has these records"))
}

/// Adds a record to a file that has so many bytes.
fn append(file: &mut File, record: &[u8], bytes: &mut u64) -> io::Result<()> {
    if let Err(e) = file.write_all(record) {
        // What is in part there goes again, so that what follows can be read.
        file.set_len(*bytes)?;
        file.seek(SeekFrom::Start(*bytes))?;
        return Err(e);
    }
    *bytes += record.len() as u64;
    Ok(())
}

/// Whether the disk has no room.
fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
}

/// The name of a file of records.
fn file(name: &str, number: u64) -> String {
    format!("{name}-{number:020}.spill")
}

impl OutRecord {
    fn to_bytes(&self) -> Vec<u8> {
        let (kind, text) = match &self.header {
            Some((header, text)) => (*header as u8, text.as_str()),
            None => (0, ""),
        };
        let mut rest = Vec::with_capacity(self.value.len() + 64);
        rest.extend_from_slice(&self.epoch.to_le_bytes());
        rest.push(kind);
        rest.push(u8::try_from(text.len()).unwrap_or(u8::MAX));
        rest.extend_from_slice(&text.as_bytes()[..text.len().min(usize::from(u8::MAX))]);
        rest.extend_from_slice(&self.value);
        let mut bytes = (rest.len() as u32).to_le_bytes().to_vec();
        bytes.extend_from_slice(&hash(&rest).to_le_bytes());
        bytes.extend_from_slice(&rest);
        bytes
    }

    /// Reads a record of at most so many bytes, and how many it has; `None` if it is damaged.
    fn read(from: &mut impl Read, left: u64) -> Option<(OutRecord, u64)> {
        let mut front = [0; FRONT_BYTES];
        from.read_exact(&mut front).ok()?;
        let (len, sum) = front.split_at(4);
        let len = u32::from_le_bytes(len.try_into().ok()?) as usize;
        let sum = u64::from_le_bytes(sum.try_into().ok()?);
        let total = (len + FRONT_BYTES) as u64;
        if len > RECORD_MAX || total > left {
            return None;
        }
        let mut rest = vec![0; len];
        from.read_exact(&mut rest).ok()?;
        if hash(&rest) != sum {
            return None;
        }
        let (epoch, rest) = rest.split_first_chunk::<8>()?;
        let ([kind, text], rest) = rest.split_first_chunk::<2>()?;
        let (text, value) = rest.split_at_checked(usize::from(*text))?;
        let text = std::str::from_utf8(text).ok()?.to_owned();
        let header = match kind {
            0 => None,
            1 => Some((OutHeader::Part, text)),
            2 => Some((OutHeader::End, text)),
            _ => return None,
        };
        let record = OutRecord { epoch: u64::from_le_bytes(*epoch), header, value: value.to_vec() };
        Some((record, total))
    }
}

/// FNV-1a of 64 bits.
fn hash(bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(n: u64) -> OutRecord {
        let header = match n % 3 {
            0 => None,
            1 => Some((OutHeader::Part, format!("{n}/9"))),
            _ => Some((OutHeader::End, "cut".to_owned())),
        };
        OutRecord { epoch: n, header, value: vec![n as u8; n as usize % 1000] }
    }

    fn drain(spill: &mut Spill) -> Vec<u64> {
        let mut all = Vec::new();
        while let Some(front) = spill.front().expect("files are there") {
            assert_eq!(*front, record(front.epoch));
            all.push(front.epoch);
            spill.pop();
        }
        all
    }

    #[test]
    fn records_come_back_in_order() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut spill = Spill::open(folder.path(), "a", 1 << 30).expect("a folder");
        assert!(spill.is_empty());
        let mut expected = Vec::new();
        for n in 0..100 {
            assert!(matches!(spill.push(&record(n)), Ok(Kept::Kept)));
            expected.push(n);
            if n % 10 == 9 {
                let front = spill.front().expect("files").expect("records").epoch;
                assert_eq!(front, expected.remove(0));
                spill.pop();
            }
        }
        assert_eq!(drain(&mut spill), expected);
        assert!(spill.is_empty() && spill.bytes() == 0 && spill.torn() == 0);
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1, "all is given back");
        assert!(matches!(spill.push(&record(5)), Ok(Kept::Kept)));
        assert_eq!(drain(&mut spill), [5]);
    }

    #[test]
    fn what_another_process_has_left_is_there() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut spill = Spill::open(folder.path(), "a", 1 << 30).expect("a folder");
        (0..50).for_each(|n| assert!(matches!(spill.push(&record(n)), Ok(Kept::Kept))));
        drop(spill);
        let mut other = Spill::open(folder.path(), "b", 1 << 30).expect("a folder");
        let busy = Spill::open(folder.path(), "b", 1 << 30).expect_err("it is held");
        assert!(busy.to_string().contains("another process"), "{busy}");
        assert!(other.is_empty() && other.front().expect("nothing").is_none());
        // It was killed as it wrote the last one.
        let path = folder.path().join("a-00000000000000000000.spill");
        let len = fs::metadata(&path).expect("a file").len();
        OpenOptions::new().write(true).open(&path).expect("opens").set_len(len - 3).expect("cuts");
        let mut spill = Spill::open(folder.path(), "a", 1 << 30).expect("a folder");
        assert!(matches!(spill.push(&record(60)), Ok(Kept::Kept)));
        let all: Vec<u64> = (0..49).chain([60]).collect();
        assert_eq!((drain(&mut spill), spill.torn()), (all, 1));
    }

    #[test]
    fn the_bound_holds_and_room_comes_back() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut spill = Spill::open(folder.path(), "a", 5000).expect("a folder");
        let full = (0..100).find(|_| matches!(spill.push(&record(999)), Ok(Kept::Full(None))));
        assert_eq!((full, spill.bytes() <= 5000), (Some(4), true));
        assert_eq!(drain(&mut spill).len(), 4);
        assert!(matches!(spill.push(&record(999)), Ok(Kept::Kept)));
    }

    #[test]
    fn records_that_were_in_memory_come_first() {
        let folder = tempfile::tempdir().expect("a folder");
        let again = || Spill::open(folder.path(), "a", 1 << 30).expect("a folder");
        let mut spill = again();
        assert!(matches!(spill.put_before(&[]), Ok(0)));
        assert!(spill.is_empty());
        // The one before has been handed to the client, and the next is in its hands.
        (30..60).for_each(|n| assert!(matches!(spill.push(&record(n)), Ok(Kept::Kept))));
        for n in 30..32 {
            assert_eq!(spill.front().expect("files").expect("records").epoch, n);
            spill.pop();
        }
        assert_eq!(spill.front().expect("files").expect("records").epoch, 32);
        let memory: Vec<_> = (20..32).map(record).collect();
        assert!(matches!(spill.put_before(&memory), Ok(12)));
        drop(spill);
        // The number of its first file is 0, where none is before.
        let mut spill = again();
        assert!(matches!(spill.put_before(&memory[..1]), Ok(1)));
        assert!(matches!(spill.push(&record(60)), Ok(Kept::Kept)));
        assert_eq!(
            drain(&mut spill),
            [20].into_iter().chain(20..32).chain(30..61).collect::<Vec<_>>()
        );
        assert_eq!((spill.torn(), again_is_empty(spill)), (0, true));
    }

    fn again_is_empty(spill: Spill) -> bool {
        let folder = spill.folder.clone();
        drop(spill);
        Spill::open(&folder, "a", 1).expect("a folder").is_empty()
    }

    #[test]
    fn room_is_left_for_those_in_memory() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut spill = Spill::open(folder.path(), "a", 5000).expect("a folder");
        let fill = |spill: &mut Spill| {
            (0..100).find(|_| matches!(spill.push(&record(999)), Ok(Kept::Full(None))))
        };
        spill.leave_room(2 * 1100);
        assert_eq!(fill(&mut spill), Some(2));
        let memory: Vec<_> = (0..4).map(|_| record(999)).collect();
        assert!(matches!(spill.put_before(&memory), Ok(2)), "the bound holds");
        assert_eq!(drain(&mut spill).len(), 4);
        // Half is left at most.
        spill.leave_room(u64::MAX);
        assert_eq!(fill(&mut spill), Some(2));
    }

    #[test]
    fn damaged_files_are_read_without_harm() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a-00000000000000000007.spill");
        let bytes = [record(1).to_bytes(), record(2).to_bytes()].concat();
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x80;
            fs::write(&path, &damaged).expect("writes");
            let mut spill = Spill::open(folder.path(), "a", 1 << 30).expect("a folder");
            let found = drain(&mut spill);
            assert!(found.is_empty() || found == [1], "{at}: {found:?}");
            assert_eq!((spill.torn(), path.exists()), (1, false));
        }
    }
}
