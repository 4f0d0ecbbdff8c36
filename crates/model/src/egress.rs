//! Frames that leave, as values: for tests, and for programs that want a `Vec`.

use std::io;
use weir_packet::egress::{Egress, Outlet, Sent};
use weir_packet::interface::CapturePoint;
use weir_packet::source::LinkType;

/// A frame that left.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Frame {
    /// Where it went.
    pub outlet: Outlet,
    /// Its link type.
    pub link: LinkType,
    /// When it was captured, in nanoseconds since 1970.
    pub ts: i64,
    /// Its length on the wire.
    pub len: u32,
    /// The interface by which it came, and its direction there.
    pub capture_point: CapturePoint,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// Collects all frames.
#[derive(Clone, Default, Debug)]
pub struct Collected {
    /// The outlets of the program.
    pub outlets: Vec<Outlet>,
    /// The frames, in the order they left.
    pub frames: Vec<Frame>,
}

/// Frames by outlet, those of each in the order they left. How outlets take turns is not promised.
pub fn by_outlet(mut frames: Vec<Frame>) -> Vec<Frame> {
    frames.sort_by(|a, b| a.outlet.cmp(&b.outlet));
    frames
}

impl Egress for Collected {
    fn open(&mut self, outlets: &[Outlet]) -> io::Result<()> {
        self.outlets = outlets.to_vec();
        Ok(())
    }

    fn send(&mut self, memory: &[u8], frames: &[Sent]) -> io::Result<()> {
        self.frames.extend(frames.iter().map(|frame| Frame {
            outlet: self.outlets[frame.outlet as usize].clone(),
            link: frame.link,
            ts: frame.ts,
            len: frame.len,
            capture_point: frame.capture_point,
            bytes: frame.bytes(memory).to_vec(),
        }));
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        Ok(())
    }
}
