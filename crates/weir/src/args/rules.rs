//! The options that change what the text of a query means.

use crate::exit::usage;
use crate::zone::{self, Zone};
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use weir_lang::ReadingRules;
use weir_packet::fields::{FlowKey, KeyPart};
use weir_packet::limits::TUNNEL_PORTS_MAX;
use weir_packet::walk::{TunnelPorts, UDP_TUNNELS};

#[derive(Args, Default, Debug)]
pub(crate) struct RulesArgs {
    /// Parts that tell flows apart beside addresses, ports and protocol, in the keys flow, conn and
    /// hosts and wherever connections are followed: vlan (both tags), tunnel (network, TEID or key;
    /// with --headers inner)
    #[arg(long, value_name = "PARTS", value_delimiter = ',', value_parser = key_part())]
    pub(crate) flow_key: Vec<KeyPart>,

    /// Take a UDP port for that of a tunnel, besides its own: vxlan, vxlan-gpe, geneve, gtp or
    /// teredo, such as vxlan=8472. --headers inner and `anonymize` look inside
    #[arg(long, value_name = "NAME=PORT", value_delimiter = ',', value_parser = tunnel_port)]
    pub(crate) tunnel_port: Vec<(&'static str, u16)>,

    /// The time zone of times, and of windows of hours and days
    ///
    /// Also that of `bin`, `hour` and the like: a name such as Europe/Berlin, `UTC`, or `local` for
    /// that of this machine.
    #[arg(long, value_name = "ZONE", default_value = "UTC", value_parser = zone::parse)]
    pub(crate) time_zone: Zone,
}

impl RulesArgs {
    /// The rules that these options come to.
    pub(crate) fn rules(&self) -> anyhow::Result<ReadingRules> {
        if self.tunnel_port.len() > TUNNEL_PORTS_MAX {
            return Err(usage(format!("--tunnel-port names at most {TUNNEL_PORTS_MAX} ports")));
        }
        let ports = &self.tunnel_port;
        let twice = |i: &usize| ports[..*i].iter().any(|(_, port)| *port == ports[*i].1);
        if let Some(i) = (0..ports.len()).find(twice) {
            return Err(usage(format!("--tunnel-port: port {} is named twice", ports[i].1)));
        }
        let flow_key = self.flow_key.iter().copied().fold(FlowKey::default(), FlowKey::with);
        Ok(ReadingRules { flow_key, tunnel_ports: self.tunnel_ports(), zone: self.time_zone.0 })
    }

    /// The ports that mean tunnels, too.
    pub(crate) fn tunnel_ports(&self) -> TunnelPorts {
        let named = self.tunnel_port.iter();
        named.fold(TunnelPorts::NONE, |all, (tunnel, port)| all.with(tunnel, *port).unwrap_or(all))
    }
}

/// A part of the keys of flows.
fn key_part() -> impl TypedValueParser<Value = KeyPart> {
    let part = |name: String| KeyPart::ALL.into_iter().find(|part| part.name() == name);
    PossibleValuesParser::new(KeyPart::ALL.map(KeyPart::name))
        .try_map(move |name| part(name).ok_or("no such part"))
}

/// A tunnel and a port.
fn tunnel_port(text: &str) -> Result<(&'static str, u16), String> {
    let names = || UDP_TUNNELS.map(|(name, _)| name).join(", ");
    let Some((name, port)) = text.split_once('=') else {
        return Err("expected NAME=PORT, such as vxlan=8472".to_owned());
    };
    let Some((name, _)) = UDP_TUNNELS.into_iter().find(|(known, _)| *known == name) else {
        return Err(format!("{name} is no tunnel over UDP that is read; expected {}", names()));
    };
    match port.parse() {
        Ok(port @ 1..) => Ok((name, port)),
        _ => Err(format!("{port} is no port; expected a number from 1 to 65535")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_have_a_tunnel() {
        assert_eq!(tunnel_port("vxlan=8472"), Ok(("vxlan", 8472)));
        assert_eq!(tunnel_port("gtp=65535"), Ok(("gtp", u16::MAX)));
        for wrong in ["8472", "vxlan", "vxlan=", "vxlan=0", "vxlan=65536", "l2tp=1701", "=1"] {
            assert!(tunnel_port(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_port_is_named_once() {
        let rules = |ports: &[u16]| {
            let tunnel_port = ports.iter().map(|port| ("vxlan", *port)).collect();
            RulesArgs { tunnel_port, ..RulesArgs::default() }
                .rules()
                .map(|rules| rules.tunnel_ports.named().count())
        };
        assert_eq!(rules(&[1, 2]).unwrap(), 2);
        assert!(rules(&[1, 2, 1]).is_err());
        assert!(rules(&[1, 2, 3, 4, 5, 6, 7, 8, 9]).is_err());
    }
}
