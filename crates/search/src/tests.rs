use super::search::{Bounds, Search};
use super::*;
use std::path::Path;
use weir_engine::functions::Functions;
use weir_engine::rows::Collect;
use weir_engine::run::{Options, run};
use weir_plan::Value;

fn capture() -> Box<dyn Source> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/mixed.pcap");
    let options = weir_capture::Options::default();
    let captures = Captures::new(vec![file.display().to_string()], &options);
    captures.expect("it is there").start().expect("it reads")
}

fn program(text: &str) -> Program {
    let query = weir_lang::Query { name: "query", text };
    let compiled = weir_lang::compile(&query, &weir_lang::Options::default());
    compiled.unwrap_or_else(|all| panic!("{}", weir_lang::render(&all, &query, false))).program
}

/// Of every row of a query whose last column counts packets, as many packets are found.
fn check(text: &str) -> usize {
    let program = program(text);
    let mut sink = Collect::default();
    let (functions, options) = (Functions::default(), Options::default());
    run(&program, &functions, &mut *capture(), &mut sink, &options, &mut |_| {});
    let printed = program.pipelines.iter().rposition(|p| p.printed).expect("it prints");
    for (_, row) in sink.rows.iter().take(40) {
        let Some(Value::Int(count)) = row.last() else { panic!("no count: {row:?}") };
        let values: Vec<_> = row[..row.len() - 1].iter().cloned().map(Some).collect();
        let found = program.packets_of(printed, &values).expect("can be told");
        let search = Search::new(&found.stages, (found.from, found.until));
        let frames = search
            .run(&mut *capture(), Bounds::of(PacketsForm::Pcapng, None), &Arc::default())
            .frames;
        assert_eq!(frames.len() as i64, *count, "{text}\n{row:?}\n{:?}", texts(&found.stages));
        assert_eq!(found.passed_over, [""; 0], "{text}");
    }
    sink.rows.len()
}

#[test]
fn rows_lead_to_the_packets_that_they_are_made_of() {
    for text in [
        "packets | summarize n = count()",
        "packets | where tcp | summarize n = count() by ip.src, dport",
        "packets | summarize n = count() by ip.src, ip.dst, sport, dport every 1s",
        "packets | summarize n = count() over 2s every 500ms by ip.proto",
        "packets | summarize n = count() by port = min_of(sport, dport), t = if(ip, 0, eth.type)",
        "packets | extend big = len > 100, half = len / 2 | where half > 20\
         \n| summarize n = count() by big, part = half % 7",
        "packets | project ip.src, l = len | where l < 500 | summarize n = count() by ip.src",
        "packets | project a = ip.src, b = ip.dst | rename c = a | project-away b\
         \n| summarize n = count() by c every 2s | where n > 3 | extend m = n * 2\
         \n| project ts, who = c, n",
        "packets | scan first = len, all = 0 by ip.src => (first, all + len)\
         \n| summarize n = count() by ip.src, over = all > 1000, first",
        "let a = packets | where udp\na | summarize n = count() by dport, dns.qname | top 5 by n",
        "packets | summarize n = count() by eth.src, tcp.syn, ttl = ip.ttl every 1s | limit 20",
        "packets | analyze tcp | summarize n = count() by tcp.analysis.retransmission, ip.src",
        "packets | branch when tcp -> trim 60 | pass | next else -> drop\
         \n| summarize n = count() by ip.proto, dport",
    ] {
        assert!(check(text) > 0, "{text}");
    }
}

#[test]
fn rows_of_packets_lead_to_them() {
    let program = program("packets | where tcp | project ts, ip.src, l = len, x = 1.5 * len");
    let mut sink = Collect::default();
    let (functions, options) = (Functions::default(), Options::default());
    run(&program, &functions, &mut *capture(), &mut sink, &options, &mut |_| {});
    assert!(sink.rows.len() > 10);
    for (_, row) in &sink.rows {
        let values: Vec<_> = row.iter().cloned().map(Some).collect();
        let found = program.packets_of(0, &values).expect("can be told");
        let search = Search::new(&found.stages, (found.from, found.until));
        let frames = search
            .run(&mut *capture(), Bounds::of(PacketsForm::Json, None), &Arc::default())
            .frames;
        assert!(!frames.is_empty(), "{row:?}");
        assert!(frames.iter().all(|(sent, _)| Value::Time(sent.ts) == row[0]), "{row:?}");
    }
}

#[test]
fn what_cannot_be_followed_back_is_said() {
    let limited = program("packets | limit 5 | summarize n = count() by ip.src");
    let found = limited.packets_of(0, &[Some(Value::Absent)]).expect("some");
    assert_eq!(found.passed_over, ["limit"]);
    let joined = program(
        "let a = packets | summarize n = count() by ip.src every 1s\n\
         let b = packets | summarize m = count() by ip.src every 1s\n\
         a | join b by ip.src",
    );
    let last = joined.pipelines.len() - 1;
    assert_eq!(joined.packets_of(last, &[]), Err(weir_plan::origin::NoPackets::Several));
    assert_eq!(joined.packets_of(9, &[]), Err(weir_plan::origin::NoPackets::Unknown));
}

/// All fields of each packet are those that a query shows.
#[test]
fn packets_are_decoded() {
    let bounds = Bounds::of(PacketsForm::Json, Some(200));
    let found = Search::new(&[], (None, None)).run(&mut *capture(), bounds, &Arc::default());
    assert!(found.more && found.error.is_none() && !found.cut_short);
    let all = decode::packets(&found.frames, &InterfaceNames::default(), Headers::OUTER);
    assert_eq!(all.len(), 200);
    let dns = all.iter().find(|one| one["fields"]["dns.qname"].is_string()).expect("a name");
    assert_eq!(dns["fields"]["ip.proto"], 17);
    let hex = dns["hex"].as_str().expect("bytes");
    assert_eq!(hex.len() as u64, 2 * dns["captured"].as_u64().expect("a length"));
    assert!(all.iter().all(|one| one["fields"]["eth.src"].is_string()), "{all:?}");
}

/// Of more packets than are shown, those of a ring are the latest, and those of files the first.
#[test]
fn a_list_has_the_first_packets_or_the_latest() {
    let numbers = |latest| {
        let all = Search::new(&[], (None, None));
        let found = all.run(&mut *capture(), Bounds::of_list(latest), &Arc::default());
        assert!(found.more && !found.cut_short);
        let bytes: usize = found.frames.iter().map(|(_, bytes)| bytes.len()).sum();
        (found.frames.len(), bytes, found.frames[0].0.ts, found.frames[199].0.ts)
    };
    let (first, latest) = (numbers(false), numbers(true));
    assert_eq!((first.0, latest.0), (200, 200));
    assert!(first.2 < latest.2 && first.3 < latest.3, "{first:?} {latest:?}");
    let stopped = Arc::new(AtomicBool::new(true));
    let none = Search::new(&[], (None, None));
    let none = none.run(&mut *capture(), Bounds::of_list(true), &stopped);
    assert!(none.frames.len() < 200, "it goes on");
}

/// A row of a window over windows has packets of windows that begin before it ends.
#[test]
fn windows_over_windows_reach_as_far_as_both() {
    let second = 1_000_000_000;
    let end_of = |text: &str| {
        let program = program(text);
        let found = program.packets_of(0, &[Some(Value::Time(0)), None]).expect("can be told");
        assert_eq!(found.from, Some(0));
        found.until
    };
    let inner = |window: &str| format!("packets | summarize n = count() {window}");
    let outer = "| summarize m = sum(n) every 10s";
    for (window, until) in [
        ("every 7s", Some(17 * second)),
        ("over 20s every 1s", Some(30 * second)),
        ("by conn session 5s", None),
    ] {
        assert_eq!(end_of(&format!("{} {outer}", inner(window))), until, "{window}");
    }
    assert_eq!(end_of(&inner("every 7s")), Some(7 * second));
}

#[test]
fn a_file_says_why_it_may_lack_packets() {
    let about = |more: bool, gone: bool, error: Json| {
        lacks(&json!({ "more": more, "cut_short": false, "gone": gone, "error": error }))
    };
    assert_eq!(about(false, false, Json::Null), [""; 0]);
    assert_eq!(about(true, true, "the file is cut".into()), ["more", "gone", "error"]);
}
