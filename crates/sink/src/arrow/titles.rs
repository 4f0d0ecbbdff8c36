//! Names in sentences.

/// The name of the stream.
pub(super) const ARROW_TITLE: &str = "Arrow";

/// The name of the file.
pub(super) const PARQUET_TITLE: &str = "Parquet";
