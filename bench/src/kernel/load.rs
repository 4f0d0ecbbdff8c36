//! How long it takes to make the program of each query of the library.

use super::loaded::{MakingTime, make};
use crate::stats::median;
use crate::work::{compile, texts_in};
use anyhow::{Context, Result, ensure};
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;
use weir_offload::Hook;
use weir_plan::physical::Physical;

/// How to measure.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct LoadOptions {
    /// How often each program is made.
    #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) rounds: u16,
    /// Where it runs.
    #[arg(long, value_enum, default_value_t = HookName::Xdp)]
    pub(crate) hook: HookName,
}

/// A hook, on the command line.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum HookName {
    /// The filter of packet sockets.
    Socket,
    /// Traffic control.
    Tcx,
    /// The driver.
    Xdp,
}

/// The queries of the library.
const QUERIES: [&str; 2] = ["../queries", "../queries/detectors"];

/// Milliseconds in which a program is to be made, its maps aside.
const AIM_MS: f64 = 10.0;

/// The time that it took to make the program of one query.
struct Made {
    query: String,
    instructions: usize,
    times: Vec<MakingTime>,
}

impl Made {
    /// The median of a part, in milliseconds.
    fn ms(&self, part: impl Fn(&MakingTime) -> Duration) -> f64 {
        median(self.times.iter().map(|time| part(time).as_secs_f64() * 1e3))
    }

    fn without_maps(&self) -> f64 {
        self.ms(|time| time.compile + time.load)
    }
}

/// Measures, and gives the table.
pub(crate) fn run(options: &LoadOptions) -> Result<String> {
    let hook = match options.hook {
        HookName::Socket => Hook::Socket,
        HookName::Tcx => Hook::Tcx,
        HookName::Xdp => Hook::Xdp,
    };
    let (mut all, mut left_out) = (Vec::new(), 0);
    for folder in QUERIES {
        for (name, text) in texts_in(&Path::new(env!("CARGO_MANIFEST_DIR")).join(folder))? {
            let plan = Physical::new(&compile(&name, &text)?, &[]);
            let mut made = Made { query: name, instructions: 0, times: Vec::new() };
            for _ in 0..options.rounds {
                let Ok((program, time)) = make(&plan, hook).with_context(|| made.query.clone())?
                else {
                    break;
                };
                made.instructions = program.compiled.code.slots().len();
                made.times.push(time);
            }
            match made.times.is_empty() {
                true => left_out += 1,
                false => all.push(made),
            }
        }
    }
    ensure!(!all.is_empty(), "the kernel runs no part of any query");
    Ok(table(&all, left_out, hook, options.rounds))
}

fn table(all: &[Made], left_out: usize, hook: Hook, rounds: u16) -> String {
    let mut out = format!(
        "Milliseconds of processor time to make the program of a query ({hook}), medians of \
         {rounds}. The kernel runs no part of {left_out} other queries.\n\n\
         | query | instructions | compile | verify and load | maps |\n|---|---:|---:|---:|---:|\n"
    );
    for made in all {
        let (compile, load) = (made.ms(|time| time.compile), made.ms(|time| time.load));
        // Writing to a string does not fail.
        let _ = writeln!(
            out,
            "| {} | {} | {compile:.2} | {load:.2} | {:.2} |",
            made.query,
            made.instructions,
            made.ms(|time| time.maps),
        );
    }
    let slow = all.iter().filter(|made| made.without_maps() >= AIM_MS).count();
    let most = all.iter().map(Made::without_maps).fold(0.0, f64::max);
    let _ = write!(
        out,
        "\nWithout maps, the slowest takes {most:.1} ms; {slow} of {} take {AIM_MS} ms or more.",
        all.len()
    );
    out
}
