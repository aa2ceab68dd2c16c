//! Decides if an event becomes a create, an update of an earlier event, or no request. Pure.
//!
//! The order is that of client-go's `EventCorrelator`: similar events are combined, equal events
//! are counted, and the spam filter decides last.
//!
//! | Step | Key | Rule |
//! |---|---|---|
//! | combine | object, type, reason | the 10th message in 10 minutes and later ones share one |
//! | count | the above, field path, message | the second and later ones update the first |
//! | spam | object, type | 25 at once, then one in 5 minutes |
//!
//! Differences: the spam filter here has a bucket per object *and type*, so that regular events do
//! not displace warnings; names are unique even if two events have the same time.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Event, EventSource, ObjectReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use k8s_openapi::jiff::Timestamp;
use tokio::time::Instant;

use super::Occurrence;
use super::keys::{InvolvedKey, Names, namespace_of};
use super::lru::Lru;
use super::post::Post;
use super::spam::SpamFilter;

/// From this number of different messages of one reason and object on, events are combined
/// (`defaultAggregateMaxEvents`).
const SIMILAR: usize = 10;
/// Events that are further apart are not combined (`defaultAggregateIntervalInSeconds`).
const SIMILAR_WITHIN: Duration = Duration::from_secs(600);
/// The capacity of each cache (`maxLruCacheEntries`).
pub(super) const REMEMBERED: usize = 4096;

/// One task owns it. Its three caches hold at most [`REMEMBERED`] entries each: an entry that is
/// evicted starts from nothing, as if the process had just begun.
#[derive(Debug)]
pub(super) struct Correlator {
    component: String,
    /// The recent messages per object and reason, to combine similar events.
    similar: Lru<SimilarKey, Similar>,
    /// The events that the server has, as far as this process knows, to count equal ones.
    sent: Lru<SentKey, Sent>,
    /// A token bucket per object and type of event.
    spam: SpamFilter,
    names: Names,
}

/// Events with equal keys are similar: they may differ in their message.
#[derive(Debug, PartialEq, Eq, Hash)]
struct SimilarKey {
    involved: Arc<InvolvedKey>,
    reason: String,
}

/// The key of an event on the server: events with equal keys share one.
#[derive(Debug, PartialEq, Eq, Hash)]
enum SentKey {
    /// All further messages of one object and reason share this event.
    Combined(Arc<SimilarKey>),
    Single {
        key: Arc<SimilarKey>,
        field_path: Option<String>,
        message: String,
    },
}

/// The recent events of one [`SimilarKey`].
#[derive(Debug)]
struct Similar {
    /// Time of the last event. After [`SIMILAR_WITHIN`] without one, the messages are forgotten.
    last: Instant,
    /// At most [`SIMILAR`] messages; further ones are not added.
    messages: HashSet<String>,
}

/// An event on the server.
#[derive(Debug, Clone)]
struct Sent {
    name: String,
    /// The wall time of the first occurrence.
    first: Timestamp,
    /// Zero until the first one is handed to the sender.
    count: i32,
}

// === impl Correlator ===

impl Correlator {
    /// Creates a correlator that remembers nothing. `component` is the source of all its events.
    pub(super) fn new(component: String) -> Self {
        Self {
            component,
            similar: Lru::new(REMEMBERED),
            sent: Lru::new(REMEMBERED),
            spam: SpamFilter::new(REMEMBERED),
            names: Names::default(),
        }
    }

    /// Returns the request for `occurrence`, or `None` if the spam filter drops it.
    ///
    /// Time is taken from the occurrence, when the event was recorded, and not from the call:
    /// events that waited in a queue are combined by their own times.
    pub(super) fn correlate(&mut self, mut occurrence: Occurrence) -> Option<Post<Event>> {
        let (now, wall) = (occurrence.recorded, occurrence.at);
        let involved = Arc::new(InvolvedKey::of(&occurrence));
        let key = self.combine(&mut occurrence, Arc::clone(&involved), now);
        let sent = self.count(key, &occurrence.involved, wall);
        // After the count, as upstream: the count of the next event includes those dropped here.
        if !self.spam.admits(involved, now) {
            tracing::trace!(
                reason = occurrence.reason,
                "too many events about one object, dropping the event"
            );
            return None;
        }
        let is_repeated = sent.count > 1;
        let event = Box::new(self.event(occurrence, sent, wall));
        Some(if is_repeated { Post::Update(event) } else { Post::Create(event) })
    }

    /// Returns the key of the event, and marks its message if it is combined with others.
    ///
    /// The message that makes the set full is combined already: with [`SIMILAR`] = 10, nine
    /// messages have events of their own.
    fn combine(
        &mut self,
        occurrence: &mut Occurrence,
        involved: Arc<InvolvedKey>,
        now: Instant,
    ) -> SentKey {
        let key = Arc::new(SimilarKey { involved, reason: occurrence.reason.clone() });
        let fresh = || Similar { last: now, messages: HashSet::new() };
        let similar = self.similar.get_or_insert_with(Arc::clone(&key), fresh);
        if now.saturating_duration_since(similar.last) > SIMILAR_WITHIN {
            *similar = fresh();
        }
        similar.last = now;
        let is_known = similar.messages.contains(&occurrence.message);
        if similar.messages.len() + usize::from(!is_known) < SIMILAR {
            similar.messages.insert(occurrence.message.clone());
            return SentKey::Single {
                key,
                field_path: occurrence.involved.field_path.clone(),
                message: occurrence.message.clone(),
            };
        }
        occurrence.message.insert_str(0, "(combined from similar events): ");
        SentKey::Combined(key)
    }

    /// Raises the count of the event with this key, or starts a new one at 1.
    fn count(&mut self, key: SentKey, involved: &ObjectReference, wall: Timestamp) -> Sent {
        let name = self.names.next(involved, wall); // Used only if the event is new.
        let fresh = || Sent { name, first: wall, count: 0 };
        let sent = self.sent.get_or_insert_with(key, fresh);
        sent.count = sent.count.saturating_add(1);
        sent.clone()
    }

    /// Returns the event as the server stores it.
    ///
    /// `count`, `firstTimestamp` and `lastTimestamp` are those of the core API, which `kubectl
    /// describe` shows; `series` is not used.
    fn event(&self, occurrence: Occurrence, sent: Sent, wall: Timestamp) -> Event {
        Event {
            metadata: ObjectMeta {
                name: Some(sent.name),
                namespace: Some(namespace_of(&occurrence.involved)),
                annotations: Some(occurrence.annotations).filter(|all| !all.is_empty()),
                ..ObjectMeta::default()
            },
            involved_object: occurrence.involved,
            related: occurrence.related,
            action: occurrence.action,
            type_: Some(occurrence.event_type.as_str().to_owned()),
            reason: Some(occurrence.reason),
            message: Some(occurrence.message),
            count: Some(sent.count),
            first_timestamp: Some(Time(sent.first)),
            last_timestamp: Some(Time(wall)),
            source: Some(EventSource { component: Some(self.component.clone()), host: None }),
            reporting_component: Some(self.component.clone()),
            reporting_instance: Some(String::new()),
            ..Event::default()
        }
    }
}

#[cfg(test)]
mod tests;
