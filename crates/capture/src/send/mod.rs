//! Frames onto wires: interfaces, TUN and TAP devices, tunnels to other hosts.
//!
//! A `Wire` takes the frames of a batch that are for it, makes of each what its kind carries (see
//! `carry`), and gives them to the system many at a time. Frames that it does not take are counted
//! by [`Refusal`](weir_packet::egress::Refusal), and the run goes on: a queue that is full is
//! waited for a little; an interface that is down, or gone, is *away* until it is back, which is
//! looked for once a batch.
//!
//! Devices that are not the kernel's, those of DPDK, send by a [`Transmit`] that another crate
//! makes.
//!
//! The meaning of a name ([`place`]) is the same anywhere; wires are those of Linux, and are
//! refused elsewhere.

#[cfg(target_os = "linux")]
mod attempt;
#[cfg(target_os = "linux")]
pub(crate) mod carry;
#[cfg(target_os = "linux")]
mod dpdk;
#[cfg(not(target_os = "linux"))]
mod elsewhere;
mod error;
#[cfg(target_os = "linux")]
mod interface;
pub mod place;
mod transmit;
#[cfg(target_os = "linux")]
mod tun_tap;
#[cfg(target_os = "linux")]
mod tunnel;
#[cfg(target_os = "linux")]
mod wire;
#[cfg(target_os = "linux")]
mod xdp;

#[cfg(not(target_os = "linux"))]
pub(crate) use elsewhere::{DEVICES, Wire};
pub use error::{Remedy, SendError};
pub use transmit::{OpenTransmit, Transmit};
#[cfg(target_os = "linux")]
pub(crate) use wire::{DEVICES, Wire};
