//! Bounds of clients, their requests and their streams of rows.

use std::time::Duration;

/// Bytes of the head of a request: its first line and its headers.
pub(crate) const HEAD_MAX: u64 = 16 << 10;

/// Headers of a request.
pub(crate) const HEADERS_MAX: usize = 64;

/// Bytes of the body of a request.
pub(crate) const BODY_MAX: u64 = 16 << 20;

/// Bytes of a body with a row: what is read of it, as any JSON, takes twenty times that.
pub(crate) const ROW_BODY_MAX: u64 = 1 << 20;

/// Bytes of all requests in memory.
pub(crate) const REQUESTS_MAX: u64 = 64 << 20;

/// Clients at a time.
pub(crate) const CLIENTS_MAX: usize = 128;

/// Requests that are answered in a second, of those for what anybody may see and, besides, of the
/// others.
pub(crate) const REQUESTS_PER_SECOND: u32 = 100;

/// How long a client may take to ask, and how long it may take to accept the answer.
pub(crate) const CLIENT_PATIENCE: Duration = Duration::from_secs(5);

/// Bytes that a client sends or accepts in a second, at least (1 Mbit/s); one that is as fast may
/// take longer: captures go both ways, and may go by networks that are slow.
pub(crate) const CLIENT_RATE: u64 = 125_000;

/// Bytes of an answer that is large, ...
pub(crate) const LARGE_ANSWER: usize = 1 << 20;

/// ... and how many such answers may be on their way: a client that takes one slowly keeps it in
/// memory.
pub(crate) const LARGE_ANSWERS_MAX: usize = 8;

/// Clients that get rows at a time; the others are for requests.
pub(crate) const STREAMS_MAX: usize = 64;

/// How nice threads are that answer clients (setpriority(2)): beside a thread of usual priority,
/// one has a seventieth of its time.
pub(crate) const NICE: i32 = 19;

/// Bytes of rows in a second that all clients get together. Beyond that their threads would take
/// from packets what the processors and the memory have: each gets its share, and is told what it
/// did not get.
pub(crate) const STREAMS_BYTES_PER_SECOND: f64 = 32e6;

/// How long a client of rows is left alone after it got some.
pub(crate) const STREAM_PACES: std::ops::RangeInclusive<Duration> =
    Duration::from_millis(20)..=Duration::from_secs(2);

/// How long a client of rows may take to accept those that were sent.
pub(crate) const STREAM_PATIENCE: Duration = Duration::from_secs(30);

/// Bytes of the rows of a program that are kept for clients.
pub(crate) const PROGRAM_HISTORY_MAX: usize = 16 << 20;

/// Of these, bytes that an output keeps however many others of its program have.
pub(crate) const OUTPUT_HISTORY_MIN: usize = PROGRAM_HISTORY_MAX / 8;

/// Bytes of all rows that are kept.
pub(crate) const HISTORY_BYTES_MAX: usize = 64 << 20;

/// Bytes of the rows that a client gets at once, but for the last of them.
pub(crate) const HISTORY_PART_MAX: usize = 256 << 10;

/// Bytes of the rows of an output that nobody reads. As JSON they are about as many as are kept of
/// a program.
pub(crate) const UNREAD_BYTES_MAX: usize = 8 << 20;

/// Bytes of the latest rows of an output that has more: they stay in the cache of a processor, so
/// that copying them takes little from the packets. A page shows fewer.
pub(crate) const LATEST_BYTES_MAX: usize = 1 << 20;

/// Bytes of a batch that is used again.
pub(crate) const SPARE_BYTES_MAX: usize = LATEST_BYTES_MAX / 8;

/// Programs that one client follows.
pub(crate) const FOLLOWED_MAX: usize = 64;

/// How long a client of kept rows is left alone after it got some.
pub(crate) const FOLLOW_PACE: Duration = Duration::from_millis(100);

/// How long there are no rows before a look whether the client is still there.
pub(crate) const LOOK: Duration = Duration::from_secs(1);

/// After how many such looks a client gets a sign that the connection lasts.
pub(crate) const LOOKS_PER_SIGN: u32 = 15;

/// How long a run that has ended waits for clients to take its last rows.
pub(crate) const LEAVING: Duration = Duration::from_secs(1);

/// Bytes of a token, at least and at most.
pub(crate) const TOKEN_BYTES: std::ops::RangeInclusive<usize> = 16..=4096;
