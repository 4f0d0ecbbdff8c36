//! Captures that go on in a further file once one is full, or has gone on for long enough, as
//! tcpdump's `-C`, `-G` and `-W` have it.

use super::error::WriteError;
use super::id::FileId;
use jiff::Timestamp;
use jiff::fmt::strtime::BrokenDownTime;
use jiff::tz::TimeZone;
use std::fs::{File, OpenOptions};
use std::io;
use std::num::{NonZeroU32, NonZeroU64};
use std::path::{Path, PathBuf};

/// When a capture goes on in a further file, and in which.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Rotation {
    /// A file that has more bytes than this takes no further frame.
    pub bytes: Option<u64>,
    /// A file takes no frame that came so many seconds, or more, after its first. The name says
    /// when that was, in UTC, by strftime(3); where it would be the same, the file goes on.
    pub seconds: Option<NonZeroU64>,
    /// Files, after which the first is written over, or, where only time makes new ones, nothing
    /// more is written; without end if there is no such number.
    pub files: Option<NonZeroU32>,
}

impl Rotation {
    /// The name of the `n`th file of a size: the first bears the name itself and the others a
    /// number, or all bear numbers of as many digits as the last needs.
    fn name(self, base: &str, n: u64) -> String {
        match self.files.map(NonZeroU32::get).filter(|_| self.bytes.is_some()) {
            None if n == 0 => base.to_owned(),
            None => format!("{base}{n}"),
            Some(files) => {
                let digits = (files - 1).to_string().len();
                format!("{base}{:0digits$}", n % u64::from(files))
            }
        }
    }
}

/// The decision before a frame is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Turn {
    /// It belongs into the same file.
    Stay,
    /// It belongs into the next.
    Next,
    /// It belongs into none: there were as many as there may be.
    Over,
}

/// The files of one capture.
pub(super) struct RotatedFiles {
    rotation: Rotation,
    base: String,
    /// The same with a time.
    dated: String,
    /// Files of this size since the time in their name changed.
    n: u64,
    /// When the files of this time began, in seconds since 1970.
    since: Option<i64>,
    /// The second in which it was last looked at whether they end.
    looked: Option<i64>,
    /// Times that had files.
    times: u64,
    /// Whether the name says nothing of time, which does where there is one file.
    plain: bool,
    over: bool,
    /// Files that must not be written over.
    taken: Vec<FileId>,
}

impl RotatedFiles {
    /// Files named after `base`, of which the first is still to be made.
    pub(super) fn new(rotation: Rotation, base: &str) -> io::Result<RotatedFiles> {
        if base == "-" {
            let option = if rotation.seconds.is_some() { "-G" } else { "-C" };
            return Err(WriteError::StdoutInFiles(option).into());
        }
        let one = rotation.files == NonZeroU32::new(1) && rotation.bytes.is_none();
        let plain = rotation.seconds.is_some() && !says_when(base)?;
        if plain && !one {
            return Err(WriteError::NoTime { name: base.to_owned() }.into());
        }
        let (dated, base, taken) = (base.to_owned(), base.to_owned(), Vec::new());
        let (since, looked) = (None, None);
        Ok(RotatedFiles {
            rotation,
            base,
            dated,
            n: 0,
            since,
            looked,
            times: 0,
            plain,
            over: false,
            taken,
        })
    }

    /// Whether the first file is made by the first frame, which gives it its name.
    pub(super) fn waits(&self) -> bool {
        self.rotation.seconds.is_some()
    }

    /// The name of the next file.
    pub(super) fn name(&self) -> String {
        self.rotation.name(&self.dated, self.n)
    }

    /// Where files are made: the folder, as far as its name says nothing of time.
    pub(super) fn folder(&self) -> PathBuf {
        let folder = Path::new(&self.base).parent().unwrap_or(Path::new(""));
        let fixed = |part: &std::path::Component<'_>| {
            !self.waits() || !part.as_os_str().to_string_lossy().contains('%')
        };
        let folder: PathBuf = folder.components().take_while(fixed).collect();
        if folder.as_os_str().is_empty() { PathBuf::from(".") } else { folder }
    }

    /// The first file was made, and is this one, or waits for a frame.
    pub(super) fn begun(mut self) -> RotatedFiles {
        self.n = u64::from(!self.waits());
        self
    }

    /// These are the other files of the run from here on.
    pub(super) fn spare(&mut self, taken: Vec<FileId>) {
        self.taken = taken;
    }

    /// Where a frame of this time belongs, in nanoseconds since 1970, after so many bytes.
    pub(super) fn turn(&mut self, bytes: u64, ts: i64) -> Turn {
        if self.over {
            return Turn::Over;
        }
        if let Some(seconds) = self.rotation.seconds
            && let Some(turn) = self.turn_by_time(ts.div_euclid(1_000_000_000), seconds)
        {
            return turn;
        }
        let full = self.rotation.bytes.is_some_and(|most| bytes > most);
        if full { Turn::Next } else { Turn::Stay }
    }

    /// The decision where a time begins; `None` where the same goes on.
    fn turn_by_time(&mut self, at: i64, seconds: NonZeroU64) -> Option<Turn> {
        let step = i64::try_from(seconds.get()).unwrap_or(i64::MAX);
        if let Some(since) = self.since {
            if at <= since.saturating_sub(step) {
                // The time before was wild.
                self.since = Some(at);
            }
            if at < since.saturating_add(step) {
                return None;
            }
        }
        // A name may say less than the seconds do: it is looked at once in each of them.
        if self.looked.replace(at) == Some(at) {
            return None;
        }
        let dated = self.dated(at);
        if self.since.is_some() && dated == self.dated && !self.plain {
            return None;
        }
        self.since = Some(at);
        let only_times = self.rotation.bytes.is_none();
        let files = self.rotation.files.filter(|_| only_times).map(|n| u64::from(n.get()));
        self.over = files.is_some_and(|files| self.times >= files);
        if self.over {
            return Some(Turn::Over);
        }
        (self.dated, self.n, self.times) = (dated, 0, self.times + 1);
        Some(Turn::Next)
    }

    /// The name with the time that it says, in seconds since 1970.
    fn dated(&self, at: i64) -> String {
        // A form of time that can't be written was refused when the name was given; times beyond
        // the calendar are those of its ends.
        at_time(&self.base, at).unwrap_or_else(|_| self.base.clone())
    }

    /// Makes the next file, and empties it; its name, and which file it is.
    pub(super) fn next(&mut self) -> io::Result<(String, File, Option<FileId>)> {
        let name = self.name();
        let named = WriteError::of(&name);
        let file = OpenOptions::new().write(true).create(true).truncate(false).open(&name);
        let file = file.map_err(&named)?;
        let meta = file.metadata().map_err(&named)?;
        let id = FileId::of(&meta);
        if id.is_some_and(|id| self.taken.contains(&id)) {
            return Err(WriteError::Taken { name: name.clone() }.into());
        }
        file.set_len(0).map_err(&named)?;
        self.n += 1;
        Ok((name, file, id))
    }
}

/// Whether a name says something of time; else each file would be written over the one before.
fn says_when(base: &str) -> io::Result<bool> {
    // Two times of which nothing is the same: 1971-02-03 04:05:06 and 2034-12-31 23:59:59.
    let names = [34_401_906, 2_051_222_399].map(|at| at_time(base, at));
    match names {
        [Ok(one), Ok(other)] => Ok(one != other),
        _ => Err(WriteError::UnknownTime { name: base.to_owned() }.into()),
    }
}

/// A name with the time that it says, in seconds since 1970, by strftime(3).
fn at_time(base: &str, at: i64) -> Result<String, jiff::Error> {
    let time = Timestamp::from_second(at).unwrap_or(Timestamp::MAX);
    BrokenDownTime::from(&time.to_zoned(TimeZone::UTC)).to_string(base)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        let name = |files, n| {
            let files = NonZeroU32::new(files);
            Rotation { bytes: Some(0), seconds: None, files }.name("x.pcap", n)
        };
        assert_eq!([0, 1, 12].map(|n| name(0, n)), ["x.pcap", "x.pcap1", "x.pcap12"]);
        assert_eq!([0, 1, 3].map(|n| name(3, n)), ["x.pcap0", "x.pcap1", "x.pcap0"]);
        assert_eq!([0, 9, 10].map(|n| name(11, n)), ["x.pcap00", "x.pcap09", "x.pcap10"]);
        assert_eq!([0, 9, 10].map(|n| name(10, n)), ["x.pcap0", "x.pcap9", "x.pcap0"]);
    }

    fn by_time(bytes: Option<u64>, files: u32, base: &str) -> io::Result<RotatedFiles> {
        let (seconds, files) = (NonZeroU64::new(60), NonZeroU32::new(files));
        RotatedFiles::new(Rotation { bytes, seconds, files }, base)
    }

    /// The name of the file that each of these frames goes to, by their seconds; each has 10 bytes.
    fn places(mut rotated: RotatedFiles, times: &[i64]) -> Vec<String> {
        let (mut name, mut bytes) = (String::new(), 0);
        let place = |&at: &i64| {
            match rotated.turn(bytes, at * 1_000_000_000 + 999_999_999) {
                Turn::Stay => {}
                Turn::Next => {
                    (name, bytes) = (rotated.name(), 0);
                    rotated.n += 1;
                }
                Turn::Over => name = "over".to_owned(),
            }
            bytes += 10;
            name.clone()
        };
        times.iter().map(place).collect()
    }

    #[test]
    fn names_say_when_their_first_frame_came() {
        let rotated = by_time(None, 0, "a%H/x-%F-%T.pcap").expect("says when");
        let day = 20_000 * 86_400;
        let got = places(rotated, &[day - 1, day, day + 58, day + 59, day + 3600]);
        let first = "a23/x-2024-10-03-23:59:59.pcap".to_owned();
        let names = ["a00/x-2024-10-04-00:00:59.pcap", "a01/x-2024-10-04-01:00:00.pcap"];
        let want = [&[first.clone(), first.clone(), first], &names.map(str::to_owned)[..]].concat();
        assert_eq!(got, want);
    }

    #[test]
    fn no_time_writes_over_what_was_just_written() {
        // One is wild; the file goes on, for as long as others.
        let wild = places(by_time(None, 0, "%H").expect("says when"), &[0, 7200, 10, 69, 70, 7300]);
        assert_eq!(wild, ["00", "02", "02", "02", "00", "02"]);
        // A name that says no more than the hour.
        let coarse = by_time(None, 0, "%H").expect("says when");
        assert_eq!(places(coarse, &[0, 60, 120, 3599, 3600]), ["00", "00", "00", "00", "01"]);
    }

    #[test]
    fn size_and_number_count_beside_time() {
        let sized = places(by_time(Some(15), 0, "%s").expect("says when"), &[0, 1, 2, 3, 60, 61]);
        assert_eq!(sized, ["0", "0", "01", "01", "60", "60"]);
        let round =
            places(by_time(Some(5), 2, "%M-").expect("says when"), &[0, 1, 2, 60, 61, 62, 63]);
        assert_eq!(round, ["00-0", "00-1", "00-0", "01-0", "01-1", "01-0", "01-1"]);
        // One file needs no time in its name, as for tcpdump: the run ends with its time.
        let one = places(by_time(None, 1, "x.pcap").expect("is one"), &[0, 59, 60, 61]);
        assert_eq!(one, ["x.pcap", "x.pcap", "over", "over"]);
        let few = places(by_time(None, 2, "%s").expect("says when"), &[0, 30, 70, 130, 70]);
        assert_eq!(few, ["0", "0", "70", "over", "over"]);
    }

    #[test]
    fn names_that_say_nothing_of_time_are_refused() {
        let told = |base| by_time(None, 0, base).err().expect("refused").to_string();
        assert!(told("x.pcap").starts_with("x.pcap: -G needs a time in the name, such as -w x-"));
        assert!(told("100%%").contains("needs a time"));
        assert!(told("x%Z").contains("needs a time"), "all are in UTC");
        assert!(told("x%J").contains("what % stands for there is not known"));
        assert!(told("-").ends_with("-w needs a name for -G"));
        for (bytes, files) in [(None, 2), (Some(9), 1)] {
            let told = by_time(bytes, files, "x.pcap").err().expect("refused").to_string();
            assert!(told.contains("-G needs a time in the name"), "{told}");
        }
    }

    #[test]
    fn folders_are_those_that_are_there_at_any_time() {
        let folder = |base| by_time(None, 0, base).expect("says when").folder();
        assert_eq!(folder("x%s"), Path::new("."));
        assert_eq!(folder("/a/b/x%s"), Path::new("/a/b"));
        assert_eq!(folder("a/%F/x%s"), Path::new("a"));
        let sized = Rotation { bytes: Some(1), ..Rotation::default() };
        let sized = RotatedFiles::new(sized, "a%F/x").expect("has a name").folder();
        assert_eq!(sized, Path::new("a%F"));
    }
}
