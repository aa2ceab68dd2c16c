//! The lock that the queue is made of: one place to exchange it for a model checker's.

pub(crate) use parking_lot::Mutex;
