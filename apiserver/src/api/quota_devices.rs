//! The stored objects on which the charge of a claim to devices depends.

use std::sync::Arc;

use homeostat_quota::object::device::{DeviceClass, ResourceClaim};
use homeostat_quota::object::pod::Pod;
use homeostat_quota::{
    DeviceClassMapping, DeviceContext, Gates, OwnerPod, SiblingClaim, pod_charge,
};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::core::Core;
use crate::object::Stored;

const GROUP: &str = "resource.k8s.io";

/// The device classes, pods and claims of a server.
#[derive(Debug)]
pub(super) struct Devices<'a> {
    core: &'a Core,
    classes: DeviceClassMapping,
}

// === impl Devices ===

impl<'a> Devices<'a> {
    pub(super) fn of(core: &'a Core) -> Self {
        let mut classes = DeviceClassMapping::default();
        for class in stored(core, "deviceclasses", "") {
            if let Some(class) = decoded::<DeviceClass>(&class) {
                classes.apply(&class);
            }
        }
        Self { core, classes }
    }
}

impl DeviceContext for Devices<'_> {
    fn classes(&self) -> &DeviceClassMapping {
        &self.classes
    }

    fn pod(&self, namespace: &str, name: &str) -> Option<OwnerPod> {
        let stored = self.core.find("pods", namespace, name)?;
        let pod = decoded::<Pod>(&stored)?;
        let served_by = pod.status.extended_resource_claim_status.as_ref();
        Some(OwnerPod {
            extended_resource_claim: served_by.map(|served| served.resource_claim_name.clone()),
            usage: pod_charge(&pod, Gates::default()).usage(self.core.clock.now()),
            uid: pod.metadata.uid,
        })
    }

    fn claims_of(&self, namespace: &str, pod_uid: &str) -> Vec<SiblingClaim> {
        let claims = stored(self.core, "resourceclaims", namespace);
        let claims = claims.iter().filter_map(decoded::<ResourceClaim>);
        let is_of_pod = |claim: &ResourceClaim| {
            claim.extended_resource_owner().is_some_and(|owner| owner.uid == pod_uid)
        };
        let sibling = |claim: ResourceClaim| SiblingClaim {
            created: claim.metadata.creation_timestamp,
            name: claim.metadata.name,
        };
        claims.filter(is_of_pod).map(sibling).collect()
    }
}

/// Returns the stored objects of a kind of devices in a namespace.
fn stored(core: &Core, plural: &str, namespace: &str) -> Vec<Arc<Stored>> {
    let Some(served) = core.kinds().find(GROUP, "v1", plural) else { return Vec::new() };
    core.objects_in(served.resource, namespace)
}

/// Decodes a stored object; `None` if it is not of this type.
fn decoded<T: DeserializeOwned>(stored: &Arc<Stored>) -> Option<T> {
    serde_json::from_value(Value::Object(stored.fields())).ok()
}

#[cfg(test)]
mod tests {
    use http::Request;
    use kube_client::Client;
    use serde_json::{Value, json};

    use crate::ApiServer;

    const CLAIMS: &str = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims";

    async fn send(client: &Client, method: &str, path: &str, body: &Value) -> Value {
        let request = Request::builder().method(method).uri(path);
        let request = request.header("content-type", "application/json");
        client.request(request.body(body.to_string().into_bytes()).unwrap()).await.unwrap()
    }

    fn claim(name: &str, pod_uid: &Value) -> Value {
        json!({
            "metadata": {
                "name": name,
                "annotations": {"resource.kubernetes.io/extended-resource-claim": "true"},
                "ownerReferences": [{
                    "apiVersion": "v1", "kind": "Pod", "name": "p", "uid": pod_uid,
                    "controller": true,
                }],
            },
            "spec": {"devices": {"requests": [
                {"name": "r", "exactly": {"deviceClassName": "gpu", "count": 3}},
            ]}},
        })
    }

    #[tokio::test]
    async fn first_claim_of_a_pod_is_not_charged_for_what_the_pod_is() {
        const USED: &str = "requests.example.com/gpu";
        let server = ApiServer::builder().quota_admission().build();
        let client = server.client();
        let class = json!({
            "metadata": {"name": "gpu"}, "spec": {"extendedResourceName": "example.com/gpu"},
        });
        send(&client, "POST", "/apis/resource.k8s.io/v1/deviceclasses", &class).await;
        let quotas = "/api/v1/namespaces/default/resourcequotas";
        let hard = json!({"metadata": {"name": "q"}, "spec": {"hard": {USED: "9"}}});
        let mut quota = send(&client, "POST", quotas, &hard).await;
        quota["status"] = json!({"hard": {USED: "9"}, "used": {USED: "0"}});
        send(&client, "PUT", &format!("{quotas}/q/status"), &quota).await;

        let two = json!({"example.com/gpu": "2"});
        let pod = json!({"metadata": {"name": "p"}, "spec": {"containers": [
            {"name": "c", "image": "c", "resources": {"requests": two, "limits": two}},
        ]}});
        let pod = send(&client, "POST", "/api/v1/namespaces/default/pods", &pod).await;
        let used = async || {
            let quota = send(&client, "GET", &format!("{quotas}/q"), &Value::Null).await;
            quota["status"]["used"][USED].clone()
        };
        assert_eq!(used().await, "2");
        send(&client, "POST", CLAIMS, &claim("a", &pod["metadata"]["uid"])).await;
        assert_eq!(used().await, "3", "one device is not charged to the pod");
        send(&client, "POST", CLAIMS, &claim("b", &pod["metadata"]["uid"])).await;
        assert_eq!(used().await, "6", "another claim serves the pod");
    }
}
