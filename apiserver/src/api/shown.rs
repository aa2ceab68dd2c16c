//! Stored objects in the version of a request that only reads: the webhook of a definition may have
//! to convert them.

use std::sync::Arc;

use super::conversion::{Converter, unreadable_list};
use super::webhooks::{LONGEST, replay, replay_within};
use crate::core::Core;
use crate::kinds::Served;
use crate::object::Stored;
use crate::request::ApiCall;
use crate::status::Result;
use crate::webhooks::Conversation;

/// Returns a stored object in the version of a request that only reads.
pub(super) async fn object(
    core: &Core,
    call: &ApiCall,
    stored: Arc<Stored>,
) -> Result<Arc<Stored>> {
    let converter = Converter::of(call);
    if !converter.calls_webhook() {
        return Ok(stored);
    }
    replay(core, (&call.conversation, &call.params), || converter.read(&stored)).await
}

/// Returns stored objects in the version of a kind, for events.
pub(super) async fn objects(
    core: &Core,
    served: &Served,
    all: &[Arc<Stored>],
) -> Result<Vec<Arc<Stored>>> {
    let conversation = Arc::<Conversation>::default();
    let converter = Converter::new(served, Arc::clone(&conversation));
    replay_within(core, &conversation, LONGEST, || converter.show_all(all)).await
}

/// Returns the objects of a list in the version of a kind.
pub(super) async fn list(
    core: &Core,
    served: &Served,
    all: &[Arc<Stored>],
) -> Result<Vec<Arc<Stored>>> {
    objects(core, served, all).await.map_err(|failure| {
        let first = all.iter().find(|stored| served.needs_webhook(stored));
        match first.filter(|_| failure.reason.is_empty()) {
            Some(first) => unreadable_list(served, first, &failure),
            None => failure,
        }
    })
}
