//! The objects that a server starts with: those that every server has, and those of a state file.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Value, json};

use super::{addresses, definitions};
use crate::access::RBAC_GROUP;
use crate::admission::create::{self, SystemMetadata};
use crate::admission::meta_text;
use crate::admission::owners::{FieldManager, Ownership};
use crate::admission::update::Target;
use crate::clock::rfc3339;
use crate::core::Core;
use crate::kinds::{Allocator, BUILT_IN_OBJECTS, BUILT_IN_ROLES, Served};
use crate::object::{Selectable, Stored};
use crate::state::{Contents, Kept, State};

/// Stores the objects that every server has, as far as they are missing.
pub(crate) fn populate(core: &Core) {
    for name in ["default", "kube-node-lease", "kube-public", "kube-system"] {
        store(core, &core.kinds().namespaces(), &json!({"metadata": {"name": name}}));
    }
    for (group, plural, object) in BUILT_IN_OBJECTS {
        let served = core.kinds().find(group, "v1", plural).expect("the table has the kind");
        store(core, &served, &serde_json::from_str(object).expect("the text is JSON"));
    }
    if core.access.is_enforced() {
        let roles: BTreeMap<String, Vec<Value>> =
            serde_json::from_str(BUILT_IN_ROLES).expect("the text is JSON");
        for (plural, objects) in &roles {
            let served = core.kinds().find(RBAC_GROUP, "v1", plural);
            let served = served.expect("the table has the kind");
            for object in objects {
                store(core, &served, object);
            }
        }
    }
    addresses::repair(core);
    addresses::report_range(core);
}

/// Stores an object of the server itself. Returns false if there is one of its name.
pub(super) fn store(core: &Core, served: &Served, object: &Value) -> bool {
    let object = object.as_object().cloned().unwrap_or_default();
    let namespace = meta_text(&object, "namespace").to_owned();
    let key = served.home.key(&namespace, meta_text(&object, "name"));
    if core.get(served.resource, &key).is_some() {
        return false;
    }
    let now = core.clock.now();
    let owners = Ownership::Tracked(FieldManager {
        name: "kube-apiserver".to_owned(),
        subresource: String::new(),
        target: Target::Object,
        now: rfc3339(now),
    });
    let (uid, author) = (core.chance.uid(), core.access.admin());
    let allocations = core.allocations(served);
    let allocations = allocations.as_deref();
    let allocator = allocations.map(|allocations| Allocator { allocations, dry_run: false });
    let system = SystemMetadata { now, uid, suffix: String::new(), owners, author, allocator };
    let new = create::prepare(&served.home, &served.kind, &namespace, object, &system)
        .expect("the object is valid");
    let encoded = served.home.encode(new);
    core.put(served.resource, &key, None, encoded).is_ok()
}

/// Loads the objects of a state file, and appends all later writes to it.
///
/// Objects of kinds that the server does not serve stay in the file.
pub(crate) fn resume(core: &Core, state: State) {
    let State { contents, mut journal } = state;
    let Contents { revision, mut resources } = contents;
    let kinds = core.kinds();
    for served in kinds.homes() {
        core.name_resource(served.resource, &served.resource_name());
    }
    // The definitions come first: the other objects may be of their kinds.
    let definitions = kinds.definitions();
    core.set_revision(revision);
    load(core, &definitions, resources.remove(&definitions.resource_name()).unwrap_or_default());
    definitions::reinstall(core);
    let kinds = core.kinds();
    let mut unserved = Contents::default();
    for (name, objects) in resources {
        if let Some(served) = kinds.find_resource(&name) {
            load(core, &served, objects);
            continue;
        }
        tracing::warn!(
            resource = %name, objects = objects.len(),
            "the state file has objects of a resource that is not served: they stay in the file"
        );
        unserved.resources.insert(name, objects);
    }
    journal.keep_unserved(unserved);
    core.keep_journal(journal);
}

fn load(core: &Core, served: &Served, objects: BTreeMap<String, Kept>) {
    for (key, Kept { revision, bytes }) in objects {
        // Without the copy, the whole file would stay in memory.
        let bytes = Bytes::copy_from_slice(&bytes);
        let stored = Stored::read(&bytes, revision, |object| {
            // The schema of a definition may have changed since the object was stored.
            Selectable { form: 0, ..served.home.selectable(object) }
        });
        let stored = stored.expect("the checksum is right, so the bytes are those of an object");
        let stored = match &served.home.definition {
            Some(_) => served.relabel(&stored),
            None => stored,
        };
        core.load(served.resource, &key, Arc::new(stored));
    }
}
