//! Test doubles for code that is built on informers.
//!
//! * [`ScriptedListWatch`]: a [`ListWatch`](crate::list_watch::ListWatch) whose requests the test
//!   answers one by one. Use it to test an informer's reaction to a server: a torn watch, an
//!   expired version, a refused list.
//! * [`Store`]: a cache that the test fills by hand. Use it to test code that reads a
//!   [`Lister`](crate::Lister) or an [`Index`](crate::Index); it needs no informer and no runtime.
//!
//! client-go's counterparts are `cache/testing.FakeControllerSource` and an indexer that a test
//! fills.
//!
//! Both need no cluster and no network, and the scripted list-watch needs no time: with
//! `#[tokio::test(start_paused = true)]` a back-off of 30 s passes at once.
//!
//! Use the embedded API server instead for tests of a complete controller, in which writes must
//! come back as events.

mod scripted;
mod store;

pub use self::scripted::{
    PendingList, PendingWatch, ScriptedListWatch, ScriptedRequest, ScriptedWatch,
};
pub use self::store::Store;
