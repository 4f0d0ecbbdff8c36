//! Packet functions whose decisions the kernel makes: which arm of a `branch` takes a frame, and
//! what is done with it.
//!
//! The program asks all pipelines first, and notes on the stack what they do: how often the frame
//! is dropped, and of each outlet whether it gets the frame. Only where none wants to see the
//! frame, and the kernel has a [route](Routes) to these outlets, that is done. An outlet takes
//! frames up to a length, and a VLAN tag besides, that the process keeps in shared memory, 0 while
//! it is away: longer frames go up, and the process does with them what it does with such frames.

mod acting;
mod arms;
mod deed;
mod routes;
mod shorten;
mod write;

pub(crate) use acting::Acting;
pub(crate) use arms::{SAME, TWICE};
pub(crate) use routes::Routes;
pub(crate) use write::{ActAll, ActEnds};
