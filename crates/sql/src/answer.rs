//! Record batches as rows, so that they are written as all rows are.

use crate::functions::texts_of;
use crate::options::SqlError;
use datafusion::arrow::array::{Array as _, ArrayRef, AsArray as _, RecordBatch, StringArray};
use datafusion::arrow::compute::{CastOptions, cast_with_options};
use datafusion::arrow::datatypes::{
    DataType, DurationNanosecondType, Float64Type, Int64Type, Schema as ArrowSchema, TimeUnit,
    TimestampNanosecondType,
};
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::error::Result;
use std::io;
use std::sync::Arc;
use weir_base::harmless::escaped;
use weir_engine::rows::{Output, Rows, Sink, set_cell};
use weir_packet::limits::BATCH;
use weir_plan::{Column, Schema, Type, Value};

/// The rows of one statement.
pub(crate) struct Answer {
    types: Vec<Type>,
    /// Whether a terminal shows them: texts of files may hold what moves its cursor.
    is_shown: bool,
    rows: Rows,
    /// Whether they are plans, which are shown a line a row.
    is_plan: bool,
}

/// The columns that DataFusion explains a plan by: its kind, and its lines as one text.
const PLAN: [&str; 2] = ["plan_type", "plan"];

impl Answer {
    /// The rows of record batches of this schema, and the output that they are.
    pub(crate) fn new(schema: &ArrowSchema, is_shown: bool) -> (Answer, Output) {
        let is_plan = schema.fields().iter().map(|field| field.name()).eq(PLAN);
        let schema = match is_plan {
            true => &schema.project(&[1]).expect("it has two columns"),
            false => schema,
        };
        let types: Vec<Type> = schema.fields().iter().map(|f| type_of(f.data_type())).collect();
        let columns = schema.fields().iter().zip(&types);
        let columns = columns.map(|(field, ty)| Column {
            name: if is_shown { escaped(field.name(), false) } else { field.name().clone() },
            ty: ty.clone(),
        });
        let columns = columns.collect();
        let schema = Schema { columns };
        let rows = Rows::new(&schema);
        let output =
            Output { name: None, schema, keys: Vec::new(), capture: None, metrics: Vec::new() };
        (Answer { types, is_shown, rows, is_plan }, output)
    }

    /// The columns of a record batch, each of one of the types that rows have.
    fn columns(&self, batch: &RecordBatch) -> Result<Vec<ArrayRef>> {
        if self.is_plan {
            let texts = batch.column(1).as_string::<i32>().iter().flatten();
            let lines: StringArray = texts.flat_map(str::lines).map(Some).collect();
            return Ok(vec![Arc::new(lines)]);
        }
        let columns = self.types.iter().zip(batch.columns());
        columns.map(|(ty, column)| plain(column, ty)).collect()
    }

    /// Hands a record batch on, as rows of the first output.
    pub(crate) fn write(
        &mut self,
        batch: &RecordBatch,
        sink: &mut dyn Sink,
    ) -> Result<(), SqlError> {
        let columns = self.columns(batch).map_err(|e| SqlError::Statement(e.to_string()))?;
        let rows = columns.first().map_or(0, |column| column.len());
        self.hand_on(&columns, rows, sink).map_err(SqlError::Rows)
    }

    fn hand_on(
        &mut self,
        columns: &[ArrayRef],
        rows: usize,
        sink: &mut dyn Sink,
    ) -> io::Result<()> {
        for from in (0..rows).step_by(BATCH) {
            self.rows.clear();
            self.rows.len = BATCH.min(rows - from);
            for ((to, column), ty) in self.rows.columns.iter_mut().zip(columns).zip(&self.types) {
                for i in 0..self.rows.len {
                    let value = match value(column, from + i, ty) {
                        Value::Str(text) if self.is_shown => {
                            Value::Str(escaped(&text, false).into())
                        }
                        value => value,
                    };
                    set_cell(to, i, &value, &mut self.rows.arena);
                }
            }
            sink.rows(0, &self.rows)?;
        }
        Ok(())
    }
}

/// The type that a column has as rows. A type that Weir lacks is shown as text.
fn type_of(ty: &DataType) -> Type {
    match ty {
        DataType::Boolean => Type::Bool,
        ty if ty.is_integer() => Type::Int,
        ty if ty.is_floating() => Type::Float,
        DataType::Timestamp(..) => Type::Time,
        DataType::Duration(_) => Type::Duration,
        // Functions keep no name of a type, and nothing else has so many bytes here.
        DataType::FixedSizeBinary(16) => Type::Ip,
        DataType::FixedSizeBinary(6) => Type::Mac,
        ty if ty.is_binary() => Type::Bytes,
        DataType::FixedSizeBinary(_) => Type::Bytes,
        _ => Type::Str,
    }
}

/// A column in the one type of Arrow by which its cells are read.
fn plain(column: &ArrayRef, ty: &Type) -> Result<ArrayRef> {
    let to = match ty {
        Type::Bool => DataType::Boolean,
        Type::Int => DataType::Int64,
        Type::Float => DataType::Float64,
        Type::Time => DataType::Timestamp(TimeUnit::Nanosecond, None),
        Type::Duration => DataType::Duration(TimeUnit::Nanosecond),
        Type::Bytes => DataType::Binary,
        Type::Str if !column.data_type().is_string() => return texts(column),
        Type::Str => return texts_of(column),
        _ => return Ok(column.clone()),
    };
    // A number that does not fit is an error, and no null.
    let options = CastOptions { safe: false, ..CastOptions::default() };
    Ok(cast_with_options(column, &to, &options)?)
}

/// Cells of lists, decimals, dates and so on, as text.
fn texts(column: &ArrayRef) -> Result<ArrayRef> {
    let options = FormatOptions::default();
    let cells = ArrayFormatter::try_new(column, &options)?;
    let text = |i: usize| match column.is_null(i) {
        true => Ok(None),
        false => cells.value(i).try_to_string().map(Some),
    };
    let texts: std::result::Result<StringArray, _> = (0..column.len()).map(text).collect();
    Ok(Arc::new(texts?))
}

fn value(column: &ArrayRef, i: usize, ty: &Type) -> Value {
    if column.is_null(i) {
        return Value::Absent;
    }
    match ty {
        Type::Bool => Value::Bool(column.as_boolean().value(i)),
        Type::Int => Value::Int(column.as_primitive::<Int64Type>().value(i)),
        Type::Float => Value::Float(column.as_primitive::<Float64Type>().value(i)),
        Type::Time => Value::Time(column.as_primitive::<TimestampNanosecondType>().value(i)),
        Type::Duration => Value::Duration(column.as_primitive::<DurationNanosecondType>().value(i)),
        Type::Bytes => Value::Bytes(column.as_binary::<i32>().value(i).into()),
        Type::Ip | Type::Mac => {
            let bytes = column.as_fixed_size_binary().value(i);
            let number = bytes.iter().fold(0, |n: u128, b| n << 8 | u128::from(*b));
            if *ty == Type::Ip { Value::Ip(number) } else { Value::Mac(number as u64) }
        }
        _ => Value::Str(column.as_string::<i32>().value(i).into()),
    }
}
