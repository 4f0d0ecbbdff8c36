//! The named maxima of a plan, and the defaults where a query names none.

/// Groups that one `summarize` holds at once unless the query says `max`.
pub const GROUPS_MAX: u64 = 64 << 20;

/// Keys that one `scan` holds at once unless the query says `max`.
pub const SCAN_KEYS_MAX: u64 = 16 << 20;

/// Keys that one `distinct` holds at once unless the query says `max`.
pub const DISTINCT_KEYS_MAX: u64 = 16 << 20;

/// Flows that one `hello` holds at once unless the query says `max`.
pub const HELLO_FLOWS_MAX: u64 = 1 << 18;

/// How long a `hello` keeps a flow that no packet touches, unless the query says `idle`.
pub const HELLO_IDLE_NS: i64 = 10_000_000_000;

/// Keys of one window that a `top … per` keeps rows of unless the query says `max`.
pub const TOP_KEYS_MAX: u64 = 1 << 20;
/// Sessions that one `summarize … session` or `every N rows` holds open at once unless the query
/// says `max`.
pub const SESSIONS_MAX: u64 = SCAN_KEYS_MAX;

/// How long `every N rows` waits for the next row of a key, unless the query says `idle`.
pub const ROWS_IDLE_NS: i64 = SCAN_IDLE_NS;

/// How often sessions that have ended come out, in nanoseconds of event time: every second, ...
pub const SESSION_TICK_NS: i64 = 1_000_000_000;

/// ...or every gap where that is shorter, but no more often than this.
pub const SESSION_TICK_MIN_NS: i64 = 1_000_000;

/// How long a `scan` keeps a key that no row touches, unless the query says `idle`.
pub const SCAN_IDLE_NS: i64 = 3_600_000_000_000;

/// Keys of one `alert` that fire at once unless the query says `max`.
pub const ALERT_KEYS_MAX: u64 = 1 << 16;

/// Series of a metric, unless the query says another number, ...
pub const METRIC_SERIES: u64 = 100;

/// ... which is at most this.
pub const METRIC_SERIES_MAX: u64 = 1_000;

/// Bytes of what a metric says of itself.
pub const METRIC_HELP_MAX: usize = 1_024;

/// How long a key of an `alert` goes on firing without a row unless the query says `hold`.
pub const ALERT_HOLD_NS: i64 = 300_000_000_000;

/// How often keys of an `alert` that have ended come out, in nanoseconds: every second, ...
pub const ALERT_TICK_NS: i64 = 1_000_000_000;

/// ...or as often as they may end where that is sooner, but no more often than this.
pub const ALERT_TICK_MIN_NS: i64 = 1_000_000;

/// Keys of an alert that are reported by themselves in [`ALERT_STORM_NS`], unless the query says
/// otherwise; further ones are reported together.
pub const ALERT_STORM_KEYS: u64 = 100;

/// The time in which keys that begin are counted, in nanoseconds: a minute.
pub const ALERT_STORM_NS: i64 = 60_000_000_000;

/// Bytes of what an `alert` says, before values are put in.
pub const ALERT_TEXT_MAX: usize = 1024;

/// Rows that each side of a `join` holds at once unless the query says `max`.
pub const JOIN_ROWS_MAX: u64 = 4 << 20;

/// Pairs that each left row of a `join` adds to those that may be made in one tick, which are as
/// many as a side may hold rows. A left row beyond is left out, and counted as evicted: else the
/// rows of one key, all of one time, would make as many pairs as the square of their number.
pub const JOIN_PAIRS_EACH: u64 = 32;

/// Pipelines that one `union` takes besides its input.
pub const UNION_OTHERS_MAX: usize = 63;

/// Key words (64 bits each) of one key: eight words hold an IPv6 5-tuple and three more fields.
pub const KEY_WORDS_MAX: usize = 16;

/// States of one `scan`.
pub const SCAN_STATES_MAX: usize = 32;

/// Values that one `frequent` shows.
pub const FREQUENT_MAX: u64 = 100;

/// Panes of one sliding window: its length by the greatest common divisor of that and the distance
/// of windows.
pub const PANES_MAX: i64 = 2048;

/// Windows (panes, where windows slide) that the lateness of one `summarize` keeps open.
pub const LATENESS_WINDOWS_MAX: i64 = 2048;

/// Windows in a row, without any row, that one `summarize` fills in: an hour of seconds. Further
/// ones are left out, and counted. Several probes, whose clocks move in other steps than that of
/// one run, fill in the same.
pub const FILL_MAX: u64 = 3600;

/// Rows that one `summarize` fills in after a window that had some, up to the next: else keys, by
/// the millions, times windows, by the thousands, would be rows of one moment. The last window
/// filled in may exceed it. Others are left out, or come out with just the rows of their own, and
/// are counted.
pub const FILL_ROWS_MAX: u64 = 16 << 20;

/// Pipelines in one program.
pub const PIPELINES_MAX: usize = 64;

/// Pipelines of all programs that run together.
pub const JOINED_PIPELINES_MAX: usize = 512;

/// Bits of an integer field that takes too few values to spread packets by it alone.
pub const NARROW_BITS: u8 = 10;

/// Stages in one pipeline.
pub const STAGES_MAX: usize = 64;

/// Columns in one schema.
pub const COLUMNS_MAX: usize = 256;

/// Levels of an expression: 1 for a constant, a field or a column. As many as keep a walk over an
/// expression that calls itself far from the end of a thread's stack.
pub const DEPTH_MAX: usize = 256;

/// Arms of one `branch`.
pub const ARMS_MAX: usize = 64;

/// Things that are done with a packet in one arm.
pub const ACTS_MAX: usize = 64;

/// Times that one frame is trimmed or tagged on its way to an output.
pub const EDITS_MAX: usize = 16;

/// Outputs that packets go to, of one program.
pub const OUTPUTS_MAX: usize = 256;

/// Bytes of a physical plan as JSON, sets and tables with it.
pub const PLAN_BYTES_MAX: usize = 32 << 20;

/// Stages whose counts are remembered when programs change, those of programs that are gone, too;
/// what goes through further ones is added up.
pub const STAGES_REMEMBERED_MAX: usize = 4096;

/// Packets that one ClientHello may take to complete, and Initial packets of one QUIC connection
/// that a `hello` decrypts; with more, it is given up. 16 KiB of the smallest segments that every
/// host must take (RFC 9293) are half as many.
pub const HELLO_PACKETS_MAX: u32 = 64;

/// Bytes of one text that a function makes; a longer one is absent, and counted as undefined.
pub const TEXT_MAX: usize = 4096;
