//! Writing: the blocks that are read, made.

use super::block::{
    BLOCK_FRAME, BYTE_ORDER_MAGIC, INTERFACE, OPTION_FLAGS, OPTION_NAME, OPTION_TSOFFSET,
    OPTION_TSRESOL, PACKET, PACKET_SIMPLE, SECTION,
};
use super::interface::Interface;
use crate::interface::Direction;
use crate::pcap::ByteOrder;

/// Appends blocks to the bytes of a file.
#[derive(Clone, Copy, Debug)]
pub struct Writer {
    /// Byte order of every number written.
    pub order: ByteOrder,
}

impl Writer {
    /// Appends a section header of version 1.0 and unknown length.
    pub fn section(self, out: &mut Vec<u8>) {
        let o = self.order;
        let version = [o.put16(1), o.put16(0)].concat();
        let body = [&o.put32(BYTE_ORDER_MAGIC)[..], &version, &[0xff; 8]];
        self.block(out, SECTION, &body);
    }

    /// Appends an interface description; interfaces of a section number from 0.
    pub fn interface(self, out: &mut Vec<u8>, interface: &Interface<'_>) {
        let o = self.order;
        let fixed = [o.put16(interface.link.0), o.put16(0)].concat();
        let mut options = Vec::new();
        let offset = match o {
            ByteOrder::Little => interface.offset_s.to_le_bytes(),
            ByteOrder::Big => interface.offset_s.to_be_bytes(),
        };
        for (code, value) in [
            (OPTION_NAME, interface.name),
            (OPTION_TSRESOL, &[interface.resolution]),
            (OPTION_TSOFFSET, &offset),
        ] {
            if code == OPTION_NAME && value.is_empty() {
                continue;
            }
            options.extend([o.put16(code), o.put16(value.len() as u16)].concat());
            options.extend_from_slice(value);
            options.resize(options.len().next_multiple_of(4), 0);
        }
        options.extend([0; 4]);
        self.block(out, INTERFACE, &[&fixed, &o.put32(interface.snaplen), &options]);
    }

    /// Appends an enhanced packet block: `ticks` in the units of the interface, `len` the length on
    /// the wire, `frame` the captured bytes.
    pub fn packet(self, out: &mut Vec<u8>, id: u32, ticks: u64, len: u32, frame: &[u8]) {
        self.packet_with_direction(out, (id, None), ticks, len, frame);
    }

    /// The same of a packet whose direction may be known.
    pub fn packet_with_direction(
        self,
        out: &mut Vec<u8>,
        (id, direction): (u32, Option<Direction>),
        ticks: u64,
        len: u32,
        frame: &[u8],
    ) {
        let o = self.order;
        let words = [id, (ticks >> 32) as u32, ticks as u32, frame.len() as u32, len];
        let mut head = [0; 20];
        for (to, word) in head.chunks_exact_mut(4).zip(words) {
            to.copy_from_slice(&o.put32(word));
        }
        let Some(direction) = direction else { return self.block(out, PACKET, &[&head, frame]) };
        let padding = [0; 3];
        let padding = &padding[..frame.len().next_multiple_of(4) - frame.len()];
        let flags = match direction {
            Direction::In => 1,
            Direction::Out => 2,
        };
        let (code, len, flags) = (o.put16(OPTION_FLAGS), o.put16(4), o.put32(flags));
        self.block(out, PACKET, &[&head, frame, padding, &code, &len, &flags, &[0; 4]]);
    }

    /// Appends a simple packet block, of interface 0: `frame` must be as long as the smaller of
    /// `len` and the interface's snap length.
    pub fn simple_packet(self, out: &mut Vec<u8>, len: u32, frame: &[u8]) {
        self.block(out, PACKET_SIMPLE, &[&self.order.put32(len), frame]);
    }

    /// Appends a block of any type, its body given in parts and padded to a multiple of 4.
    pub fn block(self, out: &mut Vec<u8>, kind: u32, body: &[&[u8]]) {
        let len: usize = body.iter().map(|part| part.len()).sum();
        let total = self.order.put32((len.next_multiple_of(4) + BLOCK_FRAME) as u32);
        out.extend(self.order.put32(kind));
        out.extend(total);
        body.iter().for_each(|part| out.extend_from_slice(part));
        out.resize(out.len() + (len.next_multiple_of(4) - len), 0);
        out.extend(total);
    }
}
