//! The facts that a program knows of a frame, and how it reads the frame at each hook.
//!
//! XDP and tcx read the frame itself, by pointers that were compared with its end. A socket filter
//! has no such pointers: it copies headers onto its stack. Either way a header has a base, and its
//! fields are read at fixed places from there.

use crate::facts::Facts;
use crate::hook::{Hook, STACK_BYTES};
use crate::writer::{Place, Writer};
use weir_ebpf::{Alu, Cond, Helper, Operand, Reg, Reg::*, Size};

/// The context of the program.
pub(crate) const CONTEXT: Reg = R6;
/// Points to the network header, where there are pointers.
const L3: Reg = R7;
/// Points to the transport header, where there are pointers.
const L4: Reg = R8;
/// The [`Facts`] about the frame.
pub(crate) const FACTS: Reg = R9;

/// Goes on at `place` where any of these facts holds, and notes that the program asks for them.
pub(crate) fn if_fact(w: &mut Writer, facts: Facts, place: Place) {
    w.asks(facts);
    w.jump_if(Cond::Set, FACTS, facts.0, place);
}

/// A number of 64 bits on the stack.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(i16)]
pub(crate) enum Slot {
    /// The length of the frame on the wire.
    Len = -8,
    /// The same without the VLAN tag that stands beside the frame.
    DataLen = -16,
    /// The EtherType after all tags.
    EtherType = -24,
    /// Priority, drop eligible indicator and identifier of the outer VLAN tag.
    OuterTag = -32,
    /// The same of the inner one.
    InnerTag = -40,
    /// How many VLAN tags there are.
    Tags = -48,
    /// Where the network header starts.
    L3 = -56,
    /// Bytes of IP header and options.
    IpHeader = -64,
    /// Bytes of the IP packet.
    IpLen = -72,
    /// Protocol number of the IP payload.
    Proto = -80,
    /// The pointer to the frame, where there are pointers.
    Data = -88,
}

/// Where the stack has room for values that expressions set aside, from here downwards.
pub(crate) const SPILL: i16 = -96;
/// How many there is room for.
pub(crate) const SPILLS: usize = 8;

/// The return value of the program for a frame that is handed out; the outlets that get it, a bit
/// for each; how often it is dropped; and what is done to it before. Only XDP has these, and copies
/// no headers.
pub(crate) const WAY: i16 = SPILL - 8 * SPILLS as i16;
pub(crate) const HANDED: i16 = WAY - 8;
pub(crate) const DROPS: i16 = HANDED - 8;
pub(crate) const EDITS: i16 = DROPS - 8;

/// Numbers of `scan`s, from here downwards: at hooks where frames are read by pointers.
pub(crate) const SCANS: i16 = EDITS - 8;

/// Where a socket filter keeps the copied network header; the Ethernet header stands before it.
const L3_COPY: i16 = -224;
/// Where it keeps the copied transport header.
const L4_COPY: i16 = -264;

/// The lowest place of the stack that is in use; below is room for counting, ...
pub(crate) const STACK_USED: i16 = L4_COPY;

/// ...then for the states of `scan`s after the frame, from here downwards, ...
pub(crate) const STATES: i16 = STACK_USED - 64;
/// How many there is room for.
pub(crate) const STATES_MAX: usize = 4;

/// ...for whether some pipeline wants to see the frame, of programs with `scan`s, ...
pub(crate) const WANTED: i16 = STATES - 8 * STATES_MAX as i16;

/// ...and for the key at hand, from here upwards.
pub(crate) const KEY: i16 = -STACK_BYTES;
/// Words of a key that there is room for.
pub(crate) const KEY_WORDS_MAX: usize = ((WANTED - KEY) / 8) as usize;

/// A header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Header {
    /// The Ethernet header.
    Link,
    /// IP or ARP.
    Network,
    /// TCP, UDP, ICMP.
    Transport,
}

/// Where the fields of a context are.
struct Context {
    data: i16,
    data_end: i16,
}

/// Offsets within `struct __sk_buff`.
pub(crate) const SKB_LEN: i16 = 0;
pub(crate) const SKB_PACKET_TYPE: i16 = 4;
pub(crate) const SKB_VLAN_PRESENT: i16 = 20;
pub(crate) const SKB_VLAN_TCI: i16 = 24;
pub(crate) const SKB_VLAN_PROTO: i16 = 28;
pub(crate) const SKB_IFINDEX: i16 = 40;

/// How a program reads frames at a hook.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Access {
    pub(crate) hook: Hook,
}

impl Access {
    /// Whether frames are read by pointers.
    pub(crate) fn is_direct(self) -> bool {
        self.hook != Hook::Socket
    }

    fn context(self) -> Context {
        match self.hook {
            Hook::Xdp => Context { data: 0, data_end: 4 },
            Hook::Tcx | Hook::Socket => Context { data: 76, data_end: 80 },
        }
    }

    /// Begins: the length of the data, and where there are pointers those to its start and end, of
    /// which the latter stays in `R5`.
    pub(crate) fn begin(self, w: &mut Writer) {
        let context = self.context();
        if self.is_direct() {
            w.load(Size::W, R1, CONTEXT, context.data).load(Size::W, R5, CONTEXT, context.data_end);
            w.store(Size::DW, R10, Slot::Data as i16, R1);
        }
        match self.hook {
            Hook::Xdp => {
                w.mov(R2, R5).alu(Alu::Sub, R2, R1);
            }
            Hook::Tcx | Hook::Socket => {
                w.load(Size::W, R2, CONTEXT, SKB_LEN);
            }
        }
        set(w, Slot::DataLen, R2);
    }

    /// Makes the `n` bytes of the link header readable. Else goes on at `none`.
    pub(crate) fn fetch_link(self, w: &mut Writer, n: i32, none: Place) {
        if self.is_direct() {
            w.load(Size::DW, L3, R10, Slot::Data as i16);
            w.mov(R0, L3).alu(Alu::Add, R0, n).jump_if(Cond::Gt, R0, R5, none);
        } else {
            w.mov(R2, 0);
            self.copy(w, L3_COPY - ETHERNET, n, none);
        }
    }

    /// Says that the network header, or a tag before it, starts `at` bytes into the frame.
    pub(crate) fn network_at(self, w: &mut Writer, at: impl Into<Operand>) {
        let at = at.into();
        set(w, Slot::L3, at);
        if self.is_direct() {
            w.load(Size::DW, L3, R10, Slot::Data as i16).alu(Alu::Add, L3, at);
        }
    }

    /// Makes `n` bytes of the network header readable.
    pub(crate) fn fetch_network(self, w: &mut Writer, n: i32, none: Place) {
        if self.is_direct() {
            w.mov(R0, L3).alu(Alu::Add, R0, n).jump_if(Cond::Gt, R0, R5, none);
        } else {
            get(w, R2, Slot::L3);
            self.copy(w, L3_COPY, n, none);
        }
    }

    /// Makes `n` bytes of the transport header readable, which starts [`Slot::IpHeader`] bytes into
    /// the network header.
    pub(crate) fn fetch_transport(self, w: &mut Writer, n: i32, none: Place) {
        if self.is_direct() {
            get(w, R0, Slot::IpHeader);
            w.mov(L4, L3).alu(Alu::Add, L4, R0);
            w.mov(R0, L4).alu(Alu::Add, R0, n).jump_if(Cond::Gt, R0, R5, none);
        } else {
            get(w, R2, Slot::IpHeader);
            get(w, R0, Slot::L3);
            w.alu(Alu::Add, R2, R0);
            self.copy(w, L4_COPY, n, none);
        }
    }

    /// Copies `n` bytes from `R2` bytes into the frame to the stack.
    fn copy(self, w: &mut Writer, to: i16, n: i32, none: Place) {
        w.mov(R1, CONTEXT).mov(R3, R10).alu(Alu::Add, R3, i32::from(to)).mov(R4, n);
        w.call(Helper::SKB_LOAD_BYTES).jump_if(Cond::Ne, R0, 0, none);
    }

    /// `dst =` the `n` bytes of a header from `at` on, the first one highest; `n` is at most 8.
    /// Other registers it uses are `R4`, and `R3` for the link header.
    pub(crate) fn read(self, w: &mut Writer, dst: Reg, header: Header, at: i16, n: i16) {
        let (base, start) = match (header, self.is_direct()) {
            (Header::Link, true) => {
                w.load(Size::DW, R3, R10, Slot::Data as i16);
                (R3, 0)
            }
            (Header::Network, true) => (L3, 0),
            (Header::Transport, true) => (L4, 0),
            (Header::Link, false) => (R10, L3_COPY - ETHERNET),
            (Header::Network, false) => (R10, L3_COPY),
            (Header::Transport, false) => (R10, L4_COPY),
        };
        let (mut at, mut left, mut first) = (start + at, n, true);
        while left > 0 {
            // The stack is read aligned.
            let size = [Size::DW, Size::W, Size::H, Size::B].into_iter().find(|size| {
                let bytes = i16::from(size.bytes());
                bytes <= left && (base != R10 || at.rem_euclid(bytes) == 0)
            });
            let size = size.unwrap_or(Size::B);
            let bytes = i16::from(size.bytes());
            let to = if first { dst } else { R4 };
            w.load(size, to, base, at).be(size, to);
            if !first {
                w.alu(Alu::Lsh, dst, i32::from(bytes) * 8).alu(Alu::Or, dst, R4);
            }
            (at, left, first) = (at + bytes, left - bytes, false);
        }
    }
}

/// Bytes of an Ethernet header.
const ETHERNET: i16 = 14;

/// `dst =` a number on the stack.
pub(crate) fn get(w: &mut Writer, dst: Reg, slot: Slot) {
    w.load(Size::DW, dst, R10, slot as i16);
}

/// Sets a number on the stack.
pub(crate) fn set(w: &mut Writer, slot: Slot, src: impl Into<Operand>) {
    w.store(Size::DW, R10, slot as i16, src);
}
