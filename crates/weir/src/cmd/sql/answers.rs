//! Answers to statements, on standard output.

use crate::args::SqlArgs;
use crate::exit::{Status, usage};
use crate::ledger::losses;
use crate::library;
use crate::output::choose;
use crate::term::Term;
use crate::zone::Zone;
use std::cell::Cell;
use std::io;
use weir_engine::rows::{Output, Rows, Sink};
use weir_sink::{Format, Names, RowOptions};
use weir_sql::{SqlError, SqlOptions, SqlSession, SqlStatement};

/// Answers statements on standard output.
pub(super) struct Answers<'a> {
    pub(super) session: SqlSession,
    args: &'a SqlArgs,
    format: &'static Format,
    term: &'a Term,
    /// Whether rows were written.
    is_begun: Cell<bool>,
}

impl<'a> Answers<'a> {
    pub(super) fn new(args: &'a SqlArgs, term: &'a Term) -> anyhow::Result<Answers<'a>> {
        let format = choose(args.output, term);
        if !format.is_text && term.stdout_tty {
            let name = format.name;
            let redirect = "standard output is a terminal; redirect it to a file";
            return Err(usage(format!("-o {name} is binary, and {redirect}")));
        }
        let memory = args.memory.bytes().and_then(|bytes| usize::try_from(bytes).ok());
        let session = SqlSession::new(SqlOptions {
            addresses: args.addresses.into(),
            workers: args.workers.get(),
            memory,
            is_shown: term.stdout_tty,
            library: |name| library::find(name).map(|entry| entry.text.to_owned()),
        })?;
        Ok(Answers { session, args, format, term, is_begun: Cell::new(false) })
    }

    /// Answers one statement, and reports what its runs over captures lost.
    pub(super) fn answer(&self, statement: SqlStatement) -> anyhow::Result<Status> {
        let options = RowOptions {
            time: self.args.time.format(Zone(None)),
            addresses: self.args.addresses.into(),
            color: self.term.color_out,
            ..RowOptions::default()
        };
        let mut sink = self.format.sink(io::stdout().lock(), options, Names::Native);
        let answered =
            self.session.answer(statement, &mut Checked { answers: self, sink: &mut *sink });
        let mut status = Status::Ok;
        for run in self.session.ended() {
            if let Some(why) = &run.broken {
                self.term.error(format_args!("{why}; the rows are of the packets before"));
                status = Status::Failed;
            }
            let lost = losses(&run.ledger, None);
            if !lost.is_empty() {
                self.term.say(format_args!("{}:", run.captures));
                self.term.say_text(&lost);
            }
            if self.args.fail_on_loss && !lost.is_empty() {
                status = Status::Failed;
            }
        }
        match answered {
            Ok(()) => Ok(status),
            Err(SqlError::Statement(why)) => Err(usage(why)),
            Err(SqlError::Rows(e)) if e.kind() == io::ErrorKind::InvalidInput => {
                Err(usage(e.to_string()))
            }
            Err(SqlError::Rows(e)) => Err(e.into()),
            Err(e) => Err(anyhow::Error::new(e)),
        }
    }
}

/// A sink whose format is asked whether it can hold the columns, and another answer.
struct Checked<'a> {
    answers: &'a Answers<'a>,
    sink: &'a mut dyn Sink,
}

impl Sink for Checked<'_> {
    fn open(&mut self, outputs: &[Output]) -> io::Result<()> {
        let format = self.answers.format;
        let refused = |why: String| Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        if self.answers.is_begun.replace(true) && !format.is_text {
            let one = "holds the rows of one statement: run the others apart";
            return refused(format!("-o {} {one}", format.name));
        }
        let columns = &outputs[0].schema.columns;
        let is_again = |i: &usize| columns[..*i].iter().any(|c| c.name == columns[*i].name);
        if let Some(again) = (0..columns.len()).find(is_again) {
            let name = &columns[again].name;
            return refused(format!("two columns are called `{name}`: name one by `as`"));
        }
        (format.check)(outputs).or_else(refused)?;
        self.sink.open(outputs)
    }

    fn rows(&mut self, output: usize, rows: &Rows) -> io::Result<()> {
        self.sink.rows(output, rows)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.sink.flush()
    }

    fn finish(&mut self) -> io::Result<()> {
        self.sink.finish()
    }
}
