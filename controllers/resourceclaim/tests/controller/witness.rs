//! [`Witness`]: follows claims and pods, and checks what must hold at each change.
//!
//! * At no time two claims exist for one entry of a pod.
//! * A live pod keeps its reservations, and the allocation of each claim that it has reserved.
//! * A claim of a live pod, a claim that a live pod has reserved, and a claim of the user are not
//!   deleted, unless the user deletes them.
//! * Metadata and spec of a claim stay as they were created, and so does what drivers report about
//!   allocated devices.
//! * The name of a claim in a pod's status stays.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use homeostat::kube_client::Client;
use homeostat::{Event, SharedIndexInformer, SharedInformerFactory};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::resource::v1::ResourceClaim;
use parking_lot::Mutex;

/// Counts of what has happened.
pub(crate) type Tally = BTreeMap<&'static str, u64>;

/// The observer of a cluster. Its client meets no faults.
pub(crate) struct Witness {
    state: Arc<Mutex<State>>,
    /// Kept for its `Drop`.
    _informers: SharedInformerFactory,
}

#[derive(Default)]
struct State {
    /// The UIDs of the pods that may use their claims.
    live: BTreeSet<String>,
    /// The UIDs of the claims that the user deletes.
    deleted_by_user: BTreeSet<String>,
    /// The names of the claims that exist, by the UID of their pod and its entry.
    claims: BTreeMap<(String, String), BTreeSet<String>>,
    violations: Vec<String>,
    tally: Tally,
}

// === impl Witness ===

impl Witness {
    /// Starts to observe.
    pub(crate) async fn start(client: &Client, shared: &'static [&'static str]) -> Self {
        let informers = SharedInformerFactory::builder(client.clone()).seed(1).build();
        let claims: SharedIndexInformer<ResourceClaim> = informers.informer();
        let pods: SharedIndexInformer<Pod> = informers.informer();
        let state: Arc<Mutex<State>> = Arc::default();
        let (of_claims, of_pods) = (Arc::clone(&state), Arc::clone(&state));
        claims
            .add_handler("witness", move |event: Event<ResourceClaim>| {
                of_claims.lock().claim(&event, shared);
            })
            .detach();
        pods.add_handler("witness", move |event: Event<Pod>| of_pods.lock().pod(&event)).detach();
        informers.start();
        assert!(informers.wait_for_sync().await, "the witness sees the cluster");
        Self { state, _informers: informers }
    }

    /// Notes a pod that may use its claims from now on.
    pub(crate) fn lives(&self, uid: &str) {
        self.state.lock().live.insert(uid.to_owned());
    }

    /// Notes a pod that does not need its claims from now on.
    pub(crate) fn ends(&self, uid: &str) {
        self.state.lock().live.remove(uid);
    }

    pub(crate) fn is_deleted_by_user(&self, uid: &str) {
        self.state.lock().deleted_by_user.insert(uid.to_owned());
    }

    pub(crate) fn violations(&self) -> Vec<String> {
        self.state.lock().violations.clone()
    }

    pub(crate) fn tally(&self) -> Tally {
        self.state.lock().tally.clone()
    }
}

// === impl State ===

impl State {
    fn count(&mut self, what: &'static str, count: usize) {
        *self.tally.entry(what).or_default() += u64::try_from(count).unwrap();
    }

    fn claim(&mut self, event: &Event<ResourceClaim>, shared: &[&str]) {
        match event {
            Event::Added { object: claim, .. } => self.created(claim),
            Event::Updated { old, new } => self.changed(old, new),
            Event::Deleted { last_known: claim, .. } => self.deleted(claim, shared),
            _ => self.violations.push("a claim does not decode".to_owned()),
        }
    }

    fn created(&mut self, claim: &ResourceClaim) {
        let Some(slot) = slot(claim) else { return };
        self.count("claim created", 1);
        let name = name(claim);
        let claims = self.claims.entry(slot.clone()).or_default();
        claims.insert(name);
        if claims.len() > 1 {
            self.violations.push(format!("two claims of {slot:?}: {claims:?}"));
        }
    }

    fn changed(&mut self, old: &ResourceClaim, new: &ResourceClaim) {
        let (before, after) = (consumers(old), consumers(new));
        let dropped: Vec<_> = before.difference(&after).cloned().collect();
        self.count("reservation dropped", dropped.len());
        self.count("reservation added", after.difference(&before).count());
        for uid in dropped.iter().filter(|uid| self.live.contains(*uid)) {
            self.violations.push(format!("{}: the live pod {uid} lost it", name(new)));
        }
        if is_allocated(old) && !is_allocated(new) {
            self.count("allocation cleared", 1);
            if before.iter().any(|uid| self.live.contains(uid)) {
                self.violations.push(format!("{}: deallocated under a live pod", name(new)));
            }
        }
        if is_allocated(old) && is_allocated(new) && devices(old) != devices(new) {
            self.violations.push(format!("{}: the reported devices changed", name(new)));
        }
        if unchangeable(old) != unchangeable(new) {
            self.violations.push(format!("{}: its metadata or spec changed", name(new)));
        }
    }

    fn deleted(&mut self, claim: &ResourceClaim, shared: &[&str]) {
        self.count("claim deleted", 1);
        let (name, slot) = (name(claim), slot(claim));
        if let Some(claims) = slot.as_ref().and_then(|slot| self.claims.get_mut(slot)) {
            claims.remove(&name);
        }
        if consumers(claim).iter().any(|uid| self.live.contains(uid)) {
            self.violations.push(format!("{name}: deleted under a live pod"));
        }
        let by_user =
            claim.metadata.uid.as_ref().is_some_and(|it| self.deleted_by_user.contains(it));
        let is_needed = slot.is_some_and(|(uid, _)| self.live.contains(&uid));
        if (is_needed || shared.contains(&name.as_str())) && !by_user {
            self.violations.push(format!("{name}: deleted, and not by the user"));
        }
    }

    fn pod(&mut self, event: &Event<Pod>) {
        let Event::Updated { old, new } = event else { return };
        let (before, after) = (recorded(old), recorded(new));
        self.count("claim recorded", after.len().saturating_sub(before.len()));
        if !before.is_subset(&after) {
            let name = new.metadata.name.as_deref().unwrap_or_default();
            self.violations.push(format!("{name}: recorded {before:?}, then {after:?}"));
        }
    }
}

fn name(claim: &ResourceClaim) -> String {
    claim.metadata.name.clone().unwrap_or_default()
}

/// Returns the UID of the pod that a claim was created for, and the name of the entry.
fn slot(claim: &ResourceClaim) -> Option<(String, String)> {
    let owner = claim.metadata.owner_references.as_ref()?.first()?;
    let entry = "resource.kubernetes.io/pod-claim-name";
    let entry = claim.metadata.annotations.as_ref()?.get(entry)?;
    Some((owner.uid.clone(), entry.clone()))
}

/// Returns the UIDs of the consumers.
fn consumers(claim: &ResourceClaim) -> BTreeSet<String> {
    let status = claim.status.iter().flat_map(|status| status.reserved_for.iter().flatten());
    status.map(|consumer| consumer.uid.clone()).collect()
}

fn is_allocated(claim: &ResourceClaim) -> bool {
    claim.status.as_ref().is_some_and(|status| status.allocation.is_some())
}

/// Returns the names of the devices about which drivers report.
fn devices(claim: &ResourceClaim) -> Vec<String> {
    let status = claim.status.iter().flat_map(|status| status.devices.iter().flatten());
    status.map(|device| device.device.clone()).collect()
}

/// Returns the members that stay as they were created, as text.
fn unchangeable(claim: &ResourceClaim) -> String {
    let metadata = &claim.metadata;
    format!(
        "{:?} {:?} {:?} {:?}",
        metadata.labels, metadata.annotations, metadata.owner_references, claim.spec
    )
}

/// Returns the recorded claims by entry.
fn recorded(pod: &Pod) -> BTreeSet<(String, String)> {
    let statuses =
        pod.status.iter().flat_map(|status| status.resource_claim_statuses.iter().flatten());
    statuses.filter_map(|it| Some((it.name.clone(), it.resource_claim_name.clone()?))).collect()
}
