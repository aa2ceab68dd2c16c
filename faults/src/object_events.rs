//! Selects the watch events of one object.

use std::fmt;

use serde_json::Value;

use crate::selection::{Selection, is};

/// A selector of watch events: of one object, or of the objects with a label or a field, and by
/// position. Faults such as [`delay_object_events`](crate::Faults::delay_object_events) act on
/// them alone; the events of other objects pass.
///
/// By default a rule hits the first matching event after the rule was added, and no later one.
/// Bookmarks are never selected, nor are events in protobuf.
///
/// # Examples
///
/// ```
/// use homeostat_faults::ObjectEvents;
///
/// // The second event of the pod `web-0`.
/// let second = ObjectEvents::of("web-0").in_namespace("shop").nth(2);
/// // Every event that shows a pod of `web` on the node `n1`.
/// let bound = ObjectEvents::any().labelled("app", "web").with_field("/spec/nodeName", "n1");
/// # let _ = (second, bound.always());
/// ```
#[derive(Debug, Clone)]
#[must_use = "a selector does nothing until it is passed to a fault method"]
pub struct ObjectEvents {
    kind: Option<String>,
    pub(crate) selection: Selection,
}

/// The parts of an event that select it.
#[derive(Debug)]
pub(crate) struct ObjectEvent {
    kind: String,
    pub(crate) key: ObjectKey,
    object: Value,
}

/// Namespace and name of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ObjectKey {
    namespace: String,
    name: String,
}

// === impl ObjectEvents ===

impl ObjectEvents {
    /// Selects the events of all objects.
    pub fn any() -> Self {
        Self { kind: None, selection: Selection::default() }
    }

    /// Selects the events of the objects with this name.
    pub fn of(name: impl Into<String>) -> Self {
        let mut events = Self::any();
        events.selection.name = Some(name.into());
        events
    }

    /// Restricts the selector to one namespace.
    pub fn in_namespace(mut self, namespace: impl Into<String>) -> Self {
        self.selection.namespace = Some(namespace.into());
        self
    }

    /// Restricts the selector to one type of event: `ADDED`, `MODIFIED` or `DELETED`.
    pub fn of_type(mut self, kind: impl Into<String>) -> Self {
        self.kind = Some(kind.into());
        self
    }

    /// Restricts the selector to objects with this label.
    pub fn labelled(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.selection.object.label(key.into(), value.into());
        self
    }

    /// Restricts the selector to objects with this value at a JSON pointer (RFC 6901), such as
    /// `/status/phase`.
    pub fn with_field(mut self, pointer: impl Into<String>, value: impl Into<Value>) -> Self {
        self.selection.object.field(pointer.into(), value.into());
        self
    }

    /// Restricts the selector to objects that satisfy a condition.
    pub fn that(mut self, holds: impl Fn(&Value) -> bool + Send + Sync + 'static) -> Self {
        self.selection.object.that(holds);
        self
    }

    /// Makes the `nth` matching event the first one that is hit, counted from 1 over all watches.
    pub fn nth(mut self, nth: u64) -> Self {
        self.selection.first = nth;
        self
    }

    /// Sets the number of consecutive hits.
    pub fn times(mut self, times: u64) -> Self {
        self.selection.times = Some(times);
        self
    }

    /// Hits every matching event from the first one on.
    pub fn always(self) -> Self {
        self.times(u64::MAX)
    }

    pub(crate) fn matches(&self, event: &ObjectEvent) -> bool {
        let ObjectKey { namespace, name } = &event.key;
        is(self.kind.as_deref(), Some(&event.kind))
            && self.selection.matches(Some(namespace), Some(name), Some(&event.object))
    }
}

/// Writes the selector for messages: `MODIFIED events of shop/web-0, from number 2`.
impl fmt::Display for ObjectEvents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(kind) = &self.kind {
            write!(f, "{kind} ")?;
        }
        f.write_str("events of ")?;
        if let Some(namespace) = &self.selection.namespace {
            write!(f, "{namespace}/")?;
        }
        let Selection { name, object, .. } = &self.selection;
        write!(f, "{}{object}", name.as_deref().unwrap_or("*"))?;
        self.selection.write_position(f)
    }
}

// === impl ObjectEvent ===

impl ObjectEvent {
    /// Reads an event from its line; returns `None` for a bookmark, an error, or what is no event.
    pub(crate) fn parse(line: &[u8]) -> Option<Self> {
        let mut event: Value = serde_json::from_slice(line).ok()?;
        let kind = event["type"].as_str()?.to_owned();
        if !matches!(kind.as_str(), "ADDED" | "MODIFIED" | "DELETED") {
            return None;
        }
        let object = event.get_mut("object")?.take();
        let text = |name: &str| object["metadata"][name].as_str().unwrap_or_default().to_owned();
        let key = ObjectKey { namespace: text("namespace"), name: text("name") };
        Some(Self { kind, key, object })
    }

    /// Describes the event for the trace: `MODIFIED shop/web-0`.
    pub(crate) fn describe(&self) -> String {
        let ObjectKey { namespace, name } = &self.key;
        let slash = if namespace.is_empty() { "" } else { "/" };
        format!("{} {namespace}{slash}{name}", self.kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_selected_by_type_name_and_content() {
        let line = br#"{"type":"MODIFIED","object":{"metadata":{"namespace":"shop","name":"a",
            "labels":{"app":"web"}},"spec":{"nodeName":"n1"}}}"#;
        let event = ObjectEvent::parse(line).unwrap();
        let of = || ObjectEvents::of("a").in_namespace("shop");
        let matching = [
            ObjectEvents::any(),
            of().of_type("MODIFIED").labelled("app", "web"),
            of().with_field("/spec/nodeName", "n1").that(|pod| pod["status"].is_null()),
        ];
        let others = [
            ObjectEvents::of("b"),
            ObjectEvents::of("a").in_namespace("x"),
            of().of_type("ADDED"),
            of().labelled("app", "db"),
            of().with_field("/spec/nodeName", "n2"),
            of().that(|pod| pod["status"].is_object()),
        ];
        assert!(matching.iter().all(|events| events.matches(&event)));
        for events in others {
            assert!(!events.matches(&event), "{events}");
        }
        assert_eq!(event.describe(), "MODIFIED shop/a");
    }

    #[test]
    fn bookmarks_and_errors_are_no_events_of_an_object() {
        for line in [
            &br#"{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"7"}}}"#[..],
            br#"{"type":"ERROR","object":{"code":410}}"#,
            b"garbage",
        ] {
            assert!(ObjectEvent::parse(line).is_none());
        }
    }

    #[test]
    fn display_names_every_restriction() {
        let events = ObjectEvents::of("web-0").in_namespace("shop").of_type("MODIFIED").nth(2);
        assert_eq!(events.to_string(), "MODIFIED events of shop/web-0, from number 2");
        let labelled = ObjectEvents::any().labelled("app", "web");
        assert_eq!(labelled.to_string(), "events of * with label app=web");
    }
}
