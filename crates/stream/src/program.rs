//! Streams put together to one program of the language.

use crate::error::StreamError;
use crate::function::Function;
use crate::stream::{Stream, StreamPart, end_of_comment};
use std::sync::Arc;
use weir_lang::{Compiled, Options, Query};
use weir_plan::registered::Functions;
use weir_plan::{Program, aggregates, functions};

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
    params: Vec<(String, String)>,
    name: Option<String>,
}

impl StreamProgram {
    /// Adds a stream, whose rows are known by this name.
    #[must_use]
    pub fn output(mut self, name: &str, stream: Stream) -> StreamProgram {
        self.outputs.push((Some(name.to_owned()), stream));
        self
    }

    fn alone(mut self, stream: Stream) -> StreamProgram {
        self.outputs.push((None, stream));
        self
    }

    /// Sets a `param` of a query that is part of a stream, as text.
    #[must_use]
    pub fn param(mut self, name: &str, value: &str) -> StreamProgram {
        self.params.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Calls the program so, instead of `stream`: mistakes are shown under that name, and the rules
    /// of its alerts are named after it.
    #[must_use]
    pub fn named(mut self, name: &str) -> StreamProgram {
        self.name = Some(name.to_owned());
        self
    }

    /// The name of the first output, if it has one.
    pub(crate) fn first(&self) -> Option<&str> {
        self.outputs.first()?.0.as_deref()
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
    /// With the mistakes of the text, or if a function can't have its name.
    pub fn compile(&self) -> Result<(Program, Functions), StreamError> {
        let (compiled, writer) = self.compiled()?;
        Ok((compiled.program, writer.functions))
    }

    /// Warnings of the language, drawn below the lines of the text; empty if there are none.
    ///
    /// # Errors
    /// As for [`StreamProgram::compile`].
    pub fn warnings(&self) -> Result<String, StreamError> {
        let (compiled, writer) = self.compiled()?;
        let query = Query { name: self.name(), text: &writer.text };
        Ok(weir_lang::render(&compiled.warnings, &query, false))
    }

    fn name(&self) -> &str {
        self.name.as_deref().unwrap_or("stream")
    }

    fn compiled(&self) -> Result<(Compiled, Writer), StreamError> {
        let writer = Writer::of(self);
        if let Some(mistake) = writer.mistake {
            return Err(StreamError::Refused(mistake));
        }
        let query = Query { name: self.name(), text: &writer.text };
        let options = Options {
            params: &self.params,
            program: self.name(),
            signatures: writer.functions.signatures(),
            ..Options::default()
        };
        match weir_lang::compile(&query, &options) {
            Ok(compiled) => Ok((compiled, writer)),
            Err(mistakes) => Err(StreamError::Query(weir_lang::render(&mistakes, &query, false))),
        }
    }
}

/// The stream alone: its rows have no name.
impl From<Stream> for StreamProgram {
    fn from(stream: Stream) -> StreamProgram {
        StreamProgram::default().alone(stream)
    }
}

/// The text of the query that the stream is alone.
impl std::fmt::Display for Stream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&StreamProgram::from(self.clone()).text())
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
    /// The first thing that can't be.
    mistake: Option<String>,
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
                    pipeline += &format!("{name}({arguments}{})", end_of_comment(arguments));
                }
                StreamPart::Uses(function) => drop(self.function(function)),
                StreamPart::Stream(other) => pipeline += &self.stream(other),
                StreamPart::Mistake(mistake) => drop(self.mistake.get_or_insert(mistake.clone())),
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
        let name = function.name().map_or_else(|| self.free_name(), str::to_owned);
        if self.named.iter().any(|(_, other)| *other == name) {
            let mistake = format!("two functions are called `{name}`: make it once, and share it");
            self.mistake.get_or_insert(mistake);
        }
        if functions::by_name(&name).is_some() || aggregates::by_name(&name).next().is_some() {
            let mistake = format!("the language has a function `{name}`: choose another name");
            self.mistake.get_or_insert(mistake);
        }
        function.register(&name, &mut self.functions);
        self.named.push((function.clone(), name.clone()));
        name
    }

    /// A name for a closure, by its place.
    fn free_name(&self) -> String {
        let is_free = |name: &String| self.named.iter().all(|(_, other)| other != name);
        let mut names = (self.named.len() + 1..).map(|n| format!("closure_{n}"));
        names.find(is_free).expect("names do not end")
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
