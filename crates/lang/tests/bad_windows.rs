//! Mistakes about windows, as their author sees them; see `bad_errors.rs`.

mod shown;

use weir_lang::Code;

const BAD: &[(Code, &str)] = &[
    (Code::Unexpected, "packets | summarize n = count() over 60s"),
    (Code::BadConstant, "packets | summarize n = count() over 10s every 1m"),
    (Code::BadConstant, "packets | summarize n = count() over 60 every 10s"),
    (Code::TooLarge, "packets | summarize n = count() over 1h every 7ms"),
    (Code::TooLarge, "packets | summarize n = count() over 100s every 333ms"),
    (Code::NotConstant, "packets | summarize n = count() over len every 10s"),
    (Code::Unexpected, "packets | summarize n = count() over 60s every 10s over 30s"),
    (Code::NoEventTime, "packets | summarize n = count() by ip.src lateness 5s"),
    (Code::NoEventTime, "packets | summarize n = count() by ip.src fill"),
    (Code::NoEventTime, "packets | summarize n = count(), behind = late()"),
    (
        Code::NoEventTime,
        "packets\n| summarize n = count() by ip.src\n| summarize most = max(n) over 1m every 10s",
    ),
    (Code::TooLarge, "packets | summarize n = count() every 1ms lateness 1h"),
    (Code::BadConstant, "packets | summarize n = count() every 10s lateness 0s"),
    (Code::BadConstant, "packets | summarize n = count() every 10s fill idle 6"),
    (Code::BadConstant, "packets | summarize n = count() every 10s fill from start idle 1m"),
    (Code::Unexpected, "packets | summarize n = count() every 10s fill from begin"),
    (Code::NoEventTime, "packets | summarize n = count() by ip.src fill from start"),
    (Code::WrongArity, "packets | summarize l = late(ip.src) every 10s lateness 5s"),
    (
        Code::NoEventTime,
        "packets | summarize n = count(), seen = completeness() where tcp every 1s",
    ),
    (
        Code::NoEventTime,
        "packets\n| summarize n = count() by ip.src every 1s\n| summarize completeness() every 10s",
    ),
    (Code::WrongArity, "packets | summarize seen = completeness(tcp) every 10s"),
    (Code::UnknownStage, "packets | summarize n = count() by ip.src | over 60s every 10s"),
    (Code::AlwaysPresent, "packets | summarize behind = late() every 10s"),
    (
        Code::AlwaysPresent,
        "packets\n| summarize n = count() by ip.src every 1s\n| summarize most = max(n) every 10s lateness 5s",
    ),
];

#[test]
fn mistakes_about_windows() {
    let out = shown::shown(BAD);
    insta::assert_snapshot!(out);
}
