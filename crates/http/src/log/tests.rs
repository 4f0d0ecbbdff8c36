use super::*;
use crate::limits::PROGRAM_HISTORY_MAX;
use crate::testing::{form, number, output, output_of, rows};
use weir_plan::Type;
use weir_sink::each_line;

const NOW: Duration = Duration::ZERO;

fn open(log: &RowLog, outputs: &[&str]) {
    let outputs: Vec<_> = outputs.iter().map(|name| output(name)).collect();
    log.open(&outputs);
}

/// The rows of an event: how many were lost before them, and their numbers.
fn told(event: &RowEvent) -> (u64, Vec<i64>) {
    let RowEvent::Rows(lost, blocks) = event else { panic!("{event:?}") };
    (
        *lost,
        blocks.iter().flat_map(|block| each_line(block).map(number).collect::<Vec<_>>()).collect(),
    )
}

fn seen(log: &RowLog, cursors: &mut [(String, Option<u64>)]) -> Vec<(String, Unseen)> {
    log.unseen(cursors, NOW).expect("goes on")
}

#[test]
fn kept_rows_come_by_cursors() {
    let log = RowLog::new(form(), true);
    open(&log, &["a", "b"]);
    let mut cursors = vec![("a".to_owned(), None), ("none".to_owned(), None)];
    assert_eq!(seen(&log, &mut cursors).len(), 1);
    log.add(0, &rows(1..3, 0));
    let more = seen(&log, &mut cursors);
    assert_eq!((more.len(), more[0].1.blocks.len(), more[0].1.next), (1, 1, 2));
    let line = each_line(&more[0].1.blocks[0]).next().expect("a row");
    assert_eq!(line, b"{\"_pipeline\":\"a\",\"n\":1,\"text\":\"\"}");
    assert_eq!(seen(&log, &mut cursors).len(), 0);
    // The lines of a block are weighed in place of its rows.
    let bytes = log.0.state.lock().bytes;
    assert_eq!(bytes, more[0].1.blocks[0].len());
    // The input is read again.
    log.rest();
    open(&log, &["a"]);
    assert!(seen(&log, &mut cursors)[0].1.outputs.is_some());
    log.close();
    assert_eq!(log.unseen(&mut cursors, NOW), None);
    let all: Vec<_> = (0..STREAMS_MAX).map(|_| log.follow().expect("room")).collect();
    assert!(log.follow().is_none());
    drop(all);
    assert!(log.follow().is_some() && log.clients() == 0);
}

#[test]
fn a_program_that_changes_begins_anew() {
    let log = RowLog::new(form(), true);
    open(&log, &["a", "b"]);
    log.add(0, &rows(1..2, 0));
    log.add(1, &rows(1..2, 0));
    let cursor = |program: &str, at| [(program.to_owned(), at)];
    let other = output_of("b", &[("m", Type::Int), ("text", Type::Str)]);
    log.open(&[output("a"), other.clone()]);
    assert_eq!(seen(&log, &mut cursor("a", Some(1))).len(), 0);
    let b = seen(&log, &mut cursor("b", Some(1))).remove(0).1;
    assert!(b.outputs.is_some() && b.blocks.is_empty());
    // Nor is a number right of a program that went and came again, or of another.
    open(&log, &["a"]);
    log.open(&[output("a"), other, output("c")]);
    (0..9).for_each(|n| log.add(1, &rows(3 * n..3 * n + 3, 0)));
    let unseen = seen(&log, &mut cursor("b", Some(b.next))).remove(0).1;
    let n: usize = unseen.blocks.iter().map(|block| each_line(block).count()).sum();
    assert_eq!((unseen.skipped, n, unseen.outputs.is_some()), (0, 27, true));
    assert_eq!(seen(&log, &mut cursor("c", Some(0))).len(), 1);
}

#[test]
fn clients_get_the_rows_of_their_program() {
    for keeps in [false, true] {
        let log = RowLog::new(form(), keeps);
        assert_eq!(log.subscribe("a").err(), Some(NoRows::Unknown));
        open(&log, &["a", "b"]);
        log.add(0, &rows(0..1, 0));
        let (a, b) = (log.subscribe("a").expect("runs"), log.subscribe("b").expect("runs"));
        log.add(0, &rows(1..3, 0));
        assert_eq!(told(&a.next(NOW)), (0, vec![1, 2]));
        assert_eq!((a.next(NOW), b.next(NOW)), (RowEvent::Quiet, RowEvent::Quiet));
        log.add(1, &rows(3..4, 0));
        open(&log, &["a"]);
        assert_eq!(told(&b.next(NOW)), (0, vec![3]));
        assert_eq!((a.next(NOW), b.next(NOW)), (RowEvent::Quiet, RowEvent::End));
        log.add(0, &rows(5..6, 0));
        open(&log, &[]);
        assert_eq!(told(&a.next(NOW)), (0, vec![5]));
        assert_eq!(a.next(NOW), RowEvent::End);
        drop((a, b));
        assert_eq!(log.clients(), 0);
    }
}

#[test]
fn rows_that_no_stream_is_of_are_not_kept_unless_that_is_asked() {
    let log = RowLog::new(form(), false);
    open(&log, &["a", "b"]);
    log.add(0, &rows(1..2, 0));
    let a = log.subscribe("a").expect("runs");
    log.add(1, &rows(1..2, 0));
    assert_eq!(log.0.state.lock().bytes, 0);
    let second = log.subscribe("a").expect("runs");
    log.add(0, &rows(1..2, 0));
    drop(a);
    assert!(log.0.state.lock().bytes > 0);
    drop(second);
    assert_eq!(log.0.state.lock().bytes, 0);
}

#[test]
fn a_stream_goes_on_where_its_program_changes_and_ends_where_the_input_does() {
    let log = RowLog::new(form(), true);
    open(&log, &["a"]);
    let a = log.subscribe("a").expect("runs");
    log.add(0, &rows(1..2, 0));
    // It has one more output from now on.
    open(&log, &["a", "a.more"]);
    log.add(0, &rows(2..3, 0));
    assert_eq!(told(&a.next(NOW)), (0, vec![1]));
    assert_eq!(told(&a.next(NOW)), (0, vec![2]));
    log.add(0, &rows(3..4, 0));
    log.rest();
    assert_eq!(log.subscribe("a").err(), Some(NoRows::Unknown));
    // The input is read again, for others.
    open(&log, &["a", "a.more"]);
    log.add(0, &rows(1..2, 0));
    assert_eq!(told(&a.next(NOW)), (0, vec![3]));
    assert_eq!(a.next(NOW), RowEvent::End);
}

#[test]
fn who_does_not_read_loses_rows_and_is_told() {
    let log = RowLog::new(form(), false);
    open(&log, &["a"]);
    let (client, other) = (log.subscribe("a").expect("runs"), log.subscribe("a").expect("runs"));
    let letters = PROGRAM_HISTORY_MAX / 256 / 8;
    let mut got = Vec::new();
    for n in 0..20 {
        log.add(0, &rows(n * 256..(n + 1) * 256, letters));
        while let RowEvent::Rows(lost, blocks) = other.next(NOW) {
            assert_eq!(lost, 0);
            got.extend(blocks.iter().flat_map(|b| each_line(b).map(number).collect::<Vec<_>>()));
        }
    }
    assert!(got.iter().copied().eq(0..20 * 256));
    let before = log.lost();
    assert!(before > 10 * 256 && before < 20 * 256, "{before}");
    // The next row comes after the report of the loss, never before.
    let (lost, first) = told(&client.next(NOW));
    assert_eq!((lost, first[0]), (before, before as i64));
    let mut last = first;
    while let RowEvent::Rows(0, blocks) = client.next(NOW) {
        last.extend(blocks.iter().flat_map(|b| each_line(b).map(number).collect::<Vec<_>>()));
    }
    assert!(last.iter().copied().eq(before as i64..20 * 256));
    assert_eq!(log.lost(), before);
    let state = log.0.state.lock();
    assert_eq!(state.bytes, state.programs["a"].bytes());
}

#[test]
fn all_programs_together_are_bounded() {
    let names: Vec<String> = (0..20).map(|i| format!("p{i}")).collect();
    let log = RowLog::new(form(), true);
    open(&log, &names.iter().map(String::as_str).collect::<Vec<_>>());
    for n in 0..400 {
        log.add(n % 20, &rows(0..256, 1000));
        assert!(log.0.state.lock().bytes <= HISTORY_BYTES_MAX);
    }
    let mut state = log.0.state.lock();
    assert_eq!(state.bytes, state.programs.values().map(History::bytes).sum::<usize>());
    for history in state.programs.values_mut() {
        assert!(history.since(None).is_some_and(|found| !found.blocks.is_empty()));
    }
}

#[test]
#[expect(clippy::disallowed_methods, reason = "how long a client takes nothing")]
fn the_end_comes_during_a_rest_and_waits_for_no_client_that_is_stuck() {
    let log = RowLog::new(form(), false);
    open(&log, &["a"]);
    let client = log.subscribe("a").expect("runs");
    log.add(0, &rows(1..2, 0));
    assert!(matches!(client.next(NOW), RowEvent::Rows(..)));
    let is_stuck = |after: Duration| log.0.state.lock().streams[0].is_stuck(Instant::now() + after);
    assert!(is_stuck(LEAVING * 2) && !is_stuck(LEAVING / 4));
    thread::scope(|scope| {
        let rests = scope.spawn(|| client.rest(usize::MAX));
        log.rest();
        rests.join().expect("no panic");
    });
    assert!(!is_stuck(LEAVING * 2));
    assert_eq!(client.next(NOW), RowEvent::End);
}

#[test]
fn a_client_is_woken_by_rows_of_its_programs() {
    const LONG: Duration = Duration::from_secs(60);
    let log = RowLog::new(form(), true);
    open(&log, &["a", "b"]);
    let mut cursors = vec![("b".to_owned(), None)];
    seen(&log, &mut cursors);
    let follower = log.clone();
    let waits = thread::spawn(move || follower.unseen(&mut cursors, LONG));
    while log.0.state.lock().waiting.is_empty() {
        thread::yield_now();
    }
    log.add(0, &rows(1..2, 0));
    log.add(1, &rows(1..2, 0));
    assert_eq!(waits.join().expect("no panic").expect("goes on").len(), 1);
    assert!(log.0.state.lock().waiting.is_empty());
}

#[test]
fn there_are_only_so_many_clients() {
    let log = RowLog::new(form(), false);
    open(&log, &["a"]);
    let all: Vec<_> = (0..STREAMS_MAX).map(|_| log.subscribe("a").expect("room")).collect();
    assert_eq!(log.subscribe("a").err(), Some(NoRows::Full));
    drop(all);
    assert!(log.subscribe("a").is_ok());
}
