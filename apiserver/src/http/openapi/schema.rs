//! The schemas of a document: those of its kinds, and of every type that they use.

use serde_json::{Map, Value, json};

use super::published;
use crate::http::resource;
use crate::kinds::Kind;
use crate::types::{Shape, Type, Types};

/// Schemas by name.
#[derive(Debug, Default)]
pub(super) struct Schemas {
    by_name: Map<String, Value>,
}

/// The properties of a member's innermost values that its type does not have.
struct Leaf<'a> {
    /// The permitted values of a text; empty if any is.
    values: &'a [&'a str],
    /// The name of the type of any JSON.
    any: &'static str,
}

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";
const METADATA: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
const LIST_METADATA: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta";

/// The only kind that another kind has a list of.
const CLAIM: &str = "io.k8s.api.core.v1.PersistentVolumeClaim";

const CONVENTIONS: &str =
    "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md";
const METADATA_TEXT: &str = "Standard object's metadata. More info: https://git.k8s.io/community/\
    contributors/devel/sig-architecture/api-conventions.md#metadata";
const LIST_METADATA_TEXT: &str = "Standard list metadata. More info: https://git.k8s.io/community/\
    contributors/devel/sig-architecture/api-conventions.md#types-kinds";
const API_VERSION_TEXT: &str = "APIVersion defines the versioned schema of this representation of \
    an object. Servers should convert recognized schemas to the latest internal value, and may \
    reject unrecognized values. More info: https://git.k8s.io/community/contributors/devel/\
    sig-architecture/api-conventions.md#resources";
const KIND_TEXT: &str = "Kind is a string value representing the REST resource this object \
    represents. Servers may infer this from the endpoint the client submits requests to. Cannot be \
    updated. In CamelCase. More info: https://git.k8s.io/community/contributors/devel/\
    sig-architecture/api-conventions.md#types-kinds";

// === impl Schemas ===

impl Schemas {
    pub(super) fn into_json(self) -> Value {
        Value::Object(self.by_name)
    }

    /// Adds a kind, its list, and all types that they use. Returns the reference to the kind.
    pub(super) fn add_kind(&mut self, kind: &Kind) -> Value {
        let types = Types::all();
        let known = types.of_kind(&kind.group, &kind.version, &kind.kind);
        let (name, mut schema) = match (known, &kind.definition) {
            (Some(known), None) if !kind.custom => (type_name(known), self.object(known)),
            (_, Some(definition)) => {
                self.add_type(types.metadata());
                let mut schema: Value =
                    serde_json::from_str(&definition.document).unwrap_or_default();
                complete_int_or_string(&mut schema);
                schema["properties"]["metadata"] = described(wrapped(METADATA), METADATA_TEXT);
                add_selectable(&mut schema, kind);
                (custom_name(kind), schema)
            }
            _ => {
                self.add_type(types.metadata());
                let free = json!({
                    "type": "object", "properties": {"metadata": wrapped(METADATA)},
                    "x-kubernetes-preserve-unknown-fields": true,
                });
                (custom_name(kind), free)
            }
        };
        add_type_meta(&mut schema, kind, &kind.kind);
        self.by_name.insert(name.clone(), schema);
        if resource::verbs(kind).contains(&"list") {
            self.add_list(kind, &name);
        }
        reference(&name)
    }

    /// Adds a type of all groups, such as `DeleteOptions`, and the types that it uses. Returns the
    /// reference to it.
    pub(super) fn add_meta(&mut self, kind: &Kind, name: &str) -> Value {
        let full_name = format!("{META}.{name}");
        if name == "Patch" {
            let mut schema = json!({"type": "object"});
            published::describe_type(&mut schema, &full_name);
            self.by_name.insert(full_name.clone(), schema);
            return reference(&full_name);
        }
        if let Some(known) = Types::all().named(&format!("meta.{name}")) {
            self.add_type(known);
        }
        let mut versions = vec![("", "v1")];
        let is_of_each = matches!(name, "DeleteOptions" | "WatchEvent");
        if is_of_each && !kind.group.is_empty() {
            versions.push((&kind.group, &kind.version));
        }
        let gvk = |(group, version)| json!({"group": group, "version": version, "kind": name});
        if let Some(schema) = self.by_name.get_mut(&full_name) {
            // An event of a watch is the only one that does not state its type.
            if name != "WatchEvent" {
                add_type_members(schema);
            }
            schema["x-kubernetes-group-version-kind"] = versions.into_iter().map(gvk).collect();
        }
        reference(&full_name)
    }

    /// Adds a kind of another version, by its apiVersion and its name. Returns the reference to it.
    pub(super) fn add_named(&mut self, (api_version, name): (&str, &str)) -> Value {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let Some(known) = Types::all().of_kind(group, version, name) else {
            return json!({"type": "object"});
        };
        self.add_type(known);
        let full_name = type_name(known);
        if let Some(schema) = self.by_name.get_mut(&full_name) {
            add_type_members(schema);
            let gvk = json!({"group": group, "version": version, "kind": name});
            schema["x-kubernetes-group-version-kind"] = json!([gvk]);
        }
        reference(&full_name)
    }

    /// Returns the reference to the list of a kind, whose schema `reference` names.
    pub(super) fn reference_to_list(reference: &Value, kind: &Kind) -> Value {
        let target = reference["$ref"].as_str().unwrap_or_default();
        let target = target.strip_suffix(&*kind.kind).unwrap_or(target);
        json!({"$ref": format!("{target}{}", kind.list_kind())})
    }

    fn add_list(&mut self, kind: &Kind, name: &str) {
        let types = Types::all();
        let list_kind = kind.list_kind();
        let list_name = format!("{}{list_kind}", name.strip_suffix(&*kind.kind).unwrap_or(name));
        if let Some(known) = types.of_kind(&kind.group, &kind.version, &list_kind)
            && !kind.custom
        {
            let mut list = self.object(known);
            add_type_meta(&mut list, kind, &list_kind);
            self.by_name.insert(list_name, list);
            return;
        }
        if let Some(known) = types.named("meta.ListMeta") {
            self.add_type(known);
        }
        let items = json!({"type": "array", "items": reference(name)});
        let text = format!("List of {}. More info: {CONVENTIONS}", kind.plural);
        let mut list = json!({
            "type": "object", "required": ["items"],
            "description": format!("{list_kind} is a list of {}", kind.kind),
            "properties": {
                "items": described(items, &text),
                "metadata": described(wrapped(LIST_METADATA), LIST_METADATA_TEXT),
            },
        });
        add_selectable(&mut list, kind);
        add_type_meta(&mut list, kind, &list_kind);
        self.by_name.insert(list_name, list);
    }

    fn add_type(&mut self, known: &Type) {
        let name = type_name(known);
        if self.by_name.contains_key(&name) {
            return;
        }
        // Types may be recursive: the entry stops the recursion.
        self.by_name.insert(name.clone(), Value::Null);
        let mut schema = self.object(known);
        if known.full_name == CLAIM {
            add_type_members(&mut schema);
            let gvk = json!({"group": "", "version": "v1", "kind": "PersistentVolumeClaim"});
            schema["x-kubernetes-group-version-kind"] = json!([gvk]);
        }
        self.by_name.insert(name, schema);
    }

    fn object(&mut self, known: &Type) -> Value {
        let published = published::object_of(known.full_name);
        let properties: Map<String, Value> = known
            .members
            .iter()
            .map(|member| {
                let field = published.and_then(|object| object.field(member.name));
                let any = published::any_json(field);
                let mut schema = self.shape(&member.shape, &Leaf { values: &member.values, any });
                if schema.get("$ref").is_some() {
                    schema = json!({"allOf": [schema]});
                }
                if let Some(field) = field {
                    published::describe_field(&mut schema, known.full_name, field);
                }
                (member.name.to_owned(), alone(schema))
            })
            .collect();
        let required: Vec<&str> = published::in_order(known.full_name)
            .filter(|name| known.member(name).is_some_and(|member| member.required))
            .collect();
        let mut schema = json!({"type": "object"});
        published::describe_type(&mut schema, known.full_name);
        if !properties.is_empty() {
            schema["properties"] = Value::Object(properties);
        }
        if !required.is_empty() {
            schema["required"] = json!(required);
        }
        schema
    }

    fn shape(&mut self, shape: &Shape, leaf: &Leaf<'_>) -> Value {
        match shape {
            Shape::Text if !leaf.values.is_empty() => {
                json!({"type": "string", "enum": leaf.values})
            }
            Shape::Text => json!({"type": "string"}),
            Shape::Bool => json!({"type": "boolean"}),
            Shape::Int32 => json!({"type": "integer", "format": "int32"}),
            Shape::Int64 => json!({"type": "integer", "format": "int64"}),
            Shape::Float => json!({"type": "number", "format": "double"}),
            Shape::Bytes => json!({"type": "string", "format": "byte"}),
            Shape::Pointer(inner) => self.shape(inner, leaf),
            Shape::List(item) => json!({"type": "array", "items": self.shape(item, leaf)}),
            Shape::Map(item) => {
                json!({"type": "object", "additionalProperties": self.shape(item, leaf)})
            }
            Shape::Object(id) => {
                let known = Types::all().get(*id);
                self.add_type(known);
                reference(&type_name(known))
            }
            other => {
                let (name, mut schema) = special(other, leaf.any);
                published::describe_type(&mut schema, &name);
                self.by_name.insert(name.clone(), schema);
                reference(&name)
            }
        }
    }
}

/// Unwraps a reference that has nothing beside it, as in the real documents.
fn alone(schema: Value) -> Value {
    match (schema["allOf"].as_array().map(Vec::as_slice), schema.as_object().map(Map::len)) {
        (Some([reference]), Some(1)) => reference.clone(),
        _ => schema,
    }
}

/// Returns the schema of a type without members. `any` is the name of the type of any JSON.
fn special(shape: &Shape, any: &str) -> (String, Value) {
    let text = |format: &str| json!({"type": "string", "format": format});
    let in_meta = |name: &str| format!("{META}.{name}");
    match shape {
        Shape::Quantity => (
            "io.k8s.apimachinery.pkg.api.resource.Quantity".to_owned(),
            json!({"oneOf": [{"type": "string"}, {"type": "number"}]}),
        ),
        Shape::IntOrString => (
            "io.k8s.apimachinery.pkg.util.intstr.IntOrString".to_owned(),
            json!({"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]}),
        ),
        Shape::Time => (in_meta("Time"), text("date-time")),
        Shape::MicroTime => (in_meta("MicroTime"), text("date-time")),
        Shape::Duration => (in_meta("Duration"), json!({"type": "string"})),
        Shape::FieldsV1 => (in_meta("FieldsV1"), json!({"type": "object"})),
        _ if any == published::RAW_EXTENSION => (any.to_owned(), json!({"type": "object"})),
        _ => (any.to_owned(), json!({})),
    }
}

/// Adds the fields of a defined kind that lists can select by.
fn add_selectable(schema: &mut Value, kind: &Kind) {
    let Some(definition) = &kind.definition else { return };
    let fields = definition.selectable_labels();
    if !fields.is_empty() {
        let path = |label: &String| json!({"fieldPath": label});
        schema["x-kubernetes-selectable-fields"] = fields.iter().map(path).collect();
    }
}

/// Adds the two types of each int-or-string that does not state them.
fn complete_int_or_string(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            let is_either = members.get("x-kubernetes-int-or-string") == Some(&json!(true));
            if is_either && !members.contains_key("anyOf") && !members.contains_key("allOf") {
                let types = json!([{"type": "integer"}, {"type": "string"}]);
                members.insert("anyOf".to_owned(), types);
            }
            members.values_mut().for_each(complete_int_or_string);
        }
        Value::Array(items) => items.iter_mut().for_each(complete_int_or_string),
        _ => {}
    }
}

fn described(mut schema: Value, text: &str) -> Value {
    schema["description"] = json!(text);
    schema
}

/// Adds `apiVersion` and `kind` to the schema of a type.
fn add_type_members(schema: &mut Value) {
    for (member, text) in [("apiVersion", API_VERSION_TEXT), ("kind", KIND_TEXT)] {
        schema["properties"][member] = described(json!({"type": "string"}), text);
    }
}

/// Adds the type to the schema of a kind.
fn add_type_meta(schema: &mut Value, kind: &Kind, name: &str) {
    add_type_members(schema);
    schema["x-kubernetes-group-version-kind"] = json!([gvk(kind, name)]);
}

pub(super) fn gvk(kind: &Kind, name: &str) -> Value {
    json!({"group": kind.group, "version": kind.version, "kind": name})
}

fn type_name(known: &Type) -> String {
    known.full_name.to_owned()
}

/// `com.example.v1.Widget`
fn custom_name(kind: &Kind) -> String {
    let mut parts: Vec<&str> = kind.group.split('.').rev().collect();
    parts.extend([&*kind.version, &*kind.kind]);
    parts.join(".")
}

pub(super) fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

fn wrapped(name: &str) -> Value {
    json!({"allOf": [reference(name)]})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::Kinds;

    fn schemas() -> Map<String, Value> {
        let mut schemas = Schemas::default();
        for kind in Kinds::new(vec![Kind::custom("example.com", "v1", "Widget", "widgets")]).rows()
        {
            schemas.add_kind(kind);
        }
        schemas.by_name
    }

    fn references<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
        match value {
            Value::Object(members) => {
                found.extend(members.get("$ref").and_then(Value::as_str));
                members.values().for_each(|value| references(value, found));
            }
            Value::Array(items) => items.iter().for_each(|value| references(value, found)),
            _ => {}
        }
    }

    #[test]
    fn every_reference_leads_to_a_schema() {
        let schemas = schemas();
        let mut found = Vec::new();
        schemas.values().for_each(|schema| references(schema, &mut found));
        assert!(found.len() > 500, "{}", found.len());
        for reference in found {
            let name = reference.strip_prefix("#/components/schemas/").unwrap();
            assert!(schemas.get(name).is_some_and(Value::is_object), "{name}");
        }
    }

    #[test]
    fn schemas_have_the_real_names_and_types() {
        let schemas = schemas();
        let spec = &schemas["io.k8s.api.apps.v1.ReplicaSetSpec"];
        assert_eq!(spec["required"], json!(["selector"]));
        let replicas = &spec["properties"]["replicas"];
        assert_eq!((&replicas["type"], &replicas["format"]), (&json!("integer"), &json!("int32")));
        let protocol = &schemas["io.k8s.api.core.v1.ContainerPort"]["properties"]["protocol"];
        assert_eq!(protocol["enum"], json!(["SCTP", "TCP", "UDP"]));
        assert_eq!(protocol["default"], json!("TCP"));
        assert_eq!(
            schemas["com.example.v1.Widget"]["x-kubernetes-preserve-unknown-fields"],
            json!(true)
        );
        assert_eq!(
            schemas["io.k8s.api.core.v1.Pod"]["x-kubernetes-group-version-kind"],
            json!([{"group": "", "version": "v1", "kind": "Pod"}])
        );
    }

    #[test]
    fn fields_have_texts_and_the_rules_for_merges() {
        let schemas = schemas();
        let pod = &schemas["io.k8s.api.core.v1.PodSpec"]["properties"];
        let containers = &pod["containers"];
        assert!(containers["description"].as_str().unwrap().starts_with("List of containers"));
        assert_eq!(containers["x-kubernetes-list-type"], "map");
        assert_eq!(containers["x-kubernetes-list-map-keys"], json!(["name"]));
        assert_eq!(containers["x-kubernetes-patch-strategy"], "merge");
        assert_eq!(containers["x-kubernetes-patch-merge-key"], "name");
        assert_eq!(containers["items"], reference("io.k8s.api.core.v1.Container"));
        assert_eq!(pod["nodeSelector"]["x-kubernetes-map-type"], "atomic");
        assert_eq!(pod["volumes"]["x-kubernetes-patch-strategy"], "merge,retainKeys");
        let selector = &schemas["io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector"];
        assert_eq!(selector["x-kubernetes-map-type"], "atomic");
        let command = &schemas["io.k8s.api.core.v1.Container"]["properties"]["command"];
        assert_eq!(command["x-kubernetes-list-type"], "atomic");
    }
}
