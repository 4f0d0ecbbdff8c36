//! The kernel, the process, and the machine.

use crate::check::Check;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use rustix::process::{Resource, getrlimit};
use rustix::thread::{CapabilitySet, capabilities};
use std::fs;
use std::io;
use std::num::NonZeroUsize;
use weir_capture::bpf::{Filter, FilterError};
use weir_capture::limits::{SEND_BUFFER, XDP_MEMORY};
use weir_sandbox::landlock_abi;

/// Whether something may be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Access {
    Free,
    Forbidden,
    Missing,
}

/// The state of the system. Parts that the kernel does not report are absent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct System {
    pub(crate) release: String,
    pub(crate) packet: Access,
    pub(crate) xdp: Access,
    pub(crate) capabilities: CapabilitySet,
    pub(crate) landlock: Option<u32>,
    pub(crate) seccomp: bool,
    /// Why filters can't be compiled, if libpcap is missing.
    pub(crate) libpcap: Option<String>,
    /// `net.core.bpf_jit_enable`.
    pub(crate) jit: Option<u64>,
    /// Bytes that may be locked; absent if there is no limit.
    pub(crate) locked: Option<u64>,
    /// The number of free huge pages, and the bytes of one.
    pub(crate) huge: (u64, u64),
    /// Whether tables may have huge pages.
    pub(crate) transparent: bool,
    /// `net.core.wmem_max`, in bytes.
    pub(crate) send: Option<u64>,
    pub(crate) processors: usize,
    /// Memory nodes.
    pub(crate) nodes: usize,
    /// Whether irqbalance spreads interrupts over processors.
    pub(crate) irqbalance: bool,
}

impl System {
    /// Asks the kernel.
    pub(crate) fn read() -> System {
        let uname = rustix::system::uname();
        let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let number = |path: &str| text(path).trim().parse().ok();
        let meminfo = text("/proc/meminfo");
        let of_memory = |key: &str| {
            let line = meminfo.lines().find_map(|l| l.strip_prefix(key)?.strip_prefix(':'));
            line.and_then(|l| l.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0)
        };
        let nodes = fs::read_dir("/sys/devices/system/node").into_iter().flatten().flatten();
        let is_node =
            |name: &str| name.strip_prefix("node").is_some_and(|n| n.parse::<u32>().is_ok());
        let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
        let named = |p: fs::DirEntry| fs::read_to_string(p.path().join("comm")).unwrap_or_default();
        System {
            release: uname.release().to_string_lossy().into_owned(),
            packet: access(AddressFamily::PACKET),
            xdp: access(AddressFamily::XDP),
            capabilities: capabilities(None).map_or(CapabilitySet::empty(), |sets| sets.effective),
            landlock: landlock_abi().ok(),
            seccomp: text("/proc/self/status").contains("\nSeccomp_filters:")
                || fs::exists("/proc/sys/kernel/seccomp").unwrap_or(false),
            libpcap: match Filter::new("ip") {
                Err(FilterError::Library(reason)) => Some(reason),
                _ => None,
            },
            jit: number("/proc/sys/net/core/bpf_jit_enable"),
            locked: getrlimit(Resource::Memlock).current,
            huge: (of_memory("HugePages_Free"), of_memory("Hugepagesize") << 10),
            transparent: !text("/sys/kernel/mm/transparent_hugepage/enabled").contains("[never]"),
            send: number("/proc/sys/net/core/wmem_max"),
            processors: std::thread::available_parallelism().map_or(1, NonZeroUsize::get),
            nodes: nodes.filter(|n| n.file_name().to_str().is_some_and(is_node)).count(),
            irqbalance: processes.map(named).any(|name| name.trim() == "irqbalance"),
        }
    }

    fn has(&self, capability: CapabilitySet) -> bool {
        self.capabilities.contains(capability)
    }
}

fn access(family: AddressFamily) -> Access {
    match socket_with(family, SocketType::RAW, SocketFlags::CLOEXEC, None) {
        Ok(_) => Access::Free,
        Err(e) => match io::Error::from(e).raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => Access::Forbidden,
            _ => Access::Missing,
        },
    }
}

/// Judges it.
pub(crate) fn judge(system: &System) -> Vec<Check> {
    let mut all = vec![Check::ok("kernel", system.release.clone()), packet(system), xdp(system)];
    all.extend([tcx(system), offload(system)]);
    all.extend([filters(system), sandbox(system), locked(system), huge(system)]);
    if !system.transparent {
        let means = "look-ups in large tables take longer";
        let check = Check::note("huge pages of tables", "never", means);
        all.push(
            check.changed_by("echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled"),
        );
    }
    if let Some(send) = system.send.filter(|&send| send < SEND_BUFFER as u64) {
        let found = format!("{} KiB", send >> 10);
        let means = "outputs to tunnels and interfaces can buffer only bursts of this size; \
                     Weir asks for more";
        let check = Check::note("send buffer", found, means);
        all.push(check.changed_by(format!("sudo sysctl -w net.core.wmem_max={SEND_BUFFER}")));
    }
    let many = if system.processors == 1 { "" } else { "s" };
    all.push(Check::ok("processors", format!("{} processor{many}", system.processors)));
    all
}

fn packet(system: &System) -> Check {
    let what = "capture";
    match system.packet {
        Access::Free => Check::ok(what, "AF_PACKET may be used"),
        Access::Forbidden => {
            let means = "capturing (-i) needs the capability CAP_NET_RAW, or root";
            let check = Check::problem(what, "AF_PACKET is not permitted", means);
            check.changed_by("sudo setcap cap_net_raw+ep \"$(command -v weir)\"")
        }
        Access::Missing => {
            let means = "Weir can't capture from interfaces; the kernel needs CONFIG_PACKET";
            Check::problem(what, "this kernel has no AF_PACKET", means)
        }
    }
}

fn xdp(system: &System) -> Check {
    let what = "capture by AF_XDP";
    let needed = CapabilitySet::NET_RAW | CapabilitySet::NET_ADMIN | CapabilitySet::BPF;
    let all = system.has(needed) || system.has(CapabilitySet::SYS_ADMIN | CapabilitySet::NET_ADMIN);
    match system.xdp {
        Access::Missing => {
            let means = "--capture xdp is not possible; it needs Linux 5.9 with CONFIG_XDP_SOCKETS";
            Check::note(what, "this kernel has no AF_XDP", means)
        }
        _ if !all => {
            let means = "--capture xdp needs CAP_NET_RAW, CAP_NET_ADMIN and CAP_BPF";
            let check = Check::note(what, "AF_XDP is not permitted", means);
            check.changed_by(
                "sudo setcap cap_net_raw,cap_net_admin,cap_bpf+ep \"$(command -v weir)\"",
            )
        }
        _ => Check::ok(what, "AF_XDP may be used"),
    }
}

/// The first Linux with the traffic control hook that captures use.
const TCX_SINCE: (u32, u32) = (6, 6);

fn tcx(system: &System) -> Check {
    let what = "capture by tcx";
    let needed = CapabilitySet::NET_ADMIN | CapabilitySet::BPF;
    let all = system.has(needed) || system.has(CapabilitySet::SYS_ADMIN | CapabilitySet::NET_ADMIN);
    if version(&system.release).is_some_and(|version| version < TCX_SINCE) {
        let means = "--capture tcx is not possible; it needs Linux 6.6";
        return Check::note(what, "this kernel has no tcx", means);
    }
    if !all {
        let means = "--capture tcx needs CAP_NET_RAW, CAP_NET_ADMIN and CAP_BPF";
        let check = Check::note(what, "tcx is not permitted", means);
        return check
            .changed_by("sudo setcap cap_net_raw,cap_net_admin,cap_bpf+ep \"$(command -v weir)\"");
    }
    Check::ok(what, "tcx may be used")
}

/// The first two numbers of a release of Linux, such as `6.12.9-amd64`.
fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// Whether the kernel may run a part of a query.
fn offload(system: &System) -> Check {
    let what = "queries in the kernel";
    let may = system.has(CapabilitySet::BPF) || system.has(CapabilitySet::SYS_ADMIN);
    if !may {
        let means = "--offload needs CAP_BPF beside CAP_NET_RAW";
        let check = Check::note(what, "eBPF programs are not permitted", means);
        return check.changed_by("sudo setcap cap_net_raw,cap_bpf+ep \"$(command -v weir)\"");
    }
    if system.jit == Some(0) {
        let means = "the kernel interprets eBPF programs, so --offload saves nothing";
        let check = Check::note(what, "there is no compiler for eBPF programs", means);
        return check.changed_by("sudo sysctl -w net.core.bpf_jit_enable=1");
    }
    Check::ok(what, "eBPF programs may be loaded")
}

fn filters(system: &System) -> Check {
    let what = "capture filters";
    if let Some(reason) = &system.libpcap {
        let means = format!("filters need libpcap, which could not be loaded: {reason}");
        return Check::note(what, "no libpcap", means)
            .changed_by("sudo apt-get install libpcap0.8");
    }
    match system.jit {
        Some(0) => {
            let means = "the kernel interprets filters, which takes several times as long";
            let check = Check::note(what, "libpcap; not compiled to machine code", means);
            check.changed_by("sudo sysctl -w net.core.bpf_jit_enable=1")
        }
        _ => Check::ok(what, "libpcap; compiled to machine code"),
    }
}

fn sandbox(system: &System) -> Check {
    let what = "sandbox";
    let seccomp = if system.seccomp { "seccomp" } else { "no seccomp" };
    match system.landlock {
        Some(abi) => {
            let found = format!("Landlock, ABI {abi}; {seccomp}");
            match system.seccomp {
                true => Check::ok(what, found),
                false => Check::note(what, found, "runs may make any system call"),
            }
        }
        None => {
            let means = "runs may open any file that their user may; Landlock needs Linux 5.13, \
                         and landlock among lsm= at boot";
            Check::note(what, format!("no Landlock; {seccomp}"), means)
        }
    }
}

fn locked(system: &System) -> Check {
    let what = "locked memory";
    match system.locked {
        None => Check::ok(what, "any amount"),
        Some(_) if system.has(CapabilitySet::IPC_LOCK) => {
            Check::ok(what, "any amount (CAP_IPC_LOCK)")
        }
        Some(bytes) if bytes >= XDP_MEMORY as u64 => {
            Check::ok(what, format!("{} MiB", bytes >> 20))
        }
        Some(bytes) => {
            let means = format!(
                "--capture xdp locks {} MiB for each interface, unless -B says less",
                XDP_MEMORY >> 20
            );
            let check = Check::note(what, format!("{} KiB", bytes >> 10), means);
            check.changed_by("ulimit -l unlimited   # as root, or LimitMEMLOCK=infinity in a unit")
        }
    }
}

fn huge(system: &System) -> Check {
    let what = "huge pages";
    let (free, size) = system.huge;
    if size > 0 && free * size >= XDP_MEMORY as u64 {
        return Check::ok(what, format!("{free} of {} KiB are free", size >> 10));
    }
    let means = "--capture xdp uses normal pages for frames, which is somewhat slower";
    let wanted = (2 * XDP_MEMORY as u64).checked_div(size).unwrap_or(0);
    let check = Check::note(what, format!("{free} are free"), means);
    match wanted {
        0 => check,
        pages => check.changed_by(format!("sudo sysctl -w vm.nr_hugepages={pages}")),
    }
}

/// A machine on which everything is as it should be.
#[cfg(test)]
pub(crate) fn good() -> System {
    System {
        release: "6.12.9".to_owned(),
        packet: Access::Free,
        xdp: Access::Free,
        capabilities: CapabilitySet::all(),
        landlock: Some(6),
        seccomp: true,
        libpcap: None,
        jit: Some(1),
        locked: None,
        huge: (64, 2 << 20),
        transparent: true,
        send: Some(64 << 20),
        processors: 8,
        nodes: 1,
        irqbalance: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::Findings;
    use crate::report::text;
    use insta::assert_snapshot;

    fn findings(system: &System) -> Findings {
        Findings { place: "system".to_owned(), checks: judge(system) }
    }

    #[test]
    fn all_is_well() {
        assert_snapshot!(text(&[findings(&good())]), @r#"
        system
          ok       kernel                 6.12.9
          ok       capture                AF_PACKET may be used
          ok       capture by AF_XDP      AF_XDP may be used
          ok       capture by tcx         tcx may be used
          ok       queries in the kernel  eBPF programs may be loaded
          ok       capture filters        libpcap; compiled to machine code
          ok       sandbox                Landlock, ABI 6; seccomp
          ok       locked memory          any amount
          ok       huge pages             64 of 2048 KiB are free
          ok       processors             8 processors
        0 problems, 0 notes
        "#);
    }

    #[test]
    fn nothing_is() {
        let bad = System {
            packet: Access::Forbidden,
            xdp: Access::Forbidden,
            capabilities: CapabilitySet::empty(),
            landlock: None,
            seccomp: false,
            libpcap: Some("no such file".to_owned()),
            jit: Some(0),
            locked: Some(8 << 20),
            huge: (0, 2 << 20),
            transparent: false,
            send: Some(212_992),
            processors: 1,
            ..good()
        };
        assert_snapshot!(text(&[findings(&bad)]), @r#"
        system
          ok       kernel                 6.12.9
          problem  capture                AF_PACKET is not permitted
                                            capturing (-i) needs the capability CAP_NET_RAW, or root
                                            sudo setcap cap_net_raw+ep "$(command -v weir)"
          note     capture by AF_XDP      AF_XDP is not permitted
                                            --capture xdp needs CAP_NET_RAW, CAP_NET_ADMIN and CAP_BPF
                                            sudo setcap cap_net_raw,cap_net_admin,cap_bpf+ep "$(command -v weir)"
          note     capture by tcx         tcx is not permitted
                                            --capture tcx needs CAP_NET_RAW, CAP_NET_ADMIN and CAP_BPF
                                            sudo setcap cap_net_raw,cap_net_admin,cap_bpf+ep "$(command -v weir)"
          note     queries in the kernel  eBPF programs are not permitted
                                            --offload needs CAP_BPF beside CAP_NET_RAW
                                            sudo setcap cap_net_raw,cap_bpf+ep "$(command -v weir)"
          note     capture filters        no libpcap
                                            filters need libpcap, which could not be loaded: no such file
                                            sudo apt-get install libpcap0.8
          note     sandbox                no Landlock; no seccomp
                                            runs may open any file that their user may; Landlock needs Linux 5.13, and landlock among lsm= at boot
          note     locked memory          8192 KiB
                                            --capture xdp locks 64 MiB for each interface, unless -B says less
                                            ulimit -l unlimited   # as root, or LimitMEMLOCK=infinity in a unit
          note     huge pages             0 are free
                                            --capture xdp uses normal pages for frames, which is somewhat slower
                                            sudo sysctl -w vm.nr_hugepages=64
          note     huge pages of tables   never
                                            look-ups in large tables take longer
                                            echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled
          note     send buffer            208 KiB
                                            outputs to tunnels and interfaces can buffer only bursts of this size; Weir asks for more
                                            sudo sysctl -w net.core.wmem_max=4194304
          ok       processors             1 processor
        1 problem, 9 notes
        "#);
    }

    #[test]
    fn kernels_without() {
        let none = System { packet: Access::Missing, xdp: Access::Missing, ..good() };
        let told = text(&[findings(&System { jit: Some(0), ..none })]);
        for part in ["no AF_PACKET", "no AF_XDP", "sysctl -w net.core.bpf_jit_enable=1"] {
            assert!(told.contains(part), "{told}");
        }
    }

    #[test]
    fn this_machine_can_be_examined() {
        let system = System::read();
        assert!(system.processors > 0 && !system.release.is_empty(), "{system:?}");
    }

    #[test]
    fn tcx_takes_a_kernel_that_has_it() {
        let found = |release: &str| tcx(&System { release: release.to_owned(), ..good() }).found;
        for release in ["6.6.0", "6.18-rc1", "7.0.1", "10.1", "a release"] {
            assert_eq!(found(release), "tcx may be used", "{release}");
        }
        for release in ["6.5.13-generic", "5.15.0", "4.19", "6.1.0-18-amd64"] {
            assert_eq!(found(release), "this kernel has no tcx", "{release}");
        }
    }
}
