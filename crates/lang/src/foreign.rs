//! Names of other tools that no single name of ours replaces: those that stand for two fields at
//! once, protocols without fields, functions that are still to come. The names that do
//! have one of ours are in [`crate::suggest`]; either wins over the nearest spelling.

/// What to write for a name that means more than one field.
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

/// What Weir does with a protocol that has no fields, and a condition that finds its packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum WithoutFields {
    /// It is not decoded.
    Undecoded(&'static str),
    /// Its header is skipped.
    Skipped(&'static str),
    /// It is a tunnel, and `--headers inner` reads the packet inside.
    Tunnel(&'static str),
}

/// Functions and aggregates that are still to come, and what does for them until then.
#[rustfmt::skip]
const FUNCTIONS: &[(&[&str], &str)] = &[
    (&["ewma", "moving_avg", "delta", "lag", "deriv", "derivative"],
     "a `scan` keeps what came before: `scan mean = float(x) by … => 0.9 * mean + 0.1 * x`"),
    (&["geoip", "asn", "country"],
     "names from a CSV file of networks do for now: `lookup(\"asn.csv\", ip.src, \"name\")`"),
];

/// What to write for a field of another tool that is several here.
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

/// What to do without a function that is still to come.
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
}
