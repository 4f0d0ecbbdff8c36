//! The packets that were lost on the way from a wire, in words.

use weir_packet::source::{Lost, PauseLosses};

/// Why the ring was full, and the option that helps.
pub(super) fn causes(lost: Lost, unread: PauseLosses) -> String {
    let seconds = f64::from(unread.longest_ms) / 1000.0;
    let away = (unread.frames > 0).then(|| {
        format!(
            "           {} came while nothing was read, once for {seconds:.1} s: the run was \
             stopped or waited, or other processes had the processors; -B holds more\n",
            unread.frames
        )
    });
    let fast = lost.ring.saturating_sub(unread.frames);
    let fast = (fast > 0).then(|| {
        format!(
            "           {fast} came faster than they were read: -j reads faster, a capture filter \
             leaves packets out; -B only holds bursts\n"
        )
    });
    away.into_iter().chain(fast).collect()
}

/// The number of lost packets, and the places.
pub(crate) fn losses(lost: Lost) -> String {
    let places = [
        (lost.ring, "in the ring, which was full"),
        (lost.kernel, "in the kernel"),
        (lost.interface, "by the interface"),
    ];
    let places = places.into_iter().filter(|(n, _)| *n > 0);
    let places: Vec<String> = places.map(|(n, place)| format!("{n} {place}")).collect();
    format!("{} ({})", lost.total(), places.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A larger ring was advised whatever the cause.
    #[test]
    fn a_pause_is_told_from_packets_that_come_too_fast() {
        let lost = |ring| Lost { interface: 1, kernel: 2, ring };
        let away = |frames| PauseLosses { frames, longest_ms: 3_060 };
        assert_eq!(causes(lost(0), PauseLosses::default()), "");
        let told = causes(lost(914), away(900));
        let lines: Vec<&str> = told.lines().map(str::trim_start).collect();
        assert!(
            lines[0].starts_with("900 came while nothing was read, once for 3.1 s: the run was")
        );
        assert!(lines[1].starts_with("14 came faster than they were read: -j reads faster, "));
        assert_eq!(lines.len(), 2);
        assert_eq!(causes(lost(900), away(900)).lines().count(), 1);
        assert!(causes(lost(9), PauseLosses::default()).contains("9 came faster"));
    }
}
