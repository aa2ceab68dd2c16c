//! [`Workload`]: the work of a pass, and the [`Peer`] that does the same.

/// Steps of one pass on a queue. `benches/README.md` describes each workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub enum Workload {
    /// Adds, gets and finishes one key after the other.
    Cycle,
    /// As `Cycle`, in a queue with inspection, which reads the clock.
    CycleInspected,
    /// As `Cycle`, with `get` and `done` instead of a worker that lends.
    CycleGet,
    /// One producer and 16 workers, on two threads.
    Workers,
    /// As `Workers`, with up to 16 keys at a time.
    WorkerBatches,
    /// Adds all keys, then drains the queue.
    Burst,
    /// As `Burst`, on a new queue for each pass.
    BurstFresh,
    /// As `Burst`, but adds 64 keys per call.
    Batch,
    /// Adds keys that are queued already.
    ReAdd,
    /// Adds keys with delays of 3,600 to 4,600 s, in random order.
    Delay,
    /// Adds keys that are due at the same time, and measures from then until all are handed out.
    Due,
    /// `Cycle` with five priorities.
    PriorityCycle,
    /// `Workers` with five priorities.
    PriorityWorkers,
    /// `Burst` with five priorities.
    PriorityBurst,
    /// `Batch` with five priorities, one for each batch.
    PriorityBatch,
}

/// The peers of our queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Peer {
    /// client-go's typed work queue.
    ClientGo,
    /// controller-runtime's priority queue.
    ControllerRuntime,
}

// === impl Workload ===

impl Workload {
    /// Returns the library that does the same work.
    pub fn peer(self) -> Peer {
        if self.has_priorities() { Peer::ControllerRuntime } else { Peer::ClientGo }
    }

    /// Returns true if the keys have priorities.
    pub(super) fn has_priorities(self) -> bool {
        use Workload::{PriorityBatch, PriorityBurst, PriorityCycle, PriorityWorkers};
        matches!(self, PriorityCycle | PriorityWorkers | PriorityBurst | PriorityBatch)
    }

    /// Returns the name on the command line of the Go program.
    pub fn name_in_go(self) -> &'static str {
        match self {
            Self::Cycle | Self::CycleGet | Self::CycleInspected | Self::PriorityCycle => "cycle",
            Self::Workers | Self::WorkerBatches | Self::PriorityWorkers => "workers",
            Self::Burst | Self::PriorityBurst => "burst",
            Self::BurstFresh => "burst-fresh",
            Self::Batch | Self::PriorityBatch => "batch",
            Self::ReAdd => "re-add",
            Self::Delay => "delay",
            Self::Due => "due",
        }
    }

    /// Returns the description.
    pub fn title(self) -> &'static str {
        match self {
            Self::Cycle => "add, get, done, one key after the other",
            Self::CycleInspected => "the same; ours is inspected, theirs has no such thing",
            Self::CycleGet => "the same; ours with get and done instead of a worker that lends",
            Self::Workers => "one producer, 16 workers, two threads",
            Self::WorkerBatches => "the same; ours takes up to 16 keys at a time",
            Self::Burst => "all keys added, then drained",
            Self::BurstFresh => "all keys added, then drained; a new queue",
            Self::Batch => "all keys added in batches of 64, then drained (theirs: one by one)",
            Self::ReAdd => "keys added that are queued already",
            Self::Delay => "add_after, due in an hour, in no order; a new queue",
            Self::Due => "delayed keys, all due at one time, until all are handed out",
            Self::PriorityCycle => "five priorities: add, get, done, one key after the other",
            Self::PriorityWorkers => "five priorities: one producer, 16 workers, two threads",
            Self::PriorityBurst => "five priorities: all keys added, then drained",
            Self::PriorityBatch => "five priorities: all keys added in batches of 64, then drained",
        }
    }

    /// Returns the target: the highest ratio of our time to the peer's.
    pub fn target(self) -> Option<f64> {
        match self {
            Self::Cycle => Some(0.8),
            Self::Workers => Some(0.5),
            Self::WorkerBatches => Some(0.4),
            Self::Burst | Self::BurstFresh | Self::Batch => Some(0.6),
            Self::ReAdd | Self::Delay => Some(0.35),
            Self::Due | Self::CycleInspected | Self::CycleGet => None,
            _ => Some(0.25),
        }
    }

    /// Returns true if a pass hands out every key once, false if it hands out none.
    pub fn hands_out(self) -> bool {
        !matches!(self, Self::ReAdd | Self::Delay)
    }
}

// === impl Peer ===

impl Peer {
    /// Returns the name, also on the command line of the Go program.
    pub fn name(self) -> &'static str {
        match self {
            Self::ClientGo => "client-go",
            Self::ControllerRuntime => "controller-runtime",
        }
    }
}
