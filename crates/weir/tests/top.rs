//! `weir top` in a real terminal, over files and over wires.

#![cfg(target_os = "linux")]

mod common;
#[path = "top/picture.rs"]
mod picture;
#[path = "common/signal.rs"]
mod signal;
#[path = "../../top/tests/tmux/mod.rs"]
mod tmux;
#[path = "../../capture/tests/wires/mod.rs"]
mod wires;

use common::root;
use signal::signal;
use tmux::Tmux;
use weir_packet::craft::Frame;
use wires::{Sender, namespace, veth};

fn top(args: &str) -> String {
    format!("{} top {args}", env!("CARGO_BIN_EXE_weir"))
}

fn mixed() -> String {
    root().join("fixtures/mixed.pcap").display().to_string()
}

/// The numbers of the line that begins so.
fn numbers(text: &str, start: &str) -> Vec<String> {
    let line = text.lines().find(|line| line.starts_with(start)).unwrap_or_else(|| {
        panic!("no line starts with {start}:\n{text}");
    });
    line[start.len()..].split_whitespace().map(str::to_owned).collect()
}

/// A terminal that goes away without a signal, as one does that is not that of the process's session,
/// was read for ever, and neither the run nor SIGTERM ended that.
#[test]
fn a_terminal_that_goes_away_ends_the_screen() {
    let size = nix::pty::Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };
    let pty = nix::pty::openpty(Some(&size), None).expect("the system has terminals");
    // Else the process would hold the other end of its terminal itself.
    rustix::io::ioctl_fioclex(&pty.master).expect("it is open");
    let end = || std::process::Stdio::from(pty.slave.try_clone().expect("one more"));
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_weir"));
    command.args(["top", "-r", &mixed()]).env("TERM", "xterm");
    let mut child = command.stdin(end()).stdout(end()).stderr(end()).spawn().expect("it starts");
    let (mut screen, mut seen) = (std::fs::File::from(pty.master), Vec::new());
    drop((pty.slave, command));
    while !String::from_utf8_lossy(&seen).contains("ended") {
        let mut bytes = [0; 4096];
        let n = std::io::Read::read(&mut screen, &mut bytes).expect("it is drawn on");
        seen.extend_from_slice(&bytes[..n]);
    }
    drop(screen);
    for _ in 0..500 {
        if child.try_wait().expect("it is ours").is_some() {
            return;
        }
        wires::pause();
    }
    child.kill().expect("it runs");
    panic!("it goes on without a terminal");
}

#[test]
fn a_capture_is_shown_table_by_table() {
    let Some(tmux) = Tmux::open("tables", 80, 24) else { return };
    tmux.command_between_modes(&top(&format!("-r {}", mixed())));
    let text = tmux.until_seen("ended");
    assert_eq!(numbers(&text, "total"), ["127k", "127k", "78.1k", "78.1k", "68"]);
    assert!(text.contains("received 336  lost 0  malformed 0  late 0"), "{text}");
    assert!(text.contains("198.51.100.2  www.example.test"), "{text}");
    for (key, row) in [
        ("2", "192.0.2.1 <> 198.51.100.2"),
        ("3", "192.0.2.1:"),
        ("4", "tcp/5201 iperf3"),
        ("5", "ipv4 tcp"),
        ("6", "www.example.test"),
        ("Tab", "198.51.100.2  www.example.test"),
    ] {
        tmux.keys(&[key]);
        tmux.until_seen(row);
    }
    // A row becomes a filter, for which the capture is read again.
    tmux.keys(&["4"]);
    tmux.until_seen("tcp/5201 iperf3");
    tmux.keys(&["Down", "Enter"]);
    // The table is empty until the capture is read again.
    tmux.until("the filter", |seen| {
        seen.contains("filter ip.proto == 6 and min_of(sport, dport) == 5201")
            && seen.contains("tcp/5201 iperf3")
            && !seen.contains("tcp/80")
    });
    tmux.keys(&["BSpace"]);
    tmux.until_seen("tcp/80 http");
    tmux.keys(&["?"]);
    tmux.until_seen("show the packets of the row");
    tmux.until_seen("Ctrl-C");
    tmux.keys(&["x", "q"]);
    let text = tmux.until_given_back();
    assert!(text.contains("received   336 packets") && text.contains("status 0"), "{text}");
}

#[test]
fn packets_are_counted_by_keys_that_are_typed() {
    let Some(tmux) = Tmux::open("keys", 100, 30) else { return };
    tmux.command_between_modes(&top(&format!("-r {}", mixed())));
    let before = numbers(&tmux.until_seen("ended"), "bits/s");
    tmux.keys(&["b"]);
    tmux.type_text("dport, tcp.flgs");
    tmux.until_seen("no field or column is called `tcp.flgs`");
    tmux.keys(&["BSpace", "BSpace"]);
    tmux.type_text("ags");
    tmux.keys(&["Enter"]);
    let text = tmux.until_seen("43416  16 ");
    assert_eq!(numbers(&text, "43416  16")[1..], ["16.7k", "2.4", "21.4", "12"]);
    // The capture was read again, and its packets are counted once.
    let text = tmux.until_seen("ended");
    assert_eq!(numbers(&text, "total")[1..], ["78.1k", "68", "100.0", "336"]);
    assert_eq!(numbers(&text, "bits/s")[0], before[0]);
    // A row leads to as many packets as it says, and becomes a filter for them.
    tmux.keys(&["Down", "p"]);
    tmux.until_seen("12 packets of 43416  16");
    tmux.keys(&["Escape"]);
    tmux.until_seen("1 Hosts  2 Pairs");
    tmux.keys(&["Enter"]);
    tmux.until_seen("filter dport == 43416 and tcp.flags == 16");
    tmux.until("its packets", |seen| {
        seen.lines().any(|line| line.starts_with("total") && line.ends_with(" 12"))
    });
    tmux.keys(&["q"]);
    tmux.until_given_back();
}

#[test]
fn a_query_of_the_library_is_run_on_the_screen() {
    let Some(tmux) = Tmux::open("library", 100, 30) else { return };
    tmux.command_between_modes(&top(&format!("-r {}", mixed())));
    tmux.until_seen("ended");
    tmux.keys(&["l"]);
    tmux.until_seen("how much each address sends");
    tmux.type_text("port_scan");
    tmux.keys(&["Enter"]);
    let text = tmux.until_seen("port_scan: 2 rows");
    let alert = "05:51:13.898  start        medium          192.0.2.66 tries 61 ports";
    assert!(text.lines().any(|line| line.starts_with(alert)), "{text}");
    tmux.keys(&["Down", "Enter"]);
    let text = tmux.until_seen("alert.suppress");
    assert!(text.contains("port_scan source=192.0.2.66 ip.proto=6"), "{text}");
    // A joined row has no packets of its own: the screen says so in full.
    tmux.keys(&["p"]);
    tmux.until_seen("give a condition");
    tmux.keys(&["Escape"]);
    tmux.until_seen("port_scan: 2 rows");
    tmux.keys(&["l"]);
    tmux.type_text("tcp-health");
    tmux.keys(&["Enter"]);
    tmux.until_seen("tcp-health: 68 rows, output 1 of 2: connections (o: the next)");
    tmux.keys(&["Down", "p"]);
    tmux.until_seen("38 packets of 05:51:14.941");
    tmux.keys(&["Escape"]);
    tmux.until_seen("output 1 of 2");
    tmux.keys(&["o"]);
    tmux.until_seen("tcp-health: 64 rows, output 2 of 2: servers");
    // The filter holds for the query, too.
    tmux.keys(&["/"]);
    tmux.type_text("udp or tcp.dport == 22");
    tmux.keys(&["Enter"]);
    let text = tmux.until("the filter", |seen| {
        seen.contains("tcp-health: 1 row, output 2 of 2: servers") && seen.contains("ended")
    });
    assert!(text.contains("05:51:00  198.51.100.2    22 "), "{text}");
    tmux.keys(&["q"]);
    tmux.until_given_back();
}

#[test]
fn a_filter_is_typed_with_a_mistake_and_mended() {
    let Some(tmux) = Tmux::open("filter", 80, 24) else { return };
    tmux.command_between_modes(&top(&format!("-r {}", mixed())));
    tmux.until_seen("ended");
    tmux.keys(&["/"]);
    tmux.type_text("udp or tpc.dport == 22");
    let text = tmux.until_seen("no field or column");
    assert!(text.lines().any(|line| line.trim() == "^^^^^^^^^"), "{text}");
    tmux.keys(&["Enter"]);
    tmux.keys(&["C-u"]);
    tmux.type_text("udp and dpo");
    tmux.keys(&["Tab"]);
    tmux.type_text(" == 53");
    tmux.until_seen("filter> udp and dport == 53");
    tmux.keys(&["Enter"]);
    let text = tmux.until("the rows", |seen| {
        seen.contains("filter udp and dport == 53") && seen.contains("ended") && {
            let total = seen.lines().find(|line| line.starts_with("total"));
            total.is_some_and(|line| line.contains(" 202 "))
        }
    });
    assert!(!text.contains("192.0.2.66"), "{text}");
    tmux.keys(&["C-c"]);
    tmux.until_given_back();
}

#[test]
fn the_screen_follows_the_size_of_the_terminal() {
    let Some(tmux) = Tmux::open("size", 80, 24) else { return };
    tmux.command_between_modes(&format!("NO_COLOR=1 {}", top(&format!("-r {}", mixed()))));
    tmux.until_seen("1 Hosts  2 Pairs");
    // Reversed, bold or underlined, and nothing else.
    let styled = tmux.styled();
    assert!(styled.contains("\x1b[7m"), "{styled:?}");
    let colored = styled.replace("\x1b[39m", "").replace("\x1b[49m", "");
    for color in ["\x1b[3", "\x1b[4", "\x1b[9", ";3"] {
        assert!(!colored.contains(color), "{styled:?}");
    }
    tmux.call(&["resize-window", "-x", "40", "-y", "12"]);
    let text = tmux.until_seen("1Hos 2Pai");
    assert!(text.lines().count() <= 12 && text.contains("? help  q quit"), "{text}");
    tmux.call(&["resize-window", "-x", "200", "-y", "50"]);
    tmux.until_seen("1 Hosts  2 Pairs");
    tmux.keys(&["q"]);
    tmux.until_given_back();
}

#[test]
fn rows_are_printed_where_they_are_asked_for() {
    let Some(tmux) = Tmux::open("rows", 80, 24) else { return };
    tmux.command_between_modes(&top(&format!("-r {} -o csv", mixed())));
    assert!(tmux.until_given_back().contains("ts,hosts.a,hosts.b,packets,bytes"));
    tmux.command_between_modes(&top(&format!("-r {} | head -1", mixed())));
    assert!(tmux.until_given_back().contains("{\"ts\":"));
    tmux.command_between_modes(&top("-r no-such-file.pcap"));
    let text = tmux.until_given_back();
    assert!(text.contains("error:") && text.contains("status 1"), "{text}");
}

#[test]
fn a_capture_comes_by_standard_input_and_keys_by_the_terminal() {
    let Some(tmux) = Tmux::open("stdin", 80, 24) else { return };
    tmux.command_between_modes(&format!("cat {} | {}", mixed(), top("-r -")));
    tmux.until_seen("ended");
    tmux.keys(&["/"]);
    tmux.type_text("udp");
    tmux.keys(&["Enter"]);
    tmux.until_seen("there are no more packets to count");
    tmux.keys(&["q"]);
    assert!(tmux.until_given_back().contains("received   336 packets"));
}

#[test]
fn a_query_of_the_library_is_run_on_a_wire() {
    if !namespace("a_query_of_the_library_is_run_on_a_wire") {
        return;
    }
    veth("v0", "v1");
    let Some(tmux) = Tmux::open("wire-query", 100, 24) else { return };
    tmux.command_between_modes(&top("-i v1 -Q in -j 2"));
    tmux.until_seen("live");
    tmux.keys(&["l"]);
    tmux.type_text("sources");
    tmux.keys(&["Enter"]);
    tmux.until_seen("sources: 0 rows");
    let sender = Sender::new("v0");
    let send = |host: u8, port: u16| {
        let frame = Frame::ethernet().ipv4([10, 0, 0, host], [192, 0, 2, 1]).udp(9, port);
        (0..40).for_each(|_| sender.send(&frame.bytes()));
    };
    send(1, 1000);
    let text = tmux.until_seen("10.0.0.1 ");
    assert!(text.contains("ip.src    packets  bytes"), "{text}");
    // Only packets that meet the filter reach the query, from then on.
    tmux.keys(&["/"]);
    tmux.type_text("dport == 7");
    tmux.keys(&["Enter"]);
    tmux.until("rows of the new program", |seen| {
        seen.contains("filter dport == 7") && seen.contains("sources: 0 rows")
    });
    send(2, 1000);
    send(3, 7);
    let text = tmux.until_seen("10.0.0.3 ");
    assert!(!text.contains("10.0.0.2 "), "{text}");
    // The packets of the row are those that the query counted.
    tmux.keys(&["Down"]);
    tmux.keys(&["p"]);
    let text = tmux.until("the packets of the row", |seen| {
        let title = seen.lines().next().unwrap_or_default();
        title.contains(" packets of ") && !title.starts_with("looking")
    });
    // They may have come in two windows: as many are listed as the row says.
    let title: Vec<&str> = text.lines().next().unwrap_or_default().split_whitespace().collect();
    assert_eq!(title[0], title[title.len() - 2], "{text}");
    assert!(text.contains("where dport == 7 | where ip | where ip.src == 10.0.0.3"), "{text}");
    tmux.keys(&["q"]);
    tmux.until_given_back();
}

#[test]
fn a_wire_is_shown_while_packets_come() {
    if !namespace("a_wire_is_shown_while_packets_come") {
        return;
    }
    veth("v0", "v1");
    let Some(tmux) = Tmux::open("wire", 80, 24) else { return };
    tmux.command_between_modes(&top("-i v1 -Q in"));
    tmux.until_seen("live");
    let sender = Sender::new("v0");
    let send = |packets: usize, port: u16| {
        let frame = Frame::ethernet().ipv4([10, 0, 0, 1], [192, 0, 2, 1]).udp(9, port);
        let frame = frame.payload(&[0; 58]).bytes();
        (0..packets).for_each(|_| sender.send(&frame));
    };
    // Frames of 100 bytes.
    send(50, 1000);
    // They may fall into two windows.
    let total = |seen: &str, bytes: &str| {
        seen.lines().any(|line| line.starts_with("total") && line.contains(bytes))
    };
    let text = tmux.until("the packets", |seen| total(seen, "5.00k"));
    assert!(text.contains("received 50  lost 0"), "{text}");
    assert_eq!(numbers(&text, "10.0.0.1")[2..4], ["5.00k", "0"]);
    assert_eq!(numbers(&text, "192.0.2.1")[2..4], ["0", "5.00k"]);
    // The picture stands still, and counting goes on.
    tmux.keys(&["Space"]);
    tmux.until_seen("PAUSED, counting goes on");
    send(30, 1000);
    tmux.until_seen("received 80");
    assert_eq!(numbers(&tmux.text(), "10.0.0.1")[2], "5.00k");
    tmux.keys(&["Space"]);
    tmux.until("the rest", |seen| seen.contains("live") && total(seen, "8.00k"));
    // Another table counts from now on, and so does a filter.
    tmux.keys(&["4"]);
    tmux.until_seen("SERVICE");
    tmux.keys(&["/"]);
    tmux.type_text("dport == 7");
    tmux.keys(&["Enter"]);
    tmux.until_seen("filter dport == 7");
    // The change is made between two batches: what is sent may still come before it.
    tmux.until("packets that meet the filter", |seen| {
        send(1, 7);
        send(1, 8);
        seen.contains("udp/7")
    });
    assert!(!tmux.text().contains("udp/8"), "{}", tmux.text());
    tmux.keys(&["C-c"]);
    let text = tmux.until_given_back();
    assert!(text.contains("status 0") && text.contains("processed"), "{text}");
}

#[test]
fn a_signal_gives_the_terminal_back() {
    let Some(tmux) = Tmux::open("signal", 80, 24) else { return };
    // The shell that becomes the screen says its number first.
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("pid");
    let command =
        format!("sh -c 'echo $$ > {}; exec {}'", file.display(), top(&format!("-r {}", mixed())));
    for name in ["-TERM", "-HUP", "-INT"] {
        tmux.command_between_modes(&command);
        tmux.until_seen("ended");
        let pid = std::fs::read_to_string(&file).expect("a number");
        signal(pid.trim().parse().expect("a number"), name);
        let text = tmux.until_given_back();
        assert!(text.contains("interrupted") && text.contains("status 0"), "{name}: {text}");
    }
}

/// The packets of a row are read again from the file, and the fields of one are shown.
#[test]
fn a_row_shows_its_packets() {
    let Some(tmux) = Tmux::open("packets", 100, 16) else { return };
    tmux.command_between_modes(&top(&format!("-r {}", mixed())));
    tmux.until_seen("ended");
    tmux.keys(&["p"]);
    tmux.until_seen("choose a row");
    tmux.keys(&["4"]);
    tmux.until_seen("tcp/53");
    tmux.keys(&["/"]);
    tmux.type_text("dport == 53");
    tmux.keys(&["Enter"]);
    tmux.until("only DNS", |seen| seen.contains("tcp/53") && !seen.contains("tcp/80"));
    tmux.keys(&["Down", "p"]);
    let is_there = |seen: &str| seen.contains(" packets of tcp/53") && seen.contains("SYN");
    let text = tmux.until("its packets", is_there);
    assert!(text.contains("(dport == 53) and (ip.proto == 6 and "), "{text}");
    let first = text.lines().nth(3).expect("a packet");
    assert!(first.contains(":53 ") && first.contains(" tcp ") && first.ends_with("SYN"), "{text}");
    tmux.keys(&["Enter"]);
    let text = tmux.until_seen("Esc packets");
    assert!(!text.contains("SAYS") && text.contains("2001:db8:2::2"), "{text}");
    tmux.keys(&["End"]);
    tmux.until("other fields", |seen| seen.lines().nth(4) != text.lines().nth(4));
    tmux.keys(&["Escape"]);
    tmux.until_seen("SAYS");
    tmux.keys(&["Escape"]);
    tmux.until_seen("4 Ports");
    tmux.keys(&["q"]);
    assert!(tmux.until_given_back().contains("status 0"));
}

/// All packets of a row go into a file, where a folder is named for that, and into a new one each
/// time; otherwise the screen says what is missing.
#[test]
fn the_packets_of_a_row_are_saved() {
    let Some(tmux) = Tmux::open("save", 100, 16) else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let place = folder.path().display();
    for (option, told) in [
        (String::new(), "with --capture-dir FOLDER"),
        (format!("--capture-dir {place}"), "packets are in /"),
    ] {
        tmux.command_between_modes(&top(&format!("-r {} {option}", mixed())));
        tmux.until_seen("ended");
        tmux.keys(&["5"]);
        tmux.until_seen("ipv4 tcp");
        tmux.keys(&["Down", "p"]);
        tmux.until_seen("there are more: these are the first 200");
        tmux.keys(&["w"]);
        tmux.until_seen(told);
        if !option.is_empty() {
            tmux.keys(&["w"]);
            tmux.until("a second file", |_| {
                std::fs::read_dir(folder.path()).expect("lists").count() == 2
            });
            tmux.until_seen(told);
        }
        tmux.keys(&["q"]);
        assert!(tmux.until_given_back().contains("status 0"));
    }
    // As many as the query counts.
    let count = |read: &str, query: &str| {
        let mut weir = std::process::Command::new(env!("CARGO_BIN_EXE_weir"));
        let output = weir.args(["run", "-q", "-o", "csv", "-e", query, "-r", read]).output();
        String::from_utf8(output.expect("weir runs").stdout).expect("text")
    };
    let all = count(&mixed(), "packets | where ip.version == 4 and tcp | summarize n = count()");
    let mut names = Vec::new();
    for file in std::fs::read_dir(folder.path()).expect("lists") {
        let file = file.expect("a file").path();
        assert_eq!(count(&file.display().to_string(), "packets | summarize n = count()"), all);
        names.push(file.file_name().expect("a name").to_string_lossy().into_owned());
    }
    names.sort();
    assert!(names.iter().all(|name| name.starts_with("packets-2026-11-")), "{names:?}");
    assert!(names.iter().any(|name| name.ends_with("-2.pcapng")), "{names:?}");
    tmux.command_between_modes(&top(&format!("-r {} --capture-dir {place}/none", mixed())));
    assert!(tmux.until_given_back().contains("there is no such folder"));
}

/// The packets of a row are those that the ring still has, and names in them do no harm.
#[test]
fn a_row_of_a_wire_shows_its_packets() {
    if !namespace("a_row_of_a_wire_shows_its_packets") {
        return;
    }
    veth("v0", "v1");
    let Some(tmux) = Tmux::open("ring", 100, 24) else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let place = folder.path().display();
    tmux.command_between_modes(&top(&format!("-i v1 -Q in --capture-dir {place}")));
    tmux.until_seen("live");
    let sender = Sender::new("v0");
    let frame = |n: u16| {
        let frame = Frame::ethernet().ipv4([10, 0, 0, 1], [192, 0, 2, 1]).udp(1000 + n, 9);
        frame.payload(b"\x1b[2J\x07").bytes()
    };
    (0..250).for_each(|n| sender.send(&frame(n)));
    tmux.until("its row", |seen| seen.contains("received 250") && seen.contains("\n10.0.0.1 "));
    tmux.keys(&["Down", "p"]);
    let text = tmux.until("its packets", |seen| seen.contains("200 packets of 10.0.0.1"));
    assert!(text.contains("there are more: these are the latest 200"), "{text}");
    assert!(text.contains("10.0.0.1:1050 ") && !text.contains("10.0.0.1:1049 "), "{text}");
    tmux.keys(&["End"]);
    tmux.until_seen("10.0.0.1:1249 ");
    // A file has those that the list has no room for, too.
    tmux.keys(&["w"]);
    tmux.until_seen("250 packets are in /");
    tmux.keys(&["q"]);
    assert!(tmux.until_given_back().contains("status 0"));
}

/// The screen in docs/top.md is what is seen. With `WEIR_UPDATE_DOCS` set it is written instead.
#[test]
fn the_picture_in_text_is_the_screen() {
    let Some(tmux) = Tmux::open("text-picture", 80, 20) else { return };
    tmux.command(&format!("cd {}", root().display()));
    tmux.command_between_modes(&top("-r fixtures/mixed.pcap"));
    tmux.until_seen("ended");
    let seen = tmux.until_seen("total");
    tmux.keys(&["q"]);
    tmux.until_given_back();
    let shown: String = seen.lines().map(|line| format!("{}\n", line.trim_end())).collect();
    let path = root().join("docs/top.md");
    let text = std::fs::read_to_string(&path).expect("the page");
    let intro = text.find("weir top -").expect("it is named");
    let start = intro + text[intro..].find("```text\n").expect("a picture") + "```text\n".len();
    let end = start + text[start..].find("```").expect("its end");
    if std::env::var_os("WEIR_UPDATE_DOCS").is_some() {
        let text = format!("{}{shown}{}", &text[..start], &text[end..]);
        std::fs::write(&path, text).expect("the page");
    } else {
        assert_eq!(&text[start..end], shown, "docs/top.md: WEIR_UPDATE_DOCS=1 writes the picture");
    }
}

/// The picture in the README is what is seen. With `WEIR_UPDATE_DOCS` set it is written instead.
#[test]
fn the_picture_of_the_readme_is_the_screen() {
    let Some(tmux) = Tmux::open("picture", 100, 24) else { return };
    tmux.command(&format!("cd {}", root().display()));
    tmux.command_between_modes(&top("-r fixtures/mixed.pcap -r fixtures/syn_flood.pcap"));
    tmux.until_seen("ended");
    tmux.until("all packets", |seen| {
        let total = seen.lines().find(|line| line.starts_with("total"));
        seen.contains("received 3 205") && total.is_some_and(|line| line.contains("240k"))
    });
    let shown = picture::picture(&tmux.styled(), 100, "The screen of weir top");
    tmux.keys(&["q"]);
    tmux.until_given_back();
    let path = root().join("docs/pictures/screen.svg");
    if std::env::var_os("WEIR_UPDATE_DOCS").is_some() {
        std::fs::write(&path, shown).expect("the picture");
    } else {
        let text = std::fs::read_to_string(&path).expect("the picture");
        let other = text.lines().zip(shown.lines()).find(|(then, now)| then != now);
        assert!(
            text == shown,
            "docs/pictures/screen.svg is not the screen; docs/pictures/make.sh makes it anew\n{other:#?}"
        );
    }
}
