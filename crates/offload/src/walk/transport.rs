//! Transport headers.

use super::{Parts, Walk};
use crate::facts::Facts;
use crate::frame::{FACTS, Header, Slot, get};
use weir_ebpf::{Alu, Cond, Reg::*};
use weir_packet::walk::UDP_TUNNELS;
use weir_packet::{icmp, tcp, udp};

/// Protocols that may carry a packet, which is looked for where fields are those of the innermost:
/// IPv4, IPv6, GRE, EtherIP, MPLS.
const TUNNELS: [i32; 5] = [4, 41, 47, 97, 137];

/// Transports of which only the ports are read: DCCP, SCTP, UDP-Lite.
const PORTS_ONLY: [i32; 3] = [33, 132, 136];

/// Bytes of the ports.
const PORTS_LEN: usize = 4;

impl Walk<'_> {
    /// The transport header of the protocol in `R3`.
    pub(super) fn transport(&mut self, parts: &Parts) {
        let [tcp, udp, icmp, icmp6, ports] =
            ["tcp", "udp", "icmp", "icmp6", "ports"].map(|name| self.w.label(name));
        let w = &mut *self.w;
        w.jump_if(Cond::Eq, R3, i32::from(tcp::PROTOCOL), tcp);
        w.jump_if(Cond::Eq, R3, i32::from(udp::PROTOCOL), udp);
        w.jump_if(Cond::Eq, R3, i32::from(icmp::PROTOCOL), icmp);
        w.jump_if(Cond::Eq, R3, i32::from(icmp::PROTOCOL_V6), icmp6);
        for proto in PORTS_ONLY {
            w.jump_if(Cond::Eq, R3, proto, ports);
        }
        if self.rules.headers.are_inner() {
            for proto in TUNNELS {
                w.jump_if(Cond::Eq, R3, proto, self.unclear);
            }
        }
        w.jump(parts.done);
        w.bind(tcp);
        self.tcp(parts);
        self.w.bind(udp);
        self.udp(parts);
        for (label, fact, len) in [
            (icmp, Facts::ICMP, icmp::HEADER_LEN),
            (icmp6, Facts::ICMP6, icmp::HEADER_LEN),
            (ports, Facts::PORTS, PORTS_LEN),
        ] {
            self.w.bind(label);
            self.room_for(len as i32);
            self.access.fetch_transport(self.w, len as i32, self.unclear);
            self.rules.note(self.w, fact);
            self.w.jump(parts.done);
        }
    }

    /// Whether the IP packet has room for so many bytes of the transport header.
    pub(super) fn room_for(&mut self, n: i32) {
        let w = &mut *self.w;
        get(w, R1, Slot::IpHeader);
        get(w, R2, Slot::IpLen);
        w.alu(Alu::Add, R1, n).jump_if(Cond::Gt, R1, R2, self.unclear);
    }

    fn tcp(&mut self, parts: &Parts) {
        self.room_for(tcp::HEADER_LEN as i32);
        self.access.fetch_transport(self.w, tcp::HEADER_LEN as i32, self.unclear);
        self.access.read(self.w, R1, Header::Transport, tcp::DATA_OFFSET as i16, 1);
        let w = &mut *self.w;
        w.jump_if(Cond::Lt, R1, 0x50, self.unclear);
        w.alu(Alu::Rsh, R1, 4).alu(Alu::Lsh, R1, 2);
        get(w, R0, Slot::IpHeader);
        get(w, R2, Slot::IpLen);
        w.alu(Alu::Add, R1, R0).jump_if(Cond::Gt, R1, R2, self.unclear);
        self.rules.note(w, Facts::PORTS.and(Facts::TCP));
        w.jump(parts.done);
    }

    fn udp(&mut self, parts: &Parts) {
        self.room_for(udp::HEADER_LEN as i32);
        self.access.fetch_transport(self.w, udp::HEADER_LEN as i32, self.unclear);
        if self.rules.headers.are_inner() {
            for port in [udp::SPORT, udp::DPORT] {
                self.access.read(self.w, R1, Header::Transport, port as i16, 2);
                let named = self.rules.headers.ports().named();
                for (_, tunnel) in UDP_TUNNELS.into_iter().chain(named) {
                    self.w.jump_if(Cond::Eq, R1, i32::from(tunnel), self.unclear);
                }
            }
        }
        self.access.read(self.w, R1, Header::Transport, udp::LENGTH as i16, 2);
        let sound = self.w.label("udp_sound");
        let w = &mut *self.w;
        w.jump_if(Cond::Lt, R1, udp::HEADER_LEN as i32, self.unclear);
        // The first fragment carries the length of the whole datagram.
        w.mov(R0, FACTS).alu(Alu::And, R0, Facts::FRAGMENT.0).jump_if(Cond::Ne, R0, 0, sound);
        get(w, R0, Slot::IpHeader);
        get(w, R2, Slot::IpLen);
        w.alu(Alu::Add, R1, R0).jump_if(Cond::Gt, R1, R2, self.unclear);
        w.bind(sound);
        self.rules.note(w, Facts::PORTS.and(Facts::UDP));
        w.jump(parts.done);
    }
}
