//! The paths and queries of the requests of a [`KubeListWatch`].
//!
//! The parameters are those of the Kubernetes API concepts: `limit` and `continue` for pages,
//! `resourceVersion` with `resourceVersionMatch=NotOlderThan` for a state that is not older than a
//! version, `sendInitialEvents=true` for a watch-list. Bookmarks are requested for every watch.

use std::fmt::Write as _;

use super::KubeListWatch;
use crate::list_watch::{ListRequest, WatchRequest};

/// The longest timeout of a watch in seconds, 68 years. The API server refuses a number that is no
/// `int64`, and ends a watch at once whose nanoseconds are none.
const LONGEST: u64 = i32::MAX as u64;

// === impl KubeListWatch ===

impl<K> KubeListWatch<K> {
    /// Returns the selectors, encoded for a query.
    ///
    /// An empty selector adds no parameter.
    fn selectors(&self) -> String {
        let mut query = String::new();
        for (name, selector) in self.scope.selectors() {
            push_pair(&mut query, name, selector);
        }
        query
    }

    /// Returns the query of a list. A continue token excludes the version, because the token
    /// contains it.
    ///
    /// Without a version the server returns its newest state.
    pub(super) fn list_query(&self, request: &ListRequest) -> String {
        let mut query = self.selectors();
        if let Some(limit) = request.limit {
            push_pair(&mut query, "limit", &limit.to_string());
        }
        if let Some(token) = &request.continue_token {
            push_pair(&mut query, "continue", token);
        } else if let Some(version) = &request.resource_version {
            push_pair(&mut query, "resourceVersion", version.as_str());
            push_pair(&mut query, "resourceVersionMatch", "NotOlderThan");
        }
        query
    }

    /// Returns the query of a watch. The timeout is at least 1 second, because the API server takes
    /// 0 for its default, and at most [`LONGEST`].
    pub(super) fn watch_query(&self, request: &WatchRequest) -> String {
        let mut query = self.selectors();
        let timeout = request.timeout.as_secs().clamp(1, LONGEST);
        push_pair(&mut query, "watch", "true");
        push_pair(&mut query, "allowWatchBookmarks", "true");
        push_pair(&mut query, "timeoutSeconds", &timeout.to_string());
        if request.initial_events {
            push_pair(&mut query, "sendInitialEvents", "true");
            push_pair(&mut query, "resourceVersionMatch", "NotOlderThan");
        }
        if let Some(version) = &request.resource_version {
            push_pair(&mut query, "resourceVersion", version.as_str());
        }
        query
    }
}

// === parts ===

/// Returns the name of the resource for log lines: `replicasets.apps in namespace shop`.
pub(super) fn target(group: &str, plural: &str, namespace: Option<&str>) -> String {
    let mut target = plural.to_owned();
    if !group.is_empty() {
        target.extend([".", group]);
    }
    if let Some(namespace) = namespace {
        target.extend([" in namespace ", namespace]);
    }
    target
}

/// Appends `name=value` to a query.
///
/// Only the value is encoded; the names are constants of this module.
fn push_pair(query: &mut String, name: &str, value: &str) {
    if !query.is_empty() {
        query.push('&');
    }
    query.extend([name, "="]);
    push_encoded(query, value);
}

/// Appends a value to a path or a query, percent-encoded so that it cannot change the structure of
/// either.
pub(super) fn push_encoded(text: &mut String, value: &str) {
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~') {
            text.push(char::from(byte));
        } else {
            write!(text, "%{byte:02X}").expect("writing to a String cannot fail");
        }
    }
}
