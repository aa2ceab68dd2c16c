//! [`Reservation`]: the labels of an informer's metrics, which no other informer may use.
//!
//! Two informers with the same labels would write to the same series: a gauge would jump between
//! their values. client-go's `InformerName` has the same rule for each name and resource.

use std::collections::BTreeMap;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use metrics::Label;
use parking_lot::Mutex;

/// The right to record under some labels. Dropping it frees the labels.
pub(super) struct Reservation {
    place: Place,
    tenant: Arc<Tenant>,
}

/// An informer that records under some labels, or did until another one took them over.
#[derive(Default)]
pub(super) struct Tenant {
    /// The informer stops: another one may take the labels. Its tasks may still run.
    is_leaving: AtomicBool,
    /// Another one has taken the labels: the gauges are its own. Counters and histograms count on,
    /// because they are sums.
    is_succeeded: AtomicBool,
}

/// The address of the recorder and the values of the labels: informers with different recorders
/// share no series.
type Place = (usize, Vec<String>);

/// The labels in use. Never locked while the recorder runs.
static IN_USE: Mutex<BTreeMap<Place, Arc<Tenant>>> = Mutex::new(BTreeMap::new());

// === impl Reservation ===

impl Reservation {
    /// Reserves the labels for the current recorder, or returns `None` if they are in use.
    pub(super) fn new(labels: &[Label]) -> Option<Self> {
        let recorder = metrics::with_recorder(|recorder| ptr::from_ref(recorder).addr());
        let values = labels.iter().map(|label| label.value().to_owned()).collect();
        let place = (recorder, values);
        let mut in_use = IN_USE.lock();
        if let Some(before) = in_use.get(&place) {
            if !before.is_leaving.load(Ordering::Relaxed) {
                return None;
            }
            before.is_succeeded.store(true, Ordering::Relaxed);
        }
        let tenant = Arc::new(Tenant::default());
        in_use.insert(place.clone(), Arc::clone(&tenant));
        Some(Self { place, tenant })
    }

    /// Returns the informer that records.
    pub(super) fn tenant(&self) -> &Arc<Tenant> {
        &self.tenant
    }

    /// Lets another informer take the labels.
    pub(super) fn release(&self) {
        self.tenant.is_leaving.store(true, Ordering::Relaxed);
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let mut in_use = IN_USE.lock();
        if in_use.get(&self.place).is_some_and(|tenant| Arc::ptr_eq(tenant, &self.tenant)) {
            in_use.remove(&self.place);
        }
    }
}

// === impl Tenant ===

impl Tenant {
    /// Returns true if another informer records under the labels.
    pub(super) fn is_succeeded(&self) -> bool {
        self.is_succeeded.load(Ordering::Relaxed)
    }
}
