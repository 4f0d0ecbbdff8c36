//! Interfaces of the kernel that virtual devices use, by the arguments of their drivers.

/// Words before an interface that a device receives from.
const RECEIVES: [&str; 4] = ["iface", "rx_iface", "rx_iface_in", "remote"];

/// Words before an interface that a device sends to.
const SENDS: [&str; 3] = ["iface", "tx_iface", "remote"];

/// The interfaces of the kernel that a device, named with the arguments of its driver, receives
/// from.
pub fn receives_from(device: &str) -> Vec<&str> {
    interfaces_after(device, &RECEIVES)
}

/// The interfaces of the kernel that a device, named with the arguments of its driver, sends to.
pub fn sends_to(device: &str) -> Vec<&str> {
    interfaces_after(device, &SENDS)
}

fn interfaces_after<'a>(device: &'a str, words: &[&str]) -> Vec<&'a str> {
    let mut all: Vec<&str> = device
        .split(',')
        .skip(1)
        .filter_map(|part| part.split_once('=').filter(|(word, _)| words.contains(word)))
        .map(|(_, interface)| interface)
        .collect();
    all.sort_unstable();
    all.dedup();
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_says_which_interfaces_it_uses() {
        for (device, receives, sends) in [
            ("net_af_packet0,iface=v0", &["v0"][..], &["v0"][..]),
            ("net_tap0,iface=weir0,remote=v0", &["v0", "weir0"], &["v0", "weir0"]),
            ("net_pcap0,rx_iface=v0,rx_iface_in=v0,tx_iface=v1", &["v0"], &["v1"]),
            ("net_pcap0,tx_pcap=iface=v0", &[], &[]),
            ("0000:3b:00.0", &[], &[]),
        ] {
            assert_eq!((&receives_from(device)[..], &sends_to(device)[..]), (receives, sends));
        }
    }
}
