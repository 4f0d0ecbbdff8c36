//! A client's Initial packet: its keys (RFC 9001, section 5.2; RFC 9369, section 3.3), its header
//! protection (section 5.4), and the CRYPTO frames in it (RFC 9000, section 19.6).
//!
//! Only the first flight of a client can be read: later packets of a connection carry another
//! destination ID than the one that gave the keys, and those of the server never carry it.

use super::{Left, LongHeader, PacketType, V2};
use crate::pieces::Pieces;
use aes_gcm::aead::{AeadInOut as _, KeyInit as _};
use aes_gcm::aes::Aes128;
use aes_gcm::aes::cipher::{Array, BlockCipherEncrypt as _};
use aes_gcm::{Aes128Gcm, Nonce, Tag};
use hkdf::Hkdf;
use sha2::Sha256;

/// Bytes of the longest Initial packet that is looked into: more than a jumbo frame carries.
pub const INITIAL_MAX: usize = 16 << 10;

/// Packets of one datagram that are looked at.
pub const PACKETS_MAX: usize = 4;

/// Bytes of the tag that ends a protected packet.
const TAG: usize = 16;

/// Bytes that header protection samples.
const SAMPLE: usize = 16;

/// Salts of the versions.
const SALT_V1: [u8; 20] = [
    0x38, 0x76, 0x2c, 0xf7, 0xf5, 0x59, 0x34, 0xb3, 0x4d, 0x17, 0x9a, 0xe6, 0xa4, 0xc8, 0x0c, 0xad,
    0xcc, 0xbb, 0x7f, 0x0a,
];
const SALT_V2: [u8; 20] = [
    0x0d, 0xed, 0xe3, 0xde, 0xf7, 0x00, 0xa6, 0xdb, 0x81, 0x93, 0x81, 0xbe, 0x6e, 0x26, 0x9d, 0xcb,
    0xf9, 0xbd, 0x2e, 0xd9,
];

/// The Initial packets of a UDP payload, among its first [`PACKETS_MAX`] packets.
pub fn initials(payload: &[u8]) -> impl Iterator<Item = LongHeader<'_>> {
    let packets = std::iter::successors(LongHeader::new(payload), LongHeader::next);
    packets.take(PACKETS_MAX).filter(|packet| packet.kind() == PacketType::Initial)
}

/// Memory for what is decrypted, to be used again.
#[derive(Clone, Default, Debug)]
pub struct Decrypting {
    /// The packet at hand.
    plain: Vec<u8>,
    /// Handshake messages.
    pieces: Pieces,
}

impl Decrypting {
    /// Decrypts a client's Initial packets of one UDP payload, and puts their CRYPTO frames in
    /// order: handshake messages, as far as they are there without a gap. Empty if there is none,
    /// if the keys are others (later packets, a server's), or if the start is missing.
    pub fn of_client(&mut self, payload: &[u8]) -> &[u8] {
        self.pieces.clear();
        let mut keys = None;
        for header in initials(payload) {
            let keys = keys.get_or_insert_with(|| ClientKeys::new(&header));
            let Some(frames) = keys.decrypt(&header, &mut self.plain) else { continue };
            for (offset, data) in CryptoFrames::new(frames) {
                // Data that lies far ahead cannot join up with the start.
                if let Ok(offset) = usize::try_from(offset) {
                    self.pieces.put(offset, data);
                }
            }
        }
        self.pieces.front()
    }
}

/// The data of the CRYPTO frames of a packet, each with its offset, in the order that they stand
/// there. Ends at a frame that breaks off, and at one that a client does not send here.
#[derive(Clone, Debug)]
pub struct CryptoFrames<'a> {
    left: Left<'a>,
}

impl<'a> CryptoFrames<'a> {
    /// Over the frames of a packet.
    pub fn new(frames: &'a [u8]) -> CryptoFrames<'a> {
        CryptoFrames { left: Left { bytes: frames, at: 0 } }
    }
}

impl<'a> Iterator for CryptoFrames<'a> {
    type Item = (u64, &'a [u8]);

    fn next(&mut self) -> Option<(u64, &'a [u8])> {
        let left = &mut self.left;
        loop {
            match left.byte()? {
                // PADDING, PING.
                0 | 1 => {}
                // ACK, without and with counts of marks.
                kind @ (2 | 3) => {
                    let [_, _, ranges, _] = [(); 4].map(|()| left.varint());
                    let numbers = ranges?.checked_mul(2)?.checked_add(3 * u64::from(kind & 1))?;
                    // Each takes a byte at least, so this ends where the frame does.
                    for _ in 0..numbers {
                        left.varint()?;
                    }
                }
                6 => {
                    let (offset, length) = (left.varint()?, left.varint()?);
                    return Some((offset, left.skip(length)?));
                }
                // A client sends no other frame here, but for closing what it opened.
                _ => {
                    left.at = left.bytes.len();
                    return None;
                }
            }
        }
    }
}

/// The keys that protect the Initial packets of a client.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ClientKeys {
    pub(crate) key: [u8; 16],
    pub(crate) iv: [u8; 12],
    header: [u8; 16],
}

impl ClientKeys {
    /// The keys that follow from the version and the destination ID of a client's first Initial
    /// packet, and of its first after a Retry packet.
    pub fn new(header: &LongHeader<'_>) -> ClientKeys {
        let v2 = header.version() == V2;
        let salt = if v2 { SALT_V2 } else { SALT_V1 };
        let labels = if v2 {
            [&b"quicv2 key"[..], b"quicv2 iv", b"quicv2 hp"]
        } else {
            [&b"quic key"[..], b"quic iv", b"quic hp"]
        };
        let initial = Hkdf::<Sha256>::new(Some(&salt), header.destination_id());
        let secret: [u8; 32] = expand(&initial, b"client in");
        let client = Hkdf::<Sha256>::from_prk(&secret).expect("as long as the hash");
        let [key, iv, hp] = labels;
        let [key, header] = [key, hp].map(|label| expand(&client, label));
        ClientKeys { key, iv: expand(&client, iv), header }
    }

    /// Takes the protection off a packet; gives its frames, which are all of `room` then. `None` if
    /// it was not protected by these keys, or has more than [`INITIAL_MAX`] bytes.
    pub fn decrypt<'b>(&self, header: &LongHeader<'_>, room: &'b mut Vec<u8>) -> Option<&'b [u8]> {
        let (packet, at) = (header.packet, header.number_at);
        if packet.len() > INITIAL_MAX {
            return None;
        }
        room.clear();
        room.extend_from_slice(packet);
        let sample = packet.get(at + 4..at + 4 + SAMPLE)?;
        let mask = self.mask(sample);
        room[0] ^= mask[0] & 0x0f;
        let number_len = usize::from(room[0] & 3) + 1;
        let mut nonce = self.iv;
        for i in 0..number_len {
            room[at + i] ^= mask[1 + i];
            nonce[12 - number_len + i] ^= room[at + i];
        }
        let (aad, body) = room.split_at_mut(at + number_len);
        let (body, tag) = body.split_at_mut(body.len().checked_sub(TAG)?);
        let tag = Tag::try_from(&*tag).ok()?;
        let cipher = Aes128Gcm::new(&self.key.into());
        let nonce = Nonce::from(nonce);
        let len = body.len();
        cipher.decrypt_inout_detached(&nonce, aad, body.into(), &tag).ok()?;
        room.truncate(at + number_len + len);
        room.drain(..at + number_len);
        Some(room)
    }

    /// The mask of header protection for a sample of 16 bytes.
    pub(crate) fn mask(&self, sample: &[u8]) -> [u8; 16] {
        let mut block = Array::try_from(sample).expect("a sample has 16 bytes");
        Aes128::new(&self.header.into()).encrypt_block(&mut block);
        block.into()
    }
}

/// HKDF-Expand-Label with no context (RFC 8446, section 7.1).
fn expand<const N: usize>(secret: &Hkdf<Sha256>, label: &[u8]) -> [u8; N] {
    let mut out = [0; N];
    let lengths = [0, N as u8, (b"tls13 ".len() + label.len()) as u8];
    let info = [&lengths[..], b"tls13 ", label, &[0]];
    secret.expand_multi_info(&info, &mut out).expect("far shorter than 255 hashes");
    out
}

/// Any bytes as a UDP payload, and as the frames of a packet: what is found lies within them.
/// Panics where it does not.
#[cfg(any(test, fuzzing))]
pub fn fuzz_initial(payload: &[u8]) {
    let held: usize = CryptoFrames::new(payload).map(|(_, data)| data.len() + 3).sum();
    assert!(held <= payload.len());
    let mut decrypting = Decrypting::default();
    assert!(decrypting.of_client(payload).len() <= payload.len());
}

#[cfg(test)]
pub(crate) mod tests {
    use super::super::V1;
    use super::*;
    use crate::craft::quic::{Initial, crypto_frame};
    use crate::tls::Hello;
    use crate::tls::ja4::{Carrier, ja4};
    use proptest::prelude::*;

    fn bytes(hex: &str) -> Vec<u8> {
        let digits: Vec<u8> = hex.chars().filter_map(|c| c.to_digit(16)).map(|d| d as u8).collect();
        digits.chunks(2).map(|two| two[0] << 4 | two[1]).collect()
    }

    /// The CRYPTO frame of RFC 9001, appendix A.2.
    const FRAME: &str = "060040f1010000ed0303ebf8fa56f12939b9584a3896472ec40bb863cfd3e86804fe3a47
        f06a2b69484c00000413011302010000c000000010000e00000b6578616d706c652e636f6dff01000100000a00
        080006001d0017001800100007000504616c706e000500050100000000003300260024001d00209370b2c9caa4
        7fbabaf4559fedba753de171fa71f50f1ce15d43e994ec74d748002b0003020304000d0010000e040305030603
        0203080408050806002d00020101001c00024001003900320408ffffffffffffffff05048000ffff07048000ff
        ff0801100104800075300901100f088394c8f03e51570806048000ffff";

    /// The packet of RFC 9001, appendix A.2.
    pub(crate) fn standard() -> Vec<u8> {
        let mut frames = bytes(FRAME);
        frames.resize(1162, 0);
        protect(V1, &bytes("8394c8f03e515708"), &frames)
    }

    #[test]
    fn the_packet_of_the_standard() {
        let packet = standard();
        let start = "c000000001088394c8f03e5157080000449e7b9aec34d1b1c98dd7689fb8ec11d242b123dc9b";
        assert_eq!(packet[..38], bytes(start));
        assert_eq!(packet[packet.len() - TAG..], bytes("e221af44860018ab0856972e194cd934"));
        assert_eq!(packet.len(), 1200);
        let crypto = of_client(&packet);
        assert_eq!(crypto, &bytes(FRAME)[4..]);
        let hello = Hello::new(&crypto).unwrap();
        assert_eq!((hello.version(), hello.server_name()), (Ok(0x304), Some(&b"example.com"[..])));
        let ja4 = ja4(&hello, Carrier::Quic).unwrap();
        assert!(ja4.starts_with(b"q13d0211an_"), "{ja4:?}");
    }

    #[test]
    fn keys_of_both_versions() {
        let keys = |version| {
            let packet = protect(version, &bytes("8394c8f03e515708"), &[0; 20]);
            let keys = ClientKeys::new(&LongHeader::new(&packet).unwrap());
            (keys.key.to_vec(), keys.iv.to_vec(), keys.header.to_vec())
        };
        let (key, iv, hp) = keys(V1);
        assert_eq!(key, bytes("1f369613dd76d5467730efcbe3b1a22d"));
        assert_eq!(iv, bytes("fa044b2f42a3fd3b46fb255c"));
        assert_eq!(hp, bytes("9f50449e04a0e810283a1e9933adedd2"));
        assert_eq!(keys(V2).0, bytes("8b1a0bc121284290a29e0971b5cd045d"));
    }

    fn of_client(payload: &[u8]) -> Vec<u8> {
        Decrypting::default().of_client(payload).to_vec()
    }

    fn protect(version: u32, destination: &[u8], frames: &[u8]) -> Vec<u8> {
        Initial::new(version, destination).packet(frames)
    }

    #[test]
    fn frames_out_of_order_are_put_in_order() {
        let data: Vec<u8> = (0..100).collect();
        let frames = [
            crypto_frame(60, &data[60..]),
            vec![1, 0, 0],
            crypto_frame(0, &data[..25]),
            vec![2, 5, 9, 1, 0, 2, 3],
            crypto_frame(20, &data[20..60]),
        ];
        for version in [V1, V2] {
            let packet = protect(version, &[1, 2, 3, 4, 5, 6, 7, 8], &frames.concat());
            assert_eq!(of_client(&packet), data);
        }
        let gap = [crypto_frame(60, &data[60..]), crypto_frame(0, &data[..25])].concat();
        let packet = protect(V1, &[9; 20], &gap);
        assert_eq!(of_client(&packet), &data[..25]);
        let far = [crypto_frame(0, &data[..9]), crypto_frame(0x3fff, &data)].concat();
        assert_eq!(of_client(&protect(V1, &[], &far)), &data[..9]);
        let none = protect(V1, &[9; 8], &crypto_frame(1, &data));
        assert!(of_client(&none).is_empty(), "the start is missing");
    }

    #[test]
    fn an_initial_packet_after_others_of_its_datagram() {
        let mut datagram = vec![0xd0, 0, 0, 0, 1, 0, 0, 2, 9, 9];
        datagram.extend(protect(V1, &[4; 8], &crypto_frame(0, &[7; 40])));
        assert_eq!(of_client(&datagram), [7; 40]);
    }

    /// Two packets of one datagram carry parts of one hello; the second has the keys of the first.
    #[test]
    fn two_initial_packets_of_one_datagram() {
        let data: Vec<u8> = (0..90).collect();
        let mut datagram = protect(V1, &[4; 8], &crypto_frame(50, &data[50..]));
        let second = Initial { keys_of: Some(&datagram), ..Initial::new(V1, &[5; 3]) };
        let second = second.packet(&crypto_frame(0, &data[..50]));
        datagram.extend(second);
        assert_eq!(of_client(&datagram), data);
    }

    #[test]
    fn a_hello_beyond_2048_bytes() {
        let data = vec![9; 5000];
        let packet = protect(V1, &[4; 8], &crypto_frame(0, &data));
        assert_eq!(of_client(&packet), data);
    }

    #[test]
    fn other_keys_other_bytes_and_cuts_give_nothing() {
        let packet = standard();
        for at in [0, 6, 18, 40, 1199] {
            let mut other = packet.clone();
            other[at] ^= 1;
            assert!(of_client(&other).is_empty(), "byte {at}");
        }
        for n in 0..packet.len() {
            assert!(of_client(&packet[..n]).is_empty(), "cut at {n}");
        }
    }

    proptest! {
        #[test]
        fn any_frames_hold(
            frames in proptest::collection::vec(
                prop_oneof![Just(6_u8), Just(2), Just(3), any::<u8>()], 20..200),
            more in proptest::collection::vec(any::<u8>(), 0..60),
        ) {
            fuzz_initial(&protect(V1, &[3; 8], &[frames, more.clone()].concat()));
            fuzz_initial(&more);
        }
    }
}
