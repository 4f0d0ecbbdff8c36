//! The files that rows go to.

use crate::output::{Fresh, Taken};
use std::collections::VecDeque;
use std::path::PathBuf;
use weir_capture::write::Folder;

/// The files of rows.
pub(super) enum RowFiles {
    /// Rows go elsewhere.
    None,
    /// Each output has its own.
    Open(Vec<Fresh>),
    /// Each program has its own.
    PerProgram(ProgramFiles),
    /// They are made below this folder as rows come.
    Stored(PathBuf),
}

impl RowFiles {
    /// The files that are there already, and may get no rows.
    pub(super) fn opened(&self) -> &[Fresh] {
        if let RowFiles::Open(files) = self { files } else { &[] }
    }
}

/// Files of rows that each program makes for itself.
pub(super) struct ProgramFiles {
    /// Where those of programs that come later are made.
    pub(super) folder: Folder,
    /// The files of the programs that the run begins with.
    pub(super) first: VecDeque<Vec<Fresh>>,
    /// Names of files that were written.
    pub(super) taken: Taken,
}
