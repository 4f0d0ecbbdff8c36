//! Limits of probe streams.

/// Bytes of a message in a stream. A producer begins a new message for further groups long before;
/// a group alone may be larger.
pub const STREAM_MESSAGE_MAX: usize = 256 << 20;

/// Bytes of the head of a stream.
pub const STREAM_HEAD_MAX: usize = 64 << 10;

/// Bytes of messages of a stream that wait because its probe is ahead of others. A message is taken
/// in any case where none waits.
pub const STREAM_AHEAD_BYTES: usize = 64 << 20;

/// Bytes of messages of all streams that wait, but for one message of each.
pub const STREAMS_AHEAD_BYTES: usize = 1 << 30;

/// Bytes of the name of a probe.
pub const PROBE_NAME_MAX: usize = 255;

/// Streams that are read at once.
pub const STREAMS_MAX: usize = 1024;
