//! Devices as DPDK names them, and why one can't be had.

use crate::error::{DpdkError, DriverError, NameError, Said};
use crate::limits::DEVICES_MAX;
use crate::shares::{receives_from, sends_to};
use std::fs;
use std::path::Path;
use weir_packet::source::SourceError;

/// Drivers of the kernel that hand a device over to programs.
pub(crate) const HANDED_OVER: [&str; 3] = ["vfio-pci", "uio_pci_generic", "igb_uio"];

/// Drivers of the kernel that share their devices with DPDK's.
pub(crate) const SHARED: [&str; 2] = ["mlx5_core", "mlx4_core"];

/// A device that was asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Device {
    /// How it is called in all that is told.
    pub(crate) name: String,
    /// The name and what else its driver is told, as DPDK takes them.
    pub(crate) arguments: String,
    /// Whether it is a card; else a virtual device, which is made when it is asked for.
    pub(crate) pci: bool,
}

impl Device {
    /// Reads a name as `-i` takes it: `0000:3b:00.0`, or `net_af_packet0,iface=eth1`.
    pub(crate) fn new(text: &str) -> Result<Device, SourceError> {
        let (name, rest) = text.split_once(',').map_or((text, None), |(n, r)| (n, Some(r)));
        if let Some(address) = pci_address(name) {
            let arguments = rest.map_or_else(|| address.clone(), |r| format!("{address},{r}"));
            return Ok(Device { name: address, arguments, pci: true });
        }
        if name.starts_with("net_") && !text.contains(char::is_whitespace) {
            let (name, arguments) = (name.to_owned(), text.to_owned());
            return Ok(Device { name, arguments, pci: false });
        }
        Err(DpdkError::from(no_device(name)).on(text))
    }

    /// Whether its driver is told nothing.
    pub(crate) fn is_plain(&self) -> bool {
        self.arguments == self.name
    }

    /// All of them, each once.
    pub(crate) fn all(texts: &[String]) -> Result<Vec<Device>, SourceError> {
        let all: Vec<Device> = texts.iter().map(|t| Device::new(t)).collect::<Result<_, _>>()?;
        if all.len() > DEVICES_MAX {
            return Err(too_many(all.len()));
        }
        let twice = |(i, device): (usize, &Device)| {
            all[..i].iter().any(|other| other.name == device.name).then(|| device.name.clone())
        };
        match all.iter().enumerate().find_map(twice) {
            Some(name) => Err(DpdkError::from(NameError::Twice).on(&name)),
            None => Ok(all),
        }
    }

    /// The members of `texts` that are not among `captured`, each once, and the names of all of
    /// `texts`.
    pub(crate) fn others(
        texts: &[String],
        captured: &[Device],
    ) -> Result<(Vec<Device>, Vec<String>), SourceError> {
        let (mut others, mut names) = (Vec::<Device>::new(), Vec::<String>::new());
        let mut all: Vec<Device> =
            texts.iter().map(|t| Device::new(t)).collect::<Result<_, _>>()?;
        // The arguments of a driver may stand at one of the names of its device alone.
        all.sort_by_key(Device::is_plain);
        for device in all {
            let known = captured.iter().chain(&others).find(|known| known.name == device.name);
            if known.is_some_and(|known| !device.is_plain() && known.arguments != device.arguments)
            {
                return Err(DpdkError::from(NameError::TwoArguments).on(&device.name));
            }
            let to = sends_to(&device.arguments);
            let is_one = |from: &str| to.contains(&from);
            let same =
                captured.iter().find(|on| receives_from(&on.arguments).into_iter().any(is_one));
            match (known, same) {
                (None, Some(same)) => {
                    let error = NameError::Captured(same.name.clone());
                    return Err(DpdkError::from(error).on(&device.name));
                }
                (None, None) => {
                    names.push(device.name.clone());
                    others.push(device);
                }
                (Some(_), _) if names.contains(&device.name) => {}
                (Some(_), _) => names.push(device.name),
            }
        }
        match captured.len() + others.len() {
            all if all > DEVICES_MAX => Err(too_many(all)),
            _ => Ok((others, names)),
        }
    }

    /// Why a virtual device was not made, of which DPDK said this.
    pub(crate) fn not_made(&self, said: Said) -> DriverError {
        let driver = self.name.trim_end_matches(|c: char| c.is_ascii_digit());
        DriverError::NotMade(driver.to_owned(), said)
    }

    /// Looks whether the kernel lets a card be had: before DPDK is asked, whose drivers may take
    /// one away from the kernel.
    pub(crate) fn check(&self) -> Result<(), SourceError> {
        if !self.pci {
            return Ok(());
        }
        match refusal(&self.name, Path::new("/sys/bus/pci/devices")) {
            Some(error) => Err(DpdkError::from(error).on(&self.name)),
            None => Ok(()),
        }
    }
}

/// That so many devices were named.
fn too_many(n: usize) -> SourceError {
    DpdkError::from(NameError::TooMany(n)).on("DPDK")
}

/// A PCI address with its domain; `None`: it is something else.
fn pci_address(name: &str) -> Option<String> {
    let hex = |part: &str, digits: usize| {
        part.len() == digits && part.bytes().all(|b| b.is_ascii_hexdigit())
    };
    let (slot, function) = name.rsplit_once('.')?;
    let parts: Vec<&str> = slot.split(':').collect();
    let (domain, bus, device) = match parts[..] {
        [bus, device] => ("0000", bus, device),
        [domain, bus, device] => (domain, bus, device),
        _ => return None,
    };
    let good = hex(domain, 4) && hex(bus, 2) && hex(device, 2);
    let good = good && matches!(function.as_bytes(), [b'0'..=b'7']);
    good.then(|| format!("{domain}:{bus}:{device}.{function}").to_ascii_lowercase())
}

/// The fault of a name that is none of a device.
fn no_device(name: &str) -> NameError {
    let known = Path::new("/sys/class/net").join(name);
    if name.is_empty() || name.contains('/') || !known.exists() {
        return NameError::NoDevice;
    }
    let card = fs::canonicalize(known.join("device")).ok();
    let card = card.as_deref().and_then(Path::file_name).and_then(|n| n.to_str());
    let card = card.and_then(pci_address);
    NameError::KernelInterface { interface: name.to_owned(), card }
}

/// Whether a card of this class, as the kernel writes it, is a network card.
pub(crate) fn is_network(class: &str) -> bool {
    class.starts_with("0x02")
}

/// Why the card of an address can't be had, as the kernel's files below `devices` say.
fn refusal(address: &str, devices: &Path) -> Option<DriverError> {
    let card = devices.join(address);
    if !card.exists() {
        return Some(DriverError::NoCard);
    }
    let class = fs::read_to_string(card.join("class")).unwrap_or_default();
    if !class.is_empty() && !is_network(&class) {
        return Some(DriverError::NoNetworkCard(class.trim().to_owned()));
    }
    let driver = fs::read_link(card.join("driver")).ok();
    let driver = driver.as_deref().and_then(Path::file_name).and_then(|name| name.to_str());
    if driver.is_some_and(|driver| HANDED_OVER.contains(&driver) || SHARED.contains(&driver)) {
        return None;
    }
    let (address, driver) = (address.to_owned(), driver.map(str::to_owned));
    Some(DriverError::OfKernel { address, driver })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn devices_are_named_as_dpdk_does() {
        let device = |name: &str, arguments: &str, pci| Device {
            name: name.to_owned(),
            arguments: arguments.to_owned(),
            pci,
        };
        for (text, want) in [
            ("0000:3b:00.0", device("0000:3b:00.0", "0000:3b:00.0", true)),
            ("3B:00.1", device("0000:3b:00.1", "0000:3b:00.1", true)),
            ("3b:00.1,x=1", device("0000:3b:00.1", "0000:3b:00.1,x=1", true)),
            ("net_null0", device("net_null0", "net_null0", false)),
            (
                "net_pcap0,rx_pcap=a:b.pcap",
                device("net_pcap0", "net_pcap0,rx_pcap=a:b.pcap", false),
            ),
        ] {
            assert_eq!(Device::new(text).expect("a device"), want);
        }
    }

    #[test]
    fn other_names_are_refused_with_what_would_do() {
        let refused = |text: &str| Device::new(text).expect_err("refused").to_string();
        assert_eq!(
            refused("lo"),
            "lo: it is an interface of the kernel; DPDK takes it by a virtual device: -i \
             net_af_packet0,iface=lo"
        );
        for text in ["", "eth99", "3b:00.8", "3b:0.1", "1:2:3:4.0", "../lo", "net_null0, x"] {
            let said = refused(text);
            assert!(said.contains("is no device of DPDK: name a card"), "{text}: {said}");
        }
        let twice = ["net_null0,size=60", "net_null0"].map(str::to_owned);
        let said = Device::all(&twice).expect_err("refused").to_string();
        assert!(said.starts_with("net_null0: it is named twice; "), "{said}");
        let many: Vec<String> = (0..=DEVICES_MAX).map(|i| format!("net_null{i}")).collect();
        assert!(Device::all(&many).is_err() && Device::all(&many[1..]).is_ok());
    }

    #[test]
    fn devices_that_send_are_those_captured_from_or_others() {
        let captured = ["net_af_packet0,iface=v0", "3b:00.0"].map(str::to_owned);
        let captured = Device::all(&captured).expect("devices");
        let others = |texts: &[&str]| {
            let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
            let named = Device::others(&texts, &captured).map_err(|e| e.to_string())?;
            Ok((named.0.into_iter().map(|d| d.arguments).collect::<Vec<_>>(), named.1))
        };
        let (new, names) = others(&["net_af_packet0", "0000:3b:00.0", "net_null0,size=9"])
            .unwrap_or_else(|e: String| panic!("{e}"));
        assert_eq!(new, ["net_null0,size=9"]);
        assert_eq!(names, ["net_null0", "net_af_packet0", "0000:3b:00.0"]);
        let (new, _) = others(&["net_af_packet0,iface=v0", "net_null0", "net_null0"])
            .unwrap_or_else(|e: String| panic!("{e}"));
        assert_eq!(new, ["net_null0"]);
        let (new, names) =
            others(&["net_null0", "net_null0,size=9"]).unwrap_or_else(|e: String| panic!("{e}"));
        assert_eq!(
            (new, names),
            (vec!["net_null0,size=9".to_owned()], vec!["net_null0".to_owned()])
        );
        for (texts, why) in [
            (&["net_af_packet0,iface=v1"][..], "net_af_packet0: it is named twice, and its driver"),
            (&["net_null0,size=9", "net_null0,size=8"], "net_null0: it is named twice, and its"),
            (
                &["net_af_packet1,iface=v0"],
                "net_af_packet1: packets are captured on this interface",
            ),
            (
                &["net_pcap0,tx_iface=v0"],
                "net_pcap0: packets are captured on this interface by net_af_packet0",
            ),
            (&["eth99"], "eth99: it is no device of DPDK"),
        ] {
            let said = others(texts).expect_err("refused");
            assert!(said.starts_with(why), "{said}");
        }
    }

    #[test]
    fn devices_that_are_not_made_say_what_is_missing() {
        let why = |said: &str| {
            let said = Said(said.to_owned());
            Device::new("net_tap0").expect("a device").not_made(said).to_string()
        };
        for (said, hint) in [
            ("EAL: failed to parse device \"x\"", "in packages librte-net-tap* (DPDK says: EAL: "),
            ("Could not open AF_PACKET socket", "it takes root, or CAP_NET_RAW and "),
            ("Operation not permitted", "it takes root, or CAP_NET_RAW and CAP_NET_ADMIN ("),
            ("", "was net_tap told all that it needs? docs/dpdk.md shows it"),
            ("no such file", "net_tap did not take what it was told (DPDK says: no such file)"),
        ] {
            let said = why(said);
            assert!(said.contains(hint), "{said}");
        }
    }

    #[test]
    fn cards_of_the_kernel_are_left_to_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let card = |address: &str, class: &str, driver: Option<&str>| {
            let card = folder.path().join(address);
            fs::create_dir(&card).expect("makes");
            fs::write(card.join("class"), class).expect("writes");
            if let Some(driver) = driver {
                symlink(format!("../drivers/{driver}"), card.join("driver")).expect("links");
            }
            refusal(address, folder.path()).map(|error| error.to_string())
        };
        assert_eq!(card("0000:01:00.0", "0x020000\n", Some("vfio-pci")), None);
        assert_eq!(card("0000:01:00.1", "0x020000\n", Some("mlx5_core")), None);
        assert_eq!(
            card("0000:01:00.2", "0x020000\n", Some("ixgbe")).as_deref(),
            Some(
                "it belongs to the kernel's driver ixgbe; to take it away from the kernel: sudo \
                 dpdk-devbind.py --bind=vfio-pci 0000:01:00.2"
            )
        );
        let none = card("0000:01:00.3", "0x020000\n", None).expect("refused");
        assert!(none.starts_with("it belongs to no driver; "), "{none}");
        let disk = card("0000:01:00.4", "0x010802\n", Some("nvme"));
        assert_eq!(disk.as_deref(), Some("it is no network device (its class is 0x010802)"));
        let missing = refusal("0000:99:00.0", folder.path()).expect("refused").to_string();
        assert!(missing.starts_with("there is no PCI device of this address; "), "{missing}");
    }
}
