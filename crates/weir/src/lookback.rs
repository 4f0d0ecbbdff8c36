//! Rows that ask for the packets around them: `capture` in a query.

use crate::args::LookbackArgs;
use crate::exit::usage;
use crate::observe::Observer;
use anyhow::Context as _;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use weir_base::full::WhenFull;
use weir_capture::limits::LOOKBACK_BYTES;
use weir_capture::lookback::{Asking, LookbackOptions, Wanted};
use weir_capture::write::Made;
use weir_engine::rows::{Output, Rows};
use weir_packet::fields::FieldId;
use weir_plan::{Capture, Program};

/// The use of the kept packets.
#[derive(Clone, Copy)]
pub(crate) struct Use {
    /// Whether programs that are added later may ask for them.
    pub(crate) later: bool,
    /// Whether they come from an interface, which does not wait for the disk.
    pub(crate) is_live: bool,
}

/// How many packets to keep for the rows of a program, and for those of later programs if `--ring`
/// says so; `None` if no row asks for packets. The folder of the files is `made`.
pub(crate) fn options(
    program: &Program,
    args: &LookbackArgs,
    Use { later, is_live }: Use,
    made: &mut Made,
) -> anyhow::Result<Option<LookbackOptions>> {
    let (later, none) = (later && args.ring.is_some(), args.ring == Some(0));
    if none && program.captures().next().is_some() {
        return Err(usage(
            "--ring 0 keeps no packets, and the query has `capture`, which needs them",
        ));
    }
    if none {
        return Ok(None);
    }
    if program.captures().next().is_none() && !later {
        return match args.ring {
            Some(_) => Err(usage(
                "--ring keeps packets for `capture`, and the query has no `capture`: end it with \
                 `| capture 30s by ip.src`, say, or add --control for queries that are added later",
            )),
            None => Ok(None),
        };
    }
    let folder = args.capture_dir.clone().unwrap_or_else(|| PathBuf::from("."));
    made.folder(&folder).with_context(|| format!("--capture-dir {}", folder.display()))?;
    let bytes = args.ring.unwrap_or(LOOKBACK_BYTES);
    let size = format!("--ring {bytes}: the system does not give that much memory");
    Vec::<u8>::new().try_reserve_exact(bytes).map_err(|_| usage(size))?;
    let mut options = LookbackOptions { folder, ..LookbackOptions::new(bytes) };
    options.when_full = if is_live { WhenFull::LeaveOut } else { WhenFull::Wait };
    options.files_max = args.capture_files;
    options.file_bytes_max = args.capture_size.unwrap_or(options.file_bytes_max);
    Ok(Some(options))
}

/// The packets that the rows of an output ask for.
struct OutputAsks {
    capture: Capture,
    /// The fields of the key.
    by: Arc<[FieldId]>,
}

/// Asks for packets around rows.
pub(crate) struct Asks {
    asking: Asking,
    /// The packets that the rows of each output ask for, if they do.
    asks: Vec<Option<OutputAsks>>,
}

impl Asks {
    pub(crate) fn new(asking: Asking) -> Asks {
        Asks { asking, asks: Vec::new() }
    }
}

/// The packets that a row asks for; none where it has no time.
fn wanted(asks: &OutputAsks, rows: &Rows, i: usize) -> Option<Wanted> {
    let OutputAsks { capture, by } = asks;
    let value = |c: usize| rows.columns[c].present.has(i).then(|| rows.columns[c].raw(i));
    let name = rows.arena.get(value(capture.output)? as u64);
    let start = value(capture.start)? as i64;
    let time = if rows.time.present.has(i) { rows.time.word()[i] as i64 } else { start };
    let end = start.saturating_add((capture.over_ns - 1).max(0)).max(time);
    Some(Wanted {
        name: String::from_utf8_lossy(name).into_owned(),
        from: start.min(time).saturating_sub(capture.before_ns),
        to: end.saturating_add(capture.after_ns),
        by: Arc::clone(by),
        key: capture.keys.iter().map(|(_, c)| value(*c)).collect(),
    })
}

impl Observer for Asks {
    /// Programs that come later ask as well; what was asked for goes on.
    fn open(&mut self, outputs: &[Output]) -> io::Result<()> {
        let asks = |output: &Output| {
            let capture = output.capture.clone()?;
            let by = capture.keys.iter().map(|(id, _)| *id).collect();
            Some(OutputAsks { capture, by })
        };
        self.asks = outputs.iter().map(asks).collect();
        Ok(())
    }

    fn rows(&mut self, output: usize, rows: &Rows) -> io::Result<()> {
        if let Some(Some(asks)) = self.asks.get(output) {
            let all = (0..rows.len).filter_map(|i| wanted(asks, rows, i));
            all.for_each(|wanted| self.asking.ask(wanted));
        }
        Ok(())
    }
}
