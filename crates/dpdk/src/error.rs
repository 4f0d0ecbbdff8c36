//! Why a device of DPDK can't be had, or can't be used any more: the cause, and what to try.
//!
//! A [`DpdkError`] is the error within a [`SourceError::Io`], which names the device, or within the
//! [`io::Error`] of [`Senders::open`](crate::Senders::open).

use crate::limits::{DEVICES_MAX, MEMORY_MAX};
use std::{error, fmt, io};
use weir_packet::source::SourceError;

/// Why a device of DPDK can't be had, or can't be used any more.
#[derive(Debug)]
#[non_exhaustive]
pub enum DpdkError {
    /// This program was built without DPDK.
    NotLinked,
    /// Devices were named wrongly.
    Name(NameError),
    /// No driver has the device.
    Driver(DriverError),
    /// An argument for DPDK makes it print help and end.
    AsksForHelp(String),
    /// More memory was asked for than a device can have.
    TooMuchMemory,
    /// DPDK does not start.
    Start {
        /// The arguments that it got.
        arguments: String,
        /// A hint on what the user can try.
        hint: StartHint,
        /// Its code.
        error: io::Error,
        /// DPDK's words.
        said: Said,
    },
    /// A port can't be set up.
    Setup {
        /// The step that failed.
        doing: &'static str,
        /// Its code.
        error: io::Error,
        /// Whether the port was to send.
        sends: bool,
        /// DPDK's words.
        said: Said,
    },
    /// This driver receives nothing.
    ReceivesNothing(String),
    /// The times that were asked for can't be had.
    Times(TimesError),
    /// The counters of a device can't be read.
    Counters(io::Error),
    /// The device was removed.
    Removed,
    /// A device to send by was not opened when the run started; those that were.
    NotOpened(Vec<String>),
}

/// A fault in the names of devices.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum NameError {
    /// A name is neither a PCI address nor that of a virtual device.
    NoDevice,
    /// A name is that of an interface of the kernel.
    KernelInterface {
        /// The interface.
        interface: String,
        /// The PCI address of its card, if it has one.
        card: Option<String>,
    },
    /// So many devices were named, which are too many.
    TooMany(usize),
    /// A device to capture from is named twice.
    Twice,
    /// A device is named twice, with different arguments for its driver.
    TwoArguments,
    /// A device is open with other arguments for its driver.
    OtherArguments {
        /// Its name.
        name: String,
        /// The name with the arguments with which it is open.
        open: String,
    },
    /// A device would send by the interface that this other device captures from.
    Captured(String),
    /// A device to send by has several ports.
    SeveralPorts,
}

/// Why no driver has a device.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum DriverError {
    /// There is no PCI device of this address.
    NoCard,
    /// The PCI device is no network card; its class.
    NoNetworkCard(String),
    /// The card belongs to the kernel.
    OfKernel {
        /// Its PCI address.
        address: String,
        /// The kernel's driver that has it, if any does.
        driver: Option<String>,
    },
    /// No driver of DPDK took the card.
    NotTaken(Said),
    /// This driver of DPDK does not make the virtual device.
    NotMade(String, Said),
}

/// A hint on what may help if DPDK does not start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StartHint {
    /// Nothing is known.
    None,
    /// It failed to start before, and can be started once only.
    Once,
    /// Some of the arguments are the user's.
    Arguments,
}

/// Why frames can't have the times that were asked for.
#[derive(Debug)]
#[non_exhaustive]
pub enum TimesError {
    /// This driver does not say when frames came.
    Driver(String),
    /// The clock of the device can't be read.
    Clock(io::Error),
    /// Times in step with the system's were asked of a capture file.
    OfFile,
    /// Times as the device has them were asked of a card.
    OfCard,
}

/// The lines that DPDK wrote before an error, for people; empty if it wrote nothing.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Said(pub(crate) String);

impl Said {
    /// Whether its text contains any of these words.
    fn has(&self, words: &[&str]) -> bool {
        words.iter().any(|word| self.0.contains(word))
    }
}

impl DpdkError {
    /// The error of a device, or of `DPDK`.
    pub(crate) fn on(self, name: &str) -> SourceError {
        SourceError::Io { name: name.to_owned(), source: self.into() }
    }
}

impl From<NameError> for DpdkError {
    fn from(error: NameError) -> DpdkError {
        DpdkError::Name(error)
    }
}

impl From<DriverError> for DpdkError {
    fn from(error: DriverError) -> DpdkError {
        DpdkError::Driver(error)
    }
}

impl From<TimesError> for DpdkError {
    fn from(error: TimesError) -> DpdkError {
        DpdkError::Times(error)
    }
}

impl From<DpdkError> for io::Error {
    fn from(error: DpdkError) -> io::Error {
        let kind = match error {
            DpdkError::NotLinked => io::ErrorKind::Unsupported,
            _ => io::ErrorKind::InvalidInput,
        };
        io::Error::new(kind, error)
    }
}

impl error::Error for DpdkError {}

impl fmt::Display for DpdkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DpdkError::NotLinked => f.write_str(
                "this program was built without DPDK; to build one with it, on Debian or Ubuntu: \
                 apt-get install libdpdk-dev && cargo build --release --features dpdk",
            ),
            DpdkError::Name(e) => e.fmt(f),
            DpdkError::Driver(e) => e.fmt(f),
            DpdkError::AsksForHelp(word) => write!(
                f,
                "--dpdk-args {word} captures nothing; what arguments there are: \
                 https://doc.dpdk.org/guides/linux_gsg/linux_eal_parameters.html"
            ),
            DpdkError::TooMuchMemory => {
                write!(f, "a device has {} KiB of memory at most (-B)", MEMORY_MAX >> 10)
            }
            DpdkError::Start { arguments, hint, error, said } => {
                write!(f, "starting it with `{arguments}`: {error}{hint}{said}")
            }
            DpdkError::Setup { doing, error, sends, said } => {
                let hint = match error.kind() {
                    io::ErrorKind::OutOfMemory => {
                        "; -B asks for less memory, --rings for fewer queues, and huge pages give \
                         more: sysctl vm.nr_hugepages=256"
                    }
                    io::ErrorKind::Unsupported if *sends => "; its driver sends nothing",
                    _ => "",
                };
                write!(f, "{doing}: {error}{hint}{said}")
            }
            DpdkError::ReceivesNothing(driver) => {
                write!(f, "its driver, {driver}, receives nothing")
            }
            DpdkError::Times(e) => e.fmt(f),
            DpdkError::Counters(e) => write!(f, "asking its counters: {e}"),
            DpdkError::Removed => f.write_str("the device was removed"),
            DpdkError::NotOpened(open) if open.is_empty() => f.write_str(
                "devices of DPDK are opened when a run starts, and this one started without any: \
                 name it there, with -w or in a query",
            ),
            DpdkError::NotOpened(open) => write!(
                f,
                "devices of DPDK are opened when a run starts, and this one sends by {} only",
                open.join(", ")
            ),
        }
    }
}

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NameError::NoDevice => f.write_str(
                "it is no device of DPDK: name a card by its PCI address (0000:3b:00.0) or a \
                 virtual device by its driver and a number (net_af_packet0,iface=eth1)",
            ),
            NameError::KernelInterface { interface, card: Some(address) } => write!(
                f,
                "it is an interface of the kernel; DPDK takes its card, {address}, away from the \
                 kernel: -i {address} (docs/dpdk.md says how), or shares it slowly: \
                 -i net_af_packet0,iface={interface}"
            ),
            NameError::KernelInterface { interface, card: None } => write!(
                f,
                "it is an interface of the kernel; DPDK takes it by a virtual device: \
                 -i net_af_packet0,iface={interface}"
            ),
            NameError::TooMany(n) => {
                write!(f, "{n} devices are more than the {DEVICES_MAX} there may be")
            }
            NameError::Twice => f.write_str(
                "it is named twice; several virtual devices have different numbers: net_null0, \
                 net_null1",
            ),
            NameError::TwoArguments => f.write_str(
                "it is named twice, and its driver told different things: name it without them \
                 where packets are sent by it",
            ),
            NameError::OtherArguments { name, open } => write!(
                f,
                "it is open as {open}, and its driver can't be told other things now: name it \
                 {name}"
            ),
            NameError::Captured(by) => write!(
                f,
                "packets are captured on this interface by {by}, and would come back; to send by \
                 it, name {by}"
            ),
            NameError::SeveralPorts => f.write_str(
                "it has several ports, and can't be sent by: which of them would it be?",
            ),
        }
    }
}

impl fmt::Display for DriverError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DriverError::NoCard => f.write_str(
                "there is no PCI device of this address; dpdk-devbind.py --status-dev net lists \
                 those that there are",
            ),
            DriverError::NoNetworkCard(class) => {
                write!(f, "it is no network device (its class is {class})")
            }
            DriverError::OfKernel { address, driver: Some(driver) } => write!(
                f,
                "it belongs to the kernel's driver {driver}; to take it away from the kernel: sudo \
                 dpdk-devbind.py --bind=vfio-pci {address}"
            ),
            DriverError::OfKernel { address, driver: None } => write!(
                f,
                "it belongs to no driver; to hand it to programs: sudo dpdk-devbind.py \
                 --bind=vfio-pci {address}"
            ),
            DriverError::NotTaken(said) => write!(
                f,
                "no driver of DPDK took it; is the package of its driver there (librte-net-…), \
                 and may this user open /dev/vfio?{said}"
            ),
            DriverError::NotMade(driver, said) => {
                f.write_str("DPDK does not make this device: ")?;
                if said.has(&["failed to parse device"]) {
                    let package = driver.replace('_', "-");
                    write!(f, "there is no driver {driver}; Debian's are in packages ")?;
                    write!(f, "librte-{package}*")?;
                } else if said.has(&["not permitted", "denied", "open AF_PACKET socket"]) {
                    f.write_str("it takes root, or CAP_NET_RAW and CAP_NET_ADMIN")?;
                } else if said.0.is_empty() {
                    write!(f, "was {driver} told all that it needs? docs/dpdk.md shows it")?;
                } else {
                    write!(f, "{driver} did not take what it was told")?;
                }
                said.fmt(f)
            }
        }
    }
}

impl fmt::Display for StartHint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            StartHint::None => "",
            StartHint::Once => "; it was started before, in vain, and can be once only",
            StartHint::Arguments => "; is --dpdk-args as DPDK takes it?",
        })
    }
}

impl fmt::Display for TimesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TimesError::Driver(driver) => write!(
                f,
                "its driver, {driver}, does not say when frames came: leave --time-stamp-type out"
            ),
            TimesError::Clock(e) => write!(
                f,
                "its clock can't be read ({e}), so that nobody knows what its time stamps mean: \
                 leave --time-stamp-type out"
            ),
            TimesError::OfFile => f.write_str(
                "the times of a file have nothing to do with the system's: --time-stamp-type \
                 adapter_unsynced takes them as they are",
            ),
            TimesError::OfCard => f.write_str(
                "its clock counts in units of its own: --time-stamp-type adapter makes times of \
                 them",
            ),
        }
    }
}

impl fmt::Display for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { Ok(()) } else { write!(f, " (DPDK says: {})", self.0) }
    }
}
