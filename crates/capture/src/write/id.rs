//! Which file a name leads to.

use std::fs::{File, Metadata};
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// Which file it is, whatever it is called.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct FileId {
    device: u64,
    inode: u64,
}

impl FileId {
    /// Standard output.
    pub(super) const STDOUT: FileId = FileId { device: u64::MAX, inode: u64::MAX };

    /// Of a plain file; devices and pipes may be written to by several names.
    pub(super) fn of(meta: &Metadata) -> Option<FileId> {
        meta.is_file().then(|| FileId { device: meta.dev(), inode: meta.ino() })
    }

    /// Of a file that is read, which may be standard input.
    pub(super) fn of_read(path: &Path) -> Option<FileId> {
        let meta = match path.to_str() {
            Some("-") => File::from(io::stdin().as_fd().try_clone_to_owned().ok()?).metadata(),
            _ => std::fs::metadata(path),
        };
        FileId::of(&meta.ok()?)
    }
}
