//! Permissions of programs that come while a run goes on.

use crate::exit::usage;
use clap::Args;
use std::path::PathBuf;
use weir_capture::outlets::Outlets;
use weir_control::SOCKET;
use weir_packet::egress::Outlet;

/// Where programs may come from, and what they may write and send.
#[derive(Args, Debug)]
pub(crate) struct LaterArgs {
    /// Listen on this socket, by which `weir ctl` adds, replaces and removes programs while the run
    /// goes on; the run needs no query at its start
    #[arg(long, value_name = "SOCKET", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = SOCKET)]
    pub(crate) control: Option<PathBuf>,

    /// Let programs that come later (--control, --http) make new capture files in this folder; may
    /// be given several times. They never write to a file that exists
    #[arg(long, value_name = "FOLDER", hide_short_help = true)]
    pub(crate) allow_write: Vec<PathBuf>,

    /// Let programs that come later send packets to this interface, device or tunnel, which the run
    /// opens at its start; may be given several times
    #[arg(long, value_name = "WHERE", hide_short_help = true)]
    pub(crate) allow_send: Vec<String>,
}

impl LaterArgs {
    /// Refuses what has no effect, as no programs come, or is no wire.
    pub(crate) fn check(&self, takes_programs: bool) -> anyhow::Result<()> {
        let folder = self.allow_write.first().map(|to| format!("--allow-write {}", to.display()));
        let wire = self.allow_send.first().map(|to| format!("--allow-send {to}"));
        if let (Some(option), false) = (folder.or(wire), takes_programs) {
            return Err(usage(format!(
                "{option} is for programs that come later: add --control or --http"
            )));
        }
        for name in &self.allow_send {
            let outlet = [Outlet::Named(name.clone())];
            Outlets::check(&outlet, None).map_err(|e| usage(format!("--allow-send {e}")))?;
            if !Outlets::any_wire(&outlet, None) {
                return Err(usage(format!(
                    "--allow-send {name} is a file; let programs make files by --allow-write FOLDER"
                )));
            }
        }
        Ok(())
    }

    /// Where programs that come later may send packets.
    pub(crate) fn wires(&self) -> impl Iterator<Item = Outlet> {
        self.allow_send.iter().cloned().map(Outlet::Named)
    }
}
