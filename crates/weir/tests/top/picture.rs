//! The screen as a picture in SVG. Fonts draw Braille in their own ways, so it becomes dots.

use std::collections::BTreeSet;
use std::fmt::Write as _;

/// Width and height of a cell, in pixels: those of most fixed fonts in 14 pixels.
const CELL: [f32; 2] = [8.4, 18.0];
/// From the left edge, and from the top, to the first cell.
const START: [f32; 2] = [16.0, 36.0];
/// From the top of a cell to the line that letters stand on.
const BASE: f32 = 13.5;

const GROUND: &str = "#1b1f27";
const INK: &str = "#d5dae3";
/// The 16 colours of a terminal.
const COLORS: [&str; 16] = [
    "#3b4252", "#e06c75", "#98c379", "#e5c07b", "#61afef", "#c678dd", "#56b6c2", INK, //
    "#8b94a3", "#e06c75", "#98c379", "#e5c07b", "#61afef", "#c678dd", "#56b6c2", "#ffffff",
];

const BOLD: u8 = 1;
const UNDERLINED: u8 = 4;
const REVERSED: u8 = 7;

/// How a cell looks: its colour, and the styles that are on, by the numbers that terminals use.
#[derive(Clone, Default, PartialEq)]
struct Style {
    color: Option<usize>,
    on: BTreeSet<u8>,
}

impl Style {
    /// Takes what stands between `ESC [` and `m`.
    fn change(&mut self, codes: &str) {
        let mut codes = codes.split(';').map(|code| code.parse::<u8>().unwrap_or(0));
        while let Some(code) = codes.next() {
            match code {
                0 => *self = Style::default(),
                BOLD | UNDERLINED | REVERSED => _ = self.on.insert(code),
                38 => {
                    assert_eq!(codes.next(), Some(5), "a colour of the terminal");
                    self.color = codes.next().map(usize::from);
                }
                39 => self.color = None,
                49 => {}
                _ => panic!("the picture has no style {code}"),
            }
        }
    }

    fn attributes(&self) -> String {
        let mut out = String::new();
        let color = self.color.map_or(INK, |color| COLORS[color]);
        let is_on = |style| self.on.contains(&style);
        if is_on(REVERSED) {
            out += &format!(" fill=\"{GROUND}\"");
        } else if color != INK {
            out += &format!(" fill=\"{color}\"");
        }
        if is_on(BOLD) {
            out += " font-weight=\"700\"";
        }
        if is_on(UNDERLINED) {
            out += " text-decoration=\"underline\"";
        }
        out
    }
}

/// Characters of one line that look the same, without more than one space between them.
struct Piece {
    column: usize,
    text: String,
    style: Style,
}

impl Piece {
    fn end(&self) -> usize {
        self.column + self.text.chars().count()
    }
}

/// The lines as cells. A style goes on into the next line.
fn cells(styled: &str) -> Vec<Vec<(char, Style)>> {
    let mut style = Style::default();
    let mut rows = Vec::new();
    for line in styled.lines() {
        let mut row = Vec::new();
        for (n, part) in line.split("\u{1b}[").enumerate() {
            let text = if n == 0 {
                part
            } else {
                let (codes, text) = part.split_once('m').expect("the end of a style");
                style.change(codes);
                text
            };
            row.extend(text.chars().map(|c| (c, style.clone())));
        }
        rows.push(row);
    }
    rows
}

fn is_braille(c: char) -> bool {
    ('\u{2800}'..='\u{28ff}').contains(&c)
}

fn pieces(row: &[(char, Style)]) -> Vec<Piece> {
    let mut all: Vec<Piece> = Vec::new();
    let seen = row.iter().enumerate().filter(|(_, (c, _))| *c != ' ' && !is_braille(*c));
    for (column, (c, style)) in seen {
        if let Some(last) = all.last_mut()
            && last.style == *style
            && column - last.end() <= 1
            && row[last.end()..column].iter().all(|cell| cell == &(' ', style.clone()))
        {
            last.text.extend((last.end()..column).map(|_| ' '));
            last.text.push(*c);
        } else {
            all.push(Piece { column, text: c.to_string(), style: style.clone() });
        }
    }
    all
}

/// A number with at most one decimal.
fn number(value: f32) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").unwrap_or(&text).to_owned()
}

fn place(column: usize, row: usize) -> [f32; 2] {
    [START[0] + column as f32 * CELL[0], START[1] + row as f32 * CELL[1]]
}

/// The dots of the Braille of a line, each a line of no length with round ends.
fn dots(cells: &[(char, Style)], row: usize) -> String {
    // By their bits: three on the left, three on the right, and the lowest two.
    const DOTS: [[u8; 2]; 8] = [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2], [0, 3], [1, 3]];
    let mut path = String::new();
    for (column, (c, _)) in cells.iter().enumerate().filter(|(_, (c, _))| is_braille(*c)) {
        let [x, y] = place(column, row);
        for (bit, dot) in DOTS.iter().enumerate() {
            if (u32::from(*c) >> bit) & 1 == 1 {
                let x = x + CELL[0] * (0.25 + 0.5 * f32::from(dot[0]));
                let y = y + CELL[1] * (0.125 + 0.25 * f32::from(dot[1]));
                let _ = write!(path, "M{} {}h0", number(x), number(y));
            }
        }
    }
    path
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// The picture of a screen so many columns wide, from its text with styles as escapes.
pub(crate) fn picture(styled: &str, columns: usize, title: &str) -> String {
    let rows = cells(styled);
    let [right, bottom] = place(columns, rows.len());
    let (width, height) = (number(right + START[0]), number((bottom + START[0]).ceil()));
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" role=\"img\" font-family=\"ui-monospace, monospace\" \
         font-size=\"14\" fill=\"{INK}\">\n<title>{title}</title>\n\
         <!-- docs/pictures/make.sh makes this file. -->\n\
         <rect width=\"{width}\" height=\"{height}\" rx=\"10\" fill=\"{GROUND}\"/>\n"
    );
    for (x, color) in [(20, COLORS[1]), (38, COLORS[3]), (56, COLORS[2])] {
        let _ = writeln!(out, "<circle cx=\"{x}\" cy=\"18\" r=\"5.5\" fill=\"{color}\"/>");
    }
    for (n, row) in rows.iter().enumerate() {
        if let Some((_, style)) = row.iter().find(|(c, _)| is_braille(*c)) {
            let color = style.color.map_or(INK, |color| COLORS[color]);
            let _ = writeln!(
                out,
                "<path stroke=\"{color}\" stroke-width=\"3.4\" stroke-linecap=\"round\" d=\"{}\"/>",
                dots(row, n)
            );
        }
        for piece in pieces(row) {
            let [x, y] = place(piece.column, n);
            let width = number((piece.end() - piece.column) as f32 * CELL[0]);
            if piece.style.on.contains(&REVERSED) {
                let (x, y, height) = (number(x), number(y), CELL[1]);
                let _ = writeln!(
                    out,
                    "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"/>"
                );
            }
            let _ = writeln!(
                out,
                "<text x=\"{}\" y=\"{}\" textLength=\"{width}\"{}>{}</text>",
                number(x),
                number(y + BASE),
                piece.style.attributes(),
                escaped(&piece.text)
            );
        }
    }
    out + "</svg>\n"
}
