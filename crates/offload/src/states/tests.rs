use super::table::*;
use crate::table::ValueShape;
use std::sync::atomic::{AtomicU64, Ordering};
use weir_plan::physical::PipelineId;

const IDLE: i64 = 100;
const SECRET: [u64; 2] = [0x243f_6a88_85a3_08d3, 0x9e37_79b9_7f4a_7c15];
const KEY_SHAPE: ValueShape = ValueShape::Word { least: 0, greatest: 0xffff, is_nullable: true };

/// A table of two buckets, and its memory.
fn table() -> (StateTable, Vec<AtomicU64>) {
    let mut table = StateTable::new((PipelineId(0), 1), &[KEY_SHAPE], 2, IDLE, SECRET);
    table.buckets = 2;
    let words = (0..table.words()).map(|_| AtomicU64::new(0)).collect();
    (table, words)
}

/// The slots in which there is something: what it is, and when its key had a frame.
fn slots(table: &StateTable, memory: &[AtomicU64]) -> Vec<(u64, u64)> {
    let buckets = memory.chunks_exact(table.bucket_words());
    let slots = buckets.flat_map(|bucket| bucket[HEAD..].chunks_exact(table.slot_words()));
    let of = |slot: &[AtomicU64]| [META, LAST].map(|at| slot[at].load(Ordering::Relaxed));
    slots.map(of).filter(|slot| slot[0] != 0).map(|slot| (slot[0], slot[1])).collect()
}

/// Has a program hold these states of the only key.
fn hold(table: &StateTable, memory: &[AtomicU64], last: i64, states: [i64; 2]) {
    for bucket in memory.chunks_exact(table.bucket_words()) {
        for slot in bucket[HEAD..].chunks_exact(table.slot_words()) {
            if slot[META].load(Ordering::Relaxed) != 0 {
                slot[META].store((USED | STATES) as u64, Ordering::Relaxed);
                slot[LAST].store(last as u64, Ordering::Relaxed);
                for (word, state) in slot[table.states_at()..].iter().zip(states) {
                    word.store(state as u64, Ordering::Relaxed);
                }
            }
        }
    }
}

#[test]
fn states_are_taken_once_and_not_when_they_were_idle() {
    for key in [None, Some(0), Some(1), Some(0xfffe), Some(0xffff)] {
        let (table, memory) = table();
        assert_eq!(table.take(&memory, &[key], 1000), None, "no program held it");
        let up = (USED | UP) as u64;
        assert_eq!(slots(&table, &memory), [(up, 1000)]);
        hold(&table, &memory, 1000, [i64::MIN, i64::MAX]);
        let taken = TakenStates { last: 1000, states: vec![i64::MIN, i64::MAX] };
        assert_eq!(table.take(&memory, &[key], 1000 + IDLE - 1), Some(taken));
        assert_eq!(table.take(&memory, &[key], 1000 + IDLE - 1), None);
        assert_eq!(slots(&table, &memory), [(up, (1000 + IDLE - 1) as u64)]);
        hold(&table, &memory, 1000, [1, 2]);
        assert_eq!(table.take(&memory, &[key], 1000 + IDLE), None, "it was forgotten");
        // A late frame does not bring the time back.
        hold(&table, &memory, 2000, [3, 4]);
        let taken = TakenStates { last: 2000, states: vec![3, 4] };
        assert_eq!(table.take(&memory, &[key], 5), Some(taken));
        assert_eq!(slots(&table, &memory), [(up, 2000)]);
    }
}

#[test]
fn a_key_without_room_is_noted_where_it_would_stand() {
    let (table, memory) = table();
    for key in 0..100 {
        assert_eq!(table.take(&memory, &[Some(key)], 1000), None);
    }
    assert_eq!(slots(&table, &memory).len(), 2 * SLOTS);
    for bucket in memory.chunks_exact(table.bucket_words()) {
        assert_eq!(bucket[CROWDED].load(Ordering::Relaxed), 1000);
        assert_eq!(bucket[LOCK].load(Ordering::Relaxed), 0, "nobody holds it");
    }
    // Where keys were idle, others find room.
    table.take(&memory, &[Some(1000)], 1000 + IDLE);
    assert!(slots(&table, &memory).contains(&((USED | UP) as u64, (1000 + IDLE) as u64)));
    // No program has this key.
    assert_eq!(table.take(&memory, &[Some(0x1_0000)], 1000), None);
    assert_eq!(table.take(&[], &[Some(1)], 1000), None, "that is no memory of it");
}

#[test]
fn a_lock_is_waited_for() {
    let (table, memory) = table();
    for bucket in memory.chunks_exact(table.bucket_words()) {
        bucket[LOCK].store(1, Ordering::Relaxed);
    }
    std::thread::scope(|scope| {
        let taker = scope.spawn(|| table.take(&memory, &[Some(1)], 1000));
        for _ in 0..10_000 {
            std::thread::yield_now();
        }
        assert!(!taker.is_finished() && slots(&table, &memory).is_empty());
        for bucket in memory.chunks_exact(table.bucket_words()) {
            bucket[LOCK].store(0, Ordering::Release);
        }
    });
    assert_eq!(slots(&table, &memory).len(), 1);
}
