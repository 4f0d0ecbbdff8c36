//! A query's program in the kernel, with its maps.

use crate::timing::Stopwatch;
use anyhow::{Context, Result};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use weir_capture::ebpf::{Program, ProgramKind, SharedMemory, cpu_numbers};
use weir_offload::{FrameCount, Hook, KernelProgram, NotOffloaded, OffloadOptions, compile};
use weir_plan::physical::Physical;

/// The secret of the hash of groups: any will do.
const SECRET: [u64; 2] = [0x243f_6a88_85a3_08d3, 0x9e37_79b9_7f4a_7c15];

/// A program that was loaded.
pub(super) struct LoadedProgram {
    pub(super) compiled: KernelProgram,
    pub(super) program: Program,
    frames: SharedMemory,
    /// The memory of its other maps, which go with it.
    _others: Vec<SharedMemory>,
}

/// Processor time of the parts of making one.
#[derive(Clone, Copy, Debug)]
pub(super) struct MakingTime {
    /// From the plan to the program.
    pub(super) compile: Duration,
    /// Its maps.
    pub(super) maps: Duration,
    /// The kernel's verifier and compiler.
    pub(super) load: Duration,
}

/// Makes the program of a plan for a hook; `None` with the reason where the kernel runs no part of
/// it.
pub(super) fn make(
    plan: &Physical,
    hook: Hook,
) -> Result<Result<(LoadedProgram, MakingTime), NotOffloaded>> {
    let cpus = cpu_numbers().context("counting processors")?;
    let options = OffloadOptions {
        groups: Some(SECRET),
        ..OffloadOptions::new(hook, u32::try_from(cpus).context("counting processors")?)
    };
    let begin = Stopwatch::start();
    let compiled = match compile(plan, &options) {
        Ok(compiled) => compiled,
        Err(why) => return Ok(Err(why)),
    };
    let at_compiled = begin.read().cpu;
    let memory = compiled.maps.iter().map(|map| SharedMemory::new(&map.name, map.words));
    let mut memory = memory.collect::<Result<Vec<_>, _>>().context("making maps, as root")?;
    let at_maps = begin.read().cpu;
    let numbers: Vec<i32> = memory.iter().map(SharedMemory::number).collect();
    let kind = match hook {
        Hook::Socket => ProgramKind::SocketFilter,
        Hook::Tcx => ProgramKind::TrafficControl,
        Hook::Xdp => ProgramKind::Xdp,
    };
    let program = Program::load(kind, "weir_bench", &compiled.code.with_maps(&numbers))
        .context("loading a program")?;
    let at_loaded = begin.read().cpu;
    let time = MakingTime {
        compile: at_compiled,
        maps: at_maps.saturating_sub(at_compiled),
        load: at_loaded.saturating_sub(at_maps),
    };
    let frames = memory.remove(0);
    Ok(Ok((LoadedProgram { compiled, program, frames, _others: memory }, time)))
}

impl LoadedProgram {
    /// How many frames it has counted so.
    pub(super) fn count(&self, count: FrameCount) -> u64 {
        let by_cpu = self.frames.words().chunks_exact(FrameCount::WORDS);
        by_cpu.map(|words| words[count as usize].load(Relaxed)).sum()
    }
}
