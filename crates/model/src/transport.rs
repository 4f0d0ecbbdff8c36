//! TCP segments and UDP datagrams as values.

/// The transport of a packet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum TransportBytes {
    Tcp { seq: u32, syn: bool, ack: bool, data: Vec<u8> },
    Udp(Vec<u8>),
}
