//! Alerts delivered: to receivers that behave well, to those that don't, and to real servers.

#![cfg(target_os = "linux")]

#[path = "../common/mod.rs"]
mod common;
mod controller;
#[path = "../common/over_wires.rs"]
mod over_wires;
mod real;
mod receivers;

use common::workplace;
use over_wires::{signal, until};
use receivers::{Hook, Manner, Request, Streamed, nobody};
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

const FLOOD: &str = "packets | where tcp.syn and not tcp.ack \
    | summarize syns = count() by server = ip.dst every 1s | where syns > 100 \
    | alert \"{syns} SYNs to {server}\" severity high";

/// Two secrets, the newest first.
const SECRETS: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\nein Geheimnis als Text";

fn flood(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_weir"))
        .args(["run", "-e", FLOOD, "-r", "fixtures/syn_flood.pcap", "-o", "json"])
        .args(args)
        .current_dir(folder)
        .output()
        .expect("it runs")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// An alert is delivered as the row that `-o json` prints.
#[test]
fn a_webhook_gets_the_rows_that_are_printed() {
    let folder = workplace();
    fs::write(folder.path().join("key"), format!("{SECRETS}\n")).expect("writes");
    fs::write(folder.path().join("token"), "abc\n").expect("writes");
    let hook = Hook::start(Manner::Takes);
    let to = format!("http://{}/a?b=c secret=key token=token", hook.address);
    let output = flood(folder.path(), &["--alert-to", &to]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let rows = String::from_utf8(output.stdout.clone()).expect("text");
    let requests = hook.all();
    let bodies: Vec<&str> = requests.iter().map(|r| r.body.as_str()).collect();
    assert_eq!(bodies, rows.lines().collect::<Vec<_>>());
    let first = &requests[0];
    assert!(first.head.starts_with("POST /a?b=c HTTP/1.1\r\n"), "{}", first.head);
    assert_eq!(first.header("content-type"), Some("application/json"));
    assert_eq!(first.header("authorization"), Some("Bearer abc"));
    assert_eq!(first.header("host"), Some(hook.address.as_str()));
    let signatures = first.header("webhook-signature").expect("signatures").split(' ');
    let lens: Vec<_> =
        signatures.map(|s| s.strip_prefix("v1,").expect("a version").len()).collect();
    assert_eq!(lens, [44, 44]);
    assert_ne!(first.attempt().id, requests[1].attempt().id);
    assert!(first.attempt().seconds > 1_700_000_000);
    let line = format!("alerts     2 delivered to http://{}\n", hook.address);
    assert!(said(&output).contains(&line), "{}", said(&output));
    assert!(!said(&output).contains("b=c"), "a path may be secret: {}", said(&output));
}

#[test]
fn an_alert_that_is_sent_again_has_the_same_id() {
    let folder = workplace();
    for manner in [Manner::FailsFirst(2), Manner::ClosesFirst(1)] {
        let hook = Hook::start(manner);
        let to = format!("http://{}", hook.address);
        let output = flood(folder.path(), &["--alert-to", &to, "--fail-on-loss"]);
        assert_eq!(output.status.code(), Some(0), "{manner:?}: {}", said(&output));
        let all: Vec<_> = hook.all().iter().map(Request::attempt).collect();
        match manner {
            Manner::FailsFirst(_) => {
                let ids: Vec<_> = all.iter().map(|attempt| attempt.id.as_str()).collect();
                assert!(matches!(ids[..], [a, b, c, d] if a == b && b == c && c != d), "{ids:?}");
                // Both pauses together take longer than a second.
                assert!(all[0].seconds < all[2].seconds, "{all:?}");
            }
            _ => assert_eq!(all.len(), 2),
        }
        let told = format!("alerts to http://{}: ", hook.address);
        assert!(said(&output).contains(&told), "{}", said(&output));
    }
}

/// Alerts that nobody took are counted by receiver and reason, and the run fails where that is asked
/// for. All of these receivers share the ten seconds that the end takes.
#[test]
fn what_was_not_delivered_is_counted_and_told() {
    let folder = workplace();
    let refuses = Hook::start(Manner::Answers(404));
    let gone = Hook::start(Manner::Answers(410));
    let redirects = Hook::start(Manner::Answers(302));
    let fails = Hook::start(Manner::Answers(500));
    let silent = Hook::start(Manner::NeverAnswers);
    let deaf = Hook::start(Manner::NeverReads);
    let takes = Hook::start(Manner::Takes);
    let away = nobody();
    let targets = [&refuses, &gone, &redirects, &fails, &silent, &deaf, &takes];
    let lines: Vec<String> =
        targets.iter().map(|hook| format!("http://{}/\n", hook.address)).collect();
    let config = format!("# all of them\n{}syslog+tcp://{away}\n", lines.concat());
    fs::write(folder.path().join("alerts.conf"), config).expect("writes");
    let output = flood(folder.path(), &["--alert-config", "alerts.conf", "--fail-on-loss"]);
    let text = said(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert_eq!(output.stdout.iter().filter(|b| **b == b'\n').count(), 2);
    for (name, line) in [
        (
            &refuses.address,
            "0 delivered to http://{}; 2 undelivered: 2 it did not accept (it answers with the status 404)",
        ),
        (
            &gone.address,
            "0 delivered to http://{}; 2 undelivered: 2 it did not accept (it answers with the status 410)",
        ),
        (
            &redirects.address,
            "0 delivered to http://{}; 2 undelivered: 2 it did not accept (it answers with the status 302)",
        ),
        (&fails.address, "0 delivered to http://{}; 2 undelivered: "),
        (&silent.address, "0 delivered to http://{}; 2 undelivered: 2 waited for it in vain"),
        (&deaf.address, "0 delivered to http://{}; 2 undelivered: 2 waited for it in vain"),
        (&takes.address, "2 delivered to http://{}\n"),
        (
            &away,
            "0 delivered to syslog+tcp://{}; 2 undelivered: 2 waited for it in vain (connecting: Connection refused",
        ),
    ] {
        let line = line.replace("{}", name);
        assert!(text.contains(&line), "{line} is not in\n{text}");
    }
    assert!(text.contains("waiting for alerts to be delivered, at most 10 s"), "{text}");
    assert!(text.contains("alerts were lost (--fail-on-loss)"), "{text}");
    assert!(redirects.all().len() == 2, "a redirection is not followed");
    assert!(gone.all().len() == 1, "it wanted no more");
}

/// The end of an alert comes when it ends, not when the run does.
#[test]
fn starts_and_ends_are_delivered_as_they_come() {
    let hook = Hook::start(Manner::Takes);
    let to = format!("http://{}", hook.address);
    let mut run = Streamed::start(&["--alert-to", &to]);
    run.send(0, 1..2);
    run.send(3, 2..3);
    let first = hook.next().json();
    assert_eq!((&first["alert.state"], &first["host"]), (&"start".into(), &"10.0.0.1".into()));
    run.send(9, 3..4);
    let is_end = |row: &serde_json::Value| row["alert.state"] == "end" && row["host"] == "10.0.0.1";
    while !is_end(&hook.next().json()) {}
    let (text, status) = run.end();
    assert_eq!(status, Some(0), "{text}");
    assert!(hook.all().iter().any(|r| r.json()["alert.state"] == "open"), "{text}");
}

/// The packets go on without the process that delivers, and what it did not deliver is told.
#[test]
fn the_death_of_the_process_that_delivers_is_told_and_counted() {
    let hook = Hook::start(Manner::Takes);
    let to = format!("http://{}", hook.address);
    let mut run = Streamed::start(&["--alert-to", &to, "--fail-on-loss"]);
    run.send(0, 0..10);
    run.send(3, 0..1);
    (0..10).for_each(|_| drop(hook.next()));
    signal(run.courier(), "-KILL");
    run.run.until("the process that delivers alerts has ended: signal: 9");
    run.send(4, 20..30);
    run.send(8, 30..31);
    let (text, status) = run.end();
    assert_eq!(status, Some(1), "{text}");
    assert!(text.contains("rows       "), "{text}");
    let line =
        text.lines().find(|l| l.starts_with("alerts     ") && l.contains("undelivered: the"));
    let line = line.unwrap_or_else(|| panic!("{text}"));
    let n: u64 = line.split_whitespace().nth(1).and_then(|n| n.parse().ok()).expect("a number");
    assert!(n >= 20 && line.contains("has ended: signal: 9"), "{line}");
}

/// A signal to all processes of a terminal, or of a service, ends the run as ever, and its last
/// alerts are delivered.
#[test]
fn signals_to_all_processes_lose_no_alert() {
    for name in ["-INT", "-TERM", "-HUP"] {
        let hook = Hook::start(Manner::Takes);
        let to = format!("http://{}", hook.address);
        let mut run = Streamed::start(&["--alert-to", &to, "--fail-on-loss"]);
        run.send(0, 0..3);
        run.send(3, 0..1);
        drop(hook.next());
        for id in [run.courier(), run.run.child.id()] {
            signal(id, name);
        }
        let (text, status) = run.end();
        assert_eq!(status, Some(0), "{name}: {text}");
        assert!(text.contains("interrupted"), "{text}");
        let last = hook.all().pop().expect("more alerts");
        assert_eq!(last.json()["alert.state"], "open", "{text}");
    }
}

/// Ten thousand alerts at once for a receiver that reads nothing: memory stays within its bounds,
/// and every alert is accounted for.
#[test]
fn many_alerts_at_once_stay_within_bounds() {
    let (deaf, takes) = (Hook::start(Manner::NeverReads), Hook::start(Manner::Takes));
    let to = [&deaf, &takes].map(|hook| format!("http://{}", hook.address));
    let mut run = Streamed::start(&["--alert-to", &to[0], "--alert-to", &to[1]]);
    let courier = run.courier();
    run.send(0, 0..10_000);
    run.send(3, 0..1);
    drop(takes.next());
    let peak = || -> u64 {
        let status = fs::read_to_string(format!("/proc/{courier}/status")).expect("it runs");
        let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:")).expect("told");
        line.trim().trim_end_matches(" kB").parse().expect("a number")
    };
    let mut taken = 0;
    until("a thousand alerts delivered", || {
        taken += takes.all().len();
        taken > 1000 || peak() > 200_000
    });
    assert!(peak() < 100_000, "{} KiB", peak());
    let (text, status) = run.end();
    assert_eq!(status, Some(0), "{text}");
    let line = format!("0 delivered to {}; ", to[0]);
    assert!(text.contains(&line), "{text}");
}

#[test]
fn the_process_that_delivers_is_confined() {
    let hook = Hook::start(Manner::Takes);
    let to = format!("http://{}", hook.address);
    let is_root = nix::unistd::geteuid().is_root();
    let user: &[&str] = if is_root { &["-Z", "nobody"] } else { &[] };
    let folder = workplace();
    let all = [&["--alert-to", to.as_str()], user].concat();
    let run = Streamed::in_folder(folder, &all);
    let file = format!("/proc/{}/status", run.courier());
    let mut status = String::new();
    until("it gives up its permissions", || {
        status = fs::read_to_string(&file).expect("it runs");
        status.contains("Seccomp:\t2")
    });
    let value = |name: &str| status.lines().find_map(|l| l.strip_prefix(name)).expect(name).trim();
    assert_eq!((value("NoNewPrivs:"), value("CapPrm:")), ("1", "0000000000000000"), "{status}");
    if is_root {
        for set in ["CapInh:", "CapEff:", "CapBnd:", "CapAmb:"] {
            assert_eq!(value(set), "0000000000000000", "{status}");
        }
        assert_eq!(value("Uid:").split_whitespace().next(), Some("65534"), "{status}");
    }
    let (text, status) = run.end();
    assert_eq!(status, Some(0), "{text}");
}

#[test]
fn wrong_receivers_are_refused_before_the_run() {
    let folder = workplace();
    fs::write(folder.path().join("bad.conf"), "syslog://a\nsyslog://b facility=9\n")
        .expect("writes");
    fs::write(folder.path().join("empty.conf"), "# none\n").expect("writes");
    fs::write(folder.path().join("short"), "geheim\n").expect("writes");
    for (args, why) in [
        (&["--alert-to", "10.0.0.1"][..], "--alert-to: `10.0.0.1` is not an address"),
        (&["--alert-to", "https://h secret=missing"], "--alert-to: secret=missing: No such file"),
        (
            &["--alert-to", "https://h secret=short"],
            "--alert-to: secret=short: line 1: the secret has 6 bytes, and needs 16 at least",
        ),
        (&["--alert-to", "https://h ca=fixtures/syn_flood.pcap"], "--alert-to: ca"),
        (&["--alert-config", "missing"], "--alert-config missing: missing: No such file"),
        (&["--alert-config", "bad.conf"], "--alert-config bad.conf: line 2: facility=9"),
        (&["--alert-config", "empty.conf"], "the file names no receiver"),
        (&["--alert-to", "syslog://h", "--publish", "x"], "cannot be used with"),
    ] {
        let output = flood(folder.path(), args);
        let text = said(&output);
        assert!(output.status.code() == Some(2) && text.contains(why), "{args:?}: {text}");
        assert!(output.stdout.is_empty());
    }
    let output = Command::new(env!("CARGO_BIN_EXE_weir"))
        .args(["run", "-e", "packets | project len", "-r", "fixtures/syn_flood.pcap"])
        .args(["--alert-to", "syslog://127.0.0.1"])
        .current_dir(folder.path())
        .output()
        .expect("it runs");
    assert!(output.status.code() == Some(2) && said(&output).contains("no query prints alerts"));
    let by_hand = Command::new(env!("CARGO_BIN_EXE_weir")).arg("deliver-alerts").output();
    let by_hand = by_hand.expect("it runs");
    assert!(said(&by_hand).contains("of no use by itself"), "{}", said(&by_hand));
}

/// The numbers of deliveries while a run goes on: as metrics, for `weir ctl`, and on SIGUSR1.
#[test]
fn a_run_tells_of_its_deliveries_while_it_lasts() {
    let (hook, away) = (Hook::start(Manner::Takes), nobody());
    let (http, syslog) = (format!("http://{}", hook.address), format!("syslog+tcp://{away}"));
    let to = ["--alert-to", &http, "--alert-to", &syslog];
    let mut run = Streamed::start(&[&to[..], &["--metrics", "0", "--control=weir.sock"]].concat());
    run.run.until("metrics: http://");
    let told = run.run.said.last().expect("it said so");
    let address = told.trim_start_matches("metrics: http://").trim_end_matches("/metrics");
    let address = address.to_owned();
    run.send(0, 1..4);
    run.send(3, 4..5);
    let metrics = || receivers::get(&address, "/metrics");
    let expected = [
        format!("weir_alerts_delivered_total{{target=\"{http}\"}} 3\n"),
        format!("weir_alerts_waiting{{target=\"{http}\"}} 0\n"),
        format!("weir_alerts_delivered_total{{target=\"{syslog}\"}} 0\n"),
        format!("weir_alerts_undelivered_total{{target=\"{syslog}\"}} 0\n"),
        format!("weir_alerts_waiting{{target=\"{syslog}\"}} 3\n"),
        "weir_alerts_missed_total 0\n".to_owned(),
    ];
    until("all metrics", || {
        let text = metrics();
        expected.iter().all(|line| text.contains(line))
    });
    let stats = |args: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_weir"))
            .args(["ctl", "stats", "-S", "weir.sock"])
            .args(args)
            .current_dir(run.folder.path())
            .output()
            .expect("it runs");
        String::from_utf8([output.stdout, output.stderr].concat()).expect("text")
    };
    let counts: serde_json::Value = serde_json::from_str(&stats(&["-o", "json"])).expect("JSON");
    let deliveries =
        serde_json::json!({"alerts": 3, "delivered": 3, "waiting": 3, "undelivered": 0});
    assert_eq!(counts["deliveries"], deliveries);
    let line = format!("alerts     0 delivered to {syslog}; 3 waiting");
    assert!(stats(&["-o", "table"]).contains(&line), "{}", stats(&["-o", "table"]));
    run.run.signal("-USR1");
    run.run.until(&line);
    let (text, status) = run.end();
    assert_eq!(status, Some(0), "{text}");
}

/// Alerts of a run whose receiver is away are delivered by the next one, also where the run was
/// killed. The process that delivers had the files for ten more seconds, and the next run was
/// refused.
#[test]
fn alerts_that_were_kept_are_delivered_by_the_next_run() {
    let (folder, port) = (workplace(), receivers::free_port());
    let to = format!("syslog+tcp://127.0.0.1:{port}");
    let args = ["--alert-to", to.as_str(), "--alert-spill", "spill", "--fail-on-loss"];
    let output = flood(folder.path(), &args);
    let text = said(&output);
    assert_eq!(output.status.code(), Some(0), "{text}");
    let line = format!("alerts     0 delivered to {to}; 2 kept for the next run");
    assert!(text.contains(&line), "{text}");
    let mut run = Streamed::in_folder(folder, &args);
    run.send(0, 1..2);
    run.send(3, 2..3);
    run.run.until("alerts to syslog+tcp://");
    let kept = || {
        let files = fs::read_dir(run.folder.path().join("spill")).expect("a folder");
        let bytes = files.map(|file| fs::read(file.expect("a file").path()).expect("bytes"));
        bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).collect::<String>()
    };
    until("three alerts are kept", || kept().contains("1 packets of 10.0.0.1"));
    signal(run.run.child.id(), "-KILL");
    let folder = std::mem::replace(&mut run.folder, workplace());
    drop(run);
    let listener = std::net::TcpListener::bind(("127.0.0.1", port)).expect("the port");
    let received = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a connection");
        let mut text = String::new();
        std::io::Read::read_to_string(&mut stream, &mut text).expect("text");
        text
    });
    let output = flood(folder.path(), &args);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let text = received.join().expect("no panic");
    // Two of the first run, one of the second, two of the third.
    assert_eq!(text.matches("] 716 SYNs to 198.51.100.2").count(), 4, "{text}");
    assert_eq!(text.matches("] 1 packets of 10.0.0.1").count(), 1, "{text}");
    assert!(said(&output).contains(&format!("5 delivered to {to}")), "{}", said(&output));
}

/// A run starts at once after one that was killed with `--alert-spill`, whatever both of its
/// processes were doing and however its receivers hang, and what was kept is delivered. The process
/// of a run that was killed while it ended had the files for ten seconds.
#[test]
fn a_killed_run_holds_up_no_other_and_loses_nothing() {
    let (mut folder, port) = (workplace(), receivers::free_port());
    let to = format!("syslog+tcp://127.0.0.1:{port}");
    let hooks = [Manner::NeverAnswers, Manner::NeverReads].map(Hook::start);
    let hung: Vec<String> = hooks.iter().map(|hook| format!("http://{}", hook.address)).collect();
    let args = ["--alert-spill", "spill", "--alert-to", &to];
    let all = [&args[..], &["--alert-to", &hung[0], "--alert-to", &hung[1]]].concat();
    let mut kept = Vec::new();
    for n in 101..113u16 {
        let mut run = Streamed::in_folder(folder, &all);
        let spill = run.folder.path().join("spill");
        let is_kept = || {
            let files = fs::read_dir(&spill).into_iter().flatten().flatten();
            let bytes = files.filter_map(|file| fs::read(file.path()).ok());
            let texts = bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
            let has = |text: &String| text.contains(&format!("1 packets of 10.0.0.{n}"));
            texts.filter(has).count() >= 3
        };
        let way = n % 4;
        if way > 0 {
            run.send(0, n..n + 1);
            run.send(3, 200..201);
        }
        if way > 1 {
            until("the alert is kept for each receiver", is_kept);
            kept.push(n);
        }
        if way > 2 {
            drop(run.packets.take());
            // It waits for the other process.
            run.run.until("waiting for alerts");
        }
        signal(run.run.child.id(), "-KILL");
        folder = std::mem::replace(&mut run.folder, workplace());
        run.run.said.extend(run.run.errors.iter());
        assert!(!run.run.has_said("another process has these records"), "{n}: {:?}", run.run.said);
    }
    let listener = std::net::TcpListener::bind(("127.0.0.1", port)).expect("the port");
    let received = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a connection");
        let mut text = String::new();
        std::io::Read::read_to_string(&mut stream, &mut text).expect("text");
        text
    });
    let output = flood(folder.path(), &args);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let text = received.join().expect("no panic");
    for n in kept {
        let start = format!("state=\"start\" severity=\"high\" key=\"host=10.0.0.{n}\"");
        assert_eq!(text.matches(&start).count(), 1, "{n}: {text}");
    }
}

/// `weir merge` delivers as a run does.
#[test]
fn a_merge_delivers_alerts() {
    let folder = workplace();
    let weir = |args: &[&str]| {
        Command::new(env!("CARGO_BIN_EXE_weir"))
            .args(args)
            .current_dir(folder.path())
            .output()
            .expect("it runs")
    };
    let publish = ["run", "-e", FLOOD, "-r", "fixtures/syn_flood.pcap", "--publish", "a.wps"];
    assert!(weir(&publish).status.success());
    let hook = Hook::start(Manner::Takes);
    let to = format!("http://{}", hook.address);
    let merge = ["merge", "-e", FLOOD, "--from", "a.wps", "-o", "json", "--alert-to", &to];
    let output = weir(&merge);
    let rows = String::from_utf8(output.stdout.clone()).expect("text");
    let bodies: Vec<String> = hook.all().into_iter().map(|r| r.body).collect();
    assert_eq!(bodies, rows.lines().collect::<Vec<_>>(), "{}", said(&output));
    assert!(bodies.len() == 2 && said(&output).contains("alerts     2 delivered to"));
}
