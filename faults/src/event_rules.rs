//! Faults on the watch events of single objects.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::Faults;
use crate::calls::Calls;
use crate::object_events::ObjectEvents;
use crate::object_rules::{EventFault, EventHoldId};
use crate::rules::FaultRule;
use crate::shared::Shared;

/// A guard that holds back the events of some objects until it is dropped, returned by
/// [`Faults::hold_object_events`].
#[must_use = "dropping the guard releases the events"]
pub struct HeldEvents {
    shared: Arc<Shared>,
    id: EventHoldId,
    rule: FaultRule,
}

/// Faults on the events of single objects, in the watches that are open and in those that open
/// later. The events of other objects pass, so that the cache behind a watch is a mixture of old
/// and new states.
///
/// The rule counts as hit when an event is affected. A watch that the server ends stays open until
/// the events that wait have been delivered. If a watch breaks in another way, its client must list
/// to see them: it continues after the newer events of other objects.
impl Faults {
    /// Delays the selected events. Later events of the same object wait behind them.
    ///
    /// # Panics
    ///
    /// Panics if a resource name is invalid or unknown, as all methods here do.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() {
    /// use std::time::Duration;
    ///
    /// use futures::StreamExt as _;
    /// use homeostat_apiserver::ApiServer;
    /// use homeostat_faults::ObjectEvents;
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use kube_client::api::{Api, PostParams, WatchEvent, WatchParams};
    ///
    /// let server = ApiServer::builder().seed(1).build();
    /// let late = ObjectEvents::of("a");
    /// server.faults().delay_object_events("configmaps", late, Duration::from_secs(10));
    /// let maps = Api::<ConfigMap>::default_namespaced(server.client());
    /// let params = WatchParams::default().disable_bookmarks();
    /// let mut events = maps.watch(&params, "0").await.unwrap().boxed();
    /// for name in ["a", "b"] {
    ///     let mut map = ConfigMap::default();
    ///     map.metadata.name = Some(name.to_owned());
    ///     maps.create(&PostParams::default(), &map).await.unwrap();
    /// }
    /// for expected in ["b", "a"] {
    ///     let Some(Ok(WatchEvent::Added(map))) = events.next().await else { panic!("no event") };
    ///     assert_eq!(map.metadata.name.as_deref(), Some(expected));
    /// }
    /// server.faults().assert_all_hit();
    /// # }
    /// ```
    #[track_caller]
    pub fn delay_object_events(
        &self,
        watches: impl Into<Calls>,
        events: ObjectEvents,
        delay: Duration,
    ) -> FaultRule {
        self.add_object_rule(watches.into(), events, EventFault::Delay(delay))
    }

    /// Delivers the selected events twice. It finds controllers that count events.
    #[track_caller]
    pub fn repeat_object_events(
        &self,
        watches: impl Into<Calls>,
        events: ObjectEvents,
    ) -> FaultRule {
        self.add_object_rule(watches.into(), events, EventFault::Repeat)
    }

    /// Delivers each selected event after the next one of its object, or at the end of the watch.
    /// No API server does so; it finds caches that do not compare resource versions.
    #[track_caller]
    pub fn swap_object_events(&self, watches: impl Into<Calls>, events: ObjectEvents) -> FaultRule {
        self.add_object_rule(watches.into(), events, EventFault::Swap)
    }

    /// Holds back the selected events until the returned guard is dropped: all of them, unless
    /// [`ObjectEvents::times`] limits the number. Later events of the same object wait behind them.
    ///
    /// # Examples
    ///
    /// ```
    /// use homeostat_faults::{Calls, Faults, ObjectEvents};
    ///
    /// let faults = Faults::new();
    /// let watches = Calls::watch("pods").by("controller");
    /// // The controller does not see that a pod of `web` became ready.
    /// let ready = |pod: &serde_json::Value| pod["status"]["phase"] == "Running";
    /// let held = faults.hold_object_events(watches, ObjectEvents::any().that(ready));
    /// assert_eq!(held.rule().hits(), 0);
    /// ```
    #[track_caller]
    pub fn hold_object_events(
        &self,
        watches: impl Into<Calls>,
        events: ObjectEvents,
    ) -> HeldEvents {
        let id = self.shared.object_rules.next_hold();
        let rule = self.add_object_rule(watches.into(), events, EventFault::Hold(id));
        HeldEvents { shared: Arc::clone(&self.shared), id, rule }
    }

    #[track_caller]
    fn add_object_rule(
        &self,
        watches: Calls,
        events: ObjectEvents,
        fault: EventFault,
    ) -> FaultRule {
        self.check_resources(&watches);
        let counts = self.shared.object_rules.add(watches, events, fault);
        self.remember(counts)
    }
}

// === impl HeldEvents ===

impl HeldEvents {
    /// Returns the rule, which counts the events that were held.
    pub fn rule(&self) -> &FaultRule {
        &self.rule
    }
}

impl Drop for HeldEvents {
    fn drop(&mut self) {
        self.shared.object_rules.release(self.id);
        self.shared.watches.wake();
    }
}

impl fmt::Debug for HeldEvents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HeldEvents").field("rule", &self.rule).finish_non_exhaustive()
    }
}
