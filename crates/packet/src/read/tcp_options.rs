//! Readers of TCP options.

use super::rows::Rows;
use crate::column::Column;
use crate::fields::Item;
use crate::tcp::{HEADER_LEN, Tcp};
use crate::tcp_options::{Options, TcpOption, edges};
use crate::walk::Layer;

/// Reads `item` if it is one of these fields; returns whether it is.
pub(super) fn read(rows: &Rows<'_>, item: Item, out: &mut Column) -> bool {
    let tcp = rows.has(Layer::TcpWhole);
    let first_block = |i: usize| {
        find(rows, i, |option| match option {
            TcpOption::Sack(blocks) => blocks.first().map(edges),
            _ => None,
        })
    };
    let timestamps = |i: usize| {
        find(rows, i, |option| match option {
            TcpOption::Timestamps(val, ecr) => Some((val, ecr)),
            _ => None,
        })
    };
    match item {
        Item::TcpMss => rows.some_words(out, tcp, |i| {
            find(rows, i, |option| match option {
                TcpOption::Mss(mss) => Some(mss.into()),
                _ => None,
            })
        }),
        Item::TcpWscale => rows.some_words(out, tcp, |i| {
            find(rows, i, |option| match option {
                TcpOption::WindowScale(shift) => Some(shift.into()),
                _ => None,
            })
        }),
        Item::TcpSackPermitted => rows.some_bits(out, tcp, |i| {
            let permitted =
                find(rows, i, |option| (option == TcpOption::SackPermitted).then_some(true));
            permitted.or_else(|| all_read(rows, i).then_some(false))
        }),
        Item::TcpSackBlocks => rows.some_words(out, tcp, |i| {
            let blocks = find(rows, i, |option| match option {
                TcpOption::Sack(blocks) => Some(blocks.len() as u64),
                _ => None,
            });
            blocks.or_else(|| all_read(rows, i).then_some(0))
        }),
        Item::TcpSackLeft => rows.some_words(out, tcp, |i| Some(first_block(i)?.0.into())),
        Item::TcpSackRight => rows.some_words(out, tcp, |i| Some(first_block(i)?.1.into())),
        Item::TcpTsval => rows.some_words(out, tcp, |i| Some(timestamps(i)?.0.into())),
        Item::TcpTsecr => rows.some_words(out, tcp, |i| Some(timestamps(i)?.1.into())),
        _ => false,
    }
}

/// What `wanted` makes of the first option that it takes.
fn find<T>(rows: &Rows<'_>, i: usize, wanted: impl Fn(TcpOption<'_>) -> Option<T>) -> Option<T> {
    let tcp = Tcp::new(rows.body(i)).ok()?;
    Options::new(tcp.options()).flatten().find_map(wanted)
}

/// Whether all options were captured and are good: only then is one that was not found not there.
fn all_read(rows: &Rows<'_>, i: usize) -> bool {
    Tcp::new(rows.body(i)).is_ok_and(|tcp| {
        let options = tcp.options();
        options.len() == tcp.header_len() - HEADER_LEN
            && Options::new(options).all(|option| option.is_ok())
    })
}
