//! Watches. A watch is a cursor over the history of a resource. It buffers no events: a watch that
//! falls behind the history ends.

mod bookmark;
mod cursor;
mod event;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde_json::json;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use self::bookmark::Template;
use super::list::prefix;
use super::list_options::{ListOptions, is_legacy_watch};
use super::read;
use super::renderer::Renderer;
use crate::core::Core;
use crate::media::Media;
use crate::metrics::Counter;
use crate::object::Stored;
use crate::reply::{Body, Reply};
use crate::request::ApiCall;
use crate::request::negotiate::{self, Form};
use crate::selection::Selection;
use crate::status::{Failure, Result};
use crate::view::ClientView;

/// The state of a watch between two polls.
struct Watch {
    core: Arc<Core>,
    renderer: Renderer,
    media: Media,
    prefix: String,
    selector: Selection,
    /// All changes up to this revision were sent or skipped.
    revision: u64,
    /// Initial objects that are still to be sent, in reverse order.
    initial: Vec<Arc<Stored>>,
    /// True if a bookmark ends the initial objects.
    marks_initial_end: bool,
    /// The number of events that are sent, but not counted yet.
    uncounted: u64,
    /// True after the first event: only the first event of a table has the columns.
    has_begun: bool,
    /// The time of the next bookmark, for a client that accepts bookmarks.
    bookmark: Option<Instant>,
    /// The bookmarks that end nothing, after the first one.
    template: Option<Template>,
    /// The revision of the start: a bookmark is sent only if it is newer.
    began_at: u64,
    deadline: Instant,
    /// Notified at each change of the resource.
    changed: Arc<Notify>,
    ended: Arc<CancellationToken>,
    /// Counts this watch as open.
    _counted: Arc<()>,
    client_view: ClientView,
    /// The value of the server's bookmark counter when this watch last sent a bookmark.
    bookmarks: u64,
    wants_bookmarks: bool,
}

/// The reason why a watch woke up.
enum WakeUp {
    Changed,
    Bookmark,
    Ended,
}

/// The size of a chunk in bytes, after which further events wait for the next chunk.
const CHUNK: usize = 64 * 1024;
const BOOKMARK_EVERY: Duration = Duration::from_secs(60);
/// The time between the last bookmark and the end of the watch.
const BOOKMARK_BEFORE_END: Duration = Duration::from_secs(2);
/// The range of a watch's duration in seconds if the client does not set one; upstream's
/// `min-request-timeout`.
const DEFAULT_SECONDS: std::ops::Range<u64> = 1800..3600;

pub(super) async fn start(core: &Arc<Core>, call: &ApiCall) -> Result<Reply> {
    let options = ListOptions::of(call)?;
    let timeout = options.timeout_seconds.map_or(0, nanoseconds);
    core.check_ready()?;
    let version = parse_version(call.params.get("resourceVersion"))?;
    let mut watch = Watch::new(core, call, options)?;
    if call.media == Media::Yaml {
        return Err(negotiate::no_stream());
    }
    // The events of a watch are not lists. The real server notices when it encodes the first event,
    // and ends the stream.
    let shows_lists = matches!(call.form, Form::Partial { list: true, .. });
    if shows_lists || timeout < 0 {
        return Ok(Reply::Watch(Body::full("")));
    }
    if let Err(failure) = watch.seek(call, version).await {
        // The header was already sent, so the error is an event.
        return Ok(event::ended(call.media, &failure));
    }
    watch.began_at = watch.revision;
    // Shows the counter, also if no event follows.
    watch.count_events();
    let events = futures::stream::unfold(watch, |mut watch| async move {
        let chunk = watch.next().await?;
        watch.count_events();
        Some((chunk, watch))
    });
    Ok(Reply::Watch(Body::stream(events)))
}

fn parse_version(text: &str) -> Result<Option<u64>> {
    if text.is_empty() {
        return Ok(None);
    }
    // A list rejects this with 400; a watch answers 500, also in the real server.
    read::revision(text).map(Some).map_err(Failure::internal)
}

// === impl Watch ===

impl Watch {
    fn new(core: &Arc<Core>, call: &ApiCall, options: ListOptions) -> Result<Self> {
        let now = Instant::now();
        let bookmarks = call.params.flag("allowWatchBookmarks");
        let wanted = options.timeout_seconds.map_or(0, nanoseconds);
        let duration = if wanted == 0 {
            let range = DEFAULT_SECONDS.end - DEFAULT_SECONDS.start;
            Duration::from_secs(DEFAULT_SECONDS.start + core.chance.below(range))
        } else {
            Duration::from_nanos(u64::try_from(wanted).unwrap_or(0))
        };
        // A far deadline is as good as none; an overflow is not.
        let deadline =
            now.checked_add(duration).unwrap_or_else(|| now + Duration::from_secs(u32::MAX.into()));
        let mut watch = Self {
            core: Arc::clone(core),
            renderer: Renderer::of(core, call)?,
            media: call.media,
            prefix: prefix(&call.target.served.kind, call.namespace()),
            selector: options.selector,
            revision: 0,
            initial: Vec::new(),
            marks_initial_end: false,
            uncounted: 0,
            has_begun: false,
            bookmark: None,
            template: None,
            began_at: 0,
            deadline,
            changed: core.changes.of(call.target.served.resource),
            ended: core.watch_end_token(&call.client_view),
            _counted: core.watching(),
            client_view: call.client_view.clone(),
            bookmarks: core.bookmarks(),
            wants_bookmarks: bookmarks,
        };
        if bookmarks {
            watch.bookmark = watch.next_bookmark(now);
        }
        Ok(watch)
    }

    /// Moves to the start that the client asks for. `version` is that of the request.
    async fn seek(&mut self, call: &ApiCall, version: Option<u64>) -> Result<()> {
        let params = &call.params;
        if is_legacy_watch(params) || params.flag("sendInitialEvents") {
            let wanted = version.unwrap_or(0);
            self.core.wait_for_revision(wanted, &call.client_view).await?;
            self.list().await?;
            self.marks_initial_end = self.wants_bookmarks;
            return Ok(());
        }
        match version {
            // The client does not want the present objects.
            None | Some(0) if params.is_present("sendInitialEvents") => {
                self.start_at_the_present();
            }
            // It is 0 in other digits.
            None | Some(0) => self.list().await?,
            Some(revision) => {
                self.revision = revision;
                let resource = self.renderer.served().resource;
                let checked = self.core.read(|storage| storage.check_watchable(resource, revision));
                checked.map_err(|gone| expired(revision, gone.oldest))?;
            }
        }
        Ok(())
    }

    /// Returns the next bytes, or `None` at the end of the watch.
    async fn next(&mut self) -> Option<Bytes> {
        if let Some(chunk) = self.next_initial() {
            return Some(chunk);
        }
        let (core, resource) = (Arc::clone(&self.core), Arc::clone(&self.changed));
        let kind = Arc::clone(&self.renderer.served().kind);
        let retired = kind.definition.as_ref().map(|definition| definition.retired());
        loop {
            let changed = resource.notified();
            tokio::pin!(changed);
            // Registers before it checks, so that no change is missed in between.
            changed.as_mut().enable();
            let chunk = self.next_changes().await?;
            if !chunk.is_empty() {
                return Some(chunk);
            }
            if retired.is_some_and(CancellationToken::is_cancelled) {
                return None;
            }
            if self.wants_bookmarks && core.bookmarks() > self.bookmarks {
                self.bookmarks = core.bookmarks();
                return Some(self.bookmark(false));
            }
            let news = match self.wait(changed, retired).await {
                WakeUp::Ended => return None,
                WakeUp::Changed => None,
                WakeUp::Bookmark => Some(self.next_changes().await?)
                    .filter(|chunk| !chunk.is_empty())
                    .or_else(|| self.news()),
            };
            if news.is_some() {
                return news;
            }
        }
    }

    /// Waits until there is something to send.
    async fn wait(
        &mut self,
        changed: impl Future<Output = ()>,
        retired: Option<&CancellationToken>,
    ) -> WakeUp {
        // A bookmark is due before the deadline.
        let (time, at_time) = match self.bookmark {
            Some(time) => (time, WakeUp::Bookmark),
            None => (self.deadline, WakeUp::Ended),
        };
        tokio::select! {
            biased;
            () = self.ended.cancelled() => WakeUp::Ended,
            () = changed => WakeUp::Changed,
            () = until_cancelled(retired) => WakeUp::Changed,
            () = tokio::time::sleep_until(time) => at_time,
        }
    }

    /// Returns a bookmark if it is newer than the start.
    fn news(&mut self) -> Option<Bytes> {
        self.bookmark = self.next_bookmark(Instant::now());
        if self.revision == self.began_at {
            return None;
        }
        Some(self.bookmark(false))
    }

    fn next_initial(&mut self) -> Option<Bytes> {
        let mut chunk = Vec::new();
        while chunk.len() < CHUNK {
            let Some(object) = self.initial.pop() else { break };
            self.append(&mut chunk, "ADDED", &object);
        }
        if self.initial.is_empty() && std::mem::take(&mut self.marks_initial_end) {
            chunk.extend(self.bookmark(true));
        }
        (!chunk.is_empty()).then(|| chunk.into())
    }

    /// Returns the events of the new changes, or `None` if the history no longer has all of them.
    async fn next_changes(&mut self) -> Option<Bytes> {
        if self.ended.is_cancelled() || Instant::now() >= self.deadline {
            return None;
        }
        let core = Arc::clone(&self.core);
        let changes = core.read(|storage| self.take_changes(storage))?;
        let events = self.events(changes).await?;
        self.renderer.refresh(&core);
        let mut chunk = Vec::new();
        for (kind, object) in events {
            self.append(&mut chunk, kind, &object);
        }
        Some(chunk.into())
    }

    fn append(&mut self, chunk: &mut Vec<u8>, kind: &str, object: &Stored) {
        self.uncounted += 1;
        let first = !std::mem::replace(&mut self.has_begun, true);
        event::append(chunk, self.media, kind, &self.renderer.event_object(object, first));
    }

    fn bookmark(&mut self, ends_initial: bool) -> Bytes {
        self.uncounted += 1;
        if let Some(template) = self.template.as_ref().filter(|_| !ends_initial) {
            return template.at(self.revision);
        }
        let mut metadata = json!({"resourceVersion": self.revision.to_string()});
        if ends_initial {
            metadata["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        }
        let first = !std::mem::replace(&mut self.has_begun, true);
        let (mut chunk, object) = (Vec::new(), self.renderer.bookmark(&metadata, first));
        event::append(&mut chunk, self.media, "BOOKMARK", &object);
        let chunk = chunk.into();
        if !ends_initial && !first {
            self.template = Template::of(&chunk, self.revision);
        }
        chunk
    }

    /// Counts the events of a chunk.
    fn count_events(&mut self) {
        let kind = &self.renderer.served().kind;
        let labels = [kind.group.clone(), kind.plural.clone(), kind.version.clone()];
        self.core.metrics.add(Counter::WatchEvents, &labels, std::mem::take(&mut self.uncounted));
    }

    fn next_bookmark(&self, now: Instant) -> Option<Instant> {
        let last = self.deadline.checked_sub(BOOKMARK_BEFORE_END)?;
        (now < last).then(|| last.min(now + BOOKMARK_EVERY))
    }
}

/// Returns a duration in nanoseconds, which overflows as in Go.
fn nanoseconds(seconds: i64) -> i64 {
    seconds.wrapping_mul(1_000_000_000)
}

/// Waits for the cancellation of a token; without a token it never ends.
async fn until_cancelled(token: Option<&CancellationToken>) {
    match token {
        Some(token) => token.cancelled().await,
        None => std::future::pending().await,
    }
}

/// Returns the error for a watch from a revision that the history no longer has.
fn expired(revision: u64, oldest: u64) -> Failure {
    let message = format!("too old resource version: {revision} ({oldest})");
    Failure::new(410, "Expired", message)
}
