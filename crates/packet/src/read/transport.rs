//! Readers of TCP, UDP and ICMP fields.

use super::rows::{Rows, be16, be32};
use crate::bits::Bits;
use crate::column::Column;
use crate::fields::Item;
use crate::walk::Layer;
use crate::{icmp, tcp, udp};

/// Reads `item` if it is one of these fields; returns whether it is.
pub(super) fn read(rows: &Rows<'_>, item: Item, out: &mut Column) -> bool {
    let flags = |b: [u8; 2]| be16(b) & u64::from(tcp::FLAG_BITS);
    match item {
        Item::TcpSport => rows.loads(out, rows.has(Layer::Tcp), tcp::SPORT, be16),
        Item::TcpDport => rows.loads(out, rows.has(Layer::Tcp), tcp::DPORT, be16),
        Item::TcpSeq => rows.loads(out, with_tcp(rows, tcp::SEQ, 4), tcp::SEQ, be32),
        Item::TcpAckno => rows.loads(out, with_tcp(rows, tcp::ACKNO, 4), tcp::ACKNO, be32),
        Item::TcpHdrLen => {
            rows.words(out, with_tcp(rows, tcp::DATA_OFFSET, 1), |i| tcp_header_len(rows, i))
        }
        Item::TcpFlags => rows.loads(out, with_tcp(rows, tcp::FLAGS, 2), tcp::FLAGS, flags),
        Item::TcpWindow => rows.loads(out, with_tcp(rows, tcp::WINDOW, 2), tcp::WINDOW, be16),
        Item::TcpChecksum => rows.loads(out, with_tcp(rows, tcp::CHECKSUM, 2), tcp::CHECKSUM, be16),
        Item::TcpUrgent => rows.loads(out, with_tcp(rows, tcp::URGENT, 2), tcp::URGENT, be16),
        Item::TcpPayload => {
            let have = rows.has(Layer::TcpWhole);
            let have = have.minus(rows.has(Layer::Fragment)).minus(rows.has(Layer::Malformed));
            rows.ip_words(out, have, |i, six| {
                let end = rows.l3(i) as u64 + rows.ip_len(i, six);
                end.saturating_sub(rows.l4(i) as u64 + tcp_header_len(rows, i))
            })
        }
        Item::UdpSport => rows.loads(out, rows.has(Layer::Udp), udp::SPORT, be16),
        Item::UdpDport => rows.loads(out, rows.has(Layer::Udp), udp::DPORT, be16),
        Item::UdpLen => rows.loads(out, with(rows, Layer::Udp, udp::LENGTH, 2), udp::LENGTH, be16),
        Item::UdpChecksum => {
            rows.loads(out, with(rows, Layer::Udp, udp::CHECKSUM, 2), udp::CHECKSUM, be16)
        }
        _ => tcp_flag(rows, item, out) || icmp(rows, item, out),
    }
}

fn tcp_flag(rows: &Rows<'_>, item: Item, out: &mut Column) -> bool {
    let flag = u64::from(match item {
        Item::TcpFin => tcp::FIN,
        Item::TcpSyn => tcp::SYN,
        Item::TcpRst => tcp::RST,
        Item::TcpPsh => tcp::PSH,
        Item::TcpAck => tcp::ACK,
        Item::TcpUrg => tcp::URG,
        Item::TcpEce => tcp::ECE,
        Item::TcpCwr => tcp::CWR,
        _ => return false,
    });
    let have = with_tcp(rows, tcp::FLAGS, 2);
    rows.bit_loads(out, have, tcp::FLAGS, |b| be16(b) & flag != 0)
}

fn icmp(rows: &Rows<'_>, item: Item, out: &mut Column) -> bool {
    let (layer, echoes) = match item {
        Item::IcmpType | Item::IcmpCode | Item::IcmpId | Item::IcmpSeq => {
            (Layer::Icmp, [icmp::ECHO_REQUEST, icmp::ECHO_REPLY])
        }
        Item::Icmp6Type | Item::Icmp6Code | Item::Icmp6Id | Item::Icmp6Seq => {
            (Layer::Icmp6, [icmp::ECHO_REQUEST_V6, icmp::ECHO_REPLY_V6])
        }
        _ => return false,
    };
    let kind_and_code = |i: usize| rows.be16(i, rows.l4(i) + icmp::TYPE);
    match item {
        Item::IcmpType | Item::Icmp6Type => {
            rows.words(out, rows.has(layer), |i| kind_and_code(i) >> 8)
        }
        Item::IcmpCode | Item::Icmp6Code => {
            rows.words(out, rows.has(layer), |i| kind_and_code(i) & 0xff)
        }
        _ => {
            let at =
                if matches!(item, Item::IcmpId | Item::Icmp6Id) { icmp::ID } else { icmp::SEQ };
            // The walk asks for less than an echo message's header, so each row is asked.
            let is_echo = |&i: &usize| echoes.contains(&((kind_and_code(i) >> 8) as u8));
            let echoes: Bits = rows.has(layer).iter().filter(is_echo).collect();
            let have = rows.reach(echoes, at, 2);
            rows.words(out, have, |i| rows.be16(i, rows.l4(i) + at))
        }
    }
}

#[inline(always)]
fn tcp_header_len(rows: &Rows<'_>, i: usize) -> u64 {
    let [offset] = rows.load(i, rows.l4(i) + tcp::DATA_OFFSET);
    u64::from(offset >> 4) * 4
}

/// The rows whose transport header is of `layer` and has the bytes `at..at + n`.
fn with(rows: &Rows<'_>, layer: Layer, at: usize, n: usize) -> Bits {
    let have = rows.has(layer);
    let doubtful = have.and(rows.has(Layer::Cut).or(rows.has(Layer::Malformed)));
    if doubtful.is_empty() {
        return have;
    }
    have.minus(doubtful).or(rows.reach(doubtful, at, n))
}

/// The rows whose TCP header has the bytes `at..at + n`. A header whose data offset is no good has
/// no fields from there on.
fn with_tcp(rows: &Rows<'_>, at: usize, n: usize) -> Bits {
    let whole = rows.has(Layer::TcpWhole);
    let doubtful = rows.has(Layer::Tcp).minus(whole);
    if doubtful.is_empty() {
        return whole;
    }
    let good =
        |&i: &usize| at < tcp::DATA_OFFSET || tcp_header_len(rows, i) >= tcp::HEADER_LEN as u64;
    whole.or(rows.reach(doubtful, at, n).iter().filter(good).collect())
}
