//! The part of a query that the kernel runs: whether a run may have one, and how it is loaded.

use crate::outlets::{QueryOutlets, outputs_of};
use crate::tables::{Clocks, FrameCounts, KernelTables};
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, Write as _};
use std::sync::{Arc, OnceLock};
use weir_capture::ebpf::{
    Offloaded, Program, ProgramKind, SharedMemory, can_wait_for_programs, cpu_numbers,
};
use weir_capture::live::{Directions, Interface, KernelPart, Offload, SocketSite, interfaces};
use weir_capture::xdp::can_copy_frames;
use weir_ebpf::Code;
use weir_offload::{Hook, KernelOutlet, KernelProgram, OffloadOptions, Prefix, Refuse, compile};
use weir_packet::source::LinkType;
use weir_packet::walk::Headers;
use weir_plan::physical::Physical;
use weir_plan::{Program as Query, SourceKind};

/// Why the kernel runs no part of this query, whatever the options of the run are.
pub fn refusal_of(program: &Query) -> Option<String> {
    let reasons = [
        (
            program.source == SourceKind::FlowRecords,
            "the query reads flow records, which packets only carry",
        ),
        (program.pipelines.is_empty(), "no program runs yet, and those to come are not known"),
    ];
    reasons.into_iter().find(|(holds, _)| *holds).map(|(_, why)| why.to_owned())
}

/// How a run reads packets, as far as its part in the kernel depends on that.
pub struct KernelRun {
    /// Which headers fields are of.
    pub headers: Headers,
    /// Whether later fragments get the ports of their first one.
    pub fragments: bool,
    /// Where packets go that pass.
    pub pass: Option<String>,
    /// Whether programs may come and go.
    pub may_change: bool,
    /// Whether nobody wants to hear what becomes of its part.
    pub quiet: bool,
}

/// A query, as the kernel is to run a part of it.
#[derive(Clone)]
pub struct KernelQuery {
    plan: Physical,
    headers: Headers,
    /// Whether later fragments get the ports of their first one.
    fragments: bool,
    /// Why it may not, if that is so.
    refused: Option<String>,
    /// The secret that the hash of the kernel's groups depends on.
    secret: [u64; 2],
    /// The tables of these groups, once a program makes some, or its frames are counted by time.
    tables: Arc<OnceLock<Arc<KernelTables>>>,
    /// Where packets go that it hands out.
    outlets: QueryOutlets,
    /// Whether programs may come and go.
    may_change: bool,
    /// Whether nobody wants to hear what becomes of its part.
    quiet: bool,
}

impl KernelQuery {
    /// Of these pipelines; `refused`: why the run has no part in the kernel.
    pub fn new(query: &Query, refused: Option<String>) -> KernelQuery {
        let plan = Physical::new(query, &[]);
        // SipHash under a random key: each draw has another one.
        let random = RandomState::new();
        KernelQuery {
            plan,
            headers: Headers::OUTER,
            fragments: false,
            refused,
            secret: [0, 1].map(|draw: u64| random.hash_one(draw)),
            tables: Arc::default(),
            outlets: QueryOutlets { all: query.outlets(), pass: None },
            may_change: false,
            quiet: false,
        }
    }

    /// The same, for a run of this kind.
    pub fn run_by(self, run: KernelRun) -> KernelQuery {
        let KernelRun { headers, fragments, pass, may_change, quiet } = run;
        let outlets = QueryOutlets { pass, ..self.outlets };
        KernelQuery { headers, fragments, outlets, may_change, quiet, ..self }
    }

    /// Why the kernel may run no part of it, if that is so: one clause.
    pub fn refused(&self) -> Option<&str> {
        self.refused.as_deref()
    }

    /// The program for this hook, or why there is none.
    pub fn compile(&self, options: &OffloadOptions<'_>) -> Result<KernelProgram, String> {
        if let Some(why) = &self.refused {
            return Err(why.clone());
        }
        let KernelQuery { headers, fragments, may_change, .. } = *self;
        let options = OffloadOptions { headers, fragments, may_change, ..*options };
        compile(&self.plan, &options).map_err(|e| e.to_string())
    }

    /// Where its packets go, as far as names tell, where those that pass go to an interface.
    pub fn outlets_by_name(&self) -> Vec<KernelOutlet> {
        let pass = Some("eth1".to_owned());
        QueryOutlets { pass, ..self.outlets.clone() }.by_name()
    }

    /// The tables that the run reads of programs in the kernel beside their counts, if there are
    /// any.
    pub fn tables(&self) -> Option<Arc<KernelTables>> {
        self.tables.get().filter(|tables| tables.has_programs()).map(Arc::clone)
    }

    /// The program for this hook, which makes groups where it can.
    fn compile_to_run(&self, options: &OffloadOptions<'_>) -> Result<KernelProgram, String> {
        // Without it nobody knows when a half of a table is at rest.
        let groups = can_wait_for_programs().then_some(self.secret);
        let copies = options.hook == Hook::Xdp && can_copy_frames();
        self.compile(&OffloadOptions { groups, copies, ..*options })
    }

    /// Makes the memory of a program, and calls `load` with the program that uses it.
    fn place<T>(
        &self,
        program: &KernelProgram,
        load: impl FnOnce(Code) -> Result<T, String>,
    ) -> Result<Placed<T>, String> {
        let words = program.maps.first().map_or(0, |map| map.words);
        let counts = SharedMemory::new("weir-frames", words).map_err(|e| no_map(&e))?;
        let counts = FrameCounts { memory: Arc::new(counts), may_change: self.may_change };
        let actions = program.actions.as_ref();
        let reads_memory = !program.tables.is_empty() || program.asks_for_losses;
        if !reads_memory && actions.is_none() && !self.may_change {
            let loaded = load(program.code.with_maps(&[counts.memory.number()]))?;
            return Ok(Placed { loaded, counts, actions: None });
        }
        let tables = self.tables.get_or_init(|| {
            let quiet = self.quiet;
            // There is no way to report that this can't be written.
            let report = move |what: &str| _ = (!quiet).then(|| writeln!(io::stderr(), "{what}"));
            let (clocks, report) = (Box::new(Clocks::now), Box::new(report));
            Arc::new(KernelTables::new(program.tables.clone(), clocks, report))
        });
        if !tables.are(&program.tables) {
            return Err("its groups are not those of the other interfaces".to_owned());
        }
        let memory = tables.add(counts.clone(), actions, &program.states);
        let memory = memory.map_err(|e| no_map(&e))?;
        let mut numbers = vec![counts.memory.number()];
        if !program.tables.is_empty() || !program.states.is_empty() {
            numbers.push(memory.control.number());
            numbers.extend(memory.memory.iter().map(SharedMemory::number));
            numbers.extend(memory.states.iter().map(|states| states.number()));
        }
        let deeds = memory.deeds.as_ref().map(|deeds| Arc::clone(&deeds.memory));
        numbers.extend(deeds.iter().map(|memory| memory.number()));
        let loaded = load(program.code.with_maps(&numbers))?;
        tables.read_from(memory);
        Ok(Placed { loaded, counts, actions: deeds })
    }

    /// The program for the sockets of an interface, loaded.
    fn for_sockets(&self, site: &SocketSite<'_>, required: bool) -> Result<Loaded, String> {
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
        let compiled = match required {
            true => self.compile_to_run(&options)?,
            // Filtering saves more than it costs at this hook, counting does not.
            false => self.compile(&OffloadOptions { without_groups: WORKERS_COUNT, ..options })?,
        };
        let placed = self.place(&compiled, |code| {
            Program::load(ProgramKind::SocketFilter, "weir_query", &code)
                .map_err(|e| format!("the kernel refuses the program: {e}"))
        })?;
        let Placed { loaded: program, counts, .. } = placed;
        Ok(Loaded { program, counts, prefixes: compiled.prefixes })
    }

    /// The function that a capture of an interface at this hook calls.
    fn for_hook(
        &self,
        hook: Hook,
        name: &str,
        known: &[Interface],
        snaplen: Option<u32>,
    ) -> Result<(Offloaded, Vec<Prefix>), String> {
        // The capture says so itself if there is no such interface.
        let link = known.iter().find(|on| on.name == name).map(|on| on.link);
        let link = link.unwrap_or(LinkType::ETHERNET);
        let (outlets, interfaces) = self.outlets.of_packets_from(name, known);
        let all = OffloadOptions::new(hook, processors()?);
        let snaplen = snaplen.unwrap_or(all.snaplen);
        let (outlets, interface) = (Ok(&outlets[..]), Some(name));
        let options = OffloadOptions { link, snaplen, outlets, interface, ..all };
        let compiled = self.compile_to_run(&options)?;
        let Placed { loaded: code, counts, actions } = self.place(&compiled, Ok)?;
        let counts = Box::new(move || counts.sums());
        let outputs = compiled.actions.as_ref().zip(actions.as_ref());
        let outputs = outputs.map(|(actions, memory)| outputs_of(actions, memory, interfaces));
        let trims = compiled.whole.is_none();
        Ok((Offloaded { code, trims, counts, outputs }, compiled.prefixes))
    }
}

/// Why the kernel makes no groups for packet sockets, unless it is required: one clause. The
/// measurements are in bench/README.md.
pub const WORKERS_COUNT: &str = "groups made by a socket filter cost more than packets \
                                        that workers count, so only `--offload require` makes them";

/// How many processors the kernel may number.
fn processors() -> Result<u32, String> {
    let cpus = cpu_numbers().map_err(|e| format!("the processors are not known: {e}"))?;
    Ok(u32::try_from(cpus).unwrap_or(u32::MAX))
}

/// The programs that the captures of interfaces at a hook call in the kernel.
#[derive(Default)]
pub(crate) struct ForHook {
    /// The program for each interface, in their order; none, if there is to be none.
    pub(crate) programs: Vec<Offloaded>,
    /// The stages that each runs, in a line.
    pub(crate) runs: Vec<String>,
}

/// A program with its memory.
struct Placed<T> {
    loaded: T,
    counts: FrameCounts,
    /// Where it counts what it does with frames.
    actions: Option<Arc<SharedMemory>>,
}

/// A program in the kernel.
struct Loaded {
    program: Program,
    counts: FrameCounts,
    prefixes: Vec<Prefix>,
}

/// Why there is no memory that programs share.
fn no_map(e: &io::Error) -> String {
    match e.kind() {
        io::ErrorKind::PermissionDenied => {
            "it needs the capability CAP_BPF: run as root, or: sudo setcap \
             cap_net_raw,cap_bpf+ep \"$(command -v weir)\""
                .to_owned()
        }
        _ => format!("the kernel makes no map for it: {e}"),
    }
}

/// How packet sockets get the part of a query that the kernel runs; `required`: they are not opened
/// without one.
pub fn for_sockets(query: &KernelQuery, required: bool, quiet: bool) -> Offload {
    let query = query.clone();
    let make = move |site: &SocketSite<'_>| {
        let Loaded { program, counts, prefixes } = query.for_sockets(site, required)?;
        if !quiet {
            // There is no way to report that this can't be written.
            let _ = writeln!(io::stderr(), "{}: {}", site.interface, runs(Hook::Socket, &prefixes));
        }
        Ok(KernelPart { program, counts: Box::new(move || counts.sums()) })
    };
    Offload { make: Box::new(make), required }
}

/// The programs that the captures of interfaces at this hook call in the kernel.
///
/// # Errors
/// Why there is nothing that they could: the interface and a clause.
pub(crate) fn for_hook(
    query: &KernelQuery,
    hook: Hook,
    on: &[String],
    snaplen: Option<u32>,
) -> Result<ForHook, (String, String)> {
    let mut all = ForHook::default();
    let known = interfaces().unwrap_or_default();
    for name in on {
        let made = query.for_hook(hook, name, &known, snaplen);
        let (program, prefixes) = made.map_err(|why| (name.clone(), why))?;
        all.programs.push(program);
        all.runs.push(format!("{name}: {}", runs(hook, &prefixes)));
    }
    Ok(all)
}

/// The stages that the kernel runs, in a line.
fn runs(hook: Hook, prefixes: &[Prefix]) -> String {
    let parts = prefixes.iter().map(|prefix| {
        let plural = if prefix.stages == 1 { "" } else { "s" };
        let all = match prefix {
            Prefix { acts: true, counts: true, .. } => ", hands packets out, and counts",
            Prefix { acts: true, .. } => ", and hands packets out",
            Prefix { counts: true, .. } => ", and counts",
            _ => "",
        };
        format!("{} stage{plural} of {}{all}", prefix.stages, prefix.pipeline)
    });
    let parts: Vec<String> = parts.collect();
    format!("the kernel ({hook}) runs {}", parts.join(", "))
}
