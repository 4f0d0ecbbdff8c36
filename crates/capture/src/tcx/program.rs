//! The program at the hook: each packet into the ring, and on its way.

use crate::ebpf::Offloaded;
use weir_ebpf::{
    AssembleError, Assembler, Atomic, Code, Cond, EbpfInstruction, Helper, Reg::*, Size,
};
use weir_packet::limits::CAPLEN_MAX;

/// Where a record says when its packet came, how long it is, how much of it is there, and its
/// number; then its bytes follow.
pub(super) const TIME: usize = 0;
pub(super) const LEN: usize = 8;
pub(super) const CAPLEN: usize = 12;
pub(super) const NUMBER: usize = 16;
pub(super) const BYTES: usize = 24;

/// Room for a packet in a record: the verifier wants to know it beforehand. With both headers
/// that is 128 bytes to 64 KiB and more; the last takes the longest that is kept.
const ROOMS: [i32; 9] = [96, 224, 480, 992, 1632, 4064, 16_352, 69_600, CAPLEN_MAX as i32 + TAG];

/// A VLAN tag, which is put back, and the two addresses that it follows.
const TAG: i32 = 4;
const ADDRESSES: i32 = 12;

/// Of `struct __sk_buff`.
const SKB_LEN: i16 = 0;
const SKB_VLAN_PRESENT: i16 = 20;
const SKB_VLAN_TCI: i16 = 24;
const SKB_VLAN_PROTO: i16 = 28;

/// `TCX_NEXT`: other programs, and then the host, get the packet.
const NEXT: i32 = -1;

/// The parameters of a program.
pub(super) struct Tap<'a> {
    /// The ring, and the memory with the count of what was lost, by their descriptors.
    pub(super) ring: i32,
    pub(super) lost: i32,
    /// Which of the counts is its own.
    pub(super) count: u32,
    /// The number that its records are marked with.
    pub(super) number: i32,
    /// Bytes of a packet that are kept, at most.
    pub(super) snaplen: u32,
    /// Whether its packets are Ethernet frames.
    pub(super) ethernet: bool,
    pub(super) offloaded: Option<&'a Offloaded>,
}

impl Tap<'_> {
    /// In C, for one of the rooms:
    ///
    /// ```c
    /// __u32 keep = query(skb);                       // if a query is offloaded
    /// if (keep == 0) return TCX_NEXT;
    /// keep = min(keep, skb->len, snaplen);
    /// struct record *r = bpf_ringbuf_reserve(&ring, sizeof *r + ROOM, 0);
    /// if (!r) { __sync_fetch_and_add(&lost, 1); return TCX_NEXT; }
    /// *r = { bpf_ktime_get_ns(), skb->len, keep, number };
    /// bpf_skb_load_bytes(skb, 0, r->bytes, keep);    // in two parts around a VLAN tag
    /// bpf_ringbuf_submit(r, 0);
    /// return TCX_NEXT;
    /// ```
    pub(super) fn code(&self) -> Result<Code, AssembleError> {
        let a = &mut Assembler::new();
        let [query, made, next] = ["query", "made", "next"].map(|name| a.label(name));
        let [lost, discard, submit] = ["lost", "discard", "submit"].map(|name| a.label(name));
        let snaplen = self.snaplen.min(CAPLEN_MAX) as i32;
        a.mov(R6, R1);
        a.mov(R9, snaplen);
        if self.offloaded.is_some() {
            a.push(EbpfInstruction::CallLocal { target: query });
            a.jump_if(Cond::Eq, R0, 0, next);
            let all = a.label("all");
            a.jump_if(Cond::Ge, R0, snaplen, all).mov(R9, R0).bind(all);
        }
        let whole = a.label("whole");
        a.load(Size::W, R8, R6, SKB_LEN);
        a.jump_if(Cond::Le, R9, R8, whole).mov(R9, R8).bind(whole);
        a.jump_if(Cond::Lt, R9, 1, next);
        for room in ROOMS {
            let longer = a.label("longer");
            a.jump_if(Cond::Gt, R9, room - TAG, longer);
            a.load_map(R1, self.ring).mov(R2, BYTES as i32 + room).mov(R3, 0);
            a.call(Helper::RINGBUF_RESERVE).jump(made);
            a.bind(longer);
        }
        a.jump(lost);
        a.bind(made);
        a.jump_if(Cond::Eq, R0, 0, lost).mov(R7, R0);
        a.call(Helper::KTIME_GET_NS).store(Size::DW, R7, TIME as i16, R0);
        a.store(Size::W, R7, NUMBER as i16, self.number);
        if self.ethernet {
            self.tagged(a, [submit, discard]);
        }
        a.store(Size::W, R7, LEN as i16, R8).store(Size::W, R7, CAPLEN as i16, R9);
        a.mov(R1, R6).mov(R2, 0).mov(R3, R7).add(R3, BYTES as i32).mov(R4, R9);
        a.call(Helper::SKB_LOAD_BYTES).jump_if(Cond::Ne, R0, 0, discard);
        a.bind(submit).mov(R1, R7).mov(R2, 0).call(Helper::RINGBUF_SUBMIT).jump(next);
        a.bind(discard).mov(R1, R7).mov(R2, 0).call(Helper::RINGBUF_DISCARD);
        let offset = self.count * size_of::<u64>() as u32;
        a.bind(lost).push(EbpfInstruction::LoadMapValue { dst: R1, fd: self.lost, offset });
        a.mov(R2, 1).atomic(Atomic::Add, R1, 0, R2);
        a.bind(next).mov(R0, NEXT).exit();
        if let Some(offloaded) = self.offloaded {
            a.function(&offloaded.code, query);
        }
        a.finish()
    }

    /// Puts the tag back that stands beside a frame, if one does. A frame that is cut before it
    /// stays as it is.
    fn tagged(&self, a: &mut Assembler, [submit, discard]: [weir_ebpf::Label; 2]) {
        let plain = a.label("plain");
        a.load(Size::W, R1, R6, SKB_VLAN_PRESENT).jump_if(Cond::Eq, R1, 0, plain);
        a.add(R8, TAG).jump_if(Cond::Le, R9, ADDRESSES, plain);
        a.mov(R1, R9).add(R1, TAG);
        a.store(Size::W, R7, LEN as i16, R8).store(Size::W, R7, CAPLEN as i16, R1);
        a.mov(R1, R6).mov(R2, 0).mov(R3, R7).add(R3, BYTES as i32).mov(R4, ADDRESSES);
        a.call(Helper::SKB_LOAD_BYTES).jump_if(Cond::Ne, R0, 0, discard);
        let tag = BYTES as i16 + ADDRESSES as i16;
        a.load(Size::W, R1, R6, SKB_VLAN_PROTO).store(Size::H, R7, tag, R1);
        a.load(Size::W, R1, R6, SKB_VLAN_TCI).be(Size::H, R1).store(Size::H, R7, tag + 2, R1);
        a.mov(R1, R6).mov(R2, ADDRESSES).mov(R3, R7).add(R3, BYTES as i32 + ADDRESSES + TAG);
        a.mov(R4, R9).add(R4, -ADDRESSES);
        a.call(Helper::SKB_LOAD_BYTES).jump_if(Cond::Ne, R0, 0, discard).jump(submit);
        a.bind(plain);
    }
}
