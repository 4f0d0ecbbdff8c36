//! Any bytes as a query.

use crate::compile::{compile, format};
use crate::header::{header, params};
use crate::query::{Options, Query};
use crate::render::render;
use crate::{lex, parse};

/// Compiles and formats `data` as a query text; panics only if the crate breaks a promise: any
/// text is compiled or refused, what can be read can be formatted, formatting keeps meaning and
/// comments and changes nothing the second time.
pub fn fuzz_query(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let q = Query { name: "fuzz", text: &text };
    let compiled = compile(&q, &Options::default());
    let diagnostics = match &compiled {
        Ok(compiled) => &compiled.warnings,
        Err(diagnostics) => diagnostics,
    };
    assert_eq!(compiled.is_err(), diagnostics.iter().any(|d| d.is_error()));
    assert_eq!(render(diagnostics, &q, false).is_empty(), diagnostics.is_empty());
    header(&text);
    params(&text);
    let Ok(formatted) = format(&text) else { return };
    let (before, after) = (parse::parse(&text), parse::parse(&formatted));
    assert!(after.diagnostics.is_empty(), "{formatted}\n{:?}", after.diagnostics);
    assert_eq!(before.tree, after.tree, "{formatted}");
    assert_eq!(comments(&text), comments(&formatted), "{formatted}");
    assert_eq!(format(&formatted).as_deref(), Ok(formatted.as_str()));
}

/// The comments of a text, without their places.
fn comments(text: &str) -> Vec<&str> {
    let mut comments: Vec<&str> = lex::lex(text).comments.iter().map(|c| c.span.of(text)).collect();
    comments.sort_unstable();
    comments
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const GOOD: &[&str] = &[
        "let answers = packets | where udp | project answered = ts, id = dns.id, server = ip.src\n\
         let small = packets | project answered = ts, len\n\
         packets | project ts, id = dns.id, ip.dst\n\
         | join left answers by id, ip.dst == server within -1s..3s default answered = @2026-01-01 max 1k\n\
         | union small, answers # all",
        "# syn_flood.weir: half-open\nparam threshold: int = 1000  # handshakes\n\
         param interval: duration = 10s\n\npackets\n| where tcp\n\
         | summarize server = first(ip.src) where tcp.syn and tcp.ack, # one\n\
         completed = any(tcp.ack and not tcp.syn and not tcp.rst) by conn every interval\n\
         | where exists(server) and not completed\n\
         | summarize incomplete = count() by server every interval\n| where incomplete > threshold",
        "packets | where tcp\n| scan stage = 0 by ip.src, ip.dst idle 60s max 1M =>\n\
         match (stage, tcp.dport) { (0, 5123) => 1, (1, 6234) => 2, (4, _) => 4, _ => 0 }\n\
         | scan open = false by flow idle 1h => open or (stage == 4 and tcp.dport == 22)",
        "let web = tcp.dport in {80, 443, 8000..8099}\nlet seen = packets | where web\n\
         seen | top 10 by len desc, ts asc\nseen\n| project flow, bits = len * 8 | print",
        "packets | deduplicate within 50ms max 9 | distinct flow, len idle 1h max 5 | sample 1 in 10 by hosts\n\
         | hello idle 2s max 9 | each dns.answer\n\
         | each part = split(answer.name, \".\") | sample 0.5% | top 3 by len asc per ip.src max 9",
        "packets | where ip\n| summarize n = count(), why = end_reason() by flow session 15s active 60s\n\
     until tcp.fin or tcp.rst linger 5s unless tcp.syn max 100k\n| summarize n = count(), d = distinct(why) every 5m\n\
     packets | summarize p = quantile(len, 0.9) by ip.src every 1000 rows idle 60s # some",
        "let scans = packets | summarize n = count(), completeness() by attacker = ip.src every 1s\n\
         | alert \"{attacker} {{x}}\" severity high key attacker hold 5m repeat 1h storm 5 max 9 \
         | capture 30s before 1m after 5s by ip.src = attacker # evidence",
        "packets | summarize n = count(), h = histogram(len, 64) by dport every 1s\n\
         | metric counter \"seen\" of n by dport max 9 help \"so many\" # one\n\
         | metric histogram \"size\" of h | metric gauge \"now\" of n | print",
        "packets | extend a = (tcp.flags | 0x3) & ~1, b = @2023-11-14T22:13:20Z - ts, \
         c = ip.src in {10.0.0.0/8, 2001:db8::1}, d = \"a\\n\\u{e9}\" # end",
        "let workers = (\"a.pcap\", \"b.pcapng\")\npackets | mirror \"all.pcap\" # copy\n\
         | branch when dns -> trim 96 | broadcast to workers # one\n\
         when len > 1k -> tag 7 | mirror \"x\" | next\n\
         else -> steer by hosts, ip.proto to workers | next\n| where tcp | pass",
    ];

    #[test]
    fn good_queries_are_good() {
        for text in GOOD {
            let q = Query { name: "good", text };
            if let Err(d) = compile(&q, &Options::default()) {
                panic!("{}", render(&d, &q, false));
            }
            fuzz_query(text.as_bytes());
        }
    }

    /// Piece of a good query to cut, double, or replace.
    fn mutations() -> impl Strategy<Value = Vec<(usize, usize, String)>> {
        let token = prop_oneof![
            "\\PC{0,3}",
            "[|(){}=,.:#\"\n@&!<>-]{1,3}",
            Just(" where ".to_owned()),
            Just("packets".to_owned()),
            Just("\n| ".to_owned()),
            Just(" match x { ".to_owned()),
            Just(" # note\n".to_owned()),
            Just("10.0.0.0/8".to_owned()),
        ];
        proptest::collection::vec((0usize..2000, 0usize..12, token), 1..6)
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 1500, ..ProptestConfig::default() })]

        #[test]
        fn mutated_queries(which in 0..GOOD.len(), mutations in mutations()) {
            let mut data = GOOD[which].as_bytes().to_vec();
            for (at, cut, insert) in mutations {
                let start = at % (data.len() + 1);
                let end = (start + cut).min(data.len());
                data.splice(start..end, insert.into_bytes());
            }
            fuzz_query(&data);
        }

        #[test]
        fn any_bytes(data in proptest::collection::vec(any::<u8>(), 0..200)) {
            fuzz_query(&data);
        }
    }

    #[test]
    fn nesting_and_length_do_not_overflow() {
        let deep = |open: &str, n: usize| format!("packets | where {}", open.repeat(n));
        for open in ["(", "not ", "- ", "~", "f(", "match x { (", "x in {", "match ", "1 + ("] {
            fuzz_query(deep(open, 20_000).as_bytes());
        }
        // All levels of operators between any two brackets.
        let climb = "(tcp or not udp and len == 1 | 2 ^ 3 & 4 << 5 + 6 * -";
        for n in [15, 16, 31, 32, 64, 20_000] {
            fuzz_query(deep(climb, n).as_bytes());
            fuzz_query(format!("{}1{}", deep(climb, n), ")".repeat(n)).as_bytes());
        }
        for joint in ["+ 1 ", "and tcp ", "| 1 ", "< 1 ", "in {1} ", "&& tcp ", "where ", ", "] {
            fuzz_query(format!("packets | where (tcp {}", joint.repeat(20_000)).as_bytes());
            fuzz_query(format!("packets | where tcp {}", joint.repeat(20_000)).as_bytes());
        }
        let doubling: String =
            (1..200).map(|i| format!("let a{i} = a{} + a{}\n", i - 1, i - 1)).collect();
        fuzz_query(format!("let a0 = len\n{doubling}packets | where a199 > 1").as_bytes());
        fuzz_query("| ".repeat(20_000).as_bytes());
        fuzz_query("packets\n".repeat(2_000).as_bytes());
    }
}
