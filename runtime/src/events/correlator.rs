//! Decides which requests events become: combined, counted, or none. Pure.
//!
//! client-go's order: similar events are combined first, then equal ones counted, then the spam filter asked.

use std::collections::HashSet;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Event, EventSource, ObjectReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use k8s_openapi::jiff::Timestamp;
use tokio::time::Instant;

use super::lru::Lru;
use super::{EventType, Occurrence};

/// So many different messages of one reason about one object are worth reading; more are combined.
const SIMILAR: usize = 10;
/// Similar events that are further apart belong to different stories.
const SIMILAR_WITHIN: Duration = Duration::from_secs(600);
/// What one object may cause at once, and then one more in this time.
const SPAM_BURST: u32 = 25;
const SPAM_REFILL: Duration = Duration::from_secs(300);
/// Entries in each memory.
const REMEMBERED: usize = 4096;

/// One request about an event.
#[derive(Debug, Clone)]
pub(super) enum Post {
    /// It is new.
    Create(Box<Event>),
    /// It was sent before, under this name: only its count, time and message change.
    Update(Box<Event>),
}

#[derive(Debug)]
pub(super) struct Correlator {
    component: String,
    similar: Lru<SimilarKey, Similar>,
    sent: Lru<SentKey, Sent>,
    spam: Lru<InvolvedKey, Bucket>,
    /// The number in the last name. A clock that stands still must not name two events alike.
    last_number: i128,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct InvolvedKey {
    api_version: Option<String>,
    kind: Option<String>,
    namespace: Option<String>,
    name: Option<String>,
    uid: Option<String>,
    event_type: EventType,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct SimilarKey {
    involved: InvolvedKey,
    reason: String,
}

/// Which events are one on the server: similar ones that were combined, or equal ones.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum SentKey {
    Combined(SimilarKey),
    Single { key: SimilarKey, field_path: Option<String>, message: String },
}

#[derive(Debug)]
struct Similar {
    last: Instant,
    /// At most [`SIMILAR`]; once there are so many, new ones are not added.
    messages: HashSet<String>,
}

#[derive(Debug, Clone)]
struct Sent {
    name: String,
    first: Timestamp,
    /// Zero until the first is on its way.
    count: i32,
}

/// A token bucket, as the time at which it will be full again.
#[derive(Debug)]
struct Bucket {
    full_at: Instant,
}

// === impl Correlator ===

impl Correlator {
    pub(super) fn new(component: String) -> Self {
        Self {
            component,
            similar: Lru::new(REMEMBERED),
            sent: Lru::new(REMEMBERED),
            spam: Lru::new(REMEMBERED),
            last_number: 0,
        }
    }

    /// The request that `occurrence` becomes, if any.
    pub(super) fn correlate(
        &mut self,
        mut occurrence: Occurrence,
        now: Instant,
        wall: Timestamp,
    ) -> Option<Post> {
        let key = self.combine(&mut occurrence, now);
        let involved = InvolvedKey::of(&occurrence);
        let sent = self.count(key, &occurrence.involved, wall);
        // After the count, as upstream: what the filter swallows still shows in the count of the next that passes.
        let bucket = self.spam.get_or_insert_with(involved, || Bucket { full_at: now });
        if !bucket.take(now) {
            tracing::trace!(
                reason = occurrence.reason,
                "too many events about one object: not sent"
            );
            return None;
        }
        let again = sent.count > 1;
        let event = Box::new(self.event(occurrence, sent, wall));
        Some(if again { Post::Update(event) } else { Post::Create(event) })
    }

    /// Which event on the server it is; changes the message of one that is combined with others.
    fn combine(&mut self, occurrence: &mut Occurrence, now: Instant) -> SentKey {
        let key =
            SimilarKey { involved: InvolvedKey::of(occurrence), reason: occurrence.reason.clone() };
        let fresh = || Similar { last: now, messages: HashSet::new() };
        let similar = self.similar.get_or_insert_with(key.clone(), fresh);
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

    fn count(&mut self, key: SentKey, involved: &ObjectReference, wall: Timestamp) -> Sent {
        // Names are cheap, and used only when there is none yet.
        self.last_number = wall.as_nanosecond().max(self.last_number + 1);
        let number = self.last_number;
        let fresh = || Sent { name: event_name(involved, number), first: wall, count: 0 };
        let sent = self.sent.get_or_insert_with(key, fresh);
        sent.count = sent.count.saturating_add(1);
        sent.clone()
    }

    fn event(&self, occurrence: Occurrence, sent: Sent, wall: Timestamp) -> Event {
        let namespace =
            occurrence.involved.namespace.clone().filter(|namespace| !namespace.is_empty());
        Event {
            metadata: ObjectMeta {
                name: Some(sent.name),
                namespace: Some(namespace.unwrap_or_else(|| "default".to_owned())),
                ..ObjectMeta::default()
            },
            involved_object: occurrence.involved,
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

/// The object's name and a number that no other event has.
fn event_name(involved: &ObjectReference, number: i128) -> String {
    let object = involved.name.as_deref().unwrap_or_default();
    // Some kinds (roles) have names that an event may not have.
    let is_label = |label: &str| {
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        label.bytes().all(|byte| plain(byte) || byte == b'-')
            && label.bytes().next().is_some_and(plain)
            && label.bytes().last().is_some_and(plain)
    };
    let fits = object.len() <= 253 - 17 && object.split('.').all(is_label);
    format!("{}.{number:x}", if fits { object } else { "event" })
}

// === impl InvolvedKey ===

impl InvolvedKey {
    fn of(occurrence: &Occurrence) -> Self {
        let involved = &occurrence.involved;
        Self {
            api_version: involved.api_version.clone(),
            kind: involved.kind.clone(),
            namespace: involved.namespace.clone(),
            name: involved.name.clone(),
            uid: involved.uid.clone(),
            event_type: occurrence.event_type,
        }
    }
}

// === impl Bucket ===

impl Bucket {
    /// Takes one of the [`SPAM_BURST`] tokens, if there is one.
    fn take(&mut self, now: Instant) -> bool {
        let full_at = self.full_at.max(now) + SPAM_REFILL;
        let fits = full_at - now <= SPAM_REFILL * SPAM_BURST;
        if fits {
            self.full_at = full_at;
        }
        fits
    }
}

#[cfg(test)]
mod tests;
