//! Opening interfaces: what is there, the program, the sockets, and which mode came of it.

use super::error::{Refused, XdpError, refused};
use super::link::{Interfaces, LinkInfo};
use super::mode::{Mode, WhyNot};
use super::options::XdpOptions;
use super::outputs::{Outputs, take_redirected};
use super::program::Redirect;
use super::queue::{Opened, Queue, Request};
use super::source::{Port, PortQuery, XdpSource};
use crate::ebpf::{Attach, Link, Offloaded, Program};
use crate::limits::{
    XDP_FRAME_BYTES, XDP_FRAMES_MAX, XDP_FRAMES_MIN, XDP_INTERFACES_MAX, XDP_QUEUES_MAX,
};
use crate::sys::ethtool::rx_queues;
use std::io;
use weir_packet::interface::{CapturePoint, Direction};
use weir_packet::source::SourceError;

/// The bytes that the kernel keeps of each frame's room (`XDP_PACKET_HEADROOM`).
const HEADROOM: usize = 256;

/// An Ethernet header with two VLAN tags.
const ETHERNET: usize = 14 + 2 * 4;

/// `ARPHRD_ETHER` and `ARPHRD_LOOPBACK`, whose frames have Ethernet headers.
const HARDWARE: [u16; 2] = [1, 772];

/// Captures all receive queues of these interfaces, of the network namespace of this thread.
///
/// # Errors
/// When there is no such interface, something on it rules a capture out, or the kernel refuses; the
/// error names the interface and what to try. Nothing is left behind.
pub fn open_xdp(
    interfaces: &[impl AsRef<str>],
    options: &XdpOptions,
) -> Result<XdpSource, SourceError> {
    open_xdp_offloaded(interfaces, options, Vec::new())
}

/// The same after what a query does in the kernel: `offloaded` has that for each interface in their
/// order, or is empty. Frames that it finishes are dropped, and counted as received.
///
/// # Errors
/// As for [`open_xdp`].
pub fn open_xdp_offloaded(
    interfaces: &[impl AsRef<str>],
    options: &XdpOptions,
    offloaded: Vec<Offloaded>,
) -> Result<XdpSource, SourceError> {
    let mut offloaded = offloaded.into_iter();
    let known = Interfaces::open()
        .map_err(|e| refused("AF_XDP", None, "asking for interfaces", Refused::Other(e)))?;
    if interfaces.is_empty() || interfaces.len() > XDP_INTERFACES_MAX {
        return Err(XdpError::Interfaces(interfaces.len()).on("AF_XDP"));
    }
    let (mut ports, mut queues, mut modes) = (Vec::new(), Vec::new(), Vec::new());
    for (port, name) in interfaces.iter().map(AsRef::as_ref).enumerate() {
        let interface = look_up(&known, name)?;
        if ports.iter().any(|p: &Port| p.index == interface.index) {
            return Err(XdpError::Twice.on(name));
        }
        if let Some((place, id)) = interface.program {
            return Err(another(name, place, id).on(name));
        }
        let opening = Opening { known: &known, interface: &interface, port, options };
        let opened = opening.open(offloaded.next())?;
        ports.push(opened.0);
        queues.extend(opened.1);
        modes.push(opened.2);
    }
    XdpSource::new(known, ports, queues, modes, options)
}

/// The interface of this name, if it can be captured.
fn look_up(known: &Interfaces, name: &str) -> Result<LinkInfo, SourceError> {
    let asking = |e| refused(name, None, "asking for the interface", Refused::Other(e));
    let Some(interface) = known.by_name(name).map_err(asking)? else {
        let known = known.all().map_err(asking)?.into_iter().map(|i| i.name).collect();
        return Err(XdpError::NoInterface { known }.on(name));
    };
    if !HARDWARE.contains(&interface.hardware) {
        return Err(XdpError::Hardware(interface.hardware).on(name));
    }
    Ok(interface)
}

/// Says which program is in the way.
fn another(interface: &str, place: &'static str, id: u32) -> XdpError {
    let name = Program::info(id).map(|info| info.name).unwrap_or_default();
    XdpError::Occupied { interface: interface.to_owned(), place, id, name }
}

/// The step that drivers without XDP refuse.
const INTO_THE_DRIVER: &str = "putting the XDP program into the driver";

/// One interface to be opened.
struct Opening<'a> {
    known: &'a Interfaces,
    interface: &'a LinkInfo,
    port: usize,
    options: &'a XdpOptions,
}

impl Opening<'_> {
    fn open(
        &self,
        mut offloaded: Option<Offloaded>,
    ) -> Result<(Port, Vec<Queue>, Mode), SourceError> {
        let name = &self.interface.name;
        let frame_bytes = self.frame_bytes()?;
        let (queues_max, probing) = self.queues()?;
        let card = (self.options.attach == Some(Attach::Card)).then_some(self.interface.index);
        let redirect = Redirect::load((name, card), queues_max, offloaded.as_ref())?;
        let outputs = offloaded.as_mut().and_then(|offloaded| offloaded.outputs.take());
        let only_generic =
            outputs.as_ref().and_then(|outputs| take_redirected(outputs, self.known).err());
        let mut outputs = outputs.map(Outputs::new);
        outputs.iter().for_each(|outputs| outputs.refresh(self.known));
        let (link, attach, not_native) = self.attach(&redirect, only_generic)?;
        outputs.iter_mut().for_each(|outputs| outputs.attached(attach));
        if attach == Attach::Generic && self.options.zero_copy == Some(true) {
            return Err(XdpError::NoZeroCopy(not_native.map(|why| why.to_string())).on(name));
        }
        let memory = self.options.memory / queues_max as usize / frame_bytes;
        let frames = (memory + 1).next_power_of_two() / 2;
        let frames = frames.clamp(XDP_FRAMES_MIN, XDP_FRAMES_MAX);
        let mut opened = Vec::new();
        for number in 0..queues_max {
            let request = Request {
                interface: name,
                ifindex: self.interface.index,
                port: self.port,
                number,
                probing: probing && number > 0,
                frames,
                frame_bytes: frame_bytes as u32,
                zero_copy: attach != Attach::Generic && self.options.zero_copy != Some(false),
                copy: self.options.zero_copy != Some(true),
                options: self.options,
            };
            match Queue::open(&request)? {
                Some(queue) => opened.push(queue),
                None => break,
            }
        }
        let mode = Mode {
            interface: name.clone(),
            queues: opened.len() as u32,
            attach,
            not_native,
            zero_copy: opened.iter().filter(|o| o.zero_copy).count() as u32,
            not_zero_copy: self.not_zero_copy(attach, &opened),
            not_huge: opened.iter().find_map(|o| o.no_huge_pages.clone()).map(WhyNot::Refused),
            busy_poll: self.options.busy_poll.is_some()
                && opened.iter().all(|o| o.not_busy_poll.is_none()),
            not_busy_poll: opened.iter().find_map(|o| refusal(o.not_busy_poll.as_ref())),
            interrupts: sends_interrupts(name),
            pollable: opened.iter().all(|o| o.queue.socket.is_pollable()),
            frames,
            frame_bytes,
        };
        let queues: Vec<Queue> = opened.into_iter().map(|o| o.queue).collect();
        for queue in &queues {
            redirect.set(queue.number, queue.socket.number()).map_err(|e| {
                let doing = "handing its socket to the XDP program";
                refused(name, Some(queue.number), doing, Refused::Bpf(e))
            })?;
        }
        let point = CapturePoint::new(self.options.interfaces.number(name), Some(Direction::In));
        let counts = offloaded.map(|offloaded| offloaded.counts);
        let query = PortQuery { counts, outputs };
        let port = Port::new(self.interface, (redirect, query), link, point)?;
        Ok((port, queues, mode))
    }

    /// Room for one frame: half a page does for the usual MTU.
    fn frame_bytes(&self) -> Result<usize, SourceError> {
        let needed = self.interface.mtu as usize + ETHERNET + HEADROOM;
        let fits = XDP_FRAME_BYTES.into_iter().find(|&bytes| bytes >= needed);
        let error = || XdpError::mtu(self.interface, ETHERNET + HEADROOM);
        fits.ok_or_else(|| error().on(&self.interface.name))
    }

    /// How many receive queues there are; at most so many where the driver does not say.
    fn queues(&self) -> Result<(u32, bool), SourceError> {
        let LinkInfo { name, rx_queues_max, .. } = self.interface;
        let known = rx_queues(name)
            .map_err(|e| refused(name, None, "asking for its queues", Refused::Other(e)))?;
        let queues = known.unwrap_or((*rx_queues_max).max(1));
        if queues > XDP_QUEUES_MAX {
            return Err(XdpError::Queues { interface: name.clone(), queues }.on(name));
        }
        Ok((queues, known.is_none()))
    }

    /// Puts the program on the interface: into the driver, unless something speaks for the stack.
    fn attach(
        &self,
        redirect: &Redirect,
        only_generic: Option<String>,
    ) -> Result<(Link, Attach, Option<WhyNot>), SourceError> {
        let LinkInfo { name, index, .. } = self.interface;
        let put = |attach| Link::xdp(&redirect.program, *index, attach);
        let failed = |what, e| Err(refused(name, None, what, Refused::Attach(e)));
        if let Some(place @ (Attach::Native | Attach::Card)) = self.options.attach {
            if let Some(why) = only_generic {
                return Err(XdpError::Outputs(why).on(name));
            }
            let doing = match place {
                Attach::Card => "putting the XDP program on the card",
                _ => INTO_THE_DRIVER,
            };
            return put(place).map(|link| (link, place, None)).or_else(|e| failed(doing, e));
        }
        let mut not_native = Some(WhyNot::Unwanted);
        if let (Some(why), None) = (only_generic, self.options.attach) {
            not_native = Some(WhyNot::Refused(why));
        } else if self.options.attach != Some(Attach::Generic) {
            match put(Attach::Native) {
                Ok(link) => return Ok((link, Attach::Native, None)),
                Err(e) if final_word(&e) => return failed(INTO_THE_DRIVER, e),
                Err(e) => not_native = Some(WhyNot::Refused(e.to_string())),
            }
        }
        match put(Attach::Generic) {
            Ok(link) => Ok((link, Attach::Generic, not_native)),
            Err(e) => failed("putting the XDP program on the interface", e),
        }
    }

    fn not_zero_copy(&self, attach: Attach, opened: &[Opened]) -> Option<WhyNot> {
        if opened.iter().all(|o| o.zero_copy) {
            return None;
        }
        if self.options.zero_copy == Some(false) {
            return Some(WhyNot::Unwanted);
        }
        match attach {
            Attach::Generic => Some(WhyNot::Needs("native XDP")),
            Attach::Native | Attach::Card => {
                opened.iter().find_map(|o| refusal(o.not_zero_copy.as_ref()))
            }
        }
    }
}

/// Whether an interface is known not to defer its interrupts. Where `/sys` is that of another
/// network namespace it does not say.
fn sends_interrupts(interface: &str) -> bool {
    ["napi_defer_hard_irqs", "gro_flush_timeout"].iter().any(|what| {
        let said = std::fs::read_to_string(format!("/sys/class/net/{interface}/{what}"));
        said.is_ok_and(|value| value.trim() == "0")
    })
}

fn refusal(error: Option<&io::Error>) -> Option<WhyNot> {
    error.map(|e| WhyNot::Refused(e.to_string()))
}

/// Whether the stack would refuse as the driver does.
fn final_word(error: &io::Error) -> bool {
    let code = error.raw_os_error();
    [libc::EPERM, libc::EACCES, libc::EBUSY, libc::EEXIST, libc::ENODEV]
        .into_iter()
        .any(|c| code == Some(c))
}
