//! The primitives of the code that wakes workers: threads' own here, a model's in `tests/wake.rs`.

pub(crate) use std::hint::spin_loop;
pub(crate) use std::sync::{Condvar, Mutex, MutexGuard, TryLockError, atomic};
