//! The fields of TCP headers.

use super::entry::{Entry, flag, int, whether};
use super::rows::{Rows, be16, be32};
use crate::bits::Bits;
use crate::column::Column;
use crate::tcp;
use crate::walk::Layer;

/// The rows of the catalogue.
pub(super) const FIELDS: &[Entry] = &[
    whether("tcp", "Whether the packet has a TCP header, its ports captured (RFC 9293).", |rows| {
        rows.has(Layer::Tcp)
    }),
    int("tcp.sport", 16, "TCP source port.", |rows, out| {
        rows.loads(out, rows.has(Layer::Tcp), tcp::SPORT, be16)
    }),
    int("tcp.dport", 16, "TCP destination port.", |rows, out| {
        rows.loads(out, rows.has(Layer::Tcp), tcp::DPORT, be16)
    }),
    int("tcp.seq", 32, "TCP sequence number.", |rows, out| {
        rows.loads(out, with_header(rows, tcp::SEQ, 4), tcp::SEQ, be32)
    }),
    int("tcp.ackno", 32, "TCP acknowledgment number; `tcp.ack` is the flag.", |rows, out| {
        rows.loads(out, with_header(rows, tcp::ACKNO, 4), tcp::ACKNO, be32)
    }),
    int("tcp.hdr_len", 8, "TCP header length in bytes, options included.", |rows, out| {
        rows.words(out, with_header(rows, tcp::DATA_OFFSET, 1), |i| header_len(rows, i))
    }),
    int(
        "tcp.flags",
        9,
        "The nine TCP flag bits as a number: FIN 1, SYN 2, RST 4, PSH 8, ACK 16, URG 32, ECE \
         64, CWR 128, NS 256.",
        |rows, out| {
            rows.loads(out, with_header(rows, tcp::FLAGS, 2), tcp::FLAGS, |b| {
                be16(b) & u64::from(tcp::FLAG_BITS)
            })
        },
    ),
    flag("tcp.fin", "FIN flag.", |rows, out| one_flag(rows, out, tcp::FIN)),
    flag("tcp.syn", "SYN flag.", |rows, out| one_flag(rows, out, tcp::SYN)),
    flag("tcp.rst", "RST flag.", |rows, out| one_flag(rows, out, tcp::RST)),
    flag("tcp.psh", "PSH flag.", |rows, out| one_flag(rows, out, tcp::PSH)),
    flag("tcp.ack", "ACK flag.", |rows, out| one_flag(rows, out, tcp::ACK)),
    flag("tcp.urg", "URG flag.", |rows, out| one_flag(rows, out, tcp::URG)),
    flag("tcp.ece", "ECE flag (RFC 3168).", |rows, out| one_flag(rows, out, tcp::ECE)),
    flag("tcp.cwr", "CWR flag (RFC 3168).", |rows, out| one_flag(rows, out, tcp::CWR)),
    int("tcp.window", 16, "TCP window as sent, not scaled.", |rows, out| {
        rows.loads(out, with_header(rows, tcp::WINDOW, 2), tcp::WINDOW, be16)
    }),
    int("tcp.checksum", 16, "TCP checksum as sent.", |rows, out| {
        rows.loads(out, with_header(rows, tcp::CHECKSUM, 2), tcp::CHECKSUM, be16)
    }),
    int("tcp.urgent", 16, "TCP urgent pointer.", |rows, out| {
        rows.loads(out, with_header(rows, tcp::URGENT, 2), tcp::URGENT, be16)
    }),
    int(
        "tcp.payload_len",
        32,
        "TCP payload length in bytes on the wire, from the IP length; absent in first \
         fragments.",
        |rows, out| {
            let whole = rows.has(Layer::TcpWhole);
            let have = whole.minus(rows.has(Layer::Fragment)).minus(rows.has(Layer::Malformed));
            rows.ip_words(out, have, |i, six| {
                let end = rows.l3(i) as u64 + rows.ip_len(i, six);
                end.saturating_sub(rows.l4(i) as u64 + header_len(rows, i))
            })
        },
    ),
];

fn one_flag(rows: &Rows<'_>, out: &mut Column, flag: u16) {
    let have = with_header(rows, tcp::FLAGS, 2);
    // In the order of the wire, so that the flag is turned and not each packet.
    let flag = flag.to_be();
    rows.bit_loads(out, have, tcp::FLAGS, |b| u16::from_ne_bytes(b) & flag != 0);
}

#[inline(always)]
fn header_len(rows: &Rows<'_>, i: usize) -> u64 {
    let [offset] = rows.load(i, rows.l4(i) + tcp::DATA_OFFSET);
    u64::from(offset >> 4) * 4
}

/// The rows whose TCP header has the bytes `at..at + n`. A header whose data offset is no good has
/// no fields from there on.
fn with_header(rows: &Rows<'_>, at: usize, n: usize) -> Bits {
    let whole = rows.has(Layer::TcpWhole);
    let doubtful = rows.has(Layer::Tcp).minus(whole);
    if doubtful.is_empty() {
        return whole;
    }
    let good = |&i: &usize| at < tcp::DATA_OFFSET || header_len(rows, i) >= tcp::HEADER_LEN as u64;
    whole.or(rows.reach(doubtful, at, n).iter().filter(good).collect())
}
