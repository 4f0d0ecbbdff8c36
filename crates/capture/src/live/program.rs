//! The program of classic BPF that says what the kernel is to keep of the frames of a socket.
//!
//! Behind the rules about direction comes the capture filter. Of a frame whose VLAN tag stands
//! beside it the kernel's filter would see no tag, and a filter means the frame as it was on the
//! wire: such frames are all let through, whole, and filtered once the tag is back.

use super::options::Directions;
use crate::cbpf::Instruction;
use weir_packet::limits::CAPLEN_MAX;

/// Loads of what is no byte of the frame: `SKF_AD_OFF` and what is asked.
const AD: u32 = libc::SKF_AD_OFF as u32;
const PACKET_TYPE: Instruction = load(AD + libc::SKF_AD_PKTTYPE as u32);
const INTERFACE: Instruction = load(AD + libc::SKF_AD_IFINDEX as u32);
/// As a byte: libpcap's own interpreter, which sees frames before the kernel has the program, knows
/// no other.
const TAG_PRESENT: Instruction =
    Instruction { code: 0x30, ..load(AD + libc::SKF_AD_VLAN_TAG_PRESENT as u32) };

/// `BPF_RET | BPF_K`.
const RETURN: u16 = 0x06;

const OUTGOING: u32 = libc::PACKET_OUTGOING as u32;

/// Refuses every frame.
pub(super) const NOTHING: [Instruction; 1] = [Instruction::REFUSE];

/// The program for a socket that sees both directions. Frames that go out by the interface
/// `loopback` come in by it too, and are wanted once.
pub(super) fn program(
    direction: Directions,
    loopback: Option<u32>,
    snaplen: u32,
    filter: Option<&[Instruction]>,
) -> Vec<Instruction> {
    let mut code = Vec::new();
    match direction {
        Directions::In => code.extend([PACKET_TYPE, unless(OUTGOING, 1), Instruction::REFUSE]),
        Directions::Out => code.extend([PACKET_TYPE, when(OUTGOING, 1), Instruction::REFUSE]),
        Directions::InOut => {}
    }
    if let (Some(loopback), Directions::InOut) = (loopback, direction) {
        code.extend([
            PACKET_TYPE,
            unless(OUTGOING, 3),
            INTERFACE,
            unless(loopback, 1),
            Instruction::REFUSE,
        ]);
    }
    let Some(filter) = filter else {
        code.push(give(snaplen));
        return code;
    };
    code.extend([TAG_PRESENT, when(0, 1), give(CAPLEN_MAX)]);
    code.extend(filter.iter().map(|instruction| match instruction {
        Instruction { code: RETURN, k: 1.., .. } => give(snaplen),
        other => *other,
    }));
    code
}

const fn load(k: u32) -> Instruction {
    Instruction { code: 0x20, jt: 0, jf: 0, k }
}

/// Gives so many bytes of the frame.
const fn give(k: u32) -> Instruction {
    Instruction { code: RETURN, jt: 0, jf: 0, k }
}

/// Skips so many instructions where what was loaded is `k`.
const fn when(k: u32, skip: u8) -> Instruction {
    Instruction { code: 0x15, jt: skip, jf: 0, k }
}

/// Skips so many instructions where it is not.
const fn unless(k: u32, skip: u8) -> Instruction {
    Instruction { code: 0x15, jt: 0, jf: skip, k }
}
