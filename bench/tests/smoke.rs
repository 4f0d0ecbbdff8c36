//! Everything that the benchmark does works, at sizes that say nothing about time. Each command
//! checks the results of what it runs, and fails where they are wrong.

use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// Runs the program, which must succeed; gives its standard output.
fn bench(args: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir-bench"));
    let output = command.args(args).output().expect("runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {errors}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// Rows of Markdown tables whose first cell starts like this.
fn rows(table: &str, start: &str) -> usize {
    table.lines().filter(|l| l.starts_with(&format!("| {start}"))).count()
}

fn installed(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok()
}

#[test]
fn the_whole_table() {
    let folder = tempfile::tempdir().expect("a folder");
    let (out, json) = (folder.path().join("out"), folder.path().join("table.json"));
    let path = |p: &Path| p.to_str().expect("UTF-8").to_owned();
    let (out, json) = (path(&out), path(&json));
    let common = ["table", "-n", "20000", "--rounds", "1", "--out", &out];
    let table = bench(&[&common[..], &["--json", &json]].concat());

    let everything = std::fs::read_to_string(&json).expect("written");
    let everything: Value = serde_json::from_str(&everything).expect("JSON");
    let roofline = everything["yardstick"] == "roofline";
    let cases = everything["cases"].as_array().expect("cases");
    let of = |kind: &str| cases.iter().filter(|c| c["kind"] == kind).count();
    let packers = usize::from(installed("gzip")) + usize::from(installed("zstd"));
    // Growing tables have nobody to compare with where the loop in C is absent.
    let expected = (if roofline { 20 } else { 19 }, 20, 2 * packers);
    assert_eq!((of("time"), of("scaling"), of("packed")), expected, "{table}");
    let timed = |run: &Value| run["process_wall_s"].as_f64().is_some_and(|s| s > 0.0);
    for case in cases {
        let runs = case["rounds"].as_array().expect("rounds");
        assert_eq!(runs.len(), 1, "{case}");
        assert!(runs[0].as_array().expect("runs").iter().all(timed), "{case}");
    }
    let lines = expected.0 + expected.1 + expected.2;
    let heads = rows(&table, "work") + rows(&table, "input");
    assert_eq!(table.lines().filter(|l| l.starts_with("| ")).count(), lines + heads, "{table}");

    let knocking =
        bench(&[&common[..], &["--trace", "a", "--only", "^a port-knocking: .*scan"]].concat());
    assert_eq!(rows(&knocking, "port knocking"), 2, "{knocking}");
    let flow_meters = bench(&["flow-meter", "-n", "20000", "--rounds", "1", "--out", &out]);
    assert_eq!(rows(&flow_meters, "language"), 1, "{flow_meters}");
}

#[test]
fn a_wrong_answer_is_an_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().to_str().expect("UTF-8");
    let args = ["table", "-n", "2000", "--rounds", "1", "--out", out, "--trace", "a"];
    let args = [&args[..], &["--only", "predicate"]].concat();
    bench(&args);
    let kept = |ending: &str| {
        let mut all =
            std::fs::read_dir(folder.path()).expect("a folder").map(|e| e.expect("there").path());
        all.find(|p| p.to_string_lossy().ends_with(ending)).expect("kept")
    };
    let answer = kept(".answer");
    let right = std::fs::read_to_string(&answer).expect("text");
    std::fs::write(&answer, right.replace("1:", "2:")).expect("written");
    let output = Command::new(env!("CARGO_BIN_EXE_weir-bench")).args(&args).output().expect("runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && errors.contains("predicate answered"), "{errors}");
}

#[test]
fn a_build_is_compared_with_another() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().to_str().expect("UTF-8");
    let compare = |before: &str| {
        let args = ["compare", before, "-n", "2000", "--rounds", "2", "--out", out];
        let more = ["--trace", "a", "--only", "flow-meter|predicate", "--workers", "2"];
        let mut command = Command::new(env!("CARGO_BIN_EXE_weir-bench"));
        command.args(args).args(more).output().expect("runs")
    };
    let same = compare(env!("CARGO_BIN_EXE_weir-bench"));
    let table = String::from_utf8(same.stdout).expect("UTF-8");
    assert!(same.status.success(), "{}", String::from_utf8_lossy(&same.stderr));
    assert_eq!((rows(&table, "flow meter"), rows(&table, "an arithmetic")), (2, 1), "{table}");
    let none = compare("/nowhere/weir-bench");
    let errors = String::from_utf8_lossy(&none.stderr);
    assert!(!none.status.success() && errors.contains("/nowhere/weir-bench"), "{errors}");
}

#[test]
fn what_state_costs() {
    let memory = bench(&["memory", "-n", "200000"]);
    assert_eq!(rows(&memory, "flow meter") + rows(&memory, "`scan`"), 3, "{memory}");
    let once = |command| bench(&[command, "-n", "20000", "--rounds", "1"]);
    let growth = once("growth");
    assert_eq!(rows(&growth, "flow meter") + rows(&growth, "`scan`"), 2, "{growth}");
    let detectors = bench(&["detectors-growth", "-n", "2000", "--rounds", "1"]);
    assert!(detectors.lines().any(|l| l.starts_with("| 1 | ")), "{detectors}");
    assert!(detectors.contains("Suricata"), "{detectors}");
    let capture = ["detectors-growth", "-r", "../fixtures/dns.pcap", "--rounds", "1"];
    let capture = bench(&capture);
    assert!(capture.starts_with("Capture ../fixtures/dns.pcap; "), "{capture}");
    let scaling = ["scaling", "-n", "20000", "--rounds", "1", "--workers", "1,3"];
    let scaling = bench(&[&scaling[..], &["--only", "^source-counts"]].concat());
    assert_eq!(rows(&scaling, "packets and bytes per source, every 1 s"), 2, "{scaling}");
    let faces = bench(&["faces", "-n", "2000000", "--rounds", "1", "--browsers", "3"]);
    assert_eq!(
        rows(&faces, "3 clients that want all rows, and one that never reads"),
        2,
        "{faces}"
    );
    let flood = once("flood");
    assert_eq!(flood.lines().filter(|l| l.ends_with("| 18000 |")).count(), 2, "{flood}");
    let idle = once("idle");
    assert_eq!(rows(&idle, "`scan` by flow, idle 1 s"), 2, "{idle}");
}

/// Every frame that was sent is received, or lost at a place that is known, whoever receives.
#[test]
#[expect(clippy::print_stderr, reason = "a skipped test says so")]
fn capture_from_a_wire() {
    let folder = tempfile::tempdir().expect("a folder");
    let json = folder.path().join("live.json");
    let json = json.to_str().expect("UTF-8");
    let small = ["live", "--check", "--rounds", "1", "--frames", "20000", "--flows", "50"];
    let short = ["--bytes", "60,1500", "--window-ms", "50", "--warm-up-ms", "1", "--json", json];
    for more in [&["--no-priority"][..], &["--no-priority", "--socket", "--only", "Weir"]] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_weir-bench"));
        let output = command.args(small).args(short).args(more).output().expect("runs");
        let errors = String::from_utf8_lossy(&output.stderr);
        let cannot = ["run as root", "there is only one", "there are no threads called"];
        if !output.status.success() && cannot.iter().any(|why| errors.contains(why)) {
            eprintln!("SKIPPED capture_from_a_wire: {errors}");
            return;
        }
        assert!(output.status.success(), "{errors}");
        let everything = std::fs::read_to_string(json).expect("written");
        let everything: Value = serde_json::from_str(&everything).expect("JSON");
        let cases = everything["cases"].as_array().expect("cases");
        let runs: Vec<&Value> =
            cases.iter().flat_map(|case| case["rounds"][0].as_array().expect("a round")).collect();
        let polls = runs.iter().any(|run| run["receiver"] == "loop over AF_XDP, busy-polling");
        let ways = if more.len() > 1 { 3 } else { 5 + 2 * usize::from(polls) };
        assert_eq!(runs.len(), 2 * ways, "{everything}");
        for run in runs {
            let count = |name: &str| run[name].as_u64().expect("a count");
            let lost = count("lost_on_the_wire") + count("lost_by_the_socket");
            assert_eq!(count("offered"), count("received") + lost, "{run}");
            assert!((1..=20_000 + 64).contains(&count("offered")), "{run}");
            let ours = run["receiver"].as_str().expect("a name").starts_with("Weir");
            assert_eq!(count("flows_found") > 0, ours, "{run}");
        }
        let table = String::from_utf8(output.stdout).expect("UTF-8");
        let ours = if more.len() > 1 || polls { 3 } else { 2 };
        assert_eq!(rows(&table, "Weir, flow meter"), 2 * ours, "{table}");
    }
}

/// Programs of queries are made, and that of a flow meter counts what the one in C counts.
#[test]
#[expect(clippy::print_stderr, reason = "a skipped test says so")]
fn programs_in_the_kernel() {
    let tried = |args: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_weir-bench")).args(args).output();
        let output = output.expect("runs");
        let errors = String::from_utf8_lossy(&output.stderr);
        let cannot = ["making maps, as root", "takes clang and libbpf", "'bpf/", "-lbpf"];
        if !output.status.success() && cannot.iter().any(|why| errors.contains(why)) {
            eprintln!("SKIPPED programs_in_the_kernel: {}: {errors}", args[0]);
            return None;
        }
        assert!(output.status.success(), "{errors}");
        Some(String::from_utf8(output.stdout).expect("UTF-8"))
    };
    if let Some(table) = tried(&["offload-load", "--rounds", "1"]) {
        assert!(rows(&table, "flow_meter") == 1 && table.lines().count() > 30, "{table}");
    }
    if let Some(table) = tried(&["offload-program", "--rounds", "1", "--repeat", "100"]) {
        assert_eq!(rows(&table, "TCP") + rows(&table, "UDP"), 4, "{table}");
    }
}

/// Each function lets its client through, whoever does it: the kernel as well as Weir, by every way
/// that frames can come and go.
#[test]
#[expect(clippy::print_stderr, reason = "a skipped test says so")]
fn network_functions() {
    let folder = tempfile::tempdir().expect("a folder");
    let json = folder.path().join("forward.json");
    let json = json.to_str().expect("UTF-8");
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir-bench"));
    command.args(["forward", "--check", "--rounds", "1", "--ms", "60", "--trips", "5"]);
    command.args(["--json", json]);
    let output = command.output().expect("runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    // The binary of Weir lies beside this one only where the whole workspace was built.
    let cannot = ["run as root", "running ip, of iproute2,", "build it first"];
    if !output.status.success() && cannot.iter().any(|why| errors.contains(why)) {
        eprintln!("SKIPPED network_functions: {errors}");
        return;
    }
    assert!(output.status.success(), "{errors}");
    let everything = std::fs::read_to_string(json).expect("written");
    let everything: Value = serde_json::from_str(&everything).expect("JSON");
    let nft = installed("nft");
    for function in everything["functions"].as_array().expect("functions") {
        let runs = function["rounds"][0].as_array().expect("a round");
        let kernel = nft || function["function"] == "bridge";
        assert_eq!(runs.len(), 6 + usize::from(kernel), "{function}");
        for run in runs {
            let count = |of: &str, name: &str| run[of][name].as_u64().expect("a count");
            for load in ["steady", "small"] {
                let (sent, received) = (count(load, "sent"), count(load, "received"));
                assert!((1..=sent).contains(&received), "{run}");
            }
            let trips = run["trips_ns"].as_array().expect("round trips");
            // On a busy machine the first may be lost, after which there are no more.
            let trips = trips.len() as u64 + run["trips_lost"].as_u64().expect("a count");
            assert!((1..=5).contains(&trips), "{run}");
        }
    }
    let table = String::from_utf8(output.stdout).expect("UTF-8");
    let names = ["bridge", "port knocking", "load balancer"];
    let kernels = [true, nft, nft].map(usize::from);
    for (name, kernel) in names.iter().zip(kernels) {
        assert_eq!(rows(&table, name), 6 + kernel, "{table}");
    }
    assert_eq!(table.contains("Not measured: "), !nft, "{table}");
}

/// Records that go into Kafka come out of it, and Flink alone counts what Weir counts.
#[test]
#[expect(clippy::print_stderr, reason = "a skipped test says so")]
fn kafka_and_flink() {
    let folder = tempfile::tempdir().expect("a folder");
    let (out, json) = (folder.path().join("out"), folder.path().join("cluster.json"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir-bench"));
    command.args(["cluster", "--check", "--rounds", "1", "-n", "200000"]);
    // The engine of the job that is built with the tests is there already.
    let engine =
        Path::new(env!("CARGO_BIN_EXE_weir-bench")).with_file_name("deps/libweir_native.so");
    if engine.is_file() {
        command.env("WEIR_NATIVE", engine);
    }
    let output = command.arg("--json").arg(&json).arg("--out").arg(&out).output().expect("runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    // The binary of Weir lies beside this one only where the whole workspace was built.
    let cannot = ["Not measured", "build it first"];
    if !output.status.success() && cannot.iter().any(|why| errors.contains(why)) {
        eprintln!("SKIPPED kafka_and_flink: {errors}");
        return;
    }
    assert!(output.status.success(), "{errors}");
    let table = String::from_utf8(output.stdout).expect("UTF-8");
    assert_eq!(rows(&table, "packets into") + rows(&table, "packets out of"), 4, "{table}");
    assert_eq!(rows(&table, "partial results into Kafka"), 2, "{table}");
    assert_eq!(rows(&table, "partial results out of Kafka"), 2, "{table}");
    let everything = std::fs::read_to_string(json).expect("written");
    let everything: Value = serde_json::from_str(&everything).expect("JSON");
    let all = |part: &str| everything[part].as_array().expect("measurements").clone();
    let timed = |run: &Value| run["wall_s"].as_f64().is_some_and(|s| s > 0.0);
    for line in all("transfers") {
        assert!(line["rounds"].as_array().expect("rounds").iter().all(timed), "{line}");
    }
    if table.contains("Not measured") {
        eprintln!("SKIPPED kafka_and_flink, in part: {table}");
        return;
    }
    assert_eq!(rows(&table, "Flink alone"), 1, "{table}");
    let merges = all("merges");
    let latency = &merges[0]["real_time"][0]["latency_s"];
    assert!(latency.as_f64().is_some_and(|s| s > 0.0), "{table}");
    for line in merges[0]["at_once"].as_array().expect("loads") {
        assert!(line["rounds"].as_array().expect("rounds").iter().all(timed), "{line}");
    }
}

#[test]
fn other_programs_beside_ours() {
    // The binary of Weir lies beside this one only where the whole workspace was built.
    let weir = Path::new(env!("CARGO_BIN_EXE_weir-bench")).with_file_name("weir");
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().to_str().expect("UTF-8");
    let args = ["peers", "-n", "20000", "--rounds", "1", "--out", out];
    if weir.is_file() {
        let table = bench(&args);
        assert_eq!(rows(&table, "weir |"), 1, "{table}");
        assert!(table.contains("Not here, and so not measured: "), "{table}");
    } else {
        let output = Command::new(env!("CARGO_BIN_EXE_weir-bench")).args(args).output();
        let errors = output.expect("runs").stderr;
        assert!(String::from_utf8_lossy(&errors).contains("cargo build --release -p weir"));
    }
}
