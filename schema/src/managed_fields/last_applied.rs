//! The annotation of `kubectl apply` on the client side, and the upgrade from it.

use serde_json::{Map, Value};

use super::writer::FieldWriter;
use crate::apply::{Duplicates, compare, object_fields, validate_object};
use crate::field_set::FieldSet;

/// The annotation that holds the configuration of the last client-side apply.
const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The manager for which the annotation counts.
pub(super) const MANAGER: &str = "kubectl";

/// The limit of the API server for all annotations together.
const MAX_ANNOTATIONS: usize = 256 * 1024;

/// Returns the fields that the last client-side apply set and that still have those values.
///
/// `None` if there is no such annotation, or it is not an object of the same version.
pub(super) fn owned_fields(
    writer: &FieldWriter<'_>,
    live: &Map<String, Value>,
) -> Option<FieldSet> {
    let text = live.get("metadata")?.get("annotations")?.get(ANNOTATION)?.as_str()?;
    let last: Map<String, Value> = serde_json::from_str(text).ok()?;
    if last.get("apiVersion")?.as_str()? != writer.api_version {
        return None;
    }
    let of = writer.root();
    validate_object(of, live, Duplicates::Refused).ok()?;
    validate_object(of, &last, Duplicates::Refused).ok()?;
    let fields = object_fields(of, &last).ok()?;
    let compared = compare(of, &last, live).ok()?;
    let differing = compared.modified.union(&compared.added).union(&compared.removed);
    Some(fields.difference(&differing))
}

/// Updates the annotation of an object to the applied configuration, if the object has one.
pub(super) fn refresh(object: &mut Map<String, Value>, config: &Map<String, Value>) {
    let annotations =
        object.get_mut("metadata").and_then(|metadata| metadata.get_mut("annotations"));
    let Some(Value::Object(annotations)) = annotations else { return };
    let has_text = |value: &Value| value.as_str().is_some_and(|text| !text.is_empty());
    if !annotations.get(ANNOTATION).is_some_and(has_text) {
        return;
    }
    annotations.insert(ANNOTATION.to_owned(), Value::from(configuration_text(config)));
    if size(annotations) > MAX_ANNOTATIONS {
        annotations.remove(ANNOTATION);
    }
}

/// Returns the configuration without the annotation, as kubectl writes it: JSON and a newline.
fn configuration_text(config: &Map<String, Value>) -> String {
    let mut config = config.clone();
    if let Some(Value::Object(metadata)) = config.get_mut("metadata")
        && let Some(Value::Object(annotations)) = metadata.get_mut("annotations")
    {
        annotations.remove(ANNOTATION);
    }
    format!("{}\n", Value::Object(config))
}

fn size(annotations: &Map<String, Value>) -> usize {
    annotations.iter().map(|(name, value)| name.len() + value.as_str().map_or(0, str::len)).sum()
}
