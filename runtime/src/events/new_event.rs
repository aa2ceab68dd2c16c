//! An event before it is recorded, and the objects that events are about.
//!
//! An event is about one object (`involvedObject`), has a type, a reason for programs, and a
//! message for people. The short methods of [`EventRecorder`](crate::EventRecorder) take these
//! four; a [`NewEvent`] has the other parts too.

use std::collections::BTreeMap;
use std::sync::Arc;

use homeostat_informer::Object;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::jiff::Timestamp;
use kube_client::Resource;
use tokio::time::Instant;

use super::{EventType, Occurrence, reference};

/// An event with all its parts, for [`EventRecorder::publish`](crate::EventRecorder::publish).
///
/// # Examples
///
/// ```
/// use homeostat::events::{NewEvent, reference};
/// use k8s_openapi::api::core::v1::Pod;
///
/// let event = NewEvent::warning(reference(&Pod::default()), "Evicted", "the node is full")
///     .action("Evicting")
///     .annotation("shop.example/node", "a");
/// ```
#[derive(Debug, Clone)]
#[must_use = "an event is recorded by `publish`"]
pub struct NewEvent {
    involved: ObjectReference,
    event_type: EventType,
    reason: String,
    message: String,
    related: Option<ObjectReference>,
    action: Option<String>,
    annotations: BTreeMap<String, String>,
}

/// An object that an event can be about: an object of the API, a projection of one, or an `Arc` of
/// either.
///
/// `M` keeps the two cases apart; the compiler finds it. No program implements this trait or names
/// `M`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no object of the Kubernetes API",
    note = "an event is about a type that implements `homeostat::Object`, or an `Arc` of one; for \
            anything else use `EventRecorder::record` with an `ObjectReference`"
)]
pub trait EventObject<M> {
    /// Returns the reference that the event carries.
    fn event_reference(&self) -> ObjectReference;
}

/// Marks an [`EventObject`] that is the object itself.
#[derive(Debug)]
pub struct Borrowed;

/// Marks an [`EventObject`] in an `Arc`.
#[derive(Debug)]
pub struct Shared;

impl<K> EventObject<Borrowed> for K
where
    K: Object,
    K::Kind: Resource<DynamicType = ()>,
{
    fn event_reference(&self) -> ObjectReference {
        reference(self)
    }
}

impl<K> EventObject<Shared> for Arc<K>
where
    K: Object,
    K::Kind: Resource<DynamicType = ()>,
{
    fn event_reference(&self) -> ObjectReference {
        reference(&**self)
    }
}

// === impl NewEvent ===

impl NewEvent {
    /// Returns an event about the object that `involved` names.
    ///
    /// `reason` is one word in `CamelCase`, such as `FailedCreate`: it is a part of the key by
    /// which similar events are combined. `message` is a sentence.
    pub fn new(
        involved: ObjectReference,
        event_type: EventType,
        reason: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        Self {
            involved,
            event_type,
            reason: reason.into(),
            message: message.into(),
            related: None,
            action: None,
            annotations: BTreeMap::new(),
        }
    }

    /// Returns an event about a regular step.
    ///
    /// `kubectl describe` shows it as `Normal`.
    pub fn normal(
        involved: ObjectReference,
        reason: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        Self::new(involved, EventType::Normal, reason, message)
    }

    /// Returns an event about a failure.
    ///
    /// `kubectl describe` shows it as `Warning`. Use it for what an operator may have to act on.
    pub fn warning(
        involved: ObjectReference,
        reason: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        Self::new(involved, EventType::Warning, reason, message)
    }

    /// Sets the step that the controller took or tried, such as `Scaling`.
    ///
    /// It is stored in `action` of the event.
    pub fn action(mut self, action: impl Into<String>) -> Self {
        self.action = Some(action.into());
        self
    }

    /// Sets a second object that the event is about, such as the pod that was created.
    pub fn related(mut self, related: ObjectReference) -> Self {
        self.related = Some(related);
        self
    }

    /// Adds an annotation to the event.
    ///
    /// A second value for the same key replaces the first.
    pub fn annotation(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.annotations.insert(key.into(), value.into());
        self
    }

    /// Returns the event with the time at which it was recorded.
    ///
    /// `recorded` is on the monotonic clock, for the intervals of the correlator; `at` is the wall
    /// time that the event shows.
    pub(super) fn occurrence(self, recorded: Instant, at: Timestamp) -> Occurrence {
        Occurrence {
            involved: self.involved,
            event_type: self.event_type,
            reason: self.reason,
            message: self.message,
            related: self.related,
            action: self.action,
            annotations: self.annotations,
            recorded,
            at,
        }
    }
}
