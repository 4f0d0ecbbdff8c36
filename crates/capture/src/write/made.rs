//! Files and folders that are made, and removed again where nothing comes of it.

use super::folder::Folder;
use super::id::FileId;
use super::in_use::FilesInUse;
use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

/// Files and folders that were not there before. They are removed again, unless they are kept: a
/// run that is refused leaves nothing.
#[derive(Default, Debug)]
pub struct Made {
    files: Vec<(PathBuf, FileId)>,
    /// Folders within others first.
    folders: Vec<PathBuf>,
    /// The files that the run reads and writes, ...
    in_use: FilesInUse,
    /// ... and those among them that were opened here.
    opened: Vec<FileId>,
}

impl Made {
    /// Files of a run that reads and writes these, too: none of them is opened again.
    pub fn among(in_use: &FilesInUse) -> Made {
        let mut made = Made::default();
        made.in_use = in_use.clone();
        made
    }

    /// Opens a file to be written, as it is, or makes it. The call waits for the reader of a pipe.
    ///
    /// # Errors
    /// Those of the system; [`WriteError`](super::WriteError) of a file that the run reads, or that
    /// is another of its outputs.
    pub fn open(&mut self, path: &Path) -> io::Result<File> {
        if let Ok(file) = OpenOptions::new().write(true).create_new(true).open(path) {
            self.note(path.to_owned(), &file);
            return Ok(file);
        }
        // It is there, or can't be made, for a reason that this tells. A name may lead elsewhere,
        // where a file is made that is not known to be new, and is kept.
        let file = OpenOptions::new().write(true).create(true).truncate(false).open(path)?;
        if let Some(id) = FileId::of(&file.metadata()?) {
            self.in_use.write(&path.display().to_string(), id)?;
            self.opened.push(id);
        }
        Ok(file)
    }

    /// Makes a file in a folder.
    ///
    /// # Errors
    /// Those of [`Folder::create_new`].
    pub fn create_new(&mut self, folder: &Folder, name: &str) -> io::Result<File> {
        let file = folder.create_new(name.as_ref())?;
        self.note(folder.path().join(name), &file);
        Ok(file)
    }

    /// Takes in a file that was just made.
    pub(super) fn note(&mut self, path: PathBuf, file: &File) {
        let Some(id) = file.metadata().ok().and_then(|meta| FileId::of(&meta)) else { return };
        self.in_use.made(&path.display().to_string(), id);
        self.opened.push(id);
        self.files.push((path, id));
    }

    /// Makes a folder, and those that it is in, as far as they are not there.
    ///
    /// # Errors
    /// Those of the system.
    pub fn folder(&mut self, path: &Path) -> io::Result<()> {
        let missing = |part: &&Path| !part.as_os_str().is_empty() && !part.exists();
        let missing: Vec<PathBuf> = path.ancestors().take_while(missing).map(Into::into).collect();
        self.folders.splice(0..0, missing);
        std::fs::create_dir_all(path)
    }

    /// Keeps them.
    pub fn keep(&mut self) {
        self.files.clear();
        self.folders.clear();
        self.opened.clear();
    }

    /// The files of another of the same run, too.
    pub(super) fn and(&mut self, mut other: Made) {
        self.opened.append(&mut other.opened);
        self.files.append(&mut other.files);
        self.folders.append(&mut other.folders);
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        self.in_use.forget(&self.opened);
        for (path, made) in &self.files {
            // By now the name, or the content, may be another program's. A program that opened the
            // file meanwhile and has written nothing yet loses what it will write: two runs that
            // are told to make the same file.
            let mine = std::fs::symlink_metadata(path)
                .is_ok_and(|meta| meta.len() == 0 && FileId::of(&meta) == Some(*made));
            if mine {
                // A file that another program removed is gone as well.
                let _ = std::fs::remove_file(path);
            }
        }
        for folder in &self.folders {
            // It stays where another program put a file into it.
            let _ = std::fs::remove_dir(folder);
        }
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

    #[test]
    fn folders_that_are_empty_go() {
        let folder = tempfile::tempdir().expect("a folder");
        let place = |name: &str| folder.path().join(name);
        for (used, left) in [(None, false), (Some("a/theirs"), true)] {
            let mut made = Made::default();
            made.folder(&place("a/b/c")).expect("are made");
            made.folder(&place("a/d")).expect("is made");
            made.folder(&place("a")).expect("is there");
            made.open(&place("a/b/c/mine")).expect("is made");
            used.iter().for_each(|name| std::fs::write(place(name), b"").expect("writes"));
            drop(made);
            assert_eq!(place("a").exists(), left);
            assert!(!place("a/b").exists() && !place("a/d").exists());
        }
        let mut made = Made::default();
        made.folder(&place("a/theirs/e")).expect_err("is a file");
        made.folder(&place("f")).expect("is made");
        made.keep();
        drop(made);
        assert!(place("f").exists() && place("a/theirs").exists());
    }

    #[test]
    fn what_others_put_there_stays() {
        let folder = tempfile::tempdir().expect("a folder");
        let place = |name: &str| folder.path().join(name);
        let mut made = Made::default();
        for name in ["written", "another", "link", "gone", "mine"] {
            made.open(&place(name)).expect("is made");
        }
        std::fs::write(place("written"), b"theirs").expect("writes");
        std::fs::write(place("other"), b"").expect("writes");
        std::fs::rename(place("other"), place("another")).expect("takes its place");
        std::fs::remove_file(place("link")).expect("is there");
        std::os::unix::fs::symlink("mine", place("link")).expect("links");
        std::fs::remove_file(place("gone")).expect("is there");
        drop(made);
        assert_eq!(std::fs::read(place("written")).expect("stays"), b"theirs");
        assert!(place("another").exists());
        assert!(place("link").symlink_metadata().is_ok());
        assert!(!place("mine").exists());
    }
}
