//! The process that delivers the alerts of a run. The run starts it (`--alert-to`); it has no help,
//! as nobody else does.

use crate::exit::Status;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use std::io;
use std::sync::Arc;
use weir_deliver::{GiveUp, Target, read_setup, serve};
use weir_sandbox::{Needs, become_user, confine};

/// Delivers what comes by standard input, and reports on standard output.
pub(crate) fn run() -> anyhow::Result<Status> {
    // Signals that end the run reach this process, too; it ends when the run has ended.
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        flag::register(signal, Arc::default())?;
    }
    let mut input = io::stdin().lock();
    let setup = read_setup(&mut input).map_err(|_| {
        anyhow::anyhow!("`weir run --alert-to` starts this command; it is of no use by itself")
    })?;
    let becomes = || match &setup.user {
        Some(user) => become_user(user).map(drop).map_err(|e| format!("-Z {user}: {e}")),
        None => Ok(()),
    };
    let confines = || {
        if setup.confines {
            let mut needs = Needs::default();
            needs.connections(setup.targets.iter().map(Target::port));
            if let Some(folder) = &setup.spill {
                needs.folders(vec![folder.clone()]);
                needs.read.push(folder.clone());
            }
            confine(&needs, None);
        }
    };
    let give_up = GiveUp { become_user: becomes, confine: confines };
    match serve(&setup, &mut input, Box::new(io::stdout()), give_up) {
        Ok(()) => Ok(Status::Ok),
        // The run has been told, or has gone.
        Err(_) => Ok(Status::Failed),
    }
}
