//! The body of one watch: reads events from the transport, injects faults, and passes them on.
//! In JSON an event is a line.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::Response;
use http_body::{Body, Frame};
use http_body_util::BodyExt as _;
use tokio::time::{Instant, Sleep, sleep_until};
use tower::BoxError;

use super::after;
use super::aside::Aside;
use super::framing::Framing;
use super::line_buffer::LineBuffer;
use crate::api_error::ApiError;
use crate::object_events::ObjectEvent;
use crate::open_watches::{Command, Next};
use crate::payload;
use crate::request_info::ClientRequest;
use crate::response_body::ResponseBody;
use crate::shared::Shared;
use crate::stream_fault::{Break, StreamPlan};

/// The body of one watch.
struct WatchBody {
    id: u64,
    request: ClientRequest,
    shared: Arc<Shared>,
    plan: StreamPlan,
    framing: Framing,
    source: Source,
    /// True if the transport has ended; it must not be polled after that.
    drained: bool,
    buffer: LineBuffer,
    /// Lines that wait for their delivery time, oldest first.
    delayed: VecDeque<Delayed>,
    /// The events of single objects that wait while others pass.
    aside: Aside,
    timer: Option<Pin<Box<Sleep>>>,
    /// Number of lines that arrived.
    received: u64,
    /// Numbers of events and bytes that were passed on.
    events: u64,
    bytes: u64,
}

/// A line that waits for its delivery time.
struct Delayed {
    /// `None` if the line does not wait.
    due: Option<Instant>,
    line: Bytes,
    /// True if the watch ends instead.
    is_lost: bool,
}

enum Source {
    /// Passes on what the transport delivers.
    Open(ResponseBody),
    /// Delivers a connection reset next. While `flushed` is false, the consumer first gets a turn
    /// to send what was passed on before.
    Torn {
        flushed: bool,
    },
    /// Delivers nothing and does not end.
    Stalled,
    Ended,
}

/// The last item of a watch, if there is one.
type End = Option<Result<Bytes, BoxError>>;
type FramePoll = Poll<Option<Result<Frame<Bytes>, BoxError>>>;

pub(crate) fn open(
    shared: &Arc<Shared>,
    (request, generation): (&ClientRequest, u64),
    plan: StreamPlan,
    response: Response<ResponseBody>,
) -> Response<ResponseBody> {
    plan.count_lasting();
    let framing = Framing::of(response.headers());
    let wrap = |body| WatchBody {
        id: shared.watches.register(request, generation),
        request: request.clone(),
        shared: Arc::clone(shared),
        plan,
        framing,
        source: Source::Open(body),
        drained: false,
        buffer: LineBuffer::new(framing),
        delayed: VecDeque::new(),
        aside: Aside::default(),
        timer: None,
        received: 0,
        events: 0,
        bytes: 0,
    };
    response.map(|body| wrap(body).boxed_unsync())
}

pub(crate) fn reset() -> BoxError {
    io::Error::new(io::ErrorKind::ConnectionReset, "injected by a fault").into()
}

// === impl WatchBody ===

impl WatchBody {
    /// Executes a command or a planned break. Returns the line to pass on, if there is one.
    fn execute(&mut self, command: Command) -> Option<Bytes> {
        let (source, line) = match command {
            Command::Line(line) => return Some(line),
            Command::Break(Break::End) => (Source::Ended, None),
            Command::Break(Break::Stall) => (Source::Stalled, None),
            Command::Break(Break::Reset) => {
                (Source::Torn { flushed: false }, Some(self.framing.torn_event()))
            }
            Command::Break(Break::Error(error)) => {
                (Source::Ended, Some(self.framing.error_event(&error, &self.request)))
            }
        };
        self.close(source);
        line
    }

    /// Drops the body of the transport, and with it the connection.
    fn close(&mut self, source: Source) {
        self.source = source;
        self.delayed.clear();
        self.aside.clear();
        if matches!(self.source, Source::Stalled) {
            self.shared.watches.stall(self.id);
        } else {
            self.shared.watches.remove(self.id);
        }
    }

    /// Reads the next chunk from the transport and queues its complete lines. The watch ends with
    /// the transport, after the queued lines.
    fn fill(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<(), BoxError>>> {
        let Source::Open(body) = &mut self.source else { return Poll::Ready(None) };
        if self.drained {
            return Poll::Ready(None);
        }
        let data = match ready!(Pin::new(body).poll_frame(context)) {
            None => {
                self.drained = true;
                self.aside.end_swaps();
                return Poll::Ready(None);
            }
            Some(Err(error)) => return Poll::Ready(Some(Err(error))),
            // A watch has no trailers of interest.
            Some(Ok(frame)) => frame.into_data().unwrap_or_default(),
        };
        for line in self.buffer.push(data, self.looks_at_lines()) {
            self.delay(line);
        }
        Poll::Ready(Some(Ok(())))
    }

    /// Queues a line until its delivery time.
    fn delay(&mut self, line: Bytes) {
        self.received += 1;
        let delay = self.plan.delay;
        if let Some(hold) = self.plan.take_hold(self.received) {
            self.shared.record_on(&self.request, &hold.to_string());
            let is_lost = hold.is_loss;
            let due = Some(after(after(Instant::now(), delay), hold.pause));
            self.delayed.push_back(Delayed { due, line, is_lost });
            return;
        }
        let due = (!delay.is_zero()).then(|| after(Instant::now(), delay));
        for line in self.pass_objects(line) {
            self.delayed.push_back(Delayed { due, line, is_lost: false });
        }
    }

    /// Applies the rules for single objects to a line. Returns the lines that do not wait.
    fn pass_objects(&mut self, line: Bytes) -> Vec<Bytes> {
        if self.ignores_objects() || self.framing != Framing::Lines {
            return vec![line];
        }
        let Some(event) = ObjectEvent::parse(&line) else { return vec![line] };
        let fault = self.shared.object_rules.decide(&self.request, &event);
        if let Some(fault) = fault {
            let message = format!("{fault} of {}", event.describe());
            self.shared.record_on(&self.request, &message);
        }
        self.aside.arrive(event.key, line, fault, Instant::now())
    }

    /// Returns true if a crash is planned at an event.
    fn counts_events(&self) -> bool {
        self.shared.crashes_at_events.load(Ordering::Relaxed)
    }

    /// Returns true if no rule looks at single objects, and no event waits for one.
    fn ignores_objects(&self) -> bool {
        !self.shared.object_rules.is_active() && self.aside.is_empty()
    }

    /// Returns true if a fault looks at single lines.
    fn looks_at_lines(&self) -> bool {
        !self.plan.is_idle() || !self.ignores_objects() || self.counts_events()
    }

    /// Applies the planned faults to a line. Returns `None` if the line is dropped.
    fn emit(&mut self, line: Bytes) -> Option<Bytes> {
        if self.plan.no_bookmarks && self.framing.is_bookmark(&line) {
            return None;
        }
        let end = self.bytes + line.len() as u64;
        let broken = self.plan.take_break_until(end);
        // The bytes behind a break are not delivered.
        let line = self.corrupted(line, broken.as_ref().map_or(end, |(limit, _)| *limit));
        let line = match broken {
            Some((limit, how)) => self.cut(line, limit, how),
            None => line,
        };
        self.events += 1;
        self.bytes += line.len() as u64;
        if self.plan.is_traced {
            self.shared.record_event(&self.request, &self.framing.describe(&line));
        }
        Some(line)
    }

    /// Corrupts the bytes of a line up to the byte `end` of the watch, as planned.
    fn corrupted(&mut self, mut line: Bytes, end: u64) -> Bytes {
        for at in self.plan.take_corrupt(self.bytes, end) {
            let at = usize::try_from(at - self.bytes).unwrap_or(usize::MAX);
            self.shared.record_on(&self.request, &format!("corrupt at byte {at} of an event"));
            line = payload::corrupt(&line, at);
        }
        line
    }

    /// Cuts a line at the byte at which the watch breaks.
    fn cut(&mut self, mut line: Bytes, limit: u64, how: Break) -> Bytes {
        let left = usize::try_from(limit.saturating_sub(self.bytes)).unwrap_or(usize::MAX);
        line.truncate(left);
        self.shared.record_on(&self.request, &format!("{how} at byte {limit}"));
        match how {
            Break::Reset => self.close(Source::Torn { flushed: false }),
            Break::Stall => self.close(Source::Stalled),
            Break::End => self.close(Source::Ended),
            Break::Error(error) => {
                self.close(Source::Ended);
                return [line, self.framing.error_event(&error, &self.request)].concat().into();
            }
        }
        line
    }

    /// Returns the next line whose delivery time has come.
    fn poll_delayed(&mut self, context: &mut Context<'_>) -> Poll<Delayed> {
        // Almost every watch has no event aside and no delay: the clock is not read then.
        if self.aside.is_empty() {
            match self.delayed.front() {
                None => return Poll::Pending,
                Some(Delayed { due: None, .. }) => return self.pop_delayed(),
                Some(_) => {}
            }
        }
        loop {
            let now = Instant::now();
            if let Some(line) = self.next_released(now) {
                return Poll::Ready(Delayed { due: None, line, is_lost: false });
            }
            let queued = self.delayed.front().map(|next| next.due.unwrap_or(now));
            let Some(due) = queued.into_iter().chain(self.aside.next_time()).min() else {
                return Poll::Pending;
            };
            if queued.is_some_and(|due| due <= now) {
                return self.pop_delayed();
            }
            let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(due)));
            if timer.deadline() != due {
                timer.as_mut().reset(due);
            }
            ready!(timer.as_mut().poll(context));
        }
    }

    fn pop_delayed(&mut self) -> Poll<Delayed> {
        self.delayed.pop_front().map_or(Poll::Pending, Poll::Ready)
    }

    /// Returns the next event that has waited while others passed.
    fn next_released(&mut self, now: Instant) -> Option<Bytes> {
        let rules = &self.shared.object_rules;
        self.aside.next_due(now, |hold| rules.is_held(hold))
    }

    /// Returns the next line or chunk, from the queue or from the transport.
    fn poll_piece(&mut self, context: &mut Context<'_>) -> FramePoll {
        loop {
            if let Some(end) = self.fill_up(context) {
                self.close(Source::Ended);
                return Poll::Ready(end.map(|last| last.map(Frame::data)));
            }
            let Delayed { line, is_lost, .. } = ready!(self.poll_delayed(context));
            if self.counts_events() && self.shared.crashes_at_event(&self.request) {
                return Poll::Pending;
            }
            let piece = if is_lost {
                self.execute(Command::Break(Break::Error(ApiError::expired())))
            } else if self.plan.is_idle() {
                Some(line)
            } else {
                self.emit(line)
            };
            if let Some(piece) = piece {
                return Poll::Ready(Some(Ok(Frame::data(piece))));
            }
        }
    }

    /// Reads from the transport as much as is needed now. Returns the end of the watch, if it ends.
    fn fill_up(&mut self, context: &mut Context<'_>) -> Option<End> {
        // Delayed events wait here and not in the transport, so that each has the same delay.
        while self.delayed.is_empty() || !self.plan.delay.is_zero() {
            match self.fill(context) {
                Poll::Ready(Some(Ok(()))) => {}
                Poll::Ready(Some(Err(error))) => return Some(Some(Err(error))),
                Poll::Ready(None) if self.delayed.is_empty() && self.aside.is_empty() => {
                    let rest = self.buffer.take_rest();
                    return Some((!rest.is_empty()).then_some(Ok(rest)));
                }
                Poll::Ready(None) | Poll::Pending => break,
            }
        }
        None
    }

    /// Returns and records the break that is planned before the next event, if there is one.
    fn planned_break(&mut self) -> Option<Break> {
        let how = self.plan.take_break(self.events)?;
        self.shared.record_on(&self.request, &format!("{how} after {} events", self.events));
        Some(how)
    }
}

impl Body for WatchBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> FramePoll {
        let this = self.get_mut();
        loop {
            match this.source {
                Source::Ended => return Poll::Ready(None),
                Source::Stalled => return Poll::Pending,
                Source::Torn { flushed: false } => {
                    this.source = Source::Torn { flushed: true };
                    context.waker().wake_by_ref();
                    return Poll::Pending;
                }
                Source::Torn { flushed: true } => {
                    this.source = Source::Ended;
                    return Poll::Ready(Some(Err(reset())));
                }
                Source::Open(_) => {}
            }
            let piece = match this.shared.watches.next(this.id, context.waker()) {
                Next::Wait => return Poll::Pending,
                Next::Execute(command) => this.execute(command),
                Next::Pass => match this.planned_break() {
                    None => return this.poll_piece(context),
                    Some(how) => this.execute(Command::Break(how)),
                },
            };
            if let Some(piece) = piece {
                return Poll::Ready(Some(Ok(Frame::data(piece))));
            }
        }
    }
}

impl Drop for WatchBody {
    fn drop(&mut self) {
        self.shared.watches.remove(self.id);
    }
}
