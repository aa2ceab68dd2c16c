//! The health endpoints `/healthz`, `/livez` and `/readyz`.

use std::collections::BTreeSet;
use std::fmt::Write;

use Endpoints::{Each, Live, Ready};

use crate::request::params::Params;

/// The endpoints, by their names in paths.
pub(super) const ENDPOINTS: [&str; 3] = ["healthz", "livez", "readyz"];

/// The endpoints that have a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Endpoints {
    Each,
    /// All but `/readyz`.
    Live,
    /// `/readyz` alone.
    Ready,
}

/// The checks of kube-apiserver with its default flags, in its order, for clients that request one
/// by its name. Each passes as long as the server answers: what it checks is done at the start.
const CHECKS: [(&str, Endpoints); 37] = [
    ("ping", Each),
    ("log", Each),
    ("loopback-serving-certificate", Live),
    ("etcd", Each),
    ("etcd-readiness", Ready),
    ("informer-sync", Ready),
    ("poststarthook/start-apiserver-admission-initializer", Each),
    ("poststarthook/generic-apiserver-start-informers", Each),
    ("poststarthook/priority-and-fairness-config-consumer", Each),
    ("poststarthook/priority-and-fairness-filter", Each),
    ("poststarthook/storage-object-count-tracker-hook", Each),
    ("poststarthook/start-apiextensions-informers", Each),
    ("poststarthook/start-apiextensions-controllers", Each),
    ("poststarthook/crd-informer-synced", Each),
    ("poststarthook/start-system-namespaces-controller", Each),
    ("poststarthook/peer-endpoint-reconciler-controller", Each),
    ("poststarthook/start-cluster-authentication-info-controller", Each),
    ("poststarthook/start-kube-apiserver-identity-lease-controller", Each),
    ("poststarthook/start-kube-apiserver-identity-lease-garbage-collector", Each),
    ("poststarthook/storage-readiness", Each),
    ("poststarthook/start-legacy-token-tracking-controller", Each),
    ("poststarthook/start-service-ip-repair-controllers", Each),
    ("poststarthook/rbac/bootstrap-roles", Each),
    ("poststarthook/scheduling/bootstrap-system-priority-classes", Each),
    ("poststarthook/priority-and-fairness-config-producer", Each),
    ("poststarthook/bootstrap-controller", Each),
    ("poststarthook/start-kubernetes-service-cidr-controller", Each),
    ("poststarthook/start-kube-aggregator-informers", Each),
    ("poststarthook/apiservice-status-local-available-controller", Each),
    ("poststarthook/apiservice-status-remote-available-controller", Each),
    ("poststarthook/apiservice-registration-controller", Each),
    ("poststarthook/apiservice-discovery-controller", Each),
    ("poststarthook/kube-apiserver-autoregistration", Each),
    ("autoregister-completion", Each),
    ("poststarthook/apiservice-openapi-controller", Each),
    ("poststarthook/apiservice-openapiv3-controller", Each),
    ("shutdown", Ready),
];

/// Returns the names of the checks of an endpoint.
pub(super) fn checks(endpoint: &str) -> impl Iterator<Item = &'static str> {
    let other = if endpoint == "readyz" { Live } else { Ready };
    CHECKS.iter().filter(move |(_, endpoints)| *endpoints != other).map(|(name, _)| *name)
}

/// Returns true if the parts of a path below an endpoint name a check.
pub(super) fn is_check(endpoint: &str, parts: &[&str]) -> bool {
    checks(endpoint).any(|check| check.split('/').eq(parts.iter().copied()))
}

/// Returns the report on all checks of an endpoint: `ok`, or a line for each.
pub(super) fn report(endpoint: &str, params: &Params) -> String {
    if !params.is_present("verbose") {
        return "ok".to_owned();
    }
    let mut excluded: BTreeSet<&str> = params.all("exclude").into_iter().collect();
    let mut text = String::new();
    for check in checks(endpoint) {
        let how = if excluded.contains(check) { "excluded: ok" } else { "ok" };
        writeln!(text, "[+]{check} {how}").expect("writing to a String does not fail");
    }
    excluded.retain(|name| checks(endpoint).all(|check| check != *name));
    if !excluded.is_empty() {
        let names: Vec<String> = excluded.iter().map(|name| format!("\"{name}\"")).collect();
        let names = names.join(",");
        writeln!(text, "warn: some health checks cannot be excluded: no matches for {names}")
            .expect("writing to a String does not fail");
    }
    text + endpoint + " check passed\n"
}
