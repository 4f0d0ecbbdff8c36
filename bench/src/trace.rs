//! Traces made to measure: deterministic, with their truth known.
//!
//! The same options give the same bytes, those of the C generator that the published figures were
//! measured with, so that figures compare across programs. Packets are drawn independently:
//! conversations by a Zipf law, directions and sizes at random. Two passes over the same random
//! stream: the first counts the packets of each conversation, the second writes them, so that TCP
//! conversations open with a handshake and, if long enough, end with FINs or a reset. Sequence
//! numbers and checksums are valid.

mod draw;
mod frame;

use anyhow::{Context, Result};
use draw::{Popularity, Rng, mix};
use frame::{Frame, Segment};
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// Nanoseconds since 1970 before the first packet.
const START_NS: u64 = 1_700_000_000_000_000_000;

/// Frame lengths on the wire.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Sizes {
    /// 64 bytes, the hardest case per byte.
    Fixed64,
    /// 64, 400 to 799, and 1514 bytes in the proportions 36 : 10 : 54.
    Trimodal,
}

/// The properties of a trace.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct TraceOptions {
    /// Packets to write.
    pub(crate) packets: u64,
    /// Conversations to draw from; a short trace does not meet them all.
    pub(crate) conversations: u32,
    /// Exponent of their popularity; 0 makes all equally popular.
    pub(crate) zipf: f64,
    /// Frame lengths.
    pub(crate) sizes: Sizes,
    /// Captured bytes of a frame, at most.
    pub(crate) snaplen: u32,
    /// Share of conversations over IPv6.
    pub(crate) ipv6: f64,
    /// Share of conversations over UDP; the others are TCP.
    pub(crate) udp: f64,
    /// Mean nanoseconds between packets.
    pub(crate) gap_ns: u64,
    /// Where the random stream starts.
    pub(crate) seed: u64,
}

/// A trace that figures are published for.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Preset {
    /// Its name on the command line.
    pub(crate) name: &'static str,
    /// Its properties.
    pub(crate) options: TraceOptions,
    /// Base-2 logarithms of the rows that tables made beforehand need for the whole of it, IPv4
    /// and IPv6.
    table_log2: (u32, u32),
}

/// The published traces.
pub(crate) static PRESETS: [Preset; 3] = [
    Preset {
        name: "a",
        options: TraceOptions {
            packets: 20_000_000,
            conversations: 100_000,
            zipf: 1.0,
            sizes: Sizes::Fixed64,
            snaplen: 65_535,
            ipv6: 0.0,
            udp: 0.3,
            gap_ns: 1_000,
            seed: 42,
        },
        table_log2: (19, 10),
    },
    Preset {
        name: "b",
        options: TraceOptions {
            packets: 20_000_000,
            conversations: 2_000_000,
            zipf: 0.0,
            sizes: Sizes::Fixed64,
            snaplen: 65_535,
            ipv6: 0.0,
            udp: 0.3,
            gap_ns: 1_000,
            seed: 42,
        },
        table_log2: (24, 10),
    },
    Preset {
        name: "c",
        options: TraceOptions {
            packets: 20_000_000,
            conversations: 1_000_000,
            zipf: 1.1,
            sizes: Sizes::Trimodal,
            snaplen: 96,
            ipv6: 0.15,
            udp: 0.2,
            gap_ns: 1_000,
            seed: 42,
        },
        table_log2: (22, 19),
    },
];

impl Preset {
    /// Base-2 logarithms of the rows that tables made beforehand need, IPv4 and IPv6, when there
    /// are no more than `packets`.
    pub(crate) fn tables(&self, packets: u64) -> (u32, u32) {
        // Even if each packet is a flow of its own, they stay less than half full.
        let enough = (packets.max(1) * 5 / 2).ilog2() + 1;
        (self.table_log2.0.min(enough), self.table_log2.1.min(enough))
    }
}

/// The contents of a trace: the right answers.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Truth {
    /// Packets.
    pub(crate) packets: u64,
    /// Bytes on the wire.
    pub(crate) bytes: u64,
    /// Conversations met.
    pub(crate) conversations: u64,
    /// Distinct directed 5-tuples.
    pub(crate) flows: u64,
}

impl TraceOptions {
    /// A file name that tells these options from any others.
    fn file_name(&self) -> String {
        let sizes = match self.sizes {
            Sizes::Fixed64 => "fixed64",
            Sizes::Trimodal => "trimodal",
        };
        format!(
            "n{}-f{}-z{}-{sizes}-s{}-v6_{}-udp_{}-gap{}-seed{}.pcap",
            self.packets,
            self.conversations,
            self.zipf,
            self.snaplen,
            self.ipv6,
            self.udp,
            self.gap_ns,
            self.seed
        )
    }

    /// The trace in `folder`, made there unless an earlier run left it, and its truth.
    pub(crate) fn make(&self, folder: &Path) -> Result<(PathBuf, Truth)> {
        fs::create_dir_all(folder).with_context(|| format!("creating {}", folder.display()))?;
        let trace = folder.join(self.file_name());
        let truth_file = trace.with_extension("pcap.truth");
        if let Some(truth) = fs::read_to_string(&truth_file).ok().and_then(|s| Truth::parse(&s)) {
            return Ok((trace, truth));
        }
        let unfinished = trace.with_extension("pcap.part");
        let write = || -> std::io::Result<Truth> {
            let mut out = BufWriter::with_capacity(4 << 20, File::create(&unfinished)?);
            let truth = self.write(&mut out)?;
            out.into_inner()?.sync_all()?;
            fs::rename(&unfinished, &trace)?;
            fs::write(&truth_file, truth.print())?;
            Ok(truth)
        };
        let truth = write().with_context(|| format!("writing {}", trace.display()))?;
        Ok((trace, truth))
    }

    /// Writes the capture file, classic pcap with microseconds, and returns its truth.
    pub(crate) fn write(&self, out: &mut impl Write) -> std::io::Result<Truth> {
        let popularity = Popularity::zipf(self.conversations, self.zipf);
        let totals = self.count(&popularity);
        let mut conversations: Vec<Conversation> =
            (0..self.conversations).map(|i| Conversation::new(self.seed, i)).collect();

        let mut rng = Rng::new(self.seed);
        let mut truth = Truth { packets: self.packets, ..Truth::default() };
        let mut now = START_NS;
        out.write_all(&file_header(self.snaplen))?;
        for _ in 0..self.packets {
            let number = popularity.draw(&mut rng);
            let random = rng.next();
            let conversation = &mut conversations[number as usize];
            let frame = self.next(number, totals[number as usize], conversation, random);
            now += self.gap_ns / 2 + (((random & 0xf_ffff) * self.gap_ns) >> 20);
            frame.write(now, self.snaplen, out)?;

            truth.bytes += u64::from(frame.wire_len);
            truth.conversations += u64::from(conversation.packets == 1);
            let seen = &mut conversation.seen[usize::from(frame.backward)];
            truth.flows += u64::from(!*seen);
            *seen = true;
        }
        Ok(truth)
    }

    /// Packets of each conversation in the whole trace.
    fn count(&self, popularity: &Popularity) -> Vec<u32> {
        let mut rng = Rng::new(self.seed);
        let mut totals = vec![0; self.conversations as usize];
        for _ in 0..self.packets {
            totals[popularity.draw(&mut rng) as usize] += 1;
            rng.next();
        }
        totals
    }

    /// The next frame of a conversation that has `total` packets in all.
    fn next(&self, number: u32, total: u32, c: &mut Conversation, random: u64) -> Frame {
        let kind = mix(self.seed, number);
        let ipv6 = ((kind & 0xffff) as f64) < (self.ipv6 * 65_536.0).floor();
        let udp = ((kind >> 16 & 0xffff) as f64) < (self.udp * 65_536.0).floor();
        let detail = mix(self.seed ^ 0xab_cdef, number);
        let position = c.packets;
        c.packets += 1;

        let segment = if udp {
            Segment::datagram(position)
        } else {
            Segment::tcp(position, total, (detail >> 56).is_multiple_of(10))
        };
        let backward = segment.backward.unwrap_or(random >> 20 & 1 == 1);
        let lengths = self.lengths(&segment, ipv6, udp, random);
        let (seq, ack) = (c.seq[usize::from(backward)], c.seq[usize::from(!backward)]);
        let frame = Frame::build(
            self.seed,
            number,
            detail,
            position,
            &segment,
            lengths,
            frame::FrameSpec { ipv6, udp, backward, seq, ack },
        );
        if !udp {
            let counted = u32::from(frame.flags & (frame::SYN | frame::FIN) != 0);
            c.seq[usize::from(backward)] = seq.wrapping_add(frame.payload_len + counted);
        }
        frame
    }

    /// Length of the frame on the wire, and of the payload in it.
    fn lengths(&self, segment: &Segment, ipv6: bool, udp: bool, random: u64) -> (u32, u32) {
        let headers = 14 + if ipv6 { 40 } else { 20 } + if udp { 8 } else { 20 };
        if segment.control {
            return (headers.max(64), 0);
        }
        let drawn = match (self.sizes, random >> 32 & 0xffff) {
            (Sizes::Fixed64, _) | (Sizes::Trimodal, ..23_593) => 64,
            (Sizes::Trimodal, 23_593..30_147) => 400 + ((random >> 48) % 400) as u32,
            (Sizes::Trimodal, _) => 1514,
        };
        let wire = drawn.max(headers);
        let bare = self.sizes == Sizes::Trimodal && !udp && wire == 64;
        (wire, if bare { 0 } else { wire - headers })
    }
}

/// The state of a conversation in the generator.
struct Conversation {
    packets: u32,
    /// The next sequence number, forward and backward.
    seq: [u32; 2],
    /// Whether a packet went forward, backward.
    seen: [bool; 2],
}

impl Conversation {
    fn new(seed: u64, number: u32) -> Conversation {
        let h = mix(seed ^ 0x5eed, number);
        Conversation { packets: 0, seq: [h as u32, (h >> 32) as u32], seen: [false; 2] }
    }
}

/// The header of a little-endian pcap file of Ethernet frames with microseconds.
fn file_header(snaplen: u32) -> [u8; 24] {
    let mut header = [0; 24];
    for (at, word) in [(0, 0xa1b2_c3d4), (4, 0x0004_0002), (16, snaplen), (20, 1u32)] {
        header[at..at + 4].copy_from_slice(&word.to_le_bytes());
    }
    header
}

impl Truth {
    fn print(&self) -> String {
        format!(
            "packets={}\nwire_bytes={}\nconversations={}\ndirected_flows={}\n",
            self.packets, self.bytes, self.conversations, self.flows
        )
    }

    fn parse(text: &str) -> Option<Truth> {
        let value = |name: &str| {
            text.lines().find_map(|l| l.strip_prefix(name)?.strip_prefix('=')?.parse().ok())
        };
        Some(Truth {
            packets: value("packets")?,
            bytes: value("wire_bytes")?,
            conversations: value("conversations")?,
            flows: value("directed_flows")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Digest and truth of the first 200,000 packets of each preset.
    const DIGESTS: [(u64, Truth); 3] = [
        (0x7f3a_dcc5_449c_4c0c, truth(12_800_000, 38_045, 53_249)),
        (0x2948_d050_e934_7251, truth(12_800_000, 190_380, 199_667)),
        (0xdf3a_976f_93d5_140c, truth(139_248_820, 41_540, 51_023)),
    ];

    const fn truth(bytes: u64, conversations: u64, flows: u64) -> Truth {
        Truth { packets: 200_000, bytes, conversations, flows }
    }

    /// A 64-bit FNV-1a digest.
    fn digest(bytes: &[u8]) -> u64 {
        bytes
            .iter()
            .fold(0xcbf2_9ce4_8422_2325, |h, &b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3))
    }

    /// The digests and the truths are those of the C generator's files for the same options.
    #[test]
    fn writes_what_the_c_generator_writes() {
        for (preset, (expected, truth)) in PRESETS.iter().zip(DIGESTS) {
            let options = TraceOptions { packets: 200_000, ..preset.options.clone() };
            let mut file = Vec::new();
            assert_eq!(options.write(&mut file).expect("memory takes it"), truth);
            assert_eq!(digest(&file), expected, "trace {}", preset.name);
        }
    }

    #[test]
    fn tables_are_as_large_as_the_trace_asks() {
        assert_eq!(
            PRESETS.each_ref().map(|p| p.tables(20_000_000)),
            PRESETS.each_ref().map(|p| p.table_log2)
        );
        assert_eq!(PRESETS[1].tables(20_000), (16, 10));
        assert_eq!(PRESETS[2].tables(0), (2, 2));
    }

    #[test]
    fn is_made_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let options =
            TraceOptions { packets: 100, conversations: 10, ..PRESETS[0].options.clone() };
        let (path, truth) = options.make(folder.path()).expect("written");
        let written = fs::metadata(&path).expect("there").modified().expect("a time");
        assert_eq!(options.make(folder.path()).expect("found"), (path.clone(), truth));
        assert_eq!(fs::metadata(&path).expect("there").modified().expect("a time"), written);
        assert_eq!(Truth::parse(&truth.print()), Some(truth));
        let other = TraceOptions { seed: 43, ..options };
        assert_ne!(other.make(folder.path()).expect("written").0, path);
    }
}
