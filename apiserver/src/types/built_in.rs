//! Reads the types out of the table of `homeostat-schema`.

use std::sync::OnceLock;

use homeostat_schema as schema;
use homeostat_schema::{ListType, NameIndex, Scalar};
use serde_json::Value;

use super::{Empty, Member, Merge, Shape, Type, TypeId, Types};

/// Converts the table.
pub(super) fn convert(table: &'static schema::Types) -> Types {
    let list: Vec<Type> = table.ids().map(|id| object(table, id)).collect();
    let names = list.iter().enumerate().map(|(at, known)| (known.package, known.name, at));
    let by_name = names.map(|(package, name, at)| ((package, name), TypeId(at))).collect();
    Types { list, by_name }
}

fn object(table: &'static schema::Types, id: schema::TypeId) -> Type {
    let full_name = table.name(id);
    let (package, name) = full_name.rsplit_once('.').unwrap_or(("", full_name));
    let schema::Shape::Object(object) = &table.get(id).shape else {
        panic!("{full_name} is not in the table");
    };
    // `kind` and `apiVersion` of an object are not its members: the reader checks them.
    let is_type_meta = |field: &schema::Field| {
        matches!(&*field.name, "kind" | "apiVersion") && field.protobuf.is_empty()
    };
    let fields = object.fields().filter(|field| !is_type_meta(field));
    let is_definition = package.contains(".apiextensions");
    let members: Vec<_> = fields.map(|field| member(field, name, is_definition)).collect();
    let index = NameIndex::of(members.iter().map(|member| member.name));
    Type {
        package: short_package(package),
        name,
        full_name,
        members,
        index,
        empty: OnceLock::new(),
    }
}

fn member(field: &'static schema::Field, owner: &'static str, is_definition: bool) -> Member {
    let shape = shape(&field.node, &field.go_type);
    let merge = match (&shape, &field.patch.key) {
        (Shape::List(_), Some(key)) => Merge::ByKey(key),
        (Shape::List(_), None) if field.patch.merge => Merge::Set,
        (Shape::Object(_), _) if field.patch.replace => Merge::ReplaceObject,
        _ => Merge::Replace,
    };
    let shape = if field.pointer { Shape::Pointer(Box::new(shape)) } else { shape };
    Member {
        name: &field.name,
        embedded: embedded(field, owner),
        shape,
        go_type: field.go_type.to_string(),
        empty: match field.empty {
            schema::Empty::Encoded => Empty::Written,
            schema::Empty::Omitted => Empty::LeftOut,
            schema::Empty::OmittedObject => Empty::Zero,
        },
        merge,
        required: field.required,
        values: values(&field.node),
        // Definitions are stored as JSON.
        forgets_empty: field.empty == schema::Empty::Encoded && !is_definition,
        dropped: field.dropped,
    }
}

/// Returns the structs between a type and its field, from the outside to the inside: as many as the
/// field's number in protobuf has numbers before the last one.
fn embedded(field: &schema::Field, owner: &'static str) -> Vec<&'static str> {
    let mut outer = owner;
    let step = |_| {
        outer = embedded_in(outer);
        outer
    };
    (1..field.protobuf.len()).map(step).collect()
}

/// Returns the struct that Go embeds in a type.
fn embedded_in(name: &str) -> &'static str {
    match name {
        "APIResource" => "Verbs",
        "ConfigMapEnvSource"
        | "ConfigMapKeySelector"
        | "ConfigMapProjection"
        | "ConfigMapVolumeSource"
        | "SecretEnvSource"
        | "SecretKeySelector"
        | "SecretProjection" => "LocalObjectReference",
        "DeviceAllocationConfiguration"
        | "DeviceClaimConfiguration"
        | "DeviceClassConfiguration" => "DeviceConfiguration",
        "EphemeralContainer" => "EphemeralContainerCommon",
        "IngressRule" => "IngressRuleValue",
        "NamedRuleWithOperations" => "RuleWithOperations",
        "PersistentVolumeSpec" => "PersistentVolumeSource",
        "Probe" => "ProbeHandler",
        "RuleWithOperations" => "Rule",
        "Volume" => "VolumeSource",
        _ => panic!("{name} embeds a struct whose name is not here"),
    }
}

fn shape(node: &'static schema::Node, go_type: &str) -> Shape {
    let inner = |node: &'static schema::Node| Box::new(shape(node, go_type));
    match &node.shape {
        schema::Shape::Any if go_type == "v1.FieldsV1" => Shape::FieldsV1,
        schema::Shape::Any => Shape::Raw,
        schema::Shape::List(list) => Shape::List(inner(&list.items)),
        schema::Shape::Map(map) => Shape::Map(inner(&map.values)),
        schema::Shape::Named(id) => Shape::Object(TypeId(id.index())),
        schema::Shape::Object(_) => unreachable!("the table has objects only by name"),
        schema::Shape::Scalar(scalar) => match scalar {
            Scalar::Boolean => Shape::Bool,
            Scalar::String => Shape::Text,
            Scalar::Bytes => Shape::Bytes,
            Scalar::Int32 => Shape::Int32,
            Scalar::Int64 => Shape::Int64,
            Scalar::Float => Shape::Float,
            Scalar::IntOrString => Shape::IntOrString,
            Scalar::Quantity => Shape::Quantity,
            Scalar::Time => Shape::Time,
            Scalar::MicroTime => Shape::MicroTime,
            Scalar::Duration => Shape::Duration,
        },
    }
}

/// Returns the texts that a member, or an item of it, may have.
fn values(node: &'static schema::Node) -> Vec<&'static str> {
    let node = match &node.shape {
        schema::Shape::List(schema::List { items, list_type: ListType::Atomic, .. }) => items,
        _ => node,
    };
    let allowed = node.constraints.as_deref().map_or(&[][..], |limits| &limits.allowed);
    allowed.iter().filter_map(Value::as_str).collect()
}

/// Returns the package's name here: `core` for `io.k8s.api.core.v1`, and `autoscaling.v2` for a
/// version beside `v1`.
fn short_package(package: &'static str) -> &'static str {
    let Some((path, version)) = package.rsplit_once('.') else { return package };
    match path.rsplit_once('.') {
        Some((_, name)) if version == "v1" => name,
        Some((before, _)) => &package[before.len() + 1..],
        None => package,
    }
}

#[cfg(test)]
mod tests {
    use crate::types::{Merge, Types};

    #[test]
    fn members_have_the_facts_of_the_table() {
        let types = Types::all();
        let pod = types.of_kind("", "v1", "Pod").unwrap();
        let spec = pod.member("spec").unwrap().shape.object().unwrap();
        let containers = spec.member("containers").unwrap();
        assert_eq!(containers.merge, Merge::ByKey("name"));
        assert!(containers.shape.object().unwrap().member("image").is_some());
        assert!(types.of_kind("resource.k8s.io", "v1", "ResourceClaim").is_some());
        assert!(types.of_kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition").is_some());
        assert!(types.of_kind("example.com", "v1", "Pod").is_none());
        let policy = containers.shape.object().unwrap().member("imagePullPolicy").unwrap();
        assert_eq!(policy.values, ["Always", "IfNotPresent", "Never"]);
        assert!(containers.required && !policy.required);
        assert!(types.named("meta.DeleteOptions").is_some());
        assert!(types.named("autoscaling.Scale").is_some());
    }
}
