//! Bounds of record batches.

/// Rows of a record batch, about: as many as keep its columns in a processor's cache while they are
/// encoded.
pub(crate) const ROWS_MAX: usize = 16_384;

/// Bytes of texts of one column from which on a record batch ends. One batch of rows adds
/// little to them, beside what the 31 bits of an offset count.
pub(crate) const TEXT_BYTES_MAX: usize = 16 << 20;

/// Rows of a row group of Parquet: what a reader skips or reads as a whole, and shares out among
/// cores.
pub(crate) const ROW_GROUP_ROWS: usize = 1 << 17;

/// Bytes of a row group, encoded, which is in memory until it is written.
pub(crate) const ROW_GROUP_BYTES: usize = 128 << 20;
