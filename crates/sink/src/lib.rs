//! Rows out: tables for people, on terminals and in Markdown; JSON lines, CSV and TSV for programs.
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

pub mod csv;
pub mod delimited;
pub mod format;
pub mod grid;
pub mod json;
pub mod limits;
pub mod markdown;
pub mod names;
pub mod queue;
pub mod split;
pub mod table;
mod text;
pub mod tsv;
mod writer;

pub use crate::csv::Csv;
pub use format::{FORMATS, Format, Holds, RowOptions};
pub use json::JsonLines;
pub use markdown::Markdown;
pub use names::{Named, Names};
pub use split::Split;
pub use table::Table;
pub use tsv::Tsv;

/// How times are written.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum TimeFormat {
    /// RFC 3339 in UTC, with as many decimals as the nanoseconds need.
    #[default]
    Rfc3339,
    /// Seconds since 1970 with nine decimals.
    Epoch,
    /// Nanoseconds since 1970, a whole number.
    EpochNs,
}

#[cfg(test)]
pub(crate) mod testing;
