//! Names of folders and files.

use jiff::Timestamp;
use jiff::civil::{Date, Time};
use jiff::tz::TimeZone;
use std::fmt;
use std::path::PathBuf;

const NS_PER_HOUR: i64 = 3_600_000_000_000;
const S_PER_HOUR: i64 = 3600;

/// The name that Hive gives to a part whose value is null.
const NULL: &str = "__HIVE_DEFAULT_PARTITION__";

/// The ending of names of files.
const ENDING: &str = ".parquet";

/// The hour that a row is stored under.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum StoredHour {
    /// That of rows without a time.
    Unknown,
    /// The hours of UTC since 1970 began.
    Of(i64),
}

impl StoredHour {
    /// The hour of a time in nanoseconds since 1970.
    pub fn of(time: i64) -> StoredHour {
        StoredHour::Of(time.div_euclid(NS_PER_HOUR))
    }

    /// Its folders, below that of an output: `date=2024-05-01/hour=13`.
    pub fn folder(self) -> PathBuf {
        let StoredHour::Of(hour) = self else {
            return [format!("date={NULL}"), format!("hour={NULL}")].iter().collect();
        };
        let start = Timestamp::from_second(hour * S_PER_HOUR).expect("64 bits of nanoseconds fit");
        let start = start.to_zoned(TimeZone::UTC);
        [format!("date={}", start.date()), format!("hour={:02}", start.hour())].iter().collect()
    }

    /// The hour that two folders are of; `None` for folders that were not made so.
    pub fn parse(date: &str, hour: &str) -> Option<StoredHour> {
        let (date, hour) = (date.strip_prefix("date=")?, hour.strip_prefix("hour=")?);
        if (date, hour) == (NULL, NULL) {
            return Some(StoredHour::Unknown);
        }
        let date: Date = date.parse().ok()?;
        let time = Time::new(hour.parse().ok()?, 0, 0, 0).ok()?;
        let start = date.to_datetime(time).to_zoned(TimeZone::UTC).ok()?;
        let found = StoredHour::Of(start.timestamp().as_second().div_euclid(S_PER_HOUR));
        // One folder, one name.
        (found.folder().file_name()?.to_str()? == format!("hour={hour}")).then_some(found)
    }
}

/// The name of a file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct FileName {
    /// The least and the greatest time in it, in nanoseconds since 1970; of rows without a time 0.
    pub first: i64,
    /// The greatest time in it.
    pub last: i64,
    /// A hash by which no two files have the same name.
    pub hash: u128,
}

impl FileName {
    /// Reads the name of a file; `None` for a file that was not stored so.
    pub fn parse(name: &str) -> Option<FileName> {
        let parts = name.strip_suffix(ENDING)?;
        let (times, hash) = parts.rsplit_once('-')?;
        // Times before 1970 begin with a hyphen themselves.
        let middle = times.char_indices().skip(1).find(|&(_, c)| c == '-')?.0;
        let (first, last) = (&times[..middle], &times[middle + 1..]);
        let found = FileName {
            first: first.parse().ok()?,
            last: last.parse().ok()?,
            hash: u128::from_str_radix(hash, 16).ok()?,
        };
        (found.to_string() == name).then_some(found)
    }
}

impl fmt::Display for FileName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}-{:032x}{ENDING}", self.first, self.last, self.hash)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hours_are_folders_and_come_back() {
        let folder = |time: i64| StoredHour::of(time).folder().display().to_string();
        assert_eq!(folder(0), "date=1970-01-01/hour=00");
        assert_eq!(folder(-1), "date=1969-12-31/hour=23");
        assert_eq!(folder(1_714_568_399_999_999_999), "date=2024-05-01/hour=12");
        assert_eq!(folder(1_714_568_400_000_000_000), "date=2024-05-01/hour=13");
        let edges = [i64::MIN, i64::MIN + 1, -1, 0, 1, i64::MAX - 1, i64::MAX];
        for hour in edges.map(StoredHour::of).into_iter().chain([StoredHour::Unknown]) {
            let path = hour.folder().display().to_string();
            let (date, name) = path.split_once('/').expect("two folders");
            assert_eq!(StoredHour::parse(date, name), Some(hour), "{path}");
        }
        for (date, hour) in [
            ("date=2024-05-01", "hour=24"),
            ("date=2024-05-01", "hour=1"),
            ("date=2024-02-30", "hour=01"),
            ("2024-05-01", "hour=01"),
            ("date=2024-05-01", "hour=-1"),
        ] {
            assert_eq!(StoredHour::parse(date, hour), None, "{date} {hour}");
        }
    }

    #[test]
    fn names_of_files_come_back() {
        for (first, last) in [(0, 0), (-5, -3), (-5, 7), (i64::MIN, i64::MAX)] {
            for hash in [0, u128::MAX] {
                let name = FileName { first, last, hash };
                assert_eq!(FileName::parse(&name.to_string()), Some(name), "{name}");
            }
        }
        for other in ["a.parquet", "1-2-3.parquet", "1-2.parquet", "-.parquet", "1-2-x", ""] {
            assert_eq!(FileName::parse(other), None, "{other}");
        }
    }
}
