//! Devices that are open.

use crate::mode::Mode;
use crate::senders::Senders;
use weir_packet::source::Source;

/// A capture that has begun.
pub struct Opened {
    /// Where frames come from.
    pub source: Box<dyn Source>,
    /// The setup of each port.
    pub modes: Vec<Mode>,
    /// Where frames go.
    pub senders: Senders,
}
