//! Rows on their way to a sink, seen by something beside it.

use std::io;
use weir_engine::counters::Ledger;
use weir_engine::rows::{Output, Rows, Sink};

/// An observer sees the rows of a run before they go on to its sink.
pub(crate) trait Observer {
    /// From now on rows are of these outputs.
    fn open(&mut self, _outputs: &[Output]) -> io::Result<()> {
        Ok(())
    }

    /// Sees rows of the output of that number.
    fn rows(&mut self, output: usize, rows: &Rows) -> io::Result<()>;

    /// Takes the counts so far; rows that it makes of them go to `to`.
    fn counted(&mut self, _ledger: &Ledger, _time: i64, _to: &mut dyn Sink) -> io::Result<()> {
        Ok(())
    }

    /// Rows that it made itself.
    fn own_rows(&self) -> u64 {
        0
    }

    /// The input has ended. It may be read again, and outputs be opened anew.
    fn finish(&mut self, _to: &mut dyn Sink) -> io::Result<()> {
        Ok(())
    }

    /// A sink that hands rows on to `to` once this has seen them.
    fn on_the_way<'a>(self, to: Box<dyn Sink + 'a>) -> Box<dyn Sink + 'a>
    where
        Self: Sized + 'a,
    {
        Box::new(Observed { observer: self, to })
    }
}

struct Observed<'a, O> {
    observer: O,
    to: Box<dyn Sink + 'a>,
}

impl<O: Observer> Sink for Observed<'_, O> {
    fn open(&mut self, outputs: &[Output]) -> io::Result<()> {
        self.observer.open(outputs)?;
        self.to.open(outputs)
    }

    fn rows(&mut self, output: usize, rows: &Rows) -> io::Result<()> {
        self.observer.rows(output, rows)?;
        self.to.rows(output, rows)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }

    fn finish(&mut self) -> io::Result<()> {
        let observed = self.observer.finish(&mut *self.to);
        // Rows that came before are written also where the observer failed.
        self.to.finish().and(observed)
    }

    fn counted(&mut self, ledger: &Ledger, time: i64) -> io::Result<()> {
        self.observer.counted(ledger, time, &mut *self.to)?;
        self.to.counted(ledger, time)
    }

    fn own_rows(&self) -> u64 {
        self.observer.own_rows() + self.to.own_rows()
    }

    fn refused(&self) -> u64 {
        self.to.refused()
    }

    fn unwritten(&self) -> u64 {
        self.to.unwritten()
    }
}
