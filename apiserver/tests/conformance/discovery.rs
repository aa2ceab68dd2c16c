//! The discovery of the embedded server, compared with the recorded one of the real server with its
//! default flags.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::script::{Content, Script};
use crate::suite::{play_embedded, scripts};

/// Entries that only the real server lists, each with the reason.
const MISSING: &[(&str, &str)] = &[
    ("/v1 nodes/proxy", "no kubelet listens"),
    ("/v1 pods/attach", "no container runs"),
    ("/v1 pods/exec", "no container runs"),
    ("/v1 pods/log", "no container runs"),
    ("/v1 pods/portforward", "no container runs"),
    ("/v1 pods/proxy", "no container runs"),
    ("/v1 services/proxy", "no container runs"),
];

/// The entries of a document, in its order: their names, and what discovery says about them.
type Entries = Vec<(String, Value)>;

/// Fails unless both discoveries list the same, in the same order, apart from [`MISSING`].
pub(crate) fn lists_what_the_real_server_lists() {
    let scripts = scripts().unwrap();
    let script = scripts.iter().find(|script| script.name == "discovery").unwrap();
    let mut missing: BTreeMap<&str, &str> = MISSING.iter().copied().collect();
    for (title, real, own) in documents(script) {
        let (real, own) = (entries(&real), entries(&own));
        assert!(!real.is_empty(), "{title} lists nothing");
        let expected = real.iter().filter(|(name, _)| {
            let is_missing = MISSING.iter().any(|(known, _)| known == name);
            missing.retain(|known, _| known != name);
            !is_missing
        });
        let expected: Vec<_> = expected.cloned().collect();
        let names = |entries: &Entries| entries.iter().map(|(name, _)| name.clone()).collect();
        let (expected_names, own_names): (Vec<String>, Vec<String>) =
            (names(&expected), names(&own));
        assert_eq!(own_names, expected_names, "{title}");
        for ((name, real), (_, own)) in expected.iter().zip(&own) {
            assert_eq!(own, real, "{title}: {name}");
        }
    }
    assert!(missing.is_empty(), "the real server does not list these any more: {missing:?}");
}

/// Returns each document of discovery: its title, as recorded, and as the embedded server has it.
fn documents(script: &Script) -> Vec<(&str, Value, Value)> {
    let outcomes = play_embedded(script);
    let pairs = script.exchanges.iter().zip(&outcomes);
    let lists = pairs.filter(|(exchange, _)| {
        let title = exchange.title.as_str();
        title.starts_with("aggregated: the ")
            || title == "the core group"
            || (title.starts_with("the version of ") && title != "the version of the server")
    });
    let found = lists.map(|(exchange, outcome)| {
        let body = |content: &Content| match content {
            Content::Json(values) => values[0].clone(),
            Content::Text(text) => panic!("{}: {text}", exchange.title),
        };
        let recorded = exchange.answer.as_ref().unwrap();
        let played = outcome.as_ref().unwrap().as_ref().unwrap();
        (exchange.title.as_str(), body(&recorded.body), body(&played.body))
    });
    let found: Vec<_> = found.collect();
    assert!(found.len() > 6, "few documents of discovery are recorded");
    found
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().map_or(&[], Vec::as_slice)
}

/// Returns the entries of an aggregated or an unaggregated document.
fn entries(document: &Value) -> Entries {
    let versions = list(document, "items").iter().flat_map(|group| {
        let name = text(&group["metadata"], "name");
        list(group, "versions").iter().map(move |version| (name, version))
    });
    let mut found = Entries::new();
    for (group, version) in versions {
        let place = format!("{group}/{}", text(version, "version"));
        for resource in list(version, "resources") {
            let name = format!("{place} {}", text(resource, "resource"));
            let parts = list(resource, "subresources").iter();
            let parts =
                parts.map(|part| (format!("{name}/{}", text(part, "subresource")), part.clone()));
            let mut own = resource.clone();
            own.as_object_mut().unwrap().remove("subresources");
            found.push((name.clone(), own));
            found.extend(parts);
        }
    }
    let place = text(document, "groupVersion");
    let place = if place.contains('/') { place.to_owned() } else { format!("/{place}") };
    for resource in list(document, "resources") {
        let mut own = resource.clone();
        // The hash of the version in which the real server stores the kind.
        own.as_object_mut().unwrap().remove("storageVersionHash");
        found.push((format!("{place} {}", text(resource, "name")), own));
    }
    found
}
