//! Answers to statements, on standard output.

use crate::args::SqlArgs;
use crate::exit::{Status, usage};
use crate::ledger::losses;
use crate::library;
use crate::output::choose;
use crate::term::Term;
use crate::zone::Zone;
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
            library: |name| library::find(name).map(|entry| entry.text.to_owned()),
        })?;
        Ok(Answers { session, args, format, term })
    }

    /// Answers one statement. Losses of the runs that it needed are told.
    pub(super) fn answer(&self, statement: SqlStatement) -> anyhow::Result<Status> {
        let options = RowOptions {
            time: self.args.time.format(Zone(None)),
            addresses: self.args.addresses.into(),
            color: self.term.color_out,
            ..RowOptions::default()
        };
        let mut sink = self.format.sink(io::stdout().lock(), options, Names::Native);
        let answered = self.session.answer(statement, &mut Checked(self.format, &mut *sink));
        let mut status = Status::Ok;
        for run in self.session.ended() {
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
            Err(SqlError::Rows(e)) => Err(e.into()),
            Err(e) => Err(anyhow::Error::new(e)),
        }
    }
}

/// A sink whose format is asked whether it can hold the columns.
struct Checked<'a>(&'static Format, &'a mut dyn Sink);

impl Sink for Checked<'_> {
    fn open(&mut self, outputs: &[Output]) -> io::Result<()> {
        (self.0.check)(outputs).map_err(io::Error::other)?;
        self.1.open(outputs)
    }

    fn rows(&mut self, output: usize, rows: &Rows) -> io::Result<()> {
        self.1.rows(output, rows)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.1.flush()
    }

    fn finish(&mut self) -> io::Result<()> {
        self.1.finish()
    }
}
