//! The options of a capture from interfaces: tcpdump's, where it has them.

use crate::exit::usage;
use clap::{Args, ValueEnum};
use weir_capture::limits::{RING_BUFFER_MAX, RINGS_MAX};
use weir_capture::live::{ANY, Direction, Stamps};
use weir_packet::limits::CAPLEN_MAX;

/// What to capture from, and how.
#[derive(Args, Debug)]
pub(crate) struct LiveArgs {
    /// Interface to capture from, or `any` for all; several, each with its own -i, at the same time
    #[arg(short, long, value_name = "INTERFACE", conflicts_with = "read")]
    pub(crate) interface: Vec<String>,

    /// How frames come from the kernel [default: packet, or pcap where that can't be had]
    #[arg(long, value_enum, requires = "interface", value_name = "WAY")]
    pub(crate) capture: Option<Capture>,

    /// With --capture xdp: look after the queues when there is nothing else to do, not by
    /// interrupts; with --capture dpdk: ask devices for packets without a pause
    #[arg(long, requires = "interface")]
    pub(crate) busy_poll: bool,

    /// With --capture dpdk, or where packets go to dpdk:DEVICE: arguments for DPDK itself, split at
    /// blanks, such as "--lcores 0@2"
    #[arg(long, value_name = "ARGS", allow_hyphen_values = true)]
    pub(crate) dpdk_args: Option<String>,

    /// List the interfaces that can be captured from, and stop
    #[arg(short = 'D', long)]
    pub(crate) list_interfaces: bool,

    /// Keep this many bytes of each packet at most
    #[arg(short, long, value_name = "BYTES", value_parser = snaplen)]
    pub(crate) snapshot_length: Option<u32>,

    /// Memory for packets on their way from the kernel, in KiB for each interface [default: 32768]
    #[arg(short = 'B', long, value_name = "KIB", value_parser = kib)]
    pub(crate) buffer_size: Option<usize>,

    /// Which packets: those that the machine receives, those that it sends, or both
    #[arg(short = 'Q', long, value_enum, value_name = "DIRECTION")]
    pub(crate) direction: Option<Way>,

    /// Leave out packets that are meant for other machines (tcpdump's -p)
    #[arg(long)]
    pub(crate) no_promiscuous_mode: bool,

    /// Whose clock says when a packet came (tcpdump's -j)
    #[arg(long, value_enum, value_name = "TYPE")]
    pub(crate) time_stamp_type: Option<Stamp>,

    /// Take each packet as it comes, not many at a time: so it is anyway where packets go out by an
    /// interface or another wire
    #[arg(long)]
    pub(crate) immediate_mode: bool,

    /// Rings of an interface, which the kernel fills on several processors at once [default: as
    /// many as workers]
    #[arg(long, value_name = "N", value_parser = rings)]
    pub(crate) rings: Option<usize>,
}

impl LiveArgs {
    /// Refuses what means nothing without an interface.
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
                Err(usage(format!("{option} is of captures from interfaces (-i)")))
            }
            _ => Ok(()),
        }
    }
}

/// How frames come from the kernel.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Capture {
    /// AF_PACKET: packets are seen on their way to the host, which gets them too
    Packet,
    /// AF_XDP: faster, by a program on the interface; the host gets none of its packets
    Xdp,
    /// DPDK: by its own drivers, without the kernel; -i names devices as DPDK does. In programs
    /// that were built with it
    Dpdk,
    /// libpcap: slower, from any device that it knows
    Pcap,
}

impl LiveArgs {
    /// Whether packets come by AF_XDP.
    pub(crate) fn is_xdp(&self) -> bool {
        self.capture == Some(Capture::Xdp)
    }

    /// Whether packets come by DPDK.
    pub(crate) fn is_dpdk(&self) -> bool {
        self.capture == Some(Capture::Dpdk)
    }

    /// Refuses what a capture by AF_XDP, DPDK or libpcap cannot do.
    pub(crate) fn possible(&self) -> Result<(), String> {
        if self.is_dpdk() {
            return self.possible_by_dpdk();
        }
        if self.capture == Some(Capture::Pcap) && self.rings.is_some() {
            return Err("--rings and --capture pcap don't go together: libpcap reads an \
                        interface by one ring"
                .to_owned());
        }
        let wrong = [
            (self.direction.is_some_and(|way| way != Way::In), "-Q out or inout"),
            (self.no_promiscuous_mode, "--no-promiscuous-mode"),
            (self.time_stamp_type.is_some(), "--time-stamp-type"),
            (self.rings.is_some(), "--rings"),
            (self.interface.iter().any(|name| name == ANY), "-i any"),
        ];
        match wrong.into_iter().find(|(given, _)| *given && self.is_xdp()) {
            Some((_, what)) => Err(format!(
                "{what} and --capture xdp don't go together: a program on the interface sees what \
                 comes in there, queue by queue"
            )),
            None if self.busy_poll && !self.is_xdp() => {
                Err("--busy-poll is of captures by AF_XDP and DPDK: add --capture xdp or dpdk"
                    .to_owned())
            }
            None => Ok(()),
        }
    }

    fn possible_by_dpdk(&self) -> Result<(), String> {
        let out = self.direction.is_some_and(|way| way != Way::In);
        if out {
            return Err("-Q out or inout and --capture dpdk don't go together: a device of DPDK \
                        gives what it receives"
                .to_owned());
        }
        if self.interface.iter().any(|name| name == ANY) {
            return Err(
                "-i any and --capture dpdk don't go together: each device has its own -i, \
                        as DPDK names it: 0000:3b:00.0, or net_af_packet0,iface=eth1"
                    .to_owned(),
            );
        }
        Ok(())
    }
}

/// Which packets are captured.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Way {
    /// Those that the machine receives
    In,
    /// Those that it sends
    Out,
    /// Both
    Inout,
}

impl From<Way> for Direction {
    fn from(way: Way) -> Direction {
        match way {
            Way::In => Direction::In,
            Way::Out => Direction::Out,
            Way::Inout => Direction::InOut,
        }
    }
}

/// Whose clock counts.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stamp {
    /// The kernel's, as it takes the packet
    Host,
    /// The network adapter's, kept in step with the system's
    Adapter,
    /// The network adapter's, going its own way
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

/// As for tcpdump, 0 means all.
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
