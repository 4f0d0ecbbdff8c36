//! How rows look to clients: which program they are of, and their lines of JSON.

use weir_engine::rows::Output;
use weir_plan::Column;
use weir_sink::{LineWriter, Names, RowOptions};

/// An output of a program, as clients see it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ShownOutput {
    /// The program.
    pub program: String,
    /// The name of the output in its rows (`_pipeline`).
    pub output: String,
    /// The names and types of its columns.
    pub columns: Vec<(String, String)>,
}

/// How the rows of a run are shown.
#[derive(Clone, Debug)]
pub struct RowForm {
    /// How cells are written, and whether rows always name their output.
    pub options: RowOptions,
    /// The naming of columns.
    pub names: Names,
    /// The name of a program that is alone, whose output has none.
    pub alone: String,
}

impl RowForm {
    /// The outputs, as clients see them. An output is called as its program, or as it and something
    /// after a dot.
    pub fn shown(&self, outputs: &[Output]) -> Vec<ShownOutput> {
        let column = |column: &Column| (column.name.clone(), column.ty.to_string());
        let one = |output: &Output| {
            let name = output.name.as_ref();
            let program = name.map_or(self.alone.as_str(), |n| n.split('.').next().unwrap_or(n));
            ShownOutput {
                program: program.to_owned(),
                output: name.map_or(program, String::as_str).to_owned(),
                columns: output.schema.columns.iter().map(column).collect(),
            }
        };
        outputs.iter().map(one).collect()
    }

    /// Of each output, what writes its rows.
    pub fn writers(&self, outputs: &[Output]) -> Vec<LineWriter> {
        let titles = self.options.titles || outputs.len() > 1;
        let options = RowOptions { titles, ..self.options };
        let number = |i: usize| Some((i + 1).to_string());
        let one = |(i, output): (usize, &Output)| {
            let name = output.name.clone().or_else(|| number(i));
            LineWriter::new(Output { name, ..output.clone() }, options, self.names)
        };
        outputs.iter().enumerate().map(one).collect()
    }
}
