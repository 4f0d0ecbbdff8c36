//! Rows as records: a JSON object each, as [JSON lines](crate::json) have it, and as its key an
//! object of the columns by which its output groups. So rows of one group come in order wherever
//! records of equal keys do.

use crate::json::{Shape, pipelines};
use crate::options::TimeFormat;
use std::io;
use weir_engine::rows::{Output, Rows};
use weir_plan::Schema;

/// Rows as records.
#[derive(Default, Debug)]
pub struct KeyedRows {
    time: TimeFormat,
    outputs: Vec<KeyedShape>,
    key: Vec<u8>,
    value: Vec<u8>,
}

/// The form of the records of one output.
#[derive(Debug)]
struct KeyedShape {
    value: Shape,
    /// The shape of keys, and the columns that they consist of; `None` without any.
    key: Option<(Shape, Vec<usize>)>,
}

impl KeyedRows {
    /// The rows of these outputs.
    pub fn new(outputs: &[Output], time: TimeFormat) -> KeyedRows {
        let shape = |(output, pipeline): (&Output, Option<String>)| {
            let columns = output.keys.iter().map(|&c| output.schema.columns[c].clone());
            let schema = Schema { columns: columns.collect() };
            let of_key = Output { schema, keys: Vec::new(), ..output.clone() };
            let key = || (Shape::new(&of_key, pipeline.as_deref()), output.keys.clone());
            KeyedShape {
                value: Shape::new(output, pipeline.as_deref()),
                key: (!output.keys.is_empty()).then(key),
            }
        };
        let outputs = outputs.iter().zip(pipelines(outputs)).map(shape).collect();
        KeyedRows { time, outputs, ..KeyedRows::default() }
    }

    /// Gives each row of an output: its key, if the output has one, and its value.
    ///
    /// # Errors
    /// Those of `give`.
    pub fn each(
        &mut self,
        output: usize,
        rows: &Rows,
        mut give: impl FnMut(Option<&[u8]>, &[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        let KeyedShape { value, key } = &self.outputs[output];
        for i in 0..rows.len {
            self.value.clear();
            value.row(&mut self.value, rows, i, self.time);
            // A record needs no end of line.
            self.value.pop();
            self.key.clear();
            if let Some((shape, columns)) = key {
                let columns = columns.iter().map(|&c| &rows.columns[c]);
                shape.cells(&mut self.key, columns, rows, i, self.time);
            }
            give(key.is_some().then_some(&self.key), &self.value)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{output, rows};
    use weir_plan::{Type, Value};

    fn records(outputs: &[Output], of: usize, cells: &[Vec<Value>]) -> Vec<String> {
        let (mut keyed, mut all) = (KeyedRows::new(outputs, TimeFormat::EpochNs), Vec::new());
        let batch = rows(&outputs[of], cells);
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("JSON is UTF-8");
        let give = |key: Option<&[u8]>, value: &[u8]| {
            all.push(format!("{} {}", key.map_or("-".to_owned(), text), text(value)));
            Ok(())
        };
        keyed.each(of, &batch, give).expect("memory takes it");
        all
    }

    #[test]
    fn keys_are_what_an_output_groups_by() {
        let mut one = output(None, &[("ts", Type::Time), ("a", Type::Str), ("n", Type::Int)]);
        one.keys = vec![1];
        let cells = [
            vec![Value::Time(5), Value::Str("x\"".into()), Value::Int(1)],
            vec![Value::Time(5), Value::Absent, Value::Int(2)],
        ];
        assert_eq!(
            records(&[one.clone()], 0, &cells),
            [r#"{"a":"x\""} {"ts":5,"a":"x\"","n":1}"#, r#"{"a":null} {"ts":5,"a":null,"n":2}"#]
        );
        let two = output(Some("b"), &[("n", Type::Int)]);
        let both = [one, two];
        assert_eq!(
            records(&both, 0, &cells[1..]),
            [r#"{"_pipeline":"1","a":null} {"_pipeline":"1","ts":5,"a":null,"n":2}"#]
        );
        assert_eq!(records(&both, 1, &[vec![Value::Int(7)]]), [r#"- {"_pipeline":"b","n":7}"#]);
    }
}
