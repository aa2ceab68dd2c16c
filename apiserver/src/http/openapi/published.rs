//! The parts of a schema that say more than its type: texts, defaults, and the rules for merges.

use homeostat_schema::{Field, ListType, Node, Object, PatchStrategy, Shape, built_in};
use serde_json::{Value, json};

/// Returns the fields of a built-in type, with what the table knows about them.
pub(super) fn object_of(type_name: &str) -> Option<&'static Object> {
    let types = built_in::types();
    match &types.get(types.find(type_name)?).shape {
        Shape::Object(object) => Some(object),
        _ => None,
    }
}

/// Returns the names of a type's fields in the order of its definition.
pub(super) fn in_order(type_name: &str) -> impl Iterator<Item = &'static str> {
    built_in::field_names(type_name).iter().copied()
}

/// The type of any JSON, except in the schemas of definitions.
pub(super) const RAW_EXTENSION: &str = "io.k8s.apimachinery.pkg.runtime.RawExtension";

/// Returns the name of the type that a field with any JSON has.
pub(super) fn any_json(field: Option<&Field>) -> &'static str {
    match field.map_or("", |field| field.go_type.trim_start_matches("[]")) {
        "v1.JSON" => "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON",
        "v1.JSONSchemaPropsOrArray" => {
            "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrArray"
        }
        "v1.JSONSchemaPropsOrBool" => {
            "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrBool"
        }
        "v1.JSONSchemaDependencies" => {
            "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrStringArray"
        }
        _ => RAW_EXTENSION,
    }
}

/// A type of which at most one field is set: the field that names it, if there is one, and the
/// fields with the values for them.
type Union = (&'static str, &'static str, &'static [(&'static str, &'static str)]);

/// The types with `x-kubernetes-unions`.
const UNIONS: &[Union] = &[
    ("io.k8s.api.core.v1.AppArmorProfile", "type", &[("localhostProfile", "LocalhostProfile")]),
    ("io.k8s.api.core.v1.PodSchedulingGroup", "", &[("podGroupName", "PodGroupName")]),
    ("io.k8s.api.core.v1.SeccompProfile", "type", &[("localhostProfile", "LocalhostProfile")]),
    ("io.k8s.api.flowcontrol.v1.LimitResponse", "type", &[("queuing", "Queuing")]),
    (
        "io.k8s.api.flowcontrol.v1.PriorityLevelConfigurationSpec",
        "type",
        &[("exempt", "Exempt"), ("limited", "Limited")],
    ),
    (
        "io.k8s.api.flowcontrol.v1.Subject",
        "kind",
        &[("group", "Group"), ("serviceAccount", "ServiceAccount"), ("user", "User")],
    ),
    (
        "io.k8s.api.scheduling.v1alpha3.WorkloadPodGroupDisruptionMode",
        "",
        &[("all", "All"), ("single", "Single")],
    ),
    (
        "io.k8s.api.scheduling.v1alpha3.WorkloadPodGroupSchedulingPolicy",
        "",
        &[("basic", "Basic"), ("gang", "Gang")],
    ),
];

/// Adds the text, the map type and the union of a type.
pub(super) fn describe_type(schema: &mut Value, type_name: &str) {
    if let Some(text) = built_in::description(type_name, None) {
        schema["description"] = json!(text);
    }
    if object_of(type_name).is_some_and(|object| object.atomic) {
        schema["x-kubernetes-map-type"] = json!("atomic");
    }
    let union = UNIONS.iter().find(|(name, ..)| *name == type_name);
    if let Some((_, discriminator, fields)) = union {
        let fields: Value = fields.iter().map(|(field, value)| (*field, json!(value))).collect();
        let mut union = json!({"fields-to-discriminateBy": fields});
        if !discriminator.is_empty() {
            union["discriminator"] = json!(discriminator);
        }
        schema["x-kubernetes-unions"] = json!([union]);
    }
}

/// Adds the text, the default and the rules for merges of a field.
pub(super) fn describe_field(schema: &mut Value, type_name: &str, field: &Field) {
    if let Some(text) = built_in::description(type_name, Some(&field.name)) {
        schema["description"] = json!(text);
    }
    if let Some(default) = &field.node.default {
        schema["default"] = default.clone();
    }
    let is_of_list = type_name.ends_with("List") && &*field.name == "items";
    // The real server publishes no type for these lists.
    let is_of_discovery = type_name.ends_with(".APIResource") && &*field.name == "verbs";
    if !is_of_list && !is_of_discovery {
        add_list_type(schema, &field.node);
    }
    add_map_type(schema, &field.node);
    add_patch_strategy(schema, &field.patch);
}

fn add_list_type(schema: &mut Value, node: &Node) {
    let Shape::List(list) = &node.shape else { return };
    match &list.list_type {
        ListType::Atomic => schema["x-kubernetes-list-type"] = json!("atomic"),
        ListType::Set => schema["x-kubernetes-list-type"] = json!("set"),
        ListType::Map(keys) => {
            schema["x-kubernetes-list-type"] = json!("map");
            schema["x-kubernetes-list-map-keys"] = keys.iter().map(|key| json!(&**key)).collect();
        }
    }
}

fn add_map_type(schema: &mut Value, node: &Node) {
    let is_atomic_map = matches!(&node.shape, Shape::Map(map) if map.atomic);
    // The schema of any JSON has no type of its own.
    let is_free = matches!(node.shape, Shape::Any);
    if is_atomic_map || (node.atomic && !is_free) {
        schema["x-kubernetes-map-type"] = json!("atomic");
    } else if node.granular {
        schema["x-kubernetes-map-type"] = json!("granular");
    }
}

/// The real server publishes these as Go's struct tags state them.
fn add_patch_strategy(schema: &mut Value, patch: &PatchStrategy) {
    let strategies =
        [(patch.merge, "merge"), (patch.retain_keys, "retainKeys"), (patch.replace, "replace")];
    let stated: Vec<&str> =
        strategies.into_iter().filter(|(is, _)| *is).map(|(_, name)| name).collect();
    if !stated.is_empty() {
        schema["x-kubernetes-patch-strategy"] = json!(stated.join(","));
    }
    if let Some(key) = &patch.key {
        schema["x-kubernetes-patch-merge-key"] = json!(&**key);
    }
}
