//! `--plot`: a picture of the rows of a run, beside wherever they go.

use crate::args::RunOptions;
use crate::exit::usage;
use crate::observe::Observer;
use anyhow::Context as _;
use parking_lot::{Mutex, MutexGuard};
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::sync::Arc;
use weir_capture::write::{Made, Untouched, is_read};
use weir_engine::rows::{Output, Rows, Sink};
use weir_plan::Program;
use weir_report::Plot;

/// A picture that is being made, and the file for it.
pub(crate) struct PlotFile {
    plot: Arc<Mutex<Plot>>,
    file: Untouched,
    path: PathBuf,
}

/// A picture of the rows of a program, if one is asked for.
fn plot(program: &Program, alone: &str, options: &RunOptions) -> anyhow::Result<Option<Plot>> {
    let Some(path) = &options.plot else { return Ok(None) };
    let shown = path.display();
    let refused = |why: &str| usage(format!("--plot {shown}: {why}"));
    if options.takes_programs() {
        return Err(refused("programs of this run come and go; a picture is of queries that stay"));
    }
    if options.publish.publish.is_some() {
        return Err(refused("a run with --publish has no rows"));
    }
    if is_read(path, &options.read) {
        return Err(refused("this is a capture that is read"));
    }
    let from = match options.live.interface.is_empty() {
        true => options.read.join(", "),
        false => options.live.interface.join(", "),
    };
    let about = if alone.is_empty() { from } else { format!("{alone}: {from}") };
    let zone = options.rules.time_zone.0;
    Plot::new(&Output::of(program), &about, zone).map(Some).map_err(|e| refused(&e.to_string()))
}

/// Refuses a picture of rows that can't be drawn.
pub(crate) fn check(program: &Program, options: &RunOptions) -> anyhow::Result<()> {
    plot(program, "", options).map(drop)
}

impl PlotFile {
    /// Opens the file of the picture, if one is asked for.
    pub(crate) fn open(
        program: &Program,
        alone: &str,
        options: &RunOptions,
        made: &mut Made,
    ) -> anyhow::Result<Option<PlotFile>> {
        let (Some(plot), Some(path)) = (plot(program, alone, options)?, &options.plot) else {
            return Ok(None);
        };
        let file = made.open(path).with_context(|| format!("--plot {}", path.display()))?;
        let (plot, file) = (Arc::new(Mutex::new(plot)), Untouched::new(file));
        Ok(Some(PlotFile { plot, file, path: path.clone() }))
    }

    /// Lets it see the rows on their way to a sink.
    pub(crate) fn watch<'a>(&self, to: Box<dyn Sink + 'a>) -> Box<dyn Sink + 'a> {
        Watched(Arc::clone(&self.plot)).on_the_way(to)
    }

    /// Writes the picture. Returns how many rows are not in it, since they have no time.
    pub(crate) fn write(self) -> anyhow::Result<u64> {
        let plot = lock(&self.plot);
        let svg = plot.svg();
        let written = self.file.begin().and_then(|mut file| {
            file.write_all(svg.as_bytes())?;
            file.flush()
        });
        written.with_context(|| format!("--plot {}", self.path.display()))?;
        Ok(plot.timeless())
    }
}

/// Shows rows to a picture.
struct Watched(Arc<Mutex<Plot>>);

fn lock(plot: &Mutex<Plot>) -> MutexGuard<'_, Plot> {
    plot.lock()
}

impl Observer for Watched {
    fn rows(&mut self, output: usize, rows: &Rows) -> io::Result<()> {
        lock(&self.0).rows(output, rows);
        Ok(())
    }
}
