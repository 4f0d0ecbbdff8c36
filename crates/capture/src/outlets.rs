//! Where frames go: files and wires, by the names of their outlets.
//!
//! The form of a name says what it means, see [`Place`]. Outlets of one name are one wire. A file
//! must take every frame, or the run ends; frames that a wire does not take are counted, and the
//! run goes on.

mod captured;
mod error;

pub use captured::{Captured, CapturedBy, interface_of, is_host};
pub use error::OutletError;

use crate::limits::{SEND_WAIT_FILE_NS, SEND_WAIT_LIVE_NS};
use crate::send::place::{Place, PlaceError};
use crate::send::{DEVICES, OpenTransmit, Wire};
use crate::write::{Files, FilesInUse, Folder, Missing, Rotation};
use captured::{captured_interface, check_place, check_wire};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use weir_packet::egress::{Egress, Outlet, Refusal, Refused, Sent};
use weir_packet::interface::InterfaceNames;

/// Says something to the user while the run goes on: that an interface went down, or is back.
pub type Report = Box<dyn FnMut(String)>;

/// Files and wires that frames go to, by the names of their outlets.
pub struct Outlets {
    files: FileOutlets,
    pass: Option<String>,
    captured: Vec<Captured>,
    wires: Vec<WireOutlet>,
    /// By outlet, the wire that it is; none of a file.
    wire_of: Vec<Option<usize>>,
    /// The names of interfaces.
    names: InterfaceNames,
    /// By outlet, what its wire refused.
    refused: Vec<Refused>,
    report: Report,
    /// Opens devices of DPDK.
    dpdk: OpenTransmit,
    /// Whether the kernel gives packets to the host by itself.
    kernel_gives: bool,
    /// Whether outlets were opened once: from then on no further wires are.
    begun: bool,
}

/// The files among the outlets.
struct FileOutlets {
    all: Files,
    /// Whether an outlet is a file.
    any: bool,
    on_failure: OnFailure,
    rotation: RotationEnd,
}

/// The consequence where a file can't be written any more.
enum OnFailure {
    /// The run ends.
    End,
    /// It is reported, and the other outlets go on; the end of the run fails by the first error.
    GoOn(Option<io::Error>),
}

/// Whether a rotated capture has as many files as it was to have.
enum RotationEnd {
    /// It has not; this is called once when it has.
    Ahead(Box<dyn Fn()>),
    /// It has, and further frames have no place.
    Reached,
}

/// A wire among the outlets.
struct WireOutlet {
    wire: Wire,
    /// Its interface, as captures call it, where frames are captured on it, too, ...
    captured: Option<String>,
    /// ... and the number of that name.
    came_by: Option<u16>,
}

impl Outlets {
    /// The outlets of a run that reads the captures `read` and captures on some interfaces. Packets
    /// that pass go to `pass`; without it they are not wanted.
    pub fn new(
        read: &[String],
        captured: Vec<Captured>,
        pass: Option<&str>,
        report: Report,
    ) -> Outlets {
        let files = FileOutlets {
            all: Files::new(read, pass),
            any: false,
            on_failure: OnFailure::End,
            rotation: RotationEnd::Ahead(Box::new(|| ())),
        };
        Outlets {
            files,
            pass: pass.map(str::to_owned),
            captured,
            wires: Vec::new(),
            wire_of: Vec::new(),
            names: InterfaceNames::default(),
            refused: Vec::new(),
            report,
            dpdk: Box::new(|_| Err(OutletError::NoDpdk.into())),
            kernel_gives: false,
            begun: false,
        }
    }

    /// The files that the run reads and writes, captures among them: no outlet is one of them.
    pub fn among(&mut self, in_use: &FilesInUse) {
        self.files.all.among(in_use);
    }

    /// Opens devices of DPDK by this; without it they are refused.
    pub fn by_dpdk(&mut self, open: OpenTransmit) {
        self.dpdk = open;
    }

    /// Says that the kernel's part of the query gives packets to the host; else the outlet `host:`
    /// is refused.
    pub fn by_kernel(&mut self) {
        self.kernel_gives = true;
    }

    /// The devices of DPDK among some outlets, where packets that pass go to `pass`, as they are
    /// named after `dpdk:`. Opens nothing.
    pub fn devices_of_dpdk(outlets: &[Outlet], pass: Option<&str>) -> Vec<String> {
        let place = |name| match Place::of(name) {
            Ok(Place::Dpdk(device)) => Some(device),
            _ => None,
        };
        let mut all: Vec<String> = Outlets::names(outlets, pass).filter_map(place).collect();
        all.sort();
        all.dedup();
        all
    }

    /// The names of these outlets, where packets that pass go to `pass`.
    pub fn names<'a>(
        outlets: &'a [Outlet],
        pass: Option<&'a str>,
    ) -> impl Iterator<Item = &'a str> {
        outlets.iter().filter_map(move |outlet| name(outlet, pass))
    }

    /// Whether one of these outlets is no file, where packets that pass go to `pass`: then another
    /// program may wait for what is sent there. Opens nothing.
    pub fn any_wire(outlets: &[Outlet], pass: Option<&str>) -> bool {
        Outlets::names(outlets, pass).any(|name| !matches!(Place::of(name), Ok(Place::File)))
    }

    /// Lets the other outlets go on where a file can't be written any more: that is reported, its
    /// frames count as refused, and the end fails.
    pub fn outlive(&mut self) {
        self.files.on_failure = OnFailure::GoOn(None);
        self.files.all.outlive();
    }

    /// Lets outlets that come once these are open be new files in these folders; else they are
    /// refused, as further wires are.
    pub fn create_in(&mut self, folders: Vec<Folder>) {
        self.files.all.create_in(folders);
    }

    /// Reports what went wrong with files.
    fn report_failures(&mut self) {
        let OnFailure::GoOn(first) = &mut self.files.on_failure else { return };
        for e in self.files.all.take_errors() {
            (self.report)(format!("{e}; packets for it are counted as refused"));
            first.get_or_insert(e);
        }
    }

    /// Calls this once when a rotated capture has as many files as it was to have, and further
    /// frames have no place.
    pub fn when_over(&mut self, call: impl Fn() + 'static) {
        self.files.rotation = RotationEnd::Ahead(Box::new(call));
    }

    /// Whether that has happened.
    pub fn is_over(&self) -> bool {
        matches!(self.files.rotation, RotationEnd::Reached)
    }

    /// Whether files are written as soon as frames come, instead of when some have gathered.
    pub fn prompt(&mut self, prompt: bool) {
        self.files.all.prompt(prompt);
    }

    /// Cuts the capture of packets that pass into files, where it is one.
    pub fn rotate(&mut self, rotation: Option<Rotation>) {
        self.files.all.rotate(rotation);
    }

    /// Once this is set, a reader of a pipe that takes nothing is not waited for any more.
    pub fn stop_by(&mut self, stop: &Arc<AtomicBool>) {
        self.files.all.stop_by(stop);
    }

    /// Says what the interfaces are called that frames came by: they don't leave by the same, and
    /// pcapng files tell.
    pub fn name_interfaces(&mut self, names: &InterfaceNames) {
        self.names = names.clone();
        self.files.all.name_interfaces(names);
    }

    /// Folders in which files are made while the run goes on, once the outlets are open.
    pub fn folders(&self) -> Vec<PathBuf> {
        self.files.all.folders()
    }

    /// Devices that are opened anew if they are removed and made again, which takes
    /// CAP_NET_ADMIN.
    pub fn devices(&self) -> Vec<PathBuf> {
        let any = self.wires.iter().any(|outlet| outlet.wire.is_device());
        if any { vec![PathBuf::from(DEVICES)] } else { Vec::new() }
    }

    /// Whether sockets of AF_XDP are opened anew if their interfaces are removed and made again,
    /// which takes CAP_NET_RAW, and memory that may be locked.
    pub fn opens_xdp(&self) -> bool {
        self.wires.iter().any(|outlet| outlet.wire.is_xdp())
    }

    /// Whether all outlets have names that mean something, where packets that pass go to `pass`.
    /// Opens nothing.
    ///
    /// # Errors
    /// Of the first that has none.
    pub fn check(outlets: &[Outlet], pass: Option<&str>) -> Result<(), PlaceError> {
        Outlets::names(outlets, pass).try_for_each(|name| Place::of(name).map(|_| ()))
    }

    /// Opens the wires among these outlets that are not open.
    fn open_wires(&mut self, outlets: &[Outlet]) -> io::Result<()> {
        let wait_ns = if self.captured.is_empty() { SEND_WAIT_FILE_NS } else { SEND_WAIT_LIVE_NS };
        for outlet in outlets {
            let Some(name) = name(outlet, self.pass.as_deref()) else { continue };
            let place = Place::of(name).map_err(OutletError::Place)?;
            if place == Place::File || self.wires.iter().any(|open| open.wire.name == name) {
                continue;
            }
            if self.begun {
                return Err(OutletError::NotAllowed { name: name.to_owned() }.into());
            }
            if place == Place::Host && !self.kernel_gives {
                return Err(OutletError::HostWithoutKernel { name: name.to_owned() }.into());
            }
            check_place(&self.captured, name, &place)?;
            let wire = Wire::open(name, &place, wait_ns, &mut *self.report, &mut self.dpdk)?;
            check_wire(&self.captured, &wire)?;
            let captured = captured_interface(&self.captured, name).map(|on| on.name.clone());
            self.wires.push(WireOutlet { wire, captured, came_by: None });
            self.files.all.leave(name);
        }
        Ok(())
    }
}

/// The name of an outlet, where packets that pass go to `pass`.
fn name<'a>(outlet: &'a Outlet, pass: Option<&'a str>) -> Option<&'a str> {
    match outlet {
        Outlet::Pass => pass,
        Outlet::Named(name) => Some(name),
    }
}

impl Egress for Outlets {
    /// Wires stay open though no outlet names them any more: a later program may.
    fn open(&mut self, outlets: &[Outlet]) -> io::Result<()> {
        self.prepare(outlets)?;
        self.begun = true;
        self.settle();
        self.refused = vec![Refused::default(); outlets.len()];
        let pass = self.pass.as_deref();
        let place = |outlet| {
            let name = name(outlet, pass)?;
            self.wires.iter().position(|open| open.wire.name == name)
        };
        self.wire_of = outlets.iter().map(place).collect();
        for WireOutlet { captured, came_by, .. } in &mut self.wires {
            *came_by = captured.as_ref().and_then(|on| self.names.number(on));
        }
        let mut all = outlets.iter().zip(&self.wire_of);
        self.files.any = all.any(|(outlet, wire)| wire.is_none() && name(outlet, pass).is_some());
        self.files.all.open(outlets)?;
        self.report_failures();
        Ok(())
    }

    /// Opens wires first. Files stay as they are until the outlets are opened.
    fn prepare(&mut self, outlets: &[Outlet]) -> io::Result<()> {
        let before = self.wires.len();
        let opened = self.open_wires(outlets).and_then(|()| self.files.all.prepare(outlets));
        if opened.is_err() {
            self.wires.truncate(before);
        }
        opened
    }

    fn settle(&mut self) {
        self.wires.iter_mut().for_each(|open| open.wire.settle(&mut self.refused));
    }

    fn wants(&self, outlet: &Outlet) -> bool {
        name(outlet, self.pass.as_deref()).is_some()
    }

    fn send(&mut self, memory: &[u8], frames: &[Sent]) -> io::Result<()> {
        if !self.wires.is_empty() {
            for (n, frame) in (0..).zip(frames) {
                let outlet = frame.outlet as usize;
                let Some(Some(wire)) = self.wire_of.get(outlet) else { continue };
                let open = &mut self.wires[*wire];
                match open.came_by {
                    Some(number) if frame.capture_point.interface() == Some(number) => {
                        self.refused[outlet].add(Refusal::CameByIt, frame.len);
                    }
                    _ => open.wire.push(n),
                }
            }
            for WireOutlet { wire, .. } in &mut self.wires {
                wire.send(memory, frames, &mut self.refused, &mut *self.report);
            }
        }
        if self.files.any {
            self.files.all.send(memory, frames)?;
            self.report_failures();
            if let RotationEnd::Ahead(call) = &self.files.rotation
                && self.files.all.is_over()
            {
                call();
                self.files.rotation = RotationEnd::Reached;
            }
        }
        Ok(())
    }

    fn is_away(&mut self, outlet: u32) -> bool {
        let wire = self.wire_of.get(outlet as usize).copied().flatten();
        wire.is_some_and(|wire| self.wires[wire].wire.is_away(&mut *self.report))
    }

    fn refused(&self, outlet: u32) -> Refused {
        let mut refused = self.refused.get(outlet as usize).copied().unwrap_or_default();
        let Missing { frames, bytes } = self.files.all.missing(outlet);
        refused.frames[Refusal::Unwritten as usize] += frames;
        refused.bytes[Refusal::Unwritten as usize] += bytes;
        refused.merge(&self.files.all.refused_by(outlet));
        refused
    }

    fn flush(&mut self) -> io::Result<()> {
        self.files.all.flush()?;
        self.report_failures();
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        self.settle();
        let finished = self.files.all.finish();
        self.report_failures();
        match &mut self.files.on_failure {
            OnFailure::GoOn(first) => finished.and(first.take().map_or(Ok(()), Err)),
            OnFailure::End => finished,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::ANY;
    use crate::send::Transmit;
    use std::cell::Cell;
    use std::net::IpAddr;
    use std::rc::Rc;
    use weir_packet::interface::CapturePoint;
    use weir_packet::source::LinkType;

    /// The result, in words, where frames of `lo` are captured and handed to this name.
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
        let other = "vxlan://127.0.0.1?vni=1 takes no frames of link type RAW, which those of lo";
        check("vxlan://127.0.0.1?vni=1", false, raw, other);
        check("host:", false, eth, "host:: only the kernel gives packets to the host");
    }

    /// Packets that the kernel did not decide on can't get to the host any more, and are counted.
    #[test]
    fn the_host_gets_nothing_from_the_process() {
        let mut outlets = Outlets::new(&[], Vec::new(), Some("host:"), Box::new(|_| {}));
        outlets.by_kernel();
        outlets.open(&[Outlet::Pass]).expect("opens");
        let (link, ts, len, start, caplen) = (LinkType::ETHERNET, 0, 60, 0, 60);
        let capture_point = CapturePoint::UNKNOWN;
        let frame = Sent { outlet: 0, link, ts, len, start, caplen, trimmed: false, capture_point };
        outlets.send(&[0; 60], &[frame; 3]).expect("goes on");
        outlets.send(&[0; 60], &[]).expect("goes on");
        let refused = outlets.refused(0);
        assert_eq!((refused.total(), refused.frames[Refusal::WentUp as usize]), ((3, 180), 3));
        assert!(!outlets.is_away(0));
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
            let capture_point = CapturePoint::UNKNOWN;
            let frame =
                Sent { outlet, link, ts, len, start, caplen, trimmed: false, capture_point };
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
            capture_point: CapturePoint::UNKNOWN,
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
        let read = crate::fuzz::records_of(std::fs::read(file).expect("there"));
        let read: Vec<_> = read.into_iter().map(|(_, _, len, bytes, _)| (len, bytes)).collect();
        assert_eq!(read, [(20, memory[..20].to_vec()), (30, memory[1..21].to_vec())]);
        let refused: Vec<u64> = (0..3).map(|n| outlets.refused(n).total().0).collect();
        assert_eq!(refused, [0, 1, 0]);
        assert!((0..3).all(|n| !outlets.is_away(n)));
    }
}
