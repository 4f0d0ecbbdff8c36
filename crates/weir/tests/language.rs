//! Values at the edges of the language, by the binary: right values are worked out by hand.

use std::path::Path;
use std::process::{Command, Output};
use weir_packet::craft::Frame;
use weir_packet::pcap::FileHeader;
use weir_packet::source::LinkType;

/// 2023-11-14 22:13:20 UTC.
const START: i64 = 1_700_000_000_000_000_000;

/// A capture of these frames, one each quarter of a second.
fn capture(frames: &[Vec<u8>]) -> Vec<u8> {
    let header = FileHeader::new(LinkType::ETHERNET);
    let mut out = header.to_bytes().to_vec();
    for (i, frame) in frames.iter().enumerate() {
        header.put_record(&mut out, START + i as i64 * 250_000_000, frame.len() as u32, frame);
    }
    out
}

/// Nine segments to ports at the edges of their width, from three hosts.
fn edge() -> Vec<u8> {
    let ports = [0u16, 1, 2, 3, 255, 256, 65_519, 65_520, 65_535];
    let frame = |(i, port): (usize, &u16)| {
        Frame::ethernet()
            .ipv4([10, 0, 0, 1 + (i % 3) as u8], [10, 0, 0, 9])
            .tcp(1000 + i as u16, *port)
            .payload(&vec![b'x'; i])
            .bytes()
    };
    capture(&ports.iter().enumerate().map(frame).collect::<Vec<_>>())
}

fn weir(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    command.current_dir(folder).args(args).env_remove("NO_COLOR").env_remove("COLUMNS");
    command.output().expect("the binary runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("text")
}

/// The rows of a query over a capture as CSV, without the header, by one and by two workers; and
/// all that was said.
#[track_caller]
fn run(capture: &[u8], query: &str) -> (String, String) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(folder.path().join("c.pcap"), capture).expect("it is written");
    let answer = |workers: &str| {
        let args = ["run", "-e", query, "-r", "c.pcap", "-o", "csv", "-j", workers];
        let output = weir(folder.path(), &args);
        let said = text(&output.stderr);
        assert!(output.status.success(), "{query}: {said}");
        let rows = text(&output.stdout);
        let (_header, rows) = rows.split_once('\n').expect("a header");
        (rows.to_owned(), said)
    };
    let (one, two) = (answer("1"), answer("2"));
    assert_eq!(one.0, two.0, "{query}");
    one
}

#[track_caller]
fn check(capture: &[u8], query: &str, rows: &str) {
    assert_eq!(run(capture, query).0, rows, "{query}");
}

/// IPv4 is held in the form of IPv6, which packets may have as well.
#[test]
fn an_ipv6_address_that_holds_one_of_ipv4_is_another_host() {
    use std::net::{Ipv4Addr, Ipv6Addr};
    let (four, six) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 1).to_ipv6_mapped());
    let eth = Frame::ethernet;
    let capture = capture(&[
        eth().ipv6(six, Ipv6Addr::LOCALHOST).udp(1, 2).bytes(),
        eth().ipv4(four, [10, 0, 0, 2]).udp(1, 2).bytes(),
        eth().ipv6(Ipv6Addr::LOCALHOST, six).udp(2, 1).bytes(),
    ]);
    let check = |query: &str, rows: &str| assert_eq!(run(&capture, query).0, rows, "{query}");
    check("packets | summarize n = count() by ip.src", "::1,1\n::ffff:10.0.0.1,1\n10.0.0.1,1\n");
    check(
        "packets | summarize n = count() by flow",
        "::1,2,::ffff:10.0.0.1,1,17,1\n::ffff:10.0.0.1,1,::1,2,17,1\n\
         10.0.0.1,1,10.0.0.2,2,17,1\n",
    );
    check("packets | summarize n = count() by hosts | project n", "2\n1\n");
    check("packets | summarize n = count() by conn | project n", "2\n1\n");
    for (condition, n) in [
        ("ip.src == 10.0.0.1", 1),
        ("ip.src == ::ffff:10.0.0.1", 1),
        ("ip.src in 10.0.0.0/8", 1),
        ("ip.src in ::/0", 2),
        ("ip.src in ::/64", 2),
        ("ip.src in ::ffff:0:0/96", 1),
        ("ip.src in {::ffff:10.0.0.0/104, 10.0.0.2}", 1),
        ("is_private(ip.src)", 1),
        ("is_ipv4(ip.src)", 1),
        ("is_ipv6(ip.src)", 2),
        ("ip(string(ip.src)) == ip.src", 3),
        ("prefix(ip.src, 8, 104) == ::ffff:10.0.0.0", 1),
    ] {
        check(&format!("packets | where {condition} | summarize n = count()"), &format!("{n}\n"));
    }
}

#[test]
fn zero_has_no_sign() {
    // The first is -0.0 to a machine, the second is not.
    let both = "packets | extend d = float(dport - dport) * -0.5, z = float(dport - dport)";
    let check = |stages: &str, rows: &str| check(&edge(), &format!("{both} | {stages}"), rows);
    check("summarize n = count(), zeros = count(d == 0.0), less = count(d < 0.0)", "9,9,0\n");
    check("summarize n = count(z == d and d >= z and not (d < z)) by d", "0.0,9\n");
    check("distinct d | project d", "0.0\n");
    check("extend e = if(dport > 2, d, z) | distinct e | project e", "0.0\n");
    check(
        "extend e = if(dport > 2, d, z) | summarize n = distinct(e), a = approx_distinct(e)",
        "1,1\n",
    );
    check(
        "summarize n = count(d in {0.0}), m = count(d in 0.0..1.0), s = count(z in {-0.0})",
        "9,9,9\n",
    );
    check(
        "summarize least = min(d), most = max(z), m = median(d), v = avg(d), s = sum(d)",
        "0.0,0.0,0.0,0.0,0.0\n",
    );
    check(
        "limit 1 | project t = string(d), n = string(-d), s = sqrt(d), i = int(d), p = pow(d, 3.0)",
        "0.0,0.0,0.0,0,0.0\n",
    );
    check("summarize first = min_by(dport, d), last = max_by(dport, d)", "0,0\n");
    check("top 1 by d | project d", "0.0\n");
    check(
        "limit 1 | project q = (dport - 0) / -3.0, f = float(\"-0.0\"), c = -0.0, k = 0.0 * -1",
        "0.0,0.0,0.0,0.0\n",
    );
    check("limit 1 | project small = -1e-200 * (1e-200 + d), t = (z, 1) == (d, 1)", "0.0,true\n");
    let join = "let a = packets | extend k = float(dport - dport) * -0.5 | summarize n = count() by k\n\
                let b = packets | extend k = float(dport - dport) | summarize m = count() by k\n\
                a | join b by k | project k, n, m";
    self::check(&edge(), join, "0.0,9,9\n");
}

#[test]
fn shifts_lose_no_bits() {
    // The lengths of the frames are 54 to 62.
    let (rows, said) =
        run(&edge(), "packets | where len < 56 | project a = len << 60, b = len >> 60");
    assert_eq!(rows, ",0\n,0\n");
    assert!(said.contains("2 left absent"), "{said}");
    for (by, rows) in [
        ("0", "1,1"),
        ("1", "2,0"),
        ("62", "4611686018427387904,0"),
        ("63", ",0"),
        ("64", ","),
        ("0 - 1", ","),
    ] {
        // By a constant, and by a column.
        let one = format!("packets | limit 1 | project a = 1 << ({by}), b = 1 >> ({by})");
        check(&edge(), &one, &format!("{rows}\n"));
        let column = format!(
            "packets | limit 1 | extend n = sport - 1000 + ({by}), one = sport - 999 \
             | project a = one << n, b = one >> n"
        );
        check(&edge(), &column, &format!("{rows}\n"));
    }
    check(
        &edge(),
        "packets | limit 1 | project a = -1 << 63 < 0, b = 0 << 63, c = -2 << 63",
        "true,0,\n",
    );
}

#[test]
fn a_folder_hides_no_query_of_the_library() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(folder.path().join("c.pcap"), edge()).expect("it is written");
    let mut said = Vec::new();
    for with_folders in [false, true] {
        if with_folders {
            for name in ["flows", "detectors", "detectors/floods"] {
                std::fs::create_dir(folder.path().join(name)).expect("it is made");
            }
        }
        for args in [
            &["flows", "-r", "c.pcap"][..],
            &["run", "flows", "-r", "c.pcap"],
            &["explain", "flows"],
            &["check", "flows", "detectors", "detectors/floods"],
            &["run", "detectors/", "-r", "c.pcap"],
        ] {
            let output = weir(folder.path(), args);
            assert!(output.status.success(), "{args:?}: {}", text(&output.stderr));
            said.push((text(&output.stdout), text(&output.stderr)));
        }
    }
    assert_eq!(said[..5], said[5..]);
    // A folder with queries is still one.
    std::fs::write(folder.path().join("flows/a.weir"), "packets | limit 1\n")
        .expect("it is written");
    let output = weir(folder.path(), &["run", "flows/", "-r", "c.pcap"]);
    assert_eq!(text(&output.stdout).lines().count(), 1);
}

#[test]
fn bytes_that_are_no_text_are_replaced() {
    let texts = r#"packets | limit 1 | project t = text(b"a\xff\xfeb"), n = str_len(text(b"\xff")),
        same = text(b"\xff") == text(b"\xfe"), x = hex(bytes(text(b"\xff"))), y = hex(b"\xff")"#;
    check(&edge(), texts, "a\u{fffd}\u{fffd}b,3,true,efbfbd,ff\n");
}

#[test]
fn sequence_numbers_start_again() {
    let numbers = "packets | limit 1 | project a = seq_add(4294967295, 1), b = seq_add(0, 0 - 1),
        c = seq_add(sport + 4294966295, 2), d = seq_diff(seq_add(4294967290, 10), 4294967290)";
    check(&edge(), numbers, "0,4294967295,1,10\n");
    let (_, said) = run(&edge(), "packets | limit 1 | project a = tcp.seq + 1");
    assert!(said.contains("seq_add(tcp.seq, 1)"), "{said}");
}

#[test]
fn ipv4_is_in_no_network_of_ipv6() {
    let to = "packets | limit 1 | project";
    let sets = "a = ip.src in ::/0, b = ip.src in {::/0, 2001:db8::/32}, c = ip.src in ::/80, \
                d = ip.src in 0.0.0.0/0, e = ip.src in {::/0, 10.0.0.1}, f = ip.src not in ::/1";
    check(&edge(), &format!("{to} {sets}"), "false,false,false,true,true,true\n");
    let patterns = "v = match ip.src { ::/0 => 6, 0.0.0.0/0 => 4 }";
    check(&edge(), &format!("{to} {patterns}"), "4\n");
    let six = Frame::ethernet().ipv6([0x20; 16], [0xfe; 16]).udp(1, 2).bytes();
    check(&capture(&[six]), &format!("{to} {sets}"), "true,true,false,false,true,false\n");
}
