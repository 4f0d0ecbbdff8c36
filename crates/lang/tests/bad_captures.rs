//! Mistakes about `capture`, as their author sees them; see `bad_errors.rs`.

mod shown;

use weir_lang::Code;

const BAD: &[(Code, &str)] = &[
    (Code::Unexpected, "packets | project ts, ip.src | capture by ip.src"),
    (Code::Unexpected, "packets | project ts, ip.src | capture 1s after 2s after 3s"),
    (Code::BadConstant, "packets | project ts, ip.src | capture 30 by ip.src"),
    (Code::NeedsColumns, "packets | where tcp | capture 30s"),
    (Code::NeedsColumns, "packets | project ip.src | capture 30s by ip.src"),
    (Code::NoEventTime, "packets | summarize n = count() by ip.src | capture 30s by ip.src"),
    (Code::UnknownName, "packets | summarize n = count() by ip.src every 1s | capture 30s by n"),
    (Code::FieldGone, "packets | summarize n = count() by ip.src every 1s | capture 30s by ip.dst"),
    (
        Code::TypeMismatch,
        "packets | summarize n = count() by ip.src every 1s | capture 30s by sport = ip.src",
    ),
    (Code::NotAColumn, "packets | project ts, dns.qname | capture 30s by dns.qname"),
    (Code::NotAColumn, "packets | project ts, ip.src | capture 30s by ip.src = 10.0.0.1"),
    (Code::ColumnClash, "packets | project ts, capture = len | capture 30s"),
    (Code::AfterPrint, "packets | project ts, len | capture 30s | limit 5"),
];

#[test]
fn mistakes_about_captures() {
    let out = shown::shown(BAD);
    insta::assert_snapshot!(out);
}
