//! Limits of the merge of a job.

/// Bytes of lines that are handed over at once.
pub const LINES_BYTES: usize = 256 << 10;

/// Bytes of messages that wait for room in windows, since their probes are far ahead of others.
pub const WAITING_BYTES: usize = 256 << 20;

/// Bytes of memory that one of them takes beside its own.
pub const WAITING_EACH_BYTES: usize = 64;

/// Names of strangers that are told of; of further ones only records are counted.
pub const STRANGERS_MAX: usize = 1024;

/// Lives of a probe whose heads are known when they come again.
pub const HEADS_MAX: usize = 64;

/// Bytes of the state of a job: what an array of Java has.
pub const STATE_BYTES_MAX: usize = i32::MAX as usize - 16;
