//! What the part after the workers wants of the run around it: frames, and what was lost.

use super::Lower;
use crate::losses::Book;
use crate::ops::ends::Wanted;

impl Lower<'_> {
    /// Says who wants frames.
    pub(crate) fn want(&mut self) -> Wanted {
        let wanted = self.exits.wanted();
        self.pipes.iter_mut().flat_map(|p| &mut p.segments).for_each(|s| s.want(wanted));
        wanted
    }

    /// Says in which book windows are looked up that ask what was lost.
    pub(crate) fn look_up(&mut self, book: &Book) {
        let all = self.pipes.iter_mut().flat_map(|p| p.emitter.iter_mut().chain(&mut p.segments));
        all.for_each(|segment| segment.look_up(book));
    }
}
