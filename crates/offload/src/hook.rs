//! The hooks of the kernel.

/// Where in the kernel a program meets frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Hook {
    /// The filter of an AF_PACKET socket: on packet buffers, before they are copied.
    Socket,
    /// The traffic control hook of an interface (Linux 6.6): on packet buffers, and the host goes
    /// on receiving them.
    Tcx,
    /// XDP: in the driver, before there is a packet buffer; the host does not get what it takes.
    Xdp,
}

/// Bytes of stack that a program may use, since another calls it.
pub const STACK_BYTES: i16 = 448;
