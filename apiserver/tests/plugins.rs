//! Admission plugins that are switched off.

#![expect(clippy::unwrap_used, reason = "a test that fails is meant to panic")]

use homeostat_apiserver::{AdmissionPlugin, ApiServer};
use k8s_openapi::api::core::v1::{
    LimitRange, Namespace, Node, PersistentVolume, PersistentVolumeClaim, Pod, ResourceRequirements,
};
use k8s_openapi::api::networking::v1::{Ingress, IngressClass};
use k8s_openapi::api::scheduling::v1::PriorityClass;
use k8s_openapi::api::storage::v1::StorageClass;
use kube_client::api::{DeleteParams, PostParams};
use kube_client::{Api, Client, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;

fn client(off: impl IntoIterator<Item = AdmissionPlugin>) -> Client {
    let builder = ApiServer::builder().seed(1);
    off.into_iter().fold(builder, homeostat_apiserver::Builder::without_plugin).build().client()
}

async fn create<K>(api: Api<K>, object: serde_json::Value) -> Result<K, kube_client::Error>
where
    K: kube_client::Resource + Clone + std::fmt::Debug + Serialize + DeserializeOwned,
{
    api.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await
}

async fn create_pod(client: &Client, namespace: &str) -> Result<Pod, kube_client::Error> {
    let spec = json!({"containers": [{"name": "c", "image": "nginx"}]});
    let pod = json!({"metadata": {"generateName": "a-"}, "spec": spec});
    create(Api::namespaced(client.clone(), namespace), pod).await
}

async fn create_defaults(client: &Client) {
    let meta = json!({"name": "usual"});
    let class = json!({"metadata": meta, "value": 7, "globalDefault": true});
    create::<PriorityClass>(Api::all(client.clone()), class).await.unwrap();
    let annotations = json!({"storageclass.kubernetes.io/is-default-class": "true"});
    let meta = json!({"name": "usual", "annotations": annotations});
    let class = json!({"metadata": meta, "provisioner": "example.com/none"});
    create::<StorageClass>(Api::all(client.clone()), class).await.unwrap();
    let limits = json!([{"type": "Container", "default": {"cpu": "1"}, "max": {"cpu": "2"}}]);
    let range = json!({"metadata": {"name": "usual"}, "spec": {"limits": limits}});
    create::<LimitRange>(Api::default_namespaced(client.clone()), range).await.unwrap();
}

async fn create_claim(client: &Client) -> PersistentVolumeClaim {
    let requests = json!({"requests": {"storage": "1Gi"}});
    let spec = json!({"accessModes": ["ReadWriteOnce"], "resources": requests});
    let claim = json!({"metadata": {"name": "a"}, "spec": spec});
    create(Api::default_namespaced(client.clone()), claim).await.unwrap()
}

async fn create_volume(client: &Client) -> PersistentVolume {
    let spec = json!({"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"},
        "hostPath": {"path": "/a"}});
    create(Api::all(client.clone()), json!({"metadata": {"name": "a"}, "spec": spec}))
        .await
        .unwrap()
}

#[tokio::test]
async fn every_plugin_is_on_by_default() {
    let client = client([]);
    create_defaults(&client).await;
    assert!(create_pod(&client, "absent").await.is_err());
    let spec = create_pod(&client, "default").await.unwrap().spec.unwrap();
    assert_eq!(spec.priority, Some(7));
    assert_eq!(spec.tolerations.unwrap().len(), 2);
    assert!(spec.containers[0].resources.as_ref().unwrap().limits.is_some());
    let claim = create_claim(&client).await;
    assert_eq!(claim.finalizers(), ["kubernetes.io/pvc-protection"]);
    assert_eq!(claim.spec.unwrap().storage_class_name.as_deref(), Some("usual"));
    assert_eq!(create_volume(&client).await.finalizers(), ["kubernetes.io/pv-protection"]);
    let namespaces = Api::<Namespace>::all(client.clone());
    assert!(namespaces.delete("default", &DeleteParams::default()).await.is_err());
}

#[tokio::test]
async fn plugin_that_is_off_adds_and_refuses_nothing() {
    let client = client(AdmissionPlugin::ALL);
    create_defaults(&client).await;
    assert!(create_pod(&client, "absent").await.is_ok());
    let pod = create_pod(&client, "default").await.unwrap();
    let spec = pod.spec.clone().unwrap();
    assert_eq!((spec.priority, spec.preemption_policy, spec.tolerations), (None, None, None));
    assert_eq!(spec.containers[0].resources, Some(ResourceRequirements::default()));
    // An update adds nothing, either.
    let pods = Api::<Pod>::default_namespaced(client.clone());
    let mut relabelled = pod.clone();
    relabelled.labels_mut().insert("a".into(), "b".into());
    let updated = pods.replace(&pod.name_any(), &PostParams::default(), &relabelled).await.unwrap();
    assert_eq!(updated.spec, pod.spec);
    let claim = create_claim(&client).await;
    assert!(claim.finalizers().is_empty());
    assert_eq!(claim.spec.unwrap().storage_class_name, None);
    assert!(create_volume(&client).await.finalizers().is_empty());
    let namespaces = Api::<Namespace>::all(client.clone());
    namespaces.delete("default", &DeleteParams::default()).await.unwrap();
}

#[tokio::test]
async fn pod_security_taints_topology_and_ingress_classes_are_switched_off() {
    let labels = json!({"topology.kubernetes.io/zone": "z"});
    let node = json!({"metadata": {"name": "n", "labels": labels}});
    let marked = json!({"ingressclass.kubernetes.io/is-default-class": "true"});
    let class = json!({"metadata": {"name": "usual", "annotations": marked},
        "spec": {"controller": "example.com/c"}});
    let ingress = json!({"metadata": {"name": "i"},
        "spec": {"defaultBackend": {"service": {"name": "s", "port": {"number": 80}}}}});
    let strict = json!({"pod-security.kubernetes.io/enforce": "baseline"});
    let namespace = json!({"metadata": {"name": "strict", "labels": strict}});
    let pod = json!({"metadata": {"name": "p"}, "spec": {"hostPID": true, "nodeName": "n",
        "containers": [{"name": "c", "image": "nginx"}]}});
    for is_on in [true, false] {
        let client = client(if is_on { Vec::new() } else { AdmissionPlugin::ALL.to_vec() });
        let node: Node = create(Api::all(client.clone()), node.clone()).await.unwrap();
        assert_eq!(node.spec.unwrap_or_default().taints.is_some(), is_on);
        create::<IngressClass>(Api::all(client.clone()), class.clone()).await.unwrap();
        let ingresses = Api::default_namespaced(client.clone());
        let ingress: Ingress = create(ingresses, ingress.clone()).await.unwrap();
        assert_eq!(ingress.spec.unwrap().ingress_class_name.is_some(), is_on);
        create::<Namespace>(Api::all(client.clone()), namespace.clone()).await.unwrap();
        let refused = create::<Pod>(Api::namespaced(client.clone(), "strict"), pod.clone()).await;
        assert_eq!(refused.is_err(), is_on);
        let pods = Api::default_namespaced(client.clone());
        let pod: Pod = create(pods, pod.clone()).await.unwrap();
        assert_eq!(pod.labels().contains_key("topology.kubernetes.io/zone"), is_on);
    }
}

#[tokio::test]
async fn each_plugin_is_switched_off_alone() {
    let client = client([AdmissionPlugin::Priority]);
    create_defaults(&client).await;
    let spec = create_pod(&client, "default").await.unwrap().spec.unwrap();
    assert_eq!(spec.priority, None);
    assert_eq!(spec.tolerations.unwrap().len(), 2);
    assert!(create_pod(&client, "absent").await.is_err());
}
