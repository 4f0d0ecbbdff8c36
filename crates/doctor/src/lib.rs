//! Whether a machine, and its interfaces, are set up for capturing; what it means where they are
//! not, and the command that changes it.
//!
//! The crate only reads: it asks the kernel ([`examine`]) and judges the answers. Both are
//! separate, so that tests can judge any machine.

#![forbid(unsafe_code)]

mod check;
#[cfg(feature = "dpdk")]
mod dpdk;
mod interface;
mod report;
mod system;

pub use check::{Check, Findings, Verdict};
pub use report::text;

use std::io;
use weir_capture::adapter::{Adapter, adapter};
use weir_capture::live::interfaces;

/// Examines the system and these interfaces; without names, all interfaces that are up. A binary
/// that is built with DPDK also examines the machine for it, and its cards, which may be named by
/// their addresses.
///
/// # Errors
/// If the kernel does not know an interface, or does not list its interfaces.
pub fn examine(named: &[String]) -> io::Result<Vec<Findings>> {
    let names = match named {
        [] => {
            let all = interfaces()?.into_iter();
            all.filter(|on| on.up && !on.loopback).map(|on| on.name).collect()
        }
        named => named.to_vec(),
    };
    #[cfg(feature = "dpdk")]
    let (cards, names) = dpdk::cards(named, names);
    let adapters = names.iter().map(|name| adapter(name).map_err(io::Error::other));
    let adapters: Vec<Adapter> = adapters.collect::<Result<_, _>>()?;
    let system = system::System::read();
    let mut all = vec![Findings { place: "system".to_owned(), checks: system::judge(&system) }];
    #[cfg(feature = "dpdk")]
    all.extend(dpdk::judge(&weir_dpdk::machine::machine(), &cards));
    all.extend(adapters.iter().map(|on| {
        let checks = interface::judge(on, &system);
        Findings { place: on.name.clone(), checks }
    }));
    Ok(all)
}
