//! The packets of a row, and the fields of one of them.

use super::canvas::{Canvas, columns};
use crate::number::Times;
use crate::packets::{FoundPacket, PacketList, PacketsSearch};
use ratatui::style::{Modifier, Style};
use weir_packet::time::NO_TIME;
use weir_plan::TimeZone;

/// The lines that stand above the list: what it is of, its condition, and the names of its columns.
const ABOVE: u16 = 3;

/// The columns of the list that have a width of their own.
const LENGTH: u16 = 6;
const PROTOCOL: u16 = 7;

/// Draws the list, or the fields of the packet that is opened.
pub(super) fn draw(canvas: &mut Canvas<'_>, list: &mut PacketList) {
    let (width, height, look) = (canvas.area.width, canvas.area.height, canvas.look);
    let title = match &list.search {
        PacketsSearch::Running => format!("looking for packets of {}", list.title),
        PacketsSearch::Failed(_) => format!("packets of {}", list.title),
        PacketsSearch::Done(found) => match found.packets.len() {
            1 => format!("1 packet of {}", list.title),
            n => format!("{n} packets of {}", list.title),
        },
    };
    let title = canvas.fit(&title, width);
    canvas.text(0, 0, width, &title, look.title());
    let condition = canvas.fit(&crate::clean(list.condition()), width);
    canvas.text(0, 1, width, &condition, look.faint());
    let mut notes = match &list.search {
        PacketsSearch::Failed(why) => vec![why.clone()],
        PacketsSearch::Done(found) => found.notes.clone(),
        PacketsSearch::Running => Vec::new(),
    };
    // The note that somebody has asked for goes first.
    notes.splice(0..0, list.saving.clone());
    let notes: Vec<String> = notes.iter().flat_map(|note| wrapped(note, width)).collect();
    // On a small screen packets go before notes.
    let notes_room = (height - ABOVE - 1) / 2;
    let notes = &notes[..notes.len().min(notes_room.into())];
    let bottom = height - 1 - notes.len() as u16;
    for (note, y) in notes.iter().zip(bottom..) {
        let note = canvas.fit(note, width);
        canvas.text(0, y, width, &note, look.notice());
    }
    let times = times(list, look.zone);
    match list.opened().cloned() {
        Some(packet) => fields(canvas, list, (&packet, times), bottom),
        None => packets(canvas, list, times, bottom),
    }
    let keys = match list.opened() {
        Some(_) => "Up, Down more fields  Esc packets  q quit",
        None => "Enter fields  w save all  Up, Down choose  Esc tables  q quit",
    };
    let keys = canvas.fit(keys, width);
    canvas.text(0, height - 1, width, &keys, look.faint().add_modifier(Modifier::BOLD));
}

/// A text by lines of at most so many columns, cut between words.
fn wrapped(text: &str, width: u16) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let last = lines.last_mut().expect("there is one");
        if !last.is_empty() && columns(last) + columns(word) + 1 > width {
            lines.push(word.to_owned());
            continue;
        }
        if !last.is_empty() {
            last.push(' ');
        }
        last.push_str(word);
    }
    lines
}

/// How the times of a list are written.
fn times(list: &PacketList, zone: Option<TimeZone>) -> Times {
    let known = || list.packets().iter().map(|packet| packet.time).filter(|ns| *ns != NO_TIME);
    Times::within(known().min().zip(known().max()), zone)
}

fn packets(canvas: &mut Canvas<'_>, list: &mut PacketList, times: Times, bottom: u16) {
    let look = canvas.look;
    let title = format!("TIME ({})", times.zone());
    let moment = |packet: &FoundPacket| times.to_part(packet.time, 6);
    let widest = list.packets().iter().map(|packet| columns(&moment(packet))).max();
    let time_room = widest.unwrap_or(0).max(columns(&title)) + 1;
    let titles = [&title, "FROM", "TO", "PROTO", "LEN", "SAYS"];
    line(canvas, 2, time_room, titles, look.title());
    let room = usize::from(bottom.saturating_sub(ABOVE));
    let (at, all) = (list.chosen, list.packets().len());
    list.offset = list.offset.clamp((at + 1).saturating_sub(room), at);
    let seen = list.offset..(list.offset + room).min(all);
    for ((number, packet), y) in
        list.packets().iter().enumerate().take(seen.end).skip(seen.start).zip(ABOVE..)
    {
        let (from, to) = packet.ends();
        let (time, protocol, info) = (moment(packet), packet.protocol(), packet.info());
        let length = packet.length.to_string();
        line(canvas, y, time_room, [&time, &from, &to, &protocol, &length, &info], Style::new());
        if number == at {
            canvas.style_line(y, look.chosen());
        }
    }
}

/// One line of the list. Cells that there is no room for are left out, from the right.
fn line(canvas: &mut Canvas<'_>, y: u16, time_room: u16, cells: [&str; 6], style: Style) {
    let width = canvas.area.width;
    let [time, from, to, protocol, length, info] = cells;
    // Addresses of version 6 are long; half of what is left is for what a packet says.
    let rest = width.saturating_sub(time_room + PROTOCOL + LENGTH);
    let end = (rest / 3).clamp(8, 48);
    let mut x = 0;
    for (text, room) in [(time, time_room), (from, end), (to, end), (protocol, PROTOCOL)] {
        let text = canvas.fit(text, room - 1);
        canvas.text(x, y, room - 1, &text, style);
        x += room;
    }
    if x + LENGTH <= width {
        canvas.right(x + LENGTH - 1, y, LENGTH - 1, length, style);
        x += LENGTH;
    }
    if x < width {
        let info = canvas.fit(info, width - x);
        canvas.text(x, y, width - x, &info, style);
    }
}

fn fields(
    canvas: &mut Canvas<'_>,
    list: &mut PacketList,
    (packet, times): (&FoundPacket, Times),
    bottom: u16,
) {
    let (width, look) = (canvas.area.width, canvas.look);
    let (from, to) = packet.ends();
    let title =
        format!("{}  {from} > {to}  {} bytes", times.to_part(packet.time, 6), packet.length);
    let title = canvas.fit(&title, width);
    canvas.text(0, 2, width, &title, look.title());
    let room = usize::from(bottom.saturating_sub(ABOVE));
    let last = packet.fields.len().saturating_sub(room);
    let first = list.fields.unwrap_or(0).min(last);
    list.fields = Some(first);
    canvas.name_values(&packet.fields, first, (ABOVE, room));
}
