//! The parts that all clones of a `Faults` and the services of its clients share.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::object_rules::ObjectRules;
use crate::open_watches::OpenWatches;
use crate::request_info::ClientRequest;
use crate::state::State;

/// The rules, the open watches and the state behind a `Faults`.
pub(crate) struct Shared {
    /// Not held while a waker or another service is called.
    pub(crate) state: Mutex<State>,
    pub(crate) watches: OpenWatches,
    pub(crate) object_rules: ObjectRules,
    /// True while a crash is planned at an event. Changes only while `state` is held.
    pub(crate) crashes_at_events: AtomicBool,
    /// True once a rule has looked at the bodies of requests.
    pub(crate) reads_bodies: AtomicBool,
}

// === impl Shared ===

impl Shared {
    /// Creates the parts without rules. Random faults are drawn from `seed`.
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            state: Mutex::new(State::new(seed)),
            watches: OpenWatches::default(),
            object_rules: ObjectRules::default(),
            crashes_at_events: AtomicBool::new(false),
            reads_bodies: AtomicBool::new(false),
        }
    }

    /// Records a fault on an open watch.
    pub(crate) fn record_on(&self, request: &ClientRequest, message: &str) {
        self.state.lock().record(request, None, message);
    }

    /// Crashes a client: no request is answered and no watch delivers an event from now on.
    pub(crate) fn crash(
        &self,
        request: &ClientRequest,
        number: Option<u64>,
        when: &str,
        reached: &CancellationToken,
    ) {
        let newest = {
            let mut state = self.state.lock();
            state.record(request, number, &format!("client crashes {when}"));
            state.crash(&request.client)
        };
        self.watches.freeze(&request.client, newest);
        reached.cancel();
    }

    /// Returns true if a client crashes at this event of its watch.
    pub(crate) fn crashes_at_event(&self, request: &ClientRequest) -> bool {
        let reached = {
            let mut state = self.state.lock();
            let reached = state.take_crash_at_event(&request.client);
            let Some(reached) = reached else { return false };
            self.crashes_at_events.store(state.crashes_at_events(), Ordering::Relaxed);
            reached
        };
        self.crash(request, None, "at this event", &reached);
        true
    }

    /// Records an event that a watch delivers.
    pub(crate) fn record_event(&self, request: &ClientRequest, message: &str) {
        self.state.lock().record_event(request, message);
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}
