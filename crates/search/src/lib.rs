//! Packets that have passed, found again for whoever looks at a row: in the ring of a run over
//! interfaces, or in its captures.

#![forbid(unsafe_code)]

mod decode;
mod search;
mod values;

use self::search::{Bounds, FoundFrames, Search};
use serde_json::{Map, Value as Json, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use weir_capture::Captures;
use weir_capture::lookback::HeldFrames;
use weir_control::Answers;
use weir_engine::reading::Reading;
use weir_engine::rows::Output;
use weir_http::{
    FindPackets, NoPackets, PacketsAnswer, PacketsForm, PacketsQuestion, WhichPackets,
};
use weir_packet::interface::InterfaceNames;
use weir_packet::source::{Source, SourceError};
use weir_packet::time::{parse_rfc3339, rfc3339};
use weir_packet::walk::Headers;
use weir_plan::together::side_by_side;
use weir_plan::{Program, SourceKind, Stage, Value, print};

/// Searches at the same time: each reads what others have to wait for.
const SEARCHES_MAX: usize = 2;

/// Where packets that have passed are found.
pub enum Earlier {
    /// In the ring of frames.
    Ring(HeldFrames),
    /// In captures, which are read again.
    Captures(ReadAgain),
}

/// Captures, and how they are read.
pub struct ReadAgain {
    /// Their names.
    pub captures: Vec<String>,
    /// How they are opened.
    pub options: weir_capture::Options,
    /// As many packets as the run takes.
    pub count: Option<u64>,
    /// Which headers fields are of.
    pub headers: Headers,
    /// Whether later fragments get the ports of their first one.
    pub fragments: bool,
}

impl ReadAgain {
    fn start(&self) -> Result<Box<dyn Source>, SourceError> {
        let source = Captures::new(self.captures.clone(), &self.options)?.start()?;
        let source: Box<dyn Source> = match self.count {
            Some(n) => Box::new(weir_capture::wrapped::Take::new(source, n)),
            None => source,
        };
        let source = Reading::new(source).headers(self.headers);
        Ok(Box::new(if self.fragments { source.fragments() } else { source }))
    }
}

/// The packets that are looked for.
pub struct Sought {
    /// The stages that keep the packets.
    stages: Vec<Stage>,
    /// They are not before this time, ...
    from: Option<i64>,
    /// ... and before this one.
    until: Option<i64>,
    /// Stages that were not followed back.
    passed_over: Vec<&'static str>,
}

/// Finds packets for clients.
pub fn finder(earlier: Earlier, answers: Arc<Answers>) -> FindPackets {
    let searches = AtomicUsize::new(0);
    Box::new(move |question| {
        let sought = sought(&question, &answers)?;
        let Some(_search) = SearchTurn::take(&searches) else {
            let reason = format!("{SEARCHES_MAX} clients look for packets already; try again");
            return Err(NoPackets::Busy(reason));
        };
        let bounds = Bounds::of(question.form, question.limit);
        let found = look(&earlier, &sought, bounds, &Arc::default())?;
        Ok(found.answer(&earlier, &sought, question.form))
    })
}

/// Finds packets for a screen: of those in a ring the latest, of those in captures the first,
/// decoded, as the API answers them. `stop` ends the search early.
pub fn list_of(
    sought: &Sought,
    earlier: &Earlier,
    stop: &Arc<AtomicBool>,
) -> Result<Json, NoPackets> {
    let bounds = Bounds::of_list(matches!(earlier, Earlier::Ring(_)));
    let found = look(earlier, sought, bounds, stop)?;
    Ok(found.decoded(earlier, sought))
}

/// Packets as a file.
pub struct FoundFile {
    /// As pcapng.
    pub bytes: Vec<u8>,
    /// How many there are.
    pub packets: usize,
    /// The time of the first, if there is one.
    pub first: Option<i64>,
    /// Why some may be missing.
    pub notes: Vec<&'static str>,
}

/// Packets as a file, as many as the API gives: of those in a ring the latest, of those in captures
/// the first. `stop` ends the search early.
pub fn file_of(
    sought: &Sought,
    earlier: &Earlier,
    stop: &Arc<AtomicBool>,
) -> Result<FoundFile, NoPackets> {
    let bounds = Bounds::of_file(matches!(earlier, Earlier::Ring(_)));
    let found = look(earlier, sought, bounds, stop)?;
    let frames = &found.frames.frames;
    let about = answer(earlier, sought, &found.frames, Vec::new());
    let note = |lack| match lack {
        "more" => "there are more than a file takes",
        "cut_short" => "the search took too long, and was ended",
        "gone" => "earlier ones are gone from memory",
        _ => "what they come from could not be read to its end",
    };
    Ok(FoundFile {
        bytes: found.pcapng(),
        packets: frames.len(),
        first: frames.first().map(|(sent, _)| sent.ts),
        notes: lacks(&about).into_iter().map(note).collect(),
    })
}

/// One of the searches at a time.
struct SearchTurn<'a>(&'a AtomicUsize);

impl<'a> SearchTurn<'a> {
    fn take(searches: &'a AtomicUsize) -> Option<SearchTurn<'a>> {
        let before = searches.fetch_add(1, Ordering::Relaxed);
        let turn = SearchTurn(searches);
        (before < SEARCHES_MAX).then_some(turn)
    }
}

impl Drop for SearchTurn<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The packets that a question asks for, as stages over packets.
fn sought(question: &PacketsQuestion, answers: &Answers) -> Result<Sought, NoPackets> {
    let mut sought = match &question.which {
        WhichPackets::Condition(text) => of_condition(text)?,
        WhichPackets::Row { program, output, row } => {
            let Some(shown) = answers.program(program) else {
                return Err(NoPackets::Unknown(format!("no program is called {program}")));
            };
            of_row(program, &shown.program, output.as_deref(), row)?
        }
    };
    let time = |text: &Option<String>| match text {
        None => Ok(None),
        Some(text) => parse_rfc3339(text).map(Some).ok_or_else(|| {
            let reason = format!("{text}: not a time such as 2026-11-21T05:50:53.227Z");
            NoPackets::Wrong(reason, String::new())
        }),
    };
    let (from, until) = (time(&question.from)?, time(&question.until)?);
    sought.from = sought.from.max(from);
    sought.until = match (sought.until, until) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    };
    Ok(sought)
}

/// The packets that meet a condition.
pub fn of_condition(text: &str) -> Result<Sought, NoPackets> {
    let wrong = |text| NoPackets::Wrong("the condition has errors".to_owned(), text);
    let stages = search::condition(text).map_err(wrong)?;
    Ok(Sought { stages, from: None, until: None, passed_over: Vec::new() })
}

/// The packets of a row of a program.
fn of_row(
    name: &str,
    program: &Arc<Program>,
    output: Option<&str>,
    row: &Map<String, Json>,
) -> Result<Sought, NoPackets> {
    let together = alone(name, program)?;
    let outputs = Output::of(&together);
    let output = output.or_else(|| row.get("_pipeline").and_then(Json::as_str));
    let at = match output {
        Some(wanted) => outputs.iter().position(|o| o.name.as_deref().unwrap_or(name) == wanted),
        None => (outputs.len() == 1).then_some(0),
    };
    let Some(at) = at else {
        let reason = match output {
            Some(output) => format!("{name} has no output {output}"),
            None => format!("{name} has {} outputs: say which the row is of", outputs.len()),
        };
        return Err(NoPackets::Unknown(reason));
    };
    let columns = &outputs[at].schema.columns;
    let is_known = |name: &str| name == "_pipeline" || columns.iter().any(|c| c.name == name);
    if let Some(other) = row.keys().find(|name| !is_known(name)) {
        let reason = format!("the row: {name} has no column {other} there");
        return Err(NoPackets::Wrong(reason, String::new()));
    }
    let mut values = Vec::new();
    for column in columns {
        let value = row.get(&column.name).map(|cell| values::value(cell, &column.ty));
        let known = value.transpose().map_err(|()| {
            let reason = format!("the row: {} is no {}", column.name, column.ty);
            NoPackets::Wrong(reason, String::new())
        })?;
        values.push(known.flatten());
    }
    of_known(&together, at, &values)
}

/// The packets of a row of a program, by the number of its output; all its values are known.
pub fn of_values(
    name: &str,
    program: &Program,
    output: usize,
    values: &[Value],
) -> Result<Sought, NoPackets> {
    let values: Vec<Option<Value>> = values.iter().cloned().map(Some).collect();
    of_known(&alone(name, program)?, output, &values)
}

/// A program over packets, as a run has it.
fn alone(name: &str, program: &Program) -> Result<Program, NoPackets> {
    if program.source != SourceKind::Packets {
        let why = "its rows are of flow records, and these are made of no packets";
        return Err(NoPackets::Impossible(format!("{name}: {why}")));
    }
    let alone = vec![(name.to_owned(), program.clone())];
    side_by_side(alone).map_err(|e| NoPackets::Impossible(e.to_string()))
}

/// The packets of a row of an output, of whose columns some values may not be known.
fn of_known(
    program: &Program,
    output: usize,
    values: &[Option<Value>],
) -> Result<Sought, NoPackets> {
    let printed = program.pipelines.iter().enumerate().filter(|(_, p)| p.printed);
    let pipeline = printed.map(|(i, _)| i).nth(output).unwrap_or(0);
    let found = program.packets_of(pipeline, values);
    let found = found.map_err(|why| NoPackets::Impossible(why.to_string()))?;
    let weir_plan::origin::RowPackets { stages, from, until, passed_over, .. } = found;
    Ok(Sought { stages, from, until, passed_over })
}

/// Packets that were found, and what it takes to read them.
struct ReadablePackets {
    frames: FoundFrames,
    names: InterfaceNames,
    headers: Headers,
}

/// Looks for packets.
fn look(
    earlier: &Earlier,
    sought: &Sought,
    bounds: Bounds,
    stop: &Arc<AtomicBool>,
) -> Result<ReadablePackets, NoPackets> {
    let last = sought.until.map_or(i64::MAX, |until| until.saturating_sub(1));
    let (mut source, names, headers): (Box<dyn Source>, InterfaceNames, Headers) = match earlier {
        Earlier::Ring(held) => {
            // Folds see what came before, too.
            let folds = sought.stages.iter().any(Stage::holds_state);
            let first = sought.from.filter(|_| !folds).unwrap_or(i64::MIN);
            (Box::new(held.read(first, last)), held.names(), held.headers())
        }
        Earlier::Captures(again) => {
            let source = again.start().map_err(|e| NoPackets::Impossible(e.to_string()))?;
            (source, again.options.interfaces.clone(), again.headers)
        }
    };
    let search = Search::new(&sought.stages, (sought.from, sought.until));
    Ok(ReadablePackets { frames: search.run(&mut *source, bounds, stop), names, headers })
}

impl ReadablePackets {
    /// As a client wants them.
    fn answer(&self, earlier: &Earlier, sought: &Sought, form: PacketsForm) -> PacketsAnswer {
        if form == PacketsForm::Json {
            return PacketsAnswer::Decoded(self.decoded(earlier, sought));
        }
        let bytes = self.pcapng();
        let about = answer(earlier, sought, &self.frames, Vec::new());
        PacketsAnswer::Capture { bytes, lacks: lacks(&about) }
    }

    /// As a file.
    fn pcapng(&self) -> Vec<u8> {
        let frames = self.frames.frames.iter().map(|(sent, bytes)| (*sent, &**bytes));
        weir_capture::write::to_pcapng(frames, &self.names)
    }

    /// Decoded.
    fn decoded(&self, earlier: &Earlier, sought: &Sought) -> Json {
        let packets = decode::packets(&self.frames.frames, &self.names, self.headers);
        answer(earlier, sought, &self.frames, packets)
    }
}

/// Why a file may lack packets, as the JSON of the same answer says it.
fn lacks(about: &Json) -> Vec<&'static str> {
    let is_set = |name: &&str| about[*name] == true || about[*name].is_string();
    ["more", "cut_short", "gone", "error"].into_iter().filter(is_set).collect()
}

/// Packets, and what is known about them, as JSON.
fn answer(earlier: &Earlier, sought: &Sought, found: &FoundFrames, packets: Vec<Json>) -> Json {
    let mut value = json!({
        "packets": packets,
        "more": found.more,
        "query": texts(&sought.stages),
        "passed_over": sought.passed_over,
        "source": match earlier {
            Earlier::Ring(_) => "ring",
            Earlier::Captures(_) => "captures",
        },
        "gone": false,
        "cut_short": found.cut_short,
    });
    let mut put = |name: &str, time: Option<i64>| {
        if let Some(time) = time {
            value[name] = rfc3339(time).into();
        }
    };
    put("from", sought.from);
    put("until", sought.until);
    if let Earlier::Ring(held) = earlier {
        // After the search: what was forgotten meanwhile may have been missed.
        let span = held.span();
        put("kept_from", span.kept.map(|(first, _)| first));
        put("kept_to", span.kept.map(|(_, last)| last));
        let gone = |latest| sought.from.is_none_or(|from| from <= latest);
        value["gone"] = span.forgotten.is_some_and(gone).into();
    }
    if let Some(error) = &found.error {
        value["error"] = error.as_str().into();
    }
    value
}

/// Stages over packets as a query writes them.
fn texts(stages: &[Stage]) -> Vec<String> {
    let mut schema = weir_plan::Schema::default();
    let text = |stage: &Stage| {
        let text = print::stage(stage, &schema);
        schema = stage.output(&schema);
        text
    };
    stages.iter().map(text).collect()
}

#[cfg(test)]
mod tests;
