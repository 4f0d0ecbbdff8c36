//! Frames as the bytes of a capture file: pcap, and pcapng.

use std::collections::HashMap;
use weir_packet::egress::Sent;
use weir_packet::interface::InterfaceNames;
use weir_packet::pcap::{ByteOrder, FileHeader};
use weir_packet::pcapng::{Interface, Writer};
use weir_packet::source::LinkType;
use weir_packet::time::NO_TIME;

/// Resolution of times in pcapng files: 10^-9 s.
const NANOSECONDS: u8 = 9;

const PCAPNG: Writer = Writer { order: ByteOrder::Little };

/// How frames become the bytes of a file.
pub(crate) enum Format {
    /// With its header, once the link type is known.
    Pcap(Option<FileHeader>),
    /// With its interfaces.
    Pcapng(PcapngInterfaces),
}

/// The link type of frames, and the number of their interface where it has a name.
type Wanted = (LinkType, Option<u16>);

/// The interfaces of a pcapng file.
#[derive(Default)]
pub(crate) struct PcapngInterfaces {
    ids: HashMap<Wanted, u32>,
    /// That of the frame before, which is mostly that of the next.
    last: Option<(Wanted, u32)>,
}

impl Format {
    /// The format that the name of a file asks for.
    pub(crate) fn of(name: &str) -> Format {
        match name.ends_with(".pcapng") {
            true => Format::Pcapng(PcapngInterfaces::default()),
            false => Format::Pcap(None),
        }
    }

    /// The same, of a file in which nothing stands yet.
    pub(super) fn afresh(&self) -> Format {
        match self {
            Format::Pcap(_) => Format::Pcap(None),
            Format::Pcapng(_) => Format::Pcapng(PcapngInterfaces::default()),
        }
    }

    /// Appends a frame, and before it what it needs; `names` says what interfaces are called. A
    /// frame without a time becomes a simple packet block of pcapng, if that can say what else is
    /// known of it; else it gets the time 0.
    ///
    /// # Errors
    /// The link type of all frames of the file, where this one has another.
    pub(crate) fn put(
        &mut self,
        out: &mut Vec<u8>,
        frame: &Sent,
        bytes: &[u8],
        names: Option<&InterfaceNames>,
    ) -> Result<(), LinkType> {
        match self {
            Format::Pcap(header) => {
                let header = header.get_or_insert_with(|| start_pcap(frame.link, out));
                if header.link != frame.link {
                    return Err(header.link);
                }
                header.put_record(out, frame.ts, frame.len, bytes);
            }
            Format::Pcapng(known) => {
                let id = known.id((frame.link, frame.capture_point.interface()), out, names);
                let direction = frame.capture_point.direction();
                let is_whole = bytes.len() == frame.len as usize;
                if frame.ts == NO_TIME && (id, direction, is_whole) == (0, None, true) {
                    PCAPNG.simple_packet(out, frame.len, bytes);
                    return Ok(());
                }
                let ticks = frame.ts.max(0) as u64;
                PCAPNG.packet_with_direction(out, (id, direction), ticks, frame.len, bytes);
            }
        }
        Ok(())
    }

    /// Makes a file without frames an empty capture, of Ethernet.
    pub(crate) fn end(&mut self, out: &mut Vec<u8>) {
        match self {
            Format::Pcap(header @ None) => *header = Some(start_pcap(LinkType::ETHERNET, out)),
            Format::Pcapng(known) if known.last.is_none() => {
                known.id((LinkType::ETHERNET, None), out, None);
            }
            _ => {}
        }
    }
}

/// Frames as the bytes of a pcapng file; `names` says what their interfaces are called.
pub fn to_pcapng<'a>(
    frames: impl IntoIterator<Item = (Sent, &'a [u8])>,
    names: &InterfaceNames,
) -> Vec<u8> {
    let (mut out, mut format) = (Vec::new(), Format::Pcapng(PcapngInterfaces::default()));
    for (sent, bytes) in frames {
        let put = format.put(&mut out, &sent, bytes, Some(names));
        debug_assert!(put.is_ok(), "frames of pcapng files have any link type");
    }
    format.end(&mut out);
    out
}

fn start_pcap(link: LinkType, out: &mut Vec<u8>) -> FileHeader {
    let header = FileHeader::new(link);
    out.extend_from_slice(&header.to_bytes());
    header
}

impl PcapngInterfaces {
    /// The number in the file of an interface, which is declared if it is new.
    fn id(&mut self, wanted: Wanted, out: &mut Vec<u8>, names: Option<&InterfaceNames>) -> u32 {
        if let Some((_, id)) = self.last.filter(|(last, _)| *last == wanted) {
            return id;
        }
        let next = self.ids.len() as u32;
        let id = *self.ids.entry(wanted).or_insert(next);
        if id == next {
            if id == 0 {
                PCAPNG.section(out);
            }
            let (link, number) = wanted;
            let name = number.and_then(|number| names?.name(number));
            let name = name.as_ref().map_or(&[][..], |name| &name.raw);
            let interface = Interface { resolution: NANOSECONDS, name, ..Interface::new(link) };
            PCAPNG.interface(out, &interface);
        }
        self.last = Some((wanted, id));
        id
    }
}
