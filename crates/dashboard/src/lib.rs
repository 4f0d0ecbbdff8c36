//! The page of `weir serve`.
//!
//! `web/` holds its source: TypeScript, a document and a style sheet. With the feature `build` the
//! build script has npm fetch what `web/package-lock.json` names, and bundles the page into the
//! build folder; `FILES` embeds the result. Nothing of that is in the repository, and without the
//! feature this crate is the text of [`PROGRAMS`] only.
//!
//! This crate knows nothing of HTTP, packets or queries.

#![forbid(unsafe_code)]

/// A file of the page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BuiltFile {
    /// Its name, such as `index.html` or `app.js`.
    pub name: &'static str,
    /// Its type, as HTTP says it.
    pub kind: &'static str,
    /// Its bytes.
    pub bytes: &'static [u8],
}

#[cfg(feature = "build")]
include!(concat!(env!("OUT_DIR"), "/files.rs"));

/// The queries by which the page counts packets: their names and texts. Each has a param
/// `interval`, the length of its windows.
pub const PROGRAMS: [(&str, &str); 2] = [
    ("page-traffic", include_str!("../programs/page-traffic.weir")),
    ("page-flows", include_str!("../programs/page-flows.weir")),
];
