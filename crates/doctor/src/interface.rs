//! One interface: its link, its queues and rings, and what the card and the kernel do with packets
//! before they are captured.

use crate::check::Check;
use crate::system::System;
use weir_capture::adapter::{Adapter, Xdp};
use weir_capture::limits::XDP_MTU_MAX;

/// Judges it.
pub(crate) fn judge(on: &Adapter, system: &System) -> Vec<Check> {
    let mut all = vec![link(on)];
    all.extend([queues(on, system), ring(on), spread(on)].into_iter().flatten());
    all.extend(joined(on));
    all.extend([tags(on), mtu(on), xdp(on), node(on, system)].into_iter().flatten());
    all
}

fn link(on: &Adapter) -> Check {
    let driver = on.driver.as_deref().unwrap_or("a driver without a name");
    let what = "link";
    if !on.up {
        let means = "no packets come until the interface is up";
        let check = Check::problem(what, format!("down ({driver})"), means);
        return check.changed_by(format!("sudo ip link set {} up", on.name));
    }
    if !on.carrier {
        let means = "no packets come until its other end is connected";
        return Check::problem(what, format!("up, not connected ({driver})"), means);
    }
    Check::ok(what, format!("up ({driver})"))
}

/// Checks that there are as many queues as processors: more have no effect, fewer leave some idle.
fn queues(on: &Adapter, system: &System) -> Option<Check> {
    let queues = on.queues?;
    let (what, wanted) = ("queues", queues.most.min(system.processors as u32));
    let found = format!("{} of {} are in use", queues.now, queues.most);
    if queues.now >= wanted {
        let busy = !system.irqbalance && queues.now > 1;
        let found = match busy {
            true => format!("{found}; see /proc/interrupts for their processors"),
            false => found,
        };
        return Some(Check::ok(what, found));
    }
    let kind = if queues.combined { "combined" } else { "rx" };
    let means = format!(
        "the kernel takes its packets on {} of {} processors",
        queues.now, system.processors
    );
    let command = format!("sudo ethtool -L {} {kind} {wanted}", on.name);
    Some(Check::note(what, found, means).changed_by(command))
}

fn ring(on: &Adapter) -> Option<Check> {
    let (now, most) = on.ring?;
    let (what, found) = ("ring", format!("{now} of {most} descriptors"));
    let found = match on.missed {
        0 => found,
        n => format!("{found}; {n} packets found none free"),
    };
    if now >= most {
        return Some(match on.missed {
            0 => Check::ok(what, found),
            _ => Check::note(what, found, "packets were lost before the kernel saw them"),
        });
    }
    let command = format!("sudo ethtool -G {} rx {most}", on.name);
    let check = match on.missed {
        0 => Check::note(what, found, "bursts may find none free; lost packets are `rx_missed`"),
        _ => Check::problem(what, found, "packets were lost before the kernel saw them"),
    };
    Some(check.changed_by(command))
}

fn spread(on: &Adapter) -> Option<Check> {
    let spread = on.spread.filter(|_| on.queues.is_none_or(|queues| queues.now > 1))?;
    let what = "spread over queues";
    let ports = match spread.ports {
        Some(true) => " and ports",
        _ => "",
    };
    let found = |kind: &str| format!("by a {kind}hash of addresses{ports}");
    Some(match spread.symmetric {
        Some(true) => Check::ok(what, found("symmetric ")),
        Some(false) => {
            let means = "the directions of a connection come by two queues, up to a fiftieth of a \
                         second out of order; Weir brings them together itself";
            Check::note(what, found(""), means).changed_by(format!(
                "sudo ethtool -X {} xfrm symmetric-xor   # Linux 6.8, if the driver supports it",
                on.name
            ))
        }
        None => Check::ok(what, "by an unknown hash"),
    })
}

fn is_on(on: &Adapter, feature: &str) -> Option<bool> {
    on.features.iter().find(|f| f.name == feature).map(|f| f.on)
}

/// The command that switches something off, if that is possible.
fn off(on: &Adapter, feature: &str, word: &str) -> String {
    match on.features.iter().any(|f| f.name == feature && f.switchable) {
        true => format!("sudo ethtool -K {} {word} off", on.name),
        false => String::new(),
    }
}

/// Checks the offloads that join packets before they are captured.
fn joined(on: &Adapter) -> Vec<Check> {
    let mut all = Vec::new();
    let command = |feature: &str, word: &str| off(on, feature, word);
    if is_on(on, "rx-lro") == Some(true) {
        let means = "the card joins packets, so a capture sees one packet where several were sent; \
                     joined packets can't be forwarded, and native XDP is refused";
        all.push(Check::problem("LRO", "on", means).changed_by(command("rx-lro", "lro")));
    }
    if is_on(on, "rx-gro-hw") == Some(true) {
        let means = "the card joins packets, so a capture sees one packet where several were sent";
        all.push(
            Check::note("GRO by the card", "on", means)
                .changed_by(command("rx-gro-hw", "rx-gro-hw")),
        );
    }
    match is_on(on, "rx-gro") {
        Some(true) => {
            let means = "the kernel joins packets of a connection before they are captured: a \
                         capture has fewer packets and headers than the wire";
            all.push(Check::note("GRO", "on", means).changed_by(command("rx-gro", "gro")));
        }
        Some(false) => all.push(Check::ok("GRO", "off: packets are captured as they came")),
        None => {}
    }
    if is_on(on, "tx-tcp-segmentation") == Some(true) {
        let found = "on: packets that this machine sends are captured before they are segmented";
        all.push(Check::ok("TSO", found));
    }
    all
}

fn tags(on: &Adapter) -> Option<Check> {
    if is_on(on, "rx-vlan-hw-parse") != Some(true) {
        return None;
    }
    let means = "AF_PACKET puts them back; --capture xdp loses them";
    let check = Check::note("VLAN tags", "removed by the card", means);
    Some(check.changed_by(off(on, "rx-vlan-hw-parse", "rxvlan")))
}

fn mtu(on: &Adapter) -> Option<Check> {
    let (what, found) = ("MTU", on.mtu.to_string());
    if on.mtu as usize <= XDP_MTU_MAX {
        return Some(Check::ok(what, found));
    }
    let means = format!("--capture xdp takes frames of an MTU of {XDP_MTU_MAX} at most");
    let check = Check::note(what, found, means);
    Some(check.changed_by(format!("sudo ip link set {} mtu {XDP_MTU_MAX}", on.name)))
}

fn xdp(on: &Adapter) -> Option<Check> {
    let what = "XDP";
    if let Some((place, number)) = on.program {
        let means = "--capture xdp is not possible while another program is on the interface";
        let check = Check::note(what, format!("program {number} is on it, {place}"), means);
        return Some(check.changed_by(format!("sudo ip link set {} xdp off", on.name)));
    }
    let Xdp { native, redirect, zero_copy } = on.xdp?;
    let generic = "--capture xdp runs in the stack, with little gain over AF_PACKET";
    Some(match (native && redirect, zero_copy) {
        (true, true) => Check::ok(what, "in the driver, zero-copy"),
        (true, false) => {
            let means = "--capture xdp has the kernel copy each frame once";
            Check::note(what, "in the driver, without zero-copy", means)
        }
        (false, _) => Check::note(what, "not in the driver", generic),
    })
}

fn node(on: &Adapter, system: &System) -> Option<Check> {
    let node = on.node.filter(|_| system.nodes > 1)?;
    let means = "workers on processors of another node take longer to read its packets";
    let check = Check::note("memory", format!("nearest to node {node}"), means);
    Some(check.changed_by(format!("numactl --cpunodebind={node} --membind={node} weir run …")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::{Findings, Verdict};
    use crate::report::text;
    use crate::system::good;
    use insta::assert_snapshot;
    use weir_capture::adapter::{Feature, Queues, Spread};

    fn feature(name: &str, on: bool) -> Feature {
        Feature { name: name.to_owned(), on, switchable: true }
    }

    /// An interface without a note or a problem.
    fn fine() -> Adapter {
        let mut on = Adapter::default();
        (on.name, on.driver) = ("eth0".to_owned(), Some("ice".to_owned()));
        (on.up, on.carrier, on.mtu) = (true, true, 1500);
        on.queues = Some(Queues { now: 8, most: 64, combined: true });
        on.ring = Some((4096, 4096));
        on.features = vec![feature("rx-gro", false), feature("rx-lro", false)];
        on.spread = Some(Spread { symmetric: Some(true), ports: Some(true) });
        on.xdp = Some(Xdp { native: true, redirect: true, zero_copy: true });
        on
    }

    fn findings(on: &Adapter, system: &System) -> Findings {
        Findings { place: on.name.clone(), checks: judge(on, system) }
    }

    #[test]
    fn all_is_well() {
        assert_snapshot!(text(&[findings(&fine(), &good())]), @r#"
        eth0
          ok       link                up (ice)
          ok       queues              8 of 64 are in use; see /proc/interrupts for their processors
          ok       ring                4096 of 4096 descriptors
          ok       spread over queues  by a symmetric hash of addresses and ports
          ok       GRO                 off: packets are captured as they came
          ok       MTU                 1500
          ok       XDP                 in the driver, zero-copy
        0 problems, 0 notes
        "#);
    }

    #[test]
    fn everything_could_be_better() {
        let mut on = fine();
        on.mtu = 9000;
        on.queues = Some(Queues { now: 2, most: 64, combined: true });
        on.ring = Some((512, 4096));
        on.missed = 77;
        let features = ["rx-gro", "rx-lro", "rx-gro-hw", "rx-vlan-hw-parse", "tx-tcp-segmentation"];
        on.features = features.map(|name| feature(name, true)).to_vec();
        on.spread = Some(Spread { symmetric: Some(false), ports: None });
        on.xdp = Some(Xdp { native: false, redirect: false, zero_copy: false });
        on.node = Some(1);
        let system = System { nodes: 2, ..good() };
        assert_snapshot!(text(&[findings(&on, &system)]), @r#"
        eth0
          ok       link                up (ice)
          note     queues              2 of 64 are in use
                                         the kernel takes its packets on 2 of 8 processors
                                         sudo ethtool -L eth0 combined 8
          problem  ring                512 of 4096 descriptors; 77 packets found none free
                                         packets were lost before the kernel saw them
                                         sudo ethtool -G eth0 rx 4096
          note     spread over queues  by a hash of addresses
                                         the directions of a connection come by two queues, up to a fiftieth of a second out of order; Weir brings them together itself
                                         sudo ethtool -X eth0 xfrm symmetric-xor   # Linux 6.8, if the driver supports it
          problem  LRO                 on
                                         the card joins packets, so a capture sees one packet where several were sent; joined packets can't be forwarded, and native XDP is refused
                                         sudo ethtool -K eth0 lro off
          note     GRO by the card     on
                                         the card joins packets, so a capture sees one packet where several were sent
                                         sudo ethtool -K eth0 rx-gro-hw off
          note     GRO                 on
                                         the kernel joins packets of a connection before they are captured: a capture has fewer packets and headers than the wire
                                         sudo ethtool -K eth0 gro off
          ok       TSO                 on: packets that this machine sends are captured before they are segmented
          note     VLAN tags           removed by the card
                                         AF_PACKET puts them back; --capture xdp loses them
                                         sudo ethtool -K eth0 rxvlan off
          note     MTU                 9000
                                         --capture xdp takes frames of an MTU of 3818 at most
                                         sudo ip link set eth0 mtu 3818
          note     XDP                 not in the driver
                                         --capture xdp runs in the stack, with little gain over AF_PACKET
          note     memory              nearest to node 1
                                         workers on processors of another node take longer to read its packets
                                         numactl --cpunodebind=1 --membind=1 weir run …
        2 problems, 8 notes
        "#);
    }

    #[test]
    fn what_the_kernel_does_not_report_is_not_judged() {
        let mut on = Adapter::default();
        on.name = "tun0".to_owned();
        let verdicts: Vec<_> = judge(&on, &good()).iter().map(|c| (c.what, c.verdict)).collect();
        assert_eq!(verdicts, [("link", Verdict::Problem), ("MTU", Verdict::Ok)]);
        on.up = true;
        on.program = Some(("native", 5));
        let told = text(&[findings(&on, &good())]);
        assert!(told.contains("up, not connected") && told.contains("program 5 is on it, native"));
    }
}
