//! The roles of the ends of the network, and what addresses they have.

use crate::process::ip;
use crate::sys::host;
use anyhow::{Context, Result};
use clap::ValueEnum;
use std::net::Ipv4Addr;

/// The name of the wire at either end.
pub(super) const WIRE: &str = "eth0";

/// Where they are. All servers have one address, so that any of them can answer.
pub(super) const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
pub(super) const SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

/// The role of an end.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug)]
pub(crate) enum Role {
    /// Sends, and measures how long answers take.
    Client,
    /// Receives, counts and answers.
    Server,
}

impl Role {
    /// Its name on the command line.
    pub(super) fn name(self) -> &'static str {
        match self {
            Role::Client => "client",
            Role::Server => "server",
        }
    }

    /// Its own address and its peer's, each with the one of its link.
    fn addresses(self) -> [(Ipv4Addr, &'static str); 2] {
        let client = (CLIENT, "02:00:00:00:00:01");
        let server = (SERVER, "02:00:00:00:00:02");
        match self {
            Role::Client => [client, server],
            Role::Server => [server, client],
        }
    }

    /// Sets its wire up, with the link address of its peer, so that no ARP request is sent.
    pub(super) fn up(self) -> Result<()> {
        let [(own, link), (peer, peers_link)] = self.addresses();
        ip("link set dev lo up")?;
        ip(&format!("link set dev {WIRE} address {link} up"))?;
        ip(&format!("addr add {own}/24 dev {WIRE}"))?;
        ip(&format!("neigh add {peer} lladdr {peers_link} dev {WIRE} nud permanent"))?;
        host::transmit_offload_off(WIRE).context("switching off what an interface does late")
    }
}
