//! Writes that can be repeated: server-side apply, and create-or-update.
//!
//! Both need no memory of what was written before, so that a lost reply is repaired by the next
//! call. Apply is one request and merges on the server. Create-or-update is a read and at most one
//! write, and compares in the controller.

use std::fmt::Debug;

use homeostat_informer::Uid;
use kube_client::api::{Patch, PatchParams, PostParams};
use kube_client::{Api, Error, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::outcome::has_code;

/// The number of times that [`create_or_update`] tries against a newer version of the object.
///
/// client-go's `retry.DefaultRetry` has 5 steps too. A conflict means that another writer was
/// faster; five consecutive ones are an error that the queue's back-off handles.
const TRIES: usize = 5;

/// Server-side apply by one field manager.
///
/// The object holds the fields that the controller decides on, and no others: fields that it
/// applied before and leaves out now are removed. The server merges them with those of other
/// managers. Repeating an apply changes nothing, so it needs no look at the cache, and a lost reply
/// does no harm.
///
/// # Examples
///
/// ```no_run
/// use homeostat::apply::Apply;
/// use homeostat::kube_client::{Api, Client, Error};
/// use k8s_openapi::api::core::v1::ConfigMap;
///
/// async fn write(client: Client, map: &ConfigMap) -> Result<ConfigMap, Error> {
///     let maps = Api::<ConfigMap>::namespaced(client, "shop");
///     Apply::by("my-controller").force().object(&maps, map).await
/// }
/// ```
#[doc(alias = "FieldManager")]
#[derive(Debug, Clone)]
#[must_use = "nothing is sent before `object` or `subresource`"]
pub struct Apply {
    manager: String,
    force: bool,
    uid: Option<Uid>,
}

/// Result of [`create_or_update`].
///
/// # Examples
///
/// ```
/// use homeostat::apply::Written;
///
/// fn has_changed(written: Written) -> bool {
///     matches!(written, Written::Created | Written::Updated)
/// }
/// assert!(!has_changed(Written::Unchanged));
/// ```
#[doc(alias = "OperationResult")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Written {
    /// The object was created.
    Created,
    /// The object was updated.
    Updated,
    /// The object is as it should be.
    Unchanged,
}

// === impl Apply ===

impl Apply {
    /// Returns an apply by this field manager. The name must not change between versions of the
    /// program: the server removes only fields of the same manager.
    ///
    /// The name is shown in `metadata.managedFields`. By default neither `force` nor a UID is set.
    pub fn by(manager: impl Into<String>) -> Self {
        Self { manager: manager.into(), force: false, uid: None }
    }

    /// Takes fields over that another manager has set. Without it the server answers 409.
    ///
    /// Controllers should force: they have no other way to resolve the conflict.
    ///
    /// # Examples
    ///
    /// ```
    /// use homeostat::apply::Apply;
    ///
    /// let apply = Apply::by("shop-controller").force();
    /// # drop(apply);
    /// ```
    pub fn force(mut self) -> Self {
        self.force = true;
        self
    }

    /// Applies only to the object with this UID: the server answers 409 if there is no such object
    /// or another one has its name. Without it an apply creates a missing object.
    pub fn if_uid(mut self, uid: &Uid) -> Self {
        self.uid = Some(uid.clone());
        self
    }

    /// Applies `object`, and returns the merged one.
    ///
    /// # Errors
    ///
    /// Returns the server's error: 409 for a field of another manager without
    /// [`force`](Self::force), and for an object with another UID.
    ///
    /// # Cancel safety
    ///
    /// The server may carry out a request that was sent. Repeating it is safe.
    pub async fn object<K>(&self, api: &Api<K>, object: &K) -> Result<K, Error>
    where
        K: Resource + Clone + Serialize + DeserializeOwned + Debug,
    {
        let patch = Patch::Apply(self.body(object)?);
        api.patch(&object.name_any(), &self.params(), &patch).await
    }

    /// Applies the part of `object` that belongs to its subresource `name`, such as `status`.
    /// Returns the merged object.
    ///
    /// # Errors
    ///
    /// As [`object`](Self::object), and 404 if the object does not exist.
    ///
    /// # Cancel safety
    ///
    /// The server may carry out a request that was sent. Repeating it is safe.
    ///
    /// # Examples
    ///
    /// The status of an object, with a field manager of its own, so that it does not own fields of
    /// the spec:
    ///
    /// ```no_run
    /// use homeostat::apply::Apply;
    /// use homeostat::kube_client::{Api, Error};
    /// use k8s_openapi::api::apps::v1::Deployment;
    ///
    /// async fn write_status(api: &Api<Deployment>, status: &Deployment) -> Result<(), Error> {
    ///     let apply = Apply::by("shop-controller-status").force();
    ///     apply.subresource(api, "status", status).await.map(drop)
    /// }
    /// ```
    pub async fn subresource<K>(&self, api: &Api<K>, name: &str, object: &K) -> Result<K, Error>
    where
        K: Resource + Clone + Serialize + DeserializeOwned + Debug,
    {
        let patch = Patch::Apply(self.body(object)?);
        api.patch_subresource(name, &object.name_any(), &self.params(), &patch).await
    }

    /// Returns the query: the field manager, and `force`.
    fn params(&self) -> PatchParams {
        PatchParams { force: self.force, ..PatchParams::apply(&self.manager) }
    }

    /// Returns the request's body: without `managedFields`, which the server refuses, and with the
    /// UID as a precondition.
    fn body<K: Serialize>(&self, object: &K) -> Result<Value, Error> {
        let mut body = serde_json::to_value(object).map_err(Error::SerdeError)?;
        if let Some(metadata) = body.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("managedFields");
            if let Some(uid) = &self.uid {
                metadata.insert("uid".to_owned(), uid.to_string().into());
            }
        }
        Ok(body)
    }
}

/// Creates `object`, or updates the object of its name, and returns it with what was done.
///
/// `mutate` sets the fields that the controller decides on; it is called with `object` if there is
/// none at the server, and with the server's otherwise. If it changes nothing, nothing is written.
/// After a conflict it is called again with the newer object, up to five times in all.
///
/// It reads the live object. Where the cache has it, compare with the cached one first.
/// [`Apply`] needs no read and no retry; use this where field managers are not wanted.
///
/// # Errors
///
/// Returns the server's error, and the last conflict after five of them.
///
/// # Cancel safety
///
/// The server may carry out a request that was sent. Calling it again is safe.
///
/// # Examples
///
/// ```no_run
/// use homeostat::apply::create_or_update;
/// use homeostat::kube_client::{Api, Client, Error};
/// use k8s_openapi::api::core::v1::ConfigMap;
///
/// async fn write(client: Client, copy: ConfigMap) -> Result<(), Error> {
///     let maps = Api::<ConfigMap>::namespaced(client, "shop");
///     let data = copy.data.clone();
///     let (_, written) = create_or_update(&maps, copy, |map| map.data.clone_from(&data)).await?;
///     println!("{written:?}");
///     Ok(())
/// }
/// ```
#[doc(alias = "CreateOrUpdate")]
pub async fn create_or_update<K>(
    api: &Api<K>,
    object: K,
    mutate: impl Fn(&mut K),
) -> Result<(K, Written), Error>
where
    K: Resource + Clone + Serialize + DeserializeOwned + Debug,
{
    let name = object.name_any();
    let mut tries = 1;
    loop {
        // The codes of an object that has changed since it was read. A create that is answered with
        // 404 lacks its namespace.
        let (result, outdated): (_, &[u16]) = match api.get_opt(&name).await? {
            None => {
                let mut new = object.clone();
                mutate(&mut new);
                let created = api.create(&PostParams::default(), &new).await;
                (created.map(|created| (created, Written::Created)), &[409])
            }
            Some(live) => (update(api, &name, live, &mutate).await, &[404, 409]),
        };
        let is_outdated = |error: &Error| outdated.iter().any(|code| has_code(error, *code));
        match result {
            Err(error) if is_outdated(&error) && tries < TRIES => tries += 1,
            result => return result,
        }
    }
}

async fn update<K>(
    api: &Api<K>,
    name: &str,
    live: K,
    mutate: impl Fn(&mut K),
) -> Result<(K, Written), Error>
where
    K: Clone + Serialize + DeserializeOwned + Debug,
{
    let mut changed = live.clone();
    mutate(&mut changed);
    let value = |object: &K| serde_json::to_value(object).map_err(Error::SerdeError);
    if value(&live)? == value(&changed)? {
        return Ok((live, Written::Unchanged));
    }
    let updated = api.replace(name, &PostParams::default(), &changed).await?;
    Ok((updated, Written::Updated))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use k8s_openapi::api::core::v1::ConfigMap;
    use serde_json::json;

    use super::*;
    use crate::scripted_server::{Answer, refusal, server};

    const GET: &str = "GET /api/v1/namespaces/shop/configmaps/a";
    const PUT: &str = "PUT /api/v1/namespaces/shop/configmaps/a";
    const POST: &str = "POST /api/v1/namespaces/shop/configmaps";

    fn map(version: Option<&str>, value: &str) -> ConfigMap {
        let metadata = json!({"name": "a", "namespace": "shop", "resourceVersion": version});
        serde_json::from_value(json!({"metadata": metadata, "data": {"k": value}})).unwrap()
    }

    fn stored(version: &str, value: &str) -> Answer {
        Answer::Said(200, serde_json::to_value(map(Some(version), value)).unwrap())
    }

    fn set_to_new(map: &mut ConfigMap) {
        map.data = Some([("k".to_owned(), "new".to_owned())].into());
    }

    #[tokio::test(start_paused = true)]
    async fn object_is_created_updated_or_left_alone() {
        let (client, log) = server(|asked| match asked.line.as_str() {
            GET => refusal(404, "not found"),
            _ => stored("1", "new"),
        });
        let api = Api::<ConfigMap>::namespaced(client, "shop");
        let (_, written) = create_or_update(&api, map(None, ""), set_to_new).await.unwrap();
        assert_eq!((written, log.lines()), (Written::Created, vec![GET.into(), POST.into()]));

        for (value, expected) in [("old", Written::Updated), ("new", Written::Unchanged)] {
            let (client, _) = server(move |asked| match asked.line.as_str() {
                GET => stored("1", value),
                _ => stored("2", "new"),
            });
            let api = Api::<ConfigMap>::namespaced(client, "shop");
            let (_, written) = create_or_update(&api, map(None, ""), set_to_new).await.unwrap();
            assert_eq!(written, expected);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn update_is_repeated_on_the_newer_object_after_a_conflict() {
        let puts = AtomicUsize::new(0);
        let (client, log) = server(move |asked| match asked.line.as_str() {
            GET if puts.load(Ordering::Relaxed) == 0 => stored("1", "old"),
            GET => stored("2", "other"),
            _ if puts.fetch_add(1, Ordering::Relaxed) == 0 => refusal(409, "modified"),
            _ => stored("3", "new"),
        });
        let api = Api::<ConfigMap>::namespaced(client, "shop");
        let (_, written) = create_or_update(&api, map(None, ""), set_to_new).await.unwrap();
        assert_eq!(written, Written::Updated);
        assert_eq!(log.lines(), [GET, PUT, GET, PUT]);
        assert!(log.all()[3].text.contains(r#""resourceVersion":"2""#), "{:?}", log.all()[3]);
    }

    #[tokio::test(start_paused = true)]
    async fn missing_namespace_is_no_reason_to_try_again() {
        let (client, log) = server(|_| refusal(404, "not found"));
        let api = Api::<ConfigMap>::namespaced(client, "shop");
        let error = create_or_update(&api, map(None, ""), set_to_new).await.unwrap_err();
        assert!(has_code(&error, 404), "{error}");
        assert_eq!(log.lines(), [GET, POST]);
    }

    #[tokio::test(start_paused = true)]
    async fn apply_carries_the_uid_and_no_managed_fields() {
        let (client, log) = server(|_| stored("1", "new"));
        let api = Api::<ConfigMap>::namespaced(client, "shop");
        let mut applied = map(None, "new");
        applied.metadata.managed_fields = Some(Vec::new());
        let apply = Apply::by("test").force().if_uid(&Uid::from("u"));
        apply.object(&api, &applied).await.unwrap();
        apply.subresource(&api, "status", &applied).await.unwrap();
        let line = "PATCH /api/v1/namespaces/shop/configmaps/a";
        assert_eq!(log.lines(), [line.to_owned(), format!("{line}/status")]);
        let body: Value = serde_json::from_str(&log.all()[0].text).unwrap();
        assert_eq!(body["metadata"]["uid"], "u");
        assert_eq!(body["kind"], "ConfigMap", "the server needs the kind");
        assert!(body["metadata"].get("managedFields").is_none());
    }
}
