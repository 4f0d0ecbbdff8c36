//! QUIC packets as a client sends them first, as payloads of a [`super::Frame`].

use crate::quic::initial::ClientKeys;
use crate::quic::{LongHeader, V2};
use aes_gcm::Aes128Gcm;
use aes_gcm::aead::{AeadInOut as _, KeyInit as _};

/// Bytes of the tag that ends a protected packet.
const TAG: usize = 16;

/// A CRYPTO frame (RFC 9000, section 19.6).
///
/// # Panics
/// Where the offset or the length does not fit into an integer of QUIC.
pub fn crypto_frame(offset: u64, data: &[u8]) -> Vec<u8> {
    [&[6][..], &varint(offset), &varint(data.len() as u64), data].concat()
}

/// A number in the fewest of 1, 2, 4 and 8 bytes.
fn varint(n: u64) -> Vec<u8> {
    match n {
        0..0x40 => vec![n as u8],
        0x40..0x4000 => (0x4000 | n as u16).to_be_bytes().to_vec(),
        0x4000..0x4000_0000 => (0x8000_0000 | n as u32).to_be_bytes().to_vec(),
        _ => {
            assert!(n < 1 << 62, "an integer of QUIC has 62 bits");
            (0xc000_0000_0000_0000 | n).to_be_bytes().to_vec()
        }
    }
}

/// A client's Initial packet.
#[derive(Clone, Copy, Debug)]
pub struct Initial<'a> {
    /// The version.
    pub version: u32,
    /// The destination ID, at most 20 bytes, which gives the keys unless others are given.
    pub destination: &'a [u8],
    /// The token that a Retry packet brought, at most 63 bytes.
    pub token: &'a [u8],
    /// The packet whose keys protect it, if that is another.
    pub keys_of: Option<&'a [u8]>,
}

impl<'a> Initial<'a> {
    /// A first one.
    pub fn new(version: u32, destination: &'a [u8]) -> Initial<'a> {
        Initial { version, destination, token: &[], keys_of: None }
    }

    /// The packet with these frames, protected; its number is 2, in four bytes.
    pub fn packet(&self, frames: &[u8]) -> Vec<u8> {
        let first = if self.version == V2 { 0xd3 } else { 0xc3 };
        let mut packet = [&[first][..], &self.version.to_be_bytes()].concat();
        packet.push(self.destination.len() as u8);
        packet.extend(self.destination);
        packet.extend([0, self.token.len() as u8]);
        packet.extend(self.token);
        packet.extend((0x4000 | (4 + frames.len() + TAG) as u16).to_be_bytes());
        let at = packet.len();
        packet.extend([0, 0, 0, 2]);
        let aad = packet.clone();
        packet.extend(frames);
        packet.extend([0; TAG]);
        let keys_of = self.keys_of.unwrap_or(&packet);
        let keys = ClientKeys::new(&LongHeader::new(keys_of).expect("a packet of a client"));
        let mut nonce = keys.iv;
        nonce[11] ^= 2;
        let cipher = Aes128Gcm::new(&keys.key.into());
        let end = packet.len() - TAG;
        let body = &mut packet[at + 4..end];
        let tag = cipher.encrypt_inout_detached(&nonce.into(), &aad, body.into());
        packet[end..].copy_from_slice(&tag.expect("a packet is short"));
        let mask = keys.mask(&packet[at + 4..at + 20]);
        packet[0] ^= mask[0] & 0x0f;
        (0..4).for_each(|i| packet[at + i] ^= mask[1 + i]);
        packet
    }
}
