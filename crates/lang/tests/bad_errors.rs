//! Every kind of mistake, as its author sees it. One snapshot holds them all: reading it from top
//! to bottom is the review of our manners, and what reads badly there is to be improved.

use std::collections::BTreeSet;
use std::fmt::Write;
use weir_lang::{Code, Files, Options, Query, Severity, compile, render};

/// Queries with mistakes, by the kind of the first one.
#[rustfmt::skip]
const BAD: &[(Code, &str)] = &[
    (Code::StrayCharacter, "packets | where tcp.dport == $port"),
    (Code::StrayCharacter, "packets | extend name = “web”"),
    (Code::StrayCharacter, "packets | where matches('web', 'w.*')"),
    (Code::OpenString, "packets\n| extend name = \"web\n| limit 5"),
    (Code::BadEscape, r#"packets | extend path = "C:\dir""#),
    (Code::BadEscape, r#"packets | extend name = "caf\xe9""#),
    (Code::BadNumber, "packets | where len > 12345678901234567890"),
    (Code::BadNumber, "packets | summarize n = count() every 10seconds"),
    (Code::BadNumber, "packets | summarize n = count() every 1h30m"),
    (Code::BadNumber, "packets | where len > 1.5KB"),
    (Code::BadAddress, "packets | where ip.src == 10.0.0.256"),
    (Code::BadAddress, "packets | where ip.src in 10.0.0/8"),
    (Code::BadAddress, "packets | where eth.src == 02:00:5e:10:00:1g"),
    (Code::BadNetwork, "packets | where ip.src in 10.1.2.3/8"),
    (Code::BadNetwork, "packets | where ip.src in 2001:db8::/129"),
    (Code::BadTime, "packets | where ts > @2023-11-14T22:13"),
    (Code::BadTime, "packets | where ts > @2023-02-30"),
    (Code::Unexpected, "packets | where tcp udp"),
    (Code::Unexpected, "packets | where tcp.dport =="),
    (Code::Unexpected, "packets where tcp"),
    (Code::Unexpected, "where tcp | limit 5"),
    (Code::Unexpected, "packets | summarize n = count() by ip.src every"),
    (Code::Unexpected, "packets | summarize"),
    (Code::Unexpected, "packets | summarize n = count() by flow every 10s session 15s"),
    (Code::Unexpected, "packets | summarize n = count() by flow active 60s"),
    (Code::Unexpected, "packets | summarize n = count() by flow every 10s until tcp.rst"),
    (Code::Unexpected, "packets | summarize n = count() by flow session 15s idle 60s"),
    (Code::Unexpected, "packets | summarize n = count() by flow every 10s idle 60s"),
    (Code::Unexpected, "packets | summarize n = count() by flow session 15s session 20s"),
    (Code::Unexpected, "packets | summarize n = count() by flow session"),
    (Code::UnknownStage, "packets | session 15s"),
    (Code::MisplacedAggregate, "packets | summarize n = count() by flow session 15s until count() > 5"),
    (Code::NotBool, "packets | summarize n = count() by flow session 15s until len"),
    (Code::WrongArity, "packets | summarize why = end_reason(tcp) by flow session 15s"),
    (Code::BadConstant, "packets | summarize n = count() by flow session 15"),
    (Code::BadConstant, "packets | summarize n = count() by flow session 15s active 0s"),
    (Code::BadConstant, "packets | summarize n = count() by flow session 1s until tcp.rst linger 0s"),
    (Code::Unexpected, "packets | summarize n = count() by flow session 15s linger 5s"),
    (Code::Unexpected, "packets | summarize n = count() by flow session 15s until tcp.rst unless tcp.syn"),
    (Code::NotBool, "packets | summarize n = count() by flow session 5s until tcp.rst linger 1s unless len"),
    (Code::BadConstant, "packets | summarize n = count() by flow every 1000"),
    (Code::BadConstant, "packets | summarize n = count() by flow every 10s rows"),
    (Code::NoEventTime, "packets\n| summarize n = count() by flow\n| summarize flows = count() session 15s"),
    (Code::NoEventTime, "packets | summarize why = end_reason() by flow every 10s"),
    (Code::NoEventTime, "packets | summarize why = end_reason() by flow every 100 rows"),
    (Code::NoEventTime, "packets | summarize pps = rate() by flow session 15s"),
    (Code::Unexpected, "packets | top by len"),
    (Code::Unexpected, "packets | scan n = 0 by flow n + 1"),
    (Code::Unexpected, "packets | extend x = if tcp then 1 else 2"),
    (Code::Unexpected, "param threshold = 10\npackets | where len > threshold"),
    (Code::Unexpected, "packets | limit 5;"),
    (Code::Unexpected, "let web = | limit 5\nweb"),
    (Code::Unexpected, "packets | | limit 5"),
    (Code::Unclosed, "packets\n| where (tcp and (udp or icmp)\n| limit 5"),
    (Code::Unclosed, "packets | where dport in {22, 80"),
    (Code::Unexpected, "packets | distinct by ip.src"),
    (Code::Unexpected, "packets | distinct | limit 5"),
    (Code::Unexpected, "packets | deduplicate | limit 5"),
    (Code::FieldGone, "packets | each dns.answer | deduplicate within 1s"),
    (Code::Unexpected, "packets | sample 100"),
    (Code::Unexpected, "packets | top 3 by len max 5"),
    (Code::Unexpected, "packets | each | limit 5"),
    (Code::Unexpected, "packets | each dns.answer, tcp.option"),
    (Code::Unexpected, "packets | analyze"),
    (Code::Unexpected, "packets | analyze udp"),
    (Code::ForeignWord, "packets | where tcp && !udp || tcp.dport = 80"),
    (Code::ForeignWord, "packets | where tcp AND udp // both"),
    (Code::ChainedComparison, "packets | where 1 < len < 100"),
    (Code::UnknownStage, "packets | filter tcp | sumarize count()"),
    (Code::UnknownStage, "packets | dance"),
    (Code::UnknownStage, "packets | unnest dns.answer"),
    (Code::Unsupported, "packets | where tcp | store \"syn.parquet\""),
    (Code::Unexpected, "packets | summarize n = count() by ip.src every 1s | metric"),
    (Code::Unexpected, "packets | summarize n = count() by ip.src every 1s | metric gauge x of n"),
    (Code::Unexpected, "packets | summarize n = count() by ip.src every 1s | metric gauge \"x\""),
    (Code::Unexpected, "packets | summarize n = count() by ip.src every 1s | metric counter \"x\" of n / 2"),
    (Code::Unexpected, "packets | summarize n = count() by ip.src every 1s | metric counter \"x\" of n of n"),
    (Code::UnknownName, "packets | summarize n = count() by ip.src every 1s | metric gauge \"x\" of m"),
    (Code::UnknownName, "packets | summarize n = count() by ip.src every 1s | metric gauge \"x\" of n by ip.scr"),
    (Code::BadConstant, "packets | summarize n = count() by ip.src every 1s | metric gage \"x\" of n"),
    (Code::BadConstant, "packets | summarize n = count() by ip.src every 1s | metric gauge \"dns.rtt\" of n"),
    (Code::BadConstant, "packets | summarize n = count() by ip.src every 1s | metric gauge \"x\" of n max 5k"),
    (Code::TypeMismatch, "packets | summarize n = count() by ip.src every 1s | metric counter \"x\" of ip.src"),
    (Code::TypeMismatch, "packets | summarize n = count() by ip.src every 1s | metric histogram \"x\" of n"),
    (Code::TypeMismatch, "packets | summarize h = histogram(len, 9) | extend h = \"9=5\" | metric histogram \"x\" of h"),
    (Code::TypeMismatch, "packets | summarize n = count() by ip.src every 1s | metric histogram \"x\""),
    (Code::NeedsColumns, "packets | where dns | metric counter \"x\""),
    (Code::ColumnClash, "packets | summarize h = histogram(len, 9) by le = ip.src every 1s | metric histogram \"x\" of h"),
    (Code::ColumnClash, "packets | summarize n = count() by ip_src = ip.dst, ip.src every 1s | metric gauge \"x\" of n"),
    (Code::AfterPrint, "packets | summarize n = count() every 1s | metric gauge \"x\" of n | where n > 1"),
    (Code::Unexpected, "packets | summarize n = count() by ip.src every 1s | alert"),
    (Code::Unexpected, "packets | summarize n = count() by ip.src every 1s | alert SYN flood"),
    (Code::Unexpected, "packets | summarize n = count() by ip.src every 1s | alert \"x\" key n / 2"),
    (Code::Unexpected, "packets | summarize n = count() by ip.src every 1s | alert \"x\" severity high hold 5m hold 1m"),
    (Code::UnknownName, "packets | summarize n = count() by ip.src every 1s | alert \"{ip.scr} had {n}\" severity high"),
    (Code::UnknownName, "packets | summarize n = count() by ip.src every 1s | alert \"x\" key ip.scr"),
    (Code::BadConstant, "packets | summarize n = count() by ip.src every 1s | alert \"{n\" hold 5m"),
    (Code::BadConstant, "packets | summarize n = count() by ip.src every 1s | alert \"{n / 2} or {}\""),
    (Code::BadConstant, "packets | summarize n = count() by ip.src every 1s | alert \"50}\""),
    (Code::BadConstant, "packets | summarize n = count() by ip.src every 1s | alert \"x\" severity hihg"),
    (Code::BadConstant, "packets | summarize n = count() by ip.src every 1s | alert \"x\" hold 5"),
    (Code::BadConstant, "packets | summarize n = count() by ip.src every 1s | alert \"x\" technique \"TA0043\""),
    (Code::Unexpected, "packets | summarize n = count() by ip.src every 1s | alert \"x\" category scan"),
    (Code::UnknownName, "packets | summarize n = count() by ip.src every 1s | alert \"x\" next \"see {ip.scr}\""),
    (Code::ColumnClash, "packets | summarize n = count(), alert.first = count() by ip.src every 1s | alert \"x\""),
    (Code::NotAColumn, "packets | summarize n = count() by ip.src every 1s | alert \"x\" key ts"),
    (Code::NeedsColumns, "packets | where tcp.syn | alert \"SYN from {ip.src}\""),
    (Code::NeedsColumns, "packets | project ip.src | alert \"{ip.src}\""),
    (Code::NoEventTime, "packets | summarize n = count() by ip.src | alert \"{n}\""),
    (Code::ColumnClash, "packets | summarize n = count() by ip.src every 1s | alert \"x\" | alert \"y\""),
    (Code::NoPipeline, "param limit: int = 5"),
    (Code::NoPipeline, ""),
    (Code::BadName, "let max = packets | where tcp\nlet a.b = 2\nlet in = 5\npackets | limit 1"),
    (Code::BadName, "packets | extend by = 1"),
    (Code::UnknownName, "packets | where tcp.dprot == 80"),
    (Code::UnknownName, "packets | where tcp.flags.syn and ttl < 5"),
    (Code::UnknownName, "packets | summarize bytes = sum(len) by ip.src | where byts > 5"),
    (Code::UnknownName, "packets | summarize bytes = sum(len) by ip.src | where quick > 5"),
    (Code::UnknownName, "packets | where count > 5"),
    (Code::UnknownName, "packets | extend bits = len * 8, kbits = bits / 1000"),
    (Code::UnknownName, "packets | each dns.answers"),
    (Code::UnknownName, "packets | where tcp.analysis.retransmission"),
    (Code::BadConstant, "packets | analyze tcp idle 5"),
    (Code::UnknownName, "packets | each tcp"),
    (Code::UnknownName, "packets | where vlan.tag == 5"),
    (Code::UnknownFunction, "packets | where startswith(\"a\", \"b\")"),
    (Code::UnknownFunction, "packets | extend x = frobnicate(len)"),
    (Code::UnknownPipeline, "let web = packets | where tcp\nwbe | limit 5"),
    (Code::UnknownPipeline, "packets | where tcp\nudp"),
    (Code::TakenName, "let x = 1\nlet x = 2\npackets | limit x"),
    (Code::TakenName, "param len: int = 5\npackets | limit len"),
    (Code::TakenName, "let flow = 5\npackets | limit 1"),
    (Code::NotYetDefined, "web | limit 5\nlet web = packets | where tcp"),
    (Code::NotYetDefined, "packets | where big\nlet big = len > 1000"),
    (Code::NotAValue, "let web = packets | where tcp\npackets | where web"),
    (Code::NotAValue, "let port = 80\nport | limit 5"),
    (Code::FieldGone, "packets\n| summarize n = count() by ip.src\n| where tcp.syn"),
    (Code::FieldGone, "packets\n| project ts, dns.qname\n| each dns.answer"),
    (Code::FieldGone, "packets\n| project ts, flow\n| analyze tcp"),
    (Code::FieldGone, "packets | limit 5 | each tcp.option"),
    (Code::FieldGone, "packets | project ts, tls.sni | hello"),
    (Code::BadConstant, "packets | hello idle 0s"),
    (Code::FieldGone, "packets\n| project ip.src, len\n| where tcp.dport == 80"),
    (Code::FieldGone, "packets | summarize bytes = sum(len) by src = ip.src | where ip.src == 10.0.0.1"),
    (Code::FieldGone, "let web = tcp.dport in {80, 443}\npackets\n| summarize n = count() by ip.dst\n| where web"),
    (Code::ColumnClash, "packets | summarize n = count(), n = sum(len)"),
    (Code::ColumnClash, "packets | summarize ts = min(ts) every 1s"),
    (Code::ColumnClash, "packets | project flow, ip.src"),
    (Code::NeedsName, "packets | extend len * 8"),
    (Code::NeedsName, "packets | each split(dns.qname, \".\")"),
    (Code::NeedsName, "packets | summarize n = count() by len / 100"),
    (Code::NeedsName, "packets | summarize sum(len * 8)"),
    (Code::MisplacedAggregate, "packets | where count() > 5"),
    (Code::MisplacedAggregate, "packets | extend smaller = min(sport, dport)"),
    (Code::NotAnAggregate, "packets | summarize ip.src, n = count()"),
    (Code::NotAnAggregate, "packets | summarize rate = sum(len) / count()"),
    (Code::NotAnAggregate, "packets | summarize count by ip.src"),
    (Code::NotAnAggregate, "packets | summarize m = mean(len)"),
    (Code::TypeMismatch, "packets | where ip.src == 80"),
    (Code::TypeMismatch, "packets | where ip.src == \"10.0.0.1\""),
    (Code::TypeMismatch, "packets | where tcp == 443"),
    (Code::TypeMismatch, "packets | where ip.proto == \"tcp\""),
    (Code::TypeMismatch, "packets | extend age = ts + 5"),
    (Code::TypeMismatch, "packets | where tcp.dport in {80, \"https\"}"),
    (Code::TypeMismatch, "packets | where tcp & udp"),
    (Code::TypeMismatch, "packets | extend x = -ip.src"),
    (Code::TypeMismatch, "packets | scan n = 0 by flow => \"a\""),
    (Code::NotBool, "packets | where len"),
    (Code::NotBool, "packets | where tcp and ip.src"),
    (Code::NetworkEquality, "packets | where ip.src == 10.0.0.0/8"),
    (Code::WrongArity, "packets | where exists(ip.src, ip.dst)"),
    (Code::WrongArity, "packets | extend x = if(tcp, 1)"),
    (Code::WrongArity, "packets | summarize n = sum()"),
    (Code::WrongArgument, "packets | where contains(ip.src, \"10\")"),
    (Code::WrongArgument, "packets | summarize syns = sum(tcp.syn)"),
    (Code::WrongArgument, "packets | extend m = min_of(ip.src, len)"),
    (Code::NotOrdered, "packets | where tcp < udp"),
    (Code::NotOrdered, "packets | summarize a = any(tcp) by ip.src | top 5 by a"),
    (Code::BranchTypes, "packets | extend kind = if(tcp, \"tcp\", 0)"),
    (Code::BranchTypes, "packets | extend kind = match dport { 22 => \"ssh\", _ => dport }"),
    (Code::NotAColumn, "packets | extend pair = (ip.src, ip.dst)"),
    (Code::NotAColumn, "packets | extend home = 10.0.0.0/8"),
    (Code::NotConstant, "packets | where ip.src in {ip.dst, 10.0.0.1}"),
    (Code::NotConstant, "packets | summarize n = count() every len"),
    (Code::BadConstant, "packets | summarize n = count() every 0s"),
    (Code::BadConstant, "packets | summarize n = count() every 10"),
    (Code::BadConstant, "packets | limit 0"),
    (Code::BadConstant, "packets | where tcp.dport in 1024..1"),
    (Code::BadConstant, "param n: int = 9223372036854775807 + 1\npackets | limit n"),
    (Code::BadRegex, "packets | extend x = \"a\" | where matches(x, \"a(b\")"),
    (Code::BadSet, "packets | where tcp.dport in (80, 443)"),
    (Code::BadSet, "packets | where tcp.dport in [80, 443]"),
    (Code::BadSet, "packets | where tcp.dport in 80"),
    (Code::BadSet, "packets | where tcp.dport in {}"),
    (Code::BadPattern, "packets | extend x = match (sport, dport) { 53 => 1, _ => 0 }"),
    (Code::BadPattern, "packets | extend x = match dport { 53 => 1, else => 0 }"),
    (Code::NoEventTime, "packets\n| summarize n = count() by ip.src\n| summarize most = max(n) every 10s"),
    (Code::NoEventTime, "packets | summarize bits = rate(len) by ip.src"),
    (Code::NoEventTime, "packets | summarize n = count() by ip.src every 1s | distinct n idle 1h"),
    (Code::NoEventTime, "packets | summarize n = count() by ip.src | distinct n idle 1h"),
    (Code::WrongArgument, "packets | scan gap = 0s, last = ts by flow => (ts - last, ts) | summarize v = variance(gap)"),
    (Code::WrongArgument, "packets | summarize r = rate(ip.src) every 1s"),
    (Code::NotAnAggregate, "packets | summarize s = stdev(len), p = pps() every 1s"),
    (Code::BadConstant, "packets | summarize p = quantile(len, 95) by ip.src"),
    (Code::BadConstant, "packets | summarize p = percentile(len, 101), f = frequent(dport, 0)"),
    (Code::NotConstant, "packets | summarize p = quantile(len, ip.ttl)"),
    (Code::WrongArity, "packets | summarize p = quantile(len), h = histogram(len), m = median(len, 2)"),
    (Code::WrongArgument, "packets | summarize h = histogram(len, 10ms), e = histogram(ip.src, 1)"),
    (Code::BadConstant, "packets | summarize h = histogram(len, 0)"),
    (Code::NotAColumn, "packets | summarize f = frequent(flow, 3)"),
    (Code::NotAnAggregate, "packets | summarize p = p95(len), t = topk(dport, 3)"),
    (Code::BadConstant, "packets | summarize ports = distinct(dport, 0)"),
    (Code::ColumnClash, "packets | summarize p = distinct(dport, 9), p_exact = count()"),
    (Code::NeedsName, "packets | summarize distinct(dport, 10k) by ip.src"),
    (Code::StateCount, "packets | scan a = 0, b = 0 by flow => a + 1"),
    (Code::StateCount, "packets | scan a = 0 by flow => (a, 1)"),
    (Code::AfterPrint, "packets | print | where tcp"),
    (Code::Unexpected, "packets | branch tcp -> pass else -> drop"),
    (Code::Unexpected, "packets | branch when tcp => pass else => drop"),
    (Code::Unexpected, "packets | branch when tcp -> pass else -> drop when udp -> drop"),
    (Code::Unexpected, "packets | branch when tcp -> trim 96 else -> drop"),
    (Code::Unexpected, "packets | branch when tcp -> where udp | pass else -> drop"),
    (Code::Unexpected, "packets | branch when tcp -> branch when udp -> pass else -> drop"),
    (Code::Unexpected, "packets | branch when tcp -> accept else -> drop"),
    (Code::Unexpected, "packets | forward to \"a.pcap\""),
    (Code::Unexpected, "packets | steer hosts to (\"a.pcap\", \"b.pcap\")"),
    (Code::Unexpected, "packets | broadcast (\"a.pcap\", \"b.pcap\")"),
    (Code::Unexpected, "packets | forward"),
    (Code::UnknownStage, "packets | mirror \"a.pcap\" | next"),
    (Code::AfterEnd, "packets\n| forward \"a.pcap\"\n| where tcp"),
    (Code::AfterEnd, "packets\n| branch when tcp -> pass else -> drop\n| summarize n = count()"),
    (Code::AfterEnd, "let gone = packets | steer by hosts to (\"a.pcap\", \"b.pcap\")\ngone | limit 5"),
    (Code::NotPackets, "packets\n| summarize bytes = sum(len) by ip.src\n| forward \"big.pcap\""),
    (Code::NotPackets, "packets | project ts, dns | branch when dns -> pass else -> drop"),
    (Code::BadOutput, "packets | forward dns.pcap"),
    (Code::BadOutput, "packets | forward (\"a.pcap\", \"b.pcap\")"),
    (Code::BadOutput, "packets | broadcast to (\"a.pcap\", \"b.pcap\", \"a.pcap\")"),
    (Code::BadOutput, "packets | mirror 5 | forward \"\""),
    (Code::BadOutput, "let web = packets | where tcp\npackets | forward web"),
    (Code::ReplacedField, "packets\n| extend ip.src = anonymize(ip.src, \"0123456789abcdef0123456789abcdef\")\n| pass"),
    (Code::ReplacedField, "let hidden = packets | extend ip.src = anonymize(ip.src, \"0123456789abcdef0123456789abcdef\"), len = 0\nhidden | branch when tcp -> tag 5 | mirror \"a.pcap\" | pass else -> drop"),
    (Code::ReplacedField, "packets | scan ttl = 0, ip.ttl = 0 by flow => (ttl + 1, ip.ttl + 1) | steer by hosts to (\"a\", \"b\")"),
    (Code::NotConstant, "packets | forward dns.qname"),
    (Code::NotBool, "packets | branch when dport -> pass else -> drop"),
    (Code::BadConstant, "packets | tag 4095 | trim 0 | pass"),
    (Code::BadParam, "param home: net = 10.0.0.1\npackets | where ip.src in home"),
    (Code::BadParam, "param every_s: duration = 10\npackets | summarize n = count() every every_s"),
    (Code::UnknownType, "param limit: integer = 5\npackets | limit limit"),
    (Code::TooLarge, "packets | summarize by flow, conn, hosts"),
    (Code::TooLarge, "packets | summarize n = distinct((flow, conn, hosts))"),
    // Of packets that are rewritten.
    (Code::Unexpected, "packets | anonymize ip.src | pass"),
    (Code::Unexpected, "packets | anonymize with \"k\" | pass"),
    (Code::BadConstant, "packets | anonymize ip.src, ip.dst with \"secret\" | pass"),
    (Code::WrongArgument, "packets | anonymize hosts, dport, ip.sr with \"0123456789abcdef0123456789abcdef\" | pass"),
    (Code::WrongArgument, "packets | anonymize ip.src, ip.dst, ip.src with \"0123456789abcdef0123456789abcdef\" | pass"),
    (Code::FieldGone, "packets\n| anonymize ip.src, ip.dst with \"0123456789abcdef0123456789abcdef\"\n| summarize n = count() by hosts"),
    (Code::Unsupported, "packets\n| anonymize ip.src with \"0123456789abcdef0123456789abcdef\"\n| project ts, ip.src\n| capture 1s by ip.src"),
    (Code::NotPackets, "packets | project ip.src | anonymize ip.src with \"0123456789abcdef0123456789abcdef\""),
    // Of stages that take names.
    (Code::UnknownName, "packets | summarize bytes = sum(len) by ip.src | project-away byts"),
    (Code::UnknownName, "packets | project-away tcp.dprot | rename p = tcp.sprot"),
    (Code::FieldGone, "packets\n| project-away ip.src, len\n| where ip.src == 10.0.0.1"),
    (Code::FieldGone, "packets\n| rename client = ip.src\n| where ip.src == 10.0.0.1"),
    (Code::FieldGone, "packets\n| summarize n = count() by ip.src\n| rename packets_seen = n\n| where n > 5"),
    (Code::NeedsColumns, "packets | summarize n = count() by ip.src | project-away n, ip.src"),
    (Code::NeedsColumns, "packets | project-away ts, len, flow, protocol"),
    (Code::Unexpected, "packets | project-away x = len"),
    (Code::Unexpected, "packets | rename bits = len * 8 | project-away len * 8"),
    (Code::ColumnClash, "packets | summarize n = count() by ip.src, ip.dst | rename ip.dst = ip.src"),
    (Code::ColumnClash, "packets | rename len = caplen"),
    (Code::ColumnClash, "packets | rename a = len, b = len | project-away ts, ts"),
    (Code::NeedsName, "packets | rename ip.src"),
    (Code::ReplacedField, "packets | rename ip.src = ip.dst, ip.dst = ip.src | pass"),
    (Code::UnknownStage, "packets | project-rename a = len | project-keep len"),
    (Code::UnknownStage, "packets | exclude len"),
    // Of several pipelines.
    (Code::NeedsColumns, "let syns = packets | where tcp.syn\npackets | project ts, ip.src | join syns by ip.src within 3s"),
    (Code::NeedsColumns, "let a = packets | project ts, ip.src\npackets | where tcp | union a"),
    (Code::NeedsColumns, "packets | project ts, ip.src | union packets"),
    (Code::NeedsColumns, "packets | join packets by flow within 1s"),
    (Code::UnknownName, "let a = packets | summarize n = count() by ip.src\npackets | summarize m = count() by ip.dst | join a by ip.src"),
    (Code::UnknownName, "let hosts_seen = packets | summarize n = count() by host = ip.src\npackets | summarize m = count() by ip.src | join hosts_seen by ip.src == hots"),
    (Code::TypeMismatch, "let a = packets | summarize n = count() by ip.src\npackets | summarize m = count() by dport | join a by dport == ip.src"),
    (Code::TypeMismatch, "let a = packets | project ts, port = string(dport)\npackets | project ts, port = dport | union a"),
    (Code::ColumnClash, "let a = packets | summarize n = count(), ip.len = sum(len) by ip.src\npackets | summarize n = count(), ip.len = max(len) by ip.src | join a by ip.src"),
    (Code::NoEventTime, "let a = packets | project answered = ts, ip.src\npackets | project ts, ip.src | join a by ip.src"),
    (Code::NoEventTime, "let a = packets\n    | summarize n = count() by ip.src\npackets | summarize m = count() by ip.src every 1s | join a by ip.src"),
    (Code::NoEventTime, "let a = packets\n    | summarize n = count() by ip.src\npackets | project ts, ip.src | join a by ip.src within 10s"),
    (Code::BadConstant, "let a = packets | project answered = ts, ip.src\npackets | project ts, ip.src | join a by ip.src within 3s..-1s"),
    (Code::BadConstant, "let a = packets | project answered = ts, ip.src\npackets | project ts, ip.src | join a by ip.src within 3"),
    (Code::Unexpected, "let a = packets | project answered = ts, ip.src\npackets | project ts, ip.src | join a within 3s"),
    (Code::Unexpected, "packets | project ts, ip.src | join (packets | where tcp) by ip.src"),
    (Code::Unexpected, "let a = packets | project answered = ts, len\npackets | project ts, len | join a by len / 100 within 3s"),
    (Code::Unexpected, "let a = packets | summarize n = count() by ip.src\npackets | summarize m = count() by ip.src | join a by ip.src default n = 0"),
    (Code::TypeMismatch, "let a = packets | summarize n = count() by ip.src\npackets | summarize m = count() by ip.src | join left a by ip.src default n = \"none\""),
    (Code::UnknownName, "let a = packets | summarize n = count() by ip.src\npackets | summarize m = count() by ip.src | join left a by ip.src default ip.src = ::1, k = 0"),
    (Code::ForeignWord, "let a = packets | summarize n = count() by ip.src\npackets | summarize m = count() by ip.src | join outer a on ip.src"),
    (Code::ForeignWord, "let a = packets | summarize n = count() by ip.src\npackets | summarize m = count() by src = ip.src | join a on src = ip.src"),
    (Code::ForeignWord, "let a = packets | summarize n = count() by ip.src\npackets | summarize m = count() by ip.src | join kind=leftanti a on ip.src"),
    (Code::UnknownPipeline, "let answers = packets | summarize n = count() by ip.src\npackets | summarize m = count() by ip.src | join anwsers by ip.src"),
    (Code::NotAValue, "let limit_of_it = 5\npackets | summarize m = count() by ip.src | join limit_of_it by ip.src"),
    // Words that people bring along from other tools.
    (Code::UnknownName, "packets | where ip.addr == 10.0.0.1 and tcp.port == 80"),
    (Code::UnknownName, "packets | where port == 80 or tcp.srcport == 80 or src_ip == ::1"),
    (Code::UnknownName, "packets | where frame.len > 100 and frame.time > @2023-11-14 and frame.cap_len > 1"),
    (Code::UnknownName, "packets | where ip.tos == 1 and syn and ack and eth.addr == 02:00:5e:10:00:01"),
    (Code::UnknownName, "packets | where ts > now - 5m"),
    (Code::UnknownName, "packets | summarize n = count() by ip.src | top 3 by count"),
    (Code::UnknownFunction, "packets | where ts > now()"),
    (Code::Unsupported, "packets | where http3.status == 1 or vxlan"),
    (Code::Unsupported, "packets | where ppp.protocol == 0x57 or GRE.key == 7"),
    (Code::UnknownName, "packets | where mdns or dns.qry.name == \"a.example\" and dns.flags.response"),
    (Code::UnknownName, "packets | where dns.qname == example.org"),
    (Code::TypeMismatch, "packets | where dns == 53 or dns.qname in 10.0.0.0/8"),
    (Code::UnknownName, "packets | where http.request.method == \"GET\" or sni == \"a\" or https"),
    (Code::TypeMismatch, "packets | where http.status == \"404\" or tls.version == \"1.3\""),
    (Code::UnknownName, "packets | where tcp.options.mss_val < 536 and tcp.msss > 1"),
    (Code::UnknownFunction, "packets | extend net = subnet(ip.src, 24), d = dayofweek(ts)"),
    (Code::BadConstant, "packets | extend net = prefix(ip.src, 33, 64)"),
    (Code::BadConstant, "packets | extend net = prefix(ip.src, -1)"),
    (Code::NotConstant, "packets | extend net = prefix(ip.src, ip.ttl)"),
    (Code::WrongArgument, "packets | where is_private(10.0.0.0/8)"),
    (Code::WrongArgument, "packets | where hour(10s) == 1"),
    (Code::WrongArgument, "packets | where contains(bytes(string(ip.src)), \"10\")"),
    (Code::WrongArgument, "packets | where contains(string(ip.src), b\"10\")"),
    (Code::BadConstant, "packets | extend x = clamp(len, 1500, 64)"),
    (Code::WrongArity, "packets | extend x = slice(string(ip.src), 3)"),
    (Code::BadConstant, "packets | extend a = anonymize(ip.src, \"secret\")"),
    (Code::NotConstant, "packets | extend a = anonymize(ip.src, string(ip.dst))"),
    (Code::WrongArgument, "packets | extend id = community_id(hosts)"),
    (Code::BadConstant, "packets | extend id = community_id(conn, 65536)"),
    (Code::BadConstant, "packets | sample 100 in 1"),
    (Code::BadConstant, "packets | sample 200% by flow"),
    (Code::BadConstant, "packets | sample 10s in 1m"),
    (Code::BadRegex, "packets | extend x = extract(string(ip.src), \"([0-9]\")"),
    (Code::TypeMismatch, "packets | where ip.proto == tcp"),
    (Code::TypeMismatch, "packets | where ts > 2026-11-21"),
    (Code::BadTime, "packets | where ts > 2026-11-21T05:50:00Z"),
    (Code::BadNumber, "packets | summarize n = count() every 1000000d"),
    (Code::BadNumber, "packets | where ts - ts > 1.5ns"),
    (Code::TypeMismatch, "packets | summarize n = count() by net = ip.src / 24"),
    (Code::ForeignWord, "packets | where ip.src like \"10.%\""),
    (Code::ForeignWord, "packets | extend x = \"a\" | where x LIKE \"a%\" or x contains \"a\" or x =~ \"a\""),
    (Code::ForeignWord, "packets | summarize n = count(*) by ip.src"),
    (Code::ForeignWord, "packets | project *"),
    (Code::UnknownName, "packets | where ether[12:2] == 0x800"),
    (Code::UnknownName, "packets | where quic[0] > 0x7f"),
    (Code::TypeMismatch, "packets | extend x = len | where x[0] == 1"),
    (Code::UnknownName, "packets | project ip.src | where payload[0] == 22"),
    (Code::BadConstant, "packets | where tcp[70000] == 1"),
    (Code::BadConstant, "packets | where payload[0:300] == b\"\\x16\""),
    (Code::NotConstant, "packets | where payload[tcp.hdr_len] == 1"),
    (Code::TypeMismatch, "packets | where payload[0:8] == 22"),
    (Code::BadFile, "packets | where ip.src in file(\"missing.txt\")"),
    (Code::BadFile, "packets | where ip.src in {192.0.2.1, file(\"nets.txt\")}"),
    (Code::BadFile, "packets | extend name = lookup(\"hosts.csv\", ip.src, \"name\")"),
    (Code::BadFile, "packets | extend name = lookup(\"hosts.csv\", ip.src, \"nam\")"),
    (Code::BadFile, "packets | extend name = lookup(\"ports.csv\", dport, \"name\")"),
    (Code::WrongArgument, "packets | extend name = lookup(\"ports.csv\", ts, \"name\")"),
    (Code::WrongArgument, "packets | each p = len"),
    (Code::WrongArgument, "packets | each p = http.uri"),
    (Code::WrongArgument, "packets | each p = split(len, \".\")"),
    (Code::WrongArgument, "packets | each p = len + 1"),
    (Code::WrongArity, "packets | extend name = lookup(\"ports.csv\", dport)"),
    (Code::WrongArity, "packets | each p = split(dns.qname, \".\", 1)"),
    (Code::BadSet, "packets | extend nets = file(\"nets.txt\")"),
    (Code::BadSet, "packets | where ts in file(\"nets.txt\")"),
    (Code::StrayCharacter, "packets | extend naïve = 1 | where naïve == 1 and größe > 1"),
    (Code::Unused, "packets | trim 96 | where tcp"),
    (Code::Unused, "packets | branch when tcp -> trim 96 | next else -> pass"),
    (Code::Unused, "param limit: int = 5\nlet web = tcp.dport == 80\npackets | where tcp"),
    (Code::UnreachableArm, "packets | extend x = match dport { 1..1023 => 1, 80 => 2, _ => 3, 7 => 4 }"),
    (Code::AlwaysPresent, "packets | where exists(tcp) and exists(len)"),
    (Code::AlwaysAbsent, "packets | extend rate = len / 0, big = 9223372036854775807 + 1"),
    (Code::MixedSources, "packets | where tcp\nflows | limit 5"),
    (Code::BadSet, "packets | where dport in {22, 80-90}"),
    (Code::BadSet, "packets | where dport in 1-1024"),
    (Code::BadSet, "packets | where dport in {90-80}"),
    (Code::BadSet, "packets | where ip.src in {192.0.2.1-192.0.2.9}"),
    (Code::BadSet, "packets | where ip.src in 192.0.2.1-192.0.2.9"),
    (Code::BadSet, "packets | where ip.src in {192.0.2.0/25-192.0.2.128/25}"),
    (Code::BadSet, "param ports: ints = {22, 80-90}\npackets | where dport in ports"),
    (Code::BadSet, "packets | extend x = match dport { 80-90 => 1, _ => 2 }"),
    (Code::OneAnswer, "packets | where tcp.dport > 70000 or ip.proto == 300 or vlan.id == 5000"),
    (Code::OneAnswer, "packets | where tcp.dport == 80.5 or 0 > len or sport == 80-90"),
    (Code::OneAnswer, "packets | where tcp.dport != 65536 and ip.ttl > 255 and tcp[13] == 256"),
    (Code::OneAnswer, "packets | where dport in {22, 70000} or ip.proto in 256..300"),
    (Code::OneAnswer, "packets | where tls.version == 1.2 or tls.version >= 1.3"),
    (Code::OneAnswer, "let late = tls.version < 1.2\npackets | where late"),
    (Code::TypeMismatch, "packets | where tls.version == \"TLS 1.2\" or tls.version == \"TLSv1.0\""),
    (Code::Unused, "let unused = packets | where udp\npackets | where tcp | summarize n = count()"),
    (Code::SequenceNumber, "packets | where tcp.syn and tcp.ack | project ts, number = tcp.seq + 1"),
    (Code::SequenceNumber, "packets | where tcp.ackno - tcp.seq > 1 or 1 + tcp.seq == 5 or tcp.seq - 1 == 5"),
    (Code::SequenceNumber, "let end = tcp.seq + tcp.payload_len + 1\npackets | where end > 5"),
    (Code::WholeQuotient, "packets | summarize bad = count(tcp.rst), all = count() | where bad / all > 0.5"),
    (Code::WholeQuotient, "packets | summarize bad = count(tcp.rst), all = count() | extend share = bad / all, percent = bad / all * 100, quarter = all / 4, permille = 1000 * bad / all"),
    (Code::WholeQuotient, "packets | summarize a = sum(len), n = count() | project x = a / (n + 1) | where 0.25 <= x"),
    (Code::DistinctPerWindow, "packets | where ip | summarize n = count() by ip.src every 1s | distinct ip.src | limit 20"),
    (Code::OddConstant, "packets | summarize slow = percentile(len, 0.95) by ip.src"),
    (Code::TypeMismatch, "packets | where dns.rcode == \"NXDOMAIN\" or dns.qtype in {\"AAAA\", \"MX\"}"),
    (Code::UnknownName, "packets | where dns.rcode == NXDOMAIN or dns.qtype == TXT"),
    (Code::TypeMismatch, "packets | each dns.answer | where answer.type == \"CNAME\""),
    (Code::TypeMismatch, "packets | where tcp.flags == \"S\" or tcp.flags == \"SA\""),
    (Code::NotBool, "packets | where tcp.flags & 2"),
    (Code::TypeMismatch, "packets | where tcp.syn == 1 and tcp.ack == 0"),
    (Code::StrayCharacter, "packets | extend x = tcp ? 1 : 0"),
    (Code::ForeignWord, "packets | extend x = case when tcp then 1 else 0 end"),
    (Code::BadNetwork, "packets | where ip.src in 192.0.2.0/255.255.255.0"),
    (Code::BadNetwork, "packets | where ip.src in 192.0.2.0/255.0.255.0"),
    (Code::StrayCharacter, "packets | where ip.src == '192.0.2.1'"),
    (Code::UnknownName, "packets | where saddr == ::1 or daddr == ::1 or retransmission or app == \"dns\""),
    (Code::UnknownName, "packets | summarize n = sum(bytes) by ip.src"),
    (Code::UnknownFunction, "packets | extend from = geoip(ip.src), by_as = asn(ip.src), gap = lag(ts)"),
    (Code::UnknownFunction, "packets | summarize slow = p95(len), all = list(dport) by ip.src"),
    (Code::UnknownStage, "packets | count"),
    (Code::UnknownStage, "packets | tail 3"),
    (Code::UnknownStage, "packets | save \"x.csv\""),
    (Code::UnknownStage, "packets | sort by len desc"),
    (Code::Unexpected, "tcp.dport == 80"),
    (Code::Unexpected, "not tcp and len > 5 | limit 3"),
    (Code::Unexpected, "tcp"),
    (Code::UnknownPipeline, "tcp | limit 5"),
    (Code::ForeignWord, "select * from packets where tcp"),
    (Code::UnknownName, "flows | summarize sum(len) by ip.src"),
    (Code::UnknownName, "flows | where packts > 1"),
    (Code::NotPackets, "flows | where tcp | forward \"x.pcap\""),
    (Code::NotPackets, "flows | analyze tcp"),
    (Code::NotPackets, "flows | each dns.answer"),
    (Code::NotPackets, "flows | where tcp[13] == 2"),
    (Code::NotPackets, "flows | project ts, ip.src | capture 30s by ip.src"),
    (Code::TakenName, "let bytes = 5\nflows | where packets > bytes"),
];

/// The files that these queries name.
#[derive(Debug)]
struct Given;

impl Files for Given {
    fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        Ok(match path {
            "nets.txt" => "# ours\n10.0.0.0/8\n10.1.2.300\n".into(),
            "hosts.csv" => "ip,name,site\n10.0.0.1,web,a\n10.0.0.2,mail\n".into(),
            "ports.csv" => "port,name\n22,ssh\n80,http\n22,telnet\n".into(),
            _ => return Err("no such file".into()),
        })
    }
}

fn text_too_deep() -> String {
    format!("packets | where {}tcp{}", "(".repeat(100), ")".repeat(100))
}

fn show(out: &mut String, text: &str, params: &[(&str, &str)]) -> BTreeSet<Code> {
    let params: Vec<(String, String)> =
        params.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
    let options = Options { params: &params, files: Some(&Given), ..Options::default() };
    let q = Query { name: "query.weir", text };
    let diagnostics = match compile(&q, &options) {
        Ok(compiled) => compiled.warnings,
        Err(diagnostics) => diagnostics,
    };
    writeln!(out, "{}", render(&diagnostics, &q, false)).expect("writing to memory");
    for d in &diagnostics {
        assert!(!d.message.ends_with('.'), "a message is no full sentence: {d}");
        assert!(!d.help.as_ref().is_some_and(|h| h.ends_with('.')), "{d}");
    }
    diagnostics.iter().map(|d| d.code).collect()
}

#[test]
fn the_shameful_diagnostics() {
    let mut out = String::new();
    let mut seen = BTreeSet::new();
    for (code, text) in BAD {
        let codes = show(&mut out, text, &[]);
        assert!(codes.contains(code), "{code} of {text}: {codes:?}");
        seen.extend(codes);
    }
    let limit = "param limit: int = 5\npackets | limit limit";
    seen.extend(show(&mut out, limit, &[("limt", "6")]));
    seen.extend(show(&mut out, "packets | limit 5", &[("x", "6")]));
    seen.extend(show(&mut out, limit, &[("limit", "many")]));
    let interval = "param interval: duration = 1m\npackets | summarize count() every interval";
    seen.extend(show(&mut out, interval, &[("interval", "1000000d")]));
    seen.extend(show(&mut out, &text_too_deep(), &[]));
    let missing: Vec<_> = Code::ALL.iter().filter(|(code, _)| !seen.contains(code)).collect();
    assert!(missing.is_empty(), "kinds without a snapshot: {missing:?}");
    insta::assert_snapshot!(out);
}

fn addresses(n: u32) -> String {
    let all: Vec<String> =
        (0..n).map(|n| std::net::Ipv4Addr::from(0x0a00_0000 + n).to_string()).collect();
    format!("{{{}}}", all.join(", "))
}

#[test]
fn blocklists_are_long() {
    let compiles = |text: &str| {
        let q = Query { name: "q", text };
        compile(&q, &Options::default()).map_err(|d| render(&d[..1], &q, false))
    };
    let one = format!("packets | where ip.src in {}", addresses(20_000));
    assert!(compiles(&one).is_ok());
    let set = addresses(9_000);
    let two = format!("packets | where ip.src in {set} or ip.dst not in {set}");
    assert!(compiles(&two).is_ok());
    // A let counts wherever it is used; its members are neither copied nor looked at for ever.
    let many = "packets | where bad\n".repeat(2_000);
    let text = format!("let bad = ip.src in {}\n{many}", addresses(20_000));
    let told = compiles(&text).expect_err("2000 times 20000");
    assert!(
        told.contains("[W046] Error: the sets of a query have at most 262144 members"),
        "{told}"
    );
    assert!(told.len() < 2_000, "{told}");
    // A choice between tuples asks its condition for each part.
    let wide = vec!["1"; 900].join(", ");
    let text = format!("packets | where if(ip.src in {set}, ({wide}), ({wide})) == ({wide})");
    assert!(compiles(&text).expect_err("900 times 9000").contains("[W046]"));
}

#[test]
fn asking_twice_does_not_double_for_ever() {
    let mut e = "len / len".to_owned();
    for _ in 0..25 {
        e = format!("int({e} not in {{1}}) / len");
    }
    let text = format!("packets | where {e} == 1");
    let told = compile(&Query { name: "q", text: &text }, &Options::default());
    assert!(told.expect_err("2^25 operations").iter().any(|d| d.code == Code::TooLarge));
}

#[test]
fn one_run_tells_of_several() {
    let text = "let web = packets | where tcp.dprot == 80\n\
                web | filter tcp | where sipp == 1\n\
                packets | where (len > ) and (caplen = 5) | extend x = frob(1), y = x + ip.src\n\
                packets | limit 1.5 | where x.y\n";
    let q = Query { name: "q", text };
    let codes: Vec<String> = match compile(&q, &Options::default()) {
        Ok(_) => Vec::new(),
        Err(all) => all.iter().map(|d| format!("{} {}", d.code, d.span.of(text))).collect(),
    };
    let expected = [
        "W016 tcp.dprot",
        "W012 filter",
        "W008 )",
        "W010 =",
        "W017 frob",
        "W016 x",
        "W036 1.5",
        "W016 x.y",
    ];
    assert_eq!(codes, expected);
}

#[test]
fn a_warning_does_not_stop_a_query() {
    let q = Query { name: "q", text: "param unused: int = 1\npackets | limit 1" };
    let compiled = compile(&q, &Options::default()).expect("only a warning");
    assert_eq!(compiled.warnings.len(), 1);
    assert_eq!(compiled.warnings[0].severity, Severity::Warning);
    assert_eq!(compiled.program.pipelines.len(), 1);
}

#[test]
fn a_scan_has_a_few_states() {
    let scan = |n: usize| {
        let states: Vec<String> = (0..n).map(|i| format!("s{i} = 0")).collect();
        let updates: Vec<String> = (0..n).map(|i| format!("s{i} + 1")).collect();
        let (states, updates) = (states.join(", "), updates.join(", "));
        let text = format!("packets | scan {states} => ({updates})");
        compile(&Query { name: "q", text: &text }, &Options::default())
    };
    assert!(scan(32).is_ok());
    let told = scan(33).expect_err("too many states");
    assert!(told.iter().any(|d| d.code == Code::TooLarge), "{told:?}");
}
