//! Scenarios of the `ResourceQuota` controller. The periodic recount is off: each recount has a
//! reason.
//!
//! The API server enforces the quotas, so each scenario creates its quota before the objects, waits
//! for its status, and stays below its limits.

mod objects;
mod quotas;

use std::time::Duration;

use anyhow::Context as _;
use homeostat::kube_client::Client;
use homeostat_resourcequota::Options;
use http::Request;
use serde_json::{Value, json};

use crate::{Running, Scenario, World};

/// The scenarios of the `ResourceQuota` controller.
pub const QUOTAS: &[Scenario] = &[
    Scenario {
        name: "usage_follows_pods_services_claims_and_secrets",
        play: |world| Box::pin(usage(world)),
    },
    Scenario {
        name: "priority_class_scope_counts_only_its_pods",
        play: |world| Box::pin(scopes(world)),
    },
    Scenario {
        name: "pods_are_counted_in_each_scope_that_they_are_in",
        play: |world| Box::pin(objects::every_scope(world)),
    },
    Scenario {
        name: "service_that_changes_its_type_is_charged_for_the_new_type",
        play: |world| Box::pin(objects::service_types(world)),
    },
    Scenario {
        name: "claim_to_storage_is_charged_as_it_grows_and_shrinks",
        play: |world| Box::pin(objects::storage(world)),
    },
    Scenario {
        name: "claims_to_devices_are_charged_by_their_class",
        play: |world| Box::pin(objects::devices(world)),
    },
    Scenario {
        name: "resized_pod_is_charged_by_admission_and_relieved_by_the_controller",
        play: |world| Box::pin(objects::resize(world)),
    },
    Scenario {
        name: "overlapping_quotas_count_the_same_objects",
        play: |world| Box::pin(quotas::overlapping(world)),
    },
    Scenario {
        name: "recreated_quota_is_counted_from_the_start",
        play: |world| Box::pin(quotas::recreated(world)),
    },
    Scenario {
        name: "usage_is_right_beside_the_writes_of_admission",
        play: |world| Box::pin(quotas::beside_admission(world)),
    },
    Scenario {
        name: "custom_resource_is_counted_through_versions_until_it_is_gone",
        play: |world| Box::pin(custom_resource(world)),
    },
    Scenario {
        name: "usage_is_right_after_a_restart_of_the_api_server",
        play: |world| Box::pin(restart(world)),
    },
    Scenario {
        name: "service_account_with_the_checked_in_roles_is_enough",
        play: |world| Box::pin(service_account(world)),
    },
];

const ROLES: &str = include_str!("../../controllers/resourcequota/rbac.yaml");

/// The time for a step. A custom resource waits for a discovery, every 30 s.
const DEADLINE: Duration = Duration::from_secs(90);

/// The requests of a user in the namespace `shop`.
struct Shop {
    client: Client,
}

impl Shop {
    /// Creates the namespace and a quota.
    async fn open(world: &World, quota: &Value) -> anyhow::Result<Self> {
        let shop = Self { client: world.user().clone() };
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace",
                               "metadata": {"name": "shop"}});
        shop.send("POST", "/api/v1/namespaces", &namespace).await?;
        let account = json!({"apiVersion": "v1", "kind": "ServiceAccount",
                             "metadata": {"name": "default"}});
        // A real server admits no pod without it.
        shop.create("/api/v1", "serviceaccounts", &account).await?;
        shop.create("/api/v1", "resourcequotas", quota).await?;
        Ok(shop)
    }

    async fn send(&self, method: &str, path: &str, body: &Value) -> anyhow::Result<Value> {
        let kind =
            if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
        let request = Request::builder().method(method).uri(path).header("content-type", kind);
        let request = request.body(serde_json::to_vec(body)?)?;
        let answer = self.client.request_text(request).await;
        let answer = answer.with_context(|| format!("{method} {path}"))?;
        Ok(serde_json::from_str(&answer)?)
    }

    async fn create(&self, root: &str, resource: &str, object: &Value) -> anyhow::Result<()> {
        let path = format!("{root}/namespaces/shop/{resource}");
        self.send("POST", &path, object).await.map(drop)
    }

    async fn delete(&self, root: &str, resource: &str, name: &str) -> anyhow::Result<()> {
        let path = format!("{root}/namespaces/shop/{resource}/{name}");
        self.send("DELETE", &path, &json!({"gracePeriodSeconds": 0})).await.map(drop)
    }

    /// Repeats a request until the server accepts it.
    async fn send_until_accepted(
        &self,
        method: &str,
        path: &str,
        body: &Value,
    ) -> anyhow::Result<()> {
        let accepted = async {
            while let Err(error) = self.send(method, path, body).await {
                tracing::debug!(%error, "not accepted yet");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        let accepted = tokio::time::timeout(DEADLINE, accepted).await;
        accepted.with_context(|| format!("{method} {path} is not accepted"))
    }

    /// Waits until `status.used` of the quota `q` is this, as `pods=1,secrets=2`.
    async fn wait_for_used(&self, expected: &str) -> anyhow::Result<()> {
        self.wait_for_used_of("q", expected).await
    }

    /// Waits until `status.used` of a quota is this.
    async fn wait_for_used_of(&self, quota: &str, expected: &str) -> anyhow::Result<()> {
        let mut last = String::new();
        let arrived = async {
            while last != expected {
                tokio::time::sleep(Duration::from_millis(50)).await;
                last = self.used_of(quota).await.unwrap_or_default();
            }
        };
        let arrived = tokio::time::timeout(DEADLINE, arrived).await;
        arrived.with_context(|| format!("{quota}: expected {expected}, got {last}"))
    }

    /// Returns `status.used` of the quota `q`, or an error while the server restarts.
    async fn used(&self) -> anyhow::Result<String> {
        self.used_of("q").await
    }

    /// Returns `status.used` of a quota, or an error while the server restarts.
    async fn used_of(&self, quota: &str) -> anyhow::Result<String> {
        let path = format!("/api/v1/namespaces/shop/resourcequotas/{quota}");
        self.send("GET", &path, &Value::Null).await.map(|quota| used(&quota))
    }
}

fn used(quota: &Value) -> String {
    let used = quota["status"]["used"].as_object().into_iter().flatten();
    let text =
        |(name, value): (&String, &Value)| format!("{name}={}", value.as_str().unwrap_or("?"));
    used.map(text).collect::<Vec<_>>().join(",")
}

fn quota(hard: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"},
           "spec": {"hard": hard}})
}

fn pod(name: &str, cpu: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": [
        {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}},
    ]}})
}

fn options() -> Options {
    Options { sync_period: None, ..Options::default() }
}

async fn usage(world: &mut World) -> anyhow::Result<()> {
    let hard = json!({"pods": "5", "requests.cpu": "2", "count/secrets": "9",
                      "services.nodeports": "9", "requests.storage": "99Gi"});
    let shop = Shop::open(world, &quota(&hard)).await?;
    let running = world.run_quota_controller(options());
    let zero = "count/secrets=0,pods=0,requests.cpu=0,requests.storage=0,services.nodeports=0";
    shop.wait_for_used(zero).await?;
    shop.create("/api/v1", "pods", &pod("a", "100m")).await?;
    shop.create("/api/v1", "pods", &pod("b", "250m")).await?;
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}});
    shop.create("/api/v1", "secrets", &secret).await?;
    let claim = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "51Gi"}}}});
    shop.create("/api/v1", "persistentvolumeclaims", &claim).await?;
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"},
        "spec": {"type": "NodePort", "selector": {"app": "web"},
                 "ports": [{"name": "a", "port": 80}, {"name": "b", "port": 81}]}});
    shop.create("/api/v1", "services", &service).await?;
    let full =
        "count/secrets=1,pods=2,requests.cpu=350m,requests.storage=51Gi,services.nodeports=2";
    shop.wait_for_used(full).await?;
    // A service that loses a port at the same type.
    let patch = json!({"spec": {"ports": [{"name": "a", "port": 80}]}});
    shop.send("PATCH", "/api/v1/namespaces/shop/services/web", &patch).await?;
    shop.delete("/api/v1", "pods", "a").await?;
    shop.delete("/api/v1", "secrets", "s").await?;
    let less =
        "count/secrets=0,pods=1,requests.cpu=250m,requests.storage=51Gi,services.nodeports=1";
    shop.wait_for_used(less).await?;
    let done = json!({"status": {"phase": "Succeeded"}});
    shop.send("PATCH", "/api/v1/namespaces/shop/pods/b/status", &done).await?;
    let done = "count/secrets=0,pods=0,requests.cpu=0,requests.storage=51Gi,services.nodeports=1";
    shop.wait_for_used(done).await?;
    running.stop().await
}

async fn scopes(world: &mut World) -> anyhow::Result<()> {
    let selector = |class: &str| {
        json!({"matchExpressions": [
            {"scopeName": "PriorityClass", "operator": "In", "values": [class]},
        ]})
    };
    let mut quota = quota(&json!({"pods": "9"}));
    quota["spec"]["scopeSelector"] = selector("high");
    let shop = Shop::open(world, &quota).await?;
    for (name, value) in [("high", 1000), ("low", 10)] {
        let class = json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
                           "metadata": {"name": name}, "value": value});
        shop.send("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", &class).await?;
    }
    let running = world.run_quota_controller(options());
    shop.wait_for_used("pods=0").await?;
    for (name, class) in [("a", "high"), ("b", "low"), ("c", "low")] {
        let mut pod = pod(name, "1");
        pod["spec"]["priorityClassName"] = json!(class);
        shop.create("/api/v1", "pods", &pod).await?;
    }
    shop.wait_for_used("pods=1").await?;
    let patch = json!({"spec": {"scopeSelector": selector("low")}});
    shop.send("PATCH", "/api/v1/namespaces/shop/resourcequotas/q", &patch).await?;
    shop.wait_for_used("pods=2").await?;
    running.stop().await
}

/// Returns the definition of `foos.example.com`, of which only `served` is served.
fn definition(served: &str) -> Value {
    let version = |name: &str| {
        json!({"name": name, "served": name == served, "storage": name == "v1",
               "schema": {"openAPIV3Schema": {"type": "object"}}})
    };
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "foos.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced",
            "names": {"kind": "Foo", "plural": "foos", "singular": "foo", "listKind": "FooList"},
            "versions": [version("v1"), version("v2")]}})
}

/// Repeats a request until the server knows the custom resource.
async fn create_foo(shop: &Shop, version: &str, name: &str) -> anyhow::Result<()> {
    let root = format!("/apis/example.com/{version}");
    let object = json!({"apiVersion": format!("example.com/{version}"), "kind": "Foo",
                     "metadata": {"name": name}});
    let created = tokio::time::timeout(DEADLINE, async {
        while shop.create(&root, "foos", &object).await.is_err() {
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    });
    created.await.context("the custom resource is not served")
}

async fn custom_resource(world: &mut World) -> anyhow::Result<()> {
    let hard = json!({"count/foos.example.com": "9", "configmaps": "9"});
    let shop = Shop::open(world, &quota(&hard)).await?;
    // A quick discovery, so that the scenario does not wait 30 s three times.
    let options = Options { discovery_period: Duration::from_secs(2), ..options() };
    let running = world.run_quota_controller(options);
    shop.wait_for_used("configmaps=0").await?;
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    shop.send("POST", definitions, &definition("v1")).await?;
    shop.wait_for_used("configmaps=0,count/foos.example.com=0").await?;
    for name in ["a", "b", "c"] {
        create_foo(&shop, "v1", name).await?;
    }
    shop.wait_for_used("configmaps=0,count/foos.example.com=3").await?;
    let path = format!("{definitions}/foos.example.com");
    let versions = json!({"spec": {"versions": definition("v2")["spec"]["versions"]}});
    shop.send("PATCH", &path, &versions).await?;
    create_foo(&shop, "v2", "d").await?;
    shop.wait_for_used("configmaps=0,count/foos.example.com=4").await?;
    for name in ["a", "b"] {
        shop.delete("/apis/example.com/v2", "foos", name).await?;
    }
    shop.wait_for_used("configmaps=0,count/foos.example.com=2").await?;
    shop.send("DELETE", &path, &json!({})).await?;
    shop.wait_for_used("configmaps=0,count/foos.example.com=0").await?;
    running.stop().await
}

async fn restart(world: &mut World) -> anyhow::Result<()> {
    let shop = Shop::open(world, &quota(&json!({"pods": "9"}))).await?;
    let running = world.run_quota_controller(options());
    shop.wait_for_used("pods=0").await?;
    shop.create("/api/v1", "pods", &pod("a", "1")).await?;
    shop.create("/api/v1", "pods", &pod("b", "1")).await?;
    shop.wait_for_used("pods=2").await?;
    world.restart_api_server().await?;
    let deleted = tokio::time::timeout(DEADLINE, async {
        while shop.delete("/api/v1", "pods", "a").await.is_err() {
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    });
    deleted.await.context("the server does not come back")?;
    shop.wait_for_used("pods=1").await?;
    running.stop().await
}

async fn service_account(world: &mut World) -> anyhow::Result<()> {
    let hard = json!({"pods": "9", "secrets": "9", "count/leases.coordination.k8s.io": "9"});
    let shop = Shop::open(world, &quota(&hard)).await?;
    let client = world.service_account(ROLES, "homeostat-resourcequota").await?;
    let running = Running::of_quotas(client, options());
    shop.wait_for_used("count/leases.coordination.k8s.io=0,pods=0,secrets=0").await?;
    shop.create("/api/v1", "pods", &pod("a", "1")).await?;
    shop.wait_for_used("count/leases.coordination.k8s.io=0,pods=1,secrets=0").await?;
    shop.delete("/api/v1", "pods", "a").await?;
    shop.wait_for_used("count/leases.coordination.k8s.io=0,pods=0,secrets=0").await?;
    running.stop().await
}
