//! What can be saved of the metadata of an object that does not fit its type.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;

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
        Err(_) => member_by_member(text)?,
    };
    metadata.name.as_ref().is_some_and(|name| !name.is_empty()).then_some(metadata)
}

/// Keeps every member of the metadata that fits by itself. Members stay text, so that neither depth nor a number can
/// spoil the others.
fn member_by_member(text: &str) -> Option<ObjectMeta> {
    #[derive(Deserialize)]
    struct Loose<'a> {
        #[serde(borrow)]
        metadata: BTreeMap<String, &'a RawValue>,
    }
    let mut json = serde_json::Deserializer::from_str(text);
    let loose = Loose::deserialize(Skip::object(&mut json)).ok()?;
    let members = loose.metadata.into_iter().filter_map(|(name, value)| {
        let member = format!("{}:{}", serde_json::to_string(&name).ok()?, value.get());
        let fits = serde_json::from_str::<ObjectMeta>(&format!("{{{member}}}")).is_ok();
        fits.then_some(member)
    });
    let kept = members.collect::<Vec<_>>().join(",");
    serde_json::from_str(&format!("{{{kept}}}")).ok()
}
