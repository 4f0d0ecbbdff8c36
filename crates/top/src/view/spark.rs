//! Time lines of characters.

use crate::look::Glyphs;

/// Blocks from one eighth to the whole.
const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Characters that every terminal has, from little to much.
const ASCII: [char; 7] = ['.', ':', '-', '=', '+', '*', '#'];

/// Dots of Braille from the bottom up, in the left column and in the right one (U+2800).
const DOTS: [[u32; 4]; 2] = [[0x40, 0x04, 0x02, 0x01], [0x80, 0x20, 0x10, 0x08]];

/// The values as lines of characters, the top one first. The largest value reaches the top; one
/// that is not 0 is always seen.
pub(crate) fn lines(values: &[f64], height: usize, glyphs: Glyphs) -> Vec<String> {
    let most = values.iter().copied().fold(0.0, f64::max);
    let levels = height * levels_of(glyphs);
    let level = |v: &f64| match most > 0.0 && *v > 0.0 {
        true => ((v / most * levels as f64).round() as usize).clamp(1, levels),
        false => 0,
    };
    let reached: Vec<usize> = values.iter().map(level).collect();
    let line = |row: usize| {
        let base = (height - 1 - row) * levels_of(glyphs);
        let here = |reached: usize| reached.saturating_sub(base).min(levels_of(glyphs));
        reached.chunks(glyphs.per_column()).map(|cell| character(cell, here, glyphs)).collect()
    };
    (0..height).map(line).collect()
}

fn levels_of(glyphs: Glyphs) -> usize {
    match glyphs {
        Glyphs::Braille => 4,
        Glyphs::Blocks => BLOCKS.len(),
        Glyphs::Ascii => ASCII.len(),
    }
}

/// The character of a column, of whose values `here` says how much is in this line.
fn character(cell: &[usize], here: impl Fn(usize) -> usize, glyphs: Glyphs) -> char {
    let of = |all: &[char]| match here(cell[0]) {
        0 => ' ',
        n => all[n - 1],
    };
    match glyphs {
        Glyphs::Blocks => of(&BLOCKS),
        Glyphs::Ascii => of(&ASCII),
        Glyphs::Braille => {
            let dots = cell.iter().zip(DOTS);
            let bits = dots.flat_map(|(v, dots)| dots.into_iter().take(here(*v))).sum::<u32>();
            if bits == 0 { ' ' } else { char::from_u32(0x2800 + bits).unwrap_or(' ') }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_value_reaches_the_top() {
        let values = [0.0, 1.0, 4.0, 8.0, 0.1, 8.0];
        assert_eq!(lines(&values, 1, Glyphs::Blocks), [" ▁▄█▁█"]);
        assert_eq!(lines(&values, 1, Glyphs::Ascii), [" .=#.#"]);
        assert_eq!(lines(&values, 1, Glyphs::Braille), ["⢀⣼⣸"]);
        assert_eq!(
            lines(&values, 2, Glyphs::Blocks),
            ["   █ █", " ▂███▁█".replace("███▁", "██▁").as_str()]
        );
    }

    #[test]
    fn nothing_is_blank() {
        for glyphs in [Glyphs::Braille, Glyphs::Blocks, Glyphs::Ascii] {
            assert_eq!(lines(&[0.0; 4], 2, glyphs).concat().trim(), "");
            assert!(lines(&[], 1, glyphs)[0].is_empty());
            // Numbers that are none do no harm.
            assert_eq!(lines(&[f64::NAN, -1.0], 1, glyphs).concat().trim(), "");
        }
    }
}
