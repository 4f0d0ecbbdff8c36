//! A TUN or TAP device: the kernel receives by it what is written to it. One call writes one frame;
//! there is no way to write several.

use super::{Tried, named};
use crate::sys::link;
use crate::sys::send::Pieces;
use crate::sys::tun::{self, Kind};
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd};
use weir_packet::egress::Refusal;

/// A device that frames are written to.
pub(super) struct TunTapSender {
    name: String,
    kind: Kind,
    file: File,
}

impl TunTapSender {
    /// Opens a device, and makes it if there is none; it is up then. `outlet` stands in errors.
    pub(super) fn open(outlet: &str, name: &str, kind: Kind) -> io::Result<TunTapSender> {
        let there = link::index(name).is_ok();
        let file = tun::open(name, kind).map_err(|e| refused(outlet, name, there, &e))?;
        let control = link::control()?;
        link::set_up(control, name).map_err(|e| refused(outlet, name, there, &e))?;
        Ok(TunTapSender { name: name.to_owned(), kind, file })
    }

    pub(super) fn socket(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Takes it into use again if it is up. Where it was removed and somebody made it anew, it is
    /// opened again.
    pub(super) fn come_back(&mut self) -> bool {
        let up = |name| link::control().and_then(|control| link::state(control, name));
        if !up(&self.name).is_ok_and(|state| state.up) {
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
    pub(super) fn put(&mut self, messages: &[Pieces<'_>]) -> Tried {
        for (n, [_, frame]) in messages.iter().enumerate() {
            let Err(error) = self.file.write(frame) else { continue };
            if n > 0 {
                return Tried::Took(n);
            }
            return match error.raw_os_error() {
                Some(libc::EINTR) => Tried::Took(0),
                Some(libc::EAGAIN | libc::ENOBUFS | libc::ENOMEM) => Tried::Full { tells: false },
                Some(libc::EIO | libc::EBADFD | libc::ENODEV) => Tried::Away(Refusal::Down),
                Some(libc::EMSGSIZE | libc::EFBIG) => Tried::Refused(Refusal::Long, error),
                _ => Tried::Refused(Refusal::Other, error),
            };
        }
        Tried::Took(messages.len())
    }
}

/// Why a device could not be opened.
fn refused(outlet: &str, name: &str, there: bool, e: &io::Error) -> io::Error {
    match e.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => named(outlet, e, &super::advice(e, "cap_net_admin")),
        Some(libc::ENOENT | libc::ENODEV | libc::ENXIO) => {
            named(outlet, e, "; /dev/net/tun is missing: sudo modprobe tun")
        }
        Some(libc::EBUSY) => named(outlet, e, "; another process has the device"),
        Some(libc::EINVAL) if there => {
            let what = format!("; there is an interface {name} of another kind");
            named(outlet, e, &what)
        }
        _ => named(outlet, e, ""),
    }
}
