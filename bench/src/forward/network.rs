//! The network about the box: a namespace for it, which is this process's, one for the client and
//! one for each server, which are those of processes that do as they are told. All go with the
//! processes, since none has a name.

use super::role::{Role, WIRE};
use crate::process::{Companion, ip, this_program};
use crate::sys::host;
use anyhow::{Context, Result, ensure};

/// How many servers there are; functions that need fewer take the first.
const SERVERS: usize = 3;

/// How often counters are looked at until they stand still, and milliseconds between.
const SETTLE_TRIES: usize = 100;
const SETTLE_MS: u64 = 20;

/// How often they are the same before that is believed.
const STILL: usize = 5;

/// The client and the servers.
pub(super) struct Network {
    pub(super) client: Companion,
    pub(super) servers: Vec<Companion>,
}

impl Network {
    /// The interface of the box that leads to the client.
    pub(super) const CLIENT: &str = "in0";

    /// That which leads to a server.
    pub(super) fn server(at: usize) -> String {
        format!("out{}", at + 1)
    }

    /// Makes it, and moves this thread into the box.
    pub(super) fn make() -> Result<Network> {
        host::leave_the_network()?;
        let client = end(Role::Client, Network::CLIENT)?;
        let server = |at| end(Role::Server, &Network::server(at));
        let servers = (0..SERVERS).map(server).collect::<Result<_>>()?;
        Ok(Network { client, servers })
    }

    /// Frames that all servers have received so far, once no more come.
    pub(super) fn settle(&mut self) -> Result<u64> {
        let (mut before, mut still) = (self.received()?, 0);
        for _ in 0..SETTLE_TRIES {
            crate::timing::pause_ms(SETTLE_MS);
            let now = self.received()?;
            still = if now == before { still + 1 } else { 0 };
            before = now;
            if still == STILL {
                break;
            }
        }
        Ok(before)
    }

    /// Frames that all servers have received so far.
    fn received(&mut self) -> Result<u64> {
        self.sum("frames")
    }

    /// The sum of what the servers count under this name.
    pub(super) fn sum(&mut self, name: &str) -> Result<u64> {
        self.servers.iter_mut().try_fold(0, |sum, server| {
            let counts = server.ask("count")?;
            Ok(sum + crate::measure::number(&counts, name)?)
        })
    }
}

/// Starts the process of an end, and joins it to the box by a wire whose end here has this name.
fn end(role: Role, interface: &str) -> Result<Companion> {
    let mut command = this_program()?;
    command.args(["forward-end", role.name()]);
    let mut end = Companion::start(command)?;
    let id = end.line()?;
    ip(&format!("link add dev {interface} type veth peer name {} netns {id}", WIRE))?;
    // Frames that another interface of the box passes on are addressed to an end.
    ip(&format!("link set dev {interface} promisc on up"))?;
    // Frames go out as they come in: they need check sums, and the length of frames.
    host::transmit_offload_off(interface).context("switching off what an interface does late")?;
    let up = end.ask("up")?;
    ensure!(up == "up", "{}: {up}", role.name());
    Ok(end)
}
