//! The network functions, as a program of Weir and as the kernel does them.

use super::network::Network;
use crate::process;
use anyhow::{Context, Result};
use clap::ValueEnum;
use std::io::Write as _;
use std::process::{Command, Stdio};

/// Ports that open the wall, in this order.
pub(super) const KNOCK: [u16; 4] = [5123, 6234, 7345, 8456];

/// A network function between the client and its servers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Debug)]
pub(crate) enum Function {
    /// Everything passes, both ways.
    Bridge,
    /// A client passes once it has tried four TCP ports in the right order.
    Wall,
    /// Each connection goes to one of three servers, all of which have the same address.
    Balancer,
}

impl Function {
    /// In the order of the table.
    pub(super) const ALL: [Function; 3] = [Function::Bridge, Function::Wall, Function::Balancer];

    /// Its name in a table.
    pub(super) fn title(self) -> &'static str {
        match self {
            Function::Bridge => "bridge",
            Function::Wall => "port knocking",
            Function::Balancer => "load balancer",
        }
    }

    /// The part of the kernel that does the same.
    pub(super) fn of_the_kernel(self) -> &'static str {
        match self {
            Function::Bridge => "Linux bridge",
            Function::Wall => "Linux bridge, nftables sets",
            Function::Balancer => "nftables jhash",
        }
    }

    /// How many servers it leads to.
    pub(super) fn servers(self) -> usize {
        match self {
            Function::Bridge | Function::Wall => 1,
            Function::Balancer => 3,
        }
    }

    /// Whether the kernel needs nft(8) for it.
    pub(super) fn takes_nft(self) -> bool {
        self != Function::Bridge
    }

    /// The query; what it sends leaves by outputs whose names begin with `prefix`.
    pub(super) fn query(self, prefix: &str) -> String {
        let client = format!("{prefix}{}", Network::CLIENT);
        let servers: Vec<String> =
            (0..self.servers()).map(|at| format!("{prefix}{}", Network::server(at))).collect();
        let inside = Network::CLIENT;
        match self {
            Function::Bridge => format!(
                "packets\n\
                 | branch when interface == \"{inside}\" -> forward \"{}\"\n\
                 \x20        else -> forward \"{client}\"\n",
                servers[0]
            ),
            Function::Wall => {
                let [a, b, c, d] = KNOCK;
                format!(
                    "packets | where interface != \"{inside}\" | forward \"{client}\"\n\n\
                     packets\n\
                     | where interface == \"{inside}\"\n\
                     | scan stage = 0 by ip.src, ip.dst idle 60s =>\n\
                     match (stage, tcp.dport) {{\n\
                     (0, {a}) => 1, (1, {b}) => 2, (2, {c}) => 3, (3, {d}) => 4,\n\
                     (4, _) => 4, _ => 0,\n\
                     }}\n\
                     | branch when stage == 4 -> forward \"{}\" else -> drop\n",
                    servers[0]
                )
            }
            Function::Balancer => format!(
                "packets\n\
                 | branch when interface == \"{inside}\" -> steer by conn to (\"{}\")\n\
                 \x20        else -> forward \"{client}\"\n",
                servers.join("\", \"")
            ),
        }
    }

    /// Has the kernel do it.
    pub(super) fn begin_in_the_kernel(self) -> Result<()> {
        match self {
            Function::Bridge => bridge(),
            Function::Wall => {
                bridge()?;
                nft(&wall_rules())
            }
            Function::Balancer => nft(&balancer_rules()),
        }
    }

    /// Ends that.
    pub(super) fn end_in_the_kernel(self) -> Result<()> {
        if self.takes_nft() {
            nft("flush ruleset\n")?;
        }
        match self {
            Function::Bridge | Function::Wall => process::ip("link del dev bridge"),
            Function::Balancer => Ok(()),
        }
    }
}

/// A bridge between the client and the first server.
fn bridge() -> Result<()> {
    process::ip("link add name bridge type bridge")?;
    // Rules of the IP layer are none of a bridge's; where there is no such file, none are asked.
    for layer in ["iptables", "ip6tables", "arptables"] {
        let _ = std::fs::write(format!("/proc/sys/net/bridge/bridge-nf-call-{layer}"), "0");
    }
    process::ip(&format!("link set dev {} master bridge", Network::CLIENT))?;
    process::ip(&format!("link set dev {} master bridge", Network::server(0)))?;
    process::ip("link set dev bridge up")
}

/// The stages of a knock are sets, which pairs of hosts go through and leave.
fn wall_rules() -> String {
    let pair = "ip saddr . ip daddr";
    let set = |name: &str| {
        format!("set {name} {{ typeof {pair}; flags dynamic,timeout; timeout 60s; size 65536; }}\n")
    };
    let [a, b, c, d] = KNOCK;
    let sets: String = ["one", "two", "three", "knocked"].map(set).concat();
    format!(
        "table bridge wall {{\n{sets}chain pass {{\n\
         type filter hook forward priority 0; policy drop;\n\
         iifname != \"{inside}\" accept\n\
         {pair} @knocked update @knocked {{ {pair} }} accept\n\
         tcp dport {d} {pair} @three add @knocked {{ {pair} }} drop\n\
         {pair} @three delete @three {{ {pair} }}\n\
         tcp dport {c} {pair} @two delete @two {{ {pair} }} add @three {{ {pair} }} drop\n\
         {pair} @two delete @two {{ {pair} }}\n\
         tcp dport {b} {pair} @one delete @one {{ {pair} }} add @two {{ {pair} }} drop\n\
         {pair} @one delete @one {{ {pair} }}\n\
         tcp dport {a} add @one {{ {pair} }} drop\n\
         }}\n}}\n",
        inside = Network::CLIENT,
    )
}

/// Frames go on where they come in, before any other part of the kernel.
fn balancer_rules() -> String {
    let n = Function::Balancer.servers();
    let servers: Vec<String> =
        (0..n).map(|at| format!("{at} : \"{}\"", Network::server(at))).collect();
    let back: String = (0..n)
        .map(|at| {
            format!(
                "chain from_{at} {{ type filter hook ingress device \"{}\" priority 0; \
                 fwd to \"{}\"; }}\n",
                Network::server(at),
                Network::CLIENT
            )
        })
        .collect();
    format!(
        "table netdev balancer {{\n\
         chain to_servers {{ type filter hook ingress device \"{}\" priority 0;\n\
         fwd to jhash ip saddr . ip daddr . th sport . th dport mod {n} map {{ {} }}\n\
         }}\n{back}}}\n",
        Network::CLIENT,
        servers.join(", "),
    )
}

/// Gives rules to the kernel.
fn nft(rules: &str) -> Result<()> {
    let mut command = Command::new("nft");
    command.args(["-f", "-"]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().context("running nft")?;
    let mut stdin = child.stdin.take().context("its standard input")?;
    stdin.write_all(rules.as_bytes()).context("handing rules to nft")?;
    drop(stdin);
    let output = child.wait_with_output().context("running nft")?;
    let errors = String::from_utf8_lossy(&output.stderr);
    anyhow::ensure!(output.status.success(), "nft refused {rules}: {errors}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_function_is_a_query() {
        for function in Function::ALL {
            for prefix in ["", "xdp:"] {
                let text = function.query(prefix);
                let query = weir_lang::Query { name: "function.weir", text: &text };
                let compiled = weir_lang::compile(&query, &weir_lang::Options::default());
                let told = |d: Vec<_>| weir_lang::render(&d, &query, false);
                compiled.map(drop).unwrap_or_else(|d| panic!("{text}{}", told(d)));
                for at in 0..function.servers() {
                    assert!(text.contains(&format!("\"{prefix}{}\"", Network::server(at))));
                }
            }
        }
    }
}
