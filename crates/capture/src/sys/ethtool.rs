//! The facts that the ethtool ioctl tells of an interface (`linux/ethtool.h`): its driver, queues,
//! rings, offloads, and how it spreads packets over queues.
//!
//! It is sound: every struct is laid out as that header says, lives through the call, and
//! has room for as much as it says that it has; the kernel writes no more. All are plain numbers.

use super::link;
use std::io;

const GET_DRIVER: u32 = 0x03;
const GET_RINGS: u32 = 0x10;
const GET_STRINGS: u32 = 0x1b;
const GET_HASH_FIELDS: u32 = 0x29;
const GET_STRING_SETS: u32 = 0x37;
const GET_FEATURES: u32 = 0x3a;
const GET_CHANNELS: u32 = 0x3c;
const GET_HASH: u32 = 0x46;

/// Receive queues of the interface of this name, in the network namespace of this thread. `None`:
/// the driver does not say.
pub(crate) fn rx_queues(name: &str) -> io::Result<Option<u32>> {
    let channels = channels(name)?;
    Ok(channels.map(|c| c.rx.saturating_add(c.combined)).filter(|&n| n > 0))
}

/// `struct ethtool_channels`: queues, at most and now.
#[repr(C)]
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Channels {
    command: u32,
    pub(crate) rx_max: u32,
    pub(crate) tx_max: u32,
    other_max: u32,
    pub(crate) combined_max: u32,
    pub(crate) rx: u32,
    pub(crate) tx: u32,
    other: u32,
    pub(crate) combined: u32,
}

/// The queues of an interface.
pub(crate) fn channels(name: &str) -> io::Result<Option<Channels>> {
    let mut channels = Channels { command: GET_CHANNELS, ..Channels::default() };
    // SAFETY: what this command reads and writes.
    let asked = unsafe { ask(name, &mut channels) };
    known(asked.map(|()| channels))
}

/// `struct ethtool_ringparam`: descriptors, at most and now.
#[repr(C)]
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Rings {
    command: u32,
    pub(crate) rx_max: u32,
    rx_mini_max: u32,
    rx_jumbo_max: u32,
    tx_max: u32,
    pub(crate) rx: u32,
    rx_mini: u32,
    rx_jumbo: u32,
    tx: u32,
}

/// The rings of an interface.
pub(crate) fn rings(name: &str) -> io::Result<Option<Rings>> {
    let mut rings = Rings { command: GET_RINGS, ..Rings::default() };
    // SAFETY: what this command reads and writes.
    let asked = unsafe { ask(name, &mut rings) };
    known(asked.map(|()| rings))
}

/// `struct ethtool_drvinfo`.
#[repr(C)]
struct Driver {
    command: u32,
    name: [u8; 32],
    /// Versions and more, which are not read.
    rest: [u8; 160],
}

/// The name of its driver.
pub(crate) fn driver(name: &str) -> io::Result<Option<String>> {
    let mut driver = Driver { command: GET_DRIVER, name: [0; 32], rest: [0; 160] };
    // SAFETY: what this command reads and writes.
    let asked = unsafe { ask(name, &mut driver) };
    known(asked.map(|()| text(&driver.name)))
}

/// Something that the interface may do with packets: `rx-gro`, `rx-lro`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Feature {
    /// Its name, as `ethtool -k` has it.
    pub name: String,
    /// Whether it is on.
    pub on: bool,
    /// Whether it can be switched.
    pub switchable: bool,
}

/// Names that there is room for, which is more than kernels have.
const NAMES_MAX: usize = 256;

/// `ETH_SS_FEATURES`.
const FEATURES: u32 = 4;

/// `struct ethtool_sset_info`, for one set.
#[repr(C)]
struct SetInfo {
    command: u32,
    reserved: u32,
    mask: u64,
    len: u32,
    end: u32,
}

/// `struct ethtool_gstrings`.
#[repr(C)]
struct Strings {
    command: u32,
    set: u32,
    len: u32,
    names: [[u8; 32]; NAMES_MAX],
}

/// `struct ethtool_gfeatures`.
#[repr(C)]
struct FeatureBits {
    command: u32,
    /// Blocks that there is room for, each for 32 features.
    blocks: u32,
    /// `struct ethtool_get_features_block`: available, requested, active, never changed.
    bits: [[u32; 4]; NAMES_MAX / 32],
}

/// The features that it may apply to packets.
pub(crate) fn features(name: &str) -> io::Result<Option<Vec<Feature>>> {
    let mask = 1 << FEATURES;
    let mut set = SetInfo { command: GET_STRING_SETS, reserved: 0, mask, len: 0, end: 0 };
    // SAFETY: what this command reads and writes, for the one set of the mask.
    let asked = unsafe { ask(name, &mut set) };
    let len = match known(asked)? {
        Some(()) if set.mask == mask && set.len as usize <= NAMES_MAX => set.len as usize,
        _ => return Ok(None),
    };
    let mut strings =
        Strings { command: GET_STRINGS, set: FEATURES, len: set.len, names: [[0; 32]; NAMES_MAX] };
    // SAFETY: what this command reads and writes: as many names as were told of, which is fixed
    // while the kernel runs, and for which there is room.
    unsafe { ask(name, &mut strings)? };
    let blocks = NAMES_MAX / 32;
    let mut features = FeatureBits {
        command: GET_FEATURES,
        blocks: blocks as u32,
        bits: [[0; 4]; NAMES_MAX / 32],
    };
    // SAFETY: what this command reads and writes, at most as many blocks as it is told of.
    unsafe { ask(name, &mut features)? };
    let feature = |(n, name): (usize, &[u8; 32])| {
        let [available, _, active, fixed] = features.bits[n / 32].map(|bits| bits >> (n % 32) & 1);
        Feature { name: text(name), on: active == 1, switchable: available == 1 && fixed == 0 }
    };
    Ok(Some(strings.names.iter().take(len).enumerate().map(feature).collect()))
}

/// Bytes of a key that there is room for.
const KEY_MAX: usize = 256;

/// `struct ethtool_rxfh`.
#[repr(C)]
struct Hash {
    command: u32,
    context: u32,
    table: u32,
    key: u32,
    function: u8,
    symmetric: u8,
    reserved: [u8; 6],
    bytes: [u8; KEY_MAX],
}

/// `struct ethtool_rxnfc`, with room for the longest.
#[repr(C)]
struct HashFields {
    command: u32,
    flow: u32,
    fields: u64,
    rest: [u64; 30],
}

/// How an interface chooses the queue of a packet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct RssSettings {
    /// `ETH_RSS_HASH_…`: 1 is Toeplitz's.
    pub(crate) function: u8,
    /// `RXH_XFRM_SYM_…`: whether source and destination are made one first.
    pub(crate) symmetric: u8,
    pub(crate) key: Vec<u8>,
    /// `RXH_…` of TCP over IPv4, where the driver says.
    pub(crate) tcp: Option<u64>,
}

/// How it chooses the queue of a packet.
pub(crate) fn spread(name: &str) -> io::Result<Option<RssSettings>> {
    let empty = |key| Hash {
        command: GET_HASH,
        context: 0,
        table: 0,
        key,
        function: 0,
        symmetric: 0,
        reserved: [0; 6],
        bytes: [0; KEY_MAX],
    };
    let mut hash = empty(0);
    // SAFETY: what this command reads and writes; without room for a table or a key, only the
    // lengths that they have.
    let asked = unsafe { ask(name, &mut hash) };
    if known(asked)?.is_none() {
        return Ok(None);
    }
    let len = hash.key as usize;
    if (1..=KEY_MAX).contains(&len) {
        let mut with_key = empty(hash.key);
        // SAFETY: as above, with room for the key.
        if unsafe { ask(name, &mut with_key) }.is_ok() {
            hash = with_key;
        }
    }
    let mut fields = HashFields { command: GET_HASH_FIELDS, flow: 1, fields: 0, rest: [0; 30] };
    // SAFETY: what this command reads and writes.
    let asked = unsafe { ask(name, &mut fields) };
    let tcp = asked.is_ok().then_some(fields.fields);
    let key = hash.bytes[..len.min(KEY_MAX)].to_vec();
    Ok(Some(RssSettings { function: hash.function, symmetric: hash.symmetric, key, tcp }))
}

/// Asks an interface by the ioctl of ethtool.
///
/// # Safety
/// The command that the struct begins with reads and writes a `T`.
unsafe fn ask<T>(name: &str, data: &mut T) -> io::Result<()> {
    // SAFETY: as promised.
    unsafe { link::ask_with(link::control()?, libc::SIOCETHTOOL, name, data) }
}

/// `None` where the driver, or the kernel, does not know of it.
fn known<T>(asked: io::Result<T>) -> io::Result<Option<T>> {
    match asked {
        Ok(answer) => Ok(Some(answer)),
        Err(e) => match e.raw_os_error() {
            Some(libc::EOPNOTSUPP | libc::EINVAL) => Ok(None),
            _ => Err(e),
        },
    }
}

fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_are_those_of_the_header() {
        assert_eq!(size_of::<Driver>(), 196);
        assert_eq!((size_of::<Channels>(), size_of::<Rings>()), (36, 36));
        assert_eq!(std::mem::offset_of!(Hash, bytes), 24);
        assert_eq!(std::mem::offset_of!(HashFields, fields), 8);
        assert_eq!(std::mem::offset_of!(Strings, names), 12);
        assert_eq!(std::mem::offset_of!(SetInfo, len), 16);
    }

    #[test]
    fn loopback_says_what_it_can() {
        assert_eq!(channels("lo").expect("it is there").map(|c| c.rx), None);
        let features = features("lo").expect("it is there").expect("it has some");
        assert!(features.iter().any(|f| f.name == "rx-gro"), "{features:?}");
        assert!(spread("lo").expect("it is there").is_none());
        assert!(rings("no such one").is_err());
    }
}
