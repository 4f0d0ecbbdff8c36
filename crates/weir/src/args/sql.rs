//! The arguments of `weir sql`.

use super::values::{Addresses, Time, format, workers};
use crate::memory::MemoryShare;
use clap::Args;
use std::num::NonZeroUsize;
use weir_sink::Format;

pub(super) const EXAMPLES: &str = "\
Examples:
  weir sql \"select ip.src, sum(len) from 'trace.pcap' group by ip.src order by 2 desc limit 5\"
  weir sql \"select * from weir('flows', 'trace.pcap')\" -o csv
  weir sql \"select count(*) from 'archive/flows.flows' where date = '2026-11-21'\"
  weir sql \"describe 'trace.pcap'\"
  weir sql <questions.sql

Tables are files: 'x.pcap' is the packets of a capture, with a column for each field of `weir
fields`; weir('QUERY', 'x.pcap') is the rows that a query makes of them; a folder of `--store`, and
.parquet, .csv and .json files are as they are stored. Without a statement, on a terminal, a prompt
takes statements that end with `;`.";

#[derive(Args, Debug)]
pub(crate) struct SqlArgs {
    /// One or more statements of SQL, with `;` between them; standard input unless given
    #[arg(value_name = "STATEMENT")]
    pub(crate) statement: Option<String>,

    /// The format of rows [default: table on a terminal, otherwise json]
    #[arg(short, long, value_parser = format())]
    pub(crate) output: Option<&'static Format>,

    /// The format of times
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "rfc3339")]
    pub(crate) time: Time,

    /// The form of the addresses of packets: as people write them, or bytes, which are small and
    /// sort as numbers
    #[arg(long, value_enum, value_name = "FORM", default_value = "text")]
    pub(crate) addresses: Addresses,

    /// Threads that decode packets and that compute, or `auto` for one per processor
    #[arg(short = 'j', long, value_name = "N", default_value = "auto", value_parser = workers)]
    pub(crate) workers: NonZeroUsize,

    /// The memory for what a statement keeps; what needs more goes to temporary files, or fails
    #[arg(long, value_name = "SIZE|PERCENT", default_value = "50%")]
    #[arg(value_parser = MemoryShare::parse)]
    pub(crate) memory: MemoryShare,

    /// Fail with exit status 1 if packets or rows were lost, late or evicted, after everything else
    /// is done
    #[arg(long)]
    pub(crate) fail_on_loss: bool,
}
