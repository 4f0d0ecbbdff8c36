//! The output of `weir explain --offload`: the plan with its kernel level, the program and its
//! maps.

use serde_json::{Value, json};
use std::fmt::Write as _;
use weir_kernel::{KernelQuery, WORKERS_COUNT, refusal_of};
use weir_offload::{Hook, KernelProgram, MapSpec, OffloadOptions};
use weir_plan::Program;
use weir_plan::functions::Signatures;
use weir_plan::physical::{Physical, Unwritable};
use weir_plan::print;

/// Processors of the machine that an explanation is for: its text is the same everywhere.
const PROCESSORS: u32 = 1;

/// Maps are arrays of one entry, whose keys are its number.
const ENTRIES: usize = 1;
const KEY_BYTES: usize = 4;

/// A query at a hook of the kernel.
pub(crate) struct KernelCut {
    hook: Hook,
    /// The program for it, or why there is none.
    compiled: Result<KernelProgram, String>,
}

impl KernelCut {
    /// The part of a query that the kernel can run.
    pub(crate) fn new(query: &Program, hook: Hook) -> KernelCut {
        let of = KernelQuery::new(query, refusal_of(query));
        // The secret of a run is in its program; nobody needs this one.
        let outlets = of.outlets_by_name();
        let options = OffloadOptions {
            groups: Some([0; 2]),
            outlets: Ok(&outlets),
            ..OffloadOptions::new(hook, PROCESSORS)
        };
        KernelCut { hook, compiled: of.compile(&options) }
    }

    /// The plan as text, and after it the program.
    pub(crate) fn text(&self, query: &Program, workers: usize) -> String {
        let KernelProgram { code, maps, prefixes, whole, .. } = match &self.compiled {
            Ok(program) => program,
            Err(why) => {
                let plan = print::explain(query, workers);
                return format!("{plan}\nkernel ({}): runs no part of it: {why}\n", self.hook);
            }
        };
        let hook = self.hook.to_string();
        let mut text = print::explain_with_kernel(query, workers, &hook, prefixes);
        text.push_str(&match whole {
            None => "\npackets that go up: cut after their headers\n".to_owned(),
            Some(why) => format!("\npackets that go up: whole, since {why}\n"),
        });
        if self.hook == Hook::Socket && prefixes.iter().any(|prefix| prefix.counts) {
            let _ =
                write!(text, "\nwith `--offload auto`, workers make all groups: {WORKERS_COUNT}\n");
        }
        text.push_str("\nmaps of the kernel level, for a machine with one processor:\n");
        for (number, map) in maps.iter().enumerate() {
            let (MapSpec { name, .. }, bytes) = (map, 8 * map.words);
            let _ = writeln!(
                text,
                "  map {number} ({name}): {ENTRIES} of {bytes} bytes by keys of {KEY_BYTES}"
            );
        }
        let n = code.slots().len();
        let _ = write!(text, "\nprogram of the kernel level, {n} instructions:\n{code}");
        text
    }

    /// The same as one JSON object.
    pub(crate) fn json(
        &self,
        query: &Program,
        signatures: &Signatures,
    ) -> Result<String, Unwritable> {
        let plan = Physical::new(query, &[]);
        let object = |plan: Physical| -> Result<Value, Unwritable> {
            let text = plan.to_json(signatures)?;
            Ok(serde_json::from_str(&text).unwrap_or_default())
        };
        let hook = self.hook.to_string();
        let all = match &self.compiled {
            Err(why) => json!({ "hook": hook, "refused": why, "plan": object(plan)? }),
            Ok(KernelProgram { code, maps, prefixes, whole, .. }) => {
                let map = |map: &MapSpec| {
                    json!({
                        "name": map.name,
                        "key_bytes": KEY_BYTES,
                        "value_bytes": 8 * map.words,
                        "entries": ENTRIES,
                    })
                };
                let listing = code.to_string();
                json!({
                    "hook": hook,
                    "plan": object(plan.with_kernel(&hook, prefixes))?,
                    "whole": whole,
                    "maps": maps.iter().map(map).collect::<Vec<_>>(),
                    "instructions": listing.lines().map(str::trim_start).collect::<Vec<_>>(),
                })
            }
        };
        Ok(format!("{all:#}\n"))
    }
}
