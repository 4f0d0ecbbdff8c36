//! The data of records, as text.

use super::{A, AAAA, Name, Record};
use crate::text::Text;
use std::fmt::Write;
use std::net::{Ipv4Addr, Ipv6Addr};

const NS: u16 = 2;
const CNAME: u16 = 5;
const SOA: u16 = 6;
const PTR: u16 = 12;
const MX: u16 = 15;
const TXT: u16 = 16;
const SRV: u16 = 33;
const DNAME: u16 = 39;
const CAA: u16 = 257;

impl Record<'_> {
    /// Appends the data as zone files have it (RFC 1035, section 5; names as [`Name::write`] writes
    /// them): of records of the usual types; what is no good or of another type as `\#`, its
    /// length, and hexadecimal digits (RFC 3597, section 5), as far as there is room.
    pub fn write_data(&self, text: &mut Text) {
        let start = text.bytes().len();
        if self.known(text).is_none() {
            text.truncate(start);
            self.unknown(text);
        }
    }

    /// `None` where the data is no good, or does not fit.
    fn known(&self, text: &mut Text) -> Option<()> {
        let data = self.data;
        match self.kind {
            A => put(text, format_args!("{}", Ipv4Addr::from(<[u8; 4]>::try_from(data).ok()?))),
            AAAA => put(text, format_args!("{}", Ipv6Addr::from(<[u8; 16]>::try_from(data).ok()?))),
            NS | CNAME | PTR | DNAME => self.last_name(0, text),
            MX => {
                put(text, format_args!("{} ", self.word(0)?))?;
                self.last_name(2, text)
            }
            SRV => {
                let [priority, weight, port] = [self.word(0)?, self.word(2)?, self.word(4)?];
                put(text, format_args!("{priority} {weight} {port} "))?;
                self.last_name(6, text)
            }
            SOA => {
                let second = self.name(0, text)?;
                put(text, format_args!(" "))?;
                let end = self.name(second, text)?;
                let numbers: &[u8; 20] = data.get(end..)?.try_into().ok()?;
                numbers.as_chunks::<4>().0.iter().try_for_each(|number| {
                    put(text, format_args!(" {}", u32::from_be_bytes(*number)))
                })
            }
            TXT => strings(data, text),
            CAA => {
                let (&flags, rest) = data.split_first()?;
                let (&len, rest) = rest.split_first()?;
                let (tag, value) = rest.split_at_checked(len.into())?;
                let tag = std::str::from_utf8(tag).ok()?;
                if !tag.bytes().all(|b| b.is_ascii_alphanumeric()) {
                    return None;
                }
                put(text, format_args!("{flags} {tag} "))?;
                quoted(value, text)
            }
            _ => None,
        }
    }

    fn unknown(&self, text: &mut Text) {
        let fits = put(text, format_args!("\\# {}", self.data.len())).is_some();
        if fits && !self.data.is_empty() && text.push(b" ") {
            for byte in self.data {
                if put(text, format_args!("{byte:02x}")).is_none() {
                    return;
                }
            }
        }
    }

    /// Two bytes of the data.
    fn word(&self, at: usize) -> Option<u16> {
        let bytes: &[u8; 2] = self.data.get(at..)?.first_chunk()?;
        Some(u16::from_be_bytes(*bytes))
    }

    /// Writes the name at a place of the data; gives where it ends.
    fn name(&self, at: usize, text: &mut Text) -> Option<usize> {
        let name = Name { message: self.name.message, at: self.at + at };
        let end = name.end()?.checked_sub(self.at)?;
        (end <= self.data.len() && name.write(text)).then_some(end)
    }

    /// Writes the name that the data ends in.
    fn last_name(&self, at: usize, text: &mut Text) -> Option<()> {
        (self.name(at, text)? == self.data.len()).then_some(())
    }
}

fn put(text: &mut Text, args: std::fmt::Arguments<'_>) -> Option<()> {
    text.write_fmt(args).ok()
}

/// Character strings, each behind its length.
fn strings(mut data: &[u8], text: &mut Text) -> Option<()> {
    let mut first = true;
    while let Some((&len, rest)) = data.split_first() {
        let (string, rest) = rest.split_at_checked(len.into())?;
        if !first {
            put(text, format_args!(" "))?;
        }
        quoted(string, text)?;
        (data, first) = (rest, false);
    }
    (!first).then_some(())
}

fn quoted(string: &[u8], text: &mut Text) -> Option<()> {
    put(text, format_args!("\""))?;
    for &byte in string {
        match byte {
            b'"' | b'\\' => put(text, format_args!("\\{}", char::from(byte)))?,
            b' '..=b'~' => put(text, format_args!("{}", char::from(byte)))?,
            _ => put(text, format_args!("\\{byte:03}"))?,
        }
    }
    put(text, format_args!("\""))
}

#[cfg(test)]
mod tests {
    use super::super::Dns;
    use super::*;
    use crate::craft::messages::dns_response;

    /// The data of an answer to a question for `a.example`, whose name stands at 12.
    fn check(kind: u16, data: &[u8], expected: &str) {
        let message = dns_response(7, "a.example", kind, 0, &[data]);
        let record = Dns::new(&message).unwrap().answers().next().unwrap();
        let mut text = Text::new();
        record.write_data(&mut text);
        assert_eq!(std::str::from_utf8(text.bytes()).unwrap(), expected, "type {kind}");
    }

    #[test]
    fn data_as_zone_files_have_it() {
        check(A, &[192, 0, 2, 1], "192.0.2.1");
        check(AAAA, &[0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1], "2001:db8::1");
        check(CNAME, b"\x03WWW\xc0\x0c", "www.a.example");
        check(PTR, b"\x00", ".");
        check(MX, b"\x00\x0a\x02mx\xc0\x0e", "10 mx.example");
        check(SRV, b"\x00\x01\x00\x02\x01\xbb\xc0\x0c", "1 2 443 a.example");
        check(TXT, b"\x03a\"b\x01\xff", "\"a\\\"b\" \"\\255\"");
        check(CAA, b"\x00\x05issueca.example", "0 issue \"ca.example\"");
        let soa = [&b"\x02ns\xc0\x0e\x05admin\xc0\x0e"[..], &[0, 0, 0, 1].repeat(5)].concat();
        check(SOA, &soa, "ns.example admin.example 1 1 1 1 1");
    }

    #[test]
    fn what_is_not_known_or_no_good_is_told_in_hex() {
        check(65, &[0, 1, 0], "\\# 3 000100");
        check(A, &[1, 2, 3], "\\# 3 010203");
        check(TXT, &[], "\\# 0");
        check(TXT, &[5, b'a'], "\\# 2 0561");
        check(CNAME, b"\x01a\x00x", "\\# 4 01610078");
        check(CNAME, b"\xc0\xff", "\\# 2 c0ff");
        check(CAA, b"\x00\x01\xff", "\\# 3 0001ff");
    }

    #[test]
    fn long_data_is_cut() {
        let long = vec![7; 2000];
        let message = dns_response(7, "a", 999, 0, &[&long]);
        let record = Dns::new(&message).unwrap().answers().next().unwrap();
        let mut text = Text::new();
        record.write_data(&mut text);
        assert!((1000..=crate::limits::TEXT_MAX).contains(&text.bytes().len()));
        assert!(text.bytes().starts_with(b"\\# 2000 0707"));
    }
}
