//! `/scale`: a kind's replicas in the form that every kind with replicas shares.

use serde_json::{Value, json};

use super::checks::NOT_NEGATIVE;
use super::label_selector as selector;
use super::{Scale, read_path};

use crate::object::Fields;
use crate::status::Cause;

// === impl Scale ===

impl Scale {
    /// What `/scale` shows of an object.
    pub(crate) fn read(&self, object: &Fields) -> Fields {
        let count = |path| read_path(object, path).and_then(Value::as_i64).unwrap_or(0);
        let metadata = object.get("metadata").and_then(Value::as_object);
        let shown = ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"];
        let metadata: Fields = shown
            .iter()
            .filter_map(|key| Some(((*key).to_owned(), metadata?.get(*key)?.clone())))
            .collect();
        let mut spec = json!({});
        if count(self.wanted) != 0 {
            spec["replicas"] = json!(count(self.wanted));
        }
        let mut status = json!({"replicas": count(self.counted)});
        let selector = read_path(object, self.selector).map(selector::show).unwrap_or_default();
        if !selector.is_empty() {
            status["selector"] = json!(selector);
        }
        let scale = json!({
            "kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": metadata, "spec": spec, "status": status,
        });
        match scale {
            Value::Object(scale) => scale,
            _ => Fields::new(),
        }
    }

    /// What is wrong with a scale.
    pub(crate) fn check(scale: &Fields) -> Option<Cause> {
        let wanted = read_path(scale, "spec.replicas")?;
        let negative = wanted.as_i64().is_some_and(|wanted| wanted < 0);
        negative.then(|| Cause::invalid("spec.replicas", wanted, NOT_NEGATIVE))
    }

    /// Takes over the number of replicas that a scale asks for.
    pub(crate) fn write(&self, object: &mut Fields, scale: &Fields) {
        let wanted = read_path(scale, "spec.replicas").and_then(Value::as_i64).unwrap_or(0);
        let mut parts = self.wanted.split('.');
        let last = parts.next_back().unwrap_or_default();
        let mut target = object;
        for part in parts {
            let Some(Value::Object(inner)) = target.get_mut(part) else { return };
            target = inner;
        }
        target.insert(last.to_owned(), json!(wanted));
    }
}
