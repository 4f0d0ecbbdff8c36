//! The formats that rows can be written in. Each is a file of this crate, which describes itself by
//! a [`Format`], and one line of [`FORMATS`]; values of `-o`, help, messages, endings of files and
//! the check of the reference are made from them.

use crate::format::Format;
use crate::{alerts, arrow, csv, eve, influx, ipfix, json, markdown, table, tsv};

/// Every format, in the order in which people are told of them.
pub static FORMATS: &[&Format] = &[
    &table::FORMAT,
    &json::FORMAT,
    &csv::FORMAT,
    &tsv::FORMAT,
    &markdown::FORMAT,
    &alerts::FORMAT,
    &eve::FORMAT,
    &ipfix::FORMAT,
    &influx::FORMAT,
    &arrow::STREAM,
    &arrow::PARQUET,
];

impl Format {
    /// The format of this name.
    pub fn by_name(name: &str) -> Option<&'static Format> {
        FORMATS.iter().find(|format| format.name == name).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::Holds;
    use crate::names::Names;
    use crate::options::RowOptions;
    use crate::testing::{every_type, output, rows};
    use std::collections::BTreeSet;
    use weir_engine::rows::{Output, Rows};
    use weir_plan::{Type, Value};

    /// The text that is written of rows, of which so many have no place in the format.
    fn written(format: &Format, outputs: &[Output], batches: &[(usize, Rows)]) -> String {
        let is_all_absent =
            |batch: &Rows, i: usize| batch.columns.iter().all(|c| !c.present.has(i));
        let absent = batches
            .iter()
            .map(|(_, batch)| (0..batch.len).filter(|i| is_all_absent(batch, *i)).count() as u64);
        // A point of InfluxDB has a value.
        let left_out = if format == &influx::FORMAT { absent.sum() } else { 0 };
        let mut text = Vec::new();
        let mut sink = format.sink(&mut text, RowOptions::default(), Names::Native);
        sink.open(outputs).expect("opens");
        for (n, batch) in batches {
            sink.rows(*n, batch).expect("writes");
        }
        sink.finish().expect("finishes");
        assert_eq!(sink.unwritten(), left_out);
        drop(sink);
        String::from_utf8(text).expect("text")
    }

    #[test]
    fn each_format_is_found_by_its_name_and_has_an_ending_of_its_own() {
        let endings: BTreeSet<_> = FORMATS.iter().map(|format| format.ending).collect();
        assert_eq!(endings.len(), FORMATS.len());
        for format in FORMATS {
            assert_eq!(Format::by_name(format.name), Some(*format));
            assert!(!format.about.ends_with('.') && !format.title.is_empty());
        }
        assert_eq!(Format::by_name("xml"), None);
    }

    /// A format's description of itself is true.
    #[test]
    fn a_format_holds_as_many_outputs_as_it_says() {
        let outputs = ["one", "two"].map(|name| output(Some(name), &[("n", Type::Int)]));
        for format in FORMATS {
            let mut sink = format.sink(Vec::new(), RowOptions::default(), Names::Native);
            let opened = sink.open(&outputs);
            assert_eq!(opened.is_ok(), format.holds == Holds::Outputs, "{format:?}");
            if let Err(e) = opened {
                assert!(e.to_string().starts_with(format.title), "{e}");
                continue;
            }
            let batches: Vec<_> = (0..2)
                .map(|i| (i, rows(&outputs[i], &[vec![Value::Int(40 + i as i64)]])))
                .collect();
            let text = written(format, &outputs, &batches);
            for word in ["one", "two", "40", "41"] {
                assert!(text.contains(word), "{format:?}: {text}");
            }
        }
    }

    #[test]
    fn every_format_of_text_writes_every_type_and_ends_its_last_line() {
        let (output, batch) = every_type();
        for format in FORMATS.iter().filter(|format| format.is_text) {
            assert_eq!((format.check)(std::slice::from_ref(&output)), Ok(()));
            let text = written(format, std::slice::from_ref(&output), &[(0, batch.clone())]);
            assert!(text.ends_with('\n') && text.contains("10.0.0.1"), "{format:?}: {text}");
            let text = written(format, std::slice::from_ref(&output), &[]);
            assert!(text.is_empty() || text.ends_with('\n'), "{format:?}: {text}");
        }
    }
}
