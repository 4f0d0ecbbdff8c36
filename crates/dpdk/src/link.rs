//! The functions that work only where DPDK's libraries are linked, and their errors elsewhere.

use crate::mode::Mode;
use crate::opened::Opened;
use crate::options::DpdkOptions;
use crate::senders::Senders;
use weir_packet::source::SourceError;

/// Whether DPDK is part of this program.
pub fn is_linked() -> bool {
    cfg!(feature = "link")
}

/// Captures from devices: `0000:3b:00.0`, `net_af_packet0,iface=eth1`, `net_pcap0,rx_pcap=FILE`.
/// DPDK is started by the first call in a process, with the memory that its devices take, and lasts
/// as long as the process.
///
/// # Errors
/// When a device is not there, belongs to the kernel, or refuses what is asked for; when there is
/// not enough memory; and without the feature `link`, always.
pub fn open_dpdk(devices: &[String], options: DpdkOptions) -> Result<Opened, SourceError> {
    #[cfg(feature = "link")]
    return crate::open::open(devices, options);
    #[cfg(not(feature = "link"))]
    {
        drop((devices, options));
        Err(crate::error::DpdkError::NotLinked.on("DPDK"))
    }
}

/// Opens the devices of [`DpdkOptions::sends`], of a run that captures by another way, or not at
/// all; says what each port was set up as.
///
/// # Errors
/// As of [`open_dpdk`].
pub fn open_senders(options: DpdkOptions) -> Result<(Senders, Vec<Mode>), SourceError> {
    #[cfg(feature = "link")]
    return crate::open::open_senders(options);
    #[cfg(not(feature = "link"))]
    {
        drop(options);
        Err(crate::error::DpdkError::NotLinked.on("DPDK"))
    }
}

/// Has DPDK's own thread, which waits for interrupts, do something once: each thread gives up
/// privileges for itself. Threads that drivers and arguments may have started besides are not
/// asked.
///
/// # Errors
/// When there is no such thread, or it does not do it in time.
pub fn in_its_thread(call: Box<dyn FnOnce() + Send>) -> std::io::Result<()> {
    #[cfg(feature = "link")]
    return crate::sys::beside(call, crate::limits::BESIDE_SECONDS);
    #[cfg(not(feature = "link"))]
    {
        drop(call);
        Err(std::io::ErrorKind::Unsupported.into())
    }
}
