//! The types of the variables of a policy.

use std::sync::LazyLock;

use crate::cel::{AUTHORIZER, RESOURCE_CHECK, Scope, Type};

/// The type of `variables`: its fields are variables of their own.
const VARIABLES: &str = "variables";

/// The variables that the expressions of one policy may use.
#[derive(Debug)]
pub(super) struct Environment {
    /// For conditions, variables and validations.
    pub(super) conditions: Scope,
    /// For variables and validations: with the variables of the policy.
    pub(super) validations: Scope,
    /// For messages: without the authorizer.
    pub(super) messages: Scope,
}

// === impl Environment ===

impl Environment {
    pub(super) fn new(has_params: bool, has_variables: bool) -> Self {
        let mut messages = Scope::of(&[
            ("object", Type::Dyn),
            ("oldObject", Type::Dyn),
            ("request", REQUEST.clone()),
            ("namespaceObject", NAMESPACE.clone()),
        ]);
        if has_params {
            messages.insert("params", Type::Dyn);
        }
        let mut conditions = messages.clone();
        conditions.insert("authorizer", AUTHORIZER);
        conditions.insert("authorizer.requestResource", RESOURCE_CHECK);
        let mut validations = conditions.clone();
        if has_variables {
            let kind = Type::object("kubernetes.variables", &[]);
            messages.insert(VARIABLES, kind.clone());
            validations.insert(VARIABLES, kind);
        }
        Self { conditions, validations, messages }
    }

    /// Returns the variables of mutations, which may make objects and patches.
    pub(super) fn mutations(&self) -> Scope {
        self.validations.clone().with_patches()
    }

    /// Adds a variable of the policy.
    pub(super) fn add(&mut self, full_name: &str, kind: Type) {
        let kind = declared(kind);
        self.messages.insert(full_name, kind.clone());
        self.validations.insert(full_name, kind);
    }
}

/// Returns the name of a variable in expressions.
pub(super) fn full_name(name: &str) -> String {
    format!("{VARIABLES}.{name}")
}

/// Returns the type that a variable has in other expressions: upstream does not keep all types.
fn declared(kind: Type) -> Type {
    match kind {
        Type::List(items) => Type::list(declared(items.as_ref().clone())),
        Type::Map(keys, values) => {
            Type::map(declared(keys.as_ref().clone()), declared(values.as_ref().clone()))
        }
        Type::Object(_) | Type::Optional(_) | Type::OfTypes | Type::Opaque(_) | Type::Empty => {
            Type::Dyn
        }
        other => other,
    }
}

static REQUEST: LazyLock<Type> = LazyLock::new(|| {
    let texts = Type::list(Type::String);
    let named = |third: &'static str, name| {
        let fields = ["group", "version", third].map(|field| (field, Type::String));
        Type::object(name, &fields)
    };
    let kind = named("kind", "kubernetes.GroupVersionKind");
    let resource = named("resource", "kubernetes.GroupVersionResource");
    let user = [
        ("username", Type::String),
        ("uid", Type::String),
        ("groups", texts.clone()),
        ("extra", Type::map(Type::String, texts)),
    ];
    let fields = [
        ("kind", kind.clone()),
        ("resource", resource.clone()),
        ("subResource", Type::String),
        ("requestKind", kind),
        ("requestResource", resource),
        ("requestSubResource", Type::String),
        ("name", Type::String),
        ("namespace", Type::String),
        ("operation", Type::String),
        ("userInfo", Type::object("kubernetes.UserInfo", &user)),
        ("dryRun", Type::Bool),
        ("options", Type::Dyn),
    ];
    Type::object("kubernetes.AdmissionRequest", &fields)
});

static NAMESPACE: LazyLock<Type> = LazyLock::new(|| {
    let texts = Type::list(Type::String);
    let map = Type::map(Type::String, Type::String);
    let condition = [
        ("status", Type::String),
        ("type", Type::String),
        ("lastTransitionTime", Type::Timestamp),
        ("message", Type::String),
        ("reason", Type::String),
    ];
    let conditions = Type::list(Type::object("kubernetes.NamespaceCondition", &condition));
    // The member `uid` has another name, as in upstream.
    let metadata = [
        ("name", Type::String),
        ("generateName", Type::String),
        ("namespace", Type::String),
        ("labels", map.clone()),
        ("annotations", map),
        ("UID", Type::String),
        ("creationTimestamp", Type::Timestamp),
        ("deletionGracePeriodSeconds", Type::Int),
        ("deletionTimestamp", Type::Timestamp),
        ("generation", Type::Int),
        ("resourceVersion", Type::String),
        ("finalizers", texts.clone()),
    ];
    let spec = Type::object("kubernetes.NamespaceSpec", &[("finalizers", texts)]);
    let status = [("conditions", conditions), ("phase", Type::String)];
    let fields = [
        ("metadata", Type::object("kubernetes.NamespaceMetadata", &metadata)),
        ("spec", spec),
        ("status", Type::object("kubernetes.NamespaceStatus", &status)),
    ];
    Type::object("kubernetes.Namespace", &fields)
});
