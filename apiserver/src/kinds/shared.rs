//! Versions of built-in kinds that share their objects: each object has a form in each of them.
//!
//! A kind of another group is no version. As on the real server, who wrote an event in the one
//! group owns nothing any more once it is written in the other.

use std::sync::LazyLock;

use serde_json::{Map, Value, json};

use super::kind::Kind;
use super::table::built_in;
use crate::fields::Fields;
use crate::types::normalize_kind;

/// The kinds that share their objects with another version.
static SHARED: LazyLock<Vec<Kind>> = LazyLock::new(|| {
    let kinds = built_in();
    let is_shared =
        |kind: &&Kind| kinds.iter().filter(|other| is_same(other, kind)).nth(1).is_some();
    kinds.iter().filter(is_shared).cloned().collect()
});

/// Returns the other versions that share the objects of a kind.
pub(crate) fn other_versions(kind: &Kind) -> impl Iterator<Item = &'static Kind> {
    SHARED.iter().filter(|other| other.version != kind.version && is_same(other, kind))
}

/// Returns an object, which states its type, in another version; `None` if there is none.
pub(crate) fn in_version(object: &Fields, api_version: &str) -> Option<Fields> {
    let text = |name: &str| object.get(name).and_then(Value::as_str).unwrap_or_default();
    let find = |version: &str| {
        let is_wanted = |kind: &&Kind| kind.kind == text("kind") && kind.api_version() == version;
        SHARED.iter().find(is_wanted)
    };
    let (from, to) = (find(text("apiVersion"))?, find(api_version)?);
    let mut object: Map<String, Value> = object.clone();
    from.rename_for_storage(&mut object);
    to.rename_from_storage(&mut object);
    if let Some(known) = to.known_type() {
        normalize_kind(known, &mut object);
    }
    object.insert("apiVersion".to_owned(), json!(api_version));
    Some(object)
}

/// Returns true if two kinds are versions of one.
fn is_same(kind: &Kind, other: &Kind) -> bool {
    kind.group == other.group && kind.plural == other.plural
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn autoscaler_has_a_form_in_each_version() {
        let autoscaler = json!({"apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler",
            "spec": {"targetCPUUtilizationPercentage": 50}});
        let Value::Object(autoscaler) = autoscaler else { unreachable!() };
        let new = in_version(&autoscaler, "autoscaling/v2").unwrap();
        assert_eq!(new["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"], 50);
        let again = in_version(&new, "autoscaling/v1").unwrap();
        assert_eq!(again["spec"]["targetCPUUtilizationPercentage"], 50);
        assert_eq!(in_version(&autoscaler, "apps/v1"), None);
    }

    #[test]
    fn versions_are_of_one_group() {
        let kinds = built_in();
        let others = |group: &str, version: &str, plural: &str| -> Vec<String> {
            let kind = kinds.iter().find(|kind| kind.is(group, version, plural)).unwrap();
            other_versions(kind).map(Kind::api_version).collect()
        };
        assert_eq!(others("autoscaling", "v1", "horizontalpodautoscalers"), ["autoscaling/v2"]);
        assert_eq!(others("autoscaling", "v2", "horizontalpodautoscalers"), ["autoscaling/v1"]);
        assert_eq!(others("", "v1", "events"), [""; 0]);
    }
}
