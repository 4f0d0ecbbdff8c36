//! Once every flow was seen, nothing asks for memory per packet or per batch.

use std::process::Command;

/// Packets of each run, in half of which everything finds its size.
const PACKETS: u64 = 2_000_000;

/// Allocations that one window may cost, by the number of workers: lists of the groups that close,
/// which change hands, and where two workers' groups are merged, room for a batch of keys.
const PER_WINDOW: [f64; 2] = [4.0, 16.0];

/// Allocations in a whole steady phase that several workers may still make, whose batches wait for
/// their turn: the ring keeps the rows of those that wait, and takes memory for more of them
/// when the system lets one worker run further ahead of the other than ever before.
const WAITING: u64 = 200;

/// A row of the table, as far as it is looked at.
#[derive(Debug)]
struct Row {
    work: String,
    workers: usize,
    before: u64,
    steady: u64,
    windows: f64,
}

fn rows() -> Vec<Row> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir-bench"));
    command.args(["allocations", "-n", &PACKETS.to_string()]);
    let output = command.output().expect("runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let table = String::from_utf8(output.stdout).expect("UTF-8");
    let row = |line: &str| {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        Some(Row {
            work: cells.get(1)?.to_string(),
            workers: cells.get(2)?.parse().ok()?,
            before: cells.get(3)?.parse().ok()?,
            steady: cells.get(4)?.parse().ok()?,
            windows: cells.get(7)?.parse().ok()?,
        })
    };
    table.lines().filter_map(row).collect()
}

#[test]
fn nothing_is_allocated_per_packet_or_per_batch() {
    let rows = rows();
    // Fifteen works, with one worker and with two.
    assert_eq!(rows.len(), 30, "{rows:?}");
    let exact = ["source-counts", "syn-by-destination", "distinct-sources", "library"];
    let others = ["approx-distinct", "quantiles", "frequent", "sliding"];
    let windowed = [&exact[..], &others].concat();
    for row in &rows {
        assert!(row.before > 0, "nobody counts: {row:?}");
        assert_eq!(row.windows >= 100.0, windowed.contains(&&*row.work), "{row:?}");
        let waits = ["port-knocking", "library", "plain-rows"].contains(&&*row.work);
        let waiting = match &*row.work {
            // Rows are handed over whenever the watermark is looked at.
            "interval-join" => 2 * WAITING,
            _ if waits && row.workers > 1 => WAITING,
            _ => 0,
        };
        let per_window = match &*row.work {
            // Sketches are made anew in each window, those of larger groups.
            "approx-distinct" => 150.0,
            // Texts and panes are put together.
            "frequent" | "sliding" => 24.0,
            _ => PER_WINDOW[row.workers - 1],
        };
        let allowed = (row.windows * per_window) as u64 + waiting;
        assert!(row.steady <= allowed, "{row:?}: {allowed} allocations are allowed");
    }
}
