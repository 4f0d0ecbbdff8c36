//! Rows out: tables for people, on terminals and in Markdown; JSON lines, CSV, TSV, EVE and
//! InfluxDB's line protocol for programs; IPFIX and NetFlow 9 for collectors; Arrow and Parquet for
//! databases (feature `tables`).
//!
//! Each sink takes the rows of a run through [`weir_engine::rows::Sink`] and writes them to any
//! [`std::io::Write`]. JSON, CSV and TSV are exact: an integer, a time or a duration read back is
//! the one that was written. A table is for reading: it rounds floats and durations to three
//! decimals.
//!
//! | type | JSON | CSV, TSV | table, Markdown |
//! |---|---|---|---|
//! | bool | `true` | `true` | `true` |
//! | int | `42` | `42` | `42` |
//! | float | `0.5`, shortest that reads back the same | as JSON | `0.5`, three decimals |
//! | string | `"text"` | `text` | `text`, control characters escaped |
//! | bytes | `"0aff"` | `0aff` | `0aff` |
//! | ip, mac | `"10.0.0.1"` | `10.0.0.1` | `10.0.0.1` |
//! | time | `"2024-05-01T12:00:00.250Z"`, `1714564800.250000000` or `1714564800250000000` | without quotes | as CSV |
//! | duration | `1.5`: seconds, exact | `1.5` | `1.5s` |
//! | absent | `null` | nothing | `-` |

#![forbid(unsafe_code)]

pub mod alerts;
mod arrow;
pub mod copy;
pub mod csv;
pub mod delimited;
pub mod eve;
pub mod format;
pub mod formats;
pub mod grid;
pub mod influx;
pub mod ipfix;
pub mod json;
pub mod keyed;
pub mod limits;
mod line_writer;
pub mod lines;
pub mod markdown;
pub mod names;
mod options;
pub mod queue;
pub mod schema;
pub mod split;
pub mod table;
mod text;
pub mod tsv;
mod writer;

pub use crate::csv::Csv;
pub use format::{Format, Holds};
pub use formats::FORMATS;
pub use ipfix::Ipfix;
pub use json::JsonLines;
pub use keyed::KeyedRows;
pub use line_writer::{LineWriter, each_line};
pub use markdown::Markdown;
pub use names::{Named, Names};
pub use options::{RowOptions, TimeFormat};
pub use split::Split;
pub use table::Table;
pub use tsv::Tsv;

#[cfg(test)]
pub(crate) mod testing;
