//! The named maxima of the language. The limits of a plan are in [`weir_plan::limits`].

/// Longest query text, in bytes.
pub const TEXT_MAX: usize = 1 << 20;

/// Nodes of one expression once lets are expanded and matches are lowered; keeps aliases of
/// aliases from growing without bound.
pub const NODES_MAX: usize = 10_000;

/// Members of all sets and patterns of one query, those of a let counted wherever it is used. Plain
/// constants of a set cost nothing of [`NODES_MAX`].
pub const MEMBERS_MAX: usize = 1 << 18;

/// Entries of one file that a query names.
pub const ENTRIES_MAX: usize = 1 << 20;

/// Regular expressions of a query: each may take a MiB, once for each worker.
pub const PATTERNS_MAX: usize = 64;

/// Bytes of one cell of a table: as many as a text that a function makes may have.
pub const CELL_MAX: usize = 4096;

/// Nesting of brackets, calls, matches and prefix operators in the text of one expression or
/// pattern. With lets put in place and choices worked out, [`weir_plan::limits::DEPTH_MAX`] holds.
pub const NESTING_MAX: usize = 64;

/// Terms of one sum or other computation; those of `and` and `or` are not counted.
pub const TERMS_MAX: usize = 64;

/// Cases of one `match`.
pub const CASES_MAX: usize = 64;

/// Words (64 bits each) that the values of one key take; the one word more that a key may have says
/// which of them are there, or which group a counted value belongs to.
pub const KEY_VALUE_WORDS_MAX: usize = weir_plan::limits::KEY_WORDS_MAX - 1;

/// Diagnostics reported of one query; the rest are dropped, warnings first.
pub const DIAGNOSTICS_MAX: usize = 100;

/// Lines of all lists of alerts that are not reported.
pub const SUPPRESSIONS_MAX: usize = 1 << 17;

/// Conditions in one of these lines.
pub const SUPPRESSED_IF_MAX: usize = 16;

/// Networks in a MaxMind database.
pub const NETWORKS_MAX: usize = 1 << 24;

/// Mistakes of a query that are mended one after the other, for its author to copy.
pub const MENDED_MAX: usize = 8;

/// Words on each side of a mistake that a remedy may write anew.
pub const MENDED_TOKENS: usize = 6;

/// Mistakes of one text that are looked at for one that can be mended.
pub const MISTAKES_MENDED: usize = 4;
