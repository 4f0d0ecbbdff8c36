//! Rows as record batches: a stream of Apache Arrow, and a file of Apache Parquet.
//!
//! Both are columns, as `weir-arrow` makes them of rows, where the feature `tables` has built it. A
//! stream can be read as it comes, record batch by record batch. Of a Parquet file nothing can be
//! read before its end is there, so its rows count as written then.

#[cfg(feature = "tables")]
mod batches;
mod titles;
#[cfg(not(feature = "tables"))]
mod unbuilt;

#[cfg(feature = "tables")]
use batches::{check, parquet, stream};
#[cfg(not(feature = "tables"))]
use unbuilt::{check, parquet, stream};

use crate::format::{Format, Holds};
use titles::{ARROW_TITLE, PARQUET_TITLE};

/// A stream of Arrow.
pub(crate) static STREAM: Format = Format {
    name: "arrow",
    title: ARROW_TITLE,
    about: "A stream of Apache Arrow (IPC), in binary",
    ending: "arrows",
    holds: Holds::OneOutput,
    is_text: false,
    check,
    make: stream,
};

/// A Parquet file.
pub(crate) static PARQUET: Format = Format {
    name: "parquet",
    title: PARQUET_TITLE,
    about: "A file of Apache Parquet, in binary; it can be read once the run has ended",
    ending: "parquet",
    holds: Holds::OneOutput,
    is_text: false,
    check,
    make: parquet,
};
