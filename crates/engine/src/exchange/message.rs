//! Messages of version 2, as docs/partials.md has them.

use super::bytes::Front;
use crate::limits::{CORROBORATE, EXCHANGE_MACHINES_MAX};
use crate::losses::LossNews;
use crate::ops::groups::written::{GroupBytes, GroupFault, WrittenGroups};
use std::fmt;
use std::ops::Range;
use weir_packet::source::Gap;

/// How each message begins: Weir's partial results, version 2.
pub const MAGIC: [u8; 4] = *b"WPR2";

/// The part of a plan that a message is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MessageTarget {
    /// The fingerprint of the computation: [`weir_plan::physical::Physical::fingerprint`] of the
    /// node, or of all nodes together.
    pub print: u128,
    /// Which node of the plan, or [`MessageTarget::ALL`].
    pub node: [u8; 5],
}

impl MessageTarget {
    /// All nodes.
    pub const ALL: [u8; 5] = [0xff; 5];
}

/// The head of a message, and its content.
pub struct Message<'a> {
    /// The part of the plan that it is for.
    pub target: MessageTarget,
    /// The probe that wrote it.
    pub probe: u128,
    /// Which life of the probe: each is later than the one before.
    pub epoch: u64,
    /// The number of the message in that life, from 0.
    pub number: u64,
    /// Its content.
    pub body: Body<'a>,
}

/// Names a message: its probe, which life of that, and its number there.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub(super) struct MessageId {
    pub(super) probe: u128,
    pub(super) epoch: u64,
    pub(super) number: u64,
}

/// The content of a message.
pub enum Body<'a> {
    /// Groups of a window.
    Window {
        /// Where the window starts: of sessions the tick at which they came out.
        start: i64,
        /// The groups, to be read by the node that they are for.
        groups: WindowGroups<'a>,
    },
    /// The frames that a machine lost, and those that came to it, since the last message of this
    /// kind. The machine is the producer itself, by 0, or one whose messages it passes on.
    Losses(u32, ReportedLosses),
    /// Counts since the last message of this kind, by name.
    Counts(Vec<(&'a str, u64)>),
    /// Windows that end by this watermark are complete from this producer.
    Closed(i64),
    /// How far the clock of the producer has come at its end, and up to three times that it did not
    /// believe yet.
    Clock(i64, Vec<i64>),
    /// The producer has ended.
    End(EndOf),
}

/// Groups that were not read yet.
pub struct WindowGroups<'a>(pub(crate) GroupBytes<'a>);

/// The losses that a producer reports.
pub struct ReportedLosses(pub(crate) LossNews);

/// Why a producer ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EndOf {
    /// Its input ended, or it was stopped.
    Input = 1,
    /// Its source failed.
    Source = 2,
}

/// Why bytes are no message, or none that this receiver can use.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum UnreadableMessage {
    /// It does not begin as messages of version 2 do.
    Version([u8; 4]),
    /// It breaks off here.
    Cut(&'static str),
    /// Something is what it can't be; says what, and the value.
    Wrong(&'static str, u64),
    /// Bytes are left over.
    Rest(usize),
    /// It is for another plan, or for a node that this plan has not.
    Target(MessageTarget),
    /// It counts something of a name that this version does not know.
    Count(String),
    /// Its counts do not add up.
    Counts,
    /// No window of its node starts at this time.
    Start(i64),
    /// Its groups are none of the node's; says where.
    Groups(String),
    /// A producer is too far ahead of the others, or too many have come: try again later.
    Full(&'static str),
}

impl fmt::Display for UnreadableMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UnreadableMessage::Version(found) if found.starts_with(b"WPR") => write!(
                f,
                "the message has version `{}` of the format, and this Weir reads `WPR2`",
                found.escape_ascii()
            ),
            UnreadableMessage::Version(found) => write!(
                f,
                "this is no message of partial results: it begins with `{}`, not `WPR2`",
                found.escape_ascii()
            ),
            UnreadableMessage::Cut(place) => write!(f, "the message breaks off in {place}"),
            UnreadableMessage::Wrong(place, n) => write!(f, "{place} of the message can't be {n}"),
            UnreadableMessage::Rest(bytes) => {
                write!(f, "the message goes on for {bytes} bytes after its end")
            }
            UnreadableMessage::Target(target) => write!(
                f,
                "the message is for node {:02x?} with fingerprint {:032x}, which this plan does \
                 not have: probes and receiver must run the same queries",
                target.node, target.print
            ),
            UnreadableMessage::Count(name) => {
                write!(f, "the message counts `{name}`, which this Weir does not know")
            }
            UnreadableMessage::Counts => f.write_str(
                "the counts of the message do not add up: each packet that was received is \
                 filtered, finished by the kernel, processed or abandoned, and of the processed \
                 ones some are cut or malformed",
            ),
            UnreadableMessage::Start(start) => {
                write!(f, "no window of the node starts at {start} ns, as the message says")
            }
            UnreadableMessage::Groups(why) => write!(f, "groups of a window: {why}"),
            UnreadableMessage::Full(what) => write!(f, "{what}: deliver the message again later"),
        }
    }
}

impl std::error::Error for UnreadableMessage {}

impl From<GroupFault> for UnreadableMessage {
    fn from(fault: GroupFault) -> UnreadableMessage {
        UnreadableMessage::Groups(fault.to_string())
    }
}

/// The kinds of bodies.
const WINDOW: u8 = 1;
const LOSSES: u8 = 2;
const COUNTS: u8 = 3;
const CLOSED: u8 = 4;
const END: u8 = 5;
const CLOCK: u8 = 6;
const PASSED_LOSSES: u8 = 7;

/// The most times that a clock does not believe yet.
const AHEAD_MAX: u8 = CORROBORATE as u8 - 1;

impl<'a> Message<'a> {
    /// Which message it is.
    pub(super) fn id(&self) -> MessageId {
        MessageId { probe: self.probe, epoch: self.epoch, number: self.number }
    }

    /// Reads a message.
    ///
    /// # Errors
    /// If the bytes are none: says where.
    pub fn read(bytes: &'a [u8]) -> Result<Message<'a>, UnreadableMessage> {
        let mut front = Front(bytes);
        let head = front.bytes(4).ok_or(UnreadableMessage::Cut("its first four bytes"))?;
        if head != MAGIC {
            let head = head.try_into().unwrap_or(MAGIC);
            return Err(UnreadableMessage::Version(head));
        }
        let cut = || UnreadableMessage::Cut("its head");
        let print = front.u128().ok_or_else(cut)?;
        let node = front.bytes(5).and_then(|node| node.try_into().ok()).ok_or_else(cut)?;
        let (probe, epoch) = (front.u128().ok_or_else(cut)?, front.u64().ok_or_else(cut)?);
        let (number, kind) = (front.u64().ok_or_else(cut)?, front.u8().ok_or_else(cut)?);
        let body = match kind {
            WINDOW => window(&mut front)?,
            LOSSES => Body::Losses(0, ReportedLosses(losses(&mut front)?)),
            PASSED_LOSSES => {
                let machine = front.u32().ok_or(UnreadableMessage::Cut("its machine"))?;
                if machine == 0 || machine as usize > EXCHANGE_MACHINES_MAX {
                    return Err(UnreadableMessage::Wrong("the machine", machine.into()));
                }
                Body::Losses(machine, ReportedLosses(losses(&mut front)?))
            }
            COUNTS => Body::Counts(counts(&mut front)?),
            CLOCK => clock(&mut front)?,
            CLOSED => Body::Closed(front.i64().ok_or(UnreadableMessage::Cut("its watermark"))?),
            END => Body::End(match front.u8().ok_or(UnreadableMessage::Cut("its reason"))? {
                1 => EndOf::Input,
                2 => EndOf::Source,
                other => return Err(UnreadableMessage::Wrong("the reason", other.into())),
            }),
            other => return Err(UnreadableMessage::Wrong("the kind", other.into())),
        };
        match front.0.len() {
            0 => Ok(Message { target: MessageTarget { print, node }, probe, epoch, number, body }),
            rest => Err(UnreadableMessage::Rest(rest)),
        }
    }
}

fn window<'a>(front: &mut Front<'a>) -> Result<Body<'a>, UnreadableMessage> {
    let cut = || UnreadableMessage::Cut("the groups of a window");
    let start = front.i64().ok_or_else(cut)?;
    let groups = front.u32().ok_or_else(cut)?;
    let mut ends = Vec::new();
    for _ in 0..groups {
        let end = front.u32().ok_or_else(cut)? as usize;
        if ends.last().is_some_and(|last| *last > end) {
            return Err(UnreadableMessage::Wrong("the end of a key", end as u64));
        }
        ends.push(end);
    }
    let keys = front.bytes(ends.last().copied().unwrap_or(0)).ok_or_else(cut)?;
    let mut columns = Vec::new();
    for _ in 0..front.u16().ok_or_else(cut)? {
        let kind = front.u8().ok_or_else(cut)?;
        let len = front.u64().and_then(|len| usize::try_from(len).ok()).ok_or_else(cut)?;
        columns.push((kind, front.bytes(len).ok_or_else(cut)?));
    }
    let groups = WindowGroups(GroupBytes { ends, keys, columns });
    Ok(Body::Window { start, groups })
}

fn losses(front: &mut Front<'_>) -> Result<LossNews, UnreadableMessage> {
    let cut = || UnreadableMessage::Cut("its losses");
    let mut news = LossNews::default();
    for _ in 0..front.u32().ok_or_else(cut)? {
        let watermark = front.i64().ok_or_else(cut)?;
        let (since, until) = (front.i64().ok_or_else(cut)?, front.i64().ok_or_else(cut)?);
        let frames = front.u64().ok_or_else(cut)?;
        news.gaps.push((watermark, Gap { frames, since, until }));
    }
    for _ in 0..front.u32().ok_or_else(cut)? {
        news.panes.push((front.i64().ok_or_else(cut)?, front.u64().ok_or_else(cut)?));
    }
    Ok(news)
}

fn clock<'a>(front: &mut Front<'a>) -> Result<Body<'a>, UnreadableMessage> {
    let cut = || UnreadableMessage::Cut("its times");
    let reached = front.i64().ok_or_else(cut)?;
    let times = front.u8().ok_or_else(cut)?;
    if times > AHEAD_MAX {
        return Err(UnreadableMessage::Wrong("the number of times", times.into()));
    }
    let ahead = (0..times).map(|_| front.i64().ok_or_else(cut)).collect::<Result<_, _>>()?;
    Ok(Body::Clock(reached, ahead))
}

fn counts<'a>(front: &mut Front<'a>) -> Result<Vec<(&'a str, u64)>, UnreadableMessage> {
    let cut = || UnreadableMessage::Cut("its counts");
    let mut counts = Vec::new();
    for _ in 0..front.u16().ok_or_else(cut)? {
        let len = front.u8().ok_or_else(cut)?;
        let name = front.bytes(len.into()).ok_or_else(cut)?;
        let name = std::str::from_utf8(name);
        let name = name.map_err(|_| UnreadableMessage::Wrong("a name", len.into()))?;
        counts.push((name, front.u64().ok_or_else(cut)?));
    }
    Ok(counts)
}

/// Appends the body of some groups of a window.
pub(super) fn write_window(
    start: i64,
    all: &WrittenGroups,
    groups: Range<usize>,
    out: &mut Vec<u8>,
) {
    out.push(WINDOW);
    out.extend_from_slice(&start.to_le_bytes());
    out.extend_from_slice(&(groups.len() as u32).to_le_bytes());
    let before = all.keys.of(0..groups.start).len();
    for &end in &all.keys.ends[groups.clone()] {
        out.extend_from_slice(&((end - before) as u32).to_le_bytes());
    }
    out.extend_from_slice(all.keys.of(groups.clone()));
    out.extend_from_slice(&(all.columns.len() as u16).to_le_bytes());
    for (kind, states) in &all.columns {
        let bytes = states.of(groups.clone());
        out.push(*kind as u8);
        out.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
        out.extend_from_slice(bytes);
    }
}

/// Appends the body of losses, of the producer itself by 0, or of a machine that it passes on.
pub(super) fn write_losses(machine: u32, news: &LossNews, out: &mut Vec<u8>) {
    if machine == 0 {
        out.push(LOSSES);
    } else {
        out.push(PASSED_LOSSES);
        out.extend_from_slice(&machine.to_le_bytes());
    }
    out.extend_from_slice(&(news.gaps.len() as u32).to_le_bytes());
    for (watermark, gap) in &news.gaps {
        for time in [*watermark, gap.since, gap.until] {
            out.extend_from_slice(&time.to_le_bytes());
        }
        out.extend_from_slice(&gap.frames.to_le_bytes());
    }
    out.extend_from_slice(&(news.panes.len() as u32).to_le_bytes());
    for (start, frames) in &news.panes {
        out.extend_from_slice(&start.to_le_bytes());
        out.extend_from_slice(&frames.to_le_bytes());
    }
}

/// Appends the body of counts, whose names are short.
pub(super) fn write_counts(counts: &[(&str, u64)], out: &mut Vec<u8>) {
    out.push(COUNTS);
    out.extend_from_slice(&(counts.len() as u16).to_le_bytes());
    for (name, n) in counts {
        out.push(name.len() as u8);
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(&n.to_le_bytes());
    }
}

/// Appends the body of a watermark.
pub(super) fn write_closed(watermark: i64, out: &mut Vec<u8>) {
    out.push(CLOSED);
    out.extend_from_slice(&watermark.to_le_bytes());
}

/// Appends the body of how far a clock has come.
pub(super) fn write_clock(reached: i64, ahead: &[i64], out: &mut Vec<u8>) {
    let ahead = &ahead[..ahead.len().min(AHEAD_MAX.into())];
    out.push(CLOCK);
    out.extend_from_slice(&reached.to_le_bytes());
    out.push(ahead.len() as u8);
    ahead.iter().for_each(|time| out.extend_from_slice(&time.to_le_bytes()));
}

/// Appends the body of an end.
pub(super) fn write_end(end: EndOf, out: &mut Vec<u8>) {
    out.extend_from_slice(&[END, end as u8]);
}
