//! Streams: stages of the language, of which closures are parts.

use crate::cell::RowCell;
use crate::closure::{Closure, ClosureInputs, ClosureStep, ScanState};
use crate::function::Function;
use std::sync::Arc;
use weir_plan::Value;

/// The packets of a source.
pub fn packets() -> Stream {
    Stream { parts: vec![StreamPart::text("packets")] }
}

/// A stream of rows: packets, or what stages made of them. It is a description; [`Stream::run`]
/// runs it. Stages and expressions are those of the language (`docs/operators.md`,
/// `docs/language.md`), and closures stand among them under names of their own.
#[derive(Clone, Debug)]
pub struct Stream {
    pub(crate) parts: Vec<StreamPart>,
}

/// A part of the text of a stream.
#[derive(Clone, Debug)]
pub(crate) enum StreamPart {
    Text(String),
    /// A call of a function, with its arguments.
    Call(Function, String),
    /// A function that the text calls by its own name.
    Uses(Function),
    /// The name of another stream.
    Stream(Arc<Stream>),
    /// Statements that stand before all streams.
    Head(String),
    /// Something that can't be, and why.
    Mistake(String),
}

impl StreamPart {
    pub(crate) fn text(text: impl Into<String>) -> StreamPart {
        StreamPart::Text(text.into())
    }

    /// The start of a state, as the language writes it, or else by a function.
    fn start(name: &str, value: Value) -> StreamPart {
        match value {
            Value::Bool(_) | Value::Float(_) => StreamPart::Text(value.to_string()),
            Value::Int(n) if n > i64::MIN => StreamPart::Text(value.to_string()),
            Value::Absent => StreamPart::Mistake(format!(
                "no column can hold the start of the state `{name}`: a float has to be finite, a \
                 time or a duration to fit into 64 bits of nanoseconds"
            )),
            value => StreamPart::Call(Function::of_constant(value), String::new()),
        }
    }
}

impl Stream {
    /// A query of the language as the start of a stream: its last pipeline, with the `param` and
    /// `let` statements before it. Files of the library are such queries; of one that ends with a
    /// `let`, that is the pipeline. Two queries that use a name for different things can't be in
    /// one program.
    ///
    /// ```
    /// use weir_stream::Stream;
    ///
    /// let text = "param port: int = 80\npackets | where tcp.syn and dport == port";
    /// let syns = Stream::of_query(text).query("summarize n = count()");
    /// let mut capture = weir_stream::open("../../fixtures/web.pcap")?;
    /// let (rows, _) = syns.run(&mut capture).param("port", "443").collect::<(i64,)>()?;
    /// # assert_eq!(rows, [(0,)]);
    /// # Ok::<(), weir_stream::StreamError>(())
    /// ```
    pub fn of_query(text: &str) -> Stream {
        // A text with mistakes stays as it is, for what compiles it to say so.
        let Ok(text) = weir_lang::format(text) else {
            return Stream { parts: vec![StreamPart::text(text)] };
        };
        let (head, last) = text.split_at(last_statement(&text));
        if let Some((name, _)) = last.strip_prefix("let ").and_then(|rest| rest.split_once(' ')) {
            return Stream::of_named(&text, name);
        }
        Stream::after(head, last)
    }

    /// The pipeline of this name of a query. Others whose rows nothing takes run beside it.
    ///
    /// ```
    /// # use weir_stream::Stream;
    /// let text = "let syns = packets | where tcp.syn\nlet fins = packets | where tcp.fin";
    /// assert!(Stream::of_named(text, "syns").to_string().ends_with("| where tcp.fin\n\nsyns\n"));
    /// ```
    pub fn of_named(text: &str, name: &str) -> Stream {
        Stream::after(&weir_lang::format(text).unwrap_or_else(|_| text.to_owned()), name)
    }

    fn after(head: &str, pipeline: &str) -> Stream {
        let head = StreamPart::Head(head.trim_end().to_owned());
        Stream { parts: vec![head, StreamPart::text(pipeline.trim_end())] }
    }

    /// Adds one stage, or several with `|` between them, as the language writes them.
    ///
    /// ```
    /// # use weir_stream::packets;
    /// # use std::net::IpAddr;
    /// let mut capture = weir_stream::open("../../fixtures/web.pcap")?;
    /// let (rows, _) = packets()
    ///     .query("summarize bytes = sum(len) by ip.src | top 3 by bytes")
    ///     .run(&mut capture)
    ///     .collect::<(IpAddr, i64)>()?;
    /// # assert!(!rows.is_empty());
    /// # Ok::<(), weir_stream::StreamError>(())
    /// ```
    #[must_use]
    pub fn query(self, stages: &str) -> Stream {
        self.then([StreamPart::Text(stages.to_owned())])
    }

    /// Rows for which a condition holds.
    ///
    /// ```
    /// # use weir_stream::packets;
    /// assert_eq!(packets().filter("tcp.syn").to_string(), "packets\n| where tcp.syn\n");
    /// ```
    #[must_use]
    pub fn filter(self, condition: &str) -> Stream {
        self.query(&format!("where {condition}"))
    }

    /// Rows for which a closure over some expressions says so. It is called for rows in which all
    /// of them have values, except those that it takes as an `Option`, which is computed twice.
    ///
    /// ```
    /// # use weir_stream::packets;
    /// let mut capture = weir_stream::open("../../fixtures/web.pcap")?;
    /// let (odd, _) = packets()
    ///     .filter_by(["sport", "dport"], |from: i64, to: i64| (from ^ to) % 2 == 1)
    ///     .query("project sport, dport")
    ///     .run(&mut capture)
    ///     .collect::<(i64, i64)>()?;
    /// assert!(odd.iter().all(|(from, to)| (from + to) % 2 == 1));
    /// # Ok::<(), weir_stream::StreamError>(())
    /// ```
    #[must_use]
    pub fn filter_by<Args: ClosureInputs<N>, const N: usize>(
        self,
        inputs: [&str; N],
        closure: impl Closure<Args, bool, N>,
    ) -> Stream {
        self.call("where ".into(), inputs, closure)
    }

    /// A column more, from a closure over some expressions: `map` of other libraries.
    ///
    /// ```
    /// # use weir_stream::packets;
    /// let mut capture = weir_stream::open("../../fixtures/web.pcap")?;
    /// let (sizes, _) = packets()
    ///     .extend_by("size", ["len"], |len: i64| i64::from(len.ilog2()))
    ///     .query("summarize n = count() by size")
    ///     .run(&mut capture)
    ///     .collect::<(i64, i64)>()?;
    /// # assert!(!sizes.is_empty());
    /// # Ok::<(), weir_stream::StreamError>(())
    /// ```
    #[must_use]
    pub fn extend_by<Args: ClosureInputs<N>, Out: RowCell, const N: usize>(
        self,
        name: &str,
        inputs: [&str; N],
        closure: impl Closure<Args, Out, N>,
    ) -> Stream {
        self.call(format!("extend {name} = "), inputs, closure)
    }

    /// Folds the rows of each key, in order, into a state whose cells become columns of these
    /// names: `map` with state, of other libraries. `by` is what the language writes after `by` in
    /// a `scan`: the key, how long it may be idle, how many keys at most. The closure gets the
    /// state as a tuple; it is called once for each of its cells, and so are the expressions
    /// computed. A row in which one of them is absent, and not taken as an `Option`, leaves the
    /// state as it is; a cell that no column can hold stays as it was.
    ///
    /// ```
    /// # use weir_stream::packets;
    /// let mut capture = weir_stream::open("../../fixtures/web.pcap")?;
    /// let count = |(n, sum): (i64, i64), len: i64| (n + 1, sum + len);
    /// let (rows, _) = packets()
    ///     .scan_by(["nth", "sum"], (0, 0), "conn idle 1m", ["len"], count)
    ///     .query("project nth, sum")
    ///     .run(&mut capture)
    ///     .collect::<(Option<i64>, Option<i64>)>()?;
    /// # assert!(!rows.is_empty());
    /// # Ok::<(), weir_stream::StreamError>(())
    /// ```
    #[must_use]
    pub fn scan_by<State, Args, const CELLS: usize, const N: usize>(
        self,
        names: [&str; CELLS],
        first: State,
        by: &str,
        inputs: [&str; N],
        step: impl ClosureStep<State, Args, N>,
    ) -> Stream
    where
        State: ScanState<CELLS>,
        Args: ClosureInputs<N>,
    {
        let between = |at: usize| StreamPart::text(if at > 0 { ", " } else { "" });
        let mut parts = vec![StreamPart::text("scan ")];
        for (at, (name, value)) in names.iter().zip(first.values()).enumerate() {
            parts.extend([between(at), StreamPart::Text(format!("{name} = "))]);
            parts.push(StreamPart::start(name, value));
        }
        parts.push(StreamPart::Text(format!(" by {by}{} => (", end_of_comment(by))));
        let called = format!("{}, {}", names.join(", "), Args::arguments(&inputs));
        for (at, function) in Function::of_step(step).into_iter().enumerate() {
            parts.extend([between(at), StreamPart::text("coalesce(")]);
            parts.push(StreamPart::Call(function, called.clone()));
            parts.push(StreamPart::Text(format!(", {})", names[at])));
        }
        parts.push(StreamPart::text(")"));
        self.then(parts)
    }

    /// Pairs each row with those of another stream that have the same values under the names in
    /// `by`, which also says how far apart they may be: `"conn within 5s"`.
    ///
    /// ```
    /// # use weir_stream::packets;
    /// let asked = packets().query("where tcp.syn and not tcp.ack | project conn, asked = ts");
    /// let mut capture = weir_stream::open("../../fixtures/web.pcap")?;
    /// let (rows, _) = packets()
    ///     .query("where tcp.syn and tcp.ack | project ts, conn")
    ///     .join(&asked, "conn within -3s..0s")
    ///     .query("project after = ts - asked")
    ///     .run(&mut capture)
    ///     .collect::<(jiff::SignedDuration,)>()?;
    /// # Ok::<(), weir_stream::StreamError>(())
    /// ```
    #[must_use]
    pub fn join(self, other: &Stream, by: &str) -> Stream {
        self.join_kind("", other, by)
    }

    /// Rows that have no such row in another stream.
    #[must_use]
    pub fn join_anti(self, other: &Stream, by: &str) -> Stream {
        self.join_kind("anti ", other, by)
    }

    /// The same as [`Stream::join`], with rows that have no such row in the other: their columns of
    /// it are absent.
    #[must_use]
    pub fn join_left(self, other: &Stream, by: &str) -> Stream {
        self.join_kind("left ", other, by)
    }

    fn join_kind(self, kind: &str, other: &Stream, by: &str) -> Stream {
        let name = StreamPart::Stream(Arc::new(other.clone()));
        let by = StreamPart::Text(format!(" by {by}"));
        self.then([StreamPart::Text(format!("join {kind}")), name, by])
    }

    /// The rows of this stream and of another, which have the same columns.
    ///
    /// ```
    /// # use weir_stream::packets;
    /// let of = |port| packets().query(&format!("where dport == {port} | project ts, len"));
    /// let mut capture = weir_stream::open("../../fixtures/web.pcap")?;
    /// let (rows, _) = of(80)
    ///     .union(&of(443))
    ///     .query("summarize n = count()")
    ///     .run(&mut capture)
    ///     .collect::<(i64,)>()?;
    /// # Ok::<(), weir_stream::StreamError>(())
    /// ```
    #[must_use]
    pub fn union(self, other: &Stream) -> Stream {
        let name = StreamPart::Stream(Arc::new(other.clone()));
        self.then([StreamPart::text("union "), name])
    }

    /// Lets the program that this stream is part of call a function by its name.
    #[must_use]
    pub fn uses(mut self, function: &Function) -> Stream {
        self.parts.push(StreamPart::Uses(function.clone()));
        self
    }

    fn call<Args: ClosureInputs<N>, Out: RowCell, const N: usize>(
        self,
        before: String,
        inputs: [&str; N],
        closure: impl Closure<Args, Out, N>,
    ) -> Stream {
        let arguments = Args::arguments(&inputs);
        let call = StreamPart::Call(Function::of_closure(None, closure), arguments);
        self.then([StreamPart::Text(before), call])
    }

    fn then(mut self, parts: impl IntoIterator<Item = StreamPart>) -> Stream {
        self.parts.push(StreamPart::text("\n| "));
        self.parts.extend(parts);
        self
    }
}

/// Where the last statement of a text in the canonical layout starts: each begins a line, where
/// other lines begin with a blank, a bar or a bracket.
fn last_statement(text: &str) -> usize {
    let (mut at, mut last) = (0, 0);
    for line in text.split_inclusive('\n') {
        if !line.starts_with([' ', '|', '#', '\n', ')', '}']) {
            last = at;
        }
        at += line.len();
    }
    last
}

/// A line feed after a text of somebody's own that may end in a comment.
pub(crate) fn end_of_comment(text: &str) -> &'static str {
    if text.contains('#') { "\n" } else { "" }
}
