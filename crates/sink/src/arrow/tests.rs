use super::*;
use crate::arrow::{PARQUET, STREAM};
use crate::format::Format;
use crate::names::Names;
use crate::testing::{Full, every_type, output, rows};
use proptest::prelude::*;
use weir_arrow::arrow_array::cast::AsArray as _;
use weir_arrow::arrow_array::types::{
    DurationNanosecondType, Float64Type, Int64Type, TimestampNanosecondType,
};
use weir_arrow::arrow_array::{Array, RecordBatch};
use weir_arrow::arrow_ipc::reader::StreamReader;
use weir_arrow::arrow_schema::{DataType, TimeUnit};
use weir_arrow::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use weir_base::address::AddressForm;
use weir_plan::{Type, Value};

/// The bytes that a format writes of rows.
fn written(format: &Format, output: &Output, batches: &[Rows], options: RowOptions) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut sink = format.sink(&mut bytes, options, Names::Native);
    sink.open(std::slice::from_ref(output)).expect("opens");
    for batch in batches {
        sink.rows(0, batch).expect("writes");
        sink.flush().expect("flushes");
    }
    sink.finish().expect("finishes");
    assert_eq!(sink.unwritten(), 0);
    drop(sink);
    bytes
}

/// The record batches that a reader finds in them.
fn read(format: &Format, bytes: Vec<u8>) -> Vec<RecordBatch> {
    if format == &STREAM {
        let reader = StreamReader::try_new(&bytes[..], None).expect("a stream");
        return reader.map(|batch| batch.expect("a batch")).collect();
    }
    let reader = ParquetRecordBatchReaderBuilder::try_new(bytes::Bytes::from(bytes));
    let reader = reader.expect("a file").build().expect("a reader");
    reader.map(|batch| batch.expect("a batch")).collect()
}

/// A cell as the value that it was made of.
fn value(column: &dyn Array, i: usize, ty: &Type) -> Value {
    if column.is_null(i) {
        return Value::Absent;
    }
    let address = |width: usize| {
        let bytes = column.as_fixed_size_binary().value(i);
        assert_eq!(bytes.len(), width);
        bytes.iter().fold(0, |number: u128, &b| number << 8 | u128::from(b))
    };
    match ty {
        Type::Bool => Value::Bool(column.as_boolean().value(i)),
        Type::Int => Value::Int(column.as_primitive::<Int64Type>().value(i)),
        Type::Float => Value::Float(column.as_primitive::<Float64Type>().value(i)),
        Type::Str => Value::Str(column.as_string::<i32>().value(i).into()),
        Type::Bytes => Value::Bytes(column.as_binary::<i32>().value(i).into()),
        Type::Ip => Value::Ip(address(16)),
        Type::Mac => Value::Mac(address(6) as u64),
        Type::Time => Value::Time(column.as_primitive::<TimestampNanosecondType>().value(i)),
        Type::Duration => Value::Duration(column.as_primitive::<DurationNanosecondType>().value(i)),
        Type::Net | Type::Tuple(_) => unreachable!("no column has it"),
    }
}

/// The rows of record batches as values.
fn values(batches: &[RecordBatch], output: &Output) -> Vec<Vec<Value>> {
    let columns = &output.schema.columns;
    let row = |batch: &RecordBatch, i: usize| {
        let cells = batch.columns().iter().zip(columns);
        cells.map(|(cells, c)| value(cells, i, &c.ty)).collect()
    };
    let rows = batches.iter().flat_map(|b| (0..b.num_rows()).map(move |i| row(b, i)));
    rows.collect()
}

#[test]
fn every_type_comes_back() {
    let (output, batch) = every_type();
    let want: Vec<Vec<Value>> = (0..batch.len)
        .map(|i| {
            let columns = output.schema.columns.iter().enumerate();
            columns.map(|(c, column)| batch.value(i, c, &column.ty)).collect()
        })
        .collect();
    for format in [&STREAM, &PARQUET] {
        let bytes = written(format, &output, std::slice::from_ref(&batch), RowOptions::default());
        assert_eq!(values(&read(format, bytes), &output), want, "{format:?}");
    }
}

/// Databases order and show columns by these types.
#[test]
fn types_say_what_cells_are() {
    let (output, batch) = every_type();
    for format in [&STREAM, &PARQUET] {
        let types = |addresses| {
            let options = RowOptions { addresses, ..RowOptions::default() };
            let bytes = written(format, &output, std::slice::from_ref(&batch), options);
            let batches = read(format, bytes);
            let fields = batches[0].schema().fields().clone();
            fields.iter().map(|f| (f.name().clone(), f.as_ref().clone())).collect::<Vec<_>>()
        };
        let fields = types(AddressForm::Bytes);
        let of = |name: &str| &fields.iter().find(|(n, _)| n == name).expect("it is there").1;
        let utc = DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into()));
        assert_eq!(of("ts").data_type(), &utc);
        assert_eq!(of("took").data_type(), &DataType::Duration(TimeUnit::Nanosecond));
        assert_eq!(of("ip.src").extension_type_name(), Some(weir_arrow::IP_EXTENSION));
        assert_eq!(of("mac").extension_type_name(), Some(weir_arrow::MAC_EXTENSION));
        assert!(fields.iter().all(|(_, field)| field.is_nullable()));
        for (name, field) in types(AddressForm::Text) {
            let is_address = ["ip.src", "mac"].contains(&&*name);
            assert_eq!(field.extension_type_name(), None);
            assert!(!is_address || field.data_type() == &DataType::Utf8, "{name}");
        }
    }
}

#[test]
fn addresses_are_text_where_that_is_asked_for() {
    let (output, batch) = every_type();
    let options = RowOptions { addresses: AddressForm::Text, ..RowOptions::default() };
    for format in [&STREAM, &PARQUET] {
        let batches = read(format, written(format, &output, std::slice::from_ref(&batch), options));
        let cells = |name: &str| {
            let column = batches[0].column_by_name(name).expect("it is there");
            column.as_string::<i32>().iter().map(|c| c.map(str::to_owned)).collect::<Vec<_>>()
        };
        let text = |cells: [&str; 2]| [Some(cells[0].to_owned()), Some(cells[1].to_owned()), None];
        assert_eq!(cells("ip.src"), text(["10.0.0.1", "2001:db8::1"]));
        assert_eq!(cells("mac"), text(["02:00:5e:10:00:01", "00:00:00:00:00:00"]));
    }
}

/// An IPv6 address in the block of IPv4-mapped ones is another host.
#[test]
fn no_two_addresses_have_the_same_bytes() {
    let output = output(None, &[("ip", Type::Ip)]);
    let of = |bits: u128| Value::Ip(weir_base::address::number_of_v6(bits));
    let four = Value::ip([10, 0, 0, 1].into());
    let cells = [four, of(0xffff_0a00_0001), of(0), of(u128::MAX)].map(|ip| vec![ip]);
    let batch = rows(&output, &cells);
    let bytes = written(&STREAM, &output, &[batch], RowOptions::default());
    assert_eq!(values(&read(&STREAM, bytes), &output), cells);
}

/// Arrow takes no other bytes for a text.
#[test]
fn a_text_of_other_bytes_is_one_all_the_same() {
    let output = output(None, &[("s", Type::Str)]);
    let mut batch = rows(&output, &[vec![Value::Absent], vec![Value::Str("é".into())]]);
    let handle = batch.arena.put(b"a\xff\xfeb");
    batch.columns[0].set_raw(0, handle.into());
    let bytes = written(&PARQUET, &output, &[batch], RowOptions::default());
    let want = ["a\u{fffd}\u{fffd}b", "é"].map(|s| vec![Value::Str(s.into())]);
    assert_eq!(values(&read(&PARQUET, bytes), &output), want);
}

/// A stream that may pause is read up to there.
#[test]
fn a_live_stream_has_all_rows_that_were_flushed() {
    let output = output(None, &[("n", Type::Int)]);
    let mut bytes = Vec::new();
    let options = RowOptions { stream: true, ..RowOptions::default() };
    let mut sink = STREAM.sink(&mut bytes, options, Names::Native);
    sink.open(std::slice::from_ref(&output)).expect("opens");
    drop(sink);
    let reader = StreamReader::try_new(&bytes[..], None).expect("the schema is there");
    assert_eq!(reader.schema().field(0).name(), "n");
    let batch = rows(&output, &[vec![Value::Int(1)], vec![Value::Int(2)]]);
    for (stream, batches) in [(true, 3), (false, 1)] {
        let options = RowOptions { stream, ..RowOptions::default() };
        let bytes = written(&STREAM, &output, &vec![batch.clone(); 3], options);
        assert_eq!(read(&STREAM, bytes).len(), batches);
        let bytes = written(&PARQUET, &output, &vec![batch.clone(); 3], options);
        assert_eq!(read(&PARQUET, bytes).len(), 1, "one row group");
    }
}

#[test]
fn no_rows_are_a_table_all_the_same() {
    let (output, _) = every_type();
    for format in [&STREAM, &PARQUET] {
        let bytes = written(format, &output, &[], RowOptions::default());
        assert_eq!(values(&read(format, bytes), &output), Vec::<Vec<Value>>::new());
    }
}

/// Rows that a full disk does not take are counted: of a stream the batches that did not fit, of a
/// Parquet file all, since it has no end.
#[test]
fn rows_that_are_not_there_are_counted() {
    let output = output(None, &[("n", Type::Int)]);
    // Numbers that compress little.
    let number = |i: i64| vec![Value::Int(i.wrapping_mul(0x5851_f42d_4c95_7f2d))];
    let given: Vec<Rows> = (0..320)
        .map(|n| rows(&output, &(n * 256..n * 256 + 256).map(number).collect::<Vec<_>>()))
        .collect();
    for format in [&STREAM, &PARQUET] {
        let (mut kept, mut taken) = (Vec::new(), 0);
        let mut sink = format.sink(Room(&mut kept, 300_000), RowOptions::default(), Names::Native);
        sink.open(std::slice::from_ref(&output)).expect("there is room");
        let mut take = |batch: &Rows| {
            taken += batch.len;
            sink.rows(0, batch)
        };
        let result = given.iter().try_for_each(&mut take).and_then(|()| sink.finish());
        assert_eq!(result.expect_err("it is full").kind(), io::ErrorKind::StorageFull);
        let unwritten = sink.unwritten() as usize;
        drop(sink);
        let there = match format == &PARQUET {
            true => 0,
            false => {
                let whole = StreamReader::try_new(&kept[..], None).expect("a stream");
                whole.map_while(Result::ok).map(|batch| batch.num_rows()).sum()
            }
        };
        assert_eq!(there + unwritten, taken, "{format:?}");
        assert!(format == &PARQUET || there > 0);
    }
    let batch = &given[0];
    let mut sink = PARQUET.sink(Full, RowOptions::default(), Names::Native);
    sink.open(std::slice::from_ref(&output)).expect("it writes later");
    sink.rows(0, batch).expect("it writes later");
    assert_eq!(sink.finish().expect_err("it is full").kind(), io::ErrorKind::StorageFull);
    assert_eq!(sink.unwritten(), 256);
}

/// A disk with so much room.
struct Room<'a>(&'a mut Vec<u8>, usize);

impl Write for Room<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = self.1 - self.0.len();
        if room == 0 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let taken = bytes.len().min(room);
        self.0.extend_from_slice(&bytes[..taken]);
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

const TYPES: [Type; 9] = [
    Type::Bool,
    Type::Int,
    Type::Float,
    Type::Str,
    Type::Bytes,
    Type::Ip,
    Type::Mac,
    Type::Time,
    Type::Duration,
];

/// Any word, and the edges often.
fn word() -> impl Strategy<Value = u64> {
    let edges = [0, 1, u64::MAX - 1, u64::MAX, i64::MAX as u64, i64::MIN as u64];
    prop_oneof![any::<u64>(), proptest::sample::select(edges.to_vec())]
}

fn cell(ty: Type) -> BoxedStrategy<Value> {
    let value = match ty {
        Type::Bool => any::<bool>().prop_map(Value::Bool).boxed(),
        Type::Int => word().prop_map(|w| Value::Int(w as i64)).boxed(),
        // No comparison finds a value that is no number equal to itself.
        Type::Float => (any::<f64>().prop_filter("a number", |f| !f.is_nan()))
            .prop_map(|f| Value::Float(f + 0.0))
            .boxed(),
        Type::Str => any::<String>().prop_map(|s| Value::Str(s.into())).boxed(),
        Type::Bytes => proptest::collection::vec(any::<u8>(), 0..40)
            .prop_map(|b| Value::Bytes(b.into()))
            .boxed(),
        Type::Ip => (word(), word())
            .prop_map(|(a, b)| Value::Ip(u128::from(a) << 64 | u128::from(b)))
            .boxed(),
        Type::Mac => word().prop_map(|w| Value::Mac(w & 0xffff_ffff_ffff)).boxed(),
        Type::Time => word().prop_map(|w| Value::Time(w as i64)).boxed(),
        Type::Duration => word().prop_map(|w| Value::Duration(w as i64)).boxed(),
        Type::Net | Type::Tuple(_) => unreachable!("no column has it"),
    };
    prop_oneof![1 => Just(Value::Absent), 4 => value].boxed()
}

/// Some columns, and batches of their rows.
fn table() -> impl Strategy<Value = (Vec<Type>, Vec<Vec<Vec<Value>>>)> {
    let types = proptest::collection::vec(proptest::sample::select(&TYPES[..]), 1..6);
    types.prop_flat_map(|types| {
        let row: Vec<_> = types.iter().cloned().map(cell).collect();
        let batch = proptest::collection::vec(row, 0..20);
        (Just(types), proptest::collection::vec(batch, 0..4))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn tables_come_back_unchanged((types, batches) in table(), stream in any::<bool>()) {
        let names: Vec<_> = (0..types.len()).map(|i| format!("c{i}")).collect();
        let columns: Vec<_> = names.iter().map(|n| &n[..]).zip(types).collect();
        let output = output(None, &columns);
        let given: Vec<_> = batches.iter().map(|batch| rows(&output, batch)).collect();
        let options = RowOptions { stream, ..RowOptions::default() };
        for format in [&STREAM, &PARQUET] {
            let read = read(format, written(format, &output, &given, options));
            prop_assert_eq!(values(&read, &output), batches.concat());
        }
    }
}

/// Several record batches and row groups, each cell at its place.
#[test]
fn long_tables_come_back_unchanged() {
    let output = output(None, &[("n", Type::Int), ("s", Type::Str), ("odd", Type::Bool)]);
    let row = |n: i64| match n % 5 {
        0 => vec![Value::Absent; 3],
        _ => vec![Value::Int(n), Value::Str(format!("row {n}").into()), Value::Bool(n % 2 == 1)],
    };
    let all: Vec<Vec<Value>> = (0..150_000).map(row).collect();
    let given: Vec<_> = all.chunks(250).map(|rows_of| rows(&output, rows_of)).collect();
    for format in [&STREAM, &PARQUET] {
        let read = read(format, written(format, &output, &given, RowOptions::default()));
        assert!(read.len() > 2, "{} batches", read.len());
        assert!(values(&read, &output) == all, "{format:?}");
    }
}
