//! The sources and outlets that a run opens before it begins, and the permissions that it gives up
//! then.

use super::row_files::{ProgramFiles, RowFiles};
use super::serves::is_stream;
use super::session::Run;
use crate::args::RunOptions;
use crate::exit::usage;
use crate::offload;
use crate::output::Taken;
use crate::signals::CaughtSignals;
use crate::stats::Stats;
use crate::term::Term;
use crate::user::become_user;
use crate::wire::{Around, Wires};
use crate::{exports, output, records, windowless, wire};
use anyhow::Context as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use weir_capture::live::Handover;
use weir_capture::lookback::LookbackOptions as Kept;
use weir_capture::outlets::Outlets;
use weir_capture::records::RecordPackets;
use weir_capture::wrapped::{StoppableSource, Take};
use weir_capture::write::{Folder, Made};
use weir_capture::{Captures, Order};
use weir_dpdk::Senders;
use weir_engine::rows::Output;
use weir_kafka::address::KafkaTopic;
use weir_kernel::{KernelQuery, KernelRun, KernelTables, refusal_of};
use weir_packet::egress::Egress as _;
use weir_packet::source::{Source, SourceError};
use weir_plan::Program;
use weir_sandbox::{InThread, Needs, confine};

/// The source of packets, open.
pub(super) enum Input {
    Files(Captures),
    Wires(Wires),
}

/// The input of a run, and devices that were opened with it.
pub(super) struct OpenInput {
    pub(super) input: Input,
    /// Devices of DPDK that packets go to.
    pub(super) senders: Senders,
    /// Groups that programs in the kernel make.
    pub(super) kernel: Option<Arc<KernelTables>>,
}

/// The devices of DPDK that packets go to, or may go to where programs come.
pub(super) fn sends_by_dpdk(program: &Program, options: &RunOptions) -> Vec<String> {
    Outlets::devices_of_dpdk(&options.outlets(program), options.write.to.as_deref())
}

/// Says how the program runs, if that is asked for, and which rows a run over interfaces will show
/// only at its end.
pub(super) fn say_plan(program: &Program, options: &RunOptions, term: &Term) {
    let workers = options.workers.get();
    if options.verbose {
        term.say_text(&weir_plan::print::explain(program, workers));
        term.say_text(&options.memory.explain());
    }
    if !options.quiet {
        exports::say_unread(program, &options.http, term);
    }
    if !options.live.interface.is_empty() && !options.quiet {
        windowless::notes(program).iter().for_each(|note| term.say(note));
    }
}

impl Run<'_> {
    /// Opens the captures, or the interfaces, which `stop` ends, and devices of DPDK that packets
    /// go to: it has to know all of its devices when it is started, and is before privileges are
    /// given up.
    pub(super) fn input(&self, stop: &Arc<AtomicBool>) -> anyhow::Result<OpenInput> {
        records::check(self.options, &self.program, self.filter.is_some())?;
        if records::is_received(self.options) {
            let source = records::open(self.options, stop, &self.records, self.options.quiet)?;
            let senders = Senders::default();
            return Ok(OpenInput { input: Input::Wires(source.into()), senders, kernel: None });
        }
        let (filter, sends) = (self.filter.clone(), self.sends_by_dpdk());
        let live = &self.options.live;
        let around = Around {
            notes: &self.notes,
            names: &self.names,
            quiet: self.options.quiet,
            shows_screen: self.shows_screen,
        };
        let refused = offload::refusal(
            self.options,
            filter.is_some(),
            self.program.captures().next().is_some(),
        );
        let refused = refused.or_else(|| refusal_of(&self.program));
        if let Some(why) =
            refused.as_ref().filter(|_| !self.is_live() && live.is_offload_required())
        {
            return Err(usage(format!("--offload require: {why}")));
        }
        let query = KernelQuery::new(&self.program, refused).run_by(self.kernel_run());
        let input = if self.is_live() {
            let how = wire::How {
                query: &query,
                workers: self.options.workers.get(),
                sends: &sends,
                handover: self.handover(),
            };
            let mut wires = wire::open(live, how, filter, stop, around)?;
            if live.is_dpdk() {
                let senders = std::mem::take(&mut wires.senders);
                return Ok(OpenInput { input: Input::Wires(wires), senders, kernel: None });
            }
            Input::Wires(wires)
        } else {
            Input::Files(self.captures()?)
        };
        let senders = wire::senders(live, &sends, stop, around)?;
        Ok(OpenInput { input, senders, kernel: query.tables() })
    }

    /// How the run reads packets, for its part in the kernel.
    fn kernel_run(&self) -> KernelRun {
        KernelRun {
            headers: self.options.headers(),
            fragments: self.options.fragments,
            pass: self.options.write.to.clone(),
            may_change: self.options.takes_programs(),
            quiet: self.options.quiet,
        }
    }

    /// The captures, from their beginning.
    pub(super) fn captures(&self) -> Result<Captures, SourceError> {
        Captures::new(self.options.read.clone(), &self.capture_options())
    }

    /// How captures are read.
    pub(super) fn capture_options(&self) -> weir_capture::Options {
        weir_capture::Options {
            filter: self.filter.clone(),
            order: if self.options.append { Order::Given } else { Order::Time },
            interfaces: self.names.clone(),
            ..Default::default()
        }
    }

    /// When the kernel is to hand packets over: at once, where somebody waits for what is made of
    /// them.
    fn handover(&self) -> Handover {
        let all = self.options.outlets(&self.program);
        let sends = Outlets::any_wire(&all, self.options.write.to.as_deref());
        match sends || self.options.live.immediate_mode {
            true => Handover::AtOnce,
            false => Handover::Blocks,
        }
    }

    fn sends_by_dpdk(&self) -> Vec<String> {
        sends_by_dpdk(&self.program, self.options)
    }

    /// Where packets go, open.
    pub(super) fn outlets(&self, input: &Input, senders: Senders) -> anyhow::Result<Outlets> {
        // A topic of Kafka is no outlet of this process.
        let write = self.options.write.to.as_deref().filter(|to| !KafkaTopic::is_meant(to));
        let captured = match input {
            Input::Wires(_) if records::is_received(self.options) => Vec::new(),
            Input::Wires(wires) => wire::captured(&self.options.live, &wires.links)?,
            Input::Files(_) => Vec::new(),
        };
        let mut outlets = Outlets::new(&self.options.read, captured, write, self.report_outlets());
        outlets.among(&self.in_use);
        outlets.by_dpdk(Box::new(move |device| senders.open(device)));
        if self.options.gives_to_host() {
            outlets.by_kernel();
        }
        outlets.name_interfaces(&self.names);
        outlets.prompt(self.options.packet_buffered);
        outlets.stop_by(&self.stop);
        if self.options.takes_programs() {
            outlets.outlive();
        }
        outlets.rotate(self.options.write.rotation());
        let folder = |path: &PathBuf| {
            Folder::open(path).with_context(|| format!("--allow-write {}", path.display()))
        };
        let folders = self.options.later.allow_write.iter().map(folder);
        outlets.create_in(folders.collect::<anyhow::Result<_>>()?);
        let all = self.options.outlets(&self.program);
        if !all.is_empty() {
            outlets.prepare(&all)?;
        }
        Ok(outlets)
    }

    /// The files of rows, if they go into a folder, which is `made`.
    pub(super) fn files(&self, made: &mut Made) -> anyhow::Result<RowFiles> {
        if let Some(folder) = &self.options.rows.store {
            made.folder(folder).with_context(|| format!("--store {}", folder.display()))?;
            return output::store_folder(folder).map(RowFiles::Stored);
        }
        let Some(folder) = &self.options.rows.out_dir else { return Ok(RowFiles::None) };
        let named = || format!("--out-dir {}", folder.display());
        made.folder(folder).with_context(named)?;
        let (format, taken) = (self.format, Taken::among(&self.in_use));
        if !self.options.takes_programs() {
            let outputs = Output::of(&self.program);
            return output::files(folder, &outputs, format, &taken).map(RowFiles::Open);
        }
        let first =
            self.running.iter().map(|p| output::files(folder, &p.outputs(), format, &taken));
        let first = first.collect::<anyhow::Result<_>>()?;
        let folder = Folder::open(folder).with_context(named)?;
        Ok(RowFiles::PerProgram(ProgramFiles { folder, first, taken }))
    }

    /// Gives up root, if that is asked for.
    pub(super) fn become_user(&self) -> anyhow::Result<()> {
        let Some(user) = &self.options.confine.relinquish_privileges else { return Ok(()) };
        self.say_early(become_user(user)?);
        Ok(())
    }

    /// Folders in which files are made while the run goes on, but for those of outlets: files of
    /// rows, of packets around rows, and of those who look at its screen.
    pub(super) fn later_folders(
        &self,
        files: &RowFiles,
        kept: Option<&Kept>,
    ) -> anyhow::Result<Vec<PathBuf>> {
        let given = self.options.lookback.capture_dir.as_ref();
        let mut all = Vec::new();
        match files {
            RowFiles::PerProgram(files) => all.push(files.folder.path().to_owned()),
            RowFiles::None | RowFiles::Open(_) | RowFiles::Stored(_) => {}
        }
        if let Some(folder) = given.filter(|_| self.options.takes_programs() && kept.is_some()) {
            Folder::open(folder).with_context(|| format!("--capture-dir {}", folder.display()))?;
        }
        if given.is_some() || self.program.captures().next().is_some() {
            all.extend(kept.map(|kept| kept.folder.clone()));
        }
        all.extend(given.filter(|_| self.shows_screen).cloned());
        Ok(all)
    }

    /// Gives up what the run does not need from here on.
    pub(super) fn confine(&self, input: &Input, outlets: &Outlets, folders: Vec<PathBuf>) {
        let confined = match self.options.confine.no_sandbox {
            true => "sandbox: none (--no-sandbox)".to_owned(),
            false => confine(&self.needs(input, outlets, folders), self.in_dpdk()).to_string(),
        };
        self.say_early(confined);
    }

    /// Prints the user and the permissions of a capture from interfaces, or with `-v`.
    fn say_early(&self, text: String) {
        if self.options.verbose || self.is_live() && !self.options.quiet {
            self.term.say(text);
        }
    }

    /// Whether DPDK was started, to capture or to send.
    fn uses_dpdk(&self) -> bool {
        self.is_live() && self.options.live.is_dpdk() || !self.sends_by_dpdk().is_empty()
    }

    /// How to run something in DPDK's thread, if there is one.
    fn in_dpdk(&self) -> Option<InThread> {
        (self.uses_dpdk() && weir_dpdk::is_linked()).then_some(weir_dpdk::in_its_thread)
    }

    /// The permissions that the run needs after it has opened everything.
    fn needs(&self, input: &Input, outlets: &Outlets, folders: Vec<PathBuf>) -> Needs {
        let mut needs = Needs::default();
        let (xdp, dpdk) = (self.options.live.is_xdp(), self.options.live.is_dpdk());
        if self.is_live() && xdp {
            needs.xdp();
        }
        if self.uses_dpdk() {
            needs.dpdk();
        }
        if self.is_live() && self.options.live.is_pcap() {
            needs.libpcap();
        }
        if let Input::Files(captures) = input {
            needs.captures(captures.unopened());
            if self.shows_screen || self.reads_again() {
                let files = self.options.read.iter().map(String::as_str);
                needs.captures(files.filter(|name| !is_stream(name)));
            }
        }
        if self.filter.is_some() && (xdp || dpdk || self.options.live.is_tcx() || !self.is_live()) {
            needs.filter();
        }
        needs.folders(outlets.folders());
        needs.devices(outlets.devices());
        if outlets.opens_xdp() {
            needs.xdp_sockets();
        }
        needs.folders(folders);
        if let Some(folder) = &self.options.rows.store {
            needs.store(folder);
        }
        needs.remove.extend(self.options.later.control.as_deref().map(folder_of));
        needs
    }

    /// Begins to read, and lets signals end it. Waits until a stream begins, which may turn out to
    /// be no capture, unless programs may come before that; `None` if it was ended meanwhile.
    pub(super) fn source(
        &self,
        input: Input,
        stream: bool,
        heard: CaughtSignals,
        stats: &Stats,
    ) -> anyhow::Result<Option<Box<dyn Source>>> {
        let passes = self.serves.as_ref().map(|serves| Arc::clone(&serves.passes));
        let end_passes = move || passes.iter().for_each(|passes| passes.end());
        let source: Box<dyn Source> = match input {
            Input::Files(captures) if stream => {
                let (mut source, end) = StoppableSource::start(move || captures.start())?;
                heard.handle_signals(stats, move || {
                    end.end();
                    end_passes();
                })?;
                if !self.options.takes_programs() && !source.begin()? {
                    return Ok(None);
                }
                Box::new(source)
            }
            Input::Files(captures) => {
                heard.handle_signals(stats, end_passes)?;
                captures.start()?
            }
            Input::Wires(wires) => {
                heard.handle_signals(stats, end_passes)?;
                wires.source
            }
        };
        Ok(Some(self.counted(self.records_of(source))))
    }

    /// The flow records that the packets of a source carry, if the query reads those.
    pub(super) fn records_of(&self, source: Box<dyn Source>) -> Box<dyn Source> {
        if !self.reads_records() || records::is_received(self.options) {
            return source;
        }
        let lateness_ns = records::lateness_ns(self.options);
        Box::new(RecordPackets::new(source, lateness_ns, &self.records))
    }

    /// As much of a source as the run takes.
    pub(super) fn counted(&self, source: Box<dyn Source>) -> Box<dyn Source> {
        match self.options.count {
            Some(n) => Box::new(Take::new(source, n)),
            None => source,
        }
    }
}

/// The folder that a file is in.
fn folder_of(file: &Path) -> PathBuf {
    match file.parent() {
        Some(folder) if folder != Path::new("") => folder.to_owned(),
        _ => PathBuf::from("."),
    }
}
