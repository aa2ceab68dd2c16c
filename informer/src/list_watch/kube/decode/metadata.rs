//! What can be saved of the metadata of an object that does not fit its type.

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::{list_watch::kube::skip_managed_fields::Skip, object::ObjectMeta};

/// The metadata of the object in `text`, if this is an object with a name.
pub(super) fn of(text: &str) -> Option<ObjectMeta> {
    #[derive(Deserialize)]
    struct Fitting {
        metadata: ObjectMeta,
    }
    let mut json = serde_json::Deserializer::from_str(text);
    let metadata = match Fitting::deserialize(Skip::object(&mut json)) {
        Ok(object) => object.metadata,
        Err(_) => field_by_field(text)?,
    };
    metadata.name.as_ref().is_some_and(|name| !name.is_empty()).then_some(metadata)
}

/// Keeps every field of the metadata that fits by itself.
fn field_by_field(text: &str) -> Option<ObjectMeta> {
    #[derive(Deserialize)]
    struct Loose {
        metadata: Map<String, Value>,
    }
    let mut json = serde_json::Deserializer::from_str(text);
    let loose = Loose::deserialize(Skip::object(&mut json)).ok()?;
    let fits = |name: &String, value: &Value| {
        let alone = Map::from_iter([(name.clone(), value.clone())]);
        serde_json::from_value::<ObjectMeta>(Value::Object(alone)).is_ok()
    };
    let kept = loose.metadata.into_iter().filter(|(name, value)| fits(name, value)).collect();
    serde_json::from_value(Value::Object(kept)).ok()
}
