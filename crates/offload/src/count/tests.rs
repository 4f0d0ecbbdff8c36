//! Programs that count, in the kernel.

use crate::{FrameCount, Hook, KernelProgram, OffloadOptions, TableGroups, compile};
use std::sync::atomic::Ordering;
use weir_capture::ebpf::{Program, ProgramKind, SharedMemory, cpu_numbers};
use weir_packet::craft::Frame;
use weir_plan::physical::Physical;

fn program(text: &str) -> KernelProgram {
    let query = weir_lang::Query { name: "-e", text };
    let query = weir_lang::compile(&query, &weir_lang::Options::default()).expect("right").program;
    let cpus = u32::try_from(cpu_numbers().expect("there are CPUs")).expect("few");
    let options = OffloadOptions { groups: Some([7, 13]), ..OffloadOptions::new(Hook::Xdp, cpus) };
    compile(&Physical::new(&query, &[]), &options).unwrap_or_else(|e| panic!("{e}"))
}

/// Runs frames; returns the groups of each table, and what the program counted.
fn run(text: &str, frames: &[Vec<u8>]) -> Option<(Vec<TableGroups>, [u64; FrameCount::COUNT])> {
    let program = program(text);
    let maps: Result<Vec<_>, _> =
        program.maps.iter().map(|map| SharedMemory::new(&map.name, map.words)).collect();
    let maps = maps.ok()?;
    let fds: Vec<i32> = maps.iter().map(SharedMemory::number).collect();
    let loaded = Program::load(ProgramKind::Xdp, "weir-test", &program.code.with_maps(&fds));
    let loaded = loaded.unwrap_or_else(|e| panic!("{e}\n{}", program.code));
    frames.iter().for_each(|frame| _ = loaded.test_run(frame, 1).expect("a frame"));
    let mut groups = Vec::new();
    for (table, map) in program.tables.iter().zip(&maps[2..]) {
        let mut taken = TableGroups::default();
        table.take(map.words(), 0, &mut taken);
        groups.push(taken);
    }
    let mut counts = [0; FrameCount::COUNT];
    for cpu in maps[0].words().chunks(FrameCount::WORDS) {
        counts.iter_mut().zip(cpu).for_each(|(sum, n)| *sum += n.load(Ordering::Relaxed));
    }
    Some((groups, counts))
}

fn frames() -> Vec<Vec<u8>> {
    let (a, b) = (std::net::Ipv4Addr::new(10, 0, 0, 1), std::net::Ipv4Addr::new(10, 0, 0, 2));
    let tcp = |port, flags| Frame::ethernet().ipv4(a, b).tcp(port, 80).flags(flags).bytes();
    vec![tcp(1000, 2), tcp(1000, 16), tcp(2000, 2), Frame::ethernet().ipv4(b, a).udp(5, 53).bytes()]
}

#[test]
fn a_flow_meter_counts_in_the_kernel() {
    let text = "packets | where ip | summarize packets = count(), bytes = sum(len),
        first = min(ts), last = max(ts), flags = bit_or(tcp.flags),
        syn = any(tcp.syn), udps = count() where udp by flow every 1s";
    let Some((groups, counts)) = run(text, &frames()) else { return };
    assert_eq!(counts[FrameCount::Counted as usize], 4, "{counts:?}");
    let [groups] = &groups[..] else { panic!("one table") };
    let mut found: Vec<_> = (0..groups.groups)
        .map(|g| {
            let (key, cells) = (&groups.keys[g * 5..g * 5 + 5], &groups.cells[g * 7..g * 7 + 7]);
            assert!(cells[2].word > 0 && cells[2].word <= cells[3].word, "{cells:?}");
            let port = key.iter().flatten().copied().find(|p| [5, 1000, 2000].contains(p));
            (port, [0, 1, 4, 5, 6].map(|c| (cells[c].word, cells[c].values.min(1))))
        })
        .collect();
    found.sort_unstable();
    let len = |n: usize| (frames()[n].len() as u64, 1);
    let expected = [
        (Some(5), [(1, 1), len(3), (0, 0), (0, 0), (1, 1)]),
        (Some(1000), [(2, 1), (len(0).0 + len(1).0, 1), (18, 1), (3, 1), (0, 0)]),
        (Some(2000), [(1, 1), len(2), (2, 1), (2, 1), (0, 0)]),
    ];
    assert_eq!(found, expected);
}

#[test]
fn pipelines_count_side_by_side_unless_one_wants_the_frame() {
    let text = "packets | where tcp.syn | summarize n = count() by ip.src every 1s
packets | where ip | summarize bytes = sum(len) every 2s
packets | where udp | project ip.src";
    let Some((groups, counts)) = run(text, &frames()) else { return };
    assert_eq!((counts[FrameCount::Counted as usize], counts[FrameCount::Wanted as usize]), (3, 1));
    assert_eq!(groups.iter().map(|groups| groups.frames).collect::<Vec<_>>(), [2, 3]);
}
