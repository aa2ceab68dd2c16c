//! Limit ranges: the defaults of containers, and the limits of pods, containers and volume claims
//! (the plugin `LimitRanger` of kube-apiserver).

use std::cmp::Ordering;

use homeostat_quantity::{Quantity, ResourceList};
use homeostat_quota::object::pod::{Container, Pod, Requirements};
use homeostat_quota::{PodResourcesOptions, pod_limits, pod_requests};
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

use crate::fields::{Fields, read_path, text};

/// The annotation that names the defaults of a pod.
const ANNOTATION: &str = "kubernetes.io/limit-ranger";
/// The largest number whose thousandths fit into 64 bits.
const MAX_MILLI_VALUE: i64 = i64::MAX / 1000;
/// The resources that a pod as a whole can have.
const POD_LEVEL: [&str; 2] = ["cpu", "memory"];

/// A limit range.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct LimitRange {
    spec: Spec,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct Spec {
    #[serde(deserialize_with = "or_default")]
    limits: Vec<Limit>,
}

/// The limits of one type of object.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Limit {
    #[serde(rename = "type")]
    of: String,
    #[serde(deserialize_with = "or_default")]
    min: ResourceList,
    #[serde(deserialize_with = "or_default")]
    max: ResourceList,
    #[serde(deserialize_with = "or_default")]
    default: ResourceList,
    #[serde(deserialize_with = "or_default")]
    default_request: ResourceList,
    #[serde(deserialize_with = "or_default")]
    max_limit_request_ratio: ResourceList,
}

/// The rules for the objects of a kind that limit ranges apply to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limited {
    /// Fills in the defaults.
    pub(crate) complete: fn(&LimitRange, &mut Fields),
    /// Returns the reasons to refuse an object.
    pub(crate) check: fn(&LimitRange, &Fields) -> Vec<String>,
    /// True if an update of the object is checked, and not only one through `/resize`.
    pub(crate) on_update: bool,
}

pub(crate) const PODS: Limited =
    Limited { complete: complete_pod, check: check_pod, on_update: false };
pub(crate) const CLAIMS: Limited =
    Limited { complete: |_, _| {}, check: check_claim, on_update: true };

/// Reads `null` as the default.
fn or_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

// === defaults ===

/// Adds the default requests and limits of containers, and an annotation that says which.
fn complete_pod(range: &LimitRange, pod: &mut Fields) {
    let mut set = Vec::new();
    if let Some(Value::Object(spec)) = pod.get_mut("spec") {
        for (list, called) in [("containers", "container"), ("initContainers", "init container")] {
            let containers = spec.get_mut(list).and_then(Value::as_array_mut);
            for container in containers.into_iter().flatten() {
                complete_container(range, container, called, &mut set);
            }
        }
    }
    if set.is_empty() {
        return;
    }
    let text = format!("LimitRanger plugin set: {}", set.join("; "));
    let metadata = member_mut(pod, "metadata");
    if let Some(annotations) = metadata.and_then(|metadata| member_mut(metadata, "annotations")) {
        annotations.insert(ANNOTATION.to_owned(), json!(text));
    }
}

fn complete_container(
    range: &LimitRange,
    container: &mut Value,
    called: &str,
    set: &mut Vec<String>,
) {
    let of_containers = || range.of("Container");
    let requests = of_containers().map(|limit| &limit.default_request);
    let limits = of_containers().map(|limit| &limit.default);
    let requests = add_missing(container, "requests", requests);
    let limits = add_missing(container, "limits", limits);
    for (names, list) in [(requests, "request"), (limits, "limit")] {
        if !names.is_empty() {
            let name = text(container, "name");
            set.push(format!("{} {list} for {called} {name}", names.join(", ")));
        }
    }
}

/// Adds the resources that a container does not have. Returns their names, in order.
fn add_missing<'a>(
    container: &mut Value,
    list: &str,
    defaults: impl Iterator<Item = &'a ResourceList>,
) -> Vec<String> {
    let Some(container) = container.as_object_mut() else { return Vec::new() };
    let mut added = Vec::new();
    for (name, quantity) in defaults.flat_map(ResourceList::iter) {
        let known = read_path(container, &format!("resources.{list}"));
        if known.is_some_and(|known| known.get(name.as_str()).is_some()) {
            continue;
        }
        let resources = member_mut(container, "resources");
        if let Some(list) = resources.and_then(|resources| member_mut(resources, list)) {
            list.insert(name.to_string(), json!(quantity));
            added.push(name.to_string());
        }
    }
    added.sort_unstable();
    added
}

/// Returns a member that is an object; adds it if it is missing.
fn member_mut<'a>(object: &'a mut Fields, key: &str) -> Option<&'a mut Fields> {
    let member = object.entry(key).or_insert_with(|| json!({}));
    if member.is_null() {
        *member = json!({});
    }
    member.as_object_mut()
}

// === limits ===

fn check_pod(range: &LimitRange, pod: &Fields) -> Vec<String> {
    let pod = Pod::deserialize(pod).unwrap_or_default();
    let mut refusals = Vec::new();
    for limit in &range.spec.limits {
        match limit.of.as_str() {
            "Container" => {
                let containers = pod.spec.containers.iter().chain(&pod.spec.init_containers);
                for Container { resources, .. } in containers {
                    limit.check(&resources.requests, &resources.limits, &mut refusals);
                }
            }
            "Pod" => {
                let Requirements { requests, limits, .. } = resources_of(&pod);
                limit.check(&requests, &limits, &mut refusals);
            }
            _ => {}
        }
    }
    refusals
}

/// Returns the requests and limits of a pod: those of its containers, unless it has its own. Its
/// overhead and its status do not count.
fn resources_of(pod: &Pod) -> Requirements {
    let mut options = PodResourcesOptions::default();
    options.use_status_resources = false;
    options.skip_pod_level_resources = true;
    options.exclude_overhead = true;
    let mut of_pod = Requirements::default();
    of_pod.requests = pod_requests(pod, options);
    of_pod.limits = pod_limits(pod, options);
    if let Some(own) = &pod.spec.resources {
        for (list, own) in
            [(&mut of_pod.requests, &own.requests), (&mut of_pod.limits, &own.limits)]
        {
            let own = own.iter().filter(|(name, _)| POD_LEVEL.contains(&name.as_str()));
            own.for_each(|(name, quantity)| drop(list.insert(name.clone(), quantity.clone())));
        }
    }
    of_pod
}

fn check_claim(range: &LimitRange, claim: &Fields) -> Vec<String> {
    const KIND: &str = "PersistentVolumeClaim";
    let requests = read_path(claim, "spec.resources.requests");
    let requests: ResourceList =
        requests.and_then(|it| Deserialize::deserialize(it).ok()).unwrap_or_default();
    let (none, mut refusals) = (ResourceList::new(), Vec::new());
    for limit in range.of(KIND) {
        for (name, least) in &limit.min {
            let of_claim = Amounts::of(name, &requests, &none);
            refusals.extend(of_claim.under_minimum(KIND, name, least));
        }
        for (name, most) in &limit.max {
            let of_claim = Amounts::of(name, &requests, &none);
            refusals.extend(of_claim.request_over_maximum(KIND, name, most));
        }
    }
    refusals
}

/// The request and the limit of one resource.
#[derive(Debug, Clone, Copy)]
struct Amounts<'a> {
    request: Option<&'a Quantity>,
    limit: Option<&'a Quantity>,
}

// === impl LimitRange ===

impl LimitRange {
    /// Returns the limits of a type.
    fn of(&self, kind: &str) -> impl Iterator<Item = &Limit> {
        self.spec.limits.iter().filter(move |limit| limit.of == kind)
    }
}

// === impl Limit ===

impl Limit {
    fn check(&self, requests: &ResourceList, limits: &ResourceList, refusals: &mut Vec<String>) {
        let amounts = |name: &str| Amounts::of(name, requests, limits);
        for (name, least) in &self.min {
            refusals.extend(amounts(name).under_minimum(&self.of, name, least));
        }
        for (name, most) in &self.max {
            refusals.extend(amounts(name).over_maximum(&self.of, name, most));
        }
        for (name, most) in &self.max_limit_request_ratio {
            refusals.extend(amounts(name).over_ratio(&self.of, name, most));
        }
    }
}

// === impl Amounts ===

impl<'a> Amounts<'a> {
    fn of(name: &str, requests: &'a ResourceList, limits: &'a ResourceList) -> Self {
        Self { request: requests.get(name), limit: limits.get(name) }
    }

    fn under_minimum(self, kind: &str, name: &str, least: &Quantity) -> Option<String> {
        let refusal = format!("minimum {name} usage per {kind} is {least}");
        let amounts = [("request", self.request), ("limit", self.limit)];
        self.exceeding(least, refusal, Ordering::Less, &amounts)
    }

    fn over_maximum(self, kind: &str, name: &str, most: &Quantity) -> Option<String> {
        let refusal = format!("maximum {name} usage per {kind} is {most}");
        let amounts = [("limit", self.limit), ("request", self.request)];
        self.exceeding(most, refusal, Ordering::Greater, &amounts)
    }

    /// The maximum of a claim, which has no limits.
    fn request_over_maximum(self, kind: &str, name: &str, most: &Quantity) -> Option<String> {
        let refusal = format!("maximum {name} usage per {kind} is {most}");
        self.exceeding(most, refusal, Ordering::Greater, &[("request", self.request)])
    }

    /// Returns the refusal if the first amount is missing, or if an amount is on the wrong side of
    /// the bound.
    fn exceeding(
        self,
        bound: &Quantity,
        refusal: String,
        wrong: Ordering,
        amounts: &[(&str, Option<&Quantity>)],
    ) -> Option<String> {
        if let [(called, None), ..] = amounts {
            return Some(refusal + &format!(".  No {called} is specified"));
        }
        amounts.iter().find_map(|(called, amount)| {
            let amount = (*amount)?;
            let (number, bound) = self.numbers(amount, bound);
            (number.cmp(&bound) == wrong).then(|| format!("{refusal}, but {called} is {amount}"))
        })
    }

    /// Returns an amount and a bound as whole numbers: thousandths if all amounts are small enough.
    fn numbers(self, amount: &Quantity, bound: &Quantity) -> (i64, i64) {
        if self.is_small(bound) {
            (amount.milli_value(), bound.milli_value())
        } else {
            (amount.value(), bound.value())
        }
    }

    fn is_small(self, bound: &Quantity) -> bool {
        let all = [self.request, self.limit, Some(bound)];
        all.into_iter().flatten().all(|amount| amount.value() <= MAX_MILLI_VALUE)
    }

    #[expect(clippy::cast_precision_loss, reason = "as upstream, which compares floating points")]
    fn over_ratio(self, kind: &str, name: &str, most: &Quantity) -> Option<String> {
        let refusal = format!("{name} max limit to request ratio per {kind} is {most}");
        let number = |amount: Option<&Quantity>| {
            let amount = amount.map_or(0, |amount| self.numbers(amount, most).0);
            (amount != 0).then_some(amount)
        };
        let Some(request) = number(self.request) else {
            return Some(refusal + ", but no request is specified or request is 0");
        };
        let Some(limit) = number(self.limit) else {
            return Some(refusal + ", but no limit is specified or limit is 0");
        };
        let ratio = limit as f64 / request as f64;
        let is_over = if most.value() <= MAX_MILLI_VALUE {
            ratio * 1000.0 > most.milli_value() as f64
        } else {
            ratio > most.value() as f64
        };
        is_over.then(|| format!("{refusal}, but provided ratio is {ratio:.6}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(limit: Value) -> LimitRange {
        let limits = Value::from(vec![limit]);
        serde_json::from_value(json!({"spec": {"limits": limits}})).unwrap()
    }

    fn pod(spec: Value) -> Fields {
        Fields::from_iter([
            ("metadata".to_owned(), json!({"name": "a"})),
            ("spec".to_owned(), spec),
        ])
    }

    fn of_one(resources: Value) -> Fields {
        let mut container = json!({"name": "main"});
        container["resources"] = resources;
        pod(json!({"containers": [container]}))
    }

    #[test]
    fn default_fills_gaps_only() {
        let range = range(json!({"type": "Container", "default": {"memory": "2Gi", "cpu": "2"},
            "defaultRequest": {"memory": "1Gi", "cpu": "1"}}));
        let mut pod = pod(json!({
            "containers": [
                {"name": "a"},
                {"name": "b", "resources": {"requests": {"cpu": "10m"}, "limits": null}},
                {"name": "c", "resources": {"requests": {"cpu": "1", "memory": "1"},
                    "limits": {"cpu": "1", "memory": "1"}}},
            ],
            "initContainers": [{"name": "i", "resources": {"limits": {"cpu": "3"}}}],
        }));
        complete_pod(&range, &mut pod);
        let all = json!({"requests": {"cpu": "1", "memory": "1Gi"},
            "limits": {"cpu": "2", "memory": "2Gi"}});
        assert_eq!(pod["spec"]["containers"][0]["resources"], all);
        assert_eq!(
            pod["spec"]["containers"][1]["resources"]["requests"],
            json!({"cpu": "10m", "memory": "1Gi"})
        );
        assert_eq!(
            pod["metadata"]["annotations"][ANNOTATION],
            "LimitRanger plugin set: cpu, memory request for container a; cpu, memory limit for \
             container a; memory request for container b; cpu, memory limit for container b; cpu, \
             memory request for init container i; memory limit for init container i"
        );
        let completed = pod.clone();
        complete_pod(&range, &mut pod);
        assert_eq!(pod, completed);
    }

    #[test]
    fn nothing_to_default_adds_no_annotation() {
        let mut pod = of_one(json!({}));
        let before = pod.clone();
        complete_pod(&range(json!({"type": "Pod", "max": {"cpu": "1"}})), &mut pod);
        complete_pod(&range(json!({"type": "Container", "max": {"cpu": "1"}})), &mut pod);
        assert_eq!(pod, before);
    }

    #[test]
    fn amount_is_compared_with_minimum_and_maximum() {
        let check = |limit: Value, resources: Value| {
            let mut limit = limit;
            limit["type"] = json!("Container");
            check_pod(&range(limit), &of_one(resources)).join("; ")
        };
        let list = |amount: &str| json!({"cpu": amount});
        let cpu = |from: &str, to: &str| json!({"requests": list(from), "limits": list(to)});
        let min = || json!({"min": {"cpu": "100m"}});
        assert_eq!(check(min(), cpu("100m", "100m")), "");
        assert_eq!(
            check(min(), json!({})),
            "minimum cpu usage per Container is 100m.  No request is specified"
        );
        assert_eq!(
            check(min(), cpu("99m", "1")),
            "minimum cpu usage per Container is 100m, but request is 99m"
        );
        assert_eq!(
            check(min(), cpu("1", "1m")),
            "minimum cpu usage per Container is 100m, but limit is 1m"
        );
        let max = || json!({"max": {"cpu": "1"}});
        assert_eq!(check(max(), cpu("1", "1000m")), "");
        assert_eq!(
            check(max(), json!({"requests": {"cpu": "1"}})),
            "maximum cpu usage per Container is 1.  No limit is specified"
        );
        assert_eq!(
            check(max(), cpu("1", "1001m")),
            "maximum cpu usage per Container is 1, but limit is 1001m"
        );
        assert_eq!(
            check(max(), cpu("2", "1")),
            "maximum cpu usage per Container is 1, but request is 2"
        );
    }

    #[test]
    fn ratio_of_limit_to_request_is_bounded() {
        let check = |resources: Value| {
            let limit = json!({"type": "Container", "maxLimitRequestRatio": {"cpu": "1500m"}});
            check_pod(&range(limit), &of_one(resources)).join("; ")
        };
        let cpu = |requests: &str, limits: &str| {
            check(json!({"requests": {"cpu": requests}, "limits": {"cpu": limits}}))
        };
        assert_eq!(cpu("1", "1500m"), "");
        let start = "cpu max limit to request ratio per Container is 1500m, but";
        assert_eq!(cpu("3", "5"), format!("{start} provided ratio is 1.666667"));
        assert_eq!(cpu("0", "5"), format!("{start} no request is specified or request is 0"));
        assert_eq!(cpu("3", "0"), format!("{start} no limit is specified or limit is 0"));
        assert_eq!(check(json!({})), format!("{start} no request is specified or request is 0"));
    }

    #[test]
    fn amounts_beyond_thousandths_are_compared_as_whole_numbers() {
        let limit = json!({"type": "Container", "max": {"memory": "9E"}});
        let check = |limits: &str| {
            let resources = json!({"limits": {"memory": limits}});
            check_pod(&range(limit.clone()), &of_one(resources)).len()
        };
        assert_eq!((check("9E"), check("9000000000000000001")), (0, 1));
    }

    #[test]
    fn limits_of_a_pod_count_all_containers_or_its_own_resources() {
        let limit = range(json!({"type": "Pod", "max": {"cpu": "3"}}));
        let container = |name: &str| json!({"name": name, "resources": {"limits": {"cpu": "2"}}});
        let check = |spec: Value| check_pod(&limit, &pod(spec)).join("; ");
        let two = json!([container("a"), container("b")]);
        let refusal = "maximum cpu usage per Pod is 3, but limit is 4";
        assert_eq!(check(json!({"containers": two.clone()})), refusal);
        assert_eq!(check(json!({"containers": [container("a")]})), "");
        let init = json!([container("i")]);
        assert_eq!(
            check(json!({"containers": [container("a")], "initContainers": init})),
            "",
            "an init container runs alone"
        );
        let mut sidecar = container("s");
        sidecar["restartPolicy"] = json!("Always");
        let sidecar = json!([sidecar]);
        assert_eq!(
            check(json!({"containers": [container("a")], "initContainers": sidecar})),
            refusal
        );
        assert_eq!(check(json!({"containers": two, "resources": {"limits": {"cpu": "1"}}})), "");
    }

    #[test]
    fn claim_is_limited_by_its_requests() {
        let limit = range(json!({"type": "PersistentVolumeClaim", "min": {"storage": "1Gi"},
            "max": {"storage": "5Gi"}}));
        let check = |storage: &str| {
            let resources = json!({"requests": {"storage": storage}});
            check_claim(&limit, &pod(json!({"resources": resources}))).join("; ")
        };
        let kind = "storage usage per PersistentVolumeClaim is";
        assert_eq!(check("1Gi"), "");
        assert_eq!(check("1M"), format!("minimum {kind} 1Gi, but request is 1M"));
        assert_eq!(check("6Gi"), format!("maximum {kind} 5Gi, but request is 6Gi"));
    }
}
