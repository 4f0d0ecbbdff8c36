//! Rows as record batches of [Apache Arrow](https://arrow.apache.org/docs/format/Columnar.html),
//! and their bytes: the stream of Arrow, and Apache Parquet.
//!
//! | type of Weir | type of Arrow |
//! |---|---|
//! | bool | `Boolean` |
//! | int | `Int64` |
//! | float | `Float64` |
//! | string | `Utf8` |
//! | bytes | `Binary` |
//! | ip | `FixedSizeBinary(16)` of the extension type `weir.ip`, or `Utf8` |
//! | mac | `FixedSizeBinary(6)` of the extension type `weir.mac`, or `Utf8` |
//! | time | `Timestamp(ns, "UTC")` |
//! | duration | `Duration(ns)` |
//! | absent | null |
//!
//! The 16 bytes of an address are in the order of the wire. An IPv4 address is IPv4-mapped (RFC
//! 4291, section 2.5.5.2), as `::ffff:10.0.0.1`, so that one column holds both families and sorts
//! them; an IPv6 address of that block, as no packet should have, is held in the block before it
//! ([`weir_base::address`](../weir_base/address/index.html)).

#![forbid(unsafe_code)]

mod cells;
mod encoding;
mod gathering;
mod limits;
mod schema;

pub use encoding::{Encoding, ParquetFile, Stream, schema_of_file};
pub use gathering::Gathering;
pub use schema::{IP_EXTENSION, MAC_EXTENSION, schema_of};

/// The crates of Apache, to read what is written.
pub use {arrow_array, arrow_ipc, arrow_schema, parquet};
