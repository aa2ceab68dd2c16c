//! Which members of which kinds are merged in another way than "objects merge, lists are replaced".
//!
//! One table for all kinds. A [`Rules`] stands for one type of the API and names only the members with a rule, or on the
//! way to one; types refer to each other, so a `ReplicaSet`'s template follows the same rules as a `Pod`.
//!
//! The strategy `retainKeys` (volumes, a Deployment's strategy, claims) is not in the table, since it tells clients how
//! to make patches: a server obeys the directive `$retainKeys` wherever it meets it.

/// The members of one type of the API that have a rule.
#[derive(Debug)]
pub(super) struct Rules(&'static [Member]);

type Member = (&'static str, Rule);

/// How the values of one member are merged.
#[derive(Clone, Copy, Debug)]
pub(super) enum Rule {
    /// A list is replaced, an object is merged and has no rules within.
    Plain,
    /// An object with rules of its own.
    Object(&'static Rules),
    /// A list of objects, of which those with the same value of this member are the same one.
    ListByKey(&'static str, &'static Rules),
    /// A list of scalars, each of which is in it once.
    Set,
}

use Rule::{ListByKey, Object, Set};

const fn by_key(member: &'static str, key: &'static str) -> Member {
    (member, ListByKey(key, &NONE))
}

static NONE: Rules = Rules(&[]);

const METADATA: Member = ("metadata", Object(&OBJECT_META));
const CONDITIONS: Member = by_key("conditions", "type");
const TEMPLATE: Member = ("template", Object(&POD_TEMPLATE));

static OBJECT_META: Rules = Rules(&[by_key("ownerReferences", "uid"), ("finalizers", Set)]);
static WITH_CONDITIONS: Rules = Rules(&[CONDITIONS]);

static CONTAINER: Rules = Rules(&[
    by_key("ports", "containerPort"),
    by_key("env", "name"),
    by_key("volumeMounts", "mountPath"),
    by_key("volumeDevices", "devicePath"),
]);
static POD_SPEC: Rules = Rules(&[
    by_key("volumes", "name"),
    ("initContainers", ListByKey("name", &CONTAINER)),
    ("containers", ListByKey("name", &CONTAINER)),
    ("ephemeralContainers", ListByKey("name", &CONTAINER)),
    by_key("imagePullSecrets", "name"),
    by_key("hostAliases", "ip"),
    by_key("topologySpreadConstraints", "topologyKey"),
    by_key("schedulingGates", "name"),
    by_key("resourceClaims", "name"),
]);
static POD_STATUS: Rules = Rules(&[
    CONDITIONS,
    by_key("podIPs", "ip"),
    by_key("hostIPs", "ip"),
    by_key("resourceClaimStatuses", "name"),
]);
static POD_TEMPLATE: Rules = Rules(&[METADATA, ("spec", Object(&POD_SPEC))]);
/// The spec of `ReplicaSet`, `Deployment`, Job and the like: of all its members, only the template has rules.
static TEMPLATED: Rules = Rules(&[TEMPLATE]);
static SERVICE_SPEC: Rules = Rules(&[by_key("ports", "port")]);
static NODE_SPEC: Rules = Rules(&[("podCIDRs", Set)]);
static NODE_STATUS: Rules = Rules(&[CONDITIONS, by_key("addresses", "type")]);
static CLAIM_STATUS: Rules = Rules(&[by_key("reservedFor", "uid")]);
static JOB_TEMPLATE: Rules = Rules(&[METADATA, ("spec", Object(&TEMPLATED))]);
static CRON_JOB_SPEC: Rules = Rules(&[("jobTemplate", Object(&JOB_TEMPLATE))]);

static POD: Rules =
    Rules(&[METADATA, ("spec", Object(&POD_SPEC)), ("status", Object(&POD_STATUS))]);
static WORKLOAD: Rules =
    Rules(&[METADATA, ("spec", Object(&TEMPLATED)), ("status", Object(&WITH_CONDITIONS))]);
static SERVICE: Rules =
    Rules(&[METADATA, ("spec", Object(&SERVICE_SPEC)), ("status", Object(&WITH_CONDITIONS))]);
static NODE: Rules =
    Rules(&[METADATA, ("spec", Object(&NODE_SPEC)), ("status", Object(&NODE_STATUS))]);
static ONLY_CONDITIONS: Rules = Rules(&[METADATA, ("status", Object(&WITH_CONDITIONS))]);
static SERVICE_ACCOUNT: Rules = Rules(&[METADATA, by_key("secrets", "name")]);
static COMPONENT_STATUS: Rules = Rules(&[METADATA, CONDITIONS]);
static STANDALONE_TEMPLATE: Rules = Rules(&[METADATA, TEMPLATE]);
static RESOURCE_CLAIM: Rules = Rules(&[METADATA, ("status", Object(&CLAIM_STATUS))]);
static CRON_JOB: Rules = Rules(&[METADATA, ("spec", Object(&CRON_JOB_SPEC))]);
static ANY_KIND: Rules = Rules(&[METADATA]);

/// The rules of a kind, whatever its version.
pub(super) fn of_kind(api_version: &str, kind: &str) -> &'static Rules {
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    match (group, kind) {
        ("", "Pod") => &POD,
        ("", "ReplicationController")
        | ("apps", "ReplicaSet" | "Deployment" | "StatefulSet" | "DaemonSet")
        | ("batch", "Job") => &WORKLOAD,
        ("", "PodTemplate") => &STANDALONE_TEMPLATE,
        ("", "Service") => &SERVICE,
        ("", "ServiceAccount") => &SERVICE_ACCOUNT,
        ("", "Node") => &NODE,
        ("", "Namespace" | "PersistentVolumeClaim")
        | ("policy", "PodDisruptionBudget")
        | ("autoscaling", "HorizontalPodAutoscaler") => &ONLY_CONDITIONS,
        ("", "ComponentStatus") => &COMPONENT_STATUS,
        ("batch", "CronJob") => &CRON_JOB,
        ("resource.k8s.io", "ResourceClaim") => &RESOURCE_CLAIM,
        _ => &ANY_KIND,
    }
}

// === impl Rules ===

impl Rules {
    pub(super) fn of(&self, member: &str) -> Rule {
        self.0.iter().find(|(name, _)| *name == member).map_or(Rule::Plain, |(_, rule)| *rule)
    }
}

// === impl Rule ===

impl Rule {
    /// The rules within an object at this place.
    pub(super) fn within(self) -> &'static Rules {
        match self {
            Self::Object(rules) => rules,
            Self::Plain | Self::ListByKey(..) | Self::Set => &NONE,
        }
    }
}
