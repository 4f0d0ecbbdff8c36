//! Receives frames by AF_XDP and counts them: what a capture costs without anything behind it.
//!
//! `xdp_count INTERFACE[,INTERFACE…] [SECONDS] [native|generic|card] [copy] [busy] [memory=MIB]`
//! prints the mode, a line each second, and at the end what became of the frames of each queue.

use std::io::{self, Write};
use weir_capture::xdp::{Attach, BusyPoll, XdpOptions, open_xdp};
use weir_packet::source::{FrameBatch, Source};

const NS: i64 = 1_000_000_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words = std::env::args().skip(1);
    let interfaces = words.next().ok_or("which interfaces?")?;
    let interfaces: Vec<&str> = interfaces.split(',').collect();
    let (mut options, mut seconds) = (XdpOptions::default(), i64::MAX / NS);
    for word in words {
        match (word.as_str(), word.strip_prefix("memory=")) {
            ("native", _) => options.attach = Some(Attach::Native),
            ("generic", _) => options.attach = Some(Attach::Generic),
            ("card", _) => options.attach = Some(Attach::Card),
            ("copy", _) => options.zero_copy = Some(false),
            ("busy", _) => options.busy_poll = Some(BusyPoll::default()),
            (_, Some(mib)) => options.memory = mib.parse::<usize>()? << 20,
            (number, None) => seconds = number.parse()?,
        }
    }
    let mut source = open_xdp(&interfaces, &options)?;
    let mut out = io::stdout().lock();
    for mode in source.modes() {
        writeln!(out, "{mode}")?;
    }
    let mut batch = FrameBatch::new();
    let (mut bytes, mut batches, mut first, mut second) = (0, 0_u64, None, 0);
    while source.fill(&mut batch)? {
        bytes += batch.lens().iter().map(|&len| u64::from(len)).sum::<u64>();
        batches += u64::from(!batch.is_empty());
        let now = batch.reached().unwrap_or(0);
        let passed = (now - *first.get_or_insert(now)) / NS;
        if passed > second {
            second = passed;
            let a = source.account();
            let (received, lost) = (a.received, a.lost.total());
            writeln!(
                out,
                "{second} s: {received} frames, {bytes} bytes, {lost} lost, {batches} batches"
            )?;
        }
        if passed >= seconds {
            break;
        }
    }
    for queue in source.queues()? {
        writeln!(out, "{queue:?}")?;
    }
    Ok(())
}
