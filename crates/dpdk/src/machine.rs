//! The means of this machine for DPDK: cards and who drives them, memory, and a way to hand cards
//! over. Looks at the kernel's files alone, and starts nothing.

use crate::arguments::{free_huge_mib, needed_mib};
use crate::device::{HANDED_OVER, SHARED, is_network};
use crate::limits::MEMORY;
use std::fs;
use std::path::{Path, PathBuf};

/// The driver of a card.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Driver {
    /// A driver of the kernel that hands it over to programs: `vfio-pci` and its like.
    HandedOver(String),
    /// A driver of the kernel that shares it with DPDK.
    Shared(String),
    /// A driver of the kernel that keeps it.
    Kernel(String),
    /// None.
    None,
}

/// A network card.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Card {
    /// Its PCI address, by which it is captured from.
    pub address: String,
    /// Its driver.
    pub driver: Driver,
    /// Its interfaces of the kernel.
    pub interfaces: Vec<String>,
    /// The file that has to be opened to have it, where it is handed over by `vfio-pci`.
    pub file: Option<PathBuf>,
}

impl Card {
    /// Whether DPDK can have it as it is.
    pub fn is_for_programs(&self) -> bool {
        matches!(self.driver, Driver::HandedOver(_) | Driver::Shared(_))
    }
}

/// The means besides cards.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Machine {
    /// DPDK's version, in words.
    pub version: String,
    /// Huge pages that are free, in MiB.
    pub huge_mib: usize,
    /// How many a device takes, in MiB, unless told otherwise.
    pub needed_mib: usize,
    /// Huge pages that there are of the size that `vm.nr_hugepages` counts, free or not, ...
    pub huge_pages: usize,
    /// ... and that size, in KiB.
    pub huge_page_kib: usize,
    /// Whether devices see the memory that they are shown, and no other.
    pub iommu: bool,
    /// Whether `vfio` is there, by which cards are handed over.
    pub vfio: bool,
}

/// The network cards of this machine, by their addresses.
pub fn cards() -> Vec<Card> {
    cards_below(Path::new("/sys/bus/pci/devices"))
}

/// The means of this machine besides cards.
pub fn machine() -> Machine {
    let any = |folder: &str| fs::read_dir(folder).is_ok_and(|mut all| all.next().is_some());
    let read = |file: &str| fs::read_to_string(file).unwrap_or_default();
    Machine {
        version: crate::sys::version(),
        huge_mib: free_huge_mib(Path::new("/sys/kernel/mm/hugepages")),
        needed_mib: needed_mib(1, MEMORY, 0),
        huge_pages: read("/proc/sys/vm/nr_hugepages").trim().parse().unwrap_or(0),
        huge_page_kib: huge_page_kib(&read("/proc/meminfo")).unwrap_or(2048),
        iommu: any("/sys/kernel/iommu_groups"),
        vfio: Path::new("/dev/vfio/vfio").exists(),
    }
}

/// The size of huge pages unless told otherwise, as `/proc/meminfo` has it, in KiB.
fn huge_page_kib(meminfo: &str) -> Option<usize> {
    let size = meminfo.lines().find_map(|line| line.strip_prefix("Hugepagesize:"))?;
    size.trim().strip_suffix("kB")?.trim_end().parse().ok()
}

fn cards_below(devices: &Path) -> Vec<Card> {
    let all = fs::read_dir(devices).into_iter().flatten().flatten();
    let mut cards: Vec<Card> = all.filter_map(|entry| card(&entry.path())).collect();
    cards.sort_by(|a, b| a.address.cmp(&b.address));
    cards
}

fn card(card: &Path) -> Option<Card> {
    if !is_network(&fs::read_to_string(card.join("class")).ok()?) {
        return None;
    }
    let linked = |name: &str| {
        let to = fs::read_link(card.join(name)).ok()?;
        Some(to.file_name()?.to_str()?.to_owned())
    };
    let driver = match linked("driver") {
        None => Driver::None,
        Some(name) if HANDED_OVER.contains(&name.as_str()) => Driver::HandedOver(name),
        Some(name) if SHARED.contains(&name.as_str()) => Driver::Shared(name),
        Some(name) => Driver::Kernel(name),
    };
    // The devices of virtio are one level deeper.
    let below = |folder: PathBuf| fs::read_dir(folder).into_iter().flatten().flatten();
    let nested = below(card.to_owned()).map(|entry| entry.path()).filter(|path| {
        path.file_name().and_then(|n| n.to_str()).is_some_and(|n| n.starts_with("virtio"))
    });
    let folders = std::iter::once(card.to_owned()).chain(nested);
    let mut interfaces: Vec<String> = folders
        .flat_map(|folder| below(folder.join("net")))
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    interfaces.sort();
    let of_vfio = driver == Driver::HandedOver("vfio-pci".to_owned());
    let group = linked("iommu_group").filter(|_| of_vfio);
    // Without an IOMMU, where that is let happen, it has another name.
    let kind = fs::read_to_string(card.join("iommu_group/name")).unwrap_or_default();
    let unsafe_mode = if kind.trim() == "vfio-noiommu" { "noiommu-" } else { "" };
    let file = group.map(|group| Path::new("/dev/vfio").join(format!("{unsafe_mode}{group}")));
    let address = card.file_name()?.to_str()?.to_owned();
    Some(Card { address, driver, interfaces, file })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn huge_pages_have_the_size_that_the_system_says() {
        let meminfo = "HugePages_Surp:        0\nHugepagesize:    1048576 kB\nHugetlb: 0 kB\n";
        assert_eq!(huge_page_kib(meminfo), Some(1 << 20));
        assert_eq!(huge_page_kib("MemTotal: 1 kB\n"), None);
    }

    #[test]
    fn cards_are_found_with_who_drives_them() {
        let folder = tempfile::tempdir().expect("a folder");
        let make = |address: &str, class: &str, driver: Option<&str>, below: &[&str]| {
            let card = folder.path().join(address);
            fs::create_dir(&card).expect("makes");
            fs::write(card.join("class"), class).expect("writes");
            if let Some(driver) = driver {
                symlink(format!("../drivers/{driver}"), card.join("driver")).expect("links");
            }
            below.iter().for_each(|path| fs::create_dir_all(card.join(path)).expect("makes"));
            card
        };
        let given = make("0000:3b:00.1", "0x020000\n", Some("vfio-pci"), &[]);
        symlink("../../kernel/iommu_groups/42", given.join("iommu_group")).expect("links");
        make("0000:3b:00.0", "0x020000\n", Some("ixgbe"), &["net/eth1", "net/eth0"]);
        make("0000:01:00.0", "0x020000\n", Some("mlx5_core"), &["net/eth2"]);
        make("0000:00:03.0", "0x020000\n", Some("virtio-pci"), &["virtio0/net/eth3"]);
        make("0000:00:04.0", "0x010802\n", Some("nvme"), &[]);
        make("0000:00:05.0", "0x028000\n", None, &[]);
        let all = cards_below(folder.path());
        let told: Vec<_> =
            all.iter().map(|c| (&c.address[5..], &c.driver, c.interfaces.join(" "))).collect();
        let kernel = |name: &str| Driver::Kernel(name.to_owned());
        let mlx = Driver::Shared("mlx5_core".to_owned());
        let vfio = Driver::HandedOver("vfio-pci".to_owned());
        assert_eq!(
            told,
            [
                ("00:03.0", &kernel("virtio-pci"), "eth3".to_owned()),
                ("00:05.0", &Driver::None, String::new()),
                ("01:00.0", &mlx, "eth2".to_owned()),
                ("3b:00.0", &kernel("ixgbe"), "eth0 eth1".to_owned()),
                ("3b:00.1", &vfio, String::new()),
            ]
        );
        let file = Some(PathBuf::from("/dev/vfio/42"));
        assert_eq!(all.iter().find_map(|card| card.file.clone()), file);
        let unsafe_group = folder.path().join("7");
        fs::create_dir(&unsafe_group).expect("makes");
        fs::write(unsafe_group.join("name"), "vfio-noiommu\n").expect("writes");
        let unsafe_card = make("0000:3c:00.0", "0x020000\n", Some("vfio-pci"), &[]);
        symlink(&unsafe_group, unsafe_card.join("iommu_group")).expect("links");
        let file = Some(PathBuf::from("/dev/vfio/noiommu-7"));
        assert_eq!(card(&unsafe_card).and_then(|card| card.file), file);
        let free: Vec<bool> = all.iter().map(Card::is_for_programs).collect();
        assert_eq!(free, [false, false, true, false, true]);
        assert!(cards_below(Path::new("/nonexistent")).is_empty());
    }
}
