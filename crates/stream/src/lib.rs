//! Streams of packets in Rust: the stages of Weir's language, with closures among them.
//!
//! A program is put together from stages, and from closures over expressions wherever the language
//! has no words for what is meant. It becomes the same plan as a query. So it runs on as many cores
//! as one says, with the same rows, and it is explained, published and merged as queries are.
//!
//! # A capture
//!
//! ```
//! use std::net::IpAddr;
//! use weir_stream::{StreamError, open, packets};
//!
//! fn main() -> Result<(), StreamError> {
//!     let mut capture = open("../../fixtures/web.pcap")?;
//!     let (talkers, ledger) = packets()
//!         .query("summarize bytes = sum(len) by ip.src | top 3 by bytes")
//!         .run(&mut capture)
//!         .workers(2)
//!         .collect::<(IpAddr, i64)>()?;
//!     talkers.iter().for_each(|(ip, bytes)| println!("{ip}: {bytes} bytes"));
//!     println!("{} packets, {} late", ledger.processed, ledger.late);
//!     Ok(())
//! }
//! ```
//!
//! [`open_all`] reads several captures as one. Packets that come late for their window, rows that
//! did not fit into memory and whatever else is not in the rows is counted in the [`Ledger`].
//!
//! # An interface
//!
//! ```no_run
//! use weir_stream::{StreamError, interface, packets};
//!
//! fn main() -> Result<(), StreamError> {
//!     let mut wire = interface("eth0")?; // takes CAP_NET_RAW
//!     packets()
//!         .query("summarize packets = count(), bytes = sum(len) every 1s")
//!         .query("project ts, packets, bytes")
//!         .run(&mut wire)
//!         .for_each(|(ts, packets, bytes): (jiff::Timestamp, i64, i64)| {
//!             println!("{ts}: {packets} packets, {bytes} bytes");
//!         })?;
//!     Ok(())
//! }
//! ```
//!
//! It runs until the interface is removed, or [`StreamRun::stop`] says so.
//!
//! # Closures
//!
//! [`Stream::filter_by`], [`Stream::extend_by`] and [`Stream::scan_by`] take expressions, and a
//! closure over their values. The types of its arguments are checked against those of the
//! expressions before a packet is read ([`TypedCell`] has the table), and mistakes are drawn under
//! the text that the program stands for. An argument that is an `Option` may be absent.
//! [`function`] and [`aggregate`] give Rust code a name, for any number of calls in any stage.
//!
//! ```
//! use weir_stream::{StreamError, open, packets};
//!
//! fn main() -> Result<(), StreamError> {
//!     // Microseconds since the packet before of each connection, smoothed by one eighth.
//!     let smooth = |(last, gap): (i64, i64), now: i64| {
//!         (now, if last == 0 { 0 } else { gap + (now - last - gap) / 8 })
//!     };
//!     let mut capture = open("../../fixtures/web.pcap")?;
//!     let (bursts, _) = packets()
//!         .filter("tcp")
//!         .scan_by(["last", "gap"], (0, 0), "conn idle 1m", ["int(ts) / 1k"], smooth)
//!         .query("summarize gap = max(gap) by conn | project gap")
//!         .run(&mut capture)
//!         .collect::<(i64,)>()?;
//!     assert!(!bursts.is_empty());
//!     Ok(())
//! }
//! ```
//!
//! A closure takes one to six arguments. It is called row by row, on any thread; it must be a
//! function of its arguments. Where order matters, [`Stream::scan_by`] and `join` name the key by
//! which it does, and packets are spread by that key.
//!
//! # Sources and sinks of one's own
//!
//! A [`Source`] fills batches of frames, which lie in memory that it shares; a [`Sink`] takes rows
//! by column, a batch at a time.
//!
//! ```
//! use std::io;
//! use std::sync::Arc;
//! use weir_stream::{Account, Chunk, FrameBatch, LinkType, Source, SourceError};
//! use weir_stream::{Output, Rows, Sink, StreamError, packets};
//!
//! /// Frames of 60 zeros, one each millisecond.
//! struct Zeros(u64);
//!
//! impl Source for Zeros {
//!     fn fill(&mut self, batch: &mut FrameBatch) -> Result<bool, SourceError> {
//!         let memory: Chunk = Arc::new(vec![0_u8; 60]);
//!         batch.restart(&memory, 0, LinkType::ETHERNET);
//!         while self.0 < 1000 && !batch.is_full() {
//!             let ts = self.0 as i64 * 1_000_000; // nanoseconds since 1970
//!             batch.push(ts, self.0, 0, 60, 60); // at byte 0, captured, and on the wire
//!             self.0 += 1;
//!         }
//!         Ok(!batch.is_empty())
//!     }
//!
//!     fn is_ready(&mut self) -> bool {
//!         true // it never waits
//!     }
//!
//!     fn account(&self) -> Account {
//!         Account { received: self.0, ..Account::default() }
//!     }
//! }
//!
//! /// The sum of a first column of integers.
//! #[derive(Default)]
//! struct Sum(i64);
//!
//! impl Sink for Sum {
//!     fn open(&mut self, _: &[Output]) -> io::Result<()> {
//!         Ok(())
//!     }
//!
//!     fn rows(&mut self, _: usize, rows: &Rows) -> io::Result<()> {
//!         let column = rows.columns[0].word();
//!         self.0 += column[..rows.len].iter().map(|word| *word as i64).sum::<i64>();
//!         Ok(())
//!     }
//!
//!     fn flush(&mut self) -> io::Result<()> {
//!         Ok(())
//!     }
//!
//!     fn finish(&mut self) -> io::Result<()> {
//!         Ok(())
//!     }
//! }
//!
//! let mut sum = Sum::default();
//! packets().query("project len").run(&mut Zeros(0)).to(&mut sum)?;
//! assert_eq!(sum.0, 60_000);
//! # Ok::<(), StreamError>(())
//! ```
//!
//! # Further
//!
//! - [`FromRow`] reads rows as structs; [`StreamRun::to`] hands them, by the batch and by column,
//!   to a [`Sink`] of one's own.
//! - [`Stream::of_query`] makes a query of the library the start of a stream, [`StreamProgram`]
//!   runs several streams over one pass, [`StreamProgram::explain`] shows the plan.
//! - [`StreamProgram::compile`] gives the plan and the functions that it calls, which the crates
//!   below this one take: the engine with all its options, partial results of several probes, the
//!   kernel's level.
//! - The folder `examples` of this crate has the applications of the papers that Weir takes up.

#![forbid(unsafe_code)]

mod cell;
mod closure;
mod error;
mod from_row;
mod function;
mod program;
mod run;
mod stream;

pub use cell::{RowCell, TypedCell};
pub use closure::{Closure, ClosureInput, ClosureInputs, ClosureStep, HasNone, ScanState};
pub use error::StreamError;
pub use from_row::{Cells, ColumnOf, FromRow};
pub use function::{Aggregate, Function, aggregate, function};
pub use program::StreamProgram;
pub use run::StreamRun;
pub use stream::{Stream, packets};
pub use weir_derive::FromRow;
pub use weir_engine::counters::Ledger;
pub use weir_engine::rows::{Output, Rows, Sink};
pub use weir_engine::run::{Options, RunError};
pub use weir_packet::egress::Egress;
pub use weir_packet::source::{Account, Chunk, FrameBatch, LinkType, Source, SourceError};
pub use weir_plan::registered::Functions;
pub use weir_plan::{Program, Type, Value};

/// Opens a capture file, pcap or pcapng, plain, gzip or zstd; `-` is standard input.
///
/// # Errors
/// If it can't be read, or is no capture.
pub fn open(name: &str) -> Result<Box<dyn Source>, SourceError> {
    weir_capture::open(name, &weir_capture::Options::default())
}

/// Opens several captures as one, in the order of their packets' times.
///
/// # Errors
/// As for [`open`].
pub fn open_all(names: &[&str]) -> Result<Box<dyn Source>, SourceError> {
    let names = names.iter().map(|name| (*name).to_owned()).collect();
    weir_capture::open_all(names, &weir_capture::Options::default())
}

/// Captures from an interface, by AF_PACKET; `any` is all of them. It takes the capability
/// `CAP_NET_RAW`. [`weir_capture`] has other ways of capture, and their options.
///
/// # Errors
/// If there is no such interface, or the process may not capture.
#[cfg(target_os = "linux")]
pub fn interface(name: &str) -> Result<Box<dyn Source>, SourceError> {
    weir_capture::live::open_live(&[name.to_owned()], weir_capture::live::LiveOptions::default())
}
