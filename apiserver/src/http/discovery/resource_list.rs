//! The resources of a group's version, as unaggregated discovery lists them.
//!
//! The members have the order of the real server: scripts search the text of this document.

use serde::Serialize;

use super::{of_version, storage_version};
use crate::http::resource::{VERBS_OF_DEFINED, subresources, verbs};
use crate::kinds::{Kind, Kinds};

/// An `APIResourceList`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ResourceList<'a> {
    kind: &'static str,
    /// The real server omits it for the core group.
    #[serde(skip_serializing_if = "Option::is_none")]
    api_version: Option<&'static str>,
    group_version: String,
    resources: Vec<Entry<'a>>,
}

/// An `APIResource`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Entry<'a> {
    name: String,
    singular_name: String,
    namespaced: bool,
    /// Empty if it is that of the list. So is the version.
    #[serde(skip_serializing_if = "str::is_empty")]
    group: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    version: &'a str,
    kind: &'a str,
    verbs: Vec<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    short_names: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    categories: Vec<String>,
    /// Empty if no object of the kind is stored.
    #[serde(skip_serializing_if = "String::is_empty")]
    storage_version_hash: String,
}

/// Returns the document of a group's version, in JSON.
pub(super) fn document(kinds: &Kinds, group: &str, version: &str) -> String {
    let mut resources = Vec::new();
    for kind in of_version(kinds, group, version) {
        resources.push(of_kind(kinds, kind));
        resources.extend(of_subresources(kind));
    }
    let is_core = group.is_empty();
    let list = ResourceList {
        kind: "APIResourceList",
        api_version: (!is_core).then_some("v1"),
        group_version: if is_core { version.to_owned() } else { format!("{group}/{version}") },
        resources,
    };
    serde_json::to_string(&list).expect("texts and lists are JSON")
}

fn of_kind<'a>(kinds: &Kinds, kind: &'a Kind) -> Entry<'a> {
    Entry {
        name: kind.plural.to_string(),
        singular_name: kind.singular(),
        namespaced: kind.namespaced,
        group: "",
        version: "",
        kind: &kind.kind,
        verbs: if kind.custom { VERBS_OF_DEFINED.to_vec() } else { verbs(kind) },
        short_names: kind.short_names().iter().map(ToString::to_string).collect(),
        categories: kind.categories().iter().map(ToString::to_string).collect(),
        storage_version_hash: storage_version::hash_of(kinds, kind).unwrap_or_default(),
    }
}

fn of_subresources(kind: &Kind) -> impl Iterator<Item = Entry<'_>> {
    subresources(kind).into_iter().map(|subresource| {
        let (group, version, body) = subresource.gvk(kind);
        Entry {
            name: format!("{}/{}", kind.plural, subresource.name),
            singular_name: String::new(),
            namespaced: kind.namespaced,
            group: if version.is_empty() { "" } else { group },
            version,
            kind: body,
            verbs: subresource.verbs.to_vec(),
            short_names: Vec::new(),
            categories: Vec::new(),
            storage_version_hash: String::new(),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_have_the_order_of_the_real_server() {
        let text = document(&Kinds::new(Vec::new()), "", "v1");
        let config_maps = r#"{"name":"configmaps","singularName":"configmap","namespaced":true,"kind":"ConfigMap","verbs":["create","delete","deletecollection","get","list","patch","update","watch"],"shortNames":["cm"],"storageVersionHash":"qFsyl6wFWjQ="}"#;
        assert!(text.contains(config_maps), "{text}");
        assert!(text.starts_with(r#"{"kind":"APIResourceList","groupVersion":"v1","#), "{text}");
        let apps = document(&Kinds::new(Vec::new()), "apps", "v1");
        assert!(apps.starts_with(r#"{"kind":"APIResourceList","apiVersion":"v1","#), "{apps}");
    }
}
