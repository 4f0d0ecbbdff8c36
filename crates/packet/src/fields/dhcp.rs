//! The fields of DHCP messages.

use super::entry::{Entry, int, ip, mac, string, whether};
use super::rows::Rows;
use crate::bits::Bits;
use crate::column::Column;
use crate::dhcp::{self, Dhcp};
use crate::walk::Layer;

/// The rows of the catalogue.
pub(super) const FIELDS: &[Entry] = &[
    whether(
        "dhcp",
        "Whether the packet is a DHCP message of IPv4: UDP of port 67 or 68, with the magic \
         cookie (RFC 2131).",
        |rows| candidates(rows).iter().filter(|&i| message(rows, i).is_some()).collect(),
    ),
    int("dhcp.op", 8, "DHCP operation: 1 from a client, 2 from a server.", |rows, out| {
        rows.some_words(out, candidates(rows), |i| Some(message(rows, i)?.operation().into()))
    }),
    int(
        "dhcp.type",
        8,
        "DHCP message type: 1 discover, 2 offer, 3 request, 4 decline, 5 acknowledgment, 6 \
         refusal, 7 release, 8 inform (RFC 2132).",
        |rows, out| {
            rows.some_words(out, candidates(rows), |i| {
                match message(rows, i)?.option(dhcp::MESSAGE_TYPE)? {
                    &[kind] => Some(kind.into()),
                    _ => None,
                }
            })
        },
    ),
    int(
        "dhcp.xid",
        32,
        "DHCP transaction identifier, the same in all messages of one exchange.",
        |rows, out| {
            rows.some_words(out, candidates(rows), |i| Some(message(rows, i)?.xid().into()))
        },
    ),
    mac(
        "dhcp.client_mac",
        "Hardware address of the DHCP client, where it is one of Ethernet.",
        |rows, out| {
            rows.some_words(out, candidates(rows), |i| {
                let &[a, b, c, d, e, f] = message(rows, i)?.client_mac()?;
                Some(u64::from_be_bytes([0, 0, a, b, c, d, e, f]))
            })
        },
    ),
    ip("dhcp.client_ip", "Address that the DHCP client has; 0.0.0.0 if none.", |rows, out| {
        rows.some_v4(out, candidates(rows), |i| Some(message(rows, i)?.client_ip()))
    }),
    ip(
        "dhcp.your_ip",
        "Address that the DHCP server gives; 0.0.0.0 in messages of clients.",
        |rows, out| rows.some_v4(out, candidates(rows), |i| Some(message(rows, i)?.your_ip())),
    ),
    ip("dhcp.requested_ip", "Address that the DHCP client asks for (option 50).", |rows, out| {
        address(rows, out, dhcp::REQUESTED_IP)
    }),
    ip("dhcp.server_id", "Address of the DHCP server that is meant (option 54).", |rows, out| {
        address(rows, out, dhcp::SERVER_ID)
    }),
    string("dhcp.hostname", "Name of the DHCP client as sent (option 12)."),
];

/// Reads the names of clients.
pub(crate) fn host_names(rows: &Rows<'_>, out: &mut Column, put: &mut impl FnMut(&[u8]) -> u64) {
    rows.texts(out, candidates(rows), put, |i, text| {
        text.write_bytes(message(rows, i).and_then(|dhcp| dhcp.option(dhcp::HOST_NAME)))
    });
}

/// Reads an address that an option holds.
fn address(rows: &Rows<'_>, out: &mut Column, option: u8) {
    rows.some_v4(out, candidates(rows), |i| {
        let bytes = <[u8; 4]>::try_from(message(rows, i)?.option(option)?).ok()?;
        Some(u32::from_be_bytes(bytes))
    });
}

/// The rows whose ports are those of DHCP.
fn candidates(rows: &Rows<'_>) -> Bits {
    rows.on_ports(Layer::Udp, &dhcp::PORTS)
}

fn message<'a>(rows: &Rows<'a>, i: usize) -> Option<Dhcp<'a>> {
    Dhcp::new(rows.udp_payload(i))
}
