//! Where frames go: files and wires, by the names of their outlets.
//!
//! What a name means is told by its form, see [`Place`]. Outlets of one name are one wire. Files
//! must take everything, or the run ends; what a wire does not take is counted, and it goes on.

use crate::limits::{SEND_WAIT_FILE_NS, SEND_WAIT_LIVE_NS};
use crate::live::ANY;
use crate::send::place::{Place, PlaceError};
use crate::send::{DEVICES, OpenTransmit, Wire};
use crate::write::{Files, Rotation};
use std::io;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use weir_packet::egress::{Egress, Outlet, Refusal, Refused, Sent};
use weir_packet::ethernet::link_name;
use weir_packet::interface::InterfaceNames;
use weir_packet::source::LinkType;

/// Says something to the user while the run goes on: that an interface went down, or is back.
pub type Tell = Box<dyn FnMut(String)>;

/// An interface that frames are captured on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Captured {
    /// Its name.
    pub name: String,
    /// The kernel's number of it; 0 for all interfaces, and for what the kernel does not know.
    pub index: u32,
    /// How.
    pub by: CapturedBy,
    /// Whether frames are captured that leave by it, too.
    pub outgoing: bool,
    /// The link type of frames captured on it.
    pub link: LinkType,
    /// The IP addresses that the machine has there.
    pub addresses: Vec<IpAddr>,
}

/// The kernel's number of an interface, which may have several names.
#[cfg(target_os = "linux")]
fn index_of(interface: &str) -> Option<u32> {
    crate::sys::link::index(interface).ok()
}

#[cfg(not(target_os = "linux"))]
fn index_of(_: &str) -> Option<u32> {
    None
}

/// How frames are captured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CapturedBy {
    /// Of what the kernel receives and sends.
    Kernel,
    /// By sockets of AF_XDP on all queues.
    Xdp,
    /// By a device of DPDK, whose name its frames bear instead of the interface's.
    Dpdk,
}

impl Captured {
    /// Whether it is this interface, by whatever name, or all of them.
    fn is(&self, interface: &str) -> bool {
        let same = || index_of(interface) == Some(self.index);
        self.name == ANY || self.name == interface || self.index != 0 && same()
    }
}

/// Files and wires that frames go to, by the names of their outlets.
pub struct Outlets {
    files: Files,
    has_files: bool,
    pass: Option<String>,
    captured: Vec<Captured>,
    wires: Vec<Wire>,
    /// By outlet, the wire that it is; none of a file.
    wire_of: Vec<Option<usize>>,
    /// By wire, the number of its interface, where frames are captured on it, too.
    came_by: Vec<Option<u16>>,
    /// What interfaces are called.
    names: InterfaceNames,
    /// By outlet, what its wire refused.
    refused: Vec<Refused>,
    tell: Tell,
    /// Opens devices of DPDK.
    dpdk: OpenTransmit,
    /// Whether outlets go on where a file can't be written, and the first that could not.
    outlives: bool,
    failed: Option<io::Error>,
    /// Whether there were as many files as there were to be.
    over: bool,
    when_over: Box<dyn Fn()>,
}

impl Outlets {
    /// The outlets of a run that reads the captures `read` and captures on some interfaces. Packets
    /// that pass go to `pass`; without it they are not wanted.
    pub fn new(
        read: &[String],
        captured: Vec<Captured>,
        pass: Option<&str>,
        tell: Tell,
    ) -> Outlets {
        Outlets {
            files: Files::new(read, pass),
            has_files: false,
            pass: pass.map(str::to_owned),
            captured,
            wires: Vec::new(),
            wire_of: Vec::new(),
            came_by: Vec::new(),
            names: InterfaceNames::default(),
            refused: Vec::new(),
            tell,
            dpdk: Box::new(|_| Err(io::Error::other("nothing is sent by DPDK here"))),
            outlives: false,
            failed: None,
            over: false,
            when_over: Box::new(|| ()),
        }
    }

    /// Opens devices of DPDK by this; without it they are refused.
    pub fn by_dpdk(&mut self, open: OpenTransmit) {
        self.dpdk = open;
    }

    /// The devices of DPDK among some outlets, where packets that pass go to `pass`, as they are
    /// named behind `dpdk:`. Opens nothing.
    pub fn devices_of_dpdk(outlets: &[Outlet], pass: Option<&str>) -> Vec<String> {
        let place = |name| match Place::of(name) {
            Ok(Place::Dpdk(device)) => Some(device),
            _ => None,
        };
        let mut all: Vec<String> =
            outlets.iter().filter_map(|outlet| name(outlet, pass)).filter_map(place).collect();
        all.sort();
        all.dedup();
        all
    }

    /// Whether one of these outlets is no file, where packets that pass go to `pass`: then somebody
    /// waits for what is sent there. Opens nothing.
    pub fn any_wire(outlets: &[Outlet], pass: Option<&str>) -> bool {
        let mut names = outlets.iter().filter_map(|outlet| name(outlet, pass));
        names.any(|name| !matches!(Place::of(name), Ok(Place::File)))
    }

    /// Lets the other outlets go on where a file can't be written any more: that is told, its
    /// frames count as refused, and the end fails.
    pub fn outlive(&mut self) {
        self.outlives = true;
        self.files.outlive();
    }

    /// Tells what went wrong with files.
    fn tell_failures(&mut self) {
        if !self.outlives {
            return;
        }
        for e in self.files.take_errors() {
            (self.tell)(format!("{e}; packets for it are counted as refused"));
            self.failed.get_or_insert(e);
        }
    }

    /// Calls this once a capture has as many files as it was to have, and further frames no place.
    pub fn when_over(&mut self, call: impl Fn() + 'static) {
        self.when_over = Box::new(call);
    }

    /// Whether that has happened.
    pub fn is_over(&self) -> bool {
        self.over
    }

    /// Whether files are written as soon as frames come, instead of when some have gathered.
    pub fn prompt(&mut self, prompt: bool) {
        self.files.prompt(prompt);
    }

    /// Cuts the capture of packets that pass into files, where it is one.
    pub fn rotate(&mut self, rotation: Option<Rotation>) {
        self.files.rotate(rotation);
    }

    /// Once this is set, a reader of a pipe that takes nothing is not waited for any more.
    pub fn stop_by(&mut self, stop: &Arc<AtomicBool>) {
        self.files.stop_by(stop);
    }

    /// Says what the interfaces are called that frames came by: they don't leave by the same, and
    /// pcapng files tell.
    pub fn name_interfaces(&mut self, names: &InterfaceNames) {
        self.names = names.clone();
        self.files.name_interfaces(names);
    }

    /// Folders in which files are made while the run goes on, once the outlets are open.
    pub fn folders(&self) -> Vec<PathBuf> {
        self.files.folders()
    }

    /// Devices that are opened anew if somebody removes them and makes them again, which takes
    /// CAP_NET_ADMIN.
    pub fn devices(&self) -> Vec<PathBuf> {
        let any = self.wires.iter().any(Wire::is_device);
        if any { vec![PathBuf::from(DEVICES)] } else { Vec::new() }
    }

    /// Whether sockets of AF_XDP are opened anew if somebody removes their interfaces and makes
    /// them again, which takes CAP_NET_RAW, and memory that may be locked.
    pub fn opens_xdp(&self) -> bool {
        self.wires.iter().any(Wire::is_xdp)
    }

    /// Whether all outlets have names that mean something, where packets that pass go to `pass`.
    /// Opens nothing.
    ///
    /// # Errors
    /// Of the first that has none.
    pub fn check(outlets: &[Outlet], pass: Option<&str>) -> Result<(), PlaceError> {
        outlets
            .iter()
            .filter_map(|outlet| name(outlet, pass))
            .try_for_each(|name| Place::of(name).map(|_| ()))
    }

    /// Opens the wires among these outlets that are not open.
    fn open_wires(&mut self, outlets: &[Outlet]) -> io::Result<()> {
        let wait_ns = if self.captured.is_empty() { SEND_WAIT_FILE_NS } else { SEND_WAIT_LIVE_NS };
        for outlet in outlets {
            let Some(name) = name(outlet, self.pass.as_deref()) else { continue };
            let refused = |e: PlaceError| io::Error::new(io::ErrorKind::InvalidInput, e);
            let place = Place::of(name).map_err(refused)?;
            if place == Place::File || self.wires.iter().any(|wire| wire.name == name) {
                continue;
            }
            self.no_way_back(name, &place)?;
            let wire = Wire::open(name, &place, wait_ns, &mut *self.tell, &mut self.dpdk)?;
            self.no_loop(&wire)?;
            self.wires.push(wire);
            self.files.leave(name);
        }
        Ok(())
    }

    /// Refuses an interface that frames are captured on, unless others are, too, and only what
    /// comes in: then frames don't go back where they came from, see [`Refusal::CameByIt`]. And
    /// a device that brings what is written to it.
    fn no_way_back(&self, name: &str, place: &Place) -> io::Result<()> {
        let interface = match place {
            Place::Interface => name,
            Place::Xdp(interface) | Place::Tap(interface) | Place::Tun(interface) => interface,
            _ => return Ok(()),
        };
        let Some(on) = self.captured.iter().find(|on| on.is(interface)) else { return Ok(()) };
        let several = self.captured.len() > 1 && on.by != CapturedBy::Dpdk;
        Err(refused(match place {
            Place::Tap(_) | Place::Tun(_) => format!(
                "{name}: packets that are written there come in by {interface}, and would be \
                 captured again, without end"
            ),
            _ if several && on.outgoing => format!(
                "{name}: packets are captured on this interface that leave by it; capture what \
                 comes in only: -Q in"
            ),
            Place::Xdp(_) if several && on.by == CapturedBy::Xdp => format!(
                "{name}: all its queues are captured by AF_XDP, and none is left to send by; send \
                 by {interface}"
            ),
            _ if several => return Ok(()),
            _ => format!(
                "{name}: packets are captured on this interface, and would go back where they \
                 came from; a network function stands between two interfaces"
            ),
        }))
    }

    /// The number of the interface that a wire is, where frames are captured on it.
    fn captured_by(&self, wire: &Wire) -> Option<u16> {
        let place = Place::of(&wire.name);
        let interface = match &place {
            Ok(Place::Interface) => &wire.name,
            Ok(Place::Xdp(interface)) => interface,
            _ => return None,
        };
        let on = self.captured.iter().find(|on| on.is(interface))?;
        self.names.number(&on.name)
    }

    /// Refuses a tunnel whose own packets would be captured, and wrapped again, without end; and a
    /// wire that takes nothing of what is captured.
    fn no_loop(&self, wire: &Wire) -> io::Result<()> {
        let name = &wire.name;
        let local = wire.local_address();
        let seen =
            |on: &&Captured| on.outgoing && local.is_some_and(|ip| on.addresses.contains(&ip));
        if let Some(Captured { name: on, .. }) = self.captured.iter().find(seen) {
            return Err(refused(format!(
                "{name}: packets leave for there by {on}, and would be captured there again, \
                 without end; capture what comes in only: -Q in"
            )));
        }
        let other = |on: &Captured| !wire.takes(on.link);
        match self.captured.first() {
            Some(first) if self.captured.iter().all(other) => Err(refused(format!(
                "{name}: takes no frames of link type {}, which those of {} have",
                link_name(first.link),
                first.name
            ))),
            _ => Ok(()),
        }
    }
}

fn refused(reason: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, reason)
}

/// The name of an outlet, where packets that pass go to `pass`.
fn name<'a>(outlet: &'a Outlet, pass: Option<&'a str>) -> Option<&'a str> {
    match outlet {
        Outlet::Pass => pass,
        Outlet::Named(name) => Some(name),
    }
}

impl Egress for Outlets {
    fn open(&mut self, outlets: &[Outlet]) -> io::Result<()> {
        self.prepare(outlets)?;
        self.settle();
        self.refused = vec![Refused::default(); outlets.len()];
        let pass = self.pass.as_deref();
        let named = |wire: &Wire| outlets.iter().any(|o| name(o, pass) == Some(&wire.name));
        self.wires.retain(named);
        let place = |outlet| {
            let name = name(outlet, pass)?;
            self.wires.iter().position(|wire| wire.name == name)
        };
        self.wire_of = outlets.iter().map(place).collect();
        self.came_by = self.wires.iter().map(|wire| self.captured_by(wire)).collect();
        let mut all = outlets.iter().zip(&self.wire_of);
        self.has_files = all.any(|(outlet, wire)| wire.is_none() && name(outlet, pass).is_some());
        self.files.open(outlets)?;
        self.tell_failures();
        Ok(())
    }

    /// Opens wires first. Files stay as they are until the outlets are opened.
    fn prepare(&mut self, outlets: &[Outlet]) -> io::Result<()> {
        let before = self.wires.len();
        let opened = self.open_wires(outlets).and_then(|()| self.files.prepare(outlets));
        if opened.is_err() {
            self.wires.truncate(before);
        }
        opened
    }

    fn settle(&mut self) {
        self.wires.iter_mut().for_each(|wire| wire.settle(&mut self.refused));
    }

    fn wants(&self, outlet: &Outlet) -> bool {
        name(outlet, self.pass.as_deref()).is_some()
    }

    fn send(&mut self, memory: &[u8], frames: &[Sent]) -> io::Result<()> {
        if !self.wires.is_empty() {
            for (n, frame) in (0..).zip(frames) {
                let outlet = frame.outlet as usize;
                let Some(Some(wire)) = self.wire_of.get(outlet) else { continue };
                match self.came_by[*wire] {
                    Some(number) if frame.via.interface() == Some(number) => {
                        self.refused[outlet].add(Refusal::CameByIt, frame.len);
                    }
                    _ => self.wires[*wire].push(n),
                }
            }
            for wire in &mut self.wires {
                wire.send(memory, frames, &mut self.refused, &mut *self.tell);
            }
        }
        if self.has_files {
            self.files.send(memory, frames)?;
            self.tell_failures();
            if !self.over && self.files.is_over() {
                self.over = true;
                (self.when_over)();
            }
        }
        Ok(())
    }

    fn is_away(&mut self, outlet: u32) -> bool {
        let wire = self.wire_of.get(outlet as usize).copied().flatten();
        wire.is_some_and(|wire| self.wires[wire].is_away(&mut *self.tell))
    }

    fn refused(&self, outlet: u32) -> Refused {
        let mut refused = self.refused.get(outlet as usize).copied().unwrap_or_default();
        let (frames, bytes) = self.files.missing(outlet);
        refused.frames[Refusal::Unwritten as usize] += frames;
        refused.bytes[Refusal::Unwritten as usize] += bytes;
        refused.merge(&self.files.refused_by(outlet));
        refused
    }

    fn flush(&mut self) -> io::Result<()> {
        self.files.flush()?;
        self.tell_failures();
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        self.settle();
        let finished = self.files.finish();
        self.tell_failures();
        finished.and(self.failed.take().map_or(Ok(()), Err))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::send::Transmit;
    use std::cell::Cell;
    use std::rc::Rc;
    use weir_packet::interface::Via;

    /// What is said where frames of `lo` are captured and handed to this name.
    fn opened(name: &str, outgoing: bool, link: LinkType) -> String {
        opened_on("lo", name, outgoing, link)
    }

    fn opened_on(on: &str, name: &str, outgoing: bool, link: LinkType) -> String {
        let addresses = vec![IpAddr::from([127, 0, 0, 1])];
        let by = CapturedBy::Kernel;
        let on = Captured { name: on.to_owned(), index: 0, by, outgoing, link, addresses };
        let mut outlets = Outlets::new(&[], vec![on], None, Box::new(|_| {}));
        let outlet = Outlet::Named(name.to_owned());
        outlets.open(&[outlet]).map_or_else(|e| e.to_string(), |()| "opens".to_owned())
    }

    #[test]
    fn what_would_be_captured_again_is_refused() {
        let check = |name: &str, outgoing, link, part: &str| {
            let told = opened(name, outgoing, link);
            assert!(told.starts_with(part), "{told}");
        };
        let (eth, raw) = (LinkType::ETHERNET, LinkType::RAW);
        check("lo", false, eth, "lo: packets are captured on this interface");
        check("xdp:lo", false, eth, "xdp:lo: packets are captured on this interface");
        check("udp://127.0.0.1:9", true, eth, "udp://127.0.0.1:9: packets leave for there by lo");
        check("udp://127.0.0.1:9", false, eth, "opens");
        check("vxlan://127.0.0.1?vni=1", false, eth, "opens");
        let any = |name: &str| opened_on(ANY, name, false, eth);
        assert!(any("lo").starts_with("lo: packets are captured on this interface"));
        assert_eq!(any("udp://127.0.0.1:9"), "opens");
        let other = "vxlan://127.0.0.1?vni=1: takes no frames of link type RAW, which those of lo";
        check("vxlan://127.0.0.1?vni=1", false, raw, other);
    }

    #[test]
    fn names_are_looked_at_before_anything_is_opened() {
        let named = |name: &str| Outlet::Named(name.to_owned());
        let outlets = [named("eth0"), named("/no/such/folder.pcap"), Outlet::Pass];
        assert!(Outlets::check(&outlets, None).is_ok());
        assert!(Outlets::check(&outlets, Some("udp://192.0.2.1:1")).is_ok());
        assert!(Outlets::check(&outlets, Some("udp://192.0.2.1")).is_err());
        assert!(Outlets::check(&[named("no name of an interface")], None).is_err());
    }

    /// A device that throws away all that it takes, and tells of it when it is waited for.
    #[derive(Clone, Default)]
    struct Thrower(Rc<Cell<(u64, u64)>>);

    impl Transmit for Thrower {
        fn len_max(&self) -> usize {
            1514
        }

        fn send(&mut self, frames: &[&[u8]]) -> usize {
            let (on_their_way, thrown) = self.0.get();
            self.0.set((on_their_way + frames.len() as u64, thrown));
            frames.len()
        }

        fn is_up(&self) -> bool {
            true
        }

        fn thrown_away(&mut self, most: u64) -> u64 {
            let (on_their_way, thrown) = self.0.get();
            self.0.set((on_their_way, thrown - thrown.min(most)));
            thrown.min(most)
        }

        fn drain(&mut self) {
            let (on_their_way, thrown) = self.0.get();
            self.0.set((0, thrown + on_their_way));
        }
    }

    /// Two outlets are one device, and get other numbers: each frame that is thrown away is refused
    /// where it belongs.
    #[test]
    fn what_is_thrown_away_late_counts_where_it_was_sent() {
        let device = Thrower::default();
        let mut outlets = Outlets::new(&[], Vec::new(), None, Box::new(|_| {}));
        outlets.by_dpdk(Box::new(move |_| Ok(Box::new(device.clone()))));
        let named = |name: &str| Outlet::Named(format!("dpdk:{name}"));
        let (one, two) = (named("net_null0"), named("net_null0,size=9"));
        outlets.open(&[one, two.clone()]).expect("opens");
        let send = |outlets: &mut Outlets, outlet, n| {
            let (link, ts, len, start, caplen) = (LinkType::ETHERNET, 0, 60, 0, 60);
            let via = Via::UNKNOWN;
            let frame = Sent { outlet, link, ts, len, start, caplen, trimmed: false, via };
            outlets.send(&[0; 60], &vec![frame; n]).expect("takes them");
        };
        let refused = |outlets: &Outlets, n| outlets.refused(n).total();
        send(&mut outlets, 1, 3);
        outlets.settle();
        assert_eq!([0, 1].map(|n| refused(&outlets, n)), [(0, 0), (3, 180)]);
        send(&mut outlets, 1, 4);
        send(&mut outlets, 0, 2);
        outlets.settle();
        assert_eq!([0, 1].map(|n| refused(&outlets, n)), [(2, 120), (7, 420)]);
        outlets.open(&[two]).expect("opens");
        assert_eq!(refused(&outlets, 0), (0, 0));
        send(&mut outlets, 0, 1);
        outlets.finish().expect("ends");
        assert_eq!(refused(&outlets, 0), (1, 60));
    }

    /// A datagram and a file for each frame; a name that two outlets have is one wire.
    #[test]
    fn frames_go_to_files_and_wires() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("x.pcap").to_str().expect("a plain path").to_owned();
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").expect("binds");
        let wire = format!("udp://{}", socket.local_addr().expect("an address"));
        let mut outlets = Outlets::new(&[], Vec::new(), Some(&wire), Box::new(|_| {}));
        let all = [Outlet::Named(file.clone()), Outlet::Pass, Outlet::Named(wire.clone())];
        outlets.open(&all).expect("opens");
        assert!(all.iter().all(|outlet| outlets.wants(outlet)));
        let memory: Vec<u8> = (0..100).collect();
        let frame = |outlet, start, len| Sent {
            outlet,
            link: LinkType::ETHERNET,
            ts: 0,
            len,
            start,
            caplen: 20,
            trimmed: false,
            via: Via::UNKNOWN,
        };
        // The last was cut by the snap length, which is none of a file's business.
        let frames = [frame(0, 0, 20), frame(1, 20, 20), frame(2, 40, 20), frame(0, 1, 30)];
        let frames = [&frames[..], &[frame(1, 0, 30)]].concat();
        outlets.send(&memory, &frames).expect("takes them");
        outlets.finish().expect("ends");
        let mut buffer = [0; 64];
        for start in [20, 40] {
            let n = socket.recv(&mut buffer).expect("a datagram");
            assert_eq!(buffer[..n], memory[start..start + 20]);
        }
        let read = crate::file::records(std::fs::read(file).expect("there"));
        let read: Vec<_> = read.into_iter().map(|(_, _, len, bytes, _)| (len, bytes)).collect();
        assert_eq!(read, [(20, memory[..20].to_vec()), (30, memory[1..21].to_vec())]);
        let refused: Vec<u64> = (0..3).map(|n| outlets.refused(n).total().0).collect();
        assert_eq!(refused, [0, 1, 0]);
        assert!((0..3).all(|n| !outlets.is_away(n)));
    }
}
