//! The cells of one column, batch of rows by batch of rows.

use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, DurationNanosecondArray, FixedSizeBinaryArray,
    Float64Array, Int64Array, StringArray, TimestampNanosecondArray,
};
use arrow_buffer::{BooleanBufferBuilder, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use std::io::Write as _;
use std::sync::Arc;
use weir_base::address::AddressForm;
use weir_engine::rows::Arena;
use weir_packet::bits::Bits;
use weir_packet::column::Column;
use weir_packet::limits::BATCH;
use weir_plan::{Type, Value};

/// The cells of a column that are gathered. A cell that is null holds zero, or no bytes.
#[derive(Debug)]
pub(crate) struct Cells {
    values: Values,
    present: BooleanBufferBuilder,
}

#[derive(Debug)]
enum Values {
    Truth(BooleanBufferBuilder),
    /// Words, and their type.
    Words(Vec<u64>, Word),
    /// The bytes of addresses, and how many one has.
    Bytes(Vec<u8>, usize),
    /// Texts one after the other, where each begins and the last ends, and their type.
    Texts(Vec<u8>, Vec<i32>, ByteCell),
}

/// The type of a cell of one word.
#[derive(Clone, Copy, Debug)]
enum Word {
    Int,
    Float,
    Time,
    Duration,
}

/// The type of a cell of bytes or text.
#[derive(Clone, Copy, Debug)]
enum ByteCell {
    Bytes,
    Text,
    Ip,
    Mac,
}

impl Cells {
    /// No cells of this type yet.
    pub(crate) fn new(ty: &Type, addresses: AddressForm) -> Cells {
        let word = |word| Values::Words(Vec::new(), word);
        let texts = |text| Values::Texts(Vec::new(), vec![0], text);
        let values = match ty {
            Type::Bool => Values::Truth(BooleanBufferBuilder::new(0)),
            Type::Int => word(Word::Int),
            Type::Float => word(Word::Float),
            Type::Time => word(Word::Time),
            Type::Duration => word(Word::Duration),
            Type::Str => texts(ByteCell::Text),
            Type::Bytes => texts(ByteCell::Bytes),
            Type::Ip if addresses == AddressForm::Text => texts(ByteCell::Ip),
            Type::Mac if addresses == AddressForm::Text => texts(ByteCell::Mac),
            Type::Ip => Values::Bytes(Vec::new(), 16),
            Type::Mac => Values::Bytes(Vec::new(), 6),
            Type::Net | Type::Tuple(_) => unreachable!("no column has the type {ty}"),
        };
        Cells { values, present: BooleanBufferBuilder::new(0) }
    }

    /// Appends the first `n` cells of a column.
    pub(crate) fn append(&mut self, column: &Column, n: usize, arena: &Arena) {
        let present = column.present.and(Bits::first(n));
        append_bits(&mut self.present, present, n);
        match &mut self.values {
            Values::Truth(truth) => append_bits(truth, column.truth.and(present), n),
            Values::Words(words, _) if present == Bits::first(n) => {
                words.extend_from_slice(&column.word()[..n]);
            }
            Values::Words(words, _) => {
                let or_zero = |i| if present.has(i) { column.word()[i] } else { 0 };
                words.extend((0..n).map(or_zero));
            }
            Values::Bytes(bytes, size) => {
                for i in 0..n {
                    let raw = if present.has(i) { column.raw(i) } else { 0 };
                    bytes.extend_from_slice(&raw.to_be_bytes()[size_of::<u128>() - *size..]);
                }
            }
            Values::Texts(bytes, ends, text) => {
                for i in 0..n {
                    if present.has(i) {
                        text.append(bytes, column.raw(i), arena);
                    }
                    ends.push(i32::try_from(bytes.len()).expect("batches end before that"));
                }
            }
        }
    }

    /// Bytes of memory that they take.
    pub(crate) fn memory(&self) -> usize {
        let values = match &self.values {
            Values::Truth(truth) => truth.capacity() / 8,
            Values::Words(words, _) => words.capacity() * size_of::<u64>(),
            Values::Bytes(bytes, _) => bytes.capacity(),
            Values::Texts(bytes, ends, _) => bytes.capacity() + ends.capacity() * size_of::<i32>(),
        };
        values + self.present.capacity() / 8
    }

    /// Bytes of texts so far.
    pub(crate) fn text_bytes(&self) -> usize {
        if let Values::Texts(bytes, ..) = &self.values { bytes.len() } else { 0 }
    }

    /// The cells as a column of Arrow; none are left.
    pub(crate) fn take(&mut self) -> ArrayRef {
        let nulls = Some(NullBuffer::new(self.present.finish())).filter(|n| n.null_count() > 0);
        match &mut self.values {
            Values::Truth(truth) => Arc::new(BooleanArray::new(truth.finish(), nulls)),
            Values::Words(words, word) => word.array(std::mem::take(words), nulls),
            Values::Bytes(bytes, size) => {
                let bytes = Buffer::from_vec(std::mem::take(bytes));
                Arc::new(FixedSizeBinaryArray::new(*size as i32, bytes, nulls))
            }
            Values::Texts(bytes, ends, text) => {
                let bytes = Buffer::from_vec(std::mem::take(bytes));
                let ends = OffsetBuffer::new(std::mem::replace(ends, vec![0]).into());
                match text {
                    ByteCell::Bytes => Arc::new(BinaryArray::new(ends, bytes, nulls)),
                    _ => Arc::new(StringArray::new(ends, bytes, nulls)),
                }
            }
        }
    }
}

impl Word {
    fn array(self, words: Vec<u64>, nulls: Option<NullBuffer>) -> ArrayRef {
        let len = words.len();
        let words = Buffer::from_vec(words);
        let ints = |words| ScalarBuffer::<i64>::new(words, 0, len);
        match self {
            Word::Int => Arc::new(Int64Array::new(ints(words), nulls)),
            Word::Float => {
                Arc::new(Float64Array::new(ScalarBuffer::<f64>::new(words, 0, len), nulls))
            }
            Word::Time => {
                let times = TimestampNanosecondArray::new(ints(words), nulls);
                Arc::new(times.with_timezone("UTC"))
            }
            Word::Duration => Arc::new(DurationNanosecondArray::new(ints(words), nulls)),
        }
    }
}

impl ByteCell {
    /// Appends a cell, given in the raw form of its column.
    fn append(self, to: &mut Vec<u8>, raw: u128, arena: &Arena) {
        match self {
            ByteCell::Bytes => to.extend_from_slice(arena.get(raw as u64)),
            // Arrow takes nothing else for a text.
            ByteCell::Text => {
                let text = String::from_utf8_lossy(arena.get(raw as u64));
                to.extend_from_slice(text.as_bytes());
            }
            ByteCell::Ip => write!(to, "{}", Value::to_ip(raw)).expect("memory takes it"),
            ByteCell::Mac => {
                let [_, _, a, b, c, d, e, f] = (raw as u64).to_be_bytes();
                write!(to, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x}")
                    .expect("memory takes it");
            }
        }
    }
}

/// Appends the first `n` of some bits.
fn append_bits(to: &mut BooleanBufferBuilder, bits: Bits, n: usize) {
    let mut bytes = [0; BATCH / 8];
    for (to, word) in bytes.chunks_exact_mut(8).zip(bits.0) {
        to.copy_from_slice(&word.to_le_bytes());
    }
    to.append_packed_range(0..n, &bytes);
}
