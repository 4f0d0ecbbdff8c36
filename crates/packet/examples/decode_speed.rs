//! How long the walk and some readers take per packet, over synthetic frames in memory.
//!
//! `cargo run --release -p weir-packet --example decode_speed [FRAMES]`. Frames are 66 bytes with
//! their check sequence, 62 captured, spaced as in a capture file. The first table's batch stays
//! in the cache; the second's frames stream from memory, each batch classified and then read.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;
use weir_packet::bits::Bits;
use weir_packet::column::Column;
use weir_packet::craft::Frame;
use weir_packet::fields::FieldId;
use weir_packet::limits::BATCH;
use weir_packet::read::read_field;
use weir_packet::source::{Chunk, FrameBatch, LinkType};
use weir_packet::tcp;
use weir_packet::walk::{Layers, classify};

/// Captured bytes of a frame: the least that hold UDP over IPv6.
const CAPLEN: u32 = 62;

/// Bytes from one frame to the next, with the 16 of a pcap record header.
const STRIDE: usize = CAPLEN as usize + 16;

const FIELDS: [FieldId; 10] = [
    FieldId::named("len"),
    FieldId::named("ip.src"),
    FieldId::named("sport"),
    FieldId::named("ip.proto"),
    FieldId::named("tcp.flags"),
    FieldId::named("tcp.syn"),
    FieldId::named("ip.len"),
    FieldId::named("tcp.payload_len"),
    FieldId::named("conn.a_ip"),
    FieldId::named("conn.forward"),
];

#[expect(clippy::print_stdout, reason = "an example prints its results")]
fn main() {
    let frames = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(4_000_000);
    for (name, traffic) in [
        ("tcp over ipv4", &tcp4 as &dyn Fn(u32) -> Frame),
        ("half tcp, half udp", &|i| if scatter(i) & 1 == 0 { tcp4(i) } else { udp4(i) }),
        ("a third ipv6", &|i| if scatter(i).is_multiple_of(3) { udp6(i) } else { tcp4(i) }),
        ("tagged", &tagged),
        ("one in eight icmp", &|i| if scatter(i).is_multiple_of(8) { icmp4(i) } else { udp4(i) }),
    ] {
        let chunk = memory(traffic, BATCH);
        println!("{name}, in the cache");
        measure(&chunk, BATCH, frames / BATCH);
        let chunk = memory(traffic, frames);
        println!("{name}, from memory");
        measure(&chunk, frames, 1);
    }
}

fn tcp4(i: u32) -> Frame {
    let frame = Frame::ethernet().ipv4(scatter(i), scatter(i + 1));
    frame
        .tcp(i as u16, 80)
        .flags(if i.is_multiple_of(4) { tcp::SYN } else { tcp::ACK })
        .payload(&[0; 6])
}

fn udp4(i: u32) -> Frame {
    Frame::ethernet().ipv4(scatter(i), scatter(i + 1)).udp(i as u16, 53).payload(&[0; 18])
}

fn udp6(i: u32) -> Frame {
    let address = |i| u128::from(scatter(i)) << 96;
    Frame::ethernet().ipv6(address(i), address(i + 1)).udp(i as u16, 53)
}

fn tagged(i: u32) -> Frame {
    Frame::ethernet().vlan(7).ipv4(scatter(i), scatter(i + 1)).tcp(i as u16, 80).payload(&[0; 2])
}

fn icmp4(i: u32) -> Frame {
    Frame::ethernet().ipv4(scatter(i), scatter(i + 1)).icmp(8, 0).payload(&[0; 18])
}

/// Spreads small numbers over all of a word.
fn scatter(i: u32) -> u32 {
    i.wrapping_mul(2_654_435_761) ^ i.wrapping_mul(40_503) >> 7
}

fn memory(traffic: &dyn Fn(u32) -> Frame, frames: usize) -> Chunk {
    let mut bytes = vec![0; frames * STRIDE + 128];
    for i in 0..frames {
        let frame = traffic(i as u32).bytes();
        bytes[i * STRIDE + 16..][..frame.len()].copy_from_slice(&frame);
    }
    Arc::new(bytes)
}

/// Classifies and reads all frames `rounds` times, and prints nanoseconds per packet: the median
/// over the batches.
#[expect(clippy::print_stdout, reason = "an example prints its results")]
fn measure(chunk: &Chunk, frames: usize, rounds: usize) {
    let mut batch = FrameBatch::new();
    let mut layers = Layers::new();
    let mut columns = FIELDS.map(|id| Column::new(id.info().ty.repr()));
    let (mut walks, mut reads) = (Vec::new(), FIELDS.map(|_| Vec::new()));
    for start in (0..rounds).flat_map(|_| (0..frames).step_by(BATCH)) {
        batch.restart(chunk, start * STRIDE, LinkType::ETHERNET);
        for i in 0..BATCH.min(frames - start) {
            batch.push(0, (start + i) as u64, (i * STRIDE + 16) as u32, CAPLEN, CAPLEN);
        }
        walks.push(timed(|| classify(black_box(&batch), &mut layers)));
        for ((id, column), times) in FIELDS.iter().zip(&mut columns).zip(&mut reads) {
            let rows = Bits::first(batch.len());
            times.push(timed(|| read_field(*id, black_box(&batch), &layers, rows, column)));
            black_box(column.present);
        }
    }
    let nothing = median((0..1000).map(|_| timed(|| {})).collect());
    let per_packet = |times| (median(times) - nothing) / BATCH as f64;
    println!("  {:16} {:6.2} ns", "classify", per_packet(walks));
    for (id, times) in FIELDS.iter().zip(reads) {
        println!("  {:16} {:6.2} ns", id.info().name, per_packet(times));
    }
}

fn median(mut times: Vec<u128>) -> f64 {
    times.sort_unstable();
    times[times.len() / 2] as f64
}

#[expect(clippy::disallowed_methods, reason = "measures time")]
fn timed(f: impl FnOnce()) -> u128 {
    let start = Instant::now();
    f();
    start.elapsed().as_nanos()
}
