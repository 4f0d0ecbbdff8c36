//! The queries that come with Weir: the files of `queries/`, each under a short name.

use weir_lang::ParamInfo;

/// A query of the library.
#[derive(Debug)]
pub(crate) struct Entry {
    /// The name to run it by.
    pub(crate) name: &'static str,
    /// The name of its file, without the ending.
    pub(crate) stem: &'static str,
    /// Its text.
    pub(crate) text: &'static str,
}

/// How the lines of a header begin that say which captures the query is tested on.
const TEST_LINES: [&str; 2] = ["triggers:", "quiet:"];

impl Entry {
    /// What the query is for: the first line of its opening comment.
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

macro_rules! entry {
    ($name:literal, $stem:literal) => {
        Entry {
            name: $name,
            stem: $stem,
            text: include_str!(concat!("../../../queries/", $stem, ".weir")),
        }
    };
}

/// The library, in the order that `weir list` prints.
pub(crate) static LIBRARY: &[Entry] = &[
    entry!("flows", "flow_meter"),
    entry!("ipfix", "ipfix_flow_meter"),
    entry!("sources", "source_counts"),
    entry!("top", "top_talkers"),
    entry!("connections", "new_connections"),
    entry!("knock", "port_knocking"),
    entry!("tracker", "flow_tracker"),
    entry!("balance", "load_balancer"),
    entry!("unanswered-syn", "unanswered_syn"),
    entry!("unanswered-dns", "unanswered_dns"),
];

/// The query with this short name or file name.
pub(crate) fn find(name: &str) -> Option<&'static Entry> {
    LIBRARY.iter().find(|e| e.name == name || e.stem == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_unique() {
        let names: BTreeSet<_> = LIBRARY.iter().flat_map(|e| [e.name, e.stem]).collect();
        assert_eq!(names.len(), 2 * LIBRARY.len());
    }

    #[test]
    fn every_query_file_is_in_the_library() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../queries");
        for entry in std::fs::read_dir(folder).expect("the folder of queries") {
            let path = entry.expect("an entry").path();
            if path.extension().is_some_and(|e| e == "weir") {
                let stem = path.file_stem().and_then(|s| s.to_str()).expect("a plain name");
                assert!(find(stem).is_some(), "{stem}.weir has no short name");
            }
        }
    }
}
