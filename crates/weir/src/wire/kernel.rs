//! Captures that call a part of the query in the kernel.

use crate::args::LiveArgs;
use crate::offload::{self, ForHook, KernelQuery};
use std::io::{self, Write as _};
use weir_capture::ebpf::Offloaded;
use weir_capture::live::{Event, LiveError};
use weir_offload::Hook;
use weir_packet::source::SourceError;

/// Opens a capture that calls what the kernel runs of the query at this hook. Where that is not
/// possible, and not required either, it is opened without.
pub(super) fn offloaded<S>(
    args: &LiveArgs,
    query: &KernelQuery,
    hook: Hook,
    quiet: bool,
    report: &dyn Fn(&Event),
    open: impl Fn(Vec<Offloaded>) -> Result<S, SourceError>,
) -> Result<S, SourceError> {
    let is_required = args.is_offload_required();
    let without = |interface: String, reason: String| {
        if is_required {
            return Err(not_offloaded(&[interface], reason));
        }
        report(&Event::NotOffloaded { interface, reason });
        open(Vec::new())
    };
    let ForHook { programs, runs } = match offload::for_hook(query, hook, args) {
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
        Err(e) if is_called && !is_required => without(args.interface.join(", "), e.to_string()),
        Err(e) => Err(e),
    }
}

/// That the kernel runs no part of the query, which is required.
pub(super) fn not_offloaded(interfaces: &[String], why: String) -> SourceError {
    let source = io::Error::other(LiveError::NotOffloaded(why));
    SourceError::Io { name: interfaces.join(", "), source }
}
