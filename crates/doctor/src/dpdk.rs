//! Whether the machine has what DPDK needs, and which cards DPDK can use.

use crate::check::{Check, Findings};
use rustix::fs::{Access, access};
use weir_dpdk::machine::{Card, Driver, Machine, cards as all_cards};

/// The cards that are named by their addresses, or all cards if nothing is named; and the names of
/// interfaces.
pub(crate) fn cards(asked: &[String], names: Vec<String>) -> (Vec<Card>, Vec<String>) {
    let all = all_cards();
    if asked.is_empty() {
        return (all, names);
    }
    let is = |card: &Card, name: &str| {
        let short = card.address.strip_prefix("0000:").unwrap_or(&card.address);
        card.address.eq_ignore_ascii_case(name) || short.eq_ignore_ascii_case(name)
    };
    let (of_cards, others): (Vec<String>, _) =
        names.into_iter().partition(|name| all.iter().any(|card| is(card, name)));
    let named = |card: &Card| of_cards.iter().any(|name| is(card, name));
    (all.into_iter().filter(named).collect(), others)
}

/// Judges the machine, and each card.
pub(crate) fn judge(machine: &Machine, cards: &[Card]) -> Vec<Findings> {
    let mut all = vec![Findings { place: "dpdk".to_owned(), checks: of_machine(machine) }];
    let may = |card: &Card| {
        let read_write = Access::READ_OK | Access::WRITE_OK;
        card.file.as_ref().is_none_or(|file| access(file, read_write).is_ok())
    };
    all.extend(cards.iter().map(|card| {
        let checks = of_card(card, may(card));
        Findings { place: card.address.clone(), checks }
    }));
    all
}

fn of_machine(machine: &Machine) -> Vec<Check> {
    let Machine { version, huge_mib, needed_mib, huge_pages, huge_page_kib, iommu, vfio } = machine;
    let huge = match huge_mib >= needed_mib {
        true => Check::ok("huge pages", format!("{huge_mib} MiB are free")),
        false => {
            let found = format!("{huge_mib} MiB are free");
            let means = format!(
                "--capture dpdk needs {needed_mib} MiB for a device; with normal pages instead \
                 it is slower, and a card needs an IOMMU"
            );
            let check = Check::note("huge pages", found, means);
            // Other programs may use the pages in use: the missing ones are added to them.
            let missing = ((needed_mib - huge_mib) << 10).div_ceil(*huge_page_kib);
            check.changed_by(format!("sudo sysctl -w vm.nr_hugepages={}", huge_pages + missing))
        }
    };
    let iommu = match iommu {
        true => Check::ok("IOMMU", "in use: devices reach only the memory that is mapped for them"),
        false => Check::note(
            "IOMMU",
            "none in use",
            "handing over cards safely needs an IOMMU, switched on in the firmware and by \
             intel_iommu=on at boot; without it, vfio has an unsafe mode, which needs huge pages \
             and root",
        ),
    };
    let vfio = match vfio {
        true => Check::ok("vfio", "cards can be handed over"),
        false => {
            let means = "no card can be handed over to DPDK; virtual devices need no vfio";
            Check::note("vfio", "not loaded", means).changed_by("sudo modprobe vfio-pci")
        }
    };
    vec![Check::ok("version", version.clone()), huge, iommu, vfio]
}

fn of_card(card: &Card, may: bool) -> Vec<Check> {
    let Card { address, driver, interfaces, file } = card;
    let what = "card";
    let bind = format!("sudo dpdk-devbind.py --bind=vfio-pci {address}");
    let by_kernel = match &interfaces[..] {
        [] => String::new(),
        all => format!(", as {}", all.join(" ")),
    };
    let use_it = format!("--capture dpdk -i {address}");
    vec![match driver {
        Driver::HandedOver(name) if may => {
            Check::ok(what, format!("handed over by {name}: {use_it}"))
        }
        Driver::HandedOver(name) => {
            let file = file.as_ref().map(|file| file.display().to_string()).unwrap_or_default();
            let means = format!("this user may not open {file}, which DPDK needs");
            let check = Check::problem(what, format!("handed over by {name}"), means);
            check.changed_by(format!("sudo chown \"$USER\" {file}"))
        }
        Driver::Shared(name) => Check::ok(what, format!("shared by {name}{by_kernel}: {use_it}")),
        Driver::Kernel(name) => {
            let means = "DPDK can't use it; this command takes it away from the kernel, and from \
                         all programs that use its interfaces:";
            Check::note(what, format!("driven by {name}{by_kernel}"), means).changed_by(bind)
        }
        Driver::None => {
            let means = "it has no driver; this command hands it over to DPDK:";
            Check::note(what, "no driver", means).changed_by(bind)
        }
    }]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::Verdict;
    use insta::assert_snapshot;

    #[test]
    fn a_machine_that_lacks_everything_gets_advice() {
        let machine = |all: bool| Machine {
            version: "DPDK 22.11.11".to_owned(),
            huge_mib: if all { 512 } else { 0 },
            needed_mib: 160,
            huge_pages: 256,
            huge_page_kib: 2048,
            iommu: all,
            vfio: all,
        };
        let good = of_machine(&machine(true));
        assert!(good.iter().all(|check| check.verdict == Verdict::Ok), "{good:?}");
        let card = |address: &str, driver: Driver, interfaces: &[&str]| Card {
            address: address.to_owned(),
            file: matches!(driver, Driver::HandedOver(_)).then(|| "/dev/vfio/42".into()),
            driver,
            interfaces: interfaces.iter().map(|name| (*name).to_owned()).collect(),
        };
        let vfio = card("0000:3b:00.0", Driver::HandedOver("vfio-pci".to_owned()), &[]);
        let kernel = card("0000:3b:00.1", Driver::Kernel("ixgbe".to_owned()), &["eth1"]);
        let shared = card("0000:01:00.0", Driver::Shared("mlx5_core".to_owned()), &["eth2"]);
        let none = card("0000:02:00.0", Driver::None, &[]);
        let cards =
            [(&vfio, true), (&vfio, false), (&kernel, true), (&shared, true), (&none, true)];
        let of_cards = cards.iter().flat_map(|(card, may)| of_card(card, *may));
        let all: Vec<Check> = of_machine(&machine(false)).into_iter().chain(of_cards).collect();
        let lines = all.iter().map(|check| {
            let Check { what, verdict, found, means, command } = check;
            assert_eq!(means.is_empty(), *verdict == Verdict::Ok, "{check:?}");
            format!("{} {what}: {found} > {command}", verdict.word()).trim_end().to_owned()
        });
        assert_snapshot!(lines.collect::<Vec<_>>().join("\n"), @r#"
        ok version: DPDK 22.11.11 >
        note huge pages: 0 MiB are free > sudo sysctl -w vm.nr_hugepages=336
        note IOMMU: none in use >
        note vfio: not loaded > sudo modprobe vfio-pci
        ok card: handed over by vfio-pci: --capture dpdk -i 0000:3b:00.0 >
        problem card: handed over by vfio-pci > sudo chown "$USER" /dev/vfio/42
        note card: driven by ixgbe, as eth1 > sudo dpdk-devbind.py --bind=vfio-pci 0000:3b:00.1
        ok card: shared by mlx5_core, as eth2: --capture dpdk -i 0000:01:00.0 >
        note card: no driver > sudo dpdk-devbind.py --bind=vfio-pci 0000:02:00.0
        "#);
    }
}
