//! The options for rows: their form, which alerts are among them, and whom those are delivered to.

use super::DeliverArgs;
use super::values::{Addresses, ExportTo, Names, Time, export, format};
use crate::zone::Zone;
use clap::Args;
use std::path::PathBuf;
use weir_sink::{Format, RowOptions, TimeFormat};

#[derive(Args, Debug)]
pub(crate) struct RowArgs {
    /// The format of rows [default: table on a terminal, otherwise json]
    #[arg(short, long, value_parser = format())]
    pub(crate) output: Option<&'static Format>,

    /// Send rows as IPFIX (RFC 7011) to this collector by UDP, instead of printing them; the usual
    /// port is 4739. netflow9://HOST:PORT sends NetFlow 9 (RFC 3954)
    #[arg(long, value_name = "HOST:PORT", value_parser = export)]
    #[arg(conflicts_with_all = ["output", "out_dir", "time", "names"])]
    pub(crate) export: Option<ExportTo>,

    /// Write a file for each output into this folder: QUERY.csv, or QUERY.NAME.csv for a named one
    #[arg(long, value_name = "FOLDER")]
    pub(crate) out_dir: Option<PathBuf>,

    /// Store rows as Parquet below this folder, by output, day and hour, instead of printing them
    #[arg(long, value_name = "FOLDER")]
    #[arg(conflicts_with_all = ["output", "out_dir", "export", "time"])]
    pub(crate) store: Option<PathBuf>,

    /// The format of times
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "rfc3339")]
    pub(crate) time: Time,

    /// The form of addresses in Arrow and Parquet, which can hold their bytes
    #[arg(long, value_enum, value_name = "FORM", default_value = "bytes")]
    pub(crate) addresses: Addresses,

    /// The tool whose names columns have: ip.src is id.orig_h in Zeek, and src_ip in EVE
    #[arg(long, value_enum, value_name = "PROFILE", default_value = "native")]
    pub(crate) names: Names,

    /// Leave out the alerts that this file names, a line each: RULE COLUMN=VALUE … until TIME
    #[arg(long, value_name = "FILE")]
    pub(crate) suppress: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) deliver: DeliverArgs,
}

impl RowArgs {
    /// Whether rows go to files instead of standard output.
    pub(crate) fn go_to_files(&self) -> bool {
        self.out_dir.is_some() || self.store.is_some()
    }

    /// How rows are written, with times in a zone.
    pub(crate) fn row_options(&self, zone: Zone) -> RowOptions {
        RowOptions {
            time: self.time_format(zone),
            addresses: self.addresses.into(),
            ..RowOptions::default()
        }
    }

    /// How times are written in a zone.
    pub(crate) fn time_format(&self, zone: Zone) -> TimeFormat {
        self.time.format(zone)
    }
}
