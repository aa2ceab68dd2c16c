//! Finds the first member of a wrong type, and reports it as Go's decoder does.

use homeostat_quantity::Quantity;
use jiff::Timestamp;
use serde_json::Value;

use super::{Member, Shape, Type, Types};
use crate::fields::Fields;

/// A member of a wrong type.
#[derive(Debug)]
pub(crate) struct TypeMismatch {
    /// The text of the JSON decoder.
    pub(crate) decoded: String,
    /// The text of the conversion after a strategic merge patch.
    pub(crate) restored: String,
}

/// Returns the first member of `object`, a `known`, that has a wrong type.
pub(crate) fn wrong_member(known: &Type, object: &Fields) -> Option<TypeMismatch> {
    wrong_in(known, object, None, None)
}

/// Returns the first member of `object`, a `known`, that has a wrong type, apart from what `old`,
/// an object with right types, has as well.
pub(crate) fn wrong_change(
    known: &Type,
    object: &Fields,
    old: Option<&Fields>,
) -> Option<TypeMismatch> {
    wrong_in(known, object, old, None)
}

fn wrong_in(
    known: &Type,
    object: &Fields,
    old: Option<&Fields>,
    parent: Option<&Place<'_>>,
) -> Option<TypeMismatch> {
    object.iter().find_map(|(name, value)| {
        let old = old.and_then(|old| old.get(name));
        if old == Some(value) {
            return None;
        }
        let member = known.member(name)?;
        let place = Place { known, member, parent };
        place.check(&member.shape, &member.go_type, value, old)
    })
}

/// A member, and the members that it is in.
struct Place<'a> {
    known: &'a Type,
    member: &'a Member,
    parent: Option<&'a Self>,
}

// === impl Place ===

impl Place<'_> {
    /// Returns the path of the member in messages: `spec.volumes.VolumeSource.secret`.
    fn path(&self) -> String {
        let mut path = self.parent.map(|parent| parent.path() + ".").unwrap_or_default();
        for outer in &self.member.embedded {
            path.push_str(outer);
            path.push('.');
        }
        path.push_str(self.member.name);
        path
    }

    fn check(
        &self,
        shape: &Shape,
        go_type: &str,
        value: &Value,
        old: Option<&Value>,
    ) -> Option<TypeMismatch> {
        match (shape, value) {
            (shape, value) if shape.has_expected_json_type(value) => None,
            (Shape::Pointer(inner), value) => self.check(inner, go_type, value, old),
            (Shape::Object(id), Value::Object(object)) => {
                let old = old.and_then(Value::as_object);
                wrong_in(Types::all().get(*id), object, old, Some(self))
            }
            (Shape::List(inner), Value::Array(list)) => {
                let go_type = inner.go_type_of_item(go_type);
                list.iter().find_map(|item| self.check(inner, go_type, item, None))
            }
            (Shape::Map(inner), Value::Object(members)) => {
                let go_type = inner.go_type_of_item(go_type);
                members.values().find_map(|item| self.check(inner, go_type, item, None))
            }
            (Shape::Quantity, value) => check_quantity(value),
            (Shape::Time, Value::String(text)) => check_time(text, "2006-01-02T15:04:05Z07:00"),
            (Shape::MicroTime, Value::String(text)) => {
                check_time(text, "2006-01-02T15:04:05.000000Z07:00")
            }
            (Shape::Time | Shape::MicroTime, value) => Some(self.mismatch(shape, "string", value)),
            (Shape::IntOrString, value) => Some(self.mismatch(shape, "int32", value)),
            (Shape::Bytes, Value::String(text)) => check_base64(text),
            (_, value) => Some(self.mismatch(shape, go_type, value)),
        }
    }

    fn mismatch(&self, shape: &Shape, go_type: &str, value: &Value) -> TypeMismatch {
        let (json, go) = match value {
            Value::Null => ("null".to_owned(), "interface"),
            Value::Bool(_) => ("bool".to_owned(), "bool"),
            Value::Number(number) => {
                let is_shown = go_type.starts_with("int");
                let json = if is_shown { format!("number {number}") } else { "number".to_owned() };
                (json, if number.is_f64() { "float64" } else { "int64" })
            }
            Value::String(_) => ("string".to_owned(), "string"),
            Value::Array(_) => ("array".to_owned(), "slice"),
            Value::Object(_) => ("object".to_owned(), "map"),
        };
        let (owner, path) = (self.known.name, self.path());
        let decoded = format!(
            "json: cannot unmarshal {json} into Go struct field {owner}.{path} of type {go_type}"
        );
        let restored = match shape {
            Shape::Object(_) => format!("cannot restore struct from: {go}"),
            Shape::List(_) => format!("cannot restore slice from {go}"),
            Shape::Map(_) => format!("cannot restore map from {go}"),
            Shape::Time | Shape::MicroTime | Shape::IntOrString => {
                format!("json: cannot unmarshal {json} into Go value of type {go_type}")
            }
            _ if value.is_number() => format!("cannot convert {go} to {go_type}"),
            Shape::Text => "unrecognized type: string".to_owned(),
            _ => format!("unrecognized type: {go_type}"),
        };
        TypeMismatch { decoded, restored }
    }
}

fn check_quantity(value: &Value) -> Option<TypeMismatch> {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let detail = text.trim().parse::<Quantity>().err()?.to_string();
    Some(TypeMismatch { decoded: detail.clone(), restored: detail })
}

fn fits(number: &serde_json::Number, shape: &Shape) -> bool {
    match (number.as_i64(), shape) {
        (Some(number), Shape::Int32 | Shape::IntOrString) => i32::try_from(number).is_ok(),
        (number, _) => number.is_some(),
    }
}

fn check_time(text: &str, layout: &str) -> Option<TypeMismatch> {
    if text.parse::<Timestamp>().is_ok() {
        return None;
    }
    let detail =
        format!("parsing time \"{text}\" as \"{layout}\": cannot parse \"{text}\" as \"2006\"");
    Some(TypeMismatch { decoded: detail.clone(), restored: detail })
}

fn check_base64(text: &str) -> Option<TypeMismatch> {
    use base64::engine::general_purpose::STANDARD;
    use base64::{DecodeError, Engine};
    let plain: String = text.chars().filter(|c| !matches!(c, '\r' | '\n')).collect();
    let at = match STANDARD.decode(plain.as_bytes()) {
        Ok(_) => return None,
        Err(DecodeError::InvalidByte(at, _) | DecodeError::InvalidLastSymbol(at, _)) => at,
        Err(_) => plain.len() / 4 * 4,
    };
    let decoded = format!("illegal base64 data at input byte {at}");
    Some(TypeMismatch { restored: format!("error decoding from json: {decoded}"), decoded })
}

// === impl Shape ===

impl Shape {
    /// Returns whether the JSON type alone shows that the value fits.
    fn has_expected_json_type(&self, value: &Value) -> bool {
        match (self, value) {
            (_, Value::Null)
            | (Self::Raw | Self::FieldsV1, _)
            | (Self::Text | Self::Duration | Self::IntOrString, Value::String(_))
            | (Self::Bool, Value::Bool(_))
            | (Self::Float, Value::Number(_)) => true,
            (Self::Int32 | Self::Int64 | Self::IntOrString, Value::Number(number)) => {
                fits(number, self)
            }
            _ => false,
        }
    }

    /// Returns Go's name for an item of a list or a map with the name `of_list`.
    fn go_type_of_item<'a>(&self, of_list: &'a str) -> &'a str {
        match of_list.strip_prefix("[]").or_else(|| of_list.strip_prefix("map[string]")) {
            Some(item) => item.trim_start_matches('*'),
            // A list or a map with a name of its own.
            None => match self {
                Self::Quantity => "resource.Quantity",
                Self::Text => "string",
                _ => of_list,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn wrong(kind: &str, object: Value) -> Option<String> {
        let Value::Object(object) = object else { unreachable!() };
        let known = Types::all().of_kind("", "v1", kind).unwrap();
        wrong_member(known, &object).map(|wrong| wrong.decoded)
    }

    #[test]
    fn changed_member_is_checked_beside_those_that_stay() {
        let pod = |value: Value| {
            let Value::Object(object) = value else { unreachable!() };
            object
        };
        let known = Types::all().of_kind("", "v1", "Pod").unwrap();
        let old = pod(json!({"spec": {"nodeName": "a", "priority": 1}, "status": {}}));
        let wrong = |spec: Value| {
            wrong_change(known, &pod(json!({"spec": spec, "status": {}})), Some(&old))
        };
        assert!(wrong(json!({"nodeName": "b", "priority": 1})).is_none());
        let found = wrong(json!({"nodeName": "a", "priority": "1"})).unwrap();
        let expected = "json: cannot unmarshal string into Go struct field PodSpec.spec.priority";
        assert!(found.decoded.starts_with(expected), "{}", found.decoded);
        assert!(wrong(json!({"nodeName": "a", "containers": [1]})).is_some());
    }

    #[test]
    fn wrong_type_is_reported_with_gos_text() {
        let into = |what: &str| Some(format!("json: cannot unmarshal {what}"));
        for (spec, expected) in [
            (
                json!({"containers": {"a": 1}}),
                into("object into Go struct field PodSpec.spec.containers of type []v1.Container"),
            ),
            (
                json!({"containers": ["a"]}),
                into("string into Go struct field PodSpec.spec.containers of type v1.Container"),
            ),
            (
                json!({"restartPolicy": 3}),
                into(
                    "number into Go struct field PodSpec.spec.restartPolicy of type \
                     v1.RestartPolicy",
                ),
            ),
            (
                json!({"nodeSelector": {"a": 1}}),
                into("number into Go struct field PodSpec.spec.nodeSelector of type string"),
            ),
            (
                json!({"terminationGracePeriodSeconds": 1.5}),
                into(
                    "number 1.5 into Go struct field PodSpec.spec.terminationGracePeriodSeconds of \
                     type int64",
                ),
            ),
            (json!([]), into("array into Go struct field Pod.spec of type v1.PodSpec")),
            (
                json!({"containers": [{"resources": {"limits": ["a"]}}]}),
                into(
                    "array into Go struct field \
                     ResourceRequirements.spec.containers.resources.limits of type v1.ResourceList",
                ),
            ),
            (
                json!({"containers": [{"resources": {"limits": {"cpu": "1.5", "memory": 7}}}],
                    "hostNetwork": null}),
                None,
            ),
        ] {
            assert_eq!(wrong("Pod", json!({"spec": spec})), expected);
        }
        let number = json!({"data": {"a": 5}});
        assert_eq!(
            wrong("Secret", number),
            into("number into Go struct field Secret.data of type []uint8")
        );
        let bad = wrong("Secret", json!({"data": {"a": "!!"}}));
        assert_eq!(bad.as_deref(), Some("illegal base64 data at input byte 0"));
    }

    #[test]
    fn path_of_a_wrong_type_names_the_structs_that_go_embeds() {
        let of_container = |member: Value| json!({"spec": {"containers": [member]}});
        for (kind, object, path) in [
            (
                "Pod",
                of_container(json!({"readinessProbe": {"httpGet": []}})),
                "Probe.spec.containers.readinessProbe.ProbeHandler.httpGet of type \
                 v1.HTTPGetAction",
            ),
            (
                "Pod",
                of_container(json!({"readinessProbe": {"httpGet": {"path": 1}}})),
                "HTTPGetAction.spec.containers.readinessProbe.ProbeHandler.httpGet.path of type \
                 string",
            ),
            (
                "Pod",
                of_container(json!({"readinessProbe": {"periodSeconds": []}})),
                "Probe.spec.containers.readinessProbe.periodSeconds of type int32",
            ),
            (
                "Pod",
                of_container(json!({"envFrom": [{"secretRef": {"name": 1}}]})),
                "SecretEnvSource.spec.containers.envFrom.secretRef.LocalObjectReference.name of \
                 type string",
            ),
            (
                "PersistentVolume",
                json!({"spec": {"csi": "a"}}),
                "PersistentVolumeSpec.spec.PersistentVolumeSource.csi of type \
                 v1.CSIPersistentVolumeSource",
            ),
        ] {
            let found = wrong(kind, object).unwrap();
            assert!(found.ends_with(&format!("into Go struct field {path}")), "{found}");
        }
        let rules = json!({"spec": {"matchConstraints": {"resourceRules": [{"scope": 1}]}}});
        let known = Types::all();
        let policy = known.of_kind("admissionregistration.k8s.io", "v1", POLICY).unwrap();
        let found = wrong_member(policy, rules.as_object().unwrap()).unwrap().decoded;
        let path = "spec.matchConstraints.resourceRules.RuleWithOperations.Rule.scope";
        assert!(found.contains(&format!("NamedRuleWithOperations.{path} of type")), "{found}");
    }

    const POLICY: &str = "ValidatingAdmissionPolicy";

    #[test]
    fn wrong_type_of_a_restored_member_is_reported_with_the_converters_text() {
        let restored = |spec: Value| {
            let Value::Object(object) = json!({"spec": spec}) else { unreachable!() };
            wrong_member(Types::all().of_kind("", "v1", "Service").unwrap(), &object)
                .map(|wrong| wrong.restored)
        };
        for (spec, expected) in [
            (json!({"selector": {"a": []}}), "unrecognized type: string"),
            (json!({"selector": {"a": 1}}), "cannot convert int64 to string"),
            (json!({"selector": []}), "cannot restore map from slice"),
            (json!({"type": 1}), "cannot convert int64 to v1.ServiceType"),
            (json!({"type": {}}), "unrecognized type: string"),
            (json!({"healthCheckNodePort": 1.5}), "cannot convert float64 to int32"),
            (json!({"sessionAffinityConfig": 1}), "cannot restore struct from: int64"),
            (
                json!({"ports": [{"targetPort": 1.5}]}),
                "json: cannot unmarshal number 1.5 into Go value of type int32",
            ),
        ] {
            assert_eq!(restored(spec).as_deref(), Some(expected));
        }
    }
}
