//! The limits of clients.

use std::time::Duration;

/// Bytes of a line.
pub(crate) const LINE_MAX: u64 = 16 << 20;

/// Bytes of the files that come with one request, all together.
pub(crate) const FILES_MAX: u64 = 512 << 20;

/// Bytes of all requests in memory: one with files of [`FILES_MAX`], and some more.
pub(crate) const REQUESTS_MAX: u64 = 640 << 20;

/// Clients at a time.
pub(crate) const CLIENTS_MAX: usize = 64;

/// How long a client may take to ask, and how long it may take to accept the answer.
pub(crate) const CLIENT_PATIENCE: Duration = Duration::from_secs(5);

/// Bytes that a client sends or accepts in a second, at least; one that is as fast may take longer.
pub(crate) const CLIENT_RATE: u64 = 1 << 20;

/// How long a client waits for its answer.
pub(crate) const ANSWER_PATIENCE: Duration = Duration::from_secs(60);

/// How long a request for counts waits for the run, whose workers answer between batches.
pub(crate) const COUNTS_PATIENCE: Duration = Duration::from_secs(10);

/// Bytes of a program's name.
pub(crate) const NAME_MAX: usize = 64;
