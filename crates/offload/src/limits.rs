//! The bounds of this crate.

/// Slots in which a program looks for a key before the frame goes up.
pub const PROBES: usize = 8;

/// The most slots of a table, of each CPU and half. Further groups go up.
pub const SLOTS_MAX: usize = 1 << 17;

/// The fewest slots of a table, of each CPU and half; where there is no room for them, groups are
/// not made in the kernel.
pub const SLOTS_MIN: usize = 1 << 6;

/// The most bytes of a table, of all CPUs and both halves.
pub const TABLE_BYTES_MAX: usize = 64 << 20;

/// Sums are computed in the kernel where a group may count as many frames before its sum could
/// leave 63 bits: more than a CPU receives in a minute. A frame beyond goes up.
pub const FRAMES_IN_SUM_MIN: u64 = 1 << 31;

/// The most keys of a `scan` whose states the kernel holds. Frames of further ones go up.
pub const STATE_KEYS_MAX: usize = 1 << 17;

/// Sets of interfaces to which a program copies packets, those of few interfaces first. Packets for
/// further sets go up.
pub const SETS_MAX: usize = 32;

/// To how many lengths a program shortens packets, the least ones. Packets that are to become
/// others go up.
pub const LENGTHS_MAX: usize = 4;

/// The least length to which it does: that of the headers before TCP, UDP or ICMP in IPv4.
pub const LENGTH_MIN: u32 = 34;

/// The greatest.
pub const LENGTH_MAX: u32 = 2048;
