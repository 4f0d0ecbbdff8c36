//! The facts that programs find out about frames.

/// The facts that hold of a frame: bits of the register [`FACTS`](crate::frame::FACTS).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Facts(pub(crate) i32);

impl Facts {
    pub(crate) const NONE: Facts = Facts(0);
    pub(crate) const IPV4: Facts = Facts(1);
    pub(crate) const IPV6: Facts = Facts(1 << 1);
    pub(crate) const FRAGMENT: Facts = Facts(1 << 2);
    pub(crate) const PORTS: Facts = Facts(1 << 3);
    pub(crate) const TCP: Facts = Facts(1 << 4);
    pub(crate) const UDP: Facts = Facts(1 << 5);
    pub(crate) const ICMP: Facts = Facts(1 << 6);
    pub(crate) const ICMP6: Facts = Facts(1 << 7);
    pub(crate) const ARP: Facts = Facts(1 << 8);
    pub(crate) const VLAN: Facts = Facts(1 << 9);
    /// At least two tags.
    pub(crate) const QINQ: Facts = Facts(1 << 10);
    /// The EtherType says what the payload is.
    pub(crate) const TYPED: Facts = Facts(1 << 11);

    /// All of them.
    pub(crate) const ALL: Facts = Facts((1 << 12) - 1);

    pub(crate) const fn and(self, other: Facts) -> Facts {
        Facts(self.0 | other.0)
    }

    /// The facts that are among the others, too.
    pub(crate) const fn among(self, others: Facts) -> Facts {
        Facts(self.0 & others.0)
    }
}
