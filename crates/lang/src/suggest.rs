//! Did you mean: the nearest name, and the words of other tools.

/// The candidate nearest to `word`, if one is near enough to be meant: few edits away, the same
/// but for case, or a field whose last part is the word (`syn` for `tcp.syn`). A word with a dot,
/// the part before which some candidates have, is one of these.
pub fn closest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let allowed = match word.chars().count() {
        0..=1 => 0,
        2..=4 => 1,
        5..=8 => 2,
        _ => 3,
    };
    let lower = word.to_ascii_lowercase();
    let suffix = format!(".{lower}");
    let mut candidates: Vec<&str> = candidates.into_iter().collect();
    if let Some(dot) = lower.find('.') {
        let family = |c: &&str| c.to_ascii_lowercase().starts_with(&lower[..=dot]);
        if candidates.iter().any(family) {
            candidates.retain(family);
        }
    }
    let mut fields = candidates.iter().filter(|c| c.ends_with(&suffix));
    if let Some(field) = fields.next()
        && fields.all(|other| other == field)
        && !candidates.iter().any(|c| *c != word && c.eq_ignore_ascii_case(word))
    {
        return Some(field);
    }
    candidates
        .into_iter()
        .filter(|c| *c != word)
        .filter_map(|c| {
            let d = distance(&lower, &c.to_ascii_lowercase());
            let d = if c.ends_with(&suffix) { d.min(1) } else { d };
            (d <= allowed.max(c.ends_with(&suffix) as usize)).then_some((d, c))
        })
        // Of several as near the shortest: a word by itself is rather of IP than of a tag.
        .min_by_key(|(d, c)| (*d, c.len()))
        .map(|(_, c)| c)
}

/// "did you mean `x`?", if something is near.
pub(crate) fn did_you_mean<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<String> {
    closest(word, candidates).map(|c| format!("did you mean `{c}`?"))
}

/// Edits (insert, delete, replace, swap neighbours) from `a` to `b`.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    if a.len().abs_diff(b.len()) > 3 {
        return usize::MAX;
    }
    let mut before = vec![0; b.len() + 1];
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let differ = (a[i - 1] != b[j - 1]) as usize;
            row[j] = (above[j] + 1).min(row[j - 1] + 1).min(above[j - 1] + differ);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before[j - 2] + 1);
            }
        }
        before = std::mem::replace(&mut above, row);
    }
    above[b.len()]
}

/// The names that tcpdump, Wireshark and SQL people type for a field, and its name here.
#[rustfmt::skip]
const FIELDS: &[(&str, &str)] = &[
    ("bytes", "len"), ("length", "len"), ("size", "len"), ("frame.len", "len"),
    ("frame.time", "ts"), ("time", "ts"), ("timestamp", "ts"), ("frame.number", "number"),
    ("src", "ip.src"), ("srcip", "ip.src"), ("src_ip", "ip.src"), ("ip.saddr", "ip.src"),
    ("dst", "ip.dst"), ("dstip", "ip.dst"), ("dst_ip", "ip.dst"), ("ip.daddr", "ip.dst"),
    ("ipv6.src", "ip.src"), ("ipv4.src", "ip.src"), ("ip6.src", "ip.src"),
    ("ipv6.dst", "ip.dst"), ("ipv4.dst", "ip.dst"), ("ip6.dst", "ip.dst"),
    ("saddr", "ip.src"), ("daddr", "ip.dst"),
    ("ip_src", "ip.src"), ("ip_dst", "ip.dst"), ("source", "ip.src"), ("destination", "ip.dst"),
    ("ip6", "ipv6"), ("ip4", "ipv4"), ("frame.cap_len", "caplen"), ("frame.time_epoch", "ts"),
    ("srcport", "sport"), ("src_port", "sport"), ("tcp.srcport", "tcp.sport"),
    ("dstport", "dport"), ("dst_port", "dport"), ("tcp.dstport", "tcp.dport"),
    ("udp.srcport", "udp.sport"), ("udp.dstport", "udp.dport"), ("udp.length", "udp.len"),
    ("ip.protocol", "ip.proto"), ("frame", "payload"), ("data", "payload"),
    ("tcp.ack_seq", "tcp.ackno"), ("tcp.acknowledgment", "tcp.ackno"),
    ("proto", "ip.proto"), ("ttl", "ip.ttl"), ("ip.hlim", "ip.ttl"),
    ("ip.tos", "ip.dscp"), ("tos", "ip.dscp"), ("ip.sport", "sport"), ("ip.dport", "dport"),
    ("ip.srcport", "sport"), ("ip.dstport", "dport"), ("arp.opcode", "arp.op"),
    ("vlan.prio", "vlan.pcp"), ("vlan.priority", "vlan.pcp"),
    ("ether", "eth"), ("ether.src", "eth.src"), ("ether.dst", "eth.dst"),
    ("mac.src", "eth.src"), ("mac.dst", "eth.dst"), ("icmpv6", "icmp6"),
    ("icmpv6.type", "icmp6.type"), ("tcp.len", "tcp.payload_len"),
    ("syn", "tcp.syn"), ("ack", "tcp.ack"), ("fin", "tcp.fin"), ("rst", "tcp.rst"),
    ("psh", "tcp.psh"), ("urg", "tcp.urg"), ("ece", "tcp.ece"), ("cwr", "tcp.cwr"),
    ("tcp.flags.syn", "tcp.syn"), ("tcp.flags.ack", "tcp.ack"), ("tcp.flags.fin", "tcp.fin"),
    ("tcp.flags.reset", "tcp.rst"), ("tcp.flags.push", "tcp.psh"), ("tcp.reset", "tcp.rst"),
    ("tcp.window_size", "tcp.window"), ("tcp.win", "tcp.window"),
    ("tcp.options.mss_val", "tcp.mss"), ("tcp.options.wscale.shift", "tcp.wscale"),
    ("tcp.options.sack_perm", "tcp.sack_permitted"), ("tcp.options.sack.count", "tcp.sack_blocks"),
    ("tcp.options.sack_le", "tcp.sack_left"), ("tcp.options.sack_re", "tcp.sack_right"),
    ("tcp.options.timestamp.tsval", "tcp.tsval"), ("tcp.options.timestamp.tsecr", "tcp.tsecr"),
    ("query", "dns.qname"), ("dns.query", "dns.qname"), ("dns.qry.name", "dns.qname"),
    ("dns.qry.type", "dns.qtype"), ("dns.qry.class", "dns.qclass"), ("dns.type", "dns.qtype"),
    ("dns.response", "dns.qr"), ("dns.flags.response", "dns.qr"), ("dns.flags.rcode", "dns.rcode"),
    ("dns.flags.opcode", "dns.opcode"), ("dns.flags.truncated", "dns.tc"),
    ("dns.flags.authoritative", "dns.aa"), ("dns.flags.recdesired", "dns.rd"),
    ("dns.flags.recavail", "dns.ra"), ("dns.count.queries", "dns.qdcount"),
    ("dns.count.answers", "dns.ancount"), ("dns.count.auth_rr", "dns.nscount"),
    ("dns.count.add_rr", "dns.arcount"), ("dns.answers", "dns.ancount"), ("dns.a", "dns.addr"),
    ("dns.aaaa", "dns.addr"), ("dns.resp.ttl", "dns.ttl"),
    ("ssl", "tls"), ("https", "tls"), ("sni", "tls.sni"), ("server_name", "tls.sni"),
    ("tls.server_name", "tls.sni"), ("tls.handshake.extensions_server_name", "tls.sni"),
    ("tls.handshake.extensions_alpn_str", "tls.alpn"), ("tls.record.content_type",
    "tls.content_type"), ("tls.handshake.type", "tls.handshake_type"),
    ("tls.handshake.version", "tls.version"), ("http.request.method", "http.method"),
    ("http.request.uri", "http.uri"), ("http.hostname", "http.host"),
    ("http.path", "http.uri"), ("url", "http.uri"),
    ("user_agent", "http.user_agent"), ("http.response.code", "http.status"),
    ("http.status_code", "http.status"), ("bootp", "dhcp"), ("dhcp.ip.your", "dhcp.your_ip"),
    ("dhcp.ip.client", "dhcp.client_ip"), ("dhcp.hw.mac_addr", "dhcp.client_mac"),
    ("dhcp.option.dhcp", "dhcp.type"), ("dhcp.option.hostname", "dhcp.hostname"),
    ("dhcp.id", "dhcp.xid"), ("ntp.xmt", "ntp.transmit"), ("ntp.flags.mode", "ntp.mode"),
    ("sctp.verification_tag", "sctp.vtag"), ("igmp.maddr", "igmp.group"),
    ("esp.sequence", "esp.seq"), ("ah.sequence", "ah.seq"),
];

/// The names of a stage in other pipeline languages, and its name here.
#[rustfmt::skip]
const STAGES: &[(&str, &str)] = &[
    ("filter", "where"), ("having", "where"), ("search", "where"),
    ("map", "extend"), ("eval", "extend"), ("derive", "extend"), ("let", "extend"),
    ("select", "project"), ("keep", "project"), ("fields", "project"), ("table", "project"),
    ("project-rename", "rename"), ("project-keep", "project"), ("project-reorder", "project"),
    ("project_away", "project-away"), ("exclude", "project-away"), ("omit", "project-away"),
    ("project_rename", "rename"), ("renames", "rename"),
    ("group", "summarize"), ("aggregate", "summarize"), ("stats", "summarize"),
    ("summarise", "summarize"), ("agg", "summarize"), ("session", "summarize"),
    ("sessionize", "summarize"),
    ("sort", "top"), ("order", "top"), ("take", "limit"), ("head", "limit"), ("first", "limit"),
    ("reduce", "scan"), ("fold", "scan"), ("analyse", "analyze"),
    ("lookup", "join"), ("merge", "join"),
    ("append", "union"), ("concat", "union"),
    ("uniq", "distinct"), ("unique", "distinct"), ("dedup", "distinct"),
    ("dedupe", "distinct"), ("editcap", "deduplicate"), ("span", "deduplicate"),
    ("explode", "each"), ("unnest", "each"), ("expand", "each"), ("flatten", "each"),
    ("mv", "each"), ("flatmap", "each"), ("flat_map", "each"), ("foreach", "each"),
    ("tablesample", "sample"), ("every", "sample"),
    ("pcap", "capture"), ("evidence", "capture"),
    ("export", "metric"), ("gauge", "metric"), ("counter", "metric"), ("prometheus", "metric"),
    ("notify", "alert"), ("alarm", "alert"), ("warn", "alert"), ("notice", "alert"),
    ("client_hello", "hello"), ("clienthello", "hello"), ("reassemble", "hello"),
    ("hellos", "hello"), ("handshake", "hello"),
    ("accept", "pass"), ("allow", "pass"), ("permit", "pass"), ("deny", "drop"),
    ("reject", "drop"), ("block", "drop"), ("discard", "drop"), ("redirect", "forward"),
    ("send", "forward"), ("write", "forward"), ("copy", "mirror"), ("tee", "mirror"),
    ("balance", "steer"), ("truncate", "trim"), ("snap", "trim"), ("vlan", "tag"),
    ("switch", "branch"), ("route", "branch"), ("flood", "broadcast"),
];

/// The names of a function or an aggregate in other languages, and its name here.
#[rustfmt::skip]
const FUNCTIONS: &[(&str, &str)] = &[
    ("mean", "avg"), ("average", "avg"), ("dcount", "distinct"), ("count_distinct", "distinct"),
    ("uniq", "distinct"), ("unique", "distinct"), ("nunique", "distinct"), ("countif", "count"),
    ("count_if", "count"), ("sumif", "sum"), ("total", "sum"), ("every", "all"), ("some", "any"),
    ("minimum", "min"), ("maximum", "max"), ("least", "min_of"), ("greatest", "max_of"),
    ("len", "str_len"), ("length", "str_len"), ("strlen", "str_len"), ("tolower", "lower"),
    ("toupper", "upper"), ("tostring", "string"), ("str", "string"), ("toint", "int"),
    ("startswith", "starts_with"), ("endswith", "ends_with"), ("regex", "matches"),
    ("match_regex", "matches"), ("ifnull", "coalesce"), ("nvl", "coalesce"), ("iff", "if"),
    ("iif", "if"), ("truncate", "bin"), ("trunc", "int"), ("case", "match"),
    ("subnet", "prefix"), ("network", "prefix"), ("mask", "prefix"), ("ip_prefix", "prefix"),
    ("ipv4_mask", "prefix"), ("ip_mask", "prefix"), ("substr", "slice"), ("substring", "slice"),
    ("strip", "trim"), ("etld1", "registered_domain"), ("domain", "registered_domain"),
    ("public_suffix", "registered_domain"), ("str_entropy", "entropy_of"),
    ("shannon", "entropy_of"), ("regexp_extract", "extract"), ("regex_extract", "extract"),
    ("split_part", "split"), ("ln", "log"), ("power", "pow"), ("ceiling", "ceil"),
    ("replace_string", "replace"), ("tohex", "hex"), ("to_hex", "hex"), ("toip", "ip"),
    ("dayofweek", "weekday"), ("dow", "weekday"), ("hourofday", "hour"), ("hour_of_day", "hour"),
    ("ipv4_is_private", "is_private"), ("is_public", "is_global"), ("octet_length", "bytes_len"),
    ("cryptopan", "anonymize"), ("anonymise", "anonymize"), ("communityid", "community_id"),
    ("flow_hash", "community_id"), ("startofhour", "bin"), ("humanize", "short"),
    ("format_duration", "short"), ("format_number", "short"), ("pretty", "short"),
    ("startofday", "bin"), ("date_trunc", "bin"), ("time_bucket", "bin"),
    ("arg_max", "max_by"), ("argmax", "max_by"), ("arg_min", "min_by"), ("argmin", "min_by"),
    ("pps", "rate"), ("bps", "rate"), ("per_second", "rate"), ("stdev", "stddev"),
    ("std", "stddev"), ("stddev_samp", "stddev"), ("var", "variance"), ("var_samp", "variance"),
    ("hll", "approx_distinct"), ("approx_count_distinct", "approx_distinct"),
    ("estdc", "approx_distinct"), ("dc_approx", "approx_distinct"), ("ndv", "approx_distinct"),
    ("mad_over_time", "mad"), ("median_abs_deviation", "mad"), ("p50", "median"),
    ("quantiles", "quantile"), ("percentiles", "percentile"), ("approx_quantile", "quantile"),
    ("approx_percentile", "percentile"), ("percentile_cont", "percentile"), ("topk", "frequent"),
    ("top_k", "frequent"), ("heavy_hitters", "frequent"), ("mode", "frequent"),
];

/// The names of a type in other languages, and its name here.
#[rustfmt::skip]
const TYPES: &[(&str, &str)] = &[
    ("integer", "int"), ("i64", "int"), ("long", "int"), ("number", "int"), ("port", "int"),
    ("double", "float"), ("real", "float"), ("f64", "float"), ("str", "string"),
    ("text", "string"), ("boolean", "bool"), ("timespan", "duration"), ("interval", "duration"),
    ("timestamp", "time"), ("datetime", "time"), ("address", "ip"), ("ipaddr", "ip"),
    ("ipv4", "ip"), ("ipv6", "ip"), ("cidr", "net"), ("network", "net"), ("subnet", "net"),
    ("prefix", "net"),
];

/// The name here of a type of another language.
pub(crate) fn type_name(word: &str) -> Option<&'static str> {
    lookup(TYPES, word)
}

/// The name here of a field of another tool.
pub(crate) fn field(word: &str) -> Option<&'static str> {
    lookup(FIELDS, word)
}

/// The name here of a stage of another language.
pub(crate) fn stage(word: &str) -> Option<&'static str> {
    lookup(STAGES, word)
}

/// The name here of a function of another language.
pub(crate) fn function(word: &str) -> Option<&'static str> {
    lookup(FUNCTIONS, word)
}

fn lookup(table: &'static [(&str, &str)], word: &str) -> Option<&'static str> {
    table.iter().find(|(theirs, _)| theirs.eq_ignore_ascii_case(word)).map(|(_, ours)| *ours)
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_packet::fields;

    #[test]
    fn finds_the_nearest() {
        let names = || fields::FIELDS.iter().map(|f| f.name);
        assert_eq!(closest("tcp.dprot", names()), Some("tcp.dport"));
        assert_eq!(closest("ipsrc", names()), Some("ip.src"));
        assert_eq!(closest("TCP", names()), Some("tcp"));
        assert_eq!(closest("syn", names()), Some("tcp.syn"));
        assert_eq!(closest("ttl", names()), Some("ip.ttl"));
        assert_eq!(closest("quicksilver", names()), None);
        assert_eq!(closest("q", names()), None);
        // The last part of one field alone wins over another protocol one edit away.
        assert_eq!(closest("dscp", names()), Some("ip.dscp"));
        assert_eq!(closest("pcp", names()), Some("vlan.pcp"));
        assert_eq!(closest("opcode", names()), Some("dns.opcode"));
        // The protocol before the dot is kept.
        assert_eq!(closest("arp.opcode", names()), None);
        assert_eq!(closest("http.hostname", names()), None);
        assert_eq!(closest("udp.dprot", names()), Some("udp.dport"));
        assert_eq!(closest("tpc.dport", names()), Some("tcp.dport"));
    }

    #[test]
    fn counts_edits() {
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("dport", "dprot"), 1);
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("same", "same"), 0);
    }

    #[test]
    fn translations_lead_somewhere() {
        assert!(FIELDS.iter().all(|(_, ours)| fields::by_name(ours).is_some()));
        assert!(FIELDS.iter().all(|(theirs, _)| fields::by_name(theirs).is_none()));
        assert_eq!(field("arp.opcode"), Some("arp.op"));
        assert_eq!(field("vlan.prio"), Some("vlan.pcp"));
        assert_eq!(field("tos"), Some("ip.dscp"));
        assert_eq!(field("http.hostname"), Some("http.host"));
        assert_eq!(stage("SELECT"), Some("project"));
        assert_eq!(stage("dedup"), Some("distinct"));
        assert_eq!(function("mean"), Some("avg"));
    }
}
