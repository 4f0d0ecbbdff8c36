//! The walk over the headers of a frame, as instructions: what `weir_packet::walk` finds, of frames
//! for which it can be told for certain. All others leave by the label `unclear`: what is cut or
//! malformed (user space counts it), and headers that are rare.

mod transport;

use crate::facts::Facts;
use crate::frame::{Access, CONTEXT, FACTS, Header, Slot, get, set};
use crate::frame::{SKB_VLAN_PRESENT, SKB_VLAN_PROTO, SKB_VLAN_TCI};
use crate::hook::Hook;
use crate::writer::{Place, Writer};
use weir_ebpf::{Alu, Cond, Reg, Reg::*, Size};
use weir_packet::walk::Headers;
use weir_packet::{arp, ethernet, ipv4, ipv6, llc, vlan};

/// VLAN tags that the program steps over.
pub(crate) const TAGS_MAX: i32 = 2;

/// EtherTypes of VLAN tags.
const TAGS: [u16; 3] = [vlan::CUSTOMER, vlan::SERVICE, vlan::SERVICE_OLD];

/// EtherTypes of headers that user space steps over and the program does not: MPLS, PPPoE, NSH,
/// bridged frames, tags of switches.
const SHIMS: [u16; 8] = [0x8847, 0x8848, 0x8863, 0x8864, 0x894f, 0x6558, 0x893f, 0x8926];

/// Extension headers that the program steps over, beside that of fragments: hop-by-hop options,
/// routing, destination options, mobility, host identity, shim6. All say their length alike.
const OPTIONS: [i32; 6] = [
    ipv6::HOP_BY_HOP as i32,
    ipv6::ROUTING as i32,
    ipv6::DESTINATION_OPTIONS as i32,
    135,
    139,
    140,
];

/// How many of them it steps over.
const EXTENSIONS_MAX: usize = 6;

/// More than all of them can be long with the header before them, as a mask of bits.
const EXTENSIONS_MASK: i32 = (1 << 14) - 1;

/// How far the bit of more fragments in IPv4 is above that of [`Facts::FRAGMENT`].
const FRAGMENT_SHIFT: i32 = (ipv4::MORE_FRAGMENTS as i32).trailing_zeros() as i32
    - Facts::FRAGMENT.0.trailing_zeros() as i32;

/// No network header starts later, as a mask of bits.
const L3_MASK: i32 = (1 << 5) - 1;

/// Of the word of a fragment header: its offset in bytes, and whether more fragments follow.
const FRAGMENT_OFFSET: i32 = 0xfff8;
const MORE_FRAGMENTS: i32 = 1;

/// The rules of the walk that depend on the run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    /// The facts that are noted of frames.
    pub(crate) facts: Facts,
    /// Packets in tunnels are looked for: frames that may be such are unclear.
    pub(crate) headers: Headers,
    /// Fragments are put in relation to each other: they are unclear.
    pub(crate) fragments: bool,
}

impl Rules {
    /// Notes facts, as far as the program asks for them or the walk itself does.
    fn note(self, w: &mut Writer, facts: Facts) {
        let facts = facts.among(self.facts.and(Facts::FRAGMENT));
        if facts != Facts::NONE {
            w.alu(Alu::Or, FACTS, facts.0);
        }
    }
}

/// Writes the walk.
pub(crate) struct Walk<'a> {
    pub(crate) w: &'a mut Writer,
    pub(crate) access: Access,
    pub(crate) rules: Rules,
    pub(crate) unclear: Place,
}

/// Where the parts of the walk are.
struct Parts {
    network: Place,
    ipv4: Place,
    ipv6: Place,
    transport: Place,
    done: Place,
}

impl Walk<'_> {
    /// Writes code after which the [`Facts`] and slots of a frame are known.
    pub(crate) fn write(&mut self) {
        let w = &mut *self.w;
        let parts = Parts {
            network: w.label("network"),
            ipv4: w.label("ipv4"),
            ipv6: w.label("ipv6"),
            transport: w.label("transport"),
            done: w.label("decoded"),
        };
        self.access.begin(self.w);
        self.link(&parts);
        self.w.bind(parts.network);
        self.network(&parts);
        self.w.bind(parts.ipv4);
        self.ipv4(&parts);
        self.w.bind(parts.ipv6);
        self.ipv6(&parts);
        self.w.bind(parts.transport);
        self.transport(&parts);
        self.w.bind(parts.done);
    }

    /// The Ethernet header and its tags. Leads to the network header with its type in `R3`; of an
    /// untagged IPv4 packet, its fixed part can be read already.
    fn link(&mut self, parts: &Parts) {
        let (beside, in_frame) = (self.w.label("beside"), self.w.label("in_frame"));
        let w = &mut *self.w;
        w.mov(FACTS, Facts::NONE.0);
        get(w, R0, Slot::DataLen);
        set(w, Slot::Tags, 0);
        // Some number in place of tags that the frame lacks, which nothing reads.
        set(w, Slot::OuterTag, R0);
        set(w, Slot::InnerTag, R0);
        if self.access.hook == Hook::Xdp {
            set(w, Slot::Len, R0);
        } else {
            w.load(Size::W, R1, CONTEXT, SKB_VLAN_PRESENT);
            w.jump_if(Cond::Ne, R1, 0, beside);
            set(w, Slot::Len, R0);
            w.jump(in_frame);
            w.bind(beside);
            self.beside();
            self.w.bind(in_frame);
        }
        self.access.fetch_link(self.w, i32::from(ETHERNET), self.unclear);
        self.access.read(self.w, R3, Header::Link, ethernet::TYPE as i16, 2);
        let w = &mut *self.w;
        self.access.network_at(w, i32::from(ETHERNET));
        for tag in 0..TAGS_MAX {
            let (tagged, at) = (self.w.label("tag"), i32::from(ETHERNET) + tag * 4);
            if_any(self.w, &TAGS, tagged);
            self.w.jump(parts.network);
            self.w.bind(tagged);
            self.tag(at);
        }
        if_any(self.w, &TAGS, self.unclear);
    }

    /// The tag that stands beside the frame: it is the outer one.
    fn beside(&mut self) {
        let w = &mut *self.w;
        let known = w.label("known_tag");
        w.alu(Alu::Add, R0, vlan::TAG_LEN as i32);
        set(w, Slot::Len, R0);
        w.load(Size::W, R3, CONTEXT, SKB_VLAN_PROTO).be(Size::H, R3);
        if_any(w, &TAGS, known);
        w.jump(self.unclear);
        w.bind(known);
        w.load(Size::W, R1, CONTEXT, SKB_VLAN_TCI);
        set(w, Slot::OuterTag, R1);
        set(w, Slot::Tags, 1);
        self.rules.note(w, Facts::VLAN);
    }

    /// A tag in the frame; the type after it is left in `R3`.
    fn tag(&mut self, at: i32) {
        self.fetch_at_l3(vlan::TAG_LEN as i32);
        let (first, second, noted) =
            (self.w.label("first_tag"), self.w.label("second_tag"), self.w.label("tag_noted"));
        self.access.read(self.w, R2, Header::Network, vlan::CONTROL as i16, 2);
        self.access.read(self.w, R3, Header::Network, vlan::TYPE as i16, 2);
        let w = &mut *self.w;
        get(w, R0, Slot::Tags);
        w.jump_if(Cond::Eq, R0, 0, first).jump_if(Cond::Eq, R0, 1, second);
        w.jump(self.unclear);
        w.bind(second);
        set(w, Slot::InnerTag, R2);
        set(w, Slot::Tags, 2);
        self.rules.note(w, Facts::QINQ);
        w.jump(noted);
        w.bind(first);
        set(w, Slot::OuterTag, R2);
        set(w, Slot::Tags, 1);
        self.rules.note(w, Facts::VLAN);
        w.bind(noted);
        self.access.network_at(w, at + vlan::TAG_LEN as i32);
    }

    /// Has the verifier forget how many tags there are: it then follows what comes after only once.
    /// Uses `R0`.
    fn forget_tags(&mut self) {
        let w = &mut *self.w;
        let tags = Facts::VLAN.and(Facts::QINQ).among(self.rules.facts);
        if tags != Facts::NONE {
            w.forget(FACTS, R3).alu(Alu::And, FACTS, tags.0);
        }
        get(w, R0, Slot::L3);
        w.forget(R0, R3).alu(Alu::And, R0, L3_MASK);
        self.access.network_at(w, R0);
    }

    /// Goes on with the header that the type in `R3` announces.
    fn network(&mut self, parts: &Parts) {
        let typed = self.w.label("typed");
        let w = &mut *self.w;
        set(w, Slot::EtherType, R3);
        w.jump_if(Cond::Ge, R3, i32::from(ethernet::TYPE_MIN), typed);
        self.llc(parts);
        self.w.bind(typed);
        self.forget_tags();
        let w = &mut *self.w;
        self.rules.note(w, Facts::TYPED);
        w.jump_if(Cond::Eq, R3, i32::from(ethernet::IPV4), parts.ipv4);
        w.jump_if(Cond::Eq, R3, i32::from(ethernet::IPV6), parts.ipv6);
        let arp = w.label("arp");
        w.jump_if(Cond::Eq, R3, i32::from(ethernet::ARP), arp);
        if_any(w, &SHIMS, self.unclear);
        w.jump(parts.done);
        w.bind(arp);
        self.fetch_at_l3(arp::PACKET_LEN as i32);
        self.access.read(self.w, R1, Header::Network, 0, 6);
        let w = &mut *self.w;
        let expected = arp::IPV4_OVER_ETHERNET.iter().fold(0, |n, &b| n << 8 | i64::from(b));
        w.constant(R2, expected).jump_if(Cond::Ne, R1, R2, self.unclear);
        self.rules.note(w, Facts::ARP);
        w.jump(parts.done);
    }

    /// Makes so many bytes readable from where the network header starts.
    fn fetch_at_l3(&mut self, n: i32) {
        self.access.fetch_network(self.w, n, self.unclear);
    }

    /// In place of a type stands a length: LLC, which may lead to IP.
    fn llc(&mut self, parts: &Parts) {
        self.fetch_at_l3(llc::LLC_LEN as i32);
        self.access.read(self.w, R1, Header::Network, 0, 3);
        for start in [llc::IP, llc::SNAP] {
            let [a, b, c] = start.map(i32::from);
            self.w.jump_if(Cond::Eq, R1, a << 16 | b << 8 | c, self.unclear);
        }
        self.w.jump(parts.done);
    }

    /// Compares where the IP packet ends with the end of the frame; its length is in `dst`.
    fn ends_within(&mut self, length: Reg) {
        let w = &mut *self.w;
        set(w, Slot::IpLen, length);
        get(w, R0, Slot::L3);
        w.alu(Alu::Add, R0, length);
        get(w, R4, Slot::DataLen);
        w.jump_if(Cond::Gt, R0, R4, self.unclear);
    }

    fn ipv4(&mut self, parts: &Parts) {
        self.fetch_at_l3(ipv4::HEADER_LEN as i32);
        self.access.read(self.w, R1, Header::Network, ipv4::VERSION_IHL as i16, 1);
        self.access.read(self.w, R2, Header::Network, ipv4::TOTAL_LENGTH as i16, 2);
        let w = &mut *self.w;
        // One comparison for the version and the least header length.
        w.jump_if(Cond::Lt, R1, 0x45, self.unclear).jump_if(Cond::Gt, R1, 0x4f, self.unclear);
        w.alu(Alu::And, R1, 15).alu(Alu::Lsh, R1, 2);
        // A length of 0, which leaves it open, is less than any header's.
        w.jump_if(Cond::Lt, R2, R1, self.unclear);
        set(w, Slot::IpHeader, R1);
        self.ends_within(R2);
        self.access.read(self.w, R3, Header::Network, ipv4::PROTOCOL as i16, 1);
        self.access.read(self.w, R2, Header::Network, ipv4::FRAGMENT as i16, 2);
        let first = self.w.label("first_fragment");
        let w = &mut *self.w;
        self.rules.note(w, Facts::IPV4);
        self.set_proto();
        let w = &mut *self.w;
        w.mov(R1, R2).alu(Alu::And, R1, i32::from(ipv4::OFFSET_BITS));
        w.jump_if(Cond::Eq, R1, 0, first);
        self.rules.note(w, Facts::FRAGMENT);
        w.jump(if self.rules.fragments { self.unclear } else { parts.done });
        w.bind(first);
        w.alu(Alu::And, R2, i32::from(ipv4::MORE_FRAGMENTS));
        if self.rules.fragments {
            w.jump_if(Cond::Ne, R2, 0, self.unclear);
        } else {
            // Without a jump the verifier has one way to follow.
            w.alu(Alu::Rsh, R2, FRAGMENT_SHIFT).alu(Alu::Or, FACTS, R2);
        }
        w.jump_if(Cond::Eq, R3, i32::from(ipv6::AUTHENTICATION), self.unclear);
        w.jump(parts.transport);
    }

    fn ipv6(&mut self, parts: &Parts) {
        self.fetch_at_l3(ipv6::HEADER_LEN as i32);
        self.access.read(self.w, R1, Header::Network, 0, 1);
        self.access.read(self.w, R2, Header::Network, ipv6::PAYLOAD_LENGTH as i16, 2);
        let w = &mut *self.w;
        w.alu(Alu::And, R1, 0xf0).jump_if(Cond::Ne, R1, 0x60, self.unclear);
        // It leaves the length open, or the packet is a jumbogram, or empty.
        w.jump_if(Cond::Eq, R2, 0, self.unclear);
        w.alu(Alu::Add, R2, ipv6::HEADER_LEN as i32);
        self.ends_within(R2);
        self.access.read(self.w, R3, Header::Network, ipv6::NEXT_HEADER as i16, 1);
        let w = &mut *self.w;
        self.rules.note(w, Facts::IPV6);
        set(w, Slot::IpHeader, ipv6::HEADER_LEN as i32);
        self.extensions(parts);
    }

    /// Steps over extension headers, the first of which the protocol in `R3` announces.
    fn extensions(&mut self, parts: &Parts) {
        let (stepped, later) = (self.w.label("stepped"), self.w.label("later_fragment"));
        for depth in 0..=EXTENSIONS_MAX {
            let (step, fragment) = (self.w.label("extension"), self.w.label("fragment"));
            let (over, next) = if depth < EXTENSIONS_MAX {
                (step, fragment)
            } else {
                (self.unclear, self.unclear)
            };
            for kind in OPTIONS {
                self.w.jump_if(Cond::Eq, R3, kind, over);
            }
            self.w.jump_if(Cond::Eq, R3, i32::from(ipv6::FRAGMENT), next);
            self.w.jump_if(Cond::Eq, R3, i32::from(ipv6::AUTHENTICATION), self.unclear);
            self.w.jump(stepped);
            if depth == EXTENSIONS_MAX {
                break;
            }
            let after = self.w.label("next_extension");
            self.w.bind(step);
            self.step_over();
            self.w.jump(after);
            self.w.bind(fragment);
            self.fragment(later);
            self.w.bind(after);
        }
        self.w.bind(stepped);
        self.forget_extensions();
        self.set_proto();
        self.w.jump(parts.transport);
        self.w.bind(later);
        self.set_proto();
        self.w.jump(parts.done);
    }

    /// Steps over an extension header; the protocol after it is left in `R3`.
    fn step_over(&mut self) {
        self.room_for(ipv6::EXTENSION_LEN_MIN as i32);
        self.access.fetch_transport(self.w, ipv6::EXTENSION_LEN_MIN as i32, self.unclear);
        self.access.read(self.w, R1, Header::Transport, 1, 1);
        let w = &mut *self.w;
        w.alu(Alu::Add, R1, 1).alu(Alu::Lsh, R1, 3);
        get(w, R0, Slot::IpHeader);
        get(w, R2, Slot::IpLen);
        w.alu(Alu::Add, R0, R1).jump_if(Cond::Gt, R0, R2, self.unclear);
        self.set_header_length();
        self.access.read(self.w, R3, Header::Transport, 0, 1);
    }

    /// Steps over a fragment header, as [`Walk::step_over`]; goes on at `later` where it is not of
    /// the first fragment. One that is the whole packet (RFC 6946) is no fragment.
    fn fragment(&mut self, later: Place) {
        self.room_for(ipv6::EXTENSION_LEN_MIN as i32);
        self.access.fetch_transport(self.w, ipv6::EXTENSION_LEN_MIN as i32, self.unclear);
        self.access.read(self.w, R3, Header::Transport, 0, 1);
        self.access.read(self.w, R2, Header::Transport, 2, 2);
        get(self.w, R0, Slot::IpHeader);
        self.w.alu(Alu::Add, R0, ipv6::EXTENSION_LEN_MIN as i32);
        self.set_header_length();
        let w = &mut *self.w;
        let whole = w.label("whole_packet");
        w.alu(Alu::And, R2, FRAGMENT_OFFSET | MORE_FRAGMENTS).jump_if(Cond::Eq, R2, 0, whole);
        if self.rules.fragments {
            w.jump(self.unclear);
        } else {
            self.rules.note(w, Facts::FRAGMENT);
            w.jump_if(Cond::Set, R2, FRAGMENT_OFFSET, later);
        }
        w.bind(whole);
    }

    /// Notes the protocol in `R3`, apart from what is found out of it later.
    fn set_proto(&mut self) {
        self.w.mov(R1, R3).alu(Alu::And, R1, 0xff);
        set(self.w, Slot::Proto, R1);
    }

    /// Has the verifier forget what was stepped over, as [`Walk::forget_tags`]. Uses `R0` and `R1`.
    fn forget_extensions(&mut self) {
        let w = &mut *self.w;
        w.mov(R0, FACTS).forget(R0, R3);
        w.alu(Alu::And, R0, Facts::FRAGMENT.0).alu(Alu::Or, FACTS, R0);
        get(w, R0, Slot::IpHeader);
        w.forget(R0, R3).alu(Alu::And, R0, EXTENSIONS_MASK);
        set(w, Slot::IpHeader, R0);
    }

    /// Sets the header length to `R0`, and has the verifier forget all but the bits that it has:
    /// whatever headers were stepped over, it follows the next step only once. Uses `R1`.
    fn set_header_length(&mut self) {
        self.access.read(self.w, R1, Header::Network, 0, 1);
        let w = &mut *self.w;
        w.forget(R0, R1).alu(Alu::And, R0, EXTENSIONS_MASK);
        set(w, Slot::IpHeader, R0);
    }
}

/// Bytes of an Ethernet header.
const ETHERNET: i16 = ethernet::HEADER_LEN as i16;

/// Goes on at `to` where `R3` is one of these.
fn if_any(w: &mut Writer, types: &[u16], to: Place) {
    for &one in types {
        w.jump_if(Cond::Eq, R3, i32::from(one), to);
    }
}
