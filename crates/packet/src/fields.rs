//! The field catalogue: name, type, meaning and reader of everything a query can ask of a packet.
//!
//! Each protocol has a table in a file of its own, one row per field. The tables together are
//! [`FIELDS`], which the language (names and types), [`crate::read`] (readers) and the
//! documentation (`weir fields`) share.

mod arp;
mod bytes;
pub(crate) mod carried;
mod catalogue;
pub(crate) mod dhcp;
pub(crate) mod dns;
mod ends;
mod entry;
mod ethernet;
mod field;
pub(crate) mod frame;
pub(crate) mod http;
mod icmp;
mod id;
mod igmp;
mod ip;
mod ipsec;
mod key;
mod lldp;
mod mpls;
mod ntp;
pub(crate) mod payload;
mod pppoe;
pub(crate) mod quic;
mod radiotap;
mod records;
pub(crate) mod rows;
mod sctp;
mod tcp;
mod tcp_options;
pub(crate) mod tls;
mod tunnel;
mod udp;
pub(crate) mod vlan;
mod wlan;

pub use bytes::{Header, HeaderBytes};
pub use catalogue::FIELDS;
pub use field::{Field, FieldType};
pub use id::{FieldId, by_name, record_field_by_name};
pub use key::{FlowKey, KEYS, Key, KeyPart, key_by_name};
pub use records::RECORD_FIELDS;

pub(crate) use catalogue::READERS;
pub(crate) use entry::Reader;
pub(crate) use records::record_texts;
