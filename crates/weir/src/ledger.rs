//! The ledger as text for people.

use crate::wire;
use std::cmp::Reverse;
use std::fmt::Write as _;
use weir_capture::lookback::LookbackCounts;
use weir_engine::counters::{EndCounts, Ledger, Traffic};
use weir_engine::fragments::Counts;
use weir_engine::limits::JUMP_NS;
use weir_packet::egress::{Outlet, Refusal, Refused};
use weir_packet::source::KernelCounts;
use weir_packet::unread::{UnreadProtocol, UnreadReason};

/// A line of the ledger.
struct LedgerLine {
    name: &'static str,
    count: u64,
    /// The text after the count.
    text: String,
}

impl LedgerLine {
    fn new(name: &'static str, count: u64, text: impl Into<String>) -> LedgerLine {
        LedgerLine { name, count, text: text.into() }
    }
}

/// The ledger, a line for each number that matters; each loss names what would help.
pub(crate) fn render(ledger: &Ledger) -> String {
    rendered(ledger, " packet")
}

/// The same of a run over flow records.
pub(crate) fn render_records(ledger: &Ledger) -> String {
    rendered(ledger, " flow record")
}

fn rendered(ledger: &Ledger, noun: &str) -> String {
    debug_assert!(ledger.adds_up(), "the ledger does not add up: {ledger:?}");
    let received = plural(ledger.received, noun);
    let mut lines = vec![LedgerLine::new("received", ledger.received, received)];
    if ledger.filtered > 0 {
        lines.push(LedgerLine::new("filtered", ledger.filtered, " by the capture filter"));
    }
    lines.extend(in_kernel(&ledger.kernel));
    lines.push(LedgerLine::new("processed", ledger.processed, kinds(ledger)));
    if ledger.abandoned > 0 {
        lines.push(LedgerLine::new("abandoned", ledger.abandoned, ABANDONED));
    }
    lines.push(LedgerLine::new("rows", ledger.rows, ""));
    lines.extend(ends(ledger));
    let trouble = [
        LedgerLine::new("refused", ledger.refused, REFUSED.after(ledger.refused)),
        LedgerLine::new("unwritten", ledger.unwritten, UNWRITTEN.after(ledger.unwritten)),
        LedgerLine::new("late", ledger.late, late_text(ledger)),
        LedgerLine::new("lagging", ledger.lagging, lagging_text(ledger)),
        LedgerLine::new("disordered", ledger.disordered, DISORDERED),
        LedgerLine::new("wild", ledger.wild, wild()),
        LedgerLine::new("untimed", ledger.untimed, UNTIMED),
        LedgerLine::new("overlong", ledger.overlong, OVERLONG),
        LedgerLine::new("evicted", ledger.evicted, evicted_text(ledger)),
        LedgerLine::new("undefined", ledger.undefined, UNDEFINED),
        LedgerLine::new("unfilled", ledger.unfilled, UNFILLED.after(ledger.unfilled)),
        LedgerLine::new("undecided", ledger.undecided, UNDECIDED.after(ledger.undecided)),
        LedgerLine::new("copies", ledger.copies, COPIES.after(ledger.copies)),
        LedgerLine::new("unfinished", ledger.unfinished, UNFINISHED),
        LedgerLine::new("suppressed", ledger.suppressed, SUPPRESSED.after(ledger.suppressed)),
        LedgerLine::new("unread", ledger.unread.total(), unread_text(ledger)),
        LedgerLine::new("withheld", ledger.ends.withheld, WITHHELD.after(ledger.ends.withheld)),
        LedgerLine::new("untagged", ledger.ends.untagged, UNTAGGED),
    ];
    lines.extend(trouble.into_iter().filter(|line| line.count > 0));

    let width = lines.iter().map(|line| line.count.to_string().len()).max().unwrap_or(0);
    let mut out = String::new();
    for LedgerLine { name, count, text } in lines {
        let _ = writeln!(out, "{name:<10} {count:>width$}{text}");
    }
    out
}

/// A line that says whether the kernel runs its part of the programs.
pub(crate) fn kernel_part(hands_up: bool) -> &'static str {
    match hands_up {
        true => "kernel     hands all packets up: programs have changed\n",
        false => "kernel     runs its part of the programs\n",
    }
}

/// Lines for what a program of the query did in the kernel, if there is one.
fn in_kernel(kernel: &KernelCounts) -> Vec<LedgerLine> {
    let KernelCounts { filtered, counted, wanted, unclear, full, acted } = *kernel;
    let mut up = Vec::new();
    for (n, why) in [(unclear, "it could not read"), (full, "it had no room for")] {
        if n > 0 {
            up.push(format!("{n} {why}"));
        }
    }
    let total = kernel.went_up();
    let rest = match up.is_empty() {
        true => String::new(),
        false => format!(": {wanted} wanted, {}", up.join(", ")),
    };
    let of_all = format!(" by the query, in the kernel; it handed {total} up{rest}");
    let mut lines = Vec::new();
    if kernel.finished() + total > 0 {
        lines.push(LedgerLine::new("filtered", filtered, of_all));
    }
    if counted > 0 {
        lines.push(LedgerLine::new("counted", counted, " by the query, in the kernel"));
    }
    if acted > 0 {
        lines.push(LedgerLine::new("acted", acted, ACTED));
    }
    lines
}

/// A line for each kind of loss; empty if nothing was lost. Losses are printed even with `-q`, and
/// `--fail-on-loss` fails for them.
pub(crate) fn losses(ledger: &Ledger, around_rows: Option<&LookbackCounts>) -> String {
    // Every count is named here, so that a new one must be listed as a loss or not. Absent values,
    // packets with a doubtful time, and packets that the user left out are not losses.
    let Ledger {
        received: _,
        filtered: _,
        kernel: _,
        processed: _,
        cut: _,
        malformed: _,
        disordered: _,
        wild: _,
        untimed: _,
        overlong: _,
        behind: _,
        undefined: _,
        undecided: _,
        copies: _,
        unfinished: _,
        unread: _,
        suppressed: _,
        rows: _,
        shares: _,
        flows: _,
        lost,
        abandoned,
        late,
        lagging,
        evicted,
        unfilled,
        refused,
        unwritten,
        ends,
    } = ledger;
    let mut out = String::new();
    if lost.total() > 0 {
        let _ = writeln!(out, "lost       {}", wire::losses(*lost));
    }
    let counts = [
        ("abandoned", *abandoned, ABANDONED.to_owned()),
        ("refused", *refused, REFUSED.after(*refused)),
        ("unwritten", *unwritten, UNWRITTEN.after(*unwritten)),
        ("late", *late, late_text(ledger)),
        ("lagging", *lagging, lagging_text(ledger)),
        ("evicted", *evicted, evicted_text(ledger)),
        ("unfilled", *unfilled, UNFILLED.after(*unfilled)),
        ("withheld", ends.withheld, WITHHELD.after(ends.withheld)),
    ];
    for (name, n, text) in counts.into_iter().filter(|(_, n, _)| *n > 0) {
        let _ = writeln!(out, "{name:<10} {n}{text}");
    }
    for LedgerLine { name, count, text } in lost_by_outlets(ends).chain(doubtful(ledger)) {
        let _ = writeln!(out, "{name:<10} {count}{text}");
    }
    let missing =
        |c: &&LookbackCounts| c.missed + c.left_out + c.refused + c.existed + c.failed > 0;
    if let Some(around) = around_rows.filter(missing) {
        let _ = writeln!(out, "{}", captures(around));
    }
    out
}

/// The packets that outlets refused and that are lost, a line for each outlet.
fn lost_by_outlets(ends: &EndCounts) -> impl Iterator<Item = LedgerLine> {
    ends.refused.iter().filter_map(|(outlet, refused)| {
        let mut lost = *refused;
        for reason in Refusal::ALL.into_iter().filter(|reason| !reason.is_loss()) {
            (lost.frames[reason as usize], lost.bytes[reason as usize]) = (0, 0);
        }
        (lost.total().0 > 0).then(|| refused_by(outlet, &lost))
    })
}

/// The share of each worker, if there are several, which shows a worker that does most of the work.
pub(crate) fn workers(ledger: &Ledger) -> String {
    let shares = ledger.shares.of_workers();
    if shares.len() < 2 {
        return String::new();
    }
    let sums: Vec<u64> = shares.iter().map(|ways| ways.iter().sum()).collect();
    let (all, several) = (sums.iter().sum::<u64>(), ledger.shares.of_ways().len() > 1);
    let width = sums.iter().map(|n| n.to_string().len()).max().unwrap_or(0);
    let mut out = String::new();
    for (i, (n, ways)) in sums.iter().zip(shares).enumerate() {
        let name = format!("worker {}", i + 1);
        let percent = if all > 0 { *n as f64 * 100.0 / all as f64 } else { 0.0 };
        let _ = write!(out, "{name:<10} {n:>width$} of the packets, {percent:.0} %");
        if several {
            let ways: Vec<String> = ways.iter().map(u64::to_string).collect();
            let _ = write!(out, ": {} in the ways they are spread", ways.join(" + "));
        }
        out.push('\n');
    }
    out
}

/// Said of packets around rows.
const MISSED: &str = " left out, which the disk did not take in time";

/// The line about packets around rows.
pub(crate) fn captures(captures: &LookbackCounts) -> String {
    let LookbackCounts { files, frames, short, full, left_out, missed, .. } = captures;
    let LookbackCounts { refused, existed, failed, error, .. } = captures;
    let no_reason = || "no reason given".to_owned();
    let reason = error.as_ref().map_or_else(no_reason, ToString::to_string);
    let mut parts = vec![format!(
        "{frames}{} in {files}{}",
        plural(*frames, " packet"),
        plural(*files, " file")
    )];
    let more = [
        (*short, format!("{short} may lack packets from the beginning: --ring keeps more")),
        (*full, format!("{full} full, which lack {left_out}{}", plural(*left_out, " packet"))),
        (*missed, format!("{missed}{MISSED}")),
        (*refused, format!("{refused} not begun: too many, or too many at once")),
        (*existed, format!("{existed} not begun: there was a file of that name")),
        (*failed, format!("{failed} failed ({reason})")),
    ];
    parts.extend(more.into_iter().filter(|(n, _)| *n > 0).map(|(_, text)| text));
    format!("captured   {}", parts.join("; "))
}

/// The line about later fragments, if they get the ports of the first.
pub(crate) fn fragments(counts: &Counts) -> String {
    let Counts { found, missed, evicted } = *counts;
    let later = found + missed;
    let mut line = format!("fragments  {found} of {later} later ones found their ports");
    if missed > 0 {
        line += "; the others came before their first or a minute after it, or it has none";
    }
    if evicted > 0 {
        let were = if evicted == 1 { "datagram was" } else { "datagrams were" };
        let _ = write!(line, "; {evicted} {were} forgotten for want of room");
    }
    line
}

/// A line for each output of packets.
fn ends(ledger: &Ledger) -> Vec<LedgerLine> {
    let text = |n: Traffic, to: &str| {
        let noun = plural(n.frames, " packet");
        format!("{noun}{to}, {}{}", n.bytes, plural(n.bytes, " byte"))
    };
    let mut lines = Vec::new();
    for outlet in ledger.ends.outlets.keys() {
        let n = ledger.ends.sent(outlet);
        lines.push(match outlet {
            Outlet::Pass => LedgerLine::new("passed", n.frames, text(n, "")),
            Outlet::Named(name) => {
                LedgerLine::new("sent", n.frames, text(n, &format!(" to {name}")))
            }
        });
    }
    lines.extend(ledger.ends.refused.iter().map(|(outlet, refused)| refused_by(outlet, refused)));
    lines.extend(doubtful(ledger));
    if ledger.ends.moved > 0 {
        lines.push(LedgerLine::new("moved", ledger.ends.moved, MOVED));
    }
    let dropped = ledger.ends.dropped;
    if dropped.frames > 0 {
        lines.push(LedgerLine::new("dropped", dropped.frames, text(dropped, "")));
    }
    lines
}

/// Frames that an outlet may have dropped.
fn doubtful(ledger: &Ledger) -> impl Iterator<Item = LedgerLine> {
    ledger.ends.doubtful.iter().map(|(outlet, traffic)| {
        let to = match outlet {
            Outlet::Pass => " of those passed".to_owned(),
            Outlet::Named(name) => format!(" of those sent to {name}"),
        };
        LedgerLine::new("doubtful", traffic.frames, format!("{to}, at most: {DOUBTFUL}"))
    })
}

/// Frames that an outlet did not take.
fn refused_by(outlet: &Outlet, refused: &Refused) -> LedgerLine {
    let by = match outlet {
        Outlet::Pass => String::new(),
        Outlet::Named(name) => format!(" by {name}"),
    };
    LedgerLine::new("refused", refused.total().0, format!("{by}: {}", reasons(refused)))
}

/// Why frames were refused, and which command helps.
fn reasons(refused: &Refused) -> String {
    let those = Refusal::ALL.into_iter().zip(refused.frames).filter(|(_, n)| *n > 0);
    let part = |(reason, n)| format!("{n} {}", why(reason));
    those.map(part).collect::<Vec<_>>().join("; ")
}

fn why(reason: Refusal) -> &'static str {
    match reason {
        Refusal::LinkType => "of another link type than it takes",
        Refusal::Cut => "cut by the snap length: capture whole frames",
        Refusal::Short => "shorter than a header of its frames",
        Refusal::Long => {
            "longer than its MTU: where a receiver joins frames, `ethtool -K INTERFACE gro off lro \
             off` stops that"
        }
        Refusal::Full => "while its queue was full",
        Refusal::Down => "while it was down or gone",
        Refusal::Unreachable => "without a way there",
        Refusal::Over => "after its last file (-W)",
        Refusal::CameByIt => "that came by it",
        Refusal::WentUp => {
            "that workers had to decide on: only the kernel gives packets to the host"
        }
        Refusal::Unwritten => "that could not be written",
        Refusal::Other => "by the system",
    }
}

const ACTED: &str = " dropped or handed out by the query, in the kernel";
const DOUBTFUL: &str = "it, or another output of the same packets, went down when the kernel \
                        handed them over, so that they may have been dropped";
const ABANDONED: &str = " that waited to be processed when the run failed";
const MOVED: &str = " steered to other outputs while theirs was away";
const UNTAGGED: &str = " without a tag: not Ethernet, or cut within the addresses";
const WITHHELD: LossText = LossText {
    noun: " packet",
    text: " that `anonymize` can't rewrite: headers that Weir can't read may hold addresses",
};
const REFUSED: LossText = LossText {
    noun: " row",
    text: " that the sink did not take: it was slow (--sink-queue lets more wait), or away",
};
const UNWRITTEN: LossText = LossText { noun: " row", text: " that could not be written" };
const DISORDERED: &str = " with times before those of packets that came earlier, by which `scan` \
                          and others go";
/// Programs that are named among those whose keys found no room.
const EVICTING_NAMED: usize = 3;
const UNTIMED: &str = " without a time (simple packet blocks), and so in no window or session";
const UNDEFINED: &str = " left absent: out of range, or divided by zero";

const COPIES: LossText =
    LossText { noun: " packet", text: " that `deduplicate` left out: another one is the same" };
const UNFINISHED: &str = " TLS hellos that did not complete: packets are missing, or cut short";

const SUPPRESSED: LossText = LossText { noun: " alert", text: ", by the list of suppressions" };
const UNFILLED: LossText =
    LossText { noun: " window", text: " without all rows, too many for `fill`" };

/// A record has a length of its own beside the packet's headers.
const OVERLONG: &str = " with a record that claims more than 1 MiB; `len` is what was captured";

const UNDECIDED: LossText = LossText {
    noun: " row",
    text: " of `join left` or `join anti`: the input ended before a partner could have come",
};

/// The messages and parts of them that fields did not show, by protocol and reason.
fn unread_text(ledger: &Ledger) -> String {
    let cell = |(protocol, reason, n): (UnreadProtocol, UnreadReason, u64)| {
        format!("{n} {} {}", protocol.name(), reason.name())
    };
    let cells: Vec<String> = ledger.unread.each().map(cell).collect();
    format!(" not shown by fields, which read a packet at a time ({})", cells.join(", "))
}

/// Late rows, with the lateness that would have kept their windows open.
fn late_text(ledger: &Ledger) -> String {
    let keeps = match enough_ns(ledger.behind.ns) {
        Some(enough) => format!("--lateness {enough} would have kept it open: times step back"),
        None => "--lateness keeps windows open longer".to_owned(),
    };
    format!(" after their window had closed; {keeps}")
}

/// Rows and keys that found no room, and of which programs most were, where there are several.
fn evicted_text(ledger: &Ledger) -> String {
    let (mut programs, others) = ledger.flows.evicted();
    let several = programs.len() > 1;
    let unnamed = programs.remove("").unwrap_or(0);
    let mut evicting: Vec<_> = programs.into_iter().filter(|(_, evicted)| *evicted > 0).collect();
    evicting.sort_by_key(|(_, evicted)| Reverse(*evicted));
    let rest = evicting.iter().skip(EVICTING_NAMED).map(|(_, evicted)| *evicted);
    let rest = rest.sum::<u64>() + unnamed + others;
    let named = evicting.iter().take(EVICTING_NAMED);
    let mut parts: Vec<_> = named.map(|(name, evicted)| format!("{evicted} of {name}")).collect();
    if rest > 0 {
        parts.push(format!("{rest} of others"));
    }
    let of = match several && !parts.is_empty() {
        true => format!(" ({})", parts.join(", ")),
        false => String::new(),
    };
    format!(" for want of room{of}; `max` in the query, or --memory, makes more")
}

/// Rows that lag, with the lateness that waits for some of them: sessions stay open for longer, but
/// rows join them in the order in which they come.
fn lagging_text(ledger: &Ledger) -> String {
    let helps = match enough_ns(ledger.behind.ns) {
        Some(enough) => format!("--lateness {enough} takes in those whose session had come out; "),
        None => String::new(),
    };
    format!(
        " to their session, which in the order of times would be another; {helps}a capture that \
         is sorted by time has none"
    )
}

/// A duration that is as long as this or longer, as one writes it; none where there is nothing to
/// wait for, or where times that are so far apart are wrong.
fn enough_ns(ns: u64) -> Option<String> {
    const MS: u64 = 1_000_000;
    const UNITS: [(u64, u64, &str); 4] = [
        (MS, 1_000, "ms"),
        (1_000 * MS, 120, "s"),
        (60_000 * MS, 120, "m"),
        (3_600_000 * MS, 48, "h"),
    ];
    let (unit, name) =
        UNITS.iter().find(|(unit, most, _)| ns.div_ceil(*unit) <= *most).map(|u| (u.0, u.2))?;
    (ns > 0).then(|| format!("{}{name}", ns.div_ceil(unit)))
}

/// Wild time stamps: no option helps, since the times are wrong; the packets count like others.
fn wild() -> String {
    let far = JUMP_NS / 1_000_000_000;
    format!(" with a time more than {far} s ahead that no other packet confirmed")
}

/// The kinds of processed packets: `: 985 whole, 3 cut by the snap length, …`.
fn kinds(ledger: &Ledger) -> String {
    let mut parts = Vec::new();
    if ledger.cut > 0 {
        parts.push(format!("{} cut by the snap length", ledger.cut));
    }
    if ledger.malformed_total() > 0 {
        let reasons: Vec<_> = ledger.reasons().map(|(r, n)| format!("{} {n}", r.name())).collect();
        parts.push(format!("{} malformed ({})", ledger.malformed_total(), reasons.join(", ")));
    }
    if parts.is_empty() {
        return String::new();
    }
    format!(": {} whole, {}", ledger.whole(), parts.join(", "))
}

/// A loss of so many things, and what to say of them.
struct LossText {
    noun: &'static str,
    text: &'static str,
}

impl LossText {
    fn after(&self, n: u64) -> String {
        format!("{}{}", plural(n, self.noun), self.text)
    }
}

fn plural(n: u64, noun: &str) -> String {
    format!("{noun}{}", if n == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use insta::assert_snapshot;
    use weir_capture::lookback::LookbackError;
    use weir_packet::walk::Reason;

    #[test]
    fn nothing_unusual() {
        let ledger = Ledger { received: 1, processed: 1, rows: 42, ..Ledger::default() };
        assert_snapshot!(render(&ledger), @r"
        received    1 packet
        processed   1
        rows       42
        ");
    }

    #[test]
    fn the_lateness_that_would_do_is_named() {
        let enough = |ns| enough_ns(ns).unwrap_or_default();
        for (ns, expected) in [
            (0, ""),
            (1, "1ms"),
            (999_999_999, "1000ms"),
            (1_000_000_001, "2s"),
            (44_620_000_000, "45s"),
            (120_000_000_000, "120s"),
            (120_000_000_001, "3m"),
            (7_200_000_000_001, "3h"),
            (48 * 3_600_000_000_000, "48h"),
            (48 * 3_600_000_000_000 + 1, ""),
            (u64::MAX, ""),
        ] {
            assert_eq!(enough(ns), expected, "{ns}");
        }
    }

    #[test]
    fn everything_unusual() {
        let mut ledger = Ledger {
            received: 1000,
            filtered: 10,
            processed: 990,
            cut: 3,
            late: 7,
            lagging: 2,
            disordered: 9,
            wild: 1,
            untimed: 3,
            evicted: 5,
            undefined: 2,
            undecided: 4,
            rows: 42,
            ..Ledger::default()
        };
        ledger.malformed[Reason::TcpDataOffset as usize] = 1;
        ledger.malformed[Reason::UdpLength as usize] = 1;
        *ledger.unread.of_mut(UnreadProtocol::Dns, UnreadReason::Continues) = 30;
        *ledger.unread.of_mut(UnreadProtocol::Http, UnreadReason::Further) = 1;
        assert_snapshot!(render(&ledger), @r"
        received   1000 packets
        filtered     10 by the capture filter
        processed   990: 985 whole, 3 cut by the snap length, 2 malformed (tcp data offset 1, udp length 1)
        rows         42
        late          7 after their window had closed; --lateness keeps windows open longer
        lagging       2 to their session, which in the order of times would be another; a capture that is sorted by time has none
        disordered    9 with times before those of packets that came earlier, by which `scan` and others go
        wild          1 with a time more than 60 s ahead that no other packet confirmed
        untimed       3 without a time (simple packet blocks), and so in no window or session
        evicted       5 for want of room; `max` in the query, or --memory, makes more
        undefined     2 left absent: out of range, or divided by zero
        undecided     4 rows of `join left` or `join anti`: the input ended before a partner could have come
        unread       31 not shown by fields, which read a packet at a time (30 dns continues in another packet, 1 http further in the packet)
        ");
    }

    #[test]
    fn what_the_kernel_did() {
        let kernel = KernelCounts { filtered: 80, wanted: 9, ..KernelCounts::default() };
        let ledger = Ledger { received: 89, kernel, processed: 9, ..Ledger::default() };
        assert_snapshot!(render(&ledger), @r"
        received   89 packets
        filtered   80 by the query, in the kernel; it handed 9 up
        processed   9
        rows        0
        ");
        let kernel = KernelCounts { counted: 70, unclear: 2, full: 1, ..KernelCounts::default() };
        let ledger = Ledger { received: 73, kernel, processed: 3, ..Ledger::default() };
        assert_snapshot!(render(&ledger), @r"
        received   73 packets
        filtered    0 by the query, in the kernel; it handed 3 up: 0 wanted, 2 it could not read, 1 it had no room for
        counted    70 by the query, in the kernel
        processed   3
        rows        0
        ");
        assert!(!Ledger { received: 72, ..ledger }.adds_up());
        let kernel = KernelCounts { acted: 5, ..KernelCounts::default() };
        let mut ledger = Ledger { received: 5, kernel, ..Ledger::default() };
        ledger.ends.dropped = Traffic { frames: 3, bytes: 180 };
        ledger.ends.add(&Outlet::Named("eth1".to_owned()), Traffic { frames: 2, bytes: 120 });
        assert_snapshot!(render(&ledger), @r"
        received   5 packets
        filtered   0 by the query, in the kernel; it handed 0 up
        acted      5 dropped or handed out by the query, in the kernel
        processed  0
        rows       0
        sent       2 packets to eth1, 120 bytes
        dropped    3 packets, 180 bytes
        ");
    }

    #[test]
    fn what_a_fault_left_undone() {
        let ledger = Ledger { received: 9, processed: 5, abandoned: 4, ..Ledger::default() };
        assert_snapshot!(render(&ledger), @r"
        received   9 packets
        processed  5
        abandoned  4 that waited to be processed when the run failed
        rows       0
        ");
    }

    #[test]
    fn what_was_handed_out() {
        let mut ledger = Ledger { received: 12, processed: 12, ..Ledger::default() };
        let traffic = |frames, bytes| Traffic { frames, bytes };
        ledger.ends.add(&Outlet::Named("b.pcap".to_owned()), traffic(10, 900));
        ledger.ends.add(&Outlet::Named("a.pcapng".to_owned()), traffic(0, 0));
        ledger.ends.add(&Outlet::Pass, traffic(1, 60));
        ledger.ends.dropped = traffic(1, 70);
        (ledger.ends.untagged, ledger.ends.withheld) = (3, 2);
        assert_snapshot!(render(&ledger), @r"
        received   12 packets
        processed  12
        rows        0
        passed      1 packet, 60 bytes
        sent        0 packets to a.pcapng, 0 bytes
        sent       10 packets to b.pcap, 900 bytes
        dropped     1 packet, 70 bytes
        withheld    2 packets that `anonymize` can't rewrite: headers that Weir can't read may hold addresses
        untagged    3 without a tag: not Ethernet, or cut within the addresses
        ");
    }

    /// Refused packets were not sent; each reason says what helps.
    #[test]
    fn what_was_refused() {
        let mut ledger = Ledger { received: 12, processed: 12, ..Ledger::default() };
        let eth1 = Outlet::Named("eth1".to_owned());
        ledger.ends.add(&eth1, Traffic { frames: 12, bytes: 9000 });
        ledger.ends.add(&Outlet::Pass, Traffic { frames: 2, bytes: 120 });
        let mut refused = Refused::default();
        refused.add(Refusal::Long, 4000);
        refused.add(Refusal::Down, 60);
        refused.add(Refusal::Down, 60);
        ledger.ends.refuse(&eth1, &refused);
        let mut refused = Refused::default();
        refused.add(Refusal::Cut, 60);
        ledger.ends.refuse(&Outlet::Pass, &refused);
        ledger.ends.moved = 5;
        assert!(ledger.adds_up());
        assert_snapshot!(render(&ledger), @r"
        received   12 packets
        processed  12
        rows        0
        passed      1 packet, 60 bytes
        sent        9 packets to eth1, 4880 bytes
        refused     1: 1 cut by the snap length: capture whole frames
        refused     3 by eth1: 1 longer than its MTU: where a receiver joins frames, `ethtool -K INTERFACE gro off lro off` stops that; 2 while it was down or gone
        moved       5 steered to other outputs while theirs was away
        ");
        ledger.ends.refuse(&Outlet::Named("eth2".to_owned()), &refused);
        assert!(!ledger.adds_up(), "more refused than handed out");
    }

    #[test]
    fn each_kind_of_loss_is_told_by_itself_and_nothing_else_is() {
        let told = |change: &dyn Fn(&mut Ledger)| {
            let mut ledger = Ledger::default();
            change(&mut ledger);
            losses(&ledger, None)
        };
        let full = |ledger: &mut Ledger| {
            let mut refused = Refused::default();
            Refusal::ALL.into_iter().for_each(|reason| refused.add(reason, 60));
            ledger.ends.refuse(&Outlet::Named("eth1".to_owned()), &refused);
        };
        type Happens<'a> = &'a dyn Fn(&mut Ledger);
        let doubtful = |ledger: &mut Ledger| {
            ledger.ends.doubt(&Outlet::Pass, Traffic { frames: 12, bytes: 720 });
        };
        let lost: [(Happens<'_>, &str); 13] = [
            (&|l| l.lost.interface = 1, "lost       1 (1 by the interface)"),
            (&|l| l.lost.kernel = 2, "lost       2 (2 in the kernel)"),
            (&|l| l.lost.ring = 3, "lost       3 (3 in the ring"),
            (&|l| l.abandoned = 4, "abandoned  4 "),
            (&|l| l.refused = 5, "refused    5 rows"),
            (&|l| l.unwritten = 6, "unwritten  6 rows"),
            (&|l| l.late = 6, "late       6 after"),
            (&|l| (l.lagging, l.behind.ns) = (2, 1 << 31), "lagging    2 to their session"),
            (&|l| l.evicted = 7, "evicted    7 for want"),
            (&|l| l.unfilled = 8, "unfilled   8 windows"),
            (&|l| l.ends.withheld = 9, "withheld   9 packets that `anonymize`"),
            (&doubtful, "doubtful   12 of those passed, at most: it, or another"),
            (&full, "refused    10 by eth1: 1 of another link type"),
        ];
        for (change, expected) in lost {
            let told = told(change);
            assert!(told.starts_with(expected) && told.lines().count() == 1, "{told}");
        }
        let one = told(&|l| (l.refused, l.unwritten, l.unfilled, l.ends.withheld) = (1, 1, 1, 1));
        for expected in
            ["1 row that the sink", "1 row that could", "1 window with", "1 packet that"]
        {
            assert!(one.contains(expected), "{one}");
        }
        let none: [&dyn Fn(&mut Ledger); 11] = [
            &|l| (l.received, l.processed) = (9, 9),
            &|l| l.filtered = 1,
            &|l| l.cut = 1,
            &|l| l.malformed[0] = 1,
            &|l| l.wild = 1,
            &|l| l.disordered = 1,
            &|l| l.untimed = 1,
            &|l| *l.unread.of_mut(UnreadProtocol::Dns, UnreadReason::Further) = 1,
            &|l| l.undefined = 1,
            &|l| (l.ends.untagged, l.ends.moved) = (1, 1),
            // As asked for by -W, and by a bridge.
            &|l| {
                let mut refused = Refused::default();
                refused.add(Refusal::Over, 60);
                refused.add(Refusal::CameByIt, 60);
                l.ends.refuse(&Outlet::Pass, &refused);
            },
        ];
        none.into_iter().for_each(|change| assert_eq!(told(change), ""));
        let around = |around| losses(&Ledger::default(), Some(&around));
        assert_eq!(
            around(LookbackCounts { files: 1, frames: 3, short: 1, full: 1, ..Default::default() }),
            ""
        );
        for lost in [
            LookbackCounts { missed: 1, ..Default::default() },
            LookbackCounts { left_out: 1, full: 1, ..Default::default() },
            LookbackCounts { refused: 1, ..Default::default() },
            LookbackCounts { existed: 1, ..Default::default() },
            LookbackCounts { failed: 1, ..Default::default() },
        ] {
            assert!(around(lost.clone()).starts_with("captured "), "{lost:?}");
        }
    }

    #[test]
    fn packets_around_rows() {
        let mut all = LookbackCounts { files: 2, frames: 1, ..LookbackCounts::default() };
        assert_snapshot!(captures(&all), @"captured   1 packet in 2 files");
        (all.short, all.full, all.left_out, all.refused) = (1, 1, 30, 4);
        let (name, kind) = ("x.pcapng".to_owned(), std::io::ErrorKind::StorageFull);
        let error = LookbackError::System { name, kind, reason: "no space".to_owned() };
        (all.existed, all.failed, all.error) = (2, 1, Some(error));
        all.missed = 9;
        assert_snapshot!(captures(&all), @"captured   1 packet in 2 files; 1 may lack packets from the beginning: --ring keeps more; 1 full, which lack 30 packets; 9 left out, which the disk did not take in time; 4 not begun: too many, or too many at once; 2 not begun: there was a file of that name; 1 failed (x.pcapng: no space)");
    }

    #[test]
    fn later_fragments() {
        let counts = Counts { found: 3, missed: 0, evicted: 0 };
        assert_eq!(fragments(&counts), "fragments  3 of 3 later ones found their ports");
        let counts = Counts { found: 3, missed: 1, evicted: 2 };
        assert_eq!(
            fragments(&counts),
            "fragments  3 of 4 later ones found their ports; the others came before their first or a \
             minute after it, or it has none; 2 datagrams were forgotten for want of room"
        );
    }

    #[test]
    #[should_panic(expected = "does not add up")]
    #[cfg(debug_assertions)]
    fn a_ledger_that_does_not_add_up_is_a_bug() {
        render(&Ledger { received: 1, ..Ledger::default() });
    }
}
