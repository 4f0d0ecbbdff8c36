//! Which addresses of a frame can be rewritten.

/// An address that can be rewritten, by the field that names it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Address {
    /// `ip.src`: where IP packets come from, wherever one is in a frame; the sender of ARP.
    IpSrc,
    /// `ip.dst`: where they go, also by way of others; the target of ARP.
    IpDst,
    /// `eth.src`: where frames of a link come from, also inside tunnels; the sender of ARP.
    EthSrc,
    /// `eth.dst`: where they go; the target of ARP.
    EthDst,
}

impl Address {
    /// All, in order.
    pub const ALL: [Address; 4] =
        [Address::IpSrc, Address::IpDst, Address::EthSrc, Address::EthDst];

    /// The name of the field.
    pub fn name(self) -> &'static str {
        match self {
            Address::IpSrc => "ip.src",
            Address::IpDst => "ip.dst",
            Address::EthSrc => "eth.src",
            Address::EthDst => "eth.dst",
        }
    }
}

/// Some of the addresses.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Addresses(u8);

impl Addresses {
    /// Whether this one is among them.
    pub fn has(self, address: Address) -> bool {
        self.0 & 1 << address as u8 != 0
    }

    /// The addresses that are among them, in order.
    pub fn iter(self) -> impl Iterator<Item = Address> {
        Address::ALL.into_iter().filter(move |a| self.has(*a))
    }
}

impl FromIterator<Address> for Addresses {
    fn from_iter<I: IntoIterator<Item = Address>>(all: I) -> Addresses {
        Addresses(all.into_iter().fold(0, |bits, a| bits | 1 << a as u8))
    }
}
