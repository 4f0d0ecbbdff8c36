//! Frames that go up are cut after their headers where workers read nothing else, and then every
//! field that they may read is that of the whole frame.

use super::HOOKS;
use super::common::{self, Kernel, crafted, fixtures, kernel, plan_of, program_of};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use weir_engine::functions::Functions;
use weir_model::TimeRules;
use weir_offload::{FrameCount, Hook, OffloadOptions, WHOLE, compile};
use weir_packet::craft::Frame;
use weir_packet::fields::FieldId;
use weir_packet::limits::BATCH;
use weir_packet::source::{Account, Chunk, FrameBatch, LinkType, Source, SourceError};
use weir_plan::Value;

/// Frames of which so many bytes were captured.
struct CutFrames(Vec<(Vec<u8>, usize)>, usize);

impl Source for CutFrames {
    fn fill(&mut self, batch: &mut FrameBatch) -> Result<bool, SourceError> {
        let frames = self.0[self.1..].iter().take(BATCH).collect::<Vec<_>>();
        let chunk: Chunk = Arc::new(frames.iter().flat_map(|f| f.0.clone()).collect::<Vec<u8>>());
        batch.restart(&chunk, 0, LinkType::ETHERNET);
        let mut at = 0;
        for (frame, captured) in frames {
            batch.push(self.1 as i64, self.1 as u64, at, *captured as u32, frame.len() as u32);
            at += frame.len() as u32;
            self.1 += 1;
        }
        Ok(!batch.is_empty())
    }

    fn is_ready(&mut self) -> bool {
        true
    }

    fn account(&self) -> Account {
        Account::default()
    }
}

/// Why frames go up whole for a query, if they do.
fn whole(text: &str) -> Option<String> {
    let options = OffloadOptions::new(Hook::Xdp, 1);
    compile(&plan_of(text), &options).unwrap_or_else(|e| panic!("{text}: {e}")).whole
}

/// The rows of frames of which so many bytes go up.
fn rows(text: &str, frames: Vec<(Vec<u8>, usize)>) -> Vec<Vec<Value>> {
    let rules = TimeRules { lateness_ns: 0, jump_ns: i64::MAX };
    let (program, functions) = (program_of(text), Functions::default());
    let answer = weir_model::run(&program, &functions, &mut CutFrames(frames, 0), &rules);
    answer.rows.into_iter().map(|(_, row)| row).collect()
}

/// How many bytes of a frame go up that is wanted.
fn wanted(kernel: &Kernel, frame: &[u8]) -> Option<usize> {
    let (decision, returned) = kernel.decide(frame)?;
    let up = (returned as usize).min(frame.len());
    assert!(decision == FrameCount::Wanted || up == frame.len(), "{frame:02x?}");
    (decision == FrameCount::Wanted).then_some(up)
}

#[test]
fn fields_of_cut_frames_are_those_of_whole_ones() {
    if !common::may("fields_of_cut_frames_are_those_of_whole_ones") {
        return;
    }
    let mut frames: Vec<Vec<u8>> = crafted().into_iter().chain(fixtures()).collect();
    frames.extend(elsewhere());
    let names = FieldId::all().map(|field| field.name().into_owned());
    let kept: Vec<String> = names
        .filter(|name| name != "number")
        .filter(|name| whole(&format!("packets | where len > 0 | project {name}")).is_none())
        .collect();
    assert!(kept.len() > 60, "{kept:?}");
    let text = format!("packets | where len > 0 | project {}", kept.join(", "));
    for hook in HOOKS {
        let kernel = kernel(&text, hook).unwrap_or_else(|e| panic!("{e}"));
        let (mut as_sent, mut as_cut, mut bytes) = (Vec::new(), Vec::new(), [0, 0]);
        for frame in &frames {
            let Some(up) = wanted(&kernel, frame) else { continue };
            as_sent.push((frame.clone(), frame.len()));
            as_cut.push((frame.clone(), up));
            bytes = [bytes[0] + frame.len(), bytes[1] + up];
        }
        eprintln!("{hook}: {} of {} bytes go up of {} frames", bytes[1], bytes[0], as_cut.len());
        assert!(bytes[1] < bytes[0] && as_cut.len() > 1000);
        let (sent, cut) = (rows(&text, as_sent), rows(&text, as_cut.clone()));
        assert_eq!(sent.len(), cut.len());
        for ((a, b), (frame, up)) in sent.iter().zip(&cut).zip(&as_cut) {
            let other = kept.iter().zip(a.iter().zip(b)).find(|(_, (a, b))| a != b);
            assert_eq!(other, None, "{hook}: {up} of {frame:02x?}");
        }
    }
}

/// The frames of captures that lie elsewhere, some of each.
fn elsewhere() -> Vec<Vec<u8>> {
    let Some(folder) = std::env::var_os("WEIR_CAPTURES") else { return Vec::new() };
    let mut found = Vec::new();
    super::random::captures(Path::new(&folder), &mut found);
    let some = |path: &PathBuf| common::capture(&path.to_string_lossy()).into_iter().take(100);
    found.iter().flat_map(some).collect()
}

#[test]
fn of_long_frames_a_tenth_goes_up_at_most() {
    if !common::may("of_long_frames_a_tenth_goes_up_at_most") {
        return;
    }
    let (a, b) = (std::net::Ipv6Addr::LOCALHOST, std::net::Ipv6Addr::UNSPECIFIED);
    let frames = [
        Frame::ethernet().ipv4([10, 0, 0, 1], [10, 0, 0, 2]).tcp(1, 2),
        Frame::ethernet().ipv4([10, 0, 0, 1], [10, 0, 0, 2]).udp(1, 2),
        Frame::ethernet().vlan(1).vlan(2).ipv6(a, b).tcp(1, 2).options(&[1; 40]),
        Frame::ethernet().ipv6(a, b).extension(60, &[0; 6]).udp(1, 2),
    ];
    for hook in HOOKS {
        let kernel = kernel("packets | where tcp or udp | project ip.src, tcp.mss", hook);
        let kernel = kernel.unwrap_or_else(|e| panic!("{e}"));
        for frame in &frames {
            let short = frame.clone().bytes().len();
            let frame = frame.clone().payload(&vec![7; 1514 - short]).bytes();
            let up = wanted(&kernel, &frame).expect("it is wanted");
            assert!(up * 10 <= frame.len(), "{hook}: {up} of {}", frame.len());
        }
    }
}

#[test]
fn what_looks_beyond_headers_gets_whole_frames() {
    let all = |query: &str| whole(&format!("packets | where udp {query}"));
    for query in [
        "",
        "| summarize n = count(), bytes = sum(len), first = min(ts) by ip.src, sport every 1s",
        "| distinct ip.id, tcp.mss",
        "| extend t = tcp.tsval | where t > 3 | limit 5",
        "| where malformed or cut",
    ] {
        assert_eq!(all(query), None, "{query}");
    }
    for (query, why) in [
        ("| project caplen", "`caplen` may be beyond"),
        ("| where exists(dns.qname)", "`dns.qname` may be beyond"),
        ("| extend x = 1 | summarize n = count() by payload", "`payload` may be beyond"),
        ("| summarize n = count() by b = ip[40]", "may be beyond the headers"),
        ("| pass", "packets are handed out"),
        ("| analyze tcp | summarize n = count()", "pipeline 1 looks into packets"),
        ("| each tcp.option | summarize n = count() by ip.src", "pipeline 1 looks into packets"),
        ("| hello | project ip.src", "pipeline 1 looks into packets"),
    ] {
        let said = all(query).unwrap_or_default();
        assert!(said.contains(why), "{query}: {said}");
    }
    // One pipeline is enough.
    let two = "packets | where tcp | project len\npackets | where udp | project payload";
    assert!(whole(two).is_some());
    // A snap length holds, and what can't be read goes up to there.
    let options = OffloadOptions::new(Hook::Socket, 1);
    let code = |snaplen| {
        let options = OffloadOptions { snaplen, ..options };
        compile(&plan_of("packets | where udp"), &options).expect("it can").code.to_string()
    };
    let returns = |snaplen: &str| format!("r0 = {snaplen}\n");
    let cut_at = |snaplen: &str| code(300).replace(&returns("300"), &returns(snaplen));
    assert!(code(300).contains(&returns("300")));
    assert!(cut_at("301") == code(301) && cut_at(&WHOLE.to_string()) == code(u32::MAX));
}
