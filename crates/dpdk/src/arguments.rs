//! The arguments that DPDK is started with: its defaults would take all processors and all huge
//! pages, write to shared folders, and answer others.

use crate::device::Device;
use crate::limits::MEMORY_MAX;
use std::fs;
use std::path::Path;

/// Memory besides that of buffers, in MiB: rings of drivers and notes about devices.
const MORE_MIB: usize = 48;

/// The conditions that DPDK is started under.
pub(crate) struct Launch {
    /// Huge pages that are free, in MiB.
    pub(crate) huge_mib: usize,
    /// Memory that devices take, in MiB.
    pub(crate) needed_mib: usize,
    /// The processor of the thread that starts it.
    pub(crate) processor: usize,
    /// The number of the process.
    pub(crate) process: u32,
}

/// MiB of buffers for what a device sends, and, where its driver wants them, for what it receives
/// and nobody reads.
const SEND_MIB: usize = 32;

/// MiB that devices take, of so many bytes of buffers each, and those that frames are sent by.
pub(crate) fn needed_mib(devices: usize, memory: usize, senders: usize) -> usize {
    let each = memory.min(MEMORY_MAX) >> 20;
    // Where pages are small, buffers do not fill them; few buffers take more than was asked for.
    devices * (each + each / 4 + 32) + senders * SEND_MIB + MORE_MIB
}

/// The arguments, that of the program first, for these devices and so much memory. The arguments of
/// the user come last, and what they decide is left to them.
pub(crate) fn arguments(devices: &[Device], launch: &Launch, own: &[String]) -> Vec<String> {
    let given = |names: &[&str]| {
        own.iter().any(|word| {
            let name = word.split('=').next().unwrap_or(word);
            names.contains(&name) || names.iter().any(|n| n.len() == 2 && name.starts_with(n))
        })
    };
    let mut all = vec!["weir".to_owned()];
    let mut add = |words: &[&str]| all.extend(words.iter().map(|w| (*w).to_owned()));
    add(&["--no-telemetry"]);
    if !given(&["--log-level"]) {
        add(&["--log-level=warning"]);
    }
    if !given(&["--file-prefix"]) {
        add(&["--file-prefix", &format!("weir-{}", launch.process)]);
    }
    if !given(&["-l", "-c", "--lcores", "-S"]) {
        // One thread that does nothing for each processor else.
        add(&["--lcores", &format!("0@{}", launch.processor)]);
    }
    let decides = ["-m", "--no-huge", "--in-memory", "--huge-dir", "--socket-mem", "--legacy-mem"];
    if !given(&decides) {
        match launch.huge_mib >= launch.needed_mib {
            true => add(&["--in-memory"]),
            false => add(&["--no-huge", "-m", &launch.needed_mib.to_string()]),
        }
    }
    // No files and no thread for other processes; `--in-memory` says so, too.
    if !all.iter().chain(own).any(|word| word == "--in-memory") && !given(&["--no-shconf"]) {
        all.push("--no-shconf".to_owned());
    }
    let mut add = |words: &[&str]| all.extend(words.iter().map(|w| (*w).to_owned()));
    let cards: Vec<&str> = devices.iter().filter(|d| d.pci).map(|d| d.arguments.as_str()).collect();
    if cards.is_empty() && !given(&["-a", "--allow"]) {
        add(&["--no-pci"]);
        if !given(&["--iova-mode"]) {
            add(&["--iova-mode=va"]);
        }
    }
    for card in cards {
        add(&["-a", card]);
    }
    all.extend(own.iter().cloned());
    all
}

/// The word of the user's that has DPDK print how it is used, and end the process.
pub(crate) fn asks_for_help(own: &[String]) -> Option<&str> {
    let asks = |word: &&str| {
        word.starts_with("-h")
            || word.starts_with("-vh")
            || word.starts_with("--he") && "--help".starts_with(word)
    };
    own.iter().map(String::as_str).find(asks)
}

/// Free huge pages of all sizes that nobody has reserved, in MiB.
pub(crate) fn free_huge_mib(pages: &Path) -> usize {
    let sizes = fs::read_dir(pages).into_iter().flatten().flatten();
    let mib = sizes.filter_map(|size| {
        let name = size.file_name();
        let kib = name.to_str()?.strip_prefix("hugepages-")?.strip_suffix("kB")?;
        let read = |file| fs::read_to_string(size.path().join(file)).ok()?.trim().parse().ok();
        let free: usize = read("free_hugepages")?;
        let free = free.saturating_sub(read("resv_hugepages").unwrap_or(0));
        Some((kib.parse::<usize>().ok()? >> 10).saturating_mul(free))
    });
    mib.fold(0, usize::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(devices: &[&str], huge_mib: usize, own: &[&str]) -> String {
        let devices: Vec<Device> =
            devices.iter().map(|d| Device::new(d).expect("a device")).collect();
        let own: Vec<String> = own.iter().map(|w| (*w).to_owned()).collect();
        let needed_mib = needed_mib(devices.len(), 64 << 20, 0);
        let launch = Launch { huge_mib, needed_mib, processor: 3, process: 77 };
        arguments(&devices, &launch, &own).join(" ")
    }

    #[test]
    fn without_huge_pages_memory_is_normal() {
        assert_eq!(
            words(&["net_null0"], 0, &[]),
            "weir --no-telemetry --log-level=warning --file-prefix weir-77 --lcores 0@3 --no-huge \
             -m 160 --no-shconf --no-pci --iova-mode=va"
        );
    }

    #[test]
    fn memory_is_for_those_that_send_too() {
        assert_eq!(needed_mib(1, 64 << 20, 0), 160);
        assert_eq!(needed_mib(1, 64 << 20, 2), 224);
        assert_eq!(needed_mib(0, 64 << 20, 1), 80);
    }

    #[test]
    fn cards_are_named_and_no_others_are_touched() {
        assert_eq!(
            words(&["net_null0", "3b:00.0,x=1"], 1024, &[]),
            "weir --no-telemetry --log-level=warning --file-prefix weir-77 --lcores 0@3 --in-memory \
             -a 0000:3b:00.0,x=1"
        );
    }

    #[test]
    fn what_the_user_decides_is_left_to_him() {
        assert_eq!(
            words(&["net_null0"], 0, &["-l0-1", "--huge-dir=/mnt", "--log-level=8", "-a", "1:0.0"]),
            "weir --no-telemetry --file-prefix weir-77 --no-shconf -l0-1 --huge-dir=/mnt \
             --log-level=8 -a 1:0.0"
        );
    }

    #[test]
    fn who_asks_for_help_is_noticed() {
        let asks = |word: &str| asks_for_help(&["-v".to_owned(), word.to_owned()]).is_some();
        assert!(["-h", "--help", "--hel", "-vh"].into_iter().all(asks));
        assert!(!["--huge-dir=/h", "--help-me", "-l", "-a", "h"].into_iter().any(asks));
    }

    #[test]
    fn free_huge_pages_are_added_up() {
        let folder = tempfile::tempdir().expect("a folder");
        for (size, free, reserved) in [
            ("hugepages-2048kB", "7\n", "4\n"),
            ("hugepages-1048576kB", "2", "0"),
            ("hugepages-64kB", "1", "3"),
            ("x", "9", "0"),
        ] {
            let size = folder.path().join(size);
            fs::create_dir(&size).expect("makes");
            fs::write(size.join("free_hugepages"), free).expect("writes");
            fs::write(size.join("resv_hugepages"), reserved).expect("writes");
        }
        assert_eq!(free_huge_mib(folder.path()), 2 * 3 + 2 * 1024);
        assert_eq!(free_huge_mib(Path::new("/nonexistent")), 0);
    }
}
