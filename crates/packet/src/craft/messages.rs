//! Messages of the protocols above the transport, as payloads of a [`super::Frame`].

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
