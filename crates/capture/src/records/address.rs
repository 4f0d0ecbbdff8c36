//! Where flow records are received: `ipfix://:4739`.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

/// The schemes, and the ports that are meant if none is given (IANA; Cisco's custom; sflow.org).
const SCHEMES: [(&str, u16); 3] = [("ipfix", 4739), ("netflow", 2055), ("sflow", 6343)];

/// Whether this is meant to be such an address, right or wrong.
pub fn is_record_address(text: &str) -> bool {
    SCHEMES
        .iter()
        .any(|(scheme, _)| text.strip_prefix(scheme).is_some_and(|rest| rest.starts_with("://")))
}

/// A socket address to receive at. The scheme only says which port is meant if there is none: every
/// datagram says by which protocol it is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecordAddress {
    /// As the user wrote it.
    pub text: String,
    /// The address: `[::]` for all of both families.
    pub socket: SocketAddr,
}

impl FromStr for RecordAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<RecordAddress, String> {
        let wrong = || {
            format!(
                "{text}: expected `ipfix://ADDRESS:PORT`, `netflow://…` or `sflow://…`, where the \
                 address is an IP address of this machine, or nothing for all; such as \
                 `ipfix://:4739` or `sflow://[2001:db8::1]:6343`"
            )
        };
        let (scheme, rest) = text.split_once("://").ok_or_else(wrong)?;
        let (_, default) = SCHEMES.iter().find(|(known, _)| *known == scheme).ok_or_else(wrong)?;
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let (host, port) = match rest.rsplit_once(':') {
            // The colon is one of an address of IPv6.
            Some((_, after)) if after.ends_with(']') => (rest, None),
            Some((host, port)) => (host, Some(port)),
            None => (rest, None),
        };
        let port = port.map_or(Ok(*default), |port| port.parse().map_err(|_| wrong()))?;
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let ip: IpAddr = match (host, bare) {
            ("", _) => Ipv6Addr::UNSPECIFIED.into(),
            (_, Some(six)) => six.parse::<Ipv6Addr>().map_err(|_| wrong())?.into(),
            (host, None) => host.parse::<std::net::Ipv4Addr>().map_err(|_| wrong())?.into(),
        };
        Ok(RecordAddress { text: text.to_owned(), socket: SocketAddr::new(ip, port) })
    }
}

impl fmt::Display for RecordAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read() {
        for (text, expected) in [
            ("ipfix://:4740", "[::]:4740"),
            ("ipfix://", "[::]:4739"),
            ("netflow://", "[::]:2055"),
            ("sflow://192.0.2.1", "192.0.2.1:6343"),
            ("sflow://192.0.2.1:0/", "192.0.2.1:0"),
            ("ipfix://[2001:db8::1]", "[2001:db8::1]:4739"),
            ("ipfix://[2001:db8::1]:65535", "[2001:db8::1]:65535"),
        ] {
            let address: RecordAddress = text.parse().expect(text);
            assert_eq!(address.socket.to_string(), expected, "{text}");
            assert!(is_record_address(text));
        }
        for text in
            ["ipfix://:65536", "ipfix://:x", "ipfix://host:1", "ipfix://2001:db8::1:9", "ipfix://a"]
        {
            assert!(is_record_address(text) && text.parse::<RecordAddress>().is_err(), "{text}");
        }
        for text in ["eth0", "ipfix", "ipfix:", "http://a:1", "any"] {
            assert!(!is_record_address(text), "{text}");
        }
    }
}
