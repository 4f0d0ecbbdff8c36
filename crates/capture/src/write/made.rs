//! Files that are made, and removed again where nothing comes of it.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

/// Files that were not there before. They are removed again, unless they are kept: what was refused
/// leaves nothing behind.
#[derive(Default, Debug)]
pub struct Made(Vec<PathBuf>);

impl Made {
    /// Opens a file to be written, as it is, or makes it.
    ///
    /// # Errors
    /// Those of the system.
    pub fn open(&mut self, path: &Path) -> io::Result<File> {
        if let Ok(file) = OpenOptions::new().write(true).create_new(true).open(path) {
            self.0.push(path.to_owned());
            return Ok(file);
        }
        // It is there, or can't be made, for a reason that this tells. A name may lead elsewhere,
        // where a file is made that is not known to be new, and is kept.
        OpenOptions::new().write(true).create(true).truncate(false).open(path)
    }

    /// Keeps them.
    pub fn keep(&mut self) {
        self.0.clear();
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        // One that somebody else removed is gone as well.
        self.0.iter().for_each(|path| drop(std::fs::remove_file(path)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_there_stays_and_what_was_kept() {
        let folder = tempfile::tempdir().expect("a folder");
        let place = |name: &str| folder.path().join(name);
        std::fs::write(place("old"), b"old").expect("writes");
        let mut made = Made::default();
        made.open(&place("old")).expect("opens");
        made.open(&place("new")).expect("is made");
        made.open(&place("no/such/folder")).expect_err("can't be made");
        drop(made);
        assert_eq!(std::fs::read(place("old")).expect("stays"), b"old");
        assert!(!place("new").exists());
        let mut made = Made::default();
        made.open(&place("new")).expect("is made");
        made.keep();
        drop(made);
        assert!(place("new").exists());
    }
}
