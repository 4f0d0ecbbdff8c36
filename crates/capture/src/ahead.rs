//! Decompression in a thread of its own, so that it and the reading of what it gave go on at once.
//!
//! The bytes of one read of the decompressor are one piece, and it is passed on at once: nothing
//! waits for a writer that pauses. Pieces are decompressed into the buffers that batches refer to,
//! behind room for the start of a record that the piece before was cut in, so that no piece is
//! copied. A bounded queue keeps the decompressor from running away.

use crate::buffers::{Buffer, Buffers};
use crate::compress::{Compression, Input};
use crate::limits::{AHEAD, HEADROOM, PIECE};
use std::io;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread::{self, JoinHandle};

/// An input that is read in a thread of its own.
///
/// The thread ends once it has passed on the end or an error of the input, or else with its next
/// piece after this is dropped. Nothing waits for that: it may be waiting for a silent pipe.
pub(crate) struct Ahead {
    pieces: Receiver<Piece>,
    /// `None` once its panic was passed on.
    thread: Option<JoinHandle<()>>,
    buffers: Arc<Buffers>,
    /// The rest of the piece taken last.
    pending: Option<Arc<Buffer>>,
    raw_bytes: u64,
    compression: Option<Compression>,
}

/// The result of one read.
struct Piece {
    /// Empty at the end.
    bytes: io::Result<Arc<Buffer>>,
    /// Bytes read from outside until then.
    raw_bytes: u64,
}

impl Ahead {
    /// Starts to read.
    pub(crate) fn start(input: Input) -> io::Result<Ahead> {
        let buffers = Arc::new(Buffers::new(HEADROOM + PIECE));
        let (queue, pieces) = mpsc::sync_channel(AHEAD);
        let (compression, raw_bytes) = (input.compression, input.raw_bytes());
        let for_thread = Arc::clone(&buffers);
        let thread = thread::Builder::new()
            .name("decompress".to_owned())
            .spawn(move || read(input, &for_thread, &queue))?;
        let (thread, pending) = (Some(thread), None);
        Ok(Ahead { pieces, thread, buffers, pending, raw_bytes, compression })
    }

    /// How the input is compressed.
    pub(crate) fn compression(&self) -> Option<Compression> {
        self.compression
    }

    /// Bytes read from outside, compressed, for the pieces taken so far.
    pub(crate) fn raw_bytes(&self) -> u64 {
        self.raw_bytes
    }

    /// Gives a buffer back, to which batches may still refer.
    pub(crate) fn put(&self, buffer: Arc<Buffer>) {
        self.buffers.put(buffer);
    }

    /// A buffer that goes on from `rest` and holds `need` bytes, more than `rest` has; fewer if
    /// the input ended (then `true`) or failed.
    pub(crate) fn refill(&mut self, rest: &[u8], need: usize) -> (Arc<Buffer>, io::Result<bool>) {
        let mut piece = match self.take() {
            Ok(Some(piece)) => piece,
            other => return (self.assembly(rest, need), other.map(|_| true)),
        };
        let bytes = owned(&mut piece);
        if rest.len() + bytes.len() >= need && bytes.prepend(rest) {
            return (piece, Ok(false));
        }
        // A long record, or one that comes in small pieces: it is put together by itself.
        let mut whole = self.assembly(rest, need);
        let bytes = owned(&mut whole);
        let result = loop {
            let n = piece.len().min(need - bytes.len());
            bytes.append(&(*piece).as_ref()[..n]);
            owned(&mut piece).consume(n);
            if piece.len() > 0 {
                self.pending = Some(piece);
            } else {
                self.buffers.put(piece);
            }
            if bytes.len() >= need {
                break Ok(false);
            }
            match self.take() {
                Ok(Some(next)) => piece = next,
                other => break other.map(|_| true),
            }
        };
        (whole, result)
    }

    /// A buffer of at least `need` bytes that begins with `rest`.
    fn assembly(&self, rest: &[u8], need: usize) -> Arc<Buffer> {
        let mut buffer = self.buffers.take(need.max(rest.len()), 0);
        owned(&mut buffer).append(rest);
        buffer
    }

    /// The next piece, waiting for it; `None` at the end.
    fn take(&mut self) -> io::Result<Option<Arc<Buffer>>> {
        if let Some(piece) = self.pending.take() {
            return Ok(Some(piece));
        }
        let Ok(Piece { bytes, raw_bytes }) = self.pieces.recv() else {
            // It ended without a word: a panic, which goes on here as if there were no thread.
            if let Some(Err(panic)) = self.thread.take().map(JoinHandle::join) {
                resume_unwind(panic);
            }
            return Ok(None);
        };
        self.raw_bytes = raw_bytes;
        bytes.map(|b| (b.len() > 0).then_some(b))
    }
}

/// A piece that no batch refers to yet.
fn owned(piece: &mut Arc<Buffer>) -> &mut Buffer {
    Arc::get_mut(piece).expect("what was not handed out has one owner")
}

/// Reads `input` and passes it on, until its end or the receiver's.
fn read(mut input: Input, buffers: &Buffers, queue: &SyncSender<Piece>) {
    loop {
        let mut buffer = buffers.take(HEADROOM + PIECE, HEADROOM);
        let piece = owned(&mut buffer);
        let read = input.read(piece.room());
        let last = !matches!(read, Ok(1..));
        let bytes = match read {
            Ok(n) => {
                piece.advance(n);
                Ok(buffer)
            }
            Err(error) => Err(error),
        };
        let raw_bytes = input.raw_bytes();
        if queue.send(Piece { bytes, raw_bytes }).is_err() || last {
            return;
        }
    }
}
