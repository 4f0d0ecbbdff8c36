//! Frames as the bytes of a capture file: pcap, and pcapng.

use weir_packet::egress::Sent;
use weir_packet::pcap::{ByteOrder, FileHeader};
use weir_packet::pcapng::{Interface, Writer};
use weir_packet::source::LinkType;

/// Resolution of times in pcapng files: 10^-9 s.
const NANOSECONDS: u8 = 9;

const PCAPNG: Writer = Writer { order: ByteOrder::Little };

/// How frames become the bytes of a file.
pub(crate) enum Format {
    /// With its header, once the link type is known.
    Pcap(Option<FileHeader>),
    /// With the link types of its interfaces.
    Pcapng(Vec<LinkType>),
}

impl Format {
    /// The format that the name of a file asks for.
    pub(crate) fn of(name: &str) -> Format {
        match name.ends_with(".pcapng") {
            true => Format::Pcapng(Vec::new()),
            false => Format::Pcap(None),
        }
    }

    /// The same, of a file in which nothing stands yet.
    pub(super) fn afresh(&self) -> Format {
        match self {
            Format::Pcap(_) => Format::Pcap(None),
            Format::Pcapng(_) => Format::Pcapng(Vec::new()),
        }
    }

    /// Appends a frame, and before it what it needs.
    ///
    /// # Errors
    /// The link type of all frames of the file, where this one has another.
    pub(crate) fn put(
        &mut self,
        out: &mut Vec<u8>,
        frame: &Sent,
        bytes: &[u8],
    ) -> Result<(), LinkType> {
        match self {
            Format::Pcap(header) => {
                let header = header.get_or_insert_with(|| start_pcap(frame.link, out));
                if header.link != frame.link {
                    return Err(header.link);
                }
                header.put_record(out, frame.ts, frame.len, bytes);
            }
            Format::Pcapng(links) => {
                let id = interface(frame.link, links, out);
                PCAPNG.packet(out, id, frame.ts.max(0) as u64, frame.len, bytes);
            }
        }
        Ok(())
    }

    /// Makes a file without frames an empty capture, of Ethernet.
    pub(crate) fn end(&mut self, out: &mut Vec<u8>) {
        match self {
            Format::Pcap(header @ None) => *header = Some(start_pcap(LinkType::ETHERNET, out)),
            Format::Pcapng(links) if links.is_empty() => {
                interface(LinkType::ETHERNET, links, out);
            }
            _ => {}
        }
    }
}

fn start_pcap(link: LinkType, out: &mut Vec<u8>) -> FileHeader {
    let header = FileHeader::new(link);
    out.extend_from_slice(&header.to_bytes());
    header
}

/// The number of the interface for a link type, which is declared if it is new.
fn interface(link: LinkType, links: &mut Vec<LinkType>, out: &mut Vec<u8>) -> u32 {
    let id = links.iter().position(|l| *l == link).unwrap_or_else(|| {
        if links.is_empty() {
            PCAPNG.section(out);
        }
        PCAPNG.interface(out, &Interface { resolution: NANOSECONDS, ..Interface::new(link) });
        links.push(link);
        links.len() - 1
    });
    id as u32
}
