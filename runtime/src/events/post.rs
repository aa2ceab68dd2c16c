//! A request about an event, in either of the two APIs.

use k8s_openapi::api::core::v1::Event as CoreEvent;
use k8s_openapi::api::events::v1::Event;
use kube_client::Resource;
use serde::Serialize;
use serde_json::{Value, json};

/// One request about an event.
///
/// Both contain the complete event: an update becomes a create if the server has deleted the event
/// meanwhile (events expire after an hour by default).
#[derive(Debug, Clone)]
pub(super) enum Post<E> {
    /// The event is new.
    Create(Box<E>),
    /// The event was sent before under the same name: it has occurred again.
    Update(Box<E>),
}

/// An event as the server stores it.
pub(super) trait Stored: Resource<DynamicType = ()> + Serialize + Send + Sync {
    /// Returns the strategic merge patch of an update: the members that a repetition changes.
    fn repetition(&self) -> Value;
}

// === impl Post ===

impl<E> Post<E> {
    /// Returns the event.
    pub(super) fn event(&self) -> &E {
        let (Self::Create(event) | Self::Update(event)) = self;
        event
    }

    /// Returns the request that creates the event.
    pub(super) fn into_create(self) -> Self {
        let (Self::Create(event) | Self::Update(event)) = self;
        Self::Create(event)
    }
}

// === impl Stored ===

impl Stored for CoreEvent {
    fn repetition(&self) -> Value {
        json!({
            "count": self.count,
            "lastTimestamp": self.last_timestamp,
            "message": self.message,
        })
    }
}

impl Stored for Event {
    fn repetition(&self) -> Value {
        json!({ "series": self.series })
    }
}
