//! The requests that a policy, or a binding, applies to.

use homeostat_core::LabelSelector;
use serde_json::Value;

use super::attributes::{Attributes, Matched, Operation, Place};
use super::world::World;
use crate::kinds::selector_of;

/// `matchConstraints` of a policy, or `matchResources` of a binding.
#[derive(Debug)]
pub(crate) struct MatchResources {
    /// None if the selector is invalid.
    namespaces: Option<LabelSelector>,
    objects: Option<LabelSelector>,
    rules: Vec<Rule>,
    excluded: Vec<Rule>,
    /// True if a rule for another version of the resource applies, too.
    equivalent: bool,
}

/// A rule: operations on resources.
#[derive(Debug)]
struct Rule {
    operations: Vec<String>,
    groups: Vec<String>,
    versions: Vec<String>,
    resources: Vec<String>,
    scope: Scope,
    /// Empty for all names.
    names: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scope {
    Any,
    Namespaced,
    Cluster,
}

fn texts(of: &Value, name: &str) -> Vec<String> {
    let list = of.get(name).and_then(Value::as_array).into_iter().flatten();
    list.filter_map(Value::as_str).map(str::to_owned).collect()
}

fn has(list: &[String], wanted: &str) -> bool {
    list.iter().any(|item| item == "*" || item == wanted)
}

// === impl MatchResources ===

impl MatchResources {
    pub(super) fn read(of: &Value) -> Self {
        let rules = |name: &str| {
            let list = of.get(name).and_then(Value::as_array).into_iter().flatten();
            list.map(Rule::read).collect()
        };
        Self {
            namespaces: selector_of(&of["namespaceSelector"]),
            objects: selector_of(&of["objectSelector"]),
            rules: rules("resourceRules"),
            excluded: rules("excludeResourceRules"),
            equivalent: of["matchPolicy"] != "Exact",
        }
    }

    /// Reads the rules and selectors of a webhook. Returns `None` if it has no rules: they apply to
    /// no request.
    pub(crate) fn of_webhook(of: &Value) -> Option<Self> {
        let rules: Vec<Rule> = of["rules"].as_array()?.iter().map(Rule::read).collect();
        (!rules.is_empty()).then(|| Self { rules, ..Self::read(of) })
    }

    /// Returns what the rules name, or `None` if they do not apply to the request.
    ///
    /// # Errors
    ///
    /// Returns the reason if the namespace of the request is missing.
    pub(crate) fn matches(
        &self,
        request: &Attributes<'_>,
        world: &dyn World,
    ) -> Result<Option<Matched>, String> {
        let in_namespace = self.matches_namespace(request, world);
        if in_namespace == Ok(false) || !self.matches_object(request) {
            return Ok(None);
        }
        if self.find(&self.excluded, request, world).is_some() {
            return Ok(None);
        }
        let found = if self.rules.is_empty() {
            Some(Matched { resource: request.resource.clone(), kind: request.kind.clone() })
        } else {
            self.find(&self.rules, request, world)
        };
        match (found, in_namespace) {
            (Some(_), Err(error)) => Err(error),
            (found, _) => Ok(found),
        }
    }

    fn matches_namespace(
        &self,
        request: &Attributes<'_>,
        world: &dyn World,
    ) -> Result<bool, String> {
        let is_namespace = request.resource.plural == "namespaces";
        if request.namespace.is_empty() && !is_namespace {
            return Ok(true);
        }
        let Some(selector) = &self.namespaces else { return Ok(false) };
        if selector.is_empty() {
            return Ok(true);
        }
        // The new labels of a namespace count.
        let is_write = matches!(request.operation, Operation::Create | Operation::Update);
        if is_namespace && request.subresource.is_empty() && is_write {
            return Ok(selects(selector, &request.object));
        }
        match world.namespace(request.namespace) {
            Some(namespace) => Ok(selects(selector, &namespace)),
            None => Err(format!("namespaces \"{}\" not found", request.namespace)),
        }
    }

    fn matches_object(&self, request: &Attributes<'_>) -> bool {
        let Some(selector) = &self.objects else { return false };
        let selects = |object: &Value| !object.is_null() && selects(selector, object);
        selector.is_empty() || selects(&request.object) || selects(&request.old)
    }

    fn find(&self, rules: &[Rule], request: &Attributes<'_>, world: &dyn World) -> Option<Matched> {
        let own = Matched { resource: request.resource.clone(), kind: request.kind.clone() };
        if rules.iter().any(|rule| rule.matches(request, &own.resource)) {
            return Some(own);
        }
        if !self.equivalent || rules.is_empty() {
            return None;
        }
        let others = world.equivalents(request);
        let others = others.iter().filter(|other| other.resource != own.resource);
        let others: Vec<&Matched> = others.collect();
        rules.iter().find_map(|rule| {
            let found = others.iter().find(|other| rule.matches(request, &other.resource));
            found.map(|found| (*found).clone())
        })
    }
}

/// Returns true if a selector matches the labels of an object.
fn selects(selector: &LabelSelector, object: &Value) -> bool {
    let labels = object["metadata"]["labels"].as_object();
    selector.matches(&labels.map(crate::fields::string_map).unwrap_or_default())
}

// === impl Rule ===

impl Rule {
    fn read(of: &Value) -> Self {
        Self {
            operations: texts(of, "operations"),
            groups: texts(of, "apiGroups"),
            versions: texts(of, "apiVersions"),
            resources: texts(of, "resources"),
            scope: match of["scope"].as_str() {
                Some("Namespaced") => Scope::Namespaced,
                Some("Cluster") => Scope::Cluster,
                _ => Scope::Any,
            },
            names: texts(of, "resourceNames"),
        }
    }

    /// Returns true if the rule names the request, as one of this version of the resource.
    fn matches(&self, request: &Attributes<'_>, resource: &Place) -> bool {
        let is_cluster_scoped = resource.is_namespaces() || request.namespace.is_empty();
        let in_scope = match self.scope {
            Scope::Any => true,
            Scope::Namespaced => !is_cluster_scoped,
            Scope::Cluster => is_cluster_scoped,
        };
        let names_resource = self.resources.iter().any(|named| {
            let (named, part) = named.split_once('/').unwrap_or((named, ""));
            (named == "*" || named == resource.plural)
                && (part == "*" || part == request.subresource)
        });
        in_scope
            && has(&self.operations, request.operation.name())
            && has(&self.groups, &resource.group)
            && has(&self.versions, &resource.version)
            && names_resource
            && (self.names.is_empty() || self.names.iter().any(|name| name == request.name))
    }
}
