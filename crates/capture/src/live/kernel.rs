//! The part of a query that the kernel runs, as the filter of packet sockets.
//!
//! It stands in the place of the filter of classic BPF, whose rules about directions it holds too.
//! It counts its decisions in memory that it shares with this process, so that the counts can be
//! read in a sandbox.

use super::error::LiveError;
use super::event::Event;
use super::options::{KernelPart, LiveOptions, SocketSite};
use crate::ebpf::Program;
use std::io;
use weir_packet::source::SourceError;

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
