//! Where packets go that pass, and how captures are cut into files: by tcpdump's letters.

use super::values::file_size;
use crate::exit::usage;
use clap::Args;
use std::num::{NonZeroU32, NonZeroU64};
use weir_capture::write::Rotation;

/// Where packets go that the query passes.
#[derive(Args, Debug)]
pub(crate) struct WriteArgs {
    /// Where packets go that the query passes: a capture (`x.pcap`, `x.pcapng`, `-` for standard
    /// output), an interface, or a tunnel
    ///
    /// Interfaces are `eth1`, `xdp:eth1`, `dpdk:DEVICE`, `tap:NAME` and `tun:NAME`; tunnels are
    /// `udp://HOST:PORT`, `vxlan://HOST?vni=N`, `gre://HOST` and `erspan://HOST?session=N`.
    #[arg(short = 'w', long = "write", value_name = "WHERE")]
    pub(crate) to: Option<String>,

    /// Let -w go on in a further file once one has so many millions of bytes; KiB, MiB, GiB with k,
    /// m, g
    #[arg(short = 'C', long, value_name = "SIZE", requires = "to", value_parser = file_size)]
    pub(crate) file_size: Option<u64>,

    /// Let -w go on in a further file after so many seconds of packets; its name says when, in UTC,
    /// by strftime(3), such as x-%H%M%S.pcap
    #[arg(short = 'G', long, value_name = "SECONDS", requires = "to")]
    pub(crate) file_seconds: Option<NonZeroU64>,

    /// With -C, write so many files, then over the first again; with -G alone, end after so many
    #[arg(short = 'W', long, value_name = "N")]
    pub(crate) file_count: Option<NonZeroU32>,
}

impl WriteArgs {
    /// Refuses what means nothing alone.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        let cut = self.file_size.is_some() || self.file_seconds.is_some();
        match self.file_count {
            Some(n) if !cut => Err(usage(format!("-W {n} counts the files that -C or -G makes"))),
            _ => Ok(()),
        }
    }

    /// When -w goes on in a further file, if it does.
    pub(crate) fn rotation(&self) -> Option<Rotation> {
        let (bytes, seconds) = (self.file_size, self.file_seconds);
        let cut = bytes.is_some() || seconds.is_some();
        cut.then_some(Rotation { bytes, seconds, files: self.file_count })
    }
}
