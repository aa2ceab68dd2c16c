//! RBAC: the rules of roles.

use serde::{Deserialize, Serialize};

/// A request, as rules describe it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Attributes {
    pub(crate) verb: String,
    /// Empty for cluster-scoped requests.
    pub(crate) namespace: String,
    pub(crate) group: String,
    pub(crate) resource: String,
    pub(crate) subresource: String,
    /// Empty for collections.
    pub(crate) name: String,
    /// The path of a request for no resource.
    pub(crate) path: Option<String>,
}

/// A rule of a role.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct PolicyRule {
    pub(crate) verbs: Names,
    #[serde(skip_serializing_if = "Names::is_empty")]
    pub(crate) api_groups: Names,
    #[serde(skip_serializing_if = "Names::is_empty")]
    pub(crate) resources: Names,
    #[serde(skip_serializing_if = "Names::is_empty")]
    pub(crate) resource_names: Names,
    #[serde(skip_serializing_if = "Names::is_empty", rename = "nonResourceURLs")]
    pub(crate) non_resource_urls: Names,
}

/// A list of names; null is an empty one, and `*` stands for all.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Names(Vec<String>);

/// The part of a Role or a `ClusterRole` that decides.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Role {
    pub(crate) rules: Option<Vec<PolicyRule>>,
}

const ANY: &str = "*";

// === impl Attributes ===

impl Attributes {
    /// The subresources whose requests last as long as their client wants.
    pub(crate) const LONG_RUNNING: [&str; 5] = ["attach", "exec", "log", "portforward", "proxy"];
}

// === impl Names ===

impl Names {
    pub(crate) fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns true if this is one of the names, or if they are all.
    pub(crate) fn has(&self, text: &str) -> bool {
        self.0.iter().any(|known| known == ANY || known == text)
    }
}

impl<'de> Deserialize<'de> for Names {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(Option::<Vec<String>>::deserialize(deserializer)?.unwrap_or_default()))
    }
}

// === impl PolicyRule ===

impl PolicyRule {
    /// Returns true if the rule permits the request.
    pub(crate) fn allows(&self, request: &Attributes) -> bool {
        if !self.verbs.has(&request.verb) {
            return false;
        }
        match &request.path {
            Some(path) => self.non_resource_urls.0.iter().any(|url| covers(url, path)),
            None => {
                self.api_groups.has(&request.group)
                    && self.names_resource(request)
                    && (self.resource_names.is_empty()
                        || self.resource_names.0.contains(&request.name))
            }
        }
    }

    pub(crate) fn is_for_resources(&self) -> bool {
        !self.resources.is_empty()
    }

    pub(crate) fn is_for_paths(&self) -> bool {
        !self.non_resource_urls.is_empty()
    }

    /// Returns a rule that gives every right.
    pub(crate) fn everything() -> [Self; 2] {
        let any = || Names(vec![ANY.to_owned()]);
        let resources =
            Self { verbs: any(), api_groups: any(), resources: any(), ..Self::default() };
        [resources, Self { verbs: any(), non_resource_urls: any(), ..Self::default() }]
    }

    /// Splits the rule into rules with one verb for one resource, object or path.
    fn single_rights(&self) -> Vec<Self> {
        let one = |text: &String| Names(vec![text.clone()]);
        let mut rights = Vec::new();
        for (group, resource) in pairs(&self.api_groups, &self.resources) {
            rights.extend(self.verbs.0.iter().map(|verb| Self {
                verbs: one(verb),
                api_groups: one(group),
                resources: one(resource),
                ..Self::default()
            }));
        }
        if !self.resource_names.is_empty() {
            let named = |right: &Self| {
                let named = |name| Self { resource_names: one(name), ..right.clone() };
                self.resource_names.0.iter().map(named).collect::<Vec<_>>()
            };
            rights = rights.iter().flat_map(named).collect();
        }
        for (url, verb) in pairs(&self.non_resource_urls, &self.verbs) {
            let (verbs, non_resource_urls) = (one(verb), one(url));
            rights.push(Self { verbs, non_resource_urls, ..Self::default() });
        }
        rights
    }

    /// Returns true if the rule gives a right of [`single_rights`](Self::single_rights).
    fn gives(&self, right: &Self) -> bool {
        let all = |list: &Names, wanted: &Names| wanted.0.iter().all(|text| list.has(text));
        let has_resource = |path: &String| {
            let of_any = path.split_once('/').map(|(_, part)| format!("*/{part}"));
            self.resources.has(path) || of_any.is_some_and(|path| self.resources.0.contains(&path))
        };
        let has_name = |name: &String| self.resource_names.0.contains(name);
        let has_url = |path: &String| self.non_resource_urls.0.iter().any(|url| covers(url, path));
        let names = &right.resource_names;
        all(&self.verbs, &right.verbs)
            && all(&self.api_groups, &right.api_groups)
            && right.resources.0.iter().all(has_resource)
            && right.non_resource_urls.0.iter().all(has_url)
            && (self.resource_names.is_empty()
                || (!names.is_empty() && names.0.iter().all(has_name)))
    }

    /// Writes the rule as the real server does in messages.
    fn compact(&self) -> String {
        let lists = [
            ("APIGroups", &self.api_groups),
            ("Resources", &self.resources),
            ("NonResourceURLs", &self.non_resource_urls),
            ("ResourceNames", &self.resource_names),
            ("Verbs", &self.verbs),
        ];
        let set = lists.into_iter().filter(|(_, list)| !list.is_empty());
        let parts: Vec<String> =
            set.map(|(name, list)| format!("{name}:{}", quoted(&list.0))).collect();
        format!("{{{}}}", parts.join(", "))
    }

    fn names_resource(&self, request: &Attributes) -> bool {
        let subresource = &request.subresource;
        if subresource.is_empty() {
            return self.resources.has(&request.resource);
        }
        let combined = format!("{}/{subresource}", request.resource);
        let any_parent = format!("*/{subresource}");
        self.resources.has(&combined) || self.resources.0.contains(&any_parent)
    }
}

/// Returns the rights in `wanted` that no rule of `held` gives, in the notation of the real server,
/// sorted. Rights on one resource are one text.
pub(crate) fn missing_rights(held: &[PolicyRule], wanted: &[PolicyRule]) -> Vec<String> {
    let single = wanted.iter().flat_map(PolicyRule::single_rights);
    let missing = single.filter(|right| !held.iter().any(|rule| rule.gives(right)));
    let mut joined: Vec<PolicyRule> = Vec::new();
    for right in missing {
        let same = |other: &&mut PolicyRule| {
            let of = |rule: &PolicyRule| {
                (rule.api_groups.clone(), rule.resources.clone(), rule.resource_names.clone())
            };
            right.is_for_resources() && of(other) == of(&right)
        };
        match joined.iter_mut().find(same) {
            Some(other) => other.verbs.0.extend(right.verbs.0),
            None => joined.push(right),
        }
    }
    let mut texts: Vec<String> = joined.iter().map(PolicyRule::compact).collect();
    texts.sort();
    texts.dedup();
    texts
}

/// Returns true if a URL of a rule, which may end in `*`, covers a path.
fn covers(url: &str, path: &str) -> bool {
    let is_prefix = url.ends_with('*') && path.starts_with(url.trim_end_matches('*'));
    url == ANY || url == path || is_prefix
}

fn pairs<'a>(a: &'a Names, b: &'a Names) -> impl Iterator<Item = (&'a String, &'a String)> {
    a.0.iter().flat_map(|a| b.0.iter().map(move |b| (a, b)))
}

/// Writes a list of texts as Go's `%q` does.
pub(crate) fn quoted(texts: &[String]) -> String {
    let texts: Vec<String> = texts.iter().map(|text| homeostat_core::go_quote(text)).collect();
    format!("[{}]", texts.join(" "))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rule(value: serde_json::Value) -> PolicyRule {
        serde_json::from_value(value).unwrap()
    }

    fn request(verb: &str, group: &str, resource: &str, name: &str) -> Attributes {
        let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
        Attributes {
            verb: verb.to_owned(),
            group: group.to_owned(),
            resource: resource.to_owned(),
            subresource: subresource.to_owned(),
            name: name.to_owned(),
            ..Attributes::default()
        }
    }

    #[test]
    fn rule_allows_what_it_names() {
        let pods = json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]});
        let pods = rule(pods);
        assert!(pods.allows(&request("get", "", "pods", "a")));
        assert!(!pods.allows(&request("list", "", "pods", "")));
        assert!(!pods.allows(&request("get", "apps", "pods", "a")));
        assert!(!pods.allows(&request("get", "", "pods/status", "a")));
    }

    #[test]
    fn star_covers_resources_with_their_subresources() {
        let all = rule(json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}));
        assert!(all.allows(&request("patch", "apps", "deployments/scale", "a")));
        let scale = json!({"verbs": ["*"], "apiGroups": ["apps"], "resources": ["*/scale"]});
        let scale = rule(scale);
        assert!(scale.allows(&request("patch", "apps", "deployments/scale", "a")));
        assert!(!scale.allows(&request("patch", "apps", "deployments", "a")));
        assert!(!scale.allows(&request("patch", "apps", "deployments/status", "a")));
    }

    #[test]
    fn names_restrict_a_rule_to_objects() {
        let named = rule(json!({"verbs": ["get", "list"], "apiGroups": [""],
            "resources": ["secrets"], "resourceNames": ["a"]}));
        assert!(named.allows(&request("get", "", "secrets", "a")));
        assert!(!named.allows(&request("get", "", "secrets", "b")));
        assert!(!named.allows(&request("list", "", "secrets", "")));
    }

    #[test]
    fn paths_are_covered_exactly_or_by_a_prefix() {
        let path = |path: &str| Attributes {
            verb: "get".to_owned(),
            path: Some(path.to_owned()),
            ..Attributes::default()
        };
        let urls = rule(json!({"verbs": ["get"], "nonResourceURLs": ["/healthz", "/api/*"]}));
        assert!(urls.allows(&path("/healthz")));
        assert!(!urls.allows(&path("/healthz/etcd")));
        assert!(urls.allows(&path("/api/v1")));
        assert!(!urls.allows(&path("/api")));
        assert!(!urls.allows(&request("get", "", "pods", "")));
    }

    #[test]
    fn missing_rights_are_joined_by_resource() {
        let held = [
            rule(json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods", "*/status"]})),
            rule(json!({"verbs": ["*"], "apiGroups": [""], "resources": ["secrets"],
                "resourceNames": ["a"]})),
            rule(json!({"verbs": ["get"], "nonResourceURLs": ["/api/*"]})),
        ];
        let missing = |wanted: serde_json::Value| missing_rights(&held, &[rule(wanted)]);
        let pods = json!({"verbs": ["get", "list", "watch"], "apiGroups": ["", "x"],
            "resources": ["pods", "nodes/status"]});
        assert_eq!(
            missing(pods),
            [
                r#"{APIGroups:[""], Resources:["nodes/status"], Verbs:["list" "watch"]}"#,
                r#"{APIGroups:[""], Resources:["pods"], Verbs:["list" "watch"]}"#,
                r#"{APIGroups:["x"], Resources:["nodes/status"], Verbs:["get" "list" "watch"]}"#,
                r#"{APIGroups:["x"], Resources:["pods"], Verbs:["get" "list" "watch"]}"#,
            ]
        );
        let secrets = |names: serde_json::Value| {
            json!({"verbs": ["get"], "apiGroups": [""], "resources": ["secrets"],
                "resourceNames": names})
        };
        assert!(missing(secrets(json!(["a"]))).is_empty());
        assert_eq!(missing(secrets(json!(["a", "b"]))).len(), 1);
        assert_eq!(missing(secrets(json!([]))).len(), 1);
        assert!(missing(json!({"verbs": ["get"], "nonResourceURLs": ["/api/v1"]})).is_empty());
        let paths = json!({"verbs": ["get"], "nonResourceURLs": ["/metrics"]});
        assert_eq!(missing(paths), [r#"{NonResourceURLs:["/metrics"], Verbs:["get"]}"#]);
        assert!(missing_rights(&PolicyRule::everything(), &held).is_empty());
        assert_eq!(missing_rights(&held, &PolicyRule::everything()).len(), 2);
    }

    #[test]
    fn null_lists_are_empty() {
        let empty = rule(json!({"verbs": null, "apiGroups": null, "resources": null}));
        assert!(!empty.allows(&request("get", "", "pods", "")));
    }
}
