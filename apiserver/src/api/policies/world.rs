//! The objects and permissions that policies read.

use std::fmt;
use std::sync::Arc;

use homeostat_core::LabelSelector;
use homeostat_schema::{AccessCheck, AccessDecision, Authorizer};
use serde_json::{Value, json};

use super::asked;
use crate::access::{Attributes as Permission, User};
use crate::api::access;
use crate::core::Core;
use crate::fields::Fields;
use crate::kinds::{Kinds, Served};
use crate::object::Stored;
use crate::policies::{Attributes, GroupKind, Matched, ParamKind, Place, World};
use crate::webhooks::Codec;

/// The state of a server, for the policies of one request.
pub(super) struct CoreWorld<'a> {
    core: &'a Core,
    kinds: Arc<Kinds>,
    /// The kind of the request's object; `None` for an object that is not stored.
    served: Option<&'a Served>,
    permissions: Permissions<'a>,
}

/// The permissions of a user.
struct Permissions<'a> {
    core: &'a Core,
    user: &'a User,
}

// === impl CoreWorld ===

impl<'a> CoreWorld<'a> {
    pub(super) fn new(core: &'a Core, served: Option<&'a Served>, user: &'a User) -> Self {
        Self { core, kinds: core.kinds(), served, permissions: Permissions { core, user } }
    }

    fn served_param(&self, kind: &ParamKind) -> Option<Served> {
        let GroupKind { group, version, kind } = &kind.0;
        let mut rows = self.kinds.rows_of_group(group);
        let found = rows.find(|row| row.version == *version && row.kind == *kind)?;
        self.kinds.find(group, version, &found.plural)
    }
}

impl World for CoreWorld<'_> {
    fn namespace(&self, name: &str) -> Option<Value> {
        let stored = self.core.get(self.kinds.namespaces().resource, name)?;
        let mut namespace = stored.fields();
        // Expressions do not see all of it.
        if let Some(metadata) = namespace.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("managedFields");
            metadata.remove("ownerReferences");
        }
        Some(Value::Object(namespace))
    }

    fn equivalents(&self, request: &Attributes<'_>) -> Vec<Matched> {
        let Some(served) = self.served else { return Vec::new() };
        let own = &served.kind;
        let is_own = request.kind.kind == own.kind && request.kind.group == own.group;
        let has_subresource = |other: &&Served| {
            request.subresource.is_empty() || other.kind.has_subresource(request.subresource)
        };
        let others = self.kinds.sharing_storage(served).into_iter();
        let matched = |other: &Served| {
            let kind = &other.kind;
            let of_object = || GroupKind::new(&kind.group, &kind.version, &kind.kind);
            Matched {
                resource: Place::new(&kind.group, &kind.version, &kind.plural),
                kind: if is_own { of_object() } else { request.kind.clone() },
            }
        };
        others.filter(|other| has_subresource(&other)).map(|other| matched(&other)).collect()
    }

    fn converted(&self, object: &Value, to: &Matched) -> Value {
        let Place { group, version, plural } = &to.resource;
        let target = self.kinds.find(group, version, plural);
        let (Some(served), Some(target), Value::Object(object)) = (self.served, target, object)
        else {
            return object.clone();
        };
        let mut converted = object.clone();
        if served.kind.definition.is_none() {
            served.kind.rename_for_storage(&mut converted);
            return asked::shown(&target, &converted);
        }
        converted.insert("apiVersion".to_owned(), json!(to.kind.api_version()));
        Value::Object(converted)
    }

    fn is_namespaced(&self, kind: &ParamKind) -> Option<bool> {
        Some(self.served_param(kind)?.kind.namespaced)
    }

    fn param(&self, kind: &ParamKind, namespace: &str, name: &str) -> Option<Value> {
        let served = self.served_param(kind)?;
        let stored = self.core.get(served.resource, &served.kind.key(namespace, name))?;
        Some(shown_stored(&served, &stored))
    }

    fn params(&self, kind: &ParamKind, namespace: &str, selector: &LabelSelector) -> Vec<Value> {
        let Some(served) = self.served_param(kind) else { return Vec::new() };
        let objects = self.core.read(|storage| storage.objects(served.resource).clone());
        let found = objects.iter().map(|(_, stored)| stored).filter(|stored| {
            let selectable = &stored.selectable;
            let is_in_place = !served.kind.namespaced || selectable.namespace == namespace;
            is_in_place && selector.matches(&selectable.labels)
        });
        found.map(|stored| shown_stored(&served, stored)).collect()
    }

    fn authorizer(&self) -> &dyn Authorizer {
        &self.permissions
    }
}

impl Codec for CoreWorld<'_> {
    fn decoded(
        &self,
        before: &Value,
        patched: Value,
        of: &Matched,
    ) -> Result<(Value, bool), String> {
        let Place { group, version, plural } = &of.resource;
        let target = self.served.and_then(|_| self.kinds.find(group, version, plural));
        let is_of_kind = |served: &Served| {
            (&*served.kind.group, &*served.kind.kind) == (&*of.kind.group, &*of.kind.kind)
        };
        let Some(target) = target.filter(is_of_kind) else {
            let is_changed = patched != *before;
            return Ok((patched, is_changed));
        };
        let Value::Object(mut object) = patched else {
            return Err(format!("{patched} is no object"));
        };
        if let Some(wrong) = target.kind.wrong_member(&object) {
            return Err(wrong.decoded);
        }
        // Unknown members of custom objects stay until the object is stored.
        if let Some(definition) = &target.kind.definition {
            definition.set_defaults(&mut object);
        }
        target.kind.complete(&mut object);
        let object = Value::Object(object);
        let is_changed = object != *before;
        Ok((object, is_changed))
    }

    fn restored(&self, object: Value, from: &Matched) -> Value {
        let Place { group, version, plural } = &from.resource;
        let other = self.kinds.find(group, version, plural);
        let (Some(served), Some(other), Value::Object(mut object)) = (self.served, other, object)
        else {
            return Value::Null;
        };
        if served.kind.definition.is_none() {
            other.kind.rename_for_storage(&mut object);
        }
        asked::shown(served, &object)
    }
}

fn shown_stored(served: &Served, stored: &Stored) -> Value {
    let object: Fields = served.read(stored);
    asked::shown(served, &object)
}

// === impl Permissions ===

impl fmt::Debug for Permissions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permissions").field("user", self.user).finish_non_exhaustive()
    }
}

impl Authorizer for Permissions<'_> {
    fn authorize(&self, check: &AccessCheck) -> AccessDecision {
        let request = Permission {
            verb: check.verb.clone(),
            namespace: check.namespace.clone(),
            group: check.group.clone(),
            resource: check.resource.clone(),
            subresource: check.subresource.clone(),
            name: check.name.clone(),
            path: check.path.clone(),
        };
        let account = check.account.as_ref();
        let account = account.map(|(namespace, name)| User::service_account(namespace, name));
        let user = account.as_ref().unwrap_or(self.user);
        let access::Decision { allowed, reason } = access::decide(self.core, user, &request);
        AccessDecision { allowed, reason }
    }
}
