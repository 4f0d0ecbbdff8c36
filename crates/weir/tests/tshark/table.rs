//! The fields of the catalogue: which of tshark's are the same, or why none is.

use super::Packet;
use std::borrow::Cow;
use weir_packet::fields::FieldType;

/// The counterpart of a field in tshark.
pub(crate) enum Mapping {
    /// The first of these fields that the packet has, if its outermost packet has one of these
    /// protocols (any, if none is named).
    As { protocols: &'static [&'static str], fields: &'static [&'static str], form: Form },
    /// Nothing that is the same, and why.
    None(&'static str),
}

/// How tshark's values become those of the field.
pub(crate) enum Form {
    /// As they are, as the field's type writes them.
    Plain,
    /// Whether there are any.
    Exists,
    /// Whether the outermost packet has one of the protocols.
    Has,
    /// A number, times this.
    Times(u32),
    /// Hexadecimal digits of a number, with colons between them.
    Digits,
    /// Seconds since 1970.
    Seconds,
    /// The value that a function makes of all of them.
    By(fn(&Packet<'_>) -> String),
}

use Form::{By, Digits, Exists, Has, Plain, Seconds, Times};

type Names = &'static [&'static str];

const fn from(protocols: Names, fields: Names) -> Mapping {
    Mapping::As { protocols, fields, form: Plain }
}

const fn formed(protocols: Names, fields: Names, form: Form) -> Mapping {
    Mapping::As { protocols, fields, form }
}

const fn has(protocols: Names) -> Mapping {
    Mapping::As { protocols, fields: &[], form: Has }
}

const DERIVED: Mapping =
    Mapping::None("made of fields that are compared; see the tests of read/field.rs");
const INNER: Mapping = Mapping::None("tshark has no notion of it; see truth.rs on inner packets");
const OURS: Mapping = Mapping::None("a notion of our own; walk.rs has its tests");

const ECH: Mapping =
    Mapping::None("tshark lists the numbers of extensions, also where a hello is cut");

const ANY: Names = &[];
const IP: Names = &["ip", "ipv6"];
const V4: Names = &["ip"];
const V6: Names = &["ipv6"];
const PORTS: Names = &["tcp", "udp", "udplite", "sctp", "dccp"];
const TCP: Names = &["tcp"];
const UDP: Names = &["udp"];
const WLAN: Names = &["wlan"];
const VLAN: Names = &["vlan"];
const MPLS: Names = &["mpls"];
const ARP: Names = &["arp"];
const DNS: Names = &["dns", "mdns", "llmnr"];
const TLS: Names = &["tls"];
const HTTP: Names = &["http"];
const DHCP: Names = &["dhcp"];
const NTP: Names = &["ntp"];

/// The catalogue in its order.
#[rustfmt::skip]
pub(crate) const FIELDS: &[(&str, Mapping)] = &[
    ("ts", formed(ANY, &["frame.time_epoch"], Seconds)),
    ("number", from(ANY, &["frame.number"])),
    ("len", from(ANY, &["frame.len"])),
    ("caplen", from(ANY, &["frame.cap_len"])),
    ("linktype", Mapping::None("tshark numbers encapsulations in a way of its own")),
    ("interface", formed(ANY, &["frame.interface_name"], By(interface))),
    ("direction", Mapping::None("tshark shows what a file says by fields of each link layer")),
    ("protocol", Mapping::None("tshark names the innermost protocol that it reads")),
    ("malformed", OURS),
    ("cut", OURS),
    ("eth", has(&["eth"])),
    ("eth.src", from(&["eth"], &["eth.src"])),
    ("eth.dst", from(&["eth"], &["eth.dst"])),
    ("eth.type", formed(ANY, &["vlan.etype", "eth.type", "sll.etype"], By(ethertype))),
    ("link.a", DERIVED),
    ("link.b", DERIVED),
    ("vlan", has(&["vlan", "ieee8021ad"])),
    ("vlan.id", from(VLAN, &["vlan.id"])),
    ("vlan.pcp", from(VLAN, &["vlan.priority"])),
    ("vlan.dei", from(VLAN, &["vlan.dei"])),
    ("vlan.inner", Mapping::None("tags of inner frames are among tshark's; truths have the depth")),
    ("vlan.depth", formed(ANY, &[], By(tags))),
    ("mpls", has(MPLS)),
    ("mpls.label", from(MPLS, &["mpls.label"])),
    ("mpls.exp", from(MPLS, &["mpls.exp"])),
    ("mpls.ttl", from(MPLS, &["mpls.ttl"])),
    ("mpls.bottom", Mapping::None("labels of inner stacks are among tshark's")),
    ("mpls.depth", Mapping::None("labels of inner stacks are among tshark's")),
    ("pppoe", has(&["pppoes", "pppoed"])),
    ("pppoe.code", from(ANY, &["pppoe.code"])),
    ("pppoe.session", from(ANY, &["pppoe.session_id"])),
    ("wlan", formed(ANY, &[], By(|p| p.below().any(|q| q == "wlan").to_string()))),
    ("wlan.type", formed(WLAN, &["wlan.fc.type"], By(|p| wlan(p, "wlan.fc.type")))),
    ("wlan.subtype", formed(WLAN, &["wlan.fc.subtype"], By(|p| wlan(p, "wlan.fc.subtype")))),
    ("wlan.retry", formed(WLAN, &["wlan.fc.retry"], By(|p| flag(wlan(p, "wlan.fc.retry"))))),
    ("wlan.protected",
        formed(WLAN, &["wlan.fc.protected"], By(|p| flag(wlan(p, "wlan.fc.protected"))))),
    ("wlan.ra", formed(WLAN, &["wlan.ra"], By(|p| wlan(p, "wlan.ra")))),
    ("wlan.ta", formed(WLAN, &["wlan.ta"], By(|p| wlan(p, "wlan.ta")))),
    ("wlan.da", formed(WLAN, &["wlan.da"], By(|p| wlan(p, "wlan.da")))),
    ("wlan.sa", formed(WLAN, &["wlan.sa"], By(|p| wlan(p, "wlan.sa")))),
    ("wlan.bssid", formed(WLAN, &["wlan.bssid"], By(|p| wlan(p, "wlan.bssid")))),
    ("radiotap", has(&["radiotap"])),
    ("radiotap.rate", formed(&["radiotap"], &["radiotap.datarate"], Times(1000))),
    ("radiotap.freq", from(ANY, &["radiotap.channel.freq"])),
    ("radiotap.signal", from(ANY, &["radiotap.dbm_antsignal"])),
    ("tunnel", INNER),
    ("tunnel.depth", INNER),
    ("tunnel.id", INNER),
    ("tunnel.src", INNER),
    ("tunnel.dst", INNER),
    ("arp", has(ARP)),
    ("arp.op", from(ARP, &["arp.opcode"])),
    ("arp.sender_mac", from(ARP, &["arp.src.hw_mac"])),
    ("arp.sender_ip", from(ARP, &["arp.src.proto_ipv4"])),
    ("arp.target_mac", from(ARP, &["arp.dst.hw_mac"])),
    ("arp.target_ip", from(ARP, &["arp.dst.proto_ipv4"])),
    ("ip", has(IP)),
    ("ipv4", has(V4)),
    ("ipv6", has(V6)),
    ("ip.src", formed(IP, &["ip.src", "ipv6.src"], By(|p| ip(p, "ip.src", "ipv6.src")))),
    ("ip.dst", formed(IP, &["ip.dst", "ipv6.dst"], By(|p| ip(p, "ip.dst", "ipv6.dst")))),
    ("ip.proto", formed(V4, &["ip.proto"], By(|p| v4(p, "ip.proto", 1)))),
    ("ip.version",
        formed(IP, &["ip.version", "ipv6.version"], By(|p| ip(p, "ip.version", "ipv6.version")))),
    ("ip.len", formed(V4, &["ip.len"], By(|p| v4(p, "ip.len", 1)))),
    ("ip.hdr_len", formed(V4, &["ip.hdr_len"], By(|p| v4(p, "ip.hdr_len", 1)))),
    ("ip.ttl", formed(IP, &["ip.ttl", "ipv6.hlim"], By(|p| ip(p, "ip.ttl", "ipv6.hlim")))),
    ("ip.dscp", formed(IP, &["ip.dsfield.dscp", "ipv6.tclass.dscp"],
        By(|p| ip(p, "ip.dsfield.dscp", "ipv6.tclass.dscp")))),
    ("ip.ecn", formed(IP, &["ip.dsfield.ecn", "ipv6.tclass.ecn"],
        By(|p| ip(p, "ip.dsfield.ecn", "ipv6.tclass.ecn")))),
    ("ip.id", formed(V4, &["ip.id"], By(|p| v4(p, "ip.id", 1)))),
    ("ip.df", formed(V4, &["ip.flags.df"], By(|p| flag(v4(p, "ip.flags.df", 1))))),
    ("ip.frag", Mapping::None("made of ip.more_frags and ip.frag_offset, which are compared")),
    ("ip.frag_offset", formed(V4, &["ip.frag_offset"], By(|p| v4(p, "ip.frag_offset", 8)))),
    ("ip.more_frags", formed(V4, &["ip.flags.mf"], By(|p| flag(v4(p, "ip.flags.mf", 1))))),
    ("ipv6.flow_label", from(V6, &["ipv6.flow"])),
    ("sport", formed(PORTS, &["tcp.srcport", "udp.srcport", "sctp.srcport", "dccp.srcport"],
        By(|p| port(p, "srcport")))),
    ("dport", formed(PORTS, &["tcp.dstport", "udp.dstport", "sctp.dstport", "dccp.dstport"],
        By(|p| port(p, "dstport")))),
    ("hosts.a", DERIVED),
    ("hosts.b", DERIVED),
    ("conn.a_ip", DERIVED),
    ("conn.a_port", DERIVED),
    ("conn.b_ip", DERIVED),
    ("conn.b_port", DERIVED),
    ("conn.forward", DERIVED),
    ("tcp", has(TCP)),
    ("tcp.sport", from(TCP, &["tcp.srcport"])),
    ("tcp.dport", from(TCP, &["tcp.dstport"])),
    ("tcp.seq", from(TCP, &["tcp.seq"])),
    ("tcp.ackno", from(TCP, &["tcp.ack"])),
    ("tcp.hdr_len", from(TCP, &["tcp.hdr_len"])),
    ("tcp.flags", formed(TCP, &["tcp.flags"], By(nine_flags))),
    ("tcp.fin", from(TCP, &["tcp.flags.fin"])),
    ("tcp.syn", from(TCP, &["tcp.flags.syn"])),
    ("tcp.rst", from(TCP, &["tcp.flags.reset"])),
    ("tcp.psh", from(TCP, &["tcp.flags.push"])),
    ("tcp.ack", from(TCP, &["tcp.flags.ack"])),
    ("tcp.urg", from(TCP, &["tcp.flags.urg"])),
    ("tcp.ece", from(TCP, &["tcp.flags.ece"])),
    ("tcp.cwr", from(TCP, &["tcp.flags.cwr"])),
    ("tcp.window", from(TCP, &["tcp.window_size_value"])),
    ("tcp.checksum", from(TCP, &["tcp.checksum"])),
    ("tcp.urgent", from(TCP, &["tcp.urgent_pointer"])),
    ("tcp.payload_len", from(TCP, &["tcp.len"])),
    ("udp", has(UDP)),
    ("udp.sport", from(UDP, &["udp.srcport"])),
    ("udp.dport", from(UDP, &["udp.dstport"])),
    ("udp.len", from(UDP, &["udp.length"])),
    ("udp.checksum", from(UDP, &["udp.checksum"])),
    ("icmp", has(&["icmp"])),
    ("icmp.type", from(&["icmp"], &["icmp.type"])),
    ("icmp.code", from(&["icmp"], &["icmp.code"])),
    ("icmp.id", formed(&["icmp"], &["icmp.ident"], By(|p| echo(p, "icmp.ident")))),
    ("icmp.seq", formed(&["icmp"], &["icmp.seq"], By(|p| echo(p, "icmp.seq")))),
    ("icmp.mtu", from(&["icmp"], &["icmp.mtu"])),
    ("icmp6", has(&["icmpv6"])),
    ("icmp6.type", from(&["icmpv6"], &["icmpv6.type"])),
    ("icmp6.code", from(&["icmpv6"], &["icmpv6.code"])),
    ("icmp6.id", formed(&["icmpv6"], &["icmpv6.echo.identifier"],
        By(|p| echo6(p, "icmpv6.echo.identifier")))),
    ("icmp6.seq", formed(&["icmpv6"], &["icmpv6.echo.sequence_number"],
        By(|p| echo6(p, "icmpv6.echo.sequence_number")))),
    ("icmp6.mtu", from(&["icmpv6"], &["icmpv6.mtu"])),
    ("tcp.mss", from(TCP, &["tcp.options.mss_val"])),
    ("tcp.wscale", from(TCP, &["tcp.options.wscale.shift"])),
    ("tcp.sack_permitted", formed(TCP, &["tcp.options.sack_perm"], Exists)),
    ("tcp.sack_blocks", formed(TCP, &["tcp.options.sack.count"], By(blocks))),
    ("tcp.sack_left", from(TCP, &["tcp.options.sack_le"])),
    ("tcp.sack_right", from(TCP, &["tcp.options.sack_re"])),
    ("tcp.tsval", from(TCP, &["tcp.options.timestamp.tsval"])),
    ("tcp.tsecr", from(TCP, &["tcp.options.timestamp.tsecr"])),
    ("dns", has(DNS)),
    ("dns.id", from(DNS, &["dns.id"])),
    ("dns.qr", from(DNS, &["dns.flags.response"])),
    ("dns.opcode", from(DNS, &["dns.flags.opcode"])),
    ("dns.aa", from(DNS, &["dns.flags.authoritative"])),
    ("dns.tc", from(DNS, &["dns.flags.truncated"])),
    ("dns.rd", from(DNS, &["dns.flags.recdesired"])),
    ("dns.ra", from(DNS, &["dns.flags.recavail"])),
    ("dns.rcode", from(DNS, &["dns.flags.rcode"])),
    ("dns.qname", formed(DNS, &["dns.qry.name"], By(qname))),
    ("dns.qtype", from(DNS, &["dns.qry.type"])),
    ("dns.qclass", formed(DNS, &["dns.qry.class", "dns.qry.qu"], By(qclass))),
    ("dns.qdcount", from(DNS, &["dns.count.queries"])),
    ("dns.ancount", from(DNS, &["dns.count.answers"])),
    ("dns.nscount", from(DNS, &["dns.count.auth_rr"])),
    ("dns.arcount", from(DNS, &["dns.count.add_rr"])),
    ("dns.addr", Mapping::None("tshark has addresses of all sections in one list")),
    ("dns.ttl", formed(DNS, &["dns.resp.ttl", "dns.count.answers"], By(first_ttl))),
    ("tls", formed(TLS, &["tls.record.content_type", "tls.record.opaque_type"], Exists)),
    ("tls.content_type", from(TLS, &["tls.record.content_type", "tls.record.opaque_type"])),
    ("tls.handshake_type", formed(TLS, &["tls.handshake.type"], By(hello))),
    ("tls.version", Mapping::None("tshark has versions offered, chosen and of records apart")),
    ("tls.sni", from(TLS, &["tls.handshake.extensions_server_name"])),
    ("tls.alpn", formed(TLS, &["tls.handshake.extensions_alpn_str"],
        By(|p| p.all("tls.handshake.extensions_alpn_str").join(",")))),
    ("tls.ja4", Mapping::None("tshark has it from version 4.4 on")),
    ("tls.ech", ECH),
    ("quic", formed(ANY, &["quic.header_form", "quic.version"],
        By(|p| long_quic(p).to_string()))),
    ("quic.version", formed(&["quic"], &["quic.version", "quic.header_form"], By(quic_version))),
    ("quic.type", formed(&["quic"], &["quic.long.packet_type", "quic.version"], By(quic_type))),
    ("quic.sni", from(&["quic"], &["tls.handshake.extensions_server_name"])),
    ("quic.alpn", formed(&["quic"], &["tls.handshake.extensions_alpn_str"],
        By(|p| p.all("tls.handshake.extensions_alpn_str").join(",")))),
    ("quic.ja4", Mapping::None("tshark has it from version 4.4 on")),
    ("quic.ech", ECH),
    ("http", formed(HTTP, &["http.request", "http.response"], Exists)),
    ("http.method", from(HTTP, &["http.request.method"])),
    ("http.uri", from(HTTP, &["http.request.uri"])),
    ("http.host", from(HTTP, &["http.host"])),
    ("http.user_agent", from(HTTP, &["http.user_agent"])),
    ("http.status", from(HTTP, &["http.response.code"])),
    ("dhcp", formed(DHCP, &["dhcp.cookie"], Exists)),
    ("dhcp.op", from(DHCP, &["dhcp.type"])),
    ("dhcp.type", from(DHCP, &["dhcp.option.dhcp"])),
    ("dhcp.xid", from(DHCP, &["dhcp.id"])),
    ("dhcp.client_mac", from(DHCP, &["dhcp.hw.mac_addr"])),
    ("dhcp.client_ip", from(DHCP, &["dhcp.ip.client"])),
    ("dhcp.your_ip", from(DHCP, &["dhcp.ip.your"])),
    ("dhcp.requested_ip", from(DHCP, &["dhcp.option.requested_ip_address"])),
    ("dhcp.server_id", from(DHCP, &["dhcp.option.dhcp_server_id"])),
    ("dhcp.hostname", from(DHCP, &["dhcp.option.hostname"])),
    ("ntp", has(NTP)),
    ("ntp.version", from(NTP, &["ntp.flags.vn"])),
    ("ntp.mode", from(NTP, &["ntp.flags.mode"])),
    ("ntp.leap", from(NTP, &["ntp.flags.li"])),
    ("ntp.stratum", from(NTP, &["ntp.stratum"])),
    ("ntp.refid", formed(NTP, &["ntp.refid"], Digits)),
    ("ntp.transmit", Mapping::None("tshark writes it out as a date, rounded to nanoseconds")),
    ("sctp", has(&["sctp"])),
    ("sctp.vtag", from(&["sctp"], &["sctp.verification_tag"])),
    ("sctp.chunk_type", from(&["sctp"], &["sctp.chunk_type"])),
    ("igmp", has(&["igmp"])),
    ("igmp.type", from(&["igmp"], &["igmp.type"])),
    ("igmp.group", from(&["igmp"], &["igmp.maddr"])),
    ("esp", has(&["esp"])),
    ("esp.spi", from(&["esp"], &["esp.spi"])),
    ("esp.seq", from(&["esp"], &["esp.sequence"])),
    ("ah", has(&["ah"])),
    ("ah.spi", from(&["ah"], &["ah.spi"])),
    ("ah.seq", from(&["ah"], &["ah.sequence"])),
    ("lldp", has(&["lldp"])),
    ("payload", Mapping::None("bytes that tshark gives to the protocols above")),
];

impl Mapping {
    /// The value of the field by tshark; empty where it is absent.
    pub(crate) fn expected(&self, ty: FieldType, packet: &Packet<'_>) -> String {
        let Mapping::As { protocols, fields, form } = self else { return String::new() };
        let is_there = protocols.is_empty() || packet.has(protocols);
        if let Has = form {
            return is_there.to_string();
        }
        if !is_there {
            let asks = matches!(form, Exists) && *protocols != TCP;
            return if asks { "false".to_owned() } else { String::new() };
        }
        if let By(make) = form {
            return typed(ty, &make(packet));
        }
        let value = fields.iter().map(|f| packet.first(f)).find(|v| !v.is_empty()).unwrap_or("");
        match form {
            Exists => (!value.is_empty()).to_string(),
            Times(n) => times(value, (*n).into()),
            Digits if value.is_empty() => String::new(),
            Digits => i64::from_str_radix(&value.replace(':', ""), 16)
                .map_or_else(|_| value.to_owned(), |n| n.to_string()),
            Seconds => nanoseconds(value),
            _ => typed(ty, value),
        }
    }
}

/// A value as the type writes it.
fn typed(ty: FieldType, value: &str) -> String {
    match ty {
        FieldType::Bool => flag(value.to_owned()),
        FieldType::Int => number(value),
        _ => value.to_owned(),
    }
}

/// A number in decimal.
pub(crate) fn number(value: &str) -> String {
    let parsed = match value.strip_prefix("0x") {
        Some(digits) => i128::from_str_radix(digits, 16).ok(),
        None => value.parse().ok(),
    };
    parsed.map_or_else(|| value.to_owned(), |n| n.to_string())
}

fn flag(value: String) -> String {
    match value.as_str() {
        "1" | "True" => "true".to_owned(),
        "0" | "False" => "false".to_owned(),
        _ => value,
    }
}

fn times(value: &str, n: u64) -> String {
    let whole = value.parse::<f64>().map(|x| (x * n as f64) as i64);
    whole.map_or_else(|_| value.to_owned(), |n| n.to_string())
}

fn nanoseconds(value: &str) -> String {
    let Some((whole, fraction)) = value.split_once('.') else { return value.to_owned() };
    let nanos: i128 = format!("{fraction:0<9}")[..9].parse().expect("digits");
    let nanos = if whole.starts_with('-') { -nanos } else { nanos };
    let whole: i128 = whole.parse().expect("digits");
    (whole * 1_000_000_000 + nanos).to_string()
}

/// The value of a field of ours, as it is compared.
pub(crate) fn shown<'a>(name: &str, value: &'a str) -> Cow<'a, str> {
    match name {
        "dns.qname" if value.contains('\\') => Cow::Owned(unescaped(value)),
        // Texts are shown with their backslashes doubled.
        "interface" => Cow::Owned(value.replace(r"\\", r"\")),
        _ => Cow::Borrowed(value),
    }
}

/// A name without the escapes that zone files have; one of bytes that are not ASCII stays.
fn unescaped(name: &str) -> String {
    let (mut out, mut rest) = (String::new(), name);
    while let Some((before, after)) = rest.split_once('\\') {
        out.push_str(before);
        let digits = after.get(..3).and_then(|d| d.parse::<u8>().ok());
        match digits {
            Some(byte @ (b' '..=b'~')) => {
                out.push(char::from(byte));
                rest = &after[3..];
            }
            Some(_) => return name.to_owned(),
            None => {
                out.extend(after.chars().next());
                rest = after.get(1..).unwrap_or("");
            }
        }
    }
    out + rest
}

fn interface(p: &Packet<'_>) -> String {
    let name = p.first("frame.interface_name");
    if name == "unknown" { String::new() } else { name.to_owned() }
}

/// That of the last tag before the packet, or that of the frame.
fn ethertype(p: &Packet<'_>) -> String {
    let tags = p.below().filter(|q| *q == "vlan").count();
    let tagged = p.all("vlan.etype");
    if let Some(last) = tags.checked_sub(1).and_then(|n| tagged.get(n)) {
        return (*last).to_owned();
    }
    let cooked = p.below().next() == Some("sll");
    p.first(if cooked { "sll.etype" } else { "eth.type" }).to_owned()
}

fn tags(p: &Packet<'_>) -> String {
    p.below().filter(|q| matches!(*q, "vlan" | "ieee8021ad")).count().to_string()
}

fn wlan(p: &Packet<'_>, field: &str) -> String {
    let outside = p.below().any(|q| q == "wlan");
    if outside { p.first(field).to_owned() } else { String::new() }
}

fn ip(p: &Packet<'_>, four: &str, six: &str) -> String {
    p.first(if p.has(V4) { four } else { six }).to_owned()
}

fn v4(p: &Packet<'_>, field: &str, n: u64) -> String {
    match number(p.first(field)) {
        value if n > 1 => times(&value, n),
        value => value,
    }
}

/// The port of the outermost transport header.
fn port(p: &Packet<'_>, which: &str) -> String {
    let transport = p.outer.iter().find(|q| PORTS.contains(q)).map_or("", |q| match *q {
        "udplite" => "udp",
        other => other,
    });
    p.first(&format!("{transport}.{which}")).to_owned()
}

/// Nine bits of twelve.
fn nine_flags(p: &Packet<'_>) -> String {
    let flags = number(p.first("tcp.flags"));
    flags.parse::<u16>().map_or(flags, |n| (n & 0x1ff).to_string())
}

/// tshark does not count none.
fn blocks(p: &Packet<'_>) -> String {
    let count = p.first("tcp.options.sack.count");
    if count.is_empty() { "0".to_owned() } else { count.to_owned() }
}

fn echo(p: &Packet<'_>, field: &str) -> String {
    let asks = matches!(p.first("icmp.type"), "0" | "8");
    if asks { p.first(field).to_owned() } else { String::new() }
}

fn echo6(p: &Packet<'_>, field: &str) -> String {
    let asks = matches!(p.first("icmpv6.type"), "128" | "129");
    if asks { p.first(field).to_owned() } else { String::new() }
}

fn qname(p: &Packet<'_>) -> String {
    match p.first("dns.qry.name") {
        "<Root>" | "<root>" => ".".to_owned(),
        name => name.to_ascii_lowercase(),
    }
}

/// tshark shows the bit that asks for a unicast answer apart.
fn qclass(p: &Packet<'_>) -> String {
    let class = number(p.first("dns.qry.class"));
    let unicast = flag(p.first("dns.qry.qu").to_owned()) == "true";
    class.parse::<u16>().map_or(class, |n| (n | if unicast { 0x8000 } else { 0 }).to_string())
}

fn first_ttl(p: &Packet<'_>) -> String {
    let answers = p.first("dns.count.answers");
    if answers == "0" { String::new() } else { p.first("dns.resp.ttl").to_owned() }
}

/// Whether QUIC has a long header of a version that is published: tshark knows drafts, too, and
/// short headers from the packets before.
fn long_quic(p: &Packet<'_>) -> bool {
    let published = ["0x00000000", "0x00000001", "0x6b3343cf"];
    p.has(&["quic"])
        && p.first("quic.header_form") == "1"
        && published.contains(&p.first("quic.version"))
}

fn quic_version(p: &Packet<'_>) -> String {
    if long_quic(p) { number(p.first("quic.version")) } else { String::new() }
}

/// The type of the first QUIC packet: tshark has a field of its own for version 2, and none for a
/// negotiation.
fn quic_type(p: &Packet<'_>) -> String {
    match p.first("quic.version") {
        "0x00000000" => "4".to_owned(),
        "0x00000001" => p.first("quic.long.packet_type").to_owned(),
        _ => String::new(),
    }
}

/// Of handshakes only hellos.
fn hello(p: &Packet<'_>) -> String {
    match p.first("tls.handshake.type") {
        kind @ ("1" | "2") => kind.to_owned(),
        _ => String::new(),
    }
}
