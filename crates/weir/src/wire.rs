//! Capture from interfaces for a run: its options, the messages while it runs, and its lines in the
//! ledger.

mod lost;

pub(crate) use lost::losses;

use crate::args::{Capture, LiveArgs, OffloadMode};
use lost::causes;
use parking_lot::Mutex;
use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use weir_capture::bpf::{Filter, Filtered};
use weir_capture::limits::PCAP_BUFFER;
use weir_capture::live::{
    ANY, Directions, Event, Handover, LiveError, LiveOptions, ReportEvent, devices, interfaces,
    open_live, open_pcap,
};
use weir_capture::outlets::{Captured, CapturedBy};
use weir_capture::tcx::open_tcx;
use weir_capture::xdp::{BusyPoll, XdpOptions, open_xdp_offloaded};
use weir_dpdk::{DpdkOptions, Mode, Senders, open_dpdk, open_senders, receives_from, sends_to};
use weir_kernel::{AtHook, KernelQuery, for_sockets, not_offloaded, offloaded};
use weir_offload::Hook;
use weir_packet::interface::InterfaceNames;
use weir_packet::source::{Account, LinkType, Source, SourceError};

/// Notes that are kept; an interface may go down and up for weeks.
const NOTES_MAX: usize = 32;

/// Interfaces whose failures are counted by name; the others are counted together.
const DOWNS_MAX: usize = 256;

/// The events of interfaces, for the ledger: the latest notes.
#[derive(Clone, Default)]
pub(crate) struct Notes(Arc<Mutex<KeptNotes>>);

#[derive(Default)]
struct KeptNotes {
    latest: VecDeque<String>,
    /// The number of notes before them.
    earlier: u64,
    /// How often interfaces went down, by name.
    downs: BTreeMap<String, u64>,
    /// The processes of the run that died, and how.
    ended: Vec<String>,
}

impl Notes {
    fn add(&self, note: String) {
        let mut kept = self.0.lock();
        if kept.latest.len() == NOTES_MAX {
            kept.latest.pop_front();
            kept.earlier += 1;
        }
        kept.latest.push_back(note);
    }

    /// Notes that a process of the run has died.
    pub(crate) fn ended(&self, how: String) {
        self.0.lock().ended.push(how);
    }

    /// A line for each process of the run that has died.
    pub(crate) fn losses(&self) -> String {
        self.0.lock().ended.iter().map(|how| format!("ended      {how}\n")).collect()
    }

    /// Notes what happened to an interface.
    fn happened(&self, event: &Event) {
        if let Event::Down(name) = event {
            let downs = &mut self.0.lock().downs;
            let known = downs.len() < DOWNS_MAX || downs.contains_key(name);
            *downs.entry(if known { name.clone() } else { "others".to_owned() }).or_default() += 1;
        }
        self.add(event.to_string());
    }

    /// The latest of them, one after the other.
    fn lines(&self) -> Vec<String> {
        let kept = self.0.lock();
        let earlier =
            (kept.earlier > 0).then(|| format!("{} earlier ones, and then:", kept.earlier));
        earlier.into_iter().chain(kept.latest.iter().cloned()).collect()
    }
}

/// The parts of a run that a capture uses besides its options.
#[derive(Clone, Copy)]
pub(crate) struct Around<'a> {
    /// The notes about interfaces.
    pub(crate) notes: &'a Notes,
    /// Where the names of interfaces go.
    pub(crate) names: &'a InterfaceNames,
    /// Whether events are not printed.
    pub(crate) quiet: bool,
    /// Whether a screen takes the terminal once packets are read: no event is printed then.
    pub(crate) shows_screen: bool,
}

/// A hook of the interfaces that were asked for.
fn at_hook(hook: Hook, args: &LiveArgs, quiet: bool) -> AtHook<'_> {
    AtHook {
        hook,
        interfaces: &args.interface,
        snaplen: args.snapshot_length,
        required: args.offload_required(),
        quiet,
    }
}

/// Opens the interfaces that were asked for, by AF_XDP.
fn open_by_xdp(
    args: &LiveArgs,
    query: &KernelQuery,
    filter: Option<Filter>,
    stop: &Arc<AtomicBool>,
    around: Around<'_>,
) -> Result<Box<dyn Source>, SourceError> {
    let interfaces = around.names.clone();
    let mut options = XdpOptions { interfaces, ..XdpOptions::default() };
    options.snap = args.snapshot_length.unwrap_or(options.snap);
    options.memory = args.buffer_size.unwrap_or(options.memory);
    options.busy_poll = args.busy_poll.then(BusyPoll::default);
    options.attach = args.xdp_mode.place();
    let at = at_hook(Hook::Xdp, args, around.quiet);
    let source = offloaded(query, &at, &event_reporter(around), |offloaded| {
        open_xdp_offloaded(&args.interface, &options, offloaded)
    })?;
    if !around.quiet {
        // There is no way to report that this can't be written.
        source.modes().iter().for_each(|mode| drop(writeln!(io::stderr(), "{mode}")));
        let _ = writeln!(io::stderr(), "listening on {}", args.interface.join(", "));
    }
    let source = source.reporting(event_reporter(around))?.ending_by(stop);
    Ok(match filter {
        Some(filter) => Box::new(Filtered::new(source, &args.interface.join(", "), filter)),
        None => Box::new(source),
    })
}

/// How to use DPDK, as the arguments say, to send by these devices.
fn dpdk_options(
    args: &LiveArgs,
    workers: usize,
    sends: &[String],
    around: Around<'_>,
) -> DpdkOptions {
    let Around { notes, names, quiet, shows_screen } = around;
    let (notes, quiet) = (notes.clone(), quiet || shows_screen);
    let report = move |text: &str| {
        if !quiet {
            // There is no way to report that this can't be written.
            let _ = writeln!(io::stderr(), "{text}");
        }
        notes.add(text.to_owned());
    };
    let mut options = DpdkOptions {
        queues: args.rings,
        workers,
        promiscuous: !args.no_promiscuous_mode,
        stamps: args.time_stamp_type.map(Into::into).unwrap_or_default(),
        busy_poll: args.busy_poll,
        report: Some(Arc::new(report)),
        sends: sends.to_vec(),
        interfaces: names.clone(),
        ..DpdkOptions::default()
    };
    options.snap = args.snapshot_length.unwrap_or(options.snap);
    options.memory = args.buffer_size.unwrap_or(options.memory);
    let words = args.dpdk_args.iter().flat_map(|words| words.split_whitespace());
    options.arguments = words.map(str::to_owned).collect();
    options
}

/// Says what DPDK made of its devices.
fn report_modes(modes: &[Mode], quiet: bool) {
    if !quiet {
        // There is no way to report that this can't be written.
        modes.iter().for_each(|mode| drop(writeln!(io::stderr(), "{mode}")));
    }
}

/// Opens the devices that were asked for, by DPDK, and those to send by.
fn open_by_dpdk(
    args: &LiveArgs,
    mut options: DpdkOptions,
    filter: Option<Filter>,
    stop: &Arc<AtomicBool>,
    quiet: bool,
) -> Result<Wires, SourceError> {
    options.stop = Some(Arc::clone(stop));
    let opened = open_dpdk(&args.interface, options)?;
    report_modes(&opened.modes, quiet);
    if !quiet {
        let _ = writeln!(io::stderr(), "listening on {}", args.interface.join(" and "));
    }
    let source: Box<dyn Source> = match filter {
        Some(filter) => {
            Box::new(Filtered::new(opened.source, &args.interface.join(" and "), filter))
        }
        None => opened.source,
    };
    Ok(Wires { senders: opened.senders, ..Wires::from(source) })
}

/// Opens devices of DPDK to send by, for a run that does not capture by DPDK. A run that reads
/// files waits for the links of these devices, until `stop`.
pub(crate) fn senders(
    args: &LiveArgs,
    sends: &[String],
    stop: &AtomicBool,
    around: Around<'_>,
) -> Result<Senders, SourceError> {
    if sends.is_empty() {
        return Ok(Senders::default());
    }
    let is_captured = |to: &str| args.interface.iter().any(|on| on == ANY || on == to);
    let captured = |device: &&String| sends_to(device).into_iter().any(is_captured);
    if let Some(device) = sends.iter().find(captured) {
        let reason = "packets are captured on this interface, and would go back where they came \
                      from, and be captured again";
        let source = io::Error::new(io::ErrorKind::InvalidInput, reason);
        return Err(SourceError::Io { name: format!("dpdk:{device}"), source });
    }
    // The options for memory and queues are those of captures.
    let options = dpdk_options(args, 1, sends, around);
    let plain = DpdkOptions::default();
    let (memory, stamps) = (plain.memory, plain.stamps);
    let (senders, modes) = open_senders(DpdkOptions { memory, stamps, ..options })?;
    report_modes(&modes, around.quiet);
    if args.interface.is_empty() {
        senders.wait_for_links(stop);
    }
    Ok(senders)
}

/// The opened interfaces that packets come from.
pub(crate) struct Wires {
    pub(crate) source: Box<dyn Source>,
    /// The link types of its packets, interface by interface; none, where they are those that the
    /// kernel says.
    pub(crate) links: Vec<LinkType>,
    /// Where packets go by DPDK, if they come by it.
    pub(crate) senders: Senders,
}

impl From<Box<dyn Source>> for Wires {
    fn from(source: Box<dyn Source>) -> Wires {
        Wires { source, links: Vec::new(), senders: Senders::default() }
    }
}

/// The properties of its run that a capture has to know.
#[derive(Clone, Copy)]
pub(crate) struct How<'a> {
    pub(crate) workers: usize,
    /// Devices of DPDK that packets go to.
    pub(crate) sends: &'a [String],
    /// When the kernel is to hand packets over.
    pub(crate) handover: Handover,
    /// The query, of which the kernel may run a part.
    pub(crate) query: &'a KernelQuery,
}

/// Opens the interfaces that were asked for, and if that is by DPDK, its devices to send by. `stop`
/// ends the capture.
pub(crate) fn open(
    args: &LiveArgs,
    how: How<'_>,
    filter: Option<Filter>,
    stop: &Arc<AtomicBool>,
    around: Around<'_>,
) -> Result<Wires, SourceError> {
    let Around { notes, quiet, .. } = around;
    if let Some(why) = how.query.refused().filter(|_| args.is_offload_required()) {
        return Err(not_offloaded(&args.interface, why.to_owned()));
    }
    if args.is_xdp() {
        return open_by_xdp(args, how.query, filter, stop, around).map(Wires::from);
    }
    if args.is_dpdk() {
        let options = dpdk_options(args, how.workers, how.sends, around);
        return open_by_dpdk(args, options, filter, stop, quiet);
    }
    if args.is_tcx() {
        let at = at_hook(Hook::Tcx, args, quiet);
        let source = offloaded(how.query, &at, &event_reporter(around), |offloaded| {
            let options = options(args, how, filter.clone(), stop, around);
            open_tcx(&args.interface, options, offloaded)
        })?;
        if !quiet {
            let names = args.interface.join(", ");
            let _ = writeln!(io::stderr(), "listening on {names}, at the traffic control hook");
        }
        return Ok(source.into());
    }
    if filter.is_some() && args.interface.iter().any(|name| name != ANY) {
        notes.add("what the kernel's capture filter refused was not seen, nor counted".to_owned());
    }
    let options = || options(args, how, filter.clone(), stop, around);
    let by_pcap = |why: Option<&str>| match args.offload {
        OffloadMode::Require => {
            let why = why.unwrap_or("libpcap sets the filter of its sockets by itself");
            Err(not_offloaded(&args.interface, format!("packets come by libpcap: {why}")))
        }
        OffloadMode::Auto | OffloadMode::Off => open_by_pcap(args, options(), why, quiet),
    };
    match args.capture {
        Some(Capture::Pcap) => return by_pcap(None),
        None => {
            if let Some(why) = only_pcap(&args.interface) {
                return by_pcap(Some(&why));
            }
        }
        Some(_) => {}
    }
    match open_live(&args.interface, options()) {
        Ok(source) => {
            if !quiet {
                let _ = writeln!(io::stderr(), "listening on {}", args.interface.join(", "));
            }
            Ok(source.into())
        }
        Err(error) => match instead(&error).filter(|_| args.capture.is_none()) {
            // If libpcap fails, too, the first error is the one to report.
            Some(why) => by_pcap(Some(why)).map_err(|_| error),
            None => Err(error),
        },
    }
}

/// Prints what happens to interfaces, and notes it.
fn event_reporter(around: Around<'_>) -> ReportEvent {
    let (notes, quiet) = (around.notes.clone(), around.quiet || around.shows_screen);
    Box::new(move |event: &Event| {
        if !quiet {
            // There is no way to report that this can't be written.
            let _ = writeln!(io::stderr(), "{event}");
        }
        notes.happened(event);
    })
}

/// How to capture, as the arguments say.
fn options(
    args: &LiveArgs,
    how: How<'_>,
    filter: Option<Filter>,
    stop: &Arc<AtomicBool>,
    around: Around<'_>,
) -> LiveOptions {
    let mut options = LiveOptions {
        filter,
        promiscuous: !args.no_promiscuous_mode,
        direction: args.direction.map(Into::into).unwrap_or_default(),
        stamps: args.time_stamp_type.map(Into::into).unwrap_or_default(),
        rings: args.rings.unwrap_or(how.workers),
        handover: how.handover,
        stop: Some(Arc::clone(stop)),
        events: Some(event_reporter(around)),
        interfaces: around.names.clone(),
        offload: args.offload_required().map(|req| for_sockets(how.query, req, around.quiet)),
        ..LiveOptions::default()
    };
    options.snaplen = args.snapshot_length.unwrap_or(options.snaplen);
    options.buffer = args.buffer_size.unwrap_or(options.buffer);
    options
}

/// Opens the devices that were asked for, by libpcap; `why` it is not done otherwise.
fn open_by_pcap(
    args: &LiveArgs,
    options: LiveOptions,
    why: Option<&str>,
    quiet: bool,
) -> Result<Wires, SourceError> {
    let buffer = args.buffer_size.unwrap_or(PCAP_BUFFER);
    let source = open_pcap(&args.interface, LiveOptions { buffer, ..options })?;
    if !quiet {
        // There is no way to report that this can't be written.
        if let Some(why) = why {
            let rings = if args.rings.is_some() { "; --rings does nothing there" } else { "" };
            let _ = writeln!(io::stderr(), "capturing by libpcap: {why}{rings}");
        }
        source.describe().iter().for_each(|line| drop(writeln!(io::stderr(), "{line}")));
        let _ = writeln!(io::stderr(), "listening on {}", args.interface.join(", "));
    }
    let links = source.links();
    Ok(Wires { links, ..Wires::from(Box::new(source) as Box<dyn Source>) })
}

/// Why nothing but libpcap will do for these interfaces, if that is so: one of them is a device
/// that the kernel does not count among its interfaces, and libpcap knows it.
fn only_pcap(names: &[String]) -> Option<String> {
    let interfaces = interfaces().ok()?;
    let unknown = |name: &&String| *name != ANY && !interfaces.iter().any(|on| on.name == **name);
    let name = names.iter().find(unknown)?;
    let known = devices().ok()?.into_iter().any(|device| device.name == *name);
    known.then(|| format!("{name} is no interface of the kernel, but a device that libpcap knows"))
}

/// Why another way may do better than AF_PACKET, which failed so; `None` where it would not.
fn instead(error: &SourceError) -> Option<&'static str> {
    match error {
        SourceError::Io { source, .. } => {
            match source.get_ref().and_then(|e| e.downcast_ref::<LiveError>()) {
                Some(LiveError::NoPacketSockets(_)) => Some("there are no packet sockets here"),
                _ => None,
            }
        }
        _ => None,
    }
}

/// The interfaces and devices that are captured, for outlets to know what would come back; `links`
/// as [`Wires`] has them.
pub(crate) fn captured(args: &LiveArgs, links: &[LinkType]) -> io::Result<Vec<Captured>> {
    if args.is_dpdk() {
        return Ok(args.interface.iter().flat_map(|device| captured_by_dpdk(device)).collect());
    }
    let direction = args.direction.map(Directions::from).unwrap_or_default();
    let outgoing = direction != Directions::In && !args.is_xdp();
    let all = interfaces()?;
    let captured = |(number, name): (usize, &String)| {
        let those = || all.iter().filter(|on| name == ANY || on.name == *name);
        let only = || those().next().map(|on| on.link).filter(|_| name != ANY);
        let link = links.get(number).copied().or_else(only);
        Captured {
            name: name.clone(),
            index: those().next().map_or(0, |on| if name == ANY { 0 } else { on.index }),
            by: if args.is_xdp() { CapturedBy::Xdp } else { CapturedBy::Kernel },
            // Packets that leave by a loopback interface come in by it.
            outgoing: outgoing || those().any(|on| on.loopback),
            link: link.unwrap_or(LinkType::LINUX_SLL2),
            addresses: those().flat_map(|on| on.ip.clone()).collect(),
        }
    };
    Ok(args.interface.iter().enumerate().map(captured).collect())
}

/// A device by the names of the interfaces of the kernel that it receives from, if it does. Packets
/// that are sent there do not come back.
fn captured_by_dpdk(device: &str) -> Vec<Captured> {
    let captured = |name: &str| {
        let all = interfaces().unwrap_or_default();
        let index = all.iter().find(|on| on.name == name).map_or(0, |on| on.index);
        let (name, by, link) = (name.to_owned(), CapturedBy::Dpdk, LinkType::ETHERNET);
        Captured { name, index, by, outgoing: false, link, addresses: Vec::new() }
    };
    match &receives_from(device)[..] {
        [] => vec![captured(device)],
        all => all.iter().map(|name| captured(name)).collect(),
    }
}

/// The lines of the ledger about interfaces: a line for all that was lost, one for each interface
/// where there are several, and what happened.
pub(crate) fn render(interfaces: &[(String, Account)], notes: &Notes) -> String {
    let mut out = String::new();
    let Account { lost, unread, .. } = Account::of_all(interfaces.iter().cloned());
    if lost.total() > 0 {
        let _ = writeln!(out, "lost       {}", losses(lost));
        out += &causes(lost, unread);
    }
    if interfaces.len() > 1 {
        for (name, account) in interfaces {
            let _ = write!(out, "{name:<10} {} received", account.received);
            if account.lost.total() > 0 {
                let _ = write!(out, ", {} lost", account.lost.total());
            }
            out.push('\n');
        }
    }
    for (name, n) in &notes.0.lock().downs {
        let often = if *n == 1 { "once".to_owned() } else { format!("{n} times") };
        let _ = writeln!(out, "down       {name}, {often}");
    }
    for note in notes.lines() {
        let _ = writeln!(out, "note       {note}");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use insta::assert_snapshot;
    use weir_packet::source::Lost;

    fn account(received: u64, [interface, kernel, ring]: [u64; 3]) -> Account {
        let lost = Lost { interface, kernel, ring };
        Account { received, lost, ..Account::default() }
    }

    #[test]
    fn nothing_lost_is_nothing_said() {
        let one = [("eth0".to_owned(), account(5, [0; 3]))];
        assert_eq!(render(&one, &Notes::default()), "");
    }

    #[test]
    fn losses_are_told_by_place_and_interface() {
        let two = [("eth0", account(500, [1, 0, 20])), ("eth1", account(7, [0; 3]))];
        let two = two.map(|(name, account)| (name.to_owned(), account));
        let notes = Notes::default();
        notes.add("eth1 is up again".to_owned());
        assert_snapshot!(render(&two, &notes), @r"
        lost       21 (20 in the ring, which was full; 1 by the interface)
                   20 came faster than they were read: -j reads faster, a capture filter leaves packets out; -B only holds bursts
        eth0       500 received, 21 lost
        eth1       7 received
        note       eth1 is up again
        ");
    }

    /// Only that there are no such sockets makes another way worth trying.
    #[test]
    fn what_libpcap_may_do_better() {
        let failed = |source| SourceError::Io { name: "eth0".to_owned(), source };
        let unsupported = io::ErrorKind::Unsupported;
        assert!(
            instead(&failed(io::Error::new(
                unsupported,
                LiveError::NoPacketSockets(unsupported.into())
            )))
            .is_some()
        );
        // A ring, promiscuous mode, times of the adapter.
        assert!(instead(&failed(unsupported.into())).is_none());
        assert!(instead(&failed(io::ErrorKind::PermissionDenied.into())).is_none());
        assert_eq!(only_pcap(&["lo".to_owned(), ANY.to_owned()]), None);
        assert_eq!(only_pcap(&["no such device".to_owned()]), None);
    }

    #[test]
    fn the_latest_notes_are_kept() {
        let notes = Notes::default();
        (0..NOTES_MAX + 3).for_each(|n| notes.add(format!("note {n}")));
        let lines = notes.lines();
        assert_eq!(lines.len(), NOTES_MAX + 1);
        assert_eq!((&lines[0][..], &lines[1][..]), ("3 earlier ones, and then:", "note 3"));
    }
}
