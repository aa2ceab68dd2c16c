//! The pods of `k8s.io/pod-security-admission`, whose names say the check that they pass or fail.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{env, fs};

use serde_json::{Value, json};

use super::{Level, PodView, Policy, evaluate};

/// The folder of upstream's pods, if `go mod download` has fetched the module.
fn fixtures() -> Option<PathBuf> {
    let below = |variable: &str, path: &str| Some(PathBuf::from(env::var_os(variable)?).join(path));
    let cache = below("GOMODCACHE", "")
        .or_else(|| below("GOPATH", "pkg/mod"))
        .or_else(|| below("HOME", "go/pkg/mod"))?;
    let folder = cache.join("k8s.io/pod-security-admission@v0.37.1/test/testdata");
    folder.is_dir().then_some(folder)
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn policy(level: &str, version: &str) -> Policy {
    let labels = [("enforce", level), ("enforce-version", version)];
    let labels: BTreeMap<String, String> = labels
        .map(|(mode, text)| (format!("pod-security.kubernetes.io/{mode}"), text.to_owned()))
        .into();
    let (policy, causes) = Policy::read(&labels);
    assert!(causes.is_empty(), "{causes:?}");
    policy
}

/// Returns the reasons for which a pod does not have a level.
fn reasons(level: &str, version: &str, pod: &Value) -> Vec<&'static str> {
    let view = PodView { metadata: &pod["metadata"], spec: &pod["spec"] };
    let violations = evaluate(policy(level, version).enforce, view);
    violations.iter().map(|violation| violation.reason).collect()
}

/// Completes volumes without a source, as the server does before the checks.
fn set_default_volumes(pod: &mut Value) {
    let volumes = pod.pointer_mut("/spec/volumes").and_then(Value::as_array_mut);
    let volumes = volumes.into_iter().flatten().filter_map(Value::as_object_mut);
    for volume in volumes.filter(|volume| volume.len() == 1) {
        volume.insert("emptyDir".to_owned(), json!({}));
    }
}

/// Checks the pods of a folder, and returns their number.
fn check_folder(root: &Path, level: &str, version: &str, outcome: &str) -> usize {
    let folder = root.join(level).join(version).join(outcome);
    let names = names(&folder);
    for name in &names {
        let text = fs::read_to_string(folder.join(name)).unwrap();
        let mut pod: Value = serde_saphyr::from_str(&text).unwrap();
        set_default_volumes(&mut pod);
        let found = reasons(level, version, &pod);
        assert_eq!(found.is_empty(), outcome == "pass", "{level} {version} {name}: {found:?}");
    }
    names.len()
}

#[test]
fn pods_of_upstream_have_the_levels_that_their_folders_name() {
    let plain = json!({"spec": {"containers": [{"name": "c"}]}});
    assert!(reasons("baseline", "latest", &plain).is_empty());
    assert_eq!(reasons("restricted", "latest", &plain).len(), 4);
    let Some(root) = fixtures() else { return };
    let mut count = 0;
    for level in names(&root).iter().filter(|level| Level::parse(level).is_some()) {
        for version in names(&root.join(level)) {
            count += check_folder(&root, level, &version, "pass");
            count += check_folder(&root, level, &version, "fail");
        }
    }
    assert!(count > 4000, "{count} pods were found");
}

#[test]
fn version_chooses_the_rules_of_a_check() {
    let sysctl = |name: &str| {
        let sysctls = json!([{"name": name, "value": "1"}]);
        json!({"spec": {"securityContext": {"sysctls": sysctls}, "containers": [{"name": "c"}]}})
    };
    let pod = sysctl("net.ipv4.tcp_rmem");
    assert_eq!(reasons("baseline", "v1.31", &pod), ["forbidden sysctls"]);
    assert!(reasons("baseline", "v1.32", &pod).is_empty());
    let probe = json!({"tcpSocket": {"port": 1, "host": "h"}});
    let pod = json!({"spec": {"containers": [{"name": "c", "livenessProbe": probe}]}});
    assert!(reasons("baseline", "v1.33", &pod).is_empty());
    assert_eq!(reasons("baseline", "v1.34", &pod), ["probe or lifecycle host"]);
    let unmasked = json!({"procMount": "Unmasked"});
    let containers = json!([{"name": "c", "securityContext": unmasked}]);
    let pod = json!({"spec": {"hostUsers": false, "containers": containers}});
    assert_eq!(reasons("baseline", "v1.34", &pod), ["procMount"]);
    assert!(reasons("baseline", "v1.35", &pod).is_empty());
    assert!(reasons("restricted", "v1.35", &pod).contains(&"procMount"));
}

#[test]
fn stricter_check_replaces_the_one_that_it_contains() {
    let containers = json!([{"name": "c", "securityContext": {"capabilities": {"add": ["X"]}}}]);
    let volumes = json!([{"name": "v", "hostPath": {"path": "/"}}]);
    let pod = json!({"spec": {"volumes": volumes, "containers": containers}});
    let old = reasons("restricted", "v1.21", &pod);
    assert!(old.contains(&"non-default capabilities"), "{old:?}");
    let new = reasons("restricted", "v1.22", &pod);
    assert!(!new.contains(&"non-default capabilities"), "{new:?}");
    assert!(new.contains(&"unrestricted capabilities"), "{new:?}");
    assert!(new.contains(&"restricted volume types") && !new.contains(&"hostPath volumes"));
}
