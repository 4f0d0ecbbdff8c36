//! The fields of TCP options. They are looked for where a query asks.

use super::entry::{Entry, flag, int};
use super::rows::Rows;
use crate::bits::Bits;
use crate::column::Column;
use crate::tcp::{DATA_OFFSET, HEADER_LEN, Tcp};
use crate::tcp_options::{Options, TcpOption, edges};
use crate::walk::Layer;

/// The rows of the catalogue.
pub(super) const FIELDS: &[Entry] = &[
    int(
        "tcp.mss",
        16,
        "TCP option: the largest segment that the sender takes, in bytes (RFC 9293).",
        |rows, out| {
            option(rows, out, |option| match option {
                TcpOption::Mss(mss) => Some(mss.into()),
                _ => None,
            })
        },
    ),
    int(
        "tcp.wscale",
        8,
        "TCP option: by how many bits the sender's windows are shifted (RFC 7323).",
        |rows, out| {
            option(rows, out, |option| match option {
                TcpOption::WindowScale(shift) => Some(shift.into()),
                _ => None,
            })
        },
    ),
    flag(
        "tcp.sack_permitted",
        "Whether the TCP options permit selective acknowledgments (RFC 2018).",
        |rows, out| {
            rows.some_bits(out, rows.has(Layer::TcpWhole), |i| {
                let permitted =
                    find(rows, i, |option| (option == TcpOption::SackPermitted).then_some(true));
                permitted.or_else(|| all_read(rows, i).then_some(false))
            })
        },
    ),
    int(
        "tcp.sack_blocks",
        8,
        "How many blocks the TCP options acknowledge selectively; 0 without any (RFC 2018).",
        |rows, out| {
            rows.some_words(out, rows.has(Layer::TcpWhole), |i| {
                let blocks = find(rows, i, |option| match option {
                    TcpOption::Sack(blocks) => Some(blocks.len() as u64),
                    _ => None,
                });
                blocks.or_else(|| all_read(rows, i).then_some(0))
            })
        },
    ),
    int(
        "tcp.sack_left",
        32,
        "First sequence number of the first block acknowledged selectively.",
        |rows, out| {
            option(rows, out, |option| match option {
                TcpOption::Sack(blocks) => Some(edges(blocks.first()?).0.into()),
                _ => None,
            })
        },
    ),
    int(
        "tcp.sack_right",
        32,
        "Sequence number after the first block acknowledged selectively.",
        |rows, out| {
            option(rows, out, |option| match option {
                TcpOption::Sack(blocks) => Some(edges(blocks.first()?).1.into()),
                _ => None,
            })
        },
    ),
    int(
        "tcp.tsval",
        32,
        "TCP option: the sender's timestamp, in units of its own (RFC 7323).",
        |rows, out| {
            option(rows, out, |option| match option {
                TcpOption::Timestamps(val, _) => Some(val.into()),
                _ => None,
            })
        },
    ),
    int(
        "tcp.tsecr",
        32,
        "TCP option: the timestamp that the sender echoes; 0 without the ACK flag (RFC 7323).",
        |rows, out| {
            option(rows, out, |option| match option {
                TcpOption::Timestamps(_, ecr) => Some(ecr.into()),
                _ => None,
            })
        },
    ),
];

/// Reads what `wanted` makes of the first option that it takes.
fn option(rows: &Rows<'_>, out: &mut Column, wanted: impl Fn(TcpOption<'_>) -> Option<u64>) {
    rows.some_words(out, with_options(rows), |i| find(rows, i, &wanted));
}

/// The rows whose TCP header is longer than one without options.
fn with_options(rows: &Rows<'_>) -> Bits {
    let mut long = Bits::NONE;
    rows.has(Layer::TcpWhole).each(|i| {
        let words = rows.be16(i, rows.l4(i) + DATA_OFFSET) >> 12;
        long.put(i, words > HEADER_LEN as u64 / 4);
    });
    long
}

/// The result of `wanted` for the first option that it takes.
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
