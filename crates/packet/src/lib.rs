//! One frame: its bytes, where its layers start, the field catalogue and its readers.
//!
//! This crate looks at one packet and remembers nothing: no I/O, no state between packets, no
//! clock. Every function over packet bytes is total: any byte string gives an answer, a bad one
//! is counted under a named reason (see [`walk`]) and the layers before the fault stay readable.
//!
//! Work is done a batch at a time ([`limits::BATCH`] frames): [`walk::classify`] says where each
//! layer of each frame starts, [`read::read_field`] decodes just one field for just the wanted rows
//! into a [`column::Column`].

#![deny(unsafe_code)]

pub mod arp;
pub mod bits;
mod checksum;
pub mod column;
pub mod copies;
#[cfg(any(test, feature = "craft"))]
#[path = "tests/craft.rs"]
pub mod craft;
pub mod dhcp;
pub mod dns;
pub mod egress;
pub mod ethernet;
pub mod fields;
pub mod frame_relay;
#[cfg(any(test, fuzzing))]
#[path = "tests/fuzz.rs"]
pub mod fuzz;
pub mod geneve;
pub mod gre;
pub mod gtp;
pub mod hdlc;
mod hellos;
pub mod http;
pub mod icmp;
pub mod igmp;
pub mod interface;
pub mod ipsec;
pub mod ipv4;
pub mod ipv6;
pub mod known;
pub mod limits;
mod link_type;
pub mod llc;
pub mod mpls;
pub mod nflog;
pub mod nsh;
pub mod ntp;
pub mod pcap;
pub mod pcapng;
pub mod pieces;
pub mod port_tag;
pub mod ppi;
pub mod ppp;
pub mod pppoe;
#[allow(unsafe_code)]
pub mod prefetch;
#[allow(unsafe_code)]
mod processor;
pub mod quic;
pub mod radiotap;
pub mod read;
pub mod record;
pub mod repeated;
pub mod rewrite;
pub mod sctp;
pub mod shorten;
pub mod source;
pub mod tcp;
pub mod tcp_options;
pub mod teredo;
pub mod text;
pub mod time;
pub mod tls;
pub mod udp;
pub mod unread;
pub mod vlan;
pub mod vxlan;
pub mod walk;
pub mod wlan;
