//! Flow records of IPFIX: programs of others read from files and datagrams what the query says.

mod common;
#[path = "common/signal.rs"]
mod signal;

use common::{root, skip};
use signal::signal;
use std::collections::BTreeMap;
use std::net::UdpSocket;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;
use tempfile::TempDir;

/// A flow: source, its port, destination, its port, protocol; and its packets and bytes.
type Flows = BTreeMap<[String; 5], (u64, u64)>;

fn weir(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    command.args(args).current_dir(root()).stdin(Stdio::null()).output().expect("weir runs")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Adds a record of a flow to the others of it.
fn add(flows: &mut Flows, cells: &[&str], [packets, bytes]: [&str; 2]) {
    let key = std::array::from_fn(|i| cells[i].to_owned());
    let number = |text: &str| text.parse::<u64>().expect("a number");
    let sums = flows.entry(key).or_default();
    *sums = (sums.0 + number(packets), sums.1 + number(bytes));
}

/// The flows of a capture as CSV has them.
fn expected(capture: &str) -> Flows {
    let output = weir(&["run", "ipfix", "-r", capture, "-o", "csv", "-q"]);
    let text = String::from_utf8(output.stdout).expect("text");
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next().expect("a header").split(',').collect();
    let at = |name| names.iter().position(|n| *n == name).expect("a column");
    let key = ["ip.src", "sport", "ip.dst", "dport", "ip.proto"].map(at);
    let mut flows = Flows::new();
    for line in lines {
        let cells: Vec<&str> = line.split(',').collect();
        add(&mut flows, &key.map(|c| cells[c]), [cells[at("packets")], cells[at("bytes")]]);
    }
    assert!(flows.len() > 1);
    flows
}

fn tshark(args: &[&str]) -> Option<String> {
    let output = Command::new("tshark").args(args).output().ok()?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).expect("text"))
}

#[test]
fn tshark_reads_the_records_of_a_file() {
    let folder = tempfile::tempdir().expect("a folder");
    for capture in ["fixtures/sessions.pcap", "fixtures/mixed.pcap"] {
        let out = weir(&["run", "ipfix", "-r", capture, "-o", "ipfix", "-q"]);
        assert!(out.status.success(), "{}", said(&out));
        let path = folder.path().join("flows.ipfix");
        std::fs::write(&path, &out.stdout).expect("writes");
        let fields = ["srcaddr", "srcaddrv6", "srcport", "dstaddr", "dstaddrv6", "dstport"];
        let more = ["protocol", "packets", "octets", "flow_end_reason", "abstimestart"];
        let path = path.to_str().expect("a plain path");
        let Some(all) = tshark(&["-r", path, "-T", "pdml"]) else {
            return skip("ipfix::tshark", "there is no tshark");
        };
        assert!(!all.contains("Malformed") && !all.contains("No template found"), "{all}");
        let mut flows = Flows::new();
        for record in records(&all) {
            let value = |name: &str| record.get(name).map_or("", String::as_str);
            assert!(!value(more[3]).is_empty(), "{record:?}");
            let either = |four, six| match value(four) {
                "" => value(six),
                four => four,
            };
            let key = [
                either(fields[0], fields[1]),
                value(fields[2]),
                either(fields[3], fields[4]),
                value(fields[5]),
                value(more[0]),
            ];
            add(&mut flows, &key, [value(more[1]), value(more[2])]);
        }
        assert_eq!(flows, expected(capture), "{capture}");
    }
}

/// The fields of each flow record in what tshark says, by their names without `cflow.`.
fn records(pdml: &str) -> Vec<BTreeMap<String, String>> {
    let mut records: Vec<BTreeMap<String, String>> = Vec::new();
    let attribute = |line: &str, name: &str| {
        let start = line.find(&format!(" {name}=\""))? + name.len() + 3;
        line[start..].split('"').next().map(str::to_owned)
    };
    for line in pdml.lines().map(str::trim_start).filter(|line| line.starts_with("<field ")) {
        let shown = attribute(line, "show").unwrap_or_default();
        match attribute(line, "name").as_deref() {
            // The line above the fields of a record.
            Some("") if shown.starts_with("Flow ") => records.push(BTreeMap::new()),
            Some(name) => {
                if let (Some(record), Some(name)) =
                    (records.last_mut(), name.strip_prefix("cflow."))
                {
                    record.entry(name.to_owned()).or_insert(shown);
                }
            }
            None => {}
        }
    }
    records.retain(|record| record.contains_key("protocol"));
    records
}

/// A collector of nfdump, which is ended when it is dropped.
struct Collector {
    child: Child,
    folder: TempDir,
    port: u16,
}

impl Drop for Collector {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Collector {
    fn start() -> Option<Collector> {
        let folder = tempfile::tempdir().expect("a folder");
        // A port that was free a moment ago.
        let port = UdpSocket::bind("127.0.0.1:0").expect("binds").local_addr().expect("a port");
        let port = port.port();
        let mut command = Command::new("nfcapd");
        command.args(["-4", "-b", "127.0.0.1", "-p", &port.to_string(), "-w"]);
        command.arg(folder.path()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().ok()?;
        Some(Collector { child, folder, port })
    }

    /// Ends it; the flows that it has kept.
    fn end(mut self) -> Flows {
        signal(self.child.id(), "-TERM");
        self.child.wait().expect("it ends");
        let format = "fmt:%sa,%sp,%da,%dp,%pr,%pkt,%byt";
        let mut command = Command::new("nfdump");
        command.args(["-q", "-N", "-6", "-R"]).arg(self.folder.path()).args(["-o", format]);
        let output = command.output().expect("nfdump runs");
        let mut flows = Flows::new();
        for line in String::from_utf8_lossy(&output.stdout).lines() {
            let cells: Vec<&str> = line.split(',').map(str::trim).collect();
            if cells.len() == 7 {
                let protocol = match cells[4] {
                    "TCP" => "6",
                    "UDP" => "17",
                    other => other,
                };
                let key = [cells[0], cells[1], cells[2], cells[3], protocol];
                add(&mut flows, &key, [cells[5], cells[6]]);
            }
        }
        flows
    }
}

/// Waits until the collector listens: the kernel lists its socket.
fn listens(port: u16) -> bool {
    let end = format!(":{port:04X}");
    for _ in 0..400 {
        let sockets = std::fs::read_to_string("/proc/net/udp").expect("sockets");
        let local = |line: &str| line.split_whitespace().nth(1).map(str::to_owned);
        if sockets.lines().filter_map(local).any(|address| address.ends_with(&end)) {
            return true;
        }
        pause();
    }
    false
}

#[expect(clippy::disallowed_methods, reason = "a collector says nothing when it is ready")]
fn pause() {
    std::thread::sleep(Duration::from_millis(50));
}

#[test]
fn nfcapd_collects_what_is_exported() {
    for scheme in ["", "ipfix://", "netflow9://"] {
        nfcapd_collects(scheme);
    }
}

fn nfcapd_collects(scheme: &str) {
    let Some(collector) = Collector::start() else {
        return skip("ipfix::nfcapd", "there is no nfcapd (Debian: apt-get install nfdump)");
    };
    assert!(listens(collector.port), "the collector starts");
    let capture = "fixtures/sessions.pcap";
    let query = "packets | where tcp or udp | summarize end = max(ts), packets = count(), \
                 bytes = sum(ip.len), flags = bit_or(tcp.flags), end_reason = end_reason() \
                 by flow session 15s active 60s";
    let to = format!("{scheme}127.0.0.1:{}", collector.port);
    let out = weir(&["run", "-e", query, "-r", capture, "--export", &to]);
    assert!(out.status.success() && out.stdout.is_empty(), "{}", said(&out));
    assert!(!said(&out).contains("refused"), "{}", said(&out));
    // Datagrams on this host have arrived when they are sent; the collector reads them in turn.
    let mut flows = expected(capture);
    flows.retain(|key, _| key[4] == "6" || key[4] == "17");
    for _ in 0..100 {
        pause();
        if read_all(collector.port) {
            break;
        }
    }
    assert_eq!(collector.end(), flows, "{scheme}");
}

/// Whether nothing waits in the collector's socket.
fn read_all(port: u16) -> bool {
    let end = format!(":{port:04X}");
    let sockets = std::fs::read_to_string("/proc/net/udp").expect("sockets");
    let mut lines = sockets.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    lines.any(|cells| cells[1].ends_with(&end) && cells[4].ends_with(":00000000"))
}

#[test]
fn a_collector_that_is_away_costs_rows_and_not_the_run() {
    // A port where nobody listens.
    let port = UdpSocket::bind("127.0.0.1:0").expect("binds").local_addr().expect("a port").port();
    let to = format!("127.0.0.1:{port}");
    let args = ["run", "ipfix", "-r", "fixtures/mixed.pcap", "--export", &to];
    let out = weir(&args);
    assert!(out.status.success(), "{}", said(&out));
    let ledger = said(&out);
    assert!(ledger.lines().any(|line| line.starts_with("refused")), "{ledger}");
    let out = weir(&[&args[..], &["--fail-on-loss"]].concat());
    assert_eq!(out.status.code(), Some(1), "{}", said(&out));
}

#[test]
fn what_ipfix_cannot_say_is_refused_before_the_run() {
    let refused = |args: &[&str], reason: &str| {
        let out = weir(&[&["run", "-r", "fixtures/web.pcap"], args].concat());
        assert_eq!((out.status.code(), &out.stdout[..]), (Some(2), &b""[..]), "{}", said(&out));
        assert!(said(&out).contains(reason), "{}", said(&out));
    };
    let counts = "packets | summarize n = count() by ip.src";
    refused(&["-e", counts, "-o", "ipfix"], "rename octetDeltaCount = n");
    refused(&["-e", counts, "--export", "127.0.0.1:4739"], "`project-away n`");
    refused(&["flows", "--export", "127.0.0.1:4739"], "IPFIX holds the rows of one");
    refused(&["-e", counts, "--export", "127.0.0.1:9", "-o", "csv"], "--export");
    let netflow9 = "netflow9://127.0.0.1:9";
    refused(&["-e", counts, "--export", netflow9], "NetFlow 9 has no information element");
    let text = "packets | summarize packets = count() by interface";
    refused(&["-e", text, "--export", netflow9], "`project-away interface`");
    refused(&["ipfix", "--export", "sflow://127.0.0.1:9"], "expected ipfix:// or netflow9://");
    let out = weir(&["run", "ipfix", "-r", "fixtures/web.pcap", "--export", "nowhere"]);
    assert_eq!(out.status.code(), Some(1));
    assert!(said(&out).contains("--export nowhere"), "{}", said(&out));
}
