//! The options of a [`KubeListWatch`]: selectors, limits, and the form of the decoded objects.

use serde::de::DeserializeOwned;

use super::KubeListWatch;
use crate::object::Object;

impl<K: Object + DeserializeOwned> KubeListWatch<K> {
    /// Restricts the objects by a label selector in the API server's syntax: `app=web,tier!=cache`.
    ///
    /// A second call replaces the first selector.
    ///
    /// The API server checks the syntax: it answers the first request with an error if the selector
    /// is malformed.
    #[must_use]
    pub fn label_selector(mut self, selector: &str) -> Self {
        self.scope = self.scope.labels(selector);
        self
    }

    /// Restricts the objects by a field selector in the API server's syntax:
    /// `status.phase!=Failed`.
    ///
    /// A second call replaces the first selector.
    ///
    /// Each kind supports few fields; `metadata.name` and `metadata.namespace` always work. An
    /// object that stops matching arrives as a deletion.
    #[must_use]
    pub fn field_selector(mut self, selector: &str) -> Self {
        self.scope = self.scope.fields(selector);
        self
    }

    /// Sets the limit of one watch event, or of one object of a list, in bytes. A longer one ends
    /// the watch or fails the list. The default is 16 MiB, ten times what an API server stores by
    /// default. A list as a whole has no limit.
    ///
    /// The decoded object takes more memory than its JSON: about ten times for labels, and about 1
    /// KiB for a container of which only the name is set. [`Lazy`](crate::Lazy) keeps the JSON
    /// instead.
    #[must_use]
    pub fn max_frame(mut self, bytes: usize) -> Self {
        self.max_frame = bytes;
        self
    }

    /// Keeps `metadata.managedFields` if `keep` is `true`. The default is `false`: they are skipped
    /// while parsing.
    ///
    /// Keep them only to read or to forward them, for example in a tool that shows who owns a
    /// field.
    #[must_use]
    pub fn managed_fields(mut self, keep: bool) -> Self {
        self.decoder.set_managed_fields(keep);
        self
    }

    /// Skips members of each object while it is parsed, before memory is allocated for them. The
    /// type stays `K`: a skipped member looks absent.
    ///
    /// A path names members from the object down, separated by dots. `*` stands for every element
    /// of an array and for every member of a map, and a backslash makes the next character part of
    /// a name. A second call adds paths.
    ///
    /// Use it for members that are large and never read: a pod without its volumes, environment and
    /// mounts takes about half the memory and time. Never write such an object back to the server
    /// with `replace`: the server would remove the skipped members. A member that `K` requires must
    /// stay, because an object without it does not fit. If few members are read, a struct that
    /// names only those costs less.
    ///
    /// # Panics
    ///
    /// Panics if a path is malformed, or if it drops the name, the namespace, the uid or the
    /// resource version of the object.
    ///
    /// # Examples
    ///
    /// ```
    /// use homeostat_informer::list_watch::KubeListWatch;
    /// use k8s_openapi::api::core::v1::Pod;
    ///
    /// fn lean_pods(client: kube_client::Client) -> KubeListWatch<Pod> {
    ///     KubeListWatch::new(client, None).prune([
    ///         "spec.volumes",
    ///         "spec.containers.*.env",
    ///         "spec.containers.*.volumeMounts",
    ///         r"metadata.annotations.kubectl\.kubernetes\.io/last-applied-configuration",
    ///     ])
    /// }
    /// ```
    #[must_use]
    pub fn prune<P: AsRef<str>>(mut self, paths: impl IntoIterator<Item = P>) -> Self {
        for path in paths {
            if let Err(error) = self.decoder.skip(path.as_ref()) {
                panic!("cannot prune {}: {error}", self.target);
            }
        }
        self
    }

    /// Sets the number of tasks that decode large batches of a watch, such as its initial list. The
    /// order stays the server's.
    ///
    /// The default is 1: the task that reads also decodes. One core decodes about 40,000 pods per
    /// second, which exceeds what most servers send. With cores to spare, 2 to 4 tasks raise that
    /// limit. On a current-thread runtime the value has no effect.
    ///
    /// A list is always decoded by one task, which yields to other tasks about every millisecond.
    #[must_use]
    pub fn decoders(mut self, tasks: usize) -> Self {
        self.decoders = tasks;
        self
    }
}
