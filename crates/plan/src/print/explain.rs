//! A program, explained.

use super::levels::levels;
use super::placed;
use crate::physical::{Physical, Prefix};
use crate::place::place;
use crate::program::{Program, SourceKind};

/// Explains a program: how packets are spread over this many workers and why; then what crosses
/// between the levels that it runs on, and of each level the stages of each pipeline, the columns
/// after each stage that changes them, the state that stages hold, and its bounds.
pub fn explain(program: &Program, workers: usize) -> String {
    let placement = place(program);
    let plan = Physical::placed(program, &placement);
    source(program).to_owned() + &placed::spreading(&placement, workers) + &levels(&plan)
}

/// The source that the program reads, unless that is packets.
fn source(program: &Program) -> &'static str {
    match program.source {
        SourceKind::Packets => "",
        SourceKind::FlowRecords => "reads: flow records, of which holds what is said of packets\n",
    }
}

/// The same of a program of which the kernel runs these prefixes, at this hook.
pub fn explain_with_kernel(
    program: &Program,
    workers: usize,
    hook: &str,
    prefixes: &[Prefix],
) -> String {
    let placement = place(program);
    let plan = Physical::placed(program, &placement).with_kernel(hook, prefixes);
    placed::spreading(&placement, workers) + &levels(&plan)
}
