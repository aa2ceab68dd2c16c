//! A simulated aggregation controller for roles: the rules of a `ClusterRole` with an aggregation
//! rule are those of the roles that it selects.

use std::collections::BTreeMap;

use futures::FutureExt as _;
use homeostat_core::LabelSelector;
use k8s_openapi::api::rbac::v1::{ClusterRole, PolicyRule};
use k8s_openapi::apimachinery::pkg::apis::meta::v1 as meta;
use kube_client::{Api, Client, Result};
use kube_core::params::{Patch, PatchParams};
use serde_json::json;
use tokio::time::Instant;

use super::actor::{Actor, Next, Role};
use super::feed::{Change, feed};
use super::watch::Part;
use super::with_timeout;
use super::work_queue::WorkQueue;

/// The field manager of the controller of kube-controller-manager.
const MANAGER: &str = "clusterrole-aggregation-controller";

/// A stand-in for the controller of kube-controller-manager that aggregates roles. Dropping it
/// stops it.
///
/// It gives each `ClusterRole` with an `aggregationRule` the rules of the roles whose labels the
/// rule selects, and keeps them current. The roles `admin`, `edit` and `view` of a new cluster are
/// such roles: without this controller they give no rights.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> kube_client::Result<()> {
/// use homeostat_apiserver::ApiServer;
/// use homeostat_apiserver::cluster::RoleAggregator;
/// use k8s_openapi::api::rbac::v1::ClusterRole;
/// use kube_client::Api;
///
/// let server = ApiServer::builder().seed(1).authorization().build();
/// let _aggregator = RoleAggregator::start(server.client_as("role-aggregator"));
/// tokio::time::sleep(std::time::Duration::from_secs(1)).await;
/// let view = Api::<ClusterRole>::all(server.client()).get("view").await?;
/// assert!(view.rules.is_some_and(|rules| !rules.is_empty()));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "dropping the handle stops the controller"]
pub struct RoleAggregator {
    actor: Actor,
}

/// The role of the actor.
struct Aggregator {
    client: Client,
    /// All roles of the cluster, by name.
    roles: BTreeMap<String, ClusterRole>,
}

// === impl RoleAggregator ===

impl RoleAggregator {
    /// Starts the controller.
    ///
    /// # Panics
    ///
    /// Panics outside a tokio runtime.
    pub fn start(client: Client) -> Self {
        let changes = feed(Api::<ClusterRole>::all(client.clone()), Part::Whole);
        let aggregator = Aggregator { client, roles: BTreeMap::new() };
        Self { actor: Actor::start(aggregator, WorkQueue::new(), changes) }
    }

    /// Stops the controller and waits for its end. Its requests in flight are dropped.
    ///
    /// # Panics
    ///
    /// Panics if its task has panicked.
    ///
    /// # Cancel safety
    ///
    /// The controller stops even if the future is dropped.
    pub async fn stop(self) {
        self.actor.stop().await;
    }
}

// === impl Aggregator ===

impl Role for Aggregator {
    type Key = String;
    type Change = Change<ClusterRole>;
    type Answer = ();

    fn observe(&mut self, change: Change<ClusterRole>, work: &mut WorkQueue<String>) {
        let named = |role: ClusterRole| Some((role.metadata.name.clone()?, role));
        match change {
            Change::Listed(roles) => self.roles = roles.into_iter().filter_map(named).collect(),
            Change::Applied(role) => self.roles.extend(named(*role)),
            Change::Deleted(role) => {
                self.roles.remove(role.metadata.name.as_deref().unwrap_or_default());
            }
        }
        // Any role may select the changed one.
        let aggregated = self.roles.iter().filter(|(_, role)| role.aggregation_rule.is_some());
        aggregated.for_each(|(name, _)| work.add(name.clone()));
    }

    fn next(&mut self, name: &String, _: Instant) -> Next<()> {
        let Some(role) = self.roles.get(name) else { return Next::Nothing };
        let rules = aggregate(name, role, &self.roles);
        if rules.as_slice() == role.rules.as_deref().unwrap_or_default() {
            return Next::Nothing;
        }
        Next::Request(apply(self.client.clone(), name.clone(), rules).boxed())
    }

    fn end(&mut self, _: &String, result: Result<()>, _: &mut WorkQueue<String>) -> bool {
        result.is_ok()
    }
}

/// Returns the rules of the roles that `role` selects: in the order of its selectors, then by name,
/// each rule once.
fn aggregate(
    name: &str,
    role: &ClusterRole,
    all: &BTreeMap<String, ClusterRole>,
) -> Vec<PolicyRule> {
    let selectors = role.aggregation_rule.iter().flat_map(|rule| &rule.cluster_role_selectors);
    let mut rules: Vec<PolicyRule> = Vec::new();
    for selector in selectors.flatten().filter_map(parse) {
        let others = all.iter().filter(|(other, _)| *other != name).map(|(_, other)| other);
        let no_labels = BTreeMap::new();
        let selected = others
            .filter(|other| selector.matches(other.metadata.labels.as_ref().unwrap_or(&no_labels)));
        for rule in selected.flat_map(|other| other.rules.iter().flatten()) {
            if !rules.contains(rule) {
                rules.push(rule.clone());
            }
        }
    }
    rules
}

/// Parses a selector; `None` if it is invalid.
fn parse(selector: &meta::LabelSelector) -> Option<LabelSelector> {
    let mut parsed = LabelSelector::default();
    for (key, value) in selector.match_labels.iter().flatten() {
        parsed = parsed.with_label(key, value).ok()?;
    }
    for expression in selector.match_expressions.iter().flatten() {
        let values: Vec<&str> = expression.values.iter().flatten().map(String::as_str).collect();
        parsed = parsed.with_expression(&expression.key, &expression.operator, &values).ok()?;
    }
    Some(parsed)
}

async fn apply(client: Client, name: String, rules: Vec<PolicyRule>) -> Result<()> {
    let api = Api::<ClusterRole>::all(client);
    let patch = Patch::Apply(json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": { "name": name },
        "rules": rules,
    }));
    let params = PatchParams::apply(MANAGER).force();
    with_timeout(api.patch(&name, &params, &patch)).await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn role(name: &str, label: &str, verb: &str) -> (String, ClusterRole) {
        let role = json!({
            "metadata": { "name": name, "labels": { label: "true" } },
            "rules": [
                { "apiGroups": [""], "resources": ["pods"], "verbs": ["get"] },
                { "apiGroups": [""], "resources": ["pods"], "verbs": [verb] },
            ],
        });
        (name.to_owned(), serde_json::from_value(role).expect("a role"))
    }

    #[test]
    fn rules_are_those_of_the_selected_roles_once() {
        let selected = [role("b", "x", "list"), role("a", "x", "watch"), role("c", "y", "update")];
        let selected: BTreeMap<String, ClusterRole> = selected.into();
        let aggregated = json!({
            "metadata": { "name": "all", "labels": { "x": "true" } },
            "aggregationRule": { "clusterRoleSelectors": [
                { "matchLabels": { "x": "true" } },
                { "matchExpressions": [{ "key": "y", "operator": "Exists" }] },
            ] },
            "rules": [{ "apiGroups": [""], "resources": ["pods"], "verbs": ["delete"] }],
        });
        let role: ClusterRole = serde_json::from_value(aggregated).expect("a role");
        let mut all = selected;
        all.insert("all".to_owned(), role.clone());
        let rules = aggregate("all", &role, &all);
        let verbs: Vec<&str> = rules.iter().map(|rule| rule.verbs[0].as_str()).collect();
        assert_eq!(verbs, ["get", "watch", "list", "update"]);
    }
}
