//! Reading fields, as instructions.

use crate::facts::Facts;
use crate::frame::{Access, FACTS, Header, Slot, get, if_fact};
use crate::value::{AddrRead, End, From, HeaderBits, NumRead};
use crate::writer::{Place, Writer};
use weir_base::address::V4;
use weir_ebpf::{Alu, Cond, Reg, Reg::*};
use weir_packet::{arp, ethernet, ipv4, ipv6, tcp};

/// `R0 =` a field; goes on at `absent` where the frame does not have it.
pub(crate) fn read_num(w: &mut Writer, access: Access, read: &NumRead, absent: Place) {
    needs(w, read.needs, absent);
    match read.from {
        From::Bits(bits) => header_bits(w, access, bits),
        From::ByVersion(four, six) => {
            let (other, end) = (w.label("version6"), w.label("end_version"));
            if_fact(w, Facts::IPV6, other);
            header_bits(w, access, four);
            w.jump(end);
            w.bind(other);
            header_bits(w, access, six);
            w.jump(end);
            w.bind(end);
        }
        From::Version => {
            w.asks(Facts::IPV6);
            w.mov(R0, FACTS).alu(Alu::And, R0, Facts::IPV6.0).alu(Alu::Add, R0, 4);
        }
        From::Slot { slot, shift, mask } => {
            get(w, R0, slot);
            if shift > 0 {
                w.alu(Alu::Rsh, R0, i32::from(shift));
            }
            if mask >= 0 {
                w.alu(Alu::And, R0, mask);
            }
        }
        From::Same(value) => {
            w.mov(R0, value);
        }
        From::LinkEnd(end) => {
            link_end(w, access, end);
        }
        From::ConnPort(end) => {
            let (forward, backward) = (w.label("forward"), w.label("backward"));
            let done = w.label("conn_port");
            direction(w, access, forward, backward);
            let (near, far) = if end == End::Smaller { (0, 2) } else { (2, 0) };
            for (label, at) in [(forward, near), (backward, far)] {
                w.bind(label);
                access.read(w, R0, Header::Transport, at, 2);
                w.jump(done);
            }
            w.bind(done);
        }
        From::ConnForward => {
            let (forward, backward) = (w.label("forward"), w.label("backward"));
            let done = w.label("conn_forward");
            direction(w, access, forward, backward);
            for (label, value) in [(forward, 1), (backward, 0)] {
                w.bind(label);
                w.mov(R0, value);
                w.jump(done);
            }
            w.bind(done);
        }
        From::TcpPayload => {
            if_fact(w, Facts::FRAGMENT, absent);
            access.read(w, R1, Header::Transport, tcp::DATA_OFFSET as i16, 1);
            w.alu(Alu::Rsh, R1, 4).alu(Alu::Lsh, R1, 2);
            get(w, R0, Slot::IpLen);
            w.alu(Alu::Sub, R0, R1);
            get(w, R1, Slot::IpHeader);
            w.alu(Alu::Sub, R0, R1);
        }
    }
}

/// The smaller or larger of the link addresses.
fn link_end(w: &mut Writer, access: Access, end: End) {
    let done = w.label("link_end");
    access.read(w, R0, Header::Link, ethernet::SOURCE as i16, 6);
    access.read(w, R1, Header::Link, ethernet::DESTINATION as i16, 6);
    let cond = if end == End::Smaller { Cond::Le } else { Cond::Ge };
    w.jump_if(cond, R0, R1, done).mov(R0, R1);
    w.jump(done);
    w.bind(done);
}

/// Goes on at `absent` where none of the facts holds.
fn needs(w: &mut Writer, facts: Facts, absent: Place) {
    if facts == Facts::NONE {
        return;
    }
    let there = w.label("there");
    if_fact(w, facts, there);
    w.jump(absent);
    w.bind(there);
}

/// `R0 =` bits of a header that is there.
fn header_bits(w: &mut Writer, access: Access, bits: HeaderBits) {
    access.read(w, R0, bits.header, i16::from(bits.at), i16::from(bits.bytes));
    if bits.shift > 0 {
        w.alu(Alu::Rsh, R0, i32::from(bits.shift));
    }
    if bits.shift + bits.bits < bits.bytes * 8 {
        w.alu(Alu::And, R0, (1 << bits.bits) - 1);
    }
    if bits.times > 1 {
        w.alu(Alu::Mul, R0, i32::from(bits.times));
    }
}

/// `R0` and `R1 =` an address; goes on at `absent` where the frame does not have it.
pub(crate) fn read_addr(w: &mut Writer, access: Access, read: AddrRead, absent: Place) {
    match read {
        AddrRead::ArpSender | AddrRead::ArpTarget => {
            needs(w, Facts::ARP, absent);
            let at = if read == AddrRead::ArpSender { arp::SENDER_IP } else { arp::TARGET_IP };
            address4(w, access, at, [R0, R1]);
        }
        AddrRead::Source | AddrRead::Destination => {
            let (six, end) = (w.label("address6"), w.label("end_address"));
            needs(w, Facts::IPV4.and(Facts::IPV6), absent);
            if_fact(w, Facts::IPV6, six);
            let source = read == AddrRead::Source;
            let pick = |a, b| if source { a } else { b };
            address4(w, access, pick(ipv4::SOURCE, ipv4::DESTINATION), [R0, R1]);
            w.jump(end);
            w.bind(six);
            address6(w, access, pick(ipv6::SOURCE, ipv6::DESTINATION), [R0, R1]);
            w.jump(end);
            w.bind(end);
        }
        AddrRead::HostsEnd(which) => {
            let (swap, done) = (w.label("swap"), w.label("hosts"));
            needs(w, Facts::IPV4.and(Facts::IPV6), absent);
            both_addresses(w, access);
            let (before, after) = if which == End::Smaller { (done, swap) } else { (swap, done) };
            w.jump_if(Cond::Lt, R0, R2, before).jump_if(Cond::Gt, R0, R2, after);
            w.jump_if(Cond::Le, R1, R3, before);
            w.jump(after);
            w.bind(swap);
            w.mov(R0, R2).mov(R1, R3);
            w.jump(done);
            w.bind(done);
        }
        AddrRead::ConnEnd(which) => {
            let (forward, backward) = (w.label("forward"), w.label("backward"));
            let done = w.label("conn");
            needs(w, Facts::IPV4.and(Facts::IPV6), absent);
            direction(w, access, forward, backward);
            let (keep, swap) =
                if which == End::Smaller { (forward, backward) } else { (backward, forward) };
            w.bind(swap);
            w.mov(R0, R2).mov(R1, R3);
            w.jump(done);
            w.bind(keep);
            w.jump(done);
            w.bind(done);
        }
    }
}

/// The address of an IPv4 or ARP header.
fn address4(w: &mut Writer, access: Access, at: usize, [high, low]: [Reg; 2]) {
    access.read(w, low, Header::Network, at as i16, 4);
    w.constant(R5, V4 as i64).alu(Alu::Or, low, R5).mov(high, 0);
}

/// The address of an IPv6 header.
fn address6(w: &mut Writer, access: Access, at: usize, [high, low]: [Reg; 2]) {
    access.read(w, high, Header::Network, at as i16, 8);
    access.read(w, low, Header::Network, at as i16 + 8, 8);
    // One in the block of IPv4 has another number, see `weir_base::address`.
    let end = w.label("end_address6");
    w.jump_if(Cond::Ne, high, 0, end).mov(R5, low).alu(Alu::Rsh, R5, 32);
    w.jump_if(Cond::Ne, R5, (V4 >> 32) as i32, end);
    w.constant(R5, 1 << 32).alu(Alu::Xor, low, R5);
    w.jump(end);
    w.bind(end);
}

/// `R0` and `R1 =` the source, `R2` and `R3 =` the destination of an IP packet.
fn both_addresses(w: &mut Writer, access: Access) {
    let (six, end) = (w.label("addresses6"), w.label("end_addresses"));
    if_fact(w, Facts::IPV6, six);
    address4(w, access, ipv4::SOURCE, [R0, R1]);
    address4(w, access, ipv4::DESTINATION, [R2, R3]);
    w.jump(end);
    w.bind(six);
    address6(w, access, ipv6::SOURCE, [R0, R1]);
    address6(w, access, ipv6::DESTINATION, [R2, R3]);
    w.jump(end);
    w.bind(end);
}

/// Goes on by whether an IP packet goes from the smaller end of its connection to the larger, or to
/// itself, with both addresses as in [`both_addresses`].
fn direction(w: &mut Writer, access: Access, forward: Place, backward: Place) {
    both_addresses(w, access);
    w.jump_if(Cond::Lt, R0, R2, forward).jump_if(Cond::Gt, R0, R2, backward);
    w.jump_if(Cond::Lt, R1, R3, forward).jump_if(Cond::Gt, R1, R3, backward);
    // Without ports, the ends are their addresses.
    let ports = w.label("compare_ports");
    if_fact(w, Facts::PORTS, ports);
    w.jump(forward);
    w.bind(ports);
    access.read(w, R4, Header::Transport, 0, 2);
    access.read(w, R5, Header::Transport, 2, 2);
    w.jump_if(Cond::Le, R4, R5, forward);
    w.jump(backward);
}
