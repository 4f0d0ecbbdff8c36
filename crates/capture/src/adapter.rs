//! How an interface is set up, as far as capturing from it goes: for `weir doctor`.

mod error;
mod netdev;

pub use crate::sys::ethtool::Feature;
pub use error::AdapterError;

use crate::sys::{ethtool, interface, link};
use crate::xdp::link::Interfaces;

/// An interface and its driver. Facts that a driver does not tell are absent.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub struct Adapter {
    /// The name of the interface.
    pub name: String,
    /// The name of its driver.
    pub driver: Option<String>,
    /// Whether it is switched on.
    pub up: bool,
    /// Whether it is connected.
    pub carrier: bool,
    /// Bytes of a frame after its Ethernet header at most.
    pub mtu: u32,
    /// Receive queues.
    pub queues: Option<Queues>,
    /// Descriptors of each receive queue, now and at most.
    pub ring: Option<(u32, u32)>,
    /// The features that are applied to packets before anybody sees them.
    pub features: Vec<Feature>,
    /// How packets are spread over queues.
    pub spread: Option<Spread>,
    /// The XDP features of the driver.
    pub xdp: Option<Xdp>,
    /// The XDP program on it: where, and its number.
    pub program: Option<(&'static str, u32)>,
    /// Packets that it had no buffer for, since it is there.
    pub missed: u64,
    /// The memory node that it is nearest to, where there are several.
    pub node: Option<u32>,
}

/// Receive queues of an interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Queues {
    /// The number in use.
    pub now: u32,
    /// The largest number that there could be.
    pub most: u32,
    /// Whether each has a queue for sending, which is counted with it.
    pub combined: bool,
}

/// How packets are spread over receive queues.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Spread {
    /// Whether both directions of a connection come by the same queue; absent where the hash is
    /// none that we know.
    pub symmetric: Option<bool>,
    /// Whether ports of TCP count; absent where the driver does not say.
    pub ports: Option<bool>,
}

/// The XDP features of a driver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Xdp {
    /// Programs in the driver.
    pub native: bool,
    /// Frames to sockets of AF_XDP.
    pub redirect: bool,
    /// The card fills the memory of such sockets itself.
    pub zero_copy: bool,
}

/// Asks the kernel about the interface of this name, in the network namespace of this thread.
///
/// # Errors
/// When there is no such interface; the error says which there are.
pub fn adapter(name: &str) -> Result<Adapter, AdapterError> {
    let Some(known) = Interfaces::open()?.by_name(name)? else {
        let known = interface::list()?.into_iter().map(|facts| facts.name).collect();
        return Err(AdapterError::NoInterface { name: name.to_owned(), known });
    };
    let control = link::control()?;
    // A fact that can't be asked for is not known.
    let channels = ethtool::channels(name).ok().flatten();
    let rings = ethtool::rings(name).ok().flatten();
    let spread = ethtool::spread(name).ok().flatten();
    let xdp = netdev::xdp_features(known.index).ok().flatten();
    let node = std::fs::read_to_string(format!("/sys/class/net/{name}/device/numa_node"));
    Ok(Adapter {
        name: name.to_owned(),
        driver: ethtool::driver(name).ok().flatten(),
        up: known.up,
        carrier: link::state(control, name).is_ok_and(|state| state.running),
        mtu: known.mtu,
        queues: channels.and_then(|c| queues(&c)),
        ring: rings.map(|r| (r.rx, r.rx_max)).filter(|&(_, most)| most > 0),
        features: ethtool::features(name).ok().flatten().unwrap_or_default(),
        spread: spread.map(|s| Spread {
            symmetric: symmetric(&s),
            ports: s.tcp.map(|fields| fields & PORTS == PORTS),
        }),
        xdp: xdp.map(|bits| Xdp {
            native: bits & 1 != 0,
            redirect: bits & 2 != 0,
            zero_copy: bits & 8 != 0,
        }),
        program: known.program,
        missed: known.missed,
        node: node.ok().and_then(|text| text.trim().parse().ok()),
    })
}

fn queues(channels: &ethtool::Channels) -> Option<Queues> {
    let combined = channels.combined_max > 0;
    let (now, most) = match combined {
        true => (channels.combined, channels.combined_max),
        false => (channels.rx, channels.rx_max),
    };
    (most > 0).then_some(Queues { now, most, combined })
}

/// `RXH_L4_B_0_1` and `RXH_L4_B_2_3`.
const PORTS: u64 = 0b11 << 6;

/// `ETH_RSS_HASH_TOP` and `ETH_RSS_HASH_XOR`.
const TOEPLITZ: u8 = 1;
const XOR: u8 = 2;

/// Toeplitz's hash is symmetric where its key repeats after 16 bits, which makes all bits that far
/// apart count the same (Woo and Park, "Scalable TCP Session Monitoring with Symmetric Receive-side
/// Scaling", 2012), or where the card makes source and destination one.
fn symmetric(spread: &ethtool::RssSettings) -> Option<bool> {
    let repeats = |key: &[u8]| key.len() > 2 && key.iter().zip(&key[2..]).all(|(a, b)| a == b);
    match spread.function {
        _ if spread.symmetric != 0 => Some(true),
        TOEPLITZ => Some(repeats(&spread.key)),
        XOR => Some(true),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_symmetric_or_not() {
        let of = |function, symmetric, key: &[u8]| {
            let key = key.to_vec();
            super::symmetric(&ethtool::RssSettings { function, symmetric, key, tcp: None })
        };
        assert_eq!(of(TOEPLITZ, 0, &[0x6d, 0x5a].repeat(20)), Some(true));
        assert_eq!(of(TOEPLITZ, 0, &[0x6d, 0x5a, 0x56, 0xda]), Some(false));
        assert_eq!(of(TOEPLITZ, 1, &[1, 2, 3, 4]), Some(true));
        assert_eq!(of(TOEPLITZ, 0, &[]), Some(false));
        assert_eq!((of(XOR, 0, &[]), of(4, 0, &[])), (Some(true), None));
    }

    #[test]
    fn loopback_is_there_and_others_are_not() {
        let lo = adapter("lo").expect("it is there");
        assert_eq!((lo.name.as_str(), lo.mtu > 1000), ("lo", true));
        let error = adapter("weir-none").expect_err("it is not").to_string();
        assert!(
            error.starts_with("weir-none: there is no such interface; there are lo"),
            "{error}"
        );
    }
}
