//! The queries that come with Weir: the files of `queries/`, each under a short name and in a
//! group.

use weir_lang::ParamInfo;

/// A query of the library.
#[derive(Debug)]
pub(crate) struct Entry {
    /// The word of its group.
    pub(crate) group: &'static str,
    /// The name to run it by. A detector is called as its file is.
    pub(crate) name: &'static str,
    /// The name of its file below `queries/`, without the ending.
    pub(crate) stem: &'static str,
    /// Its text.
    pub(crate) text: &'static str,
}

/// How the lines of a header begin that say which captures the query is tested on.
const TEST_LINES: [&str; 3] = ["triggers:", "quiet:", "vector:"];

/// The folder of the detectors, and the word that means all of them.
const DETECTORS: &str = "detectors";

/// The group of the detectors that report what is seldom an attack: large senders, changes, and
/// guesses of which most are wrong in most networks. One more knows nothing without a site's lists.
const MEASUREMENTS: &str = "detectors/measurements";

/// The word for all detectors but the measurements: those that may run wherever nobody chose.
pub(crate) const DEFAULT_SET: &str = "detectors/default";

impl Entry {
    /// The purpose of the query: the first line of its opening comment.
    pub(crate) fn title(&self) -> String {
        weir_lang::header(self.text).title
    }

    /// The whole opening comment, without the lines that name captures to test it on.
    pub(crate) fn about(&self) -> String {
        let header = weir_lang::header(self.text);
        let lines =
            header.lines.into_iter().filter(|l| !TEST_LINES.iter().any(|t| l.starts_with(t)));
        [header.title].into_iter().chain(lines).collect::<Vec<_>>().join("\n")
    }

    /// Its parameters.
    pub(crate) fn params(&self) -> Vec<ParamInfo> {
        weir_lang::params(self.text)
    }
}

/// A parameter with its type and default, such as `interval: duration = 1s`.
pub(crate) fn signature(param: &ParamInfo) -> String {
    format!("{}: {} = {}", param.name, param.ty, param.default)
}

/// The groups of queries by their words, with their titles, in the order that `weir list` prints.
pub(crate) static GROUPS: &[(&str, &str)] = &[
    ("daily", "Daily questions, over a whole capture"),
    ("general", "Measurements"),
    ("records", "Over flow records"),
    ("functions", "Network functions"),
    ("detectors/scans", "Detectors: scans"),
    ("detectors/floods", "Detectors: floods"),
    ("detectors/sonata", "Detectors: the queries of Sonata, corrected"),
    ("detectors/traffic", "Detectors: traffic"),
    ("detectors/tcp", "Detectors: health of TCP"),
    ("detectors/dns", "Detectors: DNS"),
    ("detectors/tls", "Detectors: TLS and QUIC"),
    ("detectors/others", "Detectors: others"),
    (MEASUREMENTS, "Detectors: measurements, which run where they are named"),
];

macro_rules! query {
    ($group:literal, $name:literal, $stem:literal) => {
        Entry {
            group: $group,
            name: $name,
            stem: $stem,
            text: include_str!(concat!("../../../queries/", $stem, ".weir")),
        }
    };
}

macro_rules! detector {
    ($group:literal, $stem:literal) => {
        Entry {
            group: concat!("detectors/", $group),
            name: $stem,
            stem: concat!("detectors/", $stem),
            text: include_str!(concat!("../../../queries/detectors/", $stem, ".weir")),
        }
    };
}

/// The library. Queries of a group stand together, in the order that `weir list` prints.
pub(crate) static LIBRARY: &[Entry] = &[
    query!("daily", "conns", "daily/conns"),
    query!("daily", "conversations", "daily/conversations"),
    query!("daily", "hosts", "daily/hosts"),
    query!("daily", "protocols", "daily/protocols"),
    query!("daily", "timeline", "daily/timeline"),
    query!("daily", "dns", "daily/dns_names"),
    query!("daily", "slow-dns", "daily/slow_dns"),
    query!("daily", "http", "daily/http_hosts"),
    query!("daily", "tls", "daily/tls_names"),
    query!("daily", "retransmissions", "daily/retransmissions"),
    query!("daily", "rtt", "daily/rtt"),
    query!("general", "flows", "flow_meter"),
    query!("general", "ipfix", "ipfix_flow_meter"),
    query!("general", "sources", "source_counts"),
    query!("general", "top", "top_talkers"),
    query!("general", "connections", "new_connections"),
    query!("general", "tracker", "flow_tracker"),
    query!("general", "unanswered-syn", "unanswered_syn"),
    query!("general", "unanswered-dns", "unanswered_dns"),
    query!("general", "hellos", "hellos"),
    query!("general", "shares", "protocol_shares"),
    query!("general", "sizes", "packet_sizes"),
    query!("general", "entropy", "entropy"),
    query!("general", "tcp-health", "tcp_health"),
    query!("general", "rtp", "rtp"),
    query!("records", "record-talkers", "records/talkers"),
    query!("records", "record-scans", "records/scans"),
    query!("functions", "knock", "port_knocking"),
    query!("functions", "balance", "load_balancer"),
    detector!("scans", "trw"),
    detector!("scans", "trw_local"),
    detector!("scans", "trw_approx"),
    detector!("scans", "port_scan_slow"),
    detector!("scans", "host_scan_slow"),
    detector!("scans", "ack_scan"),
    detector!("scans", "mirai_scan"),
    detector!("scans", "backscatter"),
    detector!("floods", "syn_flood"),
    detector!("floods", "syn_fin_cusum"),
    detector!("floods", "udp_flood"),
    detector!("floods", "icmp_flood"),
    detector!("floods", "blacknurse"),
    detector!("floods", "unasked_flood"),
    detector!("floods", "icmp_unanswered"),
    detector!("floods", "carpet_flood"),
    detector!("floods", "udp_reflection"),
    detector!("floods", "syn_ack_reflection"),
    detector!("sonata", "ssh_distributed"),
    detector!("sonata", "ssh_brute_force"),
    detector!("sonata", "superspreader"),
    detector!("sonata", "port_scan"),
    detector!("sonata", "ddos"),
    detector!("sonata", "incomplete_flows"),
    detector!("sonata", "slowloris"),
    detector!("sonata", "dns_tunnel_unused"),
    detector!("sonata", "dns_reflection"),
    detector!("traffic", "new_talkers"),
    detector!("traffic", "tunnelled_share"),
    detector!("tcp", "tcp_trouble"),
    detector!("dns", "dns_tunnel"),
    detector!("dns", "dns_information"),
    detector!("dns", "dns_download"),
    detector!("dns", "dns_nxdomain"),
    detector!("dns", "dns_amplification"),
    detector!("dns", "dns_slow"),
    detector!("tls", "new_ja4"),
    detector!("tls", "old_tls"),
    detector!("others", "arp_spoofing"),
    detector!("others", "rogue_dhcp"),
    detector!("others", "rogue_ra"),
    detector!("others", "hop_count"),
    detector!("others", "malformed_attacks"),
    detector!("others", "beacon"),
    detector!("others", "beacon_hours"),
    detector!("others", "odd_port"),
    detector!("others", "exfiltration"),
    detector!("others", "baseline"),
    detector!("others", "plaintext_login"),
    detector!("others", "login_guessing"),
    detector!("others", "http_guessing"),
    detector!("others", "lateral_movement"),
    detector!("measurements", "heavy_hitters"),
    detector!("measurements", "heavy_prefixes"),
    detector!("measurements", "heavy_changers"),
    detector!("measurements", "microbursts"),
    detector!("measurements", "elephants"),
    detector!("measurements", "newly_opened"),
    detector!("measurements", "half_closed"),
    detector!("measurements", "zorro"),
    detector!("measurements", "fast_flux"),
    detector!("measurements", "listed"),
];

/// The text of the query of this name, for queries that start from it.
pub(crate) fn text(name: &str) -> Option<&'static str> {
    find(name).map(|entry| entry.text)
}

/// The query with this short name or file name; `-` and `_` are alike.
pub(crate) fn find(name: &str) -> Option<&'static Entry> {
    let alike = |known: &str| known.replace('_', "-") == name.replace('_', "-");
    LIBRARY.iter().find(|e| alike(e.name) || alike(e.stem))
}

/// The detectors that a word means: all of them (`detectors/`), those that run where none is named
/// (`detectors/default`), or those of a group (`detectors/floods`). `None` if it means no group.
pub(crate) fn detectors(word: &str) -> Option<Vec<&'static Entry>> {
    let word = word.strip_suffix('/').unwrap_or(word);
    let group = GROUPS.iter().any(|(name, _)| *name == word) && word.starts_with(DETECTORS);
    let all = || LIBRARY.iter().filter(|e| e.group.starts_with(DETECTORS));
    match word {
        DETECTORS => Some(all().collect()),
        DEFAULT_SET => Some(all().filter(|e| e.group != MEASUREMENTS).collect()),
        _ if group => Some(all().filter(|e| e.group == word).collect()),
        _ => None,
    }
}

/// All words that name queries.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    let groups = GROUPS.iter().map(|(name, _)| *name).filter(|name| name.starts_with(DETECTORS));
    let sets = [DETECTORS, DEFAULT_SET];
    LIBRARY.iter().flat_map(|e| [e.name, e.stem]).chain(groups).chain(sets)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_unique() {
        let plain = |name: &str| name.replace('_', "-");
        let mut taken: BTreeSet<String> = GROUPS.iter().map(|(name, _)| plain(name)).collect();
        taken.insert(DETECTORS.to_owned());
        for entry in LIBRARY {
            let own = BTreeSet::from([plain(entry.name), plain(entry.stem)]);
            assert!(own.is_disjoint(&taken), "{own:?}");
            taken.extend(own);
        }
    }

    #[test]
    fn every_query_file_is_in_the_library() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../queries");
        let folders = ["", "daily", "detectors", "records"];
        for (below, prefix) in folders.map(|name| match name {
            "" => (name, String::new()),
            name => (name, format!("{name}/")),
        }) {
            let folder = std::path::Path::new(folder).join(below);
            for entry in std::fs::read_dir(folder).expect("the folder of queries") {
                let path = entry.expect("an entry").path();
                if path.extension().is_some_and(|e| e == "weir") {
                    let stem = path.file_stem().and_then(|s| s.to_str()).expect("a plain name");
                    let stem = format!("{prefix}{stem}");
                    assert!(LIBRARY.iter().any(|e| e.stem == stem), "{stem}.weir has no row");
                }
            }
        }
    }

    #[test]
    fn queries_stand_with_their_groups() {
        let place = |e: &Entry| GROUPS.iter().position(|(name, _)| *name == e.group);
        let places: Vec<_> = LIBRARY.iter().map(place).collect();
        assert!(places.iter().all(Option::is_some));
        assert!(places.is_sorted(), "{places:?}");
    }

    #[test]
    fn words_for_several() {
        let all = detectors("detectors/").expect("all of them");
        assert!(!all.is_empty() && all.iter().all(|e| e.stem.starts_with("detectors/")));
        assert_eq!(detectors("detectors").map(|some| some.len()), Some(all.len()));
        let usual = detectors(DEFAULT_SET).expect("a set");
        assert_eq!(usual.len() + detectors(MEASUREMENTS).expect("a group").len(), all.len());
        assert!(usual.iter().any(|e| e.name == "port_scan"));
        assert!(usual.iter().all(|e| e.name != "heavy_hitters"));
        let others = detectors("detectors/others").expect("a group");
        assert!(others.iter().all(|e| e.group == "detectors/others"));
        for word in ["general", "detectors/plaintext_login", "detectors//", "", "others"] {
            assert!(detectors(word).is_none(), "{word}");
        }
        for word in ["plaintext-login", "plaintext_login", "detectors/plaintext-login"] {
            assert_eq!(find(word).map(|e| e.name), Some("plaintext_login"), "{word}");
        }
    }
}
