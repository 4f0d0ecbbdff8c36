//! The part of a query that the kernel runs: whether a run may have one, and how it is loaded.

use crate::args::{Capture, LiveArgs, OffloadMode, RunOptions};
use std::io::{self, Write as _};
use weir_capture::ebpf::{Offloaded, Program, ProgramKind, SharedMemory, cpu_numbers};
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
            options.takes_programs(),
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
    fn for_hook(
        &self,
        hook: Hook,
        link: LinkType,
        live: &LiveArgs,
    ) -> Result<(Offloaded, Vec<Prefix>), String> {
        let all = OffloadOptions::new(hook, processors()?);
        let snaplen = live.snapshot_length.unwrap_or(all.snaplen);
        let KernelProgram { code, maps, prefixes, .. } =
            self.compile(&OffloadOptions { link, snaplen, ..all })?;
        let maps = Maps::new(&maps)?;
        let code = maps.put_into(&code);
        let counts = Box::new(move || maps.counts());
        Ok((Offloaded { code, trims: false, counts }, prefixes))
    }
}

/// How many processors the kernel may number.
fn processors() -> Result<u32, String> {
    let cpus = cpu_numbers().map_err(|e| format!("the processors are not known: {e}"))?;
    Ok(u32::try_from(cpus).unwrap_or(u32::MAX))
}

/// What the captures of interfaces at a hook call in the kernel.
#[derive(Default)]
pub(crate) struct ForHook {
    /// The program for each interface, in their order; none, if there is to be none.
    pub(crate) programs: Vec<Offloaded>,
    /// What each runs, in a line.
    pub(crate) runs: Vec<String>,
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

/// The maps of a program; the first is where it counts frames.
struct Maps(Vec<SharedMemory>);

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
        let made = specs.iter().map(|map| SharedMemory::new(&map.name, map.words));
        made.collect::<io::Result<_>>().map(Maps).map_err(refused)
    }

    /// The program with the descriptors of its maps.
    fn put_into(&self, code: &Code) -> Code {
        let numbers: Vec<i32> = self.0.iter().map(SharedMemory::number).collect();
        code.with_maps(&numbers)
    }

    /// What the program has counted.
    fn counts(&self) -> KernelCounts {
        self.0.first().map(sums).unwrap_or_default()
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

/// What the captures of interfaces at this hook call in the kernel.
///
/// # Errors
/// Why there is nothing that they could: the interface and a clause.
pub(crate) fn for_hook(
    query: &KernelQuery,
    hook: Hook,
    live: &LiveArgs,
) -> Result<ForHook, (String, String)> {
    let mut all = ForHook::default();
    if live.offload == OffloadMode::Off {
        return Ok(all);
    }
    let known = interfaces().unwrap_or_default();
    for name in &live.interface {
        // The capture says so itself if there is no such interface.
        let link = known.iter().find(|on| on.name == *name).map(|on| on.link);
        let made = query.for_hook(hook, link.unwrap_or(LinkType::ETHERNET), live);
        let (program, prefixes) = made.map_err(|why| (name.clone(), why))?;
        all.programs.push(program);
        all.runs.push(format!("{name}: {}", runs(hook, &prefixes)));
    }
    Ok(all)
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
