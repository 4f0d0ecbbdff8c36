//! Devices that frames are sent by, by their names.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use weir_capture::send::Transmit;

/// Devices that were opened to send frames by. They stay open as long as this, or anything that
/// [`Senders::open`] gave.
#[derive(Default)]
pub struct Senders(Vec<(String, Rc<RefCell<dyn Transmit>>)>);

impl Senders {
    /// One more.
    #[cfg_attr(not(any(feature = "link", test)), expect(dead_code, reason = "nothing is opened"))]
    pub(crate) fn add(&mut self, name: String, device: impl Transmit + 'static) {
        self.0.push((name, Rc::new(RefCell::new(device))));
    }

    /// The sending side of a device, of which there is one however often this is called.
    ///
    /// # Errors
    /// When the device is not among those that were opened.
    pub fn open(&self, device: &str) -> io::Result<Box<dyn Transmit>> {
        let name = name(device);
        if let Some((_, found)) = self.0.iter().find(|(of, _)| *of == name) {
            return Ok(Box::new(Shared(Rc::clone(found))));
        }
        let reason = match (crate::is_linked(), &self.0[..]) {
            (false, _) => "this program was built without DPDK (docs/dpdk.md)".to_owned(),
            (true, []) => "devices of DPDK are opened when a run starts, and this one started \
                           without any: name it there, with -w or in a query"
                .to_owned(),
            (true, all) => {
                let all: Vec<&str> = all.iter().map(|(name, _)| name.as_str()).collect();
                format!(
                    "devices of DPDK are opened when a run starts, and this one sends by {} only",
                    all.join(", ")
                )
            }
        };
        Err(io::Error::new(io::ErrorKind::InvalidInput, reason))
    }
}

/// A device, of its name and what its driver is told.
fn name(device: &str) -> String {
    #[cfg(any(feature = "link", test))]
    if let Ok(device) = crate::device::Device::new(device) {
        return device.name;
    }
    device.to_owned()
}

struct Shared(Rc<RefCell<dyn Transmit>>);

impl Transmit for Shared {
    fn len_max(&self) -> usize {
        self.0.borrow().len_max()
    }

    fn send(&mut self, frames: &[&[u8]]) -> usize {
        self.0.borrow_mut().send(frames)
    }

    fn is_up(&self) -> bool {
        self.0.borrow().is_up()
    }

    fn thrown_away(&mut self) -> u64 {
        self.0.borrow_mut().thrown_away()
    }

    fn drain(&mut self) {
        self.0.borrow_mut().drain();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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

        fn thrown_away(&mut self) -> u64 {
            0
        }

        fn drain(&mut self) {}
    }

    #[test]
    fn a_device_has_one_sender_by_all_its_names() {
        let mut senders = Senders::default();
        senders.add("0000:3b:00.1".to_owned(), Two(0));
        let mut one = senders.open("3B:00.1,x=1").expect("is there");
        let other = senders.open("0000:3b:00.1").expect("is there");
        assert_eq!(one.send(&[&[0; 60][..]; 3]), 2);
        assert_eq!(other.len_max(), 2);
        let refused = senders.open("net_null0").err().expect("is not there").to_string();
        let why = if crate::is_linked() { "sends by 0000:3b:00.1 only" } else { "without DPDK" };
        assert!(refused.contains(why), "{refused}");
    }
}
