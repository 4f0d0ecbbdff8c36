//! The options that compiling depends on besides the plan, and why there may be nothing to compile.

use crate::hook::Hook;
use std::fmt;
use weir_packet::egress::Outlet;
use weir_packet::source::LinkType;
use weir_packet::walk::Headers;
use weir_plan::physical::PipelineId;

/// Where a program is to run, and what the source of packets makes of frames.
#[derive(Clone, Copy, Debug)]
pub struct OffloadOptions<'a> {
    /// Where it runs.
    pub hook: Hook,
    /// The link type of frames. Other links than Ethernet are not offloaded.
    pub link: LinkType,
    /// Whether fields are those of the outermost or of the innermost packet.
    pub headers: Headers,
    /// Whether later fragments get the ports of their first one (`--fragments`): then all fragments
    /// go up.
    pub fragments: bool,
    /// The snap length. A short one, by which headers may be cut, is not offloaded.
    pub snaplen: u32,
    /// How many CPUs the kernel may have; each counts frames for itself.
    pub cpus: u32,
    /// Makes groups in the kernel where that can be, hashed with this secret: see
    /// [`TableOptions`](crate::TableOptions). Without it every frame that a query counts goes up.
    pub groups: Option<[u64; 2]>,
    /// Why it does not, where it does not: one clause.
    pub without_groups: &'a str,
    /// Where packets go that the plan hands out, so that the kernel can send them there; or why it
    /// hands none out: one clause.
    pub outlets: Result<&'a [KernelOutlet], &'a str>,
    /// Whether the kernel sends a packet by several interfaces (Linux 5.13).
    pub copies: bool,
    /// The interface by which frames come, as `interface` names it, if all come by one.
    pub interface: Option<&'a str>,
    /// Whether pipelines may come and go while the program stays: then there is a word
    /// ([`FrameCount::hand_up`](crate::FrameCount::hand_up)) by which the process lets all frames
    /// go up.
    pub may_change: bool,
    /// Frames that are none of the capture's: they are not counted, and do not go up.
    pub refuse: &'a [Refuse],
}

/// Why no packets are handed out at other hooks.
pub const NO_OUTLETS: &str = "only in XDP are packets taken off the wire";

/// An outlet of the plan.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KernelOutlet {
    /// As the plan names it.
    pub outlet: Outlet,
    /// Where it is.
    pub place: OutletPlace,
}

/// Where the kernel hands packets out, and what it does with them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HandOut<'a> {
    pub(crate) outlets: &'a [KernelOutlet],
    pub(crate) copies: bool,
    /// Whether it puts tags on them and shortens them.
    pub(crate) edits: bool,
}

/// Where an outlet is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum OutletPlace {
    /// Nowhere: its packets are only counted.
    Nowhere,
    /// An interface, by which the kernel can send.
    Interface,
    /// The interface by which packets come: they do not leave by it, and are counted.
    CameBy,
    /// The host that receives: the kernel passes packets on to its stack.
    Host,
    /// Where only the process can send: why, one clause.
    UserSpace(String),
}

/// Frames that a capture does not take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refuse {
    /// Frames that the machine sends.
    Outgoing,
    /// Frames that the machine does not send.
    Incoming,
    /// Frames that the machine sends by the interface of this number: over a loopback interface,
    /// they come in again.
    OutgoingBy(u32),
}

/// The least snap length with which no header is cut that a program looks at.
pub const SNAPLEN_MIN: u32 = 256;

/// Why a plan has no part for the kernel.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum NotOffloaded {
    /// The whole plan has none: one clause.
    Plan(String),
    /// This pipeline over packets wants every frame: why the kernel can't run its first stage.
    Pipeline(PipelineId, String),
    /// The program is longer than the kernel takes.
    TooLong(String),
}

impl<'a> OffloadOptions<'a> {
    /// For whole frames of Ethernet at this hook, on a machine of so many CPUs.
    pub fn new(hook: Hook, cpus: u32) -> OffloadOptions<'a> {
        OffloadOptions {
            hook,
            link: LinkType::ETHERNET,
            headers: Headers::OUTER,
            fragments: false,
            snaplen: u32::MAX,
            cpus,
            groups: None,
            without_groups: "the run does not read groups of the kernel",
            outlets: Err(NO_OUTLETS),
            copies: true,
            interface: None,
            may_change: false,
            refuse: &[],
        }
    }
}

impl fmt::Display for NotOffloaded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotOffloaded::Plan(why) => f.write_str(why),
            NotOffloaded::Pipeline(id, why) => write!(f, "{id} wants every frame: {why}"),
            NotOffloaded::TooLong(why) => write!(f, "the program is too long: {why}"),
        }
    }
}

impl std::error::Error for NotOffloaded {}
