//! The limits of what a collector remembers, and what it does at each.

/// Sessions of which state is kept, by the address and port that datagrams come from, exporter,
/// protocol and domain. At the limit those are forgotten that sent nothing for [`TIMEOUT_NS`]. If
/// there are none, a host with less than an equal share gets the place of the session that was
/// silent longest of the host with most; another host replaces one of its own. If it has none,
/// its datagrams are refused. Both are counted.
pub const SESSIONS_MAX: usize = 4096;

/// Sessions of the datagrams of one address: a host that makes up domains, ports or agents must not
/// use up those of all. At the limit the one that was silent longest is forgotten and counted.
pub const SENDER_SESSIONS_MAX: usize = 512;

/// Templates of all exporters together. At the limit those are forgotten that were not sent again
/// for [`TIMEOUT_NS`]. If there are none, a host with less than an equal share gets the place of a
/// session of the host with most, which is forgotten and counted; further templates of other hosts
/// are refused and counted.
pub const TEMPLATES_MAX: usize = 16_384;

/// Templates of the datagrams of one address. Further ones are refused and counted.
pub const SENDER_TEMPLATES_MAX: usize = 4096;

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

/// The same of the datagrams of one address; further ones are given up and counted.
pub const HELD_SENDER_BYTES_MAX: usize = HELD_BYTES_MAX / 2;

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

/// The same of those whose datagrams one address sends.
pub const SENDER_NAMED_MAX: usize = 64;

/// Flows whose running totals are remembered: some 300 bytes each. At the limit those of the host
/// with most that came least lately are forgotten and counted; the next total of such a flow counts
/// in full.
pub const TOTALS_MAX: usize = 65_536;

/// The same of the datagrams of one address.
pub const SENDER_TOTALS_MAX: usize = TOTALS_MAX / 4;

/// Samples of one sFlow datagram, and records of one sample: no more fit into the largest datagram.
pub const SFLOW_ITEMS_MAX: u32 = 8192;
