//! Names of other tools that no single name of ours replaces: those that stand for two fields at
//! once, protocols without fields, functions that other stages do the work of, and values that are
//! numbers here. The names that do have one of ours are in [`crate::suggest`]; either wins over the
//! nearest spelling.

use weir_packet::known;

/// The advice for a name that means more than one field.
#[rustfmt::skip]
const FIELDS: &[(&[&str], &str)] = &[
    (&["ip.addr", "ipaddr", "ip_addr", "addr", "host", "ip.host", "ipv6.addr"],
     "either direction is `ip.src == x or ip.dst == x`; the pair of addresses is `hosts`"),
    (&["port"], "either direction is `sport == x or dport == x`"),
    (&["tcp.port"], "either direction is `tcp.sport == x or tcp.dport == x`"),
    (&["udp.port"], "either direction is `udp.sport == x or udp.dport == x`"),
    (&["eth.addr", "mac", "mac.addr", "ether.host"],
     "either direction is `eth.src == x or eth.dst == x`; the pair of addresses is `link`"),
    (&["tcp.flags.str", "tcpflags"],
     "each flag is a field: `tcp.syn`, `tcp.ack`; all are `tcp.flags`"),
    (&["tcp.stream", "udp.stream", "stream", "5tuple"],
     "a connection is the key `conn`, one direction of it `flow`"),
    (&["mdns"], "it is DNS on a port of its own: `dns and dport == 5353`"),
    (&["llmnr"], "it is DNS on a port of its own: `dns and (sport == 5355 or dport == 5355)`"),
    (&["retransmission", "retransmissions", "retransmit", "tcp.retransmission"],
     "`| analyze tcp` makes the column `tcp.analysis.retransmission`"),
    (&["ja3", "tls.ja3", "tls.handshake.ja3", "ja3s"],
     "JA3 is not computed; its successor is `tls.ja4`"),
    (&["app", "application", "service", "app_proto"],
     "each protocol is a field: `dns`, `tls`, `http`, `quic`, `dhcp`, `ntp`"),
    (&["now", "today"], "time comes from the packets: `ts` is when one was captured"),
];

/// Protocols that are not decoded, by the words that their names start with, and a condition that
/// finds their packets.
#[rustfmt::skip]
const PROTOCOLS: &[(&[&str], &str)] = &[
    (&["http2"], "tls and (tcp.sport == 443 or tcp.dport == 443)"),
    (&["http3"], "quic"),
    (&["ssh"], "tcp.sport == 22 or tcp.dport == 22"),
    (&["dhcpv6", "dhcp6"], "udp.sport in 546..547 or udp.dport in 546..547"),
    (&["gtpv2"], "udp.dport == 2123"),
    (&["ipsec"], "esp or ah"),
    (&["ospf"], "ip.proto == 89"),
    (&["pim"], "ip.proto == 103"),
    (&["vrrp"], "ip.proto == 112"),
    (&["ftp"], "tcp.sport == 21 or tcp.dport == 21"),
    (&["telnet"], "tcp.sport == 23 or tcp.dport == 23"),
    (&["smtp"], "tcp.sport in {25, 465, 587} or tcp.dport in {25, 465, 587}"),
    (&["bgp"], "tcp.sport == 179 or tcp.dport == 179"),
    (&["smb", "smb2"], "tcp.sport == 445 or tcp.dport == 445"),
    (&["rdp"], "sport == 3389 or dport == 3389"),
    (&["sip"], "sport in 5060..5061 or dport in 5060..5061"),
    (&["snmp"], "udp.sport in 161..162 or udp.dport in 161..162"),
    (&["rip"], "udp.dport == 520"),
    (&["rtp"], "udp and payload[0] in 128..191 and payload[1] not in 200..204"),
    (&["rtcp"], "udp and payload[0] in 128..191 and payload[1] in 200..204"),
    (&["stp"], "eth.dst == 01:80:c2:00:00:00"),
    (&["cdp"], "eth.dst == 01:00:0c:cc:cc:cc"),
];

/// Headers that are read only to find the packet inside, and a condition that finds their packets.
#[rustfmt::skip]
const ENCAPSULATIONS: &[(&[&str], &str)] = &[
    (&["ppp", "pppoes"], "pppoe.code == 0"),
    (&["pppoed"], "pppoe.code > 0"),
];

/// The same of tunnels, whose inner packet is read with `--headers inner`.
#[rustfmt::skip]
const TUNNELS: &[(&[&str], &str)] = &[
    (&["vxlan"], "udp.dport == 4789"),
    (&["geneve"], "udp.dport == 6081"),
    (&["gtp", "gtpu", "gtpv1"], "udp.dport == 2152"),
    (&["gre", "nvgre", "erspan"], "ip.proto == 47"),
];

/// The treatment of a protocol that has no fields, and a condition that finds its packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum WithoutFields {
    /// It is not decoded.
    Undecoded(&'static str),
    /// Its header is skipped.
    Skipped(&'static str),
    /// It is a tunnel, and `--headers inner` reads the packet inside.
    Tunnel(&'static str),
}

/// Functions and aggregates that are none here, and what does their work.
#[rustfmt::skip]
const FUNCTIONS: &[(&[&str], &str)] = &[
    (&["isnull", "is_null", "isempty", "is_empty"], "write `not exists(x)`"),
    (&["ewma", "moving_avg"],
     "a `scan` keeps what came before: `scan mean = float(x) by … => 0.9 * mean + 0.1 * x`"),
    (&["delta", "lag", "prev", "previous", "lead", "deriv", "derivative"],
     "a `scan` keeps what came before: `scan last = ts, gap = 0s by flow => (ts, ts - last)`"),
    (&["geoip", "country", "geo", "country_code"],
     "a table tells: `lookup(\"GeoLite2-Country.mmdb\", ip.src, \"country.iso_code\")`"),
    (&["asn", "as_number"],
     "a table tells: `lookup(\"GeoLite2-ASN.mmdb\", ip.src, \"autonomous_system_number\")`"),
    (&["p90"], "write `percentile(x, 90)`"),
    (&["p95"], "write `percentile(x, 95)`"),
    (&["p99"], "write `percentile(x, 99)`"),
    (&["list", "collect", "values", "make_list", "make_set", "array_agg", "group_concat"],
     "`frequent(x, 10)` shows the most frequent values of a group, `by …, x` a row of each"),
];

/// Names of other tools, and what each is here.
type Names = &'static [(&'static str, &'static str)];

/// Values of fields by the names that other tools have for them. Words are compared without case,
/// blanks and signs between them.
#[rustfmt::skip]
const VALUES: &[(&[&str], Names)] = &[
    (&["dns.rcode"], &[
        ("noerror", "0"), ("formerr", "1"), ("servfail", "2"), ("nxdomain", "3"), ("notimp", "4"),
        ("refused", "5"),
    ]),
    (&["dns.qtype", "answer.type", "authority.type", "additional.type"], &[
        ("a", "1"), ("ns", "2"), ("cname", "5"), ("soa", "6"), ("ptr", "12"), ("mx", "15"),
        ("txt", "16"), ("aaaa", "28"), ("srv", "33"), ("https", "65"), ("any", "255"),
    ]),
    (&["tls.version", "hello.version"], &[
        ("10", "0x0301"), ("11", "0x0302"), ("12", "0x0303"), ("13", "0x0304"),
        ("tls10", "0x0301"), ("tls11", "0x0302"), ("tls12", "0x0303"), ("tls13", "0x0304"),
        ("tlsv10", "0x0301"), ("tlsv11", "0x0302"), ("tlsv12", "0x0303"), ("tlsv13", "0x0304"),
    ]),
    (&["dhcp.type"], &[
        ("discover", "1"), ("offer", "2"), ("request", "3"), ("decline", "4"), ("ack", "5"),
        ("nak", "6"), ("release", "7"), ("inform", "8"),
    ]),
];

/// Flags of TCP by the letters that other tools have for them.
#[rustfmt::skip]
const FLAGS: &[(&str, &str)] = &[
    ("s", "tcp.syn"), ("syn", "tcp.syn"), ("sa", "tcp.syn and tcp.ack"),
    ("s.", "tcp.syn and tcp.ack"), ("synack", "tcp.syn and tcp.ack"), ("f", "tcp.fin"),
    ("fin", "tcp.fin"), ("r", "tcp.rst"), ("rst", "tcp.rst"), ("p", "tcp.psh"),
    ("psh", "tcp.psh"), ("a", "tcp.ack"), (".", "tcp.ack"), ("ack", "tcp.ack"),
    ("fa", "tcp.fin and tcp.ack"), ("pa", "tcp.psh and tcp.ack"), ("ra", "tcp.rst and tcp.ack"),
];

/// Stages of other tools that no single stage replaces.
#[rustfmt::skip]
const STAGES: &[(&[&str], &str)] = &[
    (&["count"], "write `| summarize n = count()`"),
    (&["sum", "avg", "min", "max", "rate", "percentile"],
     "aggregates stand in a `summarize`, as in `| summarize n = sum(len) by ip.src`"),
    (&["sort", "order", "order_by", "sortby"],
     "`| top 1000 by x` sorts; `asc` puts the smallest first"),
    (&["tail", "last"], "the last by time are `| top 3 by ts`"),
    (&["save", "write", "dump"],
     "`-o csv` chooses the format of rows; packets go to a file by `| forward \"x.pcap\"`"),
    (&["from"], "a pipeline starts with `packets`"),
    (&["group", "group_by", "groupby"], "write `| summarize n = count() by ip.src`"),
];

/// The advice for a stage of another tool.
pub(crate) fn stage(word: &str) -> Option<&'static str> {
    find(STAGES, word)
}

/// The advice for a field of another tool that is several here.
pub(crate) fn field(word: &str) -> Option<&'static str> {
    find(FIELDS, word)
}

/// The protocol without fields that `word` names, or that one of its fields would belong to.
pub(crate) fn protocol(word: &str) -> Option<WithoutFields> {
    let name = word.split('.').next().unwrap_or(word);
    let undecoded = find(PROTOCOLS, name).map(WithoutFields::Undecoded);
    let skipped = || find(ENCAPSULATIONS, name).map(WithoutFields::Skipped);
    let tunnel = || find(TUNNELS, name).map(WithoutFields::Tunnel);
    undecoded.or_else(skipped).or_else(tunnel)
}

/// The advice for a value of a field that another tool has a name for: a number, a flag, or a text.
pub(crate) fn value(field: &str, word: &str) -> Option<String> {
    let lower = word.to_ascii_lowercase();
    if field == "protocol" {
        let help = || format!("it is a string: `protocol == \"{lower}\"`");
        return is_protocol(&lower).then(help);
    }
    if field == "tcp.flags" {
        let (_, flags) = FLAGS.iter().find(|(theirs, _)| *theirs == lower)?;
        return Some(format!("each flag is a field: `{flags}`"));
    }
    let plain: String = lower.chars().filter(char::is_ascii_alphanumeric).collect();
    let (_, values) = VALUES.iter().find(|(fields, _)| fields.contains(&field))?;
    let (_, number) = values.iter().find(|(theirs, _)| *theirs == plain)?;
    Some(match field.ends_with(".version") {
        true => format!("TLS 1.{} is {number}", plain.trim_start_matches(|c| c != '1').get(1..)?),
        false => format!("{word} is the number {number}: `{field} == {number}`"),
    })
}

/// Whether the field `protocol` has this name for a number.
fn is_protocol(word: &str) -> bool {
    let named = |name: Option<&str>| name == Some(word);
    let of_ip = (0..=0xff).any(|number| named(known::protocol(number)));
    of_ip || (0x600..=0xffff).any(|number| named(known::frame_type(number)))
}

/// The advice for a word in capitals that is a value of some field, such as `NXDOMAIN`.
pub(crate) fn value_by_name(word: &str) -> Option<String> {
    let loud = word.len() > 1 && word.chars().all(|c| c.is_ascii_uppercase());
    let field = |(fields, _): &(&[&str], Names)| value(fields[0], word);
    if loud { VALUES.iter().find_map(field) } else { None }
}

/// The replacement for a function that is none here.
pub(crate) fn function(word: &str) -> Option<&'static str> {
    find(FUNCTIONS, word)
}

fn find(table: &'static [(&[&str], &str)], word: &str) -> Option<&'static str> {
    let is = |theirs: &&str| theirs.eq_ignore_ascii_case(word);
    table.iter().find(|(all, _)| all.iter().any(is)).map(|(_, ours)| *ours)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Options, Query, compile};
    use weir_packet::fields;
    use weir_plan::functions::by_name;

    #[test]
    fn foreign_names_are_not_ours() {
        for (names, _) in FIELDS {
            assert!(names.iter().all(|n| fields::by_name(n).is_none()), "{names:?}");
        }
        for (names, _) in FUNCTIONS {
            assert!(names.iter().all(|n| by_name(n).is_none()), "{names:?}");
        }
    }

    #[test]
    fn what_asks_for_a_protocol_compiles() {
        for (names, condition) in [PROTOCOLS, ENCAPSULATIONS, TUNNELS].into_iter().flatten() {
            let none = |name: &&str| fields::by_name(name).is_none();
            assert!(names.iter().all(none), "{names:?} have fields");
            let text = format!("packets | where {condition}");
            let q = Query { name: "q", text: &text };
            assert!(compile(&q, &Options::default()).is_ok(), "{names:?}: {condition}");
        }
    }

    #[test]
    fn finds_by_word_or_by_first_part() {
        assert!(field("TCP.port").is_some_and(|help| help.contains("tcp.sport")));
        assert_eq!(protocol("gre.key"), Some(WithoutFields::Tunnel("ip.proto == 47")));
        assert_eq!(protocol("OSPF"), Some(WithoutFields::Undecoded("ip.proto == 89")));
        assert_eq!(protocol("ppp"), Some(WithoutFields::Skipped("pppoe.code == 0")));
        assert_eq!(protocol("dnsbl"), None);
        assert!(function("geoip").is_some() && function("sum").is_none());
    }

    #[test]
    fn finds_values_by_their_names() {
        let check = |field, word, wanted: &str| {
            assert_eq!(value(field, word).as_deref(), Some(wanted), "{field} {word}");
        };
        check("dns.rcode", "NXDOMAIN", "NXDOMAIN is the number 3: `dns.rcode == 3`");
        check("dns.qtype", "aaaa", "aaaa is the number 28: `dns.qtype == 28`");
        check("tls.version", "TLS 1.2", "TLS 1.2 is 0x0303");
        check("tls.version", "TLSv1.3", "TLS 1.3 is 0x0304");
        check("tls.version", "1.0", "TLS 1.0 is 0x0301");
        check("tcp.flags", "S", "each flag is a field: `tcp.syn`");
        assert_eq!(value("len", "S"), None);
        assert_eq!(value("dns.rcode", "NO"), None);
        assert!(value_by_name("SERVFAIL").is_some_and(|help| help.contains("dns.rcode == 2")));
        assert_eq!(value_by_name("A"), None);
        assert_eq!(value_by_name("mx"), None);
    }
}
