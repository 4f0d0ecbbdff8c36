//! Addresses of a frame under other names: the one place that changes packets.
//!
//! A [`Rewriter`] looks for every header that holds an address, outer ones and those inside tunnels
//! and ICMP errors, puts the new names in place of the old ones, and carries the difference on to
//! each checksum that covers it (RFC 1624): one that was wrong stays wrong. Lengths stay what they
//! are. Of an address that was cut, what is there of it is renamed.
//!
//! A frame is rewritten only if all headers were found in which such an address may stand. Where
//! the walk ends before a header that it can't read, or a header has a part that may hold an
//! address and whose form is not known here, the frame stays as it is, and the caller is told.
//!
//! A packet may be where no header announces it: in a tunnel on a port of its own, say. So a frame
//! also stays where bytes between the headers, or after them, are a sound IP header or ARP.
//!
//! Protocols above the transport header are not touched: DNS, DHCP and LLDP, say, hold addresses of
//! their own. The integrity value of AH covers addresses, and is wrong afterwards.

mod address;
mod change;
mod checksum;
mod finder;
mod icmp;
mod options;
mod place;
mod source_route;
mod transport;
mod unannounced;

pub use address::{Address, Addresses};

use crate::source::LinkType;
use crate::walk::{Site, TunnelPorts, sites};
use change::Change;
use checksum::Cover;
use finder::AddressPlace;

/// Gives other names. They keep prefixes: addresses with their first n bits in common have n in
/// common afterwards, so that the start of an address has a name without its end.
pub trait Rename {
    /// The name of an IPv4 address.
    fn ipv4(&mut self, address: u32) -> u32;
    /// The name of an IPv6 address.
    fn ipv6(&mut self, address: u128) -> u128;
    /// The name of a MAC address, in the low 48 bits.
    fn mac(&mut self, address: u64) -> u64;
}

/// Rewrites frames. It keeps nothing of one but memory for the next.
#[derive(Clone, Default, Debug)]
pub struct Rewriter {
    sites: Vec<Site>,
    /// Addresses to rename.
    places: Vec<AddressPlace>,
    /// The checksums, each with the bytes that it covers.
    covers: Vec<Cover>,
    /// The changes, and the bytes that were there before.
    changes: Vec<Change>,
    /// Which ports mean tunnels besides their own.
    ports: TunnelPorts,
}

impl Rewriter {
    /// Looks into tunnels at these ports, too.
    pub fn set_ports(&mut self, ports: &TunnelPorts) {
        self.ports = *ports;
    }

    /// Renames addresses of a frame of this link type that is so long on the wire. Says whether it
    /// knew all headers that may hold one; if not, the frame stays as it is.
    #[must_use]
    pub fn rewrite(
        &mut self,
        link: LinkType,
        frame: &mut [u8],
        len: u32,
        which: Addresses,
        names: &mut impl Rename,
    ) -> bool {
        let Rewriter { sites, places, covers, changes, ports } = self;
        sites.clear();
        places.clear();
        covers.clear();
        changes.clear();
        sites::find(link, ports, frame, len, sites);
        if !place::places(sites, ports, frame, len as usize, which, places) {
            return false;
        }
        checksum::covers(sites, frame, covers);
        for place in &*places {
            let AddressPlace { at, width } = *place;
            let there = width.min(frame.len().saturating_sub(at));
            let range = at..at + there;
            // Headers that lie may overlap; no address gets a name twice.
            let taken = |c: &Change| c.at < range.end && range.start < c.range().end;
            if there == 0 || changes.iter().any(taken) {
                continue;
            }
            let mut before = [0; 16];
            before[..there].copy_from_slice(&frame[range.clone()]);
            let after = renamed(before, width, names);
            frame[range].copy_from_slice(&after[..there]);
            changes.push(Change { at, len: there, before });
        }
        if changes.is_empty() {
            return true;
        }
        // Inner checksums first: outer ones cover them.
        covers.sort_by_key(|cover| std::cmp::Reverse(cover.covers.start));
        for cover in &*covers {
            cover.update(frame, changes);
        }
        true
    }
}

/// The name of the address of so many bytes that starts with these.
fn renamed(bytes: [u8; 16], width: usize, names: &mut impl Rename) -> [u8; 16] {
    let address = u128::from_be_bytes(bytes) >> (128 - 8 * width);
    let name = match width {
        4 => u128::from(names.ipv4(address as u32)),
        6 => u128::from(names.mac(address as u64)),
        _ => names.ipv6(address),
    };
    (name << (128 - 8 * width)).to_be_bytes()
}

/// Rewrites bytes as a frame of each link type, whole and cut, and checks that nothing but renamed
/// addresses and checksums differs, and that naming back gives the bytes again.
#[cfg(any(test, fuzzing))]
pub fn fuzz_rewrite(bytes: &[u8]) {
    let Some((&[link, which], frame)) = bytes.split_first_chunk() else { return };
    let which: Addresses =
        Address::ALL.into_iter().filter(|a| which >> *a as u8 & 1 != 0).collect();
    let mut rewriter = Rewriter::default();
    let mut after = frame.to_vec();
    let link = LinkType(link.into());
    if !rewriter.rewrite(link, &mut after, frame.len() as u32, which, &mut Flip) {
        return assert_eq!(after, frame);
    }
    assert_eq!(after.len(), frame.len());
    let changed = rewriter.changes.clone();
    let may = |i: usize| changed.iter().any(|c| c.range().contains(&i));
    assert!((0..frame.len()).all(|i| frame[i] == after[i] || may(i)));
    for c in changed.iter().filter(|c| c.len > 2) {
        assert_eq!(c.before[..c.len], frame[c.range()]);
    }
}

/// Each byte's bits turned: keeps prefixes.
#[cfg(any(test, fuzzing))]
struct Flip;

#[cfg(any(test, fuzzing))]
impl Rename for Flip {
    fn ipv4(&mut self, address: u32) -> u32 {
        address ^ 0xa5a5_a5a5
    }

    fn ipv6(&mut self, address: u128) -> u128 {
        address ^ (u128::MAX / 255 * 0xa5)
    }

    fn mac(&mut self, address: u64) -> u64 {
        address ^ 0xa5a5_a5a5_a5a5
    }
}

#[cfg(test)]
mod tests;
