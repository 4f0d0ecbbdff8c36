//! The fields of TCP options and of the protocols above the transport.
//!
//! Nothing of them is looked for unless a query asks.

use super::{ALWAYS, Field, FieldType, Item, SOMETIMES, field};

/// The end of the catalogue.
#[rustfmt::skip]
pub(super) const FIELDS: &[Field] = &[
    field("tcp.mss", FieldType::Int, Item::TcpMss, 16, SOMETIMES,
        "TCP option: the largest segment that the sender takes, in bytes (RFC 9293)."),
    field("tcp.wscale", FieldType::Int, Item::TcpWscale, 8, SOMETIMES,
        "TCP option: by how many bits the sender's windows are shifted (RFC 7323)."),
    field("tcp.sack_permitted", FieldType::Bool, Item::TcpSackPermitted, 0, SOMETIMES,
        "Whether the TCP options permit selective acknowledgments (RFC 2018)."),
    field("tcp.sack_blocks", FieldType::Int, Item::TcpSackBlocks, 8, SOMETIMES,
        "How many blocks the TCP options acknowledge selectively; 0 without any (RFC 2018)."),
    field("tcp.sack_left", FieldType::Int, Item::TcpSackLeft, 32, SOMETIMES,
        "First sequence number of the first block acknowledged selectively."),
    field("tcp.sack_right", FieldType::Int, Item::TcpSackRight, 32, SOMETIMES,
        "Sequence number behind the first block acknowledged selectively."),
    field("tcp.tsval", FieldType::Int, Item::TcpTsval, 32, SOMETIMES,
        "TCP option: the sender's timestamp, in units of its own (RFC 7323)."),
    field("tcp.tsecr", FieldType::Int, Item::TcpTsecr, 32, SOMETIMES,
        "TCP option: the timestamp that the sender echoes; 0 without the ACK flag (RFC 7323)."),
    field("dns", FieldType::Bool, Item::Dns, 0, ALWAYS,
        "Whether the packet has a DNS header: UDP from or to port 53, 5353 (mDNS) or 5355 \
         (LLMNR), or a whole message in one TCP segment of port 53 (RFC 1035)."),
    field("dns.id", FieldType::Int, Item::DnsId, 16, SOMETIMES,
        "DNS message identifier."),
    field("dns.qr", FieldType::Bool, Item::DnsQr, 0, SOMETIMES,
        "Whether the DNS message is a response."),
    field("dns.opcode", FieldType::Int, Item::DnsOpcode, 4, SOMETIMES,
        "DNS operation: 0 query, 4 notify, 5 update."),
    field("dns.aa", FieldType::Bool, Item::DnsAa, 0, SOMETIMES,
        "DNS flag: the answer is authoritative."),
    field("dns.tc", FieldType::Bool, Item::DnsTc, 0, SOMETIMES,
        "DNS flag: the message is truncated."),
    field("dns.rd", FieldType::Bool, Item::DnsRd, 0, SOMETIMES,
        "DNS flag: recursion is desired."),
    field("dns.ra", FieldType::Bool, Item::DnsRa, 0, SOMETIMES,
        "DNS flag: recursion is available."),
    field("dns.rcode", FieldType::Int, Item::DnsRcode, 4, SOMETIMES,
        "DNS response code of the header: 0 no error, 2 server failure, 3 no such name, 5 \
         refused; queries have 0."),
    field("dns.qname", FieldType::Str, Item::DnsQname, 0, SOMETIMES,
        "Name of the first question, in lower case, without the dot at its end; the root is \
         `.`. A dot or backslash in a label is behind a backslash, other bytes than printable \
         ASCII are `\\DDD` in decimal."),
    field("dns.qtype", FieldType::Int, Item::DnsQtype, 16, SOMETIMES,
        "Type of the first question: 1 A, 5 CNAME, 12 PTR, 15 MX, 16 TXT, 28 AAAA, 65 HTTPS."),
    field("dns.qclass", FieldType::Int, Item::DnsQclass, 16, SOMETIMES,
        "Class of the first question as sent: 1 Internet; in mDNS the highest bit asks for a \
         unicast answer."),
    field("dns.qdcount", FieldType::Int, Item::DnsQdcount, 16, SOMETIMES,
        "Number of questions that the DNS header tells."),
    field("dns.ancount", FieldType::Int, Item::DnsAncount, 16, SOMETIMES,
        "Number of answers that the DNS header tells."),
    field("dns.nscount", FieldType::Int, Item::DnsNscount, 16, SOMETIMES,
        "Number of authority records that the DNS header tells."),
    field("dns.arcount", FieldType::Int, Item::DnsArcount, 16, SOMETIMES,
        "Number of additional records that the DNS header tells."),
    field("dns.addr", FieldType::Ip, Item::DnsAddr, 0, SOMETIMES,
        "The first address among the answers (A or AAAA), also behind a CNAME."),
    field("dns.ttl", FieldType::Int, Item::DnsTtl, 32, SOMETIMES,
        "How long the first answer may be kept, in seconds."),
];
