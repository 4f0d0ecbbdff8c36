//! Whether `weir top` opens its screen.

use crate::args::{OffloadMode, RunOptions};
use crate::term::Term;
use weir_top::{Look, Terminal};

/// The query that a screen takes the place of.
pub(crate) const QUERY: &str = "top";

/// The part of the query's help about the screen.
pub(crate) const HELP: &str = "\
On a terminal, without -p, -o and other options about rows, a screen opens instead: rates, losses,
tables of hosts, pairs, flows, ports, protocols, names and keys of your own, and the rows of other
queries. `?` there lists its keys.";

/// A terminal that a screen can be drawn on.
pub(crate) struct ScreenTerminal {
    pub(crate) terminal: Terminal,
    pub(crate) look: Look,
}

/// The terminal for the screen, if it is to be opened: rows are not asked for, and there is a
/// terminal.
pub(crate) fn screen(options: &RunOptions, term: &Term) -> Option<ScreenTerminal> {
    if asks_for_rows(options) || options.test || options.live.list_interfaces {
        return None;
    }
    let look = term.look(options.rules.time_zone)?;
    let terminal = Terminal::open().ok()?;
    Some(ScreenTerminal { terminal, look })
}

/// Whether an option says something about the query `top` or its rows.
pub(crate) fn asks_for_rows(options: &RunOptions) -> bool {
    options.rows.output.is_some()
        || options.rows.go_to_files()
        || options.rows.export.is_some()
        || options.plot.is_some()
        || !options.params.is_empty()
        || options.site.site.is_some()
        || !options.rows.suppress.is_empty()
        || options.rows.deliver.is_asked_for()
        || options.later.control.is_some()
        || options.http.is_asked_for()
        || options.publish.publish.is_some()
        || options.write.to.is_some()
        || options.lookback.ring.is_some()
        || options.stats.is_some()
        || options.line_buffered
        || options.slow_sink.is_some()
        || options.live.offload != OffloadMode::Off
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::LibraryArgs;
    use clap::Parser as _;

    #[test]
    fn options_about_rows_mean_the_query() {
        let check = |line: &str, expected| {
            let args = LibraryArgs::try_parse_from(line.split(' ')).expect("parses");
            assert_eq!(asks_for_rows(&args.options), expected, "{line}");
        };
        for line in [
            "top -r x",
            "top -i eth0 -j 2 -q tcp port 80",
            "top -r x -c 5 --lateness 1s",
            "top -r x --flow-key vlan",
            "top -r x --time-zone Europe/Rome",
        ] {
            check(line, false);
        }
        for line in [
            "top -r x -o table",
            "top -r x -p n=3",
            "top -i x --stats 1",
            "top -i x --control",
            "top -r x --publish y",
            "top -r x --alert-config y",
        ] {
            check(line, true);
        }
    }
}
