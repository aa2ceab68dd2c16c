//! Aggregated discovery: all groups, their versions and resources in one document.

use bytes::Bytes;
use serde_json::{Value, json};

use super::{groups, of_version, versions};
use crate::http::resource::{subresources, verbs};
use crate::kinds::Kinds;
use crate::media::Media;
use crate::status::{Failure, Result};

/// Returns the document of the core group, or of all others: in JSON, and in a media type.
pub(super) fn document(kinds: &Kinds, is_core: bool, media: Media) -> Result<(Bytes, Bytes)> {
    let items: Vec<Value> = groups(kinds)
        .into_iter()
        .filter(|group| group.is_empty() == is_core)
        .map(|group| {
            let versions: Vec<Value> = versions(kinds, group)
                .into_iter()
                .map(|version| of_group_version(kinds, group, version))
                .collect();
            let metadata = if group.is_empty() { json!({}) } else { json!({"name": group}) };
            json!({"metadata": metadata, "versions": versions})
        })
        .collect();
    let list = json!({
        "kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {},
        "items": items,
    });
    let json = Bytes::from(format!("{list}\n"));
    let body = media.encode(json.clone());
    let body = body.map_err(|error| Failure::internal(error.to_string()))?;
    Ok((json, body))
}

/// Returns the `Content-Type` of aggregated discovery.
pub(super) fn content_type(media: Media) -> &'static str {
    match media {
        Media::Json => "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
        Media::Yaml => "application/yaml;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
        Media::Protobuf => {
            "application/vnd.kubernetes.protobuf;g=apidiscovery.k8s.io;v=v2;\
             as=APIGroupDiscoveryList"
        }
    }
}

fn of_group_version(kinds: &Kinds, group: &str, version: &str) -> Value {
    let resources: Vec<Value> = of_version(kinds, group, version)
        .into_iter()
        .map(|kind| {
            // A built-in kind inherits the group and version of the entry around it.
            let (group, version) = if kind.custom { (group, version) } else { ("", "") };
            let response_kind = json!({"group": group, "version": version, "kind": kind.kind});
            let subresources: Vec<Value> = subresources(kind)
                .into_iter()
                .map(|subresource| {
                    let (group, version, kind) = match subresource.gvk(kind) {
                        ("", "", body) => (group, version, body),
                        other => other,
                    };
                    let response_kind = json!({"group": group, "version": version, "kind": kind});
                    json!({"subresource": subresource.name, "responseKind": response_kind,
                        "verbs": subresource.verbs})
                })
                .collect();
            without_empty(json!({
                "resource": kind.plural, "responseKind": response_kind,
                "singularResource": kind.singular(),
                "scope": if kind.namespaced { "Namespaced" } else { "Cluster" },
                "verbs": verbs(kind),
                "shortNames": kind.short_names(), "categories": kind.categories(),
                "subresources": subresources,
            }))
        })
        .collect();
    json!({"version": version, "freshness": "Current", "resources": resources})
}

/// Removes empty lists.
fn without_empty(mut resource: Value) -> Value {
    if let Value::Object(members) = &mut resource {
        members.retain(|_, member| member.as_array().is_none_or(|list| !list.is_empty()));
    }
    resource
}

#[cfg(test)]
mod tests {
    use homeostat_schema::{Envelope, built_in};

    use super::*;

    #[test]
    fn protobuf_has_all_members_of_json() {
        let (json, body) = document(&Kinds::new(Vec::new()), false, Media::Protobuf).unwrap();
        let mut expected: Value = serde_json::from_slice(&json).unwrap();
        let envelope = Envelope::read(&body).unwrap();
        assert_eq!(envelope.api_version, expected["apiVersion"]);
        assert_eq!(envelope.kind, expected["kind"]);
        let members = expected.as_object_mut().unwrap();
        members.retain(|name, _| !matches!(name.as_str(), "apiVersion" | "kind"));
        let schema = built_in::schema_of("apidiscovery.k8s.io", "v2", &envelope.kind).unwrap();
        assert_eq!(schema.decode_protobuf(&envelope.raw).unwrap(), expected);
    }
}
