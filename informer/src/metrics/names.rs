//! [`Reservation`]: the labels of an informer's metrics, which no other informer may use.
//!
//! Two informers with the same labels would write to the same series: a gauge would jump between
//! their values. client-go's `InformerName` has the same rule for each name and resource.

use std::collections::BTreeSet;
use std::ptr;

use metrics::Label;
use parking_lot::Mutex;

/// The right to record under some labels. Dropping it frees the labels.
pub(super) struct Reservation(Place);

/// The address of the recorder and the values of the labels: informers with different recorders
/// share no series.
type Place = (usize, Vec<String>);

/// The labels in use. Never locked while the recorder runs.
static IN_USE: Mutex<BTreeSet<Place>> = Mutex::new(BTreeSet::new());

// === impl Reservation ===

impl Reservation {
    /// Reserves the labels for the current recorder, or returns `None` if they are in use.
    pub(super) fn new(labels: &[Label]) -> Option<Self> {
        let recorder = metrics::with_recorder(|recorder| ptr::from_ref(recorder).addr());
        let values = labels.iter().map(|label| label.value().to_owned()).collect();
        let place = (recorder, values);
        // A closure: a reservation that was not made must not be dropped.
        IN_USE.lock().insert(place.clone()).then(|| Self(place))
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        IN_USE.lock().remove(&self.0);
    }
}
