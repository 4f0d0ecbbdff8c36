//! Messages of the protocols above the transport, as payloads of a [`super::Frame`].

use crate::{dhcp, tls};

/// A DNS query for one name, of class Internet, that asks for recursion.
pub fn dns_query(id: u16, name: &str, kind: u16) -> Vec<u8> {
    dns(id, 0x0100, name, kind, &[])
}

/// The response to such a query: answers of that name and type, which may be kept 300 seconds.
pub fn dns_response(id: u16, name: &str, kind: u16, rcode: u8, answers: &[&[u8]]) -> Vec<u8> {
    dns(id, 0x8180 | u16::from(rcode), name, kind, answers)
}

/// The same message in a TCP segment: behind its length.
pub fn dns_in_tcp(message: &[u8]) -> Vec<u8> {
    [&(message.len() as u16).to_be_bytes()[..], message].concat()
}

fn dns(id: u16, flags: u16, name: &str, kind: u16, answers: &[&[u8]]) -> Vec<u8> {
    let mut message: Vec<u8> =
        [id, flags, 1, answers.len() as u16, 0, 0].map(u16::to_be_bytes).concat();
    for label in name.split('.').filter(|label| !label.is_empty()) {
        message.push(label.len() as u8);
        message.extend(label.as_bytes());
    }
    message.push(0);
    message.extend([kind, 1].map(u16::to_be_bytes).concat());
    for data in answers {
        // The name is that of the question, right behind the header.
        message.extend([0xc00c, kind, 1].map(u16::to_be_bytes).concat());
        message.extend(300u32.to_be_bytes());
        message.extend((data.len() as u16).to_be_bytes());
        message.extend(*data);
    }
    message
}

/// A TLS ClientHello in one record: the name of the server, the protocols and the versions that it
/// takes, in extensions of that order.
pub fn client_hello(server: &str, protocols: &[&str], versions: &[u16]) -> Vec<u8> {
    client_hello_with(server, protocols, versions, &[])
}

/// The bytes of one TLS record of a handshake, in records of at most `size` bytes each.
pub fn in_records(record: &[u8], size: usize) -> Vec<u8> {
    let message = &record[tls::HEADER_LEN..];
    message.chunks(size).flat_map(|part| [&record[..3], &long(part)].concat()).collect()
}

/// The same with further extensions, of these types and data, before those.
pub fn client_hello_with(
    server: &str,
    protocols: &[&str],
    versions: &[u16],
    more: &[(u16, &[u8])],
) -> Vec<u8> {
    let name = [&[0][..], &long(server.as_bytes())].concat();
    let protocols: Vec<u8> = protocols.iter().flat_map(|p| short(p.as_bytes())).collect();
    let versions: Vec<u8> = versions.iter().flat_map(|v| v.to_be_bytes()).collect();
    let more = more.iter().flat_map(|(kind, data)| extension(*kind, data)).collect();
    let extensions = [
        more,
        extension(tls::SERVER_NAME, &long(&name)),
        extension(tls::ALPN, &long(&protocols)),
        extension(tls::SUPPORTED_VERSIONS, &short(&versions)),
    ];
    // TLS 1.2, 32 random bytes, no session, one cipher, no compression.
    let body = [
        &[3, 3][..],
        &[7; 32],
        &short(&[]),
        &long(&[0x13, 0x01]),
        &short(&[0]),
        &long(&extensions.concat()),
    ]
    .concat();
    let message = [&[tls::CLIENT_HELLO, 0][..], &long(&body)].concat();
    [&[tls::HANDSHAKE, 3, 1][..], &long(&message)].concat()
}

fn extension(kind: u16, data: &[u8]) -> Vec<u8> {
    [&kind.to_be_bytes()[..], &long(data)].concat()
}

/// Bytes behind their number in one byte.
fn short(bytes: &[u8]) -> Vec<u8> {
    [&[bytes.len() as u8][..], bytes].concat()
}

/// Bytes behind their number in two bytes.
fn long(bytes: &[u8]) -> Vec<u8> {
    [&(bytes.len() as u16).to_be_bytes()[..], bytes].concat()
}

/// A DHCP message: its operation, the client's hardware address, the address that it is given, and
/// options, to which the end is added.
pub fn dhcp(
    operation: u8,
    xid: u32,
    mac: [u8; 6],
    given: [u8; 4],
    options: &[(u8, &[u8])],
) -> Vec<u8> {
    let mut message = vec![0; dhcp::HEADER_LEN];
    message[..4].copy_from_slice(&[operation, 1, 6, 0]);
    message[dhcp::XID..][..4].copy_from_slice(&xid.to_be_bytes());
    message[dhcp::YOUR_IP..][..4].copy_from_slice(&given);
    message[dhcp::CLIENT_MAC..][..6].copy_from_slice(&mac);
    message[dhcp::COOKIE..].copy_from_slice(&dhcp::MAGIC);
    for (kind, value) in options {
        message.push(*kind);
        message.extend(short(value));
    }
    message.push(255);
    message
}
