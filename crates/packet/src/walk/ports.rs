//! Which UDP ports mean a tunnel, and which packet of it fields mean.

use crate::limits::TUNNEL_PORTS_MAX;
use crate::{geneve, gtp, teredo, vxlan};

/// The tunnels over UDP that the walk goes into: their names, and the ports that are theirs.
pub const UDP_TUNNELS: [(&str, u16); 5] = [
    ("vxlan", vxlan::PORT),
    ("vxlan-gpe", vxlan::PORT_GPE),
    ("geneve", geneve::PORT),
    ("gtp", gtp::PORT),
    ("teredo", teredo::PORT),
];

/// UDP ports that mean a tunnel besides those of [`UDP_TUNNELS`], or instead of what they mean
/// there.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct TunnelPorts {
    /// A port, and the one of [`UDP_TUNNELS`] that it stands for.
    named: [(u16, u16); TUNNEL_PORTS_MAX],
    n: u8,
}

impl TunnelPorts {
    /// No other ports.
    pub const NONE: TunnelPorts = TunnelPorts { named: [(0, 0); TUNNEL_PORTS_MAX], n: 0 };

    /// With one more port, which means the tunnel of this name; `None` where there is no such
    /// tunnel, the port is 0 or named already, or there are [`TUNNEL_PORTS_MAX`].
    #[must_use]
    pub fn with(mut self, tunnel: &str, port: u16) -> Option<TunnelPorts> {
        let (_, standard) = *UDP_TUNNELS.iter().find(|(name, _)| *name == tunnel)?;
        if port == 0 || self.named().any(|(_, other)| other == port) {
            return None;
        }
        *self.named.get_mut(usize::from(self.n))? = (port, standard);
        self.n += 1;
        Some(self)
    }

    /// The tunnels and their ports, in the order in which they were named.
    pub fn named(&self) -> impl Iterator<Item = (&'static str, u16)> + '_ {
        self.pairs().iter().map(|&(port, standard)| {
            let name = UDP_TUNNELS.iter().find(|(_, port)| *port == standard);
            (name.map_or("", |(name, _)| name), port)
        })
    }

    /// The port of [`UDP_TUNNELS`] that this one stands for; itself where it was not named.
    #[inline(always)]
    pub(crate) fn standard(&self, port: u16) -> u16 {
        let named = self.pairs().iter().find(|(own, _)| *own == port);
        named.map_or(port, |(_, standard)| *standard)
    }

    #[inline(always)]
    fn pairs(&self) -> &[(u16, u16)] {
        &self.named[..usize::from(self.n).min(TUNNEL_PORTS_MAX)]
    }
}

/// Which packet of a frame the layers from IP on are those of, where packets are in tunnels: IP in
/// IP, GRE, ERSPAN, EtherIP, MPLS in IP, VXLAN, GENEVE, GTP-U and Teredo; and which ports mean the
/// last four.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Headers {
    which: Which,
    ports: TunnelPorts,
}

#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
enum Which {
    #[default]
    Outer,
    Inner,
}

impl Headers {
    /// The outermost: the one that the network between the ends of the tunnel sees.
    pub const OUTER: Headers = Headers { which: Which::Outer, ports: TunnelPorts::NONE };
    /// The innermost, to [`crate::limits::TUNNELS_MAX`] tunnels. The headers below IP stay those of
    /// the frame.
    pub const INNER: Headers = Headers { which: Which::Inner, ports: TunnelPorts::NONE };

    /// The same, where these ports mean tunnels, too.
    #[must_use]
    pub fn with_ports(self, ports: TunnelPorts) -> Headers {
        Headers { ports, ..self }
    }

    /// Whether the layers are those of the innermost packet.
    #[inline(always)]
    pub fn are_inner(&self) -> bool {
        self.which == Which::Inner
    }

    /// The ports that mean tunnels besides their own; for who changes frames, too, which is
    /// whichever packet fields mean.
    #[inline(always)]
    pub fn ports(&self) -> &TunnelPorts {
        &self.ports
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_stands_for_that_of_its_tunnel() {
        let ports = TunnelPorts::NONE.with("vxlan", 8472).unwrap().with("geneve", 4789).unwrap();
        assert_eq!([8472, 4789, 6081, 53].map(|p| ports.standard(p)), [4789, 6081, 6081, 53]);
        assert_eq!(ports.named().collect::<Vec<_>>(), [("vxlan", 8472), ("geneve", 4789)]);
        assert_eq!(TunnelPorts::NONE.standard(0), 0);
    }

    #[test]
    fn ports_that_mean_nothing_are_refused() {
        let one = TunnelPorts::NONE.with("gtp", u16::MAX).unwrap();
        assert_eq!(one.with("gtp", 0), None);
        assert_eq!(one.with("vxlan", u16::MAX), None, "named already");
        assert_eq!(one.with("l2tp", 1701), None);
        let mut all = TunnelPorts::NONE;
        for port in 1..=TUNNEL_PORTS_MAX as u16 {
            all = all.with("teredo", port).unwrap();
        }
        assert_eq!(all.with("teredo", 100), None);
    }
}
