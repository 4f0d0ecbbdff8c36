//! Captures that call a part of the query in the kernel.

use crate::query::{ForHook, KernelQuery, for_hook};
use std::io::{self, Write as _};
use weir_capture::ebpf::Offloaded;
use weir_capture::live::{Event, LiveError};
use weir_offload::Hook;
use weir_packet::source::SourceError;

/// A hook of interfaces where the kernel is to run a part of a query.
pub struct AtHook<'a> {
    /// The hook.
    pub hook: Hook,
    /// The names of the interfaces.
    pub interfaces: &'a [String],
    /// Bytes of each frame, where that is said.
    pub snaplen: Option<u32>,
    /// Whether the kernel must run a part there; `None` where it is to run none.
    pub required: Option<bool>,
    /// Whether nothing is said of the part that it runs.
    pub quiet: bool,
}

/// Opens a capture that calls what the kernel runs of the query at this hook. Where that is not
/// possible, and not required either, it is opened without.
///
/// # Errors
/// Where the capture does not open, or the kernel can't run a part that is required.
pub fn offloaded<S>(
    query: &KernelQuery,
    at: &AtHook<'_>,
    report: &dyn Fn(&Event),
    open: impl Fn(Vec<Offloaded>) -> Result<S, SourceError>,
) -> Result<S, SourceError> {
    let &AtHook { hook, interfaces, snaplen, required, quiet } = at;
    let is_required = required == Some(true);
    let without = |interface: String, reason: String| {
        if is_required {
            return Err(not_offloaded(&[interface], reason));
        }
        report(&Event::NotOffloaded { interface, reason });
        open(Vec::new())
    };
    let made = match required {
        None => Ok(ForHook::default()),
        Some(_) => for_hook(query, hook, interfaces, snaplen),
    };
    let ForHook { programs, runs } = match made {
        Ok(all) => all,
        Err((interface, reason)) => return without(interface, reason),
    };
    let is_called = !programs.is_empty();
    match open(programs) {
        Ok(source) => {
            // There is no way to report that this can't be written.
            runs.iter().filter(|_| !quiet).for_each(|line| drop(writeln!(io::stderr(), "{line}")));
            Ok(source)
        }
        Err(e) if is_called && !is_required => without(interfaces.join(", "), e.to_string()),
        Err(e) => Err(e),
    }
}

/// The error that the kernel runs no part of the query, which is required.
pub fn not_offloaded(interfaces: &[String], why: String) -> SourceError {
    let source = io::Error::other(LiveError::NotOffloaded(why));
    SourceError::Io { name: interfaces.join(", "), source }
}
