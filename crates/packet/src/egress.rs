//! The [`Egress`] trait: where frames go that a program hands out.
//!
//! Frames leave in batches, each an offset into memory that they share: one frame that goes to
//! several outlets is there once.

use crate::source::LinkType;
use std::fmt;
use std::io;

/// A place that frames go to.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Outlet {
    /// Where packets go that a network function lets through.
    Pass,
    /// The output of this name.
    Named(String),
}

/// As a query names it: `pass`, or the name in quotes.
impl fmt::Display for Outlet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Outlet::Pass => f.write_str("pass"),
            Outlet::Named(name) => write!(f, "{name:?}"),
        }
    }
}

/// A frame on its way out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sent {
    /// The number of its outlet, as given to [`Egress::open`].
    pub outlet: u32,
    /// Its link type.
    pub link: LinkType,
    /// When it was captured, in nanoseconds since 1970.
    pub ts: i64,
    /// Its length on the wire.
    pub len: u32,
    /// Where its bytes start in the memory of the batch, ...
    pub start: u32,
    /// ... and how many of them there are.
    pub caplen: u32,
}

impl Sent {
    /// The bytes of the frame; empty where they reach beyond the memory of the batch.
    #[inline]
    pub fn bytes<'a>(&self, memory: &'a [u8]) -> &'a [u8] {
        let start = self.start as usize;
        memory.get(start..start + self.caplen as usize).unwrap_or(&[])
    }
}

/// Where frames go. Every method is called from one thread, in an order that is the same for any
/// number of workers.
pub trait Egress {
    /// Called once, before any frame, with all outlets of the program: [`Sent::outlet`] counts
    /// them.
    ///
    /// # Errors
    /// When one of them cannot take frames. The error names it.
    fn open(&mut self, outlets: &[Outlet]) -> io::Result<()>;

    /// Whether frames for this outlet are wanted; where not, they are only counted. Asked once,
    /// after [`Egress::open`].
    fn wants(&self, _outlet: &Outlet) -> bool {
        true
    }

    /// Takes frames, those of each outlet in order; their bytes are in `memory`.
    ///
    /// # Errors
    /// When an outlet cannot go on; the error names it. What it took before stays.
    fn send(&mut self, memory: &[u8], frames: &[Sent]) -> io::Result<()>;

    /// Called when windows have closed or the source may have to wait, so that others can see what
    /// was taken.
    ///
    /// # Errors
    /// As for [`Egress::send`].
    fn flush(&mut self) -> io::Result<()>;

    /// Called once, after all frames, also where something failed.
    ///
    /// # Errors
    /// As for [`Egress::send`].
    fn finish(&mut self) -> io::Result<()>;
}
