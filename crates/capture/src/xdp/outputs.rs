//! The interfaces that a query's program hands frames to by itself.
//!
//! The kernel does not report to the program what became of a frame that it redirected: an
//! interface that has just gone down drops it. So the process looks at interfaces regularly. Where
//! one was not as it had been at the look before, all that was handed to it since an earlier look
//! is in doubt, and counted so: that is an upper bound.

use super::link::{HEADER, Interfaces, LinkInfo, NLM_F_REQUEST, NLMSG_ERROR};
use super::link::{attributes, messages, u16_at};
use crate::ebpf::{KernelOutputs, Map, MapKind};
use crate::limits::NETLINK_BUFFER;
use rustix::net::netlink::{self, SocketAddrNetlink};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, connect, recv, send, socket_with,
};
use std::cell::RefCell;
use std::io;
use std::os::fd::OwnedFd;

/// An Ethernet header, which the kernel adds to the MTU.
const ETHERNET: u64 = 14;

/// `GENL_ID_CTRL`, `CTRL_CMD_GETFAMILY`, `CTRL_ATTR_FAMILY_NAME` and `CTRL_ATTR_FAMILY_ID`.
const CONTROL: u16 = 0x10;
const GET_FAMILY: u8 = 3;
const FAMILY_NAME: u16 = 2;
const FAMILY_ID: u16 = 1;

/// `NETDEV_CMD_DEV_GET`, `NETDEV_A_DEV_IFINDEX` and `NETDEV_A_DEV_XDP_FEATURES` (Linux 6.3).
const GET_DEVICE: u8 = 1;
const DEVICE_INDEX: u16 = 1;
const DEVICE_FEATURES: u16 = 3;

/// `NETDEV_XDP_ACT_NDO_XMIT`: the driver takes frames that other drivers redirect to it.
const TAKES_REDIRECTED: u64 = 1 << 2;

/// `struct genlmsghdr`.
const GENERIC_HEADER: usize = 4;

/// Makes the map by which a program names interfaces.
pub(super) fn interface_map(outputs: &KernelOutputs) -> io::Result<Map> {
    let map = Map::new(MapKind::Interfaces, "weir-outputs", 4, 4, outputs.count.max(1))?;
    for (number, index) in &outputs.interfaces {
        map.update(&number.to_ne_bytes(), &index.to_ne_bytes())?;
    }
    Ok(map)
}

/// The interfaces, as they were at the last look.
pub(super) struct Outputs {
    outputs: KernelOutputs,
    /// In the order of the interfaces.
    looks: RefCell<Vec<OutputLook>>,
}

impl Outputs {
    pub(super) fn new(outputs: KernelOutputs) -> Outputs {
        let looks = outputs.interfaces.iter().map(|_| OutputLook::default()).collect();
        Outputs { outputs, looks: RefCell::new(looks) }
    }

    /// Tells the program which frames each interface takes now, and counts those that one may have
    /// dropped.
    pub(super) fn refresh(&self, known: &Interfaces) {
        let memory = &self.outputs.memory;
        let interfaces = self.outputs.interfaces.iter();
        for (&(number, index), look) in interfaces.zip(self.looks.borrow_mut().iter_mut()) {
            // In this order: what is handed out after the look is judged by the next one.
            let handed = memory.handed(number);
            let link = known.by_index(index).ok().flatten();
            let (longest, downs) = link.as_ref().map_or((0, 0), |on| (longest(on), on.downs));
            memory.set_longest(number, longest);
            let doubted = look.judge(handed, longest, downs);
            if doubted != (0, 0) {
                memory.doubt(number, doubted);
            }
        }
    }
}

/// What the last look at an interface saw.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct OutputLook {
    longest: u64,
    downs: u32,
    /// Frames and bytes that had been handed to it then, ...
    handed: (u64, u64),
    /// ... and those of them that certainly left, or are counted as doubtful. Others may still have
    /// been in a queue of the kernel.
    judged: (u64, u64),
}

impl OutputLook {
    /// Takes in a further look; frames and bytes that the interface may have dropped.
    fn judge(&mut self, handed: (u64, u64), longest: u64, downs: u32) -> (u64, u64) {
        let was_up = self.longest > 0;
        let is_steady = was_up && longest >= self.longest && downs == self.downs;
        let before = *self;
        let judged = if is_steady { before.handed } else { handed };
        *self = OutputLook { longest, downs, handed, judged };
        let since = |now: u64, then: u64| now.saturating_sub(then);
        match is_steady {
            true => (0, 0),
            false => (since(handed.0, before.judged.0), since(handed.1, before.judged.1)),
        }
    }
}

fn longest(interface: &LinkInfo) -> u64 {
    if interface.up && interface.carrier { u64::from(interface.mtu) + ETHERNET } else { 0 }
}

/// Whether the drivers of all these interfaces take frames that another driver redirects to them;
/// else why one does not, as far as is known. In the stack, redirection needs nothing of drivers.
pub(super) fn take_redirected(outputs: &KernelOutputs, known: &Interfaces) -> Result<(), String> {
    let features = Features::open();
    for &(_, index) in &outputs.interfaces {
        let answer = match &features {
            Ok(features) => features.of(index).map_err(|e| e.to_string()),
            Err(e) => Err(e.to_string()),
        };
        let why = match answer {
            Ok(features) if features & TAKES_REDIRECTED != 0 => continue,
            Ok(_) => "its driver takes no frames of other drivers (of a veth: `ethtool -K` its \
                      other end `gro on`)"
                .to_owned(),
            Err(e) => format!("it is not known whether it takes frames of other drivers: {e}"),
        };
        let name = known.by_index(index).ok().flatten().map(|info| info.name);
        return Err(format!("{}: {why}", name.unwrap_or_else(|| index.to_string())));
    }
    Ok(())
}

/// A way to ask what drivers support in XDP.
struct Features {
    socket: OwnedFd,
    family: u16,
}

impl Features {
    fn open() -> io::Result<Features> {
        let flags = SocketFlags::CLOEXEC;
        let protocol = Some(netlink::GENERIC);
        let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, protocol)?;
        connect(&socket, &SocketAddrNetlink::new(0, 0))?;
        let answer = ask(&socket, CONTROL, GET_FAMILY, (FAMILY_NAME, b"netdev\0"))?;
        let family = answer.iter().find(|(kind, _)| *kind == FAMILY_ID);
        let family = family.and_then(|(_, value)| u16_at(value, 0));
        let unsupported = || io::Error::from(io::ErrorKind::Unsupported);
        Ok(Features { socket, family: family.ok_or_else(unsupported)? })
    }

    /// The bits of `enum netdev_xdp_act` of an interface.
    fn of(&self, index: u32) -> io::Result<u64> {
        let attribute = (DEVICE_INDEX, &index.to_ne_bytes()[..]);
        let answer = ask(&self.socket, self.family, GET_DEVICE, attribute)?;
        let features = answer.iter().find(|(kind, _)| *kind == DEVICE_FEATURES);
        let word = features.and_then(|(_, value)| value.first_chunk::<8>());
        Ok(word.map_or(0, |word| u64::from_ne_bytes(*word)))
    }
}

/// The attributes of what the kernel answers to a request with one attribute.
fn ask(
    socket: &OwnedFd,
    kind: u16,
    command: u8,
    attribute: (u16, &[u8]),
) -> io::Result<Vec<(u16, Vec<u8>)>> {
    send(socket, &request(kind, command, attribute), SendFlags::empty())?;
    let mut answer = vec![0; NETLINK_BUFFER];
    let (n, _) = recv(socket, &mut answer[..], RecvFlags::empty())?;
    read(&answer[..n], kind)
}

fn request(kind: u16, command: u8, (attribute, value): (u16, &[u8])) -> Vec<u8> {
    let mut bytes = vec![0; HEADER];
    bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
    bytes[6..8].copy_from_slice(&NLM_F_REQUEST.to_ne_bytes());
    bytes.extend([command, 1, 0, 0]);
    bytes.extend((4 + value.len() as u16).to_ne_bytes());
    bytes.extend(attribute.to_ne_bytes());
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    let len = bytes.len() as u32;
    bytes[..4].copy_from_slice(&len.to_ne_bytes());
    bytes
}

/// The attributes of the messages of a kind.
fn read(answer: &[u8], wanted: u16) -> io::Result<Vec<(u16, Vec<u8>)>> {
    let (mut found, mut error) = (Vec::new(), None);
    messages(answer, |kind, body| {
        if kind == NLMSG_ERROR {
            let code = body.first_chunk::<4>().map_or(0, |code| i32::from_ne_bytes(*code));
            error = (code != 0).then(|| io::Error::from_raw_os_error(code.wrapping_neg()));
        } else if kind == wanted {
            let body = body.get(GENERIC_HEADER..).unwrap_or_default();
            found.extend(attributes(body).map(|(kind, value)| (kind, value.to_vec())));
        }
    });
    error.map_or(Ok(found), Err)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ebpf::OutputMemory;
    use proptest::prelude::*;

    struct NoMemory;

    impl OutputMemory for NoMemory {
        fn set_longest(&self, _: u32, _: u64) {}

        fn handed(&self, _: u32) -> (u64, u64) {
            (0, 0)
        }

        fn doubt(&self, _: u32, _: (u64, u64)) {}
    }

    #[test]
    fn what_is_handed_out_around_a_change_is_doubted_once() {
        let mut look = OutputLook::default();
        let mut judge =
            |frames: u64, longest, downs| look.judge((frames, 10 * frames), longest, downs);
        assert_eq!(judge(0, 1514, 1), (0, 0), "it was found up");
        assert_eq!(judge(100, 1514, 1), (0, 0));
        assert_eq!(judge(250, 9014, 1), (0, 0), "it takes longer frames");
        assert_eq!(judge(300, 0, 2), (200, 2000), "some were on their way at the last look");
        assert_eq!(judge(301, 0, 2), (1, 10), "it was on its way when the program was told");
        assert_eq!(judge(301, 1514, 2), (0, 0));
        assert_eq!(judge(400, 1514, 2), (0, 0));
        assert_eq!(judge(500, 1514, 3), (199, 1990), "down and up again between two looks");
        assert_eq!(judge(600, 1514, 3), (0, 0));
        assert_eq!(judge(700, 1014, 3), (200, 2000), "longer ones were dropped");
    }

    proptest! {
        /// No more is doubted than was handed out, and all that was while it was not up.
        #[test]
        fn doubt_stays_within_what_was_handed_out(
            looks in proptest::collection::vec((0_u64..3, 0_u64..3, 0_u32..3), 0..50),
        ) {
            let (mut look, mut handed, mut doubted) = (OutputLook::default(), 0, 0);
            for (more, longest, downs) in looks {
                let was_up = look.longest > 0;
                handed += more;
                let now = look.judge((handed, handed), longest, downs);
                prop_assert_eq!(now.0, now.1);
                prop_assert!(was_up || now.0 >= more);
                doubted += now.0;
                prop_assert!(doubted <= handed && look.judged <= look.handed);
            }
        }
    }

    #[test]
    fn loopback_takes_no_frames_of_drivers() {
        let known = Interfaces::open().expect("a netlink socket needs no capability");
        let lo = known.by_name("lo").expect("an answer").expect("every namespace has it");
        let outputs =
            KernelOutputs { count: 1, interfaces: vec![(0, lo.index)], memory: Box::new(NoMemory) };
        let why = take_redirected(&outputs, &known).expect_err("it has no such driver");
        assert!(why.starts_with("lo: "), "{why}");
        let features = Features::open().and_then(|features| features.of(lo.index));
        // Before Linux 6.3 nobody says.
        assert!(features.is_err() || features.is_ok_and(|bits| bits & TAKES_REDIRECTED == 0));
    }

    proptest! {
        #[test]
        fn any_answer_is_read(
            kind in prop_oneof![Just(NLMSG_ERROR), Just(0x10_u16), any::<u16>()],
            body in proptest::collection::vec(any::<u8>(), 0..100),
        ) {
            let mut bytes = request(kind, 1, (1, &body));
            let _ = read(&bytes, kind);
            bytes.truncate(body.len());
            let _ = read(&bytes, 0x10);
        }
    }
}
