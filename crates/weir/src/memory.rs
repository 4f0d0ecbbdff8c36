//! The memory of the machine, and how much of it keyed state may take.

use crate::args::file_size;
use std::sync::Arc;
use weir_engine::room::MemoryRoom;

/// How much memory stages share whose bounds no query names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum MemoryShare {
    /// A number of bytes.
    Bytes(u64),
    /// A share of the memory of the machine, in percent.
    Percent(u8),
}

impl MemoryShare {
    /// As people write it: `2g`, `25%`.
    pub(crate) fn parse(text: &str) -> Result<MemoryShare, String> {
        let Some(percent) = text.strip_suffix('%') else {
            let bytes = file_size(text).map_err(|e| format!("{e}, or a share such as 25%"))?;
            return Ok(MemoryShare::Bytes(bytes));
        };
        let percent = percent.trim().parse().ok().filter(|n| (1..=100).contains(n));
        percent.map(MemoryShare::Percent).ok_or_else(|| "expected 1% to 100%".to_owned())
    }

    /// The memory that a run's stages share; `None` if it is a share of what the machine has, and
    /// that is not known.
    pub(crate) fn room(self) -> Option<Arc<MemoryRoom>> {
        self.bytes().map(MemoryRoom::new)
    }

    /// In bytes; `None` as for [`MemoryShare::room`].
    pub(crate) fn bytes(self) -> Option<u64> {
        match self {
            MemoryShare::Bytes(n) => Some(n),
            MemoryShare::Percent(n) => {
                let all = available(&|path| std::fs::read_to_string(path).ok())?;
                Some(all / 100 * u64::from(n))
            }
        }
    }

    /// A line that says how much memory there is; empty if that is not known.
    pub(crate) fn explain(self) -> String {
        let Some(memory) = self.bytes() else { return String::new() };
        let size = match memory >> 20 {
            0 => format!("{memory} bytes"),
            mib => format!("{mib} MiB"),
        };
        format!("memory     {size}, shared by all stages without `max` (--memory)\n")
    }
}

/// The memory of the machine, or of the control group where that may use less. `read` gives the
/// text of a file, if there is one.
fn available(read: &dyn Fn(&str) -> Option<String>) -> Option<u64> {
    let machine = read("/proc/meminfo").and_then(|text| {
        let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
        line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
    });
    let groups = read("/proc/self/cgroup").unwrap_or_default();
    let limits = groups.lines().flat_map(|line| limits_of(line, read));
    limits.chain(machine).min()
}

/// The limits that a line of `/proc/self/cgroup` stands for: that of the group, and of all that it
/// is in.
fn limits_of(line: &str, read: &dyn Fn(&str) -> Option<String>) -> Vec<u64> {
    let mut parts = line.splitn(3, ':').skip(1);
    let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { return Vec::new() };
    let (root, file) = match controllers {
        "" => ("/sys/fs/cgroup", "memory.max"),
        _ if controllers.split(',').any(|name| name == "memory") => {
            ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")
        }
        _ => return Vec::new(),
    };
    let mut limits = Vec::new();
    let mut path = path.trim_end_matches('/');
    loop {
        let text = read(&format!("{root}{path}/{file}"));
        // `max` is no limit, and stands for no number.
        limits.extend(text.and_then(|text| text.trim().parse::<u64>().ok()));
        match path.rfind('/') {
            Some(at) => path = &path[..at],
            None => return limits,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn there(files: &[(&str, &str)]) -> Option<u64> {
        let read = |path: &str| {
            let found = files.iter().find(|(name, _)| *name == path);
            found.map(|(_, text)| (*text).to_owned())
        };
        available(&read)
    }

    const MEMINFO: (&str, &str) = ("/proc/meminfo", "MemTotal:        2048 kB\nMemFree: 7 kB\n");

    #[test]
    fn the_least_of_machine_and_control_groups_counts() {
        assert_eq!(there(&[]), None);
        assert_eq!(there(&[MEMINFO]), Some(2048 << 10));
        let group = ("/proc/self/cgroup", "1:cpu:/x\n0::/a/b\n");
        let own = ("/sys/fs/cgroup/a/b/memory.max", "max\n");
        assert_eq!(there(&[MEMINFO, group, own]), Some(2048 << 10));
        let parent = ("/sys/fs/cgroup/a/memory.max", "4096\n");
        assert_eq!(there(&[MEMINFO, group, own, parent]), Some(4096));
        let root = ("/sys/fs/cgroup/memory.max", "512\n");
        assert_eq!(there(&[MEMINFO, ("/proc/self/cgroup", "0::/\n"), root]), Some(512));
        let first = ("/proc/self/cgroup", "4:cpu,memory:/a\n");
        let limit = ("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "1000");
        assert_eq!(there(&[MEMINFO, first, limit]), Some(1000));
        let none = ("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "9223372036854771712");
        assert_eq!(there(&[MEMINFO, first, none]), Some(2048 << 10));
    }

    #[test]
    fn shares_and_sizes() {
        assert_eq!(MemoryShare::parse("2g"), Ok(MemoryShare::Bytes(2 << 30)));
        assert_eq!(MemoryShare::parse("1%"), Ok(MemoryShare::Percent(1)));
        assert_eq!(MemoryShare::parse("100%"), Ok(MemoryShare::Percent(100)));
        for wrong in ["0%", "101%", "256%", "%", "0", "-1", "x", ""] {
            assert!(MemoryShare::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn odd_files_are_not_believed() {
        assert_eq!(there(&[("/proc/meminfo", "MemTotal: many kB\n")]), None);
        assert_eq!(there(&[("/proc/meminfo", "")]), None);
        assert_eq!(
            there(&[MEMINFO, ("/proc/self/cgroup", "nonsense\n0:\n::\n")]),
            Some(2048 << 10)
        );
    }

    #[test]
    fn this_machine_has_some() {
        assert!(MemoryShare::Percent(50).bytes().is_none_or(|n| n > 1 << 20));
        assert_eq!(MemoryShare::Bytes(7).bytes(), Some(7));
    }
}
