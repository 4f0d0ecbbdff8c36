//! Captures among the words of a command line, and folders of them.

use crate::args::RunOptions;
use crate::exit::usage;
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;
use weir_capture::begins_as_capture;

/// How the names of captures end.
const ENDINGS: [&str; 3] = [".pcap", ".pcapng", ".cap"];

/// The endings of compressed ones; kinds that can't be read are refused when they are opened.
const COMPRESSED: [&str; 5] = [".gz", ".zst", ".xz", ".bz2", ".lz4"];

/// The words of capture filters (pcap-filter(7)). Files of these names are captures by -r only.
pub(crate) const FILTER_WORDS: &[&str] = &[
    "host",
    "net",
    "port",
    "portrange",
    "src",
    "dst",
    "ether",
    "fddi",
    "tr",
    "wlan",
    "ip",
    "ip6",
    "arp",
    "rarp",
    "decnet",
    "tcp",
    "udp",
    "icmp",
    "icmp6",
    "igmp",
    "igrp",
    "pim",
    "ah",
    "esp",
    "vrrp",
    "sctp",
    "carp",
    "broadcast",
    "multicast",
    "less",
    "greater",
    "proto",
    "protochain",
    "gateway",
    "and",
    "or",
    "not",
    "mask",
    "vlan",
    "mpls",
    "pppoes",
    "pppoed",
    "geneve",
    "vxlan",
    "link",
    "iso",
    "clnp",
    "esis",
    "isis",
    "lat",
    "moprc",
    "mopdl",
    "atalk",
    "aarp",
    "stp",
    "ipx",
    "netbeui",
    "llc",
    "ifname",
    "on",
    "rnr",
    "rulenum",
    "reason",
    "rset",
    "ruleset",
    "srnr",
    "subrulenum",
    "action",
    "type",
    "subtype",
    "dir",
    "addr1",
    "addr2",
    "addr3",
    "addr4",
    "ra",
    "ta",
    "radio",
    "ppp",
    "slip",
    "raw",
    "inbound",
    "outbound",
    "len",
    "ifindex",
];

/// Whether a word means a capture: by its name, or by what the file begins with. No word of a
/// capture filter does.
pub(crate) fn is_meant(word: &str) -> bool {
    has_ending(word) || word.contains(['/', '.']) && is_found(word)
}

/// The same of a word before which there is none of a filter: of a file of any name.
pub(crate) fn is_meant_first(word: &str) -> bool {
    is_meant(word) || !is_of_filter(word) && is_found(word)
}

/// Whether a filter has begun with this word.
fn is_of_filter(word: &str) -> bool {
    let number = word.bytes().all(|b| b.is_ascii_digit());
    let plain = |c: char| c.is_alphanumeric() || "_-+.,:/~@%#=".contains(c);
    number || FILTER_WORDS.contains(&word) || !word.chars().all(plain)
}

/// Whether it is called as captures are. tcpdump counts the files of -C at the end: `x.pcap1`.
fn has_ending(word: &str) -> bool {
    let name = word.to_ascii_lowercase();
    let name = COMPRESSED.iter().find_map(|ending| name.strip_suffix(ending)).unwrap_or(&name);
    let name = name.trim_end_matches(|c: char| c.is_ascii_digit());
    ENDINGS.iter().any(|ending| name.ends_with(ending))
}

/// Whether it is there: a capture, a pipe, or a folder of captures.
fn is_found(word: &str) -> bool {
    let path = Path::new(word);
    let Ok(kind) = std::fs::metadata(path).map(|meta| meta.file_type()) else { return false };
    match () {
        () if word.ends_with(".weir") => false,
        () if kind.is_dir() => !of_folder(path).is_empty(),
        () if kind.is_file() => begins_as_capture(path),
        () => kind.is_fifo() || kind.is_char_device(),
    }
}

/// The captures in a folder, by name.
fn of_folder(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut all: Vec<String> = entries
        .filter(|entry| entry.file_name().to_str().is_some_and(has_ending))
        .map(|entry| entry.path())
        .filter(|path| !path.is_dir())
        .filter_map(|path| path.to_str().map(str::to_owned))
        .collect();
    all.sort();
    all
}

/// The captures that are given, those of folders in their place.
///
/// # Errors
/// If a folder has none.
pub(crate) fn expanded(given: Vec<String>) -> anyhow::Result<Vec<String>> {
    let mut all = Vec::with_capacity(given.len());
    for name in given {
        if !Path::new(&name).is_dir() {
            all.push(name);
            continue;
        }
        let inside = of_folder(Path::new(&name));
        if inside.is_empty() {
            return Err(usage(format!(
                "{name} is a folder without captures (NAME.pcap, NAME.pcapng)"
            )));
        }
        all.extend(inside);
    }
    Ok(all)
}

/// The captures as they are named shortest: all of a folder by its name.
pub(crate) fn named(captures: &[String]) -> Vec<String> {
    let folder = captures.first().and_then(|first| Path::new(first).parent());
    let folder = folder.filter(|folder| captures.len() > 1 && of_folder(folder) == captures);
    folder.map_or(captures.to_vec(), |folder| vec![format!("{}/", folder.display())])
}

/// Takes the captures from the words, and lets the run read them after those of -r.
///
/// # Errors
/// If the run reads an interface, or a folder has no captures.
pub(crate) fn take(words: &mut Vec<String>, options: &mut RunOptions) -> anyhow::Result<()> {
    let mut read = std::mem::take(&mut options.read);
    let mut in_filter = false;
    for word in std::mem::take(words) {
        let is_capture = if in_filter { has_ending(&word) } else { is_meant_first(&word) };
        in_filter |= is_of_filter(&word);
        if is_capture { &mut read } else { &mut *words }.push(word);
    }
    if let (Some(capture), Some(interface)) = (read.first(), options.live.interface.first()) {
        return Err(usage(format!(
            "{capture} is a capture, and -i {interface} an interface: a run reads one or the other"
        )));
    }
    options.read = expanded(read)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::LibraryArgs;
    use clap::Parser as _;

    #[test]
    fn captures_are_known_by_their_names() {
        for name in
            ["x.pcap", "a b/x.PCAPNG", "x.cap", "x.pcap.gz", "x.pcapng.zst", "x.pcap12", "x.cap.xz"]
        {
            assert!(is_meant(name), "{name}");
        }
        for word in [
            "tcp",
            "port",
            "80",
            "10.0.0.0/8",
            "host",
            "my.weir",
            "x.csv",
            "detectors/",
            "-",
            "",
            "tcp[13] == 2",
            "192.0.2.1",
            "recap",
            "flows",
        ] {
            assert!(!is_meant(word), "{word}");
        }
    }

    #[test]
    fn names_of_any_kind_are_captures_before_a_filter_begins() {
        for word in FILTER_WORDS.iter().copied().chain(["80", "tcp port 80", "443", ""]) {
            assert!(!is_meant_first(word), "{word}");
        }
        let parsed = |line: &str| {
            let line = ["flows"].into_iter().chain(line.split(' '));
            let mut args = LibraryArgs::try_parse_from(line).expect("parses");
            take(&mut args.filter, &mut args.options).map(|()| (args.options.read, args.filter))
        };
        let (read, filter) = parsed("-r a.pcap b.pcap tcp port 80 c.pcap").expect("captures");
        assert_eq!(read, ["a.pcap", "b.pcap", "c.pcap"]);
        assert_eq!(filter, ["tcp", "port", "80"]);
        // The folder of the tests has captures of no name; the one above has those of Weir.
        let (read, filter) = parsed("../../fixtures host src").expect("captures");
        assert!(read.len() > 3 && read.iter().all(|name| name.starts_with("../../fixtures/")));
        assert_eq!(filter, ["host", "src"]);
        assert!(parsed("-i lo x.pcap").is_err());
        // Once a filter has begun, only names with an ending are captures.
        let (read, filter) = parsed("a.pcap src ../../fixtures and port 80").expect("captures");
        assert_eq!((read.join(" "), filter.len()), ("a.pcap".to_owned(), 5));
    }

    #[test]
    fn captures_are_known_by_their_first_bytes_and_folders_by_what_is_in_them() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name).to_str().expect("plain").to_owned();
        std::fs::write(at("trace.1"), [0xd4, 0xc3, 0xb2, 0xa1]).expect("writes");
        std::fs::write(at("trace.weir"), [0xd4, 0xc3, 0xb2, 0xa1]).expect("writes");
        std::fs::write(at("text.1"), "packets").expect("writes");
        assert!(is_meant(&at("trace.1")));
        assert!(!is_meant(&at("trace.weir")) && !is_meant(&at("text.1")));
        let own = folder.path().to_str().expect("plain").to_owned();
        assert!(!is_meant(&own), "nothing in it is called as captures are");
        assert!(expanded(vec![own.clone()]).is_err());
        for name in ["b.pcap", "a.pcapng.gz"] {
            std::fs::write(at(name), []).expect("writes");
        }
        assert!(is_meant(&own) && is_meant_first(&own));
        let all = expanded(vec!["x.pcap".to_owned(), own, "-".to_owned()]).expect("some");
        assert_eq!(all, ["x.pcap".to_owned(), at("a.pcapng.gz"), at("b.pcap"), "-".to_owned()]);
        assert_eq!(named(&all), all);
        assert_eq!(named(&all[1..3]), [at("")]);
    }
}
