//! Streams of packets in Rust: operators over closures, put together at compile time.
//!
//! This is the Rust API. It has operators of queries under their Rust names, over types and
//! closures instead of columns and expressions, and runs on one thread. It does not run plans: of
//! the engine it takes the clock, the tables and their memory, not the operators.
//!
//! ```
//! use weir_stream::{Packets, Stream};
//! # use weir_model::Frames;
//! # let mut source = Frames::sample();
//!
//! #[derive(Clone, Copy)]
//! struct Meter { packets: u64, bytes: u64, first: i64, last: i64 }
//!
//! let flows = Packets::new(&mut source)
//!     .key_by(|p| p.flow())
//!     .reduce(
//!         |p| Meter { packets: 1, bytes: p.len(), first: p.ts(), last: p.ts() },
//!         |a, b| {
//!             a.packets += b.packets;
//!             a.bytes += b.bytes;
//!             a.first = a.first.min(b.first);
//!             a.last = a.last.max(b.last);
//!         },
//!     )
//!     .collect()?;
//! for (flow, meter) in flows.iter().map(|g| (g.key, g.value)) {
//!     println!("{} -> {}: {} packets", flow.src(), flow.dst(), meter.packets);
//! }
//! # assert_eq!(flows.len(), 2);
//! # Ok::<(), weir_packet::source::SourceError>(())
//! ```
//!
//! A stream hands on its items batch by batch, and after each batch a watermark: no later item will
//! be older, but for those that come late. Event time is that of packets, as in queries: an item is
//! late for a window if the window had closed when the item's packet came, however the packets were
//! cut into batches.
//!
//! A keyed operator sees each batch twice: first the keys of all items are made and looked up, then
//! each item meets the value of its key ([`Passes`]). Nothing is allocated per packet or batch; a
//! table grows without stopping the stream.

#![forbid(unsafe_code)]

mod batches;
mod chain;
mod flow;
mod grouping;
mod key;
mod keyed;
pub mod limits;
mod packet;
mod reduce;
mod sliding;
mod states;
mod stream;
mod table;
mod time;
mod windows;

pub use batches::{Batches, Passes};
pub use chain::{Filter, FlatMap, Map};
pub use flow::Flow;
pub use key::Key;
pub use keyed::Keyed;
pub use packet::{Packet, Packets};
pub use reduce::{Group, Reduce, Tumbling};
pub use sliding::{Sliding, SlidingReduce};
pub use states::MapWithState;
pub use stream::Stream;
pub use time::Time;
pub use weir_engine::table::HashKey;

#[cfg(test)]
mod tests;
