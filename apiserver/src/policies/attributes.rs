//! A request as policies see it.

use homeostat_schema::AccessCheck;
use serde_json::{Map, Value, json};

use crate::access::User;

/// The effect of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    Create,
    Update,
    Delete,
    Connect,
}

/// A version of a resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) plural: String,
}

/// The type of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GroupKind {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
}

/// The version of the resource that a rule names, and the type of its objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Matched {
    pub(crate) resource: Place,
    pub(crate) kind: GroupKind,
}

/// A request that is about to be carried out.
#[derive(Debug)]
pub(crate) struct Attributes<'a> {
    pub(crate) operation: Operation,
    pub(crate) resource: Place,
    /// Empty for the resource itself.
    pub(crate) subresource: &'a str,
    /// The type of the object, such as that of a scale.
    pub(crate) kind: GroupKind,
    /// Empty for a cluster-scoped object. A namespace is in itself.
    pub(crate) namespace: &'a str,
    /// Empty for a collection.
    pub(crate) name: &'a str,
    /// Null for a delete.
    pub(crate) object: Value,
    /// Null for an object that is not stored yet.
    pub(crate) old: Value,
    /// Null for a connection.
    pub(crate) options: Value,
    pub(crate) dry_run: bool,
    pub(crate) user: &'a User,
}

// === impl Operation ===

impl Operation {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
            Self::Connect => "CONNECT",
        }
    }
}

// === impl Place ===

impl Place {
    pub(crate) fn new(group: &str, version: &str, plural: &str) -> Self {
        let [group, version, plural] = [group, version, plural].map(str::to_owned);
        Self { group, version, plural }
    }

    pub(super) fn is_namespaces(&self) -> bool {
        self.group.is_empty() && self.version == "v1" && self.plural == "namespaces"
    }

    fn to_json(&self) -> Value {
        json!({"group": self.group, "version": self.version, "resource": self.plural})
    }
}

// === impl GroupKind ===

impl GroupKind {
    pub(crate) fn new(group: &str, version: &str, kind: &str) -> Self {
        let [group, version, kind] = [group, version, kind].map(str::to_owned);
        Self { group, version, kind }
    }

    pub(crate) fn api_version(&self) -> String {
        match self.group.as_str() {
            "" => self.version.clone(),
            group => format!("{group}/{}", self.version),
        }
    }

    pub(super) fn is_namespace(&self) -> bool {
        self.group.is_empty() && self.version == "v1" && self.kind == "Namespace"
    }

    fn to_json(&self) -> Value {
        json!({"group": self.group, "version": self.version, "kind": self.kind})
    }
}

// === impl Attributes ===

impl Attributes<'_> {
    /// Returns the request as `request` in expressions, for the version that a policy names.
    /// Texts that are empty are absent.
    pub(crate) fn request(&self, resource: &Place, kind: &GroupKind) -> Value {
        let mut request = Map::new();
        let mut add = |name: &str, value: Value| drop(request.insert(name.to_owned(), value));
        add("kind", kind.to_json());
        add("resource", resource.to_json());
        add("requestKind", self.kind.to_json());
        add("requestResource", self.resource.to_json());
        add("operation", json!(self.operation.name()));
        add("dryRun", json!(self.dry_run));
        add("userInfo", self.user_info());
        add("options", self.options.clone());
        // Upstream shows these members without their values.
        add("uid", json!(""));
        add("object", Value::Null);
        add("oldObject", Value::Null);
        for (name, text) in [
            ("subResource", self.subresource),
            ("requestSubResource", self.subresource),
            ("name", self.name),
            ("namespace", self.namespace),
        ] {
            if !text.is_empty() {
                add(name, json!(text));
            }
        }
        Value::Object(request)
    }

    fn user_info(&self) -> Value {
        let User { name, uid, groups, extra } = self.user;
        let mut info = Map::new();
        if !name.is_empty() {
            info.insert("username".to_owned(), json!(name));
        }
        if !uid.is_empty() {
            info.insert("uid".to_owned(), json!(uid));
        }
        if !groups.is_empty() {
            info.insert("groups".to_owned(), json!(groups));
        }
        if !extra.is_empty() {
            info.insert("extra".to_owned(), json!(extra));
        }
        Value::Object(info)
    }

    /// Returns the check of what the request's user may do with the object.
    pub(super) fn access_check(&self) -> AccessCheck {
        let Place { group, plural, .. } = &self.resource;
        AccessCheck::of_resource(group, plural, self.subresource)
            .of_object(self.namespace, self.name)
    }

    /// Returns the name of the object as messages show it.
    pub(super) fn shown_name(&self) -> &str {
        let text = |name: &str| self.object["metadata"][name].as_str().unwrap_or_default();
        let names = [self.name, text("name"), text("generateName"), "Unknown"];
        names.into_iter().find(|name| !name.is_empty()).unwrap_or_default()
    }
}
