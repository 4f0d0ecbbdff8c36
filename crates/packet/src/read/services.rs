//! Readers of DHCP and NTP, by port.

use super::rows::Rows;
use crate::bits::Bits;
use crate::column::Column;
use crate::dhcp::{self, Dhcp};
use crate::fields::Item;
use crate::ntp::{self, Ntp};
use crate::udp::Udp;
use crate::walk::Layer;

/// Reads `item` if it is one of these fields; returns whether it is.
pub(super) fn read(rows: &Rows<'_>, item: Item, out: &mut Column) -> bool {
    read_dhcp(rows, item, out) || read_ntp(rows, item, out)
}

/// Reads `item` if it is a text of these; returns whether it is.
pub(super) fn read_text(
    rows: &Rows<'_>,
    item: Item,
    out: &mut Column,
    put: &mut impl FnMut(&[u8]) -> u64,
) -> bool {
    if item != Item::DhcpHostname {
        return false;
    }
    rows.texts(out, on(rows, &dhcp::PORTS), put, |i, text| {
        let name = dhcp(rows, i).and_then(|dhcp| dhcp.option(dhcp::HOST_NAME));
        name.map(|name| text.push_escaped(name)).is_some()
    })
}

fn read_dhcp(rows: &Rows<'_>, item: Item, out: &mut Column) -> bool {
    let maybe = on(rows, &dhcp::PORTS);
    let dhcp = |i: usize| dhcp(rows, i);
    let address = |i: usize, option: u8| {
        let bytes = <[u8; 4]>::try_from(dhcp(i)?.option(option)?).ok()?;
        Some(u32::from_be_bytes(bytes))
    };
    match item {
        Item::Dhcp => {
            let has = maybe.iter().filter(|&i| dhcp(i).is_some()).collect();
            rows.truth(out, Bits::ALL, has)
        }
        Item::DhcpOp => rows.some_words(out, maybe, |i| Some(dhcp(i)?.operation().into())),
        Item::DhcpType => {
            rows.some_words(out, maybe, |i| match dhcp(i)?.option(dhcp::MESSAGE_TYPE)? {
                &[kind] => Some(kind.into()),
                _ => None,
            })
        }
        Item::DhcpXid => rows.some_words(out, maybe, |i| Some(dhcp(i)?.xid().into())),
        Item::DhcpClientMac => rows.some_words(out, maybe, |i| {
            let &[a, b, c, d, e, f] = dhcp(i)?.client_mac()?;
            Some(u64::from_be_bytes([0, 0, a, b, c, d, e, f]))
        }),
        Item::DhcpClientIp => rows.some_v4(out, maybe, |i| Some(dhcp(i)?.client_ip())),
        Item::DhcpYourIp => rows.some_v4(out, maybe, |i| Some(dhcp(i)?.your_ip())),
        Item::DhcpRequestedIp => rows.some_v4(out, maybe, |i| address(i, dhcp::REQUESTED_IP)),
        Item::DhcpServerId => rows.some_v4(out, maybe, |i| address(i, dhcp::SERVER_ID)),
        _ => false,
    }
}

fn read_ntp(rows: &Rows<'_>, item: Item, out: &mut Column) -> bool {
    let maybe = on(rows, &[ntp::PORT]);
    let ntp = |i: usize| Ntp::new(payload(rows, i));
    match item {
        Item::Ntp => {
            let has = maybe.iter().filter(|&i| ntp(i).is_some()).collect();
            rows.truth(out, Bits::ALL, has)
        }
        Item::NtpVersion => rows.some_words(out, maybe, |i| Some(ntp(i)?.version().into())),
        Item::NtpMode => rows.some_words(out, maybe, |i| Some(ntp(i)?.mode().into())),
        Item::NtpLeap => rows.some_words(out, maybe, |i| Some(ntp(i)?.leap()?.into())),
        Item::NtpStratum => rows.some_words(out, maybe, |i| Some(ntp(i)?.stratum()?.into())),
        Item::NtpRefid => rows.some_words(out, maybe, |i| Some(ntp(i)?.reference_id()?.into())),
        Item::NtpTransmit => rows.some_words(out, maybe, |i| Some(ntp(i)?.transmit_ns()? as u64)),
        _ => false,
    }
}

/// The UDP rows with one of these ports.
fn on(rows: &Rows<'_>, ports: &[u16]) -> Bits {
    rows.on_ports(Layer::Udp, ports)
}

fn dhcp<'a>(rows: &Rows<'a>, i: usize) -> Option<Dhcp<'a>> {
    Dhcp::new(payload(rows, i))
}

fn payload<'a>(rows: &Rows<'a>, i: usize) -> &'a [u8] {
    Udp::new(rows.body(i)).map_or(&[], |udp| udp.payload())
}
