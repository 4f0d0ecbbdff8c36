//! Running a program over a source.

use crate::error::StreamError;
use crate::from_row::{Cells, FromRow, places};
use crate::program::StreamProgram;
use crate::stream::Stream;
use jiff::SignedDuration;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use weir_engine::counters::Ledger;
use weir_engine::rows::{Output, Rows, Sink};
use weir_engine::run::{self, Options};
use weir_packet::egress::Egress;
use weir_packet::source::Source;
use weir_plan::Program;
use weir_plan::registered::Functions;

/// A program about to run over a source. As long as no state is full, the same program gives the
/// same rows with any number of workers.
#[must_use = "it runs once its rows are taken, or by `finish`"]
pub struct StreamRun<'a> {
    program: StreamProgram,
    source: &'a mut dyn Source,
    egress: Option<&'a mut dyn Egress>,
    options: Options,
    takers: Vec<Taker<'a>>,
}

/// A closure that takes the rows of an output.
struct Taker<'a> {
    output: Option<String>,
    /// Checks the schema, and gives what takes rows of it.
    bind: Bind<'a>,
}

type Bind<'a> = Box<dyn FnOnce(&Output) -> Result<TakeRows<'a>, String> + 'a>;
type TakeRows<'a> = Box<dyn FnMut(&Rows) -> io::Result<()> + 'a>;

impl fmt::Debug for StreamRun<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let StreamRun { program, options, .. } = self;
        f.debug_struct("StreamRun").field("program", program).field("options", options).finish()
    }
}

impl Stream {
    /// Runs the stream alone over a source.
    pub fn run(self, source: &mut dyn Source) -> StreamRun<'_> {
        StreamProgram::from(self).run(source)
    }
}

impl StreamProgram {
    /// Runs it over a source.
    pub fn run(self, source: &mut dyn Source) -> StreamRun<'_> {
        StreamRun::new(self, source)
    }
}

impl<'a> StreamRun<'a> {
    fn new(program: StreamProgram, source: &'a mut dyn Source) -> StreamRun<'a> {
        let options = Options::default();
        StreamRun { program, source, egress: None, options, takers: Vec::new() }
    }

    /// How many threads process packets; 1, unless this says otherwise.
    pub fn workers(mut self, workers: usize) -> StreamRun<'a> {
        self.options.workers = workers;
        self
    }

    /// How much older than the latest packet a packet may be and still count in its window; 1 s,
    /// unless this says otherwise.
    pub fn lateness(mut self, lateness: SignedDuration) -> StreamRun<'a> {
        self.options.lateness_ns = lateness.as_nanos().clamp(0, i64::MAX.into()) as i64;
        self
    }

    /// Ends the input early once this is set: windows close, and all rows are handed out.
    pub fn stop(mut self, stop: Arc<AtomicBool>) -> StreamRun<'a> {
        self.options.stop = Some(stop);
        self
    }

    /// Other options of the engine, in place of those set before.
    pub fn options(mut self, options: Options) -> StreamRun<'a> {
        self.options = options;
        self
    }

    /// Sets a `param` of a query that is part of a stream, as text.
    pub fn param(mut self, name: &str, value: &str) -> StreamRun<'a> {
        self.program = self.program.param(name, value);
        self
    }

    /// Takes the packets that stages hand out, by `forward`, `mirror` and their like; they are
    /// counted and dropped otherwise.
    pub fn packets_to(mut self, egress: &'a mut dyn Egress) -> StreamRun<'a> {
        self.egress = Some(egress);
        self
    }

    /// Calls a closure for each row of the output of this name. Rows come on the calling thread, in
    /// an order that does not depend on workers.
    pub fn each<R: FromRow + 'a>(mut self, output: &str, row: impl FnMut(R) + 'a) -> StreamRun<'a> {
        self.takers.push(Taker::new(Some(output.to_owned()), row));
        self
    }

    /// Runs it, and hands the rows to the closures of [`StreamRun::each`]; those of other outputs
    /// are dropped. Gives the counts of packets by their fate: what was lost, late or left out.
    ///
    /// # Errors
    /// Before the first packet, if the program has mistakes or a row is read as what it is not; and
    /// if the run ends early, with rows before it handed out.
    pub fn finish(self) -> Result<Ledger, StreamError> {
        self.finish_with(None)
    }

    /// Runs it, and calls a closure for each row of its first output, which is the only one of a
    /// stream that runs alone.
    ///
    /// # Errors
    /// As for [`StreamRun::finish`].
    pub fn for_each<R: FromRow>(self, row: impl FnMut(R)) -> Result<Ledger, StreamError> {
        self.finish_with(Some(Taker::new(None, row)))
    }

    /// Runs it, and collects the rows of its first output.
    ///
    /// # Errors
    /// As for [`StreamRun::finish`]; rows before the error are dropped, where
    /// [`StreamRun::for_each`] has handed them out.
    pub fn collect<R: FromRow>(self) -> Result<(Vec<R>, Ledger), StreamError> {
        let mut rows = Vec::new();
        let ledger = self.for_each(|row| rows.push(row))?;
        Ok((rows, ledger))
    }

    fn finish_with<'b>(self, first: Option<Taker<'b>>) -> Result<Ledger, StreamError>
    where
        'a: 'b,
    {
        let StreamRun { program, source, egress, options, takers } = self;
        let first_name = program.first().map(str::to_owned);
        let (program, functions) = program.compile()?;
        let outputs = Output::of(&program);
        let mut takes: Vec<Option<TakeRows<'b>>> = outputs.iter().map(|_| None).collect();
        let mut put = |(at, take): (usize, TakeRows<'b>)| match takes[at].replace(take) {
            Some(_) => Err(StreamError::Refused("an output has two closures".to_owned())),
            None => Ok(()),
        };
        for taker in takers {
            put(taker.bind(&outputs, None)?)?;
        }
        if let Some(taker) = first {
            put(taker.bind(&outputs, first_name.as_deref())?)?;
        }
        finish(&program, &functions, source, (&mut Takes(takes), egress), &options)
    }

    /// Runs it, and hands all rows to a sink of one's own, by the batch and by column.
    ///
    /// # Errors
    /// As for [`StreamRun::finish`], and if closures take rows, too.
    pub fn to(self, sink: &mut dyn Sink) -> Result<Ledger, StreamError> {
        if !self.takers.is_empty() {
            let reason = "rows go to closures or to a sink, not to both";
            return Err(StreamError::Refused(reason.to_owned()));
        }
        let (program, functions) = self.program.compile()?;
        finish(&program, &functions, self.source, (sink, self.egress), &self.options)
    }
}

impl<'a> Taker<'a> {
    fn new<R: FromRow + 'a>(output: Option<String>, mut row: impl FnMut(R) + 'a) -> Taker<'a> {
        let bind = move |output: &Output| {
            let columns = &output.schema.columns;
            let places = places(&R::columns(), &output.schema)?;
            let names: Vec<String> = columns.iter().map(|column| column.name.clone()).collect();
            let take = move |rows: &Rows| {
                (0..rows.len).try_for_each(|i| {
                    let mut cells = Cells::new(rows, i, &places);
                    let read = R::read(&mut cells);
                    read.map(&mut row).ok_or_else(|| is_absent(&names[cells.absent()]))
                })
            };
            Ok(Box::new(take) as TakeRows<'a>)
        };
        Taker { output, bind: Box::new(bind) }
    }

    /// Which of the outputs it takes rows of, and how. One that names none takes those of `first`,
    /// or of the last that has no name: queries that are part of a stream may have others before.
    fn bind(
        self,
        outputs: &[Output],
        first: Option<&str>,
    ) -> Result<(usize, TakeRows<'a>), StreamError> {
        let Taker { output, bind } = self;
        let name = output.as_deref().or(first);
        let Some(at) = outputs.iter().rposition(|o| o.name.as_deref() == name) else {
            let all: Vec<&str> = outputs.iter().filter_map(|o| o.name.as_deref()).collect();
            let reason = match all.is_empty() {
                true => "the program has no rows to take: `finish` runs it".to_owned(),
                false => format!("there is no such output; there are {}", all.join(", ")),
            };
            return Err(StreamError::Rows { output, reason });
        };
        let take = bind(&outputs[at]).map_err(|reason| StreamError::Rows { output, reason })?;
        Ok((at, take))
    }
}

fn is_absent(column: &str) -> io::Error {
    io::Error::other(format!(
        "`{column}` is absent in a row, and what it is read as takes no absent one: make it an \
         `Option`, or add `where exists({column})`"
    ))
}

fn finish(
    program: &Program,
    functions: &Functions,
    source: &mut dyn Source,
    (sink, egress): (&mut dyn Sink, Option<&mut dyn Egress>),
    options: &Options,
) -> Result<Ledger, StreamError> {
    let outcome = match egress {
        Some(egress) => {
            run::run_to(program, functions, source, (sink, egress), options, &mut |_| {})
        }
        None => run::run(program, functions, source, sink, options, &mut |_| {}),
    };
    match outcome.error {
        Some(error) => Err(StreamError::Run { error, ledger: Box::new(outcome.ledger) }),
        None => Ok(outcome.ledger),
    }
}

/// The closures that take the rows of each output.
struct Takes<'a>(Vec<Option<TakeRows<'a>>>);

impl Sink for Takes<'_> {
    fn open(&mut self, _: &[Output]) -> io::Result<()> {
        Ok(())
    }

    fn rows(&mut self, output: usize, rows: &Rows) -> io::Result<()> {
        self.0[output].as_mut().map_or(Ok(()), |take| take(rows))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        Ok(())
    }
}
