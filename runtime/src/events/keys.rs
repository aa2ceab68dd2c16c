//! The keys by which events are equal, and the names of new events.

use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::jiff::Timestamp;

use super::{EventType, Occurrence};

/// An object that an event names, without its version: an object that changes stays the same.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct ReferenceKey {
    api_version: Option<String>,
    kind: Option<String>,
    namespace: Option<String>,
    name: Option<String>,
    uid: Option<String>,
}

/// An object and a type of event: the key of the spam filter, and a part of the other keys.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct InvolvedKey {
    object: ReferenceKey,
    event_type: EventType,
}

/// Names new events. A name is unique in this process even if the clock stands still.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// The number in the last name.
    last_number: i128,
}

// === impl ReferenceKey ===

impl From<&ObjectReference> for ReferenceKey {
    fn from(reference: &ObjectReference) -> Self {
        Self {
            api_version: reference.api_version.clone(),
            kind: reference.kind.clone(),
            namespace: reference.namespace.clone(),
            name: reference.name.clone(),
            uid: reference.uid.clone(),
        }
    }
}

// === impl InvolvedKey ===

impl InvolvedKey {
    /// Returns the key of the object and type of `occurrence`.
    pub(super) fn of(occurrence: &Occurrence) -> Self {
        Self { object: (&occurrence.involved).into(), event_type: occurrence.event_type }
    }
}

// === impl Names ===

impl Names {
    /// Returns a name for an event about `involved`: the object's name with the time in
    /// nanoseconds, as upstream, or with one more than the last number.
    pub(super) fn next(&mut self, involved: &ObjectReference, wall: Timestamp) -> String {
        self.last_number = wall.as_nanosecond().max(self.last_number + 1);
        event_name(involved, self.last_number)
    }
}

/// Returns the namespace of an event about `involved`. Events about a cluster-scoped object go to
/// `default`, as upstream.
pub(super) fn namespace_of(involved: &ObjectReference) -> String {
    let namespace = involved.namespace.as_deref().filter(|namespace| !namespace.is_empty());
    namespace.unwrap_or("default").to_owned()
}

/// Returns the object's name with a number that is unique in this process.
///
/// A name that is no DNS subdomain, or too long with the number, is replaced by `event`.
fn event_name(involved: &ObjectReference, number: i128) -> String {
    let object = involved.name.as_deref().unwrap_or_default();
    // Names of some kinds (roles) are no valid names of an event.
    let is_label = |label: &str| {
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        label.bytes().all(|byte| plain(byte) || byte == b'-')
            && label.bytes().next().is_some_and(plain)
            && label.bytes().last().is_some_and(plain)
    };
    let fits = object.len() <= 253 - 17 && object.split('.').all(is_label);
    format!("{}.{number:x}", if fits { object } else { "event" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_event_name_is_replaced() {
        let name = |object: &str| {
            event_name(
                &ObjectReference { name: Some(object.into()), ..ObjectReference::default() },
                255,
            )
        };
        assert_eq!(name("web.example-1"), "web.example-1.ff");
        for object in ["", "system:node", "Web", "-web", "web-", "a..b", &"a".repeat(250)] {
            assert_eq!(name(object), "event.ff", "{object}");
        }
    }
}
