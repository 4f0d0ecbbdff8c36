//! The interfaces that a query's program hands frames to by itself.
//!
//! The kernel does not report to the program what became of a frame that it redirected: an
//! interface that has just gone down drops it. So the process looks at interfaces regularly. Where
//! one was not as it had been at the look before, all that was handed to it since an earlier look
//! is in doubt, and counted so: that is an upper bound.

use super::link::{HEADER, Interfaces, LinkInfo, NLM_F_REQUEST, NLMSG_ERROR};
use super::link::{attributes, messages, u16_at};
use crate::ebpf::{Attach, KernelOutputs, Map, MapKind};
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

/// The maps by which a program names interfaces.
pub(super) struct OutputMaps {
    /// By number, one interface each.
    pub(super) single: Map,
    /// Of each set, all its interfaces.
    pub(super) sets: Vec<Map>,
    /// The number of the first set.
    pub(super) count: u32,
}

impl OutputMaps {
    /// Makes the maps.
    pub(super) fn new(outputs: &KernelOutputs) -> io::Result<OutputMaps> {
        let of = |interfaces: &[(u32, u32)], entries: u32| {
            let map = Map::new(MapKind::Interfaces, "weir-outputs", 4, 4, entries.max(1))?;
            for (number, index) in interfaces {
                map.update(&number.to_ne_bytes(), &index.to_ne_bytes())?;
            }
            io::Result::Ok(map)
        };
        let set = |numbers: &Vec<u32>| {
            let those = outputs.interfaces.iter().filter(|(number, _)| numbers.contains(number));
            let numbered: Vec<(u32, u32)> = (0..).zip(those.map(|(_, index)| *index)).collect();
            of(&numbered, numbered.len() as u32)
        };
        let single = of(&outputs.interfaces, outputs.count)?;
        let sets = outputs.sets.iter().map(set).collect::<io::Result<_>>()?;
        Ok(OutputMaps { single, sets, count: outputs.count })
    }
}

/// The interfaces, as they were at the last look.
pub(super) struct Outputs {
    outputs: KernelOutputs,
    /// Whether frames that go to several interfaces are lost to all where one is down. A driver
    /// leaves out that one; the network stack stops there.
    shares_losses: bool,
    /// In the order of the interfaces.
    looks: RefCell<Vec<OutputLook>>,
}

impl Outputs {
    pub(super) fn new(outputs: KernelOutputs) -> Outputs {
        let looks = outputs.interfaces.iter().map(|_| OutputLook::default()).collect();
        Outputs { outputs, shares_losses: false, looks: RefCell::new(looks) }
    }

    /// Says where the program is.
    pub(super) fn attached(&mut self, attach: Attach) {
        self.shares_losses = attach == Attach::Generic;
    }

    /// Tells the program which frames each interface takes now, and counts those that one may have
    /// dropped.
    pub(super) fn refresh(&self, known: &Interfaces) {
        let KernelOutputs { memory, interfaces, sets, .. } = &self.outputs;
        let look = |&(number, index): &(u32, u32)| {
            // In this order: what is handed out after the look is judged by the next one.
            let handed = memory.handed(number);
            let link = known.by_index(index).ok().flatten();
            let (longest, downs) = link.as_ref().map_or((0, 0), |on| (longest(on), on.downs));
            memory.set_longest(number, longest);
            Seen { handed, longest, downs }
        };
        let seen: Vec<Seen> = interfaces.iter().map(look).collect();
        let together = |a: usize, b: usize| {
            let both = |set: &Vec<u32>| [a, b].iter().all(|at| set.contains(&interfaces[*at].0));
            self.shares_losses && sets.iter().any(both)
        };
        let doubts = judge_all(&mut self.looks.borrow_mut(), &seen, together);
        for (&(number, _), doubted) in interfaces.iter().zip(doubts) {
            if doubted != (0, 0) {
                memory.doubt(number, doubted);
            }
        }
    }
}

/// Takes in a further look at all interfaces; frames and bytes that each may have dropped.
/// `together`: whether frames are lost to one that went to another, too, which dropped them.
fn judge_all(
    looks: &mut [OutputLook],
    seen: &[Seen],
    together: impl Fn(usize, usize) -> bool,
) -> Vec<(u64, u64)> {
    let windows: Vec<_> =
        looks.iter().zip(seen).map(|(l, now)| since(now.handed, l.judged)).collect();
    let own: Vec<_> = looks.iter_mut().zip(seen).map(|(look, now)| look.judge(now)).collect();
    let all = looks.iter_mut().zip(seen).enumerate();
    let doubts = all.map(|(at, (look, now))| {
        let others = (0..own.len()).filter(|&other| other != at && together(at, other));
        let others = others.map(|other| own[other]).fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1));
        let least = |a: (u64, u64), b: (u64, u64)| (a.0.min(b.0), a.1.min(b.1));
        let doubted = match own[at] {
            // Of the others, these are no more than what was handed to this one.
            (0, 0) => least(least(others, windows[at]), since(now.handed, look.doubted)),
            own => least(own, since(now.handed, look.doubted)),
        };
        look.doubted = (look.doubted.0 + doubted.0, look.doubted.1 + doubted.1);
        doubted
    });
    doubts.collect()
}

/// Frames and bytes that came to those of then.
fn since(now: (u64, u64), then: (u64, u64)) -> (u64, u64) {
    (now.0.saturating_sub(then.0), now.1.saturating_sub(then.1))
}

/// The findings of a look at an interface: what had been handed to it, and how it is.
#[derive(Clone, Copy, Debug)]
struct Seen {
    handed: (u64, u64),
    longest: u64,
    downs: u32,
}

/// The findings of the last look at an interface.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct OutputLook {
    longest: u64,
    downs: u32,
    /// Frames and bytes that had been handed to it then, ...
    handed: (u64, u64),
    /// ... and those of them that certainly left, or are counted as doubtful. Others may still have
    /// been in a queue of the kernel.
    judged: (u64, u64),
    /// All that were counted as doubtful so far.
    doubted: (u64, u64),
}

impl OutputLook {
    /// Takes in a further look; frames and bytes that the interface may have dropped.
    fn judge(&mut self, now: &Seen) -> (u64, u64) {
        let Seen { handed, longest, downs } = *now;
        let was_up = self.longest > 0;
        let is_steady = was_up && longest >= self.longest && downs == self.downs;
        let before = *self;
        let judged = if is_steady { before.handed } else { handed };
        *self = OutputLook { longest, downs, handed, judged, ..before };
        if is_steady { (0, 0) } else { since(handed, before.judged) }
    }
}

fn longest(interface: &LinkInfo) -> u64 {
    if interface.up && interface.carrier { u64::from(interface.mtu) + ETHERNET } else { 0 }
}

/// Whether the drivers of all these interfaces take frames that another driver redirects to them;
/// else why one does not, as far as is known. In the stack, redirection needs nothing of drivers.
pub(super) fn take_redirected(outputs: &KernelOutputs, known: &Interfaces) -> Result<(), String> {
    let features = DriverFeatures::open();
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
struct DriverFeatures {
    socket: OwnedFd,
    family: u16,
}

impl DriverFeatures {
    fn open() -> io::Result<DriverFeatures> {
        let flags = SocketFlags::CLOEXEC;
        let protocol = Some(netlink::GENERIC);
        let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, protocol)?;
        connect(&socket, &SocketAddrNetlink::new(0, 0))?;
        let answer = ask(&socket, CONTROL, GET_FAMILY, (FAMILY_NAME, b"netdev\0"))?;
        let family = answer.iter().find(|(kind, _)| *kind == FAMILY_ID);
        let family = family.and_then(|(_, value)| u16_at(value, 0));
        let unsupported = || io::Error::from(io::ErrorKind::Unsupported);
        Ok(DriverFeatures { socket, family: family.ok_or_else(unsupported)? })
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
        let mut judge = |frames: u64, longest, downs| {
            let now = Seen { handed: (frames, 10 * frames), longest, downs };
            look.judge(&now)
        };
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
                let seen = Seen { handed: (handed, handed), longest, downs };
                let now = look.judge(&seen);
                prop_assert_eq!(now.0, now.1);
                prop_assert!(was_up || now.0 >= more);
                doubted += now.0;
                prop_assert!(doubted <= handed && look.judged <= look.handed);
            }
        }
    }

    proptest! {
        /// In the network stack, frames for two interfaces get to none where one is down.
        #[test]
        fn what_is_lost_with_another_interface_is_doubted(
            steps in proptest::collection::vec((0_u8..8, 0_u64..5), 0..80),
        ) {
            let mut looks = [OutputLook::default(); 3];
            let mut now = [Seen { handed: (0, 0), longest: 1514, downs: 0 }; 3];
            let (mut lost, mut doubted) = ([0; 3], [0; 3]);
            for (step, n) in steps.into_iter().chain([(0, 0), (0, 0)]) {
                let at = n as usize % 3;
                let takes = |at: usize| looks[at].longest > 0;
                match step {
                    0 | 1 => {
                        let doubts = judge_all(&mut looks, &now, |a, b| a < 2 && b < 2);
                        doubted.iter_mut().zip(doubts).for_each(|(sum, more)| *sum += more.0);
                    }
                    2 | 3 => {
                        now[at].downs += u32::from(now[at].longest > 0);
                        now[at].longest = 1514 - now[at].longest;
                    }
                    4 if takes(at) => {
                        now[at].handed.0 += n;
                        lost[at] += if now[at].longest == 0 { n } else { 0 };
                    }
                    5..=7 if takes(0) && takes(1) => {
                        let is_lost = now[..2].iter().any(|seen| seen.longest == 0);
                        for at in 0..2 {
                            now[at].handed.0 += n;
                            lost[at] += if is_lost { n } else { 0 };
                        }
                    }
                    _ => {}
                }
            }
            for at in 0..3 {
                prop_assert!(lost[at] <= doubted[at], "{lost:?} {doubted:?}");
                prop_assert!(doubted[at] <= now[at].handed.0, "{doubted:?} {now:?}");
            }
        }
    }

    #[test]
    fn loopback_takes_no_frames_of_drivers() {
        let known = Interfaces::open().expect("a netlink socket needs no capability");
        let lo = known.by_name("lo").expect("an answer").expect("every namespace has it");
        let outputs = KernelOutputs {
            count: 1,
            interfaces: vec![(0, lo.index)],
            sets: Vec::new(),
            memory: Box::new(NoMemory),
        };
        let why = take_redirected(&outputs, &known).expect_err("it has no such driver");
        assert!(why.starts_with("lo: "), "{why}");
        let features = DriverFeatures::open().and_then(|features| features.of(lo.index));
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
