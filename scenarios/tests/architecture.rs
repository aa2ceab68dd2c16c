//! Arrows between crates point one way, as `docs/architecture.md` draws them. Those between the
//! modules of one crate: `checks/tests/modules.rs`.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value;

/// The packages of this workspace that each package may depend on; `(dev)` marks a dependency of
/// its tests.
const ALLOWED: &[(&str, &[&str])] = &[
    ("homeostat-core", &[]),
    ("homeostat-workqueue", &["homeostat-core"]),
    ("homeostat-expectations", &["homeostat-core"]),
    ("homeostat-informer", &["homeostat-core", "homeostat-informer-derive", "homeostat-json"]),
    ("homeostat-informer-derive", &[]),
    ("homeostat-json", &[]),
    ("homeostat-quantity", &[]),
    ("homeostat-quota", &["homeostat-core", "homeostat-quantity"]),
    ("homeostat-schema", &["homeostat-core", "homeostat-quantity"]),
    ("homeostat-faults", &["homeostat-core", "homeostat-apiserver (dev)"]),
    (
        "homeostat-apiserver",
        &[
            "homeostat-core",
            "homeostat-faults",
            "homeostat-json",
            "homeostat-quantity",
            "homeostat-quota",
            "homeostat-schema",
            "homeostat-testing (dev)",
        ],
    ),
    ("homeostat-testing", &["homeostat-apiserver", "homeostat-faults"]),
    (
        "homeostat",
        &[
            "homeostat-core",
            "homeostat-workqueue",
            "homeostat-expectations",
            "homeostat-informer",
            "homeostat-informer-derive",
        ],
    ),
    (
        "homeostat-replicaset",
        &[
            "homeostat",
            "homeostat-core",
            "homeostat-json",
            "homeostat-apiserver (dev)",
            "homeostat-faults (dev)",
            "homeostat-testing (dev)",
        ],
    ),
    ("homeostat-sample", &["homeostat", "homeostat-testing (dev)"]),
    (
        "homeostat-resourcequota",
        &[
            "homeostat",
            "homeostat-core",
            "homeostat-quantity",
            "homeostat-quota",
            "homeostat-apiserver (dev)",
            "homeostat-faults (dev)",
            "homeostat-testing (dev)",
        ],
    ),
    (
        "homeostat-resourceclaim",
        &[
            "homeostat",
            "homeostat-core",
            "homeostat-apiserver (dev)",
            "homeostat-faults (dev)",
            "homeostat-testing (dev)",
        ],
    ),
];

/// These may depend on anything. Only they may depend on them.
const LEAVES: &[&str] = &[
    "homeostat-scenarios",
    "homeostat-examples",
    "homeostat-benches",
    "homeostat-checks",
    "homeostat-mutants",
];

#[test]
fn no_arrow_between_crates_is_forbidden() {
    let arrows = arrows();
    for (package, dependencies) in &arrows {
        if LEAVES.contains(&package.as_str()) {
            continue;
        }
        let allowed = ALLOWED
            .iter()
            .find_map(|(name, allowed)| (name == package).then_some(*allowed))
            .unwrap_or_else(|| panic!("say in this test what {package} may depend on"));
        for dependency in dependencies {
            let plain = dependency.trim_end_matches(" (dev)");
            assert!(
                allowed.contains(&dependency.as_str()) || allowed.contains(&plain),
                "{package} may not depend on {dependency}"
            );
        }
    }
    assert!(arrows.len() >= ALLOWED.len() + LEAVES.len(), "cargo metadata lists every crate");
}

#[test]
fn every_library_can_be_published() {
    for package in packages() {
        let name = package["name"].as_str().unwrap();
        if LEAVES.contains(&name) {
            assert_eq!(package["publish"], Value::Array(Vec::new()), "{name} is not published");
            continue;
        }
        for field in ["description", "license", "readme", "rust_version"] {
            assert!(package[field].is_string(), "{name} has no {field}");
        }
        for field in ["keywords", "categories"] {
            let filled = package[field].as_array().is_some_and(|list| !list.is_empty());
            assert!(filled, "{name} has no {field}");
        }
    }
}

/// Package → the packages of this workspace that it depends on.
fn arrows() -> BTreeMap<String, BTreeSet<String>> {
    packages()
        .iter()
        .map(|package| {
            let dependencies =
                package["dependencies"].as_array().expect("cargo metadata has a list here").iter();
            // A package may be its own dev-dependency: so its tests see features that are off by
            // default.
            let ours = dependencies
                .filter(|other| other["path"].is_string() && other["name"] != package["name"])
                .map(|dependency| {
                    let dev = if dependency["kind"] == "dev" { " (dev)" } else { "" };
                    format!("{}{dev}", dependency["name"].as_str().expect("a package has a name"))
                })
                .collect();
            (package["name"].as_str().expect("a package has a name").to_owned(), ours)
        })
        .collect()
}

fn packages() -> Vec<Value> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo metadata is JSON");
    metadata["packages"].as_array().expect("cargo metadata has a list here").clone()
}
