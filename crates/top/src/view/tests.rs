use super::*;
use crate::look::{Glyphs, Look};
use crate::model::SharedModel;
use crate::packets::{FoundPacket, FoundPackets};
use crate::query::{Pace, Setup};
use crate::state::Phase;
use crate::testing::{output, rows};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::style::{Color, Modifier};
use weir_engine::counters::Ledger;
use weir_packet::source::{Account, Lost};
use weir_packet::time::NO_TIME;
use weir_plan::{TimeZone, Value};

/// A second in November 2026.
const START: i64 = 1_795_240_270_000_000_000;

const COLORS: Look = Look { color: true, glyphs: Glyphs::Braille, zone: None };

fn ip(text: &str) -> Value {
    Value::ip(text.parse().expect("an address"))
}

/// Half a minute of traffic by two interfaces.
fn model() -> SharedModel {
    let shared = SharedModel::new(Pace::Live);
    let mut model = shared.lock();
    model.open(&[output("totals-0-0"), output("hosts-sent"), output("hosts-received")]);
    for second in 0..30 {
        let at = START + second * 1_000_000_000;
        let (eth0, eth1) = (Value::Str("eth0".into()), Value::Str("eth1".into()));
        let n = 100 + 40 * (second % 7);
        let both = [(at, vec![eth0], n, n * 900), (at, vec![eth1], n / 4, n * 100)];
        model.rows(0, &rows("totals-0-0", &both));
        let sent = [
            (at, vec![ip("192.0.2.1")], n, n * 800),
            (at, vec![ip("2001:db8:1:22:333:4444:5555:6666")], n / 4, n * 150),
            (at, vec![Value::Absent], 1, 60),
        ];
        model.rows(1, &rows("hosts-sent", &sent));
        let received = [(at, vec![ip("198.51.100.2")], n, n * 950)];
        model.rows(2, &rows("hosts-received", &received));
    }
    model.names.learn("198.51.100.2".parse().expect("an address"), "www.example.test".into());
    drop(model);
    shared
}

fn state() -> RunState {
    let mut ledger =
        Ledger { received: 1_234_567, late: 3, processed: 1_234_567, ..Ledger::default() };
    ledger.lost = Lost { ring: 12, ..Lost::default() };
    ledger.malformed[0] = 7;
    let lost = Account { lost: ledger.lost, ..Account::default() };
    let interfaces = vec![("eth0".to_owned(), Account::default()), ("eth1".to_owned(), lost)];
    RunState { phase: Phase::Running { read: None }, ledger, interfaces }
}

struct Shown {
    app: App,
    model: SharedModel,
    state: RunState,
}

impl Shown {
    fn new(look: Look) -> Shown {
        let model = model();
        let app = App::new("eth0 and eth1", look, Setup::first(Pace::Live, 1), &model.lock());
        Shown { app, model, state: state() }
    }

    fn press(&mut self, codes: &[KeyCode]) {
        for code in codes {
            self.app.key(KeyEvent::new(*code, KeyModifiers::NONE), &self.model.lock());
        }
    }

    fn type_text(&mut self, text: &str) {
        text.chars().for_each(|c| self.press(&[KeyCode::Char(c)]));
    }

    fn cells(&mut self, width: u16, height: u16) -> Buffer {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("no input");
        terminal
            .draw(|frame| {
                let area = frame.area();
                draw(&mut self.app, &self.state, area, frame.buffer_mut());
            })
            .expect("no output");
        terminal.backend().buffer().clone()
    }

    fn text(&mut self, width: u16, height: u16) -> String {
        text(&self.cells(width, height))
    }
}

fn text(cells: &Buffer) -> String {
    let width = usize::from(cells.area.width);
    let lines = cells.content.chunks(width).map(|line| {
        let line: String = line.iter().map(|cell| cell.symbol()).collect();
        format!("{}\n", line.trim_end())
    });
    lines.collect()
}

/// The style of the first cell of a text.
fn style_at(cells: &Buffer, needle: &str) -> (Color, Modifier) {
    let width = usize::from(cells.area.width);
    for line in cells.content.chunks(width) {
        let all: String = line.iter().map(|cell| cell.symbol()).collect();
        if let Some(at) = all.find(needle) {
            let cell = &line[all[..at].chars().count()];
            return (cell.fg, cell.modifier);
        }
    }
    panic!("{needle} is not shown");
}

#[test]
fn a_terminal_of_80_by_24() {
    let mut shown = Shown::new(COLORS);
    insta::assert_snapshot!(shown.text(80, 24));
}

#[test]
fn a_small_one_of_40_by_12() {
    let mut shown = Shown::new(Look { glyphs: Glyphs::Blocks, ..COLORS });
    insta::assert_snapshot!(shown.text(40, 12));
}

#[test]
fn a_large_one_of_200_by_50() {
    let mut shown = Shown::new(COLORS);
    insta::assert_snapshot!(shown.text(200, 50));
}

#[test]
fn colours_say_what_matters() {
    let mut shown = Shown::new(COLORS);
    shown.press(&[KeyCode::Down]);
    let cells = shown.cells(80, 24);
    assert_eq!(style_at(&cells, "lost 12").0, Color::Red);
    assert_eq!(style_at(&cells, "late 3").0, Color::Red);
    assert_eq!(style_at(&cells, "malformed 7").0, Color::Reset);
    assert_eq!(style_at(&cells, "live").0, Color::Green);
    assert!(style_at(&cells, "1 Hosts").1.contains(Modifier::REVERSED));
    assert!(style_at(&cells, "192.0.2.1").1.contains(Modifier::REVERSED));
    assert!(!style_at(&cells, "other").1.contains(Modifier::REVERSED));
    assert!(style_at(&cells, "OUT b/sv").1.contains(Modifier::UNDERLINED));
}

#[test]
fn without_colour_the_same_is_said() {
    let mut shown = Shown::new(Look { color: false, glyphs: Glyphs::Ascii, zone: None });
    shown.press(&[KeyCode::Down]);
    let cells = shown.cells(80, 24);
    assert!(cells.content.iter().all(|cell| (cell.fg, cell.bg) == (Color::Reset, Color::Reset)));
    assert!(style_at(&cells, "lost 12").1.contains(Modifier::BOLD));
    assert!(!style_at(&cells, "malformed 7").1.contains(Modifier::BOLD));
    assert!(text(&cells).is_ascii(), "{}", text(&cells));
}

#[test]
fn a_filter_with_a_mistake_is_marked_under_its_text() {
    let mut shown = Shown::new(COLORS);
    shown.press(&[KeyCode::Char('/')]);
    shown.type_text("tcp and dprt == 443");
    insta::assert_snapshot!(shown.text(80, 12));
    for _ in 0.."dprt == 443".len() {
        shown.press(&[KeyCode::Backspace]);
    }
    shown.type_text("dns.q");
    insta::assert_snapshot!(shown.text(60, 12));
}

#[test]
fn a_long_filter_is_seen_around_the_cursor() {
    let mut shown = Shown::new(COLORS);
    shown.press(&[KeyCode::Char('/')]);
    shown.type_text(&format!("{} or udp", "tcp or ".repeat(20).trim_end_matches(" or ")));
    assert!(shown.text(40, 12).contains("tcp or udp"));
    shown.press(&[KeyCode::Home]);
    assert!(shown.text(40, 12).contains("filter> tcp or tcp"));
}

#[test]
fn a_pause_says_that_counting_goes_on() {
    let mut shown = Shown::new(COLORS);
    shown.press(&[KeyCode::Char(' ')]);
    assert!(shown.text(80, 24).contains("PAUSED, counting goes on"));
    assert!(shown.text(40, 12).contains("PAUSED"));
}

#[test]
fn the_help_lists_every_key() {
    let mut shown = Shown::new(COLORS);
    shown.press(&[KeyCode::Char('?')]);
    insta::assert_snapshot!(shown.text(80, 24));
    assert!(shown.text(40, 12).contains("q, Ctrl-C"));
    shown.press(&[KeyCode::Char('x')]);
    assert!(shown.text(80, 24).contains("1 Hosts"));
}

#[test]
fn the_end_and_its_reason_are_told() {
    let mut shown = Shown::new(COLORS);
    shown.state.phase = Phase::Ended { error: Some("x.pcap: \x1b[31mbroken".to_owned()) };
    let text = shown.text(80, 24);
    assert!(text.contains("failed") && text.contains("x.pcap: \u{fffd}[31mbroken"), "{text}");
    shown.state.phase = Phase::Ended { error: None };
    assert!(shown.text(80, 24).contains("ended"));
    shown.state.phase = Phase::Running { read: Some(0.5) };
    assert!(shown.text(80, 24).contains("reading 50 %"));
}

/// Rows of a query, among them hostile ones and wide ones.
fn of_query() -> Shown {
    let mut shown = Shown::new(COLORS);
    let text = "packets | where dns | project ts, ip.src, dns.qname, sport, share = len / 1500.0";
    let query = weir_lang::Query { name: "names", text };
    let compiled = weir_lang::compile(&query, &weir_lang::Options::default()).expect("compiles");
    let mut of_names = weir_engine::rows::Output::of(&compiled.program).remove(0);
    of_names.name = Some("names".to_owned());
    let mut model = shown.model.lock();
    model.open(&[output("totals-0-1"), of_names.clone()]);
    let mut rows = weir_engine::rows::Rows::new(&of_names.schema);
    for i in 0..30_usize {
        let name = match i {
            28 => "evil\x1b[2J.test".to_owned(),
            29 => "a".repeat(63),
            i => format!("n{i}.test"),
        };
        let values = [
            Value::Time(START + i as i64 * 1_500_000_000),
            ip("2001:db8:1:22:333:4444:5555:6666"),
            Value::Str(name.into()),
            if i == 27 { Value::Absent } else { Value::Int(1000 + i as i64 * 2000) },
            Value::Float(1.0 / (i + 3) as f64),
        ];
        for (column, value) in rows.columns.iter_mut().zip(values) {
            weir_engine::rows::set_cell(column, i, &value, &mut rows.arena);
        }
    }
    rows.len = 30;
    model.rows(1, &rows);
    drop(model);
    shown.app.library = ["sources", "syn_flood", "names"]
        .map(|name| crate::LibraryQuery {
            name: name.to_owned(),
            title: format!("what {name} does, in one line that may be rather long"),
            text: text.to_owned(),
        })
        .into();
    shown.press(&[KeyCode::Char('l'), KeyCode::End, KeyCode::Enter]);
    shown.app.refresh(&shown.model.lock());
    shown
}

#[test]
fn rows_of_a_query_are_a_table() {
    let mut shown = of_query();
    insta::assert_snapshot!("query_100x16", shown.text(100, 16));
    // A column to the right is seen once rows are sorted by it.
    shown.press(&[KeyCode::Left, KeyCode::Down]);
    insta::assert_snapshot!("query_by_last_column_60x16", shown.text(60, 16));
    shown.press(&[KeyCode::Enter]);
    insta::assert_snapshot!("row_of_query_80x8", shown.text(80, 8));
    shown.press(&[KeyCode::Esc, KeyCode::Char('l')]);
    insta::assert_snapshot!("library_60x8", shown.text(60, 8));
    shown.type_text("what flood");
    assert!(!shown.text(60, 8).contains("sources"));
    shown.type_text("x");
    assert!(shown.text(60, 8).contains("no query has these words"));
}

#[test]
fn rows_of_a_query_fit_any_screen() {
    for codes in [
        &[][..],
        &[KeyCode::Down, KeyCode::End],
        &[KeyCode::Left],
        &[KeyCode::Down, KeyCode::Enter],
        &[KeyCode::Down, KeyCode::Enter, KeyCode::End],
        &[KeyCode::Char('l')],
        &[KeyCode::Char('l'), KeyCode::End],
        &[KeyCode::Char('b')],
    ] {
        let mut shown = of_query();
        shown.press(codes);
        for width in (1..70).chain([130, 999]) {
            for height in 1..30 {
                shown.cells(width, height);
            }
        }
    }
}

/// Packets of a row, among them hostile ones.
fn packets() -> FoundPackets {
    let packet = |n: i64| {
        let fields = [
            ("ip.src", "2001:db8:1:22:333:4444:5555:6666".to_owned()),
            ("ip.dst", "198.51.100.2".to_owned()),
            ("sport", (1000 + n).to_string()),
            ("dport", "53".to_owned()),
            ("ip.proto", "17".to_owned()),
            ("udp", "true".to_owned()),
            ("dns", "true".to_owned()),
            ("dns.qname", "evil\x1b[2J.test".to_owned()),
        ];
        let fields = fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        FoundPacket { time: START + n * 1_000_000, length: 90, fields }
    };
    let notes = vec!["there are more: these are the first 40".to_owned()];
    FoundPackets { packets: (0..40).map(packet).collect(), notes, condition: None }
}

#[test]
fn the_packets_of_a_row_are_listed() {
    let mut shown = Shown::new(COLORS);
    shown.press(&[KeyCode::Down, KeyCode::Char('p')]);
    assert!(shown.text(80, 24).starts_with("looking for packets of 192.0.2.1\n"));
    shown.app.found(Ok(packets()));
    shown.press(&[KeyCode::End]);
    insta::assert_snapshot!("packets_80x12", shown.text(80, 12));
    shown.press(&[KeyCode::Enter]);
    insta::assert_snapshot!("fields_80x12", shown.text(80, 12));
    shown.press(&[KeyCode::Esc, KeyCode::Esc]);
    assert!(shown.text(80, 24).contains("1 Hosts"));
    shown.press(&[KeyCode::Char('p')]);
    shown.app.found(Err("no \x1b[5mroom".to_owned()));
    assert!(shown.text(80, 24).contains("no \u{fffd}[5mroom"));
}

/// The screen knew UTC alone, and of packets months apart the time of day.
#[test]
fn times_are_those_of_a_zone_and_have_dates_where_there_are_several() {
    let zone = TimeZone::new("Asia/Kolkata", 19_800_000_000_000, &[]);
    let mut shown = Shown::new(Look { zone, ..COLORS });
    assert!(shown.text(80, 24).starts_with("weir top  eth0 and eth1"), "{}", shown.text(80, 24));
    assert!(shown.text(80, 24).lines().next().is_some_and(|line| line.ends_with("live  11:21:39")));
    shown.press(&[KeyCode::Down, KeyCode::Char('p')]);
    let mut found = packets();
    shown.app.found(Ok(found.clone()));
    let line =
        |shown: &mut Shown, n: usize| shown.text(80, 24).lines().nth(n).expect("a line").to_owned();
    assert!(line(&mut shown, 2).starts_with("TIME (Asia/Kolkata) FROM "));
    assert!(line(&mut shown, 4).starts_with("11:21:10.001000     [2001:"));
    // One is of the next day, and of one nobody knows the time.
    found.packets[1].time = START + 86_400_000_000_000;
    found.packets[2].time = NO_TIME;
    shown.app.found(Ok(found));
    assert!(line(&mut shown, 3).starts_with("2026-11-21 11:21:10.000000 [2001:"));
    assert!(line(&mut shown, 4).starts_with("2026-11-22 11:21:10.000000 [2001:"));
    assert!(line(&mut shown, 5).starts_with("-                          [2001:"));
}

/// The list is drawn at any size, too, with a packet or a field chosen.
#[test]
fn packets_fit_any_screen() {
    for codes in [&[][..], &[KeyCode::End], &[KeyCode::Enter], &[KeyCode::Enter, KeyCode::End]] {
        let mut shown = Shown::new(COLORS);
        shown.press(&[KeyCode::Down, KeyCode::Char('p')]);
        shown.app.found(Ok(packets()));
        shown.press(codes);
        for width in (20..130).step_by(7) {
            for height in 6..30 {
                shown.text(width, height);
            }
        }
    }
}

#[test]
fn any_size_can_be_drawn_in_any_state() {
    for codes in [&[][..], &[KeyCode::Down], &[KeyCode::Char('/')], &[KeyCode::Char('?')]] {
        let mut shown = Shown::new(COLORS);
        shown.press(codes);
        shown.app.filter = "é".repeat(90);
        for width in (1..60).chain([200, 999]) {
            for height in [1, 2, 5, 6, 7, 8, 12, 16, 20, 31, 60] {
                shown.cells(width, height);
            }
        }
    }
}

#[test]
fn every_row_can_be_scrolled_to() {
    let mut shown = Shown::new(COLORS);
    {
        let mut model = shown.model.lock();
        let many: Vec<_> = (0..200_u32)
            .map(|n| {
                let host = Value::ip(std::net::Ipv4Addr::from(0x0a00_0000 + n).into());
                (START + 29_000_000_000, vec![host], 1, 10)
            })
            .collect();
        model.rows(1, &rows("hosts-sent", &many));
    }
    shown.app.refresh(&shown.model.lock());
    shown.press(&[KeyCode::Down, KeyCode::End]);
    assert!(shown.text(80, 24).contains("10.0.0.199"));
    shown.press(&[KeyCode::Home]);
    let text = shown.text(80, 24);
    assert!(text.contains("192.0.2.1") && !text.contains("10.0.0.199"));
}

/// With `WEIR_UPDATE_DOCS` set, the table is written instead.
#[test]
fn the_keys_are_those_of_the_documentation() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/top.md");
    let page = std::fs::read_to_string(path).expect("docs/top.md");
    let head = "| key | what it does |\n|---|---|\n";
    let start = page.find(head).expect("the table of keys") + head.len();
    let end = start + page[start..].find("\n\n").expect("its end") + 1;
    let row = |(keys, what): &(&str, &str)| format!("| {keys} | {what} |\n");
    let rows: String = boxes::KEYS.iter().map(row).collect();
    if std::env::var_os("WEIR_UPDATE_DOCS").is_some() {
        std::fs::write(path, format!("{}{rows}{}", &page[..start], &page[end..])).expect("writes");
    } else {
        assert_eq!(&page[start..end], rows, "docs/top.md: WEIR_UPDATE_DOCS=1 corrects it");
    }
}
