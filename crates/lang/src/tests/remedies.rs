//! The advice that goes with a mistake: it compiles, and asks what was meant.

use crate::compile::compile;
use crate::diagnostic::{Code, Diagnostic};
use crate::query::{Options, Query};

fn told(text: &str) -> Vec<Diagnostic> {
    match compile(&Query { name: "q", text }, &Options::default()) {
        Ok(compiled) => compiled.warnings,
        Err(diagnostics) => diagnostics,
    }
}

/// Checks the first advice on a query, and that the query has no fault left with the first code of
/// the advice in place of `piece`.
fn check(text: &str, piece: &str, help: &str) {
    let all = told(text);
    let found = all.first().and_then(|d| d.help.as_deref());
    assert_eq!(found, Some(help), "{text}: {all:?}");
    let remedy = help.split('`').nth(1).expect("advice has code");
    let mended = text.replacen(piece, remedy, 1);
    assert_ne!(mended, text);
    assert!(told(&mended).is_empty(), "{mended}: {:?}", told(&mended));
}

/// The same of a condition that is replaced as a whole.
fn condition(wrong: &str, help: &str) {
    check(&format!("packets | where {wrong}"), wrong, help);
}

fn codes(text: &str) -> Vec<Code> {
    told(text).iter().map(|d| d.code).collect()
}

fn messages(text: &str) -> Vec<String> {
    told(text).into_iter().map(|d| d.message).collect()
}

#[test]
fn one_value_after_in() {
    condition("\"abc\" in http.uri", "part of a text: `contains(http.uri, \"abc\")`");
    condition("\"abc\" not in http.uri", "part of a text: `not contains(http.uri, \"abc\")`");
    condition("http.uri in \"abc\"", "part of a text: `contains(http.uri, \"abc\")`");
    condition("http.host in http.uri", "part of a text: `contains(http.uri, http.host)`");
    condition("\"GET\" in payload", "part of bytes: `contains(payload, b\"GET\")`");
    condition("b\"GET\" in payload", "part of a text: `contains(payload, b\"GET\")`");
    condition("payload in \"GET\"", "part of bytes: `contains(payload, b\"GET\")`");
    condition("ip.src in \"10.0.0.0/8\"", "without quotes: `ip.src in 10.0.0.0/8`");
    condition("ip.src not in \"10.0.0.0/8\"", "without quotes: `ip.src not in 10.0.0.0/8`");
    condition("ip.src in \"10.0.0.1\"", "without quotes: `ip.src == 10.0.0.1`");
    condition("dport in \"80\"", "without quotes: `dport == 80`");
    condition("dport in 80", "write `dport == 80`");
    condition("dport not in 80", "write `dport != 80`");
    assert_eq!(told("packets | where dport in \"web\"")[0].help, None);
}

#[test]
fn a_network_stands_on_the_right() {
    condition("ip.src == 10.0.0.0/8", "write `ip.src in 10.0.0.0/8`");
    condition("10.0.0.0/8 == ip.src", "write `ip.src in 10.0.0.0/8`");
    condition("10.0.0.0/8 != ip.src", "write `ip.src not in 10.0.0.0/8`");
    assert_eq!(told("packets | where 10.0.0.0/8 == dport")[0].help, None);
}

#[test]
fn a_number_for_a_time() {
    let seconds = "1700000001 seconds after 1970 are written `@2023-11-14T22:13:21Z`";
    check("packets | where ts > 1700000001", "1700000001", seconds);
    check("packets | where 1700000001 < ts", "1700000001", seconds);
    let ns = "1700000001000000000";
    let help = format!("`time_ns({ns})` is the time of nanoseconds after 1970");
    check(&format!("packets | where ts > {ns}"), ns, &help);
    let help = "`time_ns(dport)` is the time of nanoseconds after 1970";
    check("packets | where ts > dport", "dport", help);
}

#[test]
fn bytes_for_a_text() {
    let help = "`text(payload)` gives bytes as a string";
    check("packets | where extract(payload, \"GET\") == \"GET\"", "payload", help);
    check("packets | where lower(payload) == \"get\"", "payload", help);
}

#[test]
fn patterns_of_sql() {
    let check = |wrong: &str, right: &str| condition(wrong, &format!("write `{right}`"));
    check("http.uri like \"a\"", "http.uri == \"a\"");
    check("http.uri like \"%a%\"", "contains(http.uri, \"a\")");
    check("http.uri like \"a%\"", "starts_with(http.uri, \"a\")");
    check("http.uri like \"%a\"", "ends_with(http.uri, \"a\")");
    check("http.uri like \"a%b\"", "matches(http.uri, \"^a.*b$\")");
    check("http.uri like \"%a.b_c%\"", "matches(http.uri, \"a\\\\.b.c\")");
    check("http.uri ilike \"%Ab\"", "ends_with(lower(http.uri), \"ab\")");
    check("http.uri ilike \"Ab\"", "lower(http.uri) == \"ab\"");
    check("http.uri contains \"100%\"", "contains(http.uri, \"100%\")");
    check("http.uri contains http.host", "contains(http.uri, http.host)");
    check("payload like \"GET%\"", "starts_with(payload, b\"GET\")");
    check("payload like \"GET%x\"", "matches(payload, \"^GET.*x$\")");
    check("dport like \"80%\"", "starts_with(string(dport), \"80\")");
}

#[test]
fn values_that_other_tools_have_names_for() {
    condition("dns.qtype == A", "A is the number 1: `dns.qtype == 1`");
    condition("A == dns.qtype", "A is the number 1: `dns.qtype == 1`");
    condition("dns.qtype == AAAA", "AAAA is the number 28: `dns.qtype == 28`");
    condition("dns.qtype in {A}", "A is the number 1: `dns.qtype == 1`");
    condition("dns.qtype in A", "A is the number 1: `dns.qtype == 1`");
    condition("protocol == TCP", "it is a string: `protocol == \"tcp\"`");
    condition("protocol == tcp", "it is a string: `protocol == \"tcp\"`");
    condition("protocol == OSPF", "it is a string: `protocol == \"ospf\"`");
    condition("protocol == arp", "it is a string: `protocol == \"arp\"`");
    condition("protocol == http", "`http` alone asks for it");
    condition("tcp.flags == SYN", "each flag is a field: `tcp.syn`");
    // A word that stands for something is no such name.
    assert!(told("let A = 28\npackets | where dns.qtype == A").is_empty());
    assert!(told("packets | extend a = len | where dns.qtype == a").is_empty());
}

#[test]
fn rows_without_the_same_values_again() {
    check("packets | dedup ip.src", "dedup", "did you mean `distinct`?");
    check("packets | dedup within 50ms", "dedup", "did you mean `deduplicate`?");
}

#[test]
fn fields_of_other_tools() {
    let field = |theirs: &str, ours: &str| {
        let text = format!("packets | where {theirs} == 1");
        check(&text, theirs, &format!("did you mean `{ours}`?"));
    };
    field("arp.opcode", "arp.op");
    field("vlan.prio", "vlan.pcp");
    field("tos", "ip.dscp");
    field("dscp", "ip.dscp");
    field("pcp", "vlan.pcp");
    field("ip.dport", "dport");
    let host = "packets | where http.hostname == \"a\"";
    check(host, "http.hostname", "did you mean `http.host`?");
    // No field of another protocol is near.
    let help = told("packets | where arp.rcode == 1").remove(0).help;
    assert_eq!(help.as_deref(), Some("`weir fields` lists the fields"));
    for name in ["ftp", "rtp", "sip", "rip", "rdp", "smtp", "stp", "cdp", "rtcp", "sip.method"] {
        let d = told(&format!("packets | where {name}")).remove(0);
        assert_eq!(d.code, Code::Unsupported, "{name}: {d}");
    }
}

#[test]
fn a_comparison_that_holds_wherever_there_is_a_value() {
    let first = |text: &str| messages(&format!("packets | where {text}")).remove(0);
    let wherever = "this comparison is true wherever `dport` has a value";
    assert_eq!(first("dport != 99999"), wherever);
    assert_eq!(first("99999 != dport"), wherever);
    assert_eq!(first("len != 99999999999"), "this comparison is always true");
    assert_eq!(first("number != -1"), "this comparison is always true");
    assert_eq!(first("dport == 99999"), "this comparison is never true");
    let number = told("packets | where number == -1").remove(0);
    assert_eq!(number.label, "`number` is a whole number from 0 to 9223372036854775807");
}

#[test]
fn quotients_in_sets_and_in_floats() {
    let rows = "packets | summarize a = sum(len), n = count() by ip.src";
    let count = |rest: &str| {
        let codes = codes(&format!("{rows} {rest}"));
        assert!(codes.iter().all(|code| *code == Code::WholeQuotient), "{rest}: {codes:?}");
        codes.len()
    };
    assert_eq!(count("| where a / n in 0.1..0.5"), 1);
    assert_eq!(count("| where a / n in {0.1, 0.2, 0.5}"), 1);
    assert_eq!(count("| extend x = a / n | where x not in {0.1, 0.2}"), 1);
    assert_eq!(count("| where float(a / n) > 0.5"), 1);
    assert_eq!(count("| extend share = float(a / n)"), 1);
    assert_eq!(count("| extend x = float(a / n) | where x > 0.5"), 1);
    assert_eq!(count("| where a / n in 1..5"), 0);
    assert_eq!(count("| where float(a) / n in 0.1..0.5"), 0);
    assert_eq!(count("| extend x = float(100 * a / n), y = float(a / 8)"), 0);
    let text = format!("{rows} | where float(a / n) > 0.5");
    check(&text, "float(a / n)", "write `float(a) / n`");
}

#[test]
fn sequence_numbers_that_are_brought_below_2_to_the_32() {
    let count = |e: &str| codes(&format!("packets | project x = {e}")).len();
    assert_eq!(count("(tcp.seq + 1) % 4294967296"), 0);
    assert_eq!(count("(tcp.seq + tcp.payload_len + 1) & 0xffffffff"), 0);
    assert_eq!(count("0xffffffff & (tcp.seq - 1)"), 0);
    assert_eq!(count("(tcp.seq + 1) % 4294967295"), 1);
    assert_eq!(count("(tcp.seq + 1) & 0xffff"), 1);
    // The rest of a negative number is negative.
    assert_eq!(count("(tcp.seq - 1) % 4294967296"), 1);
}

#[test]
fn lines_that_end_with_a_carriage_return() {
    let with = |end: &str| {
        let lines = ["# a query", "packets # all", "| where tcp # some", "| limit 1"];
        let text = lines.join(end);
        let compiled = compile(&Query { name: "q", text: &text }, &Options::default());
        format!("{:?}", compiled.expect(end).program.pipelines[0].stages)
    };
    assert_eq!(with("\r"), with("\n"));
    assert_eq!(with("\r\n"), with("\n"));
}
