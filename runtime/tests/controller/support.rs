//! Kinds, objects, scripted servers, and a reconciler that writes down what it was called with.

use std::future::Future;
use std::sync::Arc;

use homeostat::kube_client::{Client, Resource};
use homeostat::{
    Action, Controller, ControllerBuilder, Reconciler, Request, SharedInformerFactory, Target,
    owner,
};
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use k8s_openapi::jiff::Timestamp;
use kube::CustomResource;
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;
use tower::{BoxError, service_fn};

pub(crate) use self::script::Script;

mod script;

/// A kind that is made by the derive, in namespaces.
#[derive(CustomResource, Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[kube(group = "samplecontroller.k8s.io", version = "v1alpha1", kind = "Foo", namespaced)]
pub(crate) struct FooSpec {}

/// A kind that lives in no namespace.
#[derive(CustomResource, Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[kube(group = "homeostat.test", version = "v1", kind = "Zone")]
pub(crate) struct ZoneSpec {}

/// Foos, and the config maps that they own.
pub(crate) struct Cluster {
    pub(crate) foos: Script<Foo>,
    pub(crate) maps: Script<ConfigMap>,
}

/// A reconciler that writes down each call, and does then what the test says.
pub(crate) struct Recorder<F> {
    seen: Seen,
    then: F,
}

/// The calls of a [`Recorder`] so far, and the notes of the test.
#[derive(Clone, Default)]
pub(crate) struct Seen {
    calls: Arc<Mutex<Vec<(String, String)>>>,
    notes: Arc<Mutex<Vec<&'static str>>>,
    cancellation: CancellationToken,
}

pub(crate) fn foo(name: &str, uid: &str) -> Foo {
    let mut object = Foo::new(name, FooSpec {});
    object.metadata.namespace = Some("ns".into());
    object.metadata.uid = Some(uid.into());
    object
}

pub(crate) fn zone(name: &str, uid: &str) -> Zone {
    let mut zone = Zone::new(name, ZoneSpec {});
    zone.metadata.uid = Some(uid.into());
    zone
}

pub(crate) fn config_map(name: &str) -> ConfigMap {
    let metadata = ObjectMeta {
        name: Some(name.into()),
        namespace: Some("ns".into()),
        uid: Some(format!("uid of {name}")),
        ..ObjectMeta::default()
    };
    ConfigMap { metadata, ..ConfigMap::default() }
}

pub(crate) fn owned_by<K: Resource<DynamicType = ()> + Send + Sync + 'static>(
    owner: &K,
    mut object: ConfigMap,
) -> ConfigMap {
    object.metadata.owner_references = owner::controller_reference(owner).map(|owner| vec![owner]);
    object
}

pub(crate) fn long_ago() -> Time {
    Time(Timestamp::UNIX_EPOCH)
}

/// For a manager whose controllers bring their own informers.
pub(crate) fn no_factory() -> SharedInformerFactory {
    let nobody = service_fn(|_| async {
        Err::<http::Response<http_body_util::Full<bytes::Bytes>>, _>(BoxError::from("asked"))
    });
    SharedInformerFactory::new(&Client::new(nobody, "default"))
}

pub(crate) fn recorder<F, Fut>(then: F) -> (Recorder<F>, Seen)
where
    F: Fn(Seen) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Action, BoxError>> + Send,
{
    let seen = Seen::default();
    (Recorder { seen: seen.clone(), then }, seen)
}

// === impl Cluster ===

impl Cluster {
    pub(crate) fn new(foos: impl IntoIterator<Item = Foo>) -> Self {
        Self { foos: Script::new(foos), maps: Script::new([]) }
    }

    pub(crate) fn controller(&self) -> ControllerBuilder<Foo> {
        Controller::builder("foo", &self.foos.informer).owns(&self.maps.informer)
    }
}

// === impl Recorder ===

impl<K, F, Fut> Reconciler<K> for Recorder<F>
where
    K: Target,
    F: Fn(Seen) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Action, BoxError>> + Send,
{
    type Error = BoxError;

    async fn reconcile(&self, request: &Request<K>) -> Result<Action, BoxError> {
        let call = (request.key().to_string(), request.trigger().to_string());
        self.seen.calls.lock().push(call);
        let seen = Seen { cancellation: request.cancellation().clone(), ..self.seen.clone() };
        (self.then)(seen).await
    }
}

// === impl Seen ===

impl Seen {
    pub(crate) fn lines(&self) -> Vec<String> {
        self.calls.lock().iter().map(|(key, why)| format!("{key} {why}")).collect()
    }

    pub(crate) fn keys(&self) -> Vec<String> {
        self.calls.lock().iter().map(|(key, _)| key.clone()).collect()
    }

    pub(crate) fn sorted_keys(&self) -> Vec<String> {
        let mut keys = self.keys();
        keys.sort();
        keys
    }

    pub(crate) fn clear(&self) {
        self.calls.lock().clear();
    }

    pub(crate) fn note(&self, note: &'static str) {
        self.notes.lock().push(note);
    }

    pub(crate) fn notes(&self) -> Vec<&'static str> {
        self.notes.lock().clone()
    }

    pub(crate) fn cancellation(&self) -> &CancellationToken {
        &self.cancellation
    }
}
