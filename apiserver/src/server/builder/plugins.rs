//! The admission plugins that are on.

use super::Builder;
use crate::plugin::AdmissionPlugin;

impl Builder {
    /// Switches quota admission on: the plugin `ResourceQuota` of kube-apiserver, which is off here
    /// by default.
    ///
    /// A write is charged to the quotas of its namespace before the object is stored, and refused
    /// with 403 if it does not fit. Nothing lowers a usage or counts a new quota: that is the work
    /// of a quota controller.
    ///
    /// # Examples
    ///
    /// ```
    /// use homeostat_apiserver::ApiServer;
    ///
    /// let server = ApiServer::builder().quota_admission().build();
    /// ```
    pub fn quota_admission(mut self) -> Self {
        self.on.quotas = true;
        self
    }

    /// Switches the admission of service accounts on: the plugin `ServiceAccount` of
    /// kube-apiserver, which is off here by default.
    ///
    /// A new pod runs as its service account, which is `default` if it names none, and mounts a
    /// token unless it or the account says otherwise. It is refused with 403 if the account is
    /// missing: creating `default` in each namespace is the work of a controller, or of the test.
    ///
    /// # Examples
    ///
    /// ```
    /// use homeostat_apiserver::ApiServer;
    ///
    /// let server = ApiServer::builder().service_account_admission().build();
    /// ```
    pub fn service_account_admission(mut self) -> Self {
        self.on.service_accounts = true;
        self
    }

    /// Switches an admission plugin off, as kube-apiserver's `--disable-admission-plugins` does.
    /// Can be called several times.
    ///
    /// # Examples
    ///
    /// ```
    /// use homeostat_apiserver::{AdmissionPlugin, ApiServer};
    ///
    /// // Objects can be created in namespaces that do not exist.
    /// let plugin = AdmissionPlugin::NamespaceLifecycle;
    /// let server = ApiServer::builder().without_plugin(plugin).build();
    /// ```
    pub fn without_plugin(mut self, plugin: AdmissionPlugin) -> Self {
        self.off.insert(plugin);
        self
    }

    /// Switches an admission plugin on that is off by default, as kube-apiserver's
    /// `--enable-admission-plugins` does. Can be called several times.
    ///
    /// # Examples
    ///
    /// ```
    /// use homeostat_apiserver::{AdmissionPlugin, ApiServer};
    ///
    /// // A new object gets its namespace, too.
    /// let plugin = AdmissionPlugin::NamespaceAutoProvision;
    /// let server = ApiServer::builder().with_plugin(plugin).build();
    /// ```
    pub fn with_plugin(mut self, plugin: AdmissionPlugin) -> Self {
        self.off.remove(&plugin);
        self
    }
}
