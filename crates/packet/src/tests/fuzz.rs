//! Any bytes through the walk, every reader and every view: what must hold whatever they are.

use crate::arp::Arp;
use crate::bits::Bits;
use crate::column::Column;
use crate::ethernet::Ethernet;
use crate::fields::{FieldId, FieldType, Header, HeaderBytes};
use crate::frame_relay::FrameRelay;
use crate::icmp::Icmp;
use crate::ipv4::Ipv4;
use crate::ipv6::{Extension, Ipv6};
use crate::limits::TEXT_MAX;
use crate::mpls::{self, Label};
use crate::nflog;
use crate::nsh::Nsh;
use crate::pcap::{FileHeader, PcapReader, Step};
use crate::ppi::Ppi;
use crate::ppp::Ppp;
use crate::pppoe::Pppoe;
use crate::radiotap::Radiotap;
use crate::read::{read_field, read_field_text};
use crate::source::{Chunk, FrameBatch, LinkType};
use crate::tcp::Tcp;
use crate::udp::Udp;
use crate::vlan::Vlan;
use crate::walk::slow::{self, Found};
use crate::walk::{self, Headers, LAYERS, Layer, Layers, REASONS, Reason, classify};
use crate::wlan::Wlan;
use std::sync::Arc;
use weir_base::address::number as address_number;

/// Link types by the first byte of the fuzzer's data: those that can be walked, and one that can't.
const LINKS: [u16; 20] =
    [1, 0, 8, 9, 12, 14, 50, 101, 104, 105, 107, 108, 113, 127, 192, 228, 229, 239, 276, 10];

/// Takes a link type, a wire length and a snap length from the first five bytes, the rest as a
/// frame, and asserts what must hold of any frame. Panics where it doesn't.
pub fn fuzz_walk(data: &[u8]) {
    let Some((&[link, len_a, len_b, snap_a, snap_b], body)) = data.split_first_chunk() else {
        return;
    };
    let link = LinkType(LINKS[usize::from(link) % LINKS.len()]);
    let len = match u16::from_be_bytes([len_a, len_b]) {
        0 => body.len() as u32,
        len => len.into(),
    };
    let snap = usize::from(u16::from_be_bytes([snap_a, snap_b])).min(body.len());
    let mut frames = three(link, body, snap, len);
    for headers in [Headers::OUTER, Headers::INNER] {
        frames.headers = headers;
        let mut layers = Layers::new();
        classify(&frames, &mut layers);
        check_walk(&frames, &layers);
        check_read(&frames);
        check_facts(&frames, &layers);
        check_readers(&frames, &layers);
        check_texts(&frames, &layers);
        check_ends(&frames, &layers);
        for i in 0..frames.len() {
            check_views(&frames, &layers, i);
        }
    }
    for at in 0..body.len().min(64) {
        total(&body[at..]);
    }
}

/// The frame whole with its own bytes behind it, the frame cut, and the frame whole where its
/// chunk ends.
fn three(link: LinkType, body: &[u8], snap: usize, len: u32) -> FrameBatch {
    let n = body.len() as u32;
    let chunk: Chunk = Arc::new([body, body, body].concat());
    let mut frames = FrameBatch::new();
    frames.restart(&chunk, 0, link);
    frames.push(1, 0, 0, n, len);
    frames.push(2, 1, n, snap as u32, len);
    frames.push(3, 2, 2 * n, n, len);
    frames
}

/// The batch's walk says of each frame what the slow walk says, and counts it.
pub(super) fn check_walk(frames: &FrameBatch, layers: &Layers) {
    let (mut reasons, mut cut) = ([0; REASONS], 0);
    for i in 0..frames.len() {
        let found = slow::walk(frames.link, &frames.headers, frames.frame(i), frames.lens()[i]);
        let has = (0..LAYERS).map(|l| u32::from(layers.has[l].has(i)) << l).sum();
        // The fast pass leaves out what it knows of all frames that it takes.
        let plain = layers.plain.four.or(layers.plain.six).has(i);
        let said = Found {
            below: if plain { found.below } else { layers.below[i] },
            l3: layers.l3[i],
            l4: layers.l4[i],
            proto: layers.proto[i],
            proto_known: layers.proto_known.has(i),
            vlan_depth: layers.vlan_depth[i],
            layers: has,
            reason: found.reason,
        };
        assert_eq!(said, found, "frame {i} of {frames:?}: {:02x?}", frames.frame(i));
        if let Some(reason) = found.reason {
            reasons[reason as usize] += 1;
        }
        cut += u64::from(layers.has(Layer::Cut).has(i) && found.reason.is_none());
    }
    assert_eq!((layers.malformed, layers.cut), (reasons, cut));
}

/// The same of frames that the reader of a file looked at, so many of them that it looks at some
/// together.
fn check_read(frames: &FrameBatch) {
    const TIMES: usize = 43;
    let header = FileHeader::new(frames.link);
    let mut file = Vec::new();
    for i in (0..frames.len()).cycle().take(frames.len() * TIMES) {
        header.put_record(&mut file, frames.ts()[i], frames.lens()[i], frames.frame(i));
    }
    let (chunk, mut at): (Chunk, usize) = (Arc::new(file), 0);
    let (mut reader, mut read, mut n) = (PcapReader::new(&header), FrameBatch::new(), 0);
    while let Ok(Step::Frames) = reader.fill(&chunk, &mut at, &mut read) {
        let mut layers = Layers::new();
        classify(&read, &mut layers);
        check_walk(&read, &layers);
        n += read.len();
    }
    assert_eq!(n, frames.len() * TIMES);
}

/// Layers imply each other.
fn check_facts(frames: &FrameBatch, layers: &Layers) {
    let has = |layer| layers.has(layer);
    let all = Bits::first(frames.len());
    let ip = has(Layer::Ipv4).or(has(Layer::Ipv6));
    let ports = has(Layer::Tcp).or(has(Layer::Udp));
    for layer in layers.has {
        assert!(all.covers(layer));
    }
    assert!(has(Layer::Tcp).covers(has(Layer::TcpWhole)));
    assert!(has(Layer::Ports).covers(ports));
    assert!(ip.covers(has(Layer::Ports).or(has(Layer::Fragment)).or(layers.proto_known)));
    assert!(layers.proto_known.covers(has(Layer::Ports).or(has(Layer::Icmp))));
    assert!(has(Layer::Ipv4).and(has(Layer::Ipv6)).is_empty());
    for i in 0..frames.len() {
        let below = layers.below[i];
        let inner = frames.headers.are_inner() && below.tunnels > 0;
        assert!(!has(Layer::Tunnel).has(i) || inner && ip.has(i));
        assert!(!has(Layer::Mpls).has(i) || below.mpls_depth > 0);
        assert_eq!(has(Layer::Vlan).has(i), layers.vlan_depth[i] > 0);
        if layers.proto_known.has(i) {
            assert!(layers.l4[i] >= layers.l3[i] + 20);
        }
        if has(Layer::Ports).has(i) {
            assert!(usize::from(layers.l4[i]) + walk::PORTS_LEN <= frames.frame(i).len());
        }
    }
}

/// All fields of the catalogue, and bytes of each header and behind it.
fn fields() -> impl Iterator<Item = FieldId> {
    let places = [(0, 1), (3, 7), (13, 2), (6, 8), (40, 255)];
    let bytes = Header::ALL.into_iter().flat_map(move |(_, header)| {
        places.into_iter().filter_map(move |(at, size)| HeaderBytes::new(header, at, size))
    });
    FieldId::all().chain(bytes.map(FieldId::of_bytes))
}

/// Readers touch only the wanted rows, and give a row the same value whichever rows are wanted.
fn check_readers(frames: &FrameBatch, layers: &Layers) {
    let all = Bits::first(frames.len());
    for id in fields() {
        let (field, name) = (id.info(), id.name());
        let mut whole = Column::new(field.ty.repr());
        read_field(id, frames, layers, Bits::ALL, &mut whole);
        assert!(all.covers(whole.present), "{name}");
        assert!(!field.always || whole.present == all, "{name}");
        for i in 0..frames.len() {
            let others = [(i + 1) % 3, (i + 2) % 3, 3, crate::limits::BATCH - 1];
            let mut one = Column::new(field.ty.repr());
            others.into_iter().for_each(|row| one.set_raw(row, 1));
            read_field(id, frames, layers, Bits::range(i, i + 1), &mut one);
            for row in others {
                assert!(one.present.has(row) && one.raw(row) == 1, "{name}");
            }
            assert_eq!(one.present.has(i), whole.present.has(i), "{name}");
            if one.present.has(i) {
                assert_eq!(one.raw(i), whole.raw(i), "{name}");
                let fits = field.bits == 0 || whole.raw(i) >> field.bits == 0;
                assert!(fits, "{name}");
            }
        }
    }
}

/// Texts are short and printable, there is one where it is said, and each stays what it is
/// whichever rows are wanted. Bytes by their place are those that stand there.
fn check_texts(frames: &FrameBatch, layers: &Layers) {
    for id in fields().filter(|id| id.info().ty.is_text()) {
        let (field, name) = (id.info(), id.name());
        let texts = |rows: Bits| {
            let (mut column, mut texts) = (Column::new(field.ty.repr()), Vec::new());
            read_field_text(id, frames, layers, rows, &mut column, |text| {
                assert!(text.len() <= TEXT_MAX, "{name}");
                let printable = text.iter().all(|byte| (b' '..=b'~').contains(byte));
                assert!(printable || field.ty == FieldType::Bytes, "{name}");
                assert!(id.bytes().is_none_or(|bytes| text.len() == bytes.size()), "{name}");
                texts.push(text.to_vec());
                texts.len() as u64 - 1
            });
            let text = |i: usize| texts[column.word()[i] as usize].clone();
            let found = |i: usize| column.present.has(i).then(|| text(i));
            (0..frames.len()).map(found).collect::<Vec<_>>()
        };
        let mut there = Column::new(field.ty.repr());
        read_field(id, frames, layers, Bits::ALL, &mut there);
        for (i, text) in texts(Bits::ALL).into_iter().enumerate() {
            assert_eq!(there.present.has(i), text.is_some(), "{name}");
            assert_eq!(texts(Bits::range(i, i + 1))[i], text, "{name}");
            if let (Some(text), Some(bytes)) = (text, id.bytes()) {
                assert!(frames.frame(i).windows(bytes.size()).any(|w| w == text), "{name}");
            }
        }
    }
}

/// Bytes after an IP packet are no part of it: whatever they are, the packet has the same layers
/// and fields.
fn check_ends(frames: &FrameBatch, layers: &Layers) {
    let mut padded = FrameBatch::new();
    let ip = layers.has(Layer::Ipv4).or(layers.has(Layer::Ipv6));
    for i in ip.iter() {
        let (frame, len) = (frames.frame(i), frames.lens()[i]);
        let found = slow::walk(frames.link, &Headers::OUTER, frame, len);
        let mut other = frame.to_vec();
        let end = (found.below.end as usize).min(other.len());
        other[end..].iter_mut().for_each(|byte| *byte = !*byte);
        let chunk: Chunk = Arc::new(other);
        padded.restart(&chunk, 0, frames.link);
        padded.headers = frames.headers;
        padded.push(frames.ts()[i], frames.seq()[i], 0, frame.len() as u32, len);
        let mut again = Layers::new();
        classify(&padded, &mut again);
        let behind = |id: FieldId| match id.bytes() {
            Some(bytes) => matches!(bytes.header(), Header::Frame | Header::Eth | Header::Arp),
            None => false,
        };
        for id in fields().filter(|&id| !behind(id)) {
            let value = |frames: &FrameBatch, layers: &Layers, i: usize| {
                let (ty, mut texts) = (id.info().ty, Vec::<u8>::new());
                let mut column = Column::new(ty.repr());
                let row = Bits::range(i, i + 1);
                match ty.is_text() {
                    true => read_field_text(id, frames, layers, row, &mut column, |text| {
                        texts.extend(text);
                        0
                    }),
                    false => read_field(id, frames, layers, row, &mut column),
                }
                (column.present.has(i).then(|| column.raw(i)), texts)
            };
            let (was, is) = (value(frames, layers, i), value(&padded, &again, 0));
            assert_eq!(is, was, "{} of {frame:02x?}", id.name());
        }
    }
}

/// Readers give what the views give.
fn check_views(frames: &FrameBatch, layers: &Layers, i: usize) {
    let one = Checked { frames, layers, i, frame: frames.frame(i) };
    one.link_views();
    one.network_views();
    one.transport_views();
}

/// A frame whose views are compared with columns.
struct Checked<'a> {
    frames: &'a FrameBatch,
    layers: &'a Layers,
    i: usize,
    frame: &'a [u8],
}

impl Checked<'_> {
    /// The value of a field by its column.
    fn value(&self, name: &str) -> Option<u128> {
        let id = FieldId::named(name);
        let mut column = Column::new(id.info().ty.repr());
        read_field(id, self.frames, self.layers, Bits::first(self.frames.len()), &mut column);
        column.present.has(self.i).then(|| column.raw(self.i))
    }

    fn has(&self, layer: Layer) -> bool {
        self.layers.has(layer).has(self.i)
    }

    /// The frame from a position on.
    fn at(&self, start: u16) -> &[u8] {
        &self.frame[usize::from(start).min(self.frame.len())..]
    }

    fn link_views(&self) {
        if self.has(Layer::Eth) {
            let eth = Ethernet::new(self.frame).unwrap();
            assert_eq!(self.value("eth.src"), Some(number(&eth.source())));
            assert_eq!(self.value("eth.dst"), Some(number(&eth.destination())));
        }
        let start = self.layers.below[self.i];
        if self.has(Layer::Mpls) {
            let label = Label::new(self.at(start.mpls)).unwrap();
            assert_eq!(self.value("mpls.label"), Some(label.label().into()));
            assert_eq!(self.value("mpls.exp"), Some(label.traffic_class().into()));
            assert_eq!(self.value("mpls.ttl"), Some(label.ttl().into()));
        }
        if self.has(Layer::Pppoe) {
            let pppoe = Pppoe::new(self.at(start.pppoe));
            assert_eq!(self.value("pppoe.session"), Some(pppoe.unwrap().session().into()));
            assert_eq!(self.value("pppoe.code"), Some(pppoe.unwrap().code().into()));
        }
        if self.has(Layer::Wlan) {
            let wlan = Wlan::new(self.at(start.wlan)).unwrap();
            assert_eq!(self.value("wlan.type"), Some(wlan.kind().into()));
            assert_eq!(self.value("wlan.subtype"), Some(wlan.subtype().into()));
            assert_eq!(self.value("wlan.sa"), wlan.source().map(|mac| number(&mac)));
        }
        if self.has(Layer::Radiotap) {
            let radio = Radiotap::new(self.frame).unwrap();
            assert_eq!(self.value("radiotap.freq"), radio.frequency().map(u128::from));
        }
    }

    fn network_views(&self) {
        if self.has(Layer::Arp) {
            let arp = Arp::new(self.at(self.layers.l3[self.i])).unwrap();
            assert_eq!(self.value("arp.sender_mac"), Some(number(&arp.sender_mac())));
            let target = arp.target_ip().to_ipv6_mapped();
            assert_eq!(self.value("arp.target_ip"), Some(target.to_bits()));
        }
        if self.has(Layer::Ipv4) {
            let ip = Ipv4::new(self.at(self.layers.l3[self.i])).unwrap();
            assert_eq!(self.value("ip.src"), Some(ip.source().to_ipv6_mapped().to_bits()));
            assert_eq!(self.value("ip.dst"), Some(ip.destination().to_ipv6_mapped().to_bits()));
            assert_eq!(self.value("ip.frag_offset"), Some(ip.fragment_offset().into()));
            assert_eq!(self.value("ip.dscp"), Some(ip.dscp().into()));
            assert_eq!(self.value("ip.ttl"), Some(ip.ttl().into()));
        }
        if self.has(Layer::Ipv6) {
            let ip = Ipv6::new(self.at(self.layers.l3[self.i])).unwrap();
            assert_eq!(self.value("ip.src"), Some(address_number(ip.source().into())));
            assert_eq!(self.value("ip.dst"), Some(address_number(ip.destination().into())));
            assert_eq!(self.value("ip.ecn"), Some(ip.ecn().into()));
            assert_eq!(self.value("ipv6.flow_label"), Some(ip.flow_label().into()));
            assert_eq!(self.value("ip.ttl"), Some(ip.hop_limit().into()));
        }
    }

    fn transport_views(&self) {
        if self.has(Layer::TcpWhole) {
            let tcp = Tcp::new(self.at(self.layers.l4[self.i])).unwrap();
            assert_eq!(self.value("tcp.seq"), Some(tcp.seq().into()));
            assert_eq!(self.value("tcp.flags"), Some(tcp.flags().into()));
            assert_eq!(self.value("tcp.urgent"), Some(tcp.urgent().into()));
            assert_eq!(self.value("tcp.hdr_len"), Some(tcp.header_len() as u128));
        }
        if self.has(Layer::Udp) && !self.has(Layer::Cut) && !self.has(Layer::Malformed) {
            let udp = Udp::new(self.at(self.layers.l4[self.i])).unwrap();
            assert_eq!(self.value("udp.len"), Some(udp.length().into()));
            assert_eq!(self.value("udp.checksum"), Some(udp.checksum().into()));
            assert_eq!(self.value("sport"), Some(udp.sport().into()));
        }
    }
}

fn number(mac: &[u8; 6]) -> u128 {
    mac.iter().fold(0, |n, &byte| n << 8 | u128::from(byte))
}

/// Every view of any bytes is a view or a reason, and its slices are inside the bytes.
fn total(bytes: &[u8]) {
    let inside = |parts: &[&[u8]]| {
        assert!(parts.iter().map(|part| part.len()).sum::<usize>() <= bytes.len());
    };
    let expected: &[Reason] = &[
        Reason::ShortHeader,
        Reason::Arp,
        Reason::IpVersion,
        Reason::Ipv4HeaderLength,
        Reason::TcpDataOffset,
        Reason::UdpLength,
        Reason::Pppoe,
        Reason::Wlan,
        Reason::Radiotap,
        Reason::Nsh,
        Reason::Ppi,
        Reason::FrameRelay,
        Reason::Nflog,
    ];
    let known = |reason: Reason| assert!(expected.contains(&reason));
    Ethernet::new(bytes).map_or_else(known, |eth| inside(&[eth.payload()]));
    Vlan::new(bytes).map_or_else(known, |vlan| inside(&[vlan.payload()]));
    Arp::new(bytes).map_or_else(known, |_| ());
    Ipv4::new(bytes).map_or_else(known, |ip| inside(&[ip.options(), ip.payload()]));
    Ipv6::new(bytes).map_or_else(known, |ip| inside(&[ip.payload()]));
    Tcp::new(bytes).map_or_else(known, |tcp| inside(&[tcp.options(), tcp.payload()]));
    Udp::new(bytes).map_or_else(known, |udp| inside(&[udp.payload()]));
    Icmp::new(bytes).map_or_else(known, |icmp| inside(&[icmp.body()]));
    Label::new(bytes).map_or_else(known, |label| inside(&[label.payload()]));
    Pppoe::new(bytes).map_or_else(known, |pppoe| inside(&[pppoe.payload()]));
    Ppp::new(bytes).map_or_else(known, |ppp| inside(&[ppp.payload()]));
    Wlan::new(bytes).map_or_else(known, |wlan| {
        inside(&[wlan.body()]);
        let addresses = [wlan.source(), wlan.destination(), wlan.bssid(), wlan.transmitter()];
        assert!(wlan.receiver().is_some() || addresses == [None; 4]);
    });
    Radiotap::new(bytes).map_or_else(known, |radio| {
        let _ = (radio.flags(), radio.rate(), radio.frequency(), radio.signal());
    });
    Nsh::new(bytes).map_or_else(known, |nsh| assert!(nsh.header_len() >= 8));
    Ppi::new(bytes).map_or_else(known, |ppi| assert!(ppi.header_len() >= 8));
    FrameRelay::new(bytes).map_or_else(known, |header| assert!(header.header_len <= bytes.len()));
    nflog::packet(bytes).map_or_else(known, |_| ());
    assert!(mpls::pseudowire(bytes).is_none_or(|at| at < bytes.len()));
    for kind in 0..=255 {
        Extension::new(kind, bytes).map_or_else(known, |ext| assert!(ext.header_len() >= 8));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::walk::samples::{samples, upper};
    use proptest::prelude::*;

    /// The fuzzer's data for a frame.
    fn data(link: LinkType, len: u16, snap: u16, frame: &[u8]) -> Vec<u8> {
        let link = LINKS.iter().position(|&l| l == link.0).unwrap() as u8;
        [&[link][..], &len.to_be_bytes(), &snap.to_be_bytes(), frame].concat()
    }

    #[test]
    fn samples_hold() {
        for (_, frame) in samples().into_iter().chain(upper()) {
            let bytes = frame.bytes();
            for snap in (0..=bytes.len() as u16).step_by(3) {
                fuzz_walk(&data(frame.link(), 0, snap, &bytes));
                fuzz_walk(&data(frame.link(), snap, 40, &bytes));
            }
        }
    }

    /// Batches of all samples of a link, several times over, of lengths that no file has either.
    #[test]
    fn many_at_once_hold() {
        for link in [LinkType::ETHERNET, LinkType::RAW, LinkType::LINUX_SLL, LinkType::NULL] {
            let of_link = |frame: &crate::craft::Frame| frame.link() == link;
            let all = samples().into_iter().chain(upper()).map(|(_, frame)| frame);
            let all: Vec<Vec<u8>> = all.filter(of_link).map(|frame| frame.bytes()).collect();
            let lens = [0, 1 << 16, 0x7fff_ffff, 0x8000_0000, 0x8000_0036, u32::MAX];
            for len in lens {
                let chunk: Chunk = Arc::new(all.concat().repeat(3));
                let (mut frames, mut at) = (FrameBatch::new(), 0);
                frames.restart(&chunk, 0, link);
                for (bytes, i) in all.iter().cycle().take(all.len() * 3).zip(0..) {
                    if frames.is_full() {
                        break;
                    }
                    let n = bytes.len() as u32;
                    frames.push(i, i as u64, at, n, if len == 0 { n } else { len });
                    at += n;
                }
                let mut layers = Layers::new();
                classify(&frames, &mut layers);
                check_walk(&frames, &layers);
                check_read(&frames);
            }
        }
    }

    proptest! {
        #[test]
        fn any_bytes_hold(bytes in proptest::collection::vec(any::<u8>(), 0..120)) {
            fuzz_walk(&bytes);
        }

        #[test]
        fn mutated_samples_hold(
            pick in any::<prop::sample::Index>(),
            len in prop_oneof![Just(0), 0u16..200],
            snap in 0u16..160,
            edits in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
            tail in proptest::collection::vec(any::<u8>(), 0..60),
        ) {
            let samples: Vec<_> = samples().into_iter().chain(upper()).collect();
            let (_, frame) = pick.get(&samples);
            let mut bytes = frame.bytes();
            for (at, value) in edits {
                let at = at.index(bytes.len());
                bytes[at] = value;
            }
            bytes.extend(tail);
            fuzz_walk(&data(frame.link(), len, snap, &bytes));
        }
    }
}
