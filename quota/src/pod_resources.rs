//! The requests and limits of a pod (`k8s.io/component-helpers/resource/helpers.go`, 1.37).

use homeostat_quantity::ResourceList;

use crate::names::HUGE_PAGES;
use crate::object::pod::{Container, ContainerStatus, Pod, Requirements};

/// Selects what [`pod_requests`] and [`pod_limits`] take into account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct PodResourcesOptions {
    /// Take the resources that a resize has left in the status into account. On by default.
    pub use_status_resources: bool,
    /// Ignore the resources of the pod as a whole. Off by default.
    pub skip_pod_level_resources: bool,
    /// Ignore the overhead of the sandbox. Off by default.
    pub exclude_overhead: bool,
}

/// Selects the resources of one container.
type Select = for<'a> fn(&'a Container, Option<&'a ContainerStatus>, Fallback) -> Selected<'a>;
type Selected<'a> = Option<&'a ResourceList>;

/// True if the specification counts where the status says nothing.
type Fallback = bool;

/// Returns the resources that a pod requests, its overhead among them.
///
/// Of a pod that is being resized the maximum of what is specified, allocated and in effect counts.
/// Where the node has refused a resize, the specification does not count.
///
/// # Examples
///
/// ```
/// use homeostat_quota::object::pod::Pod;
/// use homeostat_quota::{PodResourcesOptions, pod_requests};
/// use serde_json::json;
///
/// let cpu = |cpu: &str| json!({"resources": {"requests": {"cpu": cpu}}});
/// let pod: Pod = serde_json::from_value(json!({"spec": {
///     "containers": [cpu("100m"), cpu("200m")],
///     "initContainers": [cpu("1")],
/// }}))?;
/// // An init container runs alone: the larger of its request and the sum counts.
/// assert_eq!(pod_requests(&pod, PodResourcesOptions::default()).to_string(), "cpu=1");
/// # Ok::<(), serde_json::Error>(())
/// ```
pub fn pod_requests(pod: &Pod, options: PodResourcesOptions) -> ResourceList {
    let mut requests = container_requests(pod, options);
    if !options.skip_pod_level_resources
        && let Some(resources) = &pod.spec.resources
        && has_pod_level(&resources.requests)
    {
        replace_with_pod_level(&mut requests, &resources.requests);
    }
    if !options.exclude_overhead {
        requests += &pod.spec.overhead;
    }
    requests
}

/// Returns the limits of a pod. The overhead is added to limits that are present and not zero.
pub fn pod_limits(pod: &Pod, options: PodResourcesOptions) -> ResourceList {
    let mut limits = container_limits(pod, options);
    if !options.skip_pod_level_resources
        && let Some(resources) = &pod.spec.resources
        && is_pod_level_set(resources)
    {
        replace_with_pod_level(&mut limits, &resources.limits);
    }
    if !options.exclude_overhead {
        let mut overhead = pod.spec.overhead.clone();
        overhead.retain(|name, _| limits.get(name).is_some_and(|limit| !limit.is_zero()));
        limits += &overhead;
    }
    limits
}

/// Returns true if the resources of a pod as a whole name a resource that can be given there
/// (`IsPodLevelResourcesSet`).
pub(crate) fn is_pod_level_set(resources: &Requirements) -> bool {
    has_pod_level(&resources.requests) || has_pod_level(&resources.limits)
}

fn has_pod_level(list: &ResourceList) -> bool {
    list.names().any(|name| is_pod_level(name))
}

fn is_pod_level(name: &str) -> bool {
    matches!(name, "cpu" | "memory") || name.starts_with(HUGE_PAGES)
}

fn replace_with_pod_level(list: &mut ResourceList, of_pod: &ResourceList) {
    for (name, quantity) in of_pod.iter().filter(|(name, _)| is_pod_level(name)) {
        list.insert(name.clone(), quantity.clone());
    }
}

fn container_requests(pod: &Pod, options: PodResourcesOptions) -> ResourceList {
    let specified: Select = |container, _, _| Some(&container.resources.requests);
    if !options.use_status_resources {
        return aggregate(pod, options, specified);
    }
    let allocated = aggregate(pod, options, allocated_requests);
    let actual = aggregate(pod, options, actual_requests);
    let mut requests = ResourceList::new();
    if !is_resize_infeasible(pod) {
        requests = aggregate(pod, options, specified);
    }
    raise(&mut requests, &actual);
    raise(&mut requests, &allocated);
    requests
}

fn container_limits(pod: &Pod, options: PodResourcesOptions) -> ResourceList {
    let specified: Select = |container, _, _| Some(&container.resources.limits);
    if !options.use_status_resources {
        return aggregate(pod, options, specified);
    }
    let actual = aggregate(pod, options, actual_limits);
    if is_resize_infeasible(pod) {
        return actual;
    }
    let mut limits = aggregate(pod, options, specified);
    raise(&mut limits, &actual);
    limits
}

fn allocated_requests<'a>(
    container: &'a Container,
    status: Option<&'a ContainerStatus>,
    fallback: Fallback,
) -> Selected<'a> {
    let allocated = status.and_then(|status| status.allocated_resources.as_ref());
    allocated.or_else(|| fallback.then_some(&container.resources.requests))
}

fn actual_requests<'a>(
    container: &'a Container,
    status: Option<&'a ContainerStatus>,
    fallback: Fallback,
) -> Selected<'a> {
    let actual = status.and_then(|status| status.resources.as_ref()?.requests.as_ref());
    actual.or_else(|| allocated_requests(container, status, fallback))
}

fn actual_limits<'a>(
    container: &'a Container,
    status: Option<&'a ContainerStatus>,
    fallback: Fallback,
) -> Selected<'a> {
    let actual = status.and_then(|status| status.resources.as_ref()?.limits.as_ref());
    actual.or_else(|| fallback.then_some(&container.resources.limits))
}

/// Computes the resources of a pod from those that `select` returns for each container.
///
/// Containers and sidecars run together. An init container runs with the sidecars before it only.
fn aggregate(pod: &Pod, options: PodResourcesOptions, select: Select) -> ResourceList {
    let fallback = !(options.use_status_resources && is_resize_infeasible(pod));
    let resources = |container| {
        let status = status_of(pod, container).filter(|_| options.use_status_resources);
        select(container, status, fallback)
    };
    let mut together = ResourceList::new();
    for list in pod.spec.containers.iter().filter_map(resources) {
        together += list;
    }
    let (mut sidecars, mut starting) = (ResourceList::new(), ResourceList::new());
    for container in &pod.spec.init_containers {
        let list = resources(container).cloned().unwrap_or_default();
        if container.is_restartable() {
            together += &list;
            sidecars += &list;
            raise(&mut starting, &sidecars);
        } else {
            raise(&mut starting, &list.add(&sidecars));
        }
    }
    raise(&mut together, &starting);
    together
}

fn status_of<'a>(pod: &'a Pod, container: &Container) -> Option<&'a ContainerStatus> {
    let statuses = pod.status.container_statuses.iter().chain(&pod.status.init_container_statuses);
    statuses.into_iter().find(|status| status.name == container.name)
}

/// Returns true if the node has refused a resize for good.
fn is_resize_infeasible(pod: &Pod) -> bool {
    let pending = pod.status.conditions.iter().find(|it| it.kind == "PodResizePending");
    pending.is_some_and(|condition| condition.reason == "Infeasible")
}

/// Raises each entry of `list` to that of `other`. Of equal ones the present one stays, with its
/// text.
fn raise(list: &mut ResourceList, other: &ResourceList) {
    for (name, quantity) in other {
        if list.get(name).is_none_or(|present| quantity > present) {
            list.insert(name.clone(), quantity.clone());
        }
    }
}

impl Default for PodResourcesOptions {
    fn default() -> Self {
        Self {
            use_status_resources: true,
            skip_pod_level_resources: false,
            exclude_overhead: false,
        }
    }
}
