//! For tests of what is built on informers: a server that a test plays itself, and a cache that it fills by hand.

mod scripted;
mod store;

pub use self::{
    scripted::{PendingList, PendingWatch, ScriptedListWatch, ScriptedRequest, ScriptedWatch},
    store::Store,
};
