//! Admission by pod security: pods that the labels of their namespace do not permit are refused,
//! and templates of such pods get a warning (the plugin `PodSecurity` of kube-apiserver).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use super::write::Write;
use crate::admission::meta_text;
use crate::core::Core;
use crate::fields::{Fields, read_path, string_map, text};
use crate::kinds::{Secured, Served};
use crate::metrics::{Counter, Label};
use crate::pod_security::{
    Level, LevelVersion, PodView, Policy, Violation, details, evaluate, reasons,
};
use crate::request::ApiCall;
use crate::status::{Failure, Result};

/// The subresources of a pod that are not checked. The others may change its containers.
const IGNORED: [&str; 3] = ["binding", "eviction", "status"];

/// The most pods of a namespace that a change of its label checks.
const MAX_PODS: usize = 3000;

/// Counts the evaluations of one write.
struct Count<'a> {
    call: &'a ApiCall,
    operation: &'static str,
    resource: &'static str,
}

// === impl Count ===

impl Count<'_> {
    /// Returns the labels at the end of each counter.
    fn write(&self) -> [Label; 3] {
        let subresource = self.call.target.info.subresource.clone();
        let subresource = subresource.map_or(Label::Borrowed(""), Label::Owned);
        [self.operation.into(), self.resource.into(), subresource]
    }

    fn evaluation(&self, is_allowed: bool, mode: &'static str, policy: LevelVersion) {
        let [operation, resource, subresource] = self.write();
        let decision = if is_allowed { "allow" } else { "deny" };
        let (level, version) = (policy.level_name().into(), policy.counted_version());
        let labels =
            [decision.into(), mode.into(), level, version, operation, resource, subresource];
        self.call.conversation.count(Counter::SecurityEvaluations, &labels);
    }

    /// Counts a pod that has not the level of audits.
    fn audit(&self, policy: LevelVersion, pod: PodView<'_>) {
        if !evaluate(policy, pod).is_empty() {
            self.evaluation(false, "audit", policy);
        }
    }

    fn error(&self, is_fatal: bool) {
        let [operation, resource, subresource] = self.write();
        let fatal = if is_fatal { "true" } else { "false" };
        let labels = [fatal.into(), operation, resource, subresource];
        self.call.conversation.count(Counter::SecurityErrors, &labels);
    }
}

/// Checks a write.
pub(super) fn check(core: &Core, call: &ApiCall, write: Write<'_>) -> Result<()> {
    let served = &call.target.served;
    let Some(secured) = served.home.secured else { return Ok(()) };
    let subresource = call.target.info.subresource.as_deref();
    match secured {
        Secured::Pod if !subresource.is_some_and(|name| IGNORED.contains(&name)) => {
            check_pod(core, call, write)
        }
        Secured::Template(path) if subresource.is_none() => {
            check_template(core, call, write, path);
            Ok(())
        }
        Secured::Namespace if subresource.is_none() => check_namespace(core, call, write),
        _ => Ok(()),
    }
}

fn check_pod(core: &Core, call: &ApiCall, Write { new, old, name }: Write<'_>) -> Result<()> {
    let served = &call.target.served;
    let count = Count { call, operation: operation(old), resource: "pod" };
    let Some((policy, is_valid)) = policy_of(core, call.namespace()) else {
        count.error(true);
        let namespace = call.namespace();
        let detail = format!("failed to lookup namespace \"{namespace}\"");
        return Err(Failure::internal_error(&detail));
    };
    let Policy { enforce, audit, warn: warned } = policy;
    if is_valid && [enforce, audit, warned].iter().all(|one| one.level == Level::Privileged) {
        count.evaluation(true, "enforce", enforce);
        return Ok(());
    }
    let Some(pod) = view(new) else { return Ok(()) };
    if old.and_then(view).is_some_and(|old| !changes_containers(pod, old)) {
        return Ok(());
    }
    if !is_valid {
        count.error(false);
    }
    let violations = evaluate(enforce, pod);
    count.evaluation(violations.is_empty(), "enforce", enforce);
    count.audit(audit, pod);
    if !violations.is_empty() {
        let detail = format!("violates PodSecurity \"{enforce}\": {}", details(&violations));
        return Err(Failure::forbidden(&served.kind, name, &detail));
    }
    warn(&count, warned, pod);
    Ok(())
}

fn check_template(core: &Core, call: &ApiCall, write: Write<'_>, path: &str) {
    let count = Count { call, operation: operation(write.old), resource: "controller" };
    let Some((Policy { audit, warn: warned, .. }, is_valid)) = policy_of(core, call.namespace())
    else {
        count.error(true);
        return;
    };
    if is_valid && [audit, warned].iter().all(|one| one.level == Level::Privileged) {
        return;
    }
    let template = read_path(write.new, path).filter(|template| template.is_object());
    let Some(template) = template else { return };
    if !is_valid {
        count.error(false);
    }
    let pod = PodView { metadata: &template["metadata"], spec: &template["spec"] };
    count.audit(audit, pod);
    warn(&count, warned, pod);
}

/// Adds a warning if a pod has not the level of warnings.
fn warn(count: &Count<'_>, policy: LevelVersion, pod: PodView<'_>) {
    let violations = evaluate(policy, pod);
    if !violations.is_empty() {
        count.evaluation(false, "warn", policy);
        let list = details(&violations);
        count.call.warnings.add(format!("would violate PodSecurity \"{policy}\": {list}"));
    }
}

/// Checks the labels of a namespace, and warns about the pods that a stricter one would refuse.
fn check_namespace(core: &Core, call: &ApiCall, Write { new, old, name }: Write<'_>) -> Result<()> {
    let (policy, causes) = Policy::read(&labels(new));
    let (before, known) = old.map(|old| Policy::read(&labels(old))).unzip();
    if !causes.is_empty() && known.is_none_or(|known| known != causes) {
        return Err(Failure::invalid(&call.target.served.kind, name, &causes));
    }
    let Some(before) = before else { return Ok(()) };
    let enforce = policy.enforce;
    let is_relaxed = enforce.level == Level::Privileged
        || enforce.version == before.enforce.version && enforce.level <= before.enforce.level;
    if !is_relaxed {
        call.warnings.extend(warnings_about_pods(core, name, enforce));
    }
    Ok(())
}

/// Returns the warnings about the pods of a namespace that do not have a level. Pods with equal
/// violations share one.
fn warnings_about_pods(core: &Core, namespace: &str, enforce: LevelVersion) -> Vec<String> {
    let Some(kind) = core.kinds().find("", "v1", "pods") else { return Vec::new() };
    let pods = prioritized(pods_of(core, &kind, namespace));
    let mut warnings = Vec::new();
    if pods.len() > MAX_PODS {
        let all = pods.len();
        warnings.push(format!(
            "new PodSecurity enforce level only checked against the first {MAX_PODS} of {all} \
             existing pods"
        ));
    }
    // The first name and the number of the pods for each text.
    let mut groups = BTreeMap::<String, (&str, usize)>::new();
    for pod in pods.iter().take(MAX_PODS) {
        let violations: Vec<Violation> =
            view(pod).map(|pod| evaluate(enforce, pod)).unwrap_or_default();
        if !violations.is_empty() {
            let name = meta_text(pod, "name");
            let (first, count) = groups.entry(reasons(&violations)).or_insert((name, 0));
            *first = (*first).min(name);
            *count += 1;
        }
    }
    if !groups.is_empty() {
        warnings.push(format!(
            "existing pods in namespace \"{namespace}\" violate the new PodSecurity enforce level \
             \"{enforce}\""
        ));
    }
    let mut each: Vec<String> = groups.iter().map(group_warning).collect();
    each.sort();
    warnings.extend(each);
    warnings
}

fn group_warning((reasons, (name, count)): (&String, &(&str, usize))) -> String {
    match count {
        1 => format!("{name}: {reasons}"),
        2 => format!("{name} (and 1 other pod): {reasons}"),
        more => format!("{name} (and {} other pods): {reasons}", more - 1),
    }
}

fn pods_of(core: &Core, kind: &Served, namespace: &str) -> Vec<Fields> {
    let all = core.read(|storage| storage.objects(kind.resource).clone());
    let prefix = format!("{namespace}/");
    let from: Arc<str> = prefix.as_str().into();
    let own = all.range(from..).take_while(|(key, _)| key.starts_with(&prefix));
    own.map(|(_, pod)| pod.fields()).collect()
}

/// Moves further pods of one controller behind all others: they are most likely alike.
fn prioritized(pods: Vec<Fields>) -> Vec<Fields> {
    let mut seen = BTreeSet::new();
    let (mut first, further): (Vec<_>, Vec<_>) =
        pods.into_iter().partition(|pod| controller(pod).is_none_or(|uid| seen.insert(uid)));
    first.extend(further);
    first
}

/// Returns the uid of the controller of a pod.
fn controller(pod: &Fields) -> Option<String> {
    let owners = read_path(pod, "metadata.ownerReferences")?.as_array()?;
    let controller = owners.iter().find(|owner| owner["controller"] == true)?;
    Some(text(controller, "uid").to_owned())
}

/// Returns the policy of a namespace, and true if its labels are valid; `None` if it is missing.
fn policy_of(core: &Core, namespace: &str) -> Option<(Policy, bool)> {
    let stored = core.get(core.kinds().namespaces().resource, namespace)?;
    let (policy, causes) = Policy::read(&stored.selectable.labels);
    Some((policy, causes.is_empty()))
}

fn operation(old: Option<&Fields>) -> &'static str {
    if old.is_some() { "update" } else { "create" }
}

fn labels(namespace: &Fields) -> BTreeMap<String, String> {
    let labels = read_path(namespace, "metadata.labels").and_then(Value::as_object);
    labels.map(string_map).unwrap_or_default()
}

fn view(pod: &Fields) -> Option<PodView<'_>> {
    Some(PodView { metadata: pod.get("metadata")?, spec: pod.get("spec")? })
}

/// Returns true if an update of a pod has to be checked: it adds containers, or changes images.
fn changes_containers(new: PodView<'_>, old: PodView<'_>) -> bool {
    let image = |container: &Value| text(container, "image").to_owned();
    let images = |pod: PodView<'_>, list: &str| -> Vec<String> {
        pod.spec[list].as_array().into_iter().flatten().map(image).collect()
    };
    let is_changed = |list| images(new, list) != images(old, list);
    if ["containers", "initContainers"].into_iter().any(is_changed) {
        return true;
    }
    let ephemeral =
        |pod: PodView<'_>| pod.spec["ephemeralContainers"].as_array().cloned().unwrap_or_default();
    let before = ephemeral(old);
    ephemeral(new).iter().any(|one| {
        let known = before.iter().find(|known| text(known, "name") == text(one, "name"));
        known.is_none_or(|known| image(known) != image(one))
    })
}
