//! Why frames can't go to an outlet that names something which sends.

use crate::send::place::PlaceError;
use std::{error, fmt, io};
use weir_packet::ethernet::link_name;
use weir_packet::source::LinkType;

/// Why frames can't go to an outlet: the error within an [`io::Error`]. An error of opening it is a
/// [`SendError`](crate::send::SendError), and of files a [`WriteError`](crate::write::WriteError).
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum OutletError {
    /// Its name means no place.
    Place(PlaceError),
    /// It is a device whose frames come in by an interface that is captured.
    Echo {
        /// The outlet.
        name: String,
        /// The interface.
        interface: String,
    },
    /// It is an interface of which frames are captured that leave by it.
    CapturesOutgoing {
        /// The outlet.
        name: String,
    },
    /// AF_XDP captures all queues of the interface, so that it can't send there, too.
    NoQueueLeft {
        /// The outlet.
        name: String,
        /// The interface.
        interface: String,
    },
    /// It is the only interface that frames are captured on.
    SameInterface {
        /// The outlet.
        name: String,
    },
    /// It is a tunnel whose own packets would be captured.
    TunnelCaptured {
        /// The outlet.
        name: String,
        /// The interface that they leave by.
        interface: String,
    },
    /// It takes no frames of the link type that is captured.
    LinkType {
        /// The outlet.
        name: String,
        /// The link type.
        link: LinkType,
        /// An interface whose frames have it.
        interface: String,
    },
    /// It is the host that receives, and no part of the query in the kernel gives it packets.
    HostWithoutKernel {
        /// The outlet.
        name: String,
    },
    /// Nothing here opens devices of DPDK.
    NoDpdk,
    /// It came while packets are sent, and is not open.
    NotAllowed {
        /// The outlet.
        name: String,
    },
}

impl From<OutletError> for io::Error {
    fn from(error: OutletError) -> io::Error {
        let kind = match &error {
            OutletError::NoDpdk => io::ErrorKind::Unsupported,
            OutletError::NotAllowed { .. } => io::ErrorKind::PermissionDenied,
            _ => io::ErrorKind::InvalidInput,
        };
        io::Error::new(kind, error)
    }
}

impl fmt::Display for OutletError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OutletError::Place(e) => e.fmt(f),
            OutletError::Echo { name, interface } => write!(
                f,
                "{name}: packets that are written there come in by {interface}, and would be \
                 captured again, without end"
            ),
            OutletError::CapturesOutgoing { name } => write!(
                f,
                "{name}: packets are captured on this interface that leave by it; capture what \
                 comes in only: -Q in"
            ),
            OutletError::NoQueueLeft { name, interface } => write!(
                f,
                "{name}: all its queues are captured by AF_XDP, and none is left to send by; send \
                 by {interface}"
            ),
            OutletError::SameInterface { name } => write!(
                f,
                "{name}: packets are captured on this interface, and would go back where they \
                 came from; a network function stands between two interfaces"
            ),
            OutletError::TunnelCaptured { name, interface } => write!(
                f,
                "{name}: packets leave for there by {interface}, and would be captured there \
                 again, without end; capture what comes in only: -Q in"
            ),
            OutletError::LinkType { name, link, interface } => write!(
                f,
                "{name} takes no frames of link type {}, which those of {interface} have",
                link_name(*link)
            ),
            OutletError::HostWithoutKernel { name } => write!(
                f,
                "{name}: only the kernel gives packets to the host: add --capture xdp --offload \
                 require, and leave out --control and --http, since programs that come later run \
                 outside of it (with other captures the host gets every packet anyway)"
            ),
            OutletError::NoDpdk => f.write_str("nothing is sent by DPDK here"),
            OutletError::NotAllowed { name } => write!(
                f,
                "{name}: programs that come later don't send packets there; start the run with \
                 --allow-send {name}"
            ),
        }
    }
}

impl error::Error for OutletError {}
