//! The sink for the rows of the run: the model of the screen.

use crate::model::SharedModel;
use std::io;
use weir_engine::rows::{Output, Rows, Sink};

/// Puts rows into a model. It waits for nothing but the short time in which the screen copies what
/// it shows.
#[derive(Debug)]
pub struct ModelSink(SharedModel);

impl ModelSink {
    /// A sink that fills this model.
    pub fn new(model: SharedModel) -> ModelSink {
        ModelSink(model)
    }
}

impl Sink for ModelSink {
    fn open(&mut self, outputs: &[Output]) -> io::Result<()> {
        self.0.lock().open(outputs);
        Ok(())
    }

    fn rows(&mut self, output: usize, rows: &Rows) -> io::Result<()> {
        self.0.lock().rows(output, rows);
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        Ok(())
    }
}
