//! Which file a name leads to.

use std::fs::{File, Metadata};
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::fs::MetadataExt as _;

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

    /// Of a capture that is read, which may be standard input.
    pub(super) fn of_capture(name: &str) -> Option<FileId> {
        let meta = match name {
            "-" => File::from(io::stdin().as_fd().try_clone_to_owned().ok()?).metadata(),
            name => std::fs::metadata(name),
        };
        FileId::of(&meta.ok()?)
    }
}
