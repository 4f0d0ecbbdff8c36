//! Frames of which the end is cut off before they go out, made whole and shorter: lengths and
//! checksums say what is there, as in [`weir_packet::shorten`].
//!
//! The program shortens packets whose IP header has no options and no extension headers, as far as
//! the transport header stays, of which TCP's options are no part here. All others go up. The
//! checksum of a transport protocol is one over what is left: the sum of all words of the frame,
//! less those before the transport header, which are few.

use super::routes::Routes;
use super::write::{ActAll, DATA, DATA_END, MOST, TAG};
use crate::facts::Facts;
use crate::frame::{CONTEXT, DROPS, EDITS, HANDED, Slot, WAY, get, if_fact};
use crate::walk;
use crate::writer::{Place, Writer};
use weir_ebpf::{Alu, Cond, Helper, Reg, Reg::*, Size};
use weir_packet::{ethernet, icmp, ipv4, ipv6, tcp, udp, vlan};

/// Tags that may stand before IP: those that the walk steps over, and one that the program puts on.
const TAGS_MAX: i16 = walk::TAGS_MAX as i16 + 1;

/// Bytes of an Ethernet header, after which the first tag or the network header starts.
const ETHERNET: i16 = ethernet::HEADER_LEN as i16;

/// Bytes of a tag.
const TAG_LEN: i16 = vlan::TAG_LEN as i16;

/// The header layout of a version of IP.
struct Version {
    fact: Facts,
    header_len: i16,
    /// Where its length is, and how many bytes that does not count.
    length: (i16, i16),
    checksum: Option<i16>,
    /// Where the addresses are, up to the end of the header.
    addresses: i16,
}

const VERSIONS: [Version; 2] = [
    Version {
        fact: Facts::IPV4,
        header_len: ipv4::HEADER_LEN as i16,
        length: (ipv4::TOTAL_LENGTH as i16, 0),
        checksum: Some(ipv4::CHECKSUM as i16),
        addresses: ipv4::SOURCE as i16,
    },
    Version {
        fact: Facts::IPV6,
        header_len: ipv6::HEADER_LEN as i16,
        length: (ipv6::PAYLOAD_LENGTH as i16, ipv6::HEADER_LEN as i16),
        checksum: None,
        addresses: ipv6::SOURCE as i16,
    },
];

/// A transport protocol: its number, and where its header has its checksum and ends.
struct Transport {
    number: u8,
    checksum: i16,
    header_len: i16,
}

const fn transport(number: u8, checksum: usize, header_len: usize) -> Transport {
    Transport { number, checksum: checksum as i16, header_len: header_len as i16 }
}

const TRANSPORTS: [Transport; 4] = [
    transport(tcp::PROTOCOL, tcp::CHECKSUM, tcp::HEADER_LEN),
    transport(udp::PROTOCOL, udp::CHECKSUM, udp::HEADER_LEN),
    transport(icmp::PROTOCOL, icmp::CHECKSUM, icmp::HEADER_LEN),
    transport(icmp::PROTOCOL_V6, icmp::CHECKSUM, icmp::HEADER_LEN),
];

impl ActAll<'_> {
    /// Finds out whether the frame can be shortened, if it is to be, and goes on at `up` where that
    /// can't be. Of a frame that is short enough, or goes nowhere, it notes that the frame stays as
    /// it is. Uses `R0` to `R5`.
    pub(crate) fn can_shorten(&self, w: &mut Writer, up: Place) {
        let Some(routes) = self.routes.filter(|routes| routes.lengths().next().is_some()) else {
            return;
        };
        forget_outlets(w);
        let (can, stays, checked) = (w.label("can"), w.label("stays"), w.label("checked"));
        w.load(Size::W, R1, R10, MOST).jump_if(Cond::Eq, R1, 0, can);
        if routes.tags() {
            // The frame has no tag yet.
            let untagged = w.label("untagged");
            w.load(Size::W, R2, R10, TAG).jump_if(Cond::Eq, R2, 0, untagged);
            w.alu(Alu::Sub, R1, i32::from(TAG_LEN));
            w.bind(untagged);
        }
        get(w, R2, Slot::Len);
        w.jump_if(Cond::Le, R2, R1, stays);
        w.load(Size::DW, R2, R10, WAY).jump_if(Cond::Eq, R2, 0, stays);
        let network = w.label("network_stays");
        for Version { fact, header_len, .. } in VERSIONS {
            let other = w.label("other_version");
            w.mov(R3, i32::from(header_len));
            if_fact(w, fact, network);
            w.jump(other);
            w.bind(other);
        }
        w.jump(can);
        w.bind(network);
        get(w, R4, Slot::L3);
        get(w, R5, Slot::IpLen);
        w.alu(Alu::Add, R5, R4).jump_if(Cond::Le, R5, R1, can);
        get(w, R0, Slot::IpHeader);
        w.jump_if(Cond::Ne, R0, R3, up);
        w.alu(Alu::Add, R4, R3).jump_if(Cond::Gt, R4, R1, up);
        if_fact(w, Facts::FRAGMENT, can);
        get(w, R0, Slot::Proto);
        for Transport { number, header_len, .. } in TRANSPORTS {
            let other = w.label("other_transport");
            w.jump_if(Cond::Ne, R0, i32::from(number), other);
            w.alu(Alu::Add, R4, i32::from(header_len));
            w.jump(checked);
            w.bind(other);
        }
        w.jump(can);
        w.bind(checked);
        w.jump_if(Cond::Gt, R4, R1, up);
        w.jump(can);
        w.bind(stays);
        w.store(Size::W, R10, MOST, 0);
        w.jump(can);
        w.bind(can);
    }

    /// Shortens a frame for which [`ActAll::can_shorten`] has found that it can be, and which has
    /// its tag. Uses `R0` to `R8`.
    pub(crate) fn shorten(&self, w: &mut Writer) {
        let Some(routes) = self.routes else { return };
        let done = w.label("shortened");
        for most in routes.lengths() {
            let other = w.label("other_length");
            w.load(Size::W, R1, R10, MOST).jump_if(Cond::Ne, R1, i32::from(most), other);
            Shorten { w, routes, most: most.cast_signed(), done }.write();
            w.bind(other);
        }
        w.jump(done);
        w.bind(done);
    }
}

/// Has the verifier forget which outlets get the frame and what is done to it: it then follows what
/// comes after only once. Uses `R1` and `R2`.
fn forget_outlets(w: &mut Writer) {
    // It knows nothing of this length, the difference of two pointers.
    get(w, R2, Slot::DataLen);
    for word in [WAY, HANDED, DROPS, EDITS] {
        w.load(Size::DW, R1, R10, word).forget(R1, R2).store(Size::DW, R10, word, R1);
    }
}

/// Points to the frame, and to its network header.
const FRAME: Reg = R7;
const L3: Reg = R8;

/// The code that cuts a frame to one length.
struct Shorten<'a> {
    w: &'a mut Writer,
    routes: &'a Routes,
    most: i16,
    done: Place,
}

impl Shorten<'_> {
    fn write(&mut self) {
        self.cut();
        let w = &mut *self.w;
        get(w, R0, Slot::L3);
        if self.routes.tags() {
            self.if_tagged(|w| {
                w.alu(Alu::Add, R0, i32::from(TAG_LEN));
            });
        }
        let w = &mut *self.w;
        w.mov(L3, FRAME).alu(Alu::Add, L3, R0);
        for version in &VERSIONS {
            let (this, other) = (self.w.label("this_version"), self.w.label("other_version"));
            if_fact(self.w, version.fact, this);
            self.w.jump(other);
            self.w.bind(this);
            self.ip(version);
            self.w.jump(self.done);
            self.w.bind(other);
        }
        self.w.jump(self.done);
    }

    fn if_tagged(&mut self, then: impl FnOnce(&mut Writer)) {
        let untagged = self.w.label("untagged");
        self.w.load(Size::W, R1, R10, TAG).jump_if(Cond::Eq, R1, 0, untagged);
        then(self.w);
        self.w.bind(untagged);
    }

    /// Cuts the end off. The pointer to the frame and, in `R5`, that to its end are new then.
    fn cut(&mut self) {
        get(self.w, R2, Slot::Len);
        if self.routes.tags() {
            self.if_tagged(|w| {
                w.alu(Alu::Add, R2, i32::from(TAG_LEN));
            });
        }
        let (cut, never) = (self.w.label("cut"), self.w.label("never"));
        let w = &mut *self.w;
        w.mov(R1, CONTEXT).mov(R3, i32::from(self.most)).alu(Alu::Sub, R3, R2).mov(R2, R3);
        w.call(Helper::XDP_ADJUST_TAIL).jump_if(Cond::Ne, R0, 0, never);
        w.load(Size::W, FRAME, CONTEXT, DATA).load(Size::W, R5, CONTEXT, DATA_END);
        w.mov(R1, FRAME).alu(Alu::Add, R1, i32::from(self.most));
        w.jump_if(Cond::Le, R1, R5, cut);
        w.jump(never);
        // Only the verifier believes that it gets here: the frame was longer.
        w.bind(never);
        w.mov(R0, 0);
        w.exit();
        w.bind(cut);
    }

    /// Goes on at the end unless so many bytes from the network header on are there, of which the
    /// verifier knows nothing. Uses `R1`.
    fn room_for(&mut self, n: i16) {
        let w = &mut *self.w;
        w.mov(R1, L3).alu(Alu::Add, R1, i32::from(n)).jump_if(Cond::Gt, R1, R5, self.done);
    }

    /// Sets lengths and checksums of a packet whose network header starts `R0` bytes into the
    /// frame.
    fn ip(&mut self, version: &Version) {
        let header_len = version.header_len;
        get(self.w, R2, Slot::IpLen);
        let w = &mut *self.w;
        // Nothing but what follows the packet was cut off.
        w.alu(Alu::Add, R2, R0).jump_if(Cond::Le, R2, i32::from(self.most), self.done);
        self.room_for(header_len);
        let w = &mut *self.w;
        let (at, uncounted) = version.length;
        w.mov(R2, i32::from(self.most)).alu(Alu::Sub, R2, R0);
        w.mov(R1, R2).alu(Alu::Sub, R1, i32::from(uncounted)).be(Size::H, R1);
        w.store(Size::H, L3, at, R1);
        if let Some(at) = version.checksum {
            w.store(Size::H, L3, at, 0);
        }
        w.mov(R3, 0);
        self.add_words(R3, L3, 0, header_len);
        if let Some(at) = version.checksum {
            // The sum of the header becomes that of its words with the new checksum.
            let word = at & !3;
            let w = &mut *self.w;
            w.mov(R4, R3);
            fold(w, R4);
            w.alu(Alu::Xor, R4, 0xffff).load(Size::W, R1, L3, word).alu(Alu::Sub, R3, R1);
            w.store(Size::H, L3, at, R4).load(Size::W, R1, L3, word).alu(Alu::Add, R3, R1);
        }
        self.add_tags();
        if_fact(self.w, Facts::FRAGMENT, self.done);
        self.transport(version);
    }

    /// Adds the tags before a network header `R0` bytes into the frame to `R3`. Uses `R1`.
    fn add_tags(&mut self) {
        let none = self.w.label("no_more_tags");
        for n in 0..TAGS_MAX {
            let at = ETHERNET + n * TAG_LEN;
            let w = &mut *self.w;
            w.jump_if(Cond::Le, R0, i32::from(at), none);
            w.load(Size::W, R1, FRAME, at).alu(Alu::Add, R3, R1);
        }
        self.w.jump(none);
        self.w.bind(none);
    }

    /// Sets the length and the checksum in the header of a transport protocol; the packet has `R2`
    /// bytes, and `R3` is the sum of what stands before that header.
    fn transport(&mut self, version: &Version) {
        let at = version.header_len;
        let sum = self.w.label("sum");
        let w = &mut *self.w;
        // `R2` is the length of the payload of IP from here on, `R4` the same as it is sent.
        w.alu(Alu::Sub, R2, i32::from(at)).mov(R4, R2).be(Size::H, R4);
        get(w, R0, Slot::Proto);
        let done = self.done;
        self.by_transport(at, |w, is_udp, checksum| {
            if is_udp {
                w.store(Size::H, L3, at + udp::LENGTH as i16, R4);
                if version.fact == Facts::IPV4 {
                    // RFC 768: there is none.
                    w.load(Size::H, R1, L3, checksum).jump_if(Cond::Eq, R1, 0, done);
                }
            }
            w.store(Size::H, L3, checksum, 0);
            w.jump(sum);
        });
        self.w.jump(done);
        self.w.bind(sum);
        // Whichever protocol it is, the verifier follows the sum once.
        self.w.forget(R0, R2).alu(Alu::And, R0, 0xff);
        self.sum(version);
        self.w.alu(Alu::Xor, R4, 0xffff);
        self.by_transport(at, |w, is_udp, checksum| {
            if is_udp {
                // RFC 768: a checksum of zero is sent as all ones.
                let sent = w.label("sent");
                w.jump_if(Cond::Ne, R4, 0, sent).mov(R4, 0xffff);
                w.bind(sent);
            }
            w.store(Size::H, L3, checksum, R4);
            w.jump(done);
        });
    }

    /// Does this for the transport protocol in `R0`, whose header starts `at` bytes into the packet
    /// and can be read: given are whether it is UDP, and where its checksum is. Goes on after this
    /// code with other protocols. Uses `R1`.
    fn by_transport(&mut self, at: i16, then: impl Fn(&mut Writer, bool, i16)) {
        for Transport { number, checksum, header_len } in TRANSPORTS {
            let other = self.w.label("other_transport");
            self.w.jump_if(Cond::Ne, R0, i32::from(number), other);
            self.room_for(at + header_len);
            then(self.w, number == udp::PROTOCOL, at + checksum);
            self.w.bind(other);
        }
    }

    /// The sum over the transport header, its payload and what precedes them for its checksum in
    /// `R4`, where the length is at first. `R0` is the protocol, `R3` the sum of what stands before
    /// the header. Uses `R1` and `R2`.
    fn sum(&mut self, version: &Version) {
        let (plain, whole) = (self.w.label("plain"), self.w.label("pseudo"));
        let w = &mut *self.w;
        w.jump_if(Cond::Eq, R0, i32::from(icmp::PROTOCOL), plain);
        w.mov(R1, R0).be(Size::H, R1).alu(Alu::Add, R4, R1);
        self.add_words(R4, L3, version.addresses, version.header_len);
        self.w.jump(whole);
        self.w.bind(plain);
        self.w.mov(R4, 0);
        self.w.bind(whole);
        self.add_words(R4, FRAME, ETHERNET, self.most);
        self.w.alu(Alu::Sub, R4, R3);
        fold(self.w, R4);
    }

    /// Adds the words from one place after a base up to another to `sum`, in the order of this
    /// machine's bytes. Uses `R1`.
    fn add_words(&mut self, sum: Reg, base: Reg, from: i16, to: i16) {
        let w = &mut *self.w;
        let mut at = from;
        while at < to {
            let fits = |size: &Size| at + i16::from(size.bytes()) <= to;
            let size = [Size::W, Size::H].into_iter().find(fits).unwrap_or(Size::B);
            w.load(size, R1, base, at);
            if size == Size::B && cfg!(target_endian = "big") {
                w.alu(Alu::Lsh, R1, 8);
            }
            w.alu(Alu::Add, sum, R1);
            at += i16::from(size.bytes());
        }
    }
}

/// Adds the carries of a sum until it has 16 bits (RFC 1071). Uses `R1`.
fn fold(w: &mut Writer, sum: Reg) {
    for _ in 0..3 {
        w.mov(R1, sum).alu(Alu::Rsh, R1, 16);
        w.alu(Alu::And, sum, 0xffff).alu(Alu::Add, sum, R1);
    }
}
