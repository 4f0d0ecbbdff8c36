//! Why a run has no part in the kernel.

use crate::args::{Capture, RunOptions};

/// Why a run has no part in the kernel, whatever its query is: one clause.
pub(crate) fn refusal(options: &RunOptions, filter: bool, keeps_packets: bool) -> Option<String> {
    let live = &options.live;
    let reasons = [
        (live.interface.is_empty(), "packets come from files, not from interfaces (-i)"),
        (live.is_dpdk(), "packets come by DPDK, without the kernel"),
        (live.capture == Some(Capture::Pcap), "libpcap sets the filter of its sockets by itself"),
        (
            filter,
            "there is a capture filter, in the place of which the program would stand: say in the \
             query which packets it wants",
        ),
        (options.count.is_some(), "-c counts packets, and the kernel would finish some of them"),
        (keeps_packets, "`capture` keeps every packet, to write those around rows"),
    ];
    reasons.into_iter().find(|(holds, _)| *holds).map(|(_, why)| why.to_owned())
}
