//! Compares the permissions that a controller requested with those of its roles.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use homeostat_faults::RequestInfo;
use http::Request;
use kube_client::Client;
use kube_client::client::Body;
use parking_lot::Mutex;
use tower::Layer;
use tower::util::MapRequestLayer;

/// A verb on a resource of a group. A role may have `*` for each of them.
///
/// Its text is the verb and the resource, with the group behind it:
/// `update replicasets/status.apps`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Permission {
    group: String,
    /// With its subresource: `pods/status`.
    resource: String,
    verb: String,
}

/// Records the permissions that the requests of a client need, and compares them with roles.
///
/// Clones share the record. Requests for no resource, such as `/version`, need none.
///
/// # Examples
///
/// ```
/// use homeostat_testing::{RequestedPermissions, Simulation, in_virtual_time};
/// use k8s_openapi::api::core::v1::Pod;
/// use kube_client::Api;
///
/// let roles = "rules:\n- apiGroups: ['']\n  resources: [pods]\n  verbs: [get, list]\n";
/// let compared = in_virtual_time(async {
///     let simulation = Simulation::start(7);
///     let requested = RequestedPermissions::default();
///     let client = requested.client(simulation.client_as("controller"));
///     let _: Option<Pod> = Api::default_namespaced(client).get_opt("web").await?;
///     Ok::<_, kube_client::Error>(requested.compare(&[roles], &[]))
/// })?;
/// assert_eq!(compared.unwrap_err().to_string(), "granted and not requested: [\"list pods\"]");
/// # Ok::<_, kube_client::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct RequestedPermissions {
    permissions: Arc<Mutex<BTreeSet<Permission>>>,
}

/// The difference between the permissions that were requested and those of the roles.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RolesDiffer {
    /// The roles do not grant some requests.
    #[error("requested and not granted: {permissions:?}")]
    #[non_exhaustive]
    NotGranted {
        /// The permissions, as text.
        permissions: Vec<String>,
    },
    /// The roles grant more than was requested.
    #[error("granted and not requested: {permissions:?}")]
    #[non_exhaustive]
    NotRequested {
        /// The permissions, as text.
        permissions: Vec<String>,
    },
    /// The roles do not grant permissions that the caller names as spare.
    #[error("spare and not granted: {permissions:?}")]
    #[non_exhaustive]
    SpareNotGranted {
        /// The permissions, as text.
        permissions: Vec<String>,
    },
}

/// A rule of a role.
#[derive(Default)]
struct Rule {
    groups: Vec<String>,
    resources: Vec<String>,
    verbs: Vec<String>,
}

// === impl Rule ===

impl Rule {
    fn permissions(&self) -> Vec<Permission> {
        let mut permissions = Vec::new();
        for verb in &self.verbs {
            for group in &self.groups {
                let of_group = self.resources.iter().map(|it| Permission::new(verb, group, it));
                permissions.extend(of_group);
            }
        }
        permissions
    }
}

// === impl Permission ===

impl Permission {
    fn new(verb: &str, group: &str, resource: &str) -> Self {
        let [verb, group, resource] = [verb, group, resource].map(str::to_owned);
        Self { group, resource, verb }
    }

    /// Returns true if this permission of a role admits `requested`.
    fn admits(&self, requested: &Self) -> bool {
        let fits = |granted: &str, requested: &str| granted == "*" || granted == requested;
        // `*/scale` is the subresource of each resource.
        let of_any = self.resource.strip_prefix("*/");
        let subresource = requested.resource.split_once('/').map(|(_, subresource)| subresource);
        fits(&self.group, &requested.group)
            && (fits(&self.resource, &requested.resource)
                || of_any.is_some_and(|of_any| subresource == Some(of_any)))
            && fits(&self.verb, &requested.verb)
    }
}

impl fmt::Display for Permission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.verb, self.resource)?;
        if self.group.is_empty() { Ok(()) } else { write!(f, ".{}", self.group) }
    }
}

// === impl RequestedPermissions ===

impl RequestedPermissions {
    /// Returns a client that sends through `client` and records the permissions.
    ///
    /// # Panics
    ///
    /// Panics outside of a tokio runtime.
    pub fn client(&self, client: Client) -> Client {
        let namespace = client.default_namespace().to_owned();
        let service = tower::service_fn(move |request: Request<Body>| {
            let client = client.clone();
            async move { client.send(request).await }
        });
        Client::new(self.layer().layer(service), namespace)
    }

    /// Returns a layer of a client that records the permission of each request.
    pub fn layer(
        &self,
    ) -> MapRequestLayer<impl Fn(Request<Body>) -> Request<Body> + Clone + Send + Sync + use<>>
    {
        let permissions = Arc::clone(&self.permissions);
        MapRequestLayer::new(move |request: Request<Body>| {
            let uri = request.uri();
            let query = uri.query().unwrap_or_default();
            let info = RequestInfo::parse(request.method(), uri.path(), query);
            if info.is_for_resource() {
                let (verb, resource) = (info.verb.to_string(), info.rbac_resource());
                permissions.lock().insert(Permission::new(&verb, &info.group, &resource));
            }
            request
        })
    }

    /// Compares the requests with the rules in `manifests`, which are YAML: each request is
    /// granted, and each permission was requested, apart from `spare`, in the form
    /// `update replicasets/status.apps`. The `resourceNames` of a rule are not compared.
    ///
    /// # Errors
    ///
    /// Names the permissions that differ.
    pub fn compare(&self, manifests: &[&str], spare: &[&str]) -> Result<(), RolesDiffer> {
        let requested = self.permissions.lock().clone();
        let granted: BTreeSet<_> = manifests.iter().flat_map(|it| permissions_of(it)).collect();
        let beyond =
            requested.iter().filter(|it| !granted.iter().any(|granted| granted.admits(it)));
        let permissions = texts(beyond);
        if !permissions.is_empty() {
            return Err(RolesDiffer::NotGranted { permissions });
        }
        let names = texts(granted.iter());
        let stale = spare.iter().filter(|it| !names.iter().any(|name| name == *it));
        let permissions: Vec<_> = stale.map(|it| (*it).to_owned()).collect();
        if !permissions.is_empty() {
            return Err(RolesDiffer::SpareNotGranted { permissions });
        }
        let unused = granted.iter().filter(|it| !requested.iter().any(|asked| it.admits(asked)));
        let mut permissions = texts(unused);
        permissions.retain(|it| !spare.contains(&it.as_str()));
        if permissions.is_empty() { Ok(()) } else { Err(RolesDiffer::NotRequested { permissions }) }
    }
}

fn texts<'a>(permissions: impl Iterator<Item = &'a Permission>) -> Vec<String> {
    permissions.map(ToString::to_string).collect()
}

/// Returns the permissions of the rules in `manifests`. A list is in brackets, or has one line for
/// each item.
fn permissions_of(manifests: &str) -> BTreeSet<Permission> {
    let (mut rule, mut permissions) = (Rule::default(), BTreeSet::new());
    let mut lines = manifests.lines().map(without_comment).peekable();
    while let Some(line) = lines.next() {
        let item = line.strip_prefix('-').filter(|rest| rest.is_empty() || rest.starts_with(' '));
        if item.is_some() && !is_item(line) {
            permissions.extend(std::mem::take(&mut rule).permissions());
        }
        let line = item.unwrap_or(line).trim_start();
        let mut list = |name: &str| -> Option<Vec<String>> {
            let rest = line.strip_prefix(name)?.trim();
            if let Some(list) = rest.strip_prefix('[') {
                return Some(items_in_brackets(list, &mut lines));
            }
            let mut items = Vec::new();
            while let Some(item) = lines.next_if(|line| is_item(line)) {
                items.push(plain(item.trim_start_matches("- ")));
            }
            Some(items)
        };
        rule.groups.extend(list("apiGroups:").unwrap_or_default());
        rule.resources.extend(list("resources:").unwrap_or_default());
        rule.verbs.extend(list("verbs:").unwrap_or_default());
    }
    permissions.extend(rule.permissions());
    permissions
}

/// Returns the items of a list that begins with `first`, behind its bracket, and may go on in the
/// next lines.
fn items_in_brackets<'a>(first: &str, lines: &mut impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut list = first.to_owned();
    while !list.ends_with(']')
        && let Some(line) = lines.next()
    {
        list += line;
    }
    // A comma may end the list.
    let items = list.trim_end_matches(']').split(',').filter(|item| !item.trim().is_empty());
    items.map(plain).collect()
}

/// Returns a line of YAML without its comment and the spaces around it.
fn without_comment(line: &str) -> &str {
    let line = line.trim();
    if line.starts_with('#') {
        return "";
    }
    line.split_once(" #").map_or(line, |(line, _)| line.trim_end())
}

/// Returns true for an item of a list, which has no key.
fn is_item(line: &str) -> bool {
    line.starts_with("- ") && !line.contains(": ") && !line.ends_with(':')
}

/// Returns a scalar of YAML without its quotes.
fn plain(scalar: &str) -> String {
    scalar.trim().trim_matches(['"', '\'']).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROLE: &str = "rules:\n  - apiGroups: [\"apps\"]\n    resources: [\"replicasets\"]\n    \
                        verbs: [\"get\", \"list\"]\n  - apiGroups: [\"\"]\n    \
                        resources: [\"pods/status\"]\n    verbs: [\"patch\"]\n";

    fn requested(all: &[(&str, &str, &str)]) -> RequestedPermissions {
        let requested = RequestedPermissions::default();
        let all = all.iter().map(|(verb, group, resource)| Permission::new(verb, group, resource));
        requested.permissions.lock().extend(all);
        requested
    }

    #[test]
    fn difference_between_requests_and_roles_is_named() {
        let some = [("get", "apps", "replicasets"), ("patch", "", "pods/status")];
        let error = requested(&some).compare(&[ROLE], &[]).unwrap_err();
        assert_eq!(error.to_string(), "granted and not requested: [\"list replicasets.apps\"]");
        requested(&some).compare(&[ROLE], &["list replicasets.apps"]).unwrap();
        let more = [&some[..], &[("delete", "", "pods")]].concat();
        let error = requested(&more).compare(&[ROLE], &[]).unwrap_err();
        assert_eq!(error.to_string(), "requested and not granted: [\"delete pods\"]");
        let error = requested(&some).compare(&[ROLE], &["get pods"]).unwrap_err();
        assert_eq!(error.to_string(), "spare and not granted: [\"get pods\"]");
    }

    #[test]
    fn star_admits_each_resource() {
        let role = "- apiGroups: [\"*\"]\n  resources: [\"*\"]\n  verbs: [\"list\"]\n";
        requested(&[("list", "apps", "replicasets")]).compare(&[role], &[]).unwrap();
        requested(&[("get", "apps", "replicasets")]).compare(&[role], &[]).unwrap_err();
    }

    #[test]
    fn rule_has_nothing_of_the_rule_before_it() {
        let texts = |role| texts(permissions_of(role).iter());
        let role = "rules:\n- apiGroups: ['']\n  resources: [pods]\n  verbs: [list]\n\
                    - nonResourceURLs:\n  - /metrics\n  verbs: [get]\n";
        assert_eq!(texts(role), ["list pods"]);
        let role = "rules:\n- verbs: [get]\n  apiGroups: [apps]\n  resources: [replicasets]\n\
                    - resources: [pods]\n  apiGroups: ['']\n  resourceNames:\n  - web\n  \
                    verbs: [patch]\n";
        assert_eq!(texts(role), ["patch pods", "get replicasets.apps"]);
    }

    #[test]
    fn role_is_read_as_yaml_writes_it() {
        let texts = |role| texts(permissions_of(role).iter());
        let role = "rules:\n# Pods.\n-   apiGroups: [''] # core\n    resources:\n    \
                    - pods # all\n    verbs: [get,\n      list,\n    ]\n";
        assert_eq!(texts(role), ["get pods", "list pods"]);
        let role = "rules:\n-\n  apiGroups: [apps]\n  resources: [replicasets]\n  \
                    verbs: [get]\n-\n  apiGroups: ['']\n  resources: [nodes]\n  \
                    resourceNames:\n  - system:a\n  verbs: [list]\n";
        assert_eq!(texts(role), ["list nodes", "get replicasets.apps"]);
    }

    #[test]
    fn subresource_may_be_that_of_each_resource() {
        let role = "- apiGroups: [apps]\n  resources: [\"*/scale\"]\n  verbs: [update]\n";
        requested(&[("update", "apps", "deployments/scale")]).compare(&[role], &[]).unwrap();
        for resource in ["deployments", "deployments/status", "scale"] {
            requested(&[("update", "apps", resource)]).compare(&[role], &[]).unwrap_err();
        }
    }

    #[test]
    fn list_may_have_one_item_per_line() {
        let role = "rules:\n- apiGroups:\n  - \"\"\n  resources:\n  - pods\n  - 'pods/status'\n  \
                    verbs:\n  - list\n  - get\n- apiGroups: [apps]\n  resources: [replicasets]\n  \
                    verbs: [get]\n";
        let permissions: Vec<_> = permissions_of(role).iter().map(ToString::to_string).collect();
        let expected = ["get pods", "list pods", "get pods/status", "list pods/status"];
        assert_eq!(permissions[..4], expected);
        assert_eq!(permissions[4..], ["get replicasets.apps"]);
    }
}
