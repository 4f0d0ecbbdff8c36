//! Where this crate meets the operating system and C: its only unsafe code.

#[expect(unsafe_code, reason = "calls into libpcap")]
pub(crate) mod libpcap;
#[expect(unsafe_code, reason = "maps files")]
pub(crate) mod map;
