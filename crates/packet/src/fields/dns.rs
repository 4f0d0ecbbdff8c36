//! The fields of DNS messages.

use super::entry::{Entry, flag, int, ip, string, whether};
use super::rows::Rows;
use crate::bits::Bits;
use crate::column::Column;
use crate::dns::{self, Dns, PORTS};
use crate::tcp::Tcp;
use crate::udp::Udp;
use crate::walk::Layer;

/// The rows of the catalogue.
pub(super) const FIELDS: &[Entry] = &[
    whether(
        "dns",
        "Whether the packet has a DNS header: UDP from or to port 53, 5353 (mDNS) or 5355 \
         (LLMNR), or a whole message in one TCP segment of port 53 (RFC 1035).",
        |rows| candidates(rows).iter().filter(|&i| message(rows, i).is_some()).collect(),
    ),
    int("dns.id", 16, "DNS message identifier.", |rows, out| {
        each(rows, out, |dns| Some(dns.id().into()))
    }),
    flag("dns.qr", "Whether the DNS message is a response.", |rows, out| {
        one_flag(rows, out, dns::QR)
    }),
    int("dns.opcode", 4, "DNS operation: 0 query, 4 notify, 5 update.", |rows, out| {
        each(rows, out, |dns| Some(dns.opcode().into()))
    }),
    flag("dns.aa", "DNS flag: the answer is authoritative.", |rows, out| {
        one_flag(rows, out, dns::AA)
    }),
    flag("dns.tc", "DNS flag: the message is truncated.", |rows, out| one_flag(rows, out, dns::TC)),
    flag("dns.rd", "DNS flag: recursion is desired.", |rows, out| one_flag(rows, out, dns::RD)),
    flag("dns.ra", "DNS flag: recursion is available.", |rows, out| one_flag(rows, out, dns::RA)),
    int(
        "dns.rcode",
        4,
        "DNS response code of the header: 0 no error, 2 server failure, 3 no such name, 5 \
         refused; queries have 0.",
        |rows, out| each(rows, out, |dns| Some(dns.rcode().into())),
    ),
    string(
        "dns.qname",
        "Name of the first question, in lower case, without the dot at its end; the root is \
         `.`. A dot or backslash in a label follows a backslash, other bytes than printable \
         ASCII are `\\DDD` in decimal. Absent where the name is cut or its pointers never end.",
    ),
    int(
        "dns.qtype",
        16,
        "Type of the first question: 1 A, 5 CNAME, 12 PTR, 15 MX, 16 TXT, 28 AAAA, 65 HTTPS.",
        |rows, out| each(rows, out, |dns| Some(dns.question()?.kind.into())),
    ),
    int(
        "dns.qclass",
        16,
        "Class of the first question as sent: 1 Internet; in mDNS the highest bit asks for a \
         unicast answer.",
        |rows, out| each(rows, out, |dns| Some(dns.question()?.class.into())),
    ),
    int("dns.qdcount", 16, "Number of questions that the DNS header tells.", |rows, out| {
        each(rows, out, |dns| Some(dns.counts()[0].into()))
    }),
    int("dns.ancount", 16, "Number of answers that the DNS header tells.", |rows, out| {
        each(rows, out, |dns| Some(dns.counts()[1].into()))
    }),
    int(
        "dns.nscount",
        16,
        "Number of authority records that the DNS header tells.",
        |rows, out| each(rows, out, |dns| Some(dns.counts()[2].into())),
    ),
    int(
        "dns.arcount",
        16,
        "Number of additional records that the DNS header tells.",
        |rows, out| each(rows, out, |dns| Some(dns.counts()[3].into())),
    ),
    ip(
        "dns.addr",
        "The first address among the answers (A or AAAA), also after a CNAME.",
        |rows, out| {
            let address =
                |i: usize| message(rows, i)?.answers().find_map(|record| record.address());
            rows.some_pairs(out, candidates(rows), address)
        },
    ),
    int("dns.ttl", 32, "How long the first answer may be kept, in seconds.", |rows, out| {
        each(rows, out, |dns| Some(dns.answers().next()?.ttl.into()))
    }),
];

/// Reads the names of first questions.
pub(crate) fn question_names(
    rows: &Rows<'_>,
    out: &mut Column,
    put: &mut impl FnMut(&[u8]) -> u64,
) {
    rows.texts(out, candidates(rows), put, |i, text| {
        let question = message(rows, i).and_then(|dns| dns.question());
        question.is_some_and(|question| question.name.write(text))
    });
}

fn one_flag(rows: &Rows<'_>, out: &mut Column, flag: u16) {
    rows.some_bits(out, candidates(rows), |i| Some(message(rows, i)?.flags() & flag != 0));
}

fn each(rows: &Rows<'_>, out: &mut Column, value: impl Fn(Dns<'_>) -> Option<u64>) {
    rows.some_words(out, candidates(rows), |i| value(message(rows, i)?));
}

/// The rows whose ports are those of DNS.
pub(crate) fn candidates(rows: &Rows<'_>) -> Bits {
    rows.on_ports(Layer::Udp, &PORTS).or(rows.on_ports(Layer::TcpWhole, &PORTS[..1]))
}

/// The message of a candidate.
pub(crate) fn message<'a>(rows: &Rows<'a>, i: usize) -> Option<Dns<'a>> {
    let body = rows.body(i);
    if rows.has(Layer::Udp).has(i) {
        return Dns::new(Udp::new(body).ok()?.payload());
    }
    let tcp = Tcp::new(body).ok()?;
    Dns::in_segment(
        tcp.payload(),
        (rows.packet_end(i) - rows.l4(i)).saturating_sub(tcp.header_len()),
    )
}
