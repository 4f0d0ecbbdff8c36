//! A source's account of frames: how many it handed out, and what was lost on the way to it.

/// The counts of a source so far. `received = delivered + filtered + kernel.finished()`; of a wire,
/// frames that are `lost` are not among those.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Account {
    /// Frames read from the file or wire.
    pub received: u64,
    /// Frames that the capture filter refused.
    pub filtered: u64,
    /// The counts of the frames that a program in the kernel met, by what it did with them.
    pub kernel: KernelCounts,
    /// Frames that were there and could not be read.
    pub lost: Lost,
    /// Frames that were lost while nothing was read for a while.
    pub unread: PauseLosses,
    /// Bytes of the file read so far, before decompression; for a progress display.
    pub bytes_read: u64,
}

impl Account {
    /// Adds what another source handed out.
    pub fn merge(&mut self, other: Account) {
        self.received += other.received;
        self.filtered += other.filtered;
        self.kernel.merge(other.kernel);
        self.lost.merge(other.lost);
        self.unread.merge(other.unread);
        self.bytes_read += other.bytes_read;
    }

    /// All of some interfaces, with their names.
    pub fn of_all(interfaces: impl IntoIterator<Item = (String, Account)>) -> Account {
        let mut sum = Account::default();
        interfaces.into_iter().for_each(|(_, account)| sum.merge(account));
        sum
    }
}

/// Frames that the ring lost while nothing read it: the process was stopped or had no processor, or
/// waited for another.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct PauseLosses {
    /// How many.
    pub frames: u64,
    /// The longest time without a read, in milliseconds.
    pub longest_ms: u32,
}

impl PauseLosses {
    /// Adds those of another source.
    pub fn merge(&mut self, other: PauseLosses) {
        self.frames = self.frames.saturating_add(other.frames);
        self.longest_ms = self.longest_ms.max(other.longest_ms);
    }
}

/// Frames that a program of the query met in the kernel. Frames that are filtered, counted or acted
/// on are finished there; the others go up, to be delivered or lost.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct KernelCounts {
    /// No pipeline wanted them.
    pub filtered: u64,
    /// They were aggregated in the kernel.
    pub counted: u64,
    /// Some pipeline wanted to see them.
    pub wanted: u64,
    /// The program could not tell what their layers are.
    pub unclear: u64,
    /// A table in the kernel had no room for their group.
    pub full: u64,
    /// They were dropped or handed out in the kernel, as the query says.
    pub acted: u64,
}

impl KernelCounts {
    /// Frames that the kernel finished.
    pub fn finished(&self) -> u64 {
        self.filtered.saturating_add(self.counted).saturating_add(self.acted)
    }

    /// Frames that went up.
    pub fn went_up(&self) -> u64 {
        self.wanted.saturating_add(self.unclear).saturating_add(self.full)
    }

    /// Adds those of another source.
    pub fn merge(&mut self, other: KernelCounts) {
        let KernelCounts { filtered, counted, wanted, unclear, full, acted } = other;
        self.filtered = self.filtered.saturating_add(filtered);
        self.counted = self.counted.saturating_add(counted);
        self.wanted = self.wanted.saturating_add(wanted);
        self.unclear = self.unclear.saturating_add(unclear);
        self.full = self.full.saturating_add(full);
        self.acted = self.acted.saturating_add(acted);
    }
}

/// Frames of a wire that were lost between two times.
///
/// A gap may be *open*: until when frames were lost is not known yet. It ends where the next one
/// says that is not open, which may be of no frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Gap {
    /// How many.
    pub frames: u64,
    /// None of them before this time, in nanoseconds since 1970 by the clock of the frames, ...
    pub since: i64,
    /// ... and none after this one; [`Gap::OPEN`] if that is not known yet.
    pub until: i64,
}

impl Gap {
    /// The end of a gap that is not known yet.
    pub const OPEN: i64 = i64::MAX;
}

/// Frames of a wire that were lost before a source had them, by where.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Lost {
    /// By the interface: it had no buffer, or its driver none.
    pub interface: u64,
    /// By the kernel, which had no room for them on their way.
    pub kernel: u64,
    /// By the ring between kernel and program, since the program did not keep up.
    pub ring: u64,
}

impl Lost {
    /// All of them.
    pub fn total(&self) -> u64 {
        self.interface.saturating_add(self.kernel).saturating_add(self.ring)
    }

    /// Adds those of another source.
    pub fn merge(&mut self, other: Lost) {
        self.interface = self.interface.saturating_add(other.interface);
        self.kernel = self.kernel.saturating_add(other.kernel);
        self.ring = self.ring.saturating_add(other.ring);
    }
}
