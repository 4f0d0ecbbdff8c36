//! A TUN or TAP device: the kernel receives by it what is written to it. One call writes one frame;
//! there is no way to write several.

use super::attempt::Attempt;
use super::error::{Remedy, SendError};
use crate::sys::link;
use crate::sys::send::Pieces;
use crate::sys::tun::{self, Kind};
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use weir_packet::egress::Refusal;

/// A device that frames are written to.
pub(super) struct TunTapSender {
    name: String,
    kind: Kind,
    file: File,
    /// A socket to ask by how it is.
    control: OwnedFd,
}

impl TunTapSender {
    /// Opens a device, and makes it if there is none; it is up then. `outlet` stands in errors.
    pub(super) fn open(outlet: &str, name: &str, kind: Kind) -> io::Result<TunTapSender> {
        let there = link::index(name).is_ok();
        let refused = |e: io::Error| {
            let remedy = remedy(&e, name, there);
            SendError::refused(outlet, e, remedy)
        };
        let file = tun::open(name, kind).map_err(refused)?;
        let control = link::control().map_err(refused)?;
        link::set_up(&control, name).map_err(refused)?;
        Ok(TunTapSender { name: name.to_owned(), kind, file, control })
    }

    pub(super) fn socket(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Takes it into use again if it is up. Where it was removed and made anew, it is opened
    /// again.
    pub(super) fn come_back(&mut self) -> bool {
        if !link::state(&self.control, &self.name).is_ok_and(|state| state.up) {
            return false;
        }
        match tun::open(&self.name, self.kind) {
            Ok(file) => self.file = file,
            // It is still the one that is open.
            Err(e) if e.raw_os_error() == Some(libc::EBUSY) => {}
            Err(_) => return false,
        }
        true
    }

    /// Writes frames, which have nothing before them.
    pub(super) fn put(&mut self, messages: &[Pieces<'_>]) -> Attempt {
        for (n, [_, frame]) in messages.iter().enumerate() {
            let Err(error) = self.file.write(frame) else { continue };
            if n > 0 {
                return Attempt::Took(n);
            }
            return match error.raw_os_error() {
                Some(libc::EINTR) => Attempt::Took(0),
                Some(libc::EAGAIN | libc::ENOBUFS | libc::ENOMEM) => Attempt::FullUntold,
                Some(libc::EIO | libc::EBADFD | libc::ENODEV) => Attempt::Away(Refusal::Down),
                Some(libc::EMSGSIZE | libc::EFBIG) => Attempt::Refused(Refusal::Long, error),
                _ => Attempt::Refused(Refusal::Other, error),
            };
        }
        Attempt::Took(messages.len())
    }
}

/// The remedy where a device can't be opened. `there`: whether there was an interface of its name.
fn remedy(e: &io::Error, name: &str, there: bool) -> Remedy {
    match e.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => Remedy::permission(e, "cap_net_admin"),
        Some(libc::ENOENT | libc::ENODEV | libc::ENXIO) => Remedy::TunModule,
        Some(libc::EBUSY) => Remedy::DeviceInUse,
        Some(libc::EINVAL) if there => Remedy::OtherKind(name.to_owned()),
        _ => Remedy::None,
    }
}
