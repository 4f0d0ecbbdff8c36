//! The works that are measured: queries, and where their text comes from.

use anyhow::{Context, Result, anyhow};
use std::fs;
use std::path::{Path, PathBuf};
use weir_plan::Program;
use weir_plan::registered::Functions;
use weir_plan::together::join;
use weir_stream::{StreamProgram, packets};

/// Where the library of queries is.
const LIBRARY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../queries");

/// Something to compute.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Work {
    /// Its name on the command line.
    pub(crate) name: &'static str,
    /// Its title in a table.
    pub(crate) title: &'static str,
    /// In which language it is asked.
    pub(crate) text: Text,
}

/// How a work is written.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Text {
    /// A query.
    Query(&'static str),
    /// A query of the library, by the name of its file.
    Library(&'static str),
    /// All queries of a folder in one program.
    Together(Folder),
    /// The flow meter of packets that a closure in Rust is asked for.
    RustApi,
}

/// Queries that stand together.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Folder {
    /// The library without its detectors and without [`VALUES`].
    Library,
    /// The detectors.
    Detectors,
}

impl Folder {
    /// Whether queries in it evict what they hold: `trw_approx` has tables of a fixed size.
    pub(crate) fn may_evict(self) -> bool {
        self == Folder::Detectors
    }

    fn path(self) -> PathBuf {
        match self {
            Folder::Library => PathBuf::from(LIBRARY),
            Folder::Detectors => Path::new(LIBRARY).join("detectors"),
        }
    }
}

/// Queries of the library that keep the values of each group, or follow each connection: what they
/// cost is that state, and the row of all queries stays what it was in earlier figures.
const VALUES: [&str; 6] =
    ["entropy", "hellos", "packet_sizes", "protocol_shares", "rtp", "tcp_health"];

/// All detectors in one program.
pub(crate) const DETECTORS: Work = Work {
    name: "detectors",
    title: "all detectors at once",
    text: Text::Together(Folder::Detectors),
};

/// Counts and times of each flow, as the loops by hand keep them.
macro_rules! meter {
    () => {
        "summarize packets = count(), bytes = sum(len), first = min(ts), last = max(ts) by flow"
    };
}

/// The flow meter.
pub(crate) const FLOW_METER: Work = Work {
    name: "flow-meter",
    title: "flow meter, language",
    text: Text::Query(concat!("packets | where ip | ", meter!())),
};

/// The same through the Rust API, with a closure that is called for each packet.
pub(crate) const FLOW_METER_API: Work = Work {
    name: "flow-meter-api",
    title: "flow meter, a closure on each packet",
    text: Text::RustApi,
};

/// All works, in the order of the table.
pub(crate) const WORKS: [Work; 15] = [
    FLOW_METER_API,
    FLOW_METER,
    Work {
        name: "general-key",
        title: "the same by a key without a kernel of its own (TTL, destination, VLAN)",
        text: Text::Query(
            "packets | where ip \
             | summarize packets = count(), bytes = sum(len), first = min(ts), last = max(ts) \
               by ip.ttl, ip.dst, vlan.id",
        ),
    },
    Work {
        name: "source-counts",
        title: "packets and bytes per source, every 1 s",
        text: Text::Library("source_counts"),
    },
    Work {
        name: "syn-by-destination",
        title: "`where tcp.syn and not tcp.ack`, then count by destination, every 1 s",
        text: Text::Query(
            "packets | where tcp.syn and not tcp.ack \
             | summarize packets = count() by ip.dst every 1s",
        ),
    },
    Work {
        name: "predicate",
        title: "an arithmetic predicate over two fields, then count",
        // On 64-byte frames it holds for one direction and not for the other.
        text: Text::Query("packets | where len * 8 + ip.ttl > 572 | summarize packets = count()"),
    },
    Work {
        name: "distinct-sources",
        title: "exact distinct sources per destination, every 1 s",
        text: Text::Query(
            "packets | where ip | summarize sources = distinct(ip.src) by ip.dst every 1s",
        ),
    },
    Work {
        name: "approx-distinct",
        title: "distinct sources per destination by HyperLogLog, every 1 s",
        text: Text::Query(
            "packets | where ip | summarize sources = approx_distinct(ip.src) by ip.dst every 1s",
        ),
    },
    Work {
        name: "quantiles",
        title: "median and 99th percentile of a field per destination, every 1 s",
        text: Text::Query(
            "packets | where ip \
             | summarize p50 = median(sport), p99 = percentile(sport, 99) by ip.dst every 1s",
        ),
    },
    Work {
        name: "frequent",
        title: "the ten most frequent destinations, every 1 s",
        text: Text::Query("packets | summarize most = frequent(ip.dst, 10) every 1s"),
    },
    Work {
        name: "sliding",
        title: "packets and bytes per source over 5 s, every 1 s",
        text: Text::Query(
            "packets | where ip \
             | summarize packets = count(), bytes = sum(len) by ip.src over 5s every 1s",
        ),
    },
    Work {
        name: "interval-join",
        title: "SYNs that no SYN-ACK follows within 3 s (an interval join)",
        text: Text::Library("unanswered_syn"),
    },
    Work {
        name: "port-knocking",
        title: "port knocking (two `scan`s)",
        text: Text::Library("port_knocking"),
    },
    Work {
        name: "library",
        title: "all queries of the library at once",
        text: Text::Together(Folder::Library),
    },
    DETECTORS,
];

impl Work {
    /// Whether it evicts what it holds, by its definition.
    pub(crate) fn may_evict(&self) -> bool {
        matches!(self.text, Text::Together(folder) if folder.may_evict())
    }

    /// The work of this name.
    pub(crate) fn named(name: &str) -> Result<&'static Work> {
        let found = WORKS.iter().find(|w| w.name == name);
        let names = || WORKS.map(|w| w.name).join(", ");
        found.with_context(|| format!("no work is called {name}; there are {}", names()))
    }

    /// Its program, and the functions in Rust that it calls. Of queries that stand together, just
    /// the first ones by name if `first` says how many.
    pub(crate) fn program(&self, first: Option<usize>) -> Result<(Program, Functions)> {
        let program = match self.text {
            Text::RustApi => {
                let stream = packets().filter("ip").filter_by(["len"], |len: i64| len > 0);
                let program = StreamProgram::default().output("flows", stream.query(meter!()));
                return Ok(program.compile()?);
            }
            Text::Query(text) => compile(self.name, text)?,
            Text::Library(stem) => {
                let path = Path::new(LIBRARY).join(stem).with_extension("weir");
                let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
                compile(stem, &text)?
            }
            Text::Together(folder) => {
                let mut queries = together(folder)?;
                queries.truncate(first.unwrap_or(usize::MAX));
                join(queries)?
            }
        };
        Ok((program, Functions::default()))
    }
}

/// Compiles a query that is known to be right.
pub(crate) fn compile(name: &str, text: &str) -> Result<Program> {
    let query = weir_lang::Query { name, text };
    let compiled = weir_lang::compile(&query, &weir_lang::Options::default());
    let told = |d: Vec<weir_lang::Diagnostic>| anyhow!(weir_lang::render(&d, &query, false));
    Ok(compiled.map_err(told)?.program)
}

/// The queries of a folder, compiled, by name and in the order of their names.
pub(crate) fn together(folder: Folder) -> Result<Vec<(String, Program)>> {
    let compiled = |(name, text): (String, String)| {
        let program = compile(&name, &text)?;
        Ok((name, program))
    };
    texts(folder)?.into_iter().map(compiled).collect()
}

/// The same as texts.
pub(crate) fn texts(folder: Folder) -> Result<Vec<(String, String)>> {
    let mut all = texts_in(&folder.path())?;
    all.retain(|(stem, _)| folder != Folder::Library || !VALUES.contains(&stem.as_str()));
    Ok(all)
}

/// The names without ending, and the texts, of all queries of a folder, by name.
pub(crate) fn texts_in(folder: &Path) -> Result<Vec<(String, String)>> {
    let mut paths = Vec::new();
    let shown = || folder.display().to_string();
    for entry in fs::read_dir(folder).with_context(shown)? {
        let path = entry.with_context(shown)?.path();
        if path.extension().is_some_and(|e| e == "weir") {
            paths.push(path);
        }
    }
    paths.sort();
    let read = |path: PathBuf| {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        Ok((stem, text))
    };
    paths.into_iter().map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_work_compiles_and_is_found_by_its_name() {
        for work in &WORKS {
            assert_eq!(Work::named(work.name).expect("found"), work);
            let (program, functions) = work.program(None).expect("compiles");
            assert!(program.pipelines.iter().any(|p| p.printed), "{}", work.name);
            let calls = functions.signatures().scalars.len();
            assert_eq!(calls > 0, work.text == Text::RustApi, "{}", work.name);
        }
        assert!(Work::named("x").is_err());
        assert!(together(Folder::Library).expect("compiles").len() >= 6);
        assert!(!together(Folder::Detectors).expect("compiles").is_empty());
        let some = DETECTORS.program(Some(1)).expect("compiles").0;
        assert_eq!(some.pipelines.iter().filter(|p| p.printed).count(), 1);
    }
}
