//! Which outlets of a query the kernel can send to by itself.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use weir_capture::ebpf::{KernelOutputs, OutputMemory, SharedMemory};
use weir_capture::live::Interface;
use weir_capture::outlets::{interface_of, is_host};
use weir_offload::{ActionMemory, Actions, KernelOutlet, OutletPlace};
use weir_packet::egress::Outlet;
use weir_packet::source::LinkType;

/// The outlets of a query, as far as its run knows them.
#[derive(Clone, Debug, Default)]
pub(crate) struct QueryOutlets {
    /// All of them.
    pub(crate) all: Vec<Outlet>,
    /// Where packets go that pass (`-w`).
    pub(crate) pass: Option<String>,
}

impl QueryOutlets {
    /// Where they are, by their names alone.
    pub(crate) fn by_name(&self) -> Vec<KernelOutlet> {
        self.places(|name| match interface_of(name) {
            Some(_) => OutletPlace::Interface,
            None => elsewhere(name),
        })
    }

    /// Where they are for packets that come by the interface `from`, and the interfaces among them
    /// by the numbers of their outlets.
    pub(crate) fn of_packets_from(
        &self,
        from: &str,
        known: &[Interface],
    ) -> (Vec<KernelOutlet>, Vec<(u32, u32)>) {
        let found = |name: &str| {
            let interface = interface_of(name)?;
            known.iter().find(|on| on.name == interface)
        };
        let places = self.places(|name| match found(name) {
            Some(on) if on.name == from => OutletPlace::CameBy,
            Some(on) if on.link == LinkType::ETHERNET && !on.loopback => OutletPlace::Interface,
            _ => elsewhere(name),
        });
        let index = |(n, outlet): (usize, &KernelOutlet)| {
            let is_interface = outlet.place == OutletPlace::Interface;
            let on = self.name(&outlet.outlet).filter(|_| is_interface).and_then(found)?;
            Some((n as u32, on.index))
        };
        let interfaces = places.iter().enumerate().filter_map(index).collect();
        (places, interfaces)
    }

    fn name<'a>(&'a self, outlet: &'a Outlet) -> Option<&'a str> {
        match outlet {
            Outlet::Pass => self.pass.as_deref(),
            Outlet::Named(name) => Some(name),
        }
    }

    fn places(&self, place: impl Fn(&str) -> OutletPlace) -> Vec<KernelOutlet> {
        let of = |outlet: &Outlet| KernelOutlet {
            outlet: outlet.clone(),
            place: self.name(outlet).map_or(OutletPlace::Nowhere, &place),
        };
        self.all.iter().map(of).collect()
    }
}

// A program returns one number for frames of the host, which the capture understands.
const _: () = assert!(weir_offload::TO_HOST == weir_capture::ebpf::TO_HOST);

fn elsewhere(name: &str) -> OutletPlace {
    if is_host(name) {
        return OutletPlace::Host;
    }
    OutletPlace::UserSpace(format!("only user space sends to {name}"))
}

/// The interfaces that a program hands frames to, by their numbers in the system.
pub(crate) fn outputs_of(
    actions: &Actions,
    memory: &Arc<SharedMemory>,
    interfaces: Vec<(u32, u32)>,
) -> KernelOutputs {
    let (layout, memory) = (actions.memory, Arc::clone(memory));
    let memory = Box::new(ActionWords { layout, memory });
    let numbers = |set: &Vec<usize>| set.iter().map(|n| *n as u32).collect();
    let sets = actions.sets.iter().map(numbers).collect();
    KernelOutputs { count: actions.outlets.len() as u32, interfaces, sets, memory }
}

/// The memory that a program shares with the process.
struct ActionWords {
    layout: ActionMemory,
    memory: Arc<SharedMemory>,
}

impl OutputMemory for ActionWords {
    fn set_longest(&self, output: u32, longest: u64) {
        let word = self.memory.words().get(self.layout.longest(output as usize));
        word.iter().for_each(|word| word.store(longest, Ordering::Relaxed));
    }

    fn handed(&self, output: u32) -> (u64, u64) {
        // The first are those that were dropped.
        let sums = self.layout.sums(self.memory.words());
        sums.get(1 + output as usize).copied().unwrap_or_default()
    }

    fn doubt(&self, output: u32, (frames, bytes): (u64, u64)) {
        for (word, more) in self.layout.doubted(output as usize).into_iter().zip([frames, bytes]) {
            if let Some(word) = self.memory.words().get(word) {
                word.fetch_add(more, Ordering::Relaxed);
            }
        }
    }
}
