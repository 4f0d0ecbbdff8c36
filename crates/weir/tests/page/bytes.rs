//! The page as bytes: who gets what, and what a run keeps for it.

use super::Served;
use crate::common::root;
use crate::over_http::{ask, get};
use serde_json::{Value, json};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;

fn mixed() -> String {
    root().join("fixtures/mixed.pcap").display().to_string()
}

fn served() -> Served {
    Served::start(&["serve", "--http", "0", "-r", &mixed()])
}

/// An answer with its head.
fn whole(address: &str, request: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("connects");
    stream.write_all(request.as_bytes()).expect("it reads");
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
            let packets = rows.iter().map(|row| row["packets"].as_u64().expect("a number"));
            assert_eq!(packets.sum::<u64>(), 336, "{}", event["program"]);
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
