//! The objects and permissions that policies read.

use std::fmt;
use std::sync::Arc;

use homeostat_core::LabelSelector;
use homeostat_schema::{AccessCheck, AccessDecision, Authorizer, Schema};
use serde_json::{Value, json};

use super::{Asking, asked};
use crate::access::{Attributes as Permission, User};
use crate::admission::field_manager::schema_of;
use crate::api::conversion::Converter;
use crate::api::roles;
use crate::core::Core;
use crate::fields::Fields;
use crate::kinds::{Kinds, Served};
use crate::object::Stored;
use crate::policies::{Attributes, Codec, GroupKind, Matched, ParamKind, Place, Source, World};
use crate::types::{Type, Types, unknown_members, wrong_member};
use crate::webhooks::Conversation;

/// The state of a server, for the policies of one request.
pub(super) struct CoreWorld<'a> {
    core: &'a Core,
    kinds: Arc<Kinds>,
    /// The kind of the request's object; `None` for an object that is not stored.
    served: Option<&'a Served>,
    conversation: &'a Arc<Conversation>,
    permissions: Permissions<'a>,
}

/// The permissions of a user.
struct Permissions<'a> {
    core: &'a Core,
    user: &'a User,
}

// === impl CoreWorld ===

impl<'a> CoreWorld<'a> {
    pub(super) fn new(asking: &Asking<'a>, user: &'a User) -> Self {
        let Asking { core, served, conversation, .. } = *asking;
        let permissions = Permissions { core, user };
        Self { core, kinds: core.kinds(), served, conversation, permissions }
    }

    /// Returns an object in another version if the webhook of its definition converts it; `None` if
    /// there is no webhook.
    fn by_webhook(
        &self,
        served: &Served,
        object: &Fields,
        api_version: &str,
    ) -> Option<Result<Value, String>> {
        let converter = Converter::new(served, Arc::clone(self.conversation));
        converter.calls_webhook().then(|| {
            let object = converter.to_version(object.clone(), api_version);
            object.map(Value::Object).map_err(|failure| failure.message)
        })
    }

    /// Returns the kind of an object, if it is the kind of its resource.
    fn target(&self, of: &Matched) -> Option<Served> {
        let Place { group, version, plural } = &of.resource;
        let target = self.served.and_then(|_| self.kinds.find(group, version, plural))?;
        let kind = &target.kind;
        ((&*kind.group, &*kind.kind) == (&*of.kind.group, &*of.kind.kind)).then_some(target)
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

    fn converted(&self, object: &Value, to: &Matched) -> Result<Value, String> {
        let Place { group, version, plural } = &to.resource;
        let target = self.kinds.find(group, version, plural);
        let (Some(served), Some(target), Value::Object(object)) = (self.served, target, object)
        else {
            return Ok(object.clone());
        };
        if let Some(converted) = self.by_webhook(served, object, &to.kind.api_version()) {
            return converted;
        }
        let mut converted = object.clone();
        if served.kind.definition.is_none() {
            served.kind.rename_for_storage(&mut converted);
            return Ok(asked::shown(&target, &converted));
        }
        converted.insert("apiVersion".to_owned(), json!(to.kind.api_version()));
        Ok(Value::Object(converted))
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
    fn decoded(&self, changed: Value, of: &Matched, source: Source) -> Result<Value, String> {
        let Value::Object(mut object) = changed else {
            return Err(format!("{changed} is no object"));
        };
        let Some(target) = self.target(of) else {
            let GroupKind { group, version, kind } = &of.kind;
            if let Some(known) = Types::all().of_kind(group, version, kind)
                && source == Source::Patch
            {
                check_members(known, &object)?;
            }
            return Ok(Value::Object(object));
        };
        match (target.kind.wrong_member(&object), source) {
            (None, _) => {}
            (Some(wrong), Source::Configuration) => {
                let GroupKind { group, version, kind } = &of.kind;
                return Err(format!(
                    "unable to convert unstructured object to {group}/{version}, Kind={kind}: {}",
                    wrong.restored
                ));
            }
            (Some(wrong), _) => return Err(wrong.decoded),
        }
        if let Some(known) = target.kind.known_type()
            && source == Source::Patch
        {
            check_members(known, &object)?;
        }
        // Unknown members of custom objects stay until the object is stored.
        if let Some(definition) = &target.kind.definition {
            definition.set_defaults(&mut object);
        }
        target.kind.complete(&mut object);
        Ok(Value::Object(object))
    }

    fn restored(&self, object: Value, from: &Matched, source: Source) -> Result<Value, String> {
        let Place { group, version, plural } = &from.resource;
        let other = self.kinds.find(group, version, plural);
        let (Some(served), Some(other), Value::Object(mut object)) = (self.served, other, object)
        else {
            return Ok(Value::Null);
        };
        if served.kind.definition.is_none() {
            if source != Source::Webhook {
                let (kind, to) = (&from.kind.kind, &served.kind.version);
                return Err(format!(
                    "converting ({version}.{kind}) to ({to}.{kind}): unknown conversion"
                ));
            }
            other.kind.rename_for_storage(&mut object);
        }
        if let Some(restored) = self.by_webhook(served, &object, &served.kind.api_version()) {
            return restored;
        }
        Ok(asked::shown(served, &object))
    }

    fn schema(&self, of: &Matched) -> Option<Schema> {
        self.target(of).map(|target| schema_of(&target.kind))
    }
}

/// Checks that an object has only members of its type, and of the right types.
fn check_members(known: &'static Type, object: &Fields) -> Result<(), String> {
    if let Some(wrong) = wrong_member(known, object) {
        return Err(wrong.decoded);
    }
    let unknown = unknown_members(known, object, None);
    if unknown.is_empty() {
        return Ok(());
    }
    Err(format!("strict decoding error: {}", unknown.join(", ")))
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
        let roles::Decision { allowed, reason } = roles::decide(self.core, user, &request);
        AccessDecision { allowed, reason }
    }
}
