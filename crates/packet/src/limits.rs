//! The named maxima of this crate.

/// Frames (rows) in a batch. 256 keeps the columns of a usual plan inside the first-level cache;
/// smaller and larger batches measured slower.
pub const BATCH: usize = 256;

/// VLAN tags that the walk steps over in one frame; a frame with more is malformed.
pub const VLAN_TAGS_MAX: usize = 8;

/// Headers below IP that the walk steps over in one frame, VLAN tags among them; a frame with more
/// is malformed.
pub const LINK_HEADERS_MAX: usize = 32;

/// MPLS labels that the walk steps over in one stack; a stack with more is malformed. As many as a
/// router can say that it imposes (RFC 8491, section 1.1).
pub const MPLS_LABELS_MAX: usize = 255;

/// Tunnels that the walk goes into in one frame; the headers of a packet in more are those of the
/// last.
pub const TUNNELS_MAX: usize = 8;

/// UDP ports that a run names for tunnels besides their own.
pub const TUNNEL_PORTS_MAX: usize = 8;

/// Netfilter log attributes that are looked at for the packet; a frame with more is malformed.
pub const NFLOG_ATTRIBUTES_MAX: usize = 64;

/// IPv6 extension headers that the walk steps over in one packet; a packet with more is malformed.
pub const EXTENSION_HEADERS_MAX: usize = 16;

/// Pointers that one name of DNS follows; a name with more is no name. One before each label of
/// the longest name, and one before its end.
pub const NAME_POINTERS_MAX: usize = 128;

/// Largest captured length of one record, in bytes. A capture file that claims more is corrupt
/// (libpcap uses the same bound).
pub const CAPLEN_MAX: u32 = 262_144;

/// Longest frame that is believed, in bytes. The largest that a machine puts together of segments
/// have 512 KiB (BIG TCP); a record that claims more is forged or corrupt.
pub const FRAME_MAX: u32 = 1 << 20;

/// Largest pcapng block, in bytes. A capture file that claims more is corrupt (libpcap starts from
/// the same bound).
pub const BLOCK_MAX: u32 = 16 << 20;

/// Interfaces in one section of a pcapng file; a file that declares more is refused.
pub const INTERFACES_MAX: usize = 65_536;

/// Names of interfaces that a run knows; frames of further ones have none.
pub const INTERFACE_NAMES_MAX: usize = 8192;

/// Parts of one row that `each` makes rows of: answers of a message, options of a header, pieces of
/// a text. Further ones are left out, and counted.
pub const EACH_MAX: usize = 256;

/// Bytes of a text that is read from a packet; a longer one is cut there. More than any domain name
/// takes when it is written out.
pub const TEXT_MAX: usize = 1024;

/// Bytes of a ClientHello that is put together from several packets or records; a longer one is
/// none. Hellos with post-quantum key shares have less than 2,000.
pub const HELLO_MAX: usize = 16 << 10;

/// Bytes of a header that are read as an integer: all of them are good for 64 bits with a sign.
pub const HEADER_INT_BYTES_MAX: u8 = 7;

/// Bytes of a header that are read at once.
pub const HEADER_BYTES_MAX: u8 = 255;
