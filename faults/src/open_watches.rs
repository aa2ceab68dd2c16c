//! The open watches of all clients, and the commands and holds on them.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::task::Waker;

use bytes::Bytes;
use parking_lot::Mutex;

use crate::calls::Calls;
use crate::request_info::ClientRequest;
use crate::rules::RuleCounts;
use crate::stream_fault::Break;

/// A fault on an open watch, injected before its next event.
#[derive(Debug, Clone)]
pub(crate) enum Command {
    Break(Break),
    /// Inserts a line.
    Line(Bytes),
}

/// All open watches.
#[derive(Default)]
pub(crate) struct OpenWatches {
    /// Wakers are woken after the lock is released: waking runs foreign code.
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    next_id: u64,
    /// Ordered by age, so that commands and traces have a fixed order.
    open: BTreeMap<u64, OpenWatch>,
    holds: BTreeMap<HoldId, Hold>,
}

struct OpenWatch {
    request: ClientRequest,
    /// The generation of its client.
    generation: u64,
    commands: VecDeque<Command>,
    /// True if the watch delivers nothing more and does not end.
    is_stalled: bool,
    /// Wakes the task that waits for the next frame.
    waker: Option<Waker>,
}

/// A set of watches whose events are held back.
#[derive(Debug)]
enum Hold {
    /// The watches that the selector matches, each of which is a hit.
    Calls(Box<Calls>, Arc<RuleCounts>),
    /// The watches of a crashed client: those of `generation` and of earlier ones.
    Crashed { name: Arc<str>, generation: u64 },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct HoldId(u64);

/// The next step of a watch.
pub(crate) enum Next {
    Execute(Command),
    Pass,
    Wait,
}

// === impl OpenWatches ===

impl OpenWatches {
    pub(crate) fn count(&self, calls: &Calls) -> usize {
        self.state.lock().open.values().filter(|watch| calls.matches(&watch.request)).count()
    }

    /// Queues a command for the selected watches, oldest first. Returns the request of each watch.
    /// Watches that deliver nothing more are not selected.
    pub(crate) fn command(&self, calls: &Calls, command: &Command) -> Vec<ClientRequest> {
        let (first, times) = calls.selection.hits(u64::MAX);
        let as_count = |number| usize::try_from(number).unwrap_or(usize::MAX);
        let mut hit = Vec::new();
        let mut wakers = Vec::new();
        {
            let mut state = self.state.lock();
            let State { open, holds, .. } = &mut *state;
            let selected = open
                .values_mut()
                .filter(|watch| calls.matches(&watch.request) && !watch.is_silent(holds));
            for watch in selected.skip(as_count(first)).take(as_count(times)) {
                watch.commands.push_back(command.clone());
                wakers.extend(watch.waker.take());
                hit.push(watch.request.clone());
            }
        }
        wakers.into_iter().for_each(Waker::wake);
        hit
    }

    pub(crate) fn register(&self, request: &ClientRequest, generation: u64) -> u64 {
        let mut state = self.state.lock();
        let id = state.next_id;
        state.next_id += 1;
        let (request, commands) = (request.clone(), VecDeque::new());
        let watch = OpenWatch { request, generation, commands, is_stalled: false, waker: None };
        state.holds.values().for_each(|hold| hold.count(&watch));
        state.open.insert(id, watch);
        id
    }

    pub(crate) fn remove(&self, id: u64) {
        // Dropped after the lock is released: its waker is foreign code.
        let _removed = self.state.lock().open.remove(&id);
    }

    /// Notes that a watch delivers nothing more and does not end.
    pub(crate) fn stall(&self, id: u64) {
        if let Some(watch) = self.state.lock().open.get_mut(&id) {
            watch.is_stalled = true;
            watch.commands.clear();
        }
    }

    pub(crate) fn hold(&self, calls: Calls, counts: Arc<RuleCounts>) -> HoldId {
        self.state.lock().add(Hold::Calls(Box::new(calls), counts))
    }

    /// Holds the watches of crashed clients of this name forever: those of `generation` and of
    /// earlier ones.
    pub(crate) fn freeze(&self, name: &Arc<str>, generation: u64) {
        let mut state = self.state.lock();
        // The generation of a later crash includes those of the earlier ones.
        state.holds.retain(|_, hold| !hold.is_of_crashed(name));
        state.add(Hold::Crashed { name: Arc::clone(name), generation });
    }

    pub(crate) fn release(&self, id: HoldId) {
        self.state.lock().holds.remove(&id);
        self.wake();
    }

    /// Wakes the tasks that wait for frames: what holds them back may have ended.
    pub(crate) fn wake(&self) {
        let wakers = |state: &mut State| -> Vec<Waker> {
            state.open.values_mut().filter_map(|watch| watch.waker.take()).collect()
        };
        let wakers = wakers(&mut self.state.lock());
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Returns the next step of a watch. Unless that is a command, the next command wakes `waker`.
    pub(crate) fn next(&self, id: u64, waker: &Waker) -> Next {
        let waker = waker.clone();
        let mut state = self.state.lock();
        let State { open, holds, .. } = &mut *state;
        let Some(watch) = open.get_mut(&id) else { return Next::Pass };
        let held = holds.values().any(|hold| hold.includes(watch));
        // The watch of a crashed client does not end either.
        if !watch.is_silent(holds)
            && let Some(command) = watch.commands.pop_front()
        {
            return Next::Execute(command);
        }
        let replaced = watch.waker.replace(waker);
        drop(state);
        drop(replaced);
        if held { Next::Wait } else { Next::Pass }
    }
}

// === impl State ===

impl State {
    fn add(&mut self, hold: Hold) -> HoldId {
        let id = HoldId(self.next_id);
        self.next_id += 1;
        let open = self.open.values().filter(|watch| !watch.is_silent(&self.holds));
        open.for_each(|watch| hold.count(watch));
        self.holds.insert(id, hold);
        id
    }
}

// === impl OpenWatch ===

impl OpenWatch {
    /// Returns true if the watch delivers nothing more and does not end: it is stalled, or its
    /// client has crashed.
    fn is_silent(&self, holds: &BTreeMap<HoldId, Hold>) -> bool {
        self.is_stalled || holds.values().any(|hold| hold.is_permanent() && hold.includes(self))
    }
}

// === impl Hold ===

impl Hold {
    fn includes(&self, watch: &OpenWatch) -> bool {
        match self {
            Self::Calls(calls, _) => calls.matches(&watch.request),
            Self::Crashed { name, generation } => {
                *name == watch.request.client && watch.generation <= *generation
            }
        }
    }

    /// Counts a watch that is open, or opens, while it is held.
    fn count(&self, watch: &OpenWatch) {
        if let Self::Calls(_, counts) = self
            && self.includes(watch)
        {
            counts.count_match();
            counts.count_hit();
        }
    }

    fn is_permanent(&self) -> bool {
        matches!(self, Self::Crashed { .. })
    }

    /// Returns true if this is the hold of the crashed clients of this name.
    fn is_of_crashed(&self, client: &Arc<str>) -> bool {
        matches!(self, Self::Crashed { name, .. } if name == client)
    }
}
