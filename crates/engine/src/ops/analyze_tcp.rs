//! `analyze tcp`: what each segment is among the other segments of its connection.
//!
//! | | |
//! |---|---|
//! | Syntax | `analyze tcp idle D max N` |
//! | Emits | on push: every row, with the columns below; rows that are no TCP segments have no values in them |
//! | Order | kept |
//! | State | some 200 bytes a connection, 400 where columns are read that take more; `max` (default 16 Mi) connections, `idle` (default 1 h) |
//! | Full | the connection that had no segment for longest is evicted, and counted unless it is idle; its next segment starts it anew |
//! | Late | a late segment is looked at as it comes: the order is that of the capture |
//! | Merge | partitioned by connection |
//! | Exact? | exact, by the rules below; which connection is evicted depends on workers where the query names no `max`: each holds that many |
//!
//! This module holds the rules for one segment, and what is remembered of a connection. The table
//! of connections is that of [`scan`](super::scan), whose third mode this is.

mod findings;
mod rules;
mod segment;
mod side;
mod timed;
mod tracked;

pub(crate) use findings::{Finding, RTTS};
pub(crate) use rules::analyze;
pub(crate) use segment::Segment;
pub(crate) use tracked::Tracked;

#[cfg(test)]
mod tests {
    use crate::functions::Functions;
    use crate::ops::testing::field;
    use crate::tests::{Frames, check, program};
    use std::ops::Range;
    use weir_packet::craft::Frame;
    use weir_packet::fields::FlowKey;
    use weir_packet::source::LinkType;
    use weir_plan::analyze::{TCP_COLUMNS, TCP_PREFIX};
    use weir_plan::limits::SCAN_KEYS_MAX;
    use weir_plan::{AnalyzeTcp, Expr, Stage, Value};

    /// The stage, and all its columns.
    fn stages(idle_ns: i64, max_keys: u64) -> Vec<Stage> {
        let keys =
            AnalyzeTcp::key_fields(FlowKey::default()).into_iter().map(Expr::field).collect();
        let inputs = AnalyzeTcp::input_fields().map(Expr::field).collect();
        let columns = TCP_COLUMNS.iter().enumerate();
        let columns: Vec<_> =
            columns.map(|(i, c)| (format!("{TCP_PREFIX}{}", c.name), i, c.ty.clone())).collect();
        let all = columns.iter().map(|(name, i, ty)| (name.clone(), Expr::column(*i, ty.clone())));
        let project = Stage::Project { columns: all.collect() };
        vec![Stage::AnalyzeTcp(AnalyzeTcp { keys, inputs, columns, idle_ns, max_keys }), project]
    }

    const HOUR: i64 = 3_600_000_000_000;

    /// The findings in each row: the names of the columns that hold, and the other values.
    fn shown(frames: &Frames, idle_ns: i64, max_keys: u64) -> Vec<String> {
        let rows = check(&program(stages(idle_ns, max_keys)), &Functions::default(), frames);
        let cell = |(value, column): (&Value, &weir_plan::analyze::TcpColumn)| match value {
            Value::Absent | Value::Bool(false) => None,
            Value::Bool(true) if ["flags", "new_direction"].contains(&column.name) => None,
            Value::Bool(true) => Some(column.name.to_owned()),
            value => Some(format!("{}={value}", column.name)),
        };
        let row = |cells: &[Value]| {
            let shown: Vec<_> = cells.iter().zip(TCP_COLUMNS).filter_map(cell).collect();
            shown.join(" ")
        };
        rows.iter().map(|(_, cells)| row(cells)).collect()
    }

    /// A conversation: a line for each segment, with its time in ms, direction, flags, numbers from
    /// the first on, window, bytes of data, and what is found.
    const VECTOR: &str = "
        0 > S 0 0 1000 0: new_connection
        10 < SA 0 1 1000 0: ack_rtt=10ms server_rtt=10ms
        15 > A 1 1 1000 0: ack_rtt=5ms client_rtt=5ms
        20 > A 1 1 1000 100: bytes_in_flight=100
        21 > A 101 1 1000 100: bytes_in_flight=200
        30 < A 1 101 1000 0: ack_rtt=10ms
        31 < A 1 201 1000 0: ack_rtt=10ms
        40 > A 301 1 1000 100: lost_segment
        41 < A 1 201 1000 0: duplicate_ack duplicate_ack_num=1
        42 < A 1 201 1000 0: duplicate_ack duplicate_ack_num=2
        43 > A 201 1 1000 100: retransmission fast_retransmission bytes_in_flight=200
        44 < A 1 401 1000 0:
        50 > A 401 1 1000 100: bytes_in_flight=100
        51 > A 601 1 1000 100: lost_segment
        52 > A 501 1 1000 100: out_of_order
        60 < A 1 701 1000 0:
        100 > A 601 1 1000 100: retransmission spurious_retransmission
        110 > A 701 1 1000 100: bytes_in_flight=100
        200 > A 701 1 1000 100: retransmission bytes_in_flight=100
        201 < A 1 801 1000 0:
        300 > A 800 1 1000 0: keep_alive
        301 < A 1 801 1000 0: keep_alive_ack
        310 < A 1 801 900 0: window_update
        320 < A 1 801 0 0: zero_window
        330 > A 801 1 1000 1: zero_window_probe
        331 < A 1 801 0 0: zero_window zero_window_probe_ack
        340 < A 1 801 1000 0: window_update
        350 > A 801 1 1000 1000: window_full bytes_in_flight=1000
        360 < A 1 2001 1000 0: ack_lost_segment
        370 > FA 2001 1 1000 0: lost_segment
        380 < FA 1 2002 1000 0: ack_rtt=10ms
        390 > A 2002 2 1000 0: ack_rtt=10ms
        400 > S 5000 0 1000 0: reused_ports new_connection";

    fn flags(text: &str) -> u16 {
        text.chars().map(|c| 1 << "FSRPA".find(c).expect("a flag")).sum()
    }

    /// The frames of a vector, whose numbers start at these; and what is expected. `known` says
    /// when the round-trip time of the handshake is.
    fn vector(text: &str, known: &Range<u32>, client: u32, server: u32) -> (Frames, Vec<String>) {
        let (mut frames, mut expected) = (Vec::new(), Vec::new());
        for line in text.trim().lines() {
            let (line, found) = line.trim().split_once(':').expect("a colon");
            let words: Vec<&str> = line.split_whitespace().collect();
            let n = |i: usize| words[i].parse::<u32>().expect("a number");
            let (a, b) = ([10, 0, 0, 1], [10, 0, 0, 2]);
            let flags = flags(words[2]);
            let (frame, seq, ack) = match words[1] {
                ">" => (Frame::ethernet().ipv4(a, b).tcp(40_000, 80), client, server),
                _ => (Frame::ethernet().ipv4(b, a).tcp(80, 40_000), server, client),
            };
            let ack = if flags & 16 == 0 { 0 } else { ack.wrapping_add(n(4)) };
            let frame = frame.flags(flags).seq(seq.wrapping_add(n(3))).ackno(ack);
            let frame = frame.window(n(5) as u16).payload(&vec![0; n(6) as usize]);
            frames.push((i64::from(n(0)) * 1_000_000, frame.bytes()));
            // Once it is known, and until the ports are used again.
            let handshake = known.contains(&n(0)).then_some("initial_rtt=15ms");
            let mut all: Vec<&str> = found.split_whitespace().collect();
            let at =
                all.iter().position(|w| w.starts_with("server_rtt") || w.starts_with("client"));
            handshake.into_iter().for_each(|w| all.insert(at.unwrap_or(all.len()), w));
            expected.push(all.join(" "));
        }
        (Frames::new(LinkType::ETHERNET, &frames), expected)
    }

    #[test]
    fn each_rule_holds_wherever_numbers_wrap() {
        for at in
            [0u32, 1, 2, 100, 101, 200, 201, 301, 401, 500, 601, 701, 800, 801, 802, 1801, 2001]
        {
            for start in [at.wrapping_neg(), at.wrapping_neg().wrapping_sub(1)] {
                let (frames, expected) = vector(VECTOR, &(15..400), start, at.wrapping_neg());
                assert_eq!(shown(&frames, HOUR, SCAN_KEYS_MAX), expected, "from {start}");
            }
        }
    }

    /// A segment of an earlier connection between the ports, which is reset.
    const STRAY: &str = "
        0 > S 0 0 1000 0: new_connection
        1 < A 500 700 1000 0: ack_lost_segment initial_rtt=1ms
        2 > R 700 0 0 0: initial_rtt=1ms
        3000 > S 0 0 1000 0: retransmission initial_rtt=1ms
        3010 < SA 0 1 1000 0: reused_ports initial_rtt=1ms
        3015 > A 1 1 1000 0: ack_rtt=5ms initial_rtt=1ms client_rtt=5ms
        3020 > A 1 1 1000 100: bytes_in_flight=100 initial_rtt=1ms
        3030 < A 1 101 1000 0: ack_rtt=10ms initial_rtt=1ms";

    #[test]
    fn a_reset_of_an_earlier_connection_moves_nothing() {
        for start in [1000, 701u32.wrapping_neg()] {
            let (frames, expected) = vector(STRAY, &(0..0), start, 5000);
            assert_eq!(shown(&frames, HOUR, SCAN_KEYS_MAX), expected, "from {start}");
        }
    }

    /// Random conversations that mostly go on as they should.
    fn conversations(seed: u64, packets: usize) -> Frames {
        let mut state = seed;
        let mut word = move || {
            state =
                state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
            (state >> 40) as u32
        };
        // For each of three connections the next number of both sides.
        let mut numbers = [[u32::MAX - 900, 0], [u32::MAX - 5, 1], [u32::MAX, u32::MAX]];
        // The number that each side acknowledged last, and its window.
        let mut said = [[(0u32, 1000u16); 2]; 3];
        let mut now = 0i64;
        let mut frames = Vec::new();
        for _ in 0..packets {
            let (c, side) = (word() as usize % 3, word() as usize % 2);
            now +=
                i64::from(word() % 4) * [1, 1_000_000, 7_000_000, 40_000_000][word() as usize % 4];
            let back = if word() % 16 == 0 { i64::from(word() % 30) * 1_000_000 } else { 0 };
            let [mine, theirs] = [numbers[c][side], numbers[c][1 - side]];
            let len = [0, 0, 1, 100, 100, 300][word() as usize % 6];
            let flags = [16, 16, 16, 16, 24, 24, 2, 18, 17, 4, 20, 0, 511][word() as usize % 13];
            let off = [0, 0, 0, 0, 0, 1, 100, 200, 1u32.wrapping_neg(), 100u32.wrapping_neg()];
            let off = off[word() as usize % 10];
            let acks = [0, 0, 0, 0, 100u32.wrapping_neg(), 100];
            let (seq, ack) =
                (mine.wrapping_add(off), theirs.wrapping_add(acks[word() as usize % 6]));
            let window = [1000, 1000, 1000, 0, 1, 65_535, 300][word() as usize % 7];
            let [(last_ack, last_window), (asked, _)] = [said[c][side], said[c][1 - side]];
            let (seq, ack, window, len, flags) = match word() % 5 {
                // Says the same again, or sends what the other side asks for.
                0 | 1 => (mine, last_ack, last_window, 0, 16),
                2 => (asked, last_ack, last_window, 100, 16),
                _ => (seq, ack, window, len, flags),
            };
            said[c][side] = (ack, window);
            let port = 40_000 + c as u16;
            let (sport, dport) = if side == 0 { (port, 80) } else { (80, port) };
            let (a, b) = ([10, 0, 0, 1], [10, 0, 0, 2]);
            let frame = match (c, side) {
                (2, 0) => Frame::ethernet().ipv6([1; 8], [2; 8]),
                (2, _) => Frame::ethernet().ipv6([2; 8], [1; 8]),
                (_, 0) => Frame::ethernet().ipv4(a, b),
                _ => Frame::ethernet().ipv4(b, a),
            };
            let stamp = |n: u32| (n / 100).wrapping_sub(3).to_be_bytes();
            let mut options = vec![1, 1, 8, 10];
            options.extend(stamp(seq));
            options.extend(stamp(ack));
            let frame = frame.tcp(sport, dport).flags(flags).seq(seq).ackno(ack).window(window);
            let frame = match word() % 4 {
                0 => frame,
                1 => frame.options(&[3, 3, (word() % 20) as u8, 1]),
                _ => frame.options(&options),
            };
            frames.push((now - back, frame.payload(&vec![0; len as usize]).bytes()));
            let end = seq.wrapping_add(len).wrapping_add(u32::from(flags & 3 != 0));
            if word() % 8 != 0 && (end.wrapping_sub(mine) as i32) > 0 {
                numbers[c][side] = end;
            }
        }
        frames.push((now, vec![0; 60]));
        Frames::new(LinkType::ETHERNET, &frames)
    }

    #[test]
    fn random_conversations_are_as_the_model_says() {
        let mut seen = std::collections::BTreeSet::new();
        for seed in 0..24 {
            let idle = [HOUR, 50_000_000, HOUR][seed as usize % 3];
            let max = [SCAN_KEYS_MAX, SCAN_KEYS_MAX, 2][seed as usize % 3];
            for row in shown(&conversations(seed, 700), idle, max) {
                let name = |word: &str| word.split('=').next().map(str::to_owned);
                seen.extend(row.split_whitespace().filter_map(name));
            }
        }
        // Flags and directions are of every conversation, and not shown.
        let names = TCP_COLUMNS.iter().map(|c| c.name);
        let shown = names.filter(|name| !["flags", "new_direction"].contains(name));
        let missing: Vec<&str> = shown.filter(|name| !seen.contains(*name)).collect();
        assert!(missing.is_empty(), "never drawn: {missing:?}");
    }

    /// The state of a connection depends on which columns are read, and the columns do not.
    #[test]
    fn columns_are_the_same_whichever_others_are_read() {
        let number = |name: &str| TCP_COLUMNS.iter().position(|c| c.name == name).expect("one");
        let alone = (0..TCP_COLUMNS.len()).map(|i| vec![i]);
        let several = [
            ["new_direction", "new_connection", "retransmission", "server_rtt"],
            ["out_of_order", "zero_window_probe", "tsval_rtt", "client_rtt"],
            ["bytes_in_flight", "ack_rtt", "initial_rtt", "server_rtt"],
        ];
        let several = several.map(|names| names.map(number).to_vec());
        for (seed, read) in alone.chain(several).enumerate() {
            let mut all = stages(HOUR, SCAN_KEYS_MAX);
            let Some(Stage::Project { columns }) = all.last_mut() else { unreachable!("as made") };
            let own = read.iter().map(|&i| columns[i].clone()).collect();
            *columns = own;
            let frames = conversations(100 + seed as u64, 300);
            let rows = check(&program(all), &Functions::default(), &frames);
            assert_eq!(rows[0].1.len(), read.len());
        }
    }

    #[test]
    fn what_is_no_segment_has_no_values() {
        let (a, b) = ([10, 0, 0, 1], [10, 0, 0, 2]);
        let frames = [
            Frame::ethernet().ipv4(a, b).udp(1, 2).bytes(),
            // Cut within its header.
            Frame::ethernet().ipv4(a, b).tcp(1, 2).bytes()[..44].to_vec(),
            // A first fragment, whose length nobody knows.
            Frame::ethernet().ipv4(a, b).fragment(0, true).tcp(1, 2).bytes(),
            Frame::ethernet().ipv4(a, b).tcp(1, 2).bytes(),
        ];
        let frames: Vec<(i64, Vec<u8>)> = frames.into_iter().map(|bytes| (0, bytes)).collect();
        let frames = Frames::new(LinkType::ETHERNET, &frames);
        let mut all = stages(HOUR, SCAN_KEYS_MAX);
        let Some(Stage::Project { columns }) = all.last_mut() else { unreachable!("as made") };
        columns.truncate(1);
        columns.push(("seq".to_owned(), field("tcp.seq")));
        let rows = check(&program(all), &Functions::default(), &frames);
        let there: Vec<bool> = rows.iter().map(|(_, cells)| cells[0].exists()).collect();
        assert_eq!(there, [false, false, false, true]);
    }
}
