//! The merge of a job for a Java machine: `weir.engine.Native` there.
//!
//! A handle is a number of a table of its thread, not an address, so that a wrong one is an
//! exception. A tier belongs to the thread that opened it, as a task of Flink does. A call
//! takes a record, which is a batch of groups, and gives lines by the batch. A panic becomes an
//! exception; the handle is closed then.

mod sys;
