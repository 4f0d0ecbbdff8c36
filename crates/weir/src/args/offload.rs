//! The part of a query that the kernel is to run.

use clap::ValueEnum;
use weir_offload::Hook;

/// Whether the kernel runs the first stages of a query.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) enum OffloadMode {
    /// Where that is possible and saves something; a line says where, or why not
    Auto,
    /// Never
    #[default]
    Off,
    /// On every interface, or the run does not begin
    Require,
}

/// Where in the kernel a program meets frames.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum HookName {
    /// The filter of packet sockets, before packets are copied: for captures by AF_PACKET
    Socket,
    /// Traffic control on an interface, while the host goes on receiving
    Tcx,
    /// The driver of an interface, before there is a packet buffer: for captures by AF_XDP
    Xdp,
}

impl From<HookName> for Hook {
    fn from(name: HookName) -> Hook {
        match name {
            HookName::Socket => Hook::Socket,
            HookName::Tcx => Hook::Tcx,
            HookName::Xdp => Hook::Xdp,
        }
    }
}
