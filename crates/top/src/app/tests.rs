use super::*;
use crate::key::Part;
use crate::look::Glyphs;
use crate::measure::SECOND_NS;
use crate::model::SharedModel;
use crate::packets::FoundPacket;
use crate::testing::{output, rows};
use weir_plan::Value;

fn host(n: u32) -> Value {
    Value::ip(std::net::Ipv4Addr::from(n).into())
}

fn model() -> SharedModel {
    let shared = SharedModel::new(Pace::Live);
    let mut model = shared.lock();
    model.open(&[output("totals-0-0"), output("hosts-sent"), output("hosts-received")]);
    drop(model);
    fill(&shared, 9, &[(1, 600), (2, 300), (3, 100)]);
    shared
}

fn fill(shared: &SharedModel, second: i64, hosts: &[(u32, i64)]) {
    let mut model = shared.lock();
    let at = second * SECOND_NS;
    let sum = hosts.iter().map(|(_, bytes)| bytes).sum();
    model.rows(0, &rows("totals-0-0", &[(at, vec![Value::Absent], 10, sum)]));
    let sent: Vec<_> = hosts.iter().map(|(n, bytes)| (at, vec![host(*n)], 1, *bytes)).collect();
    model.rows(1, &rows("hosts-sent", &sent));
}

fn app(shared: &SharedModel) -> App {
    let look = Look { color: false, glyphs: Glyphs::Ascii, zone: None };
    App::new("eth0\x1b[2J", look, Setup::first(Pace::Live, 1), &shared.lock())
}

fn press(app: &mut App, shared: &SharedModel, code: KeyCode) -> Wish {
    app.key(KeyEvent::new(code, KeyModifiers::NONE), &shared.lock())
}

fn labels(app: &App) -> Vec<&str> {
    app.shown.rows.iter().map(|row| row.label.as_str()).collect()
}

#[test]
fn rows_keep_still_while_one_is_chosen() {
    let shared = model();
    let mut app = app(&shared);
    assert_eq!(app.source, "eth0\u{fffd}[2J");
    assert_eq!(labels(&app), ["0.0.0.1", "0.0.0.2", "0.0.0.3"]);
    press(&mut app, &shared, KeyCode::Down);
    press(&mut app, &shared, KeyCode::Down);
    fill(&shared, 10, &[(3, 9000), (4, 9000)]);
    app.refresh(&shared.lock());
    assert_eq!(labels(&app), ["0.0.0.1", "0.0.0.2", "0.0.0.3"]);
    assert_eq!(app.shown.rows[2].sent.bytes, 9100);
    assert_eq!(app.shown.other.0.bytes, 9000);
    press(&mut app, &shared, KeyCode::Esc);
    assert_eq!(labels(&app), ["0.0.0.3", "0.0.0.4", "0.0.0.1", "0.0.0.2"]);
}

#[test]
fn a_pause_stops_the_picture_and_not_the_counts() {
    let shared = model();
    let mut app = app(&shared);
    press(&mut app, &shared, KeyCode::Char(' '));
    fill(&shared, 10, &[(4, 9000)]);
    app.refresh(&shared.lock());
    assert_eq!((app.shown.total.bytes, app.paused), (1000, true));
    press(&mut app, &shared, KeyCode::Char(' '));
    assert_eq!((app.shown.total.bytes, app.paused), (10_000, false));
}

#[test]
fn another_table_asks_the_run_for_its_rows() {
    let shared = model();
    let mut app = app(&shared);
    assert_eq!(press(&mut app, &shared, KeyCode::Char('2')), Wish::Change);
    assert_eq!((app.setup().data.as_slice(), app.setup().changes), (&[Data::Pairs][..], 1));
    assert_eq!(press(&mut app, &shared, KeyCode::Char('2')), Wish::Nothing);
    assert_eq!(press(&mut app, &shared, KeyCode::BackTab), Wish::Change);
    // Names are of hosts, which are counted already.
    assert_eq!(press(&mut app, &shared, KeyCode::Char('6')), Wish::Nothing);
    assert_eq!(app.table, Table::Names);
    assert_eq!(press(&mut app, &shared, KeyCode::Tab), Wish::Nothing);
    assert_eq!((app.table, app.setup().filters), (Table::Hosts, 0));
}

#[test]
fn a_row_becomes_a_filter_and_one_can_go_back() {
    let shared = model();
    let mut app = app(&shared);
    assert_eq!(press(&mut app, &shared, KeyCode::Enter), Wish::Nothing);
    press(&mut app, &shared, KeyCode::Down);
    assert_eq!(press(&mut app, &shared, KeyCode::Enter), Wish::Change);
    assert_eq!(app.filter, "ip.src == 0.0.0.1 or ip.dst == 0.0.0.1");
    assert_eq!((app.setup().filters, app.setup().changes), (1, 1));
    press(&mut app, &shared, KeyCode::Char('/'));
    press(&mut app, &shared, KeyCode::Char('x'));
    assert_eq!(press(&mut app, &shared, KeyCode::Enter), Wish::Nothing);
    press(&mut app, &shared, KeyCode::Esc);
    assert_eq!(press(&mut app, &shared, KeyCode::Backspace), Wish::Change);
    assert_eq!((app.filter.as_str(), app.setup().filters), ("", 2));
    assert_eq!(press(&mut app, &shared, KeyCode::Backspace), Wish::Nothing);
}

#[test]
fn the_packets_of_a_row_are_looked_for() {
    let shared = model();
    let mut app = app(&shared);
    assert_eq!(press(&mut app, &shared, KeyCode::Char('p')), Wish::Nothing);
    assert!(app.message.as_deref().is_some_and(|text| text.contains("choose a row")));
    press(&mut app, &shared, KeyCode::Down);
    assert_eq!(press(&mut app, &shared, KeyCode::Char('p')), Wish::LookForPackets);
    let wanted = PacketsWanted::Condition("ip.src == 0.0.0.1 or ip.dst == 0.0.0.1".to_owned());
    assert_eq!(app.wanted(), Some(&wanted));
    app.found(Ok(FoundPackets {
        packets: vec![FoundPacket::default()],
        ..FoundPackets::default()
    }));
    assert_eq!(press(&mut app, &shared, KeyCode::Enter), Wish::Nothing);
    assert_eq!(press(&mut app, &shared, KeyCode::Esc), Wish::Nothing);
    assert_eq!(press(&mut app, &shared, KeyCode::Esc), Wish::LookNoMore);
    assert_eq!((app.wanted(), app.chosen.is_some()), (None, true));
    // A result that comes after that belongs to no search.
    app.found(Err("late".to_owned()));
    assert_eq!(app.mode, Mode::Tables);
}

fn library() -> Vec<LibraryQuery> {
    let query = |name: &str| LibraryQuery {
        name: name.to_owned(),
        title: String::new(),
        text: "packets | summarize n = count() by ip.src every 1s".to_owned(),
    };
    vec![query("sources"), query("others")]
}

#[test]
fn keys_are_typed_and_counted_by() {
    let shared = model();
    let mut app = app(&shared);
    // There are no keys yet, so a box for them opens.
    assert_eq!(press(&mut app, &shared, KeyCode::Char('7')), Wish::Nothing);
    assert!(matches!(app.mode, Mode::Keys(_)));
    assert_eq!(press(&mut app, &shared, KeyCode::Enter), Wish::Nothing);
    app.paste("dport, x = tcp or udp");
    assert_eq!(press(&mut app, &shared, KeyCode::Enter), Wish::Change);
    assert_eq!((app.table, app.mode.clone()), (Table::Keys, Mode::Tables));
    assert_eq!(app.setup().data, [Data::Keys]);
    assert_eq!((app.setup().keys.as_str(), app.setup().filters), ("dport, x = tcp or udp", 0));
    // Rows of earlier keys, which the run may still count, are not shown under these.
    let counted = |changes: u64| {
        let mut model = shared.lock();
        model.open(&[output(&format!("totals-0-{changes}")), output("keys-sent")]);
        model.rows(1, &rows("keys-sent", &[(9 * SECOND_NS, vec![Value::Int(443)], 1, 60)]));
    };
    for (changes, shown) in [(0, 0), (1, 1)] {
        counted(changes);
        app.refresh(&shared.lock());
        assert_eq!(app.shown.rows.len(), shown, "{changes}");
    }
    // Once more, they are changed.
    assert_eq!(press(&mut app, &shared, KeyCode::Char('7')), Wish::Nothing);
    assert_eq!(press(&mut app, &shared, KeyCode::Esc), Wish::Nothing);
    assert_eq!(press(&mut app, &shared, KeyCode::Tab), Wish::Change);
    assert_eq!((app.table, app.setup().data.as_slice()), (Table::Hosts, &[Data::Hosts][..]));
    assert_eq!(press(&mut app, &shared, KeyCode::BackTab), Wish::Change);
    assert_eq!(app.table, Table::Keys);
}

#[test]
fn of_files_all_is_counted_at_once() {
    let shared = model();
    let setup = Setup::first(Pace::Whole, 1);
    let look = Look { color: false, glyphs: Glyphs::Ascii, zone: None };
    let mut app = App::new("x.pcap", look, setup, &shared.lock());
    app.library = library();
    press(&mut app, &shared, KeyCode::Char('b'));
    app.paste("dport");
    assert_eq!(press(&mut app, &shared, KeyCode::Enter), Wish::Change);
    press(&mut app, &shared, KeyCode::Char('l'));
    assert_eq!(press(&mut app, &shared, KeyCode::Enter), Wish::Change);
    let all = [&Data::FIXED[..], &[Data::Keys, Data::Query]].concat();
    assert_eq!((app.table, &app.setup().data), (Table::Query, &all));
    for _ in 0..8 {
        assert_eq!(press(&mut app, &shared, KeyCode::Tab), Wish::Nothing);
    }
    assert_eq!((app.table, app.setup().changes), (Table::Query, 2));
}

#[test]
fn a_query_of_the_library_shows_its_rows() {
    let shared = model();
    let mut app = app(&shared);
    app.library = library();
    assert_eq!(press(&mut app, &shared, KeyCode::Char('8')), Wish::Nothing);
    app.paste("src");
    assert_eq!(press(&mut app, &shared, KeyCode::Enter), Wish::Nothing);
    for _ in 0..3 {
        press(&mut app, &shared, KeyCode::Backspace);
    }
    press(&mut app, &shared, KeyCode::Down);
    assert_eq!(press(&mut app, &shared, KeyCode::Enter), Wish::Change);
    assert_eq!(app.setup().query, Some(library().remove(1)));
    assert_eq!((app.table, app.setup().data.as_slice()), (Table::Query, &[Data::Query][..]));
    {
        let mut model = shared.lock();
        model.open(&[output("totals-0-1"), output("others")]);
        let of = |n: u32, bytes| (9 * SECOND_NS, vec![host(n)], 1, bytes);
        model.rows(1, &rows("others", &[of(2, 5), of(1, 9), of(3, 7)]));
    }
    app.refresh(&shared.lock());
    let order = |app: &App| -> Vec<u64> {
        app.shown.rows.iter().filter_map(|row| Some(row.of_query.as_ref()?.number)).collect()
    };
    // The latest first, then by columns: time, address, packets, bytes.
    assert_eq!(order(&app), [2, 1, 0]);
    press(&mut app, &shared, KeyCode::Char('r'));
    assert_eq!(order(&app), [0, 1, 2]);
    press(&mut app, &shared, KeyCode::Left);
    assert_eq!((app.query_column, order(&app)), (Some(3), vec![1, 2, 0]));
    press(&mut app, &shared, KeyCode::Left);
    press(&mut app, &shared, KeyCode::Left);
    assert_eq!((app.query_column, order(&app)), (Some(1), vec![2, 0, 1]));
    press(&mut app, &shared, KeyCode::Left);
    press(&mut app, &shared, KeyCode::Left);
    assert_eq!((app.query_column, order(&app)), (None, vec![2, 1, 0]));
    // A row that is chosen keeps still while others come.
    press(&mut app, &shared, KeyCode::Down);
    press(&mut app, &shared, KeyCode::Down);
    shared.lock().rows(1, &rows("others", &[(9 * SECOND_NS, vec![host(4)], 1, 1)]));
    app.refresh(&shared.lock());
    assert_eq!(order(&app), [2, 1, 0]);
    // ... also if so many come that it is not one of the latest any more.
    for _ in 0..12 {
        let many: Vec<_> = (0..100).map(|n| (9 * SECOND_NS, vec![host(n)], 1, 1)).collect();
        shared.lock().rows(1, &rows("others", &many));
    }
    app.refresh(&shared.lock());
    assert_eq!((order(&app), app.shown.output.taken), (vec![2, 1, 0], 1204));
    assert_eq!(press(&mut app, &shared, KeyCode::Enter), Wish::Nothing);
    let Mode::Columns(columns) = &app.mode else { panic!("{:?}", app.mode) };
    assert_eq!(columns.columns[1], ("ip.src".to_owned(), "0.0.0.1".to_owned()));
    assert_eq!(press(&mut app, &shared, KeyCode::Char('p')), Wish::LookForPackets);
    let Some(PacketsWanted::Row { output: 0, row }) = app.wanted() else {
        panic!("{:?}", app.wanted())
    };
    assert_eq!((row.number, &row.values[3]), (1, &Value::Int(9)));
    assert_eq!(press(&mut app, &shared, KeyCode::Esc), Wish::LookNoMore);
    // There is one output only.
    press(&mut app, &shared, KeyCode::Char('o'));
    assert!(app.chosen.is_some());
}

#[test]
fn what_is_refused_leaves_what_runs() {
    let shared = model();
    let mut app = app(&shared);
    let runs = app.setup().clone();
    press(&mut app, &shared, KeyCode::Char('3'));
    app.chosen = Some(vec![Part::Absent]);
    app.refused("no\x1broom", &runs);
    assert_eq!((app.table, app.setup().changes), (Table::Hosts, 1));
    assert_eq!(app.message.as_deref(), Some("no\u{fffd}room"));
    // A row that was chosen meanwhile is not one of the table that is shown now.
    assert_eq!((app.counted, app.chosen.is_none()), (runs.changes, true));
}

#[test]
fn columns_are_sorted_by_and_turned() {
    let shared = model();
    let mut app = app(&shared);
    press(&mut app, &shared, KeyCode::Char('r'));
    assert_eq!(labels(&app), ["0.0.0.3", "0.0.0.2", "0.0.0.1"]);
    press(&mut app, &shared, KeyCode::Right);
    assert_eq!((app.column, app.descending), (Column::Received, true));
    press(&mut app, &shared, KeyCode::Left);
    press(&mut app, &shared, KeyCode::Left);
    assert_eq!(app.column, Column::PacketsRate);
    // A table without that column is sorted by its first.
    press(&mut app, &shared, KeyCode::Right);
    press(&mut app, &shared, KeyCode::Right);
    assert_eq!(app.column, Column::Received);
    press(&mut app, &shared, KeyCode::Char('3'));
    assert_eq!(app.column, Column::Sent);
}

#[test]
fn ctrl_c_and_q_end_it() {
    let shared = model();
    let mut app = app(&shared);
    assert_eq!(press(&mut app, &shared, KeyCode::Char('q')), Wish::Quit);
    press(&mut app, &shared, KeyCode::Char('/'));
    // In the box, q is a letter.
    assert_eq!(press(&mut app, &shared, KeyCode::Char('q')), Wish::Nothing);
    let ctrl_c = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    assert_eq!(app.key(ctrl_c, &shared.lock()), Wish::Quit);
}
