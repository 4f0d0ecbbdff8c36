//! Programs that come and go while a run goes on: `weir run --control` and `weir ctl`.
//!
//! A run listens on a Unix socket. Who may open it may change what runs: that is decided by the
//! permissions of the file, which only its owner has unless told otherwise. A [`message`] asks and
//! one answers. The [`deck`] holds the programs and makes changes, one at a time; meanwhile the
//! [`desk`] lists them. A [`sink`] gives each program's rows to where they go, so that one that
//! can't write takes nothing from the others.

mod deck;
mod desk;
mod message;
mod server;
mod sink;

pub(crate) use deck::{Deck, Entry, MakeOwn, Rules};
pub(crate) use desk::Desk;
pub(crate) use message::{Attached, Counts, Reply, Request, State, Text, read_line, write};
pub(crate) use server::Server;
pub(crate) use sink::{Board, Members, New, To};

use std::path::PathBuf;

/// Where a run listens unless told otherwise.
pub(crate) const SOCKET: &str = "/run/weir.sock";

/// The socket to ask: the one given, or named in `WEIR_SOCKET`, or [`SOCKET`].
pub(crate) fn socket(given: Option<PathBuf>) -> PathBuf {
    let named = || std::env::var_os("WEIR_SOCKET").filter(|name| !name.is_empty());
    given.or_else(|| named().map(PathBuf::from)).unwrap_or_else(|| PathBuf::from(SOCKET))
}
