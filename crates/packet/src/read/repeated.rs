//! Readers of what a packet may have several of.

use crate::bits::Bits;
use crate::fields::rows::Rows;
use crate::fields::{dns, vlan as tag};
use crate::limits::{EACH_MAX, VLAN_TAGS_MAX};
use crate::repeated::{PartValue, Repeated};
use crate::source::FrameBatch;
use crate::tcp::Tcp;
use crate::tcp_options::Options;
use crate::text::Text;
use crate::walk::{Layer, Layers};
use crate::{mpls, vlan};

/// Hands out the parts of the frames `rows`, each with the row that it is of and its values, in the
/// order of rows and then of the packet. Of one row at most [`EACH_MAX`]; returns how many were
/// left out. `layers` are what [`crate::walk::classify`] said of `frames`.
pub fn read_parts(
    what: Repeated,
    frames: &FrameBatch,
    layers: &Layers,
    rows: Bits,
    mut put: impl FnMut(usize, &[PartValue<'_>]),
) -> u64 {
    let rows = Rows::new(frames, layers, rows);
    let mut counted = Counted { put: &mut put, row: usize::MAX, of_row: 0, left_out: 0 };
    match what {
        Repeated::DnsAnswer => answers(&rows, &mut counted),
        Repeated::TcpOption => options(&rows, &mut counted),
        Repeated::VlanTag => tags(&rows, &mut counted),
        Repeated::MplsEntry => entries(&rows, &mut counted),
    }
    counted.left_out
}

/// Counts the parts of each row.
struct Counted<'p, F> {
    put: &'p mut F,
    row: usize,
    of_row: usize,
    left_out: u64,
}

impl<F: FnMut(usize, &[PartValue<'_>])> Counted<'_, F> {
    /// Hands out a part that `values` reads, unless the row has had enough.
    fn part<const N: usize>(&mut self, row: usize, values: [PartValue<'_>; N]) {
        if self.room(row) {
            (self.put)(row, &values);
        }
    }

    /// Whether the row may have one more part; counts it.
    fn room(&mut self, row: usize) -> bool {
        if self.row != row {
            (self.row, self.of_row) = (row, 0);
        }
        self.of_row += 1;
        self.left_out += u64::from(self.of_row > EACH_MAX);
        self.of_row <= EACH_MAX
    }
}

fn answers(rows: &Rows<'_>, out: &mut Counted<'_, impl FnMut(usize, &[PartValue<'_>])>) {
    let (mut name, mut data) = (Text::new(), Text::new());
    for i in dns::candidates(rows).iter() {
        let Some(message) = dns::message(rows, i) else { continue };
        for record in message.answers() {
            if !out.room(i) {
                continue;
            }
            name.clear();
            data.clear();
            let named = record.name.write(&mut name);
            record.write_data(&mut data);
            let values = [
                if named { PartValue::Bytes(name.bytes()) } else { PartValue::Absent },
                PartValue::Int(record.kind.into()),
                PartValue::Int(record.class.into()),
                PartValue::Int(record.ttl.into()),
                record.address().map_or(PartValue::Absent, PartValue::Ip),
                PartValue::Bytes(data.bytes()),
            ];
            (out.put)(i, &values);
        }
    }
}

fn options(rows: &Rows<'_>, out: &mut Counted<'_, impl FnMut(usize, &[PartValue<'_>])>) {
    for i in rows.has(Layer::TcpWhole).iter() {
        let Ok(tcp) = Tcp::new(rows.body(i)) else { continue };
        for (kind, value) in Options::new(tcp.options()).raw().flatten() {
            let len = value.len() as u64 + 2;
            let kind = PartValue::Int(kind.into());
            out.part(i, [kind, PartValue::Int(len), PartValue::Bytes(value)]);
        }
    }
}

fn tags(rows: &Rows<'_>, out: &mut Counted<'_, impl FnMut(usize, &[PartValue<'_>])>) {
    for i in rows.has(Layer::Vlan).iter() {
        let depth = usize::from(rows.layers.vlan_depth[i]).min(VLAN_TAGS_MAX);
        let mut at = tag::first_tag(rows, i);
        for n in 0..depth {
            // Where the second one starts is known; further ones follow it at once, or are not
            // looked for.
            if n == 1 {
                at = tag::second_tag(rows, i);
            } else if n > 1 {
                if !vlan::is_tag(rows.be16(i, at + vlan::TYPE) as u16) {
                    break;
                }
                at += vlan::TAG_LEN;
            }
            let control = rows.be16(i, at + vlan::CONTROL);
            let [id, pcp] = [control & 0xfff, control >> 13].map(PartValue::Int);
            out.part(i, [id, pcp, PartValue::Bool(control & 0x1000 != 0)]);
        }
    }
}

fn entries(rows: &Rows<'_>, out: &mut Counted<'_, impl FnMut(usize, &[PartValue<'_>])>) {
    for i in rows.has(Layer::Mpls).iter() {
        let below = &rows.layers.below[i];
        for n in 0..usize::from(below.mpls_depth) {
            let entry = rows.be32(i, usize::from(below.mpls) + n * mpls::ENTRY_LEN);
            let [label, exp, ttl] = [entry >> 12, entry >> 9 & 7, entry & 0xff].map(PartValue::Int);
            out.part(i, [label, exp, ttl, PartValue::Bool(entry & 0x100 != 0)]);
        }
    }
}

/// Any bytes as the first frame of each link type: parts come to an end, in order, within their
/// limits. Panics where that is not so.
#[cfg(any(test, fuzzing))]
pub fn fuzz_parts(bytes: &[u8]) {
    use crate::source::{Chunk, FrameBatch, LinkType};
    let (chunk, len): (Chunk, _) = (std::sync::Arc::new(bytes.to_vec()), bytes.len() as u32);
    for link in [LinkType::ETHERNET, LinkType::RAW, LinkType::LINUX_SLL2] {
        let mut frames = FrameBatch::new();
        frames.restart(&chunk, 0, link);
        (0..2).for_each(|number| frames.push(0, number, 0, len, len));
        let mut layers = Layers::new();
        crate::walk::classify(&frames, &mut layers);
        for info in crate::repeated::REPEATED {
            let mut seen = [0; 2];
            let out = read_parts(info.what, &frames, &layers, Bits::ALL, |i, values| {
                assert_eq!(values.len(), info.parts.len());
                assert!(i == 0 && seen[1] == 0 || i == 1, "in the order of rows");
                seen[i] += 1;
                for (part, value) in info.parts.iter().zip(values) {
                    check_value(part.ty, *value);
                }
            });
            assert_eq!(seen[0], seen[1], "equal frames have equal parts");
            assert!(seen[0] <= EACH_MAX && (out == 0 || seen[0] == EACH_MAX));
        }
    }
}

#[cfg(any(test, fuzzing))]
fn check_value(ty: crate::repeated::PartType, value: PartValue<'_>) {
    use crate::repeated::PartType;
    match (ty, value) {
        (_, PartValue::Absent) => {}
        (PartType::Bool, PartValue::Bool(_)) | (PartType::Int, PartValue::Int(_)) => {}
        (PartType::Ip, PartValue::Ip(_)) | (PartType::Bytes, PartValue::Bytes(_)) => {}
        (PartType::Str, PartValue::Bytes(text)) => {
            assert!(text.len() <= crate::limits::TEXT_MAX);
            assert!(text.iter().all(|b| matches!(b, b' '..=b'~')));
        }
        (ty, value) => panic!("{value:?} is no {ty:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::craft::messages::dns_response;
    use crate::craft::{Frame, batch};
    use crate::source::LinkType;
    use crate::walk::classify;
    use crate::walk::samples::{A, B};
    use proptest::prelude::*;

    fn shown(frame: &Frame, what: Repeated) -> Vec<String> {
        let bytes = frame.bytes();
        let frames = batch(frame.link(), &[(bytes.clone(), bytes.len() as u32)]);
        let mut layers = Layers::new();
        classify(&frames, &mut layers);
        let mut lines = Vec::new();
        let left_out = read_parts(what, &frames, &layers, Bits::ALL, |_, values| {
            let text = |v: &PartValue<'_>| match v {
                PartValue::Absent => "-".to_owned(),
                PartValue::Bool(b) => b.to_string(),
                PartValue::Int(n) => n.to_string(),
                PartValue::Ip(bits) => format!("{bits:x}"),
                PartValue::Bytes(b) => String::from_utf8_lossy(b).into_owned(),
            };
            lines.push(values.iter().map(text).collect::<Vec<_>>().join(" "));
        });
        assert_eq!(left_out, 0);
        lines
    }

    #[test]
    fn answers_of_a_response() {
        let message = dns_response(7, "A.example", 1, 0, &[&[192, 0, 2, 9], &[1, 2]]);
        let frame = Frame::ethernet().ipv4(A, B).udp(53, 9).payload(&message);
        assert_eq!(
            shown(&frame, Repeated::DnsAnswer),
            ["a.example 1 1 300 ffffc0000209 192.0.2.9", "a.example 1 1 300 - \\# 2 0102"]
        );
        assert!(shown(&Frame::ethernet().ipv4(A, B).udp(53, 9), Repeated::DnsAnswer).is_empty());
    }

    #[test]
    fn options_of_a_segment() {
        let options = [2, 4, 5, 0xb4, 1, 1, 4, 2, 30, 3, b'x', 0];
        let frame = Frame::ethernet().ipv4(A, B).tcp(1, 2).options(&options);
        assert_eq!(shown(&frame, Repeated::TcpOption), ["2 4 \u{5}\u{fffd}", "4 2 ", "30 3 x"]);
    }

    #[test]
    fn tags_and_entries_from_the_outermost() {
        let tags = [vlan::SERVICE, vlan::CUSTOMER, vlan::CUSTOMER];
        let frame = tags.iter().zip([0xb064, 7, 0x1009]);
        let frame = frame.fold(Frame::ethernet(), |frame, (tag, control)| frame.tag(*tag, control));
        let frame = frame.ipv4(A, B).udp(1, 2);
        assert_eq!(shown(&frame, Repeated::VlanTag), ["100 5 true", "7 0 false", "9 0 true"]);
        assert_eq!(shown(&Frame::ethernet().vlan(3).ipv4(A, B), Repeated::VlanTag), ["3 0 false"]);
        let labels = [0, 1, 0xda, 64, 0, 2, 0x1d, 63];
        let frame = Frame::ethernet().header(mpls::UNICAST, &labels).ipv4(A, B).udp(1, 2);
        assert_eq!(shown(&frame, Repeated::MplsEntry), ["29 5 64 false", "33 6 63 true"]);
    }

    #[test]
    fn one_message_makes_no_more_than_the_limit() {
        let answer: &[u8] = &[];
        let message = dns_response(7, "", 1, 0, &vec![answer; EACH_MAX + 5]);
        let frame = Frame::ethernet().ipv4(A, B).udp(53, 9).payload(&message).bytes();
        let frames = batch(LinkType::ETHERNET, &[(frame.clone(), frame.len() as u32)]);
        let mut layers = Layers::new();
        classify(&frames, &mut layers);
        let mut n = 0;
        let left = read_parts(Repeated::DnsAnswer, &frames, &layers, Bits::ALL, |_, _| n += 1);
        assert_eq!((n, left), (EACH_MAX, 5));
        fuzz_parts(&frame);
    }

    proptest! {
        #[test]
        fn any_damage_holds(
            edits in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
            which in 0..3usize,
            cut in any::<prop::sample::Index>(),
        ) {
            let message = dns_response(7, "a.example", 15, 0, &[&[0, 5, 1, b'm', 0xc0, 12]]);
            let frame = match which {
                0 => Frame::ethernet().vlan(3).vlan(4).ipv4(A, B).udp(53, 9).payload(&message),
                1 => Frame::ethernet().ipv4(A, B).tcp(1, 2).options(&[2, 4, 5, 0xb4, 4, 2, 1, 1]),
                _ => Frame::ethernet().header(mpls::UNICAST, &[0, 1, 0xda, 64, 0, 2, 0x1d, 63]),
            };
            let mut bytes = frame.bytes();
            for (at, value) in edits {
                let at = at.index(bytes.len());
                bytes[at] = value;
            }
            fuzz_parts(&bytes[..cut.index(bytes.len() + 1)]);
        }
    }
}
