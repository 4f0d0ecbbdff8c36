//! Programs that come and go while a run goes on: what `weir ctl` asks and a run answers.
//!
//! A run listens on a Unix socket ([`Server`]). The permissions of the socket's file decide who may
//! change the run: its owner alone, unless the owner changes them. A client sends a [`Request`] and
//! gets a [`Reply`] ([`ask()`]). The [`Registry`] holds the programs and changes them, one change
//! at a time; meanwhile the [`Overview`] lists them. [`ProgramSinks`] hands the rows of each
//! program to its sink, so that a sink that fails takes no rows from the other programs. Where
//! captures can be read again, [`Passes`] do so for each change.
//!
//! This crate knows neither packets nor the terminal: the run says which programs it allows, makes
//! their sinks, and reports its counts.

#![forbid(unsafe_code)]

mod cleanup;
mod client;
mod connection;
mod limits;
mod message;
mod overview;
mod passes;
mod pending;
mod program;
mod registry;
mod rows;
mod serve;
mod server;
mod sinks;
mod site;
mod suppressions;

pub use cleanup::Cleanup;
pub use client::{AskError, SOCKET, ask, socket};
pub use connection::{Connection, Listener};
#[cfg(any(test, fuzzing))]
pub use message::fuzz_request;
pub use message::{
    Attached, Captured, Counts, Deliveries, ProgramState, QueryText, Reply, Request,
    SuppressionState, UnreadCount,
};
pub use overview::{AskReport, Overview, Report, ShownProgram};
pub use passes::{ChangeBy, Passes};
pub use pending::{PendingChanges, ProgramSink};
pub use program::RunningProgram;
pub use registry::{Allows, MakeSink, NewSink, Registry, Rules};
pub use serve::{Bounds, Service, Taker, serve};
pub use server::{Answers, Server, SocketError};
pub use sinks::{ProgramSinks, RowTarget};
pub use site::SiteParams;
pub use suppressions::Suppressions;
