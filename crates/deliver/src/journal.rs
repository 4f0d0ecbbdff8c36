//! Alerts that wait for a target, in files that outlast this process: a line `ID ROW` for each that
//! came, and a line `ID` for each that does not wait any more. There are two files. One is empty
//! except while the other is written anew, so that no moment is without a whole list.

use crate::alert::Alert;
use crate::clock;
use crate::limits::{ALERT_BYTES_MAX, JOURNAL_BYTES_MAX, LOCK_EVERY, LOCK_PATIENCE};
use rustix::fs::{FlockOperation, OFlags, flock};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::sync::Arc;
use std::thread;

/// A link in a folder that others may write to could lead to any file.
const NO_LINK: i32 = OFlags::NOFOLLOW.bits().cast_signed();

/// The files of a target.
#[derive(Debug)]
pub(crate) struct Journal {
    files: [File; 2],
    /// The file that is written to, and how long it is.
    active: usize,
    bytes: u64,
    /// Why it is not written any more.
    failed: Option<String>,
}

impl Journal {
    /// Opens the files of a target in a folder, and reads the alerts that still wait, in the order
    /// in which they came. `identity` tells the target from all others.
    ///
    /// # Errors
    /// If they can't be opened or read, or another run has them.
    pub(crate) fn open(folder: &Path, identity: &str) -> io::Result<(Journal, Vec<Arc<Alert>>)> {
        let mut name = String::new();
        for byte in &Sha256::digest(identity.as_bytes())[..8] {
            let _ = write!(name, "{byte:02x}");
        }
        let open = |ending: &str| {
            let path = folder.join(format!("weir-alerts-{name}.{ending}"));
            let mut options = OpenOptions::new();
            options.read(true).append(true).create(true).mode(0o600).custom_flags(NO_LINK);
            let named = |e: io::Error| io::Error::other(format!("{}: {e}", path.display()));
            let file = options.open(&path).map_err(named)?;
            let meta = file.metadata().map_err(named)?;
            // Somebody else may have put it there.
            if !meta.is_file() || meta.mode() & 0o077 != 0 {
                let why = "it is no plain file that this user alone may use (chmod 0600)";
                return Err(named(io::Error::other(why)));
            }
            Ok(file)
        };
        let files = [open("a")?, open("b")?];
        if !lock(&files[0]) {
            let why = format!("{}: another run keeps alerts for this receiver", folder.display());
            return Err(io::Error::other(why));
        }
        let mut waiting = BTreeMap::new();
        for file in &files {
            read(file, &mut waiting)?;
        }
        // By the place where each was found: the order in which they came.
        let mut alerts: Vec<(usize, Arc<Alert>)> = waiting.into_values().flatten().collect();
        alerts.sort_by_key(|(place, _)| *place);
        let alerts: Vec<_> = alerts.into_iter().map(|(_, alert)| alert).collect();
        let mut journal = Journal { files, active: 0, bytes: 0, failed: None };
        // Whichever was the active one, all of it goes to the other one first.
        let lens = [journal.files[0].metadata()?.len(), journal.files[1].metadata()?.len()];
        journal.active = usize::from(lens[1] > lens[0]);
        journal.rewrite(alerts.iter())?;
        Ok((journal, alerts))
    }

    /// An alert came. `waiting` are those that wait already.
    pub(crate) fn add<'a>(&mut self, alert: &Alert, waiting: impl Iterator<Item = &'a Arc<Alert>>) {
        if self.failed.is_some() {
            return;
        }
        let line = line(alert);
        let mut written = Ok(());
        if self.bytes + line.len() as u64 > JOURNAL_BYTES_MAX {
            written = self.rewrite(waiting);
        }
        let written = written.and_then(|()| self.append(line.as_bytes()));
        self.note(written);
    }

    /// An alert does not wait any more; `is_last` if none does.
    pub(crate) fn remove(&mut self, alert: &Alert, is_last: bool) {
        if self.failed.is_some() {
            return;
        }
        let written = match is_last {
            true => self.files[self.active].set_len(0).map(|()| self.bytes = 0),
            false => self.append(format!("{}\n", alert.id).as_bytes()),
        };
        self.note(written);
    }

    /// Why nothing is written any more, if so.
    pub(crate) fn failed(&self) -> Option<&str> {
        self.failed.as_deref()
    }

    fn note(&mut self, written: io::Result<()>) {
        if let Err(e) = written {
            self.failed = Some(e.to_string());
        }
    }

    fn append(&mut self, line: &[u8]) -> io::Result<()> {
        self.files[self.active].write_all(line)?;
        self.bytes += line.len() as u64;
        Ok(())
    }

    /// Writes all that waits into the other file, and empties this one.
    fn rewrite<'a>(&mut self, waiting: impl Iterator<Item = &'a Arc<Alert>>) -> io::Result<()> {
        let (old, new) = (self.active, 1 - self.active);
        // What stands there was read, or is of an attempt that failed.
        self.files[new].set_len(0)?;
        let mut bytes = String::new();
        waiting.for_each(|alert| bytes += &line(alert));
        self.files[new].write_all(bytes.as_bytes())?;
        self.files[new].sync_data()?;
        self.files[old].set_len(0)?;
        (self.active, self.bytes) = (new, bytes.len() as u64);
        Ok(())
    }
}

/// Locks a file against other runs; whether none has it. The process of a run that was killed just
/// now needs a moment to end.
fn lock(file: &File) -> bool {
    let by = clock::now() + LOCK_PATIENCE;
    while flock(file, FlockOperation::NonBlockingLockExclusive).is_err() {
        if clock::now() >= by {
            return false;
        }
        thread::park_timeout(LOCK_EVERY);
    }
    true
}

fn line(alert: &Alert) -> String {
    format!("{} {}\n", alert.id, alert.json)
}

/// By the id of an alert its place and itself, or nothing if it does not wait any more.
type Waiting = BTreeMap<String, Option<(usize, Arc<Alert>)>>;

/// Reads a file. A line that was cut, as when a machine stopped, is passed over.
fn read(mut file: &File, waiting: &mut Waiting) -> io::Result<()> {
    file.rewind()?;
    // What is beyond is of no run of this program.
    let mut from = BufReader::new(file.take(2 * JOURNAL_BYTES_MAX));
    let mut line = Vec::new();
    loop {
        line.clear();
        let n = from.by_ref().take(ALERT_BYTES_MAX as u64 + 100).read_until(b'\n', &mut line)?;
        if n == 0 {
            return Ok(());
        }
        let Some(text) = str::from_utf8(&line).ok().and_then(|text| text.strip_suffix('\n')) else {
            continue;
        };
        match text.split_once(' ') {
            None => drop(waiting.insert(text.to_owned(), None)),
            Some((id, row)) => {
                let place = waiting.len();
                if let Some(alert) = Alert::parse(row, id.to_owned(), clock::now()) {
                    waiting.entry(id.to_owned()).or_insert(Some((place, Arc::new(alert))));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alert::tests::alert;
    use std::fs;

    fn numbered(n: usize) -> Arc<Alert> {
        Arc::new(Alert { id: format!("run-{n}"), ..alert("start", "high", "x") })
    }

    fn ids(alerts: &[Arc<Alert>]) -> Vec<&str> {
        alerts.iter().map(|a| a.id.as_str()).collect()
    }

    #[test]
    fn what_waits_is_there_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let (mut journal, before) = Journal::open(folder.path(), "a").expect("opens");
        assert!(before.is_empty());
        let all: Vec<_> = [9, 10, 11, 2].map(numbered).into();
        all.iter().for_each(|alert| journal.add(alert, [].iter()));
        journal.remove(&all[1], false);
        let refused = Journal::open(folder.path(), "a").expect_err("it is taken");
        assert!(refused.to_string().contains("another run"), "{refused}");
        assert!(Journal::open(folder.path(), "b").expect("another target").1.is_empty());
        drop(journal);
        for _ in 0..3 {
            let (journal, before) = Journal::open(folder.path(), "a").expect("opens");
            assert_eq!(ids(&before), ["run-9", "run-11", "run-2"]);
            drop(journal);
        }
        let (mut journal, _) = Journal::open(folder.path(), "a").expect("opens");
        journal.remove(&all[3], true);
        drop(journal);
        assert!(Journal::open(folder.path(), "a").expect("opens").1.is_empty());
    }

    #[test]
    fn files_stay_within_their_bound() {
        let folder = tempfile::tempdir().expect("a folder");
        let (mut journal, _) = Journal::open(folder.path(), "a").expect("opens");
        let big = Alert { json: "x".repeat(200 << 10), ..alert("start", "high", "x") };
        let kept = numbered(1);
        journal.add(&kept, [].iter());
        for _ in 0..500 {
            journal.add(&big, [Arc::clone(&kept)].iter());
        }
        assert!(journal.bytes <= JOURNAL_BYTES_MAX && journal.failed().is_none());
        drop(journal);
        let (_, before) = Journal::open(folder.path(), "a").expect("opens");
        assert_eq!(ids(&before), ["run-1"]);
    }

    #[test]
    fn bytes_that_are_no_alerts_are_passed_over() {
        let folder = tempfile::tempdir().expect("a folder");
        drop(Journal::open(folder.path(), "a").expect("opens"));
        let files = fs::read_dir(folder.path()).expect("a folder");
        for file in files {
            let path = file.expect("a file").path();
            let row = crate::alert::tests::row("start", "high", "x");
            let bytes = format!("\0\n\nx y\nrun-1 {row}\nrun-2 {row}\nrun-1\nrun-3 {row}");
            fs::write(path, [bytes.as_bytes(), b"\xff\xff"].concat()).expect("writes");
        }
        let (_, before) = Journal::open(folder.path(), "a").expect("opens");
        assert_eq!(ids(&before), ["run-2"]);
    }
}
