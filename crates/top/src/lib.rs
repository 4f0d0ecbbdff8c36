//! A live screen in the terminal: what is on the wire now, as rates, tables and losses.
//!
//! The screen is a program like any other: [`Setup`] says what is counted, and gives the texts of
//! queries for it. The run that executes them puts its rows into a [`SharedModel`] by a
//! [`ModelSink`]; the screen copies a [`Snapshot`] of it several times a second, and never stands
//! in the path of packets. Another table or filter is another [`Setup`], which the run changes to
//! as it goes on ([`ScreenRun`]).
//!
//! This crate knows neither captures nor arguments: its user opens the source and runs the
//! programs.

#![forbid(unsafe_code)]

mod app;
mod clean;
mod filter;
mod input;
mod key;
mod library;
pub mod limits;
mod look;
mod measure;
mod model;
mod names;
mod number;
mod packets;
mod queried;
mod query;
mod screen;
mod series;
mod sink;
mod snapshot;
mod state;
mod table;
mod terminal;
#[cfg(test)]
mod testing;
mod typed_keys;
mod view;

pub use clean::clean;
pub use filter::{Fault, check};
pub use key::{Part, RowKey};
pub use look::{Glyphs, Look};
pub use measure::Rates;
pub use model::SharedModel;
pub use packets::{FoundPacket, FoundPackets, PacketsWanted};
pub use queried::{LibraryQuery, QueryRow};
pub use query::{Pace, Setup};
pub use screen::{Screen, ScreenRun};
pub use series::{Point, Series};
pub use sink::ModelSink;
pub use snapshot::{InterfaceRow, Row, ShownOutput, Snapshot};
pub use state::{Phase, RunState};
pub use table::{Column, Data, Table};
pub use terminal::Terminal;
