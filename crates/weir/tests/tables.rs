//! Arrow and Parquet as others read them: PyArrow and DuckDB, which pip fetches, see the rows that
//! Weir wrote.

/// The message of a program that was built without them.
#[test]
#[cfg(not(feature = "tables"))]
fn a_program_without_tables_says_how_to_get_them() {
    for to in [["-o", "arrow"], ["-o", "parquet"], ["--store", "nowhere"]] {
        let mut weir = std::process::Command::new(env!("CARGO_BIN_EXE_weir"));
        let capture = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/mixed.pcap");
        let output = weir.args(["run", "source_counts", "-r", capture]).args(to).output();
        let output = output.expect("the binary runs");
        let said = String::from_utf8(output.stderr).expect("text");
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("weir was built without"), "{said}");
        assert!(said.contains("cargo install --path crates/weir --features tables"), "{said}");
    }
}

#[cfg(feature = "tables")]
mod common;
#[cfg(feature = "tables")]
#[path = "common/python.rs"]
mod python;

#[cfg(feature = "tables")]
mod read {
    use super::common::root;
    use super::python::packages;
    use std::path::Path;
    use std::process::Command;

    /// The programs that read, by their versions.
    const READERS: [&str; 2] = ["duckdb==2.0.1", "pyarrow==26.0.1"];

    /// The lines that a program of Python prints.
    fn python(readers: &Path, program: &str, args: &[&str]) -> String {
        let mut python = Command::new("python3");
        python.env("PYTHONPATH", readers).args(["-c", program]).args(args);
        let output = python.output().expect("python runs");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{errors}");
        String::from_utf8(output.stdout).expect("text")
    }

    fn weir(args: &[&str]) -> Vec<u8> {
        let mut weir = Command::new(env!("CARGO_BIN_EXE_weir"));
        let output = weir.current_dir(root()).args(args).output().expect("weir runs");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{args:?}: {errors}");
        output.stdout
    }

    /// A row has a value of each type, and some that are absent.
    const EVERY_TYPE: &str = "packets | where ip | project ts, ip.src, eth.src, len, dns, \
                              dns.qname, payload, share = len / 3.0, since = ts - @2024-01-01, \
                              v6 = ip.version == 6";

    /// Prints a file as Weir writes CSV with times in nanoseconds.
    const AS_CSV: &str = r#"
import csv, ipaddress, sys, pyarrow as pa, pyarrow.ipc, pyarrow.parquet
name = sys.argv[1]
if name.endswith(".parquet"):
    table = pa.parquet.read_table(name)
else:
    table = pa.ipc.open_stream(name).read_all()
def address(b):
    four = b.startswith(bytes(10) + b"\xff\xff")
    return str(ipaddress.ip_address(b[12:] if four else b))
def seconds(ns):
    sign, ns = "-" if ns < 0 else "", abs(ns)
    whole, part = divmod(ns, 10**9)
    return sign + (f"{whole}.{part:09}".rstrip("0").rstrip("."))
def cell(field, value):
    kind = (field.metadata or {}).get(b"ARROW:extension:name")
    if value is None: return ""
    if kind == b"weir.ip": return address(value)
    if kind == b"weir.mac": return value.hex(":")
    if pa.types.is_duration(field.type): return seconds(value)
    if isinstance(value, bool): return str(value).lower()
    if isinstance(value, bytes): return value.hex()
    return str(value)
columns = []
for field, column in zip(table.schema, table.columns):
    if pa.types.is_timestamp(field.type) or pa.types.is_duration(field.type):
        column = column.cast(pa.int64())
    columns.append([cell(field, value) for value in column.to_pylist()])
out = csv.writer(sys.stdout, lineterminator="\n")
out.writerow(table.schema.names)
out.writerows(zip(*columns))
"#;

    #[test]
    fn pyarrow_reads_what_was_written() {
        let Some(readers) = packages("tables::pyarrow_reads_what_was_written", &READERS, false)
        else {
            return;
        };
        let folder = tempfile::tempdir().expect("a folder");
        for (format, ending) in [("arrow", "arrows"), ("parquet", "parquet")] {
            for capture in ["fixtures/mixed.pcap", "fixtures/dns.pcap", "fixtures/vlan.pcap"] {
                let rows = |more: &[&str]| {
                    weir(&[&["run", "-e", EVERY_TYPE, "-r", capture, "-q"], more].concat())
                };
                let file = folder.path().join(format!("rows.{ending}"));
                std::fs::write(&file, rows(&["-o", format])).expect("written");
                let read = python(&readers, AS_CSV, &[file.to_str().expect("UTF-8")]);
                let want = rows(&["-o", "csv", "--time", "epoch-ns"]);
                assert_eq!(read, String::from_utf8(want).expect("text"), "{format} {capture}");
            }
        }
    }

    /// A query of DuckDB over Parquet, and what Weir says to the same question.
    #[test]
    fn duckdb_asks_what_was_written() {
        let Some(readers) = packages("tables::duckdb_asks_what_was_written", &READERS, false)
        else {
            return;
        };
        let folder = tempfile::tempdir().expect("a folder");
        let flows = "packets | where ip | summarize n = count(), bytes = sum(len), first = min(ts) \
                     by ip.src, ip.dst";
        let out = folder.path().join("flows");
        let out = out.to_str().expect("UTF-8");
        let capture = ["-r", "fixtures/mixed.pcap", "-q"];
        let write = ["run", "-e", flows, "-o", "parquet", "--out-dir", out, "--addresses", "text"];
        weir(&[&write[..], &capture].concat());
        let sql = r#"
import duckdb, sys
for row in duckdb.sql(f'''
    select "ip.src", sum(n)::bigint, sum(bytes)::bigint, epoch_ns(min("first"))
    from '{sys.argv[1]}/*.parquet' where "ip.src" not like '%:%'
    group by all order by 1
''').fetchall():
    print(*row, sep=",")
"#;
        let read = python(&readers, sql, &[out]);
        let same = "packets | where ip and ip.version == 4 | summarize n = count(), \
                    bytes = sum(len), first = min(ts) by ip.src";
        let ask = ["run", "-e", same, "-o", "csv", "--time", "epoch-ns"];
        let want = String::from_utf8(weir(&[&ask[..], &capture].concat())).expect("text");
        let mut want: Vec<&str> = want.lines().skip(1).collect();
        want.sort_unstable();
        assert!(want.len() > 3, "{want:?}");
        assert_eq!(read.lines().collect::<Vec<_>>(), want);
    }

    /// The commands of the documentation over a capture, and what DuckDB is asked there.
    #[test]
    fn commands_of_the_documentation_do_what_they_say() {
        let Some(readers) = packages("tables::commands_of_the_documentation", &READERS, false)
        else {
            return;
        };
        let page = super::common::text("docs/tables.md");
        let place = super::common::workplace();
        let folder = std::path::Path::new(env!("CARGO_BIN_EXE_weir")).parent().expect("a folder");
        let (mut commands, mut questions) = (0, 0);
        for (tag, body) in page.split("```").skip(1).step_by(2).filter_map(|b| b.split_once('\n')) {
            if tag == "sh" && body.starts_with("weir ") {
                let mut sh = Command::new("sh");
                sh.current_dir(place.path()).args(["-ec", "PATH=$0:$PATH\n eval \"$1\""]);
                let output = sh.arg(folder).arg(body).output().expect("a shell");
                let errors = String::from_utf8_lossy(&output.stderr);
                assert!(output.status.success(), "{body}: {errors}");
                commands += 1;
            } else if tag == "sql" {
                let ask = "import duckdb, sys; print(len(duckdb.sql(sys.argv[1]).fetchall()))";
                let mut python = Command::new("python3");
                python.env("PYTHONPATH", &readers).current_dir(place.path());
                let output = python.args(["-c", ask, body]).output().expect("python runs");
                let errors = String::from_utf8_lossy(&output.stderr);
                assert!(output.status.success(), "{body}: {errors}");
                assert_ne!(output.stdout, b"0\n", "{body}");
                questions += 1;
            }
        }
        assert!(commands >= 2 && questions >= 2, "{commands} commands, {questions} questions");
    }

    /// A capture over 120 hours: 2,000 packets of 60 bytes an hour, by as many hosts.
    fn long_capture(path: &Path) {
        let mut bytes = [0xa1b2_3c4d_u32.to_le_bytes(), [2, 0, 4, 0], [0; 4], [0; 4]].concat();
        bytes.extend([65_535_u32.to_le_bytes(), 1_u32.to_le_bytes()].concat());
        for n in 0..HOURS * PER_HOUR {
            let ns = u64::from(n) * 3_600_000_000_000 / u64::from(PER_HOUR);
            let seconds = 1_714_564_800 + (ns / 1_000_000_000) as u32;
            let head = [seconds, (ns % 1_000_000_000) as u32, 60, 60];
            bytes.extend(head.into_iter().flat_map(u32::to_le_bytes));
            let mut frame = [0; 60];
            frame[12..14].copy_from_slice(&[8, 0]);
            let ip = [0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17, 0, 0, 10];
            frame[14..27].copy_from_slice(&ip);
            frame[27..30].copy_from_slice(&n.to_be_bytes()[1..]);
            frame[30..34].copy_from_slice(&[192, 0, 2, 1]);
            bytes.extend(frame);
        }
        std::fs::write(path, bytes).expect("written");
    }

    const HOURS: u32 = 120;
    const PER_HOUR: u32 = 2_000;

    /// A run that is killed leaves whole files, and when it is done again, no row is there twice.
    #[test]
    fn a_run_that_is_killed_leaves_whole_files() {
        let Some(readers) = packages("tables::a_run_that_is_killed", &READERS, false) else {
            return;
        };
        let folder = tempfile::tempdir().expect("a folder");
        let place = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_owned();
        long_capture(folder.path().join("long.pcap").as_path());
        let (capture, archive) = (place("long.pcap"), place("archive"));
        let query = "packets | project ts, ip.src, len";
        let args = ["run", "-e", query, "-r", &capture, "-q", "--store", &archive];
        let count = r#"
import duckdb, sys
print(duckdb.sql(f"""select count(*), count(distinct "ip.src"), count(distinct hour),
    bool_and(hour(ts) = hour::int and ts::date = date)
    from read_parquet('{sys.argv[1]}/*/*/*/*.parquet')""").fetchall()[0])
"#;
        let mut left_some = 0;
        for n in 1..60 {
            let mut killed = Command::new("timeout");
            killed.args(["-s", "KILL", &format!("{}", f64::from(n) * 0.03)]);
            killed.current_dir(root()).arg(env!("CARGO_BIN_EXE_weir")).args(args);
            let whole = killed.status().expect("timeout runs").success();
            let kept = super::common::files(&archive, &[".parquet"]);
            if !kept.is_empty() {
                let told = python(&readers, count, &[&archive]);
                assert!(told.contains("True"), "{n}: {told}");
                left_some += u32::from(!whole);
            }
            if whole {
                break;
            }
        }
        assert!(left_some > 0, "none was killed while it stored");
        weir(&args);
        let told = python(&readers, count, &[&archive]);
        let all = HOURS * PER_HOUR;
        assert_eq!(told.trim(), format!("({all}, {all}, 24, True)"));
    }

    /// Results that are merged are stored as those of one run.
    #[test]
    fn rows_of_a_merge_are_stored() {
        let Some(readers) = packages("tables::rows_of_a_merge_are_stored", &READERS, false) else {
            return;
        };
        let folder = tempfile::tempdir().expect("a folder");
        let place = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_owned();
        let query = ["-e", "packets | where ip | summarize n = count() by ip.src every 1s"];
        let (stream, store) = (place("stream"), place("merged"));
        let probe = ["-r", "fixtures/mixed.pcap", "--publish", &stream, "--probe", "a", "-q"];
        weir(&[&["run"][..], &query, &probe].concat());
        weir(&[&["merge"][..], &query, &["--from", &stream, "--store", &store, "-q"]].concat());
        weir(
            &[&["run"][..], &query, &["-r", "fixtures/mixed.pcap", "--store", &place("one"), "-q"]]
                .concat(),
        );
        let rows = |folder: &str| {
            let ask = r#"
import duckdb, sys
print(duckdb.sql(f"""select ts, "ip.src", n from '{sys.argv[1]}/*/*/*/*.parquet' order by all""")
    .fetchall())
"#;
            python(&readers, ask, &[folder])
        };
        let merged = rows(&store);
        assert!(merged.matches("datetime").count() > 10, "{merged}");
        assert_eq!(merged, rows(&place("one")));
    }

    /// One place holds one output: the first of a query, and none of several queries.
    #[test]
    fn a_place_holds_one_output() {
        let two =
            "let a = packets | summarize n = count()\nlet b = packets | summarize n = sum(len)";
        for (texts, status) in [(&[two][..], 0), (&[two, "packets | limit 1"], 2)] {
            let mut weir = Command::new(env!("CARGO_BIN_EXE_weir"));
            let texts = texts.iter().flat_map(|text| ["-e", text]);
            let args = ["run", "-r", "fixtures/mixed.pcap", "-o", "parquet"].into_iter();
            let output = weir.current_dir(root()).args(args.chain(texts)).output();
            let output = output.expect("weir runs");
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(status), "{said}");
            assert!(said.contains("Parquet holds the rows of one"), "{said}");
            assert_eq!(output.stdout.starts_with(b"PAR1"), status == 0);
        }
    }

    /// The exit status of a command, and all that it says.
    fn archive(args: &[&str]) -> (i32, String) {
        let mut weir = Command::new(env!("CARGO_BIN_EXE_weir"));
        let output = weir.arg("archive").args(args).output().expect("it runs");
        let said = [output.stdout, output.stderr].concat();
        let status = output.status.code().expect("it ends by itself");
        (status, String::from_utf8(said).expect("text"))
    }

    #[test]
    fn an_archive_is_listed_checked_and_cleared_out() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = folder.path().to_str().expect("text");
        weir(&["run", "flows", "-r", "fixtures/web.pcap", "--store", store]);
        let (status, said) = archive(&["ls", store]);
        assert!(status == 0 && said.contains("\"output\":\"flows.flows\""), "{said}");
        assert!(said.contains("\"files\":1") && said.contains("\"rows\":16"), "{said}");
        let (_, hours) = archive(&["ls", store, "flows.flows"]);
        assert!(hours.contains("\"first\":\"2026-11-21T05:50:45."), "{hours}");
        assert_eq!(archive(&["ls", store, "no"]).0, 2);
        assert_eq!(archive(&["ls", "/proc"]).0, 2);
        let (status, said) = archive(&["check", store]);
        assert!(status == 0 && said.contains("0 are wrong"), "{said}");
        let (_, said) = archive(&["expire", store, "--older-than", "36500d"]);
        assert!(said.contains("0 of 3 files"), "{said}");
        let (_, said) = archive(&["expire", store, "--keep", "1k", "--dry-run"]);
        assert!(said.contains("would be removed"), "{said}");
        assert!(archive(&["ls", store]).1.contains("flows.flows"));
        let (status, said) = archive(&["expire", store, "--keep", "1k"]);
        assert!(status == 0 && said.contains("3 of 3 files"), "{said}");
        assert_eq!(archive(&["ls", store]), (0, String::new()));
        assert_eq!(archive(&["expire", store]).0, 2);
    }
}
