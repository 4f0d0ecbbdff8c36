//! Partial results of several machines: every query of the library over every capture at hand gives
//! the rows and counts of one run, or is refused by name; and the example of docs/partials.md is
//! what a producer writes.

mod common;
#[path = "../../engine/tests/law/mod.rs"]
mod law;

use common::{
    ReadingOptions, fixtures, map_at_once, naive_answer, open, program, queries, shared, supported,
    text, truths,
};
use law::{Spreading, exchange};
use std::path::{Path, PathBuf};
use weir_engine::exchange::{Body, Message, Producer, ProducerId, needs};
use weir_engine::functions::Functions;
use weir_engine::run::Options;
use weir_packet::limits::BATCH;
use weir_plan::physical::{Needs, Physical};

fn plan(text: &str) -> Physical {
    Physical::new(&program(text, &Functions::default()), &[])
}

/// The queries of the library that several machines can run, by the name of their file.
fn library() -> Vec<(String, Physical)> {
    let all = queries().into_iter().map(|path| {
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        (name, plan(&text(&path)))
    });
    all.filter(|(_, plan)| needs(plan).is_ok()).collect()
}

#[test]
fn queries_of_the_library_travel_or_are_refused_by_name() {
    let expected = [
        ("conns", Ok("a key")),
        ("conversations", Ok("nothing")),
        ("dns_names", Ok("nothing")),
        ("hosts", Ok("nothing")),
        ("http_hosts", Ok("nothing")),
        ("protocols", Ok("nothing")),
        ("retransmissions", Err("pipeline 1 hands over rows one by one")),
        ("rtt", Ok("a key")),
        ("slow_dns", Err("pipeline `answers` hands over rows one by one")),
        ("timeline", Ok("nothing")),
        ("tls_names", Ok("a key")),
        ("entropy", Ok("nothing")),
        ("flow_meter", Ok("nothing")),
        ("flow_tracker", Err("pipeline 1 hands over rows one by one")),
        ("hellos", Ok("a key")),
        ("ipfix_flow_meter", Ok("a key")),
        ("load_balancer", Err("pipeline 1 sends frames on")),
        ("new_connections", Ok("nothing")),
        ("packet_sizes", Err("pipeline 1 needs all packets in one place")),
        ("port_knocking", Err("pipeline 1 sends frames on")),
        ("protocol_shares", Ok("nothing")),
        ("rtp", Ok("a key")),
        ("source_counts", Ok("nothing")),
        ("tcp_health", Ok("a key")),
        ("top_talkers", Ok("nothing")),
        ("unanswered_dns", Err("pipeline `answers` hands over rows one by one")),
        ("unanswered_syn", Err("pipeline `answers` hands over rows one by one")),
    ];
    let all = queries();
    assert_eq!(all.len(), expected.len());
    for (path, (name, expected)) in all.iter().zip(expected) {
        assert!(path.ends_with(format!("{name}.weir")), "{}", path.display());
        match (needs(&plan(&text(path))), expected) {
            (Ok(Needs::Nothing), Ok("nothing")) | (Ok(Needs::Key(_)), Ok("a key")) => {}
            (Err(e), Err(why)) => assert!(e.to_string().starts_with(why), "{name}: {e}"),
            (got, expected) => panic!("{name}: {got:?}, not {expected:?}"),
        }
    }
}

#[test]
fn what_needs_all_packets_in_one_place_is_refused_by_name() {
    for (query, why) in [
        ("packets | summarize s = sum(float(len)) every 1s", "have no key in common"),
        ("packets | summarize n = count() by ip.src every 1s max 5", "`max` that the query names"),
        (
            "let a = packets | summarize n = count() by ip.src session 1s | print\n\
             packets | summarize n = count() by ip.dst session 1s",
            "keys that have nothing in common",
        ),
        ("packets | limit 5 | summarize n = count()", "hands over rows one by one"),
    ] {
        let refused = needs(&plan(query)).expect_err(query).to_string();
        assert!(refused.contains(why), "{query}: {refused}");
    }
}

/// Compares one run with runs on several machines, however packets and messages are spread.
fn agree(captures: &[PathBuf], spreadings: &[Spreading]) {
    let queries = library();
    assert_eq!(queries.len(), 19, "queries that travel");
    let compared = map_at_once(captures, |capture| {
        let mut compared = 0;
        let reading = ReadingOptions::default();
        for (name, plan) in &queries {
            let want = naive_answer(&plan.program(), capture, reading);
            if want.error.is_some() {
                continue;
            }
            for spreading in spreadings {
                let source = || open(capture, reading).expect("it could be opened before");
                let options = Options::default();
                let got = exchange(plan, &Functions::default(), source, &options, *spreading);
                let got = got.unwrap_or_else(|e| panic!("{name}: {e}"));
                let what = format!("{name} over {}, {spreading:?}", capture.display());
                let at = got.rows.iter().zip(&want.rows).take_while(|(a, b)| a == b).count();
                let (a, b) = (got.rows.get(at), want.rows.get(at));
                assert!(got.rows == want.rows, "{what}: row {at}: got {a:?}, want {b:?}");
                assert_eq!(got.ledger, want.ledger, "{what}");
                compared += 1;
            }
        }
        compared
    });
    let compared: usize = compared.iter().sum();
    assert!(compared >= captures.len(), "{compared} exchanges");
}

#[test]
fn several_machines_give_the_rows_of_one_over_the_fixtures() {
    let spreading = |producers, seed| Spreading { producers, seed };
    agree(&fixtures(), &[spreading(1, 0), spreading(2, 1), spreading(3, 2), spreading(7, 4)]);
}

#[test]
fn several_machines_give_the_rows_of_one_over_the_shared_captures() {
    let name = "exchange::several_machines_give_the_rows_of_one_over_the_shared_captures";
    let Some(folder) = shared(name) else { return };
    let captures: Vec<PathBuf> = truths(&folder)
        .iter()
        .filter(|t| supported(t))
        .map(|t| folder.join(t["file"].as_str().expect("a name")))
        .collect();
    assert!(captures.len() > 200, "{} captures", captures.len());
    // One run over each of them is in `agree`.
    let some: Vec<PathBuf> = captures.iter().step_by(3).cloned().collect();
    agree(&some, &[Spreading { producers: 3, seed: captures.len() as u64 }]);
}

/// The blocks of docs/partials.md with this tag.
fn blocks(tag: &str) -> Vec<String> {
    let text = text("docs/partials.md");
    let parts = text.split("```").skip(1).step_by(2);
    let mine = parts.filter_map(|part| part.split_once('\n').filter(|(t, _)| *t == tag));
    mine.map(|(_, body)| body.to_owned()).collect()
}

/// The bytes of an example: of each line those before the bar.
fn bytes(example: &str) -> Vec<u8> {
    let digits = example.lines().filter_map(|line| line.split('|').next());
    let digits = digits.flat_map(str::split_whitespace);
    digits.map(|byte| u8::from_str_radix(byte, 16).expect("two digits")).collect()
}

#[test]
fn the_example_of_the_docs_is_what_a_producer_writes() {
    let query = blocks("weir");
    let plan = plan(&query[0]);
    let functions = Functions::default();
    let id = ProducerId { probe: 1, epoch: 2 };
    let options = Options::default();
    let producer = Producer::new(&plan, &functions, &options, id).expect("it can be spread");
    let mut messages: Vec<Vec<u8>> = Vec::new();
    let mut source =
        open(Path::new("../../fixtures/knock.pcap"), ReadingOptions::default()).expect("it opens");
    let outcome = producer.run(&mut source, &mut |message| {
        messages.push(message.to_vec());
        Ok(())
    });
    assert!(outcome.error.is_none(), "{:?}", outcome.error);
    let shown: Vec<Vec<u8>> = blocks("hex").iter().map(|block| bytes(block)).collect();
    let hex = |message: &[u8]| message.iter().map(|b| format!("{b:02x} ")).collect::<String>();
    let got: Vec<String> = messages.iter().map(|m| hex(m)).collect();
    assert!(shown == messages, "it writes:\n{}", got.join("\n"));
    assert!(matches!(Message::read(&shown[2]).expect("it is one").body, Body::Window { .. }));
}

/// A batch of one packet each gives the same messages: nothing depends on batches.
#[test]
fn messages_do_not_depend_on_the_batch() {
    for (name, plan) in library() {
        let mut ways = Vec::new();
        for cuts in [&[BATCH][..], &[1], &[3, 64]] {
            let id = ProducerId { probe: 1, epoch: 2 };
            let (functions, options) = (Functions::default(), Options::default());
            let producer = Producer::new(&plan, &functions, &options, id).expect("as before");
            let mut source = weir_model::Frames::sample().cut(cuts);
            let mut messages: Vec<Vec<u8>> = Vec::new();
            producer.run(&mut source, &mut |message| {
                // Counts come with batches, and so do the frames that a source has seen.
                let body = Message::read(message).expect("one").body;
                if !matches!(body, Body::Counts(_) | Body::Losses(..)) {
                    let mut message = message.to_vec();
                    message[49..57].fill(0);
                    messages.push(message);
                }
                Ok(())
            });
            ways.push(messages);
        }
        assert!(ways.iter().all(|messages| *messages == ways[0]), "{name}");
    }
}
