//! Open watches, and what can be done to them while they are open.

use std::{
    collections::{BTreeMap, VecDeque},
    fmt, io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use bytes::Bytes;
use http_body::{Body, Frame};
use http_body_util::BodyExt as _;
use parking_lot::Mutex;
use tower::BoxError;

use super::{ResponseBody, Shared};

/// The beginning of an event that never gets complete.
const TORN: &[u8] = br#"{"type":"MODIFIED","object":{"kind":"#;

/// What is done to an open watch.
#[derive(Debug, Clone)]
pub(super) enum Command {
    /// The stream ends cleanly, now.
    End,
    /// Half a line, and then an error.
    Reset,
    /// This line before the next event.
    Line(Bytes),
    /// This line before the next event, and then a clean end.
    Last(Bytes),
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
    /// How many guards hold each resource; none of them is zero.
    held: BTreeMap<String, usize>,
}

struct OpenWatch {
    resource: String,
    commands: VecDeque<Command>,
    /// Whoever waits for the next frame.
    waker: Option<Waker>,
}

/// Holds watches back until it is dropped; made by [`Faults::hold_watches`](super::Faults::hold_watches).
#[must_use = "dropping it lets the watches go on"]
pub struct HeldWatches {
    shared: Arc<Shared>,
    resource: String,
}

/// The body of one watch.
struct WatchBody {
    id: u64,
    shared: Arc<Shared>,
    state: Stream,
    /// Whether the last byte that was passed on ended a line (or none was).
    at_line_start: bool,
    /// What came after the line that had to be completed before a command.
    rest: Option<Bytes>,
}

enum Stream {
    /// Passes on what comes; ends, or is ended by a command.
    Open(ResponseBody),
    /// Half a line was passed on, and the error is next.
    Torn,
    Ended,
}

/// What a watch does next.
enum Next {
    Do(Command),
    /// A line is to be injected, but the current one is not complete.
    CompleteLine,
    Pass,
    Wait,
}

pub(super) fn open(shared: &Arc<Shared>, resource: &str, body: ResponseBody) -> ResponseBody {
    let id = shared.watches.register(resource);
    let state = Stream::Open(body);
    WatchBody { id, shared: Arc::clone(shared), state, at_line_start: true, rest: None }
        .boxed_unsync()
}

pub(super) fn hold(shared: &Arc<Shared>, resource: &str) -> HeldWatches {
    *shared.watches.state.lock().held.entry(resource.to_owned()).or_insert(0) += 1;
    HeldWatches { shared: Arc::clone(shared), resource: resource.to_owned() }
}

fn fits(pattern: &str, resource: &str) -> bool {
    pattern == "*" || pattern == resource
}

// === impl Watches ===

impl Watches {
    pub(super) fn count(&self, resource: &str) -> usize {
        self.state.lock().open.values().filter(|watch| fits(resource, &watch.resource)).count()
    }

    /// Gives a command to all open watches of `resource`, and returns what each of them watches.
    pub(super) fn command(&self, resource: &str, command: &Command) -> Vec<String> {
        let mut hit = Vec::new();
        let mut wakers = Vec::new();
        for watch in self.state.lock().open.values_mut() {
            if fits(resource, &watch.resource) {
                watch.commands.push_back(command.clone());
                wakers.extend(watch.waker.take());
                hit.push(watch.resource.clone());
            }
        }
        wakers.into_iter().for_each(Waker::wake);
        hit
    }

    fn register(&self, resource: &str) -> u64 {
        let mut state = self.state.lock();
        let id = state.next_id;
        state.next_id += 1;
        let resource = resource.to_owned();
        state.open.insert(id, OpenWatch { resource, commands: VecDeque::new(), waker: None });
        id
    }

    fn forget(&self, id: u64) {
        // Dropped after the lock is gone: its waker is foreign code.
        let _forgotten = self.state.lock().open.remove(&id);
    }

    fn release(&self, resource: &str) {
        let mut wakers = Vec::new();
        {
            let mut state = self.state.lock();
            let left = state.held.get_mut(resource).map_or(0, |guards| {
                *guards -= 1;
                *guards
            });
            if left == 0 {
                state.held.remove(resource);
            }
            for watch in state.open.values_mut().filter(|w| fits(resource, &w.resource)) {
                wakers.extend(watch.waker.take());
            }
        }
        wakers.into_iter().for_each(Waker::wake);
    }

    /// What the watch does next; unless that is a command, `waker` is woken by the next one.
    fn next(&self, id: u64, at_line_start: bool, waker: &Waker) -> Next {
        let waker = waker.clone();
        let mut state = self.state.lock();
        let State { open, held, .. } = &mut *state;
        let Some(watch) = open.get_mut(&id) else { return Next::Pass };
        let between_events =
            matches!(watch.commands.front(), Some(Command::Line(_) | Command::Last(_)));
        if (!between_events || at_line_start)
            && let Some(command) = watch.commands.pop_front()
        {
            return Next::Do(command);
        }
        watch.waker = Some(waker);
        if held.contains_key(&watch.resource) || held.contains_key("*") {
            Next::Wait
        } else if between_events {
            Next::CompleteLine
        } else {
            Next::Pass
        }
    }
}

// === impl HeldWatches ===

impl Drop for HeldWatches {
    fn drop(&mut self) {
        self.shared.watches.release(&self.resource);
    }
}

impl fmt::Debug for HeldWatches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HeldWatches").field("resource", &self.resource).finish_non_exhaustive()
    }
}

// === impl WatchBody ===

type FramePoll = Poll<Option<Result<Frame<Bytes>, BoxError>>>;

impl WatchBody {
    fn obey(&mut self, command: Command) -> FramePoll {
        let (state, line) = match command {
            Command::End => (Stream::Ended, None),
            Command::Reset => (Stream::Torn, Some(Bytes::from_static(TORN))),
            Command::Last(line) => (Stream::Ended, Some(line)),
            Command::Line(line) => return Poll::Ready(Some(Ok(Frame::data(line)))),
        };
        // The transport's body goes here, and with it the connection.
        self.state = state;
        self.shared.watches.forget(self.id);
        Poll::Ready(line.map(|line| Ok(Frame::data(line))))
    }

    /// Passes on the next piece of the stream, up to the end of its first line if that is wanted.
    fn pass(&mut self, context: &mut Context<'_>, complete_line: bool) -> FramePoll {
        let frame = match self.rest.take() {
            Some(rest) => Some(Ok(Frame::data(rest))),
            None => std::task::ready!(self.poll_transport(context)),
        };
        let data = match frame.map(|frame| frame.map(Frame::into_data)) {
            Some(Ok(Ok(data))) => data,
            Some(Ok(Err(trailers))) => return Poll::Ready(Some(Ok(trailers))),
            Some(Err(error)) => return self.end(Some(Err(error))),
            None => return self.end(None),
        };
        let data = if complete_line { self.split_line(data) } else { data };
        if let Some(last) = data.last() {
            self.at_line_start = *last == b'\n';
        }
        Poll::Ready(Some(Ok(Frame::data(data))))
    }

    fn poll_transport(&mut self, context: &mut Context<'_>) -> FramePoll {
        match &mut self.state {
            Stream::Open(body) => Pin::new(body).poll_frame(context),
            Stream::Torn | Stream::Ended => Poll::Ready(None),
        }
    }

    /// The transport's own end.
    fn end(&mut self, last: Option<Result<Frame<Bytes>, BoxError>>) -> FramePoll {
        self.state = Stream::Ended;
        self.shared.watches.forget(self.id);
        Poll::Ready(last)
    }

    fn split_line(&mut self, mut data: Bytes) -> Bytes {
        let Some(end) = data.iter().position(|byte| *byte == b'\n') else { return data };
        let line = data.split_to(end + 1);
        self.rest = Some(data).filter(|rest| !rest.is_empty());
        line
    }
}

impl Body for WatchBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> FramePoll {
        let this = self.get_mut();
        match this.state {
            Stream::Ended => return Poll::Ready(None),
            Stream::Torn => {
                this.state = Stream::Ended;
                let reset = io::Error::new(io::ErrorKind::ConnectionReset, "injected by a fault");
                return Poll::Ready(Some(Err(reset.into())));
            }
            Stream::Open(_) => {}
        }
        match this.shared.watches.next(this.id, this.at_line_start, context.waker()) {
            Next::Do(command) => this.obey(command),
            Next::CompleteLine => this.pass(context, true),
            Next::Pass => this.pass(context, false),
            Next::Wait => Poll::Pending,
        }
    }
}

impl Drop for WatchBody {
    fn drop(&mut self) {
        self.shared.watches.forget(self.id);
    }
}
