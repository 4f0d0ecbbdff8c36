//! The fields of ARP. Both hardware addresses have two bytes or more after them.

use super::entry::{Entry, int, ip, mac, whether};
use crate::arp;
use crate::walk::Layer;

/// The rows of the catalogue.
pub(super) const FIELDS: &[Entry] = &[
    whether("arp", "Whether the packet is ARP for IPv4 over Ethernet (RFC 826).", |rows| {
        rows.has(Layer::Arp)
    }),
    int("arp.op", 16, "ARP operation: 1 request, 2 reply.", |rows, out| {
        rows.words(out, rows.has(Layer::Arp), |i| rows.be16(i, rows.l3(i) + arp::OPERATION))
    }),
    mac("arp.sender_mac", "ARP sender hardware address.", |rows, out| {
        rows.words(out, rows.has(Layer::Arp), |i| rows.mac(i, rows.l3(i) + arp::SENDER_MAC))
    }),
    ip("arp.sender_ip", "ARP sender protocol address.", |rows, out| {
        rows.v4_pairs(out, rows.has(Layer::Arp), |i| rows.be32(i, rows.l3(i) + arp::SENDER_IP))
    }),
    mac("arp.target_mac", "ARP target hardware address.", |rows, out| {
        rows.words(out, rows.has(Layer::Arp), |i| rows.mac(i, rows.l3(i) + arp::TARGET_MAC))
    }),
    ip("arp.target_ip", "ARP target protocol address.", |rows, out| {
        rows.v4_pairs(out, rows.has(Layer::Arp), |i| rows.be32(i, rows.l3(i) + arp::TARGET_IP))
    }),
];
