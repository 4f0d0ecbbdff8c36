//! Names of addresses, as packets told them.

use crate::limits::NAMES_MAX;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Names of addresses; the latest of each counts.
#[derive(Clone, Default, Debug)]
pub(crate) struct Names {
    by_address: BTreeMap<IpAddr, (u64, String)>,
    /// Addresses in the order in which they were named.
    order: BTreeMap<u64, IpAddr>,
    next: u64,
}

impl Names {
    /// An address has this name.
    pub(crate) fn learn(&mut self, address: IpAddr, name: String) {
        let number = self.next;
        self.next += 1;
        if let Some((before, _)) = self.by_address.insert(address, (number, name)) {
            self.order.remove(&before);
        }
        self.order.insert(number, address);
        if self.by_address.len() > NAMES_MAX
            && let Some((_, oldest)) = self.order.pop_first()
        {
            self.by_address.remove(&oldest);
        }
    }

    /// The name of an address.
    pub(crate) fn get(&self, address: IpAddr) -> Option<&str> {
        self.by_address.get(&address).map(|(_, name)| name.as_str())
    }

    /// The addresses of a name.
    pub(crate) fn addresses(&self, name: &str) -> impl Iterator<Item = IpAddr> {
        self.by_address.iter().filter(move |(_, (_, n))| n == name).map(|(address, _)| *address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    fn address(n: usize) -> IpAddr {
        Ipv4Addr::from(n as u32).into()
    }

    #[test]
    fn the_latest_name_counts_and_the_oldest_is_forgotten() {
        let mut names = Names::default();
        for n in 0..NAMES_MAX {
            names.learn(address(n), format!("{n}.test"));
        }
        names.learn(address(0), "again.test".to_owned());
        names.learn(address(NAMES_MAX), "again.test".to_owned());
        assert_eq!(names.get(address(0)), Some("again.test"));
        assert_eq!(names.get(address(1)), None);
        assert_eq!(names.by_address.len(), NAMES_MAX);
        assert_eq!(names.order.len(), NAMES_MAX);
        let found: Vec<_> = names.addresses("again.test").collect();
        assert_eq!(found, [address(0), address(NAMES_MAX)]);
    }
}
