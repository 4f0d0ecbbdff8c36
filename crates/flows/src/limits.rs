//! The limits of what a collector remembers, and what it does at each.

/// Exporters of which state is kept, by address, port, protocol and domain. At the limit those are
/// forgotten that sent nothing for [`TIMEOUT_NS`]; if there are none, datagrams of further ones
/// are refused and counted.
pub const SESSIONS_MAX: usize = 4096;

/// Templates of all exporters together. At the limit those are forgotten that were not sent again
/// for [`TIMEOUT_NS`]; if there are none, further ones are refused and counted.
pub const TEMPLATES_MAX: usize = 16_384;

/// Templates of one exporter: one alone must not use up those of all. Further ones are refused and
/// counted.
pub const SESSION_TEMPLATES_MAX: usize = 1024;

/// Fields of a template; one with more is refused and counted.
pub const TEMPLATE_FIELDS_MAX: usize = 512;

/// How long a template holds that is not sent again, and the state of an exporter that is silent
/// (RFC 7011, section 8.4, and RFC 3954, section 9, leave the time to the collector).
pub const TIMEOUT_NS: i64 = 1800 * 1_000_000_000;

/// Bytes of data sets that wait for their templates. At the limit the oldest are given up and
/// counted.
pub const HELD_BYTES_MAX: usize = 1 << 20;

/// How long a data set waits for its template.
pub const HELD_NS: i64 = 300 * 1_000_000_000;

/// Sampling rates of one exporter, by the number of their sampler; further ones are ignored.
pub const SAMPLERS_MAX: usize = 256;

/// Datagrams that overtook each other: a sequence number this far back is late, and one further
/// back is that of an exporter that has started again.
pub const LATE_DATAGRAMS_MAX: u32 = 64;

/// The same of records, of which a datagram has many.
pub const LATE_RECORDS_MAX: u32 = 64 * 64;

/// The largest gap that is believed: numbers further ahead are those of an exporter that has
/// started again with another number, or nobody's. They count as a restart.
pub const GAP_MAX: u32 = 1 << 24;

/// Exporters with counts of their own, by address and domain; those of further ones are counted
/// together.
pub const EXPORTERS_NAMED_MAX: usize = 256;

/// Samples of one sFlow datagram, and records of one sample: no more fit into the largest datagram.
pub const SFLOW_ITEMS_MAX: u32 = 8192;
