//! The conditions of a namespace that still has objects.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Namespace, NamespaceCondition};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube_core::ApiResource;

use crate::cluster::partial_object::PartialObject;

/// The objects that are left in a namespace.
#[derive(Debug, Default)]
pub(super) struct Remaining {
    /// Their number by resource.
    resources: BTreeMap<String, usize>,
    /// Their number by finalizer.
    finalizers: BTreeMap<String, usize>,
}

// === impl Remaining ===

impl Remaining {
    /// Counts the objects of one kind.
    pub(super) fn add(&mut self, resource: &ApiResource, objects: &[PartialObject]) {
        if objects.is_empty() {
            return;
        }
        self.resources.insert(format!("{}.{}", resource.plural, resource.group), objects.len());
        let finalizers = objects.iter().filter_map(|object| object.metadata.finalizers.as_ref());
        for finalizer in finalizers.flatten() {
            *self.finalizers.entry(finalizer.clone()).or_default() += 1;
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.resources.is_empty()
    }

    /// Sets the conditions of a namespace, in upstream's words. Returns false if it has them.
    pub(super) fn report(&self, namespace: &mut Namespace, now: Timestamp) -> bool {
        let status = namespace.status.get_or_insert_default();
        let conditions = status.conditions.get_or_insert_default();
        let mut has_changed = false;
        for (type_, holds, reason, message) in self.conditions() {
            let status = if holds { "True" } else { "False" };
            let known = conditions.iter_mut().find(|known| known.type_ == type_);
            let since = known.as_ref().filter(|known| known.status == status);
            let since = since.and_then(|known| known.last_transition_time.clone());
            let condition = NamespaceCondition {
                type_: type_.to_owned(),
                status: status.to_owned(),
                reason: Some(reason.to_owned()),
                message: Some(message),
                last_transition_time: since.or(Some(Time(now))),
            };
            match known {
                Some(known) if *known == condition => continue,
                Some(known) => *known = condition,
                None => conditions.push(condition),
            }
            has_changed = true;
        }
        has_changed
    }

    fn conditions(&self) -> [(&'static str, bool, &'static str, String); 5] {
        let no = |type_, reason, message: &str| (type_, false, reason, message.to_owned());
        let listed = |counts: &BTreeMap<String, usize>, verb: &str| {
            let counts = counts.iter();
            let counts: Vec<_> =
                counts.map(|(what, n)| format!("{what} {verb} {n} resource instances")).collect();
            counts.join(", ")
        };
        let content = "NamespaceContentRemaining";
        let finalizers = "NamespaceFinalizersRemaining";
        [
            no(
                "NamespaceDeletionDiscoveryFailure",
                "ResourcesDiscovered",
                "All resources successfully discovered",
            ),
            no(
                "NamespaceDeletionGroupVersionParsingFailure",
                "ParsedGroupVersions",
                "All legacy kube types successfully parsed",
            ),
            no(
                "NamespaceDeletionContentFailure",
                "ContentDeleted",
                "All content successfully deleted, may be waiting on finalization",
            ),
            if self.resources.is_empty() {
                no(content, "ContentRemoved", "All content successfully removed")
            } else {
                let list = listed(&self.resources, "has");
                let message = format!("Some resources are remaining: {list}");
                (content, true, "SomeResourcesRemain", message)
            },
            if self.finalizers.is_empty() {
                let message = "All content-preserving finalizers finished";
                no(finalizers, "ContentHasNoFinalizers", message)
            } else {
                let list = listed(&self.finalizers, "in");
                let message =
                    format!("Some content in the namespace has finalizers remaining: {list}");
                (finalizers, true, "SomeFinalizersRemain", message)
            },
        ]
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn conditions_name_what_is_left_and_change_once() {
        let object = |finalizers: &[&str]| -> PartialObject {
            let metadata = json!({ "name": "a", "finalizers": finalizers });
            serde_json::from_value(json!({ "metadata": metadata })).unwrap()
        };
        let resource = |group: &str, plural: &str| ApiResource {
            group: group.to_owned(),
            version: "v1".to_owned(),
            api_version: String::new(),
            kind: String::new(),
            plural: plural.to_owned(),
        };
        let mut remaining = Remaining::default();
        remaining.add(&resource("", "secrets"), &[object(&["a.b/c"]), object(&["a.b/c", "d/e"])]);
        remaining.add(&resource("apps", "deployments"), &[object(&[])]);
        let (mut namespace, now) = (Namespace::default(), Timestamp::UNIX_EPOCH);
        assert!(remaining.report(&mut namespace, now));
        assert!(!remaining.report(&mut namespace, now + jiff::SignedDuration::from_secs(5)));
        let conditions = namespace.status.unwrap().conditions.unwrap();
        let messages: Vec<_> = conditions[3..].iter().map(|one| one.message.clone()).collect();
        assert_eq!(
            messages,
            [
                "Some resources are remaining: deployments.apps has 1 resource instances, \
                 secrets. has 2 resource instances",
                "Some content in the namespace has finalizers remaining: a.b/c in 2 resource \
                 instances, d/e in 1 resource instances",
            ]
            .map(|text| Some(text.to_owned()))
        );
    }
}
