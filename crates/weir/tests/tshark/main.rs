//! Every field of every packet of the shared captures, compared with what tshark says of it.
//!
//! A field of the catalogue has its tshark fields in [`table::FIELDS`], or a reason why it has
//! none; one in neither fails. Differences are those that [`argued::DIFFERENCES`] and
//! [`argued::CAPTURES`] name with their reasons, and no others. The tables were made with tshark
//! 4.0.17, that of Debian 12.

#[path = "../common/mod.rs"]
mod common;

mod analysis;
mod argued;
mod table;

use common::{shared_with_tshark, supported, truths};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use table::{FIELDS, Form, Mapping};
use weir_packet::fields::{FieldId, FieldType};

/// Between the fields of a line of tshark's, and between the values of one field.
const FIELD: char = '\x01';
const VALUE: char = '\x02';

/// The options that are off so that tshark looks at each packet by itself, as fields do.
const ALONE: &[&str] = &[
    "ip.defragment",
    "ipv6.defragment",
    "tcp.desegment_tcp_streams",
    "tcp.analyze_sequence_numbers",
    "tcp.relative_sequence_numbers",
    "http.desegment_headers",
    "http.desegment_body",
    "http.decompress_body",
    "tls.desegment_ssl_records",
    "tls.desegment_ssl_application_data",
    "dns.desegment_dns_messages",
];

/// One packet, as tshark shows it.
pub(crate) struct Packet<'a> {
    places: &'a HashMap<&'static str, usize>,
    cells: Vec<&'a str>,
    /// Protocols from the outside in, up to the header of a packet inside another.
    outer: Vec<&'a str>,
}

impl Packet<'_> {
    /// All values of a tshark field, from the outside in.
    pub(crate) fn all(&self, name: &str) -> Vec<&str> {
        self.cells[self.place(name)].split(VALUE).filter(|v| !v.is_empty()).collect()
    }

    fn place(&self, name: &str) -> usize {
        *self.places.get(name).unwrap_or_else(|| panic!("{name} was not asked for"))
    }

    /// The first value of a tshark field, or nothing.
    pub(crate) fn first(&self, name: &str) -> &str {
        self.cells[self.place(name)].split(VALUE).find(|v| !v.is_empty()).unwrap_or("")
    }

    /// Whether the outermost packet has one of these protocols.
    pub(crate) fn has(&self, protocols: &[&str]) -> bool {
        self.outer.iter().any(|p| protocols.contains(p))
    }

    /// The protocols before IP.
    pub(crate) fn below(&self) -> impl Iterator<Item = &str> {
        let above = |p: &&&str| !matches!(**p, "ip" | "ipv6" | "mpls" | "pppoes");
        self.outer.iter().take_while(above).copied()
    }

    /// Whether the chain of protocols, inner packets included, names one.
    pub(crate) fn names(&self, protocol: &str) -> bool {
        self.first("frame.protocols").split(':').any(|p| p == protocol)
    }

    /// Whether tshark calls the packet malformed or cut.
    fn broken(&self) -> bool {
        !self.first("_ws.malformed").is_empty() || !self.first("_ws.short").is_empty()
    }
}

/// The protocols of the outermost packet.
fn outer(chain: &str) -> Vec<&str> {
    const INSIDE: [&str; 7] = ["ip", "ipv6", "arp", "rarp", "eth", "wlan", "ppp"];
    let mut has_ip = false;
    let within = |p: &&str| {
        let inside = has_ip && (INSIDE.contains(p) || matches!(*p, "mpls" | "eth_maybefcs"));
        has_ip |= matches!(*p, "ip" | "ipv6");
        !inside
    };
    chain.split(':').take_while(within).collect()
}

/// The tshark fields that the tables ask for, each once.
fn asked() -> Vec<&'static str> {
    let mut names: BTreeSet<&str> = argued::ASKED.iter().copied().collect();
    for (_, mapping) in FIELDS {
        if let Mapping::As { fields, .. } = mapping {
            names.extend(*fields);
        }
    }
    names.into_iter().collect()
}

/// How often each difference was met, and those that no table names.
#[derive(Default)]
struct Found {
    packets: u64,
    values: u64,
    met: BTreeMap<&'static str, u64>,
    wrong: Vec<String>,
}

#[test]
fn every_field_has_its_tshark_name_or_a_reason() {
    let mut named: Vec<&str> = FIELDS.iter().map(|(name, _)| *name).collect();
    let mut fields: Vec<&str> = FieldId::all().map(|id| id.info().name).collect();
    named.sort_unstable();
    fields.sort_unstable();
    assert_eq!(named, fields, "the catalogue, and the table of tests/tshark/table.rs");
    for (name, mapping) in FIELDS {
        let reason = if let Mapping::None(why) = mapping { *why } else { "it is compared" };
        assert!(!reason.is_empty(), "{name} needs a reason");
    }
}

#[test]
fn fields_are_those_of_tshark() {
    let test = "tshark::fields_are_those_of_tshark";
    let Some((folder, version)) = shared_with_tshark(test) else { return };
    let truths: Vec<_> = truths(&folder).into_iter().filter(supported).collect();
    let files: Vec<&str> = truths.iter().map(|t| t["file"].as_str().expect("a name")).collect();
    assert!(files.len() > 250, "{} captures", files.len());
    let (next, found) = (AtomicUsize::new(0), Mutex::new(Found::default()));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(file) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let one = compare(&folder, file);
                    let mut all = found.lock().expect("no thread panicked");
                    all.packets += one.packets;
                    all.values += one.values;
                    one.met.iter().for_each(|(why, n)| *all.met.entry(*why).or_default() += n);
                    all.wrong.extend(one.wrong);
                }
            });
        }
    });
    let found = found.into_inner().expect("no thread panicked");
    let version = version.lines().next().unwrap_or_default();
    let (packets, values) = (found.packets, found.values);
    let _ = writeln!(std::io::stderr().lock(), "{packets} packets, {values} values, {version}");
    let shown = found.wrong[..found.wrong.len().min(300)].join("\n");
    assert!(found.wrong.is_empty(), "{} differences, {version}:\n{shown}", found.wrong.len());
    let reasons = argued::DIFFERENCES.iter().map(|d| d.why);
    let stale: Vec<&str> = reasons.filter(|why| !found.met.contains_key(why)).collect();
    assert!(stale.is_empty(), "differences that there are none of any more: {stale:#?}");
    assert!(found.packets > 300_000, "{} packets", found.packets);
}

/// The fields of ours that are compared, in the order of the columns.
fn compared() -> Vec<Compared> {
    let fields = FIELDS.iter().filter(|(_, mapping)| matches!(mapping, Mapping::As { .. }));
    let typed = fields.map(|(name, mapping)| {
        let ty = weir_packet::fields::by_name(name).expect("a field").info().ty;
        Compared { name, ty, mapping }
    });
    typed.collect()
}

/// One field that is compared.
struct Compared {
    name: &'static str,
    ty: FieldType,
    mapping: &'static Mapping,
}

/// Compares one capture.
fn compare(folder: &Path, file: &str) -> Found {
    let path = folder.join(file);
    let fields = compared();
    let names: Vec<&str> = fields.iter().map(|field| field.name).collect();
    let query = format!("packets | project {}, malformed, cut", names.join(", "));
    let mut ours = Command::new(env!("CARGO_BIN_EXE_weir"));
    ours.args(["run", "-q", "-o", "csv", "--time", "epoch-ns", "-e", &query, "-r"]).arg(&path);
    let asked = asked();
    let places: HashMap<&'static str, usize> =
        asked.iter().enumerate().map(|(i, name)| (*name, i)).collect();
    let (mut ours, mut theirs) = (Lines::of(ours), Lines::of(tshark(&path, &asked)));
    let mut found = Found::default();
    // The names of columns.
    ours.next();
    let uneven = loop {
        let (mine, line) = match (ours.next(), theirs.next()) {
            (Some(mine), Some(line)) => (mine, line),
            (mine, line) => break mine.is_some() || line.is_some(),
        };
        found.packets += 1;
        let cells: Vec<&str> = line.split(FIELD).collect();
        assert_eq!(cells.len(), asked.len(), "{file}: packet {}: {line:?}", found.packets);
        let outer = outer(cells[places["frame.protocols"]]);
        let packet = Packet { places: &places, cells, outer };
        compare_packet(file, &fields, &csv(&mine), &packet, &mut found);
    };
    // Of a file that breaks off, as those of this folder may, tshark can show the packet that is
    // not whole.
    if uneven && !file.starts_with("malformed/") {
        found.wrong.push(format!("{file}: one has more packets than {}", found.packets));
    }
    if argued::renumbered(file) {
        return Found::default();
    }
    found
}

/// Compares one packet. Our cells end with whether it is malformed and whether it is cut: what
/// stands in a header that contradicts itself or is cut, each side gives up at a place of its own,
/// but what both have is the same.
fn compare_packet(
    file: &str,
    fields: &[Compared],
    ours: &[String],
    packet: &Packet<'_>,
    found: &mut Found,
) {
    let broken = packet.broken() || ours[fields.len()..].iter().any(|cell| cell == "true");
    for (Compared { name, ty, mapping }, value) in fields.iter().zip(ours) {
        found.values += 1;
        let want = mapping.expected(*ty, packet);
        let value = table::shown(name, value);
        if *value == *want {
            continue;
        }
        let one_absent = [&*value, &*want].iter().any(|v| matches!(*v, "" | "false"));
        if broken && (one_absent || *ty == FieldType::Bool) {
            continue;
        }
        match argued::why(file, name, packet, &value, &want) {
            Some(why) => *found.met.entry(why).or_default() += 1,
            None => {
                let chain: String = packet.first("frame.protocols").chars().take(100).collect();
                let at = format!("{file}: {}: {name}", found.packets);
                found.wrong.push(format!("{at}: {value:?}, tshark {want:?} ({chain})"));
            }
        }
    }
}

fn tshark(path: &Path, asked: &[&str]) -> Command {
    let mut tshark = Command::new("tshark");
    tshark.args(["-n", "-T", "fields", "-E", "occurrence=a"]);
    tshark.args(["-E", &format!("separator={FIELD}"), "-E", &format!("aggregator={VALUE}")]);
    for option in ALONE {
        tshark.args(["-o", &format!("{option}:FALSE")]);
    }
    for name in asked {
        tshark.args(["-e", name]);
    }
    tshark.arg("-r").arg(path);
    tshark
}

/// The lines that a program prints.
struct Lines {
    child: Child,
    out: BufReader<Box<dyn Read + Send>>,
}

impl Lines {
    fn of(mut command: Command) -> Lines {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("the program starts");
        let out: Box<dyn Read + Send> = Box::new(child.stdout.take().expect("a pipe"));
        Lines { child, out: BufReader::with_capacity(1 << 16, out) }
    }
}

impl Iterator for Lines {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        let mut line = Vec::new();
        let n = self.out.read_until(b'\n', &mut line).expect("the pipe is read");
        let text = String::from_utf8_lossy(&line);
        (n > 0).then(|| text.trim_end_matches(['\n', '\r']).to_owned())
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        // It may wait to write what is not read any more.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The cells of a line of CSV; no text of a field holds the end of a line.
fn csv(line: &str) -> Vec<String> {
    let (mut cells, mut cell, mut quoted) = (Vec::new(), String::new(), false);
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => cell.extend(chars.next()),
            '"' => quoted = !quoted,
            ',' if !quoted => cells.push(std::mem::take(&mut cell)),
            c => cell.push(c),
        }
    }
    cells.push(cell);
    cells
}

#[test]
fn lines_of_csv_are_taken_apart() {
    assert_eq!(csv(r#"1,,"a,""b""",x"#), ["1", "", "a,\"b\"", "x"]);
}

#[test]
fn the_outermost_packet_ends_where_the_next_begins() {
    assert_eq!(outer("eth:ethertype:ip:icmp:ip:udp"), ["eth", "ethertype", "ip", "icmp"]);
    assert_eq!(outer("eth:mpls:eth:ipv6:tcp"), ["eth", "mpls", "eth", "ipv6", "tcp"]);
    assert_eq!(outer("ip:udp:vxlan:eth:arp"), ["ip", "udp", "vxlan"]);
}

/// The form of a mapping that needs one value only.
#[test]
fn values_are_compared_as_their_types_write_them() {
    assert_eq!(table::number("0x10"), "16");
    assert_eq!(table::number("010"), "10");
    assert_eq!(table::number("a"), "a");
    assert!(matches!(FIELDS[0].1, Mapping::As { form: Form::Seconds, .. }));
}
