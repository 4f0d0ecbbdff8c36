//! The part of a query that the kernel runs, as the filter of packet sockets.
//!
//! It stands in the place of the filter of classic BPF, whose rules about directions it holds too.
//! What it decides about frames is counted in memory that it shares with this process, so that the
//! counts can be read in a sandbox.

use super::error::LiveError;
use super::event::Event;
use super::options::{Directions, LiveOptions};
use crate::ebpf::Program;
use std::io;
use weir_packet::source::{KernelCounts, LinkType, SourceError};

/// What a program for the sockets of an interface depends on.
#[derive(Clone, Copy, Debug)]
pub struct SocketSite<'a> {
    /// The interface.
    pub interface: &'a str,
    /// The link type of its frames.
    pub link: LinkType,
    /// The frames that are wanted.
    pub direction: Directions,
    /// What goes out by the interface of this number comes in by it too, and is wanted once.
    pub loopback: Option<u32>,
    /// Bytes to keep of each frame at most.
    pub snaplen: u32,
}

/// A loaded program.
pub struct KernelPart {
    /// Returns how many bytes of a frame go up; 0 for frames that are none of the capture's, or
    /// that it finishes.
    pub program: Program,
    /// Reads what the program has counted, without a system call.
    pub counts: Box<dyn Fn() -> KernelCounts + Send>,
}

/// Makes the program for some sockets, or says why there is none: one clause.
pub type MakeKernelPart = Box<dyn Fn(&SocketSite<'_>) -> Result<KernelPart, String>>;

/// How the kernel is to run a part of the query.
pub struct Offload {
    /// Makes the programs.
    pub make: MakeKernelPart,
    /// Whether a capture without them fails.
    pub required: bool,
}

/// The program for the sockets of an interface, if there is to be one, once `attach` has put it
/// there. Where that is not possible, it is reported, unless the capture fails by that.
pub(super) fn put_in_place(
    site: &SocketSite<'_>,
    options: &LiveOptions,
    attach: impl FnOnce(&Program) -> io::Result<()>,
) -> Result<Option<KernelPart>, SourceError> {
    let Some(offload) = &options.offload else { return Ok(None) };
    let attached = |part: KernelPart| match attach(&part.program) {
        Ok(()) => Ok(part),
        Err(e) => Err(format!(
            "the kernel does not take it as the filter of a socket ({e}); net.core.optmem_max may \
             be too small for it"
        )),
    };
    match (offload.make)(site).and_then(attached) {
        Ok(part) => Ok(Some(part)),
        Err(reason) if offload.required => Err(LiveError::NotOffloaded(reason).on(site.interface)),
        Err(reason) => {
            let interface = site.interface.to_owned();
            options.report(&Event::NotOffloaded { interface, reason });
            Ok(None)
        }
    }
}
