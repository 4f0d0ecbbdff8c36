//! The page as bytes: who gets what, and what a run keeps for it.

use super::Served;
use crate::common::root;
use crate::over_http::{ask, get};
use crate::over_wires::weir;
use crate::wires::{Sender, ip, namespace, veth};
use serde_json::{Value, json};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use weir_packet::craft::Frame;

fn mixed() -> String {
    root().join("fixtures/mixed.pcap").display().to_string()
}

fn served() -> Served {
    Served::start(&["serve", "--http", "0", "-r", &mixed()])
}

/// An answer with its head.
fn whole(address: &str, request: &str) -> String {
    whole_of(address, request.as_bytes())
}

fn whole_of(address: &str, request: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).expect("connects");
    stream.write_all(request).expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer
}

fn api(served: &Served, method: &str, path: &str, body: &Value) -> (u16, Value) {
    let (address, token) = (served.address(), served.token());
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let (status, answer) = ask(
        address,
        &format!(
            "{method} /api/v1/{path} HTTP/1.1\r\nHost: {address}\r\n{token}Content-Length: \
             {}\r\n\r\n{body}",
            body.len()
        ),
    );
    (status, serde_json::from_str(&answer).unwrap_or_else(|e| panic!("{e}: {answer}")))
}

/// The first events of a stream of kept rows, as many as are wanted.
fn recent(served: &Served, programs: &str, wanted: usize) -> Vec<Value> {
    let (address, token) = (served.address(), served.token());
    let mut stream = TcpStream::connect(address).expect("connects");
    let request = format!(
        "GET /api/v1/recent?programs={programs} HTTP/1.1\r\nHost: {address}\r\n{token}\r\n"
    );
    stream.write_all(request.as_bytes()).expect("it reads");
    let (mut text, mut bytes) = (String::new(), [0; 4096]);
    loop {
        let n = stream.read(&mut bytes).expect("more");
        text += std::str::from_utf8(&bytes[..n]).expect("text");
        let events: Vec<&str> = text.split("\n\n").collect();
        let data = events[..events.len() - 1]
            .iter()
            .filter_map(|event| event.lines().find_map(|line| line.strip_prefix("data: ")));
        let all: Vec<Value> = data.map(|d| serde_json::from_str(d).expect("JSON")).collect();
        if all.len() >= wanted || n == 0 {
            return all;
        }
    }
}

/// The first conversation among the rows of `page-flows`, which also say how many there are.
fn conversation(event: &Value) -> Option<Value> {
    let rows = event["rows"].as_array().expect("rows");
    rows.iter().find(|row| row["_pipeline"] == "page-flows").cloned()
}

/// Asks for packets.
fn packets(served: &Served, question: &Value) -> (u16, Value) {
    api(served, "POST", "packets", question)
}

/// A row leads to its packets, a condition to those that meet it, and both to files.
#[test]
fn packets_of_files_are_found_again() {
    let served = served();
    until_ended(&served);
    let row = conversation(&recent(&served, "page-flows", 1)[0]).expect("there are some");
    let (status, found) =
        packets(&served, &json!({ "program": "page-flows", "row": row, "limit": 200 }));
    assert_eq!(status, 200, "{found}");
    let all = found["packets"].as_array().expect("a list");
    assert_eq!(all.len() as u64, row["packets"].as_u64().expect("a count"), "{row} {found}");
    let bytes: u64 = all.iter().map(|one| one["length"].as_u64().expect("a length")).sum();
    assert_eq!(bytes, row["bytes"].as_u64().expect("a sum"));
    assert!(all.iter().all(|one| one["fields"]["ip.src"] == row["src"]), "{found}");
    assert_eq!((&found["source"], &found["gone"]), (&json!("captures"), &json!(false)));
    let (_, found) = packets(&served, &json!({ "where": "udp and dport == 53", "limit": 1 }));
    assert_eq!(
        (found["packets"].as_array().map(Vec::len), &found["more"]),
        (Some(1), &json!(true))
    );
    assert!(found["packets"][0]["fields"]["dns.qname"].is_string(), "{found}");
    assert_eq!(found["query"][0], "where udp and dport == 53");
    served.end();
}

/// A token.
const SECRET: &str = "0123456789abcdef";

/// A run with a page over a pipe, which gets these bytes and stays open while nobody looks; then
/// this does.
fn unfollowed(query: &str, bytes: Vec<u8>, packets: u64, look: impl Fn(&Served)) {
    let folder = crate::common::workplace();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (pipe, file, token) = (path("pipe"), path("numbers.weir"), path("token"));
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.is_ok_and(|status| status.success()));
    std::fs::write(&file, query).expect("writes");
    std::fs::write(&token, SECRET).expect("writes");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(&token, mode).expect("is ours");
    let (end, ended) = std::sync::mpsc::channel::<()>();
    let to = pipe.clone();
    let writer = std::thread::spawn(move || {
        let mut pipe = std::fs::OpenOptions::new().write(true).open(to).expect("the pipe");
        pipe.write_all(&bytes).expect("it reads");
        ended.recv().ok();
    });
    let http = ["--http", "0", "--http-token-file", &token];
    let mut served = Served::start(&[&["run", &file, "-r", &pipe][..], &http].concat());
    served.page += &format!("#token={SECRET}");
    while api(&served, "GET", "stats", &Value::Null).1["processed"] != packets {
        crate::wires::pause();
    }
    look(&served);
    drop(end);
    writer.join().expect("it ends");
    served.run.ended();
}

/// Rows that nobody follows are written once somebody does, also where no more of them come.
#[test]
fn rows_that_nobody_followed_are_there_for_who_comes() {
    let bytes = std::fs::read(mixed()).expect("a capture");
    unfollowed("packets | project number", bytes, 336, |served| {
        // They are written in batches, and the first event has those that are there by then.
        let all = |_: &u32| {
            let numbers = recent(served, "numbers", 1).into_iter().flat_map(|event| {
                assert_eq!(event["skipped"], 0);
                let rows = event["rows"].as_array().expect("a list").clone();
                rows.into_iter().map(|row| row["number"].as_u64().expect("a number"))
            });
            crate::wires::pause();
            numbers.eq(1..=336)
        };
        assert!((0..100).find(all).is_some(), "no rows come");
    });
}

/// A client that follows all rows gets those that were on their way when the packets ended, or is
/// told how many it did not get, although the page stays and has rows for others.
#[test]
fn all_rows_of_a_file_come_before_its_end() {
    // They all have room in the buffer of the client.
    const TIMES: u64 = 60;
    let folder = crate::common::workplace();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (pipe, file) = (path("pipe"), path("numbers.weir"));
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.is_ok_and(|status| status.success()));
    // All rows come at once when the packets have ended.
    std::fs::write(&file, "packets | summarize n = count() by number").expect("writes");
    let capture = std::fs::read(mixed()).expect("a capture");
    let (header, records) = capture.split_at(24);
    let bytes = [header, &records.repeat(TIMES as usize)].concat();
    let (go, going) = std::sync::mpsc::channel::<()>();
    let to = pipe.clone();
    let writer = std::thread::spawn(move || {
        let mut pipe = std::fs::OpenOptions::new().write(true).open(to).expect("the pipe");
        pipe.write_all(&bytes[..24]).expect("it reads");
        going.recv().ok();
        pipe.write_all(&bytes[24..]).expect("it reads");
    });
    let served = Served::start(&["serve", &file, "--http", "0", "-r", &pipe]);
    let (address, token) = (served.address(), served.token());
    let mut stream = TcpStream::connect(address).expect("connects");
    let request =
        format!("GET /api/v1/rows?program=numbers HTTP/1.1\r\nHost: {address}\r\n{token}\r\n");
    stream.write_all(request.as_bytes()).expect("it reads");
    // The head says that the client is one of those that follow.
    let mut text = vec![0; 1];
    stream.read_exact(&mut text).expect("a head");
    go.send(()).expect("it waits");
    stream.read_to_end(&mut text).expect("an end");
    let text = String::from_utf8(text).expect("text");
    let (_, body) = text.split_once("\r\n\r\n").expect("a head");
    let told: u64 = body
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .map(|row| row["_lost"].as_u64().unwrap_or(1))
        .sum();
    assert_eq!(told, 336 * TIMES);
    writer.join().expect("it ends");
    served.end();
}

/// Only the latest of them wait, and those that do not are counted.
#[test]
fn rows_that_nobody_followed_have_a_bound() {
    const TIMES: u64 = 400;
    let capture = std::fs::read(mixed()).expect("a capture");
    let (header, records) = capture.split_at(24);
    let bytes = [header, &records.repeat(TIMES as usize)].concat();
    let columns: Vec<String> = (0..20).map(|i| format!("n{i} = number")).collect();
    let query = format!("packets | project {}", columns.join(", "));
    unfollowed(&query, bytes, 336 * TIMES, |served| {
        // The first event may come before the first rows are written.
        let first = loop {
            let first = recent(served, "numbers", 1).swap_remove(0);
            if first["rows"].get(0).is_some() {
                break first;
            }
            crate::wires::pause();
        };
        let skipped = first["skipped"].as_u64().expect("a count");
        assert!(skipped > 10_000 && skipped < 336 * TIMES - 5_000, "{skipped}");
        assert_eq!(first["rows"][0]["n7"], skipped + 1, "each is kept or counted");
    });
}

/// Browsers follow the rows of a run over a wire, one never reads, and one sends nothing: rows come
/// to the others all the same, packets are counted to the last, and memory has its bounds.
#[test]
#[expect(clippy::disallowed_methods, reason = "the time that an answer takes")]
fn many_browsers_and_one_that_never_reads() {
    const BROWSERS: usize = 50;
    if !namespace("many_browsers_and_one_that_never_reads") {
        return;
    }
    veth("v1", "v2");
    ip("link set lo up");
    let served = Served::start(&["serve", "--http", "0", "-i", "v2", "udp"]);
    let follow = || {
        let (address, token) = (served.address(), served.token());
        let mut stream = TcpStream::connect(address).expect("connects");
        let path = "/api/v1/recent?programs=page-traffic,page-flows";
        let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n{token}\r\n");
        stream.write_all(request.as_bytes()).expect("it reads");
        stream
    };
    let deaf = follow();
    let silent = TcpStream::connect(served.address()).expect("connects");
    let readers: Vec<_> = (0..BROWSERS)
        .map(|_| {
            let stream = follow();
            std::thread::spawn(move || packets_told(stream))
        })
        .collect();
    let sender = Sender::new("v1");
    let mut sent = 0_u64;
    for second in 0..3_u8 {
        for i in 0..2000_u32 {
            let [_, _, a, b] = i.to_be_bytes();
            let frame = Frame::ethernet().ipv4([10, second, a, b], [192, 0, 2, 1]);
            sender.send(&frame.udp(1000, 53).payload(&[0; 60]).bytes());
            sent += 1;
        }
        // Windows close in between.
        std::thread::sleep(std::time::Duration::from_millis(1100));
    }
    let memory = memory_most(served.run.child.id());
    let before = std::time::Instant::now();
    let (_, stats) = api(&served, "GET", "stats", &Value::Null);
    assert!(before.elapsed().as_secs() < 3, "the run answers slowly");
    assert_eq!(stats["processed"], sent, "{stats}");
    // The ring, the rows that are kept, and the tables: none of it is for each browser.
    assert!(memory < 600 << 20, "{memory} bytes");
    served.end();
    // On a busy machine a browser may get fewer rows. It is then told how many it lacks, or its
    // stream breaks off before the event `end`: a run that ends does not wait long for a browser.
    let told: Vec<_> = readers.into_iter().map(|r| r.join().expect("it reads")).collect();
    for &(packets, skipped, is_ended) in &told {
        let is_told = skipped > 0 || !is_ended;
        assert!(packets == sent || packets < sent && is_told, "{sent} packets: {told:?}");
    }
    let is_whole = |&(packets, skipped, _): &(u64, u64, bool)| (packets, skipped) == (sent, 0);
    assert!(told.iter().any(is_whole), "{sent} packets: {told:?}");
    drop((deaf, silent));
}

/// The most memory that a process has had, in bytes.
fn memory_most(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).expect("Linux");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a line");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") << 10
}

/// The packets that the rows of page-traffic count, up to the end of the stream, how many rows were
/// left out, and whether the stream says that it is at its end.
fn packets_told(mut stream: TcpStream) -> (u64, u64, bool) {
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("an end");
    let (mut told, mut skipped) = (0, 0);
    for line in text.lines().filter_map(|line| line.strip_prefix("data: ")) {
        let event: Value = serde_json::from_str(line).expect("JSON");
        if event["program"] == "page-traffic" {
            let rows = event["rows"].as_array().expect("rows");
            told += rows.iter().map(|row| row["packets"].as_u64().expect("a count")).sum::<u64>();
            skipped += event["skipped"].as_u64().expect("a count");
        }
    }
    (told, skipped, text.contains("event: end\n"))
}

/// The ring of a run over a wire has the packets of a row, and says what it has no more.
#[test]
fn packets_of_a_wire_are_found_in_the_ring() {
    if !namespace("packets_of_a_wire_are_found_in_the_ring") {
        return;
    }
    veth("v1", "v2");
    ip("link set lo up");
    let served = Served::start(&["serve", "--http", "0", "-i", "v2", "--ring", "100k", "udp"]);
    let sender = Sender::new("v1");
    let send = |host: u8, n: u32| {
        for i in 0..n {
            let frame = Frame::ethernet().ipv4([10, 0, 0, host], [192, 0, 2, 1]);
            sender.send(&frame.udp(1000 + i as u16, 53).payload(&[host; 60]).bytes());
        }
    };
    let of = |host: u8| json!({ "where": format!("ip.src == 10.0.0.{host}"), "limit": 200 });
    let wait = |host: u8, n: usize| loop {
        let (status, found) = packets(&served, &of(host));
        assert_eq!(status, 200, "{found}");
        if found["packets"].as_array().is_some_and(|all| all.len() == n) {
            return found;
        }
        // There is a limit to requests in a second.
        (0..10).for_each(|_| crate::wires::pause());
    };
    send(1, 20);
    let first = wait(1, 20);
    assert_eq!((&first["source"], &first["gone"]), (&json!("ring"), &json!(false)), "{first}");
    assert_eq!(first["packets"][0]["interface"], "v2", "{first}");
    // Others take their place.
    send(2, 3000);
    let later = wait(1, 0);
    assert_eq!(later["gone"], true, "{later}");
    let (_, latest) = packets(&served, &of(2));
    assert_eq!(
        (latest["packets"].as_array().map(Vec::len), &latest["more"]),
        (Some(200), &json!(true))
    );
    // Rows that came before somebody asks for them are in the first event; there may be none yet.
    let row = loop {
        if let Some(row) = conversation(&recent(&served, "page-flows", 1)[0]) {
            break row;
        }
        (0..10).for_each(|_| crate::wires::pause());
    };
    let (status, of_row) = packets(&served, &json!({ "program": "page-flows", "row": row }));
    assert_eq!((status, of_row["query"].as_array().is_some()), (200, true), "{of_row}");
    served.end();
}

/// Without a ring there is nothing to look for, and no program may keep packets by that of a page.
#[test]
fn a_run_without_a_ring_says_so() {
    if !namespace("a_run_without_a_ring_says_so") {
        return;
    }
    veth("v1", "v2");
    ip("link set lo up");
    let served = Served::start(&["serve", "--http", "0", "-i", "v2", "--ring", "0"]);
    let (status, refused) = packets(&served, &json!({ "where": "" }));
    assert_eq!(status, 409);
    assert!(refused["error"].as_str().is_some_and(|why| why.contains("--ring")), "{refused}");
    served.end();
    let served = Served::start(&["serve", "--http", "0", "-i", "v2"]);
    let text = "packets | summarize n = count() by ip.src every 1s | capture 1s by ip.src";
    let (status, refused) = api(&served, "POST", "programs", &json!({ "name": "a", "text": text }));
    assert_eq!(status, 409, "{refused}");
    let said = served.end();
    assert!(!said.contains("captured"), "{said}");
}

/// A POST of bytes to a path, which says that it has `len` bytes.
fn send_of(served: &Served, path: &str, bytes: &[u8], len: usize) -> (u16, Value) {
    let (address, token) = (served.address(), served.token());
    let head = format!(
        "POST /api/v1/{path} HTTP/1.1\r\nHost: {address}\r\n{token}Content-Length: {len}\r\n\r\n"
    );
    let answer = whole_of(address, &[head.as_bytes(), bytes].concat());
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    let status = head.split(' ').nth(1).and_then(|word| word.parse().ok()).expect("a status");
    (status, serde_json::from_str(body).unwrap_or_default())
}

fn send(served: &Served, path: &str, bytes: &[u8]) -> (u16, Value) {
    send_of(served, path, bytes, bytes.len())
}

/// Queries run over captures of the folder and over those that were sent, and give what `weir run`
/// gives; nothing else can be read, and nothing is left.
#[test]
fn queries_over_other_captures() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    std::fs::create_dir_all(at("captures/deep")).expect("folders");
    std::fs::copy(mixed(), at("captures/deep/mixed.pcap")).expect("copies");
    std::fs::copy(mixed(), at("outside.pcap")).expect("copies");
    std::os::unix::fs::symlink("../outside.pcap", at("captures/link.pcap")).expect("links");
    let captures = at("captures").display().to_string();
    let served = Served::start(&["serve", "--http", "0", "-r", &mixed(), "--captures", &captures]);
    let text = "packets | summarize n = count() by ip.src | top 3 by n";
    let query = |capture: &str, text: &str| {
        let body = json!({ "capture": capture, "text": text });
        api(&served, "POST", "captures/query", &body)
    };
    let (status, list) = api(&served, "GET", "captures", &Value::Null);
    assert_eq!((status, list["files"].as_array().map(Vec::len)), (200, Some(1)), "{list}");
    let file = list["files"][0]["capture"].as_str().expect("a name");
    let (status, sent) =
        send(&served, "captures?name=m.pcap", &std::fs::read(mixed()).expect("reads"));
    assert_eq!((status, &sent["capture"]), (200, &json!("upload:1")), "{sent}");
    let alone = weir(&["run", "-e", text, "-r", &mixed(), "-o", "json"]);
    let lines = std::str::from_utf8(&alone.stdout).expect("text").lines();
    let expected: Vec<Value> = lines.map(|l| serde_json::from_str(l).expect("JSON")).collect();
    for capture in [file, "upload:1", "upload:1"] {
        let (status, found) = query(capture, text);
        assert_eq!((status, &found["rows"]), (200, &json!(expected)), "{found}");
        let said = found["said"].as_str().expect("text");
        assert!(said.contains("received   336 packets"), "{said}");
        assert_eq!(found["outputs"][0]["columns"][1]["name"], "n");
    }
    for (capture, text, status) in [
        ("file:link.pcap", "packets", 404),
        ("file:../outside.pcap", "packets", 404),
        ("file:/etc/passwd", "packets", 404),
        ("upload:2", "packets", 404),
        ("nonsense", "packets", 404),
        (file, "packets | wher", 422),
        (file, "packets | pass", 422),
        (file, "packets | forward \"x.pcap\"", 422),
        (file, "packets | where ip.src in file \"/etc/hosts\"", 422),
        (file, "packets | summarize n = count() by ip.src | capture 1s by ip.src", 422),
    ] {
        assert_eq!(query(capture, text).0, status, "{capture} {text}");
    }
    // It is refused by its length alone.
    assert_eq!(send_of(&served, "captures?name=x", &[], (16 << 20) + 1).0, 413);
    assert_eq!(send(&served, "captures?name=x", &[]).0, 400);
    let (status, _) = send(&served, "captures?name=garbage.pcap", b"this is no capture");
    assert_eq!(status, 200);
    let (status, garbage) = query("upload:2", text);
    assert_eq!((status, &garbage["failed"]), (200, &json!(true)), "{garbage}");
    for _ in 2..8 {
        assert_eq!(send(&served, "captures?name=x", b"x").0, 200);
    }
    assert_eq!(send(&served, "captures?name=x", b"x").0, 409);
    assert_eq!(api(&served, "DELETE", "captures?name=upload:1", &Value::Null).0, 200);
    assert_eq!(query("upload:1", text).0, 404);
    // Without the token nothing of it.
    let address = served.address();
    for path in ["/api/v1/captures", "/api/v1/captures/query"] {
        assert_eq!(get(address, path, "").0, 401);
    }
    served.end();
    assert!(!at("x.pcap").exists());
}

/// The process that keeps captures goes with the run, also where that was killed.
#[test]
fn what_keeps_captures_goes_with_the_run() {
    let mut served = served();
    let run = served.run.child.id();
    let keeper = || {
        let all = std::fs::read_dir("/proc").expect("Linux").flatten();
        let of_run = |entry: &std::fs::DirEntry| {
            let status = std::fs::read_to_string(entry.path().join("status")).unwrap_or_default();
            status
                .lines()
                .any(|l| l.strip_prefix("PPid:").is_some_and(|p| p.trim() == run.to_string()))
        };
        all.filter(of_run).map(|entry| entry.path()).next()
    };
    let place = keeper().expect("a process");
    let line = std::fs::read_to_string(place.join("cmdline")).expect("there");
    assert!(line.contains("keep-captures"), "{line}");
    served.run.child.kill().expect("kills");
    served.run.child.wait().expect("ends");
    let is_there = || {
        let line = std::fs::read_to_string(place.join("cmdline")).unwrap_or_default();
        line.contains("keep-captures")
    };
    for _ in 0..100 {
        if !is_there() {
            return;
        }
        crate::wires::pause();
    }
    panic!("the process is still there");
}

/// It died unseen, and the run ended with status 0.
#[test]
fn the_death_of_what_keeps_captures_is_told_and_counted() {
    let args = ["serve", "--http", "0", "-r", &mixed(), "--fail-on-loss"];
    let mut served = Served::start(&args);
    let run = served.run.child.id().to_string();
    let killed = std::process::Command::new("pkill").args(["-KILL", "-P", &run]).status();
    assert!(killed.is_ok_and(|status| status.success()), "a process of the run is killed");
    served.run.until("the process that keeps captures has ended by signal 9");
    served.run.signal("-INT");
    let status = served.run.child.wait().expect("ends");
    let said: String = served.run.errors.iter().map(|line| line + "\n").collect();
    assert!(said.contains("ended      the process that keeps captures"), "{said}");
    assert_eq!(status.code(), Some(1), "{said}");
}

/// The rows that go through the stages of each program add up to the packets of the capture.
#[test]
fn stages_count_what_goes_through_them() {
    for workers in ["1", "3"] {
        let query = "packets | where udp | summarize n = count() by dport every 1s | where n > 1";
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("ports.weir");
        std::fs::write(&file, query).expect("writes");
        let file = file.display().to_string();
        let served = Served::start(&["serve", &file, "--http", "0", "-j", workers, "-r", &mixed()]);
        until_ended(&served);
        let (status, flow) = api(&served, "GET", "stages", &Value::Null);
        assert_eq!(status, 200, "{flow}");
        let programs = flow["programs"].as_array().expect("a list");
        let find = |name: &str| {
            let found = programs.iter().find(|one| one["name"] == name).expect("a program");
            found["stages"].as_array().expect("stages").clone()
        };
        for name in ["page-traffic", "page-flows"] {
            let first = &find(name)[0];
            assert_eq!(first["rows_in"], 336, "{name} {flow}");
            assert!(first["rows_out"].as_u64() > Some(0), "{name} {flow}");
        }
        let ports = find("ports");
        let stage = |level: &str, at: u64| {
            let is_it = |one: &&Value| one["level"] == level && one["stage"] == at;
            ports.iter().find(is_it).unwrap_or_else(|| panic!("{level} {at}: {flow}")).clone()
        };
        let (filter, groups) = (stage("worker", 0), stage("worker", 1));
        assert_eq!((&filter["rows_in"], &filter["rows_out"]), (&json!(336), &groups["rows_in"]));
        let merged = stage("machine", 1);
        assert_eq!(groups["rows_out"], merged["rows_in"], "{flow}");
        assert_eq!(merged["rows_out"], stage("machine", 2)["rows_in"], "{flow}");
        let rows = &recent(&served, "ports", 1)[0]["rows"];
        assert_eq!(stage("machine", 2)["rows_out"], rows.as_array().expect("rows").len());
        served.end();
    }
}

/// Questions are held to bounds, and no text makes the run do anything else.
#[test]
fn wrong_questions_for_packets_are_refused() {
    let served = served();
    until_ended(&served);
    let row = json!({ "src": "10.0.0.1" });
    for (question, status) in [
        (json!({ "where": "dprt == 53" }), 422),
        (json!({ "where": "tcp | forward \"/tmp/x.pcap\"" }), 422),
        (json!({ "where": "tcp\n| summarize count()" }), 422),
        (json!({ "where": "tcp | pass\nlet a = packets" }), 422),
        (json!({ "where": "ip.src in file \"/etc/passwd\"" }), 422),
        (json!({ "where": "tcp", "from": "yesterday" }), 422),
        (json!({ "program": "none", "row": row }), 404),
        (json!({ "program": "page-flows", "output": "none", "row": row }), 404),
        (json!({ "program": "page-flows", "row": row }), 404),
        (json!({ "program": "page-flows", "output": "page-flows", "row": { "src": 1 } }), 422),
        (json!({ "program": "page-flows", "output": "page-flows", "row": { "srx": 1 } }), 422),
        (json!({ "program": "page-flows", "row": row, "where": "tcp" }), 400),
        (json!([]), 400),
        (json!({ "where": "x".repeat(100_000) }), 422),
    ] {
        assert_eq!(packets(&served, &question).0, status, "{}", question.to_string().len());
    }
    let (address, token) = (served.address(), served.token());
    let head = format!("POST /api/v1/packets HTTP/1.1\r\nHost: {address}\r\n{token}");
    let long = format!("{head}Content-Length: {}\r\n\r\n", (1 << 20) + 1);
    assert_eq!(ask(address, &long).0, 413);
    // The text of a condition may end in a comment.
    assert_eq!(packets(&served, &json!({ "where": "tcp # all of it" })).0, 200);
    let address = served.address();
    for token in ["", "Authorization: Bearer 0000000000000000\r\n"] {
        let head = format!("POST /api/v1/packets HTTP/1.1\r\nHost: {address}\r\n{token}");
        let body = "{\"where\": \"tcp\"}";
        let request = format!("{head}Content-Length: {}\r\n\r\n{body}", body.len());
        assert_eq!(ask(address, &request).0, 401);
    }
    served.end();
}

fn until_ended(served: &Served) {
    while api(served, "GET", "run", &Value::Null).1["phase"] != "ended" {
        crate::wires::pause();
    }
}

#[test]
fn the_page_is_for_everybody_and_the_run_is_not() {
    let served = served();
    let address = served.address();
    let page = whole(address, &format!("GET / HTTP/1.1\r\nHost: {address}\r\n\r\n"));
    let (head, body) = page.split_once("\r\n\r\n").expect("a head");
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    assert!(head.contains("Content-Type: text/html; charset=utf-8"), "{head}");
    let policy = head.lines().find_map(|l| l.strip_prefix("Content-Security-Policy: "));
    let policy = policy.expect("a policy");
    for part in ["default-src 'none'", "script-src 'self';", "frame-ancestors 'none'"] {
        assert!(policy.contains(part), "{policy}");
    }
    assert!(!policy.contains("unsafe"), "{policy}");
    assert!(!body.contains("{{nonce}}") && !body.contains("style=") && !body.contains("<style"));
    let secret = served.page.split("#token=").nth(1).expect("a token");
    assert!(!body.contains(secret));
    let script = whole(address, &format!("GET /assets/app.js HTTP/1.1\r\nHost: {address}\r\n\r\n"));
    let (head, _) = script.split_once("\r\n\r\n").expect("a head");
    assert!(head.contains("Content-Type: text/javascript"), "{head}");
    let tag = head.lines().find_map(|l| l.strip_prefix("ETag: ")).expect("a tag");
    let again = whole(
        address,
        &format!("GET /assets/app.js HTTP/1.1\r\nHost: {address}\r\nIf-None-Match: {tag}\r\n\r\n"),
    );
    assert!(again.starts_with("HTTP/1.1 304 ") && again.ends_with("\r\n\r\n"), "{again}");
    let wrong = "Authorization: Bearer 0000000000000000\r\n";
    for path in ["/metrics", "/api/v1/run", "/api/v1/recent?programs=page-flows", "/api/v1/fields"]
    {
        for token in ["", wrong] {
            assert_eq!(get(address, path, token).0, 401, "{path} {token}");
        }
    }
    served.end();
}

#[test]
fn other_sites_and_strange_requests_are_refused() {
    let served = served();
    let (address, token) = (served.address().to_owned(), served.token());
    let status = |path: &str, headers: &str| {
        ask(&address, &format!("GET {path} HTTP/1.1\r\n{headers}\r\n")).0
    };
    for path in ["/", "/assets/app.js", "/api/v1/run"] {
        assert_eq!(status(path, &format!("Host: evil.example\r\n{token}")), 421, "{path}");
        let host = format!("Host: {address}\r\n{token}");
        for origin in ["http://evil.example", "http://localhost:1", "null"] {
            let refused = status(path, &format!("{host}Origin: {origin}\r\n"));
            assert_eq!(refused, 403, "{path} {origin}");
        }
        assert_eq!(status(path, &format!("{host}Origin: http://{address}\r\n")), 200, "{path}");
        assert_eq!(status(path, &format!("{host}Sec-Fetch-Site: cross-site\r\n")), 403, "{path}");
        let long = "x".repeat(20_000);
        assert_eq!(status(path, &format!("{host}Cookie: {long}\r\n")), 431, "{path}");
    }
    let link = "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\n";
    assert_eq!(status("/", &format!("Host: {address}\r\n{link}")), 200);
    for path in [
        "/assets/../../../../etc/passwd",
        "/assets/..%2f..%2fetc%2fpasswd",
        "/assets/app.js/..",
        "/assets/app.js%00",
        "/assets//app.js",
        "/assets/index.html",
    ] {
        assert_eq!(status(path, &format!("Host: {address}\r\n")), 404, "{path}");
    }
    assert_eq!(status("/index.html", &format!("Host: {address}\r\n")), 401);
    served.end();
}

/// Sums of what the page counts are the packets of the capture, whoever comes when.
#[test]
fn rows_of_a_file_are_there_after_its_end() {
    let served = served();
    until_ended(&served);
    let (status, run) = api(&served, "GET", "run", &Value::Null);
    assert_eq!((status, &run["reads_again"], &run["interval"]), (200, &json!(true), &json!(0.05)));
    let (_, stats) = api(&served, "GET", "stats", &Value::Null);
    assert_eq!(stats["processed"], 336);
    for _ in 0..2 {
        let events = recent(&served, "page-traffic,page-flows,none", 2);
        for event in &events {
            let rows = event["rows"].as_array().expect("rows");
            let sum = |name: &str| rows.iter().filter_map(|row| row[name].as_u64()).sum::<u64>();
            // So few hosts and conversations that each output has all packets.
            let outputs = rows.iter().filter_map(|row| row["_pipeline"].as_str());
            let mut by_packets = outputs.collect::<std::collections::BTreeSet<_>>();
            by_packets.remove("page-flows.counts");
            assert_eq!(sum("packets"), 336 * by_packets.len().max(1) as u64, "{by_packets:?}");
            // There are fewer than the largest that are told, so all of them are.
            let conversations = rows.iter().filter(|row| row["_pipeline"] == "page-flows").count();
            assert_eq!(sum("conversations"), conversations as u64, "{}", event["program"]);
            assert_eq!(event["outputs"][0]["columns"][0], json!({ "name": "ts", "type": "time" }));
        }
        assert_eq!(events.len(), 2);
    }
    let (status, _) = api(&served, "GET", "recent?programs=a:x", &Value::Null);
    assert_eq!(status, 400);
    served.end();
}

/// Over files, programs that come and go read the capture again, and see all of it.
#[test]
fn changes_read_the_files_again() {
    let served = served();
    until_ended(&served);
    let query = json!({ "name": "n", "text": "packets | summarize n = count()" });
    assert_eq!(api(&served, "POST", "programs", &query).0, 200);
    let count = |wanted: u64| {
        loop {
            let events = recent(&served, "n", 1);
            let rows = events[0]["rows"].as_array().expect("rows").clone();
            if rows.first().is_some_and(|row| row["n"] == wanted) {
                return;
            }
            crate::wires::pause();
        }
    };
    count(336);
    let other = json!({ "text": "packets | wher tcp" });
    let (status, told) = api(&served, "PUT", "programs/n", &other);
    assert_eq!(status, 422, "{told}");
    let only = json!({ "text": "packets | where arp | summarize n = count()" });
    assert_eq!(api(&served, "PUT", "programs/n", &only).0, 200);
    let (_, shown) = api(&served, "GET", "programs/n", &Value::Null);
    assert_eq!(shown["text"], only["text"]);
    assert_eq!(shown["stages"][0][0], "where arp");
    let sends = json!({ "name": "w", "text": "packets | forward \"x.pcap\"" });
    let (status, told) = api(&served, "POST", "programs", &sends);
    let why = told["error"].as_str().expect("a reason");
    assert!(status == 409 && why.contains("reads the captures again"), "{told}");
    // Many changes, one after the other: the last one counts.
    for i in 1..=10 {
        let text = format!("packets | where number <= {i} | summarize n = count()");
        assert_eq!(api(&served, "PUT", "programs/n", &json!({ "text": text })).0, 200);
    }
    count(10);
    assert_eq!(api(&served, "DELETE", "programs/n", &Value::Null).0, 200);
    until_ended(&served);
    let said = served.end();
    assert!(said.contains("received   336 packets"), "{said}");
}

#[test]
fn a_capture_that_breaks_off_shows_what_came_before() {
    let folder = tempfile::tempdir().expect("a folder");
    let cut = folder.path().join("cut.pcap");
    let bytes = std::fs::read(mixed()).expect("there");
    std::fs::write(&cut, &bytes[..bytes.len() / 2]).expect("writes");
    let cut = cut.display().to_string();
    let served = Served::start(&["serve", "--http", "0", "-r", &cut]);
    until_ended(&served);
    let (_, run) = api(&served, "GET", "run", &Value::Null);
    assert!(run["error"].as_str().is_some_and(|e| e.contains("cut.pcap")), "{run}");
    let events = recent(&served, "page-traffic", 1);
    assert!(!events[0]["rows"].as_array().expect("rows").is_empty());
    served.run.signal("-INT");
}

#[test]
fn options_for_readers_of_rows_are_refused() {
    let mixed = mixed();
    for (args, why) in [
        (&["-o", "json"][..], "-o without --out-dir"),
        (&["--metrics", "0"], "--metrics"),
        (&["--export", "127.0.0.1:4739"], "--export"),
        (&["--http", "0.0.0.0:0"], "--http-token-file"),
    ] {
        let mut all = vec!["serve", "-r", &mixed];
        all.extend(args);
        let output = crate::over_wires::weir(&all);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        let said = String::from_utf8(output.stderr).expect("text");
        assert!(said.contains(why), "{args:?}: {said}");
    }
}

#[test]
fn fifty_clients_and_one_that_never_reads() {
    let served = served();
    let (address, token) = (served.address().to_owned(), served.token());
    let open = || {
        let mut stream = TcpStream::connect(&address).expect("connects");
        let request = format!(
            "GET /api/v1/recent?programs=page-traffic,page-flows HTTP/1.1\r\nHost: {address}\r\n\
             {token}\r\n"
        );
        stream.write_all(request.as_bytes()).expect("it reads");
        stream
    };
    let all: Vec<TcpStream> = (0..60).map(|_| open()).collect();
    until_ended(&served);
    // Each has its rows, though none has read any.
    for mut stream in all {
        let (mut text, mut bytes) = (String::new(), [0; 4096]);
        while !text.contains("page-flows") || !text.contains("page-traffic") {
            let n = stream.read(&mut bytes).expect("more");
            assert!(n > 0, "{text}");
            text += std::str::from_utf8(&bytes[..n]).expect("text");
        }
    }
    served.end();
}
