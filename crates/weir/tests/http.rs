//! Programs of a run changed over HTTP, and their rows read there.

#![cfg(target_os = "linux")]

mod common;
#[path = "common/over_http.rs"]
mod over_http;
#[path = "common/over_wires.rs"]
mod over_wires;
#[path = "../../capture/tests/wires/mod.rs"]
mod wires;

use over_http::{SECRET, Streamed, TOKEN, ask, metrics};
use over_wires::{LONG, text, weir};
use serde_json::{Value, json};
use std::fs::{self, Permissions};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;
use std::sync::mpsc::{Sender, channel};

const EACH: &str = "packets | project number, len, ip.src, ip.dst";

/// A run whose programs can be changed, with further arguments.
fn start(args: &[&str]) -> (tempfile::TempDir, Streamed) {
    let folder = tempfile::tempdir().expect("a folder");
    let token = folder.path().join("token");
    fs::write(&token, SECRET).expect("writes");
    fs::set_permissions(&token, Permissions::from_mode(0o600)).expect("is ours");
    let file = token.to_str().expect("a plain path");
    let http = ["--http", "0", "--http-token-file", file, "-o", "json"];
    let run = Streamed::start(&[&http[..], args].concat());
    (folder, run)
}

/// Asks for something as JSON.
fn api(run: &Streamed, method: &str, path: &str, body: Value) -> (u16, Value) {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let (address, len) = (&run.address, body.len());
    let request = format!(
        "{method} /api/v1/{path} HTTP/1.1\r\nHost: {address}\r\n{TOKEN}Content-Length: {len}\r\n\r\n\
         {body}"
    );
    let (status, body) = ask(address, &request);
    (status, serde_json::from_str(&body).unwrap_or_else(|e| panic!("{e}: {body}")))
}

#[test]
fn programs_come_and_go_over_http() {
    let (_token, mut run) = start(&["--control=weir.sock"]);
    let names = |run: &Streamed| {
        let (status, list) = api(run, "GET", "programs", Value::Null);
        assert_eq!(status, 200);
        let all = list["programs"].as_array().expect("a list").iter();
        all.map(|p| p["name"].as_str().expect("a name").to_owned()).collect::<Vec<_>>()
    };
    assert!(names(&run).is_empty());
    let params = "param n: int = 1\npackets | where len > n | project len";
    let a = json!({ "name": "a", "text": params, "params": { "n": "5" } });
    assert_eq!(api(&run, "POST", "programs", a.clone()), (200, json!({ "text": "added a\n" })));
    let (status, told) = api(&run, "POST", "programs", a);
    assert_eq!(status, 409, "{told}");
    let (status, told) = api(&run, "POST", "programs", json!({ "name": "b", "text": "packets |" }));
    assert!(status == 422 && told["text"].as_str().is_some_and(|t| t.contains("b.weir")), "{told}");
    let lookup = "packets | where ip.src in file(\"hosts.txt\") | project len";
    let file = json!([{ "path": "hosts.txt", "text": "10.0.0.1\n" }]);
    let b = json!({ "name": "b", "text": lookup, "files": file });
    let (status, told) = api(&run, "POST", "programs", b);
    assert_eq!(status, 200, "{told}");
    assert_eq!(names(&run), ["a", "b"]);
    run.send(30);
    let (status, told) = api(&run, "PUT", "programs/b", json!({ "text": EACH }));
    assert_eq!(status, 200, "{told}");
    assert_eq!(api(&run, "PUT", "programs/c", json!({ "text": EACH })).0, 404);
    assert_eq!(api(&run, "DELETE", "programs/c", Value::Null).0, 404);
    let (status, stats) = api(&run, "GET", "stats", Value::Null);
    assert_eq!((status, &stats["processed"]), (200, &json!(30)), "{stats}");
    // The control socket says the same.
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    command.args(["ctl", "stats", "-o", "json"]);
    command.env("WEIR_SOCKET", run.folder.path().join("weir.sock"));
    let by_socket = command.output().expect("the binary runs").stdout;
    assert_eq!(serde_json::from_slice::<Value>(&by_socket).expect("JSON"), stats);
    assert_eq!(api(&run, "DELETE", "programs/a", Value::Null).0, 200);
    assert_eq!(names(&run), ["b"]);
    let all = metrics(&run.address);
    // All packets of a; of b the third with this source, and none after that.
    assert_eq!(all["weir_program_rows_emitted_total{program=\"a\"}"], 30);
    assert!(all["weir_program_rows_emitted_total{program=\"b\"}"] > 5);
    run.end();
}

/// A client that holds the token writes nothing but what the run was given for that, and reads no
/// file of it.
#[test]
fn a_client_writes_and_reads_no_files_of_the_run() {
    let (folder, mut run) = start(&[]);
    let target = folder.path().join("target.pcap").display().to_string();
    fs::write(&target, "of yesterday").expect("writes");
    for (end, option) in [
        (format!("forward {target:?}"), "--allow-write FOLDER"),
        ("mirror \"x.pcap\"".to_owned(), "--allow-write FOLDER"),
        ("forward \"-\"".to_owned(), "--allow-write FOLDER"),
        ("forward \"tap:weir0\"".to_owned(), "--allow-send tap:weir0"),
    ] {
        let body = json!({ "name": "a", "text": format!("packets | {end}") });
        let (status, told) = api(&run, "POST", "programs", body);
        let error = told["error"].as_str().unwrap_or_default();
        assert!(status == 409 && error.contains(option), "{status}: {told}");
    }
    for read in ["file(\"/etc/hostname\")", "file(\"token\")"] {
        let text = format!("packets | where ip.src in {read} | project len");
        let (status, told) = api(&run, "POST", "programs", json!({ "name": "a", "text": text }));
        let why = told["text"].as_str().unwrap_or_default();
        assert!(status == 422 && why.contains("was not sent with the request"), "{told}");
    }
    run.send(3);
    assert_eq!(fs::read_to_string(&target).expect("there"), "of yesterday");
    assert!(!run.folder.path().join("x.pcap").exists());
    run.end();
}

#[test]
fn suppressions_change_over_http() {
    let (_token, run) = start(&[]);
    let line = json!({ "line": "x a=1" });
    assert_eq!(api(&run, "POST", "suppressions", line.clone()).0, 200);
    let list = json!({ "suppressions": [{ "line": "x a=1", "from": "ctl" }] });
    assert_eq!(api(&run, "GET", "suppressions", Value::Null), (200, list));
    let files = json!({ "files": [{ "path": "l", "text": "y\nz\n" }] });
    assert_eq!(api(&run, "PUT", "suppressions", files).0, 200);
    assert_eq!(api(&run, "DELETE", "suppressions", line.clone()).0, 200);
    assert_eq!(api(&run, "DELETE", "suppressions", line).0, 409);
    let (_, list) = api(&run, "GET", "suppressions", Value::Null);
    assert_eq!(list["suppressions"].as_array().map(Vec::len), Some(2));
    run.end();
}

/// Every path of the description answers by its methods, by no other, and to nobody without the
/// token.
#[test]
fn the_description_is_that_of_the_api() {
    let (_token, run) = start(&[]);
    let (status, description) = api(&run, "GET", "openapi.json", Value::Null);
    assert_eq!(status, 200);
    let mut asked = 0;
    for (path, item) in description["paths"].as_object().expect("paths") {
        let path = path.replace("{name}", "none");
        for method in ["GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"] {
            let known = item.get(method.to_lowercase());
            let request = |token: &str| loop {
                let head = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\n{token}");
                // Paths outside the API take no body.
                let rest = match path.starts_with("/api/") {
                    true => "Content-Length: 1\r\n\r\n-",
                    false => "Content-Length: 0\r\n\r\n",
                };
                let answer = ask(&run.address, &format!("{head}{rest}"));
                // Only so many are answered in a second.
                if answer.0 != 429 {
                    break answer;
                }
                wires::pause();
            };
            // A path that needs no token says so.
            let is_open = item["get"]["security"] == json!([]);
            if !is_open {
                assert_eq!(request("").0, 401, "{method} {path}");
            }
            let (status, body) = request(TOKEN);
            match known {
                None => assert_eq!(status, 405, "{method} {path}"),
                Some(known) => {
                    let answers = known["responses"].as_object().expect("answers");
                    assert!(answers.contains_key(&status.to_string()), "{method} {path}: {status}");
                    let form = &known["responses"][status.to_string()]["content"];
                    let schema = &form["application/json"]["schema"];
                    if is_open {
                        assert_eq!(request("").0, status, "{method} {path}");
                    }
                    if path.starts_with("/api/") {
                        holds(&description, schema, &serde_json::from_str(&body).expect("JSON"));
                    }
                    asked += 1;
                }
            }
        }
    }
    assert_eq!(asked, 26);
    for (body, why) in [
        (json!({ "name": "a" }), "text"),
        (json!({ "text": EACH }), "name"),
        (json!({ "name": "a", "text": EACH, "more": 1 }), "more"),
        (json!([]), "the body"),
    ] {
        let (status, told) = api(&run, "POST", "programs", body);
        assert!(status == 400 && told["error"].as_str().is_some_and(|e| e.contains(why)), "{told}");
    }
    assert_eq!(api(&run, "PUT", "programs/a", json!({ "name": "b", "text": EACH })).0, 400);
    assert_eq!(api(&run, "GET", "nothing", Value::Null).0, 404);
    run.end();
}

/// Checks the required members of a value, and that it has no others than those described.
fn holds(description: &Value, schema: &Value, value: &Value) {
    let schema = match schema["$ref"].as_str() {
        Some(name) => description.pointer(&name[1..]).expect("is described"),
        None => schema,
    };
    if let Some(properties) = schema["properties"].as_object() {
        for key in value.as_object().expect("an object").keys() {
            assert!(properties.contains_key(key), "{key} is not in {schema}");
        }
    }
    for key in schema["required"].as_array().into_iter().flatten() {
        assert!(value.get(key.as_str().expect("a name")).is_some(), "{key} is not in {value}");
    }
}

/// A rule with an alert for each host, which ends two seconds after its last packet.
const NOISY: &str = "packets
| summarize n = count() by ip.src every 1s
| where n > 1
| alert \"{n} of {ip.src}\" hold 2s";

/// The latest state of each alert, as rows have it, by program and state; what goes on first.
#[test]
fn alerts_are_listed_as_they_stand() {
    let (_token, mut run) = start(&["-e", EACH]);
    let alerts = |run: &Streamed, query: &str| {
        let (status, told) = api(run, "GET", &format!("alerts{query}"), Value::Null);
        assert_eq!(status, 200, "{told}");
        assert_eq!((&told["forgotten"], &told["kept_max"]), (&json!(0), &json!(4096)));
        told["alerts"].as_array().expect("a list").clone()
    };
    assert!(alerts(&run, "").is_empty() && alerts(&run, "?program=e").is_empty());
    assert_eq!(api(&run, "GET", "alerts?program=noisy", Value::Null).0, 404);
    let noisy = json!({ "name": "noisy", "text": NOISY });
    assert_eq!(api(&run, "POST", "programs", noisy).0, 200);
    // Ten packets a second, of three hosts in turns.
    run.send(60);
    let names = ["10.0.0.0", "10.0.0.1", "10.0.0.2"];
    let keys = |all: &[Value]| {
        let key = |one: &Value| one["row"]["alert.key"].as_str().expect("a key").to_owned();
        let mut keys: Vec<_> = all.iter().map(key).collect();
        keys.sort();
        keys
    };
    let expected = names.map(|name| format!("ip.src={name}"));
    while alerts(&run, "?state=open").len() < 3 {
        wires::pause();
    }
    let open = alerts(&run, "?state=open&program=noisy");
    assert_eq!(keys(&open), expected);
    for one in &open {
        let row = &one["row"];
        assert_eq!((&one["program"], &one["state"]), (&json!("noisy"), &json!("open")));
        assert_eq!((&row["alert.rule"], &row["alert.state"]), (&json!("noisy"), &json!("start")));
        assert!(row["n"].as_u64() > Some(1) && row["_pipeline"] == "noisy", "{row}");
    }
    assert!(alerts(&run, "?state=end").is_empty());
    assert_eq!(api(&run, "GET", "alerts?state=start", Value::Null).0, 400);
    // A program that goes says how its alerts stood, and they stay.
    assert_eq!(api(&run, "DELETE", "programs/noisy", Value::Null).0, 200);
    let last = alerts(&run, "?program=noisy");
    assert_eq!(keys(&last), expected);
    assert!(last.iter().all(|one| one["row"]["alert.state"] == "open"), "{last:?}");
    run.end();
}

/// An alert that has ended is listed after those that go on.
#[test]
fn alerts_that_ended_come_last() {
    let text = NOISY.replace("packets\n", "packets\n| where number <= 10\n");
    let (_token, mut run) = start(&["--control=weir.sock"]);
    let body = json!({ "name": "noisy", "text": text });
    assert_eq!(api(&run, "POST", "programs", body).0, 200);
    let all = "packets | summarize n = count() every 1s | alert \"{n}\" hold 1h";
    let body = json!({ "name": "all", "text": all });
    assert_eq!(api(&run, "POST", "programs", body).0, 200);
    run.send(100);
    let told = loop {
        let (_, told) = api(&run, "GET", "alerts", Value::Null);
        if told["alerts"].as_array().expect("a list").iter().any(|one| one["state"] == "end") {
            break told;
        }
        run.send(10);
    };
    let all = told["alerts"].as_array().expect("a list");
    let first = &all[0];
    assert_eq!((&first["program"], &first["state"]), (&json!("all"), &json!("open")), "{told}");
    let last = &all[all.len() - 1];
    assert_eq!((&last["program"], &last["state"]), (&json!("noisy"), &json!("end")), "{told}");
    assert_eq!(last["row"]["alert.state"], "end");
    run.end();
}

#[test]
fn the_api_is_for_those_who_have_the_token() {
    let refused = weir(&["run", "-r", "x", "--http", "0"]);
    assert_eq!(refused.status.code(), Some(2));
    let said = text(&refused.stderr);
    assert!(said.contains("--http-token-file"), "{said}");
}

/// Begins to read the rows of a program.
fn rows(run: &Streamed, program: &str, accept: &str) -> BufReader<TcpStream> {
    let mut stream = TcpStream::connect(&run.address).expect("connects");
    let request = format!(
        "GET /api/v1/rows?program={program} HTTP/1.1\r\nHost: localhost\r\n{TOKEN}\
         Accept: {accept}\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).expect("it reads");
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).expect("a status");
    assert!(line.starts_with("HTTP/1.1 200 "), "{line}");
    while line != "\r\n" {
        line.clear();
        reader.read_line(&mut line).expect("a head");
    }
    reader
}

#[test]
fn fifty_streams_get_every_row_and_their_end() {
    let (_token, mut run) = start(&["-e", EACH]);
    let streams: Vec<_> = (0..50).map(|_| rows(&run, "e", "text/event-stream")).collect();
    let mut lines = rows(&run, "e", "*/*");
    assert_eq!(metrics(&run.address)["weir_http_streams"], 51);
    run.send(100);
    run.end();
    let mut all = String::new();
    lines.read_to_string(&mut all).expect("text");
    let of_lines: Vec<&str> = all.lines().filter(|line| !line.is_empty()).collect();
    assert_eq!(of_lines.len(), 100);
    for (i, line) in of_lines.iter().enumerate() {
        let row: Value = serde_json::from_str(line).expect("JSON");
        assert_eq!(row["number"], json!(i + 1));
    }
    for mut stream in streams {
        let mut events = String::new();
        stream.read_to_string(&mut events).expect("text");
        let mut data: Vec<&str> = events.lines().filter_map(|l| l.strip_prefix("data: ")).collect();
        assert_eq!(data.pop(), Some("{}"));
        assert!(data == of_lines && events.contains("event: end\n"), "{events}");
    }
}

/// A stream ends when its client does, not when the next row can no longer be sent.
#[test]
fn a_client_that_leaves_makes_room_though_no_rows_come() {
    let (_token, run) = start(&["-e", EACH]);
    for _ in 0..3 {
        let streams: Vec<_> = (0..64).map(|_| rows(&run, "e", "*/*")).collect();
        let (status, told) = api(&run, "GET", "rows?program=e", Value::Null);
        assert_eq!(status, 503, "{told}");
        drop(streams);
        while metrics(&run.address)["weir_http_streams"] > 0 {
            wires::pause();
        }
    }
    run.end();
}

/// A client that does not read for a while loses rows and learns how many; the run and another
/// client lose nothing.
#[test]
fn a_client_that_does_not_read_loses_its_own_rows_only() {
    const N: u64 = 600_000;
    let (_token, mut run) = start(&["-e", EACH]);
    let mut deaf = rows(&run, "e", "*/*");
    let reads = rows(&run, "e", "*/*");
    let (tell, told) = channel();
    let reader = std::thread::spawn(move || count(reads, None));
    run.send(N);
    // The thread that writes rows for clients may not have come to all of them.
    while metrics(&run.address)["weir_http_rows_lost_total"] == 0 {
        wires::pause();
    }
    let deaf = std::thread::spawn(move || {
        let mut first = String::new();
        deaf.read_line(&mut first).expect("text");
        let (rows, lost) = count(deaf, Some(tell));
        (rows + 1, lost)
    });
    told.recv_timeout(LONG).expect("it is told");
    let said = run.end();
    assert!(said.contains(&format!("received   {N} packets")), "{said}");
    let (rows, lost) = deaf.join().expect("no panic");
    assert!(lost > 0 && rows + lost == N, "{rows} rows and {lost} lost");
    let (rows, lost) = reader.join().expect("no panic");
    assert_eq!(rows + lost, N);
}

/// How many rows came, and how many the client was told of that did not; reports the first of
/// these.
fn count(stream: BufReader<TcpStream>, report: Option<Sender<()>>) -> (u64, u64) {
    // They are looked at after the last has come: a run waits for its clients only so long.
    let mut lines = Vec::new();
    for line in stream.lines().map(|line| line.expect("text")).filter(|line| !line.is_empty()) {
        if let Some(report) = report.as_ref().filter(|_| line.contains("\"_lost\"")) {
            // The test waits for the first only.
            let _ = report.send(());
        }
        lines.push(line);
    }
    let (mut rows, mut lost) = (0, 0);
    for line in lines {
        let row: Value = serde_json::from_str(&line).expect("JSON");
        match row.get("_lost") {
            Some(n) => lost += n.as_u64().expect("a number"),
            None => rows += 1,
        }
    }
    (rows, lost)
}
