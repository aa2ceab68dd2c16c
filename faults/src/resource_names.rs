//! The resource names that a fault rule may use.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

/// The resources of a server, or the built-in resources if the server is not known.
#[derive(Debug, Clone)]
pub(crate) struct ResourceNames {
    /// The other names of each resource, in lower case, by its plural.
    known: Arc<BTreeMap<String, Vec<String>>>,
    /// True if the server has no other resources.
    is_complete: bool,
}

/// The plural and the other names of each built-in resource.
const BUILT_IN: &[(&str, &[&str])] = &[
    ("configmaps", &["configmap", "cm"]),
    ("controllerrevisions", &["controllerrevision"]),
    ("cronjobs", &["cronjob", "cj"]),
    ("customresourcedefinitions", &["customresourcedefinition", "crd", "crds"]),
    ("daemonsets", &["daemonset", "ds"]),
    ("deployments", &["deployment", "deploy"]),
    ("deviceclasses", &["deviceclass"]),
    ("endpoints", &["endpoint", "ep"]),
    ("endpointslices", &["endpointslice"]),
    ("events", &["event", "ev"]),
    ("horizontalpodautoscalers", &["horizontalpodautoscaler", "hpa"]),
    ("ingresses", &["ingress", "ing"]),
    ("jobs", &["job"]),
    ("leases", &["lease"]),
    ("limitranges", &["limitrange", "limits"]),
    ("namespaces", &["namespace", "ns"]),
    ("networkpolicies", &["networkpolicy", "netpol"]),
    ("nodes", &["node", "no"]),
    ("persistentvolumeclaims", &["persistentvolumeclaim", "pvc"]),
    ("persistentvolumes", &["persistentvolume", "pv"]),
    ("poddisruptionbudgets", &["poddisruptionbudget", "pdb"]),
    ("pods", &["pod", "po"]),
    ("priorityclasses", &["priorityclass", "pc"]),
    ("replicasets", &["replicaset", "rs"]),
    ("replicationcontrollers", &["replicationcontroller", "rc"]),
    ("resourceclaims", &["resourceclaim"]),
    ("resourceclaimtemplates", &["resourceclaimtemplate"]),
    ("resourcequotas", &["resourcequota", "quota"]),
    ("resourceslices", &["resourceslice"]),
    ("secrets", &["secret"]),
    ("serviceaccounts", &["serviceaccount", "sa"]),
    ("services", &["service", "svc"]),
    ("statefulsets", &["statefulset", "sts"]),
];

// === impl ResourceNames ===

impl ResourceNames {
    /// Returns the built-in resources, for a server that may have others.
    pub(crate) fn built_in() -> Self {
        static NAMES: LazyLock<Arc<BTreeMap<String, Vec<String>>>> = LazyLock::new(|| {
            Arc::new(BUILT_IN.iter().map(|(plural, aliases)| entry(plural, aliases)).collect())
        });
        Self { known: Arc::clone(&NAMES), is_complete: false }
    }

    /// Returns the resources of a server that has no others.
    pub(crate) fn of_server<'a>(
        resources: impl IntoIterator<Item = (&'a str, Vec<&'a str>)>,
    ) -> Self {
        // Kinds of several groups may share a plural: the first one has its other names.
        let mut known = BTreeMap::new();
        for (plural, aliases) in resources {
            let (plural, aliases) = entry(plural, &aliases);
            known.entry(plural).or_insert(aliases);
        }
        Self { known: Arc::new(known), is_complete: true }
    }

    /// Adds a resource, unless its plural is known.
    pub(crate) fn add(&mut self, plural: &str, aliases: &[&str]) {
        if !self.known.contains_key(plural) {
            Arc::make_mut(&mut self.known).extend([entry(plural, aliases)]);
        }
    }

    /// Checks that `resource` is the plural name of a resource, or a path.
    ///
    /// # Errors
    ///
    /// Returns a message that says which name to use instead.
    pub(crate) fn check(&self, resource: &str) -> Result<(), String> {
        // Requests for no resource are selected by their path.
        if resource.starts_with('/') || self.known.contains_key(resource) {
            return Ok(());
        }
        if let Some((resource, subresource)) = resource.split_once('/') {
            return Err(format!(
                "resource \"{resource}/{subresource}\" contains a subresource: use \
                 \"{resource}\" with .subresource(\"{subresource}\")"
            ));
        }
        let lower = resource.to_lowercase();
        let is_named = |(plural, aliases): &(&String, &Vec<String>)| {
            **plural == lower || aliases.contains(&lower)
        };
        if let Some((plural, _)) = self.known.iter().find(is_named) {
            return Err(format!("no resource \"{resource}\": use the plural \"{plural}\""));
        }
        let is_name = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        if resource.is_empty() || !resource.bytes().all(is_name) {
            return Err(format!(
                "\"{resource}\" is not a resource name: use a lower-case plural such as \"pods\", \
                 or Calls::any() or Calls::watches() for every resource"
            ));
        }
        if self.is_complete {
            return Err(format!(
                "the server has no resource \"{resource}\": use a lower-case plural such as \
                 \"pods\", or add the kind with ApiServer::builder().kind(…)"
            ));
        }
        Ok(())
    }
}

fn entry(plural: &str, aliases: &[&str]) -> (String, Vec<String>) {
    (plural.to_owned(), aliases.iter().map(|alias| alias.to_lowercase()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server() -> ResourceNames {
        ResourceNames::of_server(
            BUILT_IN.iter().map(|(plural, aliases)| (*plural, aliases.to_vec())),
        )
    }

    fn error(names: &ResourceNames, resource: &str) -> String {
        names.check(resource).unwrap_err()
    }

    #[test]
    fn other_names_of_a_resource_are_refused_with_the_plural() {
        for names in [ResourceNames::built_in(), server()] {
            for alias in ["configmap", "ConfigMap", "cm", "ConfigMaps"] {
                let message = format!("no resource \"{alias}\": use the plural \"configmaps\"");
                assert_eq!(error(&names, alias), message);
            }
            assert_eq!(
                error(&names, "pods/status"),
                "resource \"pods/status\" contains a subresource: use \"pods\" with \
                 .subresource(\"status\")"
            );
            assert!(error(&names, "*").contains("is not a resource name"));
            assert!(error(&names, "").contains("is not a resource name"));
            for known in ["configmaps", "replicasets", "events", "/version"] {
                names.check(known).unwrap();
            }
        }
    }

    #[test]
    fn unknown_plural_is_refused_only_if_the_server_is_known() {
        ResourceNames::built_in().check("foos").unwrap();
        assert!(error(&server(), "foos").starts_with("the server has no resource \"foos\""));
    }
}
