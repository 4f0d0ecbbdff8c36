//! How a run serves its page, which follows from its options.

use crate::args::RunOptions;
use std::path::PathBuf;
use std::sync::Arc;
use weir_control::Passes;
use weir_plan::Program;

/// How a run serves its page.
#[derive(Clone)]
pub(crate) struct Serving {
    /// Whether a change of programs reads the packets again from their beginning.
    pub(crate) reads_again: bool,
    /// The passes over them.
    pub(super) passes: Arc<Passes>,
    /// The folder below which captures are that clients may ask queries of.
    pub(super) captures: Option<PathBuf>,
}

impl Serving {
    /// How a run of this program serves its page. Packets can be read again from plain files only,
    /// and where nothing else comes of them than rows for the page.
    pub(crate) fn new(
        program: &Program,
        options: &RunOptions,
        captures: Option<PathBuf>,
    ) -> Serving {
        let reads_again = options.live.interface.is_empty()
            && !options.read.iter().any(|name| is_stream(name))
            && !options.rows.go_to_files()
            && options.write.to.is_none()
            && options.later.allow_write.is_empty()
            && options.later.allow_send.is_empty()
            && options.lookback.ring.unwrap_or(0) == 0
            && program.outlets().is_empty()
            && program.captures().next().is_none();
        Serving { reads_again, passes: Arc::default(), captures }
    }
}

/// Whether reading may wait for a writer: standard input, or a named pipe.
pub(super) fn is_stream(capture: &str) -> bool {
    capture == "-" || std::fs::metadata(capture).is_ok_and(|m| !m.is_file())
}
