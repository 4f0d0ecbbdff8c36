//! Systems by whose wires nothing is sent: each is refused when it is opened, so there is none.

use super::error::SendError;
use super::place::Place;
use super::transmit::OpenTransmit;
use std::convert::Infallible;
use std::io;
use std::net::IpAddr;
use weir_packet::egress::{Refused, Sent};
use weir_packet::source::LinkType;

/// The file that devices are made by: none.
pub(crate) const DEVICES: &str = "";

/// A wire that there is not.
#[cfg(not(target_os = "linux"))]
pub(crate) struct Wire {
    pub(crate) name: String,
    none: Infallible,
}

impl Wire {
    pub(crate) fn open(
        name: &str,
        _: &Place,
        _: u64,
        _: &mut dyn FnMut(String),
        _: &mut OpenTransmit,
    ) -> io::Result<Wire> {
        Err(SendError::FilesOnly { name: name.to_owned() }.into())
    }

    pub(crate) fn takes(&self, _: LinkType) -> bool {
        match self.none {}
    }

    pub(crate) fn is_device(&self) -> bool {
        match self.none {}
    }

    pub(crate) fn is_xdp(&self) -> bool {
        match self.none {}
    }

    pub(crate) fn local_address(&self) -> Option<IpAddr> {
        match self.none {}
    }

    pub(crate) fn push(&mut self, _: u32) {
        match self.none {}
    }

    pub(crate) fn is_away(&mut self, _: &mut dyn FnMut(String)) -> bool {
        match self.none {}
    }

    pub(crate) fn send(
        &mut self,
        _: &[u8],
        _: &[Sent],
        _: &mut [Refused],
        _: &mut dyn FnMut(String),
    ) {
        match self.none {}
    }

    pub(crate) fn settle(&mut self, _: &mut [Refused]) {
        match self.none {}
    }
}
