//! ClientHellos put together by `hello`, compared with those that tshark puts together out of the
//! same captures.

mod common;

use common::{
    ReadingOptions, answer_of, map_at_once, program, shared_with_tshark, supported, truths,
};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use weir_engine::functions::Functions;
use weir_packet::walk::Headers;

const QUERY: &str = "
packets
| hello
| project sport, dport, name = coalesce(hello.sni, \"\"), hello.packets
";

/// Captures of which tshark and Weir find other hellos, and why.
const ARGUED: [(&str, &str); 2] = [
    ("skype.pcap", "26 hellos of SSL 2.0, which come in no TLS record"),
    ("amp.dns.RRSIG.fragmented.part1.pcap", "tshark takes port 8080 for HTTP"),
];

/// Ports and server names of hellos, with how often they came.
type Hellos = BTreeMap<(String, String, String), usize>;

/// The hellos that tshark finds. Ports are those of the innermost headers.
fn of_tshark(capture: &Path) -> Hellos {
    let fields = ["tcp.srcport", "udp.srcport", "tcp.dstport", "udp.dstport"];
    let mut tshark = Command::new("tshark");
    tshark.args(["-o", "tcp.reassemble_out_of_order:TRUE", "-r"]).arg(capture);
    tshark.args(["-Y", "tls.handshake.type == 1", "-T", "fields", "-E", "separator=|"]);
    for field in fields {
        tshark.args(["-e", field]);
    }
    tshark.args(["-e", "tls.handshake.extensions_server_name"]);
    let output = tshark.output().expect("tshark runs");
    let mut hellos = Hellos::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let cells: Vec<&str> = line.split('|').collect();
        let port = |tcp: usize| {
            let cell = if cells[tcp].is_empty() { cells[tcp + 1] } else { cells[tcp] };
            cell.rsplit(',').next().unwrap_or("").to_owned()
        };
        let name = cells[4].split(',').next().unwrap_or("").to_lowercase();
        *hellos.entry((port(0), port(2), name)).or_default() += 1;
    }
    hellos
}

#[test]
fn hellos_are_those_of_tshark() {
    let test = "hellos::hellos_are_those_of_tshark";
    let Some((folder, _)) = shared_with_tshark(test) else { return };
    let program = program(QUERY, &Functions::default());
    let inner = ReadingOptions { headers: Headers::INNER, ..ReadingOptions::default() };
    let (mut found, mut several, mut wrong) = (0, 0, Vec::new());
    let truths = truths(&folder).into_iter().filter(supported);
    let files = truths.map(|truth| truth["file"].as_str().expect("a name").to_owned());
    let is_argued = |file: &str| ARGUED.iter().any(|(name, _)| file.ends_with(name));
    let files: Vec<String> =
        files.filter(|file| !file.starts_with("malformed/") && !is_argued(file)).collect();
    let of_tshark = map_at_once(&files, |file| of_tshark(&folder.join(file)));
    for (file, theirs) in files.iter().zip(of_tshark) {
        let mut ours = Hellos::new();
        for (_, row) in answer_of(&program, &folder.join(file), 1, inner).rows {
            let text = |i: usize| row[i].to_string().replace('"', "");
            *ours.entry((text(0), text(1), text(2))).or_default() += 1;
            several += usize::from(text(3) != "1");
            found += 1;
        }
        if ours != theirs {
            wrong.push(format!("{file}: {ours:?}, and of tshark {theirs:?}"));
        }
    }
    assert!(wrong.is_empty(), "{} differences:\n{}", wrong.len(), wrong.join("\n"));
    assert!(found > 70 && several > 60, "{found} hellos, {several} of them of several packets");
}
