//! Capture filters, against `tcpdump -r FILE -w - EXPRESSION` on every shared capture of a link
//! type that we decode: the very frames that tcpdump keeps.

use serde_json::Value;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use weir_capture::bpf::{Filter, FilterError};
use weir_capture::{Options, open, open_bytes};
use weir_packet::source::{FrameBatch, LinkType, Source, SourceError};
use weir_packet::walk;

const EXPRESSIONS: &[&str] = &[
    "",
    "tcp port 80",
    "udp",
    "icmp or icmp6",
    "ip6",
    "arp",
    "vlan and ip",
    "not tcp and not udp",
    "host 192.168.1.1 or host fe80::1",
    "src net 10.0.0.0/8 or dst net 192.168.0.0/16",
    "portrange 1000-5000",
    "tcp[tcpflags] & tcp-syn != 0",
    "len > 100",
    "greater 60 and less 600",
    "ip[6:2] & 0x1fff != 0 or ip6 proto 44",
    "(ip[2:2] - ((ip[0] & 0xf) << 2)) % 7 = 3",
    "udp port 53 and udp[10] & 0x80 != 0",
    "ether broadcast or ether multicast",
    "inbound",
];

/// Captures that tcpdump does not read as they are: it cuts frames longer than the snap length
/// that the file promises, or gives up at interfaces that differ.
const NOT_AS_THEY_ARE: &[&str] = &[
    "aoe-oobr-1.pcap",
    "bgp-bgp_capabilities_print-oobr-2.pcap",
    "icmp-icmp_print-oobr-1.pcap",
    "ieee802.11_meshhdr-oobr.pcap",
    "mobility_opt_asan.pcap",
    "mobility_opt_asan_3.pcap",
    "trunc-hdr.pcap",
    "basic/test004.pcapng",
    "basic/test005.pcapng",
    "basic/test006.pcapng",
    "basic/test008.pcapng",
    "basic/test017.pcapng",
    "advanced/test100.pcapng",
    "advanced/test101.pcapng",
    "advanced/test102.pcapng",
];

type Frames = Vec<(u32, Vec<u8>)>;

#[expect(clippy::print_stderr, reason = "a skipped test says so")]
fn skip(test: &str, why: &str) {
    eprintln!("SKIPPED {test}: {why}");
}

/// The captures, unpacked where tcpdump can't do that itself.
fn captures(scratch: &Path) -> Option<Vec<PathBuf>> {
    let root = std::env::var_os("WEIR_CAPTURES").map(PathBuf::from)?;
    let truth = std::fs::read_to_string(root.join("truth.jsonl")).ok()?;
    let truth = truth.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let wanted = truth.filter(|v| {
        let links = v["linktypes"].as_array().unwrap();
        let file = v["file"].as_str().unwrap();
        links.iter().all(|n| walk::supported(LinkType(n.as_u64().unwrap() as u16)))
            && !NOT_AS_THEY_ARE.iter().any(|f| file.ends_with(f))
    });
    let paths = wanted.map(|v| {
        let path = root.join(v["file"].as_str().unwrap());
        if path.extension().is_none_or(|e| e != "gz") {
            return path;
        }
        let mut bytes = Vec::new();
        let packed = std::fs::File::open(&path).unwrap();
        flate2::read::MultiGzDecoder::new(packed).read_to_end(&mut bytes).unwrap();
        let unpacked = scratch.join(path.file_stem().unwrap());
        std::fs::write(&unpacked, bytes).unwrap();
        unpacked
    });
    Some(paths.collect())
}

fn frames(mut source: Box<dyn Source>) -> (Frames, Option<SourceError>) {
    let (mut batch, mut out) = (FrameBatch::new(), Vec::new());
    let error = loop {
        match source.fill(&mut batch) {
            Ok(true) => assert!(!batch.is_empty()),
            Ok(false) => break None,
            Err(error) => break Some(error),
        }
        out.extend((0..batch.len()).map(|i| (batch.lens()[i], batch.frame(i).to_vec())));
    };
    let account = source.account();
    assert_eq!(account.received, account.filtered + out.len() as u64);
    (out, error)
}

/// The frames that tcpdump keeps, and its messages.
fn tcpdump(path: &Path, expression: &str) -> (Frames, String) {
    let mut run = Command::new("tcpdump");
    let output = run.arg("-r").arg(path).args(["-w", "-", expression]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.stdout.is_empty() {
        return (Vec::new(), said);
    }
    let options = Options { any_link: true, ..Options::default() };
    let (frames, error) = frames(open_bytes("tcpdump", output.stdout, &options).unwrap());
    assert!(error.is_none(), "{error:?}");
    (frames, said)
}

/// Compares on one capture; how many frames were kept.
fn compare(path: &Path, expression: &str, filter: &Filter) -> usize {
    let options = Options { filter: Some(filter.clone()), ..Options::default() };
    let (ours, error) = frames(open(path.to_str().unwrap(), &options).unwrap());
    let (theirs, said) = tcpdump(path, expression);
    if let Some(SourceError::Filter { reason, .. }) = &error {
        let message = reason.rsplit("': ").next().unwrap();
        assert!(said.contains(message), "'{expression}' on {path:?}: {reason}\n{said}");
    }
    let (n, m) = (ours.len(), theirs.len());
    assert!(ours == theirs, "'{expression}' on {path:?}: we keep {n}, tcpdump {m}\n{said}");
    n
}

#[test]
fn filters_keep_what_tcpdump_keeps() {
    const NAME: &str = "filters_keep_what_tcpdump_keeps";
    if Command::new("tcpdump").arg("--version").output().is_err() {
        return skip(NAME, "tcpdump is not installed");
    }
    let scratch = tempfile::tempdir().unwrap();
    let Some(paths) = captures(scratch.path()) else {
        return skip(NAME, "WEIR_CAPTURES names no folder");
    };
    assert!(paths.len() > 200, "{}", paths.len());
    let kept: Vec<usize> = thread::scope(|scope| {
        let run = |expression: &'static str| {
            let paths = &paths;
            let filter = Filter::new(expression).unwrap();
            scope.spawn(move || paths.iter().map(|p| compare(p, expression, &filter)).sum())
        };
        let threads: Vec<_> = EXPRESSIONS.iter().map(|e| run(e)).collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    });
    for (kept, expression) in kept.iter().zip(EXPRESSIONS) {
        assert!(*kept > 0, "'{expression}' keeps nothing anywhere: no test");
    }
}

#[test]
fn a_bad_expression_is_refused_in_libpcaps_words() {
    match Filter::new("tcp prot 80") {
        Err(FilterError::Library(why)) => {
            skip("a_bad_expression_is_refused_in_libpcaps_words", &why);
        }
        Err(error @ FilterError::Expression { .. }) => {
            assert!(error.to_string().starts_with("capture filter 'tcp prot 80': "), "{error}");
            assert!(Filter::new("tcp\0").is_err());
        }
        other => panic!("{other:?}"),
    }
}
