//! How SQL is answered, and why it is not.

use std::fmt;
use std::io;
use weir_base::address::AddressForm;
use weir_engine::counters::Ledger;

/// How statements are answered.
#[derive(Clone, Debug)]
pub struct SqlOptions {
    /// The form that addresses of captures have.
    pub addresses: AddressForm,
    /// Threads that decode packets, for each table of packets, and that compute.
    pub workers: usize,
    /// Bytes of memory for what a statement keeps, beyond which sorts and groups go to disk; none
    /// is without a limit.
    pub memory: Option<usize>,
    /// Whether a terminal shows the rows: characters that it would obey are escaped.
    pub is_shown: bool,
    /// The text of a query of the library, if there is one of this name.
    pub library: fn(&str) -> Option<String>,
}

impl Default for SqlOptions {
    fn default() -> SqlOptions {
        SqlOptions {
            addresses: AddressForm::Text,
            workers: 1,
            memory: None,
            is_shown: false,
            library: |_| None,
        }
    }
}

/// A run that a statement needed.
#[derive(Clone, Debug)]
pub struct SqlRun {
    /// The captures that it read.
    pub captures: String,
    /// The counts of their packets by their fate.
    pub ledger: Ledger,
    /// Why not all of a capture could be read; the rows are of the packets before.
    pub broken: Option<String>,
}

/// Why a statement has no answer, or not all of it.
#[derive(Debug)]
#[non_exhaustive]
pub enum SqlError {
    /// The statement is wrong, or a table can't be read: the reason.
    Statement(String),
    /// Rows could not be handed on.
    Rows(io::Error),
    /// Ctrl-C came.
    Interrupted,
}

impl fmt::Display for SqlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SqlError::Statement(why) => f.write_str(why),
            SqlError::Rows(e) => e.fmt(f),
            SqlError::Interrupted => f.write_str("interrupted"),
        }
    }
}

impl std::error::Error for SqlError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            SqlError::Rows(e) => Some(e),
            SqlError::Statement(_) | SqlError::Interrupted => None,
        }
    }
}
