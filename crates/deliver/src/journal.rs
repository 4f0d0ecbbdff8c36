//! Alerts that wait for a target, in files that outlast this process.

use crate::alert::Alert;
use crate::clock;
use crate::limits::JOURNAL_BYTES_MAX;
use sha2::{Digest as _, Sha256};
use std::fmt::Write as _;
use std::io;
use std::path::Path;
use std::sync::Arc;
use weir_base::spool::{Spool, Spooled};

/// The files of a target. A record is `ID ROW`.
#[derive(Debug)]
pub(crate) struct Journal {
    spool: Spool,
    /// Why they are not written any more.
    failed: Option<String>,
}

impl Journal {
    /// Opens the files of a target in a folder, and reads the alerts that still wait, in the order
    /// in which they came. `identity` tells the target from all others.
    ///
    /// # Errors
    /// If they can't be opened or read, or another run has them.
    pub(crate) fn open(folder: &Path, identity: &str) -> io::Result<(Journal, Vec<Arc<Alert>>)> {
        let mut name = "weir-alerts-".to_owned();
        for byte in &Sha256::digest(identity.as_bytes())[..8] {
            let _ = write!(name, "{byte:02x}");
        }
        let mut journal =
            Journal { spool: Spool::open(folder, &name, JOURNAL_BYTES_MAX)?, failed: None };
        let records = journal.spool.all()?;
        let alert = |record: &Vec<u8>| {
            let (id, row) = str::from_utf8(record).ok()?.split_once(' ')?;
            Alert::parse(row, id.to_owned(), clock::now()).map(Arc::new)
        };
        let alerts: Vec<Arc<Alert>> = records.iter().filter_map(alert).collect();
        if alerts.len() < records.len() {
            // The first record has to be that of the first alert that waits.
            journal.spool.remove(records.len())?;
            alerts.iter().for_each(|alert| journal.add(alert));
        }
        Ok((journal, alerts))
    }

    /// An alert came.
    pub(crate) fn add(&mut self, alert: &Alert) {
        if self.failed.is_some() {
            return;
        }
        match self.spool.push(format!("{} {}", alert.id, alert.json).as_bytes()) {
            Ok(Spooled::Kept) => {}
            Ok(Spooled::Full(None)) => self.failed = Some("there are too many".to_owned()),
            Ok(Spooled::Full(Some(e))) | Err(e) => self.failed = Some(e.to_string()),
        }
    }

    /// The first alert does not wait any more.
    pub(crate) fn remove_first(&mut self) {
        if self.failed.is_none() {
            self.failed = self.spool.remove(1).err().map(|e| e.to_string());
        }
    }

    /// Why nothing is written any more, if so.
    pub(crate) fn failed(&self) -> Option<&str> {
        self.failed.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alert::tests::{alert, row};
    use crate::limits::{ALERT_BYTES_MAX, QUEUE_BYTES_MAX};
    use weir_base::spool::SPOOL_FILE_BYTES;

    fn numbered(n: usize) -> Arc<Alert> {
        Arc::new(Alert { id: format!("run-{n}"), ..alert("start", "high", "x") })
    }

    fn open(folder: &Path) -> (Journal, Vec<String>) {
        let (journal, before) = Journal::open(folder, "a").expect("opens");
        (journal, before.iter().map(|alert| alert.id.clone()).collect())
    }

    #[test]
    fn alerts_that_wait_are_there_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let (mut journal, before) = open(folder.path());
        assert!(before.is_empty());
        let all: Vec<_> = [9, 10, 11, 2].map(numbered).into();
        all.iter().for_each(|alert| journal.add(alert));
        journal.remove_first();
        let refused = Journal::open(folder.path(), "a").expect_err("it is taken");
        assert!(refused.to_string().contains("another process"), "{refused}");
        assert!(Journal::open(folder.path(), "b").expect("another target").1.is_empty());
        drop(journal);
        for _ in 0..3 {
            assert_eq!(open(folder.path()).1, ["run-10", "run-11", "run-2"]);
        }
        let (mut journal, _) = open(folder.path());
        (0..3).for_each(|_| journal.remove_first());
        drop(journal);
        assert!(open(folder.path()).1.is_empty());
    }

    #[test]
    fn all_that_may_wait_in_memory_finds_room() {
        // A file is given back when all of it is done with.
        let longest = QUEUE_BYTES_MAX as u64 + SPOOL_FILE_BYTES + ALERT_BYTES_MAX as u64;
        assert!(longest < JOURNAL_BYTES_MAX);
        let folder = tempfile::tempdir().expect("a folder");
        let (mut journal, _) = open(folder.path());
        let big = Alert { json: "x".repeat(200 << 10), ..alert("start", "high", "x") };
        for _ in 0..500 {
            journal.add(&big);
            journal.remove_first();
        }
        assert_eq!(journal.failed(), None);
        (0..500).for_each(|_| journal.add(&big));
        assert_eq!(journal.failed(), Some("there are too many"));
    }

    #[test]
    fn records_that_are_no_alerts_are_passed_over() {
        let folder = tempfile::tempdir().expect("a folder");
        let (mut journal, _) = open(folder.path());
        let row = row("start", "high", "x");
        for record in [&b"\0"[..], b"x y", format!("run-1 {row}").as_bytes(), b"\xff \xff"] {
            journal.spool.push(record).expect("writes");
        }
        drop(journal);
        let (mut journal, before) = open(folder.path());
        assert_eq!(before, ["run-1"]);
        journal.remove_first();
        drop(journal);
        assert!(open(folder.path()).1.is_empty());
    }
}
