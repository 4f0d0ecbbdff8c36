//! Pieces of ClientHellos: of few flows, so that some become whole.

use crate::choices::Choices;
use crate::plan::{Rows, SPANS_NS};
use proptest::collection::vec;
use proptest::prelude::*;
use weir_packet::craft::Frame;
use weir_packet::craft::messages::{client_hello_with, in_records};
use weir_packet::craft::quic::{Initial, crypto_frame};
use weir_packet::tcp::{ACK, SYN};
use weir_packet::tls::{ENCRYPTED_CLIENT_HELLO, HEADER_LEN};
use weir_plan::limits::HELLO_FLOWS_MAX;
use weir_plan::{Hello, Stage};

/// A piece of a hello.
#[derive(Clone, Debug)]
pub(crate) struct Piece {
    /// Its flow, and which of the connections between the same ports.
    flow: u8,
    connection: u8,
    what: Carried,
}

#[derive(Clone, Debug)]
enum Carried {
    Tcp {
        flags: u16,
        from: u16,
        len: u16,
    },
    /// Whether it has a token, and the frames of each packet.
    Quic {
        token: bool,
        packets: Vec<Vec<(u64, u16)>>,
    },
}

/// Where the connections of a flow start: one goes through 2^32.
const STARTS: [u32; 3] = [u32::MAX - 40, 0, 1 << 31];

/// Sizes of records, by flow.
const RECORDS: [usize; 4] = [9000, 70, 9000, 11];

pub(crate) fn piece() -> impl Strategy<Value = Piece> {
    let flags = prop_oneof![8 => Just(ACK), 1 => Just(SYN), 1 => Just(SYN | ACK)];
    let from = || prop_oneof![2 => Just(0), 3 => 0..260u16, 1 => Just(u16::MAX)];
    let len = || prop_oneof![1 => Just(0), 3 => 0..200u16, 3 => 150..400u16];
    let tcp =
        (flags, from(), len()).prop_map(|(flags, from, len)| Carried::Tcp { flags, from, len });
    let offset = prop_oneof![
        4 => from().prop_map(u64::from),
        1 => proptest::sample::select(vec![(1 << 62) - 1, (1 << 62) - 2, 1 << 32, 16_383, 16_384]),
    ];
    let packets = vec(vec((offset, len()), 0..4), 1..3);
    let token = prop_oneof![4 => Just(false), 1 => Just(true)];
    let quic = (token, packets).prop_map(|(token, packets)| Carried::Quic { token, packets });
    let what = prop_oneof![3 => tcp, 2 => quic];
    let connection = prop_oneof![6 => Just(0u8), 1 => 1..3u8];
    (0..4u8, connection, what).prop_map(|(flow, connection, what)| Piece { flow, connection, what })
}

impl Piece {
    /// The hello of the connection in records.
    fn hello(&self) -> Vec<u8> {
        let name = ["a.example", "B.example", ""][usize::from(self.connection)];
        let padding = vec![0; 60 * usize::from(self.flow)];
        let ech = (ENCRYPTED_CLIENT_HELLO, &[0, 0][..]);
        let more = [(21, &padding[..]), ech];
        let more = &more[..2 - usize::from(self.flow % 2)];
        let hello = client_hello_with(name, &["h2"][..usize::from(self.flow / 2)], &[0x304], more);
        in_records(&hello, RECORDS[usize::from(self.flow)])
    }

    /// The frame, after the headers of IP.
    pub(crate) fn on(&self, frame: Frame) -> Frame {
        let port = 50_000 + u16::from(self.flow);
        match &self.what {
            Carried::Tcp { flags, from, len } => {
                // Beyond the hello there is something else.
                let stream = [&self.hello()[..], &[0x16, 3, 1, 0, 9, 9, 9]].concat();
                let from = usize::from(*from).min(stream.len());
                let data = &stream[from..stream.len().min(from + usize::from(*len))];
                let seq = STARTS[usize::from(self.connection)].wrapping_add(from as u32);
                let seq = seq.wrapping_sub(u32::from(flags & SYN != 0));
                frame.tcp(port, 443).flags(*flags).seq(seq).payload(data)
            }
            Carried::Quic { token, packets } => {
                let stream = [&self.hello()[HEADER_LEN..], &[1, 0, 0, 9, 9]].concat();
                let piece = |(from, len): &(u64, u16)| {
                    let at = usize::try_from(*from).unwrap_or(usize::MAX).min(stream.len());
                    let data = &stream[at..stream.len().min(at + usize::from(*len))];
                    // Far ahead, there are bytes as well.
                    crypto_frame(*from, if data.is_empty() { &[7][..1] } else { data })
                };
                let connection = [&[1; 8][..], &[2; 20], &[]][usize::from(self.connection)];
                let initial = Initial {
                    token: if *token { b"again" } else { b"" },
                    ..Initial::new([1, 0x6b33_43cf][usize::from(self.flow % 2)], connection)
                };
                let packet = |frames: &Vec<(u64, u16)>| {
                    let padded = [frames.iter().flat_map(piece).collect(), vec![0; 20]].concat();
                    initial.packet(&padded)
                };
                let datagram: Vec<u8> = packets.iter().flat_map(packet).collect();
                frame.udp(port, 443).payload(&datagram)
            }
        }
    }
}

pub(crate) fn stage(c: &mut Choices, rows: &mut Rows) -> Stage {
    let idle_ns = *c.pick(&SPANS_NS);
    let columns = Hello::put(&mut rows.schema);
    Stage::Hello(Hello {
        keys: Hello::flow(crate::rows::flow_key(c)),
        idle_ns,
        max_flows: HELLO_FLOWS_MAX,
        columns,
    })
}
