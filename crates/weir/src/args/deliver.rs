//! The options for whom alerts are delivered to.

use crate::exit::usage;
use clap::Args;
use std::path::{Path, PathBuf};
use weir_deliver::Target;
use weir_deliver::limits::TARGETS_MAX;

/// Whom alerts are delivered to.
#[derive(Args, Debug)]
pub(crate) struct DeliverArgs {
    /// Also deliver alerts to this receiver, such as syslog://HOST; may be given several times
    ///
    /// An address: syslog://HOST, syslog+tcp://, syslog+tls://, https:// or http:// (a webhook),
    /// smtp://USER@HOST or smtps:// (mail), alertmanager+http://HOST; then options, as in
    /// 'https://HOST/PATH format=slack'.
    #[arg(long, value_name = "TARGET")]
    pub(crate) alert_to: Vec<String>,

    /// Deliver alerts to the receivers in this file, one on each line, as after --alert-to
    #[arg(long, value_name = "FILE")]
    pub(crate) alert_config: Option<PathBuf>,

    /// Keep alerts that wait for a receiver in files in this folder, for the next run with the same
    /// receivers
    #[arg(long, value_name = "FOLDER", hide_short_help = true)]
    pub(crate) alert_spill: Option<PathBuf>,
}

impl DeliverArgs {
    /// Whether any of these options was given.
    pub(crate) fn is_asked_for(&self) -> bool {
        !self.alert_to.is_empty() || self.alert_config.is_some() || self.alert_spill.is_some()
    }

    /// All receivers. The files with their keys and passwords are read.
    pub(crate) fn targets(&self) -> anyhow::Result<Vec<Target>> {
        let mut all = Vec::new();
        if let Some(path) = &self.alert_config {
            let named = |e| usage(format!("--alert-config {}: {e}", path.display()));
            all.extend(Target::read_file(path).map_err(named)?);
        }
        for line in &self.alert_to {
            // The line itself may hold what nobody else should see.
            let target = Target::parse(line, Path::new(""));
            all.push(target.map_err(|e| usage(format!("--alert-to: {e}")))?);
        }
        if all.len() > TARGETS_MAX {
            return Err(usage(format!("alerts go to {TARGETS_MAX} receivers at most")));
        }
        if all.is_empty() && self.alert_config.is_some() {
            return Err(usage("--alert-config: the file names no receiver"));
        }
        if all.is_empty() && self.alert_spill.is_some() {
            return Err(usage("--alert-spill only applies to --alert-to and --alert-config"));
        }
        Target::number(&mut all);
        Ok(all)
    }
}
