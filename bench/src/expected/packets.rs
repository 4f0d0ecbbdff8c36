//! The packets of a trace, read as simply as can be.

use anyhow::{Result, ensure};

/// Bytes of the header of a file, of a record and of Ethernet.
const FILE: usize = 24;
const RECORD: usize = 16;
const ETHERNET: usize = 14;

/// The fields of a packet that the works ask for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packet {
    /// Nanoseconds since 1970.
    pub(super) ts: i64,
    /// Bytes on the wire.
    pub(super) len: u64,
    /// Addresses, IPv4 as `::ffff:a.b.c.d`.
    pub(super) src: u128,
    pub(super) dst: u128,
    pub(super) ttl: u8,
    pub(super) proto: u8,
    pub(super) sport: u16,
    pub(super) dport: u16,
    /// The flags of TCP; `None` for UDP.
    pub(super) tcp_flags: Option<u8>,
}

/// One direction of a conversation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Flow {
    pub(super) src: u128,
    pub(super) sport: u16,
    pub(super) dst: u128,
    pub(super) dport: u16,
    pub(super) proto: u8,
}

impl Packet {
    /// The flow it belongs to.
    pub(super) fn flow(&self) -> Flow {
        let Packet { src, sport, dst, dport, proto, .. } = *self;
        Flow { src, sport, dst, dport, proto }
    }
}

/// The packets of a file that the generator wrote. Panics where it did not.
pub(super) fn packets(file: &[u8]) -> Result<impl Iterator<Item = Packet> + '_> {
    ensure!(file.len() >= FILE && le(file, 0) == 0xa1b2_c3d4, "not a trace of the generator");
    let mut rest = &file[FILE..];
    Ok(std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (header, after) = rest.split_at(RECORD);
        let (frame, next) = after.split_at(le(header, 8) as usize);
        rest = next;
        Some(packet(header, frame))
    }))
}

fn packet(header: &[u8], frame: &[u8]) -> Packet {
    let ts = i64::from(le(header, 0)) * 1_000_000_000 + i64::from(le(header, 4)) * 1_000;
    let ip = &frame[ETHERNET..];
    let (src, dst, ttl, proto, transport) = match be16(frame, 12) {
        0x0800 => {
            assert_eq!(ip[0], 0x45, "IPv4 without options");
            (ipv4(&ip[12..]), ipv4(&ip[16..]), ip[8], ip[9], &ip[20..])
        }
        0x86dd => (ipv6(&ip[8..]), ipv6(&ip[24..]), ip[7], ip[6], &ip[40..]),
        other => panic!("the generator writes no EtherType {other:#x}"),
    };
    assert!(proto == 6 || proto == 17, "TCP or UDP");
    Packet {
        ts,
        len: le(header, 12).into(),
        src,
        dst,
        ttl,
        proto,
        sport: be16(transport, 0),
        dport: be16(transport, 2),
        tcp_flags: (proto == 6).then(|| transport[13]),
    }
}

fn le(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn be16(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes(bytes[at..at + 2].try_into().expect("two bytes"))
}

fn ipv4(bytes: &[u8]) -> u128 {
    let address = u32::from_be_bytes(bytes[..4].try_into().expect("four bytes"));
    0xffff_0000_0000 | u128::from(address)
}

fn ipv6(bytes: &[u8]) -> u128 {
    u128::from_be_bytes(bytes[..16].try_into().expect("sixteen bytes"))
}
