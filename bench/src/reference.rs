//! The yardstick where there is no C compiler: a flow meter by hand.
//!
//! It does nothing but the work, as `roofline.c` does: walk the records of a mapped
//! file, classify, build keys, hash, prefetch the table row, update it. One row of 64 bytes per
//! directed flow, with packets, bytes, first and last time; tables sized and touched before. No
//! time-outs, no output, no limits, one kind of capture file: an engine has to do more.
//!
//! Packets of TCP and UDP over IPv4 without options and IPv6 without extension headers are
//! metered; any others are counted as such.

use crate::sys::{Pages, prefetch};
use anyhow::{Result, ensure};
use std::io;

/// Records taken at once.
const BATCH: usize = 64;

/// Bytes of a file and of a record header.
const FILE_HEADER: usize = 24;
const RECORD_HEADER: usize = 16;

/// Bytes looked at of each record: its header and 78 of the frame, as far as IPv6 ports go.
const WINDOW: usize = RECORD_HEADER + 78;

/// How far ahead the file is prefetched, in bytes.
const AHEAD: usize = 2048;

/// Smallest table: however full it may be, a batch of new flows fits, so that probing ends.
const TABLE_LOG2_MIN: u32 = 8;

/// Marks a used row in the last word of its key.
const USED: u64 = 1 << 40;

/// The bytes of a record that the loop reads.
type Window = [u8; WINDOW];

/// The counts of a meter.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Totals {
    /// Records read.
    pub(crate) packets: u64,
    /// Their bytes on the wire.
    pub(crate) bytes: u64,
    /// Distinct directed flows.
    pub(crate) flows: u64,
    /// Packets that are not metered.
    pub(crate) other: u64,
}

/// The meter: two tables and what was counted.
pub(crate) struct Meter {
    /// Key (2 words), packets, bytes, first, last.
    v4: Pages,
    /// Key (5 words), packets, bytes, last.
    v6: Pages,
    /// First times of the IPv6 rows, which do not fit into their cache lines.
    v6_first: Vec<u64>,
    v4_flows: u64,
    v6_flows: u64,
    totals: Totals,
}

/// The records of one batch, by kind.
struct Batch {
    at: [usize; BATCH],
    len: usize,
    v4: [u8; BATCH],
    v4_len: usize,
    v6: [u8; BATCH],
    v6_len: usize,
}

impl Meter {
    /// A meter with tables of `2^log2` rows for each address family. Flows may fill two fifths.
    pub(crate) fn new(v4_log2: u32, v6_log2: u32) -> io::Result<Meter> {
        let (v4_log2, v6_log2) = (v4_log2.max(TABLE_LOG2_MIN), v6_log2.max(TABLE_LOG2_MIN));
        Ok(Meter {
            v4: Pages::zeroed(v4_log2)?,
            v6: Pages::zeroed(v6_log2)?,
            v6_first: vec![0; 1 << v6_log2],
            v4_flows: 0,
            v6_flows: 0,
            totals: Totals::default(),
        })
    }

    /// Meters a little-endian pcap file of Ethernet frames with microseconds.
    pub(crate) fn run(&mut self, file: &[u8]) -> Result<Totals> {
        ensure!(
            file.starts_with(&[0xd4, 0xc3, 0xb2, 0xa1]) && file.get(20..24) == Some(&[1, 0, 0, 0]),
            "not a little-endian pcap of Ethernet frames with microseconds"
        );
        // Records near the end are read from a copy with room after it.
        let cut = self.run_whole(file, FILE_HEADER)?;
        let mut tail = file[cut..].to_vec();
        let end = tail.len();
        tail.resize(end + WINDOW, 0);
        let stop = self.run_until(&tail, 0, end)?;
        ensure!(stop == end, "the last record breaks off");
        self.totals.flows = self.v4_flows + self.v6_flows;
        Ok(self.totals)
    }

    fn run_whole(&mut self, file: &[u8], start: usize) -> Result<usize> {
        self.run_until(file, start, file.len().saturating_sub(WINDOW - 1))
    }

    /// Meters the records from `at` that start before `end` and returns where the next one does.
    fn run_until(&mut self, file: &[u8], mut at: usize, end: usize) -> Result<usize> {
        let mut batch = Batch::new();
        while at < end {
            at = batch.walk(file, at, end, &mut self.totals);
            if batch.len == 0 {
                break;
            }
            self.update_v4(file, &batch);
            self.update_v6(file, &batch);
            self.totals.packets += batch.len as u64;
            self.totals.other += (batch.len - batch.v4_len - batch.v6_len) as u64;
            let room = |flows: u64, rows: &mut [[u64; 8]]| flows * 5 <= rows.len() as u64 * 2;
            ensure!(room(self.v4_flows, self.v4.rows()), "too many IPv4 flows for the table");
            ensure!(room(self.v6_flows, self.v6.rows()), "too many IPv6 flows for the table");
        }
        Ok(at)
    }

    fn update_v4(&mut self, file: &[u8], batch: &Batch) {
        let rows = self.v4.rows();
        let mask = rows.len() - 1;
        let mut keys = [([0; 2], 0); BATCH];
        for (j, i) in batch.v4[..batch.v4_len].iter().enumerate() {
            let r = window(file, batch.at[usize::from(*i)]);
            let key = [u64_at(r, 42), u64::from(u32_at(r, 50)) | u64::from(r[39]) << 32 | USED];
            let hash = fold(key[0] ^ SECRETS[0], key[1] ^ SECRETS[1]) as usize;
            prefetch(&rows[hash & mask]);
            keys[j] = (key, hash);
        }
        for (j, i) in batch.v4[..batch.v4_len].iter().enumerate() {
            let r = window(file, batch.at[usize::from(*i)]);
            let (key, hash) = keys[j];
            let (slot, new) = find(rows, key, hash);
            let row = &mut rows[slot];
            if new {
                row[4] = time_us(r);
                self.v4_flows += 1;
            }
            row[2] += 1;
            row[3] += wire_len(r);
            row[5] = time_us(r);
        }
    }

    fn update_v6(&mut self, file: &[u8], batch: &Batch) {
        let rows = self.v6.rows();
        let mask = rows.len() - 1;
        let mut keys = [([0; 5], 0); BATCH];
        for (j, i) in batch.v6[..batch.v6_len].iter().enumerate() {
            keys[j] = v6_key(window(file, batch.at[usize::from(*i)]));
            prefetch(&rows[keys[j].1 & mask]);
        }
        for (j, i) in batch.v6[..batch.v6_len].iter().enumerate() {
            let r = window(file, batch.at[usize::from(*i)]);
            let (key, hash) = keys[j];
            let (slot, new) = find(rows, key, hash);
            let row = &mut rows[slot];
            if new {
                self.v6_first[slot] = time_us(r);
                self.v6_flows += 1;
            }
            row[5] += 1;
            row[6] += wire_len(r);
            row[7] = time_us(r);
        }
    }
}

impl Batch {
    fn new() -> Batch {
        Batch { at: [0; BATCH], len: 0, v4: [0; BATCH], v4_len: 0, v6: [0; BATCH], v6_len: 0 }
    }

    /// Takes the next records that start before `end` and classifies them without branches.
    /// Returns where the record after them starts; a torn record is not taken.
    #[inline(always)]
    fn walk(&mut self, file: &[u8], mut at: usize, end: usize, totals: &mut Totals) -> usize {
        (self.len, self.v4_len, self.v6_len) = (0, 0, 0);
        while self.len < BATCH && at < end {
            let Some(r) = file.get(at..).and_then(<[u8]>::first_chunk::<WINDOW>) else { break };
            let caplen = u32_at(r, 8);
            let next = at + RECORD_HEADER + caplen as usize;
            if next > file.len() {
                break;
            }
            weir_packet::prefetch::prefetch(file, at + AHEAD);
            // EtherType, version and header length in one look, then protocol and fragment bits.
            let head = u32_at(r, 28);
            let ports = |protocol: u8| protocol == 6 || protocol == 17;
            let whole = u16::from_le_bytes([r[36], r[37]]) & 0xff1f == 0;
            let v4 = head & 0x00ff_ffff == 0x0045_0008 && ports(r[39]) && whole && caplen >= 38;
            let v6 = head & 0x00f0_ffff == 0x0060_dd86 && ports(r[36]) && caplen >= 58;
            totals.bytes += wire_len(r);
            self.at[self.len] = at;
            self.v4[self.v4_len % BATCH] = self.len as u8;
            self.v6[self.v6_len % BATCH] = self.len as u8;
            self.v4_len += usize::from(v4);
            self.v6_len += usize::from(v6);
            self.len += 1;
            at = next;
        }
        at
    }
}

/// The row of a key of `N` words, and whether it was made just now.
#[inline(always)]
fn find<const N: usize>(rows: &mut [[u64; 8]], key: [u64; N], hash: usize) -> (usize, bool) {
    let mask = rows.len() - 1;
    let mut slot = hash & mask;
    loop {
        let row = &mut rows[slot];
        if row[..N] == key {
            return (slot, false);
        }
        if row[N - 1] == 0 {
            row[..N].copy_from_slice(&key);
            return (slot, true);
        }
        slot = (slot + 1) & mask;
    }
}

/// Random bits that the hash is keyed with (digits of pi).
const SECRETS: [u64; 4] =
    [0x243f_6a88_85a3_08d3, 0x1319_8a2e_0370_7344, 0xa409_3822_299f_31d0, 0x082e_fa98_ec4e_6c89];

/// A folded multiply: both halves of the product of two words.
#[inline(always)]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

#[inline(always)]
fn v6_key(r: &Window) -> ([u64; 5], usize) {
    let ports = u64::from(u32_at(r, 70)) | u64::from(r[36]) << 32 | USED;
    let key = [u64_at(r, 38), u64_at(r, 46), u64_at(r, 54), u64_at(r, 62), ports];
    let addresses = fold(key[0] ^ SECRETS[0], key[1] ^ SECRETS[1])
        ^ fold(key[2] ^ SECRETS[2], key[3] ^ SECRETS[3]);
    (key, fold(addresses, ports ^ SECRETS[0]) as usize)
}

/// Time of a record in microseconds since 1970.
#[inline(always)]
fn time_us(r: &Window) -> u64 {
    u64::from(u32_at(r, 0)) * 1_000_000 + u64::from(u32_at(r, 4))
}

/// Length of the frame on the wire.
#[inline(always)]
fn wire_len(r: &Window) -> u64 {
    u64::from(u32_at(r, 12))
}

#[inline(always)]
fn window(file: &[u8], at: usize) -> &Window {
    file[at..].first_chunk().expect("the walk saw a whole window")
}

#[inline(always)]
fn u32_at(r: &Window, at: usize) -> u32 {
    u32::from_le_bytes(r[at..at + 4].try_into().expect("four bytes"))
}

#[inline(always)]
fn u64_at(r: &Window, at: usize) -> u64 {
    u64::from_le_bytes(r[at..at + 8].try_into().expect("eight bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::{PRESETS, TraceOptions};

    #[test]
    fn counts_what_the_generator_wrote() {
        for preset in &PRESETS {
            let options =
                TraceOptions { packets: 5_000, conversations: 300, ..preset.options.clone() };
            let mut file = Vec::new();
            let truth = options.write(&mut file).expect("memory takes it");
            let mut meter = Meter::new(12, 12).expect("memory");
            let totals = meter.run(&file).expect("a whole file");
            assert_eq!(totals.packets, truth.packets);
            assert_eq!(totals.bytes, truth.bytes);
            assert_eq!((totals.flows, totals.other), (truth.flows, 0));
            let sum = |rows: &[[u64; 8]], at: usize| rows.iter().map(|r| r[at]).sum::<u64>();
            assert_eq!(sum(meter.v4.rows(), 2) + sum(meter.v6.rows(), 5), truth.packets);
            assert_eq!(sum(meter.v4.rows(), 3) + sum(meter.v6.rows(), 6), truth.bytes);

            file.truncate(file.len() - 1);
            assert!(Meter::new(12, 12).expect("memory").run(&file).is_err());
        }
    }

    #[test]
    fn a_full_table_is_an_error() {
        let options = TraceOptions { packets: 5_000, ..PRESETS[1].options.clone() };
        let mut file = Vec::new();
        options.write(&mut file).expect("memory takes it");
        assert!(Meter::new(0, 0).expect("memory").run(&file).is_err());
    }
}
