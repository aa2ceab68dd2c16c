//! Open watches, and what can be done to them while they are open.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::task::Waker;

use bytes::Bytes;
use parking_lot::Mutex;

use super::Shared;
use super::call::Call;
use super::calls::Calls;
use super::stream::Break;

/// What is done to an open watch, before its next event.
#[derive(Debug, Clone)]
pub(super) enum Command {
    Break(Break),
    /// This line, and then it goes on.
    Line(Bytes),
}

/// All open watches.
#[derive(Default)]
pub(super) struct Watches {
    /// Wakers are taken out before they are woken: waking runs foreign code.
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    next_id: u64,
    /// By age, so that commands and traces come in a fixed order.
    open: BTreeMap<u64, OpenWatch>,
    holds: BTreeMap<HoldId, Hold>,
}

struct OpenWatch {
    call: Call,
    /// When its client was made.
    born: u64,
    commands: VecDeque<Command>,
    /// Whoever waits for the next frame.
    waker: Option<Waker>,
}

/// What is held back.
#[derive(Debug)]
enum Hold {
    /// The watches that are meant.
    Calls(Calls),
    /// Those of the clients of this name that were made before.
    Client { name: Arc<str>, born_before: u64 },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct HoldId(u64);

/// Holds watches back until it is dropped; made by [`Faults::hold_watches`](super::Faults::hold_watches).
#[must_use = "dropping it lets the watches go on"]
pub struct HeldWatches {
    shared: Arc<Shared>,
    id: HoldId,
}

/// What a watch does next.
pub(super) enum Next {
    Do(Command),
    Pass,
    Wait,
}

// === impl Watches ===

impl Watches {
    pub(super) fn count(&self, calls: &Calls) -> usize {
        self.state.lock().open.values().filter(|watch| calls.matches(&watch.call)).count()
    }

    /// Gives a command to the open watches that are meant, oldest first, and returns what each of them watches.
    pub(super) fn command(&self, calls: &Calls, command: &Command) -> Vec<Call> {
        let (first, times) = (calls.first.saturating_sub(1), calls.times.unwrap_or(u64::MAX));
        let as_count = |number| usize::try_from(number).unwrap_or(usize::MAX);
        let mut hit = Vec::new();
        let mut wakers = Vec::new();
        {
            let mut state = self.state.lock();
            let meant = state.open.values_mut().filter(|watch| calls.matches(&watch.call));
            for watch in meant.skip(as_count(first)).take(as_count(times)) {
                watch.commands.push_back(command.clone());
                wakers.extend(watch.waker.take());
                hit.push(watch.call.clone());
            }
        }
        wakers.into_iter().for_each(Waker::wake);
        hit
    }

    pub(super) fn register(&self, call: &Call, born: u64) -> u64 {
        let mut state = self.state.lock();
        let id = state.next_id;
        state.next_id += 1;
        let (call, commands) = (call.clone(), VecDeque::new());
        state.open.insert(id, OpenWatch { call, born, commands, waker: None });
        id
    }

    pub(super) fn forget(&self, id: u64) {
        // Dropped after the lock is gone: its waker is foreign code.
        let _forgotten = self.state.lock().open.remove(&id);
    }

    pub(super) fn hold(&self, calls: Calls) -> HoldId {
        self.add(Hold::Calls(calls))
    }

    /// Holds the watches of a client for ever, but not those of a later one of the same name.
    pub(super) fn freeze(&self, name: &Arc<str>, born_before: u64) {
        self.add(Hold::Client { name: Arc::clone(name), born_before });
    }

    fn add(&self, hold: Hold) -> HoldId {
        let mut state = self.state.lock();
        let id = HoldId(state.next_id);
        state.next_id += 1;
        state.holds.insert(id, hold);
        id
    }

    pub(super) fn release(&self, id: HoldId) {
        let mut wakers = Vec::new();
        {
            let mut state = self.state.lock();
            state.holds.remove(&id);
            wakers.extend(state.open.values_mut().filter_map(|watch| watch.waker.take()));
        }
        wakers.into_iter().for_each(Waker::wake);
    }

    /// What the watch does next; unless that is a command, `waker` is woken by the next one.
    pub(super) fn next(&self, id: u64, waker: &Waker) -> Next {
        let waker = waker.clone();
        let mut state = self.state.lock();
        let State { open, holds, .. } = &mut *state;
        let Some(watch) = open.get_mut(&id) else { return Next::Pass };
        let held = holds.values().any(|hold| hold.is_of(watch));
        // What is frozen does not even end.
        let frozen = holds.values().any(|hold| hold.is_for_ever() && hold.is_of(watch));
        if !frozen && let Some(command) = watch.commands.pop_front() {
            return Next::Do(command);
        }
        let replaced = watch.waker.replace(waker);
        drop(state);
        drop(replaced);
        if held { Next::Wait } else { Next::Pass }
    }
}

// === impl Hold ===

impl Hold {
    fn is_of(&self, watch: &OpenWatch) -> bool {
        match self {
            Self::Calls(calls) => calls.matches(&watch.call),
            Self::Client { name, born_before } => {
                *name == watch.call.client && watch.born < *born_before
            }
        }
    }

    fn is_for_ever(&self) -> bool {
        matches!(self, Self::Client { .. })
    }
}

// === impl HeldWatches ===

impl HeldWatches {
    pub(super) fn new(shared: Arc<Shared>, calls: Calls) -> Self {
        let id = shared.watches.hold(calls);
        Self { shared, id }
    }
}

impl Drop for HeldWatches {
    fn drop(&mut self) {
        self.shared.watches.release(self.id);
    }
}

impl fmt::Debug for HeldWatches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HeldWatches").field("id", &self.id).finish_non_exhaustive()
    }
}
