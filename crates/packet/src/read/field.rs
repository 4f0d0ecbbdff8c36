//! The readers of fields, by the field's place in the catalogue.

use crate::bits::Bits;
use crate::column::Column;
use crate::fields::rows::Rows;
use crate::fields::{
    FieldId, READERS, Reader, dhcp, dns, frame, http, payload, quic, record_texts, tls,
};
use crate::source::{FrameBatch, LinkType};
use crate::walk::Layers;

/// Decodes a field of the frames `rows`. For these, `out` is present where the packet has the
/// field, and holds its value; its other rows stay as they are. A text is only said to be there.
/// `layers` are what [`crate::walk::classify`] said of `frames`, and `out` stores values as the
/// catalogue says of the field ([`crate::fields::FieldType::repr`]); a column of another form
/// panics.
pub fn read_field(id: FieldId, frames: &FrameBatch, layers: &Layers, rows: Bits, out: &mut Column) {
    if id.info().ty.is_text() {
        return read_field_text(id, frames, layers, rows, out, |_| 0);
    }
    out.present = out.present.minus(rows);
    let rows = Rows::new(frames, layers, rows);
    let of_record = (frames.link == LinkType::FLOW_RECORDS).then(|| id.record_reader()).flatten();
    let of_packet = || id.position().map(|position| READERS[position]);
    match of_record.or_else(of_packet) {
        Some(Reader::Column(read)) => read(&rows, out),
        Some(Reader::Whether(read)) => rows.truth(out, Bits::ALL, read(&rows)),
        Some(Reader::Text) => unreachable!("texts were read before"),
        None => id.bytes().into_iter().for_each(|bytes| payload::read_int(&rows, bytes, out)),
    }
}

/// Decodes a text of the frames `rows`, as [`read_field`] does: `put` takes each, at most
/// [`crate::limits::TEXT_MAX`] bytes, of ASCII unless the field is of bytes, and gives the word
/// that the column holds for it.
pub fn read_field_text(
    id: FieldId,
    frames: &FrameBatch,
    layers: &Layers,
    rows: Bits,
    out: &mut Column,
    mut put: impl FnMut(&[u8]) -> u64,
) {
    out.present = out.present.minus(rows);
    let (rows, put) = (&Rows::new(frames, layers, rows), &mut put);
    if let Some(bytes) = id.bytes() {
        return payload::read_many(rows, bytes, out, put);
    }
    if frames.link == LinkType::FLOW_RECORDS {
        return record_texts(id.info().name, rows, out, put);
    }
    match id.info().name {
        "interface" => frame::interfaces(rows, out, put),
        "direction" => frame::directions(rows, out, put),
        "protocol" => frame::protocols(rows, out, put),
        "dns.qname" => dns::question_names(rows, out, put),
        "tls.sni" => tls::server_names(rows, out, put),
        "tls.alpn" => tls::protocols(rows, out, put),
        "tls.ja4" => tls::fingerprints(rows, out, put),
        "quic.sni" => quic::server_names(rows, out, put),
        "quic.alpn" => quic::protocols(rows, out, put),
        "quic.ja4" => quic::fingerprints(rows, out, put),
        "http.method" => http::methods(rows, out, put),
        "http.uri" => http::targets(rows, out, put),
        "http.host" => http::hosts(rows, out, put),
        "http.user_agent" => http::user_agents(rows, out, put),
        "dhcp.hostname" => dhcp::host_names(rows, out, put),
        "payload" => payload::payloads(rows, out, put),
        name => debug_assert!(id.is_of_records(), "the text {name} has no reader"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::craft::messages::{
        client_hello, client_hello_with, dhcp, dns_in_tcp, dns_query, dns_response, in_records,
    };
    use crate::craft::{Frame, batch};
    use crate::fields::{FIELDS, FieldType, Header, HeaderBytes, by_name};
    use crate::interface::{CapturePoint, Direction, InterfaceNames};
    use crate::quic::initial::tests::standard;
    use crate::source::LinkType;
    use crate::walk::samples::{A, A6, B, B6, samples, upper};
    use crate::walk::{Headers, classify};
    use crate::{arp, ipv4, tcp, time, udp, vlan};
    use std::net::Ipv4Addr;

    /// The fields that a frame has out of those named, as people write them.
    fn show(link: LinkType, captured: &[u8], len: usize, names: &[&str]) -> String {
        show_of(&batch(link, &[(captured.to_vec(), len as u32)]), names)
    }

    fn show_of(frames: &FrameBatch, names: &[&str]) -> String {
        let mut layers = Layers::new();
        classify(frames, &mut layers);
        let mut shown = Vec::new();
        for name in names {
            let id = by_name(name).expect("the field is in the catalogue");
            let field = id.info();
            let (mut column, mut text) = (Column::new(field.ty.repr()), String::new());
            read_field(id, frames, &layers, Bits::ALL, &mut column);
            if field.ty.is_text() {
                read_field_text(id, frames, &layers, Bits::ALL, &mut column, |bytes| {
                    text = match field.ty {
                        FieldType::Bytes => bytes.iter().map(|b| format!("{b:02x}")).collect(),
                        _ => String::from_utf8(bytes.to_vec()).expect("a text is ASCII"),
                    };
                    0
                });
            }
            match column.present.has(0) {
                true if field.ty.is_text() => shown.push(format!("{name}={text}")),
                true => shown.push(format!("{name}={}", value(field.ty, column.raw(0)))),
                false => {}
            }
        }
        shown.join(" ")
    }

    fn value(ty: FieldType, raw: u128) -> String {
        match ty {
            FieldType::Bool => (raw == 1).to_string(),
            FieldType::Str | FieldType::Bytes => unreachable!("a text is not its word"),
            FieldType::Int => raw.to_string(),
            FieldType::Time => time::rfc3339(raw as i64),
            FieldType::Mac => format!("{raw:012x}"),
            FieldType::Ip => weir_base::address::address(raw).to_string(),
        }
    }

    fn check(frame: &Frame, names: &str, expected: &str) {
        let (bytes, names) = (frame.bytes(), names.split(' ').collect::<Vec<_>>());
        assert_eq!(show(frame.link(), &bytes, bytes.len(), &names), expected);
    }

    /// The names of all fields that start with `prefix`.
    fn all(prefix: &str) -> String {
        let names = FIELDS.iter().map(|f| f.name).filter(|name| name.starts_with(prefix));
        names.collect::<Vec<_>>().join(" ")
    }

    /// The value of bytes by their place, as hexadecimal digits; nothing where they are absent.
    fn place(frame: &Frame, captured: usize, header: &str, offset: u16, size: usize) -> String {
        let header = Header::by_name(header).expect("a header");
        let id = FieldId::of_bytes(HeaderBytes::new(header, offset, size).expect("a few bytes"));
        let bytes = frame.bytes();
        let len = bytes.len() as u32;
        let frames = batch(frame.link(), &[(bytes[..captured.min(bytes.len())].to_vec(), len)]);
        let (mut layers, mut shown) = (Layers::new(), String::new());
        classify(&frames, &mut layers);
        let mut column = Column::new(id.info().ty.repr());
        if id.info().ty == FieldType::Int {
            read_field(id, &frames, &layers, Bits::ALL, &mut column);
            if column.present.has(0) {
                shown = format!("{:0w$x}", column.raw(0), w = size * 2);
            }
        } else {
            read_field_text(id, &frames, &layers, Bits::ALL, &mut column, |bytes| {
                shown = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
                0
            });
        }
        shown
    }

    #[test]
    fn protocols_have_names_or_numbers() {
        let show = |link, bytes: &[u8]| show(link, bytes, bytes.len(), &["protocol"]);
        let ethernet = |frame: Frame| show(LinkType::ETHERNET, &frame.bytes());
        let v4 = || Frame::ethernet().ipv4([10, 0, 0, 1], [10, 0, 0, 2]);
        let six = |n: u128| std::net::Ipv6Addr::from_bits(n);
        let arp = || Frame::ethernet().arp(1, ([2; 6], [10; 4].into()), ([0; 6], [10; 4].into()));
        assert_eq!(ethernet(v4().tcp(1, 2)), "protocol=tcp");
        assert_eq!(ethernet(v4().udp(1, 2).fragment(8, false)), "protocol=udp");
        assert_eq!(
            ethernet(Frame::ethernet().ipv6(six(1), six(2)).icmp6(128, 0)),
            "protocol=icmp6"
        );
        assert_eq!(ethernet(arp()), "protocol=arp");
        let in_ip = |number: u8| {
            let mut bytes = v4().udp(1, 2).bytes();
            bytes[14 + crate::ipv4::PROTOCOL] = number;
            show(LinkType::ETHERNET, &bytes)
        };
        assert_eq!(
            [in_ip(0), in_ip(89), in_ip(255)].join(" "),
            "protocol=ip 0 protocol=ospf protocol=ip 255"
        );
        let of_type = |number: u16| {
            let mut bytes = arp().bytes();
            bytes[12..14].copy_from_slice(&number.to_be_bytes());
            show(LinkType::ETHERNET, &bytes)
        };
        for (number, name) in
            [(0x88cc, "lldp"), (0x9001, "type 0x9001"), (0xffff, "type 0xffff"), (38, "llc")]
        {
            assert_eq!(of_type(number), format!("protocol={name}"));
        }
        // No header says it.
        assert_eq!(show(LinkType(147), &[0; 20]), "");
        assert_eq!(show(LinkType::ETHERNET, &v4().tcp(1, 2).bytes()[..10]), "");
    }

    #[test]
    fn who_brought_a_frame() {
        let names = InterfaceNames::default();
        let eth0 = names.number("eth0");
        let show = |link, bytes: &[u8], point: Option<CapturePoint>| {
            let mut frames = batch(link, &[(bytes.to_vec(), bytes.len() as u32)]);
            point.into_iter().for_each(|point| frames.set_capture_point(0, point, &names));
            show_of(&frames, &["interface", "direction"])
        };
        let ethernet = |point| show(LinkType::ETHERNET, &[0; 60], point);
        assert_eq!(ethernet(None), "");
        assert_eq!(ethernet(Some(CapturePoint::new(eth0, None))), "interface=eth0");
        assert_eq!(
            ethernet(Some(CapturePoint::new(eth0, Some(Direction::In)))),
            "interface=eth0 direction=in"
        );
        assert_eq!(
            ethernet(Some(CapturePoint::new(Some(7), Some(Direction::Out)))),
            "direction=out"
        );
        // Cooked headers say it themselves, if nobody else does.
        let outgoing = [&[0, 4][..], &[0; 14]].concat();
        assert_eq!(show(LinkType::LINUX_SLL, &outgoing, None), "direction=out");
        assert_eq!(show(LinkType::LINUX_SLL, &[0; 16], None), "direction=in");
        let outgoing = [&[0; 10][..], &[4], &[0; 9]].concat();
        assert_eq!(show(LinkType::LINUX_SLL2, &outgoing, None), "direction=out");
        let told = Some(CapturePoint::new(eth0, Some(Direction::In)));
        assert_eq!(show(LinkType::LINUX_SLL2, &outgoing, told), "interface=eth0 direction=in");
        assert_eq!(show(LinkType::LINUX_SLL2, &outgoing[..10], None), "");
    }

    #[test]
    fn bytes_by_their_place() {
        let tcp = Frame::ethernet().vlan(3).ipv4(A, B).options(&[1; 4]).tcp(0x1234, 80);
        let tcp = tcp.payload(b"GET / HTTP/1.1\r\n");
        let at = |header, offset, size| place(&tcp, usize::MAX, header, offset, size);
        assert_eq!(at("frame", 12, 6), "810000030800");
        assert_eq!(at("eth", 12, 2), "8100");
        assert_eq!(at("ip", 0, 1), "46");
        assert_eq!(at("ip", 12, 8), "0a0000010a000002");
        assert_eq!(at("tcp", 0, 4), "12340050");
        assert_eq!(at("transport", 2, 2), "0050");
        assert_eq!(at("payload", 0, 4), "47455420");
        assert_eq!(at("payload", 0, 7), "474554202f2048");
        assert_eq!(at("payload", 14, 2), "0d0a");
        assert_eq!(at("payload", 14, 3), "");
        assert_eq!(at("payload", u16::MAX, 1), "");
        for header in ["udp", "icmp", "icmp6", "arp"] {
            assert_eq!(at(header, 0, 1), "", "{header}");
        }
        // Bytes that are not captured are absent, and so are bytes after the packet.
        assert_eq!(place(&tcp, 46, "tcp", 2, 2), "0050");
        assert_eq!(place(&tcp, 45, "tcp", 2, 2), "");
        assert_eq!(place(&tcp, 50, "payload", 0, 1), "");
        let padded = Frame::ethernet().ipv6(A6, B6).udp(7, 9).payload(b"ab").bytes();
        let padded = Frame::of(LinkType::ETHERNET, &[&padded[..], &[9; 20]].concat());
        assert_eq!(place(&padded, usize::MAX, "payload", 0, 2), "6162");
        assert_eq!(place(&padded, usize::MAX, "payload", 1, 2), "");
        assert_eq!(place(&padded, usize::MAX, "ip", 49, 1), "62");
        assert_eq!(place(&padded, usize::MAX, "ip", 50, 1), "");
        // Any protocol over IP, but no later fragment.
        let other = Frame::ethernet().ipv4(A, B).header(89, &[2, 1]);
        assert_eq!(place(&other, usize::MAX, "transport", 0, 2), "0201");
        let later = Frame::ethernet().ipv4(A, B).fragment(800, false).payload(&[1; 30]);
        assert_eq!(place(&later, usize::MAX, "transport", 0, 1), "");
    }

    #[test]
    fn the_frame_itself() {
        check(
            &Frame::ethernet().ipv4(A, B).udp(1, 2),
            "ts number len caplen linktype malformed cut eth vlan arp ip ipv4 ipv6 tcp udp",
            "ts=2023-11-14T22:13:20Z number=1 len=42 caplen=42 linktype=1 malformed=false \
             cut=false eth=true vlan=false arp=false ip=true ipv4=true ipv6=false tcp=false \
             udp=true",
        );
    }

    #[test]
    fn link_fields() {
        let frame = Frame::ethernet()
            .mac([2, 0, 0, 0, 0, 9], [2, 0, 0, 0, 0, 3])
            .tag(vlan::SERVICE, 0xb064)
            .vlan(7);
        let names = format!("{} {} {}", all("eth."), all("link."), all("vlan."));
        let mac = "eth.src=020000000009 eth.dst=020000000003";
        let link = "link.a=020000000003 link.b=020000000009";
        check(
            &frame.clone().ipv6(A6, B6).udp(1, 2),
            &names,
            &format!(
                "{mac} eth.type=34525 {link} vlan.id=100 vlan.pcp=5 vlan.dei=true vlan.inner=7 \
                 vlan.depth=2"
            ),
        );
        check(
            &Frame::ethernet().put(12, &[0, 38]).payload(&[0; 38]),
            "eth.type vlan.id vlan.depth",
            "vlan.depth=0",
        );
        check(&Frame::cooked().vlan(9).ipv4(A, B), "eth.type vlan.id", "eth.type=2048 vlan.id=9");
        check(&Frame::cooked2().ipv4(A, B).udp(1, 2), "eth.type vlan.id", "eth.type=2048");
        check(&Frame::raw().ipv4(A, B).udp(1, 2), &names, "vlan.depth=0");
        let cut = frame.bytes();
        assert_eq!(
            show(LinkType::ETHERNET, &cut[..20], 80, &["eth.type", "vlan.id"]),
            "vlan.id=100"
        );
    }

    #[test]
    fn fields_of_labels_and_sessions() {
        let names = format!("{} {} eth.type vlan.id", all("mpls"), all("pppoe"));
        let labels = [0, 1, 0xda, 64, 0, 2, 0x1d, 63];
        check(
            &Frame::ethernet().vlan(3).header(crate::mpls::UNICAST, &labels).ipv4(A, B).udp(1, 2),
            &names,
            "mpls=true mpls.label=29 mpls.exp=5 mpls.ttl=64 mpls.bottom=33 mpls.depth=2 \
             pppoe=false eth.type=34887 vlan.id=3",
        );
        let session = [0x11, 0, 0, 9, 0, 22, 0, 0x21];
        check(
            &Frame::ethernet().vlan(3).header(crate::pppoe::SESSION, &session).ipv4(A, B),
            &names,
            "mpls=false mpls.depth=0 pppoe=true pppoe.code=0 pppoe.session=9 eth.type=34916 \
             vlan.id=3",
        );
        let etag = [0, 0, 0, 0, 0, 0, 0x81, 0, 0xa0, 7, 8, 0];
        check(
            &Frame::ethernet().header(crate::port_tag::ETAG, &etag).ipv4(A, B),
            "eth.type vlan.id vlan.pcp ip.src",
            "eth.type=2048 vlan.id=7 vlan.pcp=5 ip.src=10.0.0.1",
        );
    }

    #[test]
    fn tunnel_fields() {
        let frame =
            Frame::ethernet().vlan(7).ipv4(A, B).udp(9, 4789).header(0, &[8, 0, 0, 0, 0, 0, 1, 0]);
        let inner = Frame::ethernet().vlan(5).ipv6(A6, B6).tcp(3, 4).bytes();
        let bytes = frame.payload(&inner).bytes();
        let names = format!("{} ip.src sport udp tcp vlan.id vlan.depth eth.type", all("tunnel"));
        let names: Vec<&str> = names.split(' ').collect();
        let shown = |headers| {
            let mut frames = batch(LinkType::ETHERNET, &[(bytes.clone(), bytes.len() as u32)]);
            frames.headers = headers;
            show_of(&frames, &names)
        };
        assert_eq!(
            shown(Headers::OUTER),
            "tunnel=false tunnel.depth=0 ip.src=10.0.0.1 sport=9 udp=true tcp=false vlan.id=7 \
             vlan.depth=1 eth.type=2048"
        );
        assert_eq!(
            shown(Headers::INNER),
            "tunnel=true tunnel.depth=1 tunnel.id=1 tunnel.src=10.0.0.1 tunnel.dst=10.0.0.2 \
             ip.src=2001:db8::1 sport=3 udp=false tcp=true vlan.id=7 vlan.depth=1 eth.type=2048"
        );
    }

    /// The innermost tunnel that has an identifier counts; one that holds no packet has none.
    #[test]
    fn tunnels_have_identifiers() {
        let id = |frame: &Frame| {
            let bytes = frame.bytes();
            let mut frames = batch(frame.link(), &[(bytes.clone(), bytes.len() as u32)]);
            frames.headers = Headers::INNER;
            show_of(&frames, &["tunnel.depth", "tunnel.id"])
        };
        let inner = Frame::raw().ipv4(A, B).udp(1, 2).bytes();
        let bridged = Frame::ethernet().ipv4(A, B).udp(1, 2).bytes();
        let out = || Frame::ethernet().ipv4(A, B);
        let gre = |header: &[u8], inside: &[u8]| {
            out().put(ipv4::PROTOCOL, &[47]).header(0, header).payload(inside)
        };
        let udp = |port, header: &[u8], inside: &[u8]| {
            out().udp(9, port).header(0, header).payload(inside)
        };
        for (frame, expected) in [
            (gre(&[0x20, 0, 8, 0, 0xff, 0xff, 0xff, 0xff], &inner), Some(u32::MAX)),
            (gre(&[0xa0, 0, 8, 0, 1, 2, 3, 4, 0, 0, 0, 9], &inner), Some(9)),
            (gre(&[0, 0, 8, 0], &inner), None),
            (
                gre(&[0x10, 0, 0x88, 0xbe, 0, 0, 0, 1, 0x10, 0, 0xe7, 0xff, 0, 0, 0, 0], &bridged),
                Some(0x3ff),
            ),
            (udp(4789, &[8, 0, 0, 0, 0xff, 0xff, 0xff, 7], &bridged), Some(0xff_ffff)),
            (udp(6081, &[0, 0, 0x65, 0x58, 0, 0, 9, 0], &bridged), Some(9)),
            (udp(2152, &[0x30, 255, 0, 28, 0, 0, 1, 0], &inner), Some(256)),
        ] {
            let id_shown = expected.map(|id| format!(" tunnel.id={id}")).unwrap_or_default();
            assert_eq!(id(&frame), format!("tunnel.depth=1{id_shown}"), "{frame:?}");
        }
        let plain = gre(&[0, 0, 8, 0], &inner).bytes();
        let nested = udp(4789, &[8, 0, 0, 0, 0, 0, 5, 0], &plain);
        assert_eq!(id(&nested), "tunnel.depth=2 tunnel.id=5");
        assert_eq!(id(&udp(4789, &[8, 0, 0, 0, 0, 0, 5, 0], &[0; 40])), "tunnel.depth=0");
    }

    #[test]
    fn wireless_fields() {
        let radio = [0, 0, 15, 0, 0x2e, 0, 0, 0, 0, 12, 0x6c, 9, 0xa0, 0, 0xc4];
        let to_ds = [8, 0x49, 0, 0, 2, 0, 0, 0, 0, 7, 2, 0, 0, 0, 0, 8, 2, 0, 0, 0, 0, 9, 0, 0];
        let names = format!("{} {}", all("wlan"), all("radiotap"));
        check(
            &Frame::of(LinkType::RADIOTAP, &[&radio[..], &to_ds, &[1; 20]].concat()),
            &names,
            "wlan=true wlan.type=2 wlan.subtype=0 wlan.retry=true wlan.protected=true \
             wlan.ra=020000000007 wlan.ta=020000000008 wlan.da=020000000009 \
             wlan.sa=020000000008 wlan.bssid=020000000007 radiotap=true radiotap.rate=6000 \
             radiotap.freq=2412 radiotap.signal=18446744073709551556",
        );
        check(
            &Frame::of(LinkType::IEEE802_11, &[0xd4, 0, 0, 0, 2, 0, 0, 0, 0, 7]),
            &names,
            "wlan=true wlan.type=1 wlan.subtype=13 wlan.retry=false wlan.protected=false \
             wlan.ra=020000000007 radiotap=false",
        );
    }

    #[test]
    fn arp_fields() {
        let sender = ([2, 0, 0, 0, 0, 1], Ipv4Addr::from(A));
        let target = ([2, 0, 0, 0, 0, 2], Ipv4Addr::from(B));
        check(
            &Frame::ethernet().vlan(1).arp(arp::REPLY, sender, target),
            &all("arp"),
            "arp=true arp.op=2 arp.sender_mac=020000000001 arp.sender_ip=10.0.0.1 \
             arp.target_mac=020000000002 arp.target_ip=10.0.0.2",
        );
    }

    #[test]
    fn ip_fields() {
        let four = Frame::ethernet().ipv4(A, B).put(ipv4::DSCP_ECN, &[0xb9]).id(77).ttl(3);
        check(
            &four.dont_fragment().options(&[1; 8]).tcp(1, 2),
            &format!("{} ipv6.flow_label", all("ip.")),
            "ip.src=10.0.0.1 ip.dst=10.0.0.2 ip.proto=6 ip.version=4 ip.len=48 ip.hdr_len=28 \
             ip.ttl=3 ip.dscp=46 ip.ecn=1 ip.id=77 ip.df=true ip.frag=false ip.frag_offset=0 \
             ip.more_frags=false",
        );
        check(
            &Frame::ethernet().ipv6(A6, B6).flow_label(0xabcde).ttl(9).extension(0, &[]).udp(1, 2),
            &format!("{} ipv6.flow_label", all("ip.")),
            "ip.src=2001:db8::1 ip.dst=2001:db8::2 ip.proto=17 ip.version=6 ip.len=56 \
             ip.hdr_len=48 ip.ttl=9 ip.dscp=0 ip.ecn=0 ip.frag=false ip.frag_offset=0 \
             ip.more_frags=false ipv6.flow_label=703710",
        );
    }

    #[test]
    fn fragment_fields() {
        let names = "ip.proto ip.id ip.frag ip.frag_offset ip.more_frags sport udp udp.len";
        check(
            &Frame::ethernet().ipv4(A, B).id(5).fragment(0, true).udp(1, 2),
            names,
            "ip.proto=17 ip.id=5 ip.frag=true ip.frag_offset=0 ip.more_frags=true sport=1 udp=true \
             udp.len=8",
        );
        check(
            &Frame::ethernet().ipv6(A6, B6).extension(0, &[]).fragment(1448, false).udp(1, 2),
            names,
            "ip.proto=17 ip.id=1 ip.frag=true ip.frag_offset=1448 ip.more_frags=false udp=false",
        );
    }

    #[test]
    fn an_open_length_reaches_to_the_end_of_the_frame() {
        let names = "ip.len tcp.payload_len malformed";
        let open = "ip.len=140 tcp.payload_len=100 malformed=false";
        let four = Frame::raw().ipv4(A, B).put(ipv4::TOTAL_LENGTH, &[0, 0]);
        check(&four.tcp(1, 2).payload(&[0; 100]), names, open);
        let six = Frame::raw().ipv6(A6, B6).put(crate::ipv6::PAYLOAD_LENGTH, &[0, 0]);
        check(
            &six.tcp(1, 2).payload(&[0; 80]),
            names,
            "ip.len=140 tcp.payload_len=80 malformed=false",
        );
    }

    /// Where something around the packet tells a length, what pads the frame is no part of it.
    #[test]
    fn an_open_length_ends_before_padding() {
        let ip = |frame: Frame| frame.ipv4(A, B).put(ipv4::TOTAL_LENGTH, &[0, 0]);
        let open = || ip(Frame::raw()).tcp(1, 2).payload(b"abc").bytes();
        let len = open().len() as u8;
        let names = ["ip.len", "tcp.payload_len", "payload", "malformed"];
        let check = |what: &str, frame: Frame| {
            let bytes = [&frame.payload(&open()).bytes()[..], b"padding"].concat();
            let shown = |kept: usize| {
                let frame = (bytes[..kept].to_vec(), bytes.len() as u32);
                let mut frames = batch(LinkType::ETHERNET, &[frame]);
                frames.headers = Headers::INNER;
                show_of(&frames, &names)
            };
            let lengths = "ip.len=43 tcp.payload_len=3";
            let all = format!("{lengths} payload=616263 malformed=false");
            assert_eq!(shown(bytes.len()), all, "{what}");
            assert_eq!(shown(bytes.len() - 7), all, "{what}");
            // Lengths are those on the wire, whatever was captured.
            let cut = format!("{lengths} payload=61 malformed=false");
            assert_eq!(shown(bytes.len() - 9), cut, "{what}");
        };
        let eth = Frame::ethernet;
        check("802.3", eth().header(u16::from(len) + 8, &[0xaa, 0xaa, 3, 0, 0, 0, 8, 0]));
        let tagged = eth().vlan(7).header(u16::from(len) + 8, &[0xaa, 0xaa, 3, 0, 0, 0, 8, 0]);
        check("802.3 in 802.1Q", tagged);
        let session = [0x11, 0, 0, 9, 0, len + 2, 0, 0x21];
        check("pppoe", eth().header(crate::pppoe::SESSION, &session));
        let carrier = |protocol, more: u8| {
            let total = [0, 20 + more + len];
            eth().ipv4(A, B).put(ipv4::PROTOCOL, &[protocol]).put(ipv4::TOTAL_LENGTH, &total)
        };
        check("ip in ip", carrier(4, 0));
        check("gre", carrier(47, 4).payload(&[0, 0, 8, 0]));
        let udp = |more: u8| ip(eth()).udp(9, 2152).put(udp::LENGTH, &[0, 8 + more + len]);
        check("udp that alone knows", udp(8).payload(&[0x30, 255, 0, len, 0, 0, 0, 1]));
        let gtp = ip(eth()).udp(9, 2152).put(udp::LENGTH, &[0, 0]);
        check("gtp that alone knows", gtp.payload(&[0x30, 255, 0, len, 0, 0, 0, 1]));
    }

    /// A datagram may have a port of GTP and carry something else, which says nothing of its
    /// length.
    #[test]
    fn what_is_not_gtp_ends_where_its_own_headers_do() {
        let inner = Frame::ethernet().ipv4(A, B).udp(1, 2).payload(b"abc").bytes();
        // The number of a group, where GTP has a length.
        let vxlan = [&[0x88, 0, 0, 20, 0, 0, 1, 0], &inner[..]].concat();
        let bytes = Frame::ethernet().ipv4(A, B).udp(2152, 4789).payload(&vxlan).bytes();
        let len = bytes.len() as u32;
        let mut frames = batch(LinkType::ETHERNET, &[(bytes, len)]);
        frames.headers = Headers::INNER;
        let shown = show_of(&frames, &["tunnel", "udp.dport", "payload", "malformed"]);
        assert_eq!(shown, "tunnel=true udp.dport=2 payload=616263 malformed=false");
    }

    /// The length in a header around the packet holds where the packet's own header gives a larger
    /// one.
    #[test]
    fn a_packet_longer_than_what_carries_it_ends_with_that() {
        let session = [0x11, 0, 0, 9, 0, 32, 0, 0x21];
        let ip = Frame::ethernet().header(crate::pppoe::SESSION, &session).ipv4(A, B);
        let udp = ip.put(ipv4::TOTAL_LENGTH, &[0, 37]).udp(1, 2).put(udp::LENGTH, &[0, 17]);
        check(
            &udp.payload(b"ab").payload(b"padding"),
            "ip.len udp.len payload malformed",
            "ip.len=37 udp.len=17 payload=6162 malformed=true",
        );
    }

    #[test]
    fn a_jumbogram_is_as_long_as_its_option_says() {
        let six = Frame::raw().ipv6(A6, B6).put(crate::ipv6::PAYLOAD_LENGTH, &[0, 0]);
        let jumbo = |length: u8| {
            let tcp = six.clone().extension(0, &[0xc2, 4, 0, 0, 0, length]).tcp(1, 2);
            tcp.payload(b"abcpadding")
        };
        let names = "ip.len tcp.payload_len payload malformed";
        let lengths = "ip.len=71 tcp.payload_len=3";
        check(&jumbo(31), names, &format!("{lengths} payload=616263 malformed=false"));
        check(&jumbo(38 + 1), names, "ip.len=78 payload=61626370616464696e67 malformed=true");
    }

    #[test]
    fn tcp_fields() {
        let tcp = Frame::ethernet().ipv4(A, B).tcp(40_000, 443).seq(7).ackno(8).window(9);
        check(
            &tcp.flags(tcp::SYN | tcp::ACK | tcp::NS).options(&[1; 4]).payload(b"abc"),
            &all("tcp").replace("tcp.checksum ", ""),
            "tcp=true tcp.sport=40000 tcp.dport=443 tcp.seq=7 tcp.ackno=8 tcp.hdr_len=24 \
             tcp.flags=274 tcp.fin=false tcp.syn=true tcp.rst=false tcp.psh=false tcp.ack=true \
             tcp.urg=false tcp.ece=false tcp.cwr=false tcp.window=9 tcp.urgent=0 \
             tcp.payload_len=3 tcp.sack_permitted=false tcp.sack_blocks=0",
        );
    }

    #[test]
    fn tcp_option_fields() {
        let names = "tcp.mss tcp.wscale tcp.sack_permitted tcp.sack_blocks tcp.sack_left \
                     tcp.sack_right tcp.tsval tcp.tsecr";
        let tcp = Frame::ethernet().ipv4(A, B).tcp(40_000, 443);
        let syn = [2, 4, 5, 0xb4, 4, 2, 8, 10, 0, 0, 0, 7, 0, 0, 0, 9, 1, 3, 3, 14];
        check(
            &tcp.clone().options(&syn),
            names,
            "tcp.mss=1460 tcp.wscale=14 tcp.sack_permitted=true tcp.sack_blocks=0 tcp.tsval=7 \
             tcp.tsecr=9",
        );
        let blocks = [1, 1, 5, 18, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4];
        check(
            &tcp.clone().options(&blocks),
            names,
            "tcp.sack_permitted=false tcp.sack_blocks=2 tcp.sack_left=1 tcp.sack_right=2",
        );
        // Options after the cut, or after a bad option, are not known.
        let bytes = tcp.clone().options(&syn).bytes();
        let names: Vec<&str> = names.split_whitespace().collect();
        assert_eq!(show(LinkType::ETHERNET, &bytes[..58], bytes.len(), &names), "tcp.mss=1460");
        check(&tcp.options(&[2, 4, 5, 0xb4, 8, 1, 4, 2]), &names.join(" "), "tcp.mss=1460");
    }

    #[test]
    fn dns_fields() {
        let names = all("dns");
        let udp = |sport, dport| Frame::ethernet().ipv4(A, B).udp(sport, dport);
        let query = dns_query(7, "www.Example.ORG", 28);
        let asked = "dns=true dns.id=7 dns.qr=false dns.opcode=0 dns.aa=false dns.tc=false \
                     dns.rd=true dns.ra=false dns.rcode=0 dns.qname=www.example.org dns.qtype=28 \
                     dns.qclass=1 dns.qdcount=1 dns.ancount=0 dns.nscount=0 dns.arcount=0";
        check(&udp(5_000, 53).payload(&query), &names, asked);
        check(&Frame::raw().ipv6(A6, B6).udp(5353, 5353).payload(&query), &names, asked);
        check(&udp(5_000, 54).payload(&query), &names, "dns=false");
        check(&udp(5_000, 53).payload(&query[..11]), &names, "dns=false");
        let tcp = Frame::ethernet().ipv4(A, B).tcp(5_000, 53).payload(&dns_in_tcp(&query));
        check(&tcp, &names, asked);
        check(&tcp.payload(b"behind it"), &names, asked);
        check(
            &udp(53, 5_000).payload(&dns_response(7, "x.example", 1, 0, &[&[192, 0, 2, 9]])),
            "dns.qr dns.ra dns.qname dns.ancount dns.addr dns.ttl",
            "dns.qr=true dns.ra=true dns.qname=x.example dns.ancount=1 dns.addr=192.0.2.9 \
             dns.ttl=300",
        );
        // The header alone was captured.
        let bytes = udp(5_000, 53).payload(&query).bytes();
        assert_eq!(
            show(LinkType::ETHERNET, &bytes[..60], bytes.len(), &["dns.id", "dns.qname", "dns"]),
            "dns.id=7 dns=true"
        );
    }

    #[test]
    fn tls_fields() {
        let tcp = |payload: &[u8]| Frame::ethernet().ipv4(A, B).tcp(5, 443).payload(payload);
        let hello = client_hello("WWW.example.org", &["h2", "http/1.1"], &[0x0304, 0x0303]);
        let names = all("tls");
        check(
            &tcp(&hello),
            &names,
            "tls=true tls.content_type=22 tls.handshake_type=1 tls.version=772 \
             tls.sni=www.example.org tls.alpn=h2,http/1.1 \
             tls.ja4=t13d0103h2_0f2cb44170f4_b9a491fefe05 tls.ech=false",
        );
        // The same over two records, and with an encrypted hello.
        let two = in_records(&hello, 60);
        let shown = "tls=true tls.content_type=22 tls.handshake_type=1 tls.version=772 \
             tls.sni=www.example.org tls.alpn=h2,http/1.1 ";
        let ja4 = "tls.ja4=t13d0103h2_0f2cb44170f4_b9a491fefe05 tls.ech=false";
        check(&tcp(&two), &names, &format!("{shown}{ja4}"));
        // After a change of cipher, which is the first record.
        let changed = [&[20, 3, 3, 0, 1, 1][..], &two].concat();
        let after = shown.replace("content_type=22", "content_type=20");
        check(&tcp(&changed), &names, &format!("{after}{ja4}"));
        let more = [(crate::tls::ENCRYPTED_CLIENT_HELLO, &[0, 0, 1][..])];
        let outer = client_hello_with("www.example.org", &["h2", "http/1.1"], &[0x0304], &more);
        let ja4 = "tls.ja4=t13d0104h2_0f2cb44170f4_19db675bb9c5 tls.ech=true";
        check(&tcp(&outer), &names, &format!("{shown}{ja4}"));
        // It goes on in the next segment.
        check(
            &tcp(&hello[..90]),
            &names,
            "tls=true tls.content_type=22 tls.handshake_type=1 tls.sni=www.example.org",
        );
        check(&tcp(&[23, 3, 3, 0, 9, 1]), &names, "tls=true tls.content_type=23");
        check(&tcp(b"SSH-2.0"), &names, "tls=false");
        check(&Frame::ethernet().ipv4(A, B).udp(5, 443).payload(&hello), &names, "tls=false");
    }

    #[test]
    fn quic_fields() {
        let udp = |payload: &[u8]| Frame::ethernet().ipv4(A, B).udp(5, 4433).payload(payload);
        let (packet, names) = (standard(), all("quic"));
        check(
            &udp(&packet),
            &names,
            "quic=true quic.version=1 quic.type=0 quic.sni=example.com quic.alpn=alpn \
             quic.ja4=q13d0211an_62ed6f6ca7ad_4d634acda6c0 quic.ech=false",
        );
        // Damaged on its way, or of the server: the header says what it is, and nothing more.
        let mut damaged = packet.clone();
        damaged[600] ^= 1;
        check(&udp(&damaged), &names, "quic=true quic.version=1 quic.type=0");
        let versions = [0x80, 0, 0, 0, 0, 1, 9, 1, 8, 0, 0, 0, 1];
        check(&udp(&versions), &names, "quic=true quic.version=0 quic.type=4");
        check(&udp(&packet[..1199]), &names, "quic=true quic.version=1 quic.type=0");
        check(&udp(&packet[..17]), &names, "quic=false");
        // A question of DNS that begins as a negotiation of versions does.
        let question = [0x80, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1];
        check(&udp(&question), &names, "quic=false");
        check(&Frame::ethernet().ipv4(A, B).tcp(5, 443).payload(&packet), &names, "quic=false");
    }

    #[test]
    fn http_fields() {
        let tcp = |payload: &[u8]| Frame::ethernet().ipv4(A, B).tcp(5, 8080).payload(payload);
        let names = all("http");
        let request =
            b"GET /\xe4?a=b HTTP/1.1\r\nHost: Example.ORG:8080\r\nUser-Agent: a b\r\n\r\n";
        check(
            &tcp(request),
            &names,
            "http=true http.method=GET http.uri=/\\xe4?a=b http.host=example.org:8080 \
             http.user_agent=a b",
        );
        check(&tcp(b"HTTP/1.1 404 Not Found\r\n\r\n"), &names, "http=true http.status=404");
        check(&tcp(b"hello"), &names, "http=false");
    }

    #[test]
    fn dhcp_and_ntp_fields() {
        let udp = |sport, dport| Frame::ethernet().ipv4(A, B).udp(sport, dport);
        let options: &[(u8, &[u8])] =
            &[(53, &[3]), (50, &[10, 0, 0, 7]), (54, &[10, 0, 0, 1]), (12, b"printer")];
        let request = dhcp(1, 0xabcd, [2, 0, 0, 0, 0, 7], [0; 4], options);
        check(
            &udp(68, 67).payload(&request),
            &all("dhcp"),
            "dhcp=true dhcp.op=1 dhcp.type=3 dhcp.xid=43981 dhcp.client_mac=020000000007 \
             dhcp.client_ip=0.0.0.0 dhcp.your_ip=0.0.0.0 dhcp.requested_ip=10.0.0.7 \
             dhcp.server_id=10.0.0.1 dhcp.hostname=printer",
        );
        check(&udp(69, 70).payload(&request), &all("dhcp"), "dhcp=false");
        let mut reply = [0; 48];
        (reply[0], reply[1], reply[40]) = (0x24, 1, 0xe8);
        reply[12..16].copy_from_slice(b"GPS\0");
        check(
            &udp(123, 9).payload(&reply),
            &all("ntp"),
            "ntp=true ntp.version=4 ntp.mode=4 ntp.leap=0 ntp.stratum=1 ntp.refid=1196446464 \
             ntp.transmit=2023-05-05T22:21:52Z",
        );
        check(&udp(123, 9).payload(&reply[..47]), &all("ntp"), "ntp=false");
    }

    #[test]
    fn fields_of_what_else_ip_carries() {
        let of = |protocol| Frame::ethernet().ipv4(A, B).put(ipv4::PROTOCOL, &[protocol]);
        let sctp = [0, 5, 0, 6, 0, 0, 0, 9, 0, 0, 0, 0, 4, 0];
        let names = format!("{} sport", all("sctp"));
        let init = "sctp=true sctp.vtag=9 sctp.chunk_type=4 sport=5";
        check(&of(132).payload(&sctp), &names, init);
        check(&of(132).payload(&sctp[..12]), &names, "sctp=true sctp.vtag=9 sport=5");
        check(&of(132).fragment(64, false).payload(&sctp), &names, "sctp=false");
        let igmp = all("igmp");
        let leave = [0x17, 0, 0, 0, 224, 0, 0, 251];
        check(&of(2).payload(&leave), &igmp, "igmp=true igmp.type=23 igmp.group=224.0.0.251");
        check(&of(2), &igmp, "igmp=false");
        let esp = [0, 0, 0, 9, 0, 0, 0, 8, 1, 2];
        check(&of(50).payload(&esp), &all("esp"), "esp=true esp.spi=9 esp.seq=8");
        let mut body = [0; 22];
        (body[5], body[9]) = (9, 8);
        let names = format!("{} tcp", all("ah"));
        let ah = |frame: Frame| frame.extension(crate::ipv6::AUTHENTICATION, &body).tcp(1, 2);
        let both = "ah=true ah.spi=9 ah.seq=8 tcp=true";
        check(&ah(Frame::ethernet().ipv4(A, B)), &names, both);
        check(&ah(Frame::raw().ipv6(A6, B6).extension(0, &[])), &names, both);
        check(&Frame::ethernet().ipv4(A, B).tcp(1, 2), &names, "ah=false tcp=true");
        check(&Frame::ethernet().put(12, &[0x88, 0xcc]).payload(&[2; 40]), "lldp", "lldp=true");
        check(&Frame::ethernet().ipv4(A, B).udp(1, 2), "lldp", "lldp=false");
    }

    #[test]
    fn a_cut_tcp_header_has_the_fields_before_the_cut() {
        let bytes = Frame::ethernet().ipv4(A, B).tcp(1, 2).flags(tcp::SYN).bytes();
        let names: Vec<&str> =
            "tcp.sport tcp.seq tcp.ackno tcp.flags tcp.syn tcp.window".split(' ').collect();
        let cut = |n: usize| show(LinkType::ETHERNET, &bytes[..34 + n], bytes.len(), &names);
        assert_eq!(cut(3), "");
        assert_eq!(cut(4), "tcp.sport=1");
        assert_eq!(cut(8), "tcp.sport=1 tcp.seq=0");
        assert_eq!(cut(13), "tcp.sport=1 tcp.seq=0 tcp.ackno=0");
        let flags = "tcp.sport=1 tcp.seq=0 tcp.ackno=0 tcp.flags=2 tcp.syn=true";
        assert_eq!(cut(14), flags);
        assert_eq!(cut(16), format!("{flags} tcp.window=65280"));
    }

    #[test]
    fn a_bad_data_offset_leaves_what_is_before_it() {
        let names = "malformed tcp.dport tcp.ackno tcp.hdr_len tcp.flags tcp.payload_len";
        let frame =
            |offset| Frame::ethernet().ipv4(A, B).tcp(1, 2).put(tcp::DATA_OFFSET, &[offset]);
        check(&frame(0x40), names, "malformed=true tcp.dport=2 tcp.ackno=0");
        // Beyond the packet, but the fixed header is inside it.
        check(
            &frame(0xf0),
            names,
            "malformed=true tcp.dport=2 tcp.ackno=0 tcp.hdr_len=60 tcp.flags=0",
        );
    }

    #[test]
    fn padding_is_not_read_as_a_header() {
        let frame = Frame::ethernet().ipv4(A, B).put(ipv4::TOTAL_LENGTH, &[0, 28]).tcp(1, 2);
        check(&frame, "tcp.seq tcp.ackno tcp.flags", "tcp.seq=0");
    }

    #[test]
    fn udp_and_icmp_fields() {
        check(
            &Frame::ethernet().ipv4(A, B).udp(1, 2).put(udp::CHECKSUM, &[0xbe, 0xef]).payload(b"x"),
            &all("udp"),
            "udp=true udp.sport=1 udp.dport=2 udp.len=9 udp.checksum=48879",
        );
        let names = format!("{} sport", all("icmp"));
        check(
            &Frame::ethernet().ipv4(A, B).icmp(8, 0).echo(7, 9),
            &names,
            "icmp=true icmp.type=8 icmp.code=0 icmp.id=7 icmp.seq=9 icmp6=false",
        );
        check(
            &Frame::ethernet().ipv4(A, B).icmp(3, 1),
            &names,
            "icmp=true icmp.type=3 icmp.code=1 icmp6=false",
        );
        let needed = Frame::ethernet().ipv4(A, B).icmp(3, 4).put(6, &[5, 0xdc]);
        check(&needed, &names, "icmp=true icmp.type=3 icmp.code=4 icmp.mtu=1500 icmp6=false");
        let (cut, len) = (needed.bytes(), needed.bytes().len());
        assert_eq!(
            show(LinkType::ETHERNET, &cut[..len - 1], len, &["icmp.code", "icmp.mtu"]),
            "icmp.code=4"
        );
        check(
            &Frame::ethernet().ipv6(A6, B6).icmp6(2, 0).put(4, &[0, 1, 0, 1]),
            &names,
            "icmp=false icmp6=true icmp6.type=2 icmp6.code=0 icmp6.mtu=65537",
        );
        check(
            &Frame::ethernet().ipv6(A6, B6).icmp6(129, 0).echo(7, 9),
            &names,
            "icmp=false icmp6=true icmp6.type=129 icmp6.code=0 icmp6.id=7 icmp6.seq=9",
        );
    }

    #[test]
    fn endpoints_are_ordered_the_same_in_both_directions() {
        let names = format!("{} {}", all("hosts."), all("conn."));
        let both = |there: Frame, back: Frame, ends: &str| {
            check(&there, &names, &format!("{ends} conn.forward=true"));
            check(&back, &names, &format!("{ends} conn.forward=false"));
        };
        let four = |a, b| Frame::ethernet().ipv4(a, b);
        both(
            four(A, B).tcp(9, 1),
            four(B, A).tcp(1, 9),
            "hosts.a=10.0.0.1 hosts.b=10.0.0.2 conn.a_ip=10.0.0.1 conn.a_port=9 \
             conn.b_ip=10.0.0.2 conn.b_port=1",
        );
        both(
            four(A, A).udp(1, 9),
            four(A, A).udp(9, 1),
            "hosts.a=10.0.0.1 hosts.b=10.0.0.1 conn.a_ip=10.0.0.1 conn.a_port=1 \
             conn.b_ip=10.0.0.1 conn.b_port=9",
        );
        both(
            four(A, B).icmp(8, 0),
            four(B, A).icmp(0, 0),
            "hosts.a=10.0.0.1 hosts.b=10.0.0.2 conn.a_ip=10.0.0.1 conn.b_ip=10.0.0.2",
        );
        both(
            Frame::raw().ipv6(A6, B6).udp(9, 1),
            Frame::raw().ipv6(B6, A6).udp(1, 9),
            "hosts.a=2001:db8::1 hosts.b=2001:db8::2 conn.a_ip=2001:db8::1 conn.a_port=9 \
             conn.b_ip=2001:db8::2 conn.b_port=1",
        );
    }

    /// All samples of a link type in one batch: every row reads as it does alone, densely and
    /// sparsely, in a mix of families where most rows are of either.
    #[test]
    fn rows_do_not_disturb_each_other() {
        for six_only in [false, true] {
            let samples: Vec<_> = samples().into_iter().chain(upper()).collect();
            let ethernet = samples.iter().filter(|(name, f)| {
                f.link() == LinkType::ETHERNET && (!six_only || name.contains('6'))
            });
            let frames: Vec<(Vec<u8>, u32)> =
                ethernet.map(|(_, f)| f.bytes()).map(|b| (b.clone(), b.len() as u32)).collect();
            let together = batch(LinkType::ETHERNET, &frames);
            let mut layers = Layers::new();
            classify(&together, &mut layers);
            let odd = Bits::from_fn(frames.len(), |i| i % 2 == 1);
            for id in FieldId::all() {
                let field = id.info();
                let mut dense = Column::new(field.ty.repr());
                let mut sparse = dense.clone();
                read_field(id, &together, &layers, Bits::ALL, &mut dense);
                read_field(id, &together, &layers, odd, &mut sparse);
                assert_eq!(sparse.present, dense.present.and(odd), "{}", field.name);
                for (i, frame) in frames.iter().enumerate() {
                    let mut layers = Layers::new();
                    let frame = batch(LinkType::ETHERNET, std::slice::from_ref(frame));
                    classify(&frame, &mut layers);
                    let mut alone = Column::new(field.ty.repr());
                    read_field(id, &frame, &layers, Bits::ALL, &mut alone);
                    assert_eq!(alone.present.has(0), dense.present.has(i), "{}", field.name);
                    let own = matches!(field.name, "ts" | "number");
                    if alone.present.has(0) && !own {
                        assert_eq!(alone.raw(0), dense.raw(i), "{} of {i}", field.name);
                        assert!(i % 2 == 0 || sparse.raw(i) == dense.raw(i), "{}", field.name);
                    }
                }
            }
        }
    }
}
