//! The fields of the frame itself, and by which interface it came.

use super::entry::{Entry, int, string, time, whether};
use super::ethernet;
use super::rows::Rows;
use crate::bits::Bits;
use crate::column::Column;
use crate::interface::{CapturePoint, Direction};
use crate::known;
use crate::processor::wide;
use crate::source::{FrameBatch, LinkType};
use crate::time::NO_TIME;
use crate::walk::Layer;

/// The rows of the catalogue.
pub(super) const FIELDS: &[Entry] = &[
    time(
        "ts",
        "When the packet was captured: nanoseconds since 1970, UTC; absent where the capture does \
         not say (simple packet blocks of pcapng).",
        |rows, out| {
            let times = rows.frames.ts();
            rows.all(out, times, |&ts| ts as u64);
            // It is before 1970, as no time usually is.
            if wide(|| times.iter().fold(0, |all, &ts| all | ts)) < 0 {
                out.present = out.present.minus(without_time(times).and(rows.wanted()));
            }
        },
    ),
    int("number", 63, "The packet's number in the capture, from 1.", |rows, out| {
        rows.all(out, rows.frames.seq(), |&seq| seq + 1)
    })
    .always(),
    int("len", 32, "Length of the frame on the wire, in bytes.", |rows, out| {
        rows.all(out, rows.frames.lens(), |&len| len.into())
    })
    .always(),
    int(
        "caplen",
        32,
        "Captured bytes of the frame; less than `len` when the snap length cut it.",
        |rows, out| rows.all(out, rows.frames.caplens(), |&caplen| caplen.into()),
    )
    .always(),
    int(
        "linktype",
        16,
        "Link-layer header type (the LINKTYPE registry), 1 for Ethernet.",
        |rows, out| {
            let link = rows.frames.link.0.into();
            rows.words(out, Bits::ALL, |_| link)
        },
    )
    .always(),
    string(
        "interface",
        "Name of the interface that the frame was captured at; of files, pcapng may say it \
         (if_name).",
    ),
    string(
        "direction",
        "\"in\" where the capturing machine received the frame, \"out\" where it sent it; of \
         files, pcapng (epb_flags) and Linux cooked captures may say it.",
    ),
    string(
        "protocol",
        "Name of the protocol that the IP packet carries, such as \"tcp\"; of a frame without one \
         that of its EtherType, such as \"arp\", or \"llc\" where that is a length. Numbers \
         without a name here are \"ip 99\" and \"type 0x9000\".",
    ),
    whether(
        "malformed",
        "Whether a header contradicts itself; the fields before the fault stay readable.",
        |rows| rows.has(Layer::Malformed),
    ),
    whether(
        "cut",
        "Whether the snap length cut the frame inside a header that the walk wanted to read.",
        |rows| rows.has(Layer::Cut),
    ),
];

/// Where cooked headers state the direction of a packet: the low byte of `sll_pkttype` and
/// `sll2_pkttype`, whose values need no more.
const SLL_PACKET_TYPE: usize = 1;
const SLL2_PACKET_TYPE: usize = 10;

/// The rows without a time.
#[cold]
fn without_time(times: &[i64]) -> Bits {
    (0..times.len()).filter(|&i| times[i] == NO_TIME).collect()
}

/// Reads the names of interfaces.
pub(crate) fn interfaces(rows: &Rows<'_>, out: &mut Column, put: &mut impl FnMut(&[u8]) -> u64) {
    let Some(names) = rows.frames.interface_names() else { return };
    names.read(|names| {
        let name = |point: CapturePoint| {
            let name = names.get(usize::from(point.interface()?))?;
            Some(put(name.text.as_bytes()))
        };
        each(rows, out, |i| rows.frames.capture_point(i).with_direction(None), name);
    });
}

/// Reads the names of directions.
pub(crate) fn directions(rows: &Rows<'_>, out: &mut Column, put: &mut impl FnMut(&[u8]) -> u64) {
    let frames = rows.frames;
    let direction = |i| {
        CapturePoint::UNKNOWN
            .with_direction(frames.capture_point(i).direction().or_else(|| cooked(frames, i)))
    };
    each(rows, out, direction, |point| Some(put(point.direction()?.name().as_bytes())));
}

/// Reads the names of protocols.
pub(crate) fn protocols(rows: &Rows<'_>, out: &mut Column, put: &mut impl FnMut(&[u8]) -> u64) {
    let types = ethernet::types(rows);
    let in_ip = rows.layers.proto_known;
    let in_frame = rows.has(Layer::Eth).or(types.have);
    // Frames that follow each other are mostly alike.
    let mut last: Option<(Carried, u64)> = None;
    rows.some_words(out, in_ip.or(in_frame.minus(rows.ip())), |i| {
        let carried = match (in_ip.has(i), types.have.has(i)) {
            (true, _) => Carried::InIp(rows.layers.proto[i]),
            (false, true) => Carried::OfType(types.of(rows, i)),
            (false, false) => Carried::Llc,
        };
        let (_, name) = match last {
            Some(same) if same.0 == carried => same,
            _ => *last.insert((carried, carried.put(put))),
        };
        Some(name)
    });
}

/// The protocol that a frame carries, as its headers number it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Carried {
    /// A protocol of IP.
    InIp(u8),
    /// An EtherType.
    OfType(u64),
    /// A frame whose header has a length in place of a type.
    Llc,
}

impl Carried {
    pub(super) fn put(self, put: &mut impl FnMut(&[u8]) -> u64) -> u64 {
        match self {
            Carried::InIp(number) => match known::protocol(number.into()) {
                Some(name) => put(name.as_bytes()),
                None => put(format!("ip {number}").as_bytes()),
            },
            Carried::OfType(number) => match known::frame_type(number as i64) {
                Some(name) => put(name.as_bytes()),
                None => put(format!("type {number:#06x}").as_bytes()),
            },
            Carried::Llc => put(b"llc"),
        }
    }
}

/// Sets what `word` makes of each row; neighbours are mostly alike, and made only once.
fn each(
    rows: &Rows<'_>,
    out: &mut Column,
    point: impl Fn(usize) -> CapturePoint,
    mut word: impl FnMut(CapturePoint) -> Option<u64>,
) {
    let mut known: Option<(CapturePoint, Option<u64>)> = None;
    rows.some_words(out, Bits::ALL, |i| {
        let point = point(i);
        match known {
            Some((same, word)) if same == point => word,
            _ => known.insert((point, word(point))).1,
        }
    });
}

/// The direction in the header of a Linux cooked capture.
fn cooked(frames: &FrameBatch, i: usize) -> Option<Direction> {
    let at = match frames.link {
        LinkType::LINUX_SLL => SLL_PACKET_TYPE,
        LinkType::LINUX_SLL2 => SLL2_PACKET_TYPE,
        _ => return None,
    };
    frames.frame(i).get(at).map(|&packet_type| Direction::of_packet_type(packet_type))
}
