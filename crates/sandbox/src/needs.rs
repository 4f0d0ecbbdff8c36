//! The files and permissions that a run needs after it has begun to read packets.

use rustix::system::uname;
use rustix::thread::CapabilitySet;
use std::path::{Path, PathBuf};

/// The files and permissions that a run still needs. Files and sockets that are open already are
/// not listed here.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Needs {
    /// Files, and folders with all that is below, that are read.
    pub read: Vec<PathBuf>,
    /// Folders in which files are made, written and removed; and devices that are written to.
    pub write: Vec<PathBuf>,
    /// Whether libpcap may look up names of hosts and ports.
    pub names: bool,
    /// Devices that are opened and asked for something.
    pub devices: Vec<PathBuf>,
    /// Capabilities, as far as the process has them.
    pub capabilities: CapabilitySet,
    /// Whether counters of eBPF programs are read.
    pub maps: bool,
    /// Folders from which files are removed.
    pub remove: Vec<PathBuf>,
    /// Whether a library asks the kernel about interfaces, by sockets that it makes for that.
    pub links: bool,
    /// Whether sockets of AF_XDP are opened, to send packets by.
    pub xdp: bool,
    /// The ports that are connected to by TCP.
    pub connects: Connects,
}

/// The ports that a process connects to by TCP.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Connects {
    /// Nothing.
    Nowhere,
    /// These ports of other hosts.
    Ports(Vec<u16>),
    /// Any port, since servers name others themselves.
    Anywhere,
}

/// Nothing more than what is open.
impl Default for Needs {
    fn default() -> Needs {
        Needs {
            read: Vec::new(),
            write: Vec::new(),
            names: false,
            devices: Vec::new(),
            capabilities: CapabilitySet::empty(),
            maps: false,
            remove: Vec::new(),
            links: false,
            xdp: false,
            connects: Connects::Nowhere,
        }
    }
}

/// Where systems keep the certificates of authorities, and the settings of OpenSSL.
const CERTIFICATES: [&str; 4] =
    ["/etc/pki", "/etc/ssl", "/usr/lib/ssl", "/usr/share/ca-certificates"];

impl Needs {
    /// Servers that are looked up by name and reached by TCP and TLS, with certificates of the
    /// system and those in `files`. This is for a process that sees no packets.
    pub fn servers<'a>(&mut self, files: impl Iterator<Item = &'a str>) {
        (self.names, self.connects) = (true, Connects::Anywhere);
        self.read.extend(CERTIFICATES.map(PathBuf::from));
        self.read.extend(files.map(PathBuf::from));
    }

    /// Captures that the run opens later, when it is their turn.
    pub fn captures<'a>(&mut self, names: impl Iterator<Item = &'a str>) {
        for name in names {
            self.read.push(name.into());
            // Root reads what belongs to others.
            self.capabilities |= CapabilitySet::DAC_READ_SEARCH;
        }
    }

    /// A capture filter that may have to be compiled for further link types.
    pub fn filter(&mut self) {
        self.names = true;
    }

    /// Folders in which files are made while the run goes on.
    pub fn folders(&mut self, folders: Vec<PathBuf>) {
        if !folders.is_empty() {
            // Root writes where others may.
            self.capabilities |= CapabilitySet::DAC_OVERRIDE;
        }
        self.write.extend(folders);
    }

    /// A folder below which folders and files are made and looked for.
    pub fn store(&mut self, folder: &Path) {
        self.folders(vec![folder.to_owned()]);
        self.read.push(folder.to_owned());
    }

    /// TUN and TAP devices that may disappear and come back.
    pub fn devices(&mut self, devices: Vec<PathBuf>) {
        if !devices.is_empty() {
            self.capabilities |= CapabilitySet::NET_ADMIN;
        }
        self.devices.extend(devices);
    }

    /// Interfaces that send packets by AF_XDP, and that may disappear and come back.
    pub fn xdp_sockets(&mut self) {
        self.xdp = true;
        self.capabilities |= CapabilitySet::NET_RAW | CapabilitySet::IPC_LOCK;
    }

    /// Connections to these ports of other hosts, by name or address.
    pub fn connections(&mut self, ports: impl Iterator<Item = u16>) {
        self.names = true;
        // Long answers of name servers come over TCP.
        self.connects = Connects::Ports(ports.chain([DOMAIN]).collect());
    }

    /// A capture by DPDK.
    pub fn dpdk(&mut self) {
        self.read.push(COUNTERS.into());
        self.links = true;
    }

    /// A capture by libpcap.
    pub fn libpcap(&mut self) {
        self.links = true;
    }

    /// A capture by AF_XDP, whose program counts.
    pub fn xdp(&mut self) {
        self.maps = true;
        if !reads_maps_freely(&uname().release().to_string_lossy()) {
            self.capabilities |= CapabilitySet::BPF;
        }
    }
}

/// The port of name servers.
const DOMAIN: u16 = 53;

/// Where drivers of DPDK read the counters of cards.
const COUNTERS: &str = "/sys/devices";

/// Whether a kernel lets any process read a map that it has open. Before 5.19,
/// `kernel.unprivileged_bpf_disabled` forbade that too.
fn reads_maps_freely(release: &str) -> bool {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse::<u32>);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => (major, minor) >= (5, 19),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_are_told_apart() {
        for (release, free) in [
            ("5.9.16", false),
            ("5.15.0-91-generic", false),
            ("5.19", true),
            ("6.1.0-18-amd64", true),
            ("6.18.44+", true),
            ("", false),
            ("x", false),
        ] {
            assert_eq!(reads_maps_freely(release), free, "{release}");
        }
    }

    #[test]
    fn capabilities_follow_needs() {
        let mut needs = Needs::default();
        needs.captures([].into_iter());
        needs.folders(Vec::new());
        needs.devices(Vec::new());
        assert_eq!(needs, Needs::default());
        needs.captures(["x.pcap"].into_iter());
        needs.folders(vec!["out".into()]);
        needs.devices(vec!["/dev/net/tun".into()]);
        let all =
            CapabilitySet::DAC_READ_SEARCH | CapabilitySet::DAC_OVERRIDE | CapabilitySet::NET_ADMIN;
        assert_eq!(needs.capabilities, all);
        assert_eq!(needs.read, [PathBuf::from("x.pcap")]);
    }
}
