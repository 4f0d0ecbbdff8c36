//! Readers of what stands below IP on some links: MPLS, PPPoE, 802.11, radiotap, and tunnels.
//! Frames that have it are never plain, so the walk has noted where it starts.

use super::rows::{MAPPED, Rows};
use crate::bits::Bits;
use crate::column::Column;
use crate::fields::Item;
use crate::radiotap::Radiotap;
use crate::walk::Layer;
use crate::wlan::{self, Wlan};
use crate::{ipv4, ipv6, mpls, pppoe};

/// Reads `item` if it is one of these fields; returns whether it is.
pub(super) fn read(rows: &Rows<'_>, item: Item, out: &mut Column) -> bool {
    let (stack, session) = (rows.has(Layer::Mpls), rows.has(Layer::Pppoe));
    let below = |i: usize| &rows.layers.below[i];
    let label = |i: usize| rows.be32(i, below(i).mpls.into());
    match item {
        Item::MplsLabel => rows.words(out, stack, |i| label(i) >> 12),
        Item::MplsExp => rows.words(out, stack, |i| label(i) >> 9 & 7),
        Item::MplsTtl => rows.words(out, stack, |i| label(i) & 0xff),
        Item::MplsBottom => rows.words(out, stack, |i| {
            let above = usize::from(below(i).mpls_depth).saturating_sub(1);
            rows.be32(i, usize::from(below(i).mpls) + above * mpls::ENTRY_LEN) >> 12
        }),
        Item::MplsDepth => rows
            .words(out, Bits::ALL, |i| if stack.has(i) { below(i).mpls_depth.into() } else { 0 }),
        Item::PppoeCode => rows.words(out, session, |i| {
            let [code] = rows.load(i, usize::from(below(i).pppoe) + pppoe::CODE);
            code.into()
        }),
        Item::PppoeSession => rows
            .words(out, session, |i| rows.be16(i, usize::from(below(i).pppoe) + pppoe::SESSION_ID)),
        _ => wireless(rows, item, out) || radio(rows, item, out) || tunnel(rows, item, out),
    }
}

fn tunnel(rows: &Rows<'_>, item: Item, out: &mut Column) -> bool {
    let have = rows.has(Layer::Tunnel);
    let address = |i: usize, in_four: usize, in_six: usize| {
        let outer = usize::from(rows.layers.below[i].outer);
        let [version] = rows.load(i, outer);
        match version >> 4 {
            4 => (0, MAPPED | rows.be32(i, outer + in_four)),
            _ => (rows.be64(i, outer + in_six), rows.be64(i, outer + in_six + 8)),
        }
    };
    match item {
        Item::TunnelDepth => rows.words(out, Bits::ALL, |i| {
            if have.has(i) { rows.layers.below[i].tunnels.into() } else { 0 }
        }),
        Item::TunnelSrc => rows.pairs(out, have, |i| address(i, ipv4::SOURCE, ipv6::SOURCE)),
        Item::TunnelDst => {
            rows.pairs(out, have, |i| address(i, ipv4::DESTINATION, ipv6::DESTINATION))
        }
        _ => false,
    }
}

fn wireless(rows: &Rows<'_>, item: Item, out: &mut Column) -> bool {
    let have = rows.has(Layer::Wlan);
    let control = |i: usize| rows.be16(i, rows.layers.below[i].wlan.into());
    let flag = |i: usize, flag: u8| control(i) & u64::from(flag) != 0;
    let address: fn(&Wlan<'_>) -> Option<[u8; 6]> = match item {
        Item::WlanType => return rows.words(out, have, |i| control(i) >> 10 & 3),
        Item::WlanSubtype => return rows.words(out, have, |i| control(i) >> 12),
        Item::WlanRetry => return rows.bits(out, have, |i| flag(i, wlan::RETRY)),
        Item::WlanProtected => return rows.bits(out, have, |i| flag(i, wlan::PROTECTED)),
        Item::WlanRa => |w| w.receiver(),
        Item::WlanTa => |w| w.transmitter(),
        Item::WlanDa => |w| w.destination(),
        Item::WlanSa => |w| w.source(),
        Item::WlanBssid => |w| w.bssid(),
        _ => return false,
    };
    sparse(rows, have, out, |i| {
        let start = usize::from(rows.layers.below[i].wlan);
        let wlan = Wlan::new(rows.frames.frame(i).get(start..)?).ok()?;
        let [a, b, c, d, e, f] = address(&wlan)?;
        Some(u64::from_be_bytes([0, 0, a, b, c, d, e, f]))
    })
}

fn radio(rows: &Rows<'_>, item: Item, out: &mut Column) -> bool {
    let value: fn(&Radiotap<'_>) -> Option<u64> = match item {
        Item::RadiotapRate => |radio| radio.rate().map(u64::from),
        Item::RadiotapFreq => |radio| radio.frequency().map(u64::from),
        Item::RadiotapSignal => |radio| radio.signal().map(|dbm| i64::from(dbm) as u64),
        _ => return false,
    };
    sparse(rows, rows.has(Layer::Radiotap), out, |i| {
        value(&Radiotap::new(rows.frames.frame(i)).ok()?)
    })
}

/// Sets those of the rows `have` that have a value.
fn sparse(
    rows: &Rows<'_>,
    have: Bits,
    out: &mut Column,
    value: impl Fn(usize) -> Option<u64>,
) -> bool {
    let present: Bits = have.iter().filter(|&i| value(i).is_some()).collect();
    rows.words(out, present, |i| value(i).unwrap_or(0))
}
