//! The warnings about the spec of a pod (`GetWarningsForPod`, `GetWarningsForPodTemplate`).

mod paths;
mod ports;

use std::collections::HashSet;

use serde_json::Value;

use super::annotations::APP_ARMOR;
use super::checks::pod_profiles::{SECCOMP_OF_CONTAINER, SECCOMP_OF_POD};
use super::checks::{items, member, pod_containers};
use super::{app_armor, network_warnings, storage_class};
use crate::fields::text;
use crate::quantity;

/// A pod or a template, and the warnings about it.
struct Pod<'a> {
    metadata: &'a Value,
    spec: &'a Value,
    /// The path to the metadata and the spec, with a point at its end; empty for a pod.
    prefix: &'a str,
    found: Vec<String>,
}

const NODE_LABELS: [(&str, &str); 8] = [
    ("beta.kubernetes.io/arch", "deprecated since v1.14; use \"kubernetes.io/arch\" instead"),
    ("beta.kubernetes.io/os", "deprecated since v1.14; use \"kubernetes.io/os\" instead"),
    (
        "failure-domain.beta.kubernetes.io/region",
        "deprecated since v1.17; use \"topology.kubernetes.io/region\" instead",
    ),
    (
        "failure-domain.beta.kubernetes.io/zone",
        "deprecated since v1.17; use \"topology.kubernetes.io/zone\" instead",
    ),
    (
        "beta.kubernetes.io/instance-type",
        "deprecated since v1.17; use \"node.kubernetes.io/instance-type\" instead",
    ),
    ("app.kubernetes.io/created-by", "deprecated since v1.9"),
    (
        "scheduler.alpha.kubernetes.io/preferAvoidPods",
        "deprecated since v1.22; use Taints and Tolerations instead",
    ),
    ("node-role.kubernetes.io/master", "use \"node-role.kubernetes.io/control-plane\" instead"),
];

const ANNOTATIONS: [(&str, &str); 3] = [
    (
        "scheduler.alpha.kubernetes.io/critical-pod",
        "non-functional in v1.16+; use the \"priorityClassName\" field instead",
    ),
    (
        "security.alpha.kubernetes.io/sysctls",
        "non-functional in v1.11+; use the \"sysctls\" field instead",
    ),
    (
        "security.alpha.kubernetes.io/unsafe-sysctls",
        "non-functional in v1.11+; use the \"sysctls\" field instead",
    ),
];

/// Sources of volumes that are deprecated: the member, its name in the warning, and the text.
const SOURCES: [(&str, &str, &str); 9] = [
    (
        "photonPersistentDisk",
        "photonPersistentDisk",
        "deprecated in v1.11, non-functional in v1.16+",
    ),
    ("gitRepo", "gitRepo", "deprecated in v1.11, and disabled by default in v1.33+"),
    ("scaleIO", "scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
    ("flocker", "flocker", "deprecated in v1.22, non-functional in v1.25+"),
    ("storageos", "storageOS", "deprecated in v1.22, non-functional in v1.25+"),
    ("quobyte", "quobyte", "deprecated in v1.22, non-functional in v1.25+"),
    ("glusterfs", "glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
    ("cephfs", "cephfs", "deprecated in v1.28, non-functional in v1.31+"),
    ("rbd", "rbd", "deprecated in v1.28, non-functional in v1.31+"),
];

const SECCOMP: &str = "non-functional in v1.27+; use the \"seccompProfile\" field instead";

/// Returns the warnings about a pod, or about a template at the path `prefix`, which ends with a
/// point.
pub(super) fn of_spec(metadata: &Value, spec: &Value, prefix: &str) -> Vec<String> {
    let mut pod = Pod { metadata, spec, prefix, found: Vec::new() };
    pod.check_nodes();
    pod.check_annotations();
    pod.check_volumes();
    pod.check_repeats();
    pod.check_amounts("spec.overhead", member(spec, "overhead"));
    pod.check_seccomp();
    pod.check_ports();
    pod.check_port_names();
    if member(spec, "terminationGracePeriodSeconds").as_i64().is_some_and(|seconds| seconds < 0) {
        let text = "must be >= 0; negative values are invalid and will be treated as 1";
        pod.add("spec.terminationGracePeriodSeconds", text);
    }
    pod.check_affinity("podAffinity");
    pod.check_affinity("podAntiAffinity");
    let addresses = network_warnings::pod_addresses(spec, &pod.spec_at());
    pod.found.extend(addresses);
    pod.found
}

/// Returns the warnings about a term of a node selector at a path.
pub(super) fn of_node_term(term: &Value, at: &str) -> Vec<String> {
    let expressions = items(member(term, "matchExpressions")).iter().enumerate();
    let deprecated = expressions.filter_map(|(place, expression)| {
        let key = text(expression, "key");
        let why = label_text(key)?;
        Some(format!("{at}.matchExpressions[{place}].key: {key} is {why}"))
    });
    deprecated.collect()
}

/// Returns the warnings about those of the sources that an object at a path has.
pub(super) fn of_sources<'a>(
    object: &Value,
    names: impl IntoIterator<Item = &'a str>,
    at: &str,
) -> Vec<String> {
    let given = names.into_iter().filter(|name| !member(object, name).is_null());
    let known = given.filter_map(|name| SOURCES.iter().find(|(known, ..)| *known == name));
    known.map(|(_, shown, why)| format!("{at}.{shown}: {why}")).collect()
}

/// Returns what replaces a deprecated label of nodes.
pub(super) fn label_text(label: &str) -> Option<&'static str> {
    NODE_LABELS.iter().find(|(known, _)| *known == label).map(|(_, text)| *text)
}

// === impl Pod ===

impl<'a> Pod<'a> {
    fn add(&mut self, at: &str, text: &str) {
        self.found.push(format!("{}{at}: {text}", self.prefix));
    }

    fn list(&self, name: &str) -> impl Iterator<Item = (usize, &'a Value)> + use<'a> {
        items(member(self.spec, name)).iter().enumerate()
    }

    /// Returns the path of the spec.
    fn spec_at(&self) -> String {
        format!("{}spec", self.prefix)
    }

    fn check_nodes(&mut self) {
        for label in
            member(self.spec, "nodeSelector").as_object().into_iter().flat_map(|m| m.keys())
        {
            if let Some(text) = label_text(label) {
                self.add(&format!("spec.nodeSelector[{label}]"), text);
            }
        }
        let nodes = member(member(self.spec, "affinity"), "nodeAffinity");
        let required = member(nodes, "requiredDuringSchedulingIgnoredDuringExecution");
        let at = format!("{}spec.affinity.nodeAffinity", self.prefix);
        for (place, term) in items(member(required, "nodeSelectorTerms")).iter().enumerate() {
            let at = format!(
                "{at}.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[{place}]"
            );
            self.found.extend(of_node_term(term, &at));
        }
        let preferred = member(nodes, "preferredDuringSchedulingIgnoredDuringExecution");
        for (place, term) in items(preferred).iter().enumerate() {
            let at =
                format!("{at}.preferredDuringSchedulingIgnoredDuringExecution[{place}].preference");
            self.found.extend(of_node_term(member(term, "preference"), &at));
        }
        for (place, spread) in self.list("topologySpreadConstraints") {
            let (at, key) =
                (format!("spec.topologySpreadConstraints[{place}]"), text(spread, "topologyKey"));
            if let Some(why) = label_text(key) {
                self.add(&format!("{at}.topologyKey"), &format!("{key} is {why}"));
            }
            self.check_selector(&at, spread);
        }
    }

    fn check_selector(&mut self, at: &str, term: &Value) {
        if member(term, "labelSelector").is_null() {
            let text = "a null labelSelector results in matching no pod";
            self.add(&format!("{at}.labelSelector"), text);
        }
    }

    fn check_affinity(&mut self, name: &str) {
        let terms = member(member(self.spec, "affinity"), name);
        let lists = [
            ("requiredDuringSchedulingIgnoredDuringExecution", ""),
            ("preferredDuringSchedulingIgnoredDuringExecution", "podAffinityTerm"),
        ];
        for (list, within) in lists {
            for (place, term) in items(member(terms, list)).iter().enumerate() {
                let at = format!("spec.affinity.{name}.{list}[{place}]");
                match within {
                    "" => self.check_selector(&at, term),
                    inner => self.check_selector(&format!("{at}.{inner}"), member(term, inner)),
                }
            }
        }
    }

    fn annotation(&self, key: &str) -> Option<&'a Value> {
        self.metadata.get("annotations")?.get(key)
    }

    fn check_annotations(&mut self) {
        for (key, text) in ANNOTATIONS {
            if self.annotation(key).is_some() {
                self.add(&format!("metadata.annotations[{key}]"), text);
            }
        }
    }

    fn check_volumes(&mut self) {
        let at = self.spec_at();
        for (place, volume) in self.list("volumes") {
            let all = SOURCES.iter().map(|(name, ..)| *name);
            let at = format!("{at}.volumes[{place}]");
            self.found.extend(of_sources(volume, all, &at));
            let claim = volume.pointer("/ephemeral/volumeClaimTemplate/spec").unwrap_or_default();
            let at = format!("{at}.ephemeral.volumeClaimTemplate.spec");
            self.found.extend(storage_class::claim_amounts(claim, &at));
        }
        self.found.extend(self.list("volumes").flat_map(|(_, volume)| paths::of_volume(volume)));
    }

    /// Checks host aliases and secrets that are listed twice.
    fn check_repeats(&mut self) {
        for (list, key) in [("hostAliases", "ip"), ("imagePullSecrets", "name")] {
            let mut known = HashSet::new();
            let mut repeated: Vec<_> = self.list(list).collect();
            repeated.retain(|(_, item)| !known.insert(text(item, key)));
            for (place, item) in repeated {
                let name = text(item, key);
                let at = format!("spec.{list}[{place}].{key}");
                self.add(&at, &format!("duplicate {key} \"{name}\""));
            }
        }
        for (place, _) in
            self.list("imagePullSecrets").filter(|(_, it)| text(it, "name").is_empty())
        {
            self.add(&format!("spec.imagePullSecrets[{place}].name"), "invalid empty name \"\"");
        }
    }

    /// Checks amounts of bytes at a path within the prefix.
    fn check_amounts(&mut self, at: &str, amounts: &Value) {
        for name in ["memory", "ephemeral-storage"] {
            let at = || format!("{}{at}[{name}]", self.prefix);
            self.found.extend(quantity::fraction_warning(amounts.get(name), at));
        }
    }

    /// Checks the profiles, amounts and variables of containers.
    fn check_seccomp(&mut self) {
        let context = member(self.spec, "securityContext");
        if member(context, "seccompProfile").is_null() && self.annotation(SECCOMP_OF_POD).is_some()
        {
            self.add(&format!("metadata.annotations[{SECCOMP_OF_POD}]"), SECCOMP);
        }
        let at = self.spec_at();
        for one in pod_containers::all(self.spec) {
            self.check_profiles(one.container);
            for (amounts, name) in [
                ("limits", "memory"),
                ("requests", "memory"),
                ("limits", "ephemeral-storage"),
                ("requests", "ephemeral-storage"),
            ] {
                let amount = member(member(one.container, "resources"), amounts).get(name);
                let at = || one.path(&at, &format!("resources.{amounts}[{name}]"));
                self.found.extend(quantity::fraction_warning(amount, at));
            }
            let at = || one.path(&at, "env");
            self.found.extend(hidden_variables(at, one.container));
        }
    }

    fn check_profiles(&mut self, container: &Value) {
        let (name, context) = (text(container, "name"), member(container, "securityContext"));
        let key = format!("{SECCOMP_OF_CONTAINER}{name}");
        if member(context, "seccompProfile").is_null() && self.annotation(&key).is_some() {
            self.add(&format!("metadata.annotations[{key}]"), SECCOMP);
        }
        let key = format!("{APP_ARMOR}{name}");
        // Those of a pod have become members of its containers, with a warning of their own.
        let is_template = !self.prefix.is_empty();
        // The annotation may say what the pod's member says.
        let of_pod = member(member(self.spec, "securityContext"), "appArmorProfile");
        let differs = |annotation: &Value| {
            let profile = annotation.as_str().and_then(app_armor::profile_of);
            of_pod.is_null() || profile.as_ref() != Some(of_pod)
        };
        if is_template
            && member(context, "appArmorProfile").is_null()
            && self.annotation(&key).is_some_and(differs)
        {
            self.add(&format!("metadata.annotations[{key}]"), app_armor::DEPRECATED);
        }
    }
}

/// Returns the warnings about variables that replace others of the same name, in a list at the path
/// that `at` returns.
fn hidden_variables(at: impl Fn() -> String, container: &Value) -> Vec<String> {
    let (mut known, mut found) = (HashSet::new(), Vec::new());
    for (place, variable) in items(member(container, "env")).iter().enumerate() {
        let (name, value) = (text(variable, "name"), text(variable, "value"));
        if known.insert(name) {
            continue;
        }
        // A value that extends the earlier one needs it.
        let earlier = format!("$({name})");
        let extends = value.contains(&earlier) && value != earlier;
        if !extends || !member(variable, "valueFrom").is_null() {
            found.push(format!(
                "{}[{place}]: hides previous definition of \"{name}\", which may be dropped \
                 when using apply",
                at()
            ));
        }
    }
    found
}
