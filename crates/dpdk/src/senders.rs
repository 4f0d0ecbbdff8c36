//! Devices that frames are sent by, by their names.

use crate::error::{DpdkError, NameError};
use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::sync::atomic::AtomicBool;
use weir_capture::send::Transmit;

/// Devices that were opened to send frames by. They stay open as long as this, or anything that
/// [`Senders::open`] gave.
#[derive(Default)]
pub struct Senders(Vec<OpenDevice>);

/// A device that is open.
struct OpenDevice {
    name: String,
    /// Its name, and what its driver was told.
    arguments: String,
    device: Rc<RefCell<dyn Transmit>>,
}

impl Senders {
    /// One more.
    #[cfg(any(feature = "link", test))]
    pub(crate) fn add(&mut self, of: &crate::device::Device, device: impl Transmit + 'static) {
        let (name, arguments) = (of.name.clone(), of.arguments.clone());
        self.0.push(OpenDevice { name, arguments, device: Rc::new(RefCell::new(device)) });
    }

    /// Waits until the links of all devices are up, or do not say; a card takes some seconds to
    /// agree how to talk once it is started. Not for ever, and no longer than until `stop`.
    pub fn wait_for_links(&self, stop: &AtomicBool) {
        #[cfg(any(feature = "link", test))]
        {
            use crate::clock::pause;
            use crate::limits::{LINK_PAUSE_NS, LINK_SECONDS};
            use std::sync::atomic::Ordering;
            use weir_capture::live::clock::steady;
            let until = steady() + i64::from(LINK_SECONDS) * 1_000_000_000;
            let up = || self.0.iter().all(|open| open.device.borrow().is_up());
            while !up() && !stop.load(Ordering::Relaxed) && steady() < until {
                pause(LINK_PAUSE_NS);
            }
        }
        #[cfg(not(any(feature = "link", test)))]
        let _ = stop;
    }

    /// The sending side of a device, of which there is one however often this is called.
    ///
    /// # Errors
    /// When the device is not among those that were opened, or its driver was told other things.
    pub fn open(&self, device: &str) -> io::Result<Box<dyn Transmit>> {
        let (name, arguments) = asked(device);
        if let Some(open) = self.0.iter().find(|open| open.name == name) {
            if arguments.is_some_and(|arguments| arguments != open.arguments) {
                let open = open.arguments.clone();
                return Err(DpdkError::from(NameError::OtherArguments { name, open }).into());
            }
            return Ok(Box::new(SharedDevice(Rc::clone(&open.device))));
        }
        if !cfg!(feature = "link") {
            return Err(DpdkError::NotLinked.into());
        }
        let open = self.0.iter().map(|open| open.name.clone()).collect();
        Err(DpdkError::NotOpened(open).into())
    }
}

/// The name of a device, and all that it was named with, if its driver is told something.
fn asked(device: &str) -> (String, Option<String>) {
    #[cfg(any(feature = "link", test))]
    if let Ok(device) = crate::device::Device::new(device) {
        let arguments = (!device.is_plain()).then(|| device.arguments.clone());
        return (device.name, arguments);
    }
    (device.to_owned(), None)
}

struct SharedDevice(Rc<RefCell<dyn Transmit>>);

impl Transmit for SharedDevice {
    fn len_max(&self) -> usize {
        self.0.borrow().len_max()
    }

    fn send(&mut self, frames: &[&[u8]]) -> usize {
        self.0.borrow_mut().send(frames)
    }

    fn is_up(&self) -> bool {
        self.0.borrow().is_up()
    }

    fn thrown_away(&mut self, most: u64) -> u64 {
        self.0.borrow_mut().thrown_away(most)
    }

    fn drain(&mut self) {
        self.0.borrow_mut().drain();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Device;
    use std::cell::Cell;

    /// A device whose link comes up when it was asked so often.
    struct Late(Cell<u32>);

    impl Transmit for Late {
        fn len_max(&self) -> usize {
            0
        }

        fn send(&mut self, _frames: &[&[u8]]) -> usize {
            0
        }

        fn is_up(&self) -> bool {
            self.0.set(self.0.get().saturating_sub(1));
            self.0.get() == 0
        }

        fn thrown_away(&mut self, _most: u64) -> u64 {
            0
        }

        fn drain(&mut self) {}
    }

    #[test]
    fn links_are_waited_for_unless_it_is_to_end() {
        let mut senders = Senders::default();
        let device = |name| Device::new(name).expect("a device");
        senders.add(&device("net_null0"), Late(Cell::new(3)));
        senders.add(&device("net_null1"), Late(Cell::new(2)));
        senders.wait_for_links(&AtomicBool::new(false));
        assert!(senders.0.iter().all(|open| open.device.borrow().is_up()));
        senders.add(&device("net_null2"), Late(Cell::new(u32::MAX)));
        senders.wait_for_links(&AtomicBool::new(true));
        assert!(!senders.open("net_null2").expect("is there").is_up());
    }

    /// A device that takes two frames at a time, and remembers how many it took.
    struct Two(usize);

    impl Transmit for Two {
        fn len_max(&self) -> usize {
            self.0
        }

        fn send(&mut self, frames: &[&[u8]]) -> usize {
            let n = frames.len().min(2);
            self.0 += n;
            n
        }

        fn is_up(&self) -> bool {
            true
        }

        fn thrown_away(&mut self, _most: u64) -> u64 {
            0
        }

        fn drain(&mut self) {}
    }

    #[test]
    fn a_device_has_one_sender_by_all_its_names() {
        let mut senders = Senders::default();
        let device = Device::new("3b:00.1,x=1").expect("a device");
        senders.add(&device, Two(0));
        let mut one = senders.open("3B:00.1,x=1").expect("is there");
        let other = senders.open("0000:3b:00.1").expect("is there");
        assert_eq!(one.send(&[&[0; 60][..]; 3]), 2);
        assert_eq!(other.len_max(), 2);
        let refused = senders.open("3b:00.1,x=2").err().expect("not so").to_string();
        let why = "it is open as 0000:3b:00.1,x=1, and its driver can't be told other things now: \
                   name it 0000:3b:00.1";
        assert_eq!(refused, why);
        let refused = senders.open("net_null0").err().expect("is not there").to_string();
        let why = if crate::is_linked() { "sends by 0000:3b:00.1 only" } else { "without DPDK" };
        assert!(refused.contains(why), "{refused}");
    }
}
