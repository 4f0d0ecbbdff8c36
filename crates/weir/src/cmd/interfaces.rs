//! `weir interfaces`: what can be captured from.

use crate::args::InterfacesArgs;
use crate::exit::Status;
use crate::output;
use crate::term::Term;
use anyhow::Context as _;
use weir_capture::live::{ANY, Interface, PcapDevice, devices, interfaces};
use weir_packet::ethernet::link_name;
use weir_packet::source::LinkType;
use weir_sink::Format;

/// Runs `weir interfaces`.
pub(crate) fn run(args: &InterfacesArgs, term: &Term) -> anyhow::Result<Status> {
    list(args.output, term)
}

/// Prints a row for each interface, one for all of them, and one for each device that only libpcap
/// can capture from, or only DPDK.
pub(crate) fn list(format: Option<&'static Format>, term: &Term) -> anyhow::Result<Status> {
    let all = interfaces().context("asking the kernel for its interfaces")?;
    let mut rows: Vec<[String; 5]> = all.iter().map(row).collect();
    let cooked = link_name(LinkType::LINUX_SLL2).to_string();
    let any = ["all of them", &cooked, "", ""].map(str::to_owned);
    let [state, link, address, ip] = any;
    rows.push([ANY.to_owned(), state, link, address, ip]);
    // Where libpcap is not installed, there is nothing that only it knows.
    let more = devices().unwrap_or_default();
    let known = |device: &PcapDevice| rows.iter().any(|[name, ..]| *name == device.name);
    let more: Vec<_> = more.into_iter().filter(|device| !known(device)).map(by_libpcap).collect();
    rows.extend(more);
    #[cfg(feature = "dpdk")]
    rows.extend(weir_dpdk::machine::cards().iter().filter(|c| c.is_for_programs()).map(by_dpdk));
    output::print(["name", "state", "link", "address", "ip"], &rows, format, term)?;
    Ok(Status::Ok)
}

/// A device that the kernel does not count among its interfaces.
fn by_libpcap(device: PcapDevice) -> [String; 5] {
    let what = device.description.map(|what| format!(": {what}"));
    let state = format!("by libpcap{}", what.unwrap_or_default());
    [device.name, state, String::new(), String::new(), String::new()]
}

/// A card that DPDK can have.
#[cfg(feature = "dpdk")]
fn by_dpdk(card: &weir_dpdk::machine::Card) -> [String; 5] {
    use weir_dpdk::machine::Driver;
    let state = match &card.driver {
        Driver::Shared(name) if card.interfaces.is_empty() => {
            format!("by DPDK, which {name} shares it with")
        }
        Driver::Shared(name) => {
            format!("by DPDK, which {name} shares {} with", card.interfaces.join(" "))
        }
        Driver::HandedOver(name) | Driver::Kernel(name) => {
            format!("by DPDK: handed over by {name}")
        }
        Driver::None => String::new(),
    };
    let link = link_name(LinkType::ETHERNET).to_string();
    [card.address.clone(), state, link, String::new(), String::new()]
}

fn row(interface: &Interface) -> [String; 5] {
    let state = match (interface.up, interface.running) {
        (false, _) => "down",
        (true, false) => "up, not connected",
        (true, true) => "up",
    };
    let hex: Vec<String> = interface.address.iter().map(|b| format!("{b:02x}")).collect();
    let ip: Vec<String> = interface.ip.iter().map(ToString::to_string).collect();
    let (state, link) = (state.to_owned(), link_name(interface.link).to_string());
    [interface.name.clone(), state, link, hex.join(":"), ip.join(" ")]
}
