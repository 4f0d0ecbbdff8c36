//! `weir sql` as people call it: formats, standard input, the prompt, errors and exit statuses.

/// The message of a program that was built without it.
#[test]
#[cfg(not(feature = "sql"))]
fn a_program_without_sql_says_how_to_get_it() {
    let mut weir = std::process::Command::new(env!("CARGO_BIN_EXE_weir"));
    let output = weir.args(["sql", "select 1"]).output().expect("the binary runs");
    let said = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("cargo install --path crates/weir --features sql"), "{said}");
}

#[cfg(feature = "sql")]
mod common;

#[cfg(feature = "sql")]
mod with_sql {
    use super::common::{root, skip};
    use std::io::{Read as _, Write as _};
    use std::process::{Command, Output, Stdio};

    const SENDERS: &str = "select ip.src, count(*) as packets, max(ts) as last from \
                           'fixtures/web.pcap' where tcp.dport = 80 group by ip.src";

    fn weir(args: &[&str], input: &str) -> Output {
        let mut weir = Command::new(env!("CARGO_BIN_EXE_weir"));
        weir.current_dir(root()).args(args).stdin(Stdio::piped());
        let mut weir = weir.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs");
        let mut to = weir.stdin.take().expect("a pipe");
        to.write_all(input.as_bytes()).expect("it reads");
        drop(to);
        weir.wait_with_output().expect("it ends")
    }

    /// The text on standard output, after a run without a word on standard error.
    fn printed(args: &[&str], input: &str) -> String {
        let output = weir(args, input);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && said.is_empty(), "{args:?}: {said}");
        String::from_utf8(output.stdout).expect("text")
    }

    fn refused(statement: &str) -> String {
        let output = weir(&["sql", statement], "");
        assert_eq!(output.status.code(), Some(2), "{statement}");
        String::from_utf8(output.stderr).expect("text")
    }

    #[test]
    fn rows_are_written_in_all_formats() {
        let json = "{\"ip.src\":\"192.0.2.1\",\"packets\":74,\"last\":\"2026-11-21T05:50:45.";
        assert!(printed(&["sql", SENDERS], "").starts_with(json));
        assert!(printed(&["sql"], SENDERS).starts_with(json));
        let csv = printed(&["sql", SENDERS, "-o", "csv", "--time", "epoch"], "");
        assert!(csv.starts_with("ip.src,packets,last\n192.0.2.1,74,1795240245."), "{csv}");
        let bytes = printed(&["sql", SENDERS, "-o", "csv", "--addresses", "bytes"], "");
        assert!(bytes.contains("192.0.2.1,74,"), "{bytes}");
        let parquet = weir(&["sql", SENDERS, "-o", "parquet"], "");
        assert_eq!(parquet.stdout.get(..4), Some(&b"PAR1"[..]));
        let two = weir(&["sql", "select 1 as a; select 2 as b", "-o", "parquet"], "");
        let said = String::from_utf8_lossy(&two.stderr);
        assert!(two.status.code() == Some(2) && said.contains("rows of one statement"), "{said}");
        // Each statement has an answer, and one without rows has none.
        let two = "create view a as select 1 as n; select n from a; select n + 1 as n from a";
        assert_eq!(printed(&["sql", two], ""), "{\"n\":1}\n{\"n\":2}\n");
        assert_eq!(printed(&["sql", "select 1 as n where false", "-o", "csv"], ""), "n\n");
        let plan = printed(&["sql", &format!("explain {SENDERS}"), "-o", "table"], "");
        assert!(
            plan.contains("Weir: packets | where tcp.dport == 80 | project ts, ip.src"),
            "{plan}"
        );
    }

    #[test]
    fn stored_rows_are_asked() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = folder.path().to_str().expect("text");
        let run = ["run", "flows", "-r", "fixtures/web.pcap", "-q", "--store", store];
        printed(&run, "");
        let table = format!("'{store}/flows.flows'");
        // They hold addresses as bytes, and texts are compared with them all the same.
        for condition in [
            "ip.src = '192.0.2.1'",
            "'192.0.2.1' = f.ip.src",
            "ip.src in ('192.0.2.1', '203.0.113.1')",
            "ip.src between '192.0.2.1' and '192.0.2.1'",
            "in_net(ip.src, '192.0.2.1')",
            "ip_text(ip.src) = '192.0.2.1'",
            "date = '2026-11-21' and hour = '05' and ip.src = '192.0.2.1'",
        ] {
            let text = format!("select distinct ip.src from {table} f where {condition}");
            assert_eq!(printed(&["sql", &text], ""), "{\"ip.src\":\"192.0.2.1\"}\n", "{condition}");
        }
        let none = format!("select count(*) as n from {table} where date = '2026-11-22'");
        assert_eq!(printed(&["sql", &none], ""), "{\"n\":0}\n");
        // The same from the capture and from what was stored.
        let sums = |table: &str| format!("select sum(packets) as p, sum(bytes) as b from {table}");
        let capture = sums("weir('flows.flows', 'fixtures/web.pcap')");
        assert_eq!(printed(&["sql", &sums(&table)], ""), printed(&["sql", &capture], ""));
        let named = refused(&format!("select ip.scr from {table}"));
        assert!(named.contains("did you mean `ip.src`?"), "{named}");
    }

    #[test]
    fn mistakes_and_losses_are_told() {
        for (statement, told) in [
            ("", "no statement given"),
            ("select", "Expected"),
            ("select 1 from 'no.pcap'", "error: no.pcap: No such file or directory"),
            ("select * from packets", "there is no table `packets`; a file is one"),
            ("select 1 from 'README.md'", "README.md"),
            ("insert into 'x.csv' values (1)", "x.csv"),
            ("select * from (select 1 as a) x, (select 2 as a) y", "`as`"),
        ] {
            let said = refused(statement);
            assert!(said.contains(told) && said.starts_with("error: "), "{statement}: {said}");
        }
        // Packets that come late for a window are lost to a statement, too.
        let late = "select * from weir('packets | summarize n = count() every 10ms', \
                    'fixtures/web.pcap')";
        assert!(weir(&["sql", late], "").status.success());
        let cut = tempfile::NamedTempFile::new().expect("a file");
        let bytes = std::fs::read(root().join("fixtures/web.pcap")).expect("it is there");
        std::fs::write(cut.path(), &bytes[..bytes.len() - 5]).expect("written");
        let count = format!("select count(*) as n from '{}'", cut.path().display());
        let output = weir(&["sql", &count], "");
        let said = String::from_utf8_lossy(&output.stderr);
        // The packets before are counted, and the status says that there were more.
        assert_eq!(output.stdout, b"{\"n\":142}\n", "{said}");
        assert!(output.status.code() == Some(1) && said.contains("breaks off"), "{said}");
    }

    #[test]
    fn a_prompt_takes_statements() {
        let test = "a_prompt_takes_statements";
        let state = tempfile::tempdir().expect("a folder");
        let mut script = Command::new("script");
        let weir = format!("{} sql", env!("CARGO_BIN_EXE_weir"));
        script.args(["-qec", &weir, "/dev/null"]).current_dir(root());
        script.env("XDG_STATE_HOME", state.path()).env("TERM", "xterm");
        script.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut script = match script.spawn() {
            Ok(script) => script,
            Err(e) => return skip(test, &format!("script: {e} (apt-get install util-linux)")),
        };
        let mut keys = script.stdin.take().expect("a pipe");
        let mut screen = script.stdout.take().expect("a pipe");
        let mut seen = String::new();
        // Keys that come before a prompt is there would not reach it.
        let mut until = |text: &str| {
            let mut new = Vec::new();
            let mut byte = [0];
            while !String::from_utf8_lossy(&new).contains(text) {
                assert_eq!(screen.read(&mut byte).expect("a screen"), 1, "{text}: {seen}");
                new.extend(byte);
            }
            seen += &String::from_utf8_lossy(&new);
        };
        // A statement over two lines, one that is wrong, a name that is completed.
        for (typed, answer) in [
            ("select 40\r+ 2 as answer;\r", "42"),
            ("selec;\r", "Expected: an SQL statement"),
            (
                "select tcp.dpo\t * 0 + 4242 - 1 from 'fixtures/web.pcap' where tcp limit 1;\r",
                "4241",
            ),
        ] {
            until("sql> ");
            keys.write_all(typed.as_bytes()).expect("it reads");
            until(answer);
        }
        until("sql> ");
        keys.write_all(b"\x04").expect("it reads");
        assert!(script.wait().expect("it ends").success());
        assert!(seen.contains("Statements end with") && seen.contains("tcp.dport"), "{seen}");
        let history = std::fs::read_to_string(state.path().join("weir/sql_history"));
        assert!(history.expect("it is kept").contains("as answer"));
    }
}
