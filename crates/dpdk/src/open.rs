//! Starting DPDK, and opening its devices.

use crate::arguments::{Launch, arguments, asks_for_help, free_huge_mib, needed_mib};
use crate::clock::{Ticks, Times, pause};
use crate::device::Device;
use crate::error::{DpdkError, DriverError, NameError, Said, StartHint, TimesError};
use crate::limits::{DESCRIPTORS, LENT_MIN, MEMORY_MAX, MTU, QUEUES_MAX, UNREAD_DESCRIPTORS};
use crate::mode::{Mode, Pages};
use crate::opened::Opened;
use crate::options::DpdkOptions;
use crate::senders::Senders;
use crate::sending::Sending;
use crate::source::{self, Wire};
use crate::sys::on::{NotOpened, On, Wish};
use crate::sys::port::Port;
use crate::sys::sender::Sender;
use crate::sys::{self, About};
use parking_lot::Mutex;
use std::path::Path;
use std::sync::Arc;
use weir_capture::live::Stamps;
use weir_capture::live::clock::system;
use weir_packet::source::SourceError;

/// Lines of what DPDK said that stand in an error.
const LINES: usize = 4;

/// Messages that DPDK writes whatever the reason was.
const EMPTY_WORDS: [&str; 2] =
    ["Failed to attach device on primary process", "Driver cannot attach"];

/// Drivers that have as many queues as anybody likes; others spread frames over all they have.
const ANY_QUEUES: [&str; 2] = ["net_null", "net_tap"];

/// Drivers that switch flags of the kernel's interface, and do not switch them back.
const OF_KERNEL: [&str; 2] = ["net_af_packet", "net_af_xdp"];

/// The driver whose times are those of a file.
const OF_FILES: &str = "net_pcap";

/// Whether DPDK was started, and by whom that was asked.
static STARTED: Mutex<bool> = Mutex::new(false);

/// See [`crate::open_dpdk`].
pub(crate) fn open(names: &[String], options: DpdkOptions) -> Result<Opened, SourceError> {
    let All { wires, modes, senders } = open_all(names, &options)?;
    Ok(Opened { source: Box::new(source::source(wires, options)), modes, senders })
}

/// See [`crate::open_senders`].
pub(crate) fn open_senders(options: DpdkOptions) -> Result<(Senders, Vec<Mode>), SourceError> {
    open_all(&[], &options).map(|all| (all.senders, all.modes))
}

/// The ports that are open.
#[derive(Default)]
struct All {
    wires: Vec<Wire>,
    modes: Vec<Mode>,
    senders: Senders,
}

/// Opens devices to capture from, and those to send by.
fn open_all(names: &[String], options: &DpdkOptions) -> Result<All, SourceError> {
    let captured = Device::all(names)?;
    let (others, sends) = Device::others(&options.sends, &captured)?;
    let devices = [&captured[..], &others].concat();
    devices.iter().try_for_each(Device::check)?;
    if let Some(word) = asks_for_help(&options.arguments) {
        return Err(DpdkError::AsksForHelp(word.to_owned()).on("DPDK"));
    }
    if options.memory > MEMORY_MAX {
        return Err(DpdkError::TooMuchMemory.on("DPDK"));
    }
    let free_mib = free_huge_mib(Path::new("/sys/kernel/mm/hugepages"));
    let needed_mib = needed_mib(captured.len(), options.memory, sends.len());
    let started = start(&devices, options, free_mib, needed_mib)?;
    let pages = match sys::has_huge_pages() {
        true => Pages::Huge,
        false => Pages::Normal { free_mib, needed_mib },
    };
    let mut all = All::default();
    for (number, device) in devices.iter().enumerate() {
        let ports = ports(device, started)?;
        let use_of = Use { receives: number < captured.len(), sends: sends.contains(&device.name) };
        if use_of.sends && ports.len() > 1 {
            return Err(DpdkError::from(NameError::SeveralPorts).on(&device.name));
        }
        for (port, about) in ports {
            let opening = PortToOpen { port, device, about: &about, use_of, pages };
            all.open_port(&opening, options)?;
        }
    }
    // DPDK's attempts, and what came of them, are in the modes.
    sys::said();
    Ok(all)
}

/// The use of a device.
#[derive(Clone, Copy)]
struct Use {
    receives: bool,
    sends: bool,
}

/// A port that is to be switched on.
#[derive(Clone, Copy)]
struct PortToOpen<'a> {
    port: u16,
    device: &'a Device,
    about: &'a About,
    use_of: Use,
    pages: Pages,
}

/// Starts DPDK, if it was not; whether it was just now.
fn start(
    devices: &[Device],
    options: &DpdkOptions,
    huge_mib: usize,
    needed_mib: usize,
) -> Result<bool, SourceError> {
    let mut started = STARTED.lock();
    if *started {
        return Ok(false);
    }
    let process = std::process::id();
    let launch = Launch { huge_mib, needed_mib, processor: sys::processor(), process };
    let arguments = arguments(devices, &launch, &options.arguments);
    sys::start(&arguments).map_err(|error| {
        let hint = match error.raw_os_error() {
            Some(code) if code == rustix::io::Errno::ALREADY.raw_os_error() => StartHint::Once,
            _ if !options.arguments.is_empty() => StartHint::Arguments,
            _ => StartHint::None,
        };
        let arguments = arguments[1..].join(" ");
        DpdkError::Start { arguments, hint, error, said: said() }.on("DPDK")
    })?;
    *started = true;
    Ok(true)
}

/// DPDK's words, for the end of an error.
fn said() -> Said {
    let said = sys::said();
    let meaningful =
        |line: &&str| !line.is_empty() && !EMPTY_WORDS.iter().any(|w| line.contains(w));
    let lines: Vec<&str> = said.lines().map(str::trim).filter(meaningful).collect();
    Said(lines[lines.len().saturating_sub(LINES)..].join("; "))
}

/// The ports of a device, which is made if it is not there.
fn ports(device: &Device, just_started: bool) -> Result<Vec<(u16, About)>, SourceError> {
    let found = || -> Vec<(u16, About)> {
        let all = sys::ports().into_iter();
        let known = all.filter_map(|port| Some((port, sys::about(port).ok()?)));
        known.filter(|(_, about)| about.device == device.name).collect()
    };
    let mut ports = found();
    // Cards were looked for when DPDK was started.
    if ports.is_empty() && !(device.pci && just_started) {
        // The meaning of codes differs from driver to driver; words are clearer.
        sys::probe(&device.arguments).map_err(|_| {
            let error = match device.pci {
                true => DriverError::NotTaken(said()),
                false => device.not_made(said()),
            };
            DpdkError::from(error).on(&device.name)
        })?;
        ports = found();
    }
    match ports.is_empty() {
        true => Err(DpdkError::from(DriverError::NotTaken(said())).on(&device.name)),
        false => Ok(ports),
    }
}

/// Queues that are asked for of a port.
fn queues(about: &About, options: &DpdkOptions) -> usize {
    let has = (about.queues_max as usize).max(1);
    let virtual_all = about.driver.starts_with("net_")
        && about.device.starts_with("net_")
        && !ANY_QUEUES.contains(&about.driver.as_str())
        && has <= QUEUES_MAX;
    let wanted = match options.queues {
        Some(asked) => asked,
        None if virtual_all => has,
        None => options.workers,
    };
    wanted.clamp(1, has.min(QUEUES_MAX))
}

impl All {
    /// Switches a port on.
    fn open_port(
        &mut self,
        opening: &PortToOpen<'_>,
        options: &DpdkOptions,
    ) -> Result<(), SourceError> {
        let PortToOpen { port, device, about, use_of: of, pages } = *opening;
        let name = &about.name;
        let wish = wish(about, of, options)?;
        let promiscuous = wish.promiscuous;
        let on = On::new(port, &wish).map_err(|NotOpened { doing, error }| {
            DpdkError::Setup { doing, error, sends: of.sends, said: said() }.on(name)
        })?;
        let on = Arc::new(on);
        self.modes.push(Mode {
            device: name.clone(),
            driver: about.driver.clone(),
            version: sys::version(),
            pages,
            queues: on.queues(),
            descriptors: on.descriptors(),
            sends: on.out_descriptors(),
            buffers: on.buffers(),
            mtu: on.mtu(),
            promiscuous: match (promiscuous, on.not_promiscuous()) {
                (true, Some(e)) => Err(e.to_string()),
                (wanted, _) => Ok(wanted),
            },
            busy_poll: options.busy_poll,
        });
        if let Some(sender) = Sender::take(&on) {
            self.senders.add(device, Sending::new(sender));
        }
        if of.receives {
            let port = Port::new(on, options.memory);
            let times = times(&port, about, options.stamps)?;
            self.wires.push(Wire::new(name, port, times, &options.interfaces)?);
        }
        Ok(())
    }
}

/// The setup that a port is to have.
fn wish(about: &About, of: Use, options: &DpdkOptions) -> Result<Wish, SourceError> {
    let of_kernel = OF_KERNEL.contains(&about.driver.as_str());
    if !of.receives {
        return Ok(Wish {
            memory: 0,
            lent_min: 0,
            descriptors: UNREAD_DESCRIPTORS,
            mtu: MTU,
            queues: 0,
            promiscuous: false,
            stamps: false,
            of_kernel,
            sends: of.sends,
        });
    }
    if about.queues_max == 0 {
        return Err(DpdkError::ReceivesNothing(about.driver.clone()).on(&about.name));
    }
    let stamps = match options.stamps {
        Stamps::Host => false,
        _ if about.driver == OF_FILES => true,
        _ => about.stamps,
    };
    if options.stamps != Stamps::Host && !stamps {
        let error = TimesError::Driver(about.driver.clone());
        return Err(DpdkError::from(error).on(&about.name));
    }
    let queues = queues(about, options);
    // Small memory gets short rings, so that batches have some of it too.
    let buffers = options.memory / 2432;
    let descriptors = (buffers / 2 / queues).clamp(64, DESCRIPTORS as usize);
    Ok(Wish {
        memory: options.memory,
        lent_min: LENT_MIN,
        descriptors: 1 << descriptors.ilog2(),
        mtu: MTU,
        queues: queues as u16,
        promiscuous: options.promiscuous,
        stamps,
        of_kernel,
        sends: of.sends,
    })
}

/// Where the times of its frames come from.
fn times(port: &Port, about: &About, stamps: Stamps) -> Result<Times, SourceError> {
    let of_file = about.driver == OF_FILES;
    match stamps {
        Stamps::Host => Ok(Times::System),
        Stamps::AdapterUnsynced if of_file => Ok(Times::File(None)),
        Stamps::Adapter if !of_file => {
            let ticks = || {
                let ticks = port.ticks().map(|ticks| (ticks, system()));
                ticks.map_err(|e| DpdkError::from(TimesError::Clock(e)).on(&about.name))
            };
            let first = ticks()?;
            pause(20_000_000);
            Ok(Times::Ticks(Ticks::new(first, ticks()?)))
        }
        Stamps::Adapter => Err(DpdkError::from(TimesError::OfFile).on(&about.name)),
        Stamps::AdapterUnsynced => Err(DpdkError::from(TimesError::OfCard).on(&about.name)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No virtual device is like that.
    #[test]
    fn a_device_that_receives_nothing_is_not_captured_from() {
        let about = About {
            name: "net_out0".to_owned(),
            device: "net_out0".to_owned(),
            driver: "net_out".to_owned(),
            queues_max: 0,
            stamps: false,
        };
        let wish = |receives| {
            let of = Use { receives, sends: true };
            wish(&about, of, &DpdkOptions::default())
        };
        let refused = wish(true).err().expect("refused").to_string();
        assert_eq!(refused, "net_out0: its driver, net_out, receives nothing");
        assert!(wish(false).is_ok_and(|wish| wish.sends && wish.queues == 0));
    }
}
