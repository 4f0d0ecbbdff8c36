use crate::layout::FileName;
use crate::limits::HOURS_MAX;
use crate::store::COLUMNS;
use crate::{Expiry, Inventory, Store, StoreOptions, StoredHour};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;
use weir_arrow::arrow_array::cast::AsArray as _;
use weir_arrow::arrow_array::types::Int64Type;
use weir_arrow::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use weir_base::address::AddressForm;
use weir_engine::rows::{Output, Rows, Sink as _, set_cell};
use weir_plan::{Column, Schema, Type, Value};

const HOUR: i64 = 3_600_000_000_000;

fn output(columns: &[(&str, Type)]) -> Output {
    let column = |(name, ty): &(&str, Type)| Column { name: (*name).to_owned(), ty: ty.clone() };
    Output {
        name: Some("seen".to_owned()),
        schema: Schema { columns: columns.iter().map(column).collect() },
        keys: Vec::new(),
        capture: None,
        metrics: Vec::new(),
    }
}

fn timed() -> Output {
    output(&[("n", Type::Int), ("ts", Type::Time), ("ip", Type::Ip)])
}

/// Rows that count from a number on, at these times.
fn rows_at(output: &Output, from: i64, times: &[Option<i64>]) -> Rows {
    let mut rows = Rows::new(&output.schema);
    for (i, time) in times.iter().enumerate() {
        let ip = Value::ip([10, 0, 0, i as u8].into());
        let cells = [Value::Int(from + i as i64), time.map_or(Value::Absent, Value::Time), ip];
        for (column, value) in rows.columns.iter_mut().zip(&cells) {
            set_cell(column, i, value, &mut rows.arena);
        }
    }
    rows.len = times.len();
    rows
}

/// Stores batches of rows and finishes.
fn store(folder: &Path, batches: &[Rows]) {
    let mut store = Store::new(folder, StoreOptions::default());
    store.open(&[timed()]).expect("opens");
    for rows in batches {
        store.rows(0, rows).expect("takes rows");
        store.flush().expect("flushes");
    }
    store.finish().expect("finishes");
    assert_eq!(store.unwritten(), 0);
}

/// The files below a folder, by their paths there.
fn files(folder: &Path) -> Vec<PathBuf> {
    let (mut found, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(one) = folders.pop() {
        for entry in fs::read_dir(one).expect("a folder") {
            let path = entry.expect("an entry").path();
            match path.is_dir() {
                true => folders.push(path),
                false if path.ends_with(COLUMNS) => {}
                false => found.push(path),
            }
        }
    }
    found.sort();
    found
}

/// The numbers of the rows in a file.
fn numbers(file: &Path) -> Vec<i64> {
    let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(file).expect("opens"));
    let reader = reader.expect("a file of Parquet").build().expect("a reader");
    let batches = reader.map(|batch| batch.expect("a batch"));
    let of = |b: weir_arrow::arrow_array::RecordBatch| b["n"].as_primitive::<Int64Type>().clone();
    batches.map(of).flat_map(|n| n.values().to_vec()).collect()
}

/// The numbers below a folder by hour, with the names of files looked at.
fn stored(folder: &Path) -> BTreeMap<StoredHour, Vec<i64>> {
    let mut all = BTreeMap::<_, Vec<i64>>::new();
    for file in files(folder) {
        let part = |up: usize| {
            let part = file.ancestors().nth(up).and_then(|p| p.file_name());
            part.and_then(|name| name.to_str()).expect("a plain name")
        };
        let hour = StoredHour::parse(part(2), part(1)).expect("an hour");
        let name = FileName::parse(part(0)).expect("the name of a file");
        assert!(name.first <= name.last);
        if let StoredHour::Of(_) = hour {
            assert_eq!((StoredHour::of(name.first), StoredHour::of(name.last)), (hour, hour));
        }
        all.entry(hour).or_default().extend(numbers(&file));
    }
    all.values_mut().for_each(|numbers| numbers.sort_unstable());
    all
}

#[test]
fn rows_are_stored_by_hour_whatever_their_order() {
    let folder = tempfile::tempdir().expect("a folder");
    let times = [Some(5), Some(HOUR), None, Some(-1), Some(HOUR - 1), Some(i64::MAX)];
    let batches = [rows_at(&timed(), 0, &times), rows_at(&timed(), 10, &[Some(7), Some(HOUR)])];
    store(folder.path(), &batches);
    let hour = StoredHour::of;
    let want = [
        (StoredHour::Unknown, vec![2]),
        (hour(-1), vec![3]),
        (hour(0), vec![0, 4, 10]),
        (hour(HOUR), vec![1, 11]),
        (hour(i64::MAX), vec![5]),
    ];
    assert_eq!(stored(&folder.path().join("seen")), BTreeMap::from(want));
    assert_eq!(files(folder.path()).len(), 5);
}

#[test]
fn the_same_rows_are_stored_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let rows = [rows_at(&timed(), 0, &[Some(1), Some(2 * HOUR)])];
    store(folder.path(), &rows);
    let (before, names) = (stored(&folder.path().join("seen")), files(folder.path()));
    store(folder.path(), &rows);
    assert_eq!(files(folder.path()), names);
    store(folder.path(), &[rows_at(&timed(), 5, &[Some(1)])]);
    assert_eq!(files(folder.path()).len(), names.len() + 1);
    let mut after = stored(&folder.path().join("seen"));
    after.get_mut(&StoredHour::of(1)).expect("it is there").retain(|&n| n != 5);
    assert_eq!(after, before);
}

/// Rows that only look alike are others.
#[test]
fn equal_rows_of_other_times_and_runs_are_all_stored() {
    let untimed = rows_at(&timed(), 0, &[None, None]);
    let same = rows_at(&timed(), 0, &[Some(1)]);
    for (rows, is_live, of_two_runs) in
        [(&untimed, false, 4), (&untimed, true, 4), (&same, true, 4), (&same, false, 2)]
    {
        let folder = tempfile::tempdir().expect("a folder");
        for _ in 0..2 {
            let options = StoreOptions { is_live, ..StoreOptions::default() };
            let mut store = Store::new(folder.path(), options).bounded(Duration::MAX, 0);
            store.open(&[timed()]).expect("opens");
            for _ in 0..2 {
                store.rows(0, rows).expect("takes rows");
            }
            store.finish().expect("finishes");
        }
        assert_eq!(files(folder.path()).len(), of_two_runs, "live: {is_live}");
    }
}

#[test]
fn equal_rows_of_two_captures_are_all_stored() {
    let folder = tempfile::tempdir().expect("a folder");
    for (captures, files_then) in [(1, 1), (2, 2), (1, 2)] {
        let options = StoreOptions { captures, ..StoreOptions::default() };
        let mut store = Store::new(folder.path(), options);
        store.open(&[timed()]).expect("opens");
        store.rows(0, &rows_at(&timed(), 0, &[Some(1)])).expect("takes rows");
        store.finish().expect("finishes");
        assert_eq!(files(folder.path()).len(), files_then, "{captures}");
    }
}

/// No run leaves a file that is cut; a disk may.
#[test]
fn a_file_that_is_no_parquet_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    store(folder.path(), &[rows_at(&timed(), 0, &[Some(1)])]);
    let file = folder.path().join("seen").join(COLUMNS);
    File::options().write(true).open(&file).and_then(|f| f.set_len(9)).expect("cut");
    let mut store = Store::new(folder.path(), StoreOptions::default());
    let e = store.open(&[timed()]).expect_err("it can't be read").to_string();
    assert!(e.starts_with(&file.display().to_string()), "{e}");
}

/// Readers take the folders for columns of these names.
#[test]
fn columns_that_the_folders_hide_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["date", "Hour"] {
        let mut store = Store::new(folder.path(), StoreOptions::default());
        let e = store.open(&[output(&[(name, Type::Int)])]).expect_err("refused").to_string();
        assert!(e.contains(&format!("give `{name}` another name")), "{e}");
    }
}

#[test]
fn rows_of_more_hours_than_may_wait_are_on_disk_before_the_end() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut store = Store::new(folder.path(), StoreOptions::default());
    store.open(&[timed()]).expect("opens");
    let hours = HOURS_MAX as i64 + 3;
    for n in 0..hours {
        store.rows(0, &rows_at(&timed(), n, &[Some(n * HOUR)])).expect("takes rows");
        // The first hour gets rows all the time.
        store.rows(0, &rows_at(&timed(), 1000 + n, &[Some(0)])).expect("takes rows");
    }
    let early: Vec<_> = stored(folder.path().join("seen").as_path()).into_keys().collect();
    assert_eq!(early, [1, 2, 3].map(StoredHour::Of));
    store.finish().expect("finishes");
    let all = stored(&folder.path().join("seen"));
    assert_eq!(all.values().map(Vec::len).sum::<usize>(), 2 * hours as usize);
}

#[test]
fn rows_of_a_live_run_are_on_disk_soon() {
    let folder = tempfile::tempdir().expect("a folder");
    let (soon, late) = (Duration::ZERO, Duration::MAX);
    for (is_live, age, files_then) in [(false, soon, 0), (true, late, 0), (true, soon, 1)] {
        let options = StoreOptions { is_live, ..StoreOptions::default() };
        let mut store = Store::new(folder.path(), options).bounded(age, usize::MAX);
        store.open(&[timed()]).expect("opens");
        store.rows(0, &rows_at(&timed(), 0, &[Some(3)])).expect("takes rows");
        store.flush().expect("flushes");
        assert_eq!(files(folder.path()).len(), files_then, "{is_live}");
    }
}

/// The largest go to disk first, and no more than must.
#[test]
fn rows_wait_in_bounded_memory() {
    let folder = tempfile::tempdir().expect("a folder");
    let of_hour = |n: i64, rows: usize| rows_at(&timed(), n, &vec![Some(n * HOUR); rows]);
    let mut store = Store::new(folder.path(), StoreOptions::default());
    store.open(&[timed()]).expect("opens");
    store.rows(0, &of_hour(1, 1)).expect("takes rows");
    for _ in 0..40 {
        store.rows(0, &of_hour(2, 250)).expect("takes rows");
    }
    assert_eq!(files(folder.path()), Vec::<PathBuf>::new());
    let all = store.waiting();
    let mut store = store.bounded(Duration::MAX, all - 1);
    store.rows(0, &of_hour(1, 1)).expect("takes rows");
    let seen = folder.path().join("seen");
    assert_eq!(stored(&seen).into_keys().collect::<Vec<_>>(), [StoredHour::Of(2)]);
    let mut store = store.bounded(Duration::MAX, 0);
    store.rows(0, &rows_at(&timed(), 0, &[Some(3 * HOUR), None])).expect("takes rows");
    assert_eq!((stored(&seen).len(), store.waiting()), (4, 0));
}

#[test]
fn other_columns_are_refused_by_name() {
    let folder = tempfile::tempdir().expect("a folder");
    store(folder.path(), &[rows_at(&timed(), 0, &[Some(1)])]);
    let opens = |output: Output, options: StoreOptions| {
        Store::new(folder.path(), options).open(&[output]).map_err(|e| e.to_string())
    };
    assert_eq!(opens(timed(), StoreOptions::default()), Ok(()));
    let e = opens(output(&[("m", Type::Int)]), StoreOptions::default()).expect_err("refused");
    assert!(e.contains("seen has rows with other columns (n Int64, ts Timestamp"), "{e}");
    assert!(e.contains("than these (m Int64)"), "{e}");
    let text = StoreOptions { addresses: AddressForm::Text, ..StoreOptions::default() };
    assert!(opens(timed(), text).expect_err("refused").contains("ip Utf8"));
    // Columns are kept from the start, though there may be no rows yet.
    let fresh = tempfile::tempdir().expect("a folder");
    let mut first = Store::new(fresh.path(), StoreOptions::default());
    first.open(&[timed()]).expect("opens");
    let mut second = Store::new(fresh.path(), StoreOptions::default());
    second.open(&[output(&[("m", Type::Int)])]).expect_err("refused");
    // Another output has a folder of its own.
    let other = Output { name: None, ..output(&[("m", Type::Int)]) };
    assert_eq!(opens(other, StoreOptions::default()), Ok(()));
}

/// Nothing of a file that can't be put there stays, and its rows are counted.
#[test]
fn rows_that_are_not_on_disk_are_counted() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut store = Store::new(folder.path(), StoreOptions::default());
    store.open(&[timed()]).expect("opens");
    let hour = folder.path().join("seen").join(StoredHour::of(HOUR).folder());
    fs::create_dir_all(hour.parent().expect("that of the day")).expect("a folder");
    fs::write(&hour, "in the way").expect("a file");
    let times = [Some(1), Some(2), Some(HOUR), Some(2 * HOUR)];
    store.rows(0, &rows_at(&timed(), 0, &times)).expect("takes rows");
    let e = store.finish().expect_err("something is in the way").to_string();
    assert!(e.contains("hour=01"), "{e}");
    assert_eq!(store.unwritten(), 1);
    assert_eq!(files(folder.path()).len(), 3, "those of the hours before and after, too");
}

#[test]
fn an_inventory_lists_what_is_stored_and_nothing_else() {
    let folder = tempfile::tempdir().expect("a folder");
    let wrong = Inventory::read(folder.path()).expect_err("it is empty");
    assert!(wrong.to_string().contains("no archive"), "{wrong}");
    let times = [Some(-HOUR), Some(5), Some(HOUR - 1), Some(HOUR), None];
    store(folder.path(), &[rows_at(&timed(), 0, &times)]);
    let hour = folder.path().join("seen/date=1970-01-01/hour=00");
    fs::write(hour.join("mine.parquet"), "mine").expect("written");
    fs::write(hour.join("0-1-2.parquet.3.part"), "half").expect("written");
    fs::create_dir(folder.path().join("seen/date=1970-01-01/hour=24")).expect("made");
    fs::create_dir(folder.path().join("unlike")).expect("made");

    let stored = Inventory::read(folder.path()).expect("it is read");
    let hours: Vec<StoredHour> = stored.files.iter().map(|file| file.hour).collect();
    // Rows without a time were stored today, which is the latest.
    let all = [StoredHour::Of(-1), StoredHour::Of(0), StoredHour::Of(1), StoredHour::Unknown];
    assert_eq!(hours, all);
    assert_eq!(stored.files[1].output, "seen");
    assert_eq!((stored.files[1].name.first, stored.files[1].name.last), (5, HOUR - 1));
    let rows = stored.files.iter().map(|file| file.rows().expect("it is whole"));
    assert_eq!(rows.collect::<Vec<_>>(), [1, 2, 1, 1]);
    let checked = stored.files.iter().map(|file| file.check().expect("it is right"));
    assert_eq!(checked.sum::<u64>(), 5);
    assert_eq!(stored.parts.len(), 1);
    let others = [hour.join("mine.parquet"), folder.path().join("seen/date=1970-01-01/hour=24")];
    assert_eq!(stored.others, others);
}

#[test]
fn a_check_finds_files_that_are_wrong() {
    let folder = tempfile::tempdir().expect("a folder");
    let many: Vec<Option<i64>> = (0..200).map(Some).collect();
    store(folder.path(), &[rows_at(&timed(), 0, &many)]);
    let file = || Inventory::read(folder.path()).expect("it is read").files.remove(0);
    let (path, whole) = (file().path, fs::read(file().path).expect("it is read"));
    assert_eq!(file().check().expect("it is right"), 200);
    for cut in [0, 1, whole.len() / 2, whole.len() - 1] {
        fs::write(&path, &whole[..cut]).expect("written");
        file().check().expect_err("it is cut");
    }
    // Times that the name does not say, an hour that the folder is not of, columns of others.
    fs::write(&path, &whole).expect("written");
    let short = FileName { last: 150, ..file().name }.to_string();
    fs::rename(&path, path.with_file_name(&short)).expect("renamed");
    assert!(file().check().expect_err("it is wrong").to_string().contains("a time"));
    let later = folder.path().join("seen/date=1970-01-01/hour=01");
    fs::create_dir(&later).expect("made");
    let name = path.file_name().expect("it has one");
    fs::rename(path.with_file_name(&short), later.join(name)).expect("renamed");
    assert!(file().check().expect_err("it is wrong").to_string().contains("its folder"));
    let none = folder.path().join("seen").join(COLUMNS);
    fs::copy(later.join(name), &none).expect("copied");
    fs::write(later.join(name), fs::read(&none).expect("read")).expect("written");
    let columns = output(&[("other", Type::Int)]);
    let mut other = Store::new(folder.path(), StoreOptions::default());
    fs::remove_file(&none).expect("removed");
    other.open(&[columns]).expect("opens");
    assert!(file().check().expect_err("it is wrong").to_string().contains("its columns"));
}

#[test]
fn the_oldest_files_expire() {
    let folder = tempfile::tempdir().expect("a folder");
    let times = [Some(0), Some(HOUR), Some(25 * HOUR), None];
    store(folder.path(), &[rows_at(&timed(), 0, &times)]);
    let stored = Inventory::read(folder.path()).expect("it is read");
    let sizes: Vec<u64> = stored.files.iter().map(|file| file.bytes).collect();
    let all: u64 = sizes.iter().sum();
    let count = |before, bytes| stored.expired(Expiry { before, bytes }).len();
    assert_eq!(count(None, None), 0);
    assert_eq!([0, 1, HOUR, HOUR + 1, 25 * HOUR].map(|t| count(Some(t), None)), [0, 1, 1, 2, 2]);
    assert_eq!(count(Some(25 * HOUR + 1), None), 3);
    assert_eq!(count(Some(i64::MAX), None), 4);
    for (bytes, n) in [(all, 0), (all - 1, 1), (all - sizes[0], 1), (sizes[3], 3), (0, 4)] {
        assert_eq!(count(None, Some(bytes)), n, "{bytes}");
    }
    assert_eq!(count(Some(HOUR + 1), Some(all - 1)), 2);

    for file in stored.expired(Expiry { before: Some(HOUR + 1), bytes: None }) {
        file.remove().expect("it goes");
        file.remove().expect("it is gone");
    }
    assert!(!folder.path().join("seen/date=1970-01-01").exists());
    assert_eq!(files(folder.path()).len(), 2);
    // The next row that is stored makes its folders again.
    store(folder.path(), &[rows_at(&timed(), 0, &[Some(0)])]);
    assert_eq!(files(folder.path()).len(), 3);
}
