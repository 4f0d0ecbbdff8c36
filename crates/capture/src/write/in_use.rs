//! The files that a run reads and writes: it writes none of them over.

use super::error::{ReadAs, WriteError};
use super::id::FileId;
use parking_lot::Mutex;
use std::path::Path;
use std::sync::Arc;

/// The plain files that a run reads, and the outputs that it has opened. Each output is compared
/// with them when it is [opened](super::Made::open), by device and inode, so that another name, a
/// link or a symbolic link hides nothing. Clones are the same list.
#[derive(Clone, Default, Debug)]
pub struct FilesInUse(Arc<Mutex<Vec<FileInUse>>>);

/// A file, and its name as it was given.
#[derive(Debug)]
struct FileInUse {
    id: FileId,
    name: String,
    usage: FileUsage,
}

/// The use that a run makes of a file.
#[derive(Clone, Copy, Debug)]
enum FileUsage {
    Read(ReadAs),
    Written,
}

impl FilesInUse {
    /// Notes a file that is read: its name, or `-` for standard input. Pipes and devices, and files
    /// that are not there, are no matter.
    pub fn reads(&self, name: impl AsRef<Path>, what: ReadAs) {
        let path = name.as_ref();
        let Some(id) = FileId::of_read(path) else { return };
        let (name, usage) = (path.display().to_string(), FileUsage::Read(what));
        self.0.lock().push(FileInUse { id, name, usage });
    }

    /// Notes a file that was made as an output.
    pub(super) fn made(&self, name: &str, id: FileId) {
        let usage = FileUsage::Written;
        self.0.lock().push(FileInUse { id, name: name.to_owned(), usage });
    }

    /// Notes an output that was there; an error if the run reads it, or has it as another output.
    pub(super) fn write(&self, name: &str, id: FileId) -> Result<(), WriteError> {
        if let Some(FileInUse { name: other, usage, .. }) =
            self.0.lock().iter().find(|file| file.id == id)
        {
            let (name, other) = (name.to_owned(), other.clone());
            return Err(match *usage {
                FileUsage::Read(what) => WriteError::IsRead { name, what, other },
                FileUsage::Written => WriteError::Same { name, other },
            });
        }
        self.made(name, id);
        Ok(())
    }

    /// Forgets outputs that came to nothing.
    pub(super) fn forget(&self, outputs: &[FileId]) {
        let is_one = |file: &FileInUse| {
            matches!(file.usage, FileUsage::Written) && outputs.contains(&file.id)
        };
        self.0.lock().retain(|file| !is_one(file));
    }

    /// All of them.
    pub(super) fn ids(&self) -> Vec<FileId> {
        self.0.lock().iter().map(|file| file.id).collect()
    }
}
