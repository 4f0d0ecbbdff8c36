//! The sending side of a port.

use super::on::{On, Raw};
use super::{checked, lock};
use std::ffi::c_int;
use std::io;
use std::ptr;
use std::sync::Arc;
use weir_capture::limits::SEND_AT_ONCE;

/// `struct weir_dpdk_bytes`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Bytes {
    at: *const u8,
    len: usize,
}

unsafe extern "C" {
    fn weir_dpdk_send(it: *const Raw, frames: *const Bytes, n: u16) -> u16;
    fn weir_dpdk_sent(port: u16, sent: *mut u64, failed: *mut u64) -> c_int;
}

/// A port that frames are sent by. There is one of a port.
pub(crate) struct Sender(Arc<On>);

impl Sender {
    /// The sending side of a port, if it was switched on with one, and it was not taken before.
    pub(crate) fn take(on: &Arc<On>) -> Option<Sender> {
        on.take_sender().then(|| Sender(Arc::clone(on)))
    }

    /// The port.
    pub(crate) fn on(&self) -> &On {
        &self.0
    }

    /// Sends copies of frames, none of which is longer than the port's MTU, its header and two tags
    /// allow; how many of them, from the first, the device took.
    pub(crate) fn send(&mut self, frames: &[&[u8]]) -> usize {
        let mut all = [Bytes { at: ptr::null(), len: 0 }; SEND_AT_ONCE];
        let n = frames.len().min(all.len());
        for (bytes, frame) in all.iter_mut().zip(frames) {
            *bytes = Bytes { at: frame.as_ptr(), len: frame.len() };
        }
        // SAFETY: a port that is open, by its only queue for sending, of which this is the only
        // owner; bytes that live through the call and are only read.
        unsafe { weir_dpdk_send(self.0.as_ptr(), all.as_ptr(), n as u16) }.into()
    }

    /// How many frames the port has sent, and how many it took and did not send, as it counts.
    pub(crate) fn counts(&self) -> io::Result<(u64, u64)> {
        let (mut sent, mut failed) = (0, 0);
        let _alone = lock();
        // SAFETY: numbers that live through the call and are written to.
        checked(unsafe { weir_dpdk_sent(self.0.raw().number, &raw mut sent, &raw mut failed) })?;
        Ok((sent, failed))
    }
}
