//! Rows that came together: as they are, until a client wants them as text.

use parking_lot::Mutex;
use std::sync::Arc;
use weir_engine::rows::Rows;
use weir_sink::LineWriter;

/// Rows of an output that have numbers. All clients share them, and the first that wants them
/// writes their lines.
pub(crate) struct RowBlock {
    /// The number of its first row.
    pub(crate) first: u64,
    pub(crate) rows: u64,
    /// Bytes of memory that it takes, as far as is known.
    pub(crate) bytes: usize,
    pub(crate) body: Arc<BlockBody>,
}

/// The rows of a block.
pub(crate) struct BlockBody {
    writer: Arc<LineWriter>,
    content: Mutex<Content>,
}

enum Content {
    Cells(Box<Rows>),
    /// A line of JSON for each row.
    Lines(Arc<[u8]>),
}

/// The lines of a block.
pub(crate) struct Written {
    pub(crate) lines: Arc<[u8]>,
    /// Whether they were written just now.
    pub(crate) is_new: bool,
}

impl RowBlock {
    pub(crate) fn new(first: u64, rows: Rows, writer: &Arc<LineWriter>) -> RowBlock {
        RowBlock {
            first,
            rows: rows.len as u64,
            bytes: rows.memory(),
            body: Arc::new(BlockBody {
                writer: Arc::clone(writer),
                content: Mutex::new(Content::Cells(Box::new(rows))),
            }),
        }
    }

    /// The number of the row after its last.
    pub(crate) fn end(&self) -> u64 {
        self.first + self.rows
    }
}

impl BlockBody {
    pub(crate) fn written(&self) -> Written {
        let mut content = self.content.lock();
        match &*content {
            Content::Lines(lines) => Written { lines: Arc::clone(lines), is_new: false },
            Content::Cells(rows) => {
                let lines: Arc<[u8]> = self.writer.lines(rows).into();
                *content = Content::Lines(Arc::clone(&lines));
                Written { lines, is_new: true }
            }
        }
    }
}

/// Lines without the first so many.
pub(crate) fn without(lines: Arc<[u8]>, seen: u64) -> Arc<[u8]> {
    match seen {
        0 => lines,
        _ => {
            let rest = lines.split_inclusive(|b| *b == b'\n').skip(seen as usize);
            rest.flatten().copied().collect()
        }
    }
}
