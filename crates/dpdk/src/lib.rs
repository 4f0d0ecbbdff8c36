//! Live capture by DPDK (dpdk.org): frames come from devices that this process drives itself,
//! without the kernel, and are read where they lie.
//!
//! [`open_dpdk`] takes devices as DPDK names them, cards by their PCI addresses and virtual devices
//! by driver and number, and gives a source over all of them. The feature `link` links DPDK's
//! libraries; without it [`open_dpdk`] says that they are not there, and [`is_linked`] is false.
//!
//! *Memory.* Each port has a pool of buffers in one piece of memory. The device takes buffers to
//! fill and hands them out; a batch refers to them where they are, and when it is let go they go
//! back. Frames that are in several pieces, or in memory of the device's own, are copied. The rings
//! of the device always have their buffers, however many batches are held: when those that
//! batches may hold are all in use, frames wait in the rings, and are then lost and counted there.
//!
//! *Sending.* Frames are copied into buffers of the device that they leave by: one that is captured
//! from, or another. [`Senders`] are opened together with the capture, or alone
//! ([`open_senders`]), for DPDK has to know its devices when it is started.
//!
//! *Time.* The frames of a batch get the system's time at which they were taken, which never runs
//! backwards within a source; or the device's, where that is asked for and can be had.
//!
//! *Waiting.* DPDK wakes no program. A device that fell quiet is asked again and again for
//! some microseconds, then about every tenth of a millisecond; or without a pause, if asked for.

#![deny(unsafe_code)]

#[cfg(any(feature = "link", test))]
mod arguments;
#[cfg(any(feature = "link", test))]
#[cfg_attr(not(feature = "link"), expect(dead_code, reason = "what tests look at"))]
mod clock;
#[cfg(any(feature = "link", test))]
mod copies;
#[cfg(any(feature = "link", test))]
mod counts;
#[cfg(any(feature = "link", test))]
#[cfg_attr(not(feature = "link"), expect(dead_code, reason = "what tests look at"))]
mod device;
mod error;
pub mod limits;
mod link;
#[cfg(feature = "link")]
pub mod machine;
mod mode;
#[cfg(feature = "link")]
mod open;
mod opened;
mod options;
mod senders;
#[cfg(feature = "link")]
mod sending;
mod shares;
#[cfg(feature = "link")]
mod source;
#[cfg(feature = "link")]
#[expect(unsafe_code, reason = "calls C; says what makes it sound")]
mod sys;

pub use error::{DpdkError, DriverError, NameError, Said, StartHint, TimesError};
pub use link::{in_its_thread, is_linked, open_dpdk, open_senders};
pub use mode::{Mode, Pages};
pub use opened::Opened;
pub use options::{DpdkOptions, Report};
pub use senders::Senders;
pub use shares::{receives_from, sends_to};
