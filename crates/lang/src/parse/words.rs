//! The words of the language.

/// Words that are never names.
pub(super) const RESERVED: &[&str] =
    &["param", "let", "and", "or", "not", "in", "if", "match", "by", "every", "where", "_"];

/// Stages that this version has.
pub(crate) const STAGES: &[&str] = &[
    "where",
    "extend",
    "project",
    "project-away",
    "rename",
    "summarize",
    "scan",
    "analyze",
    "top",
    "limit",
    "distinct",
    "deduplicate",
    "sample",
    "each",
    "capture",
    "alert",
    "metric",
    "hello",
    "join",
    "union",
    "print",
    "branch",
    "pass",
    "drop",
    "forward",
    "broadcast",
    "steer",
    "mirror",
    "trim",
    "tag",
    "anonymize",
];

/// Stages of the design that are still to come.
pub(super) const UNSUPPORTED: &[&str] = &["store", "publish"];

/// Words that go on with a stage, and so are no names of pipelines.
pub(super) const CLAUSES: &[&str] = &[
    "max", "idle", "asc", "desc", "per", "over", "lateness", "fill", "within", "default", "when",
    "else", "next", "before", "after", "severity", "key", "hold", "repeat", "storm", "of", "help",
];

/// Stages that do something with packets; they stand in arms, too.
pub(super) const ACTS: &[&str] =
    &["pass", "drop", "forward", "broadcast", "steer", "mirror", "trim", "tag", "anonymize"];
