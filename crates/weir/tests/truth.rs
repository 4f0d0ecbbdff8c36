//! The shared captures against their ground truth (`truth.jsonl`, computed with tshark).

mod common;

use common::{Answer, ReadingOptions, answer, answer_of, program, shared, skip, supported, truths};
use serde_json::Value as Json;
use std::path::Path;
use weir_engine::functions::Functions;
use weir_packet::walk::Headers;
use weir_plan::Value;

/// One row: every number of the truth about the outermost headers.
const TOTALS: &str = "
packets
| summarize packets          = count(),
            bytes_wire       = sum(len),
            bytes_captured   = sum(caplen),
            packets_truncated = count(caplen < len),
            ts_first         = first(ts),
            ts_last          = last(ts),
            ts_min           = min(ts),
            ts_max           = max(ts),
            ipv4_packets     = count(ipv4),
            ipv6_packets     = count(ipv6),
            non_ip_packets   = count(not ip),
            tcp_packets      = count(ip.proto == 6),
            udp_packets      = count(ip.proto == 17),
            icmp_packets     = count(ip.proto == 1),
            icmpv6_packets   = count(ip.proto == 58),
            fragments_first  = count(ip.frag and ip.frag_offset == 0),
            fragments_later  = count(ip.frag and ip.frag_offset > 0),
            distinct_src_ips = distinct(ip.src),
            distinct_dst_ips = distinct(ip.dst),
            flows_outer      = distinct(flow),
            conversations_outer = distinct(conn)
";

/// One row: what the truth counts in the innermost headers.
const INNER: &str = "
packets
| summarize tcp_packets_inner    = count(ip.proto == 6),
            udp_packets_inner    = count(ip.proto == 17),
            icmp_packets_inner   = count(ip.proto == 1),
            icmpv6_packets_inner = count(ip.proto == 58),
            fragments_inner      = count(tunnel and ip.frag),
            distinct_src_ips_inner = distinct(ip.src),
            distinct_dst_ips_inner = distinct(ip.dst),
            flows_inner          = distinct(flow),
            conversations_inner  = distinct(conn),
            distinct_dst_ports_tcp = distinct(tcp.dport),
            distinct_dst_ports_udp = distinct(udp.dport)
";

/// The same of TCP headers.
const TCP: &str = "
packets
| where tcp
| summarize tcp_syn    = count(tcp.syn and not tcp.ack),
            tcp_synack = count(tcp.syn and tcp.ack),
            tcp_rst    = count(tcp.rst),
            tcp_fin    = count(tcp.fin),
            tcp_null   = count(tcp.flags & 0xff == 0),
            tcp_xmas   = count(tcp.flags & 0x29 == 0x29 and tcp.flags & 0x16 == 0)
";

/// DNS over UDP, in the same captures.
const DNS: &str = "
packets
| where udp and dns
| summarize dns_queries   = count(dport == 53 and not dns.qr),
            dns_responses = count(sport == 53 and dns.qr),
            dns_qnames    = distinct(dns.qname) where dport == 53 and not dns.qr
";

const TOP: &str = "
packets
| where ip
| summarize packets = count(), ip_bytes = sum(ip.len), wire_bytes = sum(len)
    by ip.src, ip.dst, s = coalesce(sport, 0), d = coalesce(dport, 0), ip.proto
| top 5 by packets, ip_bytes
";

#[test]
fn the_totals_are_those_of_the_truth() {
    let Some(folder) = shared("truth::the_totals_are_those_of_the_truth") else { return };
    let (totals, inner) = (compiled(TOTALS), compiled(INNER));
    let (tcp, dns) = (compiled(TCP), compiled(DNS));
    let (mut checked, mut wrong) = (0, Vec::new());
    for truth in truths(&folder) {
        let Some((file, path)) = ready(&truth, &folder) else { continue };
        let got = answer(&totals, &path, 1);
        // A malformed capture's counts beyond packets and bytes are advice, not truth.
        let names: &[&str] = if file.starts_with("malformed/") {
            &["packets", "bytes_wire", "bytes_captured"]
        } else {
            &[]
        };
        compare(file, &totals, &got, &truth, names, &mut wrong);
        if !file.starts_with("malformed/") {
            for program in [&inner, &tcp, &dns] {
                let got = answer_of(program, &path, 1, INSIDE);
                compare(file, program, &got, &truth, &[], &mut wrong);
            }
        }
        checked += 1;
    }
    assert!(checked > 250, "{checked} captures were checked");
    assert!(wrong.is_empty(), "{} differences:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn the_top_flows_are_those_of_the_truth() {
    let Some(folder) = shared("truth::the_top_flows_are_those_of_the_truth") else { return };
    let top = compiled(TOP);
    let (mut checked, mut wrong) = (0, Vec::new());
    for truth in truths(&folder) {
        let Some((file, path)) = ready(&truth, &folder) else { continue };
        if file.starts_with("malformed/") {
            continue;
        }
        for (reading, name) in
            [(ReadingOptions::default(), "top_flows_outer"), (INSIDE, "top_flows_inner")]
        {
            // Where they are the same, the truth says so instead.
            let listed = truth[name].as_array().or(truth["top_flows_outer"].as_array());
            if known(file, name) {
                continue;
            }
            let got = answer_of(&top, &path, 1, reading).rows;
            let got: Vec<Vec<String>> = got.into_iter().map(flow).collect();
            let flows = listed.expect("a list").iter();
            let want: Vec<Vec<String>> =
                flows.map(|f| f.as_array().expect("a flow").iter().map(show).collect()).collect();
            if !same_flows(&got, &want) {
                wrong.push(format!("{file}: {name}: got {got:?}, want {want:?}"));
            }
        }
        checked += 1;
    }
    assert!(checked > 140, "{checked} captures were checked");
    assert!(wrong.is_empty(), "{} differences:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn no_malformed_capture_stops_anything_but_itself() {
    let Some(folder) = shared("truth::no_malformed_capture_stops_anything_but_itself") else {
        return;
    };
    let totals = compiled(TOTALS);
    let mut checked = 0;
    for truth in truths(&folder) {
        let file = truth["file"].as_str().expect("a name");
        if !file.starts_with("malformed/") {
            continue;
        }
        let got = answer(&totals, &folder.join(file), 2);
        assert!(got.ledger.adds_up(), "{file}: {:?}", got.ledger);
        if let Some(error) = &got.error {
            assert!(error.contains(file), "{file}: the error names the file: {error}");
        }
        checked += 1;
    }
    assert!(checked > 100, "{checked} captures were checked");
}

/// Where this differs from tshark on purpose: part of a file's name, the numbers, and why.
const KNOWN: &[(&str, &[&str], &str)] = &[
    ("basic/test010.pcapng", TIMES, "a simple packet block has no time: it repeats the last one"),
    ("basic/test011.pcapng", TIMES, "a simple packet block has no time"),
    ("basic/test016.pcapng", TIMES, "a simple packet block has no time"),
    ("basic/test017.pcapng", ALL, "tshark counts custom blocks as packets"),
    ("basic/test018.pcapng", ALL, "tshark counts custom blocks as packets"),
    ("advanced/test100.pcapng", TIMES, "a simple packet block has no time"),
    ("advanced/test102.pcapng", ALL, "tshark counts custom blocks as packets"),
    ("dhcp_big_endian.pcapng", TIMES, "times beyond the year 2262 do not fit in 64 bits"),
    ("bug-6875-01/fuzz.pcap", ALL, "tshark accepts a record longer than any capture's"),
    ("bigtcp-ipv6-vxlan-ipv4.pcap", JUMBO, "a jumbo packet's length is that of the frame"),
    ("tunnels/ayiya3.pcap", INSIDE_ONLY, "nobody runs AYIYA since 2017: it stays UDP"),
    ("ipv6-mobility-dst-opts.pcap", FLOWS, "tshark reads no ports behind a mobility header"),
];

const ALL: &[&str] = &["*"];
const TIMES: &[&str] = &["ts_first", "ts_last", "ts_min", "ts_max"];
const FLOWS: &[&str] = &["top_flows_outer", "top_flows_inner"];
/// Of a jumbo packet tshark finds no TCP inside the tunnel.
const JUMBO: &[&str] = &[
    "top_flows_outer",
    "top_flows_inner",
    "tcp_packets_inner",
    "udp_packets_inner",
    "distinct_dst_ports_tcp",
];
/// The numbers that depend on the packets inside.
const INSIDE_ONLY: &[&str] = &[
    "top_flows_inner",
    "tcp_packets_inner",
    "udp_packets_inner",
    "icmpv6_packets_inner",
    "distinct_src_ips_inner",
    "distinct_dst_ips_inner",
    "flows_inner",
    "conversations_inner",
    "distinct_dst_ports_tcp",
    "distinct_dst_ports_udp",
    "tcp_syn",
    "tcp_synack",
];

/// The innermost packet, each fragment for itself, as the truth sees them.
const INSIDE: ReadingOptions = ReadingOptions { headers: Headers::INNER, fragments: false };

fn known(file: &str, number: &str) -> bool {
    KNOWN.iter().any(|(f, n, _)| file.ends_with(f) && (*n == ALL || n.contains(&number)))
}

fn compiled(text: &str) -> weir_plan::Program {
    program(text, &Functions::default())
}

/// The file of a truth that can be checked. Others are named.
fn ready<'a>(truth: &'a Json, folder: &Path) -> Option<(&'a str, std::path::PathBuf)> {
    let file = truth["file"].as_str().expect("a name");
    if !supported(truth) {
        skip("truth", &format!("{file}: link types {}", truth["linktypes"]));
        return None;
    }
    Some((file, folder.join(file)))
}

/// Compares a row with the truth's fields of the same names; with `only`, just those.
fn compare(
    file: &str,
    program: &weir_plan::Program,
    got: &Answer,
    truth: &Json,
    only: &[&str],
    wrong: &mut Vec<String>,
) {
    let columns = &program.pipelines[0].schema.columns;
    let Some((_, row)) = got.rows.first() else {
        wrong.push(format!("{file}: no row; {:?}", got.error));
        return;
    };
    for (column, value) in columns.iter().zip(row) {
        let name = column.name.as_str();
        if !only.is_empty() && !only.contains(&name) {
            continue;
        }
        if known(file, name) {
            continue;
        }
        let want = &truth[name];
        let same = match value {
            Value::Int(n) => want.as_i64() == Some(*n),
            // Sums and times of an empty capture.
            Value::Absent => want.is_null() || want.as_i64() == Some(0),
            Value::Time(t) => want.as_str().is_some_and(|s| epoch(s) == Some(*t)),
            other => panic!("{name} is {other}"),
        };
        if !same {
            wrong.push(format!("{file}: {name} is {value}, the truth says {want}"));
        }
    }
}

/// Nanoseconds of a decimal number of seconds, if they fit.
fn epoch(text: &str) -> Option<i64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let nanos: i64 = format!("{fraction:0<9}")[..9].parse().expect("digits");
    let seconds: i64 = whole.parse().expect("a number");
    let nanos = if text.starts_with('-') { -nanos } else { nanos };
    seconds.checked_mul(1_000_000_000)?.checked_add(nanos)
}

fn flow((_, cells): (usize, Vec<Value>)) -> Vec<String> {
    // A protocol number that an extension header hides counts as 0 in the truth.
    cells.iter().map(|v| if v.exists() { v.to_string() } else { "0".to_owned() }).collect()
}

fn show(v: &Json) -> String {
    v.as_str().map_or_else(|| v.to_string(), str::to_owned)
}

/// Whether two top-five lists agree: packets and bytes in order, and the same flows where these
/// numbers leave no choice.
fn same_flows(got: &[Vec<String>], want: &[Vec<String>]) -> bool {
    let numbers = |rows: &[Vec<String>]| -> Vec<Vec<String>> {
        rows.iter().map(|r| r[5..7].to_vec()).collect()
    };
    let last = numbers(want).last().cloned();
    numbers(got) == numbers(want)
        && want.iter().all(|w| {
            // The last place may be shared with flows beyond the list.
            Some(w[5..7].to_vec()) == last || got.contains(w)
        })
}
