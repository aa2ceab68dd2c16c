//! The body of one watch: lines in, lines out, and what happens to them on the way.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use http_body::{Body, Frame};
use http_body_util::BodyExt as _;
use tokio::time::{Instant, Sleep, sleep_until};
use tower::BoxError;

use super::super::call::Call;
use super::super::watch::{Command, Next};
use super::super::{ResponseBody, Shared, told};
use super::{Break, Cut, StreamPlan};

/// The body of one watch.
struct WatchBody {
    id: u64,
    call: Call,
    shared: Arc<Shared>,
    plan: StreamPlan,
    source: Source,
    /// Whether the transport has ended: nothing may be asked of it then.
    drained: bool,
    /// The beginning of a line whose end has not come yet.
    partial: BytesMut,
    /// Lines that wait for their time, oldest first.
    late: VecDeque<(Instant, Bytes)>,
    timer: Option<Pin<Box<Sleep>>>,
    /// Events and bytes that were passed on.
    events: u64,
    bytes: u64,
}

enum Source {
    /// Passes on what comes; ends, or is ended.
    Open(ResponseBody),
    /// What was there was passed on, and the error is next; but first whoever sends it gets a turn to send it.
    Torn {
        flushed: bool,
    },
    /// Nothing comes any more, and no end.
    Stalled,
    Ended,
}

/// The beginning of an event that never gets complete.
const TORN: &[u8] = br#"{"type":"MODIFIED","object":{"kind":"#;

/// The last thing that a watch says, if anything.
type End = Option<Result<Bytes, BoxError>>;
type FramePoll = Poll<Option<Result<Frame<Bytes>, BoxError>>>;

pub(in crate::faults) fn open(
    shared: &Arc<Shared>,
    (call, born): (&Call, u64),
    plan: StreamPlan,
    body: ResponseBody,
) -> ResponseBody {
    WatchBody {
        id: shared.watches.register(call, born),
        call: call.clone(),
        shared: Arc::clone(shared),
        plan,
        source: Source::Open(body),
        drained: false,
        partial: BytesMut::new(),
        late: VecDeque::new(),
        timer: None,
        events: 0,
        bytes: 0,
    }
    .boxed_unsync()
}

pub(in crate::faults) fn reset() -> BoxError {
    io::Error::new(io::ErrorKind::ConnectionReset, "injected by a fault").into()
}

// === impl WatchBody ===

impl WatchBody {
    /// Carries out a command, or breaks as planned; nothing to pass on means: poll again.
    fn obey(&mut self, command: Command) -> Option<Bytes> {
        let (source, line) = match command {
            Command::Line(line) => return Some(line),
            Command::Break(Break::End) => (Source::Ended, None),
            Command::Break(Break::Stall) => (Source::Stalled, None),
            Command::Break(Break::Reset) => {
                (Source::Torn { flushed: false }, Some(Bytes::from_static(TORN)))
            }
            Command::Break(Break::Error(refusal)) => (Source::Ended, Some(refusal.event())),
        };
        self.leave(source);
        line
    }

    /// The transport's body goes here, and with it the connection.
    fn leave(&mut self, source: Source) {
        self.source = source;
        self.late.clear();
        if !matches!(self.source, Source::Stalled) {
            self.shared.watches.forget(self.id);
        }
    }

    /// Takes the next piece from the transport, and puts its complete lines where they wait. The end of the transport
    /// is the end of the watch, once what waits has been passed on.
    fn fill(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<(), BoxError>>> {
        let Source::Open(body) = &mut self.source else { return Poll::Ready(None) };
        if self.drained {
            return Poll::Ready(None);
        }
        let data = match ready!(Pin::new(body).poll_frame(context)) {
            None => {
                self.drained = true;
                return Poll::Ready(None);
            }
            Some(Err(error)) => return Poll::Ready(Some(Err(error))),
            // Trailers say nothing in a watch.
            Some(Ok(frame)) => frame.into_data().unwrap_or_default(),
        };
        let due = Instant::now() + self.plan.delay;
        for line in self.lines(data) {
            self.late.push_back((due, line));
        }
        Poll::Ready(Some(Ok(())))
    }

    /// The complete lines of what has come so far: in one piece if nobody looks at them.
    fn lines(&mut self, mut data: Bytes) -> Vec<Bytes> {
        let mut lines = Vec::new();
        let Some(end) = data.iter().rposition(|byte| *byte == b'\n') else {
            self.partial.extend_from_slice(&data);
            return lines;
        };
        let mut complete = data.split_to(end + 1);
        if !self.partial.is_empty() {
            self.partial.extend_from_slice(&complete);
            complete = self.partial.split().freeze();
        }
        self.partial.extend_from_slice(&data);
        if self.plan.is_idle() {
            lines.push(complete);
            return lines;
        }
        while let Some(end) = complete.iter().position(|byte| *byte == b'\n') {
            lines.push(complete.split_to(end + 1));
        }
        lines
    }

    /// What becomes of a line that is passed on; nothing: it is left out.
    fn emit(&mut self, line: Bytes) -> Option<Bytes> {
        if self.plan.no_bookmarks && told::is_bookmark(&line) {
            return None;
        }
        let line = self.corrupted(line);
        let line = match self.plan.broken {
            Some((Cut::Bytes(limit), ref how)) if self.bytes + line.len() as u64 >= limit => {
                let how = how.clone();
                self.cut(line, limit, how)
            }
            _ => line,
        };
        self.events += 1;
        self.bytes += line.len() as u64;
        if self.plan.told {
            self.shared.tell(&self.call, told::event(&line));
        }
        Some(line)
    }

    fn corrupted(&mut self, line: Bytes) -> Bytes {
        let Some(at) = self.plan.corrupt.and_then(|at| at.checked_sub(self.bytes)) else {
            return line;
        };
        match usize::try_from(at) {
            Ok(at) if at < line.len() => {
                self.plan.corrupt = None;
                self.shared.record_on(&self.call, &format!("corrupt at byte {at} of an event"));
                told::corrupt(&line, at)
            }
            _ => line,
        }
    }

    /// Cuts a line where the watch breaks at a byte.
    fn cut(&mut self, mut line: Bytes, limit: u64, how: Break) -> Bytes {
        let left = usize::try_from(limit.saturating_sub(self.bytes)).unwrap_or(usize::MAX);
        line.truncate(left);
        self.shared.record_on(&self.call, &format!("{how} at byte {limit}"));
        match how {
            Break::Reset => self.leave(Source::Torn { flushed: false }),
            Break::Stall => self.leave(Source::Stalled),
            Break::End => self.leave(Source::Ended),
            Break::Error(refusal) => {
                self.leave(Source::Ended);
                return [line, refusal.event()].concat().into();
            }
        }
        line
    }

    /// The next line whose time has come.
    fn poll_late(&mut self, context: &mut Context<'_>) -> Poll<Bytes> {
        loop {
            let Some(due) = self.late.front().map(|(due, _)| *due) else { return Poll::Pending };
            if due <= Instant::now()
                && let Some((_, line)) = self.late.pop_front()
            {
                return Poll::Ready(line);
            }
            let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(due)));
            if timer.deadline() != due {
                timer.as_mut().reset(due);
            }
            ready!(timer.as_mut().poll(context));
        }
    }

    /// The next piece, from what waits or from the transport.
    fn poll_piece(&mut self, context: &mut Context<'_>) -> FramePoll {
        loop {
            if let Some(end) = self.fill_up(context) {
                self.leave(Source::Ended);
                return Poll::Ready(end.map(|last| last.map(Frame::data)));
            }
            let line = ready!(self.poll_late(context));
            let piece = if self.plan.is_idle() { Some(line) } else { self.emit(line) };
            if let Some(piece) = piece {
                return Poll::Ready(Some(Ok(Frame::data(piece))));
            }
        }
    }

    /// Takes what the transport has, as far as it is needed now: how the watch ends, if it does.
    fn fill_up(&mut self, context: &mut Context<'_>) -> Option<End> {
        // Delayed events wait here, not in the transport: each is late by the same time.
        while self.late.is_empty() || !self.plan.delay.is_zero() {
            match self.fill(context) {
                Poll::Ready(Some(Ok(()))) => {}
                Poll::Ready(Some(Err(error))) => return Some(Some(Err(error))),
                Poll::Ready(None) if self.late.is_empty() => {
                    let rest = self.partial.split().freeze();
                    return Some((!rest.is_empty()).then_some(Ok(rest)));
                }
                Poll::Ready(None) | Poll::Pending => break,
            }
        }
        None
    }

    /// How it breaks before the next event, if that was planned.
    fn planned_break(&mut self) -> Option<Break> {
        let how = self.plan.take_break(self.events)?;
        self.shared.record_on(&self.call, &format!("{how} after {} events", self.events));
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
                Next::Do(command) => this.obey(command),
                Next::Pass => match this.planned_break() {
                    None => return this.poll_piece(context),
                    Some(how) => this.obey(Command::Break(how)),
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
        self.shared.watches.forget(self.id);
    }
}
