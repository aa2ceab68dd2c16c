//! Recovers the metadata of an object that does not fit its type.
//!
//! An opaque object needs a name, and its uid, version, labels and owners as far as they decode. So
//! the metadata is decoded as a whole first, and member by member only if that fails.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::list_watch::kube::prune::Prune;
use crate::list_watch::kube::skip::Skip;
use crate::object::ObjectMeta;

/// Returns the metadata of the object in `text`, or `None` if this is not an object with a name.
///
/// It honours the skipped members, so that an opaque object takes no more memory than others.
pub(super) fn of(text: &str, prune: &Prune) -> Option<ObjectMeta> {
    #[derive(Deserialize)]
    struct Fitting {
        metadata: ObjectMeta,
    }
    let mut json = serde_json::Deserializer::from_str(text);
    let metadata = match Fitting::deserialize(Skip::new(&mut json, prune)) {
        Ok(object) => object.metadata,
        Err(_) => member_by_member(text, prune)?,
    };
    metadata.name.as_ref().is_some_and(|name| !name.is_empty()).then_some(metadata)
}

/// Keeps each member of the metadata that decodes alone.
///
/// Members stay text until they are checked, so that nesting depth or an invalid number in one
/// member does not affect the others.
///
/// It costs a parse per member and runs for broken metadata only.
fn member_by_member(text: &str, prune: &Prune) -> Option<ObjectMeta> {
    #[derive(Deserialize)]
    struct Loose<'a> {
        #[serde(borrow)]
        metadata: BTreeMap<String, &'a RawValue>,
    }
    let mut json = serde_json::Deserializer::from_str(text);
    let loose = Loose::deserialize(Skip::new(&mut json, prune)).ok()?;
    let members = loose.metadata.into_iter().filter_map(|(name, value)| {
        let member = format!("{}:{}", serde_json::to_string(&name).ok()?, value.get());
        let fits = serde_json::from_str::<ObjectMeta>(&format!("{{{member}}}")).is_ok();
        fits.then_some(member)
    });
    let kept = members.collect::<Vec<_>>().join(",");
    serde_json::from_str(&format!("{{{kept}}}")).ok()
}
