//! The credentials of a client, and when they are read again.
//!
//! | Source | Read again |
//! | --- | --- |
//! | text in the kubeconfig | never |
//! | files: token, client certificate, key | each minute, and after a 401 |
//! | an exec plugin | shortly before the expiry that it reports, and after a 401 |
//!
//! Files are read and plugins run on a thread for blocking work, once for all requests that wait.
//! A reload goes on if its request ends. While a reload fails, the earlier credentials are used
//! until they expire.
//!
//! ```text
//!  request ─▶ get ─▶ due? ─ no ─▶ the current credentials
//!                     └─ yes ─▶ lock `loading` ─▶ read files or run the plugin ─▶ install
//!  401 ─────▶ get_after_refusal ─▶ lock `loading` ─▶ changed meanwhile? reload? ─▶ send again
//! ```
//!
//! Lock order: `loading`, then `current`. `loading` is held across the reload, so that one reload
//! serves all requests that wait; `current` is held for a copy of an `Arc` only. A request with
//! fresh credentials takes no other lock than a read of `current`.
//!
//! client-go reads token files each minute as well (`transport/token_source.go`), and runs a plugin
//! again after a 401 or an expiry (`plugin/pkg/client/auth/exec`).

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::jiff::Timestamp;
use kube_client::config::AuthInfo;
use parking_lot::RwLock;
use tokio::sync::{Mutex, OwnedMutexGuard};
use tokio::time::Instant;
use tower::BoxError;

use self::kubeconfig::Kubeconfig;
pub(super) use self::loaded::{Identity, Loaded, same_identity};
use self::reloads::Reloads;
use super::chain::describe_chain;
use super::exec::Plugin;
use super::identity::parse_identity;
use super::material::Material;

mod kubeconfig;
mod loaded;
mod reloads;

/// The period after which files are read again: a token file of a pod is replaced by the kubelet.
const FILE_PERIOD: Duration = Duration::from_secs(60);

/// A plugin runs again this long before its credentials expire, or at nine tenths of their
/// lifetime if that is later.
const EARLY: Duration = Duration::from_secs(60);

/// The time until the next reload after one that failed, while the earlier credentials last; and
/// the shortest time between two reloads that a 401 caused. A server that refuses each request then
/// runs a plugin six times a minute.
const PAUSE: Duration = Duration::from_secs(10);

/// The credentials that all requests of a client share.
///
/// Shared by the transport, which sends them, and by TLS, which presents the certificate in a
/// handshake.
pub(super) struct Credentials {
    source: Source,
    /// `None` until a plugin has run for the first time.
    current: RwLock<Option<Arc<Loaded>>>,
    /// Held during a reload. Contains the time of the last reload that a 401 caused.
    loading: Arc<Mutex<Option<Instant>>>,
    /// Held for a look at it only.
    failures: RwLock<Failures>,
    reloads: Reloads,
}

/// The reloads that failed without usable credentials.
#[derive(Default)]
struct Failures {
    /// Their number. A request that waits notices by it that a reload has failed meanwhile.
    count: u64,
    /// The text of the last error.
    last: String,
}

/// The origin of credentials.
///
/// Chosen once, when the client is built.
#[derive(Clone)]
enum Source {
    Kubeconfig(Arc<Kubeconfig>),
    Plugin(Arc<Plugin>),
}

// === impl Credentials ===

impl Credentials {
    /// Returns the credentials of `user`. Files are read now; a plugin runs at the first request.
    ///
    /// # Errors
    ///
    /// If the kubeconfig contains only a certificate or only its key, if text is not base64, or if
    /// a file cannot be read or parsed. Without this early check the first request would report it.
    pub(super) fn new(user: &AuthInfo) -> Result<Self, BoxError> {
        let source = Source::new(user)?;
        let current = match &source {
            Source::Kubeconfig(kubeconfig) => {
                Some(Arc::new(source.loaded(kubeconfig.read_first()?, None)?))
            }
            Source::Plugin(_) => None,
        };
        let (current, loading, reloads) =
            (RwLock::new(current), Arc::default(), Reloads::default());
        Ok(Self { source, current, loading, failures: RwLock::default(), reloads })
    }

    /// Returns true if a reload may return other credentials.
    pub(super) fn can_change(&self) -> bool {
        match &self.source {
            Source::Kubeconfig(kubeconfig) => kubeconfig.has_files(),
            Source::Plugin(_) => true,
        }
    }

    /// Returns the credentials that were loaded last.
    ///
    /// It never reloads and never waits: a TLS handshake calls it.
    pub(super) fn current(&self) -> Option<Arc<Loaded>> {
        self.current.read().clone()
    }

    /// Returns the credentials if no reload is due.
    fn fresh(&self) -> Option<Arc<Loaded>> {
        self.current().filter(|loaded| !loaded.is_due())
    }

    /// Returns the credentials, and reloads them if that is due.
    ///
    /// # Errors
    ///
    /// If the reload fails and there are no earlier credentials, or these have expired. A failure
    /// with usable credentials is logged, and the next reload follows after 10 s.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped during a reload, the plugin is killed, and the next request
    /// reloads.
    pub(super) async fn get(&self) -> Result<Arc<Loaded>, BoxError> {
        if let Some(fresh) = self.fresh() {
            return Ok(fresh);
        }
        let failures = self.failures.read().count;
        let _loading = self.loading.lock().await;
        self.load(failures).await
    }

    /// Returns the credentials as [`get`](Self::get) does, for a request.
    ///
    /// # Errors
    ///
    /// As of [`get`](Self::get).
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped during a reload, the reload goes on for the next request.
    pub(super) async fn get_for_request(self: &Arc<Self>) -> Result<Arc<Loaded>, BoxError> {
        if let Some(fresh) = self.fresh() {
            return Ok(fresh);
        }
        let failures = self.failures.read().count;
        let (own, loading) = (Arc::clone(self), Arc::clone(&self.loading).lock_owned().await);
        let load = async move {
            let _loading = loading;
            own.load(failures).await
        };
        self.reloads.run(load).await
    }

    /// Reloads the credentials if that is due. The caller holds `loading`, and has read the number
    /// of `failures` before it waited for that.
    ///
    /// A reload that failed meanwhile is the answer to all that waited for it. Otherwise each of
    /// them would run the plugin in turn.
    async fn load(&self, failures: u64) -> Result<Arc<Loaded>, BoxError> {
        let current = self.current(); // Another request may have loaded them meanwhile.
        if let Some(loaded) = &current
            && !loaded.is_due()
        {
            return Ok(Arc::clone(loaded));
        }
        if let Some(failure) = self.failure_after(failures) {
            return Err(failure.into());
        }
        let earlier = match self.reload(current.as_deref()).await {
            Ok(loaded) => loaded,
            Err(error) => {
                let usable = current.as_deref().filter(|loaded| !loaded.is_expired());
                let Some(earlier) = usable else { return Err(self.failed(error)) };
                let pause = PAUSE;
                tracing::warn!(%error, ?pause, "failed to reload credentials, using the earlier");
                Loaded { due: Instant::now().checked_add(PAUSE), ..earlier.clone() }
            }
        };
        Ok(self.install(earlier))
    }

    /// Returns the text of the last failure, if there were others than the first `count`.
    fn failure_after(&self, count: u64) -> Option<String> {
        let failures = self.failures.read();
        (failures.count != count).then(|| failures.last.clone())
    }

    /// Keeps the failure for the requests that wait.
    fn failed(&self, error: BoxError) -> BoxError {
        let mut failures = self.failures.write();
        failures.count += 1;
        failures.last = describe_chain(error.as_ref());
        error
    }

    /// Reloads the credentials after the server refused `used` with 401. Returns the credentials if
    /// they differ from `used`.
    ///
    /// It reloads at most once in 10 s for all requests together: a server that refuses valid
    /// credentials must not start a plugin for each request.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped during a reload, the reload goes on for the next request.
    pub(super) async fn get_after_refusal(
        self: &Arc<Self>,
        used: &Arc<Loaded>,
    ) -> Option<Arc<Loaded>> {
        let last = Arc::clone(&self.loading).lock_owned().await;
        let (own, used) = (Arc::clone(self), Arc::clone(used));
        let replace = async move { Ok(own.replace(&used, last).await) };
        self.reloads.run(replace).await.ok()?
    }

    async fn replace(
        &self,
        used: &Loaded,
        mut last: OwnedMutexGuard<Option<Instant>>,
    ) -> Option<Arc<Loaded>> {
        let current = self.current();
        if let Some(loaded) = current.as_ref().filter(|loaded| loaded.differs_from(used)) {
            return Some(Arc::clone(loaded)); // Another request has reloaded them.
        }
        if last.is_some_and(|last| last.elapsed() < PAUSE) {
            return None;
        }
        let fresh = self.reload(current.as_deref()).await;
        *last = Some(Instant::now());
        match fresh {
            Ok(fresh) => Some(self.install(fresh)).filter(|fresh| fresh.differs_from(used)),
            Err(error) => {
                tracing::warn!(%error, "failed to reload credentials after 401 Unauthorized");
                None
            }
        }
    }

    /// Makes the credentials the current ones.
    fn install(&self, loaded: Loaded) -> Arc<Loaded> {
        let loaded = Arc::new(loaded);
        *self.current.write() = Some(Arc::clone(&loaded));
        loaded
    }

    /// Reads the source, and keeps the certificate of `earlier` if it is equal.
    ///
    /// # Errors
    ///
    /// If a file cannot be read, the plugin fails, or the certificate cannot be parsed.
    async fn reload(&self, earlier: Option<&Loaded>) -> Result<Loaded, BoxError> {
        let material = match &self.source {
            Source::Kubeconfig(kubeconfig) => {
                let kubeconfig = Arc::clone(kubeconfig);
                tokio::task::spawn_blocking(move || kubeconfig.read()).await??
            }
            Source::Plugin(plugin) => plugin.run().await?,
        };
        self.source.loaded(material, earlier)
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").finish_non_exhaustive()
    }
}

// === impl Source ===

impl Source {
    fn new(user: &AuthInfo) -> Result<Self, BoxError> {
        let kubeconfig = Kubeconfig::new(user)?;
        // Text and files come before a plugin, as in client-go.
        Ok(match &user.exec {
            Some(exec) if kubeconfig.is_empty() => Self::Plugin(Arc::new(Plugin::new(exec)?)),
            _ => Self::Kubeconfig(Arc::new(kubeconfig)),
        })
    }

    /// Parses what the source returned, and computes the time of the next reload.
    ///
    /// Credentials of a plugin without an expiry are not due until a 401, as in client-go. Those
    /// with a lifetime below 10 minutes are due at nine tenths of it.
    fn loaded(&self, material: Material, earlier: Option<&Loaded>) -> Result<Loaded, BoxError> {
        let known = earlier.and_then(|earlier| earlier.identity.as_ref());
        let identity = match material.pem {
            None => None,
            Some(pem) => match known.filter(|known| known.pem == pem) {
                Some(known) => Some(Arc::clone(known)),
                None => Some(Arc::new(Identity { key: parse_identity(&pem)?, pem })),
            },
        };
        let lifetime = material.expires_at.map(|at| {
            let lifetime = at.duration_since(Timestamp::now());
            lifetime.try_into().unwrap_or(Duration::ZERO)
        });
        let reload_after = match self {
            Self::Kubeconfig(kubeconfig) => kubeconfig.has_files().then_some(FILE_PERIOD),
            Self::Plugin(_) => {
                lifetime.map(|lifetime| lifetime.saturating_sub(EARLY).max(lifetime.mul_f64(0.9)))
            }
        };
        let now = Instant::now();
        let after = |duration: Option<Duration>| now.checked_add(duration?);
        let (due, expires) = (after(reload_after), after(lifetime));
        Ok(Loaded { authorization: material.authorization, identity, due, expires })
    }
}

#[cfg(test)]
mod tests;
