//! Streams: stages of the language, of which closures are parts.

use crate::cell::RowCell;
use crate::closure::{Closure, ClosureStep, ScanState};
use crate::function::Function;
use crate::program::StreamProgram;
use crate::run::StreamRun;
use std::sync::Arc;
use weir_packet::source::Source;
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
}

impl StreamPart {
    pub(crate) fn text(text: impl Into<String>) -> StreamPart {
        StreamPart::Text(text.into())
    }

    /// A value, as the language writes it, or else by a function.
    fn value(value: Value) -> StreamPart {
        match value {
            Value::Bool(_) | Value::Float(_) => StreamPart::Text(value.to_string()),
            Value::Int(n) if n > i64::MIN => StreamPart::Text(value.to_string()),
            value if value.exists() => {
                StreamPart::Call(Function::of_constant(value), String::new())
            }
            absent => StreamPart::Text(absent.to_string()),
        }
    }
}

impl Stream {
    /// A query of the language as the start of a stream: its `param` and `let` statements, and its
    /// last pipeline. Files of the library are such queries.
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
        let (head, last) = split(text);
        Stream { parts: vec![StreamPart::Head(head), StreamPart::Text(last)] }
    }

    /// The pipeline that a `let` of a query calls so. The last pipeline, if it has no name, is left
    /// out; others whose rows nothing takes run beside it.
    ///
    /// ```
    /// # use weir_stream::Stream;
    /// let text = "let syns = packets | where tcp.syn\nlet fins = packets | where tcp.fin";
    /// assert!(Stream::of_named(text, "fins").to_string().ends_with("| where tcp.fin\n\nfins\n"));
    /// ```
    pub fn of_named(text: &str, name: &str) -> Stream {
        let (head, _) = split(text);
        Stream { parts: vec![StreamPart::Head(head), StreamPart::text(name)] }
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
    /// of them have values, those apart for which it takes an `Option`.
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
    pub fn filter_by<Args, const N: usize>(
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
    pub fn extend_by<Args, Out: RowCell, const N: usize>(
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
    /// state as a tuple; it is called once for each of its cells.
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
        State: ScanState,
    {
        fn arguments<S, A, const N: usize, F: ClosureStep<S, A, N>>(
            _: &F,
            of: &[&str; N],
        ) -> String {
            F::arguments(of)
        }
        let mut parts = vec![StreamPart::text("scan ")];
        for (at, (name, value)) in names.iter().zip(first.values()).enumerate() {
            let between = if at > 0 { ", " } else { "" };
            parts.extend([
                StreamPart::Text(format!("{between}{name} = ")),
                StreamPart::value(value),
            ]);
        }
        parts.push(StreamPart::Text(format!(" by {by} => (")));
        let called = format!("{}, {}", names.join(", "), arguments(&step, &inputs));
        for (at, function) in Function::of_step(step).into_iter().enumerate() {
            let between = if at > 0 { ", " } else { "" };
            let call = StreamPart::Call(function, called.clone());
            parts.extend([StreamPart::text(between), call]);
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

    /// The rows of this stream and of others that have the same columns.
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

    /// Lets this stream, and those that it is joined with, call a function by its name.
    #[must_use]
    pub fn uses(mut self, function: &Function) -> Stream {
        self.parts.push(StreamPart::Uses(function.clone()));
        self
    }

    /// Runs the stream alone over a source.
    pub fn run(self, source: &mut dyn Source) -> StreamRun<'_> {
        StreamProgram::default().alone(self).run(source)
    }

    fn call<Args, Out: RowCell, const N: usize, F: Closure<Args, Out, N>>(
        self,
        before: String,
        inputs: [&str; N],
        closure: F,
    ) -> Stream {
        let arguments = F::arguments(&inputs);
        let call = StreamPart::Call(Function::of_closure(None, closure), arguments);
        self.then([StreamPart::Text(before), call])
    }

    fn then(mut self, parts: impl IntoIterator<Item = StreamPart>) -> Stream {
        self.parts.push(StreamPart::text("\n| "));
        self.parts.extend(parts);
        self
    }
}

/// The text of the query that the stream is alone.
impl std::fmt::Display for Stream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&StreamProgram::default().alone(self.clone()).text())
    }
}

/// The statements of a query before its last pipeline, and that pipeline, which may be none. In the
/// canonical layout each statement begins a line, and other lines begin with a blank or a bar. A
/// text with mistakes stays as it is, for what compiles it to say so.
fn split(text: &str) -> (String, String) {
    let Ok(text) = weir_lang::format(text) else { return (String::new(), text.to_owned()) };
    let mut starts = 0;
    for line in text.split_inclusive('\n') {
        let goes_on = line.starts_with([' ', '|', '#', '\n', ')']);
        if !goes_on && !line.starts_with("let ") && !line.starts_with("param ") {
            break;
        }
        starts += line.len();
    }
    let (head, last) = text.split_at(starts);
    (head.trim_end().to_owned(), last.trim_end().to_owned())
}
