//! Flow records as a source: what exporters send becomes rows, from captures and from sockets.

mod common;
#[path = "common/receiver.rs"]
mod receiver;
#[path = "common/signal.rs"]
mod signal;

use common::{root, skip};
use receiver::Receiver;
use std::collections::BTreeMap;
use std::net::UdpSocket;
use std::process::{Command, Output, Stdio};
use weir_capture::records::{RecordPackets, RecordReport};
use weir_engine::counters::Ledger;
use weir_engine::functions::Functions;
use weir_engine::limits::JUMP_NS;
use weir_engine::rows::Collect;
use weir_engine::run::{Options, run};
use weir_model::TimeRules;

const CAPTURE: &str = "fixtures/flows.pcap";

fn weir(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    command.args(args).current_dir(root()).stdin(Stdio::null()).output().expect("weir runs")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The rows of a query over a capture as lines of CSV, with more arguments.
fn rows(query: &str, capture: &str, more: &[&str]) -> Vec<String> {
    let args = [&["run", "-e", query, "-r", capture, "-o", "csv", "-q"], more].concat();
    let output = weir(&args);
    assert!(output.status.success(), "{query}: {}", said(&output));
    lines(&String::from_utf8(output.stdout).expect("text"))
}

fn lines(text: &str) -> Vec<String> {
    text.lines().map(str::to_owned).collect()
}

#[test]
fn records_are_counted_and_summed() {
    let query = "flows | summarize records = count(), packets = sum(packets), bytes = sum(bytes), \
                 rate = max(sampling), first = min(start), last = max(end) by export";
    insta::assert_snapshot!(rows(query, CAPTURE, &[]).join("\n"));
}

/// One run exports what another collects: with either protocol the same flows come.
#[test]
fn what_is_exported_is_collected() {
    let meter = "packets | where ip | summarize first = min(ts), end = max(ts), \
                 packets = count(), bytes = sum(ip.len), flags = bit_or(tcp.flags), \
                 end_reason = end_reason() by flow session 15s";
    let flows = |scheme: &str| {
        let query = "flows | project start, end, ip.src, sport, ip.dst, dport, \
                     ip.proto, packets, bytes, end_reason";
        let receiver = Receiver::start(query, "netflow", &["--lateness", "1d"]);
        let to = format!("{scheme}://{}", receiver.to());
        let capture = "fixtures/sessions.pcap";
        let output = weir(&["run", "-e", meter, "-r", capture, "--export", &to]);
        assert!(output.status.success(), "{}", said(&output));
        let mut rows = receiver.end().0;
        rows.sort();
        rows
    };
    let (ipfix, netflow9) = (flows("ipfix"), flows("netflow9"));
    assert_eq!(ipfix.len(), 8, "a header and the flows: {ipfix:?}");
    assert_eq!(ipfix, netflow9);
}

/// Windows, joins, top, names, formats, alerts: the stages and ends of the language.
#[test]
fn the_language_works_on_records() {
    for (query, expected) in [
        (
            "flows | where tcp and dport == 443 | summarize n = count(), b = sum(bytes) every 30s",
            "ts,n,b\n2026-11-21T05:50:00Z,9,36900\n2026-11-21T05:50:30Z,8,35300",
        ),
        (
            "flows | where export == \"netflow9\" | extend whole = bytes * sampling \
             | summarize b = sum(whole) by dport | top 1 by b",
            "dport,b\n443,2550000",
        ),
        (
            "let all = flows | where dport == 53\n\
             let a = all | where export == \"ipfix\" | summarize n = count() by ip.src, dport\n\
             let b = all | where export == \"netflow9\" | summarize m = count() by ip.src, dport\n\
             a | join b by ip.src, dport",
            "ip.src,dport,n,m\n192.0.2.1,53,5,6",
        ),
        (
            "flows | where icmp | summarize n = count() by icmp.type, icmp.code, ip.dst",
            "icmp.type,icmp.code,ip.dst,n\n8,0,198.51.100.2,11",
        ),
        (
            "flows | where export == \"sflow\" and tcp | summarize n = count() by conn",
            "conn.a_ip,conn.a_port,conn.b_ip,conn.b_port,ip.proto,n\n\
             192.0.2.1,40001,198.51.100.2,443,6,1",
        ),
        (
            "flows | where ipv6 | summarize n = count() by exporter, domain, end_reason, ip.dst",
            "exporter,domain,end_reason,ip.dst,n\n192.0.2.254,1,3,2001:db8:2::2,5",
        ),
    ] {
        let rows = rows(query, CAPTURE, &["--lateness", "10s"]).join("\n");
        assert!(rows.starts_with(expected), "{query}\n{rows}");
        let explained = weir(&["explain", "-e", query]);
        let text = String::from_utf8_lossy(&explained.stdout).into_owned();
        assert!(text.contains("flow records for pipeline"), "{text}{}", said(&explained));
    }
}

#[test]
fn any_number_of_workers_gives_the_same_rows() {
    for query in [
        "flows",
        "flows | summarize n = count(), b = sum(bytes), last(ip.dst) by flow every 10s",
        "flows | scan n = 0 by ip.src => n + 1",
        "flows | summarize b = sum(bytes) by conn session 15s",
        "flows | top 3 by bytes",
    ] {
        let one = rows(query, CAPTURE, &[]);
        assert!(one.len() > 2, "{query}");
        for workers in ["2", "4"] {
            assert_eq!(rows(query, CAPTURE, &["-j", workers]), one, "{query}");
        }
    }
}

/// Random cuts of windows and lateness: the rows and counts of the naive model, by any number of
/// workers.
#[test]
fn rows_are_those_of_the_naive_model() {
    let capture = root().join(CAPTURE);
    let capture = capture.to_str().expect("a plain path");
    let source = |lateness_ns: i64| {
        let packets = weir_capture::open(capture, &weir_capture::Options::default());
        RecordPackets::new(packets.expect("a capture"), lateness_ns, &RecordReport::default())
    };
    let rules = TimeRules { lateness_ns: 0, jump_ns: JUMP_NS };
    let (functions, mut late) = (Functions::default(), 0);
    for window in ["1s", "7s", "20s over 30s", "1h"] {
        let window = match window.split_once(" over ") {
            Some((every, over)) => format!("every {every} over {over}"),
            None => format!("every {window}"),
        };
        let text = format!(
            "flows | where exists(end) | summarize n = count(), b = sum(bytes), p = max(packets), \
             f = first(ip.src), s = distinct(sampling) by conn, export {window}"
        );
        let program = common::program(&text, &functions);
        for lateness_ns in [0, 5_000_000_000, 60_000_000_000] {
            let expected = weir_model::run(&program, &functions, &mut source(lateness_ns), &rules);
            late += expected.ledger.late;
            // Without any lateness all records come after a window of a second.
            assert!(!expected.rows.is_empty() || lateness_ns == 0, "{text}");
            for workers in [1, 2, 4] {
                let (mut sink, mut source) = (Collect::default(), source(lateness_ns));
                let options = Options { workers, lateness_ns: 0, ..Options::default() };
                let outcome =
                    run(&program, &functions, &mut source, &mut sink, &options, &mut |_| {});
                assert!(outcome.error.is_none());
                assert_eq!(sink.rows, expected.rows, "{text}, {workers} workers");
                let counts = |l: &Ledger| (l.received, l.processed, l.late, l.lost);
                assert_eq!(counts(&outcome.ledger), counts(&expected.ledger));
            }
        }
    }
    assert!(late > 0, "some records came after their window");
}

/// The ledger tells that an IPFIX message is missing, and that records came after their window.
#[test]
fn losses_are_counted_by_exporter() {
    let query = "flows | summarize n = count() every 1s";
    let output = weir(&["run", "-e", query, "-r", CAPTURE, "-o", "csv", "--lateness", "0s"]);
    let text = said(&output);
    for line in [
        "received   56 flow records",
        "lost       4 data records on the way from exporters",
        "datagrams  30; beside flows 2 records of options, 12 samples of counters",
        "exporter   192.0.2.254/1 ipfix: 20 records, 4 data records lost",
        "exporter   192.0.2.253/7 netflow9: 12 records\n",
        "exporter   192.0.2.252/1 netflow5: 12 records\n",
        "exporter   192.0.2.251 sflow: 12 records\n",
    ] {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
    assert!(text.lines().any(|line| line.starts_with("late ")), "{text}");
    let quiet = weir(&["run", "-e", query, "-r", CAPTURE, "-q", "--fail-on-loss", "-o", "csv"]);
    assert_eq!(quiet.status.code(), Some(1));
    assert!(said(&quiet).starts_with("lost       4 data records on the way"), "{}", said(&quiet));
}

/// tshark and Weir read the same of each record of a capture.
#[test]
fn tshark_reads_the_same() {
    let fields = ["cflow.octets", "cflow.packets", "cflow.srcport", "cflow.dstport"];
    let args = ["-r", CAPTURE, "-d", "udp.port==9995,cflow", "-T", "fields", "-E", "separator=;"];
    let names = fields.iter().flat_map(|field| ["-e", field]);
    let args: Vec<&str> = args.into_iter().chain(["-2"]).chain(names).collect();
    let Ok(output) = Command::new("tshark").args(args).current_dir(root()).output() else {
        return skip("flow_records::tshark", "there is no tshark");
    };
    let text = String::from_utf8(output.stdout).expect("text");
    let mut theirs: BTreeMap<String, u32> = BTreeMap::new();
    for line in text.lines() {
        let columns: Vec<Vec<&str>> = line.split(';').map(|c| c.split(',').collect()).collect();
        for (i, octets) in columns[0].iter().enumerate().filter(|(_, octets)| !octets.is_empty()) {
            // Ports of ICMP are none here: its type and code stand in their place.
            let [sport, dport] = [columns[2][i], columns[3][i]];
            let ports = if sport == "0" { ",".to_owned() } else { format!("{sport},{dport}") };
            *theirs.entry(format!("{octets},{},{ports}", columns[1][i])).or_default() += 1;
        }
    }
    let query = "flows | where export != \"sflow\" | project bytes, packets, sport, dport";
    let mut ours: BTreeMap<String, u32> = BTreeMap::new();
    for row in rows(query, CAPTURE, &[]).into_iter().skip(1) {
        *ours.entry(row).or_default() += 1;
    }
    assert!(theirs.len() > 10, "{theirs:?}");
    assert_eq!(ours, theirs);
}

#[test]
fn tshark_reads_the_same_samples() {
    let fields = ["-e", "sflow_245.header.frame_length", "-e", "udp.dstport", "-e", "tcp.srcport"];
    let args = ["-r", CAPTURE, "-Y", "sflow", "-T", "fields", "-E", "separator=;"];
    let args: Vec<&str> = args.into_iter().chain(fields).collect();
    let Ok(output) = Command::new("tshark").args(args).current_dir(root()).output() else {
        return skip("flow_records::tshark", "there is no tshark");
    };
    let theirs: Vec<String> = String::from_utf8(output.stdout)
        .expect("text")
        .lines()
        .map(|line| {
            let cells: Vec<&str> = line.split(';').collect();
            // The first port is that of the datagram itself.
            let dport = cells[1].split(',').nth(1).unwrap_or("");
            format!("{},{dport},{}", cells[0], cells[2])
        })
        .collect();
    let query = "flows | where export == \"sflow\" \
                 | extend udp_port = if(udp, dport, 0), tcp_port = if(tcp, sport, 0) \
                 | project bytes, udp_port, tcp_port";
    let ours: Vec<String> = rows(query, CAPTURE, &[])
        .into_iter()
        .skip(1)
        .map(|row| {
            row.split(',').map(|c| if c == "0" { "" } else { c }).collect::<Vec<_>>().join(",")
        })
        .collect();
    assert_eq!((ours.len(), &ours), (12, &theirs));
}

/// From packets to flow records, over a socket, to rows: those of the query by itself.
#[test]
fn what_weir_exports_weir_receives() {
    let capture = "fixtures/sessions.pcap";
    let query =
        std::fs::read_to_string(root().join("queries/ipfix_flow_meter.weir")).expect("text");
    let mut direct = rows(&query, capture, &[]);
    assert_eq!(
        direct.remove(0),
        "ts,ip.src,sport,ip.dst,dport,ip.proto,end,packets,bytes,flags,end_reason"
    );
    for workers in ["1", "2"] {
        let receiver = Receiver::start(
            "flows | project start, flow, end, packets, bytes, tcp.flags, end_reason",
            "ipfix",
            &["-j", workers],
        );
        let out = weir(&["run", "ipfix", "-r", capture, "--export", &receiver.to()]);
        assert!(out.status.success(), "{}", said(&out));
        let (mut received, text) = receiver.end();
        received.remove(0);
        direct.sort();
        received.sort();
        assert_eq!(received, direct, "{text}");
        assert!(!text.contains("lost "), "{text}");
    }
}

/// The records that softflowd exports of a capture sum up to the packets in it, by each protocol.
#[test]
fn softflowd_exports_are_read() {
    let capture = "fixtures/mixed.pcap";
    let is = "where (tcp or udp) and ipv4 and not ip.frag";
    let direct =
        format!("packets | {is} | summarize packets = count(), bytes = sum(ip.len) by flow");
    let mut direct = rows(&direct, capture, &[]);
    direct.sort();
    let query = "flows | where (tcp or udp) and ipv4 \
                 | summarize packets = sum(packets), bytes = sum(bytes) by flow";
    let folder = tempfile::tempdir().expect("a folder");
    for (version, export) in [("5", "netflow5"), ("9", "netflow9"), ("10", "ipfix")] {
        let receiver = Receiver::start(query, "netflow", &[]);
        let mut command = Command::new("softflowd");
        // With a socket for control it may wait there for somebody.
        command.args(["-d", "-v", version, "-n", &receiver.to(), "-r", capture, "-c", "none"]);
        command.arg("-p").arg(folder.path().join("pid"));
        command.arg("ip and not (ip[6:2] & 0x3fff != 0)").current_dir(root());
        let Ok(output) = command.output() else {
            return skip("flow_records::softflowd", "there is no softflowd (apt-get install)");
        };
        assert!(output.status.success(), "{}", said(&output));
        let (mut received, text) = receiver.end();
        received.sort();
        assert_eq!(received, direct, "version {version}: {text}");
        assert!(text.contains(export) && !text.contains("lost "), "{text}");
    }
}

#[test]
fn hostile_datagrams_do_not_end_a_run() {
    let receiver = Receiver::start("flows | summarize n = count()", "sflow", &[]);
    let sender = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let send = |payload: &[u8]| drop(sender.send_to(payload, receiver.to()));
    send(&[]);
    send(&[0; 65_507]);
    send(&[255; 1400]);
    for version in [[0, 5], [0, 9], [0, 10], [0, 0]] {
        send(&version);
        send(&[&version[..], &[255; 1400]].concat());
        send(&[&version[..], &[0; 1400]].concat());
        send(&[&version[..], &[0, 5], &[255; 64]].concat());
    }
    let (rows, text) = receiver.end();
    assert!(text.contains("malformed  parts of datagrams: unknown version"), "{text}");
    assert!(text.contains("datagrams  19"), "{text}");
    // The datagram of NetFlow 5 that says to have 65,535 flows has room for so many.
    assert_eq!(rows, ["n", "28"]);
}

#[test]
fn wrong_uses_are_refused_before_the_run() {
    let refused = |args: &[&str], reason: &str| {
        let out = weir(&[&["run"], args].concat());
        assert_eq!((out.status.code(), &out.stdout[..]), (Some(2), &b""[..]), "{}", said(&out));
        assert!(said(&out).contains(reason), "{args:?}: {}", said(&out));
    };
    let at = "ipfix://127.0.0.1:0";
    refused(&["-e", "packets", "-i", at], "begin it with `flows`");
    refused(&["-e", "flows", "-i", at, "-i", "lo"], "one kind of source");
    refused(&["-e", "flows", "-i", "ipfix://:99999"], "ipfix://ADDRESS:PORT");
    refused(&["-e", "flows", "-i", at, "--capture", "pcap"], "--capture only applies to packets");
    refused(&["-e", "flows", "-i", at, "tcp"], "a capture filter only applies to packets");
    refused(&["-e", "flows", "-e", "packets", "-r", CAPTURE], "start a run for each");
    refused(&["-e", "flows", "-i", at, "--ring", "4m"], "--ring keeps packets");
    refused(&["-e", "flows", "-r", CAPTURE, "--ring", "4m"], "--ring keeps packets");
    let out = weir(&["run", "-e", "flows", "-i", "ipfix://192.0.2.1:4739"]);
    assert_eq!(out.status.code(), Some(1));
    assert!(said(&out).contains("ipfix://192.0.2.1:4739: "), "{}", said(&out));
}

#[test]
fn fields_of_records_are_listed() {
    let out = weir(&["fields", "--flows", "-o", "csv"]);
    let text = String::from_utf8(out.stdout).expect("text");
    for name in ["bytes,int,", "sampling,int,", "exporter,ip,", "flow,key,", "conn,key,"] {
        assert!(text.lines().any(|line| line.starts_with(name)), "{name} is not in\n{text}");
    }
    assert!(!text.lines().any(|line| line.starts_with("len,") || line.starts_with("link,")));
    let out = weir(&["fields", "--flows", "sampling", "-o", "csv"]);
    assert!(out.status.success() && String::from_utf8_lossy(&out.stdout).contains("sampling"));
}
