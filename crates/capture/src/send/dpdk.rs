//! A device that the kernel has no part in; see [`Transmit`].

use super::attempt::Attempt;
use super::carry::is_longer;
use super::error::{Remedy, SendError};
use super::transmit::{OpenTransmit, Transmit};
use crate::limits::SEND_AT_ONCE;
use crate::sys::send::Pieces;
use std::io;
use weir_packet::egress::Refusal;

/// A device that frames are sent by.
pub(super) struct DpdkSender {
    device: Box<dyn Transmit>,
}

impl DpdkSender {
    /// Opens a device; `outlet` stands in errors.
    pub(super) fn open(
        outlet: &str,
        device: &str,
        open: &mut OpenTransmit,
    ) -> io::Result<DpdkSender> {
        let device = open(device).map_err(|e| SendError::refused(outlet, e, Remedy::None))?;
        Ok(DpdkSender { device })
    }

    /// Whether its link is up.
    pub(super) fn is_back(&self) -> bool {
        self.device.is_up()
    }

    /// Sends frames, which have nothing before them.
    pub(super) fn put(&mut self, messages: &[Pieces<'_>]) -> Attempt {
        let most = self.device.len_max();
        let mut frames: [&[u8]; SEND_AT_ONCE] = [&[]; SEND_AT_ONCE];
        let fits = messages.iter().take_while(|[_, frame]| !is_longer(frame, most));
        let n = frames.iter_mut().zip(fits).map(|(to, [_, frame])| *to = frame).count();
        if n == 0 {
            let error = io::Error::from_raw_os_error(libc::EMSGSIZE);
            return Attempt::Refused(Refusal::Long, error);
        }
        match self.device.send(&frames[..n]) {
            0 if !self.is_back() => Attempt::Away(Refusal::Down),
            0 => Attempt::FullUntold,
            took => Attempt::Took(took),
        }
    }

    /// Of so many frames, how many are to be counted as thrown away, and why.
    pub(super) fn thrown(&mut self, most: u64) -> (u64, Refusal) {
        let n = self.device.thrown_away(most);
        (n, if n > 0 && !self.is_back() { Refusal::Down } else { Refusal::Other })
    }

    pub(super) fn drain(&mut self) {
        self.device.drain();
    }
}
