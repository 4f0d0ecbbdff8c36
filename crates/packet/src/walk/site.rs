//! Where headers start that hold addresses, and where the checksums are that cover them.
//!
//! The walk notes a header where the one before announces it, before it is checked: one that is cut
//! or lies may hold addresses all the same. It notes [`Site::Unread`] where it can't go on and
//! headers may follow.

/// A header. Positions count from the start of the frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Site {
    /// Destination, source.
    Ethernet {
        at: usize,
    },
    /// A Linux cooked header of 16 or 20 bytes.
    Cooked {
        at: usize,
        len: usize,
    },
    /// An 802.11 header; `padded` to four bytes.
    Wlan {
        at: usize,
        padded: bool,
    },
    Arp {
        at: usize,
    },
    Ipv4 {
        at: usize,
    },
    Ipv6 {
        at: usize,
    },
    /// An IPv6 extension header or AH of this protocol number.
    Extension {
        kind: u8,
        at: usize,
        len: usize,
    },
    /// The payload of the IP packet noted last; where that ends on the wire.
    Transport {
        proto: u8,
        at: usize,
        end: usize,
    },
    /// A GRE header; where what its checksum covers ends on the wire.
    Gre {
        at: usize,
        end: usize,
    },
    /// A GENEVE header with its options.
    Geneve {
        at: usize,
        len: usize,
    },
    /// A netfilter log header, which may hold MAC addresses in attributes.
    Nflog,
    /// Headers may follow that the walk can't read.
    Unread,
}

/// The one that is told of headers; `()` is told nothing, which costs nothing.
pub(crate) trait Sites {
    fn note(&mut self, site: Site);
}

impl Sites for () {
    #[inline(always)]
    fn note(&mut self, _: Site) {}
}

impl Sites for Vec<Site> {
    fn note(&mut self, site: Site) {
        self.push(site);
    }
}
