use super::*;
use crate::limits::HISTORY_BYTES_MAX;
use crate::testing::{history, numbers, rows, shown};

/// Appends a row with this number, and a text of so many letters.
fn add(history: &mut History, output: usize, n: i64, letters: usize) {
    history.append(output, &rows(n..n + 1, letters), true);
}

/// The rows that a client gets from a cursor on: numbers, skipped rows, the next cursor.
fn since(history: &mut History, cursor: Option<u64>) -> Option<(Vec<i64>, u64, u64)> {
    let found = history.since(cursor)?;
    Some((numbers(&found), found.skipped, found.next))
}

#[test]
fn clients_that_come_later_see_the_same_rows() {
    let mut history = history(&["a"]);
    history.append(0, &rows(1..3, 0), false);
    let first = history.since(None).expect("rows");
    assert_eq!((numbers(&first), first.skipped, first.next), (vec![1, 2], 0, 2));
    assert_eq!(first.outputs, Some(vec![shown("a")]));
    assert!(history.since(Some(2)).is_none());
    add(&mut history, 0, 4, 0);
    assert_eq!(since(&mut history, Some(2)), Some((vec![4], 0, 3)));
    // A number within rows that came together.
    assert_eq!(since(&mut history, Some(1)), Some((vec![2, 4], 0, 3)));
    // A number of another run.
    assert!(history.since(Some(77)).expect("all").outputs.is_some());
    // A client is told of outputs without rows, too, and once.
    let mut empty = History::new(5);
    empty.add_output(shown("b"), crate::testing::writer("b"));
    let found = empty.since(None).expect("outputs");
    assert!(found.outputs.is_some() && found.blocks.is_empty());
    assert!(empty.since(Some(found.next)).is_none());
}

#[test]
fn rows_fill_their_batches_and_come_in_the_order_of_these() {
    let mut history = history(&["a", "a.b"]);
    let (mut next, mut expected) = (0, [Vec::new(), Vec::new()]);
    let lens = [1, 2, 255, 256, 0, 3, 256, 1, 7, 254];
    for (i, len) in lens.into_iter().cycle().take(40).enumerate() {
        history.append(i % 2, &rows(next..next + len, i), false);
        expected[i % 2].extend(next..next + len);
        next += len;
    }
    for (of, expected) in history.outputs.iter().zip(&expected) {
        assert_eq!(of.unread.len(), expected.len().div_ceil(BATCH));
    }
    let (mut all, mut cursor) = (Vec::new(), None);
    while let Some((numbers, skipped, next)) = since(&mut history, cursor) {
        assert_eq!(skipped, 0);
        all.extend(numbers);
        cursor = Some(next);
    }
    assert_eq!(cursor, Some(next as u64));
    let is_of = |n: &i64| usize::from(expected[1].binary_search(n).is_ok());
    for (at, expected) in expected.iter().enumerate() {
        assert!(all.iter().copied().filter(|n| is_of(n) == at).eq(expected.iter().copied()));
    }
    let turns = all.windows(2).filter(|two| is_of(&two[0]) != is_of(&two[1])).count();
    assert!(turns > 5, "{turns}");
}

#[test]
fn of_rows_that_nobody_reads_the_latest_of_each_output_stay() {
    let mut history = history(&["a", "a.b"]);
    let (mut forgotten, mut next) = (0, 100);
    history.append(0, &rows(0..100, 5), false);
    while next < 600_000 {
        history.append(1, &rows(next..next + 100, 40), false);
        while let Some(gone) = history.shrink() {
            forgotten += (gone.rows.end - gone.rows.start) as i64;
        }
        next += 100;
        let most = if forgotten > 0 { LATEST_BYTES_MAX } else { UNREAD_BYTES_MAX };
        assert!(history.outputs[1].unread_bytes <= most);
    }
    let (mut all, mut cursor, mut skipped) = (Vec::new(), None, 0);
    while let Some((numbers, gap, next)) = since(&mut history, cursor) {
        all.extend(numbers);
        (cursor, skipped) = (Some(next), skipped + gap);
    }
    assert!(forgotten > 0 && all.len() > 5_000, "{forgotten} {}", all.len());
    assert!(all.iter().copied().eq((0..100).chain(100 + forgotten..next)));
    assert_eq!(skipped, forgotten as u64);
}

#[test]
fn rows_beyond_the_bounds_are_counted() {
    let mut history = history(&["a"]);
    let mut gone = 0;
    for n in 0..5 * BATCH as i64 {
        add(&mut history, 0, n, PROGRAM_HISTORY_MAX / 5 * 2 / BATCH);
        while let Some(forgotten) = history.shrink() {
            gone += forgotten.rows.end - forgotten.rows.start;
        }
        assert!(history.bytes() <= PROGRAM_HISTORY_MAX + HISTORY_BYTES_MAX / 8);
    }
    let (rows, skipped, next) = since(&mut history, None).expect("rows");
    assert_eq!((skipped, rows[0] as u64), (gone, gone), "in parts");
    assert!(gone >= 3 * BATCH as u64 && next < 5 * BATCH as u64, "{gone} {next}");
    let bytes: Vec<usize> = history.outputs[0].blocks.iter().map(|block| block.bytes).collect();
    assert_eq!(bytes.iter().sum::<usize>(), history.bytes());
    // The lines of a block may be longer or shorter than its rows.
    history.weigh(gone, 7);
    assert_eq!(history.bytes(), 7 + bytes[1..].iter().sum::<usize>());
}

#[test]
fn few_rows_stay_however_many_another_output_has() {
    let mut history = history(&["a", "a.alerts"]);
    history.append(1, &rows(0..2, 0), true);
    history.next();
    let mut gone = 0;
    for n in 0..20 {
        history.append(0, &rows(n * 256..(n + 1) * 256, PROGRAM_HISTORY_MAX / 8 / 256), true);
        history.next();
        while let Some(forgotten) = history.shrink() {
            gone += forgotten.rows.end - forgotten.rows.start;
        }
    }
    history.append(1, &rows(7..8, 0), true);
    assert!(gone > 10 * 256, "{gone}");
    let (mut all, mut cursor, mut skipped) = (Vec::new(), None, 0);
    while let Some((numbers, gap, next)) = since(&mut history, cursor) {
        all.extend(numbers);
        (cursor, skipped) = (Some(next), skipped + gap);
    }
    assert_eq!((skipped, cursor), (gone, Some(20 * 256 + 3)));
    assert_eq!((&all[..2], all.last()), (&[0, 1][..], Some(&7)));
}

#[test]
fn outputs_with_many_rows_reach_equally_far_back() {
    let mut history = history(&["a", "a.small"]);
    for n in 0..100 {
        history.append(0, &rows(n..n + 256, PROGRAM_HISTORY_MAX / 32 / 256), true);
        history.append(1, &rows(n..n + 256, PROGRAM_HISTORY_MAX / 96 / 256), true);
        history.next();
        while history.shrink().is_some() {}
    }
    let kept: Vec<usize> = history.outputs.iter().map(|of| of.blocks.len()).collect();
    assert!(kept[0].abs_diff(kept[1]) <= 1 && kept[0] > 15, "{kept:?}");
}
