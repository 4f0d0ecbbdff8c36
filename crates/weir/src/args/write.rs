//! Where passed packets go, and how captures are split into files: by tcpdump's letters.

use super::values::file_size;
use crate::exit::usage;
use clap::Args;
use std::num::{NonZeroU32, NonZeroU64};
use weir_capture::write::Rotation;

/// Where passed packets go.
#[derive(Args, Debug)]
pub(crate) struct WriteArgs {
    /// Where passed packets go: a capture such as x.pcap, an interface, or `-`
    ///
    /// A capture (`x.pcap`, `x.pcapng`, `-` for standard output), an interface, a tunnel, the host
    /// (`host:`), or a topic (kafka://HOST:PORT/TOPIC). Interfaces are `eth1`, `xdp:eth1`,
    /// `dpdk:DEVICE`, `tap:NAME` and `tun:NAME`; tunnels are `udp://HOST:PORT`,
    /// `vxlan://HOST?vni=N`, `gre://HOST` and `erspan://HOST?session=N`. `host:` needs `--capture
    /// xdp --offload require`.
    #[arg(short = 'w', long = "write", value_name = "WHERE")]
    pub(crate) to: Option<String>,

    /// Begin a further file of -w when the current one has this size, in millions of bytes, or with
    /// k, m, g in KiB, MiB, GiB
    #[arg(short = 'C', long, value_name = "SIZE", requires = "to", value_parser = file_size)]
    pub(crate) file_size: Option<u64>,

    /// Begin a further file of -w after this many seconds of packets; the name gives the time in
    /// UTC, by strftime(3), such as x-%H%M%S.pcap
    #[arg(short = 'G', long, value_name = "SECONDS", requires = "to")]
    pub(crate) file_seconds: Option<NonZeroU64>,

    /// With -C, write this many files, then overwrite the first; with -G alone, end the run after
    /// this many files
    #[arg(short = 'W', long, value_name = "N")]
    pub(crate) file_count: Option<NonZeroU32>,
}

impl WriteArgs {
    /// Refuses options that have no effect alone.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        let cut = self.file_size.is_some() || self.file_seconds.is_some();
        match self.file_count {
            Some(n) if !cut => {
                Err(usage(format!("-W {n} limits the files that -C or -G begins: add one of them")))
            }
            _ => Ok(()),
        }
    }

    /// When -w begins a further file, if it does.
    pub(crate) fn rotation(&self) -> Option<Rotation> {
        let (bytes, seconds) = (self.file_size, self.file_seconds);
        let cut = bytes.is_some() || seconds.is_some();
        cut.then_some(Rotation { bytes, seconds, files: self.file_count })
    }
}
