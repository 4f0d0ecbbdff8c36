//! The archive: rows that are kept on disk, as files of Apache Parquet by day and hour.
//!
//! ```text
//! FOLDER/OUTPUT/date=2024-05-01/hour=13/FIRST-LAST-HASH.parquet
//! ```
//!
//! The names of folders are those of Hive, which DuckDB, Spark, Polars and ClickHouse take for
//! columns. Days and hours are of UTC, by the first column of times of a row; rows without such a
//! time are in [`StoredHour::Unknown`]. The name of a file says the first and the last time in it,
//! in nanoseconds since 1970, and a hash.
//!
//! A file is there as a whole or not at all: it is written under a name that ends in `.part`,
//! synchronised, and renamed. A run over the same captures makes the same files, so that it can be
//! repeated after it was killed, and no row is there twice.

#![forbid(unsafe_code)]

#[cfg(feature = "link")]
mod inventory;
mod layout;
#[cfg(feature = "link")]
mod limits;
mod options;
#[cfg(feature = "link")]
mod store;
#[cfg(all(test, feature = "link"))]
mod tests;

#[cfg(feature = "link")]
pub use inventory::{Expiry, Inventory, StoredFile};
pub use layout::{FileName, StoredHour};
pub use options::StoreOptions;
#[cfg(feature = "link")]
pub use store::Store;

use std::io;
use std::path::Path;
use weir_engine::rows::Sink;

/// The message of a Weir that was built without Parquet.
pub const NOT_LINKED: &str = "this weir was built without Parquet: `cargo install --path \
                              crates/weir --features tables` builds one with it";

/// Whether this Weir can store rows.
pub const fn is_linked() -> bool {
    cfg!(feature = "link")
}

/// A sink that stores rows below a folder, which exists.
///
/// # Errors
/// Where this Weir was built without Parquet.
pub fn store(folder: &Path, options: StoreOptions) -> io::Result<Box<dyn Sink>> {
    #[cfg(feature = "link")]
    return Ok(Box::new(Store::new(folder, options)));
    #[cfg(not(feature = "link"))]
    {
        let (_, _) = (folder, options);
        Err(io::Error::new(io::ErrorKind::Unsupported, NOT_LINKED))
    }
}
