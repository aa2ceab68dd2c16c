//! Sequences of writes, compared with what apimachinery's `FieldManager` made of them.

use serde_json::{Map, Value, json};

use super::{ApplyError, FieldWriter, ManagedFields};
use crate::field_set::{FieldSet, PathElement};
use crate::schema::Schema;
use crate::test_schema::{assert_same_errors, recorded, thing};

/// The object of a story and the owners of its fields.
struct Object {
    live: Map<String, Value>,
    managed: ManagedFields,
    /// The number of updates that took nothing from other managers.
    renewals: usize,
}

impl Object {
    fn new() -> Self {
        let live = json!({"apiVersion": "example.com/v1", "kind": "Thing"});
        let live = live.as_object().expect("an object").clone();
        Self { live, managed: ManagedFields::new(), renewals: 0 }
    }

    /// Carries out a step and returns the error, if there is one, with the number of its causes.
    fn step(&mut self, schema: &Schema, step: &Value) -> Result<(), (String, Option<usize>)> {
        let mut reset = FieldSet::new();
        if step["subresource"] == "status" {
            reset.insert(&[PathElement::field("spec"), PathElement::field("text")]);
        }
        let writer = FieldWriter {
            manager: step["manager"].as_str().expect("a manager"),
            api_version: "example.com/v1",
            subresource: step["subresource"].as_str().expect("a subresource"),
            now: "now",
            schema,
            other_versions: &[],
            converter: None,
            empty: &Self::new().live,
            reset: &reset,
        };
        if let Some(config) = step.get("apply") {
            let force = step["force"] == true;
            let config = config.as_object().expect("an object");
            let applied = writer.apply(self.managed.clone(), &self.live, config, force);
            let applied = applied.map_err(|error| {
                let causes = match &error {
                    ApplyError::Conflicts(conflicts) => Some(conflicts.iter().count()),
                    _ => None,
                };
                (error.to_string(), causes)
            })?;
            self.managed = applied.owners;
            self.live = applied.object.unwrap_or_else(|| self.live.clone());
            return Ok(());
        }
        let new = step["update"].as_object().expect("an object");
        let is_create =
            self.live.get("metadata").is_none_or(|metadata| metadata.get("uid").is_none());
        if is_create || !self.managed.is_empty() {
            let before = self.managed.encode().map(|owners| owners.to_string());
            let compared = writer.compare(&self.live, new).ok();
            let renewed = before.as_ref().zip(compared);
            let renewed = renewed.and_then(|(text, compared)| writer.renew(text, compared));
            let managed = writer.update(self.managed.clone(), &self.live, new);
            self.managed = managed.map_err(|errors| (errors.to_string(), None))?;
            let after = self.managed.encode().map(|owners| owners.to_string());
            assert_eq!(self.managed.to_json(), after);
            if let Some(before) = before {
                assert!(renewed.is_none() || renewed == after);
                assert_eq!(writer.update_json(&before, &self.live, new), after);
            }
            self.renewals += usize::from(renewed.is_some());
        }
        self.live = new.clone();
        Ok(())
    }
}

/// Returns the part of upstream's error that the library gives: what follows the object's name.
fn own_part(error: &str) -> &str {
    let end = error.find("to smd typed: ").map(|at| at + "to smd typed: ".len());
    let typed = error.find("Kind=Thing): ").map(|at| at + "Kind=Thing): ".len());
    &error[end.or(typed).unwrap_or(0)..]
}

#[test]
fn owners_after_any_writes_are_those_of_upstream() {
    let schema = thing();
    let (mut failed, mut written, mut renewals) = (0, 0, 0);
    for line in recorded("story") {
        let mut object = Object::new();
        for (index, step) in line["steps"].as_array().expect("steps").iter().enumerate() {
            let context = || format!("step {index} of {line}");
            match (step["error"].as_str(), object.step(&schema, step)) {
                (None, Ok(())) => {
                    written += 1;
                    assert_eq!(Some(&object.live), step["object"].as_object(), "{}", context());
                    let managed = object.managed.encode().unwrap_or_else(|| json!([]));
                    assert_eq!(managed, step["managed"], "{}", context());
                }
                (Some(error), Err((ours, causes))) => {
                    failed += 1;
                    assert_same_errors(&ours, own_part(error), &context);
                    let recorded = step.get("causes").and_then(Value::as_u64);
                    assert_eq!(causes.map(|causes| causes as u64), recorded, "{}", context());
                }
                (recorded, ours) => panic!("{ours:?} instead of {recorded:?}: {}", context()),
            }
        }
        renewals += object.renewals;
    }
    assert!(failed > 50 && written > 200, "{failed} failed, {written} written");
    assert!(renewals > 0, "no update was a renewal");
}

#[test]
fn write_to_the_scale_takes_the_replicas_from_their_owners() {
    let path = |_: &str| Some(["spec", "replicas"].map(PathElement::field).to_vec());
    let entry = |manager: &str, operation: &str, version: &str, fields: &Value| {
        json!({
            "manager": manager, "operation": operation, "apiVersion": version,
            "time": "2026-01-02T03:04:05Z", "fieldsType": "FieldsV1", "fieldsV1": fields,
        })
    };
    let replicas = json!({"f:spec": {"f:replicas": {}}});
    let more = json!({"f:spec": {"f:paused": {}, "f:replicas": {}}});
    let owners = ManagedFields::decode(&json!([
        entry("one", "Apply", "apps/v1", &more),
        entry("two", "Update", "apps/v1", &replicas),
        entry("three", "Update", "apps/v1", &json!({"f:spec": {"f:paused": {}}})),
    ]))
    .unwrap();
    let of_scale = owners.of_scale(&path);
    let names: Vec<&str> = of_scale.iter().map(|(manager, _)| manager.name()).collect();
    assert_eq!(names, ["one", "two"]);
    assert!(of_scale.iter().all(|(_, owned)| owned.api_version() == "autoscaling/v1"));
    // What stays in the scale stays in the object.
    assert!(owners.with_scale(&of_scale, &path, "apps/v1").is_same_except_times(&owners));

    let mut taken = entry("four", "Apply", "autoscaling/v1", &replicas);
    taken["subresource"] = json!("scale");
    let scale = ManagedFields::decode(&json!([taken])).unwrap();
    let after = owners.with_scale(&scale, &path, "apps/v1");
    let shown: Vec<String> =
        after.iter().map(|(manager, owned)| format!("{manager}: {}", owned.fields())).collect();
    assert_eq!(
        shown,
        [
            "\"four\" with subresource \"scale\": .spec.replicas",
            "\"one\": .spec.paused",
            "\"three\" using apps/v1: .spec.paused",
        ],
    );
}

#[test]
fn updater_gets_a_second_entry_by_a_write_to_the_scale() {
    let path = |_: &str| Some(["spec", "replicas"].map(PathElement::field).to_vec());
    let owners = ManagedFields::decode(&json!([{
        "manager": "one", "operation": "Update", "apiVersion": "apps/v1",
        "time": "2026-01-02T03:04:05Z", "fieldsType": "FieldsV1",
        "fieldsV1": {"f:spec": {"f:paused": {}, "f:replicas": {}}},
    }]))
    .unwrap();
    assert!(!ManagedFields::has_second(&owners.to_json().unwrap()));
    let text = owners.with_scale(&owners.of_scale(&path), &path, "apps/v1").to_json().unwrap();
    assert!(ManagedFields::has_second(&text), "{text}");
    // A reader of the owners keeps only the entry with a time, which comes last.
    let read = ManagedFields::from_json(&text);
    let left: Vec<String> = read.iter().map(|(_, owned)| owned.fields().to_string()).collect();
    assert_eq!(left, [".spec.paused"]);
}

#[test]
fn replicas_of_another_version_are_those_of_the_scale() {
    let path = |version: &str| {
        let name = if version == "v1" { "replicas" } else { "count" };
        Some(["spec", name].map(PathElement::field).to_vec())
    };
    let owners = ManagedFields::decode(&json!([{
        "manager": "one", "operation": "Update", "apiVersion": "v1beta1", "fieldsType": "FieldsV1",
        "fieldsV1": {"f:spec": {"f:count": {}, "f:size": {}}}, "subresource": "scale",
    }]))
    .unwrap();
    let scale = owners.of_scale(&path);
    let after = owners.with_scale(&scale, &path, "v1");
    let shown: Vec<String> =
        after.iter().map(|(manager, owned)| format!("{manager}: {}", owned.fields())).collect();
    assert_eq!(
        shown,
        [
            "\"one\" with subresource \"scale\" using v1: .spec.replicas",
            "\"one\" with subresource \"scale\" using v1beta1: .spec.size",
        ],
    );
}

#[test]
fn write_that_takes_nothing_changes_its_entry_alone() {
    let entry = |manager: &str, time: &str, fields: &Value| {
        json!({
            "manager": manager, "operation": "Update", "apiVersion": "v1", "time": time,
            "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": fields},
        })
    };
    let mine = json!({"f:replicas": {}, "f:shared": {}});
    let others = json!({"f:paused": {}, "f:shared": {}});
    let owners = json!([entry("mine", "1", &mine), entry("other", "2", &others)]);
    let (schema, empty, reset) = (Schema::any(), Map::new(), FieldSet::new());
    let writer = FieldWriter {
        manager: "mine",
        api_version: "v1",
        subresource: "",
        now: "3",
        schema: &schema,
        other_versions: &[],
        converter: None,
        empty: &empty,
        reset: &reset,
    };
    let renew_by = |writer: &FieldWriter<'_>, live: &Value, spec: &Value| {
        let object = |spec: &Value| Map::from_iter([("spec".to_owned(), spec.clone())]);
        let compared = writer.compare(&object(live), &object(spec)).unwrap();
        writer.renew(&owners.to_string(), compared)
    };
    let live = json!({"paused": true, "replicas": 1, "shared": 1});
    let renew = |spec: &Value| renew_by(&writer, &live, spec);
    let renewed = json!([entry("other", "2", &others), entry("mine", "3", &mine)]);
    assert_eq!(
        renew(&json!({"paused": true, "replicas": 2, "shared": 1})),
        Some(renewed.to_string())
    );
    let same = json!({"paused": true, "replicas": 1, "shared": 1});
    assert_eq!(renew(&same), Some(owners.to_string()));
    let more = json!({"f:more": {}, "f:replicas": {}, "f:shared": {}});
    let extended = json!([entry("other", "2", &others), entry("mine", "3", &more)]);
    assert_eq!(
        renew(&json!({"paused": true, "replicas": 1, "shared": 1, "more": 1})),
        Some(extended.to_string())
    );
    for taken_or_removed in [
        json!({"paused": false, "replicas": 1, "shared": 1}),
        json!({"paused": true, "replicas": 1, "shared": 2}),
        json!({"paused": true, "shared": 1}),
        json!({"replicas": 1, "shared": 1}),
    ] {
        assert_eq!(renew(&taken_or_removed), None);
    }
    let other = FieldWriter { manager: "new", ..writer };
    let new = entry("new", "3", &json!({"f:more": {}}));
    let added = json!([entry("mine", "1", &mine), entry("other", "2", &others), new]);
    assert_eq!(renew_by(&other, &json!({}), &json!({"more": 1})), Some(added.to_string()));
}
