//! Query text to a plan, or diagnostics.
//!
//! | stage | in | out |
//! |---|---|---|
//! | `lex` | text | tokens and comments |
//! | `parse` | tokens | a syntax tree |
//! | `check`, `lower` | a tree | a typed [`weir_plan::Program`] |
//! | `format` | a tree and comments | text in the canonical layout |
//! | [`render`](fn@render) | diagnostics | a drawing for a person |
//! | [`settings`](fn@settings) | a file of a site | values of params |
//!
//! Each of them goes on after a mistake, so that one run reports several. This is the only crate
//! that knows where in a text something stands. The language itself is described in
//! `docs/language.md`.

#![deny(unsafe_code)]

mod alert_times;
mod check;
mod compile;
pub mod diagnostic;
mod excerpt;
mod files;
mod foreign;
mod format;
#[cfg(any(test, fuzzing))]
#[path = "tests/fuzz.rs"]
mod fuzz;
mod header;
mod import;
mod lex;
pub mod limits;
mod lower;
mod mend;
mod names;
mod parse;
mod query;
#[cfg(test)]
#[path = "tests/remedies.rs"]
mod remedies;
mod render;
mod settings;
mod suggest;
mod suppressions;
mod tree;
mod words;

pub use compile::{Compiled, compile, format};
pub use diagnostic::{Code, Diagnostic, Note, Severity, Span};
pub use files::Files;
#[cfg(any(test, fuzzing))]
pub use files::fuzz_file;
#[cfg(any(test, fuzzing))]
pub use fuzz::fuzz_query;
pub use header::{Header, ParamInfo, all_params, header, params};
pub use mend::mended;
pub use query::{Library, Options, Query, ReadingRules};
pub use render::render;
#[cfg(any(test, fuzzing))]
pub use settings::fuzz_settings;
pub use settings::{Setting, param_fault, settings};
pub use suggest::closest;
#[cfg(any(test, fuzzing))]
pub use suppressions::fuzz_suppressions;
pub use suppressions::{BadSuppression, suppression, suppressions};
pub use words::{LanguageWord, WordKind, is_near_stage, stages, words};
