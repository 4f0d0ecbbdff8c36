//! The state of a reader: the current section, and how its blocks are taken in.

use super::block::{
    BLOCK_HEADER, Block, INTERFACE, OPTION_END, OPTION_FLAGS, PACKET, PACKET_OBSOLETE,
    PACKET_SIMPLE, PcapngFault, SECTION,
};
use super::interface::{Clock, Declared, Interface};
use crate::interface::{CapturePoint, Direction, InterfaceNames};
use crate::limits::{CAPLEN_MAX, INTERFACES_MAX};
use crate::pcap::ByteOrder;
use crate::source::LinkType;
use crate::time::NO_TIME;

/// The state after the blocks so far, which is needed to read those that follow.
#[derive(Clone, Debug, Default)]
pub(super) struct Section {
    /// Byte order of the current section; none before the first.
    pub(super) order: Option<ByteOrder>,
    pub(super) interfaces: Vec<Declared>,
    pub(super) names: InterfaceNames,
    /// Number of the next packet.
    pub(super) seq: u64,
    /// Bytes that the last batch took.
    pub(super) span: usize,
}

/// A packet inside a block that starts at position 0.
pub(super) struct PacketBlock {
    pub(super) link: LinkType,
    pub(super) point: CapturePoint,
    pub(super) ts: i64,
    pub(super) start: usize,
    pub(super) caplen: u32,
    pub(super) len: u32,
}

impl Section {
    /// Takes in a block; the packet it holds, if it is of a kind that holds one.
    pub(super) fn read(&mut self, block: &Block<'_>) -> Result<Option<PacketBlock>, PcapngFault> {
        let (order, body) = (block.order, block.body);
        match block.kind {
            SECTION => {
                let v = body.get(4..8).ok_or(PcapngFault::BlockShort(SECTION))?;
                let version = (order.u16([v[0], v[1]]), order.u16([v[2], v[3]]));
                if version.0 != 1 {
                    return Err(PcapngFault::Version(version.0, version.1));
                }
                self.order = Some(order);
                self.interfaces.clear();
                Ok(None)
            }
            INTERFACE => {
                let interface = Interface::parse(order, body)?;
                if self.interfaces.len() == INTERFACES_MAX {
                    return Err(PcapngFault::Interfaces);
                }
                let Interface { link, snaplen, name, .. } = interface;
                let (clock, point) =
                    (Clock::new(&interface), CapturePoint::new(self.names.number(name), None));
                self.interfaces.push(Declared { link, snaplen, clock, point });
                Ok(None)
            }
            PACKET => self.packet(block, |h| order.u32([h[0], h[1], h[2], h[3]])).map(Some),
            PACKET_OBSOLETE => self.packet(block, |h| u32::from(order.u16([h[0], h[1]]))).map(Some),
            PACKET_SIMPLE => self.simple_packet(block).map(Some),
            _ => Ok(None),
        }
    }

    /// Enhanced and obsolete packet blocks differ only in how they name the interface.
    fn packet(
        &self,
        block: &Block<'_>,
        id: impl Fn(&[u8; 20]) -> u32,
    ) -> Result<PacketBlock, PcapngFault> {
        let h = block.body.first_chunk::<20>().ok_or(PcapngFault::BlockShort(block.kind))?;
        let word = |i: usize| block.order.u32([h[i], h[i + 1], h[i + 2], h[i + 3]]);
        let id = id(h);
        let interface = self.interfaces.get(id as usize).ok_or(PcapngFault::Interface(id))?;
        let (caplen, len) = (word(12), word(16));
        if caplen > CAPLEN_MAX || caplen as usize > block.body.len() - h.len() {
            return Err(PcapngFault::CapturedLength(caplen));
        }
        let options = (h.len() + caplen as usize).next_multiple_of(4);
        let options = block.body.get(options..).unwrap_or(&[]);
        Ok(PacketBlock {
            link: interface.link,
            point: interface.point.with_direction(direction(block.order, options)),
            ts: interface.clock.ns(u64::from(word(4)) << 32 | u64::from(word(8))),
            start: BLOCK_HEADER + h.len(),
            caplen,
            len,
        })
    }

    fn simple_packet(&self, block: &Block<'_>) -> Result<PacketBlock, PcapngFault> {
        let h = block.body.first_chunk::<4>().ok_or(PcapngFault::BlockShort(PACKET_SIMPLE))?;
        let interface = self.interfaces.first().ok_or(PcapngFault::Interface(0))?;
        let len = block.order.u32(*h);
        let caplen = match interface.snaplen {
            0 => len,
            snaplen => len.min(snaplen),
        };
        if caplen > CAPLEN_MAX || caplen as usize > block.body.len() - h.len() {
            return Err(PcapngFault::CapturedLength(caplen));
        }
        let start = BLOCK_HEADER + h.len();
        Ok(PacketBlock {
            link: interface.link,
            point: interface.point,
            ts: NO_TIME,
            start,
            caplen,
            len,
        })
    }
}

/// The direction that the options of a packet state (`epb_flags`, the lowest two bits). Options
/// that are broken say nothing.
pub(super) fn direction(order: ByteOrder, mut options: &[u8]) -> Option<Direction> {
    while let Some((head, rest)) = options.split_first_chunk::<4>() {
        let code = order.u16([head[0], head[1]]);
        let len = usize::from(order.u16([head[2], head[3]]));
        match (code, rest.get(..len)?) {
            (OPTION_END, _) => break,
            (OPTION_FLAGS, &[a, b, c, d]) => {
                return match order.u32([a, b, c, d]) & 3 {
                    1 => Some(Direction::In),
                    2 => Some(Direction::Out),
                    _ => None,
                };
            }
            _ => options = rest.get(len.next_multiple_of(4)..).unwrap_or(&[]),
        }
    }
    None
}
