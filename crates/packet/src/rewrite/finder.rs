//! Collects where the addresses of a frame stand.

use super::address::{Address, Addresses};
use crate::walk::{Site, TunnelPorts};

/// An address: of 4 or 16 bytes one of IP, of 6 a MAC address.
#[derive(Clone, Copy, Debug)]
pub(super) struct AddressPlace {
    pub(super) at: usize,
    pub(super) width: usize,
}

/// Reads headers of a frame, and notes the places of addresses that are to be renamed.
pub(super) struct Finder<'a> {
    pub(super) frame: &'a [u8],
    /// The headers that the walk found.
    pub(super) sites: &'a [Site],
    /// Bytes of the frame on the wire.
    pub(super) len: usize,
    /// Which ports mean tunnels besides their own.
    pub(super) ports: &'a TunnelPorts,
    pub(super) which: Addresses,
    pub(super) out: &'a mut Vec<AddressPlace>,
    /// Whether no address can stand anywhere else.
    pub(super) is_complete: bool,
}

impl Finder<'_> {
    pub(super) fn put(&mut self, address: Address, at: usize, width: usize) {
        if self.which.has(address) {
            self.out.push(AddressPlace { at, width });
        }
    }

    /// An IP address that stands for either end.
    pub(super) fn either(&mut self, at: usize, width: usize) {
        let address = if self.which.has(Address::IpSrc) { Address::IpSrc } else { Address::IpDst };
        self.put(address, at, width);
    }

    /// A MAC address that stands for either end.
    pub(super) fn either_mac(&mut self, at: usize) {
        let mac = if self.which.has(Address::EthSrc) { Address::EthSrc } else { Address::EthDst };
        self.put(mac, at, 6);
    }

    /// An IP address may stand where nothing here knows of it.
    pub(super) fn unread_ip(&mut self) {
        self.is_complete &= !self.which.has(Address::IpSrc) && !self.which.has(Address::IpDst);
    }

    /// The same of a MAC address.
    pub(super) fn unread_mac(&mut self) {
        self.is_complete &= !self.which.has(Address::EthSrc) && !self.which.has(Address::EthDst);
    }

    /// An IP address may stand in these bytes, unless they are all 0 or beyond the frame.
    pub(super) fn unread_ip_in(&mut self, from: usize, to: usize) {
        if (from..to.min(self.frame.len())).any(|at| self.frame[at] != 0) {
            self.unread_ip();
        }
    }

    pub(super) fn byte(&self, at: usize) -> Option<u8> {
        self.frame.get(at).copied()
    }

    pub(super) fn word(&self, at: usize) -> Option<u16> {
        self.frame.get(at..)?.first_chunk().map(|b| u16::from_be_bytes(*b))
    }
}
