//! The tables of all protocols as one catalogue.

use super::entry::{Entry, Reader};
use super::field::Field;
use super::{
    arp, dhcp, dns, ends, ethernet, frame, http, icmp, igmp, ip, ipsec, lldp, mpls, ntp, payload,
    pppoe, quic, radiotap, sctp, tcp, tcp_options, tls, tunnel, udp, vlan, wlan,
};

/// The tables, in the order of the catalogue.
const TABLES: [&[Entry]; 26] = [
    frame::FIELDS,
    ethernet::FIELDS,
    vlan::FIELDS,
    mpls::FIELDS,
    pppoe::FIELDS,
    wlan::FIELDS,
    radiotap::FIELDS,
    tunnel::FIELDS,
    arp::FIELDS,
    ip::FIELDS,
    ends::FIELDS,
    tcp::FIELDS,
    udp::FIELDS,
    icmp::FIELDS,
    tcp_options::FIELDS,
    dns::FIELDS,
    tls::FIELDS,
    quic::FIELDS,
    http::FIELDS,
    dhcp::FIELDS,
    ntp::FIELDS,
    sctp::FIELDS,
    igmp::FIELDS,
    ipsec::FIELDS,
    lldp::FIELDS,
    payload::FIELDS,
];

/// How many fields there are.
const COUNT: usize = {
    let (mut count, mut i) = (0, 0);
    while i < TABLES.len() {
        count += TABLES[i].len();
        i += 1;
    }
    count
};

const ENTRIES: [Entry; COUNT] = {
    let mut all = [TABLES[0][0]; COUNT];
    let (mut table, mut start, mut i) = (0, 0, 0);
    while i < COUNT {
        if i - start == TABLES[table].len() {
            (table, start) = (table + 1, i);
        }
        all[i] = TABLES[table][i - start];
        i += 1;
    }
    all
};

/// The catalogue, in the order that `weir fields` prints.
pub static FIELDS: &[Field] = &{
    let mut fields = [ENTRIES[0].field; COUNT];
    let mut i = 0;
    while i < COUNT {
        fields[i] = ENTRIES[i].field;
        i += 1;
    }
    fields
};

/// The reader of each field of [`FIELDS`].
pub(crate) static READERS: [Reader; COUNT] = {
    let mut readers = [ENTRIES[0].reader; COUNT];
    let mut i = 0;
    while i < COUNT {
        readers[i] = ENTRIES[i].reader;
        i += 1;
    }
    readers
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fields::{FieldId, FieldType, KEYS, by_name};
    use std::collections::BTreeSet;

    #[test]
    fn positions_and_names_agree() {
        for (i, f) in FIELDS.iter().enumerate() {
            assert_eq!(by_name(f.name).and_then(FieldId::position), Some(i));
            assert_eq!(FieldId::named(f.name).info().name, f.name);
            assert_eq!(f.ty == FieldType::Int, f.bits > 0, "{}", f.name);
        }
    }

    #[test]
    fn names_are_unique_and_described() {
        let names: BTreeSet<_> =
            FIELDS.iter().map(|f| f.name).chain(KEYS.iter().map(|k| k.name)).collect();
        assert_eq!(names.len(), FIELDS.len() + KEYS.len());
        assert!(FIELDS.iter().all(|f| f.doc.ends_with('.')));
        assert!(KEYS.iter().all(|k| k.doc.ends_with('.')));
    }
}
