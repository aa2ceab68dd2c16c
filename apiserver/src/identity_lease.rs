//! The Lease that says that this server runs, as kube-apiserver has one in `kube-system`.

use std::net::SocketAddr;
use std::time::Duration;

use homeostat_apiserver::ApiServer;
use homeostat_core::Random;
use jiff::{Timestamp, ToSpan as _};
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use kube_client::api::{DeleteParams, ListParams, PostParams};
use kube_client::{Api, Error, Result};
use ring::digest::{SHA256, digest};
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

/// The component that holds the Lease, and the name under which it writes.
const COMPONENT: &str = "kube-apiserver";

const NAMESPACE: &str = "kube-system";

/// The label of the Leases of servers; its value is the component.
const IDENTITY_LABEL: &str = "apiserver.kubernetes.io/identity";

const HOST_LABEL: &str = "kubernetes.io/hostname";

/// The annotation with the address at which other servers reach this one.
const ADDRESS_ANNOTATION: &str = "kubernetes.io/peer-advertise-address";

/// Seconds after its last renewal at which the Lease expires.
const LEASE_SECONDS: i32 = 3600;

/// Interval between renewals.
const RENEW_PERIOD: Duration = Duration::from_secs(10);

/// Renewals between deletions of the expired Leases of other servers: they take an hour.
const RENEWALS_PER_COLLECTION: u32 = 360;

/// Renews the Lease in the background.
#[derive(Debug)]
pub(crate) struct IdentityLease {
    holder: Holder,
    renewal: JoinSet<()>,
}

/// The holder of the Lease, with what its requests need.
#[derive(Debug, Clone)]
struct Holder {
    server: ApiServer,
    leases: Api<Lease>,
    host: String,
    /// `None` if the server listens on all interfaces: it does not know which of them others reach.
    address: Option<SocketAddr>,
    /// The name of the Lease.
    name: String,
    identity: String,
}

// === impl IdentityLease ===

impl IdentityLease {
    /// Replaces the Lease of an earlier run by a new one, and renews it from now on. A request that
    /// fails, as all do if the name of the host cannot be the value of a label, is logged.
    pub(crate) async fn start(server: &ApiServer, address: SocketAddr) -> Self {
        let holder = Holder::new(server, address);
        if let Err(error) = holder.create().await {
            tracing::warn!(%error, "cannot create the Lease of the server's identity");
        }
        let mut renewal = JoinSet::new();
        renewal.spawn(keep(holder.clone()));
        Self { holder, renewal }
    }

    /// Ends the renewals and deletes the Lease.
    pub(crate) async fn stop(self) {
        let Self { holder, mut renewal } = self;
        renewal.shutdown().await;
        if let Err(error) = holder.delete(&holder.name).await {
            tracing::warn!(%error, "cannot delete the Lease of the server's identity");
        }
    }
}

/// Renews the Lease at each period, and deletes expired ones of other servers.
async fn keep(holder: Holder) {
    let mut ticks = interval_at(Instant::now() + RENEW_PERIOD, RENEW_PERIOD);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for tick in 0.. {
        if tick % RENEWALS_PER_COLLECTION == 0
            && let Err(error) = holder.collect().await
        {
            tracing::warn!(%error, "cannot delete expired Leases of servers");
        }
        ticks.tick().await;
        if let Err(error) = holder.renew().await {
            tracing::warn!(%error, "cannot renew the Lease of the server's identity");
        }
    }
}

// === impl Holder ===

impl Holder {
    fn new(server: &ApiServer, address: SocketAddr) -> Self {
        let address = (!address.ip().is_unspecified()).then_some(address);
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let name = lease_name(&host);
        let identity = format!("{name}_{}", Random::new(None).uuid());
        let leases = Api::namespaced(server.client_as(COMPONENT), NAMESPACE);
        Self { server: server.clone(), leases, host, address, name, identity }
    }

    /// Creates the Lease. One of an earlier run on this host, which was killed, goes first.
    async fn create(&self) -> Result<()> {
        self.delete(&self.name).await?;
        let mut lease = Lease {
            metadata: ObjectMeta { name: Some(self.name.clone()), ..ObjectMeta::default() },
            spec: Some(LeaseSpec {
                holder_identity: Some(self.identity.clone()),
                lease_duration_seconds: Some(LEASE_SECONDS),
                ..LeaseSpec::default()
            }),
        };
        self.mark(&mut lease);
        self.leases.create(&PostParams::default(), &lease).await.map(drop)
    }

    /// Renews the Lease, or creates it if a client has deleted it. A Lease that another client
    /// writes at the same time is renewed at the next period.
    async fn renew(&self) -> Result<()> {
        let Some(mut lease) = self.leases.get_opt(&self.name).await? else {
            return self.create().await;
        };
        self.mark(&mut lease);
        match self.leases.replace(&self.name, &PostParams::default(), &lease).await {
            Err(Error::Api(error)) if error.is_conflict() => Ok(()),
            replaced => replaced.map(drop),
        }
    }

    /// Sets the labels of a Lease, the address and the time of its renewal.
    fn mark(&self, lease: &mut Lease) {
        let labels = lease.metadata.labels.get_or_insert_default();
        labels.insert(IDENTITY_LABEL.to_owned(), COMPONENT.to_owned());
        labels.insert(HOST_LABEL.to_owned(), self.host.clone());
        if let Some(address) = self.address {
            let annotations = lease.metadata.annotations.get_or_insert_default();
            annotations.insert(ADDRESS_ANNOTATION.to_owned(), address.to_string());
        }
        let spec = lease.spec.get_or_insert_default();
        spec.renew_time = Some(MicroTime(self.server.now()));
    }

    /// Deletes the expired Leases of servers.
    async fn collect(&self) -> Result<()> {
        let servers = ListParams::default().labels(&format!("{IDENTITY_LABEL}={COMPONENT}"));
        let now = self.server.now();
        let leases = self.leases.list(&servers).await?;
        for lease in leases.items.iter().filter(|lease| is_expired(lease, now)) {
            self.delete(lease.metadata.name.as_deref().unwrap_or_default()).await?;
        }
        Ok(())
    }

    /// Deletes a Lease if it exists.
    async fn delete(&self, name: &str) -> Result<()> {
        match self.leases.delete(name, &DeleteParams::default()).await {
            Err(Error::Api(error)) if error.is_not_found() => Ok(()),
            deleted => deleted.map(drop),
        }
    }
}

/// Returns true if a Lease has expired, or lacks what says when it does.
fn is_expired(lease: &Lease, now: Timestamp) -> bool {
    let spec = lease.spec.as_ref();
    let renewed = spec.and_then(|spec| spec.renew_time.as_ref());
    let seconds = spec.and_then(|spec| spec.lease_duration_seconds);
    let Some((MicroTime(renewed), seconds)) = renewed.zip(seconds) else { return true };
    renewed.checked_add(i64::from(seconds).seconds()).is_ok_and(|end| end < now)
}

/// Returns the name of the Lease: a hash of the host's name and of the component.
fn lease_name(host: &str) -> String {
    let mut hashed = Vec::new();
    for part in [host, COMPONENT] {
        let length = u16::try_from(part.len()).unwrap_or(u16::MAX);
        hashed.extend(length.to_be_bytes());
        hashed.extend(part.as_bytes());
    }
    format!("apiserver-{}", base32(&digest(&SHA256, &hashed).as_ref()[..16]))
}

/// Encodes bytes in base 32, in lower case and without padding.
fn base32(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    let bits = bytes.iter().flat_map(|byte| (0..8).rev().map(move |bit| (byte >> bit) & 1));
    let bits: Vec<u8> = bits.collect();
    let digits = bits.chunks(5).map(|digit| {
        let value = digit.iter().fold(0, |value, bit| (value << 1) | usize::from(*bit));
        char::from(ALPHABET[value << (5 - digit.len())])
    });
    digits.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_encoded_as_by_rfc_4648() {
        for (bytes, expected) in [("", ""), ("f", "my"), ("foob", "mzxw6yq"), ("fooba", "mzxw6ytb")]
        {
            assert_eq!(base32(bytes.as_bytes()), expected);
        }
    }

    #[test]
    fn lease_has_the_name_that_the_real_server_gives_it() {
        assert_eq!(lease_name("test-host"), "apiserver-aafqjbvdrjjl2c5nvqhebm6kym");
    }

    #[test]
    fn lease_without_a_renewal_has_expired() {
        let now: Timestamp = "2026-01-01T01:00:00Z".parse().unwrap();
        let lease = |renewed: Option<&str>, seconds: Option<i32>| Lease {
            spec: Some(LeaseSpec {
                renew_time: renewed.map(|time| MicroTime(time.parse().unwrap())),
                lease_duration_seconds: seconds,
                ..LeaseSpec::default()
            }),
            ..Lease::default()
        };
        let renewed = Some("2026-01-01T00:00:00Z");
        assert!(!is_expired(&lease(renewed, Some(3600)), now));
        assert!(is_expired(&lease(renewed, Some(3599)), now));
        assert!(is_expired(&lease(None, Some(3600)), now));
        assert!(is_expired(&lease(renewed, None), now));
        assert!(is_expired(&Lease::default(), now));
    }
}
