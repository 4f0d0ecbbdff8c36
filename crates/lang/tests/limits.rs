//! Every limit that docs/language.md promises: a query at the limit compiles, one beyond it is
//! told so.

use weir_lang::limits::{
    CASES_MAX, DIAGNOSTICS_MAX, KEY_VALUE_WORDS_MAX, MEMBERS_MAX, NESTING_MAX, PATTERNS_MAX,
    TERMS_MAX, TEXT_MAX,
};
use weir_lang::{Code, Options, Query, compile};
use weir_plan::limits::{
    ACTS_MAX, ARMS_MAX, COLUMNS_MAX, DEPTH_MAX, EDITS_MAX, FREQUENT_MAX, LATENESS_WINDOWS_MAX,
    OUTPUTS_MAX, PANES_MAX, PIPELINES_MAX, SCAN_STATES_MAX, STAGES_MAX, UNION_OTHERS_MAX,
};

/// The first error of a query.
fn error(text: &str) -> Option<Code> {
    match compile(&Query { name: "q", text }, &Options::default()) {
        Ok(_) => None,
        Err(all) => all.iter().find(|d| d.is_error()).map(|d| d.code),
    }
}

/// The query made of `max` is within the limit, that of one more is not.
fn check(what: &str, max: usize, query: impl Fn(usize) -> String) {
    let shown = |text: &str| text.chars().take(300).collect::<String>();
    for n in [1, max - 1, max] {
        let text = query(n);
        assert_eq!(error(&text), None, "{what}: {n} of {max}: {}", shown(&text));
    }
    let text = query(max + 1);
    assert_eq!(error(&text), Some(Code::TooLarge), "{what}: {}: {}", max + 1, shown(&text));
}

fn list(n: usize, part: impl Fn(usize) -> String) -> String {
    (0..n).map(part).collect::<Vec<_>>().join(", ")
}

#[test]
fn a_match_has_as_many_cases_as_the_docs_say() {
    let cases = |n: usize| list(n, |i| format!("{i} => {i}"));
    check("cases", CASES_MAX, |n| format!("packets | extend x = match len {{ {} }}", cases(n)));
    let pairs = |n: usize| list(n, |i| format!("({i}, _) => {i} + 1"));
    check("cases of a pair", CASES_MAX, |n| {
        format!("packets | where match (len, caplen) {{ {} }} > 5", pairs(n))
    });
}

#[test]
fn a_query_has_as_many_patterns_as_the_docs_say() {
    // In several steps, since one condition has fewer terms.
    let steps = |n: usize, one: &dyn Fn(usize) -> String| {
        let all: Vec<_> = (0..n).map(one).collect();
        let steps: Vec<_> = all.chunks(30).map(|some| some.join(" or ")).collect();
        format!("packets | where {}", steps.join(" | where "))
    };
    check("patterns", PATTERNS_MAX, |n| steps(n, &|i| format!("matches(dns.qname, \"a{i}$\")")));
    // That of a let counts where it stands, too.
    for (uses, told) in [(PATTERNS_MAX - 1, None), (PATTERNS_MAX, Some(Code::TooLarge))] {
        let odd = "let odd = matches(dns.qname, \"a\")";
        let text = format!("{odd}\n{}", steps(uses, &|i| format!("odd and len > {i}")));
        assert_eq!(error(&text), told, "{uses}");
    }
    let large = "packets | where matches(dns.qname, \"[\\\\pL]{500}\")";
    assert_eq!(error(large), Some(Code::BadRegex));
}

#[test]
fn brackets_nest_as_deep_as_the_docs_say() {
    let deep = |n: usize, open: &str, mid: &str, close: &str| {
        format!("packets | where {}{mid}{}", open.repeat(n), close.repeat(n))
    };
    for (open, mid, close) in [
        ("(", "len > 1", ")"),
        ("(", "tcp", ")"),
        ("(", "len + 1 > caplen - 1 and tcp or udp", ")"),
        ("not ", "tcp", ""),
        ("tcp or (", "udp", ")"),
        ("int(", "tcp", ") == 1"),
    ] {
        // The last form asks a comparison of each level, and is `not`, `int` or a bracket each.
        check(open, NESTING_MAX, |n| deep(n, open, mid, close));
    }
    let value = |n: usize, open: &str, close: &str| {
        format!("packets | extend x = {}len{}", open.repeat(n), close.repeat(n))
    };
    for (open, close) in [("-", ""), ("~", ""), ("(", ")"), ("1 + (", ")"), ("abs(", ")")] {
        check(open, NESTING_MAX, |n| value(n, open, close));
    }
    let one_case = |n: usize| value(n, "match ", " { _ => len }");
    check("match", NESTING_MAX, one_case);
    let pattern = |n: usize| format!("{}{}{}", "(".repeat(n), 7, ")".repeat(n));
    check("pattern", NESTING_MAX - 1, |n| {
        format!("packets | extend x = match len {{ {} => 1, _ => 2 }}", pattern(n))
    });
}

#[test]
fn an_expression_is_as_deep_as_the_docs_say() {
    // Each let is two levels, its name and its operator; `len` is the last.
    let lets = |n: usize| -> String {
        (1..n).map(|i| format!("let a{i} = -a{}\n", i - 1)).collect::<String>()
    };
    check("levels", DEPTH_MAX / 2, |n| {
        format!("let a0 = len\n{}packets | extend x = a{}", lets(n), n - 1)
    });
}

#[test]
fn a_computation_has_as_many_terms_as_the_docs_say() {
    let terms = |n: usize| vec!["len"; n].join(" + ");
    check("terms", TERMS_MAX, |n| format!("packets | extend x = {}", terms(n)));
    check("terms compared", TERMS_MAX, |n| format!("packets | where {} > 7", terms(n)));
    assert_eq!(error(&format!("packets | where {}", vec!["tcp"; 2000].join(" or "))), None);
}

/// Each column of a list was once compared with all before it, however long the list was, and the
/// error stood at the whole stage.
#[test]
fn columns_beyond_the_limit_were_compared_with_each_other() {
    let columns = |value: &str| list(50_000, |i| format!("c{i} = {value}"));
    for (stage, value, before) in [
        ("extend", "len", 0),
        ("project", "len", 0),
        ("summarize", "count()", 0),
        ("summarize count(), ", "sum(len)", 1),
        ("summarize count() by", "tcp", 0),
        ("extend a = 1 | extend", "len", 1),
        ("rename", "len", 0),
    ] {
        let text = format!("packets | {stage} {}", columns(value));
        let all = compile(&Query { name: "q", text: &text }, &Options::default());
        let all = all.expect_err("too many columns");
        let told: Vec<_> = all.iter().filter(|d| d.code == Code::TooLarge).collect();
        let first = text.find(&format!("c{} = ", COLUMNS_MAX - before));
        let at: Vec<_> = told.iter().map(|d| d.span.start).collect();
        assert!(at.contains(&first.expect("is there")), "{stage}: {told:?}");
    }
}

#[test]
fn a_query_is_as_large_as_the_docs_say() {
    check("stages", STAGES_MAX, |n| format!("packets{}", " | where tcp".repeat(n)));
    check("pipelines", PIPELINES_MAX, |n| "packets | limit 1\n".repeat(n));
    check("columns", COLUMNS_MAX, |n| {
        format!("packets | project {}", list(n, |i| format!("c{i} = len")))
    });
    // Addresses take two words, so it ends with one number where the limit is odd.
    check("words of a key", KEY_VALUE_WORDS_MAX, |n| {
        let addresses = list(n / 2, |i| format!("a{i} = ip.src"));
        let number = if n % 2 == 1 { "n = int(len) * 1" } else { "" };
        let comma = if n % 2 == 1 && n > 1 { ", " } else { "" };
        format!("packets | summarize count() by {addresses}{comma}{number}")
    });
    check("outputs", OUTPUTS_MAX, |n| {
        let names = |from: usize, to: usize| list(to - from, |i| format!("\"o{}.pcap\"", from + i));
        let all = (0..n)
            .step_by(64)
            .map(|from| format!("packets | broadcast to ({})\n", names(from, n.min(from + 64))));
        all.collect()
    });
    check("states", SCAN_STATES_MAX, |n| {
        let (states, updates) =
            (list(n, |i| format!("s{i} = 0")), list(n, |i| format!("s{i} + 1")));
        format!("packets | scan {states} => ({updates})")
    });
    check("pipelines of a union", UNION_OTHERS_MAX, |n| {
        let lets = (0..n.min(40)).map(|i| format!("let p{i} = packets | project len\n"));
        let others = list(n, |i| format!("p{}", i % 40));
        format!("{}packets | project len | union {others}", lets.collect::<String>())
    });
}

#[test]
fn ends_are_as_many_as_the_docs_say() {
    check("arms", ARMS_MAX, |n| {
        let arms = (0..n).map(|i| format!(" when len == {i} -> pass")).collect::<String>();
        format!("packets | branch{arms}")
    });
    check("acts", ACTS_MAX, |n| {
        let acts = vec!["mirror \"x.pcap\""; n - 1].join(" | ");
        let bar = if n > 1 { " | " } else { "" };
        format!("packets | branch when tcp -> {acts}{bar}pass")
    });
    check("edits", EDITS_MAX, |n| format!("packets{} | pass", " | tag 7".repeat(n)));
}

#[test]
fn windows_are_as_many_as_the_docs_say() {
    check("panes", PANES_MAX as usize, |n| {
        format!("packets | summarize n = count() over {n}s every 1s")
    });
    check("windows of a lateness", LATENESS_WINDOWS_MAX as usize, |n| {
        format!("packets | summarize n = count() every 1s lateness {n}s")
    });
    for (n, wrong) in [(1, false), (FREQUENT_MAX, false), (0, true), (FREQUENT_MAX + 1, true)] {
        let told = error(&format!("packets | summarize f = frequent(len, {n})"));
        assert_eq!(told.is_some(), wrong, "frequent of {n}: {told:?}");
    }
}

#[test]
fn a_text_and_its_sets_are_as_large_as_the_docs_say() {
    let padded = |n: usize| format!("packets | limit 1{}", " ".repeat(n - 17));
    for (n, told) in [(TEXT_MAX, None), (TEXT_MAX + 1, Some(Code::TooLarge))] {
        assert_eq!(error(&padded(n)), told, "{n} bytes");
    }
    for (n, told) in [(MEMBERS_MAX, None), (MEMBERS_MAX + 1, Some(Code::TooLarge))] {
        let text = format!("packets | where len in {{{}}}", vec!["1"; n].join(","));
        assert_eq!(error(&text), told, "{n} members");
    }
}

/// Only so many diagnostics are told, and a mistake that follows many warnings is one of them.
#[test]
fn an_error_after_a_hundred_warnings_stops_the_query() {
    let warned = vec!["exists(tcp)"; DIAGNOSTICS_MAX].join(" and ");
    assert_eq!(error(&format!("packets | where {warned}")), None);
    let wrong = format!("packets | where {warned} | where tcp.dprot == 80");
    assert_eq!(error(&wrong), Some(Code::UnknownName));
    let wrong = vec!["tcp.dprot == 80"; DIAGNOSTICS_MAX + 9].join(" and ");
    let text = format!("packets | where {wrong}");
    let told = compile(&Query { name: "q", text: &text }, &Options::default());
    assert_eq!(told.expect_err("names that are none").len(), DIAGNOSTICS_MAX);
}
