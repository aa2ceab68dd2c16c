//! Checks of the capabilities that containers add and drop.

use std::collections::BTreeSet;

use serde_json::Value;

use super::Violation;
use super::pod::{PodView, named, sorted};

/// The capabilities that a baseline pod may add: those that container runtimes give by default.
const USUAL: [&str; 13] = [
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "MKNOD",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
];
/// The capability that a restricted pod may add.
const RESTRICTED: [&str; 1] = ["NET_BIND_SERVICE"];

pub(super) fn baseline(pod: PodView<'_>, _: i64) -> Option<Violation> {
    let detail = added_beyond(pod, &USUAL)?;
    Some(Violation { reason: "non-default capabilities", detail })
}

pub(super) fn restricted(pod: PodView<'_>, minor: i64) -> Option<Violation> {
    // A pod on Windows may not set them.
    if minor >= 25 && pod.runs_on_windows() {
        return None;
    }
    let keeps = |container: &Value| listed(container, "drop").all(|capability| capability != "ALL");
    let keeping = pod.names_of(keeps);
    let containers = named("container", &keeping);
    let detail = format!("{containers} must set securityContext.capabilities.drop=[\"ALL\"]");
    let dropped = (!keeping.is_empty()).then_some(detail);
    let details: Vec<String> = dropped.into_iter().chain(added_beyond(pod, &RESTRICTED)).collect();
    let detail = details.join("; ");
    (!details.is_empty()).then_some(Violation { reason: "unrestricted capabilities", detail })
}

/// Returns the description of the containers that add other capabilities.
fn added_beyond(pod: PodView<'_>, permitted: &[&str]) -> Option<String> {
    let mut added = BTreeSet::new();
    let bad = pod.names_of(|container| {
        let others = listed(container, "add").filter(|one| !permitted.contains(one));
        let others: Vec<&str> = others.collect();
        added.extend(&others);
        !others.is_empty()
    });
    let containers = named("container", &bad);
    let added = sorted(&added);
    let detail =
        format!("{containers} must not include {added} in securityContext.capabilities.add");
    (!bad.is_empty()).then_some(detail)
}

fn listed<'a>(container: &'a Value, list: &str) -> impl Iterator<Item = &'a str> {
    let list = container["securityContext"]["capabilities"][list].as_array();
    list.into_iter().flatten().filter_map(Value::as_str)
}
