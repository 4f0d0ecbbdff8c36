//! `-o influx`, read by a real InfluxDB.

#![cfg(target_os = "linux")]

mod common;

use common::{root, skip, workplace};
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use weir_packet::craft::Frame;
use weir_packet::pcap::FileHeader;
use weir_packet::source::LinkType;

/// A server of InfluxDB over a folder of its own.
struct Influx {
    child: Child,
    address: String,
}

impl Drop for Influx {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Its program, where there is one: in the path, or where `check.sh` puts it.
fn program() -> Option<PathBuf> {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let own = root().join("target/unpacked/usr/bin");
    let all = std::env::split_paths(&folders).chain([own]).map(|folder| folder.join("influxd"));
    all.into_iter().find(|path| path.is_file())
}

/// A port that is free now.
fn free_address() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("it has one").to_string()
}

#[expect(clippy::disallowed_methods, reason = "a server is waited for")]
fn pause() {
    std::thread::sleep(std::time::Duration::from_millis(100));
}

impl Influx {
    fn start(program: &Path, folder: &Path) -> Influx {
        let (address, own) = (free_address(), free_address());
        let place = |name: &str| folder.join(name);
        let child = Command::new(program)
            .args(["run", "-config", "/dev/null"])
            .env("INFLUXDB_DATA_DIR", place("data"))
            .env("INFLUXDB_DATA_WAL_DIR", place("wal"))
            .env("INFLUXDB_META_DIR", place("meta"))
            .env("INFLUXDB_HTTP_BIND_ADDRESS", &address)
            .env("INFLUXDB_BIND_ADDRESS", own)
            .env("INFLUXDB_REPORTING_DISABLED", "true")
            .env("INFLUXDB_MONITOR_STORE_ENABLED", "false")
            .current_dir(folder)
            .stdout(Stdio::null())
            .stderr(fs::File::create(place("log")).expect("makes"))
            .spawn()
            .expect("it runs");
        let influx = Influx { child, address };
        for _ in 0..300 {
            if TcpStream::connect(&influx.address).is_ok()
                && influx.ask("GET", "/ping", "").0 == 204
            {
                return influx;
            }
            pause();
        }
        panic!("{}", fs::read_to_string(place("log")).unwrap_or_default());
    }

    /// The status and the body of an answer.
    fn ask(&self, method: &str, path: &str, body: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.address).expect("connects");
        let (host, length) = (&self.address, body.len());
        let head = format!(
            "{method} {path} HTTP/1.0\r\nHost: {host}\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        stream.write_all(head.as_bytes()).expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
        let status = head.split(' ').nth(1).and_then(|n| n.parse().ok()).expect("a status");
        (status, body.to_owned())
    }

    /// The rows of the first series of a query.
    fn query(&self, query: &str) -> Vec<Vec<serde_json::Value>> {
        let encoded: String = query.bytes().map(|b| format!("%{b:02X}")).collect();
        let path = format!("/query?db=weir&epoch=ns&q={encoded}");
        let (status, body) = self.ask("POST", &path, "");
        assert_eq!(status, 200, "{query}: {body}");
        let json: serde_json::Value = serde_json::from_str(body.trim()).expect("JSON");
        assert!(json["results"][0]["error"].is_null(), "{query}: {body}");
        let values = json["results"][0]["series"][0]["values"].as_array().cloned();
        let row = |row: serde_json::Value| row.as_array().cloned().unwrap_or_default();
        values.unwrap_or_default().into_iter().map(row).collect()
    }

    /// Writes lines, all of which it takes.
    fn write(&self, lines: &str) {
        let (status, body) = self.ask("POST", "/write?db=weir&precision=ns", lines);
        assert_eq!(status, 204, "{body}\n{lines}");
    }
}

/// The rows that the program writes.
fn rows(folder: &Path, args: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    let output = command.arg("run").args(args).current_dir(folder).output().expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn influxdb_takes_every_row() {
    let Some(program) = program() else {
        return skip("influxdb_takes_every_row", "there is no influxd (check.sh gets it)");
    };
    let folder = workplace();
    let influx = Influx::start(&program, folder.path());
    influx.query("CREATE DATABASE weir");
    let query = "packets | summarize n = count(), bytes = sum(len), mean = avg(len), \
                 gap = max(tcp.tsval), syn = any(tcp.syn), last = last(ts) by flow every 1s";
    let args = |format| ["-e", query, "-r", "fixtures/mixed.pcap", "-q", "-o", format];
    let (lines, csv) = (rows(folder.path(), &args("influx")), rows(folder.path(), &args("csv")));
    let count = csv.lines().count() - 1;
    assert_eq!((lines.lines().count(), count > 50), (count, true));
    influx.write(&lines);
    let sums = influx.query("SELECT COUNT(n), SUM(n), SUM(bytes) FROM weir");
    let sums: Vec<_> = sums[0][1..].iter().map(serde_json::Value::as_i64).collect();
    assert_eq!(sums, [Some(count as i64), Some(336), Some(78_131)]);
    let one = influx.query(
        "SELECT n, bytes, syn FROM weir WHERE \"ip.src\" = '192.0.2.1' AND dport = '5201' \
         AND sport = '47966'",
    );
    let row = csv.lines().find(|line| line.contains("192.0.2.1,47966,")).expect("a row");
    let cells: Vec<&str> = row.split(',').collect();
    assert_eq!(one.len(), 1, "{one:?}");
    assert_eq!([one[0][1].to_string(), one[0][2].to_string()], [cells[6], cells[7]], "{row}");
    assert_eq!(one[0][0], 1_795_240_273_000_000_000_i64, "{one:?}");

    // Alerts, of which the rule and the state are tags.
    let args = ["syn_flood", "-r", "fixtures/syn_flood.pcap", "-q", "-o", "influx"];
    influx.write(&rows(folder.path(), &args));
    let alerts = influx.query("SELECT \"alert.message\" FROM weir WHERE \"alert.state\" = 'start'");
    assert_eq!(alerts.len(), 1);
}

/// Texts from packets stay the texts that they are.
#[test]
fn influxdb_reads_hostile_texts() {
    let Some(program) = program() else {
        return skip("influxdb_reads_hostile_texts", "there is no influxd (check.sh gets it)");
    };
    let folder = workplace();
    let hosts = ["a b", "c,d=e", "q\"uo'te\"", "back\\slash\\", "#x", "-", "=", ",", "x\\,y"];
    let header = FileHeader::new(LinkType::ETHERNET);
    let mut bytes = header.to_bytes().to_vec();
    for (i, host) in hosts.iter().enumerate() {
        let request = format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n");
        let frame = Frame::ethernet().ipv4([192, 0, 2, 1], [192, 0, 2, 2]).tcp(4000, 80);
        let frame = frame.payload(request.as_bytes()).bytes();
        let ts = 1_700_000_000_000_000_000 + i as i64;
        header.put_record(&mut bytes, ts, frame.len() as u32, &frame);
    }
    fs::write(folder.path().join("hosts.pcap"), bytes).expect("writes");
    let influx = Influx::start(&program, folder.path());
    influx.query("CREATE DATABASE weir");
    let query = "packets | where exists(http.host) \
                 | summarize n = count(), text = first(http.host) by http.host every 1s";
    let args = |format| ["-e", query, "-r", "hosts.pcap", "-q", "-o", format];
    influx.write(&rows(folder.path(), &args("influx")));
    let mut read: Vec<(String, String)> = influx
        .query("SELECT \"http.host\", text FROM weir")
        .iter()
        .map(|row| {
            (row[1].as_str().expect("text").to_owned(), row[2].as_str().expect("text").to_owned())
        })
        .collect();
    let json = rows(folder.path(), &args("json"));
    let text = |line: &str| {
        let row: serde_json::Value = serde_json::from_str(line).expect("JSON");
        row["text"].as_str().expect("text").to_owned()
    };
    let mut expected: Vec<(String, String)> = json
        .lines()
        .map(text)
        .map(|text| match text.strip_suffix('\\') {
            // The one thing that has no form as a tag.
            Some(rest) => (format!("{rest}/"), text.clone()),
            None => (text.clone(), text.clone()),
        })
        .collect();
    read.sort();
    expected.sort();
    assert_eq!(read, expected);
    assert_eq!(read.len(), hosts.len());
}
