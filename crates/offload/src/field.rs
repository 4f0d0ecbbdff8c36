//! The fields that a program can read: those at fixed places of headers that the walk finds.

use crate::facts::Facts;
use crate::frame::{Header, Slot};
use crate::value::{Addr, AddrRead, End, From, HeaderBits, Lowered, Num, NumKind, NumRead};
use crate::value::{Range, Test};
use weir_packet::fields::{FieldId, FieldType};
use weir_packet::{arp, ethernet, icmp, ipv4, ipv6, tcp, udp};

const IP: Facts = Facts::IPV4.and(Facts::IPV6);

/// The field as an expression, or why it is not read: one clause.
pub(crate) fn field(id: FieldId) -> Result<Lowered, String> {
    let name = id.name();
    if id.bytes().is_some() {
        return Err(format!("the kernel level does not read bytes by their place, as `{name}`"));
    }
    if let Some(fact) = fact(&name) {
        return Ok(Lowered::Test(Test::Fact(fact)));
    }
    if let Some(addr) = address(&name) {
        return Ok(Lowered::Addr(Addr::Read(addr)));
    }
    let Some(read) = number(&name) else { return Err(why_not(id)) };
    let range = Range { min: 0, max: max(&read.from) };
    let num = Num { kind: NumKind::Read(read), range };
    Ok(match id.info().ty {
        FieldType::Bool => Lowered::Test(Test::NonZero(num)),
        _ => Lowered::Num(num),
    })
}

/// Why a field is not read.
fn why_not(id: FieldId) -> String {
    let name = id.name();
    match id.info().ty {
        FieldType::Str | FieldType::Bytes => format!("`{name}` is not at a fixed place"),
        FieldType::Time => format!("the kernel level has no `{name}`"),
        _ => match &*name {
            "number" => "packets are numbered in user space".to_owned(),
            _ => format!("the kernel level does not read `{name}`"),
        },
    }
}

/// Fields that say whether a frame has a layer.
fn fact(name: &str) -> Option<Facts> {
    Some(match name {
        "ip" => IP,
        "ipv4" => Facts::IPV4,
        "ipv6" => Facts::IPV6,
        "tcp" => Facts::TCP,
        "udp" => Facts::UDP,
        "icmp" => Facts::ICMP,
        "icmp6" => Facts::ICMP6,
        "arp" => Facts::ARP,
        "vlan" => Facts::VLAN,
        // Malformed and cut frames go up, and so do frames with these headers.
        "malformed" | "cut" | "mpls" | "pppoe" | "wlan" | "radiotap" | "tunnel" => Facts::NONE,
        _ => return None,
    })
}

fn address(name: &str) -> Option<AddrRead> {
    Some(match name {
        "ip.src" => AddrRead::Source,
        "ip.dst" => AddrRead::Destination,
        "hosts.a" => AddrRead::HostsEnd(End::Smaller),
        "hosts.b" => AddrRead::HostsEnd(End::Larger),
        "conn.a_ip" => AddrRead::ConnEnd(End::Smaller),
        "conn.b_ip" => AddrRead::ConnEnd(End::Larger),
        "arp.sender_ip" => AddrRead::ArpSender,
        "arp.target_ip" => AddrRead::ArpTarget,
        _ => return None,
    })
}

/// All bits of so many bytes of a header.
const fn link(at: usize, bytes: u8) -> HeaderBits {
    HeaderBits::bytes(Header::Link, at, bytes)
}

const fn network(at: usize, bytes: u8) -> HeaderBits {
    HeaderBits::bytes(Header::Network, at, bytes)
}

const fn transport(at: usize, bytes: u8) -> HeaderBits {
    HeaderBits::bytes(Header::Transport, at, bytes)
}

/// Fields that are numbers, or truths of one bit.
fn number(name: &str) -> Option<NumRead> {
    let read = |needs, from| Some(NumRead { needs, from });
    let slot = |slot, shift, mask| From::Slot { slot, shift, mask };
    let whole = |of| slot(of, 0, -1);
    match name {
        "len" => return read(Facts::NONE, whole(Slot::Len)),
        "linktype" => return read(Facts::NONE, From::Same(1)),
        "eth" => return read(Facts::NONE, From::Same(1)),
        "eth.src" => return read(Facts::NONE, From::Bits(link(ethernet::SOURCE, 6))),
        "eth.dst" => return read(Facts::NONE, From::Bits(link(ethernet::DESTINATION, 6))),
        "link.a" => return read(Facts::NONE, From::LinkEnd(End::Smaller)),
        "link.b" => return read(Facts::NONE, From::LinkEnd(End::Larger)),
        "eth.type" => return read(Facts::TYPED, whole(Slot::EtherType)),
        "vlan.id" => return read(Facts::VLAN, slot(Slot::OuterTag, 0, 0xfff)),
        "vlan.pcp" => return read(Facts::VLAN, slot(Slot::OuterTag, 13, 7)),
        "vlan.dei" => return read(Facts::VLAN, slot(Slot::OuterTag, 12, 1)),
        "vlan.inner" => return read(Facts::QINQ, slot(Slot::InnerTag, 0, 0xfff)),
        "vlan.depth" => return read(Facts::NONE, whole(Slot::Tags)),
        _ => {}
    }
    if let Some(from) = of_ip(name) {
        let needs = match name {
            "ip.id" | "ip.df" => Facts::IPV4,
            "ipv6.flow_label" => Facts::IPV6,
            _ => IP,
        };
        return read(needs, from);
    }
    let (needs, bits) = of_transport(name).or_else(|| of_arp(name))?;
    read(needs, bits)
}

/// Fields of IP. Fields that IPv4 and IPv6 both have are absent without either.
fn of_ip(name: &str) -> Option<From> {
    let whole = |slot| From::Slot { slot, shift: 0, mask: -1 };
    let class6 = network(0, 2);
    Some(match name {
        "ip.version" => From::Version,
        "ip.proto" => whole(Slot::Proto),
        "ip.len" => whole(Slot::IpLen),
        "ip.hdr_len" => whole(Slot::IpHeader),
        "ip.ttl" => From::ByVersion(network(ipv4::TTL, 1), network(ipv6::HOP_LIMIT, 1)),
        "ip.dscp" => From::ByVersion(network(ipv4::DSCP_ECN, 1).bits(2, 6), class6.bits(6, 6)),
        "ip.ecn" => From::ByVersion(network(ipv4::DSCP_ECN, 1).bits(0, 2), class6.bits(4, 2)),
        "ip.df" => From::Bits(network(ipv4::FRAGMENT, 1).bits(6, 1)),
        "ipv6.flow_label" => From::Bits(network(0, 4).bits(0, 20)),
        "conn.forward" => From::ConnForward,
        _ => return None,
    })
}

fn of_transport(name: &str) -> Option<(Facts, From)> {
    let tcp = |at, bytes| (Facts::TCP, From::Bits(transport(at, bytes)));
    let flag = |bit: u16| {
        let at = tcp::FLAGS + 1;
        (Facts::TCP, From::Bits(transport(at, 1).bits(bit.trailing_zeros() as u8, 1)))
    };
    let of = |fact: Facts, at, bytes| (fact, From::Bits(transport(at, bytes)));
    Some(match name {
        "sport" => of(Facts::PORTS, 0, 2),
        "dport" => of(Facts::PORTS, 2, 2),
        "conn.a_port" => (Facts::PORTS, From::ConnPort(End::Smaller)),
        "conn.b_port" => (Facts::PORTS, From::ConnPort(End::Larger)),
        "tcp.sport" => tcp(tcp::SPORT, 2),
        "tcp.dport" => tcp(tcp::DPORT, 2),
        "tcp.seq" => tcp(tcp::SEQ, 4),
        "tcp.ackno" => tcp(tcp::ACKNO, 4),
        "tcp.hdr_len" => {
            (Facts::TCP, From::Bits(transport(tcp::DATA_OFFSET, 1).bits(4, 4).times(4)))
        }
        "tcp.flags" => (Facts::TCP, From::Bits(transport(tcp::FLAGS, 2).bits(0, 9))),
        "tcp.fin" => flag(tcp::FIN),
        "tcp.syn" => flag(tcp::SYN),
        "tcp.rst" => flag(tcp::RST),
        "tcp.psh" => flag(tcp::PSH),
        "tcp.ack" => flag(tcp::ACK),
        "tcp.urg" => flag(tcp::URG),
        "tcp.ece" => flag(tcp::ECE),
        "tcp.cwr" => flag(tcp::CWR),
        "tcp.window" => tcp(tcp::WINDOW, 2),
        "tcp.checksum" => tcp(tcp::CHECKSUM, 2),
        "tcp.urgent" => tcp(tcp::URGENT, 2),
        "tcp.payload_len" => (Facts::TCP, From::TcpPayload),
        "udp.sport" => of(Facts::UDP, udp::SPORT, 2),
        "udp.dport" => of(Facts::UDP, udp::DPORT, 2),
        "udp.len" => of(Facts::UDP, udp::LENGTH, 2),
        "udp.checksum" => of(Facts::UDP, udp::CHECKSUM, 2),
        "icmp.type" => of(Facts::ICMP, icmp::TYPE, 1),
        "icmp.code" => of(Facts::ICMP, icmp::CODE, 1),
        "icmp6.type" => of(Facts::ICMP6, icmp::TYPE, 1),
        "icmp6.code" => of(Facts::ICMP6, icmp::CODE, 1),
        _ => return None,
    })
}

fn of_arp(name: &str) -> Option<(Facts, From)> {
    let of = |at, bytes| Some((Facts::ARP, From::Bits(network(at, bytes))));
    match name {
        "arp.op" => of(arp::OPERATION, 2),
        "arp.sender_mac" => of(arp::SENDER_MAC, 6),
        "arp.target_mac" => of(arp::TARGET_MAC, 6),
        _ => None,
    }
}

/// The largest value that a field can have.
fn max(from: &From) -> i64 {
    match *from {
        From::Bits(bits) => bits.max(),
        From::ByVersion(four, six) => four.max().max(six.max()),
        From::Version => 6,
        From::Slot { slot, shift, mask } => {
            let all = match slot {
                Slot::Len | Slot::DataLen | Slot::IpLen => u32::MAX.into(),
                Slot::EtherType | Slot::OuterTag | Slot::InnerTag | Slot::IpHeader => 0xffff,
                Slot::Proto => 0xff,
                Slot::Tags => 2,
                _ => i64::MAX,
            };
            if mask < 0 { all >> shift } else { all >> shift & i64::from(mask) }
        }
        From::Same(value) => value.into(),
        From::LinkEnd(_) => (1 << 48) - 1,
        From::ConnPort(_) => 0xffff,
        From::ConnForward => 1,
        From::TcpPayload => u32::MAX.into(),
    }
}
