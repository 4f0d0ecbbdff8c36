//! The wire: a virtual one in a network namespace of this process, with two queues, whose far end
//! is looked after on the receiver's processor.
//!
//! By itself a virtual wire has frames received on the processor of whoever sends them. With
//! receive offload on, NAPI can be put into threads, one for each queue, which are pinned to the
//! receiver's processor and run behind the receiver: else they would take all of its time, and it
//! would never get to read what they bring (receive livelock).

use super::netlink::{Counts, Netlink};
use crate::sys::host;
use anyhow::{Context, Result, ensure};
use std::fs;

/// Its ends.
pub(super) const SENDER: &str = "weir0";
pub(super) const RECEIVER: &str = "weir1";

/// The ends of a second wire, for frames that the receiver sends on.
const ONWARD: &str = "weir2";
const ONWARD_END: &str = "weir3";

/// Queues of each end.
pub(super) const QUEUES: u32 = 2;

/// Priorities (sched(7)): a reader before NAPI, which it must outrank, and that before the sender.
pub(super) const READER_FIRST: i32 = 6;
const NAPI_FIRST: i32 = 5;
pub(super) const SENDER_FIRST: i32 = 4;

/// How often a thread of NAPI is looked for before it is given up, and milliseconds between.
const TRIES: usize = 200;
const PAUSE_MS: u32 = 5;

/// The same for frames to come, and how often nothing may have changed before that is believed.
const SETTLE_TRIES: usize = 6000;
const STILL: usize = 30;

/// The process that looks after the far end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Napi {
    /// Threads of its own, whenever a frame comes.
    Threads,
    /// The receiver, when it polls; the threads where it has not done so for a while.
    Reader,
}

/// The wire.
pub(super) struct Wire {
    netlink: Netlink,
    /// The processor of the receiver; threads of NAPI have priority where they are to.
    cpu: usize,
    fifo: bool,
}

impl Wire {
    /// Makes it, in a namespace that this thread moves to.
    pub(super) fn make(cpu: usize, fifo: bool) -> Result<Wire> {
        host::leave_the_network()?;
        let netlink = Netlink::open().context("asking for interfaces")?;
        netlink.veth(SENDER, RECEIVER, QUEUES).context("making a virtual wire")?;
        host::receive_offload(RECEIVER).context("switching receive offload on")?;
        Ok(Wire { netlink, cpu, fifo })
    }

    /// Makes a second wire. No program listens at its far end, so the cost of getting a frame there
    /// is counted for whoever sends it.
    pub(super) fn make_onward(&self) -> Result<()> {
        self.netlink.veth(ONWARD, ONWARD_END, QUEUES).context("making a second wire")?;
        host::receive_offload(ONWARD_END).context("switching receive offload on")
    }

    /// Says who looks after the far end.
    pub(super) fn attend(&self, napi: Napi) -> Result<()> {
        let (deferred, timeout_ns) = match napi {
            Napi::Threads => ("0", "0"),
            Napi::Reader => ("2", "200000"),
        };
        set("napi_defer_hard_irqs", deferred)?;
        set("gro_flush_timeout", timeout_ns)?;
        // Without threads, it would be the sender who does the work.
        set("threaded", "1")
    }

    /// Puts the threads of NAPI where they belong. An XDP program that comes or goes may have made
    /// new ones.
    pub(super) fn place_threads(&self) -> Result<()> {
        let comm = format!("napi/{RECEIVER}-");
        for _ in 0..TRIES {
            let threads = threads(&comm)?;
            if threads.len() == QUEUES as usize {
                for thread in threads {
                    host::pin(Some(thread), self.cpu).context("pinning a thread of NAPI")?;
                    if self.fifo {
                        host::run_first(Some(thread), NAPI_FIRST)
                            .context("giving a thread of NAPI priority")?;
                    }
                }
                return Ok(());
            }
            pause(PAUSE_MS);
        }
        anyhow::bail!(
            "there are no threads called {comm}*, which the kernel makes for threaded NAPI \
             (Linux 5.12); in a process namespace of its own they can't be seen"
        )
    }

    /// The counts of the far end.
    pub(super) fn counts(&self) -> Result<Counts> {
        Ok(self.netlink.interface(RECEIVER).context(RECEIVER)?.counts)
    }

    /// Waits until the far end has counted so many frames since `before`, and counts no more: what
    /// was sent has come, or is lost. Where a processor is busy that may take a while.
    pub(super) fn settle(&self, before: Counts, sent: u64) -> Result<Counts> {
        let (mut counts, mut still) = (self.counts()?, 0);
        for _ in 0..SETTLE_TRIES {
            pause(PAUSE_MS);
            let now = self.counts()?;
            still = if now == counts { still + 1 } else { 0 };
            counts = now;
            // Some are counted twice, see `Bench::check`.
            let known = now.received - before.received + now.dropped - before.dropped;
            if still >= STILL && known >= sent {
                return Ok(now);
            }
        }
        anyhow::bail!("{counts:?} of {RECEIVER} after {before:?}, where {sent} frames were sent")
    }
}

fn set(what: &str, value: &str) -> Result<()> {
    let path = format!("/sys/class/net/{RECEIVER}/{what}");
    fs::write(&path, value).with_context(|| format!("writing {value} to {path}"))?;
    let is = fs::read_to_string(&path).with_context(|| path.clone())?;
    ensure!(is.trim() == value, "{path} is {} after {value} was written", is.trim());
    Ok(())
}

/// Threads whose name begins so, by their numbers.
pub(super) fn threads(comm: &str) -> Result<Vec<i32>> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").context("/proc")? {
        let entry = entry.context("/proc")?;
        let Some(id) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        // A process may be gone by now.
        let name = fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
        if name.starts_with(comm) {
            found.push(id);
        }
    }
    Ok(found)
}

/// Waits for a moment, between two looks at what the kernel does.
#[expect(clippy::disallowed_methods, reason = "the kernel tells nobody")]
pub(super) fn pause(ms: u32) {
    std::thread::sleep(std::time::Duration::from_millis(ms.into()));
}
