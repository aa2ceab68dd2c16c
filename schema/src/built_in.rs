//! The schemas of the kinds of Kubernetes 1.37.1.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use crate::node::Shape;
use crate::schema::Schema;
use crate::table;
use crate::type_id::TypeId;
use crate::types::Types;

/// The lines of a type: the text of the type under `""`, and those of its fields.
type Texts = HashMap<&'static str, &'static str>;

// === impl Schema ===

impl Schema {
    /// Returns true if this is the schema of a built-in type, which never changes.
    pub fn is_built_in(&self) -> bool {
        let is_named = matches!(self.root().node().shape, Shape::Named(_));
        is_named && Arc::ptr_eq(self.types(), types())
    }
}

/// Returns the table of the built-in types, which is parsed once.
///
/// # Examples
///
/// ```
/// use homeostat_schema::built_in;
///
/// assert!(built_in::types().find("io.k8s.api.core.v1.Container").is_some());
/// ```
pub fn types() -> &'static Arc<Types> {
    static TYPES: LazyLock<Arc<Types>> =
        LazyLock::new(|| Arc::new(table::parse(include_str!("../table/types.txt"))));
    &TYPES
}

/// Returns the index of a kind's type.
///
/// # Examples
///
/// ```
/// use homeostat_schema::built_in;
///
/// let id = built_in::find_kind("apps", "v1", "Deployment").unwrap();
/// assert_eq!(built_in::types().name(id), "io.k8s.api.apps.v1.Deployment");
/// assert!(built_in::find_kind("example.com", "v1", "Deployment").is_none());
/// ```
pub fn find_kind(group: &str, version: &str, kind: &str) -> Option<TypeId> {
    let first = group.split('.').next().unwrap_or_default();
    let (root, package) = match group {
        "" => ("api", "core"),
        "apps" | "autoscaling" | "batch" | "policy" => ("api", group),
        "apiextensions.k8s.io" => ("apiextensions-apiserver.pkg.apis", first),
        "apiregistration.k8s.io" => ("kube-aggregator.pkg.apis", first),
        _ if group.ends_with(".k8s.io") => ("api", first),
        _ => return None,
    };
    types().find(&["io.k8s", root, package, version, kind].join("."))
}

/// Returns the schema of a kind.
///
/// # Examples
///
/// ```
/// use homeostat_schema::{ListType, built_in};
///
/// let pod = built_in::schema_of("", "v1", "Pod").unwrap();
/// let containers = pod.root().field("spec").unwrap().field("containers").unwrap();
/// assert_eq!(containers.list_type(), Some(&ListType::map(["name"])));
/// ```
pub fn schema_of(group: &str, version: &str, kind: &str) -> Option<Schema> {
    find_kind(group, version, kind).map(|id| Schema::of_type(Arc::clone(types()), id))
}

/// Returns the schema of a type that belongs to the versions of all groups: `Status`,
/// `DeleteOptions`, `PartialObjectMetadata`.
///
/// # Examples
///
/// ```
/// use homeostat_schema::built_in;
///
/// assert!(built_in::meta_schema_of("Status").unwrap().root().field("reason").is_some());
/// assert!(built_in::meta_schema_of("Pod").is_none());
/// ```
pub fn meta_schema_of(kind: &str) -> Option<Schema> {
    let id = types().find(&format!("io.k8s.apimachinery.pkg.apis.meta.v1.{kind}"))?;
    Some(Schema::of_type(Arc::clone(types()), id))
}

/// Returns the text that `kubectl explain` shows for a type, or for a field of it.
///
/// # Examples
///
/// ```
/// use homeostat_schema::built_in;
///
/// let text = built_in::description("io.k8s.api.core.v1.ContainerPort", Some("hostIP")).unwrap();
/// assert_eq!(text, "What host IP to bind the external port to.");
/// ```
pub fn description(type_name: &str, field: Option<&str>) -> Option<String> {
    static TEXTS: LazyLock<HashMap<&str, Texts>> =
        LazyLock::new(|| read_descriptions(include_str!("../table/descriptions.txt")));
    let json = TEXTS.get(type_name)?.get(field.unwrap_or_default())?;
    serde_json::from_str(json).ok()
}

/// Returns the names of a type's fields in the order of its definition, in which published schemas
/// list required fields.
///
/// # Examples
///
/// ```
/// use homeostat_schema::built_in;
///
/// let names = built_in::field_names("io.k8s.api.core.v1.ContainerPort");
/// assert_eq!(names, ["name", "hostPort", "containerPort", "protocol", "hostIP"]);
/// ```
pub fn field_names(type_name: &str) -> &'static [&'static str] {
    static NAMES: LazyLock<HashMap<String, Vec<&str>>> =
        LazyLock::new(|| table::field_names(include_str!("../table/types.txt")));
    NAMES.get(type_name).map_or(&[], Vec::as_slice)
}

fn read_descriptions(text: &'static str) -> HashMap<&'static str, Texts> {
    let mut types: HashMap<&str, Texts> = HashMap::new();
    let mut last = "";
    for (name, json) in text.lines().filter_map(|line| line.split_once('\t')) {
        let field = name.trim_start();
        if field.len() == name.len() {
            last = name;
            types.entry(last).or_default().insert("", json);
        } else {
            types.entry(last).or_default().insert(field, json);
        }
    }
    types
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::node::{Empty, ListType};

    #[test]
    fn every_name_in_the_table_is_a_type_in_it() {
        let types = types();
        assert!(types.ids().count() > 600, "the table has {} types", types.ids().count());
        for id in types.ids() {
            let object = matches!(types.get(id).shape, Shape::Object(_));
            assert!(object, "{} is not in the table", types.name(id));
        }
    }

    #[test]
    fn field_has_the_facts_of_its_line() {
        let pod = schema_of("", "v1", "PodSpec").unwrap();
        let container = pod.root().field("containers").unwrap().items().unwrap();
        let field = container.object().unwrap().field("ports").unwrap();
        assert_eq!(field.go_type.as_ref(), "[]v1.ContainerPort");
        assert_eq!((field.empty, field.required), (Empty::Omitted, false));
        assert_eq!(field.patch.key.as_deref(), Some("containerPort"));
        assert_eq!(field.protobuf, [6]);
        let ports = container.field("ports").unwrap();
        assert_eq!(ports.list_type(), Some(&ListType::map(["containerPort", "protocol"])));
        let protocol = ports.items().unwrap().field("protocol").unwrap();
        assert_eq!(protocol.default(), Some(&json!("TCP")));
        let allowed = &protocol.node().constraints.as_ref().unwrap().allowed;
        assert_eq!(allowed, &[json!("SCTP"), json!("TCP"), json!("UDP")]);
    }

    #[test]
    fn field_of_an_embedded_message_has_both_numbers() {
        let spec = schema_of("", "v1", "PodSpec").unwrap();
        let volume = spec.root().field("volumes").unwrap().items().unwrap();
        let field = volume.object().unwrap().field("emptyDir").unwrap();
        assert_eq!(field.protobuf, [2, 2]);
        let kind = schema_of("", "v1", "Pod").unwrap();
        let kind = kind.root().object().unwrap().field("kind").unwrap();
        assert!(kind.protobuf.is_empty(), "protobuf bodies have the kind outside");
    }

    #[test]
    fn atomic_type_is_one_value() {
        let selector = types().find("io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector").unwrap();
        assert!(Schema::of_type(Arc::clone(types()), selector).root().is_atomic());
        let spec = schema_of("", "v1", "PodSpec").unwrap();
        assert!(spec.root().field("nodeSelector").unwrap().is_atomic());
        assert!(!spec.root().field("containers").unwrap().is_atomic());
    }

    #[test]
    fn granular_field_of_an_atomic_type_has_parts() {
        let volume = schema_of("", "v1", "PersistentVolumeSpec").unwrap();
        assert!(!volume.root().field("claimRef").unwrap().is_atomic());
        let volume = schema_of("", "v1", "StorageOSPersistentVolumeSource").unwrap();
        assert!(volume.root().field("secretRef").unwrap().is_atomic());
    }
}
