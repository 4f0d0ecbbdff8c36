//! The memory that frames are read from.

use std::sync::Arc;

/// Memory that frames are read from: a mapped file or a filled buffer. Shared, so that a batch
/// can be handed to another thread without copying a byte.
pub type Chunk = Arc<dyn AsRef<[u8]> + Send + Sync>;
