//! Blocks: how they stand in a file, and what can be wrong with them.

use crate::limits::{BLOCK_MAX, INTERFACES_MAX};
use crate::pcap::ByteOrder;
use std::fmt;

/// The first four bytes of a file: the type of a section header block, alike in both byte orders.
pub const MAGIC: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];

pub(super) const SECTION: u32 = 0x0a0d_0d0a;
pub(super) const INTERFACE: u32 = 1;
pub(super) const PACKET_OBSOLETE: u32 = 2;
pub(super) const PACKET_SIMPLE: u32 = 3;
pub(super) const PACKET: u32 = 6;

pub(super) const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;

/// Block type and length, and the length once more at the end.
pub(super) const BLOCK_HEADER: usize = 8;
pub(super) const BLOCK_FRAME: usize = 12;

pub(super) const OPTION_END: u16 = 0;
/// Of interfaces (`if_name`), and of packets (`epb_flags`).
pub(super) const OPTION_NAME: u16 = 2;
pub(super) const OPTION_FLAGS: u16 = 2;
pub(super) const OPTION_TSRESOL: u16 = 9;
pub(super) const OPTION_TSOFFSET: u16 = 14;

/// A fault in a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PcapngFault {
    /// The first block is not a section header.
    NoSection,
    /// A section header without the byte-order magic.
    ByteOrder,
    /// A section of an unknown major version.
    Version(u16, u16),
    /// A block length under 12, not a multiple of 4, or above [`BLOCK_MAX`].
    BlockLength(u32),
    /// The two lengths of a block differ.
    BlockTrailer(u32, u32),
    /// A block of this type is too short for its fixed fields.
    BlockShort(u32),
    /// An option of an interface reaches beyond its block or has a wrong length.
    Option(u16),
    /// More interfaces in a section than [`INTERFACES_MAX`].
    Interfaces,
    /// A packet names an interface that was not declared.
    Interface(u32),
    /// A packet claims more captured bytes than its block holds, or more than
    /// [`CAPLEN_MAX`](crate::limits::CAPLEN_MAX).
    CapturedLength(u32),
}

impl fmt::Display for PcapngFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PcapngFault::NoSection => f.write_str("the file does not begin with a section header"),
            PcapngFault::ByteOrder => f.write_str("a section header without the byte-order magic"),
            PcapngFault::Version(major, minor) => {
                write!(f, "a section of pcapng version {major}.{minor}, which is not known")
            }
            PcapngFault::BlockLength(n) => write!(
                f,
                "a block length of {n}, which is not a multiple of 4 between 12 and {BLOCK_MAX}"
            ),
            PcapngFault::BlockTrailer(head, tail) => {
                write!(f, "a block that says {head} bytes at its start and {tail} at its end")
            }
            PcapngFault::BlockShort(kind) => {
                write!(f, "a block of type {kind} too short for its fields")
            }
            PcapngFault::Option(code) => write!(f, "an interface with a broken option {code}"),
            PcapngFault::Interfaces => {
                write!(f, "a section of more than {INTERFACES_MAX} interfaces")
            }
            PcapngFault::Interface(id) => {
                write!(f, "a packet of interface {id}, which is not declared")
            }
            PcapngFault::CapturedLength(n) => {
                write!(f, "a packet claims {n} captured bytes, more than its block can hold")
            }
        }
    }
}

/// A block at the start of some bytes, whole or in part.
pub(super) enum Whole<'a> {
    Block(Block<'a>),
    /// Part of a block that takes this many bytes, as far as can be told.
    More(usize),
}

pub(super) struct Block<'a> {
    pub(super) kind: u32,
    pub(super) order: ByteOrder,
    pub(super) len: usize,
    pub(super) body: &'a [u8],
}

pub(super) fn whole_block(
    bytes: &[u8],
    order: Option<ByteOrder>,
) -> Result<Whole<'_>, PcapngFault> {
    let Some(head) = bytes.first_chunk::<BLOCK_FRAME>() else {
        return Ok(Whole::More(BLOCK_FRAME));
    };
    let word = |i: usize| [head[i], head[i + 1], head[i + 2], head[i + 3]];
    let order = if word(0) == MAGIC {
        match u32::from_le_bytes(word(8)) {
            BYTE_ORDER_MAGIC => ByteOrder::Little,
            m if m == BYTE_ORDER_MAGIC.swap_bytes() => ByteOrder::Big,
            _ => return Err(PcapngFault::ByteOrder),
        }
    } else {
        order.ok_or(PcapngFault::NoSection)?
    };
    let total = order.u32(word(4));
    if total < BLOCK_FRAME as u32 || total % 4 != 0 || total > BLOCK_MAX {
        return Err(PcapngFault::BlockLength(total));
    }
    let len = total as usize;
    let Some((rest, tail)) = bytes.get(..len).and_then(<[u8]>::split_last_chunk::<4>) else {
        return Ok(Whole::More(len));
    };
    if order.u32(*tail) != total {
        return Err(PcapngFault::BlockTrailer(total, order.u32(*tail)));
    }
    let (kind, body) = (order.u32(word(0)), &rest[BLOCK_HEADER..]);
    Ok(Whole::Block(Block { kind, order, len, body }))
}
