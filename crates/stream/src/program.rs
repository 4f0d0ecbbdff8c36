//! Streams put together to one program of the language.

use crate::error::StreamError;
use crate::function::Function;
use crate::run::StreamRun;
use crate::stream::{Stream, StreamPart};
use std::sync::Arc;
use weir_lang::{Options, Query};
use weir_packet::source::Source;
use weir_plan::Program;
use weir_plan::registered::Functions;

/// One or more streams that run together, over one pass of their source.
///
/// ```
/// use weir_stream::{StreamProgram, packets};
///
/// let mut capture = weir_stream::open("../../fixtures/web.pcap")?;
/// let (mut packets_seen, mut protocols) = (0, Vec::new());
/// StreamProgram::default()
///     .output("all", packets().query("summarize n = count()"))
///     .output("by_protocol", packets().query("where ip | summarize n = count() by ip.proto"))
///     .run(&mut capture)
///     .workers(2)
///     .each("all", |(n,): (i64,)| packets_seen = n)
///     .each("by_protocol", |(protocol, n): (i64, i64)| protocols.push((protocol, n)))
///     .finish()?;
/// # assert!(packets_seen > 0 && !protocols.is_empty());
/// # Ok::<(), weir_stream::StreamError>(())
/// ```
#[derive(Clone, Default, Debug)]
pub struct StreamProgram {
    /// With the names of their rows.
    outputs: Vec<(Option<String>, Stream)>,
    pub(crate) params: Vec<(String, String)>,
}

impl StreamProgram {
    /// Adds a stream, whose rows are known by this name.
    #[must_use]
    pub fn output(mut self, name: &str, stream: Stream) -> StreamProgram {
        self.outputs.push((Some(name.to_owned()), stream));
        self
    }

    pub(crate) fn alone(mut self, stream: Stream) -> StreamProgram {
        self.outputs.push((None, stream));
        self
    }

    /// Sets a `param` of a query that is part of a stream, as text.
    #[must_use]
    pub fn param(mut self, name: &str, value: &str) -> StreamProgram {
        self.params.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Runs it over a source.
    pub fn run(self, source: &mut dyn Source) -> StreamRun<'_> {
        StreamRun::new(self, source)
    }

    /// The text of the language that it stands for. Functions in Rust are called by the names that
    /// they were given, or by their places.
    pub fn text(&self) -> String {
        Writer::of(self).text
    }

    /// The plan, as `weir explain` shows it: how packets are spread over so many workers, what each
    /// stage holds and where.
    ///
    /// # Errors
    /// As for [`StreamProgram::compile`].
    pub fn explain(&self, workers: usize) -> Result<String, StreamError> {
        let (program, _) = self.compile()?;
        Ok(weir_plan::print::explain(&program, workers))
    }

    /// The plan, and the functions that it calls by number. It is what a query of that text
    /// compiles to: the engine, the merge of several probes and the kernel's level take it.
    ///
    /// # Errors
    /// With the mistakes of the text, or if two functions share a name.
    pub fn compile(&self) -> Result<(Program, Functions), StreamError> {
        let writer = Writer::of(self);
        if let Some(name) = writer.twice {
            return Err(StreamError::Twice(name));
        }
        let query = Query { name: "stream", text: &writer.text };
        let options = Options {
            params: &self.params,
            program: "stream",
            signatures: writer.functions.signatures(),
            ..Options::default()
        };
        match weir_lang::compile(&query, &options) {
            Ok(compiled) => Ok((compiled.program, writer.functions)),
            Err(mistakes) => Err(StreamError::Query(weir_lang::render(&mistakes, &query, false))),
        }
    }
}

/// Writes a program as text.
#[derive(Default)]
struct Writer {
    text: String,
    functions: Functions,
    /// The functions so far, with their names.
    named: Vec<(Function, String)>,
    /// The streams that others take rows of, with their names.
    streams: Vec<(Arc<Stream>, String)>,
    /// The statements before streams, each once.
    heads: Vec<String>,
    /// A name that two functions have.
    twice: Option<String>,
}

impl Writer {
    fn of(program: &StreamProgram) -> Writer {
        let mut writer = Writer::default();
        for (name, stream) in &program.outputs {
            let pipeline = writer.pipeline(stream);
            let output = name.as_ref().map_or(String::new(), |name| format!("let {name} = "));
            writer.statement(&format!("{output}{pipeline}"));
        }
        writer
    }

    fn statement(&mut self, statement: &str) {
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.text += statement;
        self.text.push('\n');
    }

    /// The text of a pipeline. Statements that it needs are written before.
    fn pipeline(&mut self, stream: &Stream) -> String {
        let mut pipeline = String::new();
        for part in &stream.parts {
            match part {
                StreamPart::Text(text) => pipeline += text,
                StreamPart::Call(function, arguments) => {
                    let name = self.function(function);
                    pipeline += &format!("{name}({arguments})");
                }
                StreamPart::Uses(function) => drop(self.function(function)),
                StreamPart::Stream(other) => pipeline += &self.stream(other),
                StreamPart::Head(head) if head.is_empty() || self.heads.contains(head) => {}
                StreamPart::Head(head) => {
                    self.heads.push(head.clone());
                    self.statement(head);
                }
            }
        }
        pipeline
    }

    /// The name of a function.
    fn function(&mut self, function: &Function) -> String {
        if let Some((_, name)) = self.named.iter().find(|(other, _)| other.is(function)) {
            return name.clone();
        }
        let by_place = || format!("closure_{}", self.named.len() + 1);
        let name = function.name().map_or_else(by_place, str::to_owned);
        if self.named.iter().any(|(_, other)| *other == name) {
            self.twice = Some(name.clone());
        }
        function.register(&name, &mut self.functions);
        self.named.push((function.clone(), name.clone()));
        name
    }

    /// The name of a stream.
    fn stream(&mut self, stream: &Arc<Stream>) -> String {
        if let Some((_, name)) = self.streams.iter().find(|(other, _)| Arc::ptr_eq(other, stream)) {
            return name.clone();
        }
        let pipeline = self.pipeline(stream);
        let name = format!("stream_{}", self.streams.len() + 1);
        self.statement(&format!("let {name} = {pipeline}"));
        self.streams.push((Arc::clone(stream), name.clone()));
        name
    }
}
