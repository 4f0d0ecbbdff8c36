//! Plain packets: those whose headers all stand at fixed places, so that a key can be made of the
//! bytes themselves, without a column for each of its fields.

use crate::bits::Bits;
use crate::fields::FieldId;
use crate::source::FrameBatch;
use crate::walk::{Layer, Layers};
use crate::{ipv4, ipv6};

/// Bytes from the start of the IP header that a plain packet lets be read: the longer IP header and
/// the smaller transport header, and some for loads that are wider than what they want. The bytes
/// after a packet's own belong to something else.
pub const HEADERS: usize = 60;

/// The version of the Internet Protocol.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Family {
    /// Version 4.
    Four,
    /// Version 6.
    Six,
}

/// Where plain packets have a field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// All have it, so many bytes from the start of the IP header, and so many bits from the top
    /// of that byte on.
    At(usize, u32),
    /// None has it, unless it has a VLAN tag.
    Absent,
}

impl Family {
    /// Where a field of a plain packet stands; `None` if it stands elsewhere in some, or only some
    /// have it.
    pub fn place(self, field: FieldId) -> Option<Place> {
        // No addresses: where one is absent, those that are there say how a key is packed.
        const ABSENT: [FieldId; 11] = [
            FieldId::named("vlan.id"),
            FieldId::named("vlan.pcp"),
            FieldId::named("vlan.dei"),
            FieldId::named("vlan.inner"),
            FieldId::named("arp.op"),
            FieldId::named("arp.sender_mac"),
            FieldId::named("arp.target_mac"),
            FieldId::named("icmp.type"),
            FieldId::named("icmp.code"),
            FieldId::named("icmp6.type"),
            FieldId::named("icmp6.code"),
        ];
        if ABSENT.contains(&field) {
            return Some(Place::Absent);
        }
        self.at(field).map(|(at, bits)| Place::At(at, bits))
    }

    fn at(self, field: FieldId) -> Option<(usize, u32)> {
        const IP_SRC: FieldId = FieldId::named("ip.src");
        const IP_DST: FieldId = FieldId::named("ip.dst");
        const IP_PROTO: FieldId = FieldId::named("ip.proto");
        const IP_TTL: FieldId = FieldId::named("ip.ttl");
        const IP_ID: FieldId = FieldId::named("ip.id");
        const IP_LEN: FieldId = FieldId::named("ip.len");
        const SPORT: FieldId = FieldId::named("sport");
        const DPORT: FieldId = FieldId::named("dport");
        let four = self == Family::Four;
        let pick = |in_four: usize, in_six: usize| if four { in_four } else { in_six };
        let l4 = pick(ipv4::HEADER_LEN, ipv6::HEADER_LEN);
        let address = if four { 32 } else { 128 };
        match field {
            IP_SRC => Some((pick(ipv4::SOURCE, ipv6::SOURCE), address)),
            IP_DST => Some((pick(ipv4::DESTINATION, ipv6::DESTINATION), address)),
            IP_PROTO => Some((pick(ipv4::PROTOCOL, ipv6::NEXT_HEADER), 8)),
            IP_TTL => Some((pick(ipv4::TTL, ipv6::HOP_LIMIT), 8)),
            IP_ID if four => Some((ipv4::ID, 16)),
            IP_LEN if four => Some((ipv4::TOTAL_LENGTH, 16)),
            SPORT => Some((l4, 16)),
            DPORT => Some((l4 + 2, 16)),
            _ => None,
        }
    }
}

/// The plain packets of one family in a batch.
#[derive(Clone, Copy, Debug)]
pub struct Plain<'a> {
    bytes: &'a [u8],
    offsets: &'a [u32],
    l3: u8,
    tagged: bool,
    rows: Bits,
}

impl<'a> Plain<'a> {
    /// Of the frames that `layers` speaks of.
    pub fn new(frames: &'a FrameBatch, layers: &Layers, family: Family) -> Plain<'a> {
        let rows = match family {
            Family::Four => layers.plain.four,
            Family::Six => layers.plain.six,
        };
        let (bytes, offsets) = (frames.bytes(), frames.offsets());
        // All or none of a batch's plain packets have a tag.
        let tagged = !layers.has(Layer::Vlan).and(rows).is_empty();
        Plain { bytes, offsets, l3: layers.plain.l3, tagged, rows }
    }

    /// Whether they have VLAN tags.
    pub fn tagged(&self) -> bool {
        self.tagged
    }

    /// Which rows they are.
    #[inline(always)]
    pub fn rows(&self) -> Bits {
        self.rows
    }

    /// Where each row's frame starts, for [`Plain::headers`].
    #[inline(always)]
    pub fn offsets(&self) -> &'a [u32] {
        self.offsets
    }

    /// The bytes from the IP header on of a frame that starts there; there are always some if it is
    /// a plain packet.
    #[inline(always)]
    pub fn headers(&self, offset: u32) -> Option<&'a [u8; HEADERS]> {
        let at = offset as usize + usize::from(self.l3);
        self.bytes.get(at..at + HEADERS)?.first_chunk()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::column::Column;
    use crate::craft::batch;
    use crate::fields::FieldType;
    use crate::read::read_field;
    use crate::walk::classify;
    use crate::walk::samples::samples;

    /// The value at the place of a field is the value that its reader reads.
    #[test]
    fn places_agree_with_readers() {
        let mut seen = [0; 2];
        for (name, frame) in samples() {
            let bytes = frame.bytes();
            // Memory goes on behind the last frame of a batch; here that is another frame.
            let frames = [bytes.clone(), vec![0xff; 200]].map(|b| (b.clone(), b.len() as u32));
            let frames = batch(frame.link(), &frames);
            let mut layers = Layers::new();
            classify(&frames, &mut layers);
            for (n, family) in [Family::Four, Family::Six].into_iter().enumerate() {
                let plain = Plain::new(&frames, &layers, family);
                if !plain.rows().has(0) {
                    continue;
                }
                seen[n] += 1;
                for id in FieldId::all() {
                    let (Some(place), field) = (family.place(id), id.info()) else { continue };
                    let mut column = Column::new(field.ty.repr());
                    read_field(id, &frames, &layers, Bits::first(1), &mut column);
                    let Place::At(at, bits) = place else {
                        assert!(!column.present.has(0) || plain.tagged(), "{name}: {}", field.name);
                        continue;
                    };
                    let mut value = [0; 16];
                    value.copy_from_slice(&plain.headers(plain.offsets()[0]).unwrap()[at..at + 16]);
                    let value = u128::from_be_bytes(value) >> (128 - bits);
                    let mapped = field.ty == FieldType::Ip && family == Family::Four;
                    let value = if mapped { value | 0xffff << 32 } else { value };
                    assert!(column.present.has(0), "{name}: {}", field.name);
                    assert_eq!(column.raw(0), value, "{name}: {}", field.name);
                }
            }
        }
        assert!(seen[0] > 3 && seen[1] > 1, "the samples have plain packets: {seen:?}");
    }
}
