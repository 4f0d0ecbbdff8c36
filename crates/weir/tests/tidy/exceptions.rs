//! The exceptions from the rules of [`crate::house`] that are left. The lists only shrink.

/// Files that import each other in a circle.
pub(crate) const CIRCLES: &[&str] = &[
    "packet pcapng.rs",
    "packet pcapng/run.rs",
    "packet pcapng/write.rs",
    "plan capture.rs",
    "plan ends.rs",
    "plan join.rs",
    "plan physical.rs",
    "plan physical/check.rs",
    "plan physical/check/stage.rs",
    "plan physical/json.rs",
    "plan physical/json/form.rs",
    "plan physical/json/wire.rs",
    "plan print.rs",
    "plan print/ends.rs",
    "plan print/levels.rs",
    "plan print/placed.rs",
    "plan print/rows.rs",
    "plan rows.rs",
    "plan stage.rs",
    "plan window.rs",
];
