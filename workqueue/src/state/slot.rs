//! The slots of the state, and the outcomes of its steps.

/// The slot number of a held item.
///
/// There is one per held slot, it is not reused while the slot is held, and the guard of the worker
/// owns it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Held(pub(super) u32);

/// An item that a worker has taken.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Taken<T, C> {
    pub(crate) held: Held,
    pub(crate) item: T,
    /// The priority at which it was queued.
    pub(crate) priority: i32,
    /// The cause, merged from all adds since the last hand-out.
    pub(crate) cause: C,
}

/// The outcome of adding an item.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Added<T, C> {
    /// It is newly queued in this slot: the caller wakes one worker.
    Queued(u32),
    /// It is held in this slot, and this is the first request since its hand-out. Here and in the
    /// variants below the item is returned, so that the caller can drop it outside of a lock.
    Wanted(u32, T),
    /// It was already requested at a lower priority, which is raised, at once or when its worker
    /// returns it.
    Raised { from: i32, item: T },
    /// It was already requested.
    Merged(T),
    /// A worker holds it, but a drain has returned it: it is not queued again.
    Ignored(T, C),
}

/// The place of an item: queued or held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Queued,
    Held {
        /// True if it is queued again when it is done.
        again: bool,
    },
}

/// The outcome of returning an item.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Released<T, C> {
    /// It is queued again: the caller wakes one worker. `wanted` is the priority at which it was
    /// requested while held, if it was.
    Requeued { wanted: Option<i32> },
    /// It is gone. The item and the cause with which it was returned are handed to the caller,
    /// which drops them outside of a lock.
    Gone(Option<T>, Option<C>),
}

/// A place for one item, vacant or in use.
///
/// The phase is a field beside the item, so that a change of phase does not move the item.
pub(super) struct Slot<T, C> {
    /// The item's hash by the queue's hasher; stale in a vacant slot.
    pub(super) hash: u64,
    /// `None` only in a vacant slot.
    pub(super) item: Option<T>,
    pub(super) phase: Phase<C>,
    /// The number of times that the item was given back since it was last done.
    pub(super) given_back: u32,
}

/// The phase of a slot. A phase with a pending request contains its cause.
pub(super) enum Phase<C> {
    /// Vacant. `add` moves it to `Queued`.
    Vacant,
    /// In `order`. `take` moves it to `Processing`, `take_queued` to `Vacant`.
    Queued(C),
    /// A worker holds it. `add` moves it to `Dirty`, `done` to `Vacant`, `give_back` to `Queued`,
    /// `hand_back_held` to `HandedBack`.
    Processing,
    /// A worker holds it, and it was added since, for this cause. `done` and `give_back` move it to
    /// `Queued`, `hand_back_held` to `HandedBack`.
    Dirty(C),
    /// A worker holds it, but a drain has returned it. `done` and `give_back` move it to `Vacant`.
    HandedBack,
}

// === impl Held ===

impl Held {
    pub(crate) fn slot(self) -> u32 {
        self.0
    }
}

// === impl Phase ===

impl<C> Phase<C> {
    /// Returns the place of an item in this phase; `None` if it is no longer part of the queue.
    pub(super) fn place(&self) -> Option<Place> {
        match self {
            Self::Vacant | Self::HandedBack => None,
            Self::Queued(_) => Some(Place::Queued),
            Self::Processing => Some(Place::Held { again: false }),
            Self::Dirty(_) => Some(Place::Held { again: true }),
        }
    }
}
