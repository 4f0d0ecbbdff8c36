//! The part of a query that the kernel runs: whether a run may have one, and how it is loaded.

use crate::args::{Capture, LiveArgs, OffloadMode, RunOptions};
use std::io::{self, Write as _};
use weir_capture::ebpf::{
    Map, MapKind, Offloaded, Program, ProgramKind, SharedMemory, cpu_numbers,
};
use weir_capture::live::{Directions, KernelPart, Offload, SocketSite, interfaces};
use weir_ebpf::Code;
use weir_offload::{
    FrameCount, Hook, KernelProgram, MapSpec, OffloadOptions, Prefix, Refuse, compile,
};
use weir_packet::source::{KernelCounts, LinkType};
use weir_packet::walk::Headers;
use weir_plan::Program as Query;
use weir_plan::physical::Physical;

/// Why a run has no part in the kernel, whatever its query is: one clause.
pub(crate) fn refusal(options: &RunOptions, filter: bool, keeps_packets: bool) -> Option<String> {
    let live = &options.live;
    let reasons = [
        (live.interface.is_empty(), "packets come from files, not from interfaces (-i)"),
        (live.is_dpdk(), "packets come by DPDK, without the kernel"),
        (live.capture == Some(Capture::Pcap), "libpcap sets the filter of its sockets by itself"),
        (
            options.control.is_some(),
            "programs may come and go (--control), and a run in the sandbox loads no other",
        ),
        (
            filter,
            "there is a capture filter, in the place of which the program would stand: say in the \
             query which packets it wants",
        ),
        (options.count.is_some(), "-c counts packets, and the kernel would finish some of them"),
        (keeps_packets, "`capture` keeps every packet, to write those around rows"),
    ];
    reasons.into_iter().find(|(holds, _)| *holds).map(|(_, why)| why.to_owned())
}

/// A query, as the kernel is to run a part of it.
#[derive(Clone)]
pub(crate) struct KernelQuery {
    plan: Physical,
    headers: Headers,
    /// Whether later fragments get the ports of their first one.
    fragments: bool,
    /// Why it may not, if that is so.
    refused: Option<String>,
}

impl KernelQuery {
    /// Of these pipelines; `refused`: why the run has no part in the kernel.
    pub(crate) fn new(query: &Query, refused: Option<String>) -> KernelQuery {
        let plan = Physical::new(query, &[]);
        KernelQuery { plan, headers: Headers::Outer, fragments: false, refused }
    }

    /// The same, where fields are read as the options of a run say.
    pub(crate) fn read_by(self, options: &RunOptions) -> KernelQuery {
        let (headers, fragments) = (options.headers.into(), options.fragments);
        KernelQuery { headers, fragments, ..self }
    }

    /// Why the kernel may run no part of it, if that is so: one clause.
    pub(crate) fn refused(&self) -> Option<&str> {
        self.refused.as_deref()
    }

    /// The program for this hook, or why there is none.
    pub(crate) fn compile(&self, options: &OffloadOptions<'_>) -> Result<KernelProgram, String> {
        if let Some(why) = &self.refused {
            return Err(why.clone());
        }
        let (headers, fragments) = (self.headers, self.fragments);
        let options = OffloadOptions { headers, fragments, ..*options };
        compile(&self.plan, &options).map_err(|e| e.to_string())
    }

    /// The program for the sockets of an interface, loaded.
    fn for_sockets(&self, site: &SocketSite<'_>) -> Result<Loaded, String> {
        let refuse: Vec<Refuse> = match (site.direction, site.loopback) {
            (Directions::In, _) => vec![Refuse::Outgoing],
            (Directions::Out, _) => vec![Refuse::Incoming],
            (Directions::InOut, Some(index)) => vec![Refuse::OutgoingBy(index)],
            (Directions::InOut, None) => Vec::new(),
        };
        let options = OffloadOptions {
            link: site.link,
            snaplen: site.snaplen,
            refuse: &refuse,
            ..OffloadOptions::new(Hook::Socket, processors()?)
        };
        Loaded::new(self.compile(&options)?, ProgramKind::SocketFilter)
    }

    /// The function that a capture at this hook calls for frames of this link type.
    fn for_hook(&self, hook: Hook, link: LinkType, live: &LiveArgs) -> Result<InCapture, String> {
        let all = OffloadOptions::new(hook, processors()?);
        let snaplen = live.snapshot_length.unwrap_or(all.snaplen);
        let KernelProgram { code, maps, prefixes, .. } =
            self.compile(&OffloadOptions { link, snaplen, ..all })?;
        let maps = Maps::new(&maps)?;
        let code = maps.put_into(&code);
        let counts = Box::new(move || maps.counts());
        Ok(InCapture { offloaded: Offloaded { code, trims: false, counts }, prefixes })
    }
}

/// How many processors the kernel may number.
fn processors() -> Result<u32, String> {
    let cpus = cpu_numbers().map_err(|e| format!("the processors are not known: {e}"))?;
    Ok(u32::try_from(cpus).unwrap_or(u32::MAX))
}

/// A program for the program of a capture to call.
struct InCapture {
    offloaded: Offloaded,
    prefixes: Vec<Prefix>,
}

/// A program in the kernel with its maps.
struct Loaded {
    program: Program,
    maps: Maps,
    prefixes: Vec<Prefix>,
}

impl Loaded {
    /// Makes the maps of a program, and loads it.
    fn new(compiled: KernelProgram, kind: ProgramKind) -> Result<Loaded, String> {
        let KernelProgram { code, maps, prefixes, .. } = compiled;
        let maps = Maps::new(&maps)?;
        let program = Program::load(kind, "weir_query", &maps.put_into(&code))
            .map_err(|e| format!("the kernel refuses the program: {e}"))?;
        Ok(Loaded { program, maps, prefixes })
    }
}

/// The maps of a program.
struct Maps {
    /// Where it counts frames: the first.
    counts: SharedMemory,
    others: Vec<Made>,
}

impl Maps {
    fn new(specs: &[MapSpec]) -> Result<Maps, String> {
        let refused = |e: io::Error| match e.kind() {
            io::ErrorKind::PermissionDenied => {
                "it needs the capability CAP_BPF: run as root, or: sudo setcap \
                 cap_net_raw,cap_bpf+ep \"$(command -v weir)\""
                    .to_owned()
            }
            _ => format!("the kernel makes no map for it: {e}"),
        };
        let made: io::Result<Vec<Made>> = specs.iter().map(Made::new).collect();
        let mut made = made.map_err(refused)?.into_iter();
        match made.next() {
            Some(Made::Memory(counts)) => Ok(Maps { counts, others: made.collect() }),
            _ => Err("it has no place to count frames".to_owned()),
        }
    }

    /// The program with the descriptors of its maps.
    fn put_into(&self, code: &Code) -> Code {
        let others = self.others.iter().map(Made::number);
        let numbers: Vec<i32> = std::iter::once(self.counts.number()).chain(others).collect();
        code.with_maps(&numbers)
    }

    /// What the program has counted.
    fn counts(&self) -> KernelCounts {
        sums(&self.counts)
    }
}

/// A map of a program.
enum Made {
    Memory(SharedMemory),
    Map(Map),
}

impl Made {
    fn new(spec: &MapSpec) -> io::Result<Made> {
        use weir_offload::MapKind as Kind;
        let map = |kind| {
            let MapSpec { name, key_bytes, value_bytes, entries, .. } = spec;
            Map::new(kind, name, *key_bytes, *value_bytes, *entries).map(Made::Map)
        };
        match spec.kind {
            Kind::Memory => {
                SharedMemory::new(&spec.name, spec.value_bytes.div_ceil(8)).map(Made::Memory)
            }
            Kind::Array => map(MapKind::Array),
            Kind::PerCpuArray => map(MapKind::PerCpuArray),
            Kind::PerCpuHash => map(MapKind::PerCpuHash),
        }
    }

    fn number(&self) -> i32 {
        match self {
            Made::Memory(memory) => memory.number(),
            Made::Map(map) => map.number(),
        }
    }
}

/// The sums of all processors.
fn sums(memory: &SharedMemory) -> KernelCounts {
    let mut sums = [0_u64; FrameCount::COUNT];
    for cpu in memory.words().chunks_exact(FrameCount::WORDS) {
        for (sum, word) in sums.iter_mut().zip(cpu) {
            *sum += word.load(std::sync::atomic::Ordering::Relaxed);
        }
    }
    let of = |count: FrameCount| sums[count as usize];
    KernelCounts {
        filtered: of(FrameCount::Filtered),
        counted: of(FrameCount::Counted),
        wanted: of(FrameCount::Wanted),
        unclear: of(FrameCount::Unclear),
        full: of(FrameCount::Full),
    }
}

/// How packet sockets get the part of a query that the kernel runs; `None` if there is to be none.
pub(crate) fn for_sockets(query: &KernelQuery, mode: OffloadMode, quiet: bool) -> Option<Offload> {
    if mode == OffloadMode::Off {
        return None;
    }
    let query = query.clone();
    let make = move |site: &SocketSite<'_>| {
        let Loaded { program, maps, prefixes } = query.for_sockets(site)?;
        if !quiet {
            // There is no way to report that this can't be written.
            let _ = writeln!(io::stderr(), "{}: {}", site.interface, runs(Hook::Socket, &prefixes));
        }
        Ok(KernelPart { program, counts: Box::new(move || maps.counts()) })
    };
    Some(Offload { make: Box::new(make), required: mode == OffloadMode::Require })
}

/// What a capture from interfaces at this hook calls in the kernel, for each in their order; none
/// of them, if there is to be none.
///
/// # Errors
/// Why there is none: the interface and a clause.
pub(crate) fn for_hook(
    query: &KernelQuery,
    hook: Hook,
    live: &LiveArgs,
    quiet: bool,
) -> Result<Vec<Offloaded>, (String, String)> {
    if live.offload == OffloadMode::Off {
        return Ok(Vec::new());
    }
    let known = interfaces().unwrap_or_default();
    let one = |name: &String| {
        // The capture says so itself if there is no such interface.
        let link = known.iter().find(|on| on.name == *name).map(|on| on.link);
        let made = query.for_hook(hook, link.unwrap_or(LinkType::ETHERNET), live);
        let InCapture { offloaded, prefixes } = made.map_err(|why| (name.clone(), why))?;
        if !quiet {
            // There is no way to report that this can't be written.
            let _ = writeln!(io::stderr(), "{name}: {}", runs(hook, &prefixes));
        }
        Ok(offloaded)
    };
    live.interface.iter().map(one).collect()
}

/// What the kernel runs, in a line.
fn runs(hook: Hook, prefixes: &[Prefix]) -> String {
    let parts = prefixes.iter().map(|prefix| {
        let plural = if prefix.stages == 1 { "" } else { "s" };
        let all = if prefix.counts { ", and counts" } else { "" };
        format!("{} stage{plural} of {}{all}", prefix.stages, prefix.pipeline)
    });
    let parts: Vec<String> = parts.collect();
    format!("the kernel ({hook}) runs {}", parts.join(", "))
}
