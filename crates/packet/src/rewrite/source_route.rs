//! Where routes and options stand in IP headers, for the search for addresses and for checksums.

use crate::ipv4;

/// IPv4 options that hold addresses (RFC 791).
pub(super) const RECORD: u8 = 7;
pub(super) const LOOSE: u8 = 131;
pub(super) const STRICT: u8 = 137;

/// The IPv6 option that holds the address of a mobile node at home (RFC 6275, section 6.3).
pub(super) const HOME_ADDRESS: u8 = 0xc9;

/// The options of an IPv4 header of so many bytes: kind, start, length. The last one has the length
/// 0 if it does not end within what was captured of the header; the end of options (kind 0) reaches
/// to the end of the header.
pub(super) fn options(
    frame: &[u8],
    header: usize,
    len: usize,
) -> impl Iterator<Item = (u8, usize, usize)> + '_ {
    let end = (header + len).min(frame.len());
    let mut at = header + ipv4::HEADER_LEN;
    std::iter::from_fn(move || {
        loop {
            let kind = *frame.get(at..end)?.first()?;
            match kind {
                1 => at += 1,
                0 => {
                    let start = at;
                    at = end;
                    return Some((kind, start, end - start));
                }
                _ => {
                    let start = at;
                    let len = frame.get(at + 1).map_or(0, |&len| usize::from(len));
                    at += len;
                    if len < 2 || at > end {
                        at = end;
                        return Some((kind, start, 0));
                    }
                    return Some((kind, start, len));
                }
            }
        }
    })
}

/// The options in an extension header of IPv6 that is so long: kind, and start and length of the
/// data. The last one may reach beyond the header.
pub(super) fn options6(
    frame: &[u8],
    header: usize,
    len: usize,
) -> impl Iterator<Item = (u8, usize, usize)> + '_ {
    let mut at = header + 2;
    std::iter::from_fn(move || {
        while at < header + len {
            let kind = *frame.get(at)?;
            if kind == 0 {
                at += 1;
                continue;
            }
            let (start, len) = (at + 2, usize::from(*frame.get(at + 1)?));
            at = start + len;
            return Some((kind, start, len));
        }
        None
    })
}

/// Where the addresses of a routing header stand (RFC 6275: types 0 and 2; RFC 8754: type 4).
pub(super) fn stops(frame: &[u8], at: usize, len: usize) -> impl Iterator<Item = usize> {
    let kind = frame.get(at + 2).copied();
    let (last, known) = (frame.get(at + 4), matches!(kind, Some(0 | 2 | 4)));
    let most = (len.saturating_sub(8)) / 16;
    let n = match kind {
        // Behind the list there may be options.
        Some(4) => last.map_or(most, |&last| most.min(usize::from(last) + 1)),
        _ => most,
    };
    (0..if known { n } else { 0 }).map(move |i| at + 8 + 16 * i)
}
