//! The options of a capture from interfaces: tcpdump's, where it has them.

use super::OffloadMode;
use crate::exit::usage;
use clap::{Args, ValueEnum};
use weir_capture::limits::{RING_BUFFER_MAX, RINGS_MAX};
use weir_capture::live::{ANY, Directions, Stamps};
use weir_capture::xdp::Attach;
use weir_packet::limits::CAPLEN_MAX;

/// The interfaces to capture from, and how to capture.
#[derive(Args, Debug)]
pub(crate) struct LiveArgs {
    /// The interface to capture from, or `any` for all
    ///
    /// Several at the same time, each with its own -i. For queries over `flows` also where flow
    /// records are received: ipfix://:4739, netflow://:2055, sflow://:6343. Or a topic with the
    /// packets of another run (kafka://HOST:PORT/TOPIC), with --group.
    #[arg(short, long, value_name = "INTERFACE", conflicts_with = "read")]
    pub(crate) interface: Vec<String>,

    /// How frames are captured [default: packet, or pcap if that is not possible]
    #[arg(long, value_enum, requires = "interface", value_name = "WAY")]
    pub(crate) capture: Option<Capture>,

    /// Whether the kernel runs the first stages of the query, so that packets that it needs no more
    /// are not copied
    #[arg(long, value_enum, value_name = "WHEN", default_value = "off")]
    pub(crate) offload: OffloadMode,

    /// With --capture xdp: where the program runs that hands frames over
    #[arg(long, value_enum, requires = "interface", value_name = "MODE", default_value = "auto")]
    pub(crate) xdp_mode: XdpMode,

    /// With --capture xdp: let the kernel process the queues when Weir has nothing else to do, not
    /// by interrupts; with --capture dpdk: poll devices without a pause
    #[arg(long, requires = "interface")]
    pub(crate) busy_poll: bool,

    /// With --capture dpdk, or with outputs named dpdk:DEVICE: arguments for DPDK itself, separated
    /// by blanks, such as "--lcores 0@2"
    #[arg(long, value_name = "ARGS", allow_hyphen_values = true)]
    pub(crate) dpdk_args: Option<String>,

    /// List the interfaces and devices to capture from, and stop
    #[arg(short = 'D', long)]
    pub(crate) list_interfaces: bool,

    /// Keep at most this many bytes of each packet; 0 keeps all [default: 0]
    #[arg(short, long, value_name = "BYTES", value_parser = snaplen)]
    pub(crate) snapshot_length: Option<u32>,

    /// The memory for packets on their way from the kernel, in KiB for each interface [default:
    /// 32768]
    #[arg(short = 'B', long, value_name = "KIB", value_parser = kib)]
    pub(crate) buffer_size: Option<usize>,

    /// Which packets to capture
    #[arg(short = 'Q', long, value_enum, value_name = "DIRECTION")]
    pub(crate) direction: Option<CaptureDirection>,

    /// Leave out packets for other machines (tcpdump's -p)
    #[arg(long)]
    pub(crate) no_promiscuous_mode: bool,

    /// The clock that stamps packets (tcpdump's -j)
    #[arg(long, value_enum, value_name = "TYPE")]
    pub(crate) time_stamp_type: Option<Stamp>,

    /// Deliver each packet at once, not in blocks; switched on if packets leave by an interface or
    /// a tunnel
    #[arg(long)]
    pub(crate) immediate_mode: bool,

    /// The number of rings of an interface, which the kernel fills on several processors at once
    /// [default: the number of workers]
    #[arg(long, value_name = "N", value_parser = rings)]
    pub(crate) rings: Option<usize>,
}

impl LiveArgs {
    /// Refuses options that have no effect without an interface.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        let given = [
            ("-s", self.snapshot_length.is_some()),
            ("-B", self.buffer_size.is_some()),
            ("-Q", self.direction.is_some()),
            ("--no-promiscuous-mode", self.no_promiscuous_mode),
            ("--time-stamp-type", self.time_stamp_type.is_some()),
            ("--immediate-mode", self.immediate_mode),
            ("--rings", self.rings.is_some()),
        ];
        match given.into_iter().find(|(_, given)| *given) {
            Some((option, _)) if self.interface.is_empty() => {
                Err(usage(format!("{option} only applies to captures from interfaces (-i)")))
            }
            _ => Ok(()),
        }
    }
}

/// How frames come from the kernel.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Capture {
    /// AF_PACKET: captures packets on their way to the host, which gets them too
    Packet,
    /// AF_XDP: faster, by a program on the interface; the host does not get the packets
    Xdp,
    /// The traffic control hook (Linux 6.6), both ways: the host gets the packets, too
    Tcx,
    /// DPDK: by its own drivers, without the kernel, in binaries built with it; -i takes DPDK's
    /// names of devices
    Dpdk,
    /// libpcap: slower, but from any device that libpcap knows
    Pcap,
}

/// Where the XDP program of a capture runs.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum XdpMode {
    /// In the driver if it can, else in the network stack
    Auto,
    /// In the driver
    Native,
    /// In the network stack, of any interface
    Generic,
    /// On the card itself; never tried with a card that can do that
    Card,
}

impl XdpMode {
    /// The place; `None` for the best there is.
    pub(crate) fn place(self) -> Option<Attach> {
        match self {
            XdpMode::Auto => None,
            XdpMode::Native => Some(Attach::Native),
            XdpMode::Generic => Some(Attach::Generic),
            XdpMode::Card => Some(Attach::Card),
        }
    }
}

impl LiveArgs {
    /// Whether packets come by AF_XDP.
    pub(crate) fn is_xdp(&self) -> bool {
        self.capture == Some(Capture::Xdp)
    }

    /// Whether packets come by the traffic control hook.
    pub(crate) fn is_tcx(&self) -> bool {
        self.capture == Some(Capture::Tcx)
    }

    /// Whether packets come by libpcap.
    pub(crate) fn is_pcap(&self) -> bool {
        self.capture == Some(Capture::Pcap)
    }

    /// Whether the kernel must run a part of the query, if it is to run one.
    pub(crate) fn offload_required(&self) -> Option<bool> {
        match self.offload {
            OffloadMode::Off => None,
            mode => Some(mode == OffloadMode::Require),
        }
    }

    /// Whether a run in which the kernel runs no part of the query does not begin.
    pub(crate) fn is_offload_required(&self) -> bool {
        self.offload == OffloadMode::Require
    }

    /// Whether packets come by DPDK.
    pub(crate) fn is_dpdk(&self) -> bool {
        self.capture == Some(Capture::Dpdk)
    }

    /// Refuses options that a capture by AF_XDP, DPDK or libpcap does not support.
    pub(crate) fn possible(&self) -> Result<(), String> {
        if self.xdp_mode != XdpMode::Auto && !self.is_xdp() {
            return Err("--xdp-mode only applies to captures by AF_XDP: add --capture xdp".into());
        }
        if self.is_dpdk() {
            return self.possible_by_dpdk();
        }
        if self.is_pcap() && self.rings.is_some() {
            return Err("--rings can't be used with --capture pcap: libpcap reads an \
                        interface by one ring"
                .to_owned());
        }
        if self.is_tcx() {
            self.possible_by_tcx()?;
        }
        let wrong = [
            (
                self.direction.is_some_and(|direction| direction != CaptureDirection::In),
                "-Q out or inout",
            ),
            (self.no_promiscuous_mode, "--no-promiscuous-mode"),
            (self.time_stamp_type.is_some(), "--time-stamp-type"),
            (self.rings.is_some(), "--rings"),
            (self.interface.iter().any(|name| name == ANY), "-i any"),
        ];
        match wrong.into_iter().find(|(given, _)| *given && self.is_xdp()) {
            Some((_, what)) => Err(format!(
                "{what} can't be used with --capture xdp: a program on the interface sees only \
                 packets that it receives, queue by queue"
            )),
            None if self.busy_poll && !self.is_xdp() => {
                Err("--busy-poll only applies to captures by AF_XDP and DPDK: add --capture xdp \
                     or dpdk"
                    .to_owned())
            }
            None => Ok(()),
        }
    }

    fn possible_by_tcx(&self) -> Result<(), String> {
        let wrong = [
            (self.interface.iter().any(|name| name == ANY), "-i any", "each interface has a hook"),
            (self.rings.is_some(), "--rings", "packets of all interfaces come by one ring"),
            (
                self.time_stamp_type.is_some_and(|clock| clock != Stamp::Host),
                "--time-stamp-type adapter",
                "the hook has the kernel's clock only",
            ),
        ];
        match wrong.into_iter().find(|(given, ..)| *given) {
            Some((_, what, why)) => Err(format!("{what} can't be used with --capture tcx: {why}")),
            None => Ok(()),
        }
    }

    fn possible_by_dpdk(&self) -> Result<(), String> {
        let out = self.direction.is_some_and(|direction| direction != CaptureDirection::In);
        if out {
            return Err("-Q out and -Q inout can't be used with --capture dpdk: a device of DPDK \
                        delivers only packets that it receives"
                .to_owned());
        }
        if self.interface.iter().any(|name| name == ANY) {
            return Err("-i any can't be used with --capture dpdk: each device needs its own -i, \
                        with DPDK's name of it: 0000:3b:00.0, or net_af_packet0,iface=eth1"
                .to_owned());
        }
        Ok(())
    }
}

/// Which packets are captured.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CaptureDirection {
    /// Packets that the machine receives
    In,
    /// Packets that the machine sends
    Out,
    /// Both
    Inout,
}

impl From<CaptureDirection> for Directions {
    fn from(direction: CaptureDirection) -> Directions {
        match direction {
            CaptureDirection::In => Directions::In,
            CaptureDirection::Out => Directions::Out,
            CaptureDirection::Inout => Directions::InOut,
        }
    }
}

/// The clock that stamps packets.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stamp {
    /// The kernel's clock, when the kernel receives the packet
    Host,
    /// The network adapter's clock, synchronised with the system's
    Adapter,
    /// The network adapter's clock, not synchronised
    #[value(name = "adapter_unsynced")]
    AdapterUnsynced,
}

impl From<Stamp> for Stamps {
    fn from(stamp: Stamp) -> Stamps {
        match stamp {
            Stamp::Host => Stamps::Host,
            Stamp::Adapter => Stamps::Adapter,
            Stamp::AdapterUnsynced => Stamps::AdapterUnsynced,
        }
    }
}

/// A snap length; 0 means all, as for tcpdump.
fn snaplen(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(0) => Ok(CAPLEN_MAX),
        Ok(n @ 1..=CAPLEN_MAX) => Ok(n),
        _ => Err(format!("expected a number of bytes, at most {CAPLEN_MAX}; 0 for all")),
    }
}

fn kib(text: &str) -> Result<usize, String> {
    const MOST: usize = RING_BUFFER_MAX >> 10;
    match text.parse() {
        Ok(n @ 1..=MOST) => Ok(n << 10),
        _ => Err(format!("expected a number of KiB, from 1 to {MOST}")),
    }
}

fn rings(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(n @ 1..=RINGS_MAX) => Ok(n),
        _ => Err(format!("expected a number from 1 to {RINGS_MAX}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_their_bounds() {
        assert_eq!((snaplen("0"), snaplen("96")), (Ok(CAPLEN_MAX), Ok(96)));
        assert!(snaplen("262145").is_err() && snaplen("-1").is_err() && snaplen("x").is_err());
        assert_eq!(kib("4096"), Ok(4 << 20));
        assert!(kib("0").is_err() && kib("99999999999").is_err());
        assert_eq!(rings("4"), Ok(4));
        assert!(rings("0").is_err() && rings("65").is_err());
    }
}
