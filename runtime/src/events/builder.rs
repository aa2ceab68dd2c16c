//! [`EventRecorderBuilder`]: the options of a recorder.

use std::fmt;
use std::sync::Arc;

use homeostat_core::{Random, WallClock};
use k8s_openapi::jiff::Timestamp;
use kube_client::Client;
use tokio::sync::{Mutex, mpsc};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::correlator::Correlator;
use super::counts::Counts;
use super::sender::Sender;
use super::series::{SeriesCache, boundary_before};
use super::task::{EventTask, Rules};
use super::{EventRecorder, EventsApi, Shared};

/// The number of events that may wait: client-go's. The events of a few reconciles fit, and a flood
/// does not fill the memory.
const QUEUE: usize = 1000;

/// The longest `reportingInstance` that the API takes, in bytes (`ReportingInstanceLengthLimit`).
const LONGEST_INSTANCE: usize = 128;

/// A builder of an [`EventRecorder`], made by [`EventRecorder::builder`].
///
/// # Examples
///
/// A recorder whose timestamps and pauses are the same in each run:
///
/// ```no_run
/// # use homeostat::EventRecorder;
/// # fn doc(client: homeostat::kube_client::Client) -> Result<(), Box<dyn std::error::Error>> {
/// let epoch = "2026-01-01T00:00:00Z".parse()?;
/// let events = EventRecorder::builder(client, "my-controller").epoch(epoch).seed(7).build();
/// # Ok(())
/// # }
/// ```
#[must_use = "a builder does nothing until `build`"]
pub struct EventRecorderBuilder {
    client: Client,
    component: String,
    api: EventsApi,
    instance: Option<String>,
    epoch: Option<Timestamp>,
    seed: Option<u64>,
}

// === impl EventRecorderBuilder ===

impl EventRecorderBuilder {
    pub(super) fn new(client: Client, component: String) -> Self {
        let api = EventsApi::default();
        Self { client, component, api, instance: None, epoch: None, seed: None }
    }

    /// Sets the API to which the events go (default [`EventsApi::Core`]).
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use homeostat::EventRecorder;
    /// use homeostat::events::EventsApi;
    ///
    /// # fn doc(client: homeostat::kube_client::Client) {
    /// let builder = EventRecorder::builder(client, "shop-controller");
    /// let events = builder.api(EventsApi::Series).instance("shop-controller-0").build();
    /// # }
    /// ```
    #[doc(alias = "NewEventBroadcasterAdapter")]
    pub fn api(mut self, api: EventsApi) -> Self {
        self.api = api;
        self
    }

    /// Sets the `reportingInstance` of the events of [`EventsApi::Series`]. The API server refuses
    /// more than 128 bytes. The default is the component and the name of the machine or pod.
    pub fn instance(mut self, instance: impl Into<String>) -> Self {
        self.instance = Some(instance.into());
        self
    }

    /// Sets the current wall time. From then on the recorder counts tokio's time, so that a test
    /// under a paused clock gets the same timestamps in each run. The default is the machine's
    /// clock.
    pub fn epoch(mut self, epoch: Timestamp) -> Self {
        self.epoch = Some(epoch);
        self
    }

    /// Sets the seed of the jitter of the first pause after a lost connection. By default the
    /// operating system seeds it.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Starts the task and returns the recorder.
    ///
    /// # Panics
    ///
    /// Panics outside of a tokio runtime.
    pub fn build(self) -> EventRecorder {
        let (queue, occurrences) = mpsc::channel(QUEUE);
        let closing = CancellationToken::new();
        let clock = WallClock::new(self.epoch);
        let counts = Arc::new(Counts::new(&self.component));
        let rules = match self.api {
            EventsApi::Core => Rules::Core(Correlator::new(self.component)),
            EventsApi::Series => {
                let instance = self.instance.unwrap_or_else(|| default_instance(&self.component));
                Rules::Series(SeriesCache::new(self.component, instance))
            }
        };
        let sender = Sender::new(self.client, Random::new(self.seed), closing.clone());
        let events = EventTask { rules, sender, counts: Arc::clone(&counts) };
        let mut task = JoinSet::new();
        task.spawn(events.run(occurrences));
        EventRecorder {
            shared: Arc::new(Shared { queue, counts, clock, closing, task: Mutex::new(task) }),
        }
    }
}

impl fmt::Debug for EventRecorderBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventRecorderBuilder")
            .field("component", &self.component)
            .finish_non_exhaustive()
    }
}

/// Returns the component with the name of the machine, as upstream. In a pod that is the name of
/// the pod.
pub(super) fn default_instance(component: &str) -> String {
    let host = rustix::system::uname();
    let mut instance = format!("{component}-{}", host.nodename().to_string_lossy());
    instance.truncate(boundary_before(&instance, LONGEST_INSTANCE));
    instance
}
