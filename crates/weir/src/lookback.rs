//! Rows that ask for packets around them: what `capture` in a query is made of here.

use crate::args::LookbackArgs;
use crate::exit::usage;
use anyhow::Context as _;
use std::io;
use weir_capture::limits::LOOKBACK_BYTES;
use weir_capture::lookback::{Asking, Options, Wanted, WhenFull};
use weir_engine::graph::Lower;
use weir_engine::rows::{Output, Rows, Sink};
use weir_packet::fields::FieldId;
use weir_plan::{Capture, Program};

/// What is kept for the rows of a program; `None` where none asks for packets. A wire does not wait
/// for files.
pub(crate) fn options(
    program: &Program,
    args: &LookbackArgs,
    is_live: bool,
) -> anyhow::Result<Option<Options>> {
    let keys = keys(program);
    if keys.is_empty() {
        return match args.ring {
            Some(_) => Err(usage(
                "--ring keeps packets for `capture`, and the query has none: end it with \
                 `| capture 30s by ip.src`, say",
            )),
            None => Ok(None),
        };
    }
    let folder = args.capture_dir.clone();
    std::fs::create_dir_all(&folder)
        .with_context(|| format!("--capture-dir {}", folder.display()))?;
    let bytes = args.ring.unwrap_or(LOOKBACK_BYTES);
    let size = format!("--ring {bytes}: so much memory is not to be had");
    Vec::<u8>::new().try_reserve_exact(bytes).map_err(|_| usage(size))?;
    let mut options = Options { folder, ..Options::new(bytes, keys) };
    options.when_full = if is_live { WhenFull::LeaveOut } else { WhenFull::Wait };
    options.files_max = args.capture_files;
    options.file_bytes_max = args.capture_size.unwrap_or(options.file_bytes_max);
    Ok(Some(options))
}

/// The keys that rows ask by, each once.
fn keys(program: &Program) -> Vec<Vec<FieldId>> {
    let mut keys: Vec<Vec<FieldId>> = Vec::new();
    for (_, capture) in program.captures() {
        let fields = fields(capture);
        if !keys.contains(&fields) {
            keys.push(fields);
        }
    }
    keys
}

fn fields(capture: &Capture) -> Vec<FieldId> {
    capture.keys.iter().map(|(id, _)| *id).collect()
}

/// Asks for packets around rows on their way to a sink.
pub(crate) struct Asks<'a> {
    sink: Box<dyn Sink + 'a>,
    asking: Asking,
    /// What rows of some outputs ask for, and the number of the key.
    known: Vec<(Output, Capture, usize)>,
    /// By output which of these it is.
    asks: Vec<Option<usize>>,
}

impl<'a> Asks<'a> {
    /// On the way to `sink`.
    pub(crate) fn new(program: &Program, asking: Asking, sink: Box<dyn Sink + 'a>) -> Asks<'a> {
        let (keys, outputs) = (keys(program), Lower::outputs(program));
        let known = program.captures().map(|(output, capture)| {
            let fields = fields(capture);
            let by = keys.iter().position(|key| *key == fields).expect("one of all keys");
            (outputs[output].clone(), capture.clone(), by)
        });
        Asks { sink, asking, known: known.collect(), asks: Vec::new() }
    }
}

/// What a row asks for; nothing where it has no time.
fn wanted(capture: &Capture, by: usize, rows: &Rows, i: usize) -> Option<Wanted> {
    let value = |c: usize| rows.columns[c].present.has(i).then(|| rows.columns[c].raw(i));
    let name = rows.arena.get(value(capture.output)? as u64);
    let start = value(capture.start)? as i64;
    let time = if rows.time.present.has(i) { rows.time.word()[i] as i64 } else { start };
    let end = start.saturating_add((capture.over_ns - 1).max(0)).max(time);
    Some(Wanted {
        name: String::from_utf8_lossy(name).into_owned(),
        from: start.min(time).saturating_sub(capture.before_ns),
        to: end.saturating_add(capture.after_ns),
        by,
        key: capture.keys.iter().map(|(_, c)| value(*c)).collect(),
    })
}

impl Sink for Asks<'_> {
    fn open(&mut self, outputs: &[Output]) -> io::Result<()> {
        // Programs that come later ask for nothing, and others keep their rows.
        let place = |output: &Output| self.known.iter().position(|(known, ..)| known == output);
        self.asks = outputs.iter().map(place).collect();
        self.sink.open(outputs)
    }

    fn rows(&mut self, output: usize, rows: &Rows) -> io::Result<()> {
        if let Some(&Some(place)) = self.asks.get(output) {
            let (_, capture, by) = &self.known[place];
            let all = (0..rows.len).filter_map(|i| wanted(capture, *by, rows, i));
            all.for_each(|wanted| self.asking.ask(wanted));
        }
        self.sink.rows(output, rows)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.sink.flush()
    }

    fn finish(&mut self) -> io::Result<()> {
        self.sink.finish()
    }

    fn refused(&self) -> u64 {
        self.sink.refused()
    }
}
