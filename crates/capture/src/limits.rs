//! The named maxima of this crate.

/// Bytes of a buffer that a stream is read into; it stays within the second-level cache between
/// being filled and being read. A longer record gets a longer buffer of its own.
pub const STREAM_BUFFER: usize = 512 << 10;

/// Bytes of a mapped file whose pages are asked for at once.
pub const POPULATE: usize = 4 << 20;

/// How far ahead of the reader they are at least.
pub const POPULATE_AHEAD: usize = 1 << 20;

/// How far behind the reader they are let go: farther than batches on their way reach.
pub const RELEASE_BEHIND: usize = 64 << 20;

/// Stream buffers kept for use again; what more are in flight at once are freed and allocated anew.
pub const BUFFERS_KEPT: usize = 64;

/// Bytes decompressed at once. It is a block of zstd, so that a damaged block takes none of what
/// stood before it along.
pub const PIECE: usize = 128 << 10;

/// Room before a piece for the start of a record that the piece before was cut in. A longer start
/// is put together with its record by itself.
pub const HEADROOM: usize = 64 << 10;

/// Decompressed pieces that wait to be read at most.
pub const AHEAD: usize = 8;

/// Compressed bytes read at once.
pub const COMPRESSED_BUFFER: usize = 128 << 10;

/// Instructions of a capture filter.
pub const FILTER_INSTRUCTIONS_MAX: usize = 1 << 20;

/// Bytes of frames that wait to be written to one file.
pub const WRITE_BUFFER: usize = 64 << 10;
