//! The objects that the server stores for itself.

use std::borrow::Cow;
use std::time::Duration;

use serde_json::Value;

use crate::admission::create::{self, SystemMetadata};
use crate::admission::field_manager::FieldManager;
use crate::admission::meta_text;
use crate::admission::owners::Ownership;
use crate::admission::target::Target;
use crate::admission::update::{self, Change, Outcome};
use crate::clock::rfc3339;
use crate::core::Core;
use crate::fields::Fields;
use crate::kinds::{Allocator, Served};
use crate::metrics::{Finished, RequestLabels};
use crate::object::Stored;
use crate::status::Result;

/// The name under which the server itself writes.
pub(super) const SERVER: &str = "kube-apiserver";

/// Stores an object of the server itself, as `manager`. Returns false if there is one of its name.
pub(super) fn store(core: &Core, served: &Served, object: &Value, manager: &str) -> bool {
    try_store(core, served, object, manager).expect("the object is valid")
}

/// Stores an object of the server itself, as `manager`. Returns false if there is one of its name.
///
/// # Errors
///
/// Fails if the object is invalid, or needs an address that another one has.
pub(super) fn try_store(
    core: &Core,
    served: &Served,
    object: &Value,
    manager: &str,
) -> Result<bool> {
    let object = object.as_object().cloned().unwrap_or_default();
    let namespace = meta_text(&object, "namespace").to_owned();
    let key = served.home.key(&namespace, meta_text(&object, "name"));
    if core.get(served.resource, &key).is_some() {
        return Ok(false);
    }
    let now = core.clock.now();
    let owners = &Ownership::Tracked(FieldManager {
        name: manager.to_owned(),
        subresource: String::new(),
        target: Target::Object,
        now: rfc3339(now),
        converter: None,
    });
    let (uid, author) = (core.chance.uid(), core.access.admin());
    let allocations = core.allocations(served);
    let allocations = allocations.as_deref();
    let allocator = allocations.map(|allocations| Allocator { allocations, dry_run: false });
    let system = SystemMetadata { now, uid, suffix: String::new(), owners, author, allocator };
    let new = create::prepare(&served.home, &served.kind, &namespace, object, &system)?;
    let encoded = served.home.encode(new);
    let is_stored = core.put(served.resource, &key, None, encoded).is_ok();
    if is_stored {
        count(core, served);
    }
    Ok(is_stored)
}

/// Writes an object of the server, or a part of it that the server decides about. Returns false if
/// another write came first.
pub(super) fn replace(
    core: &Core,
    served: &Served,
    (stored, old): (&Stored, &Fields),
    new: Fields,
    manager: FieldManager,
) -> bool {
    let (target, owners) = (manager.target, &Ownership::Tracked(manager));
    let change = Change { old, new, target, owners };
    match update::prepare(&served.home, &served.kind, change, None, None) {
        Ok((Outcome::Store(new), _)) => {
            let key = served.home.key(&stored.selectable.namespace, &stored.selectable.name);
            core.put(served.resource, &key, Some(stored.revision), served.encode(new)).is_ok()
        }
        // There is nothing to write.
        _ => true,
    }
}

/// Counts a creation as a request: the real server sends itself one.
fn count(core: &Core, served: &Served) {
    let kind = &served.kind;
    let labels = RequestLabels {
        resource: kind.plural.clone(),
        verb: "POST",
        subresource: Cow::Borrowed(""),
        scope: "resource",
        dry_run: "",
        group: kind.group.clone(),
        version: kind.version.clone(),
    };
    let (time, size, is_deprecated) = (Duration::ZERO, None, false);
    core.metrics.finish(&labels, &Finished { code: 201, time, size, is_deprecated });
}
