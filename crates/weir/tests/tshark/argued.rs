//! The differences from tshark that are meant.

use super::Packet;

/// The tshark fields that the conditions below ask for.
pub(crate) const ASKED: &[&str] = &[
    "frame.protocols",
    "_ws.malformed",
    "_ws.short",
    "icmp.type",
    "icmpv6.type",
    "dns.flags.response",
    "dns.flags.opcode",
    "tls.record.content_type",
    "tls.record.length",
    "udp.port",
    "ntp.flags.vn",
];

/// Fields that differ where a condition holds.
pub(crate) struct Difference {
    /// The fields; one that ends in a dot means all that begin so.
    fields: &'static [&'static str],
    when: fn(&Values<'_>) -> bool,
    pub(crate) why: &'static str,
}

/// A packet and the two values of one of its fields.
struct Values<'a> {
    packet: &'a Packet<'a>,
    ours: &'a str,
    theirs: &'a str,
}

const DNS: &[&str] = &["dns", "dns."];
const TLS: &[&str] = &["tls", "tls."];
const HTTP: &[&str] = &["http", "http."];

pub(crate) const DIFFERENCES: &[Difference] = &[
    Difference {
        fields: DNS,
        when: |v| v.packet.has(&["tcp"]) && matches!(v.ours, "" | "false"),
        why: "a DNS message that several segments hold is not put together",
    },
    Difference {
        fields: DNS,
        when: |v| {
            let known = |port: &&str| matches!(*port, "53" | "5353" | "5355");
            !v.packet.all("udp.port").iter().any(known) && matches!(v.ours, "" | "false")
        },
        why: "tshark tells DNS by its bytes on other ports",
    },
    Difference {
        fields: &["dns.aa", "dns.ra", "dns.rcode"],
        when: |v| v.theirs.is_empty() && v.packet.first("dns.flags.response") != "1",
        why: "tshark shows flags of answers in answers only; queries have them as sent",
    },
    Difference {
        fields: &["dns.aa", "dns.ra", "dns.rd"],
        when: |v| v.theirs.is_empty() && v.packet.has(&["mdns", "llmnr"]),
        why: "tshark gives flags of LLMNR and mDNS other names",
    },
    Difference {
        fields: &["dns.qdcount", "dns.ancount", "dns.nscount"],
        when: |v| v.theirs.is_empty() && v.packet.first("dns.flags.opcode") == "5",
        why: "tshark gives the counts of a DNS update other names",
    },
    Difference {
        fields: &["dns.qname"],
        when: |v| v.ours.contains('\\'),
        why: "tshark writes bytes of names that are not ASCII as they are",
    },
    Difference {
        fields: &["tls", "tls.content_type", "tls.handshake_type", "tls.sni", "tls.alpn"],
        when: |v| {
            matches!(v.theirs, "" | "false") && v.packet.first("tls.record.content_type").is_empty()
        },
        why: "tshark takes some segments that begin with a record for another protocol or a later \
              part of a record",
    },
    Difference {
        fields: &["quic.sni", "quic.alpn"],
        when: |v| v.ours.is_empty(),
        why: "tshark keeps the keys of a connection for its later packets, and puts a hello of \
              several packets together",
    },
    Difference {
        fields: TLS,
        when: |v| v.packet.names("quic") || v.packet.names("openvpn"),
        why: "TLS within QUIC or OpenVPN does not start the payload",
    },
    Difference {
        fields: &["tls", "tls.content_type", "tls.handshake_type"],
        when: |v| {
            let record = v.packet.first("tls.record.content_type");
            let is_empty = record.is_empty() || v.packet.first("tls.record.length") == "0";
            matches!(v.ours, "" | "false") && is_empty
        },
        why: "hellos of SSL 2 are not read, nor records of no byte",
    },
    Difference {
        fields: HTTP,
        when: |v| matches!(v.theirs, "" | "false") && !v.packet.has(&["http"]),
        why: "tshark knows HTTP by its ports, and by what came before",
    },
    Difference {
        fields: &["esp", "esp."],
        when: |v| v.packet.names("udpencap"),
        why: "ESP in UDP stays UDP",
    },
    Difference {
        fields: &["ip.proto", "ip.len", "ip.hdr_len", "ip.id", "ip.frag_offset", "ip.more_frags"],
        when: |v| v.packet.has(&["ipv6"]) && v.theirs.is_empty(),
        why: "of IPv6 tshark shows these header by header; truth.rs counts packets by protocol",
    },
    Difference {
        fields: &["ip.proto", "ip.hdr_len"],
        when: |v| v.packet.has(&["ah"]),
        why: "what follows AH is the protocol, and AH a part of the header, as in IPv6",
    },
    Difference {
        fields: &["ntp", "ntp."],
        when: |v| v.packet.first("ntp.flags.vn") == "0",
        why: "there is no version 0 of NTP",
    },
    Difference {
        fields: &["eth.type"],
        when: |v| v.packet.names("etag") || v.theirs == "0",
        why: "the EtherType is that after an E-tag, and 0 is none",
    },
];

/// Captures in which some fields differ, and why.
pub(crate) const CAPTURES: &[(&str, &[&str], &str)] = &[
    ("fuzz-2021-10-13.pcap", &["ts"], "microseconds beyond a second"),
    ("timestamp_invalid_micro.pcap", &["ts"], "microseconds beyond a second"),
    ("timestamp_invalid_nano.pcap", &["ts"], "nanoseconds beyond a second"),
    ("rx_serviceid_oobr.pcap", &["ts"], "seconds beyond 2^31"),
    ("dhcp_big_endian.pcapng", &["ts"], "times beyond the year 2262 do not fit in 64 bits"),
    ("basic/test012.pcapng", &["ts"], "a simple packet block has no time"),
    ("802.1ad_QinQ.pcap", &["vlan."], "tshark names fields of an S-tag ieee8021ad"),
    ("cve2015-0261-crash.pcap", &["ip"], "tshark does not decode this link type by its magic"),
    ("icmp-rfc8335-missing-bytes.pcap", &["ip", "icmp"], "MACsec is not entered"),
    ("ipv6-http-atomic-frag.pcap", &["http"], "HTTP/0.9, which has no version, is not read"),
    ("mixed-vlan-mpls.pcap", &["http"], "HTTP/0.9, which has no version, is not read"),
    ("iot-sentinel-A.pcap", &["http.host"], "a segment in the middle of a header"),
    ("fuzz-2006-06-26-2594.pcap", &["dns.", "dns", "tcp.sack"], "tshark reads on behind a fault"),
    (
        "malformed_dns.pcap",
        &["dns.ttl"],
        "tshark reads a record whose data goes beyond the message",
    ),
];

/// Captures in which tshark counts other blocks as packets, or times are repeated.
const RENUMBERED: &[&str] = &[
    "basic/test010.pcapng",
    "basic/test011.pcapng",
    "basic/test016.pcapng",
    "basic/test017.pcapng",
    "basic/test018.pcapng",
    "advanced/test100.pcapng",
    "advanced/test102.pcapng",
    "bug-6875-01/fuzz.pcap",
];

/// Whether packets of a capture are not numbered alike; truth.rs says why of each.
pub(crate) fn renumbered(file: &str) -> bool {
    RENUMBERED.iter().any(|name| file.ends_with(name))
}

/// Why two values may differ, if they may.
pub(crate) fn why(
    file: &str,
    field: &str,
    packet: &Packet<'_>,
    ours: &str,
    theirs: &str,
) -> Option<&'static str> {
    let names = |fields: &[&str]| {
        let is = |f: &&str| *f == field || f.ends_with('.') && field.starts_with(*f);
        fields.iter().any(is)
    };
    let values = Values { packet, ours, theirs };
    let found = DIFFERENCES.iter().find(|d| names(d.fields) && (d.when)(&values));
    let of_file = || {
        let begins = |fields: &[&str]| fields.iter().any(|f| field.starts_with(f));
        CAPTURES.iter().find(|(name, fields, _)| file.ends_with(name) && begins(fields))
    };
    found.map(|d| d.why).or_else(|| of_file().map(|(.., why)| *why))
}
