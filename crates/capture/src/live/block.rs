//! The frames of a block of the ring, or of some slots (tpacket3_hdr and tpacket2_hdr of
//! linux/if_packet.h), made as they were on the wire.
//!
//! A network adapter or the kernel takes the outer VLAN tag off a frame and keeps it beside; here
//! it is put back. Of a cooked socket the header of LINKTYPE_LINUX_SLL2 is written before what
//! there is. Both go into room that was reserved before each frame.

use crate::cbpf::ClassicProgram;
use crate::sys::packet::Shape;
use weir_packet::interface::Direction;

/// Room that a frame may need before it: a cooked header and a tag.
pub(super) const RESERVE: usize = SLL2 + TAG;

const TAG: usize = 4;
/// Bytes of the header of LINKTYPE_LINUX_SLL2.
const SLL2: usize = 20;
/// Two Ethernet addresses, after which a tag stands.
const ADDRESSES: usize = 12;
/// The TPID where the kernel does not say.
const CUSTOMER_TAG: u16 = 0x8100;

// Of the header of a block.
const FRAMES: usize = 12;
const FIRST: usize = 16;

/// Where the header of a frame says what, and where the address stands after it (sockaddr_ll).
struct Layout {
    seconds: usize,
    nanos: usize,
    captured: usize,
    length: usize,
    status: usize,
    start: usize,
    tci: usize,
    tpid: usize,
    address: usize,
}

/// Of a frame in a block (tpacket3_hdr).
const IN_BLOCK: Layout = Layout {
    seconds: 4,
    nanos: 8,
    captured: 12,
    length: 16,
    status: 20,
    start: 24,
    tci: if cfg!(target_endian = "big") { 34 } else { 32 },
    tpid: 36,
    address: 48,
};

/// Of a frame in a slot (tpacket2_hdr).
const IN_SLOT: Layout = Layout {
    seconds: 16,
    nanos: 20,
    captured: 8,
    length: 4,
    status: 0,
    start: 12,
    tci: 24,
    tpid: 26,
    address: 32,
};

/// Where the next frame of a block starts.
const NEXT: usize = 0;

// Of the address.
const PROTOCOL: usize = 2;
const INDEX: usize = 4;
const HARDWARE: usize = 8;
const PACKET_TYPE: usize = 10;
const ADDRESS_LEN: usize = 11;
const ADDRESS: usize = 12;
const ADDRESS_END: usize = 20;

/// Bytes of the headers with their addresses.
const BLOCK_HEADER: usize = IN_BLOCK.address + ADDRESS_END;
const SLOT_HEADER: usize = IN_SLOT.address + ADDRESS_END;

/// Bytes of a frame that is queued at most; longer ones are cut, and there are none.
const QUEUED_MAX: usize = 256 << 10;

/// Bytes before the frame in a slot at most.
pub(super) const SLOT_OVERHEAD: usize = 80 + RESERVE;

/// A slot whose frame is queued as a whole, too, since the slot is too short for it.
pub(super) const QUEUED: u32 = libc::TP_STATUS_COPY;

/// A frame of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct RingFrame {
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
    pub(super) direction: Direction,
}

/// The rules for reading frames.
#[derive(Clone, Debug)]
pub(super) struct Rules {
    /// The header that they begin with.
    pub(super) shape: Shape,
    /// Whether they are Ethernet frames.
    pub(super) ethernet: bool,
    /// How much of them is kept.
    pub(super) snaplen: u32,
    /// The capture filter, for those that the kernel let through without asking it.
    pub(super) filter: Option<ClassicProgram>,
    /// Whether that is all of them.
    pub(super) all: bool,
}

/// The fate of the frames of a block.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Walked {
    /// Refused by the filter.
    pub(super) refused: u64,
    /// Said to be there, and not found where they should be.
    pub(super) unread: u64,
}

/// Replaces `frames` by those of a block.
pub(super) fn walk(block: &mut [u8], rules: &Rules, frames: &mut Vec<RingFrame>) -> Walked {
    frames.clear();
    let Some(head) = block.first_chunk::<48>() else { return Walked::default() };
    let (count, mut at) = (u32_at(head, FRAMES), u32_at(head, FIRST) as usize);
    let mut walk = Walk { memory: block, rules, frames, refused: 0 };
    let mut unread = 0;
    for n in 0..count {
        let Some(header) = walk.frame::<BLOCK_HEADER>(at, &IN_BLOCK) else {
            unread = u64::from(count - n);
            break;
        };
        let next = u32_at(&header, NEXT) as usize;
        if next == 0 {
            // The last one says so.
            unread = u64::from(count - n - 1);
            break;
        }
        at += next;
    }
    Walked { refused: walk.refused, unread }
}

/// Replaces `frames` by those of slots of so many bytes, all of which the kernel has handed over.
pub(super) fn walk_slots(
    slots: &mut [u8],
    slot: usize,
    rules: &Rules,
    frames: &mut Vec<RingFrame>,
) -> Walked {
    frames.clear();
    let starts = (0..slots.len()).step_by(slot);
    let mut walk = Walk { memory: slots, rules, frames, refused: 0 };
    let unread = starts.filter(|&at| walk.frame::<SLOT_HEADER>(at, &IN_SLOT).is_none()).count();
    Walked { refused: walk.refused, unread: unread as u64 }
}

/// Whether the frame of these slots, which is one, is queued as a whole, too.
pub(super) fn is_queued(slots: &[u8]) -> bool {
    slots.get(..SLOT_HEADER).is_some_and(|h| u32_at(h, IN_SLOT.status) & QUEUED != 0)
}

/// The contents of a slot, with the whole frame in the place of what the slot has of it: `queued`
/// writes it into the room that it gets, and says how long it is.
pub(super) fn whole_slot<E>(
    slot: &[u8],
    whole: &mut Vec<u8>,
    queued: impl FnOnce(&mut [u8]) -> Result<usize, E>,
) -> Result<(), E> {
    let Some(header) = slot.get(..SLOT_HEADER) else { return Ok(()) };
    let start = usize::from(u16_at(header, IN_SLOT.start));
    let length = u32_at(header, IN_SLOT.length) as usize;
    whole.clear();
    whole.extend_from_slice(&slot[..start.min(slot.len())]);
    whole.resize(start + length.min(QUEUED_MAX), 0);
    let n = queued(&mut whole[start..])?;
    // The queued frame is longer where it is not the frame of this slot, and then it is cut.
    whole.truncate(start.saturating_add(n));
    let captured = whole.len() - start;
    if let Some(place) = whole.get_mut(IN_SLOT.captured..IN_SLOT.captured + 4) {
        place.copy_from_slice(&(captured as u32).to_ne_bytes());
    }
    Ok(())
}

/// One walk over memory that the kernel wrote frames into.
struct Walk<'a> {
    memory: &'a mut [u8],
    rules: &'a Rules,
    frames: &'a mut Vec<RingFrame>,
    /// Refused by the filter.
    refused: u64,
}

impl Walk<'_> {
    /// Takes the frame whose header stands here; returns the header, `None` where there is no whole
    /// frame.
    #[inline(always)]
    fn frame<const N: usize>(&mut self, at: usize, is: &Layout) -> Option<[u8; N]> {
        let header = *self.memory.get(at..)?.first_chunk::<N>()?;
        let caplen = u32_at(&header, is.captured);
        let start = at + usize::from(u16_at(&header, is.start));
        let address = is.address;
        let mut frame = RingFrame {
            ts: i64::from(u32_at(&header, is.seconds)) * 1_000_000_000
                + i64::from(u32_at(&header, is.nanos)),
            start: start as u32,
            caplen,
            len: u32_at(&header, is.length),
            index: u32_at(&header, address + INDEX),
            direction: Direction::of_packet_type(header[address + PACKET_TYPE]),
        };
        if start + caplen as usize > self.memory.len() {
            return None;
        }
        let rules = self.rules;
        let status = u32_at(&header, is.status);
        let tagged = status & libc::TP_STATUS_VLAN_VALID != 0;
        if tagged || rules.shape == Shape::Cooked {
            let tag = tagged.then(|| {
                let said = status & libc::TP_STATUS_VLAN_TPID_VALID != 0;
                let tpid = if said { u16_at(&header, is.tpid) } else { CUSTOMER_TAG };
                [tpid.to_be_bytes(), u16_at(&header, is.tci).to_be_bytes()]
            });
            let room = at + N;
            mend(self.memory, (&header[address..], tag), room, rules, &mut frame);
        }
        if (tagged || rules.all) && refused(self.memory, rules, &frame) {
            self.refused += 1;
        } else {
            frame.caplen = frame.caplen.min(rules.snaplen);
            self.frames.push(frame);
        }
        Some(header)
    }
}

/// Puts back what the frame had in front: of its address and its tag, into what is free from `room`
/// on. Cold, and so no part of the loop: most frames are whole.
#[cold]
fn mend(
    memory: &mut [u8],
    (address, tag): (&[u8], Option<[[u8; 2]; 2]>),
    room: usize,
    rules: &Rules,
    frame: &mut RingFrame,
) {
    let start = frame.start as usize;
    let added = match (rules.shape, tag) {
        (Shape::Cooked, tag) => SLL2 + tag.map_or(0, |_| TAG),
        (Shape::Raw, Some(_)) if rules.ethernet => TAG,
        (Shape::Raw, _) => return,
    };
    frame.len = frame.len.saturating_add(added as u32);
    // The header of the frame stays as it is; room for what is added was asked for.
    let room = start.checked_sub(added).filter(|&new| new >= room);
    let Some(new) = room.and_then(|new| memory.get_mut(new..)) else { return };
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
            let protocol = [address[PROTOCOL], address[PROTOCOL + 1]];
            new[0..2].copy_from_slice(&tag.map_or(protocol, |[tpid, _]| tpid));
            new[2..4].copy_from_slice(&[0, 0]);
            new[4..8].copy_from_slice(&u32_at(address, INDEX).to_be_bytes());
            new[8..10].copy_from_slice(&u16_at(address, HARDWARE).to_be_bytes());
            new[10] = address[PACKET_TYPE];
            new[11] = address[ADDRESS_LEN];
            new[12..SLL2].copy_from_slice(&address[ADDRESS..ADDRESS_END]);
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
fn refused(block: &[u8], rules: &Rules, frame: &RingFrame) -> bool {
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
            let size = BLOCK_HEADER + RESERVE + frame.len();
            let mut put = vec![0; BLOCK_HEADER + RESERVE];
            let mut set = |at: usize, v: u32| put[at..at + 4].copy_from_slice(&v.to_ne_bytes());
            set(NEXT, if i + 1 < frames.len() { size as u32 } else { 0 });
            set(IN_BLOCK.seconds, 7);
            set(IN_BLOCK.nanos, i as u32);
            set(IN_BLOCK.captured, frame.len() as u32);
            set(IN_BLOCK.length, frame.len() as u32 + 1);
            set(IN_BLOCK.status, tag.map_or(0, |_| libc::TP_STATUS_VLAN_VALID));
            set(IN_BLOCK.tci, tag.unwrap_or(0).into());
            set(IN_BLOCK.address + INDEX, 3);
            let start = IN_BLOCK.start;
            put[start..start + 2].copy_from_slice(&((BLOCK_HEADER + RESERVE) as u16).to_ne_bytes());
            let protocol = IN_BLOCK.address + PROTOCOL;
            put[protocol..protocol + 2].copy_from_slice(&[8, 0]);
            block.extend(put);
            block.extend_from_slice(frame);
        }
        block
    }

    fn walked(mut block: Vec<u8>, rules: &Rules) -> Vec<(i64, u32, Vec<u8>)> {
        let mut frames = Vec::new();
        assert_eq!(walk(&mut block, rules, &mut frames), Walked::default());
        let bytes = |f: &RingFrame| block[f.start as usize..][..f.caplen as usize].to_vec();
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

    /// A slot of so many bytes with a frame, of which there is as much as fits.
    fn slot(size: usize, frame: &[u8], status: u32) -> Vec<u8> {
        let start = SLOT_HEADER + RESERVE;
        let mut slot = vec![0; size];
        let mut set = |at: usize, v: u32| slot[at..at + 4].copy_from_slice(&v.to_ne_bytes());
        let captured = frame.len().min(size - start);
        set(IN_SLOT.status, libc::TP_STATUS_USER | status);
        set(IN_SLOT.length, frame.len() as u32);
        set(IN_SLOT.captured, captured as u32);
        set(IN_SLOT.seconds, 7);
        slot[IN_SLOT.start..IN_SLOT.start + 2].copy_from_slice(&(start as u16).to_ne_bytes());
        slot[IN_SLOT.tci..IN_SLOT.tci + 2].copy_from_slice(&5u16.to_ne_bytes());
        slot[start..start + captured].copy_from_slice(&frame[..captured]);
        slot
    }

    #[test]
    fn frames_of_slots_are_as_those_of_blocks() {
        let frame: &[u8] = &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 8, 0, 0x45];
        let tag = libc::TP_STATUS_VLAN_VALID;
        let mut slots = [slot(128, frame, 0), slot(128, frame, tag)].concat();
        let (rules, mut frames) = (rules(Shape::Raw, true, 100), Vec::new());
        assert_eq!(walk_slots(&mut slots, 128, &rules, &mut frames), Walked::default());
        let got = |n: usize| &slots[frames[n].start as usize..][..frames[n].caplen as usize];
        assert_eq!((got(0), frames[0].len, frames[0].ts), (frame, 15, 7_000_000_000));
        assert_eq!(got(1), [&frame[..12], &[0x81, 0, 0, 5], &frame[12..]].concat());
        assert_eq!(frames[1].len, 19);
        // A header that says more than there is.
        slots[128 + IN_SLOT.captured] = 200;
        let walked = walk_slots(&mut slots, 128, &rules, &mut frames);
        assert_eq!((walked, frames.len()), (Walked { refused: 0, unread: 1 }, 1));
    }

    #[test]
    fn a_queued_frame_takes_the_place_of_its_beginning() {
        let frame: Vec<u8> = (0..=255).cycle().take(70_000).collect();
        let slot = slot(256, &frame, QUEUED | libc::TP_STATUS_VLAN_VALID);
        assert!(is_queued(&slot));
        let (mut whole, mut frames) = (Vec::new(), Vec::new());
        let queued = |room: &mut [u8]| {
            room.copy_from_slice(&frame);
            Ok::<_, ()>(frame.len())
        };
        assert_eq!(whole_slot(&slot, &mut whole, queued), Ok(()));
        walk_slots(&mut whole, usize::MAX, &rules(Shape::Raw, true, 100_000), &mut frames);
        let RingFrame { start, caplen, len, .. } = frames[0];
        let want = [&frame[..12], &[0x81, 0, 0, 5], &frame[12..]].concat();
        assert!(whole[start as usize..][..caplen as usize] == want && len == 70_004);
        assert_eq!(whole_slot(&slot, &mut whole, |_| Err(())), Err(()));
    }

    proptest! {
        /// Whatever the kernel writes, frames lie within the slots.
        #[test]
        fn any_slots_are_walked(
            bytes in proptest::collection::vec(any::<u8>(), 0..600), size in 16usize..300,
            small in proptest::collection::vec((0usize..600, 0u8..4), 0..40),
            cooked in any::<bool>(), ethernet in any::<bool>(), snaplen in 1u32..300,
            queued in 0usize..100_000,
        ) {
            let mut slots = bytes;
            for (at, v) in small {
                if let Some(b) = slots.get_mut(at) {
                    *b = v;
                }
            }
            let shape = if cooked { Shape::Cooked } else { Shape::Raw };
            let (rules, mut frames) = (rules(shape, ethernet, snaplen), Vec::new());
            let mut whole = Vec::new();
            if whole_slot(&slots, &mut whole, |_| Ok::<_, ()>(queued)).is_ok() {
                walk_slots(&mut whole, usize::MAX, &rules, &mut frames);
                for f in &frames {
                    prop_assert!(f.start as usize + f.caplen as usize <= whole.len());
                }
            }
            walk_slots(&mut slots, size, &rules, &mut frames);
            for f in &frames {
                prop_assert!(f.start as usize + f.caplen as usize <= slots.len());
                prop_assert!(f.caplen <= snaplen);
            }
        }

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
