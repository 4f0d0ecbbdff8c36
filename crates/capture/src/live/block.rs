//! The frames of a block of the ring (tpacket3_hdr of linux/if_packet.h), made as they were on the
//! wire.
//!
//! A network adapter or the kernel takes the outer VLAN tag off a frame and keeps it beside; here
//! it is put back. Of a cooked socket the header of LINKTYPE_LINUX_SLL2 is written before what
//! there is. Both go into room that was reserved before each frame.

use crate::cbpf::Program;
use crate::sys::packet::Shape;
use weir_packet::interface::Way;

/// Room that a frame may need before it: a cooked header and a tag.
pub(super) const RESERVE: usize = SLL2 + TAG;

const TAG: usize = 4;
/// Bytes of the header of LINKTYPE_LINUX_SLL2.
const SLL2: usize = 20;
/// Two Ethernet addresses, behind which a tag stands.
const ADDRESSES: usize = 12;
/// The TPID where the kernel does not say.
const CUSTOMER_TAG: u16 = 0x8100;

// Of the header of a block.
const FRAMES: usize = 12;
const FIRST: usize = 16;

// Of the header of a frame, and of the address behind it (sockaddr_ll).
const NEXT: usize = 0;
const SECONDS: usize = 4;
const NANOS: usize = 8;
const CAPTURED: usize = 12;
const LENGTH: usize = 16;
const STATUS: usize = 20;
const START: usize = 24;
const TCI: usize = 32;
const TPID: usize = 36;
const PROTOCOL: usize = 50;
const INDEX: usize = 52;
const HARDWARE: usize = 56;
const PACKET_TYPE: usize = 58;
const ADDRESS_LEN: usize = 59;
const ADDRESS: usize = 60;
const HEADER: usize = 68;

/// A frame of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Captured {
    /// When, in nanoseconds since 1970.
    pub(super) ts: i64,
    /// Where it starts in the block.
    pub(super) start: u32,
    /// Bytes that are there.
    pub(super) caplen: u32,
    /// Bytes that it had on the wire.
    pub(super) len: u32,
    /// The number of its interface, and which way it went there.
    pub(super) index: u32,
    pub(super) way: Way,
}

/// What is to be done to frames.
#[derive(Clone, Debug)]
pub(super) struct Rules {
    /// What they begin with.
    pub(super) shape: Shape,
    /// Whether they are Ethernet frames.
    pub(super) ethernet: bool,
    /// How much of them is kept.
    pub(super) snaplen: u32,
    /// The capture filter, for those that the kernel let through without asking it.
    pub(super) filter: Option<Program>,
    /// Whether that is all of them.
    pub(super) all: bool,
}

/// What became of the frames of a block.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Walked {
    /// Refused by the filter.
    pub(super) refused: u64,
    /// Said to be there, and not found where they should be.
    pub(super) unread: u64,
}

/// Replaces `frames` by those of a block.
pub(super) fn walk(block: &mut [u8], rules: &Rules, frames: &mut Vec<Captured>) -> Walked {
    frames.clear();
    let Some(head) = block.first_chunk::<48>() else { return Walked::default() };
    let (count, mut at) = (u32_at(head, FRAMES), u32_at(head, FIRST) as usize);
    let mut walked = Walked::default();
    for n in 0..count {
        let header = block.get(at..).and_then(<[u8]>::first_chunk::<HEADER>);
        let Some(header) = header.copied() else {
            walked.unread = u64::from(count - n);
            break;
        };
        let caplen = u32_at(&header, CAPTURED);
        let start = at + usize::from(u16_at(&header, START));
        let mut frame = Captured {
            ts: i64::from(u32_at(&header, SECONDS)) * 1_000_000_000
                + i64::from(u32_at(&header, NANOS)),
            start: start as u32,
            caplen,
            len: u32_at(&header, LENGTH),
            index: u32_at(&header, INDEX),
            way: Way::of_packet_type(header[PACKET_TYPE]),
        };
        if start + caplen as usize > block.len() {
            walked.unread = u64::from(count - n);
            break;
        }
        let tagged = u32_at(&header, STATUS) & libc::TP_STATUS_VLAN_VALID != 0;
        if tagged || rules.shape == Shape::Cooked {
            mend(block, &header, at, rules, &mut frame);
        }
        if (tagged || rules.all) && refused(block, rules, &frame) {
            walked.refused += 1;
        } else {
            frame.caplen = frame.caplen.min(rules.snaplen);
            frames.push(frame);
        }
        let next = u32_at(&header, NEXT) as usize;
        if next == 0 {
            // The last one says so.
            walked.unread = u64::from(count - n - 1);
            break;
        }
        at += next;
    }
    walked
}

/// Puts back what the frame had in front. Cold, and so no part of the loop: most frames are whole.
#[cold]
fn mend(block: &mut [u8], header: &[u8; HEADER], at: usize, rules: &Rules, frame: &mut Captured) {
    let status = u32_at(header, STATUS);
    let tag = (status & libc::TP_STATUS_VLAN_VALID != 0).then(|| {
        let said = status & libc::TP_STATUS_VLAN_TPID_VALID != 0;
        let tpid = if said { u16_at(header, TPID) } else { CUSTOMER_TAG };
        [tpid.to_be_bytes(), (u32_at(header, TCI) as u16).to_be_bytes()]
    });
    let start = frame.start as usize;
    let added = match (rules.shape, tag) {
        (Shape::Cooked, tag) => SLL2 + tag.map_or(0, |_| TAG),
        (Shape::Raw, Some(_)) if rules.ethernet => TAG,
        (Shape::Raw, _) => return,
    };
    frame.len = frame.len.saturating_add(added as u32);
    // The header of the frame stays as it is; room for what is added was asked for.
    let room = start.checked_sub(added).filter(|&new| new >= at + HEADER);
    let Some(new) = room.and_then(|new| block.get_mut(new..)) else { return };
    match (rules.shape, tag) {
        (Shape::Raw, Some([tpid, tci])) => {
            if (frame.caplen as usize) < ADDRESSES {
                // Cut before the tag: all that is there stays where it is.
                return;
            }
            new.copy_within(TAG..TAG + ADDRESSES, 0);
            new[ADDRESSES..ADDRESSES + 2].copy_from_slice(&tpid);
            new[ADDRESSES + 2..ADDRESSES + TAG].copy_from_slice(&tci);
        }
        (_, tag) => {
            let protocol = [header[PROTOCOL], header[PROTOCOL + 1]];
            new[0..2].copy_from_slice(&tag.map_or(protocol, |[tpid, _]| tpid));
            new[2..4].copy_from_slice(&[0, 0]);
            new[4..8].copy_from_slice(&u32_at(header, INDEX).to_be_bytes());
            new[8..10].copy_from_slice(&u16_at(header, HARDWARE).to_be_bytes());
            new[10] = header[PACKET_TYPE];
            new[11] = header[ADDRESS_LEN];
            new[12..SLL2].copy_from_slice(&header[ADDRESS..HEADER]);
            if let Some([_, tci]) = tag {
                new[SLL2..SLL2 + 2].copy_from_slice(&tci);
                new[SLL2 + 2..SLL2 + TAG].copy_from_slice(&protocol);
            }
        }
    }
    frame.start -= added as u32;
    frame.caplen += added as u32;
}

/// Whether the capture filter refuses a frame.
fn refused(block: &[u8], rules: &Rules, frame: &Captured) -> bool {
    let Some(filter) = &rules.filter else { return false };
    let start = frame.start as usize;
    let bytes = block.get(start..start + frame.caplen as usize).unwrap_or(&[]);
    filter.run(bytes, frame.len) == 0
}

/// A number in the byte order of the machine.
#[inline(always)]
fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

#[inline(always)]
fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_ne_bytes([bytes[at], bytes[at + 1]])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rules(shape: Shape, ethernet: bool, snaplen: u32) -> Rules {
        Rules { shape, ethernet, snaplen, filter: None, all: false }
    }

    /// A block with these frames, each with a tag beside it if it has one.
    fn block(frames: &[(&[u8], Option<u16>)]) -> Vec<u8> {
        let mut block = vec![0; 48];
        block[FRAMES..FRAMES + 4].copy_from_slice(&(frames.len() as u32).to_ne_bytes());
        block[FIRST..FIRST + 4].copy_from_slice(&48u32.to_ne_bytes());
        for (i, (frame, tag)) in frames.iter().enumerate() {
            let size = HEADER + RESERVE + frame.len();
            let mut put = vec![0; HEADER + RESERVE];
            let mut set = |at: usize, v: u32| put[at..at + 4].copy_from_slice(&v.to_ne_bytes());
            set(NEXT, if i + 1 < frames.len() { size as u32 } else { 0 });
            set(SECONDS, 7);
            set(NANOS, i as u32);
            set(CAPTURED, frame.len() as u32);
            set(LENGTH, frame.len() as u32 + 1);
            set(STATUS, tag.map_or(0, |_| libc::TP_STATUS_VLAN_VALID));
            set(TCI, tag.unwrap_or(0).into());
            set(INDEX, 3);
            put[START..START + 2].copy_from_slice(&((HEADER + RESERVE) as u16).to_ne_bytes());
            put[PROTOCOL..PROTOCOL + 2].copy_from_slice(&[8, 0]);
            block.extend(put);
            block.extend_from_slice(frame);
        }
        block
    }

    fn walked(mut block: Vec<u8>, rules: &Rules) -> Vec<(i64, u32, Vec<u8>)> {
        let mut frames = Vec::new();
        assert_eq!(walk(&mut block, rules, &mut frames), Walked::default());
        let bytes = |f: &Captured| block[f.start as usize..][..f.caplen as usize].to_vec();
        frames.iter().map(|f| (f.ts, f.len, bytes(f))).collect()
    }

    #[test]
    fn a_tag_goes_between_addresses_and_type() {
        let frame: &[u8] = &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 8, 0, 0x45];
        let got = walked(
            block(&[(frame, Some(5)), (frame, None), (&frame[..11], Some(5))]),
            &rules(Shape::Raw, true, 100),
        );
        let tagged = [&frame[..12], &[0x81, 0, 0, 5], &frame[12..]].concat();
        assert_eq!(
            got,
            [
                (7_000_000_000, 20, tagged),
                (7_000_000_001, 16, frame.to_vec()),
                (7_000_000_002, 16, frame[..11].to_vec()),
            ]
        );
    }

    #[test]
    fn a_cooked_header_says_what_stood_before() {
        let got =
            walked(block(&[(&[0x45], None), (&[0x45], Some(5))]), &rules(Shape::Cooked, false, 22));
        let mut head = vec![8, 0, 0, 0, 0, 0, 0, 3];
        head.resize(20, 0);
        let mut tagged = head.clone();
        tagged[..2].copy_from_slice(&[0x81, 0]);
        head.push(0x45);
        tagged.extend([0, 5]);
        assert_eq!(got, [(7_000_000_000, 22, head), (7_000_000_001, 26, tagged)]);
    }

    proptest! {
        /// Whatever the kernel writes, frames lie within the block.
        #[test]
        fn any_bytes_are_walked(
            bytes in proptest::collection::vec(any::<u8>(), 0..600),
            small in proptest::collection::vec((0usize..600, 0u8..4), 0..40),
            cooked in any::<bool>(), ethernet in any::<bool>(), snaplen in 1u32..300,
        ) {
            let mut block = bytes;
            for (at, v) in small {
                if let Some(b) = block.get_mut(at) {
                    *b = v;
                }
            }
            if block.len() > 20 {
                block[FIRST..FIRST + 4].copy_from_slice(&48u32.to_ne_bytes());
            }
            let shape = if cooked { Shape::Cooked } else { Shape::Raw };
            let mut frames = Vec::new();
            walk(&mut block, &rules(shape, ethernet, snaplen), &mut frames);
            for f in &frames {
                prop_assert!(f.start as usize + f.caplen as usize <= block.len());
                prop_assert!(f.caplen <= snaplen);
            }
        }
    }
}
