//! The named maxima of this crate.

/// Windows that may be open at once. Items of a further one are left out, and counted.
pub const WINDOWS_MAX: usize = 4096;

/// Closed windows whose memory is kept for those to come.
pub const SPARE_WINDOWS: usize = 4;
