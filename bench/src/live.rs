//! Capture from a wire: Weir with its flow meter beside loops by hand that drop what they receive.
//!
//! A case is a length of frames and a number of flows. In each round everybody receives once, one
//! directly after the other, each in a process of its own; the order turns round by round. A
//! sender on one processor offers more than can be taken, where it can; all that receiving takes,
//! the kernel's part included, happens on the other. Only frames count that are processed within a
//! window of time, by the clock of the receiver.
//!
//! Nothing is measured that does not add up: what the sender made is what was received and what
//! was lost, by place, to the frame, as the receiver, the kernel's socket and the interface
//! counted each for itself.

mod bpftrace;
mod netlink;
mod offload;
mod options;
mod receiver;
mod run;
mod sender;
mod table;
mod wire;

pub(crate) use offload::{OffloadOptions, run as run_offload};
pub(crate) use options::LiveOptions;
pub(crate) use receiver::Receive;
pub(crate) use sender::Load;

use crate::process::{Companion, this_program};
use anyhow::{Context, Result, ensure};
use netlink::Counts;
use receiver::{Received, Receiver};
use run::{LiveCase, LiveRun};
use std::io::{self, Write};
use table::Lines;
use wire::{Napi, Wire};

/// Why receivers are left out.
const NO_POLLING: &str = "no busy-polling here, and no rows of it: the kernel does not know who \
                          looks after the queues of a virtual wire (since Linux 6.13)";

/// Measures, and gives the table.
pub(crate) fn run(options: &LiveOptions) -> Result<String> {
    let cpus = std::thread::available_parallelism().context("counting processors")?.get();
    ensure!(
        options.pin.len() == 2 && options.pin[0] != options.pin[1],
        "--pin takes two processors, one for the sender and one for the receiver"
    );
    ensure!(cpus > 1, "sender and receiver need a processor each, and there is only one");
    let mut ways: Vec<Receiver> = Receiver::ALL
        .into_iter()
        .filter(|way| options.only.as_ref().is_none_or(|only| only.is_match(way.title())))
        .collect();
    ensure!(!ways.is_empty(), "no receiver is left to run");
    let wire = Wire::make(options.pin[1], !options.no_priority)?;
    let socket = options.socket || !sender::can_send_live();
    let sender = if socket { "an AF_PACKET socket" } else { "live frames of an XDP program" };
    let mut lines = Vec::new();
    for &bytes in &options.bytes {
        let of_flows = options.flows.iter().map(|&flows| LiveCase { bytes, flows });
        lines.extend(of_flows.map(|case| Lines { case, rounds: Vec::new() }));
    }
    for round in 0..=options.rounds {
        for line in &mut lines {
            say(&format!("round {round} of {}: {:?}", options.rounds, line.case))?;
            let mut runs: Vec<(Receiver, LiveRun)> = Vec::new();
            for i in 0..ways.len() {
                // Everybody is first in turn, and comes after everybody else.
                let way = ways[(i + usize::from(round)) % ways.len()];
                let bench = Bench { options, wire: &wire, case: line.case, way, socket };
                let run = bench.run().with_context(|| format!("{}: {:?}", way.title(), line.case));
                runs.push((way, run?));
            }
            let polls = |(way, run): &(Receiver, LiveRun)| {
                *way != Receiver::BareXdpBusy || run.received.polls
            };
            if ways.contains(&Receiver::BareXdpBusy) && !runs.iter().all(polls) {
                say(NO_POLLING)?;
                ways.retain(|way| !way.is_busy());
                ensure!(!ways.is_empty(), "no receiver is left to run");
            }
            line.rounds.extend((round > 0).then_some(runs));
        }
    }
    if let Some(path) = &options.json {
        let text = format!("{:#}\n", table::json(sender, &lines));
        std::fs::write(path, text).with_context(|| path.display().to_string())?;
    }
    Ok(table::markdown(options, sender, &lines))
}

/// One run.
struct Bench<'a> {
    options: &'a LiveOptions,
    wire: &'a Wire,
    case: LiveCase,
    way: Receiver,
    socket: bool,
}

impl Bench<'_> {
    fn run(&self) -> Result<LiveRun> {
        let napi = if self.way.is_busy() { Napi::Reader } else { Napi::Threads };
        self.wire.attend(napi)?;
        let mut receiver = Companion::start(self.receiver()?)?;
        let mode = receiver.line()?;
        self.wire.place_threads()?;
        let before = self.wire.counts()?;
        let mut sender = self.sender()?;
        let sent = crate::process::run("the sender", &mut sender)?;
        let offered = crate::measure::number(&sent.out, "sent")?;
        let after = self.wire.settle(before, offered)?;
        let received = Received::parse(&receiver.end()?)?;
        let counted = Counts {
            received: after.received - before.received,
            dropped: after.dropped - before.dropped,
        };
        let wire = offered.saturating_sub(received.frames + received.lost);
        let run = LiveRun { offered, wire, received, mode };
        self.check(&run, counted)?;
        Ok(run)
    }

    fn receiver(&self) -> Result<std::process::Command> {
        let LiveOptions { pin, warm_up_ms, window_ms, no_priority, .. } = self.options;
        let mut command = this_program()?;
        command.arg("receive").arg(clap_name(self.way));
        command.args(["--cpu", &pin[1].to_string()]);
        command.args(["--warm-up-ms", &warm_up_ms.to_string()]);
        command.args(["--window-ms", &window_ms.to_string()]);
        command.args((!no_priority).then_some("--fifo"));
        Ok(command)
    }

    fn sender(&self) -> Result<std::process::Command> {
        let LiveOptions { pin, warm_up_ms, window_ms, no_priority, frames, .. } = self.options;
        // A quarter more: the receiver counts from its first frame on.
        let ms = (warm_up_ms + window_ms) * 5 / 4;
        let mut command = this_program()?;
        command.args(["send", "--bytes", &self.case.bytes.to_string()]);
        command.args(["--flows", &self.case.flows.to_string()]);
        command.args(["--frames", &frames.to_string(), "--ms", &ms.to_string()]);
        command.args(["--cpu", &pin[0].to_string()]);
        command.args((!no_priority).then_some("--fifo"));
        command.args(self.socket.then_some("--socket"));
        Ok(command)
    }

    /// A rate of frames that do not add up is no rate.
    fn check(&self, run: &LiveRun, counted: Counts) -> Result<()> {
        let Received { frames, lost, .. } = run.received;
        // Frames that an XDP program redirects to a full socket, the interface counts as dropped.
        let wire = counted.dropped.checked_sub(if self.way.is_xdp() { lost } else { 0 });
        let told = format!("{run:?}, and the interface says {counted:?}");
        let taken = frames + lost == counted.received;
        let whole = wire.is_some_and(|wire| run.offered == frames + lost + wire);
        ensure!(taken && whole, "the frames do not add up: {told}");
        ensure!(frames > 0, "nothing was received: {told}");
        let flows = run.received.flows;
        ensure!(
            flows <= self.case.flows.into() && (flows > 0) == self.way.is_weir(),
            "of {} flows it found {flows}",
            self.case.flows
        );
        let measured = self.options.check || run.received.window_ns > 0;
        ensure!(measured, "the sender ended before the window did: {told}");
        Ok(())
    }
}

fn clap_name(way: Receiver) -> String {
    use clap::ValueEnum as _;
    way.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

/// Reports progress.
fn say(text: &str) -> Result<()> {
    writeln!(io::stderr(), "{text}").context("standard error")
}
