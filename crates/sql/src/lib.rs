//! SQL over packets and rows, by [Apache DataFusion](https://datafusion.apache.org).
//!
//! | table | rows |
//! |---|---|
//! | `'x.pcap'` | the packets of a capture; a column for each field of the catalogue |
//! | `weir('packets \| …', 'x.pcap')` | what a query of Weir makes of them |
//! | `'archive/flows.flows'`, `'x.parquet'` | stored rows |
//! | `'x.csv'` | a table of one's own |
//!
//! A capture is decoded as a query of Weir has it: the fields that a statement reads become its
//! `project`, conditions its `where`, and `LIMIT` ends its run. `EXPLAIN` shows that query.

#![forbid(unsafe_code)]

#[cfg(feature = "link")]
mod answer;
#[cfg(feature = "link")]
mod capture;
#[cfg(feature = "link")]
mod condition;
#[cfg(feature = "link")]
mod functions;
#[cfg(feature = "link")]
mod limits;
#[cfg(feature = "link")]
mod names;
mod options;
#[cfg(feature = "link")]
mod rows_of;
#[cfg(feature = "link")]
mod scan;
#[cfg(feature = "link")]
mod session;
#[cfg(all(test, feature = "link"))]
mod tests;
#[cfg(feature = "link")]
mod urls;

pub use options::{SqlError, SqlOptions, SqlRun};
#[cfg(feature = "link")]
pub use session::{SqlSession, SqlStatement};

/// The message of a Weir that was built without SQL.
pub const NOT_LINKED: &str = "this weir was built without SQL: `cargo install --path crates/weir \
                              --features sql` builds one with it";

/// Whether this Weir answers SQL.
pub const fn is_linked() -> bool {
    cfg!(feature = "link")
}
