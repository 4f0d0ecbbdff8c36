//! The [`Egress`] trait: where frames go that a program hands out.
//!
//! Frames leave in batches, each an offset into memory that they share: one frame that goes to
//! several outlets is there once.

use crate::interface::CapturePoint;
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
    /// Whether it is as short as it is because `trim` cut it; else what is missing of its length
    /// was never captured.
    pub trimmed: bool,
    /// The interface by which it came, and its direction there.
    pub capture_point: CapturePoint,
}

impl Sent {
    /// The bytes of the frame; empty where they reach beyond the memory of the batch.
    #[inline]
    pub fn bytes<'a>(&self, memory: &'a [u8]) -> &'a [u8] {
        let start = self.start as usize;
        memory.get(start..start + self.caplen as usize).unwrap_or(&[])
    }
}

/// Why an outlet did not take a frame.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum Refusal {
    /// The outlet takes frames of other link types.
    LinkType,
    /// The snap length cut it: what there is of it is not the frame.
    Cut,
    /// It is shorter than the header of the outlet's frames.
    Short,
    /// It is longer than the outlet can send, as are frames that a receiver had joined.
    Long,
    /// The outlet's queue was full, and stayed so.
    Full,
    /// The interface was down, had no carrier, or was gone.
    Down,
    /// There was no way to the other end of the tunnel, or nobody listened there.
    Unreachable,
    /// There were as many files as there were to be.
    Over,
    /// It came by the interface that it was to leave by.
    CameByIt,
    /// A worker had to decide on it, and only the kernel gives packets to the host.
    WentUp,
    /// It could not be written: the disk was full, say, or the reader of a pipe had gone.
    Unwritten,
    /// The system refused it for another reason.
    Other,
}

/// How many reasons there are.
pub const REFUSALS: usize = 12;

impl Refusal {
    /// All of them, in the order of their numbers.
    pub const ALL: [Refusal; REFUSALS] = [
        Refusal::LinkType,
        Refusal::Cut,
        Refusal::Short,
        Refusal::Long,
        Refusal::Full,
        Refusal::Down,
        Refusal::Unreachable,
        Refusal::Over,
        Refusal::CameByIt,
        Refusal::WentUp,
        Refusal::Unwritten,
        Refusal::Other,
    ];

    /// Whether the frame is missing where it was to go: not so where it was to stay away, as the
    /// number of files or the interface that it came by says.
    pub fn is_loss(self) -> bool {
        !matches!(self, Refusal::Over | Refusal::CameByIt)
    }
}

/// Frames that an outlet did not take, and their bytes as on the wire, by [`Refusal`].
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Refused {
    /// Frames, by `Refusal as usize`.
    pub frames: [u64; REFUSALS],
    /// Their lengths on the wire.
    pub bytes: [u64; REFUSALS],
}

impl Refused {
    /// One more frame, of this length.
    pub fn add(&mut self, reason: Refusal, len: u32) {
        self.frames[reason as usize] += 1;
        self.bytes[reason as usize] += u64::from(len);
    }

    /// Frames and bytes, all reasons.
    pub fn total(&self) -> (u64, u64) {
        (self.frames.iter().sum(), self.bytes.iter().sum())
    }

    /// The frames and bytes refused since these counts were `before`.
    #[must_use]
    pub fn since(&self, before: &Refused) -> Refused {
        let less = |now: [u64; REFUSALS], before: [u64; REFUSALS]| {
            std::array::from_fn(|i| now[i].saturating_sub(before[i]))
        };
        Refused { frames: less(self.frames, before.frames), bytes: less(self.bytes, before.bytes) }
    }

    /// The counts of another part of the same run.
    pub fn merge(&mut self, other: &Refused) {
        self.frames.iter_mut().zip(other.frames).for_each(|(sum, n)| *sum += n);
        self.bytes.iter_mut().zip(other.bytes).for_each(|(sum, n)| *sum += n);
    }
}

/// Where frames go. Every method is called from one thread, in an order that is the same for any
/// number of workers.
pub trait Egress {
    /// Called before any frame, with all outlets of the program: [`Sent::outlet`] counts them.
    /// Called again where programs come and go, with those from then on: the others are closed, and
    /// what was refused counts from 0.
    ///
    /// # Errors
    /// When one of them cannot take frames. The error names it.
    fn open(&mut self, outlets: &[Outlet]) -> io::Result<()>;

    /// Called before [`Egress::open`], while frames go to the outlets as before. Data that is there
    /// already, the bytes of a file say, stays as it is until then.
    ///
    /// # Errors
    /// When one of them could not be opened: then it is not, and the outlets stay what they are.
    fn prepare(&mut self, _outlets: &[Outlet]) -> io::Result<()> {
        Ok(())
    }

    /// Called before the outlets are asked for the last time what they refused, and opened again:
    /// no more frames come for them by their numbers of now. Frames on their way are waited for a
    /// little, where that tells what became of them.
    fn settle(&mut self) {}

    /// Whether frames for this outlet are wanted; where not, they are only counted. Asked once,
    /// after [`Egress::open`].
    fn wants(&self, _outlet: &Outlet) -> bool {
        true
    }

    /// Takes frames, those of each outlet in order; their bytes are in `memory`.
    ///
    /// # Errors
    /// When an outlet cannot go on; the error names it. The frames that it took before stay. Frames
    /// of this call that were not taken, and those that had waited to be written, are among
    /// [those refused](Egress::refused) then.
    fn send(&mut self, memory: &[u8], frames: &[Sent]) -> io::Result<()>;

    /// Whether this outlet, by its number, is known to take no frames for now: its interface is
    /// down or gone. Frames that are steered go elsewhere meanwhile. Asked once for some frames,
    /// never for each.
    fn is_away(&mut self, _outlet: u32) -> bool {
        false
    }

    /// Frames that came by [`Egress::send`] and that this outlet, by its number, did not take, also
    /// where that failed. Frames that are not among them were sent.
    fn refused(&self, _outlet: u32) -> Refused {
        Refused::default()
    }

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
