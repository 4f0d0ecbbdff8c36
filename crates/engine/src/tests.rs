//! The harness that every operator passes: any cut into batches and any number of workers give
//! the rows and counts of the naive model.

use crate::functions::Functions;
use crate::limits::{JUMP_NS, LATENESS_NS};
use crate::rows::{Collect, Sink};
use crate::run::{Options, run_to};
use crate::table::HashKey;
use weir_model::egress::{Collected, by_outlet};
use weir_model::{HASH_SECRETS, TimeRules};
use weir_packet::limits::BATCH;
use weir_plan::{Program, Stage, Value};

pub(crate) use weir_model::{Frames, program, schema_after};

/// A key of the hash, by number.
pub(crate) fn hash_key(n: usize) -> HashKey {
    let (a, b) = HASH_SECRETS[n];
    HashKey::new(a, b)
}

/// Checks a program over some frames. Panics where an answer differs from the naive model's.
/// Returns that answer: output number and cells of each row.
pub(crate) fn check(
    program: &Program,
    functions: &Functions,
    frames: &Frames,
) -> Vec<(usize, Vec<Value>)> {
    let rules = TimeRules { lateness_ns: LATENESS_NS, jump_ns: JUMP_NS };
    let mut rows = Vec::new();
    for (n, cuts) in [&[BATCH][..], &[1], &[3, 1, 64], &[255]].into_iter().enumerate() {
        let hash_key = hash_key(n);
        // Which batches there are only matters to the counts of a run that a `limit` ends.
        let want = weir_model::run(program, functions, &mut frames.cut(cuts), &rules);
        assert!(want.ledger.adds_up(), "the naive ledger: {:?}", want.ledger);
        let want_frames = by_outlet(want.frames);
        for workers in [1, 2, 4] {
            let (mut sink, mut egress) = (Collect::default(), Collected::default());
            let options = Options { workers, hash_key, ..Options::default() };
            let mut source = frames.cut(cuts);
            let ends = (&mut sink as &mut dyn Sink, &mut egress as _);
            let outcome = run_to(program, functions, &mut source, ends, &options, &mut |_| {});
            let how = format!("{workers} workers, batches of {cuts:?}");
            assert!(outcome.error.is_none(), "{how}: {:?}", outcome.error);
            assert_eq!(sink.rows, want.rows, "rows of {how}");
            assert_eq!(by_outlet(egress.frames), want_frames, "frames of {how}");
            assert_eq!(outcome.ledger, want.ledger, "ledger of {how}");
            let ways = outcome.ledger.shares.of_ways();
            let all = outcome.ledger.processed;
            assert!(!ways.is_empty() && ways.iter().all(|n| *n == all), "{ways:?} of {how}");
            assert!(outcome.ledger.adds_up(), "ledger of {how}");
            assert!(sink.finish().is_ok(), "finishing twice");
        }
        rows = want.rows;
    }
    rows
}

/// [`check`] of [`program`] over [`Frames::sample`]; the rows as text, a line each.
pub(crate) fn check_stages(stages: Vec<Stage>) -> Vec<String> {
    let rows = check(&program(stages), &Functions::default(), &Frames::sample());
    let line = |cells: &[Value]| cells.iter().map(Value::to_string).collect::<Vec<_>>().join(" ");
    rows.iter().map(|(_, cells)| line(cells)).collect()
}
