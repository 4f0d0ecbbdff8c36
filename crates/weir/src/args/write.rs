//! Where packets go that pass, and how captures are cut into files: by tcpdump's letters.

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

pub(crate) fn file_size(text: &str) -> Result<u64, String> {
    let (digits, unit) = match text.char_indices().last() {
        Some((at, 'k' | 'K')) => (&text[..at], 1 << 10),
        Some((at, 'm' | 'M')) => (&text[..at], 1 << 20),
        Some((at, 'g' | 'G')) => (&text[..at], 1 << 30),
        _ => (text, 1_000_000),
    };
    let size = digits.parse::<u64>().ok().and_then(|n| n.checked_mul(unit));
    size.filter(|n| *n > 0).ok_or_else(|| "expected a size such as 100, 500k or 2g".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_of_files() {
        assert_eq!(file_size("2"), Ok(2_000_000));
        assert_eq!((file_size("3k"), file_size("1G")), (Ok(3072), Ok(1 << 30)));
        for wrong in ["", "0", "k", "1kk", "1x", "-1", "99999999999999999999g"] {
            assert!(file_size(wrong).is_err(), "{wrong}");
        }
    }
}
