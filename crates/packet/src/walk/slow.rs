//! The total walk: one frame, any bytes, layer by layer. It defines what [`super::fast`] must
//! find for the frames that it takes.

use super::link::Next;
use super::ports::Headers;
use super::walker::Walk;

pub(crate) use super::walker::Found;
use crate::source::LinkType;

/// Walks one frame: its captured bytes, and its length on the wire; to the outermost or the
/// innermost packet.
pub(crate) fn walk(link: LinkType, headers: &Headers, frame: &[u8], len: u32) -> Found {
    // A capture that claims fewer bytes on the wire than it holds is wrong about the wire.
    let end = frame.len().max(len as usize);
    let mut nobody = ();
    let mut walk = Walk::new(frame, end, headers.ports(), &mut nobody);
    // Running out of bytes ends the walk; `take` has noted why.
    let _ = walk.follow(Next::Link(link), 0);
    if headers.are_inner() {
        walk.descend();
    }
    walk.found
}
